//! What a journal tells of rules: that each acts on what it holds, not before its time, never more
//! often than it may, and repeats no write of unknown outcome; that no correction begins twice; and
//! that what models propose is acted upon unasked only where nothing can change.

use kernel::ask::remedy::{Remedy, RuleHold, SUPERVISOR};
use kernel::ask::{Ask, AskBody, Decision, FixAction, Reply};
use kernel::event::{CorrectionEnd, CorrectionEntry, Event, Fact, ProposalEnd};
use kernel::session::{FrameState, OpenCall, Session};
use kernel::values::ids::{AskId, FrameId};
use serde_json::Value;
use std::collections::BTreeSet;

/// The tool of the simulation that changes nothing.
const READS: &str = "sim::read";

/// What a journal told of rules so far.
#[derive(Debug, Default)]
pub struct Supervised {
    /// The asks whose corrections began.
    entered: BTreeSet<AskId>,
}

impl Supervised {
    /// What is wrong with an event, seen with the session before it.
    pub fn event(&mut self, event: &Event, session: &Session) -> Vec<String> {
        match &event.fact {
            Fact::AskOpened(ask) => ask.held.iter().filter_map(|held| used_up(ask, held)).collect(),
            Fact::AskDecided { ask, decision } if *decision.by == *SUPERVISOR => {
                let open = session.asks.get(ask);
                open.map_or_else(Vec::new, |open| acted(&open.ask, decision, session))
            }
            Fact::CorrectionEntered(entry) => self.entered(entry, session),
            Fact::ProposalGiven(end) if end.found.acts => {
                proposal_acted(end, session).into_iter().collect()
            }
            Fact::CorrectionEnded(end) if end.found.acts => {
                draft_decides(end, session).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn entered(&mut self, entry: &CorrectionEntry, session: &Session) -> Vec<String> {
        let frame = session.frames.get(&entry.frame).map(|frame| &frame.state);
        let is_chosen = matches!(frame, Some(FrameState::Asking(ask)) if *ask == entry.ask);
        let unchosen = || format!("a correction begins that ask {} did not choose", entry.ask);
        let twice = || format!("the correction of ask {} runs twice", entry.ask);
        let is_first = self.entered.insert(entry.ask);
        let wrong = [(!is_chosen).then(unchosen), (!is_first).then(twice)];
        wrong.into_iter().flatten().collect()
    }
}

/// The tool of the call that a frame asks about.
fn failed_tool(frame: FrameId, session: &Session) -> Option<&str> {
    let mut calls = session.calls.values().filter(|call| call.request.frame == frame);
    calls.next().map(|call| call.request.tool.as_str())
}

/// What is wrong with a proposal that is acted upon unasked: it could change something, or its rule
/// does not say so.
fn proposal_acted(end: &ProposalEnd, session: &Session) -> Option<String> {
    let reads = failed_tool(end.frame, session) == Some(READS);
    let Some(plan) = &end.found.plan else {
        let wrong =
            format!("a proposal for a write is acted upon unasked in frame {:?}", end.frame);
        return (!reads).then_some(wrong);
    };
    let asked = match session.frames.get(&end.frame).map(|frame| &frame.state) {
        Some(FrameState::Proposing { ask, .. }) => session.asks.get(ask),
        _ => None,
    };
    let does = asked.and_then(|open| open.ask.held.as_ref()).map(|held| &held.does);
    let is_auto = matches!(does, Some(Remedy::Draft(drafter)) if drafter.auto_reads);
    let wrong = format!("a drafted correction runs unasked in frame {:?}: {plan}", end.frame);
    (!(is_auto && reads && only_reads(plan))).then_some(wrong)
}

/// Whether a plan, as JSON, calls nothing that could change something.
fn only_reads(plan: &Value) -> bool {
    match plan {
        Value::Object(members) => members.iter().all(|(name, value)| match name.as_str() {
            "toolId" => value == READS,
            "type" => !["plan", "agent", "publish_event"].iter().any(|kind| value == kind),
            _ => only_reads(value),
        }),
        Value::Array(items) => items.iter().all(only_reads),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// A correction that a model wrote, that ran unasked and that decides the outcome of a write.
fn draft_decides(end: &CorrectionEnd, session: &Session) -> Option<String> {
    let plan = &session.frames.get(&end.child)?.plan;
    let failed = session.frames.get(&end.frame)?;
    let mut found = failed.tried.iter().filter_map(|tried| tried.found.as_deref());
    let unasked = found.any(|found| found.acts && found.runs(plan));
    let reads = failed_tool(end.frame, session) == Some(READS);
    let wrong = || format!("a drafted correction decides a write unasked: frame {:?}", end.frame);
    (unasked && !reads).then(wrong)
}

/// A rule that holds an ask more often than it may.
fn used_up(ask: &Ask, held: &RuleHold) -> Option<String> {
    let before = ask.tried.iter().find(|tried| tried.rule == held.rule);
    let before = before.map_or(0, |tried| tried.times);
    // A try that was refused unsent is made again.
    let again = matches!(&ask.body, AskBody::Fix { fault, .. } if fault.refused_ms.is_some());
    let next = if again { before.max(1) } else { before + 1 };
    let fits = held.try_no == next && held.try_no <= held.of;
    (!fits).then(|| format!("rule `{}` holds ask {} after {before} tries", held.rule, ask.id))
}

/// What is wrong with what a rule did.
fn acted(ask: &Ask, decision: &Decision, session: &Session) -> Vec<String> {
    let mut wrong = Vec::new();
    if ask.held.as_ref().is_none_or(|held| held.until > decision.at) {
        wrong.push(format!("a rule acts on ask {} before its time", ask.id));
    }
    let repeats =
        matches!(decision.reply, Reply::Fix { action: FixAction::Retry | FixAction::Edit, .. });
    let call = match &ask.body {
        AskBody::Fix { call, .. } => call.as_ref().and_then(|it| session.calls.get(&it.call_id)),
        _ => None,
    };
    if repeats && call.is_some_and(OpenCall::must_be_known) {
        wrong.push(format!("a rule repeats the write of ask {}, of unknown outcome", ask.id));
    }
    wrong
}
