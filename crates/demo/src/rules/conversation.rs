//! A conversation as the rules see it: runs, each with what a person asked and the calls that were
//! made for it, each call with its outcome.
//!
//! A transcript may show one call twice: once with a note that it was approved or put off, and once
//! more with its result. Here it is one call.

use kernel::conversation::llm::{Message, ModelCall};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a person asked, and what was done about it.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    /// How many turns of the model called tools.
    pub(super) turns: usize,
}

/// A call and its outcome.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) arguments: Arc<Value>,
    /// The turn that made it, from 1.
    pub(super) turn: usize,
    pub(super) status: Status,
    /// A person changed its arguments; they come with the call that is shown next.
    is_changed: bool,
    /// What the model got of it.
    pub(super) outcome: String,
    /// The same as JSON, if the call succeeded and it is JSON.
    pub(super) result: Value,
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Status {
    /// Nothing yet.
    Open,
    /// It succeeded.
    Ok,
    Failed,
    /// A person refused it, with these words.
    Rejected(String),
    /// It was a question, and this is the answer.
    Answered(String),
}

/// What stands for the result of a call that continues.
const MEANWHILE: &[&str] =
    &["User approved this action.", "Auto-approved", "Deferred pending clarification"];
/// What stands for the result of a call that a person changed: it is made again as they wrote it.
const CHANGED: &str = "Not executed: the user changed the arguments";
const REJECTED: &str = "User rejected this action:";
const ANSWERED: &str = "User clarification:";

/// The runs of a conversation; the last is the one that continues.
pub(super) fn runs(messages: &[Message]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut ids: BTreeMap<String, usize> = BTreeMap::new();
    for message in messages {
        match message {
            Message::System { .. } => {}
            Message::User { text } => {
                ids.clear();
                runs.push(Run { text: text.clone(), ..Run::default() });
            }
            Message::Assistant { calls, .. } => {
                if let Some(run) = runs.last_mut() {
                    run.call(calls, &mut ids);
                }
            }
            Message::Result { id, text, failed, .. } => {
                let place = ids.get(id).copied().zip(runs.last_mut());
                let call = place.and_then(|(index, run)| run.calls.get_mut(index));
                if let Some(call) = call {
                    call.hear(text, *failed);
                }
            }
        }
    }
    runs
}

impl Run {
    fn call(&mut self, calls: &[ModelCall], ids: &mut BTreeMap<String, usize>) {
        let mut taken = Vec::new();
        let before = self.calls.len();
        for call in calls {
            let is_again = |(index, own): &(usize, &Call)| {
                own.status == Status::Open
                    && *index < before
                    && !taken.contains(index)
                    && own.tool == call.tool
                    && (own.is_changed || own.arguments == call.arguments)
            };
            let again = self.calls.iter().enumerate().find(is_again).map(|(index, _)| index);
            let index = again.unwrap_or_else(|| {
                self.calls.push(Call::new(call, self.turns + 1));
                self.calls.len() - 1
            });
            let own = &mut self.calls[index];
            own.is_changed = false;
            own.arguments.clone_from(&call.arguments);
            taken.push(index);
            ids.insert(call.id.clone(), index);
        }
        if self.calls.len() > before {
            self.turns += 1;
        }
    }
}

impl Call {
    fn new(call: &ModelCall, turn: usize) -> Self {
        Self {
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            turn,
            status: Status::Open,
            is_changed: false,
            outcome: String::new(),
            result: Value::Null,
        }
    }

    fn hear(&mut self, text: &str, failed: bool) {
        if MEANWHILE.iter().any(|told| text.starts_with(told)) {
            return;
        }
        if text.starts_with(CHANGED) {
            self.is_changed = true;
            return;
        }
        text.clone_into(&mut self.outcome);
        self.status = if let Some(feedback) = text.strip_prefix(REJECTED) {
            Status::Rejected(feedback.trim().to_owned())
        } else if let Some(answer) = text.strip_prefix(ANSWERED) {
            Status::Answered(answer.trim().to_owned())
        } else if failed {
            Status::Failed
        } else {
            self.result = read(text);
            Status::Ok
        };
    }
}

/// A result as JSON; a text that is not JSON stays a text. What MCP puts around a result is taken
/// off.
fn read(text: &str) -> Value {
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return Value::String(text.to_owned());
    };
    if let Some(content) = value.get("structuredContent").filter(|content| content.is_object()) {
        return content.clone();
    }
    let inner = value.pointer("/content/0/text").and_then(Value::as_str);
    match inner.map(serde_json::from_str::<Value>) {
        Some(Ok(inner)) => inner,
        Some(Err(_)) | None => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn user(text: &str) -> Message {
        Message::User { text: text.to_owned() }
    }

    fn calls(calls: &[(&str, &str)]) -> Message {
        let call = |(id, tool): &(&str, &str)| ModelCall {
            id: (*id).to_owned(),
            tool: (*tool).to_owned(),
            arguments: Arc::new(json!({"for": tool})),
        };
        let calls = calls.iter().map(call).collect();
        Message::Assistant { text: String::new(), calls, native: None }
    }

    fn result(id: &str, text: &str, failed: bool) -> Message {
        let id = id.to_owned();
        let text = text.to_owned();
        Message::Result { id, tool: String::new(), text, failed }
    }

    #[test]
    fn a_call_that_is_shown_twice_is_one() {
        let runs = runs(&[
            Message::System { text: "be kind".to_owned() },
            user("do three things"),
            calls(&[("1", "a"), ("2", "b"), ("3", "c")]),
            result("1", "User approved this action. Proceeding with execution.", false),
            result("2", "User rejected this action: not today", false),
            result("3", "Auto-approved (non-confirmation tool). Proceeding with execution.", false),
            calls(&[("1", "a"), ("4", "c")]),
            result("1", "{\"id\": 7}", false),
            result("4", "out of order", true),
            user("thanks"),
        ]);
        assert_eq!(runs.len(), 2);
        let statuses: Vec<&Status> = runs[0].calls.iter().map(|call| &call.status).collect();
        let rejected = Status::Rejected("not today".to_owned());
        assert_eq!(statuses, [&Status::Ok, &rejected, &Status::Failed]);
        assert_eq!(runs[0].turns, 1);
        assert_eq!(runs[0].calls[0].result, json!({"id": 7}));
        assert_eq!((runs[1].text.as_str(), runs[1].calls.len()), ("thanks", 0));
    }

    #[test]
    fn a_call_that_a_person_changed_is_one_with_their_arguments() {
        let edited = ModelCall {
            id: "1+2".to_owned(),
            tool: "create".to_owned(),
            arguments: Arc::new(json!({"name": "Retro2"})),
        };
        let runs = runs(&[
            user("create Retro"),
            calls(&[("1", "create")]),
            result("1", "Not executed: the user changed the arguments of this call.", false),
            Message::Assistant { text: String::new(), calls: vec![edited], native: None },
            result("1+2", "{\"id\": 7}", false),
        ]);
        let made = &runs[0].calls;
        assert_eq!((made.len(), &made[0].status), (1, &Status::Ok));
        assert_eq!(*made[0].arguments, json!({"name": "Retro2"}));
        assert_eq!(runs[0].turns, 1);
    }

    #[test]
    fn answers_and_second_turns_are_read() {
        let runs = runs(&[
            user("schedule something"),
            calls(&[("1", "ask"), ("2", "move")]),
            result("1", "User clarification: lunch", false),
            result("2", "Deferred pending clarification.", false),
            calls(&[("2", "move")]),
            result("2", "done", false),
            calls(&[("3", "create")]),
        ]);
        let run = &runs[0];
        assert_eq!(run.turns, 2);
        assert_eq!(run.calls[0].status, Status::Answered("lunch".to_owned()));
        assert_eq!(run.calls[1].result, json!("done"));
        assert_eq!((run.calls[2].turn, &run.calls[2].status), (2, &Status::Open));
    }

    #[test]
    fn the_mcp_envelope_of_a_result_is_removed() {
        let inner = json!({"content": [{"type": "text", "text": "{\"a\": 1}"}]}).to_string();
        assert_eq!(read(&inner), json!({"a": 1}));
        let both = json!({"content": [], "structuredContent": {"a": 2}}).to_string();
        assert_eq!(read(&both), json!({"a": 2}));
        assert_eq!(read("plain words"), json!("plain words"));
    }
}
