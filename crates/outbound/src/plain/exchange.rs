//! One request and its response over one plain connection, encoded and parsed by hyper. The
//! connection makes progress only while someone polls the exchange, and has no timeout of its own.

use crate::words::reasons;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as _, Frame, Incoming};
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper::http::response::Parts;
use hyper::{Request, Version};
use hyper_util::rt::TokioIo;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use std::error::Error;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::coop::unconstrained;

/// How large the head of an answer can be, and how much is read at once. hyper takes at most 100
/// headers.
pub(super) const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A request as hyper takes it.
pub type PlainRequest = Request<Full<Bytes>>;
type HyperConnection<S> = Connection<TokioIo<S>, Full<Bytes>>;

/// A connection.
pub(super) struct Wire<S: AsyncRead + AsyncWrite> {
    sender: SendRequest<Full<Bytes>>,
    /// None once it is over.
    connection: Option<HyperConnection<S>>,
    /// Address of the server.
    from: Option<IpAddr>,
    /// The body of the answer; none once all of it was read.
    incoming: Option<Incoming>,
    /// Whether the head of the answer says in one way only where the answer ends.
    is_clear: bool,
}

/// The outcome of a request on one connection.
pub(super) enum ExchangeOutcome {
    /// The head of an answer; its body can be read.
    Answered(Parts),
    /// Nothing of the request was sent.
    Unsent(PlainRequest, String),
    /// There is no answer that can be read.
    Unanswered(ExchangeError),
}

/// Why there is no answer, or only a part of it.
pub enum ExchangeError {
    /// There is no connection.
    Unreachable(String),
    /// The connection was lost, and no one knows how far the request got.
    Lost(String),
    /// Something came that is not HTTP.
    Garbled(String),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// A connection to this address, over which nothing went yet.
    pub(super) async fn open(stream: S, from: Option<IpAddr>) -> hyper::Result<Self> {
        let (sender, connection) = Builder::new()
            .max_buf_size(HEAD_BYTES_MAX)
            .max_header_size(HEAD_BYTES_MAX)
            .handshake(TokioIo::new(stream))
            .await?;
        let connection = Some(connection);
        let incoming = None;
        Ok(Self { sender, connection, from, incoming, is_clear: false })
    }

    /// Sends a request and waits for the head of its answer, which may come before all was sent.
    /// The end of the connection, or bytes that no one asked for, are noticed before anything is
    /// written.
    pub(super) async fn exchange(&mut self, request: PlainRequest) -> ExchangeOutcome {
        let Self { sender, connection, incoming, is_clear, .. } = self;
        // The answer comes by driving the connection and in no other way. The task that drives is
        // woken for that, so the answer itself need not wake it nor yield to others.
        let mut answering = pin!(unconstrained(sender.try_send_request(request)));
        let mut is_driven = false;
        let answered = poll_fn(|context| {
            let mut unwoken = Context::from_waker(Waker::noop());
            if is_driven {
                // Most often all of the answer is there now. Taking its body wakes the context that
                // it was read with: this one would make the task run once more for nothing.
                drive(connection, &mut unwoken);
                if let Poll::Ready(answered) = answering.as_mut().poll(&mut unwoken) {
                    return Poll::Ready(answered);
                }
            }
            is_driven = true;
            drive(connection, context);
            answering.as_mut().poll(&mut unwoken)
        });
        match answered.await {
            Ok(response) => {
                let (head, body) = response.into_parts();
                if let Some(why) = unreadable(&head) {
                    return ExchangeOutcome::Unanswered(ExchangeError::Garbled(why.to_owned()));
                }
                *incoming = (!body.is_end_stream()).then_some(body);
                *is_clear = ends_clearly(&head);
                ExchangeOutcome::Answered(head)
            }
            Err(mut failed) => {
                let why = reasons(failed.error());
                match failed.take_message() {
                    Some(unsent) => ExchangeOutcome::Unsent(unsent, why),
                    None if failed.error().is_parse() => {
                        ExchangeOutcome::Unanswered(ExchangeError::Garbled(why))
                    }
                    None => ExchangeOutcome::Unanswered(ExchangeError::Lost(why)),
                }
            }
        }
    }

    /// The next piece of the body; none at its end, else why there is no more.
    pub(super) fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, ExchangeError>> {
        // Like the answer, its body comes by driving only.
        let mut unwoken = Context::from_waker(Waker::noop());
        while let Some(incoming) = &mut self.incoming {
            let mut next = Pin::new(&mut *incoming).poll_frame(&mut unwoken);
            if next.is_pending() {
                drive(&mut self.connection, context);
                next = Pin::new(&mut *incoming).poll_frame(&mut unwoken);
            }
            let Poll::Ready(frame) = next else { return Poll::Pending };
            if frame.is_none() || incoming.is_end_stream() {
                self.incoming = None;
            }
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(piece))) => return Poll::Ready(Ok(Some(piece))),
                // Trailers, which no one reads, or the end.
                Some(Ok(Err(_))) | None => {}
                Some(Err(error)) => {
                    self.connection = None;
                    return Poll::Ready(Err(broken(&error)));
                }
            }
        }
        Poll::Ready(Ok(None))
    }

    /// Address of the server, if known.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.from
    }

    /// How much of the body is to come, if that is known.
    pub(super) fn left(&self) -> Option<u64> {
        self.incoming.as_ref().map_or(Some(0), |incoming| incoming.size_hint().exact())
    }

    /// Whether all of the body was read.
    pub(super) fn is_whole(&self) -> bool {
        self.incoming.is_none()
    }

    /// Whether it can take the next request, now that the body was read. An answer that can be
    /// read in two ways may leave something behind for the next request, and so may bytes that
    /// follow it.
    pub(super) fn is_reusable(&mut self) -> bool {
        if !self.is_clear || !self.is_whole() {
            return false;
        }
        if !self.is_idle() {
            drive(&mut self.connection, &mut Context::from_waker(Waker::noop()));
        }
        self.is_idle()
    }

    fn is_idle(&self) -> bool {
        self.connection.is_some() && self.sender.is_ready()
    }
}

/// Writes and reads whatever can be now; the context is woken for the rest.
fn drive<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Option<HyperConnection<S>>,
    context: &mut Context<'_>,
) {
    let Some(running) = connection else { return };
    if running.poll_without_shutdown(context).is_ready() {
        // A request that waits in it comes back, because it was not sent.
        *connection = None;
    }
}

/// Why an answer with this head cannot be read; hyper would hand its body out as it is.
fn unreadable(head: &Parts) -> Option<&'static str> {
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        return Some("it wants to speak another protocol");
    }
    let mut codings = head.headers.get_all(TRANSFER_ENCODING).iter();
    let is_other = codings.next().is_some_and(|only| {
        let is_chunked = only.as_bytes().eq_ignore_ascii_case(b"chunked");
        !is_chunked || codings.next().is_some()
    });
    is_other.then_some("it has a transfer coding other than `chunked`")
}

/// Whether this head says in one way only where its answer ends.
fn ends_clearly(head: &Parts) -> bool {
    let has_coding = head.headers.contains_key(TRANSFER_ENCODING);
    let mut lengths = head.headers.get_all(CONTENT_LENGTH).iter();
    let is_clear = match head.status {
        // A body that is announced where none can be may be sent nonetheless.
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED => {
            !has_coding && lengths.all(|length| length == "0")
        }
        _ => has_coding != lengths.next().is_some(),
    };
    is_clear && head.version == Version::HTTP_11
}

/// Why there is no more of a body.
fn broken(error: &hyper::Error) -> ExchangeError {
    let why = reasons(error);
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    match cause.map(io::Error::kind) {
        // So hyper calls chunks that it cannot read; a connection that is lost has other errors.
        Some(ErrorKind::InvalidInput | ErrorKind::InvalidData) => ExchangeError::Garbled(why),
        _ => ExchangeError::Lost(why),
    }
}
