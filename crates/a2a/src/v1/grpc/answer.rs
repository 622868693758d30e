//! Answers of gRPC: one message or several, and the status behind them. A call that fails before
//! anything is sent has its status in the headers.

use super::frame::{Deadline, LATE, LATE_WHY, framed};
use crate::binding::with_headers;
use crate::error::Result;
use crate::state::Shared;
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use edge::request::frame::LastWords;
use edge::request::server_state::StreamPlace;
use edge::stream::{Piece, Source, pieces};
use futures::{StreamExt, stream};
use http_body_util::StreamBody;
use hyper::body::Frame;
use kernel::contracts::Clock;
use serde::Serialize;
use std::convert::Infallible;
use std::sync::Arc;
use wire::a2a::error::A2aError;
use wire::a2a::proto::schema::Shape;
use wire::a2a::proto::status::Status;
use wire::a2a::proto::write;

/// What clients may compress with: not at all.
const ACCEPTED: &str = "grpc-accept-encoding";
/// A credential that ended before its stream did.
const LAPSED: &str = "the credential ended before the stream did";
/// A server that stops.
const STOPPING: &str = "the server is stopping; subscribe to the task again";

/// A piece of a body.
type Sent = Result<Frame<Bytes>, Infallible>;

/// One message, and success.
pub(super) fn one<T: Serialize>(shape: &Shape, message: &T) -> Response {
    let message = framed(&write(shape, message));
    let frames: [Sent; 2] =
        [Ok(Frame::data(message)), Ok(Frame::trailers(headers(&Status::default())))];
    response(Body::new(StreamBody::new(stream::iter(frames))))
}

/// Nothing but a status.
pub(super) fn ended(status: &Status) -> Response {
    let mut response = response(Body::empty());
    response.headers_mut().extend(headers(status));
    response
}

/// The same for an error, with the headers that it brings.
pub(super) fn refused(error: &A2aError) -> Response {
    with_headers(ended(&Status::of(error)), error)
}

/// For how long a stream may be read.
pub(super) struct StreamDeadline {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) deadline: Option<Deadline>,
}

impl StreamDeadline {
    /// What comes, unless the client has waited long enough.
    async fn within<T>(&self, coming: impl Future<Output = T>) -> Option<T> {
        let Some(deadline) = self.deadline else { return Some(coming.await) };
        let left_ms = deadline.left_ms(self.clock.now());
        engine::timeout(self.clock.as_ref(), left_ms, coming).await
    }
}

/// Messages as they come, and how it ended.
pub(super) fn many(
    a2a: Shared,
    source: impl Source<Event = Result<Bytes>>,
    permit: StreamPlace,
    streamed: StreamDeadline,
) -> Response {
    let coming = Box::pin(pieces(a2a.server.clone(), source, permit));
    let frames = stream::unfold(Some((coming, streamed)), |state| async move {
        let (mut coming, streamed) = state?;
        let status = loop {
            let next = streamed.within(coming.next()).await;
            match next {
                Some(Some(Piece::Event(Ok(message)))) => {
                    let frame: Sent = Ok(Frame::data(message));
                    return Some((frame, Some((coming, streamed))));
                }
                Some(Some(Piece::Event(Err(error)))) => break Status::of(&error),
                // The connection itself is asked whether anyone is there.
                Some(Some(Piece::StillHere)) => {}
                Some(Some(Piece::Closing)) => break Status::named("UNAVAILABLE", STOPPING),
                Some(None) => break Status::default(),
                None => break Status::named(LATE, LATE_WHY),
            }
        };
        Some((Ok(Frame::trailers(headers(&status))), None))
    });
    let mut response = response(Body::new(StreamBody::new(frames)));
    let lapsed = Status::named("UNAUTHENTICATED", LAPSED);
    response.extensions_mut().insert(LastWords(headers(&lapsed)));
    response
}

fn headers(status: &Status) -> HeaderMap {
    let pairs = status.headers().into_iter().filter_map(|(name, value)| {
        Some((HeaderName::from_static(name), HeaderValue::try_from(value).ok()?))
    });
    pairs.collect()
}

fn response(body: Body) -> Response {
    let mut response = Response::new(body);
    let values = [
        (CONTENT_TYPE, HeaderValue::from_static("application/grpc")),
        (HeaderName::from_static(ACCEPTED), HeaderValue::from_static("identity")),
    ];
    response.headers_mut().extend(values);
    response
}
