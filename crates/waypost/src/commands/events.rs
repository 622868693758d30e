//! `waypost events`: what happens in all sessions, as it happens.

use crate::client::Request;
use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::output::one_line;
use crate::tail::{self, Look};
use clap::{Args, Subcommand};
use kernel::ids::Millis;
use serde_json::Value;

const EXAMPLES: &str = "\
Examples:
  waypost events tail                      # all that is kept, then what happens, until Ctrl-C
  waypost events tail --after 2a-1         # goes on after an event
  waypost --json events tail | jq -r '[.cursor, .session, .event.type] | @tsv'";

/// What `waypost events` takes.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct EventsArgs {
    #[command(subcommand)]
    command: EventsCommand,
}

#[derive(Debug, Subcommand)]
enum EventsCommand {
    /// Follow the events of all sessions; it ends with Ctrl-C
    Tail {
        /// Begin after this event: a cursor that was printed before
        #[arg(long, value_name = "CURSOR")]
        after: Option<String>,
    },
}

const LOOK: Look = Look { line, with_cursor: true };

/// Runs `waypost events`.
pub(crate) async fn run(args: EventsArgs, context: &Context) -> Result<Exit, Failure> {
    let EventsCommand::Tail { after } = args.command;
    let request = Request::to(&["events"]).with("after", after);
    tail::follow(context.output, &context.client()?, &request, LOOK).await
}

/// `2a-1  2026-11-15T02:17:25.123Z  ses_..  call.finished  {..}`; `--json` has all of it.
fn line(cursor: Option<&str>, told: &Value) -> String {
    let event = &told["event"];
    let at = event["at"].as_i64().map(|at| Millis(at).rfc3339()).unwrap_or_default();
    let session = told["session"].as_str().unwrap_or_default();
    let kind = event["type"].as_str().unwrap_or_default();
    let data = one_line(&event["data"].to_string());
    format!("{:8}  {at}  {session}  {kind:16}  {data}", cursor.unwrap_or_default())
}
