//! `waypost pipeline`: lists pipelines, tests their files, sends cases, and shows which paths they
//! took. Testing a file needs no server.

mod ls;
mod send;
mod test;
mod stats;

use crate::commands::Most;
use crate::context::Context;
use crate::environment::locations::project_folder;
use crate::exit::{Exit, Result};
use clap::Subcommand;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  waypost pipeline ls
  waypost pipeline test pipelines/trade.yaml                   # checks the file, offline
  waypost pipeline test pipelines/trade.yaml --case @case.json # which path a case would take
  waypost pipeline send trade '{\"tradeId\": \"T-1\", \"reason\": \"Missing ISIN\"}'
  waypost pipeline send trade tradeId=T-1 'reason=Missing ISIN'
  waypost pipeline stats trade                                 # who decided, and why";

/// What `waypost pipeline` takes.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum PipelineCommand {
    /// List the server's pipelines
    Ls(Most),
    /// Check a pipeline's file, and say which path cases would take; offline
    Test(test::TestArgs),
    /// Send a case through the server and print its outcome
    Send(send::SendArgs),
    /// How many cases handlers took, and which reasons went to the agent
    Stats {
        /// The pipeline's name
        name: String,
    },
}

impl PipelineCommand {
    /// The project that the command is about.
    pub(crate) fn project(&self) -> PathBuf {
        match self {
            PipelineCommand::Test(args) => args.project(),
            PipelineCommand::Ls(_) | PipelineCommand::Send(_) | PipelineCommand::Stats { .. } => {
                project_folder(None)
            }
        }
    }
}

/// Runs `waypost pipeline`.
pub(crate) async fn run(command: PipelineCommand, context: &Context) -> Result<Exit> {
    match command {
        PipelineCommand::Ls(Most { limit }) => ls::run(context, limit).await,
        PipelineCommand::Test(args) => test::run(context, &args),
        PipelineCommand::Send(args) => send::run(context, args).await,
        PipelineCommand::Stats { name } => stats::run(context, &name).await,
    }
}
