//! `waypost child`: runs a command that ends with the process that started it, with all that the
//! command itself started. Hidden: a server starts its upstreams' processes through it, and
//! `upstreams::children` does the work on both sides.

use crate::exit::{Exit, Failure, Result};
use clap::Args;
use engine::system::clock::SystemClock;
use std::ffi::OsString;
use upstreams::children::{SUPERVISOR_GRACE_MS, SupervisedCommand, SupervisorError, supervise};

/// What `waypost child` takes.
#[derive(Debug, Args)]
pub(crate) struct ChildArgs {
    /// The process that must be our parent
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    parent: Option<i32>,

    /// How long the command has to end by itself when it is asked to
    #[arg(long, value_name = "MS", default_value_t = SUPERVISOR_GRACE_MS)]
    grace_ms: u64,

    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    words: Vec<OsString>,
}

/// Runs the command to its end, or to our parent's, and ends with its exit code.
pub(crate) fn run(args: &ChildArgs) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::new(Exit::Failed, "child", format!("cannot wait for signals: {error}"))
    })?;
    let run =
        SupervisedCommand { words: &args.words, parent: args.parent, grace_ms: args.grace_ms };
    let code = runtime.block_on(supervise(&run, &SystemClock)).map_err(failed)?;
    // The command's own code, for which `Exit` has no word.
    std::process::exit(code)
}

fn failed(why: SupervisorError) -> Failure {
    let message = why.to_string();
    match why {
        SupervisorError::Command(_) => Failure::usage(message),
        SupervisorError::Orphan => Failure::new(Exit::Failed, "orphan", message),
        SupervisorError::System(_) => Failure::new(Exit::Failed, "child", message),
    }
}
