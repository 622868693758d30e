//! `waypost mcp`: connects MCP clients to this server, and MCP servers as upstreams.

mod relay;
mod serve;
mod snippet;
mod ls;
mod test;
mod browser;
mod login;
mod logout;
pub(super) mod settings_file;
mod add;
mod import;
mod rm;
mod install;

use crate::commands::doctor;
use crate::context::Context;
use crate::environment::locations::project_folder;
use crate::exit::{Exit, Result};
use clap::Subcommand;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  waypost mcp add github https://mcp.example.com/mcp    # its tools are ours from the next start
  waypost mcp add files -- npx -y @example/files .
  waypost mcp rm files                        # takes it out again
  waypost mcp ls                              # the servers behind this one, and how they are
  waypost mcp login github                    # where one of them wants to know who you are
  waypost mcp install claude-code             # writes it into the client's settings
  waypost mcp snippet claude-code             # what to write where, for a server that runs
  waypost mcp snippet claude-desktop shop     # a client that starts the project's server itself
  waypost mcp snippet vscode > .vscode/mcp.json
  waypost mcp serve --stdio shop              # what such a client runs
  waypost mcp serve --stdio --server http://127.0.0.1:8420    # a bridge to a server that runs";

/// What `waypost mcp` takes.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum McpCommand {
    /// Serve one client over standard input and output, until it closes them
    Serve(serve::ServeArgs),
    /// Print what a client's settings need to find us
    Snippet(snippet::SnippetArgs),
    /// Write what a client needs into its settings, and show the change
    Install(install::InstallArgs),
    /// List the servers behind this one, and how they are
    Ls(ls::LsArgs),
    /// Connect to a server behind this one now, and show what it has
    Test(test::TestArgs),
    /// Compare a server with what clients see of it through this one, in both eras of MCP
    Doctor(doctor::UpstreamsArgs),
    /// Log in at a server behind this one, with a browser
    Login(login::LoginArgs),
    /// Forget a login at a server behind this one
    Logout(logout::LogoutArgs),
    /// Write a server into waypost.toml
    Add(add::AddArgs),
    /// Take a server out of waypost.toml
    Rm(rm::RmArgs),
    /// Find the servers of a client's settings, and write them into waypost.toml
    Import(import::ImportArgs),
}

impl McpCommand {
    /// The project's folder; the demo has none.
    pub(crate) fn project(&self) -> Option<PathBuf> {
        let dir = match self {
            McpCommand::Serve(args) => return args.project(),
            McpCommand::Snippet(args) => &args.client.dir,
            McpCommand::Install(args) => &args.client.dir,
            McpCommand::Ls(ls::LsArgs { dir })
            | McpCommand::Test(test::TestArgs { dir, .. })
            | McpCommand::Doctor(doctor::UpstreamsArgs { dir, .. })
            | McpCommand::Login(login::LoginArgs { dir, .. })
            | McpCommand::Logout(logout::LogoutArgs { dir, .. })
            | McpCommand::Add(add::AddArgs { dir, .. })
            | McpCommand::Rm(rm::RmArgs { dir, .. })
            | McpCommand::Import(import::ImportArgs { dir, .. }) => dir,
        };
        Some(project_folder(dir.as_deref()))
    }
}

/// Runs `waypost mcp`.
pub(crate) async fn run(command: McpCommand, context: &Context) -> Result<Exit> {
    match command {
        McpCommand::Serve(args) => serve::run(&args, context).await,
        McpCommand::Snippet(args) => snippet::run(&args, context),
        McpCommand::Install(args) => install::run(&args, context),
        McpCommand::Ls(args) => ls::run(&args, context).await,
        McpCommand::Test(args) => test::run(&args, context).await,
        McpCommand::Doctor(args) => doctor::run_upstreams(&args, context).await,
        McpCommand::Login(args) => login::run(&args, context).await,
        McpCommand::Logout(args) => logout::run(&args, context).await,
        McpCommand::Add(args) => add::run(&args, context),
        McpCommand::Rm(args) => rm::run(&args, context),
        McpCommand::Import(args) => import::run(&args, context),
    }
}
