//! The bridge against a server that answers by a script, so that restarts, cut streams and broken
//! answers can be had.

use super::*;
use serde_json::{Value, json};
use std::io;
use std::sync::mpsc as std_mpsc;
use tokio::io::{DuplexStream, ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};

const LIMIT: Duration = Duration::from_secs(60);

/// A request as the server got it.
#[derive(Debug, Clone)]
struct Got {
    method: String,
    headers: Vec<(String, String)>,
    body: Value,
}

impl Got {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The method of HTTP and that of the message.
    fn what(&self) -> String {
        format!("{} {}", self.method, self.body["method"].as_str().unwrap_or("-"))
    }
}

/// What the script answers.
enum Reply {
    /// All at once: the status, more head lines, the body.
    Whole(u16, &'static str, String),
    /// These events, and then the end.
    Stream(Vec<String>),
    /// Nothing: the connection stays open until the bridge closes it.
    Never,
}

fn json_answer(body: Value) -> Reply {
    Reply::Whole(200, "content-type: application/json\r\n", body.to_string())
}

type Script = fn(&Got, usize) -> Reply;

/// A server, and what it was told.
struct Fake {
    url: String,
    got: std_mpsc::Receiver<Got>,
    closed: std_mpsc::Receiver<()>,
}

impl Fake {
    /// Answers each request by the script, which also gets its number.
    async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (told, got) = std_mpsc::channel();
        let (ended, closed) = std_mpsc::channel();
        let count = Arc::new(Mutex::new(0));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let told = told.clone();
                let ended = ended.clone();
                let count = count.clone();
                tokio::spawn(async move {
                    // A connection that breaks is what some of these tests are about.
                    let _ = connection(stream, script, (told, ended), &count).await;
                });
            }
        });
        Self { url, got, closed }
    }

    fn all(&self) -> Vec<Got> {
        self.got.try_iter().collect()
    }
}

async fn connection(
    stream: TcpStream,
    script: Script,
    (told, ended): (std_mpsc::Sender<Got>, std_mpsc::Sender<()>),
    count: &Mutex<usize>,
) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if read.read_until(b'\n', &mut head).await? == 0 {
                return Ok(());
            }
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut lines = head.lines();
        let method = lines.next().and_then(|line| line.split(' ').next()).unwrap_or_default();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        read.read_exact(&mut body).await?;
        let body = serde_json::from_slice(&body).unwrap_or_default();
        let got = Got { method: method.to_owned(), headers, body };
        let number = {
            let mut count = lock(count);
            *count += 1;
            *count
        };
        let reply = script(&got, number);
        told.send(got).unwrap();
        match reply {
            Reply::Whole(status, more, body) => {
                let length = body.len();
                let head = format!("HTTP/1.1 {status} X\r\n{more}content-length: {length}\r\n\r\n");
                write.write_all(format!("{head}{body}").as_bytes()).await?;
            }
            Reply::Stream(events) => {
                let head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\
                            connection: close\r\n\r\n";
                write.write_all(format!("{head}{}", events.concat()).as_bytes()).await?;
                return write.shutdown().await;
            }
            Reply::Never => {
                let mut rest = Vec::new();
                let _ = read.read_to_end(&mut rest).await;
                ended.send(()).unwrap();
                return Ok(());
            }
        }
    }
}

/// The client's side of the bridge.
struct Peer {
    input: WriteHalf<DuplexStream>,
    output: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    bridge: JoinHandle<()>,
}

impl Peer {
    fn start(fake: &Fake) -> Self {
        let client = Client::new(&fake.url).unwrap();
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (bridge_input, bridge_output) = tokio::io::split(theirs);
        let bridge = tokio::spawn(async move {
            run(client, bridge_input, bridge_output, std::future::pending()).await;
        });
        let (output, input) = tokio::io::split(ours);
        Self { input, output: BufReader::new(output).lines(), bridge }
    }

    async fn send(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(LIMIT, self.output.next_line()).await;
        let line = line.expect("no line came").unwrap().expect("the bridge ended");
        serde_json::from_str(&line).unwrap()
    }

    /// Closes our side and waits for the bridge's end.
    async fn end(mut self) {
        self.input.shutdown().await.unwrap();
        tokio::time::timeout(LIMIT, self.bridge).await.expect("it goes on").unwrap();
    }
}

fn on_runtime(test: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(test);
}

fn hello() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": INITIALIZE,
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}}})
}

fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": INITIALIZED})
}

fn stateless(id: u64, method: &str, more: &Value) -> Value {
    let meta = json!({wire::mcp::META_VERSION: "2026-07-28", wire::mcp::META_CAPABILITIES: {}});
    let mut params = more.clone();
    params["_meta"] = meta;
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn greeting(session: &'static str, got: &Got) -> Reply {
    let result = json!({"protocolVersion": "2025-06-18"});
    let body = json!({"jsonrpc": "2.0", "id": got.body["id"], "result": result});
    Reply::Whole(200, session, body.to_string())
}

const ONE: &str = "content-type: application/json\r\nmcp-session-id: one\r\n";
const TWO: &str = "content-type: application/json\r\nmcp-session-id: two\r\n";

fn taken() -> Reply {
    Reply::Whole(202, "", String::new())
}

fn result(got: &Got) -> Value {
    json!({"jsonrpc": "2.0", "id": got.body["id"], "result": {"for": got.body["method"]}})
}

fn kept(got: &Got, _: usize) -> Reply {
    match got.what().as_str() {
        "POST initialize" => greeting(ONE, got),
        "POST tools/call" => {
            let note = json!({"jsonrpc": "2.0", "method": "notifications/progress"});
            Reply::Stream(vec![
                format!("id: 1-0\ndata: \n\n: ping\n\nid: 1-1\ndata: {note}\n\n"),
                format!("id: 1-2\ndata: {}\n\n", result(got)),
            ])
        }
        "POST ping" => json_answer(result(got)),
        "GET -" => Reply::Whole(405, "", String::new()),
        "DELETE -" => Reply::Whole(200, "", String::new()),
        _ => taken(),
    }
}

#[test]
fn a_session_is_kept_for_the_client() {
    on_runtime(async {
        let fake = Fake::start(kept).await;
        let mut peer = Peer::start(&fake);
        // All at once: what follows the handshake waits for it.
        peer.send(&hello()).await;
        peer.send(&initialized()).await;
        peer.send(&json!({"jsonrpc": "2.0", "id": "a", "method": "ping"})).await;
        assert_eq!(peer.next().await["result"]["protocolVersion"], "2025-06-18");
        assert_eq!(peer.next().await["id"], "a");
        peer.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call"})).await;
        assert_eq!(peer.next().await["method"], "notifications/progress");
        assert_eq!(peer.next().await["result"]["for"], "tools/call");
        peer.send(&json!({"jsonrpc": "2.0", "id": 9, "result": {}})).await;
        peer.end().await;
        let all = fake.all();
        let posts: Vec<String> =
            all.iter().map(Got::what).filter(|what| !what.starts_with("GET")).collect();
        let expected = [
            "POST initialize",
            "POST notifications/initialized",
            "POST ping",
            "POST tools/call",
            "POST -",
            "DELETE -",
        ];
        assert_eq!(posts, expected);
        assert_eq!(all[0].header("mcp-session-id"), None);
        for got in &all[1..] {
            assert_eq!(got.header("mcp-session-id"), Some("one"), "{got:?}");
            assert_eq!(got.header("mcp-protocol-version"), Some("2025-06-18"), "{got:?}");
            assert_eq!(got.header("mcp-method"), None, "{got:?}");
        }
    });
}

/// The first server knows its session until the fourth request; then it was restarted.
fn forgetful(got: &Got, number: usize) -> Reply {
    let session = got.header("mcp-session-id");
    match (got.what().as_str(), session) {
        ("POST initialize", _) if number == 1 => greeting(ONE, got),
        ("POST initialize", _) => greeting(TWO, got),
        ("GET -", _) => Reply::Whole(405, "", String::new()),
        ("POST ping", Some("one")) => Reply::Whole(404, "", String::new()),
        ("POST ping", Some("two")) => json_answer(result(got)),
        _ => taken(),
    }
}

#[test]
fn a_forgotten_session_is_begun_again() {
    on_runtime(async {
        let fake = Fake::start(forgetful).await;
        let mut peer = Peer::start(&fake);
        peer.send(&hello()).await;
        peer.next().await;
        peer.send(&initialized()).await;
        for id in 1..=3 {
            peer.send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"})).await;
        }
        let mut ids = Vec::new();
        for _ in 1..=3 {
            let answer = peer.next().await;
            assert_eq!(answer["result"]["for"], "ping", "{answer}");
            ids.push(answer["id"].as_u64().unwrap());
        }
        ids.sort_unstable();
        assert_eq!(ids, [1, 2, 3]);
        peer.end().await;
        let all = fake.all();
        let count = |what: &str| all.iter().filter(|got| got.what() == what).count();
        assert_eq!(count("POST initialize"), 2, "once more, whoever noticed it");
        assert_eq!(count("POST notifications/initialized"), 2);
    });
}

fn modern(got: &Got, _: usize) -> Reply {
    match got.what().as_str() {
        "POST tools/list" => {
            let schema = json!({"properties": {"to": {"type": "string", "x-mcp-header": "To"}}});
            let result = json!({"tools": [{"name": "mail", "inputSchema": schema}]});
            json_answer(json!({"jsonrpc": "2.0", "id": got.body["id"], "result": result}))
        }
        "POST tools/call" if got.body["params"]["name"] == "slow" => Reply::Never,
        "POST prompts/get" => {
            let error = json!({"code": -32602, "message": "no such prompt"});
            let body = json!({"jsonrpc": "2.0", "id": null, "error": error});
            Reply::Whole(400, "content-type: application/json\r\n", body.to_string())
        }
        "POST resources/read" => Reply::Whole(502, "", "<html>".to_owned()),
        "POST tasks/get" => Reply::Stream(vec![": nothing comes\n\n".to_owned()]),
        _ => json_answer(result(got)),
    }
}

#[test]
fn stateless_requests_carry_the_modern_headers() {
    on_runtime(async {
        let fake = Fake::start(modern).await;
        let mut peer = Peer::start(&fake);
        peer.send(&stateless(1, "tools/list", &json!({}))).await;
        peer.next().await;
        let call = json!({"name": "mail", "arguments": {"to": "ann", "text": "hi"}});
        peer.send(&stateless(2, "tools/call", &call)).await;
        assert_eq!(peer.next().await["id"], 2);
        peer.end().await;
        let all = fake.all();
        assert_eq!(all.len(), 2, "there is no session to end: {all:?}");
        assert_eq!(all[0].header("mcp-method"), Some("tools/list"));
        assert_eq!(all[0].header("mcp-name"), None);
        for (name, value) in [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "mail"),
            ("mcp-param-to", "ann"),
        ] {
            assert_eq!(all[1].header(name), Some(value), "{name}");
        }
        assert_eq!(all[1].header("mcp-session-id"), None);
    });
}

#[test]
fn a_stateless_request_is_cancelled_by_its_end() {
    on_runtime(async {
        let fake = Fake::start(modern).await;
        let mut peer = Peer::start(&fake);
        peer.send(&stateless(1, "tools/call", &json!({"name": "slow"}))).await;
        peer.send(&stateless(2, "completion/complete", &json!({}))).await;
        assert_eq!(peer.next().await["id"], 2, "nobody waits for a slow one");
        // Only a request that has reached the server has a connection that can end.
        let reached = tokio::task::spawn_blocking(move || {
            let next = || fake.got.recv_timeout(LIMIT).expect("the slow request came");
            while next().body["params"]["name"] != "slow" {}
            fake
        });
        let fake = reached.await.unwrap();
        let cancelled = json!({"requestId": 1});
        let told = json!({"jsonrpc": "2.0", "method": CANCELLED, "params": cancelled});
        peer.send(&told).await;
        let closed = tokio::task::spawn_blocking(move || fake.closed.recv_timeout(LIMIT));
        closed.await.unwrap().expect("the connection stays open");
        peer.end().await;
    });
}

#[test]
fn errors_are_answered_under_the_requests_id() {
    on_runtime(async {
        let fake = Fake::start(modern).await;
        let mut peer = Peer::start(&fake);
        peer.send(&stateless(1, "prompts/get", &json!({"name": "x"}))).await;
        let answer = peer.next().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32602)));
        assert_eq!(answer["error"]["message"], "no such prompt");
        for (id, method, words) in [
            (2, "resources/read", "answered 502"),
            (3, "tasks/get", "the server closed the connection"),
        ] {
            peer.send(&stateless(id, method, &json!({}))).await;
            let answer = peer.next().await;
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32603)));
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains(words), "{message}");
        }
        peer.input.write_all(b"no JSON\n\n").await.unwrap();
        let answer = peer.next().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32600)));
        peer.end().await;
    });
}

#[test]
fn an_unreachable_server_is_an_error_of_each_request() {
    on_runtime(async {
        // No one listens on port 1, and no one without rights can.
        let (_, got) = std_mpsc::channel();
        let (_, closed) = std_mpsc::channel();
        let nowhere = Fake { url: "http://127.0.0.1:1".to_owned(), got, closed };
        let mut peer = Peer::start(&nowhere);
        peer.send(&initialized()).await;
        for message in [hello(), stateless(0, "tools/list", &json!({}))] {
            peer.send(&message).await;
            let answer = peer.next().await;
            assert_eq!(answer["id"], 0);
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains("no server at `http://127.0.0.1:1`"), "{message}");
            assert!(message.contains("waypost up"), "{message}");
        }
        peer.end().await;
    });
}

/// The stream of a call is cut; who asks for what comes after its last event gets the answer.
fn cut(got: &Got, _: usize) -> Reply {
    let answer = json!({"jsonrpc": "2.0", "id": 5, "result": {}});
    match (got.what().as_str(), got.header("last-event-id")) {
        ("POST initialize", _) => greeting(ONE, got),
        ("POST tools/call", _) => Reply::Stream(vec!["id: 4-0\ndata: \n\n".to_owned()]),
        ("GET -", Some("4-0")) => Reply::Stream(vec![format!("id: 4-1\ndata: {answer}\n\n")]),
        ("GET -", _) => Reply::Whole(405, "", String::new()),
        _ => taken(),
    }
}

/// What nobody asked for comes on streams that are cut, and their places are not kept.
fn placeless(got: &Got, _: usize) -> Reply {
    let news = json!({"jsonrpc": "2.0", "method": "notifications/message"});
    match (got.what().as_str(), got.header("last-event-id")) {
        ("POST initialize", _) => greeting(ONE, got),
        ("GET -", Some(_)) => Reply::Whole(400, "", String::new()),
        ("GET -", None) => Reply::Stream(vec![format!("id: 0-1\ndata: {news}\n\n")]),
        _ => taken(),
    }
}

#[test]
fn notifications_continue_where_the_server_forgot_the_position() {
    on_runtime(async {
        let fake = Fake::start(placeless).await;
        let mut peer = Peer::start(&fake);
        peer.send(&hello()).await;
        peer.next().await;
        peer.send(&initialized()).await;
        for _ in 0..2 {
            assert_eq!(peer.next().await["method"], "notifications/message");
        }
        peer.end().await;
        let resumed = |got: &Got| got.header("last-event-id") == Some("0-1");
        assert!(fake.all().iter().any(resumed));
    });
}

#[test]
fn a_broken_stream_is_resumed() {
    on_runtime(async {
        let fake = Fake::start(cut).await;
        let mut peer = Peer::start(&fake);
        peer.send(&hello()).await;
        peer.next().await;
        peer.send(&json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call"})).await;
        assert_eq!(peer.next().await, json!({"jsonrpc": "2.0", "id": 5, "result": {}}));
        peer.end().await;
    });
}
