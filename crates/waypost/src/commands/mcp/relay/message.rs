//! Parses a client's message as far as the bridge needs it.

use serde_json::Value;
use wire::jsonrpc::{Frame, INVALID_REQUEST, Id, PARSE_ERROR, RpcError, error};
use wire::mcp::META_VERSION;

#[derive(Debug)]
pub(super) struct Message {
    /// As it came.
    pub(super) text: String,
    pub(super) kind: Kind,
    params: Value,
}

/// What a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// It wants an answer.
    Request {
        id: Id,
        /// What is wanted.
        method: String,
    },
    /// It does not.
    Notification {
        /// What is reported.
        method: String,
    },
    /// It answers a request of the server.
    Response,
}

impl Message {
    /// Reads a line; what is no message is answered with the line that comes back.
    pub(super) fn read(text: String) -> Result<Self, String> {
        let found = look(&text);
        found.map(|(kind, params)| Self { text, kind, params })
    }

    /// The version, where the message says it: then it stands for itself and needs no session.
    pub(super) fn version(&self) -> Option<&str> {
        self.params["_meta"][META_VERSION].as_str()
    }

    /// What a request of the stateless version is about.
    pub(super) fn subject(&self) -> Option<&str> {
        let Kind::Request { method, .. } = &self.kind else { return None };
        let member = match method.as_str() {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => return None,
        };
        self.params[member].as_str()
    }

    /// The arguments of a call.
    pub(super) fn arguments(&self) -> &Value {
        &self.params["arguments"]
    }

    /// The request that a cancellation is about, as `key` writes its id.
    pub(super) fn cancelled(&self) -> String {
        self.params["requestId"].to_string()
    }
}

/// An id in the one way to write it, so that two of them can be compared.
pub(super) fn key(id: &Id) -> String {
    let read = serde_json::from_str::<Value>(id.as_json());
    read.map_or_else(|_| id.to_string(), |id| id.to_string())
}

/// Whether a line of the server answers the request with this key.
pub(super) fn is_answer_to(line: &str, asked: &str) -> bool {
    let Ok(frame) = serde_json::from_str::<Frame<'_>>(line) else { return false };
    let id = frame.id.and_then(Id::read);
    frame.method.is_none() && id.is_some_and(|id| key(&id) == asked)
}

fn look(text: &str) -> Result<(Kind, Value), String> {
    let refused = |id: Option<&Id>, code, why: String| error(id, &RpcError::new(code, why));
    // A list would otherwise be taken for an object's values.
    if !text.trim_start().starts_with('{') {
        let why = "a message must be a JSON object on a line of its own".to_owned();
        return Err(refused(None, INVALID_REQUEST, why));
    }
    let frame: Frame<'_> = serde_json::from_str(text)
        .map_err(|error| refused(None, PARSE_ERROR, format!("the message is not JSON: {error}")))?;
    let id = match frame.id {
        None => None,
        Some(raw) => Some(Id::read(raw).ok_or_else(|| {
            refused(None, INVALID_REQUEST, "`id` must be a string or a whole number".to_owned())
        })?),
    };
    let params = frame.params.and_then(|params| serde_json::from_str(params.get()).ok());
    let kind = match (frame.method, id) {
        (Some(method), Some(id)) => Kind::Request { id, method: method.into_owned() },
        (Some(method), None) => Kind::Notification { method: method.into_owned() },
        (None, Some(_)) if frame.result.is_some() || frame.error.is_some() => Kind::Response,
        (None, id) => {
            let why = "a message has a `method`, or an `id` with a `result` or an `error`";
            return Err(refused(id.as_ref(), INVALID_REQUEST, why.to_owned()));
        }
    };
    Ok((kind, params.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(message: &Value) -> Message {
        Message::read(message.to_string()).unwrap()
    }

    #[test]
    fn requests_notifications_and_answers_are_distinguished() {
        let request = read(&json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call",
            "params": {"name": "x", "arguments": {"n": 1}, "_meta": {META_VERSION: "v"}}}));
        let Kind::Request { id, method } = &request.kind else { panic!("{request:?}") };
        assert_eq!((id.as_json(), method.as_str()), ("\"a\"", "tools/call"));
        assert_eq!((request.version(), request.subject()), (Some("v"), Some("x")));
        assert_eq!(request.arguments()["n"], json!(1));
        let told =
            read(&json!({"method": "notifications/cancelled", "params": {"requestId": "a"}}));
        assert_eq!(told.kind, Kind::Notification { method: "notifications/cancelled".to_owned() });
        assert_eq!((told.version(), told.cancelled()), (None, key(id)));
        assert_eq!(read(&json!({"id": 1, "result": {}})).kind, Kind::Response);
        assert_eq!(read(&json!({"id": 1, "error": {}})).kind, Kind::Response);
    }

    #[test]
    fn invalid_messages_are_answered_with_an_error() {
        for (line, code) in [
            ("", INVALID_REQUEST),
            ("[]", INVALID_REQUEST),
            ("[null, 1, \"ping\"]", INVALID_REQUEST),
            ("{", PARSE_ERROR),
            ("{\"id\": 1.5, \"method\": \"ping\"}", INVALID_REQUEST),
            ("{\"id\": 7}", INVALID_REQUEST),
        ] {
            let answer = Message::read(line.to_owned()).unwrap_err();
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!(answer["error"]["code"], code, "{line}");
        }
    }

    #[test]
    fn an_answer_is_known_by_its_id() {
        let asked = key(&Id::number(7));
        assert!(is_answer_to("{\"id\":7,\"result\":{}}", &asked));
        assert!(is_answer_to("{\"id\":7,\"error\":{}}", &asked));
        assert!(!is_answer_to("{\"id\":8,\"result\":{}}", &asked));
        assert!(!is_answer_to("{\"id\":7,\"method\":\"roots/list\"}", &asked), "the server asks");
        let accented = Message::read("{\"id\":\"\\u00e9\",\"method\":\"ping\"}".to_owned());
        let Kind::Request { id, .. } = accented.unwrap().kind else { panic!("no request") };
        assert!(is_answer_to("{\"id\":\"é\",\"result\":{}}", &key(&id)));
    }
}
