//! Builds replies from the options of `waypost inbox answer`, `approve` and `reject`.

use super::{Action, AnswerArgs, ApproveArgs, RejectArgs};
use crate::exit::{Failure, Result};
use crate::outcome;
use crate::proposals;
use crate::terminal::input;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use wire::rest::{
    ApproveReply, Ask, AskKind, AskedCall, AuthorizeAction, AuthorizeReply, CallDecision,
    ClarifyReply, FillAction, FillReply, FixAction, FixReply,
};

/// The reply to a question, a form, a failed step or a URL.
pub(super) fn answer(ask: &Ask, args: &AnswerArgs) -> Result<Value> {
    let is_login = ask.kind == AskKind::Authorize && args.action == Some(Action::Done);
    if args.code.is_some() && !is_login {
        return Err(misfit(ask, "takes no code with this answer"));
    }
    Ok(match (ask.kind, args.action) {
        (AskKind::Clarify, None) => {
            let answer = Some(clarification(ask, args)?);
            json!(ClarifyReply { action: None, answer })
        }
        (AskKind::Clarify, Some(Action::Decline)) => {
            json!(ClarifyReply { action: Some(FillAction::Decline), answer: None })
        }
        (AskKind::Fill, None) => {
            let content = Some(form(ask, args)?);
            json!(FillReply { action: FillAction::Accept, content })
        }
        (AskKind::Fill, Some(Action::Decline)) => {
            json!(FillReply { action: FillAction::Decline, content: None })
        }
        (AskKind::Authorize, Some(Action::Done)) => {
            json!(AuthorizeReply { action: AuthorizeAction::Done, code: args.code.clone() })
        }
        (AskKind::Authorize, Some(Action::Decline)) => {
            json!(AuthorizeReply { action: AuthorizeAction::Decline, code: None })
        }
        (AskKind::Fix, None) if args.proposal => accepting_reply(ask)?,
        (_, None) if args.proposal => return Err(misfit(ask, "proposes nothing")),
        (AskKind::Fix, Some(action)) => fix(ask, action, args)?,
        (AskKind::Approve, _) => return Err(misfit(ask, "needs a decision")),
        (AskKind::Clarify | AskKind::Fill | AskKind::Authorize, Some(_)) => {
            return Err(misfit(ask, "does not take this action"));
        }
        (AskKind::Authorize | AskKind::Fix, None) => return Err(misfit(ask, "needs an action")),
    })
}

fn clarification(ask: &Ask, args: &AnswerArgs) -> Result<Value> {
    match &args.json_input {
        Some(text) => input::text_or_file(text),
        None if args.text.is_empty() => Err(misfit(ask, "needs an answer")),
        None if ask.questions.len() > 1 => each_question(ask, &args.text),
        None => Ok(json!(args.text.join(" "))),
    }
}

/// `CALL=TEXT ..`: an answer for each question of an agent.
fn each_question(ask: &Ask, words: &[String]) -> Result<Value> {
    let mut answers = Map::new();
    for word in words {
        let split = word.split_once('=');
        let asked = |id: &str| ask.questions.iter().any(|asked| asked.call_id == id);
        let Some((id, text)) = split.filter(|(id, _)| asked(id)) else {
            return Err(misfit(ask, &format!("has no question that `{word}` answers")));
        };
        answers.insert(id.to_owned(), json!(text));
    }
    match ask.questions.iter().find(|asked| !answers.contains_key(&asked.call_id)) {
        Some(missing) => Err(misfit(ask, &format!("also asks: {}", missing.question))),
        None => Ok(Value::Object(answers)),
    }
}

fn form(ask: &Ask, args: &AnswerArgs) -> Result<Value> {
    if let Some(text) = &args.json_input {
        return input::text_or_file(text);
    }
    if args.text.is_empty() {
        return Err(misfit(ask, "needs an answer"));
    }
    let wants_text = ask.schema.as_ref().is_some_and(|schema| schema["type"] == "string");
    if wants_text {
        return Ok(json!(args.text.join(" ")));
    }
    input::words(&args.text)
}

fn fix(ask: &Ask, action: Action, args: &AnswerArgs) -> Result<Value> {
    let action = match action {
        Action::Retry => FixAction::Retry,
        Action::Edit => FixAction::Edit,
        Action::Skip => FixAction::Skip,
        Action::Abort => FixAction::Abort,
        Action::Settle => FixAction::Settle,
        Action::Correct => FixAction::Correct,
        Action::Done | Action::Decline => return Err(misfit(ask, "does not take this action")),
    };
    let value = |text: &Option<String>| text.as_deref().map(input::text_or_file).transpose();
    let arguments = value(&args.arguments)?;
    let output = value(&args.output)?;
    let plan_id = args.plan.clone();
    let proposal = false;
    Ok(json!(FixReply { action, arguments, output, plan_id, proposal }))
}

/// What the ask proposes, as it is.
fn accepting_reply(ask: &Ask) -> Result<Value> {
    let Some(proposed) = &ask.proposal else { return Err(misfit(ask, "proposes nothing")) };
    Ok(json!(proposals::accepting_reply(proposed)))
}

/// The reply that lets calls run.
pub(super) fn approval(ask: &Ask, args: &ApproveArgs) -> Result<Value> {
    let mut edits = BTreeMap::new();
    for edit in &args.edits {
        let Some((call, arguments)) = edit.split_once('=') else {
            return Err(Failure::usage(format!("`{edit}` is not `CALL=JSON`"))
                .hint("give the call, then the whole arguments"));
        };
        edits.insert(call, input::text_or_file(arguments)?);
    }
    let named = edits.keys().copied().chain(args.calls.iter().map(String::as_str));
    let named: Vec<&str> = named.collect();
    known_calls(ask, &named)?;
    // An edit alone leaves the other calls as they are: only `--call` picks some of them.
    decisions(ask, |call| {
        let id = call.call_id.as_str();
        let approve = args.calls.is_empty() || named.contains(&id);
        let feedback = (!approve).then(|| args.feedback.clone());
        let arguments = edits.get(id).cloned();
        CallDecision { call_id: id.to_owned(), approve, feedback, arguments }
    })
}

/// The reply that keeps calls from running.
pub(super) fn rejection(ask: &Ask, args: &RejectArgs) -> Result<Value> {
    let named: Vec<&str> = args.calls.iter().map(String::as_str).collect();
    known_calls(ask, &named)?;
    decisions(ask, |call| {
        let id = call.call_id.as_str();
        let reject = named.is_empty() || named.contains(&id);
        let feedback = reject.then(|| args.feedback.clone());
        CallDecision { call_id: id.to_owned(), approve: !reject, feedback, arguments: None }
    })
}

fn known_calls(ask: &Ask, named: &[&str]) -> Result<()> {
    let unknown = |id: &&&str| !ask.calls.iter().any(|call| call.call_id == **id);
    match named.iter().find(unknown) {
        // A user who names a call of what is no approval gets that error instead.
        Some(unknown) if ask.kind == AskKind::Approve => {
            Err(Failure::usage(format!("call `{unknown}` is not part of {}", ask.id))
                .hint(format!("`waypost inbox show {}` lists its calls", ask.id)))
        }
        _ => Ok(()),
    }
}

/// One decision for every call of the ask: a reply must cover the whole ask.
pub(super) fn decisions(ask: &Ask, decide: impl Fn(&AskedCall) -> CallDecision) -> Result<Value> {
    if ask.kind != AskKind::Approve {
        return Err(misfit(ask, "is not about calls"));
    }
    Ok(json!(ApproveReply { decisions: ask.calls.iter().map(decide).collect() }))
}

fn misfit(ask: &Ask, why: &str) -> Failure {
    Failure::usage(format!("{} is of kind `{}`: it {why}", ask.id, ask.kind.name()))
        .hint(outcome::answer_hint(ask))
}
