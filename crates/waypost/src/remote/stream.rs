//! One request in a thread, followed as it goes.

use crate::exit::{Exit, Failure};
use crate::remote::client::Client;
use crate::remote::sse::SseStream;
use outbound::sse::Event;
use reqwest::header::LOCATION;
use serde_json::Value;

/// A request that is under way.
#[derive(Debug)]
pub(crate) struct Stream {
    events: SseStream,
    /// The run that it is.
    pub(crate) run: Option<String>,
}

impl Stream {
    /// Says something in a thread, or answers in one: `door` is `run` or `resume`.
    pub(crate) async fn begin(client: &Client, door: &str, body: &Value) -> Result<Self, Failure> {
        let response = client.thread_stream(door, body).await?;
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let run = location.and_then(|path| path.rsplit('/').next()).map(str::to_owned);
        Ok(Self { events: SseStream::new(response), run })
    }

    /// The next event. It may be asked for again at any time: nothing is lost.
    pub(crate) async fn next(&mut self) -> Result<Event, Failure> {
        self.events.next().await?.map_err(|why| cut(&why))
    }
}

fn cut(why: &str) -> Failure {
    let what = format!("the stream was cut before the answer came: {why}");
    Failure::new(Exit::Unreachable, "stream_cut", what)
        .hint("the agent continues; `waypost session show` shows its status")
}
