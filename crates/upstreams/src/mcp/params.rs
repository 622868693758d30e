//! Parameters of outgoing requests. Large parts are shared and constant parts are written once, so
//! that a call is sent without being copied.

use kernel::values::members::take;
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use wire::mcp::{META_CAPABILITIES, META_CLIENT, META_VERSION, MODERN};

const NAME: &str = "name";
const ARGUMENTS: &str = "arguments";
const META: &str = "_meta";

/// An object, in parts.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Params {
    /// Name of the tool or prompt.
    name: Option<Arc<str>>,
    /// Its members, without those above and below.
    members: Map<String, Value>,
    /// The arguments of a call, as the caller has them.
    arguments: Option<Arc<Value>>,
    /// Members of `_meta`.
    meta: Map<String, Value>,
    /// Members of `_meta` that say who asks, as text: every stateless request has them.
    sender: Option<&'static str>,
}

impl Params {
    pub(crate) fn of_call(name: Arc<str>, arguments: Arc<Value>) -> Self {
        Self { name: Some(name), arguments: Some(arguments), ..Self::default() }
    }

    /// Adds a member.
    pub(crate) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.members.insert(key.to_owned(), value.into());
    }

    /// Adds what is said beside the request.
    pub(crate) fn say(&mut self, key: &str, value: impl Into<Value>) {
        self.meta.insert(key.to_owned(), value.into());
    }

    /// The member of `_meta` under this key.
    pub(crate) fn said(&self, key: &str) -> Option<&Value> {
        self.meta.get(key)
    }

    /// The same with members of `_meta` that say who asks, in the stateless version.
    #[must_use]
    pub(crate) fn sent_by(mut self, sender: &'static str) -> Self {
        for key in [META_VERSION, META_CLIENT, META_CAPABILITIES] {
            self.meta.remove(key);
        }
        self.sender = Some(sender);
        self
    }

    /// The version that the request names, as only stateless ones do.
    pub(crate) fn version(&self) -> Option<&str> {
        match self.sender {
            Some(_) => Some(MODERN),
            None => self.said(META_VERSION).and_then(Value::as_str),
        }
    }

    /// Writes all of it as JSON.
    pub(crate) fn write(&self, text: &mut Vec<u8>) {
        text.push(b'{');
        if let Some(name) = &self.name {
            member(text, NAME, &**name);
        }
        for (key, value) in &self.members {
            member(text, key, value);
        }
        if let Some(arguments) = &self.arguments {
            member(text, ARGUMENTS, &**arguments);
        }
        if !self.meta.is_empty() || self.sender.is_some() {
            key(text, META);
            text.push(b'{');
            for (key, value) in &self.meta {
                member(text, key, value);
            }
            if let Some(sender) = self.sender {
                comma(text);
                text.extend_from_slice(sender.as_bytes());
            }
            text.push(b'}');
        }
        text.push(b'}');
    }

    /// All of it as a value.
    #[cfg(test)]
    pub(crate) fn to_value(&self) -> Value {
        let mut text = Vec::new();
        self.write(&mut text);
        serde_json::from_slice(&text).unwrap()
    }
}

impl From<Value> for Params {
    fn from(value: Value) -> Self {
        let mut members = object(value);
        let meta = take(&mut members, META).map(object).unwrap_or_default();
        Self { members, meta, ..Self::default() }
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn member(text: &mut Vec<u8>, name: &str, value: &(impl Serialize + ?Sized)) {
    key(text, name);
    put(text, value);
}

fn key(text: &mut Vec<u8>, name: &str) {
    comma(text);
    put(text, name);
    text.push(b':');
}

/// Writes a comma before every member but the first.
fn comma(text: &mut Vec<u8>) {
    if text.last() != Some(&b'{') {
        text.push(b',');
    }
}

fn put(text: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // Plain data into memory: this cannot fail.
    drop(serde_json::to_writer(text, value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SENDER: &str = "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"";

    #[test]
    fn parameters_are_written_unchanged() {
        for value in [
            json!({}),
            json!({"a": 1, "b": "\"{", "c": {}, "d": [{}]}),
            json!({"_meta": {"progressToken": 7}}),
            json!({"z": "{", "_meta": {"a": {}, "b": 2}}),
        ] {
            assert_eq!(Params::from(value.clone()).to_value(), value);
        }
        for nothing in [Value::Null, json!([1]), json!("x")] {
            assert_eq!(Params::from(nothing).to_value(), json!({}));
        }
    }

    #[test]
    fn arguments_are_shared_and_not_copied() {
        let arguments = Arc::new(json!({"a": {"b": []}}));
        let mut params = Params::of_call("t\"".into(), arguments.clone());
        assert_eq!(params.to_value(), json!({"name": "t\"", "arguments": *arguments}));
        params.set("requestState", "s");
        params.say("traceparent", "p");
        let whole = json!({"name": "t\"", "arguments": *arguments, "requestState": "s",
            "_meta": {"traceparent": "p"}});
        assert_eq!(params.to_value(), whole);
        assert_eq!(params.said("traceparent"), Some(&json!("p")));
        assert_eq!(params.version(), None);
    }

    #[test]
    fn protocol_version_in_meta_is_written_once() {
        let stateless = Params::default().sent_by(SENDER);
        assert_eq!(stateless.to_value(), json!({"_meta": {META_VERSION: MODERN}}));
        let params = json!({"_meta": {"x": 1, META_VERSION: "1999-01-01"}});
        assert_eq!(Params::from(params.clone()).version(), Some("1999-01-01"));
        let stateless = Params::from(params).sent_by(SENDER);
        assert_eq!(stateless.to_value(), json!({"_meta": {"x": 1, META_VERSION: MODERN}}));
        assert_eq!(stateless.version(), Some(MODERN));
    }
}
