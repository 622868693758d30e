//! The trace that a request belongs to: in through every endpoint, out with whatever is called for
//! it.

use crate::a2a::message;
use crate::a2a_grpc::{called, collected};
use crate::house::{Answer, House, demo_with_agents, read, request, text};
use crate::mcp_client::{Client, modern};
use axum::body::Body;
use axum::http::Method;
use engine::PlanFile;
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use testkit::http::Connection;
use testkit::llms::{FakeModels, KEY};
use tokio::time::timeout;
use wire::a2a::SKILLS_EXTENSION;
use wire::a2a::proto::status::Status;

const LIMIT: Duration = Duration::from_secs(60);
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const UNRECORDED: &str = "00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-00";
const OTHER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// What no caller's span can be.
const WRONG: [&str; 3] =
    ["nonsense", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", "ff"];

/// Another server, which keeps the span that each request names.
struct Called {
    address: SocketAddr,
    spans: mpsc::Receiver<Option<String>>,
}

impl Called {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, spans) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let sender = sender.clone();
                thread::spawn(move || converse(stream, &sender));
            }
        });
        Self { address, spans }
    }

    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// The span that the last request named. It is kept before the request is answered.
    fn span(&self) -> Option<String> {
        let span = self.spans.try_recv().expect("the other server was called");
        assert!(self.spans.try_recv().is_err(), "it was called once");
        span
    }

    /// It was called in this trace.
    fn was_called_in(&self, parent: &str, what: &str) {
        is_passed_on(self.span().as_deref(), parent, what);
    }
}

fn converse(stream: TcpStream, spans: &mpsc::Sender<Option<String>>) {
    let answer =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    let Ok(mut connection) = Connection::new(stream) else { return };
    while let Ok(Some(message)) = connection.read(LIMIT) {
        let span = message.header("traceparent").map(str::to_owned);
        if spans.send(span).is_err() || connection.write(answer).is_err() {
            return;
        }
    }
}

/// Nobody here records spans: a span of ours would be a gap in the caller's trace.
fn is_passed_on(span: Option<&str>, parent: &str, what: &str) {
    assert_eq!(span, Some(parent), "{what}");
}

/// A house whose plans may call the other server; two of them are skills.
async fn house() -> (House, Called) {
    let called = Called::start();
    let settings =
        format!("[tools.http]\nallow = [\"{}\"]\n[a2a]\nexpose = [\"it/*\"]\n", called.address);
    let config = Config::parse("waypost.toml", &settings).unwrap();
    let mut project = Project { config, ..Project::demo() };
    for method in ["GET", "POST"] {
        let id = skill(method);
        let mut plan = plan(&json!({"url": called.url(), "method": method}));
        plan["planId"] = json!(id);
        let file = format!("plans/{id}.yaml");
        let text = plan.to_string();
        project.plans.push(PlanFile { file, text, default_id: id.as_str().into() });
    }
    (House::build(project, None).await, called)
}

/// The skill that calls by this method.
fn skill(method: &str) -> String {
    format!("it/{}", method.to_lowercase())
}

/// A plan of one call.
fn plan(arguments: &Value) -> Value {
    json!({
        "planId": "it/trace",
        "description": "calls another server",
        "startStepId": "call",
        "steps": [
            {"id": "call", "type": "tool_call", "toolId": "http::request",
             "arguments": arguments, "saveAs": "said", "nextStepId": "end"},
            {"id": "end", "type": "final_response", "message": "done"},
        ],
    })
}

/// The same call through each endpoint that takes the header.
async fn through_each_endpoint(
    house: &House,
    arguments: &Value,
    parent: &str,
    heard: impl Fn(&str),
) {
    let span = [("traceparent", parent)];
    let plan = plan(arguments);
    let answer = house.post_with("/api/v1/runs", &span, json!({"plan": plan})).await;
    assert_eq!((answer.status, answer.header("traceparent")), (200, ""), "{answer:?}");
    heard("/api/v1/runs");

    let body = json!({"arguments": arguments});
    let path = "/api/v1/tools/http::request/call";
    let answer = house.post_with(path, &span, body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    heard(path);

    let session = house.post("/sessions", json!({})).await;
    let path = format!("/sessions/{}/execute-plan", text(&session.body["sessionId"]));
    let answer = house.post_with(&path, &span, json!({"plan": plan})).await;
    assert_eq!((answer.status, &answer.body["status"]), (202, &json!("completed")), "{answer:?}");
    heard(&path);

    let one = json!({"jsonrpc": "2.0", "id": 1, "method": "http::request", "params": arguments});
    for body in [one.clone(), json!([one])] {
        let answer = house.post_with("/rpc", &span, body).await;
        assert!(answer.text.contains("\"result\""), "{answer:?}");
        heard("/rpc");
    }

    let params = json!({"name": "http__request", "arguments": arguments});
    let mut request = modern("tools/call", params);
    request.headers_mut().insert("traceparent", parent.parse().unwrap());
    let answer = house.send(request).await;
    assert!(answer.body["result"].is_object(), "{answer:?}");
    heard("/mcp");

    let skill = skill(arguments["method"].as_str().unwrap_or("GET"));
    through_a2a(house, &skill, parent, &heard).await;
}

/// The same call as a skill, in every version and binding.
async fn through_a2a(house: &House, skill: &str, parent: &str, heard: &impl Fn(&str)) {
    // A repeated message would be answered without a call.
    let id = |endpoint: &str| format!("{endpoint} {skill} {parent}");
    let new =
        |endpoint: &str| json!({"message": message(&id(endpoint), skill, json!({"data": {}}))});
    let metadata = json!({SKILLS_EXTENSION: {"skill": skill}});
    let old = json!({"message": {"kind": "message", "messageId": id("0.3"), "role": "user",
        "parts": [{"kind": "data", "data": {}}], "metadata": metadata}});
    let vault = json!({"message": {"role": "user", "metadata": metadata,
        "parts": [{"type": "data", "content": {}, "mediaType": "application/json"}]}});
    let rpc = |method: &str, params: Value| -> Value {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    };
    let posted = async |path: &str, version: &str, body: Value| {
        let mut request = request(Method::POST, path, Body::from(body.to_string()));
        request.headers_mut().insert("traceparent", parent.parse().unwrap());
        request.headers_mut().insert("a2a-version", version.parse().unwrap());
        timeout(LIMIT, read(house.open(request).await)).await.expect("no answer came")
    };
    let is_done = |answer: &Answer, endpoint: &str| {
        assert!(answer.text.to_lowercase().contains("completed"), "{endpoint}: {answer:?}");
        heard(endpoint);
    };
    let answer = posted("/a2a/v1", "1.0", rpc("SendMessage", new("JSON-RPC"))).await;
    is_done(&answer, "JSON-RPC");
    is_done(&posted("/a2a/v1/message:send", "1.0", new("HTTP")).await, "HTTP");
    is_done(&posted("/a2a/v1", "0.3", rpc("message/send", old)).await, "0.3");
    let sent = posted("/a2a", "", rpc("tasks/send", vault)).await;
    let follow = rpc("tasks/sendSubscribe", json!({"id": sent.body["result"]["id"]}));
    is_done(&posted("/a2a", "", follow).await, "AgentVault");
    let mut request = called(None, "SendMessage", &new("gRPC"));
    request.headers_mut().insert("traceparent", parent.parse().unwrap());
    assert_eq!(collected(house.open(request).await).await.status, Status::default());
    heard("gRPC");
}

#[tokio::test]
async fn every_endpoint_takes_the_trace_of_its_caller() {
    let (house, called) = house().await;
    // Reads are sent at once, writes as runs of their own.
    for method in ["GET", "POST"] {
        let arguments = json!({"url": called.url(), "method": method});
        for parent in [PARENT, UNRECORDED] {
            through_each_endpoint(&house, &arguments, parent, |endpoint| {
                called.was_called_in(parent, &format!("{method} through {endpoint}"));
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_wrong_trace_is_no_reason_to_refuse_anything() {
    let (house, called) = house().await;
    let arguments = json!({"url": called.url()});
    for wrong in WRONG {
        through_each_endpoint(&house, &arguments, wrong, |endpoint| {
            assert_eq!(called.span(), None, "`{wrong}` through {endpoint}");
        })
        .await;
    }
}

#[tokio::test]
async fn the_traceparent_of_an_mcp_call_goes_before_the_header() {
    let (house, called) = house().await;
    let params = |span: Value| {
        let arguments = json!({"url": called.url()});
        json!({"name": "http__request", "arguments": arguments, "_meta": {"traceparent": span}})
    };
    let mut both = modern("tools/call", params(json!(PARENT)));
    both.headers_mut().insert("traceparent", OTHER.parse().unwrap());
    let answer = house.send(both).await;
    assert!(answer.body["result"].is_object(), "{answer:?}");
    called.was_called_in(PARENT, "in both places");

    for version in ["2025-11-25", "2025-03-26"] {
        let client = Client::hello(&house, version, json!({})).await;
        let answer = client.ask("tools/call", params(json!(PARENT))).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        called.was_called_in(PARENT, version);
        for wrong in [json!("nonsense"), json!(7), json!(null), json!({"a": [1]})] {
            let answer = client.ask("tools/call", params(wrong.clone())).await;
            assert!(!answer.text.contains("\"error\""), "{wrong}: {answer:?}");
            assert_eq!(called.span(), None, "{wrong}");
        }
    }
}

#[tokio::test]
async fn a_run_keeps_its_trace_for_any_answerer() {
    let (house, called) = house().await;
    let mut plan = plan(&json!({"url": called.url()}));
    let ask = json!({"id": "ask", "type": "human_in_the_loop", "message": "go on?",
        "nextStepIdOnInput": "call"});
    plan["startStepId"] = json!("ask");
    plan["steps"].as_array_mut().unwrap().insert(0, ask);
    let span = [("traceparent", PARENT)];
    let started = house.post_with("/api/v1/runs", &span, json!({"plan": plan})).await;
    assert_eq!(started.status, 202, "{started:?}");
    let path = format!("/api/v1/asks/{}", text(&started.body["run"]["asks"][0]["id"]));
    let other = [("traceparent", OTHER)];
    let done = house.post_with(&path, &other, json!({"answer": "yes"})).await;
    assert_eq!(done.body["run"]["status"], "completed", "{done:?}");
    called.was_called_in(PARENT, "after the reply");
}

#[tokio::test]
async fn a_model_is_asked_in_the_trace_of_the_caller() {
    let fake = FakeModels::start();
    let settings = format!(
        "[models.fake]\nprovider = \"openai\"\nmodel = \"m--says\"\nbase_url = \"{}\"\n\
         api_key = \"{KEY}\"\n",
        fake.url()
    );
    let config = Config::parse("waypost.toml", &settings).unwrap();
    let agents =
        [("agents/helper.yaml", "refName: helper\nllmConfigRef: fake\nenabledTools: []\n")];
    let project = Project { config, ..demo_with_agents(&agents) };
    let house = House::build(project, None).await;
    let said = |thread: &str| json!({"thread_id": thread, "user_request": "Hi"});
    let span = [("traceparent", PARENT)];
    let answer = house.post_with("/run", &span, said("traced")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let run = json!({"agent": "helper", "input": "Hi"});
    let answer = house.post_with("/api/v1/runs", &span, run).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = house.post("/run", said("alone")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let seen = fake.requests();
    assert_eq!(seen.len(), 3, "one turn each");
    is_passed_on(seen[0].header("traceparent"), PARENT, "/run");
    is_passed_on(seen[1].header("traceparent"), PARENT, "/api/v1/runs");
    assert_eq!(seen[2].header("traceparent"), None, "nobody traces it");
}

#[tokio::test]
async fn a_refusal_names_the_trace_of_its_caller() {
    let (house, _called) = house().await;
    let body = json!({"planId": "it/nowhere"});
    let refused = house.post_with("/api/v1/runs", &[("traceparent", PARENT)], body.clone()).await;
    assert_eq!((refused.status, text(&refused.body["traceId"])), (404, PARENT[3..35].to_owned()));
    let alone = house.post("/api/v1/runs", body).await;
    assert_eq!(text(&alone.body["traceId"]).len(), 32, "{alone:?}");
    assert_ne!(alone.body["traceId"], refused.body["traceId"]);
}
