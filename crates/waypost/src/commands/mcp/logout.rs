//! `waypost mcp logout`: removes the tokens of a login at an upstream.

use super::login::MINE;
use crate::context::Context;
use crate::exit::{Exit, Result};
use crate::remote::client::{Request, read};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use upstreams::UpstreamState;
use wire::rest::Upstream;

const EXAMPLES: &str = "\
Examples:
  waypost mcp logout github
  waypost mcp logout github --dry-run     # whether there is something to forget
  waypost mcp login github         # and in again, as another user
  waypost mcp logout github --mine # your own login, where each caller has one";

/// What `waypost mcp logout` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LogoutArgs {
    /// The upstream's name
    name: String,
    /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
    pub(super) dir: Option<PathBuf>,
    /// Forget your own login, where each caller has one
    #[arg(long)]
    mine: bool,
    /// Only say what would be forgotten
    #[arg(long)]
    dry_run: bool,
}

/// The upstream is logged out too, which may take time.
const END_SECONDS: u64 = 30;

/// Has the server forget it.
pub(super) async fn run(args: &LogoutArgs, context: &Context) -> Result<Exit> {
    if args.dry_run {
        return would_forget(args, context).await;
    }
    let place = ["upstreams", args.name.as_str(), if args.mine { MINE } else { "login" }];
    let request = Request::to(&place).taking(END_SECONDS).keyed(context.admin_key()?);
    context.client().await?.delete(request).await?;
    let whose = if args.mine { "your" } else { "the" };
    let talk = format!("{whose} login at `{}` is forgotten", args.name);
    context.output.done(&json!({"name": args.name}), &talk)
}

async fn would_forget(args: &LogoutArgs, context: &Context) -> Result<Exit> {
    let request = Request::to(&["upstreams", args.name.as_str()]).keyed(context.admin_key()?);
    let upstream: Upstream = read(&context.client().await?.get(request).await?)?;
    let kept = if args.mine { own_kept_because(&upstream) } else { kept_because(&upstream) };
    let whose = if args.mine { "your" } else { "the" };
    let told = match kept {
        Some(why) => format!("nothing would be forgotten: {why} `{}`", args.name),
        None if args.mine && is_only_begun(&upstream) => {
            format!("the login that you began at `{}` would be forgotten", args.name)
        }
        None => format!("{whose} login at `{}` would be forgotten", args.name),
    };
    let document = json!({"dryRun": true, "name": args.name, "forgotten": kept.is_none()});
    context.output.data(&document, &format!("{told}; nothing was changed"))
}

/// Why there is nothing to forget for all callers: a text that the upstream's name ends.
fn kept_because(upstream: &Upstream) -> Option<&'static str> {
    let mut headers = upstream.headers.iter();
    let is_fixed = headers.any(|header| header.eq_ignore_ascii_case("authorization"));
    if upstream.kind != "http" || is_fixed {
        return Some("there are no logins at");
    }
    // Where each caller has a login of its own, the state is about that.
    let is_left = upstream.login_url.is_some() || upstream.your_login.is_some();
    let is_away = upstream.state == UpstreamState::Login.word();
    (is_away && !is_left).then_some("no one is logged in at")
}

/// Whether there is a page for the caller, and no login yet.
fn is_only_begun(upstream: &Upstream) -> bool {
    upstream.your_login.as_ref().is_some_and(|own| !own.done)
}

/// The same for the caller's own login.
fn own_kept_because(upstream: &Upstream) -> Option<&'static str> {
    match &upstream.your_login {
        None => Some("callers do not log in for themselves at"),
        Some(own) if !own.done && own.url.is_none() => Some("you are not logged in at"),
        Some(_) => None,
    }
}
