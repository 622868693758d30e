//! Outcomes of thread requests for people and scripts: the answer, or what the thread waits for and
//! the command that continues it.

use crate::context::Context;
use crate::exit::{Exit, Failure, Result};
use crate::outcome;
use crate::terminal::output::printable;
use engine::system::clock::SystemEntropy;
use kernel::contracts::Entropy;
use serde_json::Value;
use wire::conversations::{Approval, PendingAction, ThreadAnswer, ThreadStatus};

/// A name for a thread that no one has used.
pub(crate) fn new_id() -> String {
    // 48 bits are enough for one person, and can still be typed.
    format!("cli-{:012x}", SystemEntropy.bits() >> 80)
}

/// A key for a request, which makes it once however often it is sent.
pub(crate) fn new_key() -> String {
    format!("cli-{:032x}", SystemEntropy.bits())
}

/// How a command ends after this answer.
pub(crate) fn exit_of(status: ThreadStatus) -> Exit {
    match status {
        ThreadStatus::Success => Exit::Ok,
        ThreadStatus::Running => Exit::Timeout,
        ThreadStatus::Error => Exit::Failed,
        ThreadStatus::ClarificationRequired
        | ThreadStatus::ConfirmationRequired
        | ThreadStatus::FormRequired
        | ThreadStatus::OauthRequired => Exit::Paused,
    }
}

/// What can be done about a thread that is busy.
pub(crate) fn busy_hint(context: &Context, thread: &str) -> String {
    let show = context.command(&format!("waypost resume {thread}"));
    let give_up = context.command(&format!("waypost session cancel {thread}"));
    format!("`{show}` shows what it waits for, `{give_up}` gives it up")
}

/// The same failure; where the thread is busy, with this hint: the server's names its endpoints.
pub(crate) fn refused(busy_hint: &str, mut failure: Failure) -> Failure {
    if failure.code == "thread_busy" {
        failure.hint = Some(busy_hint.to_owned());
    }
    failure
}

pub(crate) fn waiting(action: PendingAction) -> ThreadAnswer {
    let answer = ThreadAnswer::new(ThreadStatus::ConfirmationRequired);
    ThreadAnswer { pending_action: Some(action), ..answer }
}

/// The word that lets a call run as it is.
pub(crate) fn approval(call: &str) -> Approval {
    Approval { call_id: call.to_owned(), approved: true, feedback: None, arguments: None }
}

/// Prints the answer, or what someone has to do as JSON, and says what can be done now; with
/// `--json` this body.
pub(crate) fn tell(
    context: &Context,
    body: &Value,
    thread: &str,
    answer: &ThreadAnswer,
) -> Result<Exit> {
    let output = context.output;
    if output.is_json() {
        output.document(body)?;
        return Ok(exit_of(answer.status));
    }
    match &answer.pending_action {
        Some(action) => {
            let shown = serde_json::to_value(action).unwrap_or_default();
            output.text(&printable(&outcome::pretty(&shown)))?;
            output.talk(&format!("thread {thread} waits; continue with"));
            for command in commands(thread, action) {
                output.talk(&format!("  {}", context.command(&command)));
            }
        }
        None if answer.status == ThreadStatus::Running => {
            let tail = context.command(&format!("waypost session tail {thread}"));
            output.talk(&format!("thread {thread} is still at work; `{tail}` follows it"));
        }
        None => {
            output.text(&printable(answer.response.as_deref().unwrap_or_default()))?;
            output.talk(&format!("thread {thread}: say more with `--thread {thread}`"));
        }
    }
    Ok(exit_of(answer.status))
}

/// The commands that answer this, each of them enough.
pub(crate) fn commands(thread: &str, action: &PendingAction) -> Vec<String> {
    let resume = format!("waypost resume {thread}");
    match action {
        PendingAction::Clarification { clarifications } => {
            let answers: Vec<String> = clarifications
                .iter()
                .map(|asked| format!("--answer {}='your answer'", asked.call_id))
                .collect();
            vec![format!("{resume} {}", answers.join(" "))]
        }
        PendingAction::Confirmation { tool_calls } => {
            let each = |option: &str| -> String {
                let ids = tool_calls.iter().map(|call| format!("{option} {}", call.call_id));
                ids.collect::<Vec<_>>().join(" ")
            };
            vec![
                format!("{resume} {}", each("--approve")),
                format!("{resume} {} --feedback 'why not'", each("--reject")),
            ]
        }
        PendingAction::FormElicitation { elicitation_id, .. } => {
            vec![
                format!("{resume} --form {elicitation_id}='{{..}}'"),
                format!("{resume} --decline {elicitation_id}"),
            ]
        }
        PendingAction::OauthUrl { elicitation_id, url, .. } => {
            vec![
                format!("a login at {}: it continues by itself then", printable(url)),
                format!("{resume} --decline {elicitation_id}"),
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wire::conversations::{ClarificationInfo, ToolCallInfo};

    #[test]
    fn every_call_has_an_option_in_the_menu() {
        let call = |id: &str| ToolCallInfo {
            call_id: id.to_owned(),
            tool_name: "create_event".to_owned(),
            arguments: json!({}),
        };
        let action = PendingAction::Confirmation { tool_calls: vec![call("a"), call("b")] };
        assert_eq!(
            commands("t", &action),
            [
                "waypost resume t --approve a --approve b",
                "waypost resume t --reject a --reject b --feedback 'why not'",
            ]
        );
        let asked = ClarificationInfo {
            call_id: "a".to_owned(),
            question: "what?".to_owned(),
            context: String::new(),
        };
        let action = PendingAction::Clarification { clarifications: vec![asked] };
        assert_eq!(commands("t", &action), ["waypost resume t --answer a='your answer'"]);
    }

    #[test]
    fn a_new_thread_has_a_name_of_its_own() {
        let one = new_id();
        let two = new_id();
        assert_ne!(one, two);
        assert!(one.starts_with("cli-") && one.len() == 16, "{one}");
    }
}
