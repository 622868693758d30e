//! Prints a journal for people, one line per event.

use kernel::ask::Reply;
use kernel::ask::remedy::{RuleHold, SUPERVISOR};
use kernel::event::{CallMade, Fact, Outcome, TurnEnd, TurnKind};
use kernel::tool::call::Judgement;
use kernel::values::canonical;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A value as scenes show it: with sorted keys, in whatever order it came about.
pub(super) fn shown(value: &impl Serialize) -> String {
    canonical::sorted(&json!(value)).to_string()
}

/// A text as scenes show it: JSON that was written by the kernel with sorted keys.
pub(super) fn shown_text(text: &str) -> String {
    let is_ours = |value: &Value| serde_json::to_string(value).is_ok_and(|again| again == text);
    match serde_json::from_str::<Value>(text) {
        Ok(value) if is_ours(&value) => shown(&value),
        Ok(_) | Err(_) => text.to_owned(),
    }
}

/// One event as one line, ids left out: what happened, where, with which values.
pub(super) fn outline(fact: &Fact) -> String {
    let value = json!(fact);
    let data = &value["data"];
    let mut words = vec![value["type"].as_str().unwrap_or_default().to_owned()];
    for name in ["frame", "child", "step", "index"] {
        match &data[name] {
            Value::Null => {}
            Value::String(text) => words.push(text.clone()),
            other => words.push(format!("{}{other}", &name[..1])),
        }
    }
    match fact {
        Fact::CallRequested(request) => {
            let arguments = shown(&request.arguments);
            words.push(format!("{} try {} {arguments}", request.tool, request.try_no));
        }
        Fact::CallJudged { judgement: Judgement::Admitted { verdict, .. }, .. } => {
            words.push(shown(verdict));
        }
        Fact::CallJudged { judgement: Judgement::Refused(fault), .. } => {
            words.push(fault.to_string())
        }
        Fact::CallWants { inputs, .. } => words.push(shown(inputs)),
        Fact::CallResumed { given, .. } => words.push(shown(given)),
        Fact::CallFinished { output, .. } => words.push(shown(&output.to_value())),
        Fact::CallFailed { how, fault, .. } => words.push(format!("{how:?} {fault}")),
        Fact::AskOpened(ask) => {
            words.push(format!("{} {:?}", ask.body.kind(), ask.title));
            words.extend(ask.held.as_ref().map(|held| {
                let RuleHold { rule, does, try_no, of, .. } = held;
                format!("held by {rule}: {}, {try_no} of {of}", does.name())
            }));
        }
        Fact::AskDecided { decision, .. } => {
            words.extend((*decision.by == *SUPERVISOR).then(|| SUPERVISOR.to_owned()));
            words.push(reply_alone(&decision.reply));
        }
        Fact::StepFailed { fault, .. }
        | Fact::ItemFailing { fault, .. }
        | Fact::ItemFailed { fault, .. } => words.push(fault.to_string()),
        Fact::EventPublished { published, .. } => {
            words.extend(published.source.iter().map(|source| format!("as {source}")));
            words.push(shown(&published.event));
        }
        Fact::CorrectionEntered(entry) => words.push(entry.plan.to_string()),
        Fact::CorrectionEnded(end) => words.push(shown(&end.found)),
        Fact::ProposalAsked(start) => {
            words.push(format!("{} {}", start.does.name(), start.attempt));
        }
        Fact::ProposalGiven(end) => words.push(shown(&end.found)),
        Fact::InputGiven { value, .. } => words.push(shown(&value.to_value())),
        Fact::AnswerGiven { answer, .. } | Fact::PlanReturned { answer, .. } => {
            words.push(shown(&answer.to_value()));
        }
        Fact::RunEnded { outcome, .. } => words.push(match outcome {
            Outcome::Completed { .. } => "completed".to_owned(),
            Outcome::Failed { fault } => format!("failed {fault}"),
            Outcome::Cancelled { unknown, .. } => format!("cancelled, {} unknown", unknown.len()),
        }),
        _ => words.extend(agents(fact)),
    }
    if let Value::String(next) = &data["next"] {
        words.push(format!("-> {next}"));
    }
    words.join(" ")
}

/// What an agent did, in words.
fn agents(fact: &Fact) -> Vec<String> {
    match fact {
        Fact::AgentEntered(entry) => {
            let on = match (entry.continues, entry.keeps) {
                (false, _) => String::new(),
                (true, None) => " goes on".to_owned(),
                (true, Some(requests)) => format!(" goes on with the newest {requests}"),
            };
            vec![format!("{}{on} {}", entry.agent, shown(&entry.input.to_value()))]
        }
        Fact::TurnStarted(start) => {
            vec![format!("{} {}.{}", kind(start.kind), start.turn, start.attempt)]
        }
        Fact::TurnFailed { turn, attempt, fault, again_at, .. } => {
            let again = if again_at.is_some() { ", again later" } else { "" };
            vec![format!("{turn}.{attempt} {fault}{again}")]
        }
        Fact::TurnFinished(end) => turn(end),
        Fact::ResultsGiven { results, .. } => {
            let mut words: Vec<String> = results.values().map(shown).collect();
            // Ids are left out, and their order means nothing.
            words.sort();
            words
        }
        Fact::TalkCompacted { lines, turn: end } => {
            let mut words = vec![format!("{lines} lines")];
            words.extend(turn(end));
            words
        }
        Fact::AgentAnswered { answer, stopped, .. } => {
            let stopped = stopped.as_ref().map(|limit| format!("stopped by {limit}"));
            std::iter::once(shown(&answer.to_value())).chain(stopped).collect()
        }
        Fact::TimerFired { timer } => vec![timer.clone()],
        _ => Vec::new(),
    }
}

fn kind(kind: TurnKind) -> &'static str {
    match kind {
        TurnKind::Route => "route",
        TurnKind::Act => "act",
        TurnKind::Sum => "sum",
    }
}

fn turn(end: &TurnEnd) -> Vec<String> {
    let mut words = vec![format!("{} {}.{}", kind(end.kind), end.turn, end.attempt)];
    match &end.route {
        Some(route) => words.push(shown(route)),
        None => words.push(format!("{:?}", &*end.text)),
    }
    let call = |made: &CallMade| {
        let approve = if made.approve { " approve" } else { "" };
        let refused = made.refused.as_ref().map(|fault| format!(" refused: {fault}"));
        let arguments = shown(&made.arguments);
        format!("| {} {arguments}{approve}{}", made.said, refused.unwrap_or_default())
    };
    words.extend(end.calls.iter().map(call));
    words.extend(end.stops.then(|| "and stops".to_owned()));
    words
}

/// A reply without the ids of calls.
fn reply_alone(reply: &Reply) -> String {
    let mut reply = json!(reply);
    if let Some(answers) = answers_alone(&reply["answer"]) {
        reply["answer"] = answers;
    }
    if let Some(Value::Array(decisions)) = reply.get_mut("decisions") {
        for decision in decisions {
            decision.as_object_mut().map(|fields| fields.remove("callId"));
        }
    }
    shown(&reply)
}

/// Answers by the ids of their calls, without these.
fn answers_alone(answer: &Value) -> Option<Value> {
    let answers: BTreeMap<&String, &Value> = answer.as_object()?.iter().collect();
    let by_call = !answers.is_empty() && answers.keys().all(|key| key.starts_with("call_"));
    by_call.then(|| answers.into_values().cloned().collect())
}
