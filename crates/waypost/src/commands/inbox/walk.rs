//! `waypost inbox` at a terminal: asks one open ask after the other.

use crate::asking::prompts::Unanswered;
use crate::asking::{Asker, run_of};
use crate::context::Context;
use crate::exit::{Exit, Failure, Result};
use crate::outcome;
use crate::remote::client::{Client, Request};
use crate::terminal::output::counted;
use serde_json::Value;
use wire::rest::{Ask, Run, Status};

/// How many seconds a run may take after an answer before the next ask is shown.
const WAIT_SECONDS: u64 = 30;
/// So many asks are read.
const ASKS_MAX: usize = 1_000;

/// Walks through the open asks, oldest first, also through those that answers lead to.
pub(super) async fn run(context: &Context, client: &Client, asker: &mut Asker) -> Result<Exit> {
    let output = context.output;
    let mut seen: Vec<String> = Vec::new();
    loop {
        let request = Request::to(&["asks"]).with("status", Some("open"));
        let open: Vec<Ask> = client.items(request, ASKS_MAX).await?;
        let left: Vec<&Ask> = open.iter().filter(|ask| !seen.contains(&ask.id)).collect();
        let Some(ask) = left.first() else {
            let told = match open.len() {
                0 => "no asks are open: no run waits for a person".to_owned(),
                count => format!("{} left for later", counted(count, "ask")),
            };
            output.talk(&told);
            return Ok(Exit::Ok);
        };
        output.talk(&format!("{} to go", counted(left.len(), "ask")));
        seen.push(ask.id.clone());
        match asker.settle(context, client, ask, WAIT_SECONDS).await {
            Ok(body) => tell(context, &run_of(&body)?)?,
            Err(Unanswered::Later | Unanswered::AlreadyDecided) => {}
            Err(Unanswered::Leave) => return Ok(Exit::Ok),
            Err(Unanswered::Failed(failure)) if ends(&failure) => return Err(failure),
            Err(Unanswered::Failed(failure)) => output.failure(&failure),
        }
    }
}

/// Whether nothing more can be asked after this.
fn ends(failure: &Failure) -> bool {
    [Exit::Unreachable, Exit::Interrupted].contains(&failure.exit)
}

/// The outcome of an answer. What the run asks next comes next.
fn tell(context: &Context, run: &Run) -> Result<()> {
    let output = context.output;
    match run.status {
        Status::Completed => {
            let answer = run.answer.as_ref().unwrap_or(&Value::Null);
            output.text(&outcome::value_text(answer))
        }
        Status::Stuck if outcome::is_held(run) => {
            output.talk(&outcome::next_act(run).unwrap_or_default());
            Ok(())
        }
        Status::Waiting | Status::Stuck => {
            output.talk("the run asks again");
            Ok(())
        }
        Status::Failed | Status::Cancelled | Status::Paused | Status::Running => {
            output.talk(&format!("the run in {} is {}", run.session, run.status.name()));
            Ok(())
        }
    }
}
