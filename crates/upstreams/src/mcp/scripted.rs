//! A fake line for tests that answers from a script.

use super::Link;
use super::line::{Incoming, Line, Outgoing, PeerError, PeerErrorKind, Replies};
use crate::config::{EraSetting, OauthConfig, UpstreamConfig, UpstreamKind};
use crate::mcp::lanes::{Dial, LineFuture, LineKind};
use futures::future::BoxFuture;
use kernel::tool::call::CallProgress;
use serde_json::{Value, json};
use std::future::ready;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use wire::jsonrpc::RpcError;
use wire::mcp::MODERN;

pub(crate) enum Scripted {
    /// These come back.
    Replies(Vec<Incoming>),
    /// The request stays open without an answer.
    Silence,
    /// It cannot be sent.
    Fails(PeerError),
}

impl Scripted {
    pub(crate) fn result(result: Value) -> Self {
        Self::Replies(vec![Incoming::Result(result)])
    }

    /// An error of this number.
    pub(crate) fn error(code: i64) -> Self {
        Self::Replies(vec![Incoming::Error(RpcError::new(code, "no"))])
    }

    /// A failure of this kind.
    pub(crate) fn fails(kind: PeerErrorKind) -> Self {
        Self::Fails(PeerError::new(CallProgress::NotSent, kind, "it does not answer"))
    }
}

type Script = Box<dyn FnMut(&Outgoing) -> Scripted + Send>;

/// A scripted server. Many lines may lead to it, one after the other.
#[derive(Clone)]
pub(crate) struct Server(Arc<Mutex<State>>);

struct State {
    script: Script,
    asked: Vec<Outgoing>,
    sent: Vec<Value>,
    transports: Vec<LineKind>,
    agreed: Vec<String>,
    closed: usize,
    server_messages: Option<mpsc::Sender<Incoming>>,
    open: Vec<(String, mpsc::Sender<Incoming>)>,
    reachable: bool,
    is_process: bool,
}

impl Server {
    /// A server that answers so.
    pub(crate) fn new(script: impl FnMut(&Outgoing) -> Scripted + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(State {
            script: Box::new(script),
            asked: Vec::new(),
            sent: Vec::new(),
            transports: Vec::new(),
            agreed: Vec::new(),
            closed: 0,
            server_messages: None,
            open: Vec::new(),
            reachable: true,
            is_process: false,
        })))
    }

    /// The same as a process of ours.
    pub(crate) fn of_process(self) -> Self {
        self.state(|state| state.is_process = true);
        self
    }

    /// Leads to it.
    pub(crate) fn line(&self) -> Arc<dyn Line> {
        let (server_messages, heard) = mpsc::channel(16);
        self.state(|state| state.server_messages = Some(server_messages));
        Arc::new(ScriptedLine { server: self.clone(), server_messages: Mutex::new(Some(heard)) })
    }

    /// Leads to it, whenever asked for.
    pub(crate) fn dial(&self) -> Dial {
        let server = self.clone();
        Arc::new(move |_link: Arc<Link>, transport: LineKind| -> LineFuture {
            server.state(|state| state.transports.push(transport));
            let line: Result<Arc<dyn Line>, PeerError> = Ok(server.line());
            Box::pin(ready(line))
        })
    }

    /// The methods that it was asked for.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.state(|state| state.asked.iter().map(|asked| asked.method.clone()).collect())
    }

    /// All that it was asked.
    pub(crate) fn asked(&self) -> Vec<Outgoing> {
        self.state(|state| state.asked.clone())
    }

    /// Messages that it received beside requests.
    pub(crate) fn sent(&self) -> Vec<Value> {
        self.state(|state| state.sent.clone())
    }

    /// Over which transports it was tried.
    pub(crate) fn transports(&self) -> Vec<LineKind> {
        self.state(|state| state.transports.clone())
    }

    /// Which versions were agreed on.
    pub(crate) fn agreed(&self) -> Vec<String> {
        self.state(|state| state.agreed.clone())
    }

    /// How many lines to it were closed.
    pub(crate) fn closed(&self) -> usize {
        self.state(|state| state.closed)
    }

    /// How many requests of this method are open.
    pub(crate) fn open(&self, method: &str) -> usize {
        let is_open =
            |(of, to): &&(String, mpsc::Sender<Incoming>)| of == method && !to.is_closed();
        self.state(|state| state.open.iter().filter(is_open).count())
    }

    /// Tells this on all open requests of this method.
    pub(crate) fn tell(&self, method: &str, incoming: &Incoming) {
        self.state(|state| {
            for (_, to) in state.open.iter().filter(|(of, _)| of == method) {
                let _ = to.try_send(incoming.clone());
            }
        });
    }

    /// Says this outside of any request.
    pub(crate) fn say(&self, incoming: Incoming) {
        self.state(|state| {
            if let Some(server_messages) = &state.server_messages {
                let _ = server_messages.try_send(incoming);
            }
        });
    }

    /// Has no more to say outside of requests.
    pub(crate) fn mute(&self) {
        self.state(|state| state.server_messages = None);
    }

    /// Can be reached from now on, or not.
    pub(crate) fn reachable(&self, reachable: bool) {
        self.state(|state| state.reachable = reachable);
    }

    /// Answers otherwise from now on.
    pub(crate) fn script(&self, script: impl FnMut(&Outgoing) -> Scripted + Send + 'static) {
        self.state(|state| state.script = Box::new(script));
    }

    fn state<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().unwrap())
    }
}

struct ScriptedLine {
    server: Server,
    server_messages: Mutex<Option<mpsc::Receiver<Incoming>>>,
}

impl Line for ScriptedLine {
    fn request(&self, request: Outgoing) -> BoxFuture<'_, Result<Replies, PeerError>> {
        let replies = self.server.state(|state| {
            state.asked.push(request.clone());
            if !state.reachable {
                let message = "no server is there";
                return Err(PeerError::new(
                    CallProgress::NotSent,
                    PeerErrorKind::Unreachable,
                    message,
                ));
            }
            let (to, replies) = mpsc::channel(16);
            match (state.script)(&request) {
                Scripted::Replies(incoming) => {
                    incoming.into_iter().for_each(|incoming| drop(to.try_send(incoming)));
                }
                Scripted::Silence => state.open.push((request.method, to)),
                Scripted::Fails(error) => return Err(error),
            }
            Ok(replies.into())
        });
        Box::pin(async move { replies })
    }

    fn send(&self, message: String) -> BoxFuture<'_, Result<(), PeerError>> {
        let message = serde_json::from_str(&message).unwrap();
        self.server.state(|state| state.sent.push(message));
        Box::pin(async { Ok(()) })
    }

    fn server_messages(&self) -> Option<mpsc::Receiver<Incoming>> {
        self.server_messages.lock().unwrap().take()
    }

    fn agreed(&self, version: &str) {
        self.server.state(|state| state.agreed.push(version.to_owned()));
    }

    fn is_process(&self) -> bool {
        self.server.state(|state| state.is_process)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.server.state(|state| state.closed += 1);
        Box::pin(async {})
    }
}

/// What a server of today says of itself.
pub(crate) fn discovered(capabilities: Value) -> Value {
    json!({"supportedVersions": [MODERN], "capabilities": capabilities, "resultType": "complete",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "new", "version": "2"}}})
}

/// What an older one says.
pub(crate) fn greeting(version: &str, capabilities: Value) -> Value {
    json!({"protocolVersion": version, "capabilities": capabilities,
        "serverInfo": {"name": "old", "version": "1"}})
}

/// A tool as it is listed.
pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

/// A notification without parameters.
pub(crate) fn told(method: &str) -> Incoming {
    Incoming::Notification { method: method.to_owned(), params: Value::Null }
}

/// An upstream over HTTP.
pub(crate) fn config() -> UpstreamConfig {
    UpstreamConfig {
        name: "far".to_owned(),
        prefix: "far.".to_owned(),
        kind: UpstreamKind::Http {
            url: "http://far.test/mcp".to_owned(),
            headers: Vec::new(),
            oauth: OauthConfig::default(),
        },
        trusted: false,
        journal: true,
        timeout_ms: None,
        era: EraSetting::Auto,
        roots: Vec::new(),
        origin: "a test".to_owned(),
    }
}
