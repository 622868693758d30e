//! State that a line shares with its tasks: the endpoint, what was negotiated, the waiters for
//! answers, and the end of the line.

use super::super::line::{Incoming, PeerError, PeerErrorKind, Result};
use super::answer;
use super::endpoint::Endpoint;
use super::negotiated::{AgreedEra, MessageHeaders};
use super::response::Response;
use super::stream::EventStream;
use super::waiters::WaiterTable;
use crate::RemoteParts;
use kernel::tool::call::CallProgress;
use outbound::sse::ResumePoint;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use wire::jsonrpc::{self, Id};

/// How many pieces of news wait to be heard; the stream that brings them waits with them.
const NEWS_MAX: usize = 64;
/// The turn after the last.
const CLOSED: u64 = u64::MAX;
/// How long a cancellation may take to be sent.
const CANCEL_MS: u64 = 5_000;
/// How long the calls of a new session wait until its stream of news is answered. Some servers keep
/// the head of that answer back until there is news.
const OPENING_MS: u64 = 2_000;

pub(super) struct Shared {
    /// The way to the other side.
    pub(super) endpoint: Endpoint,
    /// Time, tasks and limits.
    pub(super) parts: RemoteParts,
    /// Waiters for answers on another stream.
    pub(super) waiting: WaiterTable,
    /// Where news go.
    pub(super) server_messages: mpsc::Sender<Incoming>,
    agreed: Mutex<AgreedEra>,
    /// When the stream of news was asked for, by the time that has passed: a clock that is set must
    /// not hold up calls. None where it was answered or is not asked for.
    opening: watch::Sender<Option<Duration>>,
    /// Each handshake begins a new turn: streams of the one before are let go.
    turn: watch::Sender<u64>,
}

impl Shared {
    /// The beginning of a line, and where its news come out.
    pub(super) fn new(
        endpoint: Endpoint,
        parts: RemoteParts,
    ) -> (Arc<Self>, mpsc::Receiver<Incoming>) {
        let (server_messages, heard) = mpsc::channel(NEWS_MAX);
        let shared = Self {
            endpoint,
            parts,
            waiting: WaiterTable::default(),
            server_messages,
            agreed: Mutex::default(),
            opening: watch::Sender::new(None),
            turn: watch::Sender::new(0),
        };
        (Arc::new(shared), heard)
    }

    pub(super) fn agreed(&self) -> MutexGuard<'_, AgreedEra> {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handshake begins: what was agreed before counts no more.
    pub(super) fn begin_anew(&self) {
        *self.agreed() = AgreedEra::Nothing;
        self.opened_news();
        self.turn.send_modify(|turn| {
            if *turn != CLOSED {
                *turn += 1;
            }
        });
    }

    /// The stream of news is about to be asked for.
    pub(super) fn opens_news(&self) {
        self.opening.send_replace(Some(self.parts.clock.elapsed()));
    }

    /// The stream of news was answered, with a stream or without, or is not asked for any more.
    pub(super) fn opened_news(&self) {
        self.opening.send_replace(None);
    }

    /// Waits until the stream of news of a new session was answered, though not for long. A server
    /// may ask there what belongs to a call, and what it asks before there is a stream is lost.
    pub(super) async fn hears_news(&self) {
        let since = *self.opening.borrow();
        let Some(since) = since else { return };
        let waited = self.parts.clock.elapsed().saturating_sub(since);
        let left = Duration::from_millis(OPENING_MS).saturating_sub(waited);
        if left.is_zero() {
            return;
        }
        let left_ms = u64::try_from(left.as_millis()).unwrap_or(OPENING_MS);
        let mut opening = self.opening.subscribe();
        let opened = async { drop(opening.wait_for(Option::is_none).await) };
        // Whichever comes first, the call is sent.
        let _ = self.parts.within(left_ms, opened).await;
    }

    pub(super) fn turn(&self) -> u64 {
        *self.turn.borrow()
    }

    /// Waits until this turn is over.
    pub(super) async fn turned(&self, mine: u64) {
        let mut turn = self.turn.subscribe();
        drop(turn.wait_for(|turn| *turn != mine).await);
    }

    /// Ends everything.
    pub(super) fn close(&self) {
        self.turn.send_replace(CLOSED);
        self.opened_news();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.turn() == CLOSED
    }

    /// Refuses to send once the line is closed.
    pub(super) fn check_open(&self) -> Result<()> {
        if self.is_closed() { Err(self.closed_error(CallProgress::NotSent)) } else { Ok(()) }
    }

    /// Waits until it is closed.
    pub(super) async fn closed(&self) {
        let mut turn = self.turn.subscribe();
        drop(turn.wait_for(|turn| *turn == CLOSED).await);
    }

    /// The error of whatever is under way when it is closed, or begins later.
    pub(super) fn closed_error(&self, how: CallProgress) -> PeerError {
        self.endpoint.error(how, PeerErrorKind::Closed, "is not connected any more")
    }

    /// The error of what took too long.
    pub(super) fn late(&self, ms: u64) -> PeerError {
        let what = format!("did not answer within {ms} ms");
        self.endpoint.error(CallProgress::Unknown, PeerErrorKind::Timeout, &what)
    }

    /// The stream of an answer: a new one, or one that is taken up again at a place.
    pub(super) fn stream(&self, response: Response, resume_point: ResumePoint) -> EventStream {
        EventStream::new(response, self.parts.limits.call_output_bytes_max, resume_point)
    }

    /// Sends a message that has no answer, within so many milliseconds.
    pub(super) async fn tell(
        &self,
        manner: MessageHeaders,
        message: String,
        ms: u64,
    ) -> Result<()> {
        let telling = async {
            let response = self.endpoint.post(manner.headers, message).await?;
            answer::accepted(&self.endpoint, response, manner.in_session).await
        };
        self.parts.within(ms, telling).await.unwrap_or_else(|| Err(self.late(ms)))
    }
}

/// A request under way in a version with a handshake. Unless it is done, the other side is notified
/// that no one waits for it any more. (The stateless version needs no words: the stream is closed.)
pub(super) struct Cancel(Option<Cancellation>);

/// A request to cancel, and the message that cancels it.
struct Cancellation {
    shared: Arc<Shared>,
    id: Id,
    manner: MessageHeaders,
}

impl Cancel {
    /// How to notify it; nothing to send where there is none.
    pub(super) fn new(shared: &Arc<Shared>, id: &Id, manner: Option<MessageHeaders>) -> Self {
        Self(manner.map(|manner| Cancellation { shared: shared.clone(), id: id.clone(), manner }))
    }

    /// There is nothing to cancel any more.
    pub(super) fn done(&mut self) {
        self.0 = None;
    }

    /// As `done`, if this error says that the other side does nothing any more.
    pub(super) fn failed(&mut self, error: &PeerError) {
        if error.how != CallProgress::Unknown {
            self.done();
        }
    }
}

impl Drop for Cancel {
    fn drop(&mut self) {
        let open = self.0.take().filter(|cancelled| !cancelled.shared.is_closed());
        let Some(Cancellation { shared, id, manner }) = open else { return };
        let id: Value = serde_json::from_str(id.as_json()).unwrap_or_default();
        let params = json!({"requestId": id, "reason": "no one waits for the answer any more"});
        let message = jsonrpc::notification("notifications/cancelled", &params);
        let spawn = shared.parts.spawn.clone();
        spawn.task(
            "mcp cancel",
            Box::pin(async move {
                // Best effort: what it cannot reach ends by itself.
                let _ = shared.tell(manner, message, CANCEL_MS).await;
            }),
        );
    }
}
