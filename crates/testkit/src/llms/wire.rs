//! What all wires share: the parsed request, the model's reply, and how an answer is split into
//! events.

use super::act::Failure;
use crate::http::Message;
use serde_json::Value;

/// A request, parsed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ModelRequest {
    pub(super) model: String,
    pub(super) stream: bool,
    /// Whether a stream ends with what it took.
    pub(super) usage: bool,
    /// The tools that may be called.
    pub(super) tools: Vec<String>,
    /// The schema of the form that is to be filled.
    pub(super) form: Option<Value>,
    /// The results that stand at the end of the conversation.
    pub(super) results: Vec<String>,
}

/// The answer of a model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModelReply {
    pub(super) text: String,
    /// What it calls: tools and arguments.
    pub(super) calls: Vec<(String, Value)>,
    /// It shows a thought.
    pub(super) thinks: bool,
    pub(super) end: End,
}

/// Why a model ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Done,
    /// It refuses.
    Refused,
    /// It became too long.
    Length,
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// Its type, where the wire names it.
    pub(super) name: Option<String>,
    pub(super) data: String,
}

impl Piece {
    /// An event without a type.
    pub(super) fn of(value: &Value) -> Self {
        Self { name: None, data: value.to_string() }
    }

    /// The bytes of the event.
    pub(super) fn bytes(&self) -> String {
        match &self.name {
            Some(name) => format!("event: {name}\ndata: {}\n\n", self.data),
            None => format!("data: {}\n\n", self.data),
        }
    }
}

/// A provider's wire.
pub(super) trait Wire: Sync {
    /// The key that came with a request.
    fn key<'m>(&self, message: &'m Message) -> Option<&'m str>;

    /// Parses a request, or says why it is refused.
    fn read(&self, message: &Message, body: &Value) -> Result<ModelRequest, String>;

    /// An answer as a whole.
    fn whole(&self, request: &ModelRequest, reply: &ModelReply) -> Value;

    /// An answer as a stream.
    fn pieces(&self, request: &ModelRequest, reply: &ModelReply) -> Vec<Piece>;

    /// The status and body of a failure.
    fn failure(&self, failure: &Failure) -> (u16, Value);

    /// A failure in the middle of a stream.
    fn broken(&self) -> Piece;
}

/// A text in parts, as models say it.
pub(super) fn words(text: &str) -> Vec<&str> {
    text.split_inclusive(' ').collect()
}

/// A text in two parts.
pub(super) fn halves(text: &str) -> [&str; 2] {
    // Arguments in these tests are ASCII.
    let (first, second) = text.split_at(text.len() / 2);
    [first, second]
}

/// The token behind `Bearer`.
pub(super) fn bearer(message: &Message) -> Option<&str> {
    message.header("authorization")?.strip_prefix("Bearer ")
}

/// What a text member says; empty where there is none.
pub(super) fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The elements of an array member; none where there is none.
pub(super) fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Letters, digits, `_` and `-`, at least one and at most so many.
pub(super) fn is_plain(name: &str, chars_max: usize) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.len() <= chars_max && name.bytes().all(fits)
}

/// How the part of a prompt begins that is no part of its conversation: the time of the turn.
const LATEST: &str = "(Set by the system: ";

/// The pieces of a last message, without one that only says the time.
pub(super) fn before_latest(pieces: &[Value]) -> &[Value] {
    match pieces {
        [before @ .., last] if text(last, "text").starts_with(LATEST) => before,
        all => all,
    }
}

/// A text without the time at its end.
pub(super) fn without_latest(said: &str) -> &str {
    said.rfind(LATEST).map_or(said, |at| said[..at].trim_end())
}

/// What stands at the end of a list and is of this kind, in order.
pub(super) fn tail(items: &[Value], is_it: impl Fn(&Value) -> bool) -> &[Value] {
    let others = items.iter().rposition(|item| !is_it(item)).map_or(0, |last| last + 1);
    &items[others..]
}
