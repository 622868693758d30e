//! Prepares a conversation for any provider: system text apart, each call next to its one result,
//! unique ids that all providers accept. Dialects render it; that every call has exactly one result
//! is ensured here.

use crate::shape;
use kernel::conversation::llm::{Message, ModelCall, Native};
use serde_json::{Value, json};
use std::collections::HashSet;

/// Longest call id that all providers accept.
pub(crate) const ID_CHARS_MAX: usize = 40;
/// Stands where a provider wants a word from a person and there is none.
const GO_ON: &str = "Go on.";
/// The role of the user who talks with the model.
const USER: &str = "user";
const NO_RESULT: &str = "No result is known.";
/// Separates two texts that are merged.
pub(crate) const GAP: &str = "\n\n";

/// A conversation. It begins with a person, and does not end with the model's words.
#[derive(Debug, PartialEq)]
pub(crate) struct Transcript<'a> {
    /// System text, wherever it stood.
    pub(crate) system: String,
    /// The rest, in order.
    pub(crate) entries: Vec<Entry<'a>>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Entry<'a> {
    /// A person: texts that came one after the other.
    User(String),
    /// The model, and the outcomes of its calls.
    Model(ModelMessage<'a>),
}

#[derive(Debug, PartialEq)]
pub(crate) struct ModelMessage<'a> {
    /// In words; may be empty where there are calls.
    pub(crate) text: &'a str,
    /// The tools that it called.
    pub(crate) calls: Vec<TranscriptCall<'a>>,
    native: Option<&'a Native>,
}

/// One call and its result.
#[derive(Debug, PartialEq)]
pub(crate) struct TranscriptCall<'a> {
    /// An id that no other call of the conversation has.
    pub(crate) id: String,
    pub(crate) tool: &'a str,
    /// Its arguments: an object.
    pub(crate) arguments: Value,
    call: &'a ModelCall,
    result: Option<Outcome<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome<'a> {
    pub(crate) text: &'a str,
    /// Whether that is a failure.
    pub(crate) failed: bool,
}

impl<'a> ModelMessage<'a> {
    /// What the provider wants back, if it is this one's and this model's: no one else can read it.
    pub(crate) fn native(&self, provider: &str, model: &str) -> Option<&'a Value> {
        let native = self.native.filter(|native| native.provider == provider)?;
        let same = native.content.get("model").and_then(Value::as_str) == Some(model);
        same.then_some(&native.content)
    }
}

impl<'a> TranscriptCall<'a> {
    /// The outcome. A call whose result is missing has one in spite of that: providers refuse a
    /// conversation in which one is open.
    pub(crate) fn outcome(&self) -> Outcome<'a> {
        self.result.unwrap_or(Outcome { text: NO_RESULT, failed: true })
    }
}

/// How a dialect writes a conversation in which the roles alternate and each message has pieces.
pub(crate) struct Pieces<'d> {
    /// The role of the model. People and results of calls are `user` in all of them.
    pub(crate) model: &'static str,
    /// The key of a message's pieces.
    pub(crate) key: &'static str,
    /// A text of a person's.
    pub(crate) text: fn(&str) -> Value,
    pub(crate) spoken: &'d dyn Fn(&ModelMessage<'_>) -> Vec<Value>,
    pub(crate) result: fn(&TranscriptCall<'_>) -> Value,
}

impl Pieces<'_> {
    /// What is said by the same role goes into one message.
    fn push(&self, messages: &mut Vec<Value>, role: &str, pieces: Vec<Value>) {
        if pieces.is_empty() {
            return;
        }
        if let Some(last) = messages.last_mut()
            && last["role"] == role
            && let Some(known) = last[self.key].as_array_mut()
        {
            known.extend(pieces);
            return;
        }
        messages.push(json!({"role": role, (self.key): pieces}));
    }
}

impl<'a> Transcript<'a> {
    /// Writes it with alternating roles; results stand first in the message after their calls.
    pub(crate) fn alternating(&self, pieces: &Pieces<'_>) -> Vec<Value> {
        let mut messages = Vec::new();
        for entry in &self.entries {
            match entry {
                Entry::User(text) => {
                    pieces.push(&mut messages, USER, vec![(pieces.text)(text)]);
                }
                Entry::Model(said) => {
                    pieces.push(&mut messages, pieces.model, (pieces.spoken)(said));
                    let results = said.calls.iter().map(pieces.result).collect();
                    pieces.push(&mut messages, USER, results);
                }
            }
        }
        messages
    }

    /// Puts a conversation in order.
    pub(crate) fn read(messages: &'a [Message]) -> Self {
        let mut transcript = Self { system: String::new(), entries: Vec::new() };
        let mut ids = Ids::default();
        for message in messages {
            match message {
                Message::System { text } => append(&mut transcript.system, text),
                Message::User { text } => transcript.hear(text),
                Message::Assistant { text, calls, native } => {
                    if !text.trim().is_empty() || !calls.is_empty() {
                        let calls = calls.iter().map(|call| ids.called(call)).collect();
                        let said = ModelMessage { text, calls, native: native.as_deref() };
                        transcript.entries.push(Entry::Model(said));
                    }
                }
                Message::Result { id, tool, text, failed } => {
                    let outcome = Outcome { text, failed: *failed };
                    match transcript.open_call(id) {
                        Some(call) => call.result = Some(outcome),
                        // No one asked for it here; it is sent all the same.
                        None => transcript.hear(&format!("`{tool}` answered: {text}")),
                    }
                }
            }
        }
        transcript.complete();
        transcript
    }

    fn hear(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        match self.entries.last_mut() {
            Some(Entry::User(heard)) => append(heard, text),
            _ => self.entries.push(Entry::User(text.to_owned())),
        }
    }

    /// The call that waits for a result under this id: one of the model's last message. Ids repeat,
    /// so older messages are not looked at.
    fn open_call(&mut self, id: &str) -> Option<&mut TranscriptCall<'a>> {
        let said = self.entries.iter_mut().rev().find_map(|entry| match entry {
            Entry::Model(said) => Some(said),
            Entry::User(_) => None,
        })?;
        said.calls.iter_mut().find(|call| call.call.id == id && call.result.is_none())
    }

    fn complete(&mut self) {
        if !matches!(self.entries.first(), Some(Entry::User(_))) {
            self.entries.insert(0, Entry::User(GO_ON.to_owned()));
        }
        if matches!(self.entries.last(), Some(Entry::Model(said)) if said.calls.is_empty()) {
            self.entries.push(Entry::User(GO_ON.to_owned()));
        }
    }
}

/// Adds a text to another one, as a paragraph of its own.
pub(crate) fn append(whole: &mut String, text: &str) {
    if text.trim().is_empty() {
        return;
    }
    if !whole.is_empty() {
        whole.push_str(GAP);
    }
    whole.push_str(text);
}

/// The ids that were given out.
#[derive(Default)]
struct Ids(HashSet<String>);

impl Ids {
    fn called<'a>(&mut self, call: &'a ModelCall) -> TranscriptCall<'a> {
        let id = self.take(&call.id);
        let arguments = shape::object(&call.arguments);
        TranscriptCall { id, tool: &call.tool, arguments, call, result: None }
    }

    /// The id itself where that can be; it depends on nothing that comes later, so a conversation
    /// that continues begins as it did.
    fn take(&mut self, id: &str) -> String {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        let fitting = id.chars().map(|letter| if fits(letter) { letter } else { '_' });
        let mut wanted: String = fitting.take(ID_CHARS_MAX).collect();
        if wanted.is_empty() {
            wanted.push_str("call");
        }
        let mut id = wanted.clone();
        let mut number = 1_u64;
        while !self.0.insert(id.clone()) {
            number += 1;
            let end = format!("_{number}");
            let kept = wanted.len().min(ID_CHARS_MAX - end.len());
            id = format!("{}{end}", &wanted[..kept]);
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversations::{assistant, call, result, system, user};

    fn outline(messages: &[Message]) -> Vec<String> {
        let transcript = Transcript::read(messages);
        let mut lines: Vec<String> = Vec::new();
        if !transcript.system.is_empty() {
            lines.push(format!("system: {}", transcript.system.replace(GAP, " | ")));
        }
        for entry in &transcript.entries {
            match entry {
                Entry::User(text) => lines.push(format!("user: {}", text.replace(GAP, " | "))),
                Entry::Model(said) => {
                    lines.push(format!("model: {}", said.text));
                    lines.extend(said.calls.iter().map(|call| {
                        let Outcome { text, failed } = call.outcome();
                        format!("  {} {} -> {text}{}", call.id, call.tool, mark(failed))
                    }));
                }
            }
        }
        lines
    }

    fn mark(failed: bool) -> &'static str {
        if failed { " (failed)" } else { "" }
    }

    #[test]
    fn each_call_is_followed_by_its_result() {
        let messages = [
            system("Be brief."),
            user("Hello"),
            user("Two events, please."),
            assistant("", &[call("a", "create"), call("b", "create")]),
            user("And quickly."),
            result("b", "create", "no", true),
            result("a", "create", "ok", false),
            system("Now be long."),
            assistant("Done.", &[]),
            user("Thanks"),
        ];
        let expected = [
            "system: Be brief. | Now be long.",
            "user: Hello | Two events, please.",
            "model: ",
            "  a create -> ok",
            "  b create -> no (failed)",
            "user: And quickly.",
            "model: Done.",
            "user: Thanks",
        ];
        assert_eq!(outline(&messages), expected);
    }

    #[test]
    fn roles_alternate_and_results_precede_the_next_text() {
        let messages = [
            user("x"),
            assistant("Hm.", &[]),
            assistant("", &[call("a", "t"), call("b", "t")]),
            result("b", "t", "two", false),
            result("a", "t", "one", false),
            user("y"),
        ];
        let spoken = |said: &ModelMessage<'_>| -> Vec<Value> {
            let calls = said.calls.iter().map(|called| json!(called.id));
            [json!(said.text)].into_iter().filter(|text| text != "").chain(calls).collect()
        };
        let written = Transcript::read(&messages).alternating(&Pieces {
            model: "model",
            key: "parts",
            text: |text| json!(text),
            spoken: &spoken,
            result: |called| json!(called.outcome().text),
        });
        let expected = json!([
            {"role": "user", "parts": ["x"]},
            {"role": "model", "parts": ["Hm.", "a", "b"]},
            {"role": "user", "parts": ["one", "two", "y"]},
        ]);
        assert_eq!(Value::Array(written), expected);
    }

    #[test]
    fn duplicate_call_ids_are_made_unique() {
        // What was approved is called again under the same ids.
        let messages = [
            user("x"),
            assistant("", &[call("a", "t"), call("b", "t"), call("c", "u")]),
            result("a", "t", "approved", false),
            result("b", "t", "rejected: other plans", true),
            result("c", "u", "approved", false),
            assistant("", &[call("a", "t"), call("c", "u")]),
            result("a", "t", "made", false),
            result("c", "u", "listed", false),
        ];
        let expected = [
            "user: x",
            "model: ",
            "  a t -> approved",
            "  b t -> rejected: other plans (failed)",
            "  c u -> approved",
            "model: ",
            "  a_2 t -> made",
            "  c_2 u -> listed",
        ];
        assert_eq!(outline(&messages), expected);
    }

    #[test]
    fn missing_and_surplus_results_are_repaired() {
        let messages = [
            assistant("Hm.", &[]),
            assistant("", &[]),
            assistant("", &[call("a", "t"), call("a", "t")]),
            result("a", "t", "one", false),
            result("z", "t", "whose?", false),
            assistant("End.", &[]),
            result("a", "t", "late", false),
            user("  "),
            assistant("End of ends.", &[]),
        ];
        let expected = [
            "user: Go on.",
            "model: Hm.",
            "model: ",
            "  a t -> one",
            "  a_2 t -> No result is known. (failed)",
            "user: `t` answered: whose?",
            "model: End.",
            "user: `t` answered: late",
            "model: End of ends.",
            "user: Go on.",
        ];
        assert_eq!(outline(&messages), expected);
        assert_eq!(outline(&[]), ["user: Go on."]);
    }

    #[test]
    fn call_ids_are_valid_for_every_provider() {
        let mut ids = Ids::default();
        assert_eq!(ids.take("call_1"), "call_1");
        assert_eq!(ids.take("call:1"), "call_1_2");
        assert_eq!(ids.take("call_1_2"), "call_1_2_2");
        assert_eq!(ids.take(""), "call");
        assert_eq!(ids.take("ä/b"), "__b");
        let long = "x".repeat(60);
        assert_eq!(ids.take(&long), "x".repeat(40));
        assert_eq!(ids.take(&long), format!("{}_2", "x".repeat(38)));
    }

    #[test]
    fn provider_specific_members_go_to_no_other_provider() {
        let content = json!({"model": "m", "x": 1});
        let native = Native { provider: "anthropic".to_owned(), content: content.clone() };
        let said = ModelMessage { text: "", calls: Vec::new(), native: Some(&native) };
        assert_eq!(said.native("anthropic", "m"), Some(&content));
        assert_eq!(said.native("anthropic", "n"), None);
        assert_eq!(said.native("gemini", "m"), None);
    }
}
