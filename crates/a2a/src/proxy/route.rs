//! Which tool an instruction means. A server is meant by its own name, else by that of the tool,
//! else by what stands before the first dot of that, else as the only one that lists the tool. What
//! the caller does not see is not there.

use super::instruction::{ARGUMENTS, ProxyInstruction, SKILL, read};
use crate::state::A2a;
use engine::UnseenCall;
use kernel::contracts::policy::{Context, Request, Resource};
use kernel::event::Occasion;
use kernel::tool::call::{Caller, OutputKind, Pace, Reach, ToolSpec};
use kernel::values::caller::Act;
use kernel::values::ids::{RealmId, ToolName};
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use upstreams::{Upstream, UpstreamKind, UpstreamState, refused_method};

/// Why an instruction leads nowhere, as it is recorded.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RouteError {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) details: Value,
}

impl RouteError {
    pub(super) fn new(code: &'static str, message: String) -> Self {
        Self { code, message, details: json!({}) }
    }

    pub(super) fn to_value(&self) -> Value {
        json!({"code": self.code, "message": self.message, "details": self.details})
    }
}

/// A tool that no policy names: what is said of it is said of any tool.
static ANY: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    name: ToolName::from(SKILL),
    title: String::new(),
    description: String::new(),
    input_schema: Arc::new(json!({"type": "object"})),
    output_schema: None,
    reach: Reach::Writes,
    idempotent: false,
    tags: Vec::new(),
    pace: Pace::Quick,
    yields: OutputKind::Value,
    unrecorded: false,
    listed: None,
});

/// Whether a caller may call something: any tool, one that it sees, or any of a server, which may
/// list nothing.
fn may_call(a2a: &A2a, caller: &Caller) -> bool {
    // Who may only read calls the tools that read records, and nothing for which a task is begun.
    let listed = || a2a.server.engine.tools().list(caller);
    let resource = Resource::Tool(&ANY);
    let context = Context::default();
    let any = Request { act: Act::Call, subject: caller, resource, context };
    a2a.server.engine.admin().foresee(&any).shows()
        || listed().iter().any(|spec| !spec.only_reads_records())
        || servers(a2a, &caller.realm).iter().any(|server| may_call_any(a2a, caller, server))
}

/// Whether a caller may call any tool of a server that lists nothing.
fn may_call_any(a2a: &A2a, caller: &Caller, server: &Upstream) -> bool {
    a2a.server.engine.tools().get(caller, &format!("{}any", server.config().prefix)).is_some()
}

/// Whether a caller may call the tool that this instruction means. A policy can allow single tools
/// by their names, and a server that lists nothing has no list to find them in.
pub(crate) fn may_call_meant(a2a: &A2a, caller: &Caller, instruction: &Value) -> bool {
    let Ok(wanted) = read(instruction) else { return false };
    let tool = |server: &Arc<Upstream>| of_server(a2a, caller, server, &wanted.tool);
    a2a.serving.proxy != Some(false)
        && servers(a2a, &caller.realm).iter().any(|server| tool(server).is_some())
}

/// Whether agents of others are offered the proxy: where that is set, to those who may call a tool,
/// else where there are servers whose tools they could call. Strangers see what everybody sees.
pub(crate) fn is_offered(a2a: &A2a, realm: &RealmId, caller: Option<&Caller>) -> bool {
    if let Some(is_set) = a2a.serving.proxy {
        return is_set && caller.is_none_or(|caller| may_call(a2a, caller));
    }
    let servers = servers(a2a, realm);
    let Some(caller) = caller else { return !servers.is_empty() };
    if servers.is_empty() {
        return false;
    }
    let seen = a2a.server.engine.tools().list(caller);
    servers.iter().any(|server| {
        let prefix = server.config().prefix.as_str();
        let is_listed = seen.iter().any(|spec| spec.name.as_str().starts_with(prefix));
        is_listed || may_call_any(a2a, caller, server)
    })
}

/// The servers that speak MCP or JSON-RPC.
fn servers(a2a: &A2a, realm: &RealmId) -> Vec<Arc<Upstream>> {
    let mut servers = a2a.server.gateway.running(realm);
    servers.retain(|server| match server.config().kind {
        UpstreamKind::Http { .. } | UpstreamKind::Stdio { .. } | UpstreamKind::Rpc { .. } => true,
        UpstreamKind::Rest(_) | UpstreamKind::A2a(_) => false,
    });
    servers
}

/// The tool that is meant.
#[derive(Debug, PartialEq)]
pub(super) struct ProxyRoute {
    pub(super) tool: ToolName,
    /// Its server lists nothing, so that the tool is there for everyone who may call it.
    pub(super) is_open: bool,
}

/// Finds the tool that is meant. A server that is being connected to for the first time is waited
/// for.
pub(super) async fn routed(
    a2a: &A2a,
    caller: &Caller,
    wanted: &ProxyInstruction,
) -> Result<ProxyRoute, RouteError> {
    let servers = servers(a2a, &caller.realm);
    let before = wanted.tool.split_once('.').map(|(before, _)| before);
    let is_named = |server: &&Arc<Upstream>| {
        let name = server.name();
        name == wanted.server || name == wanted.tool || Some(name) == before
    };
    for server in servers.iter().filter(is_named) {
        server.listed().await;
    }
    let server = meant(&servers, wanted).or_else(|| only(a2a, caller, &servers, wanted));
    if server.is_none_or(|server| server.name() != wanted.server)
        && let Some(tool) = listed(a2a, caller, &servers, &wanted.tool)
    {
        return Ok(ProxyRoute { tool, is_open: false });
    }
    if let Some(refused) = server.and_then(|server| refused(server, &wanted.tool)) {
        return Err(refused);
    }
    if let Some(tool) = server.and_then(|server| of_server(a2a, caller, server, &wanted.tool)) {
        return Ok(ProxyRoute { tool, is_open: false });
    }
    if let Some(server) = server.filter(|server| is_open(server)) {
        // The gate refuses it, and the audit keeps that.
        let tool = ToolName::from(format!("{}{}", server.config().prefix, wanted.tool));
        return Ok(ProxyRoute { tool, is_open: true });
    }
    Err(nowhere(a2a, caller, wanted, server))
}

/// What is said of a method that is not sent to an open server.
fn refused(server: &Upstream, tool: &str) -> Option<RouteError> {
    let why = refused_method(server.config(), tool).filter(|_| is_open(server))?;
    let name = server.name();
    let message = format!("`{}` is no tool of server `{name}`: {why}", tool.escape_debug());
    let details = json!({"errors": [{"pointer": "/tool_name", "detail": why}]});
    Some(RouteError { details, ..RouteError::new("INVALID_INPUT", message) })
}

/// Keeps that an instruction means a tool that its sender does not see, if it does.
pub(crate) fn note_unseen(a2a: &A2a, caller: &Caller, instruction: &Value) {
    let Ok(wanted) = read(instruction) else { return };
    let servers = servers(a2a, &caller.realm);
    let server = meant(&servers, &wanted);
    let mut names = server.map_or_else(Vec::new, |server| {
        names(server.name(), &server.config().prefix, &wanted.tool)
    });
    if server.is_none_or(|server| server.name() != wanted.server) {
        names.push(wanted.tool.clone());
    }
    let arguments = instruction[ARGUMENTS].clone();
    let unseen = UnseenCall { names, arguments, trace: None, occasion: Occasion::at("a2a", SKILL) };
    a2a.server.engine.audits().note_unseen_tool(caller, &unseen);
}

/// The server that an instruction names: by itself, by its tool, or by how that begins.
fn meant<'s>(servers: &'s [Arc<Upstream>], wanted: &ProxyInstruction) -> Option<&'s Upstream> {
    let named = |name: &str| servers.iter().find(|server| server.name() == name);
    let by_tool = || named(&wanted.tool).or_else(|| named(wanted.tool.split_once('.')?.0));
    named(&wanted.server).or_else(by_tool).map(|server| &**server)
}

/// The server of an instruction that names none: the only one that lists its tool.
fn only<'s>(
    a2a: &A2a,
    caller: &Caller,
    servers: &'s [Arc<Upstream>],
    wanted: &ProxyInstruction,
) -> Option<&'s Upstream> {
    if !wanted.server.is_empty() {
        return None;
    }
    let mut having = servers.iter().filter(|server| {
        !is_open(server) && of_server(a2a, caller, server, &wanted.tool).is_some()
    });
    match (having.next(), having.next()) {
        (Some(only), None) => Some(&**only),
        _ => None,
    }
}

/// The tool of this very name, if one of these servers lists it.
fn listed(a2a: &A2a, caller: &Caller, servers: &[Arc<Upstream>], name: &str) -> Option<ToolName> {
    let prefixes = servers.iter().map(|server| server.config().prefix.as_str());
    let mut prefixes = prefixes.filter(|prefix| !prefix.is_empty());
    if !prefixes.any(|prefix| name.starts_with(prefix)) {
        return None;
    }
    let tools = a2a.server.engine.tools().list(caller);
    tools.iter().find(|spec| spec.name.as_str() == name).map(|spec| spec.name.clone())
}

/// The tool of a server that a caller sees.
fn of_server(a2a: &A2a, caller: &Caller, server: &Upstream, tool: &str) -> Option<ToolName> {
    let known = |name: &String| a2a.server.engine.tools().get(caller, name);
    let mut names = names(server.name(), &server.config().prefix, tool);
    if is_open(server) {
        // Any name is one of its methods: only the one that was asked for is meant.
        names.truncate(1);
    }
    names.iter().find_map(known).map(|spec| spec.name.clone())
}

/// Whether any method of a server is a tool.
fn is_open(server: &Upstream) -> bool {
    server.tools().iter().any(|tool| tool.is_open())
}

/// The names that a tool of a server may have here: as the server names it, or with or without the
/// name of the server before it.
fn names(server: &str, prefix: &str, tool: &str) -> Vec<String> {
    let rest = tool.strip_prefix(server).and_then(|rest| rest.strip_prefix('.'));
    let other = rest.map_or_else(|| format!("{server}.{tool}"), str::to_owned);
    let whole = (!prefix.is_empty() && tool.starts_with(prefix)).then(|| tool.to_owned());
    let mut names = vec![format!("{prefix}{tool}"), format!("{prefix}{other}")];
    names.extend(whole);
    names.dedup();
    names
}

/// A server that is away has no tools yet; who may see the server learns that.
fn nowhere(
    a2a: &A2a,
    caller: &Caller,
    wanted: &ProxyInstruction,
    server: Option<&Upstream>,
) -> RouteError {
    let shown = |text: &str| text.chars().take(100).collect::<String>();
    let tool = shown(&wanted.tool);
    let is_seen = |name: &str| {
        a2a.server.readable_upstreams(caller).iter().any(|member| member.facts.name == name)
    };
    let Some(server) = server.filter(|server| is_seen(server.name())) else {
        if wanted.server.is_empty() {
            let message = format!(
                "`{tool}` does not lead to one server alone: name it by `target_mcp_server_id`"
            );
            return RouteError::new("NO_ROUTE", message);
        }
        let message = format!(
            "no server leads to `{tool}`: there is none called `{}`, and none by its name",
            shown(&wanted.server)
        );
        return RouteError::new("NO_ROUTE", message);
    };
    let name = server.name();
    let status = server.status();
    if status.state != UpstreamState::Ready && server.tools().is_empty() {
        let why = status.last_error.map(|fault| format!(": {fault}")).unwrap_or_default();
        let message = format!("server `{name}` cannot be reached{why}");
        return RouteError::new("MCP_CONNECTION_ERROR", message);
    }
    RouteError::new("NO_ROUTE", format!("server `{name}` has no tool `{tool}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_looked_for_by_the_names_that_clients_write() {
        let told = |tool: &str| names("fs", "fs.", tool);
        assert_eq!(told("read"), ["fs.read", "fs.fs.read"]);
        assert_eq!(told("fs.read"), ["fs.fs.read", "fs.read"]);
        assert_eq!(names("fs", "", "fs.read"), ["fs.read", "read"]);
        assert_eq!(names("fs", "", "read"), ["read", "fs.read"]);
        let told = names("fs", "files::", "files::read");
        assert_eq!(told.last().map(String::as_str), Some("files::read"));
    }
}
