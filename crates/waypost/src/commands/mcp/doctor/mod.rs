//! `waypost mcp doctor`: looks at one upstream directly, and through the server that runs in both
//! eras of MCP, and shows what differs. It calls no tool but those that the command line names.

mod look;
mod report;

use super::test::{nothing, unknown};
use super::upstream::{lookup, mistaken, of_project};
use crate::commands::LIST_ITEMS_MAX;
use crate::context::Context;
use crate::environment::API_KEY;
use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{Client, Request};
use clap::Args;
use engine::system::clock::{SystemClock, SystemEntropy, TokioSpawn};
use kernel::limits::Limits;
use kernel::values::names::{Alphabet, outward};
use look::ServerView;
use project::upstream_entries::Entry;
use report::{Report, Ways};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use upstreams::{
    EraSetting, HOPS_MAX, Remote, RemoteParts, Secret, Upstream, UpstreamConfig, UpstreamKind,
};

const EXAMPLES: &str = "\
Examples:
  waypost mcp doctor github
  waypost mcp doctor github --call list_labels --call 'get_issue={\"number\": 7}'
  waypost --json mcp doctor github | jq '.checks[] | select(.same | not)'";

/// What `waypost mcp doctor` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// The upstream's name
    name: String,
    /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
    pub(super) dir: Option<PathBuf>,
    /// Call this tool too, with these arguments; can be given several times
    #[arg(long, value_name = "TOOL[=JSON]")]
    call: Vec<String>,
}

/// What the gateway's clients need of our variables, where they are set.
const VARIABLES: [&str; 3] = [API_KEY, "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// What no server has.
const NOWHERE: &str = "waypost-doctor://nothing/is/here";

/// A tool to call, by its name at the upstream.
struct ToolProbe {
    tool: String,
    arguments: Value,
}

/// Looks, and ends with 8 where something differs, with 4 where the upstream wants a login first.
pub(super) async fn run(args: &DoctorArgs, context: &Context) -> Result<Exit> {
    let calls: Vec<ToolProbe> = args.call.iter().map(|call| named(call)).collect::<Result<_>>()?;
    let (project, upstreams) = of_project(context)?;
    let name = args.name.as_str();
    let variables = lookup(&context.environment);
    let known = upstreams.entries().iter().find(|entry| entry.name == name);
    let (Some(entry), Some(config)) = (known, upstreams.config(name, &variables)) else {
        return Err(unknown(name, upstreams.entries()));
    };
    let config = config.map_err(|mistake| mistaken(&[mistake]))?;
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
    let remote = Remote::start(configs, parts(limits.clone()));
    let looking = looked(&remote, entry, &calls, &limits);
    let report = context.progress().during("looking", looking).await;
    remote.stop().await;
    let report = report?;
    context.output.data(&json!(report), &report.text())?;
    Ok(if report.same { Exit::Ok } else { Exit::Unwell })
}

/// All checks.
async fn looked(
    remote: &Remote,
    entry: &Entry,
    calls: &[ToolProbe],
    limits: &Limits,
) -> Result<Report> {
    let [direct, stateless, handshake] = remote.upstreams() else {
        return Ok(Report::new(&entry.name, Vec::new()));
    };
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
    let connected = report::connected(&pictures);
    if !connected.same {
        return Ok(Report::new(&entry.name, vec![connected]));
    }
    let prefix = entry.prefix();
    let mut checks = vec![connected];
    checks.extend(report::listed(&pictures, &prefix));
    if let Some(uri) = pictures.direct.resources.keys().next() {
        let read = read_everywhere(&ways, uri).await;
        checks.push(report::answered(format!("read {uri}"), &read));
        let read = read_everywhere(&ways, NOWHERE).await;
        checks.push(report::refused("read an unknown resource".to_owned(), &read));
    }
    let mut prompts = pictures.direct.prompts.iter();
    if let Some((name, _)) = prompts.find(|(_, listed)| needs_arguments(listed)) {
        let prompted = prompted_everywhere(&ways, &prefix, name).await;
        checks.push(report::refused(format!("prompt {name} without arguments"), &prompted));
    }
    for named in calls {
        let called = called_everywhere(&ways, &prefix, named, limits).await;
        checks.push(report::answered(format!("call {}", named.tool), &called));
    }
    Ok(Report::new(&entry.name, checks))
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

async fn prompted_everywhere(ways: &Ways<&Upstream>, prefix: &str, name: &str) -> Ways<Value> {
    let there = format!("{prefix}{name}");
    Ways {
        direct: look::prompted(ways.direct, name).await,
        stateless: look::prompted(ways.stateless, &there).await,
        handshake: look::prompted(ways.handshake, &there).await,
    }
}

async fn read_everywhere(ways: &Ways<&Upstream>, uri: &str) -> Ways<Value> {
    Ways {
        direct: look::read(ways.direct, uri).await,
        stateless: look::read(ways.stateless, uri).await,
        handshake: look::read(ways.handshake, uri).await,
    }
}

async fn called_everywhere(
    ways: &Ways<&Upstream>,
    prefix: &str,
    named: &ToolProbe,
    limits: &Limits,
) -> Ways<Value> {
    let ToolProbe { tool, arguments } = named;
    let there = outward(&format!("{prefix}{tool}"), Alphabet::Mcp);
    Ways {
        direct: look::called(ways.direct, tool, arguments, limits).await,
        stateless: look::called(ways.stateless, &there, arguments, limits).await,
        handshake: look::called(ways.handshake, &there, arguments, limits).await,
    }
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

fn parts(limits: Arc<Limits>) -> RemoteParts {
    RemoteParts {
        spawn: Arc::new(TokioSpawn::new(tokio::runtime::Handle::current())),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        limits,
        hops_max: HOPS_MAX,
        supervisor: std::env::current_exe().ok(),
        // What logins brought is the server's that runs.
        vault: nothing(),
        login: None,
        scope: upstreams::Scope::default(),
    }
}

fn named(call: &str) -> Result<ToolProbe> {
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

    #[test]
    fn a_call_is_a_name_and_an_object() {
        let read = named("get={\"a\": \"x=y\"}").unwrap();
        assert_eq!((read.tool.as_str(), &read.arguments), ("get", &json!({"a": "x=y"})));
        assert_eq!(named("list").unwrap().arguments, json!({}));
        for wrong in ["get=1", "get={", "get="] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }
}
