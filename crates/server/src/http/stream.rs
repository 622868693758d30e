//! What event streams share: the answer, how many there may be, and what wakes one.

use crate::doors::{Closing, Doors};
use crate::error::Failure;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use engine::Watch;
use engine::refusal::{Refusal, RefusalKind};
use futures::future::{Either, select};
use futures::{Stream, StreamExt};
use serde::Serialize;
use serde_json::json;
use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

const HEARTBEAT_MS: u64 = 15_000;
/// How soon a client that lost the stream comes back.
pub(super) const RETRY: Duration = Duration::from_millis(2_000);
/// What a client that comes back saw last.
pub(super) const LAST_EVENT_ID: &str = "last-event-id";

/// A stream of events as an answer.
pub(super) fn answer(events: impl Stream<Item = Event> + Send + 'static) -> Response {
    let events = events.map(Ok::<Event, Infallible>);
    ([("x-accel-buffering", "no")], Sse::new(events)).into_response()
}

/// Room for one more stream.
pub(super) fn permit(doors: &Doors) -> Result<OwnedSemaphorePermit, Failure> {
    doors.streams.clone().try_acquire_owned().map_err(|_| {
        let max = doors.limits().streams_max;
        let message = format!("{max} event streams are open, and no more are allowed");
        let refusal = Refusal::new(RefusalKind::TooMany, "too_many_streams", message)
            .hint("close one, or raise `streams_max` in `[limits]`");
        refusal.into()
    })
}

/// Why a wait ended.
pub(super) enum Woken {
    /// Something was committed.
    Commit,
    /// Nothing was, for so long that the client must hear that we are still here.
    Heartbeat,
    /// The server is closing.
    Closing,
}

/// What wakes a stream.
pub(super) struct Pulse {
    watch: Watch,
    closing: Closing,
}

impl Pulse {
    /// Commits that this watch sees, and the end of the server.
    pub(super) fn new(watch: Watch, doors: &Doors) -> Self {
        Self { watch, closing: doors.closing() }
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self, doors: &Doors) -> Woken {
        let clock = doors.engine.clock().as_ref();
        let changed = engine::timeout(clock, HEARTBEAT_MS, self.watch.changed());
        match select(pin!(changed), pin!(self.closing.begun())).await {
            Either::Left((Some(()), _)) => Woken::Commit,
            Either::Left((None, _)) => Woken::Heartbeat,
            Either::Right(((), _)) => Woken::Closing,
        }
    }
}

/// An event with a name.
pub(super) fn told(name: &str, body: &impl Serialize) -> Event {
    // These bodies are plain data; writing them as JSON cannot fail.
    let text = serde_json::to_string(body).unwrap_or_default();
    Event::default().event(name).data(text)
}

/// The last event of a stream that cannot go on.
pub(super) fn broken(failure: &Failure) -> Event {
    told("error", &json!({"code": failure.code(), "detail": failure.message()}))
}

/// An event that only says that we are still here.
pub(super) fn heartbeat() -> Event {
    Event::default().comment("still here")
}
