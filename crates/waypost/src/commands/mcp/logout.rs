//! `waypost mcp logout`: the server forgets what a login at an upstream brought.

use super::login::MINE;
use crate::context::Context;
use crate::exit::{Exit, Result};
use crate::remote::client::Request;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  waypost mcp logout github
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
}

/// The upstream is logged out too, which may take time.
const END_SECONDS: u64 = 30;

/// Has the server forget it.
pub(super) async fn run(args: &LogoutArgs, context: &Context) -> Result<Exit> {
    let place = ["upstreams", args.name.as_str(), if args.mine { MINE } else { "login" }];
    let request = Request::to(&place).taking(END_SECONDS).keyed(context.admin_key()?);
    context.client().await?.delete(request).await?;
    let whose = if args.mine { "your" } else { "the" };
    let talk = format!("{whose} login at `{}` is forgotten", args.name);
    context.output.done(&json!({"name": args.name}), &talk)
}
