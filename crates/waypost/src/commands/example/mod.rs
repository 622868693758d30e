//! `waypost example`: servers that the examples need, in the same binary.

mod pages;
mod calendar_server;
mod filesystem_server;

use crate::context::Context;
use crate::exit::{Exit, Result};
use clap::Subcommand;

/// What `waypost example` takes.
#[derive(Debug, Subcommand)]
pub(crate) enum ExampleCommand {
    /// Serve the calendars and maps of the calendar example over MCP
    CalendarServer(calendar_server::CalendarServerArgs),
    /// Serve the files of one folder over MCP and plain JSON-RPC
    FilesystemServer(filesystem_server::FilesystemServerArgs),
}

/// Runs `waypost example`.
pub(crate) async fn run(command: ExampleCommand, context: &Context) -> Result<Exit> {
    match command {
        ExampleCommand::CalendarServer(args) => calendar_server::run(&args, context).await,
        ExampleCommand::FilesystemServer(args) => filesystem_server::run(&args, context).await,
    }
}
