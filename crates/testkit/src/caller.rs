//! An MCP client for tests, of either era: one request at a time, its whole answer, and what came
//! before it; or a stream, to be read as it comes. It checks nothing that a test might want to see.

use crate::events::Events;
use crate::http::{Answer, Client, NoAnswer, Request};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;

const PATH: &str = "/mcp";
const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";
const META: &str = "io.modelcontextprotocol";

/// How a client says who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// By a handshake.
    Legacy,
    /// With each request.
    Modern,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Result(Value),
    /// An error of the protocol.
    Error {
        code: i64,
        message: String,
    },
}

impl Outcome {
    /// The result; panics with the error if there is none.
    pub fn result(self) -> Value {
        match self {
            Outcome::Result(result) => result,
            Outcome::Error { code, message } => panic!("error {code}: {message}"),
        }
    }

    /// All that it says in words, one line for each block of text.
    pub fn words(&self) -> String {
        match self {
            Outcome::Error { message, .. } => message.clone(),
            Outcome::Result(result) => {
                let blocks = result["content"].as_array().cloned().unwrap_or_default();
                let texts = blocks.iter().filter_map(|block| block["text"].as_str());
                texts.collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// Whether it says that something went wrong.
    pub fn is_failure(&self) -> bool {
        match self {
            Outcome::Error { .. } => true,
            Outcome::Result(result) => result["isError"] == json!(true),
        }
    }
}

/// A client of one server.
#[derive(Debug)]
pub struct Caller {
    client: Client,
    era: Era,
    session: Option<String>,
    capabilities: Value,
    next: u64,
    /// What came before the last answer.
    pub heard: Vec<Value>,
}

impl Caller {
    /// A client that can do what these capabilities say; a handshake is done at once.
    pub fn new(address: SocketAddr, era: Era, capabilities: Value) -> Self {
        let client = Client::new(address);
        let mut caller =
            Self { client, era, session: None, capabilities, next: 0, heard: Vec::new() };
        if era == Era::Legacy {
            caller.shake_hands();
        }
        caller
    }

    /// The same client, waiting at most this long for each answer.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.client = self.client.limit(limit);
        self
    }

    /// The names of all tools, over all pages.
    pub fn tools(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
            let page = answered(self.request("tools/list", params)).result();
            let tools = page["tools"].as_array().unwrap_or_else(|| panic!("no tools: {page}"));
            names.extend(tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)));
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                return names;
            }
        }
    }

    /// Calls a tool.
    pub fn call(&mut self, name: &str, arguments: Value) -> Result<Outcome, NoAnswer> {
        self.request("tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// Sends a request and reads its whole answer.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Outcome, NoAnswer> {
        let Sent { id, name, body } = self.next_request(method, params);
        let answer = self.post(method, name.as_deref(), &body)?;
        let mut heard = messages(&answer);
        let at = heard.iter().position(|message| message["id"] == json!(id));
        let Some(at) = at else {
            panic!("{}: no answer to {id} in {}", answer.status, answer.body);
        };
        let mut message = heard.remove(at);
        self.heard = heard;
        let error = &message["error"];
        if error.is_object() {
            let code = error["code"].as_i64().unwrap_or_default();
            let message = error["message"].as_str().unwrap_or_default().to_owned();
            return Ok(Outcome::Error { code, message });
        }
        Ok(Outcome::Result(message["result"].take()))
    }

    /// Sends a request whose answer is a stream, and reads no more than its head.
    pub fn open(
        &mut self,
        method: &str,
        params: Value,
        limit: Duration,
    ) -> Result<Events, NoAnswer> {
        let Sent { name, body, .. } = self.next_request(method, params);
        let headers = headers(self.era, self.session.as_deref(), method, name.as_deref());
        let request = Request { method: "POST", path: PATH, headers: &headers, body: Some(&body) };
        Events::open(self.client.address(), &request, limit)
    }

    /// The stream of what belongs to no request of a client with a session.
    pub fn news(&self, limit: Duration) -> Result<Events, NoAnswer> {
        let headers = headers(self.era, self.session.as_deref(), "", None);
        let request = Request { method: "GET", path: PATH, headers: &headers, body: None };
        Events::open(self.client.address(), &request, limit)
    }

    /// Answers a request of the server's in a session.
    pub fn answer(&mut self, question: &Value, result: Value) -> Result<(), NoAnswer> {
        let body = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        let answer = self.post("", None, &body.to_string())?;
        assert_eq!(answer.status, 202, "an answer was not taken: {}", answer.body);
        Ok(())
    }

    fn next_request(&mut self, method: &str, params: Value) -> Sent {
        let id = self.next;
        self.next += 1;
        let name = params["name"].as_str().map(str::to_owned);
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method,
            "params": self.signed(params)});
        Sent { id, name, body: body.to_string() }
    }

    fn shake_hands(&mut self) {
        let params = json!({
            "protocolVersion": LEGACY,
            "capabilities": self.capabilities,
            "clientInfo": {"name": "caller", "version": "1"},
        });
        let body = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize",
            "params": params});
        let answer = answered(self.post("initialize", None, &body.to_string()));
        assert_eq!(answer.status, 200, "no handshake: {}", answer.body);
        self.session = answer.header("mcp-session-id").map(str::to_owned);
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let answer = answered(self.post("notifications/initialized", None, &done.to_string()));
        assert_eq!(answer.status, 202, "no handshake: {}", answer.body);
    }

    /// The parameters with what the era wants in each request.
    fn signed(&self, mut params: Value) -> Value {
        if self.era == Era::Modern {
            let meta = &mut params["_meta"];
            meta[format!("{META}/protocolVersion")] = json!(MODERN);
            meta[format!("{META}/clientInfo")] = json!({"name": "caller", "version": "1"});
            meta[format!("{META}/clientCapabilities")] = self.capabilities.clone();
        }
        params
    }

    fn post(&mut self, method: &str, name: Option<&str>, body: &str) -> Result<Answer, NoAnswer> {
        let headers = headers(self.era, self.session.as_deref(), method, name);
        let request = Request { method: "POST", path: PATH, headers: &headers, body: Some(body) };
        self.client.send(&request)
    }
}

/// The headers of a message with this method, about the tool of this name.
fn headers<'a>(
    era: Era,
    session: Option<&'a str>,
    method: &'a str,
    name: Option<&'a str>,
) -> Vec<(&'a str, &'a str)> {
    let mut headers = vec![("accept", "application/json, text/event-stream")];
    match (era, session) {
        (Era::Modern, _) => {
            headers.extend([("mcp-protocol-version", MODERN), ("mcp-method", method)]);
            headers.extend(name.map(|name| ("mcp-name", name)));
        }
        (Era::Legacy, None) => {}
        (Era::Legacy, Some(session)) => {
            headers.extend([("mcp-protocol-version", LEGACY), ("mcp-session-id", session)]);
        }
    }
    headers
}

/// A request on its way.
struct Sent {
    id: u64,
    /// The tool that it is about.
    name: Option<String>,
    body: String,
}

fn answered<T>(answer: Result<T, NoAnswer>) -> T {
    answer.unwrap_or_else(|error| panic!("the server did not answer: {error}"))
}

/// The messages of an answer: one, or those of a stream.
fn messages(answer: &Answer) -> Vec<Value> {
    let kind = answer.header("content-type").unwrap_or_default();
    if !kind.starts_with("text/event-stream") {
        return vec![answer.json()];
    }
    let data = answer.body.lines().filter_map(|line| line.strip_prefix("data:"));
    data.filter_map(|text| serde_json::from_str(text.trim()).ok()).collect()
}
