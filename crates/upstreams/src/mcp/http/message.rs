//! Parses incoming JSON-RPC messages. Our credentials are redacted from all of them.

use super::super::line::Incoming;
use outbound::redaction::Redactor;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use wire::jsonrpc::{Id, RpcError, even_null};

/// A message as it stands there, read in one go.
#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    /// One that is null is there all the same.
    #[serde(borrow, default, deserialize_with = "even_null")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(default)]
    params: Option<Value>,
    /// Null is a result, too.
    #[serde(default, deserialize_with = "even_null")]
    result: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

/// One message.
pub(crate) enum Message {
    /// It answers a request of ours; an error may not know which.
    Answer {
        /// The request.
        id: Option<Id>,
        /// A result or an error.
        answer: Incoming,
    },
    /// It tells or asks something.
    Told(Incoming),
}

impl Message {
    /// The message of this text, if it is one, without what is hidden.
    pub(crate) fn read(text: &str, hidden: &Redactor) -> Option<Self> {
        let mut written: RawMessage<'_> = serde_json::from_str(text).ok()?;
        if written.jsonrpc.as_deref() != Some("2.0") {
            return None;
        }
        if hidden.may_be_in(text) {
            let said = [&mut written.params, &mut written.result, &mut written.error];
            said.into_iter().flatten().for_each(|value| hidden.mask(value));
        }
        let id = written.id.and_then(Id::read);
        if let Some(method) = written.method {
            let method = method.into_owned();
            let params = written.params.unwrap_or_default();
            return match (written.id, id) {
                (None, _) => Some(Self::Told(Incoming::Notification { method, params })),
                (Some(_), Some(id)) => Some(Self::Told(Incoming::Request { id, method, params })),
                (Some(_), None) => None,
            };
        }
        let answer = match (written.result, written.error) {
            (Some(result), None) => Incoming::Result(result),
            (None, Some(error)) => Incoming::Error(error_of(error, hidden)?),
            (None, None) | (Some(_), Some(_)) => return None,
        };
        Some(Self::Answer { id, answer })
    }

    /// The messages of an array, as 2025-03-26 allows.
    pub(crate) fn read_several(text: &str, hidden: &Redactor) -> Option<Vec<Self>> {
        let parts: Vec<&RawValue> = serde_json::from_str(text).ok()?;
        parts.into_iter().map(|part| Self::read(part.get(), hidden)).collect()
    }
}

fn error_of(mut error: Value, hidden: &Redactor) -> Option<RpcError> {
    let code = error["code"].as_i64()?;
    let message = hidden.told(error["message"].as_str().unwrap_or_default());
    let data = error.get_mut("data").map(Value::take).filter(|data| !data.is_null());
    Some(RpcError { code, message, data })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Option<String> {
        let id = |id: Option<Id>| id.map_or("-".to_owned(), |id| id.to_string());
        Some(match Message::read(text, &Redactor::default())? {
            Message::Answer { id: to, answer: Incoming::Result(value) } => {
                format!("result {} {value}", id(to))
            }
            Message::Answer { id: to, answer: Incoming::Error(error) } => {
                format!("error {} {}", id(to), error.code)
            }
            Message::Told(Incoming::Notification { method, params }) => {
                format!("tells {method} {params}")
            }
            Message::Told(Incoming::Request { id: asked, method, .. }) => {
                format!("asks {asked} {method}")
            }
            _ => "else".to_owned(),
        })
    }

    #[test]
    fn messages_are_classified() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#, r#"result 1 {"a":1}"#),
            (r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32601}}"#, r#"error "x" -32601"#),
            (r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}"#, "error - 1"),
            (r#"{"jsonrpc":"2.0","id":3,"result":null,"error":null}"#, "result 3 null"),
            (r#"{"jsonrpc":"2.0","method":"a"}"#, "tells a null"),
            (r#"{"jsonrpc":"2.0","method":"a\n","params":null,"more":[{}]}"#, "tells a\n null"),
            (r#"{"jsonrpc":"2.0","id":2,"method":"b","params":{}}"#, "asks 2 b"),
        ] {
            assert_eq!(told(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "{}",
            "[]",
            r#"{"id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1}}"#,
            r#"{"jsonrpc":"2.0","error":"not found"}"#,
            r#"{"jsonrpc":"2.0","id":[],"method":"a"}"#,
        ] {
            assert_eq!(told(text), None, "{text}");
        }
    }

    #[test]
    fn a_batch_holds_several_messages() {
        let text = r#" [{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":1,"result":{}}]"#;
        let none = Redactor::default();
        assert_eq!(Message::read_several(text, &none).unwrap().len(), 2);
        let text = r#"[{"jsonrpc":"2.0","method":"a"},1]"#;
        assert!(Message::read_several(text, &none).is_none());
    }
}
