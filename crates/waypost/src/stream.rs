//! One request in a thread, followed as it goes.

use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::sse::{SseEvent, SseReader};
use reqwest::Response;
use reqwest::header::LOCATION;
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;

/// The server says something every 15 seconds; silence beyond this is a dead connection.
const SILENCE_LIMIT: Duration = Duration::from_secs(45);

/// A request that is under way.
#[derive(Debug)]
pub(crate) struct Stream {
    response: Response,
    reader: SseReader,
    waiting: VecDeque<SseEvent>,
    /// The run that it is.
    pub(crate) run: Option<String>,
}

impl Stream {
    /// Says something in a thread, or answers in one: `door` is `run` or `resume`.
    pub(crate) async fn begin(client: &Client, door: &str, body: &Value) -> Result<Self, Failure> {
        let response = client.thread_stream(door, body).await?;
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let run = location.and_then(|path| path.rsplit('/').next()).map(str::to_owned);
        Ok(Self { response, reader: SseReader::default(), waiting: VecDeque::new(), run })
    }

    /// The next event. It may be asked for anew at any time: nothing is lost.
    pub(crate) async fn next(&mut self) -> Result<SseEvent, Failure> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Ok(event);
            }
            let chunk = match tokio::time::timeout(SILENCE_LIMIT, self.response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => return Err(cut("the server closed it")),
                Ok(Err(error)) => return Err(cut(&error.to_string())),
                Err(_) => return Err(cut("nothing was heard for too long")),
            };
            let Some(events) = self.reader.read(&chunk) else {
                return Err(Failure::new(Exit::Upstream, "event", "an event is too large"));
            };
            self.waiting.extend(events);
        }
    }
}

fn cut(why: &str) -> Failure {
    let what = format!("the stream was cut before the answer came: {why}");
    Failure::new(Exit::Unreachable, "stream_cut", what)
        .hint("the agent goes on; `waypost session show` tells where it stands")
}
