//! Test conversations, from a compact notation or from a seed.

use kernel::conversation::llm::{
    AnswerForm, Message, ModelCall, Native, Prompt, ToolCard, ToolChoice,
};
use kernel::values::ids::Millis;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) fn system(text: &str) -> Message {
    Message::System { text: text.to_owned() }
}

pub(crate) fn user(text: &str) -> Message {
    Message::User { text: text.to_owned() }
}

pub(crate) fn assistant(text: &str, calls: &[ModelCall]) -> Message {
    Message::Assistant { text: text.to_owned(), calls: calls.to_vec(), native: None }
}

/// What the model said, with what its provider wants back.
pub(crate) fn signed(text: &str, calls: &[ModelCall], provider: &str, content: Value) -> Message {
    let native = Native { provider: provider.to_owned(), content };
    Message::Assistant {
        text: text.to_owned(),
        calls: calls.to_vec(),
        native: Some(Arc::new(native)),
    }
}

pub(crate) fn call(id: &str, tool: &str) -> ModelCall {
    let arguments = Arc::new(json!({"id": id}));
    ModelCall { id: id.to_owned(), tool: tool.to_owned(), arguments }
}

pub(crate) fn result(id: &str, tool: &str, text: &str, failed: bool) -> Message {
    let id = id.to_owned();
    let tool = tool.to_owned();
    let text = text.to_owned();
    Message::Result { id, tool, text, failed }
}

pub(crate) fn card(name: &str) -> ToolCard {
    let schema = json!({"type": "object", "properties": {"id": {"type": "string"}}});
    let description = format!("Does {name}.");
    ToolCard { name: name.to_owned(), description, input_schema: Arc::new(schema) }
}

pub(crate) fn prompt(messages: &[Message], tools: &[ToolCard]) -> Prompt {
    Prompt {
        trace: None,
        messages: messages.to_vec(),
        tools: tools.to_vec(),
        choice: ToolChoice::Auto,
        answer: None,
        latest: None,
        now: Millis(0),
        zone: "UTC".to_owned(),
    }
}

/// The form that a router asks for.
pub(crate) fn route() -> AnswerForm {
    let schema = json!({
        "type": "object",
        "properties": {"decision": {"type": "string", "enum": ["allow", "refuse"]}},
        "required": ["decision"],
        "additionalProperties": false,
    });
    AnswerForm { name: "route".to_owned(), schema: Arc::new(schema) }
}

/// Conversations out of seeds, each well formed as the kernel writes them or with something wrong.
pub(crate) fn random(count: u64) -> impl Iterator<Item = (u64, Vec<Message>)> {
    (0..count).map(|seed| (seed, Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).conversation()))
}

/// Randomness out of one seed: splitmix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len() as u64) as usize]
    }

    fn text(&mut self) -> &'static str {
        self.pick(&["", " ", "yes", "no, other plans", "`a` \"b\"\n\nc", "ü"])
    }

    fn conversation(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        for _ in 0..self.below(12) {
            match self.below(6) {
                0 => messages.push(system(self.text())),
                1 | 2 => messages.push(user(self.text())),
                _ => self.exchange(&mut messages),
            }
        }
        messages
    }

    /// The model's words and calls, and their outcomes: in any order, some missing, some twice.
    fn exchange(&mut self, messages: &mut Vec<Message>) {
        let mut calls = Vec::new();
        for _ in 0..self.below(4) {
            let id = self.pick(&["call_1", "call_2", "", "toolu_01AbC", "ä b", LONG_ID]);
            let arguments = match self.below(4) {
                0 => json!("{\"a\":"),
                1 => Value::Null,
                2 => json!([1]),
                _ => json!({"a": {"b": [1, "x"]}}),
            };
            let tool = self.pick(&["create_event", "list_events"]).to_owned();
            calls.push(ModelCall { id: id.to_owned(), tool, arguments: Arc::new(arguments) });
        }
        messages.push(assistant(self.text(), &calls));
        let mut results: Vec<Message> = Vec::new();
        for call in &calls {
            for _ in 0..usize::from(!self.chance(10)) + usize::from(self.chance(5)) {
                let failed = self.chance(30);
                let at = self.below(results.len() as u64 + 1) as usize;
                results.insert(at, result(&call.id, &call.tool, self.text(), failed));
            }
        }
        if self.chance(10) {
            results.insert(0, user(self.text()));
        }
        messages.extend(results);
    }
}

const LONG_ID: &str = "call_that_has_an_id_of_more_letters_than_any_provider_takes";
