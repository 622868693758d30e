//! JSON-RPC 2.0: one message in, one message out. Only the frame is read; `params`, `result` and
//! ids stay the text that they came as.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;

/// Not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// JSON, but no request.
pub const INVALID_REQUEST: i64 = -32600;
/// No such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The method does not take these parameters.
pub const INVALID_PARAMS: i64 = -32602;
/// Our fault.
pub const INTERNAL_ERROR: i64 = -32603;

/// There is room for most requests in this.
const REQUEST_BYTES: usize = 512;

/// A message as it came.
#[derive(Debug, Deserialize)]
pub struct Frame<'a> {
    /// Must be `2.0`.
    #[serde(borrow, default)]
    pub jsonrpc: Option<Cow<'a, str>>,
    /// The request's id; a notification has none. One that is null is there all the same, and
    /// wrong: its sender waits for an answer.
    #[serde(borrow, default, deserialize_with = "even_null")]
    pub id: Option<&'a RawValue>,
    /// The method of a request or notification.
    #[serde(borrow, default)]
    pub method: Option<Cow<'a, str>>,
    /// Its parameters.
    #[serde(borrow, default)]
    pub params: Option<&'a RawValue>,
    /// The result in a response; null is one, too.
    #[serde(borrow, default, deserialize_with = "even_null")]
    pub result: Option<&'a RawValue>,
    /// The error in a response.
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

/// A member that is there, though it may be null: that is not the same as nothing.
pub fn even_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    member: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(member).map(Some)
}

/// The id of a request, as the text that it came as: a string or a number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(String);

impl Id {
    /// The id, if it is one.
    pub fn read(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        let number = || text.bytes().all(|byte| matches!(byte, b'-' | b'0'..=b'9'));
        let is_id = text.starts_with('"') || number();
        is_id.then(|| Self(text.to_owned()))
    }

    /// An id of our own.
    pub fn number(number: u64) -> Self {
        Self(number.to_string())
    }

    /// As it stands in JSON.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a request got no result.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    /// Its number.
    pub code: i64,
    /// Who failed and why.
    pub message: String,
    /// More for programs.
    pub data: Option<Value>,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The parameters are not right.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// The same with data.
    #[must_use]
    pub fn data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// The error object.
    pub fn to_value(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }
}

/// A response with a result, which is JSON text.
pub fn result(id: &Id, result: &str) -> String {
    let id = id.as_json();
    let mut text = String::with_capacity(result.len() + id.len() + 36);
    text.push_str("{\"jsonrpc\":\"2.0\",\"id\":");
    text.push_str(id);
    text.push_str(",\"result\":");
    text.push_str(result);
    text.push('}');
    text
}

/// A response with an error; no id where none could be read.
pub fn error(id: Option<&Id>, error: &RpcError) -> String {
    let id = id.map_or("null", Id::as_json);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{}}}", error.to_value())
}

pub fn notification(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

/// A request of ours. Its parameters are written into it as JSON.
pub fn request(id: &Id, method: &str, write_params: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut text = Vec::with_capacity(REQUEST_BYTES);
    text.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    text.extend_from_slice(id.as_json().as_bytes());
    text.extend_from_slice(b",\"method\":");
    // A text into memory: this cannot fail.
    drop(serde_json::to_writer(&mut text, method));
    text.extend_from_slice(b",\"params\":");
    write_params(&mut text);
    text.push(b'}');
    // JSON is always text.
    String::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_kept_verbatim() {
        let id = |text: &str| Id::read(serde_json::from_str::<&RawValue>(text).unwrap());
        for text in ["1", "-7", "\"a\\u0041\"", "12345678901234567890"] {
            assert_eq!(id(text).unwrap().as_json(), text);
        }
        for text in ["null", "true", "{}", "[1]", "1.5", "1e3"] {
            assert_eq!(id(text), None, "{text}");
        }
    }

    #[test]
    fn only_the_frame_is_read() {
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":[1,  2]},"more":1}"#;
        let frame: Frame<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(frame.params.unwrap().get(), r#"{"x":[1,  2]}"#);
        assert_eq!(frame.method.as_deref(), Some("a"));
    }

    #[test]
    fn null_differs_from_a_missing_member() {
        let read = |text: &'static str| serde_json::from_str::<Frame<'static>>(text).unwrap();
        let nulls = read(r#"{"jsonrpc":"2.0","id":null,"result":null,"error":null,"params":null}"#);
        assert_eq!(nulls.id.map(RawValue::get), Some("null"));
        assert_eq!(nulls.id.and_then(Id::read), None);
        assert_eq!(nulls.result.map(RawValue::get), Some("null"));
        // Some clients send both of these for "there is none".
        assert!(nulls.error.is_none() && nulls.params.is_none());
        let nothing = read("{}");
        assert!(nothing.id.is_none() && nothing.result.is_none());
    }

    #[test]
    fn answers_are_json() {
        let id = Id::number(7);
        let answer = result(&id, "{\"a\":1}");
        assert_eq!(answer, r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#);
        let asked = request(&id, "a/\"b\"", |text| text.extend_from_slice(b"{}"));
        assert_eq!(asked, r#"{"jsonrpc":"2.0","id":7,"method":"a/\"b\"","params":{}}"#);
        let failed = error(None, &RpcError::new(PARSE_ERROR, "no \"JSON\""));
        let read: Value = serde_json::from_str(&failed).unwrap();
        assert_eq!(read["error"]["message"], "no \"JSON\"");
        assert!(read["id"].is_null());
    }
}
