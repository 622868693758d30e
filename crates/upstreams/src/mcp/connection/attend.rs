//! Watches one connection: lists what the server has, lists again after change notifications or
//! when the list expires, answers requests outside of calls, and detects a lost connection.

use crate::config::UpstreamKind;
use crate::mcp::Link;
use crate::mcp::calls::ServerMessages;
use crate::mcp::handshake::era_change;
use crate::mcp::lanes::hear;
use crate::mcp::line::{Incoming, PeerError, PeerErrorKind};
use crate::mcp::lists::{self, ListResult, ListSet};
use crate::mcp::peer::{AskError, Era, Peer};
use crate::state::Check;
use futures::future::BoxFuture;
use kernel::tool::call::CallProgress;
use kernel::values::ids::Millis;
use std::future::pending;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use wire::jsonrpc::RpcError;

/// First message of a subscription stream.
const OPEN: &str = "notifications/subscriptions/acknowledged";
/// Changes that arrive within this time are listed together.
const DEBOUNCE_MS: u64 = 250;
/// A server that says that its lists are stale at once is still not asked more often than this.
const TTL_MIN_MS: u64 = 10_000;
/// Lists are read once a day, whatever a server says.
const TTL_MAX_MS: u64 = 24 * 60 * 60 * 1_000;
/// We check a server that may be another one by now, but not more often than this.
const DOUBT_MS: u64 = 10_000;

/// A connection that is attended to.
pub(crate) struct AttendedConnection {
    link: Arc<Link>,
    peer: Arc<Peer>,
    server_messages: ServerMessages,
    listing: Option<BoxFuture<'static, Result<ListResult, AskError>>>,
    /// Gives the error of a server that has no stream of news.
    listening: Option<BoxFuture<'static, Option<RpcError>>>,
    /// Which lists are read now, or were read last, and how often in a row that failed.
    reading: ListSet,
    stumbles: u32,
    /// Which lists should be read again, and when.
    due: ListSet,
    due_at: Millis,
    /// When all should be, if nothing is heard before.
    refresh_at: Millis,
    ttl_ms: Option<u64>,
    /// How many wait to know how it is: since what is read now was begun, and before that.
    asked: usize,
    answers: usize,
    /// How often the stream of news ended soon after it was opened, and when it was opened.
    deaf: u32,
    listens_since: Millis,
    /// Wakes when the stream is open: what changed between the list before it and that is not told.
    opening: mpsc::Sender<()>,
    opened: mpsc::Receiver<()>,
    listed: bool,
    /// Wakes when the server may be another one, and when it was last looked at for that.
    doubts: watch::Receiver<u64>,
    doubted_at: Option<Millis>,
}

/// Something that the server's keeper must know.
#[derive(Debug)]
pub(crate) enum Event {
    Listed(ListResult),
    /// The listing failed; the previous lists stay.
    Stumbled(AskError),
    /// Someone wants to know how it is. The next event but checks answers it.
    Check(Check),
    /// The connection is of no use any more.
    Lost(PeerError),
}

impl AttendedConnection {
    /// Attends to this server from now on; everything is listed at once. So many wait already to
    /// know how it is.
    pub(crate) fn new(
        link: Arc<Link>,
        peer: Arc<Peer>,
        server_messages: ServerMessages,
        waiting: usize,
    ) -> Self {
        let now = link.parts.clock.now();
        let (opening, opened) = mpsc::channel(1);
        Self {
            opening,
            opened,
            doubts: peer.doubts(),
            link,
            peer,
            server_messages,
            listing: None,
            listening: None,
            reading: ListSet::NONE,
            stumbles: 0,
            due: ListSet::ALL,
            due_at: now,
            refresh_at: now,
            ttl_ms: None,
            asked: waiting,
            answers: 0,
            deaf: 0,
            listens_since: now,
            listed: false,
            doubted_at: None,
        }
    }

    /// Continues until there is something to know.
    pub(crate) async fn next(&mut self, checks: &mut mpsc::Receiver<Check>) -> Event {
        loop {
            let idle = self.listing.is_none();
            let timer = self.link.parts.clock.sleep_until(self.next_at());
            // News last: a server that never stops talking must not keep us from the rest.
            tokio::select! {
                biased;
                error = self.peer.lost() => return Event::Lost(error.unwrap_or_else(no_reason)),
                listed = settled(&mut self.listing) => return match listed {
                    Ok(listed) => Event::Listed(self.listed(listed)),
                    Err(error) => self.not_listed(error),
                },
                refused = settled(&mut self.listening) => self.ended(refused),
                Some(()) = self.opened.recv() => self.list_soon(ListSet::ALL, 0),
                () = timer, if idle => self.list(),
                Ok(()) = self.doubts.changed() => self.doubted(),
                Some(check) = checks.recv() => {
                    self.asked += 1;
                    self.list_soon(ListSet::ALL, 0);
                    return Event::Check(check);
                }
                heard = self.server_messages.next() => match heard {
                    Some(incoming) => self.hear(incoming).await,
                    // Over a pipe that means that the server is gone, over HTTP that it tells no
                    // news.
                    None => self.list_soon(ListSet::ALL, 0),
                },
            }
        }
    }

    /// How many of those who wait longest to know how it is have their answer in what was just
    /// listed: it was read after they asked. What the server tells meanwhile does not make them
    /// wait longer.
    pub(crate) fn answered_checks(&mut self) -> usize {
        std::mem::take(&mut self.answers)
    }

    fn now(&self) -> Millis {
        self.link.parts.clock.now()
    }

    /// When something is to be listed.
    fn next_at(&self) -> Millis {
        // A clock that was set back does not put it off.
        let refresh_at = self.refresh_at.min(self.now().plus_ms(self.refresh_ms()));
        if self.due == ListSet::NONE { refresh_at } else { refresh_at.min(self.due_at) }
    }

    fn list_soon(&mut self, which: ListSet, in_ms: u64) {
        let at = self.now().plus_ms(in_ms);
        // News that arrives while something waits already goes with it.
        self.due_at = if self.due == ListSet::NONE { at } else { self.due_at.min(at) };
        self.due = self.due | which;
    }

    fn list(&mut self) {
        // One list that changes all the time must not keep the others from being read.
        let is_time_for_all = self.due == ListSet::NONE || self.now() >= self.refresh_at;
        let which = if is_time_for_all { ListSet::ALL } else { self.due };
        self.reading = which;
        self.due = ListSet::NONE;
        self.answers += std::mem::take(&mut self.asked);
        let peer = self.peer.clone();
        let known = self.link.lists();
        self.listing =
            Some(Box::pin(async move { lists::list(&peer, which, (*known).clone()).await }));
    }

    fn listed(&mut self, listed: ListResult) -> ListResult {
        self.stumbles = 0;
        if !std::mem::replace(&mut self.listed, true) {
            self.listen(0);
        }
        // One list says nothing of how fresh the others are.
        if self.reading == ListSet::ALL {
            self.ttl_ms = listed.ttl_ms;
            self.refresh_at = self.now().plus_ms(self.refresh_ms());
        }
        listed
    }

    fn not_listed(&mut self, error: AskError) -> Event {
        // What changed or was due is not known yet: we try again, but ever less often.
        self.stumbles = self.stumbles.saturating_add(1);
        // Those who wait are notified.
        self.asked = 0;
        self.answers = 0;
        self.due = self.due | self.reading;
        self.due_at = self.now().plus_ms(self.link.parts.backoff_ms(self.stumbles));
        self.refresh_at = self.refresh_at.max(self.due_at);
        match error {
            AskError::Peer(error) if error.kind.loses_connection() => Event::Lost(error),
            error if self.listed && self.is_foreign(&error) => Event::Lost(another_one(&error)),
            error if self.listed => Event::Stumbled(error),
            AskError::Peer(error) => Event::Lost(error),
            AskError::Rpc(_) => {
                let message = format!("its tools cannot be listed: {error}");
                Event::Lost(PeerError::new(CallProgress::Failed, PeerErrorKind::NotMcp, message))
            }
        }
    }

    /// Something was answered as by a server of the other era: its list tells.
    fn doubted(&mut self) {
        let now = self.now();
        let lately = |at: Millis| now.0.saturating_sub(at.0).max(0).unsigned_abs() < DOUBT_MS;
        if self.is_over_http() && !self.doubted_at.is_some_and(lately) {
            self.doubted_at = Some(now);
            self.list_soon(ListSet::TOOLS, 0);
        }
    }

    /// Whether its list cannot be read because it is another server by now. A process is what it
    /// was when it was started.
    fn is_foreign(&self, error: &AskError) -> bool {
        let declared = self.peer.capabilities();
        self.is_over_http() && era_change::is_foreign("tools/list", error, declared)
    }

    fn is_over_http(&self) -> bool {
        matches!(self.link.config.kind, UpstreamKind::Http { .. })
    }

    /// When to list again without having heard anything.
    fn refresh_ms(&self) -> u64 {
        let interval_ms = self.link.parts.limits.upstream_list_interval_ms;
        match self.ttl_ms {
            Some(ttl_ms) if self.listening.is_none() => ttl_ms.clamp(TTL_MIN_MS, TTL_MAX_MS),
            _ => interval_ms,
        }
    }

    /// Opens the stream of news, where the server has one.
    fn listen(&mut self, in_ms: u64) {
        let told = ListSet::told(self.peer.capabilities());
        if self.peer.era() == Era::Legacy || told == ListSet::NONE {
            return;
        }
        let peer = self.peer.clone();
        let clock = self.link.parts.clock.clone();
        let at = self.now().plus_ms(in_ms);
        let opening = self.opening.clone();
        self.listens_since = at;
        self.listening = Some(Box::pin(async move {
            clock.sleep_until(at).await;
            listen(&peer, told, &opening).await
        }));
    }

    /// The stream of news ended, as any may, or the server refused to have one.
    fn ended(&mut self, refused: Option<RpcError>) {
        if let Some(error) = refused {
            let upstream = self.link.config.name.as_str();
            let error = AskError::Rpc(error);
            tracing::debug!(upstream, %error, "an upstream has no stream of news");
            self.refresh_at = self.refresh_at.min(self.now().plus_ms(self.refresh_ms()));
            return;
        }
        let lasted_ms = self.now().0.saturating_sub(self.listens_since.0).max(0).unsigned_abs();
        let is_steady = lasted_ms >= self.link.parts.limits.upstream_backoff_ms_max;
        self.deaf = if is_steady { 1 } else { self.deaf.saturating_add(1) };
        let wait_ms = self.link.parts.backoff_ms(self.deaf);
        // What changed while no one listened was not heard: all is listed once it is open again, or
        // after a while.
        self.listen(wait_ms);
        self.list_soon(ListSet::ALL, wait_ms.saturating_add(DEBOUNCE_MS));
    }

    async fn hear(&mut self, incoming: Incoming) {
        let changed = hear(&self.link, &self.peer, incoming).await;
        if changed != ListSet::NONE {
            self.list_soon(changed, DEBOUNCE_MS);
        }
    }
}

/// Hears the stream of news to its end; its messages go where all news go. The error, if the server
/// has no such stream.
async fn listen(peer: &Peer, told: ListSet, opening: &mpsc::Sender<()>) -> Option<RpcError> {
    let mut replies = peer.listen(told.filter()).await.ok()?;
    while let Some(incoming) = replies.recv().await {
        match incoming {
            Incoming::Error(error) => return Some(error),
            Incoming::Result(_) | Incoming::Broken(_) => return None,
            server_messages => {
                if matches!(&server_messages, Incoming::Notification { method, .. } if method == OPEN)
                {
                    // One that waits already says the same.
                    let _ = opening.try_send(());
                }
                // The other end lives as long as the peer, or no one is interested any more.
                drop(peer.aside().send(server_messages).await);
            }
        }
    }
    None
}

/// The result of what is under way; never, if nothing is.
async fn settled<T>(under_way: &mut Option<BoxFuture<'static, T>>) -> T {
    let Some(future) = under_way else { return pending().await };
    let result = future.await;
    *under_way = None;
    result
}

/// It has to be met again: the server that answers now may be of another era.
fn another_one(error: &AskError) -> PeerError {
    let message = format!("it does not answer as it did when it was connected to: {error}");
    PeerError::new(CallProgress::Failed, PeerErrorKind::Gone, message)
}

fn no_reason() -> PeerError {
    PeerError::new(CallProgress::NotSent, PeerErrorKind::Closed, "the connection is closed")
}
