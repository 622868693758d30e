//! How a test speaks MCP to a house: both eras, streams, and tools that tell, wait and want.

use crate::house::{Answer, House, read, request};
use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderName, Method, Request, Response};
use futures::StreamExt;
use futures::future::BoxFuture;
use kernel::contracts::shelf::{Changes, ResourceSpec, Shelf, ShelfFuture};
use kernel::contracts::{ListPage, PageRequest, Tool};
use kernel::limits::Limits;
use kernel::tool::call::{
    Call, CallUpdate, Caller, InputRequest, InputRequired, LogLevel, Reach, ToolError, ToolOutput,
    ToolSpec,
};
use kernel::values::fault::Fault;
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};
use server::Extra;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

pub const MODERN: &str = "2026-07-28";
/// The name of the page that `it_page` wants, for who tells that it was opened.
pub const PAGE: &str = "the page";
pub const LIMIT: Duration = Duration::from_secs(60);

/// A request to `/mcp` with these headers.
pub fn sent(method: Method, headers: &[(&str, &str)], body: Body) -> Request<Body> {
    let mut request = request(method, "/mcp", body);
    let both = "application/json, text/event-stream".parse().unwrap();
    request.headers_mut().insert("accept", both);
    for (name, value) in headers {
        let name: HeaderName = name.parse().unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    request
}

/// A message that is posted.
pub fn posted(headers: &[(&str, &str)], message: &Value) -> Request<Body> {
    sent(Method::POST, headers, Body::from(message.to_string()))
}

/// A request as JSON-RPC.
pub fn asked(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

/// Parameters of a stateless request of a client that can do nothing.
pub fn stateless(mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    params
}

/// A stateless request with its headers.
pub fn modern(method: &str, params: Value) -> Request<Body> {
    let subject = ["name", "uri", "taskId"].into_iter().find_map(|key| params[key].as_str());
    let subject = subject.map(str::to_owned);
    let mut headers = vec![("mcp-protocol-version", MODERN), ("mcp-method", method)];
    headers.extend(subject.as_deref().map(|subject| ("mcp-name", subject)));
    posted(&headers, &asked(1, method, stateless(params)))
}

/// The answer to a stateless request.
pub async fn ask(house: &House, method: &str, params: Value) -> Answer {
    house.send(modern(method, params)).await
}

/// A client with a session.
pub struct Client<'a> {
    pub house: &'a House,
    pub session: String,
}

impl<'a> Client<'a> {
    /// Says hello in this version.
    pub async fn hello(house: &'a House, version: &str, capabilities: Value) -> Self {
        let answer = begin(house, version, capabilities).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.body["result"]["protocolVersion"], version);
        let session = answer.header("mcp-session-id").to_owned();
        assert!(session.len() == 32 && session.bytes().all(|byte| byte.is_ascii_graphic()));
        Self { house, session }
    }

    pub fn request(&self, message: &Value) -> Request<Body> {
        posted(&[("mcp-session-id", self.session.as_str())], message)
    }

    pub async fn send(&self, message: &Value) -> Answer {
        self.house.send(self.request(message)).await
    }

    pub async fn ask(&self, method: &str, params: Value) -> Answer {
        self.send(&asked(1, method, params)).await
    }

    /// The stream of what belongs to no request, or one that was lost.
    pub fn get(&self, last_event_id: Option<&str>) -> Request<Body> {
        let mut headers =
            vec![("mcp-session-id", self.session.as_str()), ("accept", "text/event-stream")];
        headers.extend(last_event_id.map(|id| ("last-event-id", id)));
        sent(Method::GET, &headers, Body::empty())
    }

    pub async fn end(&self) -> Answer {
        let headers = [("mcp-session-id", self.session.as_str())];
        self.house.send(sent(Method::DELETE, &headers, Body::empty())).await
    }
}

/// `initialize`.
pub async fn begin(house: &House, version: &str, capabilities: Value) -> Answer {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": version, "capabilities": capabilities,
        "clientInfo": client});
    house.send(posted(&[], &asked(0, "initialize", params))).await
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub id: String,
    /// Its data; null where it has none.
    pub data: Value,
}

/// A stream of events that is being read.
pub struct Events {
    body: BodyDataStream,
    text: String,
}

impl Events {
    pub fn of(response: Response<Body>) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        Self { body: response.into_body().into_data_stream(), text: String::new() }
    }

    /// The next event, comments left out; none at the end.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let block = block.to_owned();
                let rest = rest.to_owned();
                self.text = rest;
                if block.lines().any(|line| !line.starts_with(':')) {
                    return Some(event(&block));
                }
                continue;
            }
            let chunk = timeout(LIMIT, self.body.next()).await.expect("an event in time")?;
            self.text.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
        }
    }

    /// All that are left.
    pub async fn rest(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

fn event(block: &str) -> Event {
    let field = |name: &str| {
        let lines = block.lines().filter_map(|line| line.strip_prefix(name));
        lines.map(str::trim_start).collect::<Vec<_>>().join("\n")
    };
    Event { id: field("id:"), data: serde_json::from_str(&field("data:")).unwrap_or(Value::Null) }
}

/// Methods of the messages, responses as `result` or `error`.
pub fn methods(events: &[Event]) -> Vec<String> {
    let name = |event: &Event| match &event.data {
        Value::Null => "-".to_owned(),
        data if data.get("result").is_some() => "result".to_owned(),
        data if data.get("error").is_some() => "error".to_owned(),
        data => data["method"].as_str().unwrap_or_default().to_owned(),
    };
    events.iter().map(name).collect()
}

/// Reads a whole answer that may be a stream.
pub async fn whole(house: &House, request: Request<Body>) -> Answer {
    timeout(LIMIT, async { read(house.open(request).await).await }).await.unwrap()
}

/// What the tools and the shelf of a test share.
#[derive(Default)]
pub struct Strings {
    /// A slow call began.
    pub began: Notify,
    /// Lets one slow call end.
    pub release: Notify,
    /// How many slow calls were dropped.
    pub dropped: AtomicUsize,
    /// Grows when the watched resource changes.
    pub changes: watch::Sender<u64>,
}

impl Strings {
    /// Waits until a slow call was dropped.
    pub async fn cut(&self) {
        let waiting = async {
            while self.dropped.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
        };
        timeout(LIMIT, waiting).await.expect("the call is dropped");
    }
}

/// The demo with the tools of this file; `settings` is a `waypost.toml`.
pub async fn furnished(settings: &str) -> (House, Arc<Strings>) {
    furnished_by(Config::parse("waypost.toml", settings).unwrap()).await
}

/// The same within these limits, which may be fixed ones.
pub async fn furnished_within(limits: Limits) -> (House, Arc<Strings>) {
    furnished_by(Config { limits, ..Config::default() }).await
}

async fn furnished_by(config: Config) -> (House, Arc<Strings>) {
    let strings = Arc::new(Strings::default());
    let project = Project { config, ..Project::demo() };
    let tool = |kind: Kind| -> Arc<dyn Tool> {
        Arc::new(TestTool { spec: Arc::new(kind.spec()), kind, strings: strings.clone() })
    };
    let kinds =
        [Kind::Tells, Kind::Slow, Kind::Roots, Kind::Routed, Kind::Page, Kind::RecordedPage];
    let tools = kinds.map(tool).into();
    let shelves: Vec<Arc<dyn Shelf>> = vec![Arc::new(Watched(strings.clone())), Arc::new(Listing)];
    (House::furnished(project, Extra { tools, shelves, ..Extra::default() }).await, strings)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Tells how far it is, and a line for the log.
    Tells,
    /// Waits until it is let go.
    Slow,
    /// Wants to know the caller's folders.
    Roots,
    /// Wants to see an argument in a header.
    Routed,
    /// Wants a page opened, and continues where it was.
    Page,
    /// The same in a run.
    RecordedPage,
}

impl Kind {
    fn spec(self) -> ToolSpec {
        let (name, input_schema) = match self {
            Kind::Tells => ("it_tells", json!({"type": "object"})),
            Kind::Slow => ("it_slow", json!({"type": "object"})),
            Kind::Roots => ("it_roots", json!({"type": "object"})),
            Kind::Page => ("it_page", json!({"type": "object"})),
            Kind::RecordedPage => ("it_recorded_page", json!({"type": "object"})),
            Kind::Routed => (
                "it_routed",
                json!({"type": "object", "required": ["region"], "properties": {
                    "region": {"type": "string", "x-mcp-header": "Region"}}}),
            ),
        };
        ToolSpec {
            description: "a tool of the tests".to_owned(),
            input_schema: Arc::new(input_schema),
            reach: if self == Kind::RecordedPage { Reach::Writes } else { Reach::Reads },
            idempotent: true,
            ..testkit::specs::tool(name)
        }
    }
}

struct TestTool {
    spec: Arc<ToolSpec>,
    kind: Kind,
    strings: Arc<Strings>,
}

impl Tool for TestTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn page_name<'k>(&self, key: &'k str) -> &'k str {
        if key == "page-key" { PAGE } else { key }
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            match self.kind {
                Kind::Tells => {
                    for step in [1.0, 2.0] {
                        let total = Some(2.0);
                        let message = None;
                        call.teller.tell(CallUpdate::Progress { progress: step, total, message });
                    }
                    let data = json!("told");
                    call.teller.tell(CallUpdate::Log { level: LogLevel::Info, logger: None, data });
                }
                Kind::Slow => {
                    let cut = Cut(Some(self.strings.as_ref()));
                    self.strings.began.notify_one();
                    self.strings.release.notified().await;
                    cut.done();
                }
                Kind::Roots => match call.given.inputs.get("folders") {
                    Some(folders) => return Ok(ToolOutput::Value(folders.clone())),
                    None => {
                        let inputs = BTreeMap::from([("folders".to_owned(), InputRequest::Roots)]);
                        let wants = InputRequired { inputs, state: Value::Null };
                        return Ok(ToolOutput::Wants(Box::new(wants)));
                    }
                },
                Kind::Page | Kind::RecordedPage if call.given.state.is_null() => {
                    let message = "open it".to_owned();
                    let url = "https://a.test/".to_owned();
                    let page = InputRequest::Url { message, url };
                    let inputs = BTreeMap::from([("page-key".to_owned(), page)]);
                    let wants = InputRequired { inputs, state: json!("held") };
                    return Ok(ToolOutput::Wants(Box::new(wants)));
                }
                Kind::Routed | Kind::Page | Kind::RecordedPage => {}
            }
            Ok(ToolOutput::Value(json!("done")))
        })
    }
}

/// Counts a call that was dropped before it was done.
struct Cut<'a>(Option<&'a Strings>);

impl Cut<'_> {
    fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for Cut<'_> {
    fn drop(&mut self) {
        if let Some(strings) = self.0 {
            strings.dropped.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// A shelf with one resource, which changes when a test says so, and one that cannot be watched. It
/// claims some of ours, and what another one lists.
struct Watched(Arc<Strings>);

pub const WATCHED: &str = "it://watched";
pub const FAILING: &str = "it://failing";
/// The URI of a plan of ours, and of none.
pub const OUR_PLAN: &str = "waypost://plans/interaction%3A%3Agreeting";
pub const NO_PLAN: &str = "waypost://plans/none";
/// What stands where it claims something.
pub const CLAIMED: &str = "claimed";

/// A shelf that lists one resource.
struct Listing;

pub const LISTED: &str = "it://listed";

impl Shelf for Listing {
    fn lists(&self, _caller: &Caller, uri: &str) -> bool {
        uri == LISTED
    }

    fn read<'a>(&'a self, _caller: &'a Caller, uri: &'a str) -> ShelfFuture<'a, Vec<Value>> {
        let contents = (uri == LISTED).then(|| vec![json!({"uri": uri, "text": "listed"})]);
        Box::pin(std::future::ready(Ok(contents)))
    }
}

struct WatchedChanges(watch::Receiver<u64>);

impl Changes for WatchedChanges {
    fn next(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if self.0.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}

impl Shelf for Watched {
    fn resources<'a>(
        &'a self,
        _caller: &'a Caller,
        page: &'a PageRequest,
    ) -> BoxFuture<'a, Result<ListPage<ResourceSpec>, Fault>> {
        let spec = ResourceSpec {
            uri: WATCHED.to_owned(),
            name: "watched".to_owned(),
            title: None,
            description: None,
            mime_type: None,
            bytes: None,
            listed: None,
        };
        let items = if page.cursor.is_none() { vec![spec] } else { Vec::new() };
        Box::pin(std::future::ready(Ok(ListPage { items, next_cursor: None })))
    }

    fn read<'a>(&'a self, _caller: &'a Caller, uri: &'a str) -> ShelfFuture<'a, Vec<Value>> {
        let text = match uri {
            WATCHED => Some("x"),
            LISTED | OUR_PLAN | NO_PLAN => Some(CLAIMED),
            _ => None,
        };
        let contents = text.map(|text| vec![json!({"uri": uri, "text": text})]);
        Box::pin(std::future::ready(Ok(contents)))
    }

    fn changes<'a>(
        &'a self,
        _caller: &'a Caller,
        uri: &'a str,
    ) -> ShelfFuture<'a, Box<dyn Changes>> {
        if uri == FAILING {
            return Box::pin(std::future::ready(Err(Fault::new("Away", "it is away"))));
        }
        let changes = (uri == WATCHED)
            .then(|| -> Box<dyn Changes> { Box::new(WatchedChanges(self.0.changes.subscribe())) });
        Box::pin(std::future::ready(Ok(changes)))
    }
}
