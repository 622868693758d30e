//! Pool of plain HTTP connections to one origin. The task that waits for a response drives its
//! connection, so that no other task has to be woken for a request. Idle connections are kept for a
//! moment.

mod exchange;
#[cfg(test)]
mod tests;

use crate::client::{IDLE_MAX, IDLE_PER_HOST_MAX, plain_connector};
use crate::words::reasons;
use bytes::Bytes;
use exchange::{ExchangeOutcome, Wire};
use futures::future::{Either, select};
use hyper::Uri;
use hyper::http::response::Parts;
use hyper_util::client::legacy::connect::HttpConnector;
use kernel::contracts::{Clock, Spawn};
use kernel::values::ids::Millis;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::net::TcpStream;
use tower::ServiceExt;

pub use exchange::{ExchangeError, PlainRequest};

/// A connection that is open. It moves often, and is large.
type OpenConnection = Box<Wire<TcpStream>>;

#[derive(Clone)]
pub struct PlainParts {
    /// Runs the task that closes connections which rest too long.
    pub spawn: Arc<dyn Spawn>,
    pub clock: Arc<dyn Clock>,
    /// How long a connection may take to be made.
    pub connect_within_ms: u64,
}

/// The connections of one endpoint to its origin. They are never shared between endpoints, each of
/// which has headers and a login of its own: no connection serves two credentials.
pub struct Plain {
    place: Uri,
    connector: HttpConnector,
    parts: PlainParts,
    resting: Mutex<IdleConnections>,
}

#[derive(Default)]
struct IdleConnections {
    /// Since when each rests; the last is the one that was used last.
    wires: Vec<(Millis, OpenConnection)>,
    /// A task looks after those that rest too long.
    is_swept: bool,
}

impl Plain {
    /// Connections to this place. None is opened yet.
    pub fn new(place: Uri, parts: PlainParts) -> Arc<Self> {
        let connector = plain_connector(Duration::from_millis(parts.connect_within_ms));
        Arc::new(Self { place, connector, parts, resting: Mutex::default() })
    }

    /// Sends a request, and gives its answer as soon as the head of it is there. Dropping either
    /// closes the connection. What was written is never written again.
    pub async fn send(
        self: &Arc<Self>,
        mut request: PlainRequest,
    ) -> Result<PlainAnswer, ExchangeError> {
        while let Some(mut wire) = self.rested() {
            match wire.exchange(request).await {
                ExchangeOutcome::Answered(head) => return Ok(self.received(head, wire)),
                // It was closed while it rested, and nothing went over it: another one may do.
                ExchangeOutcome::Unsent(unsent, _) => request = unsent,
                ExchangeOutcome::Unanswered(why) => return Err(why),
            }
        }
        // Rare, and large: it need not be a part of every request.
        let mut wire = Box::pin(self.connect()).await.map_err(ExchangeError::Unreachable)?;
        match wire.exchange(request).await {
            ExchangeOutcome::Answered(head) => Ok(self.received(head, wire)),
            ExchangeOutcome::Unsent(_, why) => Err(ExchangeError::Lost(why)),
            ExchangeOutcome::Unanswered(why) => Err(why),
        }
    }

    async fn connect(&self) -> Result<OpenConnection, String> {
        let clock = &self.parts.clock;
        let ms = self.parts.connect_within_ms;
        let connecting = self.connector.clone().oneshot(self.place.clone());
        let deadline = clock.sleep_until(clock.now().plus_ms(ms));
        let stream = match select(pin!(connecting), deadline).await {
            Either::Left((Ok(stream), _)) => stream.into_inner(),
            Either::Left((Err(error), _)) => return Err(reasons(&error)),
            Either::Right(((), _)) => {
                return Err(format!("there was no connection within {ms} ms"));
            }
        };
        let from = stream.peer_addr().ok().map(|address| address.ip());
        let wire = Wire::open(stream, from).await.map_err(|error| reasons(&error))?;
        Ok(Box::new(wire))
    }

    fn received(self: &Arc<Self>, head: Parts, wire: OpenConnection) -> PlainAnswer {
        let from = wire.address();
        let is_whole = wire.is_whole();
        let coming = BodyState::Over(wire);
        let home = self.clone();
        let mut body = Body { coming, is_garbled: false, from, home };
        if is_whole {
            body.rest();
        }
        PlainAnswer { status: head.status, headers: head.headers, body }
    }

    /// A connection that rests, and may have been closed in the meantime.
    fn rested(&self) -> Option<OpenConnection> {
        let now = self.parts.clock.now();
        loop {
            let (since, wire) = self.resting().wires.pop()?;
            if is_fresh(since, now) {
                return Some(wire);
            }
        }
    }

    /// Keeps a connection for the next request.
    fn keep(self: &Arc<Self>, wire: OpenConnection) {
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

    fn resting(&self) -> MutexGuard<'_, IdleConnections> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks after connections that rest, until none does.
async fn sweep(plain: Weak<Plain>, parts: PlainParts) {
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

/// An answer over a plain connection.
pub struct PlainAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Its body, which is still to be read.
    pub body: Body,
}

/// A body that is still to be read, and the connection that it comes over.
pub struct Body {
    coming: BodyState,
    /// Whether the answer is not HTTP.
    is_garbled: bool,
    from: Option<IpAddr>,
    home: Arc<Plain>,
}

/// The unread part of a body.
enum BodyState {
    /// More, over this connection.
    Over(OpenConnection),
    /// All of it was read.
    Nothing,
    /// No one knows: the connection was lost.
    Lost,
}

impl Body {
    /// From whom it comes.
    pub fn address(&self) -> Option<IpAddr> {
        self.from
    }

    /// How long it is, or what is left of it, if that is known.
    pub fn length(&self) -> Option<u64> {
        match &self.coming {
            BodyState::Over(wire) => wire.left(),
            BodyState::Nothing => Some(0),
            BodyState::Lost => None,
        }
    }

    /// Whether the answer is not HTTP.
    pub fn is_garbled(&self) -> bool {
        self.is_garbled
    }

    /// Its next piece; none at its end, else why there is no more.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, String> {
        poll_fn(|context| self.poll_chunk(context)).await
    }

    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, String>> {
        let wire = match &mut self.coming {
            BodyState::Over(wire) => wire,
            BodyState::Nothing => return Poll::Ready(Ok(None)),
            BodyState::Lost => return Poll::Ready(Err("the connection was lost".to_owned())),
        };
        let next = ready!(wire.poll_piece(context));
        let is_whole = wire.is_whole();
        let (why, is_garbled) = match next {
            Ok(piece) => {
                if is_whole {
                    self.rest();
                }
                return Poll::Ready(Ok(piece));
            }
            Err(ExchangeError::Garbled(why)) => (why, true),
            Err(ExchangeError::Lost(why) | ExchangeError::Unreachable(why)) => (why, false),
        };
        self.coming = BodyState::Lost;
        self.is_garbled = is_garbled;
        Poll::Ready(Err(why))
    }

    /// All of it was read: its connection can take the next request, or is closed.
    fn rest(&mut self) {
        let coming = std::mem::replace(&mut self.coming, BodyState::Nothing);
        if let BodyState::Over(mut wire) = coming
            && wire.is_reusable()
        {
            self.home.keep(wire);
        }
    }
}
