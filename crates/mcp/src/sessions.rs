//! Sessions of the versions with a handshake: what a client said of itself once, its requests and
//! ours, its streams, and the resources that it watches. All of it is bounded, and none of it
//! outlives the process: a client whose session is gone begins another one.

use super::client::{Client, ClientCapabilities, Version};
use crate::lock;
use crate::messages::outbox::{AskError, ClientChannel, Outbox};
use crate::messages::replay::{Replay, STANDALONE};
use crate::messages::requests::{REQUESTS_MAX, Requests};
use edge::request::server_state::ServerState;
use engine::refusal::Quota;
use futures::future::{BoxFuture, ready};
use kernel::contracts::Clock;
use kernel::contracts::shelf::Changes;
use kernel::identity::shares::{Portion, SharedLimit};
use kernel::limits::Limits;
use kernel::tool::call::{Caller, LogLevel};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{mpsc, oneshot};
use wire::jsonrpc::{INTERNAL_ERROR, Id, RpcError, notification, request};

/// How many streams of one session can be taken up again.
const STREAMS_MAX: usize = 16;
/// How many resources one client watches.
pub(crate) const WATCHED_MAX: usize = 64;
/// How many wishes of one client wait until they are read.
const WISHES_MAX: usize = 16;

/// The sessions of one server.
#[derive(Default)]
pub(crate) struct Sessions {
    open: Mutex<HashMap<String, Arc<Session>>>,
}

impl Sessions {
    /// Adds a session. Those that no one used for long make room first; if that is not enough, the
    /// one that no one used for longest: most clients never say that they are done. A caller's own
    /// go before those of others: who begins many ends nobody else's. Who has used up its share, or
    /// its realm's, makes room only among these.
    pub(crate) fn add(&self, session: &Arc<Session>) -> Result<(), RpcError> {
        let mut open = lock(&self.open);
        open.retain(|_, known| {
            let kept = !known.is_forgotten();
            if !kept {
                known.end();
            }
            kept
        });
        if let Some(full) = session.full(&open) {
            let is_among = |known: &&Arc<Session>| !known.is_busy() && full.has(known, session);
            let idle = open.values().filter(is_among);
            let order = |known: &&Arc<Session>| (!known.is_of(&session.caller), known.used_at());
            let Some(oldest) = idle.min_by_key(order).cloned() else {
                return Err(session.no_room(full));
            };
            open.remove(oldest.id());
            oldest.end();
        }
        open.insert(session.id.clone(), session.clone());
        Ok(())
    }

    /// The session of this id, if it is this caller's.
    pub(crate) fn find(&self, id: &str, caller: &Caller) -> Option<Arc<Session>> {
        let session = lock(&self.open).get(id).cloned()?;
        if !session.is_of(caller) {
            return None;
        }
        if session.is_forgotten() {
            self.end(id, caller);
            return None;
        }
        session.touch();
        Some(session)
    }

    /// Ends a session; whether there was one.
    pub(crate) fn end(&self, id: &str, caller: &Caller) -> bool {
        let mut open = lock(&self.open);
        let found = open.get(id).filter(|session| session.is_of(caller)).cloned();
        let Some(session) = found else { return false };
        open.remove(id);
        drop(open);
        session.end();
        true
    }
}

/// Among which sessions there is no room for one more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionLimit {
    /// Those of its caller.
    Own,
    Realm,
    All,
}

impl SessionLimit {
    /// Whether a known session is one of those among which a new one has no room.
    fn has(self, known: &Session, new: &Session) -> bool {
        match self {
            SessionLimit::Own => known.is_of(&new.caller),
            SessionLimit::Realm => known.caller.realm == new.caller.realm,
            SessionLimit::All => true,
        }
    }
}

/// One client's session.
pub(crate) struct Session {
    id: String,
    caller: Arc<Caller>,
    /// The version that was agreed on.
    pub(crate) version: Version,
    /// What the client can.
    pub(crate) can: ClientCapabilities,
    /// The requests of the client.
    pub(crate) requests: Requests,
    news: Outbox,
    standalone: Arc<Replay>,
    wishes: mpsc::Sender<SubscriptionChange>,
    /// Numbers of our requests and of streams.
    numbers: AtomicU64,
    /// When it was used last, in milliseconds of `Clock::elapsed`: a clock that is set ends no
    /// session.
    used_at: AtomicU64,
    clock: Arc<dyn Clock>,
    limits: Arc<Limits>,
    /// How many sessions its realm and its caller may have, where they have shares.
    portion: Option<Portion>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    log: Option<LogLevel>,
    /// Our requests that the client has not answered yet.
    asks: HashMap<u64, oneshot::Sender<Result<Value, RpcError>>>,
    /// Streams of answers that can be taken up again, oldest first.
    streams: VecDeque<Arc<Replay>>,
    /// The URIs of the resources that it watches.
    watched: BTreeSet<String>,
}

/// What a client wants to hear of.
pub(crate) enum SubscriptionChange {
    /// Of changes of the resource at this URI.
    Hear(String, Box<dyn Changes>),
    /// No more of it.
    Forget(String),
}

impl Session {
    /// A session for a client that sent `initialize`, and what it will wish for. What belongs to no
    /// request goes through the given channel, or to the stream that the client opens for it.
    pub(crate) fn begin(
        server: &ServerState,
        caller: &Arc<Caller>,
        client: &Client,
        news: Option<Outbox>,
    ) -> (Arc<Self>, mpsc::Receiver<SubscriptionChange>) {
        let engine = &server.engine;
        let limits = server.engine.limits().clone();
        let standalone = Arc::new(Replay::new(STANDALONE));
        let to_stream = || Outbox::new(Arc::new(Standalone(standalone.clone())));
        let (wishes, wished) = mpsc::channel(WISHES_MAX);
        let session = Self {
            id: format!("{:032x}", engine.entropy().bits()),
            caller: caller.clone(),
            version: client.version,
            can: client.can,
            requests: Requests::new(REQUESTS_MAX),
            news: news.unwrap_or_else(to_stream),
            standalone,
            wishes,
            numbers: AtomicU64::new(0),
            used_at: AtomicU64::new(elapsed_ms(engine.clock().as_ref())),
            clock: engine.clock().clone(),
            limits,
            portion: engine.shares(SharedLimit::McpSessions).portion(&caller.realm),
            state: Mutex::default(),
        };
        (Arc::new(session), wished)
    }

    /// Its id: visible ASCII, and not to be guessed.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Where what belongs to no request goes.
    pub(crate) fn news(&self) -> Outbox {
        self.news.clone()
    }

    /// From which level on the client wants to hear the log.
    pub(crate) fn log(&self) -> Option<LogLevel> {
        self.lock().log
    }

    /// It wants to hear the log from this level on.
    pub(crate) fn set_log(&self, level: LogLevel) {
        self.lock().log = Some(level);
    }

    /// A stream for the answer to a request, which can be taken up again.
    pub(crate) fn new_stream(&self) -> Arc<Replay> {
        let stream = Arc::new(Replay::new(self.next_number()));
        let mut state = self.lock();
        state.streams.push_back(stream.clone());
        while state.streams.len() > STREAMS_MAX {
            // Those that are over first: their clients most likely got everything.
            let over = state.streams.iter().position(|stream| stream.is_ended());
            state.streams.remove(over.unwrap_or(0));
        }
        stream
    }

    /// The stream of this number, if it is kept.
    pub(crate) fn stream(&self, number: u64) -> Option<Arc<Replay>> {
        if number == STANDALONE {
            return Some(self.standalone.clone());
        }
        self.lock().streams.iter().find(|stream| stream.number() == number).cloned()
    }

    /// The client watches a resource from now on.
    pub(crate) async fn watch(
        &self,
        uri: String,
        changes: Box<dyn Changes>,
    ) -> Result<(), RpcError> {
        {
            let mut state = self.lock();
            if state.watched.len() >= WATCHED_MAX && !state.watched.contains(&uri) {
                let message =
                    format!("{WATCHED_MAX} resources are watched, and no more are allowed");
                return Err(RpcError::invalid_params(message)
                    .data(json!({"hint": "unsubscribe from one first"})));
            }
            state.watched.insert(uri.clone());
        }
        // If no one looks at wishes any more, the server is closing.
        let _ = self.wishes.send(SubscriptionChange::Hear(uri, changes)).await;
        Ok(())
    }

    /// The client watches a resource no more.
    pub(crate) async fn unwatch(&self, uri: String) {
        let watched = self.lock().watched.remove(&uri);
        if watched {
            let _ = self.wishes.send(SubscriptionChange::Forget(uri)).await;
        }
    }

    /// The client answered a request of ours. Answers that no one waits for are dropped.
    pub(crate) fn answer(&self, id: &RawValue, answer: Result<&RawValue, &RawValue>) {
        let Ok(number) = id.get().parse::<u64>() else { return };
        let Some(waiting) = self.lock().asks.remove(&number) else { return };
        let answer = match answer {
            Ok(result) => serde_json::from_str(result.get()).map_err(|error| {
                RpcError::new(INTERNAL_ERROR, format!("the client's answer is no JSON: {error}"))
            }),
            Err(error) => Err(refused(error)),
        };
        let _ = waiting.send(answer);
    }

    /// No one answers our requests any more: the client is gone.
    pub(crate) fn give_up_asking(&self) {
        self.lock().asks.clear();
    }

    /// Everything under way ends.
    fn end(&self) {
        self.requests.end_all();
        let (asks, streams) = {
            let mut state = self.lock();
            (std::mem::take(&mut state.asks), std::mem::take(&mut state.streams))
        };
        drop(asks);
        self.standalone.end();
        streams.iter().for_each(|stream| stream.end());
    }

    /// Among which of the open sessions there is no room for this one.
    fn full(&self, open: &HashMap<String, Arc<Session>>) -> Option<SessionLimit> {
        let max = |full: SessionLimit| match (full, self.portion) {
            (SessionLimit::All, _) => self.limits.mcp_sessions_max,
            (SessionLimit::Own, Some(portion)) => portion.caller,
            (SessionLimit::Realm, Some(portion)) => portion.realm,
            (SessionLimit::Own | SessionLimit::Realm, None) => usize::MAX,
        };
        let count =
            |full: SessionLimit| open.values().filter(|known| full.has(known, self)).count();
        [SessionLimit::Own, SessionLimit::Realm, SessionLimit::All]
            .into_iter()
            .find(|full| count(*full) >= max(*full))
    }

    /// Why it cannot begin: all sessions that could make room are in use. Where there are shares,
    /// only the caller's own number is shown.
    fn no_room(&self, full: SessionLimit) -> RpcError {
        let (message, hint) = match (full, self.portion) {
            (SessionLimit::Own, Some(Portion { caller, .. })) => (
                format!("this caller may have {caller} MCP sessions, and all of them are in use"),
                "end one, or ask an operator for a larger share",
            ),
            (_, Some(_)) => (
                "no more MCP sessions are possible at this moment".to_owned(),
                "send it again in a moment",
            ),
            (_, None) => {
                let max = self.limits.mcp_sessions_max;
                (
                    format!("{max} MCP sessions are open, and all of them are in use"),
                    "end one, or raise `mcp_sessions_max` in `[limits]`",
                )
            }
        };
        RpcError::new(INTERNAL_ERROR, message).data(json!({"hint": hint}))
    }

    /// How many sessions its caller may have, where it has a share.
    pub(crate) fn quota(&self) -> Option<Quota> {
        let max = u64::try_from(self.portion?.caller).unwrap_or(u64::MAX);
        Some(Quota { of: SharedLimit::McpSessions.name(), max, window_s: None })
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    fn is_of(&self, caller: &Caller) -> bool {
        let own = &self.caller;
        let is_same = own.subject == caller.subject && own.actor == caller.actor;
        is_same && own.realm == caller.realm
    }

    /// Whether a request is under way or a stream is open.
    fn is_busy(&self) -> bool {
        let streams = self.lock().streams.iter().any(|stream| stream.is_read());
        streams || self.standalone.is_read() || !self.requests.is_empty()
    }

    fn is_forgotten(&self) -> bool {
        let idle_ms = elapsed_ms(self.clock.as_ref()).saturating_sub(self.used_at());
        idle_ms > self.limits.mcp_session_idle_ms && !self.is_busy()
    }

    fn used_at(&self) -> u64 {
        self.used_at.load(Ordering::Relaxed)
    }

    /// It is in use.
    pub(crate) fn touch(&self) {
        self.used_at.store(elapsed_ms(self.clock.as_ref()), Ordering::Relaxed);
    }

    fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn elapsed_ms(clock: &dyn Clock) -> u64 {
    u64::try_from(clock.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Asks a session's client for something through this channel, and waits for its answer.
pub(crate) async fn ask(
    session: &Arc<Session>,
    channel: &dyn ClientChannel,
    method: &str,
    params: Value,
) -> Result<Value, AskError> {
    let silent = |message: String| AskError::Silent(RpcError::new(INTERNAL_ERROR, message));
    let number = session.next_number();
    let (sender, mut answer) = oneshot::channel();
    {
        let mut state = session.lock();
        if state.asks.len() >= REQUESTS_MAX {
            let message =
                format!("{REQUESTS_MAX} requests to the client wait for an answer already");
            return Err(silent(message));
        }
        state.asks.insert(number, sender);
    }
    let _asked = PendingRequest { session: session.clone(), number };
    let gone = || silent(format!("the client left before `{method}`"));
    // Plain data into memory: this cannot fail.
    let write = |text: &mut Vec<u8>| drop(serde_json::to_writer(text, &params));
    if !channel.send(request(&Id::number(number), method, write)).await {
        return Err(gone());
    }
    let wait_ms = session.limits.mcp_ask_wait_ms;
    match engine::timeout(session.clock.as_ref(), wait_ms, &mut answer).await {
        Some(Ok(answer)) => answer.map_err(AskError::Refused),
        Some(Err(_)) => Err(gone()),
        None => {
            let cancelled = json!({"requestId": number, "reason": "no one answered in time"});
            channel.try_send(notification("notifications/cancelled", &cancelled));
            Err(silent(format!("the client did not answer `{method}` within {wait_ms} ms")))
        }
    }
}

/// A request of ours that waits for its answer.
struct PendingRequest {
    session: Arc<Session>,
    number: u64,
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.session.lock().asks.remove(&self.number);
    }
}

/// The stream that a client opens for what belongs to no request.
struct Standalone(Arc<Replay>);

impl ClientChannel for Standalone {
    fn try_send(&self, message: String) {
        self.0.push_once(message);
    }

    fn send(&self, message: String) -> BoxFuture<'_, bool> {
        self.0.push_once(message);
        Box::pin(ready(!self.0.is_ended()))
    }

    fn ask<'a>(&'a self, method: &'a str, _: Value) -> BoxFuture<'a, Result<Value, AskError>> {
        let message = format!("`{method}` belongs to a request, and there is none");
        Box::pin(ready(Err(AskError::Silent(RpcError::new(INTERNAL_ERROR, message)))))
    }
}

/// The error in a client's answer.
fn refused(error: &RawValue) -> RpcError {
    #[derive(Deserialize)]
    struct Written {
        code: i64,
        message: String,
        data: Option<Value>,
    }
    match serde_json::from_str(error.get()) {
        Ok(Written { code, message, data }) => RpcError { code, message, data },
        Err(_) => RpcError::new(INTERNAL_ERROR, "the client refused without a reason"),
    }
}
