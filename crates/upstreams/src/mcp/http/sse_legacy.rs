//! The HTTP+SSE transport of 2024-11-05, for servers that support no other: a GET opens one stream,
//! which names the URL for posts and carries all answers. It cannot be resumed: when it is lost,
//! the line ends.

use super::super::line::{Incoming, Outgoing, PeerError, PeerErrorKind, Replies, Result};
use super::answer;
use super::endpoint::Endpoint;
use super::headers::{self, SessionHeaders};
use super::negotiated::INITIALIZE;
use super::notification_stream;
use super::response_stream::Follow;
use super::shared::{Cancel, Shared};
use super::stream::EventStream;
use crate::RemoteParts;
use futures::future::select;
use kernel::tool::call::CallProgress;
use outbound::sse::ResumePoint;
use reqwest::header::HeaderMap;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::mpsc;

/// The event that says where to post.
const ENDPOINT: &str = "endpoint";

/// Opens the stream and learns where to post; gives what is shared, and where news come out.
pub(super) async fn connect(
    endpoint: &Endpoint,
    parts: &RemoteParts,
) -> Result<(Arc<Shared>, mpsc::Receiver<Incoming>)> {
    let ms = parts.limits.upstream_connect_timeout_ms;
    let opening = open(endpoint, parts.limits.call_output_bytes_max);
    let opened = parts.within(ms, opening).await.unwrap_or_else(|| {
        let what = format!("did not say within {ms} ms where to post");
        Err(endpoint.error(CallProgress::NotSent, PeerErrorKind::Timeout, &what))
    });
    let (stream, posts) =
        opened.map_err(|error| PeerError { how: CallProgress::NotSent, ..error })?;
    let (shared, heard) = Shared::new(posts, parts.clone());
    // There is no handshake that this transport would hear of: all that is sent is of its era.
    shared.agreed().began(SessionHeaders::default());
    parts.spawn.task("mcp stream", Box::pin(hear(shared.clone(), stream)));
    Ok((shared, heard))
}

/// Sends a request, whose answer comes on the stream.
pub(super) fn ask(shared: &Arc<Shared>, request: &Outgoing) -> Result<Replies> {
    shared.check_open()?;
    let deadline = shared.parts.clock.now().plus_ms(request.timeout_ms);
    let mut manner = shared.agreed().manner_of_message(None);
    let told = (request.method != INITIALIZE).then(|| manner.clone());
    let cancel = Cancel::new(shared, &request.id, told);
    manner.headers = headers::traced(manner.headers, &request.params);
    let body = request.message();
    // Posted by the task that waits for the answer, which may come before the post's own end.
    let (follow, replies) = Follow::new(shared, request, manner, cancel, deadline);
    shared.parts.spawn.task("mcp request", Box::pin(follow.post(body)));
    Ok(replies)
}

/// The stream, and where to post.
async fn open(endpoint: &Endpoint, bytes_max: usize) -> Result<(EventStream, Endpoint)> {
    let response = answer::opened(endpoint, HeaderMap::new(), None, false).await?;
    let mut stream = EventStream::new(response, bytes_max, ResumePoint::default());
    loop {
        let event = stream.next_event(endpoint).await?;
        if event.kind() != ENDPOINT {
            continue;
        }
        // Headers with secrets go nowhere else.
        let posts = endpoint.at(event.data.trim()).ok_or_else(|| {
            let what = "says to post to another server, which is not done";
            endpoint.error(CallProgress::NotSent, PeerErrorKind::NotMcp, what)
        })?;
        return Ok((stream, posts));
    }
}

/// Passes on what comes until the stream is lost; then the line is over.
async fn hear(shared: Arc<Shared>, mut stream: EventStream) {
    select(pin!(notification_stream::pass_on(&shared, &mut stream)), pin!(shared.closed())).await;
    if !shared.is_closed() {
        shared.close();
        let error = shared.closed_error(CallProgress::Unknown);
        let _ = shared.server_messages.send(Incoming::Broken(error)).await;
    }
}
