//! A session of the versions with a handshake, as the bridge keeps it for the client.

use super::answers::Answers;
use super::message::is_answer_to;
use reqwest::Response;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use wire::mcp::{HEADER_SESSION, HEADER_VERSION};

/// A session.
#[derive(Debug, Clone)]
pub(super) struct Session {
    /// How often it was begun, as the bridge counts: a newer one overrides an older one.
    pub(super) number: u64,
    /// Its name; a server that keeps nothing gives none.
    pub(super) id: Option<HeaderValue>,
    /// The version that both speak.
    pub(super) version: HeaderValue,
    /// The message that began it.
    pub(super) hello: String,
    /// The key of that message's id.
    pub(super) greeting: String,
}

impl Session {
    /// Whether the server gave it a name, and so can forget it.
    pub(super) fn is_named(&self) -> bool {
        self.id.is_some()
    }

    /// What every message of it carries.
    pub(super) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static(HEADER_VERSION), self.version.clone());
        if let Some(id) = &self.id {
            headers.insert(HeaderName::from_static(HEADER_SESSION), id.clone());
        }
        headers
    }
}

/// The outcome of a handshake.
pub(super) struct HandshakeResult {
    /// What is to be passed on: the answer last.
    pub(super) lines: Vec<String>,
    /// The session, not counted yet; none where the server answered an error.
    pub(super) session: Option<Session>,
}

impl HandshakeResult {
    /// Reads the answer to this message, whose id has this key.
    pub(super) async fn read(response: Response, hello: &str, asked: &str) -> Result<Self, String> {
        let id = response.headers().get(HEADER_SESSION).cloned();
        let mut from = Answers::of(response);
        let mut lines = Vec::new();
        while let Some(line) = from.next().await? {
            let is_answer = is_answer_to(&line, asked);
            let version = if is_answer { version(&line) } else { None };
            lines.push(line);
            if is_answer {
                let hello = hello.to_owned();
                let greeting = asked.to_owned();
                let session =
                    version.map(|version| Session { number: 0, id, version, hello, greeting });
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
        let id = Some(HeaderValue::from_static("abc"));
        let hello = String::new();
        let greeting = String::new();
        let session = Session { number: 1, id, version, hello, greeting };
        let headers = session.headers();
        assert_eq!(headers[HEADER_SESSION], "abc");
        assert_eq!(headers[HEADER_VERSION], "2025-06-18");
        assert!(session.is_named());
        assert_eq!(super::version("{\"error\":{}}"), None);
    }
}
