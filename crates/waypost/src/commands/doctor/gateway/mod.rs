//! Compares one upstream, reached directly, with what clients of the running server see of it in
//! both eras of MCP. Calls only the tools that the command line names.

mod view;
mod compared;

use super::report::{Finding, Level, Ways};
use crate::commands::LIST_ITEMS_MAX;
use crate::commands::upstream::{named, of_project};
use crate::context::Context;
use crate::environment::API_KEY;
use crate::exit::{Exit, Failure, Result};
use crate::plans::parts_of_command;
use crate::remote::client::{Client, Request};
use kernel::limits::Limits;
use kernel::values::names::{Alphabet, outward};
use serde_json::Value;
use std::sync::Arc;
use upstreams::{EraSetting, Remote, RemoteParts, Secret, Upstream, UpstreamConfig, UpstreamKind};
use view::ServerView;

/// What the gateway's clients need of our variables, where they are set.
const VARIABLES: [&str; 3] = [API_KEY, "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// What no server has.
const NOWHERE: &str = "waypost-doctor://nothing/is/here";

/// A tool to call, by its name at the upstream.
struct ToolProbe {
    tool: String,
    arguments: Value,
}

/// All checks of the upstream of this name, with these calls.
pub(super) async fn check(name: &str, calls: &[String], context: &Context) -> Result<Vec<Finding>> {
    let calls: Vec<ToolProbe> = calls.iter().map(|call| probe(call)).collect::<Result<_>>()?;
    let (project, upstreams) = of_project(context)?;
    let (entry, config) = named(name, &upstreams, &context.environment)?;
    if !matches!(config.kind, UpstreamKind::Http { .. } | UpstreamKind::Stdio { .. }) {
        let what = format!("`{name}` does not speak MCP, so there is nothing to compare");
        return Err(Failure::usage(what).hint("`waypost mcp test` looks at it"));
    }
    let client = context.client().await?;
    // Fails where no server of this project runs.
    client.must_be_ours()?;
    client.list(Request::to(&["upstreams"]), LIST_ITEMS_MAX).await?;
    let configs = vec![
        UpstreamConfig { prefix: String::new(), ..config },
        through(EraSetting::Stateless, &client, context)?,
        through(EraSetting::Handshake, &client, context)?,
    ];
    let limits = Arc::new(project.config.limits);
    // What logins brought is the server's that runs.
    let parts = parts_of_command(limits.clone());
    let supervisor = std::env::current_exe().ok();
    let remote = Remote::start(configs, RemoteParts { supervisor, ..parts });
    let prefix = entry.prefix();
    let looking = looked(&remote, &prefix, &calls, &limits);
    let findings = context.progress().during("looking", looking).await;
    remote.stop().await;
    findings
}

async fn looked(
    remote: &Remote,
    prefix: &str,
    calls: &[ToolProbe],
    limits: &Limits,
) -> Result<Vec<Finding>> {
    let [direct, stateless, handshake] = remote.upstreams() else { return Ok(Vec::new()) };
    let ways = Ways { direct: &**direct, stateless: &**stateless, handshake: &**handshake };
    let picture = ServerView::of(ways.direct).await;
    if picture.is_locked {
        return Err(locked(ways.direct, picture.trouble.as_deref().unwrap_or_default()));
    }
    let pictures = Ways {
        direct: picture,
        stateless: ServerView::of(ways.stateless).await,
        handshake: ServerView::of(ways.handshake).await,
    };
    let mut findings = vec![compared::connected(&pictures)];
    if findings.iter().any(|connected| connected.level == Level::Fail) {
        return Ok(findings);
    }
    findings.extend(compared::listed(&pictures, prefix));
    if let Some(uri) = pictures.direct.resources.keys().next() {
        let read = answers_of(&ways, uri, uri, view::read).await;
        findings.push(compared::answered(&format!("read {uri}"), &read));
        let read = answers_of(&ways, NOWHERE, NOWHERE, view::read).await;
        findings.push(compared::refused("read an unknown resource", &read));
    }
    let mut prompts = pictures.direct.prompts.iter();
    if let Some((name, _)) = prompts.find(|(_, listed)| needs_arguments(listed)) {
        let prompted = answers_of(&ways, name, &format!("{prefix}{name}"), view::prompted).await;
        let check = format!("prompt {name} without arguments");
        findings.push(compared::refused(&check, &prompted));
    }
    for ToolProbe { tool, arguments } in calls {
        let there = outward(&format!("{prefix}{tool}"), Alphabet::Mcp);
        let call = async |upstream: &Upstream, name: &str| {
            view::called(upstream, name, arguments, limits).await
        };
        let called = answers_of(&ways, tool, &there, call).await;
        findings.push(compared::answered(&format!("call {tool}"), &called));
    }
    Ok(findings)
}

/// What each way answers about what has one name at the upstream, and another at the gateway.
async fn answers_of(
    ways: &Ways<&Upstream>,
    name: &str,
    there: &str,
    ask: impl AsyncFn(&Upstream, &str) -> Value,
) -> Ways<Value> {
    Ways {
        direct: ask(ways.direct, name).await,
        stateless: ask(ways.stateless, there).await,
        handshake: ask(ways.handshake, there).await,
    }
}

/// The upstream lets only those in who have logged in, or whose credential it takes.
fn locked(direct: &Upstream, trouble: &str) -> Failure {
    let name = direct.name();
    let origin = &direct.config().origin;
    let what = format!("upstream `{name}` ({origin}) cannot be looked at directly: {trouble}");
    Failure::new(Exit::Auth, "upstream_login", what).hint(format!(
        "this command has no logins; `waypost mcp test {name}` has the server that runs look, and \
         `waypost mcp login {name}` logs it in"
    ))
}

/// Whether a prompt has an argument that is required.
fn needs_arguments(listed: &Value) -> bool {
    let mut arguments = listed["arguments"].as_array().into_iter().flatten();
    arguments.any(|argument| argument["required"] == true)
}

/// The server that runs, as a client of this era meets it: by our own bridge, which knows how to
/// reach it.
fn through(era: EraSetting, client: &Client, context: &Context) -> Result<UpstreamConfig> {
    let program = std::env::current_exe().map_err(|error| {
        let what = format!("cannot find our own program: {error}");
        Failure::new(Exit::Failed, "no_program", what)
    })?;
    let url = client.mcp_url();
    let server = url.as_str().trim_end_matches("/mcp").to_owned();
    let words = ["mcp", "serve", "--stdio", "--server"];
    let args = words.into_iter().map(str::to_owned).chain([server]).collect();
    let variable = |name: &str| {
        let value = context.environment.any(name)?;
        Some((name.to_owned(), Secret::from(value)))
    };
    let env = VARIABLES.into_iter().filter_map(variable).collect();
    let command = program.to_string_lossy().into_owned();
    Ok(UpstreamConfig {
        name: format!("gateway-{}", era.word()),
        prefix: String::new(),
        kind: UpstreamKind::Stdio { command, args, env, cwd: None },
        trusted: false,
        journal: false,
        timeout_ms: None,
        era,
        roots: Vec::new(),
        origin: "this command".to_owned(),
    })
}

fn probe(call: &str) -> Result<ToolProbe> {
    let (tool, arguments) = call.split_once('=').unwrap_or((call, "{}"));
    let arguments: Option<Value> = serde_json::from_str(arguments).ok();
    match arguments.filter(Value::is_object) {
        Some(arguments) => Ok(ToolProbe { tool: tool.to_owned(), arguments }),
        None => {
            let what = format!("the arguments of `{tool}` are not a JSON object");
            Err(Failure::usage(what).hint("write them as in `--call 'add={\"a\": 1}'`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_is_a_name_and_an_object() {
        let read = probe("get={\"a\": \"x=y\"}").unwrap();
        assert_eq!((read.tool.as_str(), &read.arguments), ("get", &json!({"a": "x=y"})));
        assert_eq!(probe("list").unwrap().arguments, json!({}));
        for wrong in ["get=1", "get={", "get="] {
            assert!(probe(wrong).is_err(), "{wrong}");
        }
    }
}
