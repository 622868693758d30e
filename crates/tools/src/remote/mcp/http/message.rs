//! JSON-RPC messages as they come in: answers with the id of what they answer, and all else.

use super::super::line::Incoming;
use serde_json::Value;
use serde_json::value::RawValue;
use wire::jsonrpc::{Frame, Id, RpcError};

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
    /// The message of this text, if it is one.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let frame: Frame<'_> = serde_json::from_str(text).ok()?;
        if frame.jsonrpc.as_deref() != Some("2.0") {
            return None;
        }
        let id = frame.id.and_then(Id::read);
        if let Some(method) = frame.method {
            let method = method.into_owned();
            let params = frame.params.map_or(Some(Value::Null), value)?;
            return match (frame.id, id) {
                (None, _) => Some(Self::Told(Incoming::Notification { method, params })),
                (Some(_), Some(id)) => Some(Self::Told(Incoming::Request { id, method, params })),
                (Some(_), None) => None,
            };
        }
        let answer = match (frame.result, frame.error) {
            (Some(result), None) => Incoming::Result(value(result)?),
            (None, Some(error)) => Incoming::Error(error_of(error)?),
            (None, None) | (Some(_), Some(_)) => return None,
        };
        Some(Self::Answer { id, answer })
    }

    /// One message, or those of an array, as 2025-03-26 allows.
    pub(crate) fn read_all(text: &str) -> Option<Vec<Self>> {
        if !text.trim_start().starts_with('[') {
            return Some(vec![Self::read(text)?]);
        }
        let parts: Vec<&RawValue> = serde_json::from_str(text).ok()?;
        parts.into_iter().map(|part| Self::read(part.get())).collect()
    }
}

fn value(raw: &RawValue) -> Option<Value> {
    serde_json::from_str(raw.get()).ok()
}

fn error_of(raw: &RawValue) -> Option<RpcError> {
    let mut error = value(raw)?;
    let code = error["code"].as_i64()?;
    let message = error["message"].as_str().unwrap_or_default().to_owned();
    let data = error.get_mut("data").map(Value::take).filter(|data| !data.is_null());
    Some(RpcError { code, message, data })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Option<String> {
        let id = |id: Option<Id>| id.map_or("-".to_owned(), |id| id.to_string());
        Some(match Message::read(text)? {
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
    fn messages_are_told_apart() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#, r#"result 1 {"a":1}"#),
            (r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32601}}"#, r#"error "x" -32601"#),
            (r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}"#, "error - 1"),
            (r#"{"jsonrpc":"2.0","method":"a"}"#, "tells a null"),
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
    fn an_array_holds_several() {
        let text = r#" [{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":1,"result":{}}]"#;
        assert_eq!(Message::read_all(text).unwrap().len(), 2);
        assert!(Message::read_all(r#"[{"jsonrpc":"2.0","method":"a"},1]"#).is_none());
    }
}
