//! Servers of both dialects, and of none, played by a listener that answers what the test says.
#![allow(clippy::disallowed_methods, reason = "the server runs beside the test")]

use super::super::config::{EraSetting, Secret, UpstreamConfig, UpstreamKind};
use super::super::{HOPS_MAX, RemoteParts};
use super::load;
use futures::future::{BoxFuture, pending, ready};
use kernel::contracts::{Clock, Entropy, Spawn, Tool};
use kernel::limits::Limits;
use kernel::tool::call::{
    Abilities, Call, CallContext, CallProgress, CallReporter, Caller, Reach, ToolError, ToolOutput,
};
use kernel::values::fault::Fault;
use kernel::values::ids::{CallId, Millis};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// The span of every call.
const SPAN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Answers a request with a status and a body; nothing means silence.
type Answers = fn(&Value) -> Option<(u16, String)>;

/// A running server and the requests that it got: their heads and bodies.
struct Server {
    address: SocketAddr,
    got: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Server {
    async fn start(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let got = Arc::new(Mutex::new(Vec::new()));
        let seen = got.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(stream, answers, seen.clone()));
            }
        });
        Self { address, got }
    }

    fn config(&self, tools: &[&str]) -> UpstreamConfig {
        let tools = tools.iter().map(|name| (*name).to_owned()).collect();
        UpstreamConfig {
            name: "files".to_owned(),
            prefix: "files.".to_owned(),
            kind: UpstreamKind::Rpc {
                url: format!("http://{}/rpc", self.address),
                headers: vec![("x-key".to_owned(), Secret::from("s3cret"))],
                tools,
                open: false,
            },
            trusted: true,
            journal: true,
            timeout_ms: None,
            era: EraSetting::Auto,
            roots: Vec::new(),
            origin: "waypost.toml:3".to_owned(),
        }
    }

    async fn load(&self, config: &UpstreamConfig) -> Result<Vec<Arc<dyn Tool>>, Fault> {
        let UpstreamKind::Rpc { url, headers, tools, .. } = &config.kind else {
            panic!("not an RPC server: {:?}", config.kind);
        };
        load(config, url, headers, tools, &parts(Arc::new(Still))).await
    }

    fn last(&self) -> (String, Value) {
        self.got.lock().unwrap().last().unwrap().clone()
    }
}

/// Reads requests one by one and answers them; silence ends the connection.
async fn converse(mut stream: TcpStream, answers: Answers, got: Arc<Mutex<Vec<(String, Value)>>>) {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0u8; 4096];
        let Some((head, body, rest)) = whole(&bytes) else {
            match stream.read(&mut part).await {
                Ok(count) if count > 0 => bytes.extend_from_slice(&part[..count]),
                _ => return,
            }
            continue;
        };
        got.lock().unwrap().push((head, body.clone()));
        bytes = rest;
        let Some((status, text)) = answers(&body) else {
            return;
        };
        let length = text.len();
        let answer = format!("HTTP/1.1 {status} Said\r\ncontent-length: {length}\r\n\r\n{text}");
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

fn whole(bytes: &[u8]) -> Option<(String, Value, Vec<u8>)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    let length: usize = length.parse().unwrap();
    let body = bytes.get(end..end + length)?;
    Some((head, serde_json::from_slice(body).unwrap(), bytes[end + length..].to_vec()))
}

/// A clock that stands still.
struct Still;

impl Clock for Still {
    fn now(&self) -> Millis {
        Millis(0)
    }
    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
    fn sleep_until(&self, _then: Millis) -> BoxFuture<'static, ()> {
        Box::pin(pending())
    }
}

/// A clock on which every time is over at once.
struct Hasty;

impl Clock for Hasty {
    fn now(&self) -> Millis {
        Millis(0)
    }
    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
    fn sleep_until(&self, _then: Millis) -> BoxFuture<'static, ()> {
        Box::pin(ready(()))
    }
}

struct Idle;

impl Spawn for Idle {
    fn task(&self, _name: &'static str, _future: BoxFuture<'static, ()>) {}
    fn thread(&self, _name: &'static str, _future: BoxFuture<'static, ()>) {}
}

impl Entropy for Idle {
    fn bits(&self) -> u128 {
        7
    }
}

fn parts(clock: Arc<dyn Clock>) -> RemoteParts {
    RemoteParts {
        spawn: Arc::new(Idle),
        clock,
        entropy: Arc::new(Idle),
        limits: Arc::new(Limits::default()),
        hops_max: HOPS_MAX,
        supervisor: None,
        vault: Arc::new(crate::MemoryVault::new(Arc::new(Still))),
        login: None,
        scope: crate::Scope::default(),
    }
}

async fn call(tool: &Arc<dyn Tool>, arguments: Value) -> Result<Value, ToolError> {
    let caller = Caller::new("default", "local");
    let call = Call {
        id: CallId(7),
        tool: tool.spec().name.clone(),
        arguments: Arc::new(arguments),
        timeout_ms: 5_000,
        output_bytes_max: 1_000,
        given: Arc::default(),
        can: Abilities::PERSON,
        teller: CallReporter::default(),
        context: CallContext { trace: SPAN.parse().ok(), ..CallContext::default() },
    };
    match tool.call(&caller, &call).await? {
        ToolOutput::Value(value) => Ok(value),
        other => panic!("{other:?}"),
    }
}

fn answered(request: &Value, result: &Value) -> Option<(u16, String)> {
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    Some((200, answer.to_string()))
}

/// A server of the seed's kind: it knows its tools' names and nothing else.
fn bare(request: &Value) -> Option<(u16, String)> {
    match request["method"].as_str()? {
        "filesystem.readFile" => {
            let text = format!("content of {}", request["params"]["path"]);
            answered(request, &json!({"content": [{"type": "text", "text": text}]}))
        }
        "filesystem.hang" => None,
        "filesystem.guarded" => Some((403, "s3cret does not open this".to_owned())),
        "filesystem.flood" => answered(request, &json!({"content": [], "more": "x".repeat(5_000)})),
        _ => {
            let error = json!({"code": -32601, "message": "Method not found"});
            let answer = json!({"jsonrpc": "2.0", "id": request["id"], "error": error});
            Some((200, answer.to_string()))
        }
    }
}

/// A server that lists its tools on two pages.
fn listing(request: &Value) -> Option<(u16, String)> {
    let params = &request["params"];
    match (request["method"].as_str()?, params["cursor"].as_str()) {
        ("tools/list", None) => answered(
            request,
            &json!({"nextCursor": "2", "tools": [{
                "name": "read", "title": "Read a file", "description": "Reads.",
                "inputSchema": {"type": "object", "required": ["path"]},
                "outputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": true},
            }]}),
        ),
        ("tools/list", Some("2")) => {
            answered(request, &json!({"tools": [{"name": "write"}, {"title": "no name"}]}))
        }
        ("tools/call", _) => answered(request, &json!({"content": [], "told": params})),
        _ => Some((404, "Not Found".to_owned())),
    }
}

#[tokio::test]
async fn a_bare_server_is_called_by_the_tools_names() {
    let server = Server::start(bare).await;
    let tools = server.load(&server.config(&["filesystem.readFile"])).await.unwrap();
    let [tool] = tools.as_slice() else { panic!("not one tool") };
    let spec = tool.spec();
    assert_eq!(spec.name.as_str(), "files.filesystem.readFile");
    assert_eq!(tool.upstream().map(|upstream| upstream.name.to_string()).as_deref(), Some("files"));
    assert_eq!((spec.reach, spec.idempotent), (Reach::Writes, false));
    let output = call(tool, json!({"path": "a.txt"})).await.unwrap();
    assert_eq!(output["content"][0]["text"], "content of \"a.txt\"");
    let (head, body) = server.last();
    assert!(head.starts_with("POST /rpc ") && head.contains("x-key: s3cret"), "{head}");
    assert!(head.contains(&format!("idempotency-key: {}", CallId(7))), "{head}");
    assert!(head.contains(&format!("traceparent: {SPAN}")), "{head}");
    assert_eq!(
        body,
        json!({"jsonrpc": "2.0", "id": CallId(7).to_string(), "method": "filesystem.readFile",
            "params": {"path": "a.txt"}})
    );
}

#[tokio::test]
async fn a_server_without_a_tool_list_needs_configured_names() {
    let server = Server::start(bare).await;
    let fault = server.load(&server.config(&[])).await.err().unwrap();
    assert_eq!(fault.name, "ToolsUnknown");
    assert!(fault.message.contains("-32601"), "{fault}");
    assert!(fault.hint.unwrap().contains("waypost.toml:3"));
}

#[tokio::test]
async fn a_server_that_lists_tools_is_called_with_tools_call() {
    let server = Server::start(listing).await;
    let tools = server.load(&server.config(&[])).await.unwrap();
    let told: Vec<(&str, &str, Reach)> = tools
        .iter()
        .map(|tool| (tool.spec().name.as_str(), tool.spec().title.as_str(), tool.spec().reach))
        .collect();
    let expected =
        [("files.read", "Read a file", Reach::Reads), ("files.write", "write", Reach::Writes)];
    assert_eq!(told, expected);
    let output = call(&tools[0], json!({"path": "a"})).await.unwrap();
    assert_eq!(output["told"], json!({"name": "read", "arguments": {"path": "a"}}));

    let only = server.load(&server.config(&["write"])).await.unwrap();
    assert_eq!(only.len(), 1);
    let fault = server.load(&server.config(&["wriet"])).await.err().unwrap();
    assert_eq!((fault.name.as_str(), fault.message.contains("`wriet`")), ("ToolNotFound", true));
}

#[tokio::test]
async fn untrusted_annotations_are_ignored() {
    let server = Server::start(listing).await;
    let config = UpstreamConfig { trusted: false, ..server.config(&["read"]) };
    let tools = server.load(&config).await.unwrap();
    assert_eq!((tools[0].spec().reach, tools[0].spec().idempotent), (Reach::Writes, false));
}

#[tokio::test]
async fn a_failed_call_reports_its_progress() {
    let names = ["filesystem.hang", "filesystem.flood", "filesystem.gone", "filesystem.guarded"];
    let server = Server::start(bare).await;
    let tools = server.load(&server.config(&names)).await.unwrap();
    for (tool, name, how) in [
        (&tools[0], "AnswerLost", CallProgress::Unknown),
        (&tools[1], "OutputTooLarge", CallProgress::Unknown),
        (&tools[2], "MethodNotFound", CallProgress::Failed),
        (&tools[3], "Unauthorized", CallProgress::Failed),
    ] {
        let error = call(tool, json!({})).await.unwrap_err();
        assert_eq!((error.fault.name.as_str(), error.how), (name, how), "{error:?}");
        assert!(!error.fault.message.contains("s3cret"), "{error:?}");
    }
}

#[tokio::test]
async fn an_unreachable_server_got_nothing() {
    // It is taken, so that no one else can listen there, and no one does.
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let server = Server { address: taken.local_addr().unwrap(), got: Arc::new(Mutex::default()) };
    let fault = server.load(&server.config(&["a"])).await.err().unwrap();
    assert_eq!(fault.name, "ConnectFailed");
    assert!(!fault.message.contains("s3cret"), "{fault}");
}

#[tokio::test]
async fn a_timeout_can_be_set_per_server() {
    let server = Server::start(bare).await;
    let config = server.config(&["filesystem.readFile"]);
    let UpstreamKind::Rpc { url, headers, tools, .. } = &config.kind else { panic!() };
    let fault = load(&config, url, headers, tools, &parts(Arc::new(Hasty))).await.err().unwrap();
    assert_eq!(fault.name, "Timeout");
    let config = UpstreamConfig { timeout_ms: Some(10), ..config.clone() };
    let mut tools = server.load(&config).await.unwrap();
    // The clock stands still, so the shorter time never ends.
    assert!(call(&tools.remove(0), json!({"path": "a"})).await.is_ok());
}

#[tokio::test]
async fn invalid_settings_are_reported_with_their_place() {
    let server = Server::start(bare).await;
    let config = server.config(&["a"]);
    let parts = parts(Arc::new(Still));
    let bad = [("x y".to_owned(), Secret::from("v"))];
    for (url, headers) in [("nowhere", &[][..]), ("http://127.0.0.1/", &bad[..])] {
        let fault = load(&config, url, headers, &[], &parts).await.err().unwrap();
        assert_eq!(fault.name, "BadSettings", "{fault}");
        assert!(fault.hint.unwrap().contains("waypost.toml:3"));
    }
}

/// The same server, at which any method may be called.
fn opened(mut config: UpstreamConfig) -> UpstreamConfig {
    if let UpstreamKind::Rpc { open, .. } = &mut config.kind {
        *open = true;
    }
    config
}

#[tokio::test]
async fn any_method_of_an_open_server_is_a_tool_that_writes() {
    let server = Server::start(bare).await;
    let tools = server.load(&opened(server.config(&["a"]))).await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    assert_eq!(names, ["files.a", "files.*"]);
    let any = &tools[1];
    assert!(any.is_open() && !tools[0].is_open());
    let read = any.opened("files.filesystem.readFile").unwrap();
    assert_eq!(read.spec().name.as_str(), "files.filesystem.readFile");
    assert_eq!((read.spec().reach, read.spec().idempotent), (Reach::Writes, false));
    assert!(call(&read, json!({"path": "a"})).await.is_ok());
    assert_eq!(server.last().1["method"], "filesystem.readFile");
    assert_eq!(read.judged().name, read.spec().name);
    // With the server's own name before it, it is another method, and the same tool for policy.
    let named = any.opened("files.files.filesystem.readFile").unwrap();
    assert_eq!(named.judged().name.as_str(), "files.filesystem.readFile");
    assert_eq!(named.spec().name.as_str(), "files.files.filesystem.readFile");
    let caller = Caller::new("default", "local");
    let error = any.opened("files.tools/call").unwrap().check(&caller, &json!({})).unwrap_err();
    assert!(error.fault.message.contains("a method of the protocol"), "{error:?}");
    for other in ["files.", "other.filesystem.readFile"] {
        assert!(any.opened(other).is_none(), "{other}");
    }
    let error = call(any, json!({})).await.unwrap_err();
    assert_eq!(error.how, CallProgress::NotSent);
}
