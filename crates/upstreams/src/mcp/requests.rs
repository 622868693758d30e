//! Sends our requests to one MCP server: gives them ids and timeouts, waits for their answers, and
//! notices when the connection is lost. What the server asks outside of a call is answered here,
//! too; what it asks during a call is in `lanes` and `tool`.

use super::line::{Incoming, Line, Outgoing, PeerError, PeerErrorKind, Replies, Result};
use super::params::Params;
use crate::RemoteParts;
use kernel::tool::call::{Abilities, CallProgress};
use serde_json::{Value, json};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, watch};
use wire::jsonrpc::{self, INVALID_REQUEST, Id, METHOD_NOT_FOUND, RpcError};

/// The method by which a server asks a person something.
pub(crate) const ELICIT: &str = "elicitation/create";
/// The method by which a server asks our caller's model something.
pub(crate) const SAMPLE: &str = "sampling/createMessage";
/// The method by which a server asks for our caller's folders.
pub(crate) const ROOTS: &str = "roots/list";

/// One request of ours.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: Params,
    /// Value of the `Mcp-Name` header, if there is one.
    pub(crate) name: Option<&'a str>,
    /// Arguments that are repeated as headers.
    pub(crate) param_headers: Vec<(String, String)>,
    /// Abilities of the caller, which a stateless server is told.
    pub(crate) can: Abilities,
    /// How long the answer may take.
    pub(crate) timeout_ms: u64,
    /// The one who asks watches the time, and drops what takes longer.
    pub(crate) is_watched: bool,
}

impl<'a> Request<'a> {
    /// A request about nothing in particular.
    pub(crate) fn new(method: &'a str, params: impl Into<Params>, timeout_ms: u64) -> Self {
        let params = params.into();
        let param_headers = Vec::new();
        let can = Abilities::PERSON;
        Self { method, params, name: None, param_headers, can, timeout_ms, is_watched: false }
    }
}

/// Why a request got no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum AskError {
    /// There is no answer.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// The answer is an error.
    #[error("the server answered with error {}: {}", .0.code, .0.message)]
    Rpc(RpcError),
}

impl From<RpcError> for AskError {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}

/// The requests over one line, and whether that line is lost.
pub(crate) struct Requests {
    pub(crate) line: Arc<dyn Line>,
    /// Time, limits and so on.
    pub(crate) parts: RemoteParts,
    /// Where notifications go that come with the answer to a request but are of general interest.
    pub(crate) aside: mpsc::Sender<Incoming>,
    /// The folders that the operator names for the server.
    roots: Vec<String>,
    last_id: AtomicU64,
    lost: watch::Sender<Option<PeerError>>,
}

impl Requests {
    /// Requests over this line.
    pub(crate) fn new(
        line: Arc<dyn Line>,
        parts: RemoteParts,
        aside: mpsc::Sender<Incoming>,
    ) -> Self {
        let last_id = AtomicU64::new(0);
        let lost = watch::Sender::new(None);
        Self { line, parts, aside, roots: Vec::new(), last_id, lost }
    }

    /// The same, to a server that is told of these folders.
    #[must_use]
    pub(crate) fn with_roots(self, roots: &[String]) -> Self {
        Self { roots: roots.to_vec(), ..self }
    }

    /// This request under a new id.
    pub(crate) fn with_id(&self, request: Request<'_>) -> Outgoing {
        Outgoing {
            id: Id::number(self.last_id.fetch_add(1, Ordering::Relaxed) + 1),
            method: request.method.to_owned(),
            params: request.params,
            name: request.name.map(str::to_owned),
            param_headers: request.param_headers,
            timeout_ms: request.timeout_ms,
            is_watched: request.is_watched,
        }
    }

    /// Sends a request and gives all that comes back for it.
    pub(crate) async fn open(&self, outgoing: Outgoing) -> Result<Replies> {
        self.line.request(outgoing).await.inspect_err(|error| self.note_failure(error))
    }

    /// Sends a request and gives its answer. What becomes of the connection after a failure is for
    /// the one who asks to note.
    pub(crate) async fn ask(&self, request: Request<'_>) -> Result<Value, AskError> {
        let method = request.method;
        let timeout_ms = request.timeout_ms;
        let request = Request { is_watched: true, ..request };
        let answering = pin!(self.answer(request));
        let answered = self.parts.within(timeout_ms, answering).await;
        answered.unwrap_or_else(|| Err(AskError::Peer(took_too_long(method, timeout_ms))))
    }

    async fn answer(&self, request: Request<'_>) -> Result<Value, AskError> {
        let method = request.method;
        let mut replies = self.open(self.with_id(request)).await?;
        while let Some(incoming) = replies.recv().await {
            match incoming {
                Incoming::Result(result) => return Ok(result),
                Incoming::Error(error) => return Err(error.into()),
                Incoming::Broken(error) => return Err(error.into()),
                // No one may be there to hear it, and it says only that lists changed.
                Incoming::Notification { .. } => drop(self.aside.try_send(incoming)),
                Incoming::Request { id, method, .. } => self.serve(&id, &method).await?,
            }
        }
        Err(AskError::Peer(no_answer(method)))
    }

    /// Answers a request of the server's that belongs to no call.
    pub(crate) async fn serve(&self, id: &Id, method: &str) -> Result<()> {
        self.reply(id, own_answer(method, &self.roots)).await
    }

    /// Answers a request of the server's.
    pub(crate) async fn reply(&self, id: &Id, answer: Result<Value, RpcError>) -> Result<()> {
        let message = match answer {
            Ok(result) => jsonrpc::result(id, &result.to_string()),
            Err(error) => jsonrpc::error(Some(id), &error),
        };
        self.line.send(message).await.inspect_err(|error| self.note_failure(error))
    }

    /// Notes a failure. Some kinds mean that the connection is lost until we connect again.
    pub(crate) fn note_failure(&self, error: &PeerError) {
        if error.kind.loses_connection() {
            self.lost.send_replace(Some(error.clone()));
        }
    }

    /// The handshake is done: failures on the way there do not count as a lost connection.
    pub(crate) fn forget_failures(&self) {
        self.lost.send_replace(None);
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.borrow().is_some()
    }

    /// Waits until the connection is lost, and says how.
    pub(crate) async fn lost(&self) -> Option<PeerError> {
        let mut lost = self.lost.subscribe();
        let lost = lost.wait_for(Option::is_some).await;
        lost.ok().and_then(|error| error.clone())
    }
}

/// The answer to a request that needs nobody.
fn own_answer(method: &str, roots: &[String]) -> Result<Value, RpcError> {
    match method {
        "ping" => Ok(json!({})),
        // Unless the operator names some, a server has no business in our own folders, and an empty
        // list says so without an error.
        ROOTS => {
            let roots: Vec<Value> = roots.iter().map(|uri| json!({"uri": uri})).collect();
            Ok(json!({"roots": roots}))
        }
        ELICIT | SAMPLE => Err(RpcError::new(
            INVALID_REQUEST,
            "no one can be asked: the request belongs to no call, or to one of several; ask for \
             one call at a time",
        )),
        _ => Err(RpcError::new(METHOD_NOT_FOUND, format!("there is no method `{method}` here"))),
    }
}

/// No answer came in time.
pub(crate) fn took_too_long(method: &str, ms: u64) -> PeerError {
    let message = format!("no answer to `{method}` within {ms} ms");
    PeerError::new(CallProgress::Unknown, PeerErrorKind::Timeout, message)
}

fn no_answer(method: &str) -> PeerError {
    let message = format!("the connection was lost before `{method}` was answered");
    PeerError::new(CallProgress::Unknown, PeerErrorKind::Closed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pings_and_similar_requests_are_answered_directly() {
        assert_eq!(own_answer("ping", &[]), Ok(json!({})));
        assert_eq!(own_answer(ROOTS, &[]), Ok(json!({"roots": []})));
        let named = own_answer(ROOTS, &["file:///srv/a".to_owned()]);
        assert_eq!(named, Ok(json!({"roots": [{"uri": "file:///srv/a"}]})));
        let code = |method| own_answer(method, &[]).unwrap_err().code;
        assert_eq!(code(ELICIT), INVALID_REQUEST);
        assert_eq!(code(SAMPLE), INVALID_REQUEST);
        assert_eq!(code("tools/call"), METHOD_NOT_FOUND);
    }
}
