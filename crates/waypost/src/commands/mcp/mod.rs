//! `waypost mcp`: how programs that speak the Model Context Protocol come to us.

mod relay;
mod serve;
mod snippet;

use crate::context::Context;
use crate::exit::{Exit, Failure};
use clap::{Args, Subcommand};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  waypost mcp snippet claude-code             # what to write where, for a server that runs
  waypost mcp snippet claude-desktop shop     # a client that starts the project's server itself
  waypost mcp snippet vscode > .vscode/mcp.json
  waypost mcp serve --stdio shop              # what such a client runs
  waypost mcp serve --stdio --server http://127.0.0.1:8420    # a bridge to a server that runs";

/// What `waypost mcp` takes.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    command: McpCommand,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// Serve one client over standard input and output, until it closes them
    Serve(serve::ServeArgs),
    /// Print what a client's settings need to find us
    Snippet(snippet::SnippetArgs),
}

impl McpArgs {
    /// The project's folder; the demo has none.
    pub(crate) fn project(&self) -> Option<PathBuf> {
        match &self.command {
            McpCommand::Serve(args) => args.project(),
            McpCommand::Snippet(args) => Some(args.project()),
        }
    }
}

/// Runs `waypost mcp`.
pub(crate) async fn run(args: McpArgs, context: &Context) -> Result<Exit, Failure> {
    match args.command {
        McpCommand::Serve(args) => serve::run(&args, context).await,
        McpCommand::Snippet(args) => snippet::run(&args, context),
    }
}
