//! MCP servers as upstreams: how they are reached, in both eras, and what tools and shelves of one
//! of them share.

mod params;
mod line;
mod http;
mod stdio;
mod requests;
mod levels;
mod calls;
mod handshake;
mod peer;
mod lists;
mod lanes;
mod questions;
mod tool;
mod shelf;
mod connection;
mod managed;
mod users;
#[cfg(test)]
mod scripted;

use super::config::{UpstreamConfig, UpstreamKind};
use super::oauth::Account;
use super::{RemoteParts, lock};
use kernel::tool::call::CallProgress;
use lanes::{Dial, Lanes, LineKind};
use line::{Incoming, Line, PeerError, PeerErrorKind, Result};
use lists::Lists;
use peer::Peer;
use std::future::pending;
use std::sync::{Arc, Mutex};
use tokio::sync::{broadcast, watch};

pub use http::headers;
pub(crate) use managed::{ManagedServer, no_logins};
pub(crate) use questions::read as read_question;
pub(crate) use requests::ELICIT;
pub(crate) use shelf::RemoteShelf;
pub(crate) use users::Users;

/// How long a call waits for a server that is being connected to.
const CONNECTING_MS: u64 = 2_000;

/// Hint for a process that is still starting.
const STARTING: &str = "its process may still be starting: it has `upstream_start_timeout_ms` for \
                        that; `waypost mcp ls` shows how it is";

/// How often one call asks again because its server wants more.
const ROUNDS_MAX: u32 = 16;

/// How many updates of resources wait for a watcher; a slower one misses the oldest.
const UPDATES_MAX: usize = 64;

/// How many opened pages wait for those interested; those that are missed are checked later.
const OPENED_MAX: usize = 256;

/// State shared by the tools and the shelf of one upstream: its configuration, how to connect, its
/// last lists. It outlives connections.
pub(crate) struct Link {
    pub(crate) config: UpstreamConfig,
    /// Time, limits and so on.
    pub(crate) parts: RemoteParts,
    /// Calls that wait for an answer of our caller's.
    pub(crate) pending: questions::Pending,
    /// Our account there, if it has logins.
    pub(crate) account: Option<Arc<Account>>,
    /// The people who log in for themselves, if they do.
    pub(crate) users: Option<Arc<Users>>,
    /// The URIs of resources that it says have changed.
    pub(crate) updates: broadcast::Sender<String>,
    /// The keys of pages that were opened, of those that calls wanted opened first.
    pub(crate) opened: broadcast::Sender<String>,
    /// The connections beside the main one.
    pub(crate) lanes: Arc<Lanes>,
    /// Makes lines to it, over the transport by which it was reached last.
    dial: Dial,
    transport: Mutex<LineKind>,
    connection: watch::Sender<Connection>,
    lists: Mutex<Arc<Lists>>,
    /// The line in use, connected or not, so that it is closed whatever happens to its user.
    line: Mutex<Option<Arc<dyn Line>>>,
}

/// The way to an upstream.
#[derive(Clone)]
enum Connection {
    /// It is being found.
    Connecting,
    Ready(Arc<Peer>),
    /// There is none now, for this reason.
    Failing(PeerError),
}

impl Link {
    /// A link to an upstream that is being connected to.
    pub(crate) fn new(config: UpstreamConfig, parts: RemoteParts, dial: Dial) -> Self {
        let opened = broadcast::Sender::new(OPENED_MAX);
        Self {
            account: Account::new(&config, &parts),
            users: Users::new(&config, &parts, &opened),
            lanes: Arc::new(Lanes::new(parts.clone())),
            dial,
            transport: Mutex::new(LineKind::Current),
            config,
            parts,
            pending: questions::Pending::default(),
            connection: watch::Sender::new(Connection::Connecting),
            lists: Mutex::default(),
            updates: broadcast::Sender::new(UPDATES_MAX),
            opened,
            line: Mutex::default(),
        }
    }

    /// The server. While it is being connected to, this waits a little; while it is away, the
    /// answer comes at once. Nothing was sent where this fails.
    pub(crate) async fn peer(&self) -> Result<Arc<Peer>> {
        if let Connection::Ready(peer) = &*self.connection.borrow()
            && !peer.is_lost()
        {
            return Ok(peer.clone());
        }
        // Rare, and large: it need not be a part of every call.
        match Box::pin(self.parts.within(CONNECTING_MS, self.settled())).await {
            Some(Connection::Ready(peer)) => Ok(peer),
            Some(Connection::Failing(error)) => Err(self.away(error)),
            Some(Connection::Connecting) | None => {
                let message = format!("not connected yet after {CONNECTING_MS} ms");
                let error = PeerError::new(CallProgress::NotSent, PeerErrorKind::Timeout, message);
                Err(self.away(if self.is_pipe() { error.hint(STARTING) } else { error }))
            }
        }
    }

    /// The version that is spoken with it, while it is connected.
    pub(crate) fn version(&self) -> Option<Arc<str>> {
        match &*self.connection.borrow() {
            Connection::Ready(peer) => Some(peer.version().clone()),
            Connection::Connecting | Connection::Failing(_) => None,
        }
    }

    /// Whether it is a process that is spoken to over its standard input and output.
    pub(crate) fn is_pipe(&self) -> bool {
        matches!(self.config.kind, UpstreamKind::Stdio { .. })
    }

    /// Whether a call of it can be answered with a task that we can follow. One that is not
    /// connected is taken for one of which that is so.
    pub(crate) fn has_tasks(&self) -> bool {
        self.version().is_none_or(|version| *version == *wire::mcp::MODERN)
    }

    /// The page where someone logs in, if a login is under way.
    pub(crate) fn login_url(&self) -> Option<String> {
        self.account.as_ref()?.login_url()
    }

    /// Waits until no login is under way; for ever where there are no logins.
    pub(crate) async fn login_over(&self) {
        match &self.account {
            Some(account) => account.login_over().await,
            None => pending().await,
        }
    }

    /// Its last lists; empty before the first listing.
    pub(crate) fn lists(&self) -> Arc<Lists> {
        lock(&self.lists).clone()
    }

    /// Waits until it is known whether there is a way.
    async fn settled(&self) -> Connection {
        let is_settled = |connection: &Connection| match connection {
            Connection::Connecting => false,
            Connection::Ready(peer) => !peer.is_lost(),
            // Someone has logged in, and it will be connected to at once.
            Connection::Failing(error) if error.kind.wants_login() => {
                self.account.as_ref().is_none_or(|account| account.waits_for_login())
            }
            Connection::Failing(_) => true,
        };
        let mut connection = self.connection.subscribe();
        let settled = connection.wait_for(is_settled).await;
        settled.map_or(Connection::Connecting, |connection| connection.clone())
    }

    /// Why it cannot be used now, and what to do.
    fn away(&self, error: PeerError) -> PeerError {
        if error.kind.wants_login() {
            return PeerError { how: CallProgress::NotSent, ..error };
        }
        let hint = error.hint.unwrap_or_else(|| {
            format!("it is tried again by itself; it is configured in {}", self.config.origin)
        });
        let message = format!("it cannot be reached now: {}", error.message);
        PeerError { how: CallProgress::NotSent, kind: error.kind, message, hint: Some(hint) }
    }

    /// Passes news of general interest on that came over another connection.
    fn tell_main(&self, server_messages: Incoming) {
        if let Connection::Ready(peer) = &*self.connection.borrow() {
            // Where there is no room, the lists are read again anyway.
            let _ = peer.aside().try_send(server_messages);
        }
    }

    /// From now on this is the way.
    fn set(&self, connection: Connection) {
        self.connection.send_replace(connection);
    }

    /// The transport of further lines to it.
    fn transport(&self) -> LineKind {
        *lock(&self.transport)
    }

    /// It was reached over this transport.
    fn reached(&self, transport: LineKind) {
        *lock(&self.transport) = transport;
    }

    /// Keeps the line that is in use from now on.
    fn hold(&self, line: Arc<dyn Line>) {
        *lock(&self.line) = Some(line);
    }

    /// The last lines that its process wrote to standard error. For operators only: callers do not
    /// see them.
    fn last_words(&self) -> Option<String> {
        lock(&self.line).as_ref()?.last_words()
    }

    /// Closes the line in use. One that does not end in time is left alone.
    async fn hang_up(&self) {
        // It stays held until it is closed: if we are stopped here, another one does it.
        let line = lock(&self.line).clone();
        let Some(line) = line else { return };
        let ms = self.parts.limits.stop_wait_ms;
        if self.parts.within(ms, line.close()).await.is_none() {
            let upstream = self.config.name.as_str();
            tracing::warn!(upstream, limit_ms = ms, "an upstream's line did not close in time");
        }
        *lock(&self.line) = None;
    }
}
