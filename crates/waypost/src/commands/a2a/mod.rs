//! `waypost a2a`: shows and checks the cards of A2A agents, sends them messages, lists their tasks,
//! and adds them to a project as upstreams.

mod reference;
mod line;
mod card;
mod send;
mod tasks;
mod add;
mod check;

use crate::context::Context;
use crate::environment::locations::project_folder;
use crate::exit::{Exit, Result};
use clap::Subcommand;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  waypost a2a card https://agent.example.com      # who it is, and what it can do
  waypost a2a send http://127.0.0.1:8420 'hello'  # says something, and waits for the answer
  waypost a2a tasks http://127.0.0.1:8420         # what it does and did for you
  waypost a2a add trips https://agent.example.com # its skills are tools from the next start
  waypost a2a check http://127.0.0.1:8420         # whether it keeps to the specification";

/// What `waypost a2a` takes.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum A2aCommand {
    /// Show the card of an agent
    Card(card::CardArgs),
    /// Send an agent a message, and wait until its task is over or asks something
    Send(send::SendArgs),
    /// List the tasks that an agent has for you
    Tasks(tasks::TasksArgs),
    /// Write an agent into waypost.toml
    Add(add::AddArgs),
    /// Check the card of an agent, and a conversation with it, against the specification
    Check(check::CheckArgs),
}

impl A2aCommand {
    /// The project's folder.
    pub(crate) fn project(&self) -> PathBuf {
        match self {
            A2aCommand::Add(args) => project_folder(args.dir.as_deref()),
            A2aCommand::Card(_)
            | A2aCommand::Send(_)
            | A2aCommand::Tasks(_)
            | A2aCommand::Check(_) => project_folder(None),
        }
    }
}

/// Runs `waypost a2a`.
pub(crate) async fn run(command: A2aCommand, context: &Context) -> Result<Exit> {
    match command {
        A2aCommand::Card(args) => card::run(&args, context).await,
        A2aCommand::Send(args) => send::run(&args, context).await,
        A2aCommand::Tasks(args) => tasks::run(&args, context).await,
        A2aCommand::Add(args) => add::run(&args, context),
        A2aCommand::Check(args) => check::run(&args, context).await,
    }
}
