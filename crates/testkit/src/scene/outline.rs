//! A journal as a person reads it in a scene.

use kernel::event::{CallMade, Fact, Outcome, TurnEnd, TurnKind};
use kernel::tool::call::Judgement;
use serde_json::{Value, json};

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
            words.push(format!("{} try {} {}", request.tool, request.try_no, request.arguments));
        }
        Fact::CallJudged { judgement: Judgement::Admitted { verdict, .. }, .. } => {
            words.push(json!(verdict).to_string());
        }
        Fact::CallJudged { judgement: Judgement::Refused(fault), .. } => {
            words.push(fault.to_string())
        }
        Fact::CallWants { inputs, .. } => words.push(json!(inputs).to_string()),
        Fact::CallResumed { given, .. } => words.push(json!(given).to_string()),
        Fact::CallFinished { output, .. } => words.push(output.to_value().to_string()),
        Fact::CallFailed { how, fault, .. } => words.push(format!("{how:?} {fault}")),
        Fact::AskOpened(ask) => words.push(format!("{} {:?}", ask.body.kind(), ask.title)),
        Fact::AskDecided { decision, .. } => {
            let mut reply = json!(decision.reply);
            if let Some(answers) = answers_alone(&reply["answer"]) {
                reply["answer"] = answers;
            }
            if let Some(Value::Array(decisions)) = reply.get_mut("decisions") {
                for decision in decisions {
                    decision.as_object_mut().map(|fields| fields.remove("callId"));
                }
            }
            words.push(reply.to_string());
        }
        Fact::StepFailed { fault, .. }
        | Fact::ItemFailing { fault, .. }
        | Fact::ItemFailed { fault, .. } => words.push(fault.to_string()),
        Fact::EventPublished { published, .. } => {
            words.extend(published.source.iter().map(|source| format!("as {source}")));
            words.push(published.event.to_string());
        }
        Fact::InputGiven { value, .. } => words.push(value.to_value().to_string()),
        Fact::AnswerGiven { answer, .. } | Fact::PlanReturned { answer, .. } => {
            words.push(answer.to_value().to_string());
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
            vec![format!("{}{on} {}", entry.agent, entry.input.to_value())]
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
            let mut words: Vec<String> =
                results.values().map(|settled| json!(settled).to_string()).collect();
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
            std::iter::once(answer.to_value().to_string()).chain(stopped).collect()
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
        Some(route) => words.push(json!(route).to_string()),
        None => words.push(format!("{:?}", &*end.text)),
    }
    let call = |made: &CallMade| {
        let approve = if made.approve { " approve" } else { "" };
        let refused = made.refused.as_ref().map(|fault| format!(" refused: {fault}"));
        format!("| {} {}{approve}{}", made.said, made.arguments, refused.unwrap_or_default())
    };
    words.extend(end.calls.iter().map(call));
    words.extend(end.stops.then(|| "and stops".to_owned()));
    words
}

/// Answers by the ids of their calls, without these.
fn answers_alone(answer: &Value) -> Option<Value> {
    let answers = answer.as_object()?;
    let by_call = !answers.is_empty() && answers.keys().all(|key| key.starts_with("call_"));
    by_call.then(|| answers.values().cloned().collect())
}
