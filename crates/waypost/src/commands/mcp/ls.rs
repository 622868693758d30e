//! `waypost mcp ls`: lists the upstreams: their state in a running server, else their
//! configuration.

use crate::commands::LIST_ITEMS_MAX;
use crate::commands::upstream::{is_nobody_there, of_project};
use crate::context::{Context, Listing};
use crate::exit::{Exit, Result};
use crate::remote::client::Request;
use crate::terminal::table::Cell;
use clap::Args;
use engine::system::clock::SystemClock;
use kernel::contracts::Clock;
use kernel::values::ids::Millis;
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
    let now = SystemClock.now();
    context.table(&body, Listing { noun: "server", heads: &heads, none }, |upstream: Upstream| {
        let state = state(&upstream, now);
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
            Cell::word(state),
            era.into(),
            Cell::word(tools),
            error.into(),
        ]
    })
}

/// How it is: a process that is not up yet has so much of its time behind it.
fn state(upstream: &Upstream, now: Millis) -> String {
    let is_starting =
        upstream.kind == "stdio" && upstream.state == UpstreamState::Connecting.word();
    let since = upstream.since.as_deref().filter(|_| is_starting);
    match since.and_then(|since| since.parse::<jiff::Timestamp>().ok()) {
        Some(since) => {
            let waited_ms = now.0.saturating_sub(since.as_millisecond()).max(0);
            format!("starting ({} s)", waited_ms / 1_000)
        }
        None => upstream.state.clone(),
    }
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
    use crate::remote::client::read;

    #[test]
    fn a_process_that_starts_is_shown_with_the_time_that_it_has_taken() {
        let shown = |kind: &str, word: &str| {
            let upstream: Upstream = read(&json!({
                "name": "hub", "prefix": "hub.", "kind": kind, "target": "npx -y hub",
                "origin": "waypost.toml:1", "trusted": false, "journal": true, "headers": [],
                "env": [], "state": word, "since": "2026-11-15T02:17:25.000Z", "tools": 0,
                "prompts": 0, "resources": 0, "restarts": 0,
            }))
            .unwrap();
            let since: jiff::Timestamp = "2026-11-15T02:17:25Z".parse().unwrap();
            state(&upstream, Millis(since.as_millisecond() + 12_900))
        };
        assert_eq!(shown("stdio", "connecting"), "starting (12 s)");
        assert_eq!(shown("stdio", "ready"), "ready");
        assert_eq!(shown("http", "connecting"), "connecting");
    }

    #[test]
    fn an_era_that_is_set_is_shown_beside_the_one_that_is_spoken() {
        let legacy = || Some("legacy".to_owned());
        assert_eq!(era(legacy(), Some("auto")), "legacy");
        assert_eq!(era(legacy(), Some("2025")), "legacy (2025)");
        assert_eq!(era(None, Some("2026")), "- (2026)");
        assert_eq!(era(None, None), "-");
    }
}
