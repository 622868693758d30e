//! A session of the versions with a handshake, as the bridge keeps it for the client.

use super::answers::Answers;
use super::message::{Kind, Message, is_answer_to, key};
use reqwest::Response;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use wire::mcp::{HEADER_SESSION, HEADER_VERSION};

/// A session.
#[derive(Debug, Clone)]
pub(super) struct Session {
    /// How often it was begun: a newer one overrides an older one.
    number: u64,
    begun: Begun,
    hello: String,
    greeting: String,
}

/// What the server said when a session began.
#[derive(Debug, Clone)]
pub(super) struct Begun {
    /// Its name; a server that keeps nothing gives none.
    id: Option<HeaderValue>,
    /// The version that both speak.
    version: HeaderValue,
}

impl Session {
    /// A session that this message began.
    pub(super) fn new(number: u64, begun: Begun, hello: &str) -> Self {
        let greeting = match Message::read(hello.to_owned()).map(|message| message.kind) {
            Ok(Kind::Request { id, .. }) => key(&id),
            Ok(Kind::Notification { .. } | Kind::Response) | Err(_) => String::new(),
        };
        Self { number, begun, hello: hello.to_owned(), greeting }
    }

    /// How often it was begun.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Whether the server gave it a name, and so can forget it.
    pub(super) fn is_named(&self) -> bool {
        self.begun.id.is_some()
    }

    /// The message that began it.
    pub(super) fn hello(&self) -> &str {
        &self.hello
    }

    /// The key of that message's id.
    pub(super) fn greeting(&self) -> &str {
        &self.greeting
    }

    /// What every message of it carries.
    pub(super) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static(HEADER_VERSION), self.begun.version.clone());
        if let Some(id) = &self.begun.id {
            headers.insert(HeaderName::from_static(HEADER_SESSION), id.clone());
        }
        headers
    }
}

/// What came of a handshake.
pub(super) struct Greeted {
    /// What is to be passed on: the answer last.
    pub(super) lines: Vec<String>,
    /// What the server said of the session; none where it answered an error.
    pub(super) session: Option<Begun>,
}

impl Greeted {
    /// Reads the answer to the request with this key.
    pub(super) async fn read(response: Response, asked: &str) -> Result<Self, String> {
        let id = response.headers().get(HEADER_SESSION).cloned();
        let mut from = Answers::of(response);
        let mut lines = Vec::new();
        while let Some(line) = from.next().await? {
            let is_answer = is_answer_to(&line, asked);
            let version = if is_answer { version(&line) } else { None };
            lines.push(line);
            if is_answer {
                let session = version.map(|version| Begun { id, version });
                return Ok(Self { lines, session });
            }
        }
        Err("the server closed the connection".to_owned())
    }
}

fn version(answer: &str) -> Option<HeaderValue> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    HeaderValue::from_str(answer["result"]["protocolVersion"].as_str()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_in_its_headers() {
        let version = version("{\"result\":{\"protocolVersion\":\"2025-06-18\"}}").unwrap();
        let begun = Begun { id: Some(HeaderValue::from_static("abc")), version };
        let session = Session::new(3, begun, "{\"id\":\"x\",\"method\":\"initialize\"}");
        let headers = session.headers();
        assert_eq!(headers[HEADER_SESSION], "abc");
        assert_eq!(headers[HEADER_VERSION], "2025-06-18");
        assert_eq!((session.number(), session.greeting()), (3, "\"x\""));
        assert!(session.is_named());
        assert_eq!(super::version("{\"error\":{}}"), None);
    }
}
