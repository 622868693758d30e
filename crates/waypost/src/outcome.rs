//! The outcome of a run: shown to people with the command that continues, to scripts by exit code.

use crate::context::Context;
use crate::exit::{Exit, Failure, Result};
use crate::terminal::output::printable;
use crate::terminal::table::{Cell, Table, relative};
use engine::system::clock::SystemClock;
use kernel::contracts::Clock;
use kernel::values::visible::exposed_json;
use serde_json::Value;
use wire::rest::{
    Ask, AskFollows, AskKind, AskNext, AskStatus, AskWhy, AskedCall, FixAction, HeldAsk, Run,
    Status,
};

/// How a command ends that started or moved this run.
fn exit_of(run: &Run) -> Exit {
    match run.status {
        Status::Completed => Exit::Ok,
        Status::Failed | Status::Cancelled => Exit::Failed,
        // No person is asked: the run continues by itself.
        Status::Stuck if is_held(run) => Exit::Timeout,
        Status::Waiting | Status::Stuck | Status::Paused => Exit::Paused,
        Status::Running => Exit::Timeout,
    }
}

/// Whether rules hold all that the run asks, so that it continues without a person.
pub(crate) fn is_held(run: &Run) -> bool {
    let is_stuck = run.status == Status::Stuck && !run.asks.is_empty();
    is_stuck && run.asks.iter().all(|ask| ask.held.is_some())
}

/// What the next rule does that holds an ask of this run, and when: `a rule tries again in 3s`.
pub(crate) fn next_act(run: &Run) -> Option<String> {
    let held = run.asks.iter().filter_map(|ask| ask.held.as_ref());
    let HeldAsk { does, until, .. } = held.min_by(|one, other| one.until.cmp(&other.until))?;
    let does = match does.as_str() {
        "retry" => "tries again",
        "correct" => "runs a plan that corrects the step",
        _ => "asks a model",
    };
    let when = relative(until, SystemClock.now());
    let when = if when.starts_with("in ") { when.as_str() } else { "now" };
    Some(format!("a rule {does} {when}"))
}

/// Prints the answer or the open asks, and says what can be done now; with `--json` the body that
/// the server sent.
pub(crate) fn tell(context: &Context, body: &Value, run: &Run) -> Result<Exit> {
    let output = context.output;
    if output.is_json() {
        output.document(body)?;
        return Ok(exit_of(run));
    }
    let Run { id, session, .. } = run;
    let about = |what: &str| context.command(&format!("waypost session {what} {session}"));
    match run.status {
        Status::Completed => {
            output.text(&value_text(run.answer.as_ref().unwrap_or(&Value::Null)))?;
            output.talk(&format!("{id} completed in {session}"));
        }
        Status::Failed | Status::Cancelled => return Err(failed(run, &about("show"))),
        Status::Stuck if is_held(run) => {
            let act = next_act(run).unwrap_or_default();
            output.talk(&format!("{id} is not over: {act}; `{}` follows it", about("tail")));
        }
        Status::Waiting | Status::Stuck => {
            let rows = run.asks.iter().cloned().map(ask_row);
            context.rows(&Table::new(&ASK_HEADS, rows), run.asks.len())?;
            output.talk(&format!("{id} waits for a person; answer with"));
            for ask in &run.asks {
                tell_answers(context, ask);
            }
        }
        Status::Paused => {
            output.talk(&format!("{id} was paused; `{}` shows more", about("show")));
        }
        Status::Running => {
            output.talk(&format!("{id} is still running; `{}` follows it", about("tail")));
        }
    }
    Ok(exit_of(run))
}

/// The heads of a list of asks.
pub(crate) const ASK_HEADS: [&str; 6] = ["ask", "kind", "session", "step", "created", "title"];

/// An ask in a list.
pub(crate) fn ask_row(ask: Ask) -> Vec<Cell> {
    vec![
        Cell::id(ask.id),
        Cell::word(ask.kind.name()),
        Cell::id(ask.session.key),
        ask.step.into(),
        Cell::time(ask.created_at),
        ask.title.into(),
    ]
}

/// What asks, and for whom: `agent \`desk\`, for \`ann\``.
pub(crate) fn asked_by(ask: &Ask) -> String {
    let named = |kind: &str, name: &Option<String>| Some(format!("{kind} `{}`", name.as_ref()?));
    let talk = named("agent", &ask.agent).or_else(|| named("plan", &ask.plan));
    let pipeline = named("pipeline", &ask.pipeline);
    let subject = ask.subject.as_ref().map(|subject| format!("for `{subject}`"));
    let parts: Vec<String> = [talk, pipeline, subject].into_iter().flatten().collect();
    parts.join(", ")
}

/// Who may answer, in words.
pub(crate) fn may_answer(ask: &Ask) -> String {
    let word = |who: &String| match who.as_str() {
        "*" => "everyone who sees it".to_owned(),
        "owner" => "the user for whom the run acts".to_owned(),
        who => who.to_owned(),
    };
    let mut words = ask.may_answer.iter().map(word).collect::<Vec<_>>().join(", ");
    if ask.other {
        words.push_str("; no one who started the run or changed what it does");
    }
    if let Some(why) = ask.yours.as_ref().and_then(|yours| yours.why.as_ref()) {
        words.push_str(&format!("; not you: {why}"));
    }
    words
}

/// Who wants a call to be asked about, in words, where it needs an approval.
pub(crate) fn why_asked(call: &AskedCall) -> Option<String> {
    let AskWhy { by, says } = call.why.as_ref()?;
    Some(match (by.as_str(), says) {
        ("policy", Some(says)) => format!("a policy wants it: {says}"),
        ("policy", None) => "a policy wants it".to_owned(),
        (by, _) => format!("the {by} wants it"),
    })
}

/// What a call does to the world, in words: `writes (Pay)`.
pub(crate) fn does(call: &AskedCall) -> Option<String> {
    let reach = call.reach.as_ref()?;
    let may_repeat = reach != "reads" && call.idempotent == Some(true);
    let again = if may_repeat { ", may be repeated under its key" } else { "" };
    let title = call.title.as_ref().map_or_else(String::new, |title| format!(" ({title})"));
    Some(format!("{reach}{again}{title}"))
}

/// What follows each answer, in words: `if yes`, and that a step follows or the run ends.
pub(crate) fn if_answered(ask: &Ask) -> Vec<(&'static str, String)> {
    if ask.status != AskStatus::Open {
        return Vec::new();
    }
    let Some(AskNext { yes, no }) = &ask.next else { return Vec::new() };
    let told = |follows: &AskFollows, is_yes: bool| match (&follows.step, &ask.agent) {
        (Some(step), Some(_)) if *step == ask.step && is_yes => "the agent continues".to_owned(),
        (Some(step), Some(_)) if *step == ask.step => "the agent reads it and continues".to_owned(),
        (Some(step), _) if *step == ask.step => format!("step `{step}` continues"),
        (Some(step), _) => format!("step `{step}` follows"),
        (None, _) => "the run ends".to_owned(),
    };
    let (if_yes, if_no) = match ask.kind {
        AskKind::Clarify | AskKind::Fill => ("if answered", "if declined"),
        AskKind::Authorize => ("if done", "if declined"),
        AskKind::Approve | AskKind::Fix => ("if yes", "if no"),
    };
    let yes = yes.as_ref().map(|yes| (if_yes, told(yes, true)));
    yes.into_iter().chain(no.as_ref().map(|no| (if_no, told(no, false)))).collect()
}

/// Whether no one knows if the call of this ask happened.
pub(crate) fn is_unknown(ask: &Ask) -> bool {
    ask.how.as_deref() == UNKNOWN
}

/// How the fault is called of arguments that do not fit the tool's schema.
const MISFIT: &str = "InputValidationError";

fn is_misfit(ask: &Ask) -> bool {
    ask.fault.as_ref().is_some_and(|fault| fault.name == MISFIT)
}

/// What can be done about a failed step, by name. To continue without a call that may have happened
/// is none of these.
pub(crate) fn fix_actions(ask: &Ask) -> Vec<(&'static str, FixAction)> {
    let all = [
        ("retry", FixAction::Retry),
        ("edit", FixAction::Edit),
        ("settle", FixAction::Settle),
        ("correct", FixAction::Correct),
        ("skip", FixAction::Skip),
        ("abort", FixAction::Abort),
    ];
    let may = |action: &FixAction| match action {
        FixAction::Skip | FixAction::Edit if is_unknown(ask) => false,
        action => ask.actions.contains(action),
    };
    all.into_iter().filter(|(_, action)| may(action)).collect()
}

/// Tells a person the commands that answer this ask, each of them enough.
pub(crate) fn tell_answers(context: &Context, ask: &Ask) {
    if !is_unknown(ask) {
        return context.output.talk(&format!("  {}", context.command(&answer_command(ask))));
    }
    context.output.talk("  check in the other system whether it happened, then one of");
    for (action, meaning) in AFTER_UNKNOWN {
        let command = format!("waypost inbox answer {} --action {action}", ask.id);
        context.output.talk(&format!("  {}    # {meaning}", context.command(&command)));
    }
}

/// The same as one hint.
pub(crate) fn answer_hint(ask: &Ask) -> String {
    if !is_unknown(ask) {
        return answer_command(ask);
    }
    let actions = AFTER_UNKNOWN.map(|(action, meaning)| format!("`--action {action}` ({meaning})"));
    format!("check in the other system whether it happened, then {}", actions.join(", "))
}

/// The command that answers this ask, whose outcome is known.
fn answer_command(ask: &Ask) -> String {
    let id = &ask.id;
    match ask.kind {
        AskKind::Clarify if ask.questions.len() > 1 => {
            let answers = ask.questions.iter().map(|asked| format!("{}='..'", asked.call_id));
            format!("waypost inbox answer {id} {}", answers.collect::<Vec<_>>().join(" "))
        }
        AskKind::Clarify => format!("waypost inbox answer {id} 'your answer'"),
        AskKind::Fill => format!("waypost inbox answer {id} {}", blanks(ask.schema.as_ref())),
        AskKind::Approve => format!("waypost inbox approve {id}"),
        AskKind::Authorize => format!("waypost inbox answer {id} --action done"),
        AskKind::Fix if ask.proposal.is_some() => format!("waypost inbox answer {id} --proposal"),
        // The same arguments would be refused again.
        AskKind::Fix if is_misfit(ask) && ask.actions.contains(&FixAction::Edit) => {
            format!("waypost inbox answer {id} --action edit --arguments '{{..}}'")
        }
        AskKind::Fix => {
            let retry = ask.actions.contains(&FixAction::Retry);
            let action = if retry { "retry" } else { "skip" };
            format!("waypost inbox answer {id} --action {action}")
        }
    }
}

/// What a form wants: `name=.. age=..` where its schema names fields, else JSON.
fn blanks(schema: Option<&Value>) -> String {
    let schema = schema.unwrap_or(&Value::Null);
    if schema["type"] == "string" {
        return "'your answer'".to_owned();
    }
    let required = schema["required"].as_array();
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    // A name that a shell would not take as it is belongs into JSON.
    let is_plain = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let blanks: Vec<String> = names.filter(is_plain).map(|name| format!("{name}=..")).collect();
    if blanks.is_empty() { "--json-input '{..}'".to_owned() } else { blanks.join(" ") }
}

/// No one knows whether the call happened.
const UNKNOWN: Option<&str> = Some("unknown");

/// What can be done about such a call, and when. To continue without it is none of these: it may
/// have happened.
const AFTER_UNKNOWN: [(&str, &str); 3] = [
    ("settle --output '..'", "it happened: its result as JSON"),
    ("retry", "it did not happen"),
    ("abort", "end the run as failed"),
];

/// A value as data: a text as it is, anything else as JSON.
pub(crate) fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => printable(text),
        Value::Object(_) | Value::Array(_) => pretty(value),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// JSON that a person reads, and a program too: what is hidden in it is escaped as JSON does it.
pub(crate) fn pretty(value: &Value) -> String {
    // Cannot fail: the keys of a `Value` are texts.
    exposed_json(&serde_json::to_string_pretty(value).unwrap_or_default())
}

/// `show` is the command that shows the session.
fn failed(run: &Run, show: &str) -> Failure {
    let Run { id, status, .. } = run;
    let status = status.name();
    let failure = match &run.last_error {
        Some(fault) => {
            let what = format!("{id} {status}: {}: {}", fault.name, printable(&fault.message));
            Failure::new(Exit::Failed, &fault.name, what)
        }
        None => Failure::new(Exit::Failed, status, format!("{id} {status}")),
    };
    let told = run.last_error.as_ref().and_then(|fault| fault.hint.clone());
    let look = || format!("`{show}` shows what happened");
    failure.hint(told.unwrap_or_else(look))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_hint_for_wrong_arguments_is_to_edit_them() {
        let ask = |fault: &str| -> Ask {
            serde_json::from_value(json!({
                "id": "ask_1", "kind": "fix", "run": "run_1", "step": "work", "title": "failed",
                "session": {"id": "ses_1", "space": "session", "key": "ses_1"}, "body": "failed",
                "fault": {"name": fault, "message": "no"}, "actions": ["retry", "edit", "abort"],
                "digest": "d", "mayAnswer": ["*"], "createdAt": "2026-11-16T12:00:00Z",
                "expiresAt": null, "status": "open",
            }))
            .unwrap()
        };
        let edit = "waypost inbox answer ask_1 --action edit --arguments '{..}'";
        assert_eq!(answer_command(&ask("InputValidationError")), edit);
        assert!(answer_command(&ask("Timeout")).ends_with("--action retry"));
    }
}
