//! Reads the messages of an HTTP answer: one in a JSON body, or each event of a stream.

use crate::remote::client::innermost;
use crate::remote::sse::{CLOSED, SseStream};
use outbound::answer::{ReadError, collect, media_type};
use outbound::sse::ResumePoint;
use reqwest::Response;
use upstreams::mcp_headers::EVENTS;

/// A message beyond this is not one of ours.
const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The messages of one answer.
pub(super) enum Answers {
    /// One, which is still to be read.
    Whole(Option<Response>),
    Events(SseStream),
}

impl Answers {
    /// Those of this answer; of a stream that was taken up again, those after this place.
    pub(super) fn of(response: Response, place: ResumePoint) -> Self {
        match media_type(response.headers()) == EVENTS {
            true => Self::Events(SseStream::resumed(response, place)),
            false => Self::Whole(Some(response)),
        }
    }

    /// The next message; else why no more come.
    pub(super) async fn next(&mut self) -> Result<String, String> {
        match self {
            Answers::Whole(response) => {
                let mut response = response.take().ok_or(CLOSED)?;
                let body = collect(&mut response, MESSAGE_BYTES_MAX).await;
                let body = body.map_err(|unread| match unread {
                    ReadError::TooLarge => "the answer is too large".to_owned(),
                    ReadError::Lost(error) => innermost(&error),
                })?;
                message(&String::from_utf8_lossy(&body)).ok_or_else(|| CLOSED.to_owned())
            }
            Answers::Events(events) => loop {
                let event = events.next().await.map_err(|failure| failure.message)??;
                // An event without data only says where the stream stands.
                if let Some(message) = message(&event.data) {
                    return Ok(message);
                }
            },
        }
    }

    /// Where it could be taken up again.
    pub(super) fn place(&self) -> ResumePoint {
        match self {
            Answers::Whole(_) => ResumePoint::default(),
            Answers::Events(events) => events.place().clone(),
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
