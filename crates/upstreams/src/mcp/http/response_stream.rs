//! A request whose answer comes as a stream: it is read until the answer, resumed after a lost
//! connection, and cancelled when nobody waits for it or its time is over.

use super::super::line::{Incoming, Outgoing, PeerError, PeerErrorKind, Replies, Result};
use super::answer;
use super::message::Message;
use super::negotiated::MessageHeaders;
use super::response::Response;
use super::shared::{Cancel, Shared};
use super::stream::{EventStream, is_lost};
use futures::future::pending;
use kernel::tool::call::CallProgress;
use kernel::values::ids::Millis;
use outbound::sse::ResumePoint;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::mpsc;
use wire::jsonrpc::Id;

/// How many messages wait for the reader of the replies; the stream waits with them.
const REPLIES_MAX: usize = 16;
/// How long to wait before a stream is taken up again, where the other side does not say.
pub(super) const RETRY_MS: u64 = 1_000;
/// The shortest such wait, whatever the other side says.
pub(super) const RETRY_MS_MIN: u64 = 100;
/// How long an answered stream may take to end, so that its connection can be used again.
const FINISH_MS: u64 = 1_000;

/// One request that is followed.
pub(super) struct Follow {
    shared: Arc<Shared>,
    id: Id,
    manner: MessageHeaders,
    timeout_ms: u64,
    deadline: Millis,
    cancel: Cancel,
    replies: mpsc::Sender<Incoming>,
}

/// How it ended.
enum End {
    /// With an answer, in the stream that may still have an end to read.
    Answered(Incoming, Option<Box<EventStream>>),
    /// Without one.
    Broken(PeerError),
    /// No one waits for it.
    Dropped,
}

impl Follow {
    /// Follows a request that was sent in this manner.
    pub(super) fn new(
        shared: &Arc<Shared>,
        request: &Outgoing,
        manner: MessageHeaders,
        cancel: Cancel,
        deadline: Millis,
    ) -> (Self, Replies) {
        let (replies, receiver) = mpsc::channel(REPLIES_MAX);
        let follow = Self {
            shared: shared.clone(),
            id: request.id.clone(),
            manner,
            timeout_ms: request.timeout_ms,
            deadline,
            cancel,
            replies,
        };
        (follow, receiver.into())
    }

    /// Reads the answer from this stream.
    pub(super) async fn stream(self, response: Response) {
        let reading = async {
            match self.read(response).await {
                Ok((answer, stream)) => End::Answered(answer, Some(Box::new(stream))),
                Err(error) => End::Broken(error),
            }
        };
        let end = self.end(reading).await;
        self.settle(end).await;
    }

    /// Sends the request, whose answer comes on another stream.
    pub(super) async fn post(self, body: String) {
        let posting = async {
            let posted = self.shared.endpoint.post(self.manner.headers.clone(), body).await;
            let accepted = match posted {
                Ok(response) => answer::accepted(&self.shared.endpoint, response, false).await,
                Err(error) => Err(error),
            };
            match accepted {
                Ok(()) => pending().await,
                Err(error) => End::Broken(error),
            }
        };
        let end = self.end(posting).await;
        self.settle(end).await;
    }

    /// The first end of all that it may come to.
    async fn end(&self, own: impl Future<Output = End> + Send) -> End {
        let shared = &*self.shared;
        let (_waiter, answer) = shared.waiting.enter(&self.id);
        tokio::select! {
            biased;
            end = own => end,
            Ok(answer) = answer => End::Answered(answer, None),
            () = self.replies.closed() => End::Dropped,
            () = shared.parts.clock.sleep_until(self.deadline) => {
                End::Broken(shared.late(self.timeout_ms))
            }
            () = shared.closed() => End::Broken(shared.closed_error(CallProgress::Unknown)),
        }
    }

    async fn settle(mut self, end: End) {
        let (last, rest) = match end {
            // The stream was closed with its reader; `cancel` says the rest.
            End::Dropped => return,
            End::Answered(answer, stream) => {
                self.cancel.done();
                (answer, stream)
            }
            End::Broken(error) => {
                self.cancel.failed(&error);
                (Incoming::Broken(error), None)
            }
        };
        // The one who waited may have gone just now.
        let _ = self.replies.send(last).await;
        if let Some(stream) = rest {
            drop(self.replies);
            let _ = self.shared.parts.within(FINISH_MS, stream.finish()).await;
        }
    }

    async fn read(&self, response: Response) -> Result<(Incoming, EventStream)> {
        let mut stream = self.shared.stream(response, ResumePoint::default());
        loop {
            match self.answer(&mut stream).await {
                Ok(answer) => return Ok((answer, stream)),
                Err(error) => stream = self.taken_up(stream, error).await?,
            }
        }
    }

    /// The answer; what comes before it is passed on.
    async fn answer(&self, stream: &mut EventStream) -> Result<Incoming> {
        loop {
            match stream.next_message(&self.shared.endpoint).await? {
                Message::Told(told) => {
                    // Where no one reads them any more, that ends it.
                    let _ = self.replies.send(told).await;
                }
                Message::Answer { id: Some(id), answer } if id == self.id => return Ok(answer),
                Message::Answer { id: Some(id), answer } => {
                    self.shared.waiting.deliver(&id, answer);
                }
                // Something is wrong with a request on this stream, and it has only this one.
                Message::Answer { id: None, answer: Incoming::Error(error) } => {
                    return Ok(Incoming::Error(error));
                }
                Message::Answer { id: None, .. } => {}
            }
        }
    }

    /// The same stream, taken up again after the last event that was read. The other side does not
    /// take a lost stream for a cancelled request in the versions that can do this.
    async fn taken_up(&self, lost: EventStream, error: PeerError) -> Result<EventStream> {
        let resume_point = lost.resume_point().clone();
        drop(lost);
        let can_be = is_lost(&error) && self.manner.legacy;
        let Some(last_id) = resume_point.last_id.clone().filter(|_| can_be) else {
            return Err(error);
        };
        let wait_ms = resume_point.retry_ms.unwrap_or(RETRY_MS).max(RETRY_MS_MIN);
        let mut failures = 0;
        loop {
            let ms = wait_ms.max(self.shared.parts.backoff_ms(failures));
            self.shared.parts.clock.sleep_ms(ms).await;
            let MessageHeaders { headers, in_session, .. } = self.manner.clone();
            let endpoint = &self.shared.endpoint;
            match answer::opened(endpoint, headers, Some(&last_id), in_session).await {
                Ok(response) => return Ok(self.shared.stream(response, resume_point)),
                Err(error) if may_pass(&error) => failures += 1,
                // The request was sent long ago: no one knows the outcome.
                Err(refused) => {
                    let message = format!("{}; then: {}", error.message, refused.message);
                    return Err(PeerError { how: CallProgress::Unknown, message, ..refused });
                }
            }
        }
    }
}

/// Whether the same may go well a little later.
pub(super) fn may_pass(error: &PeerError) -> bool {
    // A session or a line that is gone does not come back on the same connection.
    let is_gone = matches!(error.kind, PeerErrorKind::Gone | PeerErrorKind::Closed);
    error.kind.is_passing() && !is_gone
}
