//! Stored values with their origin. Small values are inline, large ones are blobs, and results of
//! joins refer to the values of their branches, so that a value is stored once.

use crate::values::ids::{AskId, CallId, ContentHash};
use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

/// A value with its origin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Datum {
    /// The value, or where it is.
    #[serde(flatten)]
    pub held: DatumValue,
    pub from: Origin,
    /// Information-flow labels; none are given today.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// How a value is held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DatumValue {
    /// Inline.
    Value(Arc<Value>),
    /// In a blob of the session's realm.
    Blob(BlobRef),
    /// An object of other data: a join's branches, the inputs by step.
    Object(BTreeMap<String, Arc<Datum>>),
    /// An array of other data: a loop's results.
    Array(Vec<Arc<Datum>>),
}

/// Where a large value lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRef {
    /// sha256 of its bytes.
    pub hash: ContentHash,
    /// How many bytes.
    pub bytes: u64,
}

impl BlobRef {
    /// How a blob is named where a value is expected.
    pub fn uri(&self) -> String {
        format!("blob://{}", self.hash)
    }
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// The run's input.
    Input,
    /// The plan's own text.
    Plan,
    /// A tool call's output.
    Call(CallId),
    /// A person's reply.
    Reply(AskId),
    /// A model's turn.
    Turn(u32),
    /// Made by a join out of others.
    Join,
}

impl Origin {
    /// Kind of origin.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Plan => "plan",
            Self::Call(_) => "call",
            Self::Reply(_) => "reply",
            Self::Turn(_) => "turn",
            Self::Join => "join",
        }
    }
}

impl Datum {
    /// A small value.
    pub fn inline(value: Value, from: Origin) -> Self {
        Self::shared(Arc::new(value), from)
    }

    /// A small value that others hold as well.
    pub fn shared(value: Arc<Value>, from: Origin) -> Self {
        Self { held: DatumValue::Value(value), from, labels: Vec::new() }
    }

    /// A value whose JSON text is in a blob.
    pub fn stored(blob: BlobRef, from: Origin) -> Self {
        Self { held: DatumValue::Blob(blob), from, labels: Vec::new() }
    }

    /// An array or object of other data.
    pub fn joined(held: DatumValue) -> Self {
        Self { held, from: Origin::Join, labels: Vec::new() }
    }

    /// The value as JSON; a blob is shown by its URI.
    pub fn to_value(&self) -> Value {
        match &self.held {
            DatumValue::Value(value) => (**value).clone(),
            DatumValue::Blob(blob) => Value::String(blob.uri()),
            DatumValue::Object(fields) => Value::Object(
                fields.iter().map(|(key, datum)| (key.clone(), datum.to_value())).collect(),
            ),
            DatumValue::Array(items) => {
                Value::Array(items.iter().map(|item| item.to_value()).collect())
            }
        }
    }

    /// Whether a blob is part of it: then it must stay made of references, or pointers could no
    /// longer go into that blob.
    pub fn holds_blob(&self) -> bool {
        match &self.held {
            DatumValue::Value(_) => false,
            DatumValue::Blob(_) => true,
            DatumValue::Object(fields) => fields.values().any(|field| field.holds_blob()),
            DatumValue::Array(items) => items.iter().any(|item| item.holds_blob()),
        }
    }

    /// About how many bytes it takes: its JSON, or the blob that holds it. What a join refers to
    /// was counted where it was made.
    pub fn weight(&self) -> u64 {
        match &self.held {
            DatumValue::Value(value) => value_weight(value),
            DatumValue::Blob(blob) => blob.bytes,
            DatumValue::Object(fields) => fields.len() as u64,
            DatumValue::Array(items) => items.len() as u64,
        }
    }

    /// Moves an inline value that is larger than `bytes_max` out: gives its JSON text, to be put
    /// into a blob, and leaves the reference.
    pub fn spill(&mut self, bytes_max: usize) -> Option<Vec<u8>> {
        let DatumValue::Value(value) = &self.held else { return None };
        if !larger_than(value, bytes_max) {
            return None;
        }
        let text = value.to_string().into_bytes();
        if text.len() <= bytes_max {
            return None;
        }
        let blob = BlobRef { hash: ContentHash::of(&text), bytes: text.len() as u64 };
        self.held = DatumValue::Blob(blob);
        Some(text)
    }
}

/// About how many bytes a value's JSON takes.
pub fn value_weight(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() as u64 + 2,
        Value::Array(items) => items.iter().map(|item| value_weight(item) + 1).sum::<u64>() + 2,
        Value::Object(fields) => {
            let field = |(key, item): (&String, &Value)| key.len() as u64 + 4 + value_weight(item);
            fields.iter().map(field).sum::<u64>() + 2
        }
    }
}

/// Whether a value's JSON may be larger than this; cheap for small values, which most are.
pub fn larger_than(value: &Value, bytes_max: usize) -> bool {
    fn cost(value: &Value, left: &mut isize) {
        if *left < 0 {
            return;
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => *left -= 4,
            // An escaped character takes up to six bytes.
            Value::String(text) => *left -= 6 * text.len() as isize + 2,
            Value::Array(items) => items.iter().for_each(|item| {
                *left -= 24;
                cost(item, left);
            }),
            Value::Object(fields) => fields.iter().for_each(|(key, item)| {
                *left -= 6 * key.len() as isize + 28;
                cost(item, left);
            }),
        }
    }
    let mut left = bytes_max as isize;
    cost(value, &mut left);
    left < 0
}

/// What stands before a blob's hash: in a reference, and in a URI, which any text may hold.
static BEFORE_HASH: LazyLock<[Finder<'static>; 2]> =
    LazyLock::new(|| ["\"hash\":\"", "blob://"].map(Finder::new));
/// How long a blob's hash is.
const HASH_DIGITS: usize = 64;

/// The blobs that a JSON text names. Rather one too many: a hash that names no blob harms no one,
/// and a blob that is named must not be removed.
pub fn blobs_named(text: &str) -> BTreeSet<ContentHash> {
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let mut named = BTreeSet::new();
    for before in &*BEFORE_HASH {
        for at in before.find_iter(text.as_bytes()) {
            let begin = at + before.needle().len();
            let hash = text.get(begin..begin + HASH_DIGITS);
            let hash = hash.filter(|hash| hash.bytes().all(hex));
            named.extend(hash.map(ContentHash::from));
        }
    }
    named
}

/// What an argument was built from: the origin and the path inside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Where the value came from.
    pub from: Origin,
    /// The pointer that selected it, as the plan spells it.
    pub path: String,
}

/// For arguments, by JSON Pointer, what each was built from.
pub type Sources = BTreeMap<String, Vec<Source>>;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_names_blobs_by_reference_and_by_uri() {
        let hash = |text: &str| ContentHash::of(text.as_bytes());
        let held = |text: &str| {
            let blob = BlobRef { hash: hash(text), bytes: 9 };
            Arc::new(Datum {
                held: DatumValue::Blob(blob),
                from: Origin::Input,
                labels: Vec::new(),
            })
        };
        let joined = Datum::joined(DatumValue::Array(vec![held("a"), held("b")]));
        let words = format!("see blob://{} and blob://{}, not blob://c", hash("c"), hash("d"));
        let text = json!({"value": joined, "words": words, "closure": hash("e")}).to_string();
        let named = ["a", "b", "c", "d"].map(hash);
        assert_eq!(blobs_named(&text), BTreeSet::from(named));
        // A text that ends, or continues otherwise, where a hash should stand names nothing.
        assert!(blobs_named("blob://0123").is_empty());
        assert!(blobs_named(&format!("blob://{}", "\u{e9}".repeat(40))).is_empty());
    }
}
