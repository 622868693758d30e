//! HTTP/2 on the same ports as HTTP/1.1: by prior knowledge, and over TLS by ALPN. Everything
//! behind this module sees requests that look alike. What one client can make the server hold or
//! do is limited here; how long it may take is up to `Connections`.

use super::BUFFER_BYTES_MAX;
use axum::body::{Body, Bytes};
use edge::connections::Work;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::header::{HOST, HeaderValue};
use hyper::rt::Executor;
use hyper::{Request, Uri, Version};
use hyper_util::rt::TokioTimer;
use hyper_util::server::conn::auto;
use kernel::contracts::Spawn;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// How many requests of one connection are answered at the same time.
const STREAMS_MAX: u32 = 128;
/// How many streams a client may have reset before we looked at them; then its connection ends.
const PENDING_RESETS_MAX: usize = 20;
/// How many streams we may have reset because of a client's mistakes; then its connection ends.
const ERROR_RESETS_MAX: usize = 100;
/// The size of all headers of a request.
const HEADERS_BYTES_MAX: u32 = BUFFER_BYTES_MAX as u32;
/// How much of a request's body, and of all bodies of a connection, a client may send ahead.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

/// How many bytes of one answer wait in the connection, beside the piece that was taken last.
const SEND_BUFFER_BYTES_MAX: usize = 16 * 1024;

/// How often a client is asked whether it is still there, and how long it may take to say so: a
/// stream may have nothing to tell for hours.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_WAIT: Duration = Duration::from_secs(30);

/// Serves both versions; which one a client speaks is seen from its first bytes.
pub(super) fn builder(spawn: Arc<dyn Spawn>) -> auto::Builder<Streams> {
    let mut builder = auto::Builder::new(Streams(spawn));
    builder
        .http1()
        // `Connections` has shorter times, and one timer for all.
        .header_read_timeout(None::<Duration>)
        .max_buf_size(BUFFER_BYTES_MAX);
    builder
        .http2()
        .max_concurrent_streams(STREAMS_MAX)
        .max_pending_accept_reset_streams(PENDING_RESETS_MAX)
        .max_local_error_reset_streams(ERROR_RESETS_MAX)
        .max_header_list_size(HEADERS_BYTES_MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(SEND_BUFFER_BYTES_MAX)
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_WAIT);
    builder
}

/// Where requests of one connection are answered beside each other.
#[derive(Clone)]
pub(super) struct Streams(Arc<dyn Spawn>);

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        self.0.task("stream", Box::pin(stream));
    }
}

/// Whether a request is one of several on its connection.
pub(super) fn is_stream(request: &Request<Incoming>) -> bool {
    request.version() == Version::HTTP_2
}

/// Gives a request the form that those of HTTP/1.1 have: `:authority` is its `Host`, and its target
/// is a path. A `Host` that says something else stays beside it, so that both are checked.
pub(super) fn unify<B>(request: &mut Request<B>) {
    if request.version() != Version::HTTP_2 {
        return;
    }
    let target = request.uri().clone();
    let host = target.authority().map(|authority| HeaderValue::from_str(authority.as_str()));
    if let Some(Ok(host)) = host
        && !request.headers().get_all(HOST).iter().any(|known| *known == host)
    {
        request.headers_mut().append(HOST, host);
    }
    if let Some(path) = target.path_and_query() {
        *request.uri_mut() = Uri::from(path.clone());
    }
}

/// The body of an answer. It holds its request's work: a request is worked for until the last of
/// its answer was taken.
pub(super) struct Answer {
    body: Body,
    work: Work,
    /// Whether other answers go out beside it: then the socket does not tell whether the client
    /// reads this one.
    is_stream: bool,
}

impl Answer {
    pub(super) fn new(body: Body, work: Work, is_stream: bool) -> Self {
        Self { body, work, is_stream }
    }
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let answer = self.get_mut();
        // More is wanted only once the client has made room for what came before.
        if answer.is_stream {
            answer.work.taken();
        }
        let frame = Pin::new(&mut answer.body).poll_frame(context);
        if answer.is_stream && matches!(frame, Poll::Ready(Some(Ok(_)))) {
            answer.work.offered();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unified(version: Version, uri: &str, host: Option<&str>) -> (String, Vec<String>) {
        let mut request = Request::builder().version(version).uri(uri);
        if let Some(host) = host {
            request = request.header(HOST, host);
        }
        let mut request = request.body(()).unwrap();
        unify(&mut request);
        let hosts = request.headers().get_all(HOST).iter();
        let hosts = hosts.map(|host| host.to_str().unwrap().to_owned()).collect();
        (request.uri().to_string(), hosts)
    }

    #[test]
    fn a_request_of_http2_looks_like_any_other() {
        let whole = "http://a.test:1/b?c=d";
        let path = "/b?c=d".to_owned();
        let both = ["a.test:1", "b.test"].map(str::to_owned);
        assert_eq!(unified(Version::HTTP_2, whole, None), (path.clone(), vec![both[0].clone()]));
        let same = unified(Version::HTTP_2, whole, Some("a.test:1"));
        assert_eq!(same, (path.clone(), vec![both[0].clone()]));
        let other = unified(Version::HTTP_2, whole, Some("b.test"));
        assert_eq!(other, (path, vec![both[1].clone(), both[0].clone()]));
        // What HTTP/1.1 sends stays as it is.
        let older = unified(Version::HTTP_11, whole, Some("b.test"));
        assert_eq!(older, (whole.to_owned(), vec![both[1].clone()]));
    }
}
