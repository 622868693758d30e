//! A client of the test agent that speaks all bindings and judges nothing by itself.

use serde_json::{Map, Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use testkit::http::grpc::{self, Until};
use testkit::http::{Answer, Client, Request};
use testkit::servers::test_agent::{Agent, Capabilities};
use wire::a2a::proto::status::Status;

/// No answer and no stream takes longer.
pub(super) const LIMIT: Duration = Duration::from_secs(180);
const ADDRESS: &str = "/a2a/v1";
const VERSION: [(&str, &str); 1] = [("a2a-version", "1.0")];

/// How the agent is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    Rpc,
    Rest,
    Grpc,
}

/// All of them.
pub(super) const BINDINGS: [Binding; 3] = [Binding::Rpc, Binding::Rest, Binding::Grpc];

/// The numbers of a request with something wrong in it, one of each binding.
pub(super) const INVALID: [i64; 3] = [-32602, 400, 3];

/// An error, whatever binding told it.
#[derive(Debug)]
pub(super) struct Fault {
    /// The code of JSON-RPC, or the status of HTTP or of gRPC.
    pub(super) number: i64,
    pub(super) message: String,
    pub(super) details: Vec<Value>,
    /// The whole answer.
    pub(super) whole: Box<Value>,
}

impl Fault {
    fn of(error: &Value, details: &str) -> Self {
        Self {
            number: error["code"]
                .as_i64()
                .unwrap_or_else(|| panic!("an error has a code: {error}")),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
            details: error[details].as_array().cloned().unwrap_or_default(),
            whole: Box::new(error.clone()),
        }
    }

    /// How a call of gRPC ended, unless that is success.
    fn of_grpc(status: &Status) -> Option<Self> {
        let Status { code, message, details } = status;
        let error = json!({"code": code, "message": message, "details": details});
        (*code != 0).then(|| Self::of(&error, "details"))
    }

    /// What `ErrorInfo` calls it; empty where there is none.
    pub(super) fn reason(&self) -> &str {
        let info = self.details.iter().find(|detail| {
            detail["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
                && detail["domain"] == "a2a-protocol.org"
        });
        info.and_then(|info| info["reason"].as_str()).unwrap_or_default()
    }
}

/// What an operation gives.
pub(super) type Told<T = Value> = Result<T, Fault>;

/// The agent, and who talks to it.
pub(super) struct Talk {
    agent: Agent,
}

impl Talk {
    /// With an agent that can do all.
    pub(super) fn start() -> Self {
        Self { agent: Agent::start(Capabilities::All) }
    }

    /// With one that can do no more than every agent can.
    pub(super) fn bare() -> Self {
        Self { agent: Agent::start(Capabilities::Bare) }
    }

    /// The address of the server.
    pub(super) fn base(&self) -> String {
        format!("http://{}", self.agent.address)
    }

    /// One request, with these headers.
    pub(super) fn http(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Answer {
        let mut client = Client::new(self.agent.address).limit(LIMIT);
        let answer = client.send(&Request { method, path, headers, body });
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// A text that is sent to the address of JSON-RPC as it is.
    pub(super) fn post(&self, body: &str) -> Value {
        self.http("POST", ADDRESS, &VERSION, Some(body)).json()
    }

    fn asked(&self, binding: Binding, method: &str, params: &Value) -> Answer {
        let Asked { verb, path, body } = Asked::by(binding, method, params);
        let body = body.map(|body| body.to_string());
        self.http(verb, &path, &VERSION, body.as_deref())
    }

    /// The messages of a call of gRPC with these headers.
    pub(super) fn called(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        params: &Value,
    ) -> Told<Vec<Value>> {
        let call = grpc::Call { method, headers, params, until: Until::Ended };
        let told = grpc::called(self.agent.address, &call, LIMIT);
        let told = told.unwrap_or_else(|error| panic!("{method}: {error}"));
        let status = told.status.unwrap_or_else(|| panic!("{method} has no end"));
        Fault::of_grpc(&status).map_or(Ok(told.messages), Err)
    }

    /// The one message of a call of gRPC.
    fn called_once(&self, method: &str, params: &Value) -> Told {
        let mut messages = self.called(method, &VERSION, params)?;
        assert_eq!(messages.len(), 1, "{method}: {messages:?}");
        let mut message = messages.remove(0);
        // Protocol Buffers do not write a list that has no items.
        if method == "ListTasks" && message.get("tasks").is_none() {
            message["tasks"] = json!([]);
        }
        Ok(message)
    }

    /// Begins a stream on a connection of its own, and waits for its first event.
    pub(super) fn open(&self, binding: Binding, method: &str, params: &Value) -> Open {
        if binding == Binding::Grpc {
            let call = grpc::Call { method, headers: &VERSION, params, until: Until::Begun };
            let open = grpc::Open::begin(self.agent.address, &call, LIMIT);
            return Open::Grpc(open.unwrap_or_else(|error| panic!("{method}: {error}")));
        }
        let Asked { verb, path, body } = Asked::by(binding, method, params);
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let (address, length) = (self.agent.address, body.len());
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let head = format!(
            "{verb} {path} HTTP/1.1\r\nhost: {address}\r\na2a-version: 1.0\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut open = OverHttp { stream, bytes: Vec::new(), binding };
        open.until("the first event", |text| {
            text.split_once("data:").is_some_and(|(_, event)| event.contains("\n\n"))
        });
        Open::Http(open)
    }

    /// One operation, by its name in JSON-RPC.
    pub(super) fn call(&self, binding: Binding, method: &str, params: &Value) -> Told {
        if binding == Binding::Grpc {
            return self.called_once(method, params);
        }
        let answer = self.asked(binding, method, params);
        let body = answer.json();
        match (binding, answer.status) {
            (Binding::Rpc, _) => result_of(&body),
            (_, 200) => Ok(body),
            (_, _) => {
                let fault = Fault::of(&body["error"], "details");
                assert_eq!(fault.number, i64::from(answer.status), "{method}: {body}");
                Err(fault)
            }
        }
    }

    /// The events of a stream, once it has ended.
    pub(super) fn events(
        &self,
        binding: Binding,
        method: &str,
        params: &Value,
    ) -> Told<Vec<Value>> {
        if binding == Binding::Grpc {
            return self.called(method, &VERSION, params);
        }
        let answer = self.asked(binding, method, params);
        let kind = answer.header("content-type").unwrap_or_default();
        if !kind.starts_with("text/event-stream") {
            let body = answer.json();
            let error = &body["error"];
            assert!(error.is_object(), "{method}: neither a stream nor an error: {body}");
            let details = if binding == Binding::Rpc { "data" } else { "details" };
            return Err(Fault::of(error, details));
        }
        events_of(binding, &answer.body)
    }

    /// Sends a message and gives the task or the message that comes of it.
    pub(super) fn send(&self, binding: Binding, message: Value) -> Told {
        self.call(binding, "SendMessage", &json!({"message": message}))
    }

    /// Sends a text and gives its task.
    pub(super) fn task(&self, binding: Binding, text: &str) -> Value {
        let told = self.send(binding, said(text)).unwrap_or_else(|fault| panic!("{fault:?}"));
        let task = told["task"].clone();
        assert!(task.is_object(), "{text}: {told}");
        task
    }

    /// The same without waiting for it.
    pub(super) fn begun(&self, binding: Binding, text: &str) -> Value {
        let params = json!({"message": said(text), "configuration": {"returnImmediately": true}});
        let told = self.call(binding, "SendMessage", &params);
        told.unwrap_or_else(|fault| panic!("{fault:?}"))["task"].clone()
    }

    /// Ends a task that would not end by itself.
    pub(super) fn cancel(&self, task: &Value) {
        let told = self.call(Binding::Rpc, "CancelTask", &json!({"id": task["id"]}));
        assert_eq!(state(&told.unwrap_or_else(|fault| panic!("{fault:?}"))), "CANCELED");
    }
}

/// A stream that has begun. Dropping it closes its connection.
pub(super) enum Open {
    Http(OverHttp),
    Grpc(grpc::Open),
}

impl Open {
    /// All its events, once it has ended.
    pub(super) fn events(self) -> Vec<Value> {
        match self {
            Self::Http(open) => open.events(),
            Self::Grpc(open) => {
                let (messages, status) = open.ended().unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(status, Status::default(), "{messages:?}");
                messages
            }
        }
    }
}

/// A stream of server-sent events.
pub(super) struct OverHttp {
    stream: TcpStream,
    bytes: Vec<u8>,
    binding: Binding,
}

impl OverHttp {
    fn until(&mut self, what: &str, is_there: impl Fn(&str) -> bool) {
        while !is_there(&String::from_utf8_lossy(&self.bytes)) {
            let mut some = [0; 4_096];
            let count = self.stream.read(&mut some);
            let count = count.unwrap_or_else(|error| panic!("no sign of {what}: {error}"));
            let text = String::from_utf8_lossy(&self.bytes).into_owned();
            assert!(count > 0, "the connection ended before {what}: {text}");
            self.bytes.extend_from_slice(&some[..count]);
        }
    }

    fn events(mut self) -> Vec<Value> {
        self.until("the end of the stream", |text| text.ends_with("\r\n0\r\n\r\n"));
        let text = String::from_utf8(self.bytes).unwrap();
        let (_, mut rest) = text.split_once("\r\n\r\n").unwrap();
        let mut body = String::new();
        while let Some((size, chunk)) = rest.split_once("\r\n") {
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            if size == 0 {
                break;
            }
            body.push_str(&chunk[..size]);
            rest = &chunk[size + 2..];
        }
        events_of(self.binding, &body).unwrap_or_else(|fault| panic!("{fault:?}"))
    }
}

fn events_of(binding: Binding, body: &str) -> Told<Vec<Value>> {
    let known = |line: &str| line.is_empty() || line.starts_with("data:") || line.starts_with(':');
    assert!(body.lines().all(known), "events have data, and nothing else: {body}");
    let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
    let events = data.map(|text| serde_json::from_str::<Value>(text.trim()).unwrap());
    match binding {
        Binding::Rpc => events.map(|event| result_of(&event)).collect(),
        Binding::Rest | Binding::Grpc => Ok(events.collect()),
    }
}

fn result_of(body: &Value) -> Told {
    assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &json!(7)), "{body}");
    match body.get("result") {
        Some(result) => Ok(result.clone()),
        None => Err(Fault::of(&body["error"], "data")),
    }
}

/// One request.
struct Asked {
    verb: &'static str,
    path: String,
    body: Option<Value>,
}

impl Asked {
    fn by(binding: Binding, method: &str, params: &Value) -> Self {
        match binding {
            Binding::Rpc => {
                let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
                Self { verb: "POST", path: ADDRESS.to_owned(), body: Some(body) }
            }
            Binding::Rest => {
                let asked = Self::of(method, params);
                Self { path: format!("{ADDRESS}{}", asked.path), ..asked }
            }
            Binding::Grpc => panic!("a call of gRPC is no request with JSON"),
        }
    }

    /// What an operation of JSON-RPC is there.
    fn of(method: &str, params: &Value) -> Self {
        let text = |name: &str| params[name].as_str().unwrap_or("none").to_owned();
        let (id, task) = (text("id"), text("taskId"));
        let configs = format!("/tasks/{task}/pushNotificationConfigs");
        let empty = Map::new();
        let mut rest = params.as_object().unwrap_or(&empty).clone();
        let get = |path: String| Self { verb: "GET", path, body: None };
        let post = |path: String| Self { verb: "POST", path, body: None };
        match method {
            "SendMessage" => Self { body: Some(params.clone()), ..post("/message:send".into()) },
            "SendStreamingMessage" => {
                Self { body: Some(params.clone()), ..post("/message:stream".into()) }
            }
            "GetTask" => {
                rest.remove("id");
                get(format!("/tasks/{id}{}", query(&rest)))
            }
            "ListTasks" => get(format!("/tasks{}", query(&rest))),
            "CancelTask" => post(format!("/tasks/{id}:cancel")),
            "SubscribeToTask" => post(format!("/tasks/{id}:subscribe")),
            "CreateTaskPushNotificationConfig" => {
                Self { body: Some(params.clone()), ..post(configs) }
            }
            "GetTaskPushNotificationConfig" => get(format!("{configs}/{id}")),
            "ListTaskPushNotificationConfigs" => get(configs),
            "DeleteTaskPushNotificationConfig" => {
                Self { verb: "DELETE", ..get(format!("{configs}/{id}")) }
            }
            "GetExtendedAgentCard" => get("/extendedAgentCard".into()),
            other => panic!("no operation `{other}`"),
        }
    }
}

fn query(members: &Map<String, Value>) -> String {
    let written = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}={}", encoded(text)),
        value => format!("{name}={value}"),
    };
    let fields: Vec<String> = members.iter().map(written).collect();
    if fields.is_empty() { String::new() } else { format!("?{}", fields.join("&")) }
}

fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// A message with this text and an id that says nothing.
pub(super) fn said(text: &str) -> Value {
    json!({"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": text}]})
}

/// A message to a task.
pub(super) fn reply(task: &Value, text: &str) -> Value {
    let mut message = said(text);
    message["taskId"] = task["id"].clone();
    message
}

/// The state of a task, in a word.
pub(super) fn state(task: &Value) -> &str {
    let state = task["status"]["state"].as_str().unwrap_or_else(|| panic!("no state: {task}"));
    state.strip_prefix("TASK_STATE_").unwrap_or_else(|| panic!("no state of A2A: {task}"))
}

/// Each event of a stream in a word: a state, an artifact with its text, or a message.
pub(super) fn words(events: &[Value]) -> Vec<String> {
    let word = |event: &Value| {
        let members: Vec<&String> = event.as_object().unwrap().keys().collect();
        assert_eq!(members.len(), 1, "an event is one thing: {event}");
        match members[0].as_str() {
            "task" => format!("task {}", state(&event["task"])),
            "statusUpdate" => state(&event["statusUpdate"]).to_owned(),
            "artifactUpdate" => {
                let text = &event["artifactUpdate"]["artifact"]["parts"][0]["text"];
                format!("artifact {}", text.as_str().unwrap_or("of no text"))
            }
            other => other.to_owned(),
        }
    };
    events.iter().map(word).collect()
}
