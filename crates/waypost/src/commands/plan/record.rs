//! `waypost plan run --record`: writes a finished run as an example that `waypost plan test`
//! replays without the servers that were called.

use crate::commands::init::write_new;
use crate::context::Context;
use crate::environment::locations::shown;
use crate::exit::{Exit, Failure, Result};
use crate::plans::folder_of;
use crate::remote::client::{Client, Request, read};
use crate::settings::Settings;
use kernel::ask::remedy::SUPERVISOR;
use kernel::ask::{CallDecision, Reply};
use kernel::event::{self, Fact};
use kernel::tool::call::CallProgress;
use kernel::values::datum::{Datum, DatumValue};
use kernel::values::fault::Fault;
use kernel::values::ids::{AskId, CallId, ToolName};
use outbound::answer::is_passing;
use project::folder::Project;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::rest::{Run, RunAnswer, Status};

/// What is recorded, and where.
pub(super) struct Recording<'a> {
    /// A file that is not there yet.
    pub(super) file: &'a Path,
    /// The plan as the command line names it.
    pub(super) plan: &'a str,
    pub(super) input: &'a Value,
    pub(super) run: &'a str,
}

/// Writes the run, if it has ended. The command ends as it was told before.
pub(super) async fn write(
    context: &Context,
    client: &Client,
    recording: &Recording<'_>,
    told: Result<Exit>,
) -> Result<Exit> {
    let body = client.get(Request::to(&["runs", recording.run])).await?;
    let run = read::<RunAnswer>(&body)?.run;
    if !run.status.is_over() {
        let exit = told?;
        let what = format!("{} has not ended, so nothing was recorded", run.id);
        return Err(Failure::new(exit, "not_recorded", what)
            .hint("run it at a terminal to answer what it asks, or with a longer `--wait`"));
    }
    let example = example(context, client, recording, &run).await?;
    let text = serde_saphyr::to_string(&json!({"examples": [example]})).map_err(|error| {
        Failure::new(Exit::Failed, "yaml", format!("the run cannot be written as YAML: {error}"))
    })?;
    let head = "# Made of a real run, with the data that it had: look at it before you share it.\n";
    write_new(recording.file, &format!("{head}{text}"))?;
    let file = shown(recording.file);
    context.output.talk(&format!("recorded in {file}; it holds the data of a real run"));
    told
}

/// The run as an item of `examples`.
async fn example(
    context: &Context,
    client: &Client,
    recording: &Recording<'_>,
    run: &Run,
) -> Result<Value> {
    let exported = client.get(Request::to(&["sessions", &run.session, "export"])).await?;
    let events = event::read(&exported["events"].to_string()).map_err(|bad| {
        let what = format!("the journal of {} cannot be read: {}", run.session, bad.why);
        Failure::new(Exit::Failed, "unreadable", what)
            .hint("use the release of the server, or a newer one")
    })?;
    let refused = |why: &str| {
        Failure::new(Exit::Failed, "not_recorded", format!("{} cannot be recorded: {why}", run.id))
            .hint("the run itself is not affected; write the example by hand")
    };
    let expect = expected(run).map_err(refused)?;
    let mut heard = RunTrace::default();
    events.into_iter().try_for_each(|event| heard.hear(event.fact)).map_err(refused)?;
    let built_in = built_in(context, recording.plan)?;
    let mut stubs: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for RecordedCall { tool, outcome, .. } in heard.calls {
        // Examples call built-in tools as every run does.
        let Some(outcome) = outcome.filter(|_| !built_in.contains(tool.as_str())) else { continue };
        let stub = match outcome {
            CallOutcome::Output(output) => json!({"result": full_output(client, &output).await?}),
            CallOutcome::Fault(how, fault) => json!({"fault": stub_fault(how, &fault)}),
        };
        stubs.entry(tool.to_string()).or_default().push(stub);
    }
    let replies: Vec<Value> = heard.asks.into_iter().filter_map(|(_, reply)| reply).collect();
    let mut example = Map::new();
    example.insert("name".to_owned(), json!(format!("recorded {}", run.id)));
    example.insert("input".to_owned(), recording.input.clone());
    if !replies.is_empty() {
        example.insert("replies".to_owned(), json!(replies));
    }
    if !stubs.is_empty() {
        example.insert("stubs".to_owned(), json!(stubs));
    }
    example.insert("expect".to_owned(), expect);
    Ok(Value::Object(example))
}

/// How the run ended, as an example expects it.
fn expected(run: &Run) -> Result<Value, &'static str> {
    match run.status {
        Status::Completed => Ok(json!({"status": "completed", "answer": run.answer})),
        Status::Cancelled => Err("someone cancelled it"),
        _ => {
            let error = run.last_error.as_ref().map(|fault| fault.name.as_str());
            Ok(json!({"status": "failed", "error": error}))
        }
    }
}

/// The names of the built-in tools of the project that the plan is tested in.
fn built_in(context: &Context, plan: &str) -> Result<BTreeSet<String>> {
    let folder = folder_of(&[PathBuf::from(plan)]);
    let config = Settings::load(folder.as_deref(), &context.environment)?.config;
    let project = Project { config, ..Project::default() };
    let tools = tools::builtin(project.built_in());
    Ok(tools.iter().map(|tool| tool.spec().name.to_string()).collect())
}

/// An output; a large one is read from its blob.
async fn full_output(client: &Client, output: &Datum) -> Result<Value> {
    match &output.held {
        DatumValue::Blob(blob) => client.get(Request::to(&["blobs", blob.hash.as_str()])).await,
        _ => Ok(output.to_value()),
    }
}

/// A call and its outcome.
#[derive(Debug, PartialEq)]
enum CallOutcome {
    Output(Arc<Datum>),
    Fault(CallProgress, Fault),
}

/// A call that was sent.
#[derive(Debug, PartialEq)]
struct RecordedCall {
    call: CallId,
    tool: ToolName,
    outcome: Option<CallOutcome>,
}

/// What a run did and was told, as its journal has it.
#[derive(Debug, Default)]
struct RunTrace {
    tools: BTreeMap<CallId, ToolName>,
    /// In the order in which they were sent.
    calls: Vec<RecordedCall>,
    /// In the order of asking, each with what a person said.
    asks: Vec<(AskId, Option<Value>)>,
}

impl RunTrace {
    /// Takes in the next fact, or says why no example can tell it.
    fn hear(&mut self, fact: Fact) -> Result<(), &'static str> {
        match fact {
            Fact::TurnStarted(_) | Fact::ProposalAsked(_) => {
                return Err("a model was asked, and examples stand in for tools alone");
            }
            Fact::CallWants { .. } => {
                return Err("a tool needed something before it answered, and stubs answer at once");
            }
            Fact::CallLate { .. } => return Err("a tool answered after its call was given up"),
            Fact::AskExpired { .. } => return Err("no one answered an ask in time"),
            Fact::CallRequested(request) => {
                self.tools.insert(request.call, request.tool);
            }
            // What is refused before it is sent is refused again when the example is played.
            Fact::CallStarted { call, .. } => {
                let tool = self.tools.get(&call).cloned();
                self.calls.extend(tool.map(|tool| RecordedCall { call, tool, outcome: None }));
            }
            // What a person settled is their reply.
            Fact::CallFinished { call, output, settled: None, .. } => {
                self.record_outcome(call, CallOutcome::Output(output));
            }
            Fact::CallFailed { call, how, fault, .. } => {
                self.record_outcome(call, CallOutcome::Fault(how, fault))
            }
            Fact::AskOpened(ask) => self.asks.push((ask.id, None)),
            // What rules decided they decide again.
            Fact::AskDecided { ask, decision } if *decision.by != *SUPERVISOR => {
                let reply = short(decision.reply)?;
                let asked = self.asks.iter_mut().find(|(id, _)| *id == ask);
                if let Some((_, said)) = asked {
                    *said = Some(reply);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Of a call that was sent again the last time counts: no one knows what came of the others.
    fn record_outcome(&mut self, call: CallId, outcome: CallOutcome) {
        let mut sent = self.calls.iter_mut().rev();
        if let Some(called) = sent.find(|called| called.call == call && called.outcome.is_none()) {
            called.outcome = Some(outcome);
        }
    }
}

/// A reply in the short form of examples.
fn short(reply: Reply) -> Result<Value, &'static str> {
    match reply {
        Reply::Clarify { answer: Some(answer) } => Ok(json!({"answer": answer})),
        Reply::Fill { content: Some(content) } => Ok(json!({"input": content})),
        Reply::Authorize { done: true } => Ok(json!({"done": true})),
        Reply::Clarify { answer: None }
        | Reply::Fill { content: None }
        | Reply::Authorize { done: false } => Ok(json!({"action": "decline"})),
        Reply::Approve { decisions } => approval(&decisions),
        Reply::Fix { action, arguments, output, plan_id } => {
            let mut given = json!({"action": action});
            if let Some(arguments) = arguments {
                given["arguments"] = (*arguments).clone();
            }
            if let Some(output) = output {
                given["output"] = output;
            }
            if let Some(plan) = plan_id {
                given["planId"] = json!(plan);
            }
            Ok(given)
        }
    }
}

fn approval(decisions: &[CallDecision]) -> Result<Value, &'static str> {
    let [CallDecision { approve, feedback, arguments: None, .. }] = decisions else {
        return Err("a person approved other arguments, or several calls at once");
    };
    let mut given = json!({"approve": approve});
    if let Some(feedback) = feedback {
        given["feedback"] = json!(feedback);
    }
    Ok(given)
}

/// A failure as a stub says it. Whether the same may succeed later is told by a status.
fn stub_fault(how: CallProgress, fault: &Fault) -> Value {
    let mut told = Map::new();
    if fault.passing {
        let numbers = fault.message.split(|letter: char| !letter.is_ascii_digit());
        let mut statuses = numbers.filter_map(|number| number.parse::<u16>().ok());
        let status = statuses.find(|status| is_passing(*status)).unwrap_or(503);
        told.insert("status".to_owned(), json!(status));
    }
    told.insert("name".to_owned(), json!(fault.name));
    told.insert("message".to_owned(), json!(fault.message));
    if how != CallProgress::Failed {
        told.insert("how".to_owned(), json!(how));
    }
    Value::Object(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::ask::FixAction;

    #[test]
    fn a_reply_is_recorded_in_the_short_form() {
        let decision = |approve: bool, arguments: Option<Value>| {
            let arguments = arguments.map(Arc::new);
            CallDecision { call_id: CallId(1), approve, feedback: None, arguments }
        };
        let approve = |decisions: Vec<CallDecision>| short(Reply::Approve { decisions });
        assert_eq!(approve(vec![decision(true, None)]), Ok(json!({"approve": true})));
        assert!(approve(vec![decision(true, Some(json!({})))]).is_err());
        assert!(approve(vec![decision(true, None), decision(false, None)]).is_err());
        assert_eq!(short(Reply::fix(FixAction::Retry)), Ok(json!({"action": "retry"})));
        let filled = Reply::Fill { content: Some(json!({"answer": 1})) };
        assert_eq!(short(filled), Ok(json!({"input": {"answer": 1}})));
        assert_eq!(short(Reply::Clarify { answer: None }), Ok(json!({"action": "decline"})));
    }

    #[test]
    fn a_transient_failure_is_recorded_with_a_transient_status() {
        let fault = Fault::new("HttpStatus", "the other side answered 429: wait 10 s");
        let told = stub_fault(CallProgress::Failed, &fault.clone().passing());
        let expected = json!({"status": 429, "name": "HttpStatus", "message": fault.message});
        assert_eq!(told, expected);
        let told = stub_fault(CallProgress::Unknown, &Fault::new("TimedOut", "no answer in 30 s"));
        let expected =
            json!({"name": "TimedOut", "message": "no answer in 30 s", "how": "unknown"});
        assert_eq!(told, expected);
    }
}
