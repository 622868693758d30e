//! A stream of messages in an HTTP response.

use super::super::line::{PeerError, PeerErrorKind, Result};
use super::answer::too_large;
use super::endpoint::Endpoint;
use super::message::Message;
use super::response::Response;
use kernel::tool::call::CallProgress;
use outbound::sse::{Event, ResumePoint, SseError, SseReader};

/// How much may follow an answer before its connection is given up.
const AFTER_BYTES_MAX: usize = 64 * 1024;

/// A stream that is being read.
pub(crate) struct EventStream {
    response: Response,
    reader: SseReader,
}

impl EventStream {
    /// The stream of this answer, whose messages have at most so many bytes: a new one, or one that
    /// is taken up again at a place.
    pub(crate) fn new(response: Response, bytes_max: usize, resume_point: ResumePoint) -> Self {
        Self { response, reader: SseReader::resumed(bytes_max, resume_point) }
    }

    /// The next event that has data; else why nothing more comes. What was only lost may be taken
    /// up again.
    pub(crate) async fn next_event(&mut self, endpoint: &Endpoint) -> Result<Event> {
        loop {
            if let Some(event) = self.reader.next_event().map_err(|why| unread(&why, endpoint))? {
                return Ok(event);
            }
            match self.response.chunk().await {
                Ok(Some(bytes)) => self.reader.push(&bytes),
                Ok(None) => return Err(lost("the stream ended", endpoint)),
                Err(why) => return Err(lost(&why, endpoint)),
            }
        }
    }

    /// The next message, without what is hidden at this endpoint.
    pub(crate) async fn next_message(&mut self, endpoint: &Endpoint) -> Result<Message> {
        loop {
            let event = self.next_event(endpoint).await?;
            // An event without text only marks a place; other types are none of ours.
            if event.kind() != "message" || event.data.is_empty() {
                continue;
            }
            let message = Message::read(&event.data, &endpoint.hidden());
            return message.ok_or_else(|| not_mcp("an event is no message of MCP", endpoint));
        }
    }

    /// The point after which it can be resumed.
    pub(crate) fn resume_point(&self) -> &ResumePoint {
        self.reader.resume_point()
    }

    /// Reads what may still come to its end, so that the connection can be used again.
    pub(crate) async fn finish(mut self) {
        let mut bytes = 0;
        while bytes <= AFTER_BYTES_MAX
            && let Ok(Some(part)) = self.response.chunk().await
        {
            bytes += part.len();
        }
    }
}

/// Whether a stream ended or its connection broke, so that it may be taken up again.
pub(crate) fn is_lost(error: &PeerError) -> bool {
    error.kind == PeerErrorKind::Unreachable
}

fn lost(why: &str, endpoint: &Endpoint) -> PeerError {
    let what = format!("sent no answer: {}", endpoint.told(why));
    endpoint.error(CallProgress::Unknown, PeerErrorKind::Unreachable, &what)
}

fn unread(why: &SseError, endpoint: &Endpoint) -> PeerError {
    match why {
        SseError::TooLarge(bytes_max) => too_large(endpoint, *bytes_max),
        SseError::NotText => not_mcp(&why.to_string(), endpoint),
    }
}

fn not_mcp(why: &str, endpoint: &Endpoint) -> PeerError {
    let what = format!("sent what cannot be read: {why}");
    endpoint.error(CallProgress::Unknown, PeerErrorKind::NotMcp, &what)
}
