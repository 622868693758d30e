//! A2A 1.0 over gRPC, spoken by a plain client of HTTP/2 at a real port: every operation, the same
//! tasks as over the other bindings, and what a client cannot make the server do.

use crate::a2a::{ADD, SETTINGS, message, project, reply};
use crate::a2a_push::{OK, PUSH, Receiver};
use crate::a2a_webhook_rights::token;
use crate::credentials::{Guarded, OPEN, maker};
use crate::house::{assembled, wait_for};
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use http_body_util::BodyExt;
use identity::keys::Expiry;
use kernel::identity::roles::Role;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use server::A2A_OPERATIONS;
use std::net::SocketAddr;
use std::time::Duration;
use tempfile::TempDir;
use testkit::http::grpc::{self, framed, operation, read_as, status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use wire::a2a::card::AgentCard;
use wire::a2a::message::{Part, Role as Sender};
use wire::a2a::proto::schema;
use wire::a2a::proto::status::Status;
use wire::a2a::proto::write;
use wire::a2a::task::{StreamResponse, Task};
use wire::a2a::{GRPC_SERVICE, SKILLS_EXTENSION};

/// No answer and no stream takes longer.
pub(super) const LIMIT: Duration = Duration::from_secs(60);
const VERSION: [(&str, &str); 1] = [("a2a-version", "1.0")];

/// A server on a socket of its own, and a connection to it.
pub(super) struct Served {
    pub(super) address: SocketAddr,
    sender: SendRequest<Bytes>,
    _data: TempDir,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

/// How a call was answered.
#[derive(Debug)]
pub(super) struct Told {
    head: HeaderMap,
    messages: Vec<Vec<u8>>,
    pub(super) status: Status,
}

/// The messages of a body, which has nothing else.
fn unframed(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (messages, rest) = grpc::unframed(bytes);
    assert!(rest.is_empty(), "a part of a frame, or a compressed one: {rest:?}");
    messages
}

fn reason(status: &Status) -> &str {
    let info = status.details.iter().find_map(|detail| detail["reason"].as_str());
    info.unwrap_or_default()
}

/// What came; none where the server only says that it wants no more of a request that it answered.
fn unless_done<T>(came: Result<T, h2::Error>) -> Option<T> {
    match came {
        Ok(came) => Some(came),
        Err(error) if error.reason() == Some(Reason::NO_ERROR) => None,
        Err(error) => panic!("the answer broke off: {error}"),
    }
}

/// Reads an answer to its end.
async fn told(answer: ResponseFuture) -> Told {
    let answer = timeout(LIMIT, answer).await.expect("no answer came").unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let (head, mut body) = answer.into_parts();
    let mut bytes = Vec::new();
    while let Some(piece) = timeout(LIMIT, body.data()).await.expect("the answer has no end") {
        let Some(piece) = unless_done(piece) else { break };
        body.flow_control().release_capacity(piece.len()).unwrap();
        bytes.extend_from_slice(&piece);
    }
    let trailers = timeout(LIMIT, body.trailers()).await.expect("no trailers came");
    let trailers = unless_done(trailers).flatten();
    let status = status(trailers.as_ref().unwrap_or(&head.headers));
    Told { head: head.headers, messages: unframed(&bytes), status }
}

impl Served {
    pub(super) async fn new(settings: &str) -> Self {
        let data = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let assembled = assembled(project(settings), &data, address, None).await;
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server::serve(assembled, listener, None, async move {
            let _ = stopped.await;
        }));
        Self { address, sender: connected(address).await, _data: data, stop, serving }
    }

    /// Sends a call, and gives what its answer comes by.
    async fn begin(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> (ResponseFuture, SendStream<Bytes>) {
        let uri = format!("http://{}{GRPC_SERVICE}/{method}", self.address);
        let mut request = Request::builder().method(Method::POST).uri(uri);
        request = request.header("content-type", "application/grpc").header("te", "trailers");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut sender = timeout(LIMIT, self.sender.clone().ready()).await.unwrap().unwrap();
        let (answer, mut sending) = sender.send_request(request.body(()).unwrap(), false).unwrap();
        sending.send_data(body.into(), true).unwrap();
        (answer, sending)
    }

    async fn call(&self, method: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Told {
        told(self.begin(method, headers, body).await.0).await
    }

    /// The messages of an operation that succeeds.
    async fn all(&self, method: &str, params: &Value) -> Vec<Value> {
        let operation = operation(method);
        let told = self.call(method, &VERSION, framed(&write(operation.request(), params))).await;
        assert_eq!(told.status, Status::default(), "{method}: {params}");
        assert_eq!(told.head["content-type"], "application/grpc");
        told.messages.iter().map(|message| read_as(operation.answer(), message)).collect()
    }

    /// The one message of an operation that succeeds.
    async fn ask(&self, method: &str, params: &Value) -> Value {
        let mut all = self.all(method, params).await;
        assert_eq!(all.len(), 1, "{method}: {all:?}");
        all.remove(0)
    }

    /// How an operation fails.
    async fn fails(&self, method: &str, params: &Value) -> Status {
        let request = operation(method).request();
        let told = self.call(method, &VERSION, framed(&write(request, params))).await;
        assert!(told.messages.is_empty() && told.status.code != 0, "{method}: {told:?}");
        told.status
    }

    /// The task that a message leads to.
    pub(super) async fn send(&self, message: Value) -> Value {
        let answer = self.ask("SendMessage", &json!({"message": message})).await;
        assert!(answer["task"].is_object(), "{answer}");
        answer["task"].clone()
    }

    /// The answer to a request with JSON, on the same connection.
    async fn json(&self, verb: &str, path: &str, body: &Value) -> Value {
        let request = Request::builder()
            .method(verb)
            .uri(format!("http://{}{path}", self.address))
            .header("content-type", "application/json")
            .header("a2a-version", "1.0");
        let mut sender = timeout(LIMIT, self.sender.clone().ready()).await.unwrap().unwrap();
        let (answer, mut sending) = sender.send_request(request.body(()).unwrap(), false).unwrap();
        let text = if body.is_null() { String::new() } else { body.to_string() };
        sending.send_data(text.into(), true).unwrap();
        let mut body = timeout(LIMIT, answer).await.expect("no answer came").unwrap().into_body();
        let mut bytes = Vec::new();
        while let Some(piece) = timeout(LIMIT, body.data()).await.expect("no end came") {
            let piece = piece.unwrap();
            body.flow_control().release_capacity(piece.len()).unwrap();
            bytes.extend_from_slice(&piece);
        }
        serde_json::from_slice(&bytes).unwrap()
    }

    async fn rpc(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.json("POST", "/a2a/v1", &body).await["result"].clone()
    }

    /// Waits until so many streams of events are open.
    async fn until_streams(&self, count: usize) {
        let wanted = format!("waypost_streams_open {count}\n");
        let metrics = async || exchange(self.address, "GET /metrics HTTP/1.1").await;
        let is_shown = |text: &String| text.contains(&wanted);
        wait_for(&format!("{count} open streams"), metrics, is_shown).await;
    }

    pub(super) async fn stop(self) {
        self.stop.send(()).unwrap();
        timeout(LIMIT, self.serving).await.expect("the server does not stop").unwrap();
    }
}

async fn connected(address: SocketAddr) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) =
        timeout(LIMIT, h2::client::handshake(stream)).await.unwrap().unwrap();
    tokio::spawn(connection);
    sender
}

/// Sends one request by HTTP/1.1, with these lines after the first, and reads until the other side
/// closes.
async fn exchange(address: SocketAddr, head: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{head}\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    timeout(LIMIT, stream.read_to_end(&mut answer)).await.expect("no end came").unwrap();
    String::from_utf8(answer).unwrap()
}

pub(super) fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap().strip_prefix("TASK_STATE_").unwrap()
}

pub(super) fn words(events: &[Value]) -> Vec<String> {
    let word = |event: &Value| match event.as_object().unwrap().keys().next().unwrap().as_str() {
        "task" => format!("task {}", state(&event["task"])),
        "statusUpdate" => state(&event["statusUpdate"]).to_owned(),
        "artifactUpdate" => "artifact".to_owned(),
        other => other.to_owned(),
    };
    events.iter().map(word).collect()
}

pub(super) fn add(id: &str) -> Value {
    message(id, ADD, json!({"data": {"a": 1, "b": 2}}))
}

pub(super) fn typed<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

/// A task without what differs between two that were told the same: ids and moments, and what the
/// agent wrote for programs, which has ids.
fn bare(task: &Value) -> Task {
    let mut task: Task = typed(task);
    task.id.clear();
    task.status.timestamp = None;
    for message in task.history.iter_mut().chain(task.status.message.as_mut()) {
        message.message_id.clear();
        message.task_id.clear();
        if message.role == Sender::Agent {
            message.parts = vec![Part::text(message.words())];
            message.metadata.clear();
        }
    }
    task
}

#[tokio::test]
async fn the_same_conversation_over_all_bindings_gives_equal_tasks() {
    let served = Served::new(SETTINGS).await;
    let mut done = Vec::new();
    for binding in ["grpc", "rpc", "rest"] {
        let send = async |message: Value| -> Value {
            let params = json!({"message": message});
            match binding {
                "grpc" => served.ask("SendMessage", &params).await["task"].clone(),
                "rpc" => served.rpc("SendMessage", params).await["task"].clone(),
                _ => served.json("POST", "/a2a/v1/message:send", &params).await["task"].clone(),
            }
        };
        let mut begin = message(&format!("{binding}-1"), "it/approval", json!({"data": {}}));
        begin["contextId"] = json!("one");
        let task = send(begin).await;
        assert_eq!(state(&task), "INPUT_REQUIRED", "{binding}: {task}");
        let task = send(reply(&format!("{binding}-2"), &task, json!({"text": "yes"}))).await;
        assert_eq!(state(&task), "COMPLETED", "{binding}: {task}");
        done.push(task);
    }
    for task in &done {
        assert_eq!(bare(task), bare(&done[0]));
        // And each is the same for every reader.
        let asked = json!({"id": task["id"]});
        let by_rpc = served.rpc("GetTask", asked.clone()).await;
        let path = format!("/a2a/v1/tasks/{}", task["id"].as_str().unwrap());
        let by_grpc = served.ask("GetTask", &asked).await;
        assert_eq!(typed::<Task>(&by_grpc), typed(&by_rpc));
        assert_eq!(served.json("GET", &path, &Value::Null).await, by_rpc);
    }
    served.stop().await;
}

#[tokio::test]
async fn a_stream_tells_what_happens_and_ends_with_its_status() {
    let served = Served::new(SETTINGS).await;
    let events = served.all("SendStreamingMessage", &json!({"message": add("m1")})).await;
    let expected = ["task SUBMITTED", "WORKING", "artifact", "COMPLETED"];
    assert_eq!(words(&events), expected, "{events:?}");
    // A repeat begins with the task as it is, and has nothing more to tell.
    let again = served.all("SendStreamingMessage", &json!({"message": add("m1")})).await;
    assert_eq!(words(&again), ["task COMPLETED"]);
    let over = served.fails("SubscribeToTask", &json!({"id": again[0]["task"]["id"]})).await;
    assert_eq!((over.name(), reason(&over)), ("FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"));
    served.stop().await;
}

#[tokio::test]
async fn a_subscriber_gets_what_one_of_another_binding_gets() {
    let served = Served::new(SETTINGS).await;
    let task = served.send(message("m1", "it/approval", json!({"data": {}}))).await;
    let subscribe = write(&schema::SUBSCRIBE_REQUEST, &json!({"id": task["id"]}));
    let (stream, _sending) = served.begin("SubscribeToTask", &VERSION, framed(&subscribe)).await;
    let path = format!("/a2a/v1/tasks/{}:subscribe", task["id"].as_str().unwrap());
    let address = served.address;
    let other = tokio::spawn(async move {
        exchange(address, &format!("GET {path} HTTP/1.1\r\na2a-version: 1.0")).await
    });
    served.until_streams(2).await;
    let done = served.send(reply("m2", &task, json!({"text": "yes"}))).await;
    assert_eq!(state(&done), "COMPLETED");
    let told = told(stream).await;
    assert_eq!(told.status, Status::default());
    let read = |message: &Vec<u8>| read_as(&schema::STREAM_RESPONSE, message);
    let events: Vec<Value> = told.messages.iter().map(read).collect();
    assert_eq!(events[0]["task"], task, "the first is the task as it was");
    let events: Vec<StreamResponse> = events.iter().map(typed).collect();
    let text = timeout(LIMIT, other).await.expect("the other stream has no end").unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let others: Vec<StreamResponse> =
        data.map(|text| serde_json::from_str(text.trim()).unwrap()).collect();
    assert_eq!(events, others);
    served.stop().await;
}

#[tokio::test]
async fn tasks_are_listed_and_cancelled() {
    let served = Served::new(SETTINGS).await;
    served.send(add("m1")).await;
    let waiting = served.send(message("m2", "it/question", json!({"data": {}}))).await;
    let page = served.ask("ListTasks", &json!({"pageSize": 1, "includeArtifacts": true})).await;
    assert_eq!((&page["totalSize"], &page["pageSize"]), (&json!(2), &json!(1)), "{page}");
    assert_eq!(page["tasks"][0]["id"], waiting["id"]);
    let next = json!({"pageSize": 1, "pageToken": page["nextPageToken"]});
    let next = served.ask("ListTasks", &next).await;
    assert_eq!(state(&next["tasks"][0]), "COMPLETED", "{next}");
    let listed = served.ask("ListTasks", &json!({"status": "TASK_STATE_INPUT_REQUIRED"})).await;
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 1, "{listed}");
    let wrong = served.fails("ListTasks", &json!({"pageSize": 0})).await;
    assert_eq!(wrong.name(), "INVALID_ARGUMENT", "a size that is sent counts: {wrong:?}");
    let ended = served.ask("CancelTask", &json!({"id": waiting["id"]})).await;
    assert_eq!(state(&ended), "CANCELED");
    let again = served.fails("CancelTask", &json!({"id": waiting["id"]})).await;
    assert_eq!((again.name(), reason(&again)), ("FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"));
    served.stop().await;
}

#[tokio::test]
async fn webhooks_are_made_read_and_removed() {
    let served = Served::new(&format!("{SETTINGS}{PUSH}")).await;
    let receiver = Receiver::new(&[OK]);
    let task = served.send(message("m1", "it/question", json!({"data": {}}))).await;
    let config = json!({"taskId": task["id"], "id": "w", "url": receiver.url, "token": "t0ken"});
    let made = served.ask("CreateTaskPushNotificationConfig", &config).await;
    assert_eq!((&made["id"], &made["url"]), (&json!("w"), &json!(receiver.url)), "{made}");
    let one = json!({"taskId": task["id"], "id": "w"});
    let got = served.ask("GetTaskPushNotificationConfig", &one).await;
    assert_eq!(got["url"], made["url"]);
    let all = json!({"taskId": task["id"]});
    let listed = served.ask("ListTaskPushNotificationConfigs", &all).await;
    assert_eq!(listed["configs"], json!([got]), "{listed}");
    served.send(reply("m2", &task, json!({"text": "yes"}))).await;
    receiver.wait(1).await;
    let nothing = served.ask("DeleteTaskPushNotificationConfig", &one).await;
    assert_eq!(nothing, json!({}));
    let gone = served.fails("GetTaskPushNotificationConfig", &one).await;
    assert_eq!((gone.name(), reason(&gone)), ("NOT_FOUND", "TASK_NOT_FOUND"));
    served.stop().await;
}

#[tokio::test]
async fn the_card_names_the_service_and_is_the_same_over_grpc() {
    let served = Served::new(SETTINGS).await;
    let card = served.ask("GetExtendedAgentCard", &json!({})).await;
    let grpc = card["supportedInterfaces"].as_array().unwrap();
    let grpc = grpc.iter().find(|one| one["protocolBinding"] == "GRPC").unwrap();
    assert_eq!(
        (&grpc["url"], &grpc["protocolVersion"]),
        (&json!(served.address.to_string()), &json!("1.0"))
    );
    let other = served.rpc("GetExtendedAgentCard", json!({})).await;
    let content = |card: Value| {
        let card: AgentCard = serde_json::from_value(card).unwrap();
        assert_eq!(card.signatures.len(), 1);
        card.signed_content()
    };
    assert_eq!(content(card), content(other));
    served.stop().await;
}

#[tokio::test]
async fn errors_have_their_status_and_error_info_in_its_details() {
    let served = Served::new(SETTINGS).await;
    let missing = served.fails("GetTask", &json!({"id": "run_nowhere"})).await;
    assert_eq!((missing.name(), reason(&missing)), ("NOT_FOUND", "TASK_NOT_FOUND"));
    assert_eq!(missing.details[0]["domain"], "a2a-protocol.org");
    assert_eq!(missing.details[0]["metadata"]["taskId"], "run_nowhere");
    let told = served.rpc("GetTask", json!({"id": "run_nowhere"})).await;
    assert!(told.is_null(), "over JSON-RPC as well");
    let unnamed = served.fails("GetTask", &json!({})).await;
    assert_eq!(unnamed.name(), "INVALID_ARGUMENT");
    assert_eq!(unnamed.details[0]["fieldViolations"][0]["field"], "id", "{unnamed:?}");
    let misfit = message("m", ADD, json!({"data": {"a": "x", "b": 2}}));
    let misfit = served.fails("SendStreamingMessage", &json!({"message": misfit})).await;
    assert_eq!(misfit.name(), "INVALID_ARGUMENT", "before the stream begins: {misfit:?}");
    let unknown = served.call("Nothing", &VERSION, framed(b"")).await;
    assert_eq!(unknown.status.name(), "UNIMPLEMENTED");
    served.stop().await;
}

#[tokio::test]
async fn service_parameters_are_metadata() {
    let served = Served::new(SETTINGS).await;
    let list = || framed(&write(&schema::LIST_TASKS_REQUEST, &json!({})));
    for version in ["1.0", "1.0.1"] {
        let named = format!("https://example.com/none/v1,{SKILLS_EXTENSION}");
        let extensions = ("a2a-extensions", named.as_str());
        let told = served.call("ListTasks", &[("a2a-version", version), extensions], list()).await;
        assert_eq!(told.status, Status::default(), "{version}");
        assert_eq!(told.head["a2a-extensions"], SKILLS_EXTENSION, "those that are known");
    }
    let headers: [&[(&str, &str)]; 4] =
        [&[], &[("a2a-version", "")], &[("a2a-version", "0.3")], &[("a2a-version", "99.0")]];
    for headers in headers {
        let told = served.call("ListTasks", headers, list()).await;
        assert_eq!(told.status.name(), "FAILED_PRECONDITION", "{headers:?}");
        assert_eq!(reason(&told.status), "VERSION_NOT_SUPPORTED", "{headers:?}");
    }
    served.stop().await;
}

#[tokio::test]
async fn malformed_messages_are_refused_and_harm_nobody() {
    let served = Served::new(&format!("{SETTINGS}[limits]\nbody_bytes_max = 65536\n")).await;
    let bodies: [(&str, Vec<u8>); 7] = [
        ("nothing at all", Vec::new()),
        ("half a frame", vec![0, 0, 0]),
        ("a frame that is cut off", [&[0, 0, 0, 0, 9][..], b"abc"].concat()),
        ("two messages", [framed(b""), framed(b"")].concat()),
        ("a flag that is not known", vec![9, 0, 0, 0, 0]),
        ("no protobuf", framed(b"\xff\xff\xff")),
        ("a text that is not UTF-8", framed(b"\x0a\x01\xff")),
    ];
    for (what, body) in bodies {
        let told = served.call("SendMessage", &VERSION, body).await;
        assert_eq!(told.status.name(), "INVALID_ARGUMENT", "{what}: {told:?}");
        assert!(told.messages.is_empty() && !told.status.message.is_empty(), "{what}");
    }
    let compressed = served.call("SendMessage", &VERSION, vec![1, 0, 0, 0, 0]).await;
    assert_eq!(compressed.status.name(), "UNIMPLEMENTED");
    assert_eq!(compressed.head["grpc-accept-encoding"], "identity");
    let mut deep = json!(1);
    for _ in 0..90 {
        deep = json!([deep]);
    }
    let params = json!({"message": message("m", ADD, json!({"data": deep}))});
    assert_eq!(served.fails("SendMessage", &params).await.name(), "INVALID_ARGUMENT");
    let large = json!({"message": message("m", ADD, json!({"text": "x".repeat(100_000)}))});
    assert_eq!(served.fails("SendMessage", &large).await.name(), "INVALID_ARGUMENT");
    // The connection is as good as before.
    assert_eq!(state(&served.send(add("m1")).await), "COMPLETED");
    served.stop().await;
}

#[tokio::test]
async fn requests_that_are_no_grpc_calls_are_answered_by_http() {
    let served = Served::new(SETTINGS).await;
    let path = format!("{GRPC_SERVICE}/ListTasks");
    let older = format!("POST {path} HTTP/1.1\r\ncontent-type: application/grpc");
    let older = exchange(served.address, &format!("{older}\r\ncontent-length: 0")).await;
    assert!(older.starts_with("HTTP/1.1 505 "), "{older}");
    let answer = served.json("POST", &path, &json!({})).await;
    assert_eq!((&answer["code"], &answer["status"]), (&json!("not_grpc"), &json!(415)));
    let answer = served.json("GET", &path, &Value::Null).await;
    assert_eq!(answer["status"], 405, "{answer}");
    served.stop().await;
}

#[tokio::test]
async fn a_client_waits_as_long_as_it_says() {
    let served = Served::new(SETTINGS).await;
    let task = served.send(message("m1", "it/question", json!({"data": {}}))).await;
    let subscribe = framed(&write(&schema::SUBSCRIBE_REQUEST, &json!({"id": task["id"]})));
    let headers = [VERSION[0], ("grpc-timeout", "10S")];
    let told = served.call("SubscribeToTask", &headers, subscribe.clone()).await;
    assert_eq!(told.status.name(), "DEADLINE_EXCEEDED");
    assert_eq!(told.messages.len(), 1, "the task came in time");
    served.until_streams(0).await;
    let headers = [VERSION[0], ("grpc-timeout", "soon")];
    let told = served.call("SubscribeToTask", &headers, subscribe).await;
    assert_eq!(told.status.name(), "INVALID_ARGUMENT");
    served.stop().await;
}

#[tokio::test]
async fn streams_that_are_given_up_or_not_read_harm_nobody() {
    let served = Served::new(&format!("{SETTINGS}[limits]\na2a_streams_max = 20\n")).await;
    let task = served.send(message("m1", "it/question", json!({"data": {}}))).await;
    let subscribe = framed(&write(&schema::SUBSCRIBE_REQUEST, &json!({"id": task["id"]})));
    for _ in 0..5 {
        let mut open = Vec::new();
        for _ in 0..10 {
            let (answer, sending) =
                served.begin("SubscribeToTask", &VERSION, subscribe.clone()).await;
            let answer = timeout(LIMIT, answer).await.expect("no stream begins").unwrap();
            // Nothing of it is read.
            open.push((answer, sending));
        }
        served.until_streams(10).await;
        assert_eq!(served.ask("GetTask", &json!({"id": task["id"]})).await["id"], task["id"]);
        for (_, sending) in &mut open {
            sending.send_reset(Reason::CANCEL);
        }
        drop(open);
        // Each of them gives its place back.
        served.until_streams(0).await;
    }
    served.stop().await;
}

#[tokio::test]
async fn a_server_that_stops_says_so() {
    let served = Served::new(SETTINGS).await;
    let task = served.send(message("m1", "it/question", json!({"data": {}}))).await;
    let subscribe = framed(&write(&schema::SUBSCRIBE_REQUEST, &json!({"id": task["id"]})));
    let (answer, _sending) = served.begin("SubscribeToTask", &VERSION, subscribe).await;
    served.until_streams(1).await;
    let told = tokio::spawn(told(answer));
    served.stop().await;
    let told = timeout(LIMIT, told).await.expect("the stream has no end").unwrap();
    assert_eq!(told.status.name(), "UNAVAILABLE");
}

/// A call without a socket, as HTTP/2 brings it.
pub(super) fn called(key: Option<&str>, method: &str, params: &Value) -> Request<Body> {
    let body = framed(&write(operation(method).request(), params));
    let mut request = Request::builder()
        .method(Method::POST)
        .version(Version::HTTP_2)
        .uri(format!("{GRPC_SERVICE}/{method}"))
        .header("host", "localhost:8420")
        .header("content-type", "application/grpc+proto")
        .header("a2a-version", "1.0");
    if let Some(key) = key {
        request = request.header("x-api-key", key);
    }
    request.body(Body::from(body)).unwrap()
}

/// Reads the answer to it.
pub(super) async fn collected(answer: Response<Body>) -> Told {
    assert_eq!(answer.status(), StatusCode::OK);
    let (head, body) = answer.into_parts();
    let body = timeout(LIMIT, body.collect()).await.expect("the answer has no end").unwrap();
    let status = status(body.trailers().unwrap_or(&head.headers));
    Told { head: head.headers, messages: unframed(&body.to_bytes()), status }
}

async fn asked(guarded: &Guarded, key: Option<&str>, method: &str, params: &Value) -> Told {
    collected(guarded.send(called(key, method, params)).await).await
}

#[tokio::test]
async fn a_stream_ends_with_its_credential_and_says_so() {
    let settings = format!("{OPEN}[a2a]\nexpose = [\"interaction::*\"]\n");
    let guarded = Guarded::start(&settings).await;
    let made = guarded.made(Role::Member, &[], Expiry::Usual).await;
    let key = Some(made.text.expose());
    let greeting = message("m1", "interaction::greeting", json!({"data": {}}));
    let params = json!({"message": greeting, "configuration": {"returnImmediately": true}});
    let sent = asked(&guarded, key, "SendMessage", &params).await;
    assert_eq!(sent.status, Status::default());
    let task = read_as(&schema::SEND_MESSAGE_RESPONSE, &sent.messages[0])["task"].clone();
    let subscribe = called(key, "SubscribeToTask", &json!({"id": task["id"]}));
    let stream = guarded.send(subscribe).await;
    assert!(!stream.headers().contains_key("grpc-status"), "it has begun: {stream:?}");
    guarded.identity.revoke(&maker(), &made.stored.key.id).await.unwrap();
    assert_eq!(collected(stream).await.status.name(), "UNAUTHENTICATED");
}

#[tokio::test]
async fn every_operation_asks_for_a_credential_over_grpc() {
    let guarded = Guarded::start(&format!("{OPEN}[a2a]\nexpose = [\"math::*\"]\n")).await;
    for operation in A2A_OPERATIONS {
        for key in [None, Some("wp_wrong")] {
            let told = asked(&guarded, key, operation.method, &json!({"id": "x"})).await;
            assert_eq!(told.status.name(), "UNAUTHENTICATED", "{}: {told:?}", operation.method);
            assert!(told.head.contains_key("www-authenticate"), "{told:?}");
        }
    }
    let ann = guarded.key(Role::Member).await;
    let bob = guarded.key(Role::Operator).await;
    let sent = asked(&guarded, Some(&ann), "SendMessage", &json!({"message": add("m1")})).await;
    assert_eq!(sent.status, Status::default());
    let task = read_as(&schema::SEND_MESSAGE_RESPONSE, &sent.messages[0])["task"].clone();
    assert_eq!(state(&task), "COMPLETED", "{task}");
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        let other = asked(&guarded, Some(&bob), method, &json!({"id": task["id"]})).await;
        assert_eq!(reason(&other.status), "TASK_NOT_FOUND", "{method}: {other:?}");
    }
    let elsewhere = json!({"tenant": "other", "id": task["id"]});
    let denied = asked(&guarded, Some(&ann), "GetTask", &elsewhere).await;
    assert_eq!(denied.status.name(), "PERMISSION_DENIED", "{denied:?}");
    // A stream of a caller with a credential has its status behind it, too.
    let repeated = json!({"message": add("m1")});
    let stream = asked(&guarded, Some(&ann), "SendStreamingMessage", &repeated).await;
    assert_eq!((stream.messages.len(), stream.status), (1, Status::default()));
    let viewer = guarded.key(Role::Viewer).await;
    let params = json!({"message": add("m2")});
    let refused = asked(&guarded, Some(&viewer), "SendMessage", &params).await;
    assert_ne!(refused.status.code, 0, "who may only read starts nothing");
}

#[tokio::test]
async fn a_read_only_token_makes_and_removes_no_webhook_over_grpc() {
    let guarded = Guarded::start(&format!("{OPEN}[a2a]\nexpose = [\"math::*\"]\n")).await;
    let made = guarded.made(Role::Member, &[], Expiry::Usual).await;
    let own = made.text.expose();
    let reads = token(&guarded, &made, "read");
    let sent = asked(&guarded, Some(own), "SendMessage", &json!({"message": add("m1")})).await;
    let task = read_as(&schema::SEND_MESSAGE_RESPONSE, &sent.messages[0])["task"].clone();
    let params = json!({"taskId": task["id"], "id": "hook", "url": "https://hooks.test/"});
    for method in ["CreateTaskPushNotificationConfig", "DeleteTaskPushNotificationConfig"] {
        let refused = asked(&guarded, Some(&reads), method, &params).await;
        assert_eq!(refused.status.name(), "PERMISSION_DENIED", "{method}: {refused:?}");
        let done = asked(&guarded, Some(own), method, &params).await;
        assert_eq!(done.status, Status::default(), "{method}: {done:?}");
    }
}

#[tokio::test]
async fn a_lone_message_is_the_whole_stream() {
    let (house, _office) = crate::talk::office([crate::talk::text("hello there")]).await;
    let mut wanted = message("m1", "agent/assistant", json!({"text": "hello"}));
    wanted["metadata"][SKILLS_EXTENSION]["reply"] = json!("message");
    let call = called(None, "SendStreamingMessage", &json!({"message": wanted}));
    let Told { messages, status, .. } = collected(house.open(call).await).await;
    assert_eq!((messages.len(), status), (1, Status::default()));
    let told = read_as(&schema::STREAM_RESPONSE, &messages[0]);
    assert_eq!(told["message"]["parts"][0]["text"], "hello there", "{told}");
}
