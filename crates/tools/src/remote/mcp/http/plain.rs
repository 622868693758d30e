//! Plain connections to one origin. Whoever waits for an answer drives the connection that it comes
//! over, so that no other task has to be woken for a request. Between requests connections rest
//! here for a moment.

use crate::http::{IDLE_MAX, IDLE_PER_HOST_MAX, plain_connector, reasons};
use crate::remote::RemoteParts;
use http_body_util::Full;
use hyper::body::{Body as _, Bytes, Frame, Incoming};
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use kernel::ids::Millis;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::unconstrained;
use tower::ServiceExt;

/// What is sent.
pub(super) type Sent = Request<Full<Bytes>>;
/// A connection that is open.
type Running = Connection<TokioIo<TcpStream>, Full<Bytes>>;

/// The connections to one origin.
pub(crate) struct Plain {
    /// Where they lead.
    place: Uri,
    connector: HttpConnector,
    parts: RemoteParts,
    resting: Mutex<Resting>,
}

#[derive(Default)]
struct Resting {
    /// Since when each rests; the last is the one that was used last.
    wires: Vec<(Millis, Box<Wire>)>,
    /// A task looks after those that rest too long.
    is_swept: bool,
}

/// Why there is no answer.
pub(super) enum Unanswered {
    /// There is no connection.
    Unreachable(String),
    /// The connection was lost, and nobody knows how far the request got.
    Lost(String),
}

impl Plain {
    /// Connections to this place. None is opened yet.
    pub(super) fn new(place: Uri, parts: &RemoteParts) -> Arc<Self> {
        let connect_within = Duration::from_millis(parts.limits.upstream_connect_timeout_ms);
        Arc::new(Self {
            place,
            connector: plain_connector(connect_within),
            parts: parts.clone(),
            resting: Mutex::default(),
        })
    }

    /// Sends a request, and gives its answer as soon as the head of it is there. Dropping either
    /// closes the connection. What was written is never written again.
    pub(super) async fn send(
        self: &Arc<Self>,
        mut request: Sent,
    ) -> Result<Response<Body>, Unanswered> {
        while let Some(mut wire) = self.rested() {
            match wire.exchange(request).await {
                Exchanged::Answered(response) => return Ok(self.answer(response, wire)),
                // It was closed while it rested, and nothing went over it: another one may do.
                Exchanged::Unsent(unsent, _) => request = unsent,
                Exchanged::Lost(why) => return Err(Unanswered::Lost(why)),
            }
        }
        // Rare, and large: it need not be a part of every request.
        let mut wire = Box::pin(self.connect()).await.map_err(Unanswered::Unreachable)?;
        match wire.exchange(request).await {
            Exchanged::Answered(response) => Ok(self.answer(response, wire)),
            Exchanged::Unsent(_, why) | Exchanged::Lost(why) => Err(Unanswered::Lost(why)),
        }
    }

    async fn connect(&self) -> Result<Box<Wire>, String> {
        let ms = self.parts.limits.upstream_connect_timeout_ms;
        let connecting = self.connector.clone().oneshot(self.place.clone());
        let stream = match self.parts.within(ms, connecting).await {
            Some(Ok(stream)) => stream,
            Some(Err(error)) => return Err(reasons(&error)),
            None => return Err(format!("there was no connection within {ms} ms")),
        };
        let from = stream.inner().peer_addr().ok().map(|address| address.ip());
        let opened = http1::handshake(stream).await;
        let (sender, connection) = opened.map_err(|error| reasons(&error))?;
        Ok(Box::new(Wire { sender, connection: Some(connection), from }))
    }

    fn answer(self: &Arc<Self>, response: Response<Incoming>, wire: Box<Wire>) -> Response<Body> {
        response.map(|incoming| {
            let (from, home) = (wire.from, self.clone());
            let mut body = Body { incoming, wire: Some(wire), from, home };
            if body.incoming.is_end_stream() {
                body.rest();
            }
            body
        })
    }

    /// A connection that rests and is still open.
    fn rested(&self) -> Option<Box<Wire>> {
        let now = self.parts.clock.now();
        loop {
            let (since, mut wire) = self.resting().wires.pop()?;
            if is_fresh(since, now) && wire.is_open() {
                return Some(wire);
            }
        }
    }

    /// Keeps a connection for the next request.
    fn keep(self: &Arc<Self>, wire: Box<Wire>) {
        let clock = &self.parts.clock;
        let mut resting = self.resting();
        if resting.wires.len() >= IDLE_PER_HOST_MAX {
            return;
        }
        resting.wires.push((clock.now(), wire));
        let is_swept = std::mem::replace(&mut resting.is_swept, true);
        drop(resting);
        if !is_swept {
            let sweeping = sweep(Arc::downgrade(self), self.parts.clone());
            self.parts.spawn.task("mcp connections", Box::pin(sweeping));
        }
    }

    /// Closes those that rest too long; whether none is left.
    fn close_stale(&self) -> bool {
        let now = self.parts.clock.now();
        let mut resting = self.resting();
        resting.wires.retain(|(since, _)| is_fresh(*since, now));
        resting.is_swept = !resting.wires.is_empty();
        resting.wires.is_empty()
    }

    fn resting(&self) -> MutexGuard<'_, Resting> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks after connections that rest, until none does.
async fn sweep(plain: Weak<Plain>, parts: RemoteParts) {
    let clock = &parts.clock;
    loop {
        clock.sleep_until(clock.now().plus_ms(IDLE_MAX.as_millis() as u64)).await;
        match plain.upgrade() {
            Some(plain) if !plain.close_stale() => {}
            _ => return,
        }
    }
}

/// Whether a connection that rests since then can be used. A clock may have been set back.
fn is_fresh(since: Millis, now: Millis) -> bool {
    let rested = now.0.saturating_sub(since.0);
    u64::try_from(rested).is_ok_and(|ms| u128::from(ms) < IDLE_MAX.as_millis())
}

/// One connection. Nothing moves on it unless somebody drives it.
struct Wire {
    sender: SendRequest<Full<Bytes>>,
    /// None once it is over.
    connection: Option<Running>,
    /// Who is at the other end.
    from: Option<IpAddr>,
}

/// What came of a request on one connection.
enum Exchanged {
    /// The head of an answer.
    Answered(Response<Incoming>),
    /// Nothing of it was written.
    Unsent(Sent, String),
    /// The connection was lost with it.
    Lost(String),
}

impl Wire {
    async fn exchange(&mut self, request: Sent) -> Exchanged {
        let Self { sender, connection, .. } = self;
        // The answer comes by driving the connection and in no other way: who drives is woken, and
        // the answer itself need not wake anybody, nor leave the turn to others.
        let mut answering = pin!(unconstrained(sender.try_send_request(request)));
        let answered = poll_fn(|context| {
            // First of all the request goes in, so that driving finds it and need not be woken for
            // it; what driving brings is then looked for at once.
            let mut unwoken = Context::from_waker(Waker::noop());
            if let Poll::Ready(answer) = answering.as_mut().poll(&mut unwoken) {
                return Poll::Ready(answer);
            }
            drive(connection, context);
            answering.as_mut().poll(&mut unwoken)
        });
        match answered.await {
            Ok(response) => Exchanged::Answered(response),
            Err(mut error) => match error.take_message() {
                Some(unsent) => Exchanged::Unsent(unsent, reasons(error.error())),
                None => Exchanged::Lost(reasons(error.error())),
            },
        }
    }

    /// Looks whether the other side has closed it.
    fn is_open(&mut self) -> bool {
        // Whoever used it last is of no interest any more, and not to be woken.
        drive(&mut self.connection, &mut Context::from_waker(Waker::noop()));
        self.is_idle()
    }

    /// Whether it can take a request, as far as is known.
    fn is_idle(&self) -> bool {
        self.connection.is_some() && self.sender.is_ready()
    }
}

/// Writes and reads whatever can be now; the context is woken for the rest.
fn drive(connection: &mut Option<Running>, context: &mut Context<'_>) {
    let Some(running) = connection else { return };
    if running.poll_without_shutdown(context).is_ready() {
        // A request that waits in it learns so that it was not sent.
        *connection = None;
    }
}

/// A body that is still to be read, and the connection that it comes over.
pub(crate) struct Body {
    incoming: Incoming,
    wire: Option<Box<Wire>>,
    from: Option<IpAddr>,
    home: Arc<Plain>,
}

impl Body {
    /// From whom it comes.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.from
    }

    /// How long it is, or what is left of it, if that is known.
    pub(super) fn length(&self) -> Option<u64> {
        self.incoming.size_hint().exact()
    }

    /// Its next piece; none at its end, else why there is no more.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, String> {
        poll_fn(|context| self.poll_chunk(context)).await
    }

    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, String>> {
        // Most often it came with the head, and is there already.
        let mut next = self.poll_frame(&mut Context::from_waker(Waker::noop()));
        loop {
            if next.is_pending() {
                if let Some(wire) = &mut self.wire {
                    drive(&mut wire.connection, context);
                }
                next = self.poll_frame(context);
            }
            let Poll::Ready(frame) = next else { return Poll::Pending };
            if frame.is_none() || self.incoming.is_end_stream() {
                self.rest();
            }
            match frame.map(|frame| frame.map(Frame::into_data)) {
                None => return Poll::Ready(Ok(None)),
                Some(Ok(Ok(piece))) => return Poll::Ready(Ok(Some(piece))),
                // Trailers: they say nothing that is read here.
                Some(Ok(Err(_))) => next = Poll::Pending,
                Some(Err(error)) => {
                    self.wire = None;
                    return Poll::Ready(Err(reasons(&error)));
                }
            }
        }
    }

    fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        Pin::new(&mut self.incoming).poll_frame(context)
    }

    /// All of it was read: its connection can take the next request.
    fn rest(&mut self) {
        if let Some(mut wire) = self.wire.take()
            && (wire.is_idle() || wire.is_open())
        {
            self.home.keep(wire);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_fresh_for_a_moment_whatever_becomes_of_the_clock() {
        let idle_ms = IDLE_MAX.as_millis() as i64;
        let since = Millis(10_000);
        for (later_ms, fresh) in
            [(0, true), (idle_ms - 1, true), (idle_ms, false), (i64::MAX, false), (-1, false)]
        {
            let now = Millis(since.0.saturating_add(later_ms));
            assert_eq!(is_fresh(since, now), fresh, "{later_ms}");
        }
    }
}
