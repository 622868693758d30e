//! Runs the examples of plans on the real engine over a store of its own, and reports differences
//! from the expected outcome.

mod stubs;

use crate::assembly::{Keys, NOWHERE, assemble_with, refused};
use crate::exit::{Exit, Failure, Result};
use crate::process::folder::TemporaryFolder;
use crate::terminal::progress::{Line, Progress};
use engine::{Engine, Refusal, RunReport, RunRequest, RunSession, RunTarget};
use kernel::ask::correction;
use kernel::ask::reply::short_form;
use kernel::ask::{Ask, AskBody, Reply};
use kernel::contracts::{AskFilter, PageRequest};
use kernel::definition::plan::{Example, ExampleError, Expect, Plan};
use kernel::journal::projection::RunRow;
use kernel::session::RunStatus;
use kernel::tool::call::Caller;
use kernel::tool::schema::sentence;
use kernel::values::ids::PlanId;
use project::folder::Project;
use project::realm::local_caller;
use serde_json::Value;
use server::Extra;
use std::collections::BTreeSet;
use stubs::Stubs;

/// The outcome of one example.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExampleResult {
    pub(crate) plan: PlanId,
    pub(crate) name: String,
    /// How it came out differently; none if it did not.
    pub(crate) difference: Option<String>,
}

/// How long a run may take until it ends or pauses.
const WAIT_MS: u64 = 60_000;

/// Runs the examples of these plans of the project, one after the other, in order.
pub(crate) async fn run(
    project: Project,
    plans: &[Plan],
    progress: Progress,
) -> Result<Vec<ExampleResult>> {
    let total: usize = plans.iter().map(|plan| plan.examples.len()).sum();
    let line = Line::counting("running examples", total);
    progress.along(&line, play_all(project, plans, &line)).await
}

async fn play_all(project: Project, plans: &[Plan], line: &Line) -> Result<Vec<ExampleResult>> {
    let folder = TemporaryFolder::new()?;
    let stubs = Stubs::default();
    let names = Stubs::names(plans);
    check_stubbed(&project, &names)?;
    let extra = Extra { tools: stubs.tools(names), ..Extra::default() };
    let data = folder.path().to_path_buf();
    let starting = assemble_with(project, data, NOWHERE, Keys::none(), extra);
    let assembled = starting.await.map_err(refused)?;
    let stage = Stage { engine: assembled.engine, caller: local_caller(), stubs };
    let mut results = Vec::new();
    for plan in plans {
        for example in &plan.examples {
            results.push(ExampleResult {
                plan: plan.id.clone(),
                name: example.name.clone(),
                difference: stage.play(plan, example).await.err(),
            });
            line.step();
        }
    }
    stage.engine.stop().await;
    Ok(results)
}

/// A built-in tool is there while examples run, and does what it always does.
fn check_stubbed(project: &Project, names: &BTreeSet<String>) -> Result<()> {
    let built_in = tools::builtin(project.built_in());
    match built_in.iter().find(|tool| names.contains(tool.spec().name.as_str())) {
        Some(tool) => {
            let what = format!("an example has stubs for `{}`, a built-in tool", tool.spec().name);
            Err(Failure::new(Exit::Failed, "invalid_plan", what)
                .hint("remove them: examples call built-in tools as every run does"))
        }
        None => Ok(()),
    }
}

/// Where examples are played.
struct Stage {
    engine: Engine,
    caller: Caller,
    stubs: Stubs,
}

impl Stage {
    /// Plays one example; the error is the difference.
    async fn play(&self, plan: &Plan, example: &Example) -> Result<(), String> {
        self.stubs.begin(&example.stubs);
        let request = RunRequest {
            target: RunTarget::Plan(plan.id.clone()),
            input: example.begins_with(),
            session: RunSession::New,
            once: None,
            about: Default::default(),
        };
        let started = self.engine.runs().start(&self.caller, request, WAIT_MS).await;
        let mut report = started.map_err(|refusal| refusal_text(&refusal))?;
        for (index, given) in example.replies.iter().enumerate() {
            let number = index + 1;
            report = self
                .answer(&report, given)
                .await
                .map_err(|why| format!("reply {number} is not taken: {why}"))?;
        }
        let mut found = differences(&example.expect, &report.run);
        found.extend(example.error.as_ref().and_then(|error| misfit(error, &report.run)));
        found.extend(self.stubs.unused());
        if found.is_empty() { Ok(()) } else { Err(found.join("; ")) }
    }

    async fn answer(&self, report: &RunReport, given: &Value) -> Result<RunReport, String> {
        let filter = AskFilter {
            run: Some(report.run.id),
            status: Some("open".to_owned()),
            ..AskFilter::default()
        };
        let first = PageRequest { cursor: None, limit: 1 };
        // Listed oldest first: replies stand in the order of asking.
        let open = self.engine.asks().list(&self.caller, &filter, &first).await;
        let open = open.map_err(|refusal| refusal_text(&refusal))?;
        let Some(ask) = open.items.into_iter().next().map(|found| found.row.ask) else {
            return Err(format!("no one is asked, the run is {}", standing(&report.run)));
        };
        let unfit = |why: String| format!("{why}; the run is {}", standing(&report.run));
        let reply = reply_to(&ask, given).map_err(unfit)?;
        let replied = self.engine.asks().reply(&self.caller, ask.id, reply, None, WAIT_MS).await;
        replied.map(|replied| replied.run).map_err(|refusal| refusal_text(&refusal))
    }
}

/// The reply that a short form stands for: `{approve}`, `{answer}`, `{input}`, `{action, ..}`.
fn reply_to(ask: &Ask, given: &Value) -> Result<Reply, String> {
    if given["action"] == "decline" {
        match &ask.body {
            AskBody::Clarify { .. } => return Ok(Reply::Clarify { answer: None }),
            AskBody::Fill { .. } => return Ok(Reply::Fill { content: None }),
            AskBody::Authorize { .. } => return Ok(Reply::Authorize { done: false }),
            AskBody::Approve { .. } | AskBody::Fix { .. } => {}
        }
    }
    let input = given.get("answer").or(given.get("input")).unwrap_or(given);
    short_form(ask, Some(input)).map_err(|bad| bad.to_string())
}

/// Where the run came out differently than expected.
fn differences(expect: &Expect, run: &RunRow) -> Vec<String> {
    let mut found = Vec::new();
    if run.status.plan_session_name() != expect.status {
        found.push(format!("expected status {}, got {}", expect.status, standing(run)));
    }
    let answer = run.answer.as_ref().unwrap_or(&Value::Null);
    if let Some(expected) = expect.answer.as_ref().filter(|expected| *expected != answer) {
        found.push(format!("expected answer {expected}, got {answer}"));
    }
    let error = run.last_error.as_ref().map(|fault| fault.name.as_str());
    if let Some(expected) = &expect.error
        && error != Some(expected.as_str())
    {
        found.push(format!("expected error {expected}, got {}", error.unwrap_or("none")));
    }
    found
}

/// Why the answer of a correction fits no reply, if it does not.
fn misfit(error: &ExampleError, run: &RunRow) -> Option<String> {
    if run.status != RunStatus::Completed {
        return None;
    }
    let answer = run.answer.as_ref().unwrap_or(&Value::Null);
    let why = correction::read(&error.actions(), answer).err()?;
    Some(format!("the answer {answer} of the correction fits no reply: {why}"))
}

fn standing(run: &RunRow) -> String {
    let status = run.status.plan_session_name();
    let fault = run.last_error.as_ref();
    match run.status {
        RunStatus::Running => format!("{status} after {} s", WAIT_MS / 1000),
        RunStatus::Stuck | RunStatus::Failed | RunStatus::Cancelled => {
            fault.map_or_else(|| status.to_owned(), |fault| format!("{status} ({fault})"))
        }
        RunStatus::Waiting | RunStatus::Paused | RunStatus::Completed => status.to_owned(),
    }
}

fn refusal_text(refusal: &Refusal) -> String {
    if refusal.errors.is_empty() {
        return refusal.message.clone();
    }
    format!("{}: {}", refusal.message, sentence(&refusal.errors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::session::RunSpent;
    use kernel::values::fault::Fault;
    use kernel::values::ids::{Millis, RunId};
    use serde_json::json;

    fn run(status: RunStatus, answer: Option<Value>, error: Option<&str>) -> RunRow {
        RunRow {
            id: RunId(1),
            no: 1,
            owner: None,
            plan: PlanId::from("a/b"),
            status,
            step: None,
            answer,
            last_error: error.map(|name| Fault::new(name, "why")),
            started_at: Millis(0),
            ended_at: None,
            changed_at: Millis(0),
            spent: RunSpent::default(),
            stopped: None,
            bytes: 0,
        }
    }

    fn expect(expect: Value) -> Expect {
        serde_json::from_value(expect).unwrap()
    }

    #[test]
    fn a_run_that_meets_its_expectation_has_no_difference() {
        let expected = expect(json!({"status": "completed", "answer": "x"}));
        let done = run(RunStatus::Completed, Some(json!("x")), None);
        assert_eq!(differences(&expected, &done), Vec::<String>::new());
        let expected = expect(json!({"status": "paused_on_error", "error": "E"}));
        let stuck = run(RunStatus::Stuck, None, Some("E"));
        assert_eq!(differences(&expected, &stuck), Vec::<String>::new());
    }

    #[test]
    fn an_answer_of_a_correction_must_fit_a_reply() {
        let error = |value: Value| serde_json::from_value::<ExampleError>(value).unwrap();
        let call = error(json!({"name": "Boom", "tool": "math::add"}));
        let step = error(json!({"name": "Boom"}));
        let edit = Some(json!({"action": "edit", "arguments": {"a": 1}}));
        let done = run(RunStatus::Completed, edit, None);
        assert_eq!(misfit(&call, &done), None);
        assert!(misfit(&step, &done).unwrap().contains("fits no reply"));
        assert!(misfit(&call, &run(RunStatus::Completed, Some(json!("ok")), None)).is_some());
        assert_eq!(misfit(&call, &run(RunStatus::Waiting, None, None)), None);
    }

    #[test]
    fn every_difference_is_reported() {
        let expected = expect(json!({"status": "completed", "answer": 1, "error": "E"}));
        let failed = run(RunStatus::Failed, None, Some("F"));
        assert_eq!(
            differences(&expected, &failed),
            [
                "expected status completed, got failed (F: why)",
                "expected answer 1, got null",
                "expected error E, got F",
            ]
        );
    }
}
