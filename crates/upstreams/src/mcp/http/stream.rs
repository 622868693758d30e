//! A stream of messages that is an HTTP answer.

use super::super::line::{PeerError, PeerErrorKind};
use super::answer::too_large;
use super::endpoint::Endpoint;
use super::message::Message;
use super::response::Response;
use kernel::tool::call::HowFar;
use outbound::sse::{Event, SseError, SseReader, StreamPlace};

/// How much may follow an answer before its connection is given up.
const AFTER_BYTES_MAX: usize = 64 * 1024;

/// A stream that is being read.
pub(crate) struct EventStream {
    response: Response,
    reader: SseReader,
}

/// Why nothing more comes from a stream.
#[derive(Debug)]
pub(crate) enum Cut {
    /// It ended or its connection broke: it may be taken up again.
    Lost(String),
    /// An event is larger than this.
    TooLarge(usize),
    /// What comes is not MCP.
    NotMcp(String),
}

impl EventStream {
    /// The stream of this answer, whose messages have at most so many bytes: a new one, or one that
    /// is taken up again at a place.
    pub(crate) fn new(response: Response, bytes_max: usize, place: StreamPlace) -> Self {
        Self { response, reader: SseReader::resumed(bytes_max, place) }
    }

    /// The next event that has data.
    pub(crate) async fn next_event(&mut self) -> Result<Event, Cut> {
        loop {
            if let Some(event) = self.reader.next_event()? {
                return Ok(event);
            }
            match self.response.chunk().await {
                Ok(Some(bytes)) => self.reader.push(&bytes),
                Ok(None) => return Err(Cut::Lost("the stream ended".to_owned())),
                Err(why) => return Err(Cut::Lost(why)),
            }
        }
    }

    /// The next message, without what is hidden at this endpoint.
    pub(crate) async fn next_message(&mut self, endpoint: &Endpoint) -> Result<Message, Cut> {
        loop {
            let event = self.next_event().await?;
            // An event without text only marks a place; other types are none of ours.
            if event.kind() != "message" || event.data.is_empty() {
                continue;
            }
            let message = Message::read(&event.data, &endpoint.hidden());
            return message.ok_or_else(|| Cut::NotMcp("an event is no message of MCP".to_owned()));
        }
    }

    /// Where it could be taken up again.
    pub(crate) fn place(&self) -> &StreamPlace {
        self.reader.place()
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

impl Cut {
    /// The error of a request that was waited for.
    pub(crate) fn error(&self, endpoint: &Endpoint) -> PeerError {
        match self {
            Cut::Lost(why) => {
                let what = format!("sent no answer: {}", endpoint.told(why));
                endpoint.error(HowFar::Unknown, PeerErrorKind::Unreachable, &what)
            }
            Cut::TooLarge(bytes_max) => too_large(endpoint, *bytes_max),
            Cut::NotMcp(why) => {
                let what = format!("sent what cannot be read: {why}");
                endpoint.error(HowFar::Unknown, PeerErrorKind::NotMcp, &what)
            }
        }
    }
}

impl From<SseError> for Cut {
    fn from(error: SseError) -> Self {
        match error {
            SseError::TooLarge(bytes_max) => Cut::TooLarge(bytes_max),
            SseError::NotText => Cut::NotMcp(error.to_string()),
        }
    }
}
