//! Audit entries of session events that record a decision. An entry is written in the append of its
//! event, so that neither exists without the other.

use crate::ask::{Decision, Reply};
use crate::definition::agent::TALKS;
use crate::definition::pipeline::PIPELINES;
use crate::event::{CallRequest, Closing, Event, Fact};
use crate::identity::audit::{Entry, Mac, Object, Ruling};
use crate::session::{CallState, Run, Session};
use crate::tool::call::{CallProgress, Judgement, Verdict};
use crate::values::caller::{Act, LOCAL};
use crate::values::canonical;
use crate::values::fault::Fault;
use crate::values::ids::{AskId, CallId, PlanId, RunId, Space};
use crate::values::trace::TraceParent;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// Prefix of the ids of plans that call a single tool.
const CALLS: &str = "call/";

/// Faults that are denials: policy denies the call, hides its tool, does not let the starter
/// continue the run, or requires an approval that is missing or void.
const DENIED: [&str; 5] =
    ["PolicyDenied", "ToolNotFoundError", "ApprovalNeeded", "ApprovalVoid", Fault::NOT_PERMITTED];

/// Act of closing an ask before it was answered.
const WITHDRAW: &str = "ask.withdraw";

/// The entry of an event that this session has not applied yet, if the event records a decision.
pub fn entry(session: &Session, event: &Event, digest: &dyn Fn(&[u8]) -> Mac) -> Option<Entry> {
    let at = event.at;
    let by = |who: &Arc<str>, act: Act, run: RunId| {
        let object = Object::new("session", session.id.to_string());
        let entry = Entry::new(at, who.clone(), act.name(), object);
        Entry { run: Some(run), trace: trace_of(session, run), ..entry }
    };
    match &event.fact {
        Fact::RunStarted { .. } => started(session, event, digest),
        Fact::SessionForked { from, .. } => {
            let owner = session.owner.clone().unwrap_or_else(|| LOCAL.into());
            let object = Object::new("session", from.to_string());
            Some(Entry::new(at, owner, Act::Fork.name(), object))
        }
        Fact::CallJudged { call, judgement } => {
            let mut entry = called(session, event, *call, digest)?;
            match judgement {
                Judgement::Admitted { verdict, policy, policies, .. } => {
                    (entry.verdict, entry.why) = of_verdict(verdict);
                    entry.version.clone_from(policy);
                    entry.policies.clone_from(policies);
                }
                Judgement::Refused(fault) => deny(&mut entry, fault),
            }
            Some(entry)
        }
        Fact::CallFailed { call, how: CallProgress::NotSent, fault, .. } if is_denial(fault) => {
            // What the gate said of a call that was never started is kept with its judgement.
            if matches!(session.calls.get(call)?.state, CallState::Judged(_)) {
                return None;
            }
            let mut entry = called(session, event, *call, digest)?;
            deny(&mut entry, fault);
            Some(entry)
        }
        Fact::TurnFailed { frame, fault, .. } if is_denial(fault) => {
            let run = session.runs.get(&session.frames.get(frame)?.run)?;
            let (act, object) = starting(session, &run.plan);
            let mut entry = of_run(run, Entry::new(at, run.subject().clone(), act.name(), object));
            deny(&mut entry, fault);
            Some(entry)
        }
        Fact::AskDecided { ask, decision } => {
            let Decision { by: who, reply, .. } = &**decision;
            let open = &session.asks.get(ask)?.ask;
            let object = Object::new("ask", open.body.kind());
            Some(Entry {
                run: Some(open.run),
                ask: Some(*ask),
                reply: Some(Cow::Borrowed(in_a_word(reply))),
                arguments: Some(arguments_mac(&json!(reply), digest)),
                trace: trace_of(session, open.run),
                ..Entry::new(at, who.clone(), Act::Answer.name(), object)
            })
        }
        Fact::AskWithdrawn { ask } => withdrawn(session, event, *ask),
        Fact::RunPaused { run, by: who }
        | Fact::RunClosing { run, why: Closing::Cancelled(who) } => {
            Some(by(who, Act::Cancel, *run))
        }
        Fact::RunContinued { run, by: who } => Some(by(who, Act::Answer, *run)),
        _ => None,
    }
}

fn is_denial(fault: &Fault) -> bool {
    DENIED.contains(&fault.name.as_str())
}

fn trace_of(session: &Session, run: RunId) -> Option<TraceParent> {
    session.runs.get(&run)?.trace
}

/// The ruling of a verdict, with its reason where it is not a plain yes.
pub fn of_verdict(verdict: &Verdict) -> (Ruling, Option<String>) {
    match verdict {
        Verdict::Allow => (Ruling::Allow, None),
        Verdict::Ask(why) => (Ruling::Ask, Some(why.clone())),
        Verdict::Deny(why) => (Ruling::Deny, Some(why.clone())),
    }
}

/// The keyed digest of a value's canonical JSON: a search for arguments need not know in which
/// order they were sent.
pub fn arguments_mac(value: &Value, digest: &dyn Fn(&[u8]) -> Mac) -> Mac {
    digest(canonical::text(value).as_bytes())
}

fn started(session: &Session, event: &Event, digest: &dyn Fn(&[u8]) -> Mac) -> Option<Entry> {
    let Fact::RunStarted { run, plan, input, by, subject, actor, trace, about, .. } = &event.fact
    else {
        return None;
    };
    let (act, object) = starting(session, plan);
    let who = subject.as_ref().unwrap_or(by).clone();
    // Who started a run for another subject is the one that really called.
    let starter = subject.as_ref().map(|_| by);
    let door = about.as_ref().and_then(|about| match (&about.trigger, &about.endpoint) {
        (Some(trigger), Some(endpoint)) => Some(format!("{trigger} {endpoint}")),
        (Some(door), None) | (None, Some(door)) => Some(door.to_string()),
        (None, None) => None,
    });
    Some(Entry {
        actor: actor.as_ref().or(starter).cloned(),
        arguments: Some(arguments_mac(&input.to_value(), digest)),
        run: Some(*run),
        door,
        trace: *trace,
        ..Entry::new(event.at, who, act.name(), object)
    })
}

/// The act and object of starting a plan of this id in this session.
fn starting(session: &Session, plan: &PlanId) -> (Act, Object) {
    let id = plan.as_str();
    let is_call = session.key.space == Space::call();
    if let Some(agent) = id.strip_prefix(TALKS) {
        (Act::Talk, Object::new("agent", agent))
    } else if let Some(pipeline) = id.strip_prefix(PIPELINES) {
        (Act::Submit, Object::new("pipeline", pipeline))
    } else if let Some(tool) = id.strip_prefix(CALLS).filter(|_| is_call) {
        (Act::Call, Object::new("tool", tool))
    } else {
        (Act::Run, Object::new("plan", id))
    }
}

/// The entry of something that a run does: it acts for who started it.
fn of_run(run: &Run, entry: Entry) -> Entry {
    let actor = run.behalf.actor.clone();
    Entry { actor, run: Some(run.id), trace: run.trace, ..entry }
}

/// A call of a run.
fn called(
    session: &Session,
    event: &Event,
    call: CallId,
    digest: &dyn Fn(&[u8]) -> Mac,
) -> Option<Entry> {
    let open = session.calls.get(&call)?;
    let run = session.runs.get(&open.run)?;
    let CallRequest { tool, arguments, .. } = &open.request;
    let object = Object::new("tool", tool.as_str());
    let entry = Entry::new(event.at, run.subject().clone(), Act::Call.name(), object);
    Some(of_run(run, Entry { arguments: Some(arguments_mac(arguments, digest)), ..entry }))
}

/// An ask that nobody can answer any more: who cancelled its run did that, else the run itself.
fn withdrawn(session: &Session, event: &Event, ask: AskId) -> Option<Entry> {
    let open = &session.asks.get(&ask)?.ask;
    let run = session.runs.get(&open.run)?;
    let object = Object::new("ask", open.body.kind());
    let entry = match &run.closing {
        Some(Closing::Cancelled(who)) => {
            let entry = Entry::new(event.at, who.clone(), WITHDRAW, object);
            Entry { run: Some(run.id), trace: run.trace, ..entry }
        }
        Some(Closing::Failed(_)) | None => {
            of_run(run, Entry::new(event.at, run.subject().clone(), WITHDRAW, object))
        }
    };
    Some(Entry { ask: Some(ask), ..entry })
}

fn deny(entry: &mut Entry, fault: &Fault) {
    entry.verdict = Ruling::Deny;
    entry.why = Some(fault.message.clone());
}

fn in_a_word(reply: &Reply) -> &'static str {
    match reply {
        Reply::Clarify { answer: Some(_) } => "answered",
        Reply::Fill { content: Some(_) } => "filled",
        Reply::Clarify { answer: None }
        | Reply::Fill { content: None }
        | Reply::Authorize { done: false } => "declined",
        Reply::Authorize { done: true } => "done",
        Reply::Approve { decisions } => {
            let approved = decisions.iter().filter(|decision| decision.approve).count();
            let edited = decisions.iter().any(|decision| decision.arguments.is_some());
            match approved {
                0 => "rejected",
                _ if approved < decisions.len() => "approved in part",
                _ if edited => "approved with changes",
                _ => "approved",
            }
        }
        Reply::Fix { action, .. } => action.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::ids::ContentHash;

    #[test]
    fn a_digest_does_not_depend_on_the_order_of_members() {
        let of = |text: &str| {
            let value: Value = serde_json::from_str(text).unwrap();
            arguments_mac(&value, &|bytes: &[u8]| ContentHash::of(bytes).as_str().parse().unwrap())
        };
        let written = of(r#"{"to": {"b": 1, "a": [2, 1]}, "amount": 5}"#);
        assert_eq!(written, of(r#"{"amount": 5, "to": {"a": [2, 1], "b": 1}}"#));
        assert_ne!(written, of(r#"{"amount": 5, "to": {"a": [1, 2], "b": 1}}"#));
    }
}
