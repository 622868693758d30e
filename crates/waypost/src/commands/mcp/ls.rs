//! `waypost mcp ls`: the servers behind this one. Of a server that runs it tells how they are;
//! where none runs, what is configured.

use super::upstream::{is_nobody_there, of_project};
use crate::commands::LIST_ITEMS_MAX;
use crate::context::{Context, Listing};
use crate::exit::{Exit, Result};
use crate::remote::client::Request;
use crate::terminal::table::Cell;
use clap::Args;
use project::upstream_entries::shown;
use serde_json::{Value, json};
use std::path::PathBuf;
use upstreams::UpstreamState;
use wire::rest::Upstream;

const EXAMPLES: &str = "\
Examples:
  waypost mcp ls
  waypost mcp ls shop                # where no server runs: what is configured there
  waypost --json mcp ls | jq '.items[] | select(.state != \"ready\")'";

/// What `waypost mcp ls` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LsArgs {
    /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
    pub(super) dir: Option<PathBuf>,
}

/// The state of what is configured while no server runs.
const STOPPED: &str = "stopped";

/// Lists them.
pub(super) async fn run(_args: &LsArgs, context: &Context) -> Result<Exit> {
    let asked = async {
        let client = context.client().await?;
        // The upstreams of another project are not those of this one.
        client.must_be_ours()?;
        client.list(Request::to(&["upstreams"]), LIST_ITEMS_MAX).await
    };
    let body = match asked.await {
        Ok(body) => body,
        Err(failure) if is_nobody_there(context, &failure) => {
            context.output.talk("no server runs here; this is what is configured");
            configured(context)?
        }
        Err(failure) => return Err(failure),
    };
    let heads = ["name", "kind", "state", "era", "tools", "last error"];
    let none = "no servers are connected: `waypost mcp add` and `waypost mcp import` add some";
    context.table(&body, Listing { noun: "server", heads: &heads, none }, |upstream: Upstream| {
        let error = if upstream.state == UpstreamState::Login.word() {
            format!("log in: waypost mcp login {}", upstream.name)
        } else {
            upstream.last_error.map(|fault| fault.message).unwrap_or_default()
        };
        let era = era(upstream.era, upstream.era_setting.as_deref());
        let tools = upstream.tools.to_string();
        vec![
            upstream.name.into(),
            Cell::word(upstream.kind),
            Cell::word(upstream.state),
            era.into(),
            Cell::word(tools),
            error.into(),
        ]
    })
}

/// The era that is spoken, and beside it the one that is set, unless that is left to the server.
fn era(spoken: Option<String>, set: Option<&str>) -> String {
    let spoken = spoken.unwrap_or_else(|| "-".to_owned());
    match set {
        None | Some("auto") => spoken,
        Some(set) => format!("{spoken} ({set})"),
    }
}

/// What the project's files say, in the shape of a server's answer.
fn configured(context: &Context) -> Result<Value> {
    let (_, upstreams) = of_project(context)?;
    let item = |entry: &project::upstream_entries::Entry| {
        let mut item = shown(&entry.facts(), None);
        if !entry.is_disabled() {
            item.state = STOPPED.to_owned();
        }
        json!(item)
    };
    let items: Vec<Value> = upstreams.entries().iter().map(item).collect();
    Ok(json!({"items": items, "nextCursor": null}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_era_that_is_set_is_shown_beside_the_one_that_is_spoken() {
        let legacy = || Some("legacy".to_owned());
        assert_eq!(era(legacy(), Some("auto")), "legacy");
        assert_eq!(era(legacy(), Some("2025")), "legacy (2025)");
        assert_eq!(era(None, Some("2026")), "- (2026)");
        assert_eq!(era(None, None), "-");
    }
}
