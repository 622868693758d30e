//! The events of an answer of our server.

use crate::exit::{Exit, Failure};
use outbound::sse::{Event, SseReader};
use reqwest::Response;
use std::time::Duration;

/// The server says something every 15 seconds; silence beyond this is a dead connection.
const SILENCE_LIMIT: Duration = Duration::from_secs(45);
/// An event beyond this is not one of ours.
const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The events of an answer.
#[derive(Debug)]
pub(crate) struct SseStream {
    response: Response,
    reader: SseReader,
}

impl SseStream {
    /// Nothing was read yet.
    pub(crate) fn new(response: Response) -> Self {
        Self { response, reader: SseReader::new(EVENT_BYTES_MAX) }
    }

    /// The next event, or why the stream was cut. It may be asked for again at any time: nothing is
    /// lost.
    pub(crate) async fn next(&mut self) -> Result<Result<Event, String>, Failure> {
        loop {
            let next = self.reader.next_event();
            let next =
                next.map_err(|why| Failure::new(Exit::Upstream, "event", why.to_string()))?;
            if let Some(event) = next {
                return Ok(Ok(event));
            }
            let chunk = match tokio::time::timeout(SILENCE_LIMIT, self.response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => return Ok(Err("the server closed it".to_owned())),
                Ok(Err(error)) => return Ok(Err(error.to_string())),
                Err(_) => return Ok(Err(format!("{} s of silence", SILENCE_LIMIT.as_secs()))),
            };
            self.reader.push(&chunk);
        }
    }
}
