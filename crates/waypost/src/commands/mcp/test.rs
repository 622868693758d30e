//! `waypost mcp test`: connects to one upstream now. The server that runs does it; where none runs,
//! or it does not know that upstream yet, it is done here, as that server would.

use crate::assembly::refused;
use crate::commands::upstream::{UNAUTHORIZED, is_nobody_there, named, of_project, unknown};
use crate::context::Context;
use crate::environment::SECRET_KEY;
use crate::exit::{Exit, Failure, Result};
use crate::plans::parts_of_command;
use crate::remote::address;
use crate::remote::client::{Client, Request, read};
use crate::terminal::output::Fields;
use clap::Args;
use kernel::values::fault::Fault;
use project::folder::Project;
use project::upstream_entries::{Upstreams, shown};
use serde_json::json;
use server::OfflineVault;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use upstreams::{Remote, RemoteParts, UpstreamKind, UpstreamState, UpstreamStatus};
use wire::rest::Upstream;

const EXAMPLES: &str = "\
Examples:
  waypost mcp test github
  waypost mcp test github shop
  waypost --json mcp test github | jq .tools";

/// What `waypost mcp test` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TestArgs {
    /// The upstream's name
    name: String,
    /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
    pub(super) dir: Option<PathBuf>,
}

/// A server that is started for this may take its time: more than it has by default to start.
const CHECK_SECONDS: u64 = 180;
/// The pause between two readings of its lists, and how often they are read at most.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
const LOOKS_MAX: usize = 10;

/// Connects, and fails with 6 where that cannot be done, with 4 where a user must log in first or
/// what the settings give is not taken.
pub(super) async fn run(args: &TestArgs, context: &Context) -> Result<Exit> {
    let connecting = "connecting";
    let upstream = match context.progress().during(connecting, there(args, context)).await {
        Err(failure) if is_nobody_there(context, &failure) => {
            context.progress().during(connecting, here(args, context)).await?
        }
        Err(failure) if is_new(args, context, &failure) => {
            let what = "this project's server does not have it yet; this command tries it alone";
            context.output.talk(what);
            // It has no login there yet.
            context.progress().during(connecting, alone(args, context, None)).await?
        }
        answered => answered?,
    };
    if upstream.state == UpstreamState::Login.word() {
        return Err(unknown_there(&upstream));
    }
    if upstream.state != UpstreamState::Ready.word() {
        return Err(unreachable(&upstream));
    }
    context.output.data(&json!(upstream), &upstream_text(upstream))
}

/// Whether the project's files have one that their server does not know: it was added since that
/// was started.
fn is_new(args: &TestArgs, context: &Context, failure: &Failure) -> bool {
    let is_unknown = failure.code == "not_found" && !context.has_named_server();
    let is_here = |(_, upstreams): (Project, Upstreams)| {
        upstreams.entries().iter().any(|entry| entry.name == args.name)
    };
    is_unknown && of_project(context).is_ok_and(is_here)
}

/// Has the server connect.
async fn there(args: &TestArgs, context: &Context) -> Result<Upstream> {
    tested_by_server(&context.client().await?, args, context).await
}

async fn tested_by_server(client: &Client, args: &TestArgs, context: &Context) -> Result<Upstream> {
    let request = Request::to(&["upstreams", args.name.as_str(), "check"]);
    let request = request.taking(CHECK_SECONDS).keyed(context.admin_key()?);
    read(&client.post(request, &json!({})).await?)
}

/// Connects from this process, unless another one holds the data folder: what a login brought is
/// renewed now and then, and two who renew it take it from each other.
async fn here(args: &TestArgs, context: &Context) -> Result<Upstream> {
    let given = context.environment.text(SECRET_KEY);
    let data = context.project.as_ref().map(|folder| folder.join(".waypost"));
    let held = data.as_deref().map_or(Ok(None), |data| OfflineVault::take(data, given));
    match (held, data) {
        (Ok(held), _) => alone(args, context, held).await,
        (Err(error), Some(data)) if error.holder().is_some() => {
            let pid = error.holder().and_then(|holder| holder.pid);
            match address::of_holder(&data, pid) {
                Some(url) => tested_by_server(&context.client_at(&url)?, args, context).await,
                // It serves a pipe. Logins are its own, and all else can be tried here.
                None => alone(args, context, None).await,
            }
        }
        (Err(error), _) => Err(refused(error)),
    }
}

/// Connects with what logins brought, where anything did.
async fn alone(args: &TestArgs, context: &Context, held: Option<OfflineVault>) -> Result<Upstream> {
    let name = args.name.as_str();
    let (project, upstreams) = of_project(context)?;
    let (entry, config) = named(name, &upstreams, &context.environment)?;
    let hops_max = project.config.a2a.limits.a2a_hops_max;
    let parts = parts_of_command(Arc::new(project.config.limits));
    let vault = held.as_ref().map_or(parts.vault.clone(), |held| held.vault.clone());
    let supervisor = std::env::current_exe().ok();
    let remote = Remote::start(vec![config], RemoteParts { supervisor, vault, hops_max, ..parts });
    let Some(upstream) = remote.upstreams().first() else {
        return Err(unknown(name, upstreams.entries()));
    };
    let checked = match upstream.check().await {
        Ok(status) => settled(upstream, status).await,
        Err(fault) => Err(fault),
    };
    let status = match checked {
        Ok(status) => status,
        Err(fault) => {
            let status = upstream.status();
            let wants_login = status.state == UpstreamState::Login;
            let state = if wants_login { status.state } else { UpstreamState::Failing };
            UpstreamStatus { state, last_error: Some(fault), ..status }
        }
    };
    remote.stop().await;
    Ok(shown(&entry.facts(), Some((upstream.config(), status))))
}

/// How it is once it lists as much as it did a moment before: what a server that runs would show.
/// A server lists more by and by while its own servers come up.
async fn settled(
    upstream: &upstreams::Upstream,
    mut status: UpstreamStatus,
) -> std::result::Result<UpstreamStatus, Fault> {
    let counts = |status: &UpstreamStatus| (status.tools, status.prompts, status.resources);
    if !matches!(upstream.config().kind, UpstreamKind::Http { .. } | UpstreamKind::Stdio { .. }) {
        return Ok(status);
    }
    for _ in 0..LOOKS_MAX {
        tokio::time::sleep(BETWEEN_LOOKS).await;
        let before = counts(&status);
        status = upstream.check().await?;
        if counts(&status) == before {
            break;
        }
    }
    Ok(status)
}

/// A user must log in first.
fn unknown_there(upstream: &Upstream) -> Failure {
    let Upstream { name, origin, .. } = upstream;
    let what = format!("upstream `{name}` ({origin}) requires a login");
    Failure::new(Exit::Auth, "upstream_login", what)
        .hint(format!("with a server that runs: `waypost mcp login {name}`"))
        .problem(json!(upstream))
}

fn unreachable(upstream: &Upstream) -> Failure {
    let Upstream { name, state, origin, last_error, .. } = upstream;
    let why = last_error.as_ref().map_or(state.as_str(), |fault| fault.message.as_str());
    // A fault names its upstream itself.
    let why = why.strip_prefix(&format!("upstream `{name}`: ")).unwrap_or(why);
    let (exit, code) = match last_error {
        Some(fault) if fault.name == UNAUTHORIZED => (Exit::Auth, "upstream_unauthorized"),
        Some(_) | None => (Exit::Unreachable, "upstream_unreachable"),
    };
    let what = format!("upstream `{name}` ({origin}) cannot be used: {why}");
    let hint = last_error.as_ref().and_then(|fault| fault.hint.clone());
    Failure { hint, ..Failure::new(exit, code, what).problem(json!(upstream)) }
}

fn upstream_text(upstream: Upstream) -> String {
    let mut fields = Fields::default();
    let server = upstream.server.map(|server| {
        let version = server.version.unwrap_or_default();
        format!("{} {version}", server.name).trim_end().to_owned()
    });
    let spoken = upstream.version.map(|version| {
        let era = upstream.era.unwrap_or_default();
        format!("{version} ({era})")
    });
    fields.add("name", upstream.name);
    fields.add("kind", upstream.kind);
    fields.add("target", upstream.target);
    fields.add("origin", upstream.origin);
    fields.add("state", upstream.state);
    fields.add("server", server.unwrap_or_default());
    fields.add("mcp", spoken.unwrap_or_default());
    fields.add("tools", upstream.tools.to_string());
    fields.add("prompts", upstream.prompts.to_string());
    fields.add("resources", upstream.resources.to_string());
    fields.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unauthorized_and_unreachable_upstreams_have_different_exit_codes() {
        let failed = |name: &str| {
            let upstream: Upstream = read(&json!({
                "name": "hub", "prefix": "hub.", "kind": "http", "target": "http://a.example",
                "origin": "waypost.toml:1", "trusted": false, "journal": true, "headers": [],
                "env": [], "state": "failing", "tools": 0, "prompts": 0, "resources": 0,
                "restarts": 0,
                "lastError": {"name": name, "message": "upstream `hub`: it says no"},
            }))
            .unwrap();
            unreachable(&upstream)
        };
        let told = failed("UpstreamUnauthorized");
        assert_eq!((told.exit, told.code.as_str()), (Exit::Auth, "upstream_unauthorized"));
        let message = "upstream `hub` (waypost.toml:1) cannot be used: it says no";
        assert_eq!(told.message, message, "its name is told once");
        assert_eq!(failed("UpstreamUnreachable").exit, Exit::Unreachable);
    }
}
