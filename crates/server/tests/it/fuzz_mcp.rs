//! `/mcp` and `/rpc` under messages that no client should send: a corpus of right ones, mangled.
//! Whatever comes, there is an answer in time, it is no failure of ours, it is JSON-RPC with the
//! request's id or none, and the next good request is answered as ever.

use crate::house::House;
use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderName, HeaderValue, Method, Request, Response};
use futures::StreamExt;
use kernel::limits::Limits;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use testkit::fuzz::answers::{Said, check_json, events, ids, messages};
use testkit::fuzz::corpus::seeds;
use testkit::fuzz::hunt::Hunt;
use testkit::fuzz::post::Post;
use testkit::sim::rng::Rng;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// How many messages the test command sends.
const MCP_CASES: u64 = 1_500;
const RPC_CASES: u64 = 500;
/// After so many messages a good one must be answered.
const GOOD_EVERY: u64 = 100;
/// No answer of these tests takes so long.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// Nothing waits for long, and there is not much room: the edges are what is looked for.
fn limits() -> Limits {
    Limits {
        run_wait_ms: 100,
        mcp_call_wait_ms: 100,
        mcp_ask_wait_ms: 100,
        mcp_task_after_ms: 20,
        mcp_quiet_ms: 20,
        mcp_sessions_max: 8,
        body_bytes_max: 60_000,
        ..Limits::default()
    }
}

/// The outcome of one message.
struct Heard {
    status: u16,
    said: Vec<Said>,
}

/// An endpoint under fire.
struct Target<'a> {
    runtime: &'a Runtime,
    house: House,
    path: &'static str,
    session: String,
    looked: u64,
    /// How often each kind of answer was given.
    tally: BTreeMap<String, u64>,
}

impl<'a> Target<'a> {
    fn new(runtime: &'a Runtime, path: &'static str) -> Self {
        let house = runtime.block_on(House::within(limits()));
        let session = String::new();
        let tally = BTreeMap::new();
        Self { runtime, house, path, session, looked: 0, tally }
    }

    /// Sends a message and looks at what comes back.
    fn look(&mut self, post: &Post) -> Result<(), String> {
        if self.path == "/mcp" && self.session.is_empty() {
            self.session = self.runtime.block_on(hello(&self.house))?;
        }
        let post = post.clone().in_session(&self.session);
        let Heard { status, said } = self.runtime.block_on(sent(&self.house, self.path, &post))?;
        if status == 404 || post.method == "DELETE" {
            // Maybe the session is over.
            self.session.clear();
        }
        let kinds = said.iter().map(|said| match said {
            Said::Response(None) => "result".to_owned(),
            Said::Response(Some(code)) => code.to_string(),
            Said::Request(method) | Said::Notification(method) => method.clone(),
        });
        for kind in kinds.chain([status.to_string()]) {
            *self.tally.entry(kind).or_default() += 1;
        }
        self.looked += 1;
        if self.looked.is_multiple_of(GOOD_EVERY) { self.good() } else { Ok(()) }
    }

    /// A good request is answered as ever.
    fn good(&self) -> Result<(), String> {
        let (headers, message) = good_call(self.path);
        let post = Post {
            method: "POST".to_owned(),
            headers: headers
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_vec()))
                .collect(),
            body: message.to_string().into_bytes(),
        };
        let request = request(self.path, &post);
        let answer = self.runtime.block_on(async {
            let response = answered(&self.house, request).await?;
            let bytes = axum::body::to_bytes(response.into_body(), 1_000_000).await;
            bytes.map_err(|error| error.to_string())
        })?;
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let sum = &answer["result"]["structuredContent"];
        if *sum == 5 { Ok(()) } else { Err(format!("a good request was answered: {answer}")) }
    }
}

/// Two and three are five, wherever one asks.
fn good_call(path: &str) -> (Vec<(&'static str, &'static [u8])>, Value) {
    let mut params = json!({"name": "math__add", "arguments": {"a": 2, "b": 3}});
    let mut headers: Vec<(&'static str, &'static [u8])> =
        vec![("content-type", b"application/json"), ("accept", b"application/json")];
    if path == "/mcp" {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        headers.push(("mcp-protocol-version", b"2026-07-28"));
        headers.push(("mcp-method", b"tools/call"));
        headers.push(("mcp-name", b"math__add"));
    }
    (headers, json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
}

/// Opens a session whose client can do everything.
async fn hello(house: &House) -> Result<String, String> {
    let capabilities = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
        "clientInfo": {"name": "fuzz", "version": "1"}});
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let body = message.to_string().into_bytes();
    let post = Post { method: "POST".to_owned(), headers: Vec::new(), body };
    let response = answered(house, request("/mcp", &post)).await?;
    let session = response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok());
    session.map(str::to_owned).ok_or_else(|| format!("no session: {}", response.status()))
}

/// The message as a request; headers that HTTP cannot carry are left out.
pub(super) fn request(path: &str, post: &Post) -> Request<Body> {
    let mut request = Request::new(Body::from(post.body.clone()));
    *request.method_mut() = Method::from_bytes(post.method.as_bytes()).unwrap_or(Method::POST);
    *request.uri_mut() = path.parse().unwrap();
    let headers = request.headers_mut();
    headers.insert("host", HeaderValue::from_static("localhost:8420"));
    for (name, value) in &post.headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    request
}

pub(super) async fn answered(
    house: &House,
    request: Request<Body>,
) -> Result<Response<Body>, String> {
    let answered = timeout(PATIENCE, house.open(request)).await;
    answered.map_err(|_| format!("no answer within {PATIENCE:?}"))
}

async fn sent(house: &House, path: &str, post: &Post) -> Result<Heard, String> {
    let opens_stream = ["GET", "HEAD"].contains(&post.method.as_str());
    let asked = ids(&post.body);
    let response = answered(house, request(path, post)).await?;
    let status = response.status().as_u16();
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().to_owned();
    let body = response.into_body().into_data_stream();
    let said = match kind.as_str() {
        // It has no end, and nothing to say.
        "text/event-stream" if opens_stream => Vec::new(),
        "text/event-stream" => streamed(body, &asked).await?,
        _ => {
            let text = whole(body).await?;
            let said = if text.is_empty() { Ok(Vec::new()) } else { check_json(&text, &asked) };
            let said = said.map_err(|wrong| format!("status {status}, `{kind}`: {wrong}"))?;
            if !said.is_empty() && kind != "application/json" {
                return Err(format!("an answer of the type `{kind}`: {text}"));
            }
            said
        }
    };
    let answers = said.iter().filter(|said| matches!(said, Said::Response(_))).count();
    let sent = messages(&post.body);
    if answers > sent {
        return Err(format!("{answers} answers for {sent} messages: {said:?}"));
    }
    if status >= 500 {
        return Err(format!("status {status}: {said:?}"));
    }
    Ok(Heard { status, said })
}

/// A body to its end.
pub(super) async fn whole(mut body: BodyDataStream) -> Result<String, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = next(&mut body).await? {
        bytes.extend_from_slice(&chunk);
    }
    String::from_utf8(bytes).map_err(|error| format!("the answer is no text: {error}"))
}

/// A stream to its answer, or until it wants something of us or only brings news.
async fn streamed(mut body: BodyDataStream, asked: &[String]) -> Result<Vec<Said>, String> {
    let mut text = String::new();
    loop {
        let chunk = next(&mut body).await?;
        let is_over = chunk.is_none();
        let chunk = chunk.unwrap_or_default();
        text.push_str(std::str::from_utf8(&chunk).map_err(|error| error.to_string())?);
        let mut said = Vec::new();
        for event in events(&text) {
            said.extend(check_json(&event, asked)?);
        }
        let is_enough = said.iter().any(|said| match said {
            Said::Response(_) | Said::Request(_) => true,
            Said::Notification(method) => method.ends_with("/acknowledged"),
        });
        if is_over || is_enough {
            return Ok(said);
        }
    }
}

pub(super) async fn next(body: &mut BodyDataStream) -> Result<Option<axum::body::Bytes>, String> {
    let chunk = timeout(PATIENCE, body.next()).await;
    let chunk = chunk.map_err(|_| format!("an answer that does not go on for {PATIENCE:?}"))?;
    chunk.transpose().map_err(|error| format!("an answer that breaks off: {error}"))
}

/// Hunts through mangled messages of one folder; how often each kind of answer was given.
fn hunt(name: &'static str, path: &'static str, cases: u64) -> (u64, BTreeMap<String, u64>) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let mut target = Target::new(&runtime, path);
    let all = seeds(name);
    for seed in &all {
        let right = target.look(&Post::of(seed));
        right.unwrap_or_else(|wrong| panic!("{}: {wrong}", seed.name));
    }
    target.good().unwrap();
    let make = |rng: &mut Rng| Post::mangled(rng, &all);
    let looked = Hunt::new(name, cases).run(make, |post| target.look(post));
    target.good().unwrap();
    (looked, target.tally)
}

/// Each of these answers was given: a hunt that is turned away at the entrance finds nothing.
pub(super) fn reached(looked: u64, tally: &BTreeMap<String, u64>, kinds: &[&str]) {
    let missing: Vec<&&str> = kinds.iter().filter(|kind| !tally.contains_key(**kind)).collect();
    assert!(looked < RPC_CASES || missing.is_empty(), "never answered {missing:?}: {tally:?}");
}

#[test]
fn mcp_answers_whatever_it_is_sent() {
    let (looked, tally) = hunt("mcp", "/mcp", MCP_CASES);
    let kinds = [
        "result",
        "200",
        "202",
        "400",
        "404",
        "-32700",
        "-32600",
        "-32601",
        "-32602",
        "-32020",
        "-32022",
        "notifications/subscriptions/acknowledged",
        "elicitation/create",
    ];
    reached(looked, &tally, &kinds);
}

#[test]
fn rpc_answers_whatever_it_is_sent() {
    let (looked, tally) = hunt("rpc", "/rpc", RPC_CASES);
    reached(looked, &tally, &["result", "200", "204", "-32700", "-32600", "-32601", "-32602"]);
}
