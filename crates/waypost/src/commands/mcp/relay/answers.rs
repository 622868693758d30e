//! The messages in an HTTP answer, one line each: a JSON body is one, a stream brings them as they
//! come.

use crate::remote::client::innermost;
use outbound::sse::SseReader;
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use std::collections::VecDeque;

/// A message beyond this is not one of ours.
const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The messages of one answer.
pub(super) struct Answers {
    response: Response,
    body: Body,
    ready: VecDeque<String>,
    last: Option<String>,
}

enum Body {
    Whole(Vec<u8>),
    Events(SseReader),
}

impl Answers {
    /// Those of this answer.
    pub(super) fn of(response: Response) -> Self {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_stream = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
        let body = match is_stream {
            true => Body::Events(SseReader::new(MESSAGE_BYTES_MAX)),
            false => Body::Whole(Vec::new()),
        };
        Self { response, body, ready: VecDeque::new(), last: None }
    }

    /// Those of a stream that was taken up again after this event.
    pub(super) fn after(response: Response, last: String) -> Self {
        Self { last: Some(last), ..Self::of(response) }
    }

    /// The next message; none at the end, an error where it was cut.
    pub(super) async fn next(&mut self) -> Result<Option<String>, String> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Ok(Some(message));
            }
            match self.response.chunk().await {
                Ok(Some(bytes)) => self.take(&bytes)?,
                Ok(None) => return Ok(self.rest()),
                Err(error) => return Err(innermost(&error)),
            }
        }
    }

    /// The last event that came, for a request for those after it.
    pub(super) fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        match &mut self.body {
            Body::Whole(held) if held.len() + bytes.len() > MESSAGE_BYTES_MAX => {
                Err("the answer is too large".to_owned())
            }
            Body::Whole(held) => {
                held.extend_from_slice(bytes);
                Ok(())
            }
            Body::Events(reader) => {
                reader.push(bytes);
                while let Some(event) = reader.next_event().map_err(|error| error.to_string())? {
                    self.last = event.id.or(self.last.take());
                    // An event without data only says where the stream stands.
                    self.ready.extend(message(&event.data));
                }
                Ok(())
            }
        }
    }

    fn rest(&mut self) -> Option<String> {
        match &mut self.body {
            Body::Whole(held) => message(&String::from_utf8_lossy(&std::mem::take(held))),
            Body::Events(_) => None,
        }
    }
}

/// A message as a line. A break can stand only between the parts of a JSON text, never inside one.
fn message(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.replace(['\n', '\r'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line() {
        assert_eq!(message("{\n  \"a\": 1\r\n}\n").as_deref(), Some("{   \"a\": 1  }"));
        assert_eq!(message(" \n"), None);
    }
}
