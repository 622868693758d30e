//! A scripted MCP server for tests, on a stage with a fake clock: the test receives each request
//! and answers it, in either era.

use super::RemoteTool;
use crate::config::{EraSetting, OauthConfig, UpstreamConfig, UpstreamKind};
use crate::mcp::lanes::{Dial, LineFuture, LineKind};
use crate::mcp::line::{Incoming, Line, Outgoing, PeerError, PeerErrorKind, Replies};
use crate::mcp::lists::Lists;
use crate::mcp::peer::{Era, EraChoice, Peer};
use crate::mcp::{Connection, Link};
use crate::stage::Stage;
use crate::{RemoteParts, lock};
use futures::future::BoxFuture;
use kernel::contracts::Tool;
use kernel::limits::Limits;
use kernel::tool::call::{
    Abilities, Call, CallContext, CallProgress, CallReporter, CallUpdate, Caller, InputRequired,
    InputResponses, Listener, LogLevel, ToolError, ToolOutput,
};
use kernel::values::ids::CallId;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use wire::jsonrpc::{Id, RpcError};
use wire::mcp::{LEGACY, MODERN};

/// How many messages wait in one stream.
const STREAM_MAX: usize = 16;

/// One upstream on its stage.
pub(crate) struct Scene {
    /// Time and tasks.
    pub(crate) stage: Stage,
    /// The upstream.
    pub(crate) link: Arc<Link>,
    /// Its other end, in the test's hands.
    pub(crate) server: Server,
}

impl Scene {
    /// A connected server of this era.
    pub(crate) fn new(era: Era) -> Self {
        Self::with(era, |_, _| {})
    }

    /// The same, configured and limited otherwise.
    pub(crate) fn with(era: Era, change: impl FnOnce(&mut UpstreamConfig, &mut Limits)) -> Self {
        let stage = Stage::new();
        let mut config = UpstreamConfig {
            name: "up".to_owned(),
            prefix: "up.".to_owned(),
            kind: UpstreamKind::Http {
                url: "http://up.test/mcp".to_owned(),
                headers: Vec::new(),
                oauth: OauthConfig::default(),
            },
            trusted: false,
            journal: true,
            timeout_ms: None,
            era: EraSetting::Auto,
            roots: Vec::new(),
            origin: "waypost.toml:1".to_owned(),
        };
        let mut limits = Limits::default();
        change(&mut config, &mut limits);
        let parts = RemoteParts { limits: Arc::new(limits), ..stage.parts() };
        let link = Arc::new(Link::new(config, parts, nowhere()));
        let server = stage.run(connect(&link, era));
        Self { stage, link, server }
    }

    /// A tool that it lists with these members beside its name.
    pub(crate) fn tool(&self, more: Value) -> Option<Arc<dyn Tool>> {
        let mut listed = json!({"name": "t", "inputSchema": {"type": "object"}});
        for (key, value) in more.as_object().unwrap() {
            listed[key] = value.clone();
        }
        RemoteTool::listed(self.link.clone(), listed).ok()
    }

    pub(crate) fn list(&self, lists: Lists) {
        *lock(&self.link.lists) = Arc::new(lists);
    }

    /// It is away from now on.
    pub(crate) fn lose(&self, error: PeerError) {
        self.link.set(Connection::Failing(error));
    }

    /// Another connection to it.
    pub(crate) async fn connect_anew(&mut self, era: Era) {
        self.server = connect(&self.link, era).await;
    }
}

/// Leads to no server: a scene has the one connection that it begins with.
fn nowhere() -> Dial {
    Arc::new(|_link: Arc<Link>, _way: LineKind| -> LineFuture {
        let error =
            PeerError::new(CallProgress::NotSent, PeerErrorKind::NotMcp, "there is no other");
        Box::pin(std::future::ready(Err(error)))
    })
}

async fn connect(link: &Arc<Link>, era: Era) -> Server {
    let (asked, requests) = mpsc::unbounded_channel();
    let (told, messages) = mpsc::unbounded_channel();
    let line = Arc::new(Ours { asked, told });
    let meet = EraChoice::Any(Some(era));
    let roots = &link.config.roots;
    let connecting = Peer::connect(line, &link.parts, meet, roots);
    let (peer, _unheard) = connecting.await.unwrap();
    link.set(Connection::Ready(Arc::new(peer)));
    let mut server = Server { requests, messages };
    if era == Era::Legacy {
        assert_eq!(server.told().await["method"], "notifications/initialized");
    }
    server
}

/// The test's end of the line.
pub(crate) struct Server {
    requests: mpsc::UnboundedReceiver<Asked>,
    messages: mpsc::UnboundedReceiver<Value>,
}

/// A request of ours, with the way back.
pub(crate) struct Asked {
    pub(crate) request: Outgoing,
    params: Value,
    /// What comes back for it.
    pub(crate) replies: mpsc::Sender<Incoming>,
}

impl Server {
    /// The next request, whatever it is.
    pub(crate) async fn next(&mut self) -> Asked {
        self.requests.recv().await.unwrap()
    }

    /// The next request, which must be of this method.
    pub(crate) async fn asked(&mut self, method: &str) -> Asked {
        let asked = self.next().await;
        assert_eq!(asked.request.method, method, "{:?}", asked.request.params);
        asked
    }

    /// Whether nothing is asked now.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.requests.try_recv().is_err()
    }

    /// The next notification or response.
    pub(crate) async fn told(&mut self) -> Value {
        self.messages.recv().await.unwrap()
    }
}

impl Asked {
    pub(crate) fn params(&self) -> &Value {
        &self.params
    }

    pub(crate) async fn answer(&self, result: Value) {
        self.send(Incoming::Result(result)).await;
    }

    /// Answers with an error.
    pub(crate) async fn fail(&self, error: RpcError) {
        self.send(Incoming::Error(error)).await;
    }

    /// Tells something on the way.
    pub(crate) async fn tell(&self, method: &str, params: Value) {
        self.send(Incoming::Notification { method: method.to_owned(), params }).await;
    }

    /// Asks something on the way.
    pub(crate) async fn ask(&self, id: u64, method: &str, params: Value) {
        let id = Id::number(id);
        let method = method.to_owned();
        self.send(Incoming::Request { id, method, params }).await;
    }

    /// Sends it, whatever it is.
    pub(crate) async fn send(&self, incoming: Incoming) {
        self.replies.send(incoming).await.unwrap();
    }
}

/// Our end of the line.
struct Ours {
    asked: mpsc::UnboundedSender<Asked>,
    told: mpsc::UnboundedSender<Value>,
}

/// What the server can, in both eras.
fn capabilities() -> Value {
    json!({"tools": {}, "prompts": {}, "resources": {"subscribe": true}, "completions": {},
        "logging": {}})
}

impl Line for Ours {
    fn request(&self, request: Outgoing) -> BoxFuture<'_, Result<Replies, PeerError>> {
        let (replies, received) = mpsc::channel(STREAM_MAX);
        let greeting = match request.method.as_str() {
            "server/discover" => {
                Some(json!({"supportedVersions": [MODERN], "capabilities": capabilities()}))
            }
            "initialize" => {
                Some(json!({"protocolVersion": LEGACY[0], "capabilities": capabilities()}))
            }
            _ => None,
        };
        match greeting {
            Some(greeting) => replies.try_send(Incoming::Result(greeting)).unwrap(),
            // A test that is over hears nothing more.
            None => {
                let params = request.params.to_value();
                drop(self.asked.send(Asked { request, params, replies }));
            }
        }
        Box::pin(std::future::ready(Ok(received.into())))
    }

    fn send(&self, message: String) -> BoxFuture<'_, Result<(), PeerError>> {
        drop(self.told.send(serde_json::from_str(&message).unwrap()));
        Box::pin(std::future::ready(Ok(())))
    }

    fn server_messages(&self) -> Option<mpsc::Receiver<Incoming>> {
        None
    }

    fn agreed(&self, _version: &str) {}

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

pub(crate) fn caller() -> Caller {
    Caller::new("default", "local")
}

pub(crate) fn call(arguments: Value, given: InputResponses) -> Call {
    Call {
        id: CallId(7),
        tool: "up.t".into(),
        arguments: Arc::new(arguments),
        timeout_ms: 30_000,
        output_bytes_max: 1_000_000,
        given: Arc::new(given),
        can: Abilities::PERSON,
        teller: CallReporter::default(),
        context: CallContext::default(),
    }
}

/// Calls a tool of the stage.
pub(crate) async fn called(
    tool: &dyn Tool,
    given: InputResponses,
) -> Result<ToolOutput, ToolError> {
    tool.call(&caller(), &call(json!({}), given)).await
}

/// What a call wants.
pub(crate) fn wants(called: Result<ToolOutput, ToolError>) -> InputRequired {
    match called {
        Ok(ToolOutput::Wants(wants)) => *wants,
        other => panic!("something should be wanted: {other:?}"),
    }
}

/// The same with an answer to each of its wants.
pub(crate) fn given(wants: &InputRequired, answer: &Value) -> InputResponses {
    let inputs = wants.inputs.keys().map(|key| (key.clone(), answer.clone())).collect();
    InputResponses { inputs, state: wants.state.clone(), ..InputResponses::default() }
}

/// A result of one text.
pub(crate) fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// Keeps what it hears.
#[derive(Default)]
pub(crate) struct Ear(pub(crate) Mutex<Vec<CallUpdate>>);

impl Listener for Ear {
    fn hear(&self, update: CallUpdate) {
        self.0.lock().unwrap().push(update);
    }

    fn log_level(&self) -> Option<LogLevel> {
        Some(LogLevel::Notice)
    }
}
