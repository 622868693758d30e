//! A session of the versions with a handshake, as the bridge keeps it for the client.

use super::answers::Answers;
use super::message::is_answer_to;
use outbound::sse::ResumePoint;
use reqwest::Response;
use serde_json::Value;
use std::sync::Arc;
use upstreams::mcp_headers::SessionHeaders;

#[derive(Debug)]
pub(super) struct Session {
    /// What every message of it carries.
    pub(super) headers: SessionHeaders,
    /// The message that began it.
    pub(super) hello: String,
    /// The key of that message's id.
    pub(super) greeting: String,
}

/// The outcome of a handshake.
pub(super) struct HandshakeResult {
    /// What is to be passed on: the answer last.
    pub(super) lines: Vec<String>,
    /// The session; none where the server answered an error.
    pub(super) session: Option<Arc<Session>>,
}

impl HandshakeResult {
    /// Reads the answer to this message, whose id has this key.
    pub(super) async fn read(response: Response, hello: &str, asked: &str) -> Result<Self, String> {
        let headers = SessionHeaders::begun(response.headers());
        let mut from = Answers::of(response, ResumePoint::default());
        let mut lines = Vec::new();
        loop {
            let line = from.next().await?;
            let is_answer = is_answer_to(&line, asked);
            let version = if is_answer { version(&line) } else { None };
            lines.push(line);
            if is_answer {
                let begun = version.map(|version| Session {
                    headers: headers.agreed(&version),
                    hello: hello.to_owned(),
                    greeting: asked.to_owned(),
                });
                return Ok(Self { lines, session: begun.map(Arc::new) });
            }
        }
    }
}

fn version(answer: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    answer["result"]["protocolVersion"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn an_answer_without_a_version_begins_no_session() {
        let answer = "{\"result\":{\"protocolVersion\":\"2025-06-18\"}}";
        assert_eq!(version(answer).as_deref(), Some("2025-06-18"));
        assert_eq!(version("{\"error\":{}}"), None);
    }
}
