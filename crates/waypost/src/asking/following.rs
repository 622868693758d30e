//! Waits for a run until it ends, pauses or asks a person, and at a terminal asks that person,
//! again and again until the run ends.

use super::Asker;
use super::prompts::Unanswered;
use crate::context::Context;
use crate::exit::{Exit, Failure, Result};
use crate::outcome;
use crate::remote::client::{Client, Request, read};
use crate::terminal::progress::Line;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use wire::rest::{Ask, Run, Status};

/// How many seconds to wait for the run after an answer.
const ANSWER_SECONDS: u64 = 30;

/// What a person reads meanwhile.
pub(crate) const WAITING: &str = "waiting for the run";

/// How often we check whether a run has ended: soon after its start, and then less often.
const LOOK_MIN: Duration = Duration::from_millis(10);
const LOOK_MAX: Duration = Duration::from_millis(500);

/// The first ask of a run that is for a person: what a rule holds is not.
pub(crate) fn asks_person(run: &Run) -> Option<&Ask> {
    let waits = matches!(run.status, Status::Waiting | Status::Stuck);
    run.asks.iter().find(|ask| waits && ask.held.is_none())
}

/// Asks the person at the terminal what the run asks, until it ends or they leave it for later.
pub(crate) async fn answered(
    context: &Context,
    client: &Client,
    mut asker: Asker,
    mut run: Run,
) -> Result<Exit> {
    while let Some(ask) = asks_person(&run).cloned() {
        let body = match asker.settle(context, client, &ask, ANSWER_SECONDS).await {
            Ok(body) => body,
            Err(Unanswered::Later | Unanswered::Leave) => break,
            // The run continues here.
            Err(Unanswered::AlreadyDecided) => client.get(Request::to(&["runs", &run.id])).await?,
            Err(Unanswered::Failed(failure)) => return Err(failure),
        };
        let line = Line::spinning(WAITING);
        let until = Instant::now() + Duration::from_secs(ANSWER_SECONDS);
        let rests = at_rest(context, client, body, until, &line);
        run = read(&context.progress().along(&line, rests).await?["run"])?;
    }
    outcome::tell(context, &json!({"run": run}), &run)
}

/// Waits until the run of this answer ends, pauses or asks a person, at most until then. Rules
/// that hold what it asks are waited for, and the line says what they do.
pub(crate) async fn at_rest(
    context: &Context,
    client: &Client,
    mut body: Value,
    until: Instant,
    line: &Line,
) -> Result<Value> {
    let mut pause = LOOK_MIN;
    loop {
        let run: Run = read(&body["run"])?;
        context.leaves_running(&run.session);
        let left = until.saturating_duration_since(Instant::now());
        let moves = run.status == Status::Running || outcome::is_held(&run);
        if !moves || left.is_zero() {
            return Ok(body);
        }
        line.says(outcome::next_act(&run).unwrap_or_else(|| WAITING.to_owned()));
        tokio::time::sleep(pause.min(left)).await;
        pause = LOOK_MAX.min(pause * 2);
        let looked = client.get(Request::to(&["runs", &run.id])).await;
        body = looked.map_err(|failure| Failure { hint: context.continuing(), ..failure })?;
    }
}
