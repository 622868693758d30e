//! What event streams share: how one begins, continues and ends, how many there may be, and what
//! wakes one.

use crate::problem::{Failure, Result};
use crate::request::server_state::{Closing, ServerState, Shared, StreamPlace};
use axum::http::StatusCode;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use engine::ListVersion;
use futures::future::{BoxFuture, Either, pending, ready, select};
use futures::{Stream, StreamExt, stream};
use kernel::tool::call::Caller;
use serde::Serialize;
use serde_json::json;
use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

/// A client that hears nothing for so long hears that we are still here.
const HEARTBEAT_MS: u64 = 15_000;
/// How often the stream checks whether its reader may see something else.
const RIGHTS_MS: u64 = 500;
/// How soon a client that lost the stream comes back.
pub const RETRY: Duration = Duration::from_millis(2_000);
/// What a client that comes back saw last.
pub const LAST_EVENT_ID: &str = "last-event-id";

/// What a stream tells.
pub trait Source: Send + 'static {
    /// An event as it goes out.
    type Event: Send + 'static;

    /// What it begins with, where that is no event like the others.
    fn first(
        &mut self,
        server: &ServerState,
    ) -> impl Future<Output = Result<Option<Self::Event>>> + Send;

    /// What there is to tell now.
    fn try_next(
        &mut self,
        server: &ServerState,
    ) -> impl Future<Output = Result<SourceItem<Self::Event>>> + Send;

    /// Waits until there may be more.
    fn wait(&mut self) -> impl Future<Output = ()> + Send;

    /// The last event, where it cannot continue.
    fn broken(&self, server: &ServerState, failure: Failure) -> Self::Event;
}

/// What a source has without waiting.
pub enum SourceItem<E = Event> {
    Event(E),
    /// The last one there will be.
    Last(E),
    /// There is nothing more to tell.
    End,
    /// Nothing, until something is committed.
    Nothing,
}

/// What a stream is made of.
pub enum Piece<E> {
    Event(E),
    /// There was none for a while.
    StillHere,
    /// The server stops, and the stream with it.
    Closing,
}

/// A stream of server-sent events as an answer.
pub fn answer(server: Shared, source: impl Source<Event = Event>, permit: StreamPlace) -> Response {
    let events = pieces(server, source, permit).filter_map(|piece| {
        ready(match piece {
            Piece::Event(event) => Some(Ok::<Event, Infallible>(event)),
            Piece::StillHere => Some(Ok(Event::default().comment("still here"))),
            // Without a last event: the client comes back when the server does.
            Piece::Closing => None,
        })
    });
    ([("x-accel-buffering", "no")], Sse::new(events)).into_response()
}

/// The same before it is written.
pub fn pieces<S: Source>(
    server: Shared,
    source: S,
    permit: StreamPlace,
) -> impl Stream<Item = Piece<S::Event>> + Send + 'static {
    let closing = server.closing();
    let stage = Stage::Started;
    let heartbeat = None;
    let tail = Tail { server, source, stage, closing, heartbeat, _permit: permit };
    stream::unfold(tail, |mut tail| async move {
        let piece = tail.next().await?;
        Some((piece, tail))
    })
}

/// The last event of a stream that cannot continue, where it has none of its own.
pub fn broken_off(failure: &Failure) -> Event {
    named_event("error", &json!({"code": failure.code(), "detail": failure.message()}))
}

/// How far a stream is.
enum Stage {
    Started,
    Following,
    Over,
}

/// One client's stream.
struct Tail<S> {
    server: Shared,
    source: S,
    stage: Stage,
    closing: Closing,
    /// Ends when the client must hear that we are still here; none before the first wait for the
    /// next piece. Not every wait ends with a piece.
    heartbeat: Option<BoxFuture<'static, ()>>,
    _permit: StreamPlace,
}

impl<S: Source> Tail<S> {
    /// The next piece, or none after the last one.
    async fn next(&mut self) -> Option<Piece<S::Event>> {
        self.heartbeat = None;
        match self.tell().await {
            Ok(piece) => piece,
            Err(failure) => {
                self.stage = Stage::Over;
                Some(Piece::Event(self.source.broken(&self.server, failure)))
            }
        }
    }

    async fn tell(&mut self) -> Result<Option<Piece<S::Event>>> {
        if let Stage::Started = self.stage {
            self.stage = Stage::Following;
            let first = self.source.first(&self.server).await?;
            if first.is_some() {
                return Ok(first.map(Piece::Event));
            }
        }
        while let Stage::Following = self.stage {
            // Before the read: what changes after it ends the wait.
            let rights = self.server.engine.tools().list_version();
            match self.source.try_next(&self.server).await? {
                SourceItem::Event(event) => return Ok(Some(Piece::Event(event))),
                SourceItem::Last(event) => {
                    self.stage = Stage::Over;
                    return Ok(Some(Piece::Event(event)));
                }
                SourceItem::End => {
                    self.stage = Stage::Over;
                    return Ok(None);
                }
                SourceItem::Nothing => {}
            }
            match self.wait(rights.as_ref()).await {
                WakeReason::Source => {}
                WakeReason::Heartbeat => return Ok(Some(Piece::StillHere)),
                WakeReason::Closing => {
                    self.stage = Stage::Over;
                    return Ok(Some(Piece::Closing));
                }
            }
        }
        Ok(None)
    }

    async fn wait(&mut self, rights: Option<&ListVersion>) -> WakeReason {
        let Self { server, source, closing, heartbeat, .. } = self;
        let server: &ServerState = server;
        let clock = server.engine.clock().as_ref();
        let heartbeat = heartbeat.get_or_insert_with(|| clock.sleep_ms(HEARTBEAT_MS));
        let woken = pin!(source.wait());
        let closed = pin!(closing.begun());
        let judged = pin!(judged_anew(server, rights));
        match select(select(woken, judged), select(closed, heartbeat)).await {
            // Who may not read it any more finds nothing in the next read.
            Either::Left(_) => WakeReason::Source,
            Either::Right((Either::Left(_), _)) => WakeReason::Closing,
            Either::Right((Either::Right(_), _)) => WakeReason::Heartbeat,
        }
    }
}

/// Waits until policy may say something else than in this version; for ever where it allows
/// everything. Without a version, as where it reads the time, that may be at any moment.
async fn judged_anew(server: &ServerState, before: Option<&ListVersion>) {
    if server.entrance.base().is_none() {
        return pending().await;
    }
    let clock = server.engine.clock();
    let Some(before) = before else { return clock.sleep_ms(RIGHTS_MS).await };
    while server.engine.tools().list_version().as_ref() == Some(before) {
        clock.sleep_ms(RIGHTS_MS).await;
    }
}

/// Room for one more stream of this caller.
pub fn permit(server: &ServerState, caller: &Caller) -> Result<StreamPlace> {
    let refused = |message: String, hint: &str| {
        Failure::new(StatusCode::TOO_MANY_REQUESTS, "too_many_streams", message).hint(hint)
    };
    server.free_stream(caller).map_err(|full| match full {
        Some(full) => refused(full.message(), full.hint()).quota(full.quota()),
        None => {
            let max = server.limits().streams_max;
            let message = format!("{max} event streams are open, and no more are allowed");
            refused(message, "close one, or raise `streams_max` in `[limits]`")
        }
    })
}

/// Why a wait ended.
enum WakeReason {
    /// There may be more to tell.
    Source,
    /// There was not, for so long that the client must hear that we are still here.
    Heartbeat,
    /// The server is closing.
    Closing,
}

pub fn named_event(name: &str, body: &impl Serialize) -> Event {
    // These bodies are plain data; writing them as JSON cannot fail.
    let text = serde_json::to_string(body).unwrap_or_default();
    Event::default().event(name).data(text)
}
