//! The transport contract: how messages get to an MCP server and back, over HTTP or a pipe. What
//! they mean is decided above it.

use super::params::Params;
use futures::future::BoxFuture;
use kernel::tool::call::CallProgress;
use kernel::values::fault::Fault;
use outbound::answer::is_passing;
use serde_json::Value;
use tokio::sync::mpsc;
use wire::jsonrpc::{self, Id, RpcError};

pub(crate) type Result<T, E = PeerError> = std::result::Result<T, E>;

/// A way to one server.
pub(crate) trait Line: Send + Sync {
    /// Sends a request and gives what comes back for it, the answer last. Dropping the receiver
    /// cancels the request on the other side, as its era says.
    fn request(&self, request: Outgoing) -> BoxFuture<'_, Result<Replies>>;

    /// Sends a notification or a response.
    fn send(&self, message: String) -> BoxFuture<'_, Result<()>>;

    /// Messages outside of any request: notifications and, with a handshake, requests. Returned
    /// once; `None` if there can be none.
    fn server_messages(&self) -> Option<mpsc::Receiver<Incoming>>;

    /// The handshake is over, and this version is spoken from now on. A session is the line's own
    /// business.
    fn agreed(&self, version: &str);

    /// Whether what comes outside of any request is for this line alone. A server that keeps no
    /// session may say it to anyone who listens.
    fn is_apart(&self) -> bool {
        true
    }

    /// Whether a process of ours answers, which may have to start first.
    fn is_process(&self) -> bool {
        false
    }

    /// Last lines that the server's process wrote to standard error, for its operator.
    fn last_words(&self) -> Option<String> {
        None
    }

    /// Lets go of the server: ends its session, or its process.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// A request on its way to a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outgoing {
    /// Its id, unique on this line.
    pub(crate) id: Id,
    pub(crate) method: String,
    pub(crate) params: Params,
    /// Value of the `Mcp-Name` header.
    pub(crate) name: Option<String>,
    /// Arguments that are repeated as headers: their whole names, and values ready to be sent.
    pub(crate) param_headers: Vec<(String, String)>,
    /// How long the answer may take.
    pub(crate) timeout_ms: u64,
    /// The one who asks watches the time, and drops what takes longer.
    pub(crate) is_watched: bool,
}

impl Outgoing {
    /// The whole message.
    pub(crate) fn message(&self) -> String {
        jsonrpc::request(&self.id, &self.method, |text| self.params.write(text))
    }
}

/// Replies to a request. Bounded.
#[derive(Debug)]
pub(crate) enum Replies {
    /// All of it came at once: the news first, then the answer.
    Whole(std::vec::IntoIter<Incoming>, Option<Incoming>),
    /// It comes bit by bit.
    Coming(mpsc::Receiver<Incoming>),
}

impl Replies {
    /// The next message; none after the answer.
    pub(crate) async fn recv(&mut self) -> Option<Incoming> {
        match self {
            Replies::Whole(told, answer) => told.next().or_else(|| answer.take()),
            Replies::Coming(coming) => coming.recv().await,
        }
    }
}

impl From<mpsc::Receiver<Incoming>> for Replies {
    fn from(coming: mpsc::Receiver<Incoming>) -> Self {
        Self::Coming(coming)
    }
}

/// One message from a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Incoming {
    Notification {
        method: String,
        /// Its parameters; null where there are none.
        params: Value,
    },
    /// A request of the server's.
    Request {
        /// Its id, to answer under.
        id: Id,
        method: String,
        /// Its parameters; null where there are none.
        params: Value,
    },
    /// The answer.
    Result(Value),
    /// The answer, if it is an error.
    Error(RpcError),
    /// No answer will come.
    Broken(PeerError),
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct PeerError {
    /// How far the request got.
    pub(crate) how: CallProgress,
    pub(crate) kind: PeerErrorKind,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// Why a request got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerErrorKind {
    /// No connection, or it was lost.
    Unreachable,
    /// An answer is not HTTP; the next one may be.
    Garbled,
    /// It took too long.
    Timeout,
    /// Refused with this HTTP status.
    Refused(u16),
    /// The answer is too large.
    TooLarge,
    /// The response is not MCP.
    NotMcp,
    /// The server does not know our session any more.
    Gone,
    /// The server wants other credentials.
    Unauthorized,
    /// The server does not let us do this.
    Forbidden,
    /// Someone must log in first, and can.
    Login,
    /// Someone must log in for more than our token is good for, and can.
    Scope,
    /// The line is closed: the process ended, or we closed it.
    Closed,
}

impl PeerErrorKind {
    /// Its stable word in a fault.
    pub(crate) fn word(self) -> &'static str {
        match self {
            PeerErrorKind::Unreachable | PeerErrorKind::Garbled => "UpstreamUnreachable",
            PeerErrorKind::Timeout => "UpstreamTimeout",
            PeerErrorKind::Refused(_) => "UpstreamRefused",
            PeerErrorKind::TooLarge => "UpstreamAnswerTooLarge",
            PeerErrorKind::NotMcp => "UpstreamNotMcp",
            PeerErrorKind::Gone => "UpstreamSessionLost",
            PeerErrorKind::Unauthorized => "UpstreamUnauthorized",
            PeerErrorKind::Forbidden => "UpstreamForbidden",
            PeerErrorKind::Login => "UpstreamLogin",
            PeerErrorKind::Scope => "UpstreamScope",
            PeerErrorKind::Closed => "UpstreamClosed",
        }
    }

    /// Whether it goes well once someone has logged in.
    pub(crate) fn wants_login(self) -> bool {
        matches!(self, PeerErrorKind::Login | PeerErrorKind::Scope)
    }

    /// Whether the same may go well a little later, once we are connected again.
    pub(crate) fn is_passing(self) -> bool {
        match self {
            PeerErrorKind::Unreachable
            | PeerErrorKind::Garbled
            | PeerErrorKind::Timeout
            | PeerErrorKind::Gone
            | PeerErrorKind::Closed => true,
            PeerErrorKind::Refused(status) => is_passing(status),
            PeerErrorKind::TooLarge
            | PeerErrorKind::NotMcp
            | PeerErrorKind::Unauthorized
            | PeerErrorKind::Forbidden
            | PeerErrorKind::Login
            | PeerErrorKind::Scope => false,
        }
    }

    /// Whether the next request would most likely fail the same way until we connect again.
    pub(crate) fn loses_connection(self) -> bool {
        match self {
            PeerErrorKind::Unreachable
            | PeerErrorKind::Gone
            | PeerErrorKind::Unauthorized
            | PeerErrorKind::Login
            | PeerErrorKind::Closed => true,
            PeerErrorKind::Garbled
            | PeerErrorKind::Timeout
            | PeerErrorKind::Refused(_)
            | PeerErrorKind::Forbidden
            | PeerErrorKind::Scope
            | PeerErrorKind::TooLarge
            | PeerErrorKind::NotMcp => false,
        }
    }
}

impl PeerError {
    /// A failure without a hint.
    pub(crate) fn new(how: CallProgress, kind: PeerErrorKind, message: impl Into<String>) -> Self {
        Self { how, kind, message: message.into(), hint: None }
    }

    /// The same with a hint.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// As a fault of the upstream of this name.
    pub(crate) fn fault(&self, upstream: &str) -> Fault {
        let message = format!("upstream `{upstream}`: {}", self.message);
        let fault = Fault::new(self.kind.word(), message);
        Fault { hint: self.hint.clone(), passing: self.kind.is_passing(), ..fault }
    }
}
