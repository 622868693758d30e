//! Reads server-sent events of our server, and follows a request in a thread.

use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{CUT, Client, innermost};
use outbound::sse::{Event, ResumePoint, SseReader};
use reqwest::Response;
use reqwest::header::LOCATION;
use serde_json::Value;
use std::time::Duration;

/// The server says something every 15 seconds; silence beyond this is a dead connection.
const SILENCE_LIMIT: Duration = Duration::from_secs(45);
/// How often a stream that was cut is opened again before it is given up, and the first pause.
pub(crate) const REOPENS_MAX: u32 = 5;
pub(crate) const REOPEN_PAUSE: Duration = Duration::from_millis(500);
/// An event beyond this is not one of ours.
const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Why nothing more comes of an answer that has come to its end.
pub(crate) const CLOSED: &str = "the server closed the connection";

/// The events of an answer.
#[derive(Debug)]
pub(crate) struct SseStream {
    response: Response,
    reader: SseReader,
}

impl SseStream {
    /// Nothing was read yet.
    pub(crate) fn new(response: Response) -> Self {
        Self::resumed(response, ResumePoint::default())
    }

    /// Those of a stream that is taken up again at this place.
    pub(crate) fn resumed(response: Response, place: ResumePoint) -> Self {
        Self { response, reader: SseReader::resumed(EVENT_BYTES_MAX, place) }
    }

    /// Where it could be taken up again.
    pub(crate) fn place(&self) -> &ResumePoint {
        self.reader.resume_point()
    }

    /// The next event, or why the stream was cut. It may be asked for again at any time: nothing is
    /// lost.
    pub(crate) async fn next(&mut self) -> Result<Result<Event, String>> {
        loop {
            let next = self.reader.next_event();
            let next =
                next.map_err(|why| Failure::new(Exit::Upstream, "event", why.to_string()))?;
            if let Some(event) = next {
                return Ok(Ok(event));
            }
            let chunk = match tokio::time::timeout(SILENCE_LIMIT, self.response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => return Ok(Err(CLOSED.to_owned())),
                Ok(Err(error)) => return Ok(Err(innermost(&error))),
                Err(_) => return Ok(Err(format!("{} s of silence", SILENCE_LIMIT.as_secs()))),
            };
            self.reader.push(&chunk);
        }
    }
}

/// A request that is under way.
#[derive(Debug)]
pub(crate) struct Stream {
    events: SseStream,
    /// The run that it is.
    pub(crate) run: Option<String>,
}

impl Stream {
    /// Says something in a thread, or answers in one: `endpoint` is `run` or `resume`. What was begun
    /// under this key already is followed and not done again.
    pub(crate) async fn begin(
        client: &Client,
        endpoint: &str,
        key: &str,
        body: &Value,
    ) -> Result<Self> {
        let response = client.thread_stream(endpoint, key, body).await?;
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let run = location.and_then(|path| path.rsplit('/').next()).map(str::to_owned);
        Ok(Self { events: SseStream::new(response), run })
    }

    /// The next event. It may be asked for again at any time: nothing is lost.
    pub(crate) async fn next(&mut self) -> Result<Event> {
        self.events.next().await?.map_err(|why| cut(&why))
    }
}

fn cut(why: &str) -> Failure {
    let what = format!("the stream was cut before the answer came: {why}");
    Failure::new(Exit::Unreachable, CUT, what)
        .hint("the agent continues; `waypost session show` shows its status")
}
