//! Tools of upstream MCP servers. Specs are kept as listed; annotations about effects count only
//! where the operator trusts them.

mod invocation;
mod task;
mod login;
#[cfg(test)]
pub(super) mod test_server;
#[cfg(test)]
mod tests;
pub(crate) mod invoke;

use super::Link;
use super::line::PeerError;
use crate::config::UpstreamConfig;
use crate::mcp::http::headers::MirroredArguments;
use crate::mcp::questions::{CarriedState, page_name};
use crate::{Result, cut};
use futures::future::BoxFuture;
use invocation::Invocation;
use kernel::contracts::Tool;
use kernel::tool::call::{
    Call, CallProgress, Caller, OutputKind, Pace, Reach, ToolError, ToolOutput, ToolSpec, Upstream,
    UpstreamProtocol,
};
use kernel::values::fault::Fault;
use kernel::values::members::take;
pub(crate) use login::LOGIN_PAGE;
use serde_json::{Map, Value};
use std::sync::Arc;
use wire::jsonrpc::RpcError;
use wire::mcp::{META_IDEMPOTENCY_KEY, META_SERVER, MISSING_CAPABILITY};

/// How much of what a server says is quoted.
const TOLD_CHARS_MAX: usize = 2_000;

/// A tool of another server.
pub(crate) struct RemoteTool {
    link: Arc<Link>,
    spec: Arc<ToolSpec>,
    /// The name of its upstream.
    upstream: Arc<str>,
    /// Its name there.
    name: Arc<str>,
    mirrored: MirroredArguments,
    /// Whether it does a call once that comes again under the same key.
    takes_key: bool,
}

impl RemoteTool {
    /// The tool that a server lists so; else why it is invalid.
    pub(crate) fn listed(link: Arc<Link>, listed: Value) -> Result<Arc<dyn Tool>, String> {
        let Some(name) = listed["name"].as_str().filter(|name| !name.is_empty()) else {
            return Err("it has no name".to_owned());
        };
        let name = name.to_owned();
        if !listed["inputSchema"].is_object() {
            return Err(format!("`{}` has no input schema", told(&name)));
        }
        if is_task_only(&listed) && !link.has_tasks() {
            return Err(format!(
                "`{}` can be called as a task of 2025-11-25 only, and those are not spoken here",
                told(&name)
            ));
        }
        let mirrored = MirroredArguments::read(&listed["inputSchema"])
            .map_err(|why| format!("`{}` cannot be called: {why}", told(&name)))?;
        let takes_key = takes_key(&listed);
        let spec = Arc::new(spec(&link.config, &name, listed));
        let upstream = link.config.name.as_str().into();
        Ok(Arc::new(Self { link, spec, upstream, name: name.into(), mirrored, takes_key }))
    }
}

impl RemoteTool {
    /// The same tool, called over this link.
    fn over(&self, link: Arc<Link>) -> Self {
        Self {
            link,
            spec: self.spec.clone(),
            upstream: self.upstream.clone(),
            name: self.name.clone(),
            mirrored: self.mirrored.clone(),
            takes_key: self.takes_key,
        }
    }
}

impl Tool for RemoteTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn upstream(&self) -> Option<Upstream> {
        let speaks = UpstreamProtocol::Mcp { version: self.link.version() };
        Some(Upstream { name: self.upstream.clone(), speaks })
    }

    fn forget(&self, state: &Value) {
        let carried = CarriedState::read(state);
        let token = carried.pending.as_deref();
        let was_kept = token.is_some_and(|token| match &self.link.users {
            Some(users) => users.forget(token),
            None => self.link.pending.forget(token),
        });
        // Whose task it was is not known: a user's own ends by itself some day.
        let is_ours = self.link.users.is_none();
        if let Some(id) = carried.task.filter(|_| !was_kept && is_ours) {
            task::cancel(&self.link, id);
        }
    }

    fn can_be_asked_anew(&self, state: &Value) -> bool {
        // A call or a task that is kept continues with its answer and with nothing else.
        let carried = CarriedState::read(state);
        carried.pending.is_none() && carried.task.is_none()
    }

    fn takes_parts(&self, state: &Value) -> bool {
        // A task continues with each answer, and says what it still waits for.
        CarriedState::read(state).task.is_some()
    }

    fn page_name<'k>(&self, key: &'k str) -> &'k str {
        page_name(key)
    }

    fn call<'a>(&'a self, caller: &'a Caller, call: &'a Call) -> BoxFuture<'a, Result<ToolOutput>> {
        if self.link.users.is_none() {
            return Box::pin(Invocation { tool: self, caller, call }.run());
        }
        Box::pin(async move {
            let link = self.link.of(&caller.acting_as(call.context.acts_as.as_ref()));
            let link = link.map_err(|fault| ToolError::new(CallProgress::NotSent, fault))?;
            let tool = self.over(link);
            Invocation { tool: &tool, caller, call }.run().await
        })
    }
}

fn spec(config: &UpstreamConfig, name: &str, listed: Value) -> ToolSpec {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let annotations = &listed["annotations"];
    let title = text(&listed["title"]).or_else(|| text(&annotations["title"]));
    let (reach, idempotent) = reach(config, &listed);
    let output_schema = Some(&listed["outputSchema"])
        .filter(|schema| schema.is_object() || schema.is_boolean())
        .map(|schema| Arc::new(schema.clone()));
    let slow = matches!(listed["execution"]["taskSupport"].as_str(), Some("optional" | "required"));
    ToolSpec {
        name: format!("{}{name}", config.prefix).as_str().into(),
        title: title.unwrap_or_else(|| name.to_owned()),
        description: text(&listed["description"]).unwrap_or_default(),
        input_schema: Arc::new(listed["inputSchema"].clone()),
        output_schema,
        reach,
        idempotent,
        tags: vec![config.name.clone()],
        pace: if slow { Pace::Slow } else { Pace::Quick },
        yields: OutputKind::Content,
        unrecorded: !config.journal,
        listed: Some(Arc::new(listed)),
    }
}

/// The effect of its calls, and whether they may be repeated. For an untrusted server the worst is
/// assumed: an annotation that a tool only reads could be wrong.
fn reach(config: &UpstreamConfig, listed: &Value) -> (Reach, bool) {
    let says = |hint: &str| listed["annotations"][hint] == true;
    match config.trusted {
        true if says("readOnlyHint") => (Reach::Reads, true),
        true => (Reach::Writes, says("idempotentHint") || takes_key(listed)),
        false => (Reach::Writes, false),
    }
}

/// Whether a tool is listed as one that can be called as a task only.
fn is_task_only(listed: &Value) -> bool {
    listed["execution"]["taskSupport"] == "required"
}

/// Whether a tool is listed as one that does a call once that comes again under the same key.
fn takes_key(listed: &Value) -> bool {
    listed["_meta"][META_IDEMPOTENCY_KEY] == true
}

/// A failure of the way to a server, as a fault that names it and says what to do.
pub(crate) fn broken(config: &UpstreamConfig, error: &PeerError) -> Fault {
    let fault = error.fault(&config.name);
    match fault.hint {
        Some(_) => fault,
        None => fault.hint(format!(
            "`waypost mcp test {}` looks at it; it is configured in {}",
            config.name, config.origin
        )),
    }
}

/// An error that a server answered with, as a fault that names it.
pub(crate) fn refused(config: &UpstreamConfig, error: &RpcError) -> Fault {
    let code = error.code;
    let message = told(&error.message);
    let message = format!("upstream `{}` answered with error {code}: {message}", config.name);
    let fault = Fault::new("UpstreamError", message);
    match &error.data {
        Some(data) if code == MISSING_CAPABILITY => {
            let needed = told(&data["requiredCapabilities"].to_string());
            fault.hint(format!("it needs what its caller does not have: {needed}"))
        }
        _ => fault,
    }
}

/// Takes out of a result what was said for this hop only: what kind of answer it is, and who gave
/// it.
pub(crate) fn for_the_next_hop(result: &mut Map<String, Value>) {
    take(result, "resultType");
    if let Some(Value::Object(meta)) = result.get_mut("_meta") {
        take(meta, META_SERVER);
        if meta.is_empty() {
            take(result, "_meta");
        }
    }
}

/// A server's text, truncated.
pub(crate) fn told(text: &str) -> String {
    cut(text, TOLD_CHARS_MAX)
}
