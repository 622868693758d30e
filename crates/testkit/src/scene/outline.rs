//! A journal as a person reads it in a scene.

use kernel::call::Judgement;
use kernel::event::{Fact, Outcome};
use serde_json::{Value, json};

/// One event as one line, ids left out: what happened, where, with which values.
pub(super) fn outline(fact: &Fact) -> String {
    let value = json!(fact);
    let kind = value["type"].as_str().unwrap_or_default().to_owned();
    let data = &value["data"];
    let mut words = vec![kind];
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
        Fact::InputGiven { value, .. } => words.push(value.to_value().to_string()),
        Fact::AnswerGiven { answer, .. } | Fact::PlanReturned { answer, .. } => {
            words.push(answer.to_value().to_string());
        }
        Fact::RunEnded { outcome, .. } => words.push(match outcome {
            Outcome::Completed { .. } => "completed".to_owned(),
            Outcome::Failed { fault } => format!("failed {fault}"),
            Outcome::Cancelled { unknown, .. } => format!("cancelled, {} unknown", unknown.len()),
        }),
        _ => {}
    }
    if let Value::String(next) = &data["next"] {
        words.push(format!("-> {next}"));
    }
    words.join(" ")
}
