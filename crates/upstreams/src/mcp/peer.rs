//! One connected MCP server: a line, and what was negotiated over it.

use super::calls::{Calls, ServerMessages};
use super::levels::{LevelGuard, Levels};
use super::line::{Incoming, Line, Outgoing, PeerError, PeerErrorKind, Replies, Result};
use super::params::Params;
use super::requests::Requests;
use crate::RemoteParts;
use crate::mcp::handshake::era_change;
use crate::mcp::handshake::negotiate::{self, ServerHello};
use kernel::limits::Limits;
use kernel::tool::call::{Abilities, CallProgress, LogLevel};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use wire::jsonrpc::{Id, RpcError};

pub(crate) use super::requests::{AskError, Request};
pub(crate) use crate::mcp::handshake::negotiate::{Era, EraChoice};

/// How many pieces of news wait to be heard that came with the answer to a request.
const ASIDE_MAX: usize = 64;
/// A stream of news is opened again once a day.
const LISTEN_MS: u64 = 24 * 60 * 60 * 1_000;
/// How long a server may take to learn from which level on its log is wanted.
const LEVEL_MS: u64 = 2_000;

/// A connected server.
pub(crate) struct Peer {
    requests: Arc<Requests>,
    greeted: ServerHello,
    calls: Arc<Calls>,
    levels: Levels,
    /// Grows when an answer suggests that the server is not of its era any more.
    doubts: watch::Sender<u64>,
    /// Whether what belongs to a call may come outside of it.
    hears_news: bool,
}

impl Peer {
    /// Connects, and gets to know the server in its era. It is told of these folders if it asks.
    /// Also gives what it says outside of any request.
    pub(crate) async fn connect(
        line: Arc<dyn Line>,
        parts: &RemoteParts,
        meet: EraChoice,
        roots: &[String],
    ) -> Result<(Peer, ServerMessages)> {
        let heard = line.server_messages();
        let hears_news = heard.is_some();
        let (aside, set_aside) = mpsc::channel(ASIDE_MAX);
        let requests = Requests::new(line, parts.clone(), aside).with_roots(roots);
        let requests = Arc::new(requests);
        let greeted = negotiate::greet(&requests, meet).await?;
        requests.forget_failures();
        let peer = Peer {
            requests,
            greeted,
            calls: Arc::new(Calls::new(parts.clock.clone())),
            levels: Levels::default(),
            doubts: watch::Sender::new(0),
            hears_news,
        };
        Ok((peer, ServerMessages::new(heard, set_aside)))
    }

    /// Asks and gives the answer. What comes before it is heard as news, or refused.
    pub(crate) async fn ask(
        &self,
        method: &str,
        params: Value,
        name: Option<&str>,
        timeout_ms: u64,
    ) -> Result<Value, AskError> {
        self.request(Request { name, ..Request::new(method, params, timeout_ms) }).await
    }

    /// The same for a request that says more.
    pub(crate) async fn request(&self, mut request: Request<'_>) -> Result<Value, AskError> {
        request.params = self.introduced(request.params, request.can);
        let method = request.method;
        let answered = self.requests.ask(request).await;
        match &answered {
            Err(AskError::Rpc(error)) => self.wonder(method, error),
            Err(AskError::Peer(error)) => self.note(error),
            Ok(_) => {}
        }
        answered
    }

    /// Sends a request that is a call: gives all that comes back for it, the answer last. Dropping
    /// it cancels the call.
    pub(crate) async fn open(&self, request: Request<'_>) -> Result<Replies> {
        let token = request.params.said("progressToken").cloned();
        // A stateless server asks nothing on the way; without a token it tells nothing either.
        let is_told_apart = self.greeted.era == Era::Modern && token.is_none();
        if !self.hears_news || is_told_apart {
            let outgoing = self.outgoing(request);
            return self.requests.open(outgoing).await.inspect_err(|error| self.note(error));
        }
        let tool = request.name.map(Arc::from);
        let outgoing = self.outgoing(request);
        // Not waited for: a server may ask something elsewhere before it begins to answer here.
        let requests = self.requests.clone();
        let opening = Box::pin(async move { requests.open(outgoing).await });
        Ok(self.calls.join(tool, token, opening, &*self.requests.parts.spawn))
    }

    /// Opens a stream of these news, which is not a call.
    pub(crate) async fn listen(&self, notifications: Value) -> Result<Replies> {
        let params = json!({"notifications": notifications});
        let request = Request::new("subscriptions/listen", params, LISTEN_MS);
        self.requests.open(self.outgoing(request)).await
    }

    /// Answers a request of the server's.
    pub(crate) async fn reply(&self, id: &Id, answer: Result<Value, RpcError>) -> Result<()> {
        self.requests.reply(id, answer).await
    }

    /// Answers a request of the server's that belongs to no call.
    pub(crate) async fn serve(&self, id: &Id, method: &str) {
        let ms = self.limits().upstream_connect_timeout_ms;
        // A failure is noted, and a server that does not listen misses the answer.
        let _ = self.requests.parts.within(ms, self.requests.serve(id, method)).await;
    }

    /// Has its log sent from this level on, for as long as the wish is kept. Only servers with a
    /// handshake get a request of its own for this, and only those that have a log.
    pub(crate) async fn hear_log(&self, level: LogLevel) -> Option<LevelGuard> {
        if self.era() == Era::Modern || !self.capabilities()["logging"].is_object() {
            return None;
        }
        let wish = self.levels.wish(level);
        let mut told = self.levels.told.lock().await;
        let lowest = self.levels.lowest();
        if *told == lowest {
            return Some(wish);
        }
        // The one who waits here may leave: then no one knows which level the server has.
        *told = None;
        let asked = self.ask("logging/setLevel", json!({"level": lowest}), None, LEVEL_MS).await;
        if let Err(error) = asked {
            tracing::debug!(?lowest, %error, "could not set the log level of an upstream");
        }
        // A server that refuses it is not asked for the same again.
        *told = lowest;
        Some(wish)
    }

    pub(crate) fn era(&self) -> Era {
        self.greeted.era
    }

    pub(crate) fn capabilities(&self) -> &Value {
        &self.greeted.capabilities
    }

    /// Whether what it asks outside of a call can be of calls over this connection only.
    pub(crate) fn is_apart(&self) -> bool {
        self.requests.line.is_apart()
    }

    /// The version that is spoken.
    pub(crate) fn version(&self) -> &Arc<str> {
        &self.greeted.version
    }

    /// The limits that hold for it.
    pub(crate) fn limits(&self) -> &Limits {
        &self.requests.parts.limits
    }

    /// Its `serverInfo`; null if it sent none.
    pub(crate) fn server(&self) -> &Value {
        &self.greeted.server
    }

    /// The calls under way.
    pub(crate) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Where to put news that came with the answer to a request.
    pub(crate) fn aside(&self) -> &mpsc::Sender<Incoming> {
        &self.requests.aside
    }

    /// Notes a failure: after some nothing can go well until we connect again, and after some the
    /// server may be another one.
    pub(crate) fn note(&self, error: &PeerError) {
        self.requests.note_failure(error);
        if era_change::is_refused(error) {
            self.doubt();
        }
    }

    /// Notes an error that it answered with: after some it may be another server.
    pub(crate) fn wonder(&self, method: &str, error: &RpcError) {
        if era_change::is_unheard_of(method, error, self.capabilities()) {
            self.doubt();
        }
    }

    /// Wakes when the server may be another one.
    pub(crate) fn doubts(&self) -> watch::Receiver<u64> {
        self.doubts.subscribe()
    }

    fn doubt(&self) {
        self.doubts.send_modify(|doubts| *doubts += 1);
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.requests.is_lost()
    }

    /// Waits until the connection is lost, and says how.
    pub(crate) async fn lost(&self) -> Option<PeerError> {
        self.requests.lost().await
    }

    /// Lets go of the server: nothing is sent to it any more.
    pub(crate) async fn close(&self) {
        self.let_go();
        self.requests.line.close().await;
    }

    /// The same without waiting until it has ended; that begins when no one has the peer any more.
    pub(crate) fn let_go(&self) {
        self.note(&PeerError::new(CallProgress::NotSent, PeerErrorKind::Closed, "it was let go"));
    }

    fn outgoing(&self, mut request: Request<'_>) -> Outgoing {
        request.params = self.introduced(request.params, request.can);
        self.requests.with_id(request)
    }

    fn introduced(&self, params: Params, can: Abilities) -> Params {
        match self.greeted.era {
            Era::Modern => negotiate::introduced(params, can),
            Era::Legacy => params,
        }
    }
}
