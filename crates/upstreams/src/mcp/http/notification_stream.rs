//! The stream of messages that belong to no request, in the versions with a handshake. A server
//! need not offer it; if it does, the stream is kept open and resumed for as long as the session
//! lasts.

use super::super::line::{Incoming, PeerError, PeerErrorKind, Result};
use super::answer;
use super::message::Message;
use super::negotiated::MessageHeaders;
use super::response_stream::{RETRY_MS, RETRY_MS_MIN, may_pass};
use super::shared::Shared;
use super::stream::{EventStream, is_lost};
use futures::future::select;
use outbound::sse::ResumePoint;
use std::pin::pin;
use std::sync::Arc;

/// A stream that lasted so long was no failure, though it brought nothing.
const STEADY_MS: u64 = 10_000;

/// Listens until this turn is over, or the other side has no such stream.
pub(super) async fn listen(shared: Arc<Shared>, manner: MessageHeaders, turn: u64) {
    select(pin!(listen_on(&shared, &manner)), pin!(shared.turned(turn))).await;
}

/// All that came on a stream was passed on.
pub(super) struct StreamEnd {
    /// Why no more comes.
    cut: PeerError,
    /// Whether anything came.
    any: bool,
}

async fn listen_on(shared: &Shared, manner: &MessageHeaders) {
    let parts = &shared.parts;
    let mut resume_point = ResumePoint::default();
    // How often in a row there was no stream, or one that ended soon and brought nothing.
    let mut failures = 0;
    let mut in_vain = 0;
    loop {
        let opened = open(shared, manner, &resume_point).await;
        shared.opened_news();
        let wait_ms = match opened {
            Ok(mut stream) => {
                failures = 0;
                let since = parts.clock.now();
                let Some(StreamEnd { cut, any }) = pass_on(shared, &mut stream).await else {
                    return;
                };
                let is_good = any || parts.clock.now() >= since.plus_ms(STEADY_MS);
                in_vain = if is_good { 0 } else { in_vain + 1 };
                resume_point = stream.resume_point().clone();
                if !is_lost(&cut) {
                    // What cannot be read would come again.
                    resume_point.last_id = None;
                }
                // Who does not say when to come back is not asked again and again.
                let unsaid_ms = || parts.backoff_ms(in_vain).max(RETRY_MS);
                resume_point.retry_ms.unwrap_or_else(unsaid_ms).max(RETRY_MS_MIN)
            }
            Err(PeerError { kind: PeerErrorKind::Refused(status), .. })
                if resume_point.is_forgotten(status) =>
            {
                resume_point.last_id = None;
                RETRY_MS
            }
            Err(error) if may_pass(&error) || is_taken(&error) => {
                failures += 1;
                parts.backoff_ms(failures)
            }
            Err(error) => {
                if error.kind == PeerErrorKind::Gone {
                    // The one who hears it begins another session.
                    let _ = shared.server_messages.send(Incoming::Broken(error)).await;
                }
                return;
            }
        };
        parts.clock.sleep_ms(wait_ms).await;
    }
}

async fn open(
    shared: &Shared,
    manner: &MessageHeaders,
    resume_point: &ResumePoint,
) -> Result<EventStream> {
    let headers = manner.headers.clone();
    let last_id = resume_point.last_id.as_deref();
    let response = answer::opened(&shared.endpoint, headers, last_id, manner.in_session).await?;
    Ok(shared.stream(response, resume_point.clone()))
}

/// Passes on what comes, until the stream is cut; none if no one hears the news any more.
pub(super) async fn pass_on(shared: &Shared, stream: &mut EventStream) -> Option<StreamEnd> {
    let mut any = false;
    loop {
        let message = stream.next_message(&shared.endpoint).await;
        any |= message.is_ok();
        match message {
            Ok(Message::Told(told)) => shared.server_messages.send(told).await.ok()?,
            // Some servers answer here after the request's own stream was lost.
            Ok(Message::Answer { id: Some(id), answer }) => shared.waiting.deliver(&id, answer),
            Ok(Message::Answer { id: None, .. }) => {}
            Err(cut) => return Some(StreamEnd { cut, any }),
        }
    }
}

/// Whether the other side takes us for someone who listens already: it has not noticed yet that
/// our last stream was lost.
fn is_taken(error: &PeerError) -> bool {
    error.kind == PeerErrorKind::Refused(409)
}
