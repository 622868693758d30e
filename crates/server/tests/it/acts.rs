//! Policy at the endpoints: each of them names an act, and what policy denies is refused there.

use crate::desk::{self, DESK, Wait, case};
use crate::house::{House, question, read, refused, request, text};
use crate::mcp_lists::{ask, each};
use axum::body::Body;
use axum::extract::Path;
use axum::http::{Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use kernel::contracts::policy::{Context, Decision, Request as Asked, Resource};
use kernel::contracts::{Policy, Tool};
use kernel::tool::call::{Caller, Verdict};
use kernel::values::caller::Act;
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};
use server::{ActTarget, Extra, Right, rights};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Denies these acts.
#[derive(Default)]
struct Denying(Mutex<Vec<Act>>);

impl Denying {
    fn deny(&self, acts: &[Act]) {
        *self.0.lock().unwrap() = acts.to_vec();
    }
}

impl Policy for Denying {
    fn decide(&self, request: &Asked<'_>) -> Decision {
        match self.0.lock().unwrap().contains(&request.act) {
            true => Verdict::Deny("as the test wants".to_owned()).into(),
            false => Decision::allow(),
        }
    }
}

async fn house() -> (House, Arc<Denying>) {
    let policy = Arc::new(Denying::default());
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(Wait::new(&Arc::new(Semaphore::new(0))))];
    let extra = Extra { policy: Some(policy.clone()), tools, ..Extra::default() };
    (House::furnished(desk::project(&[("desk", DESK)], ""), extra).await, policy)
}

/// A request for this route; what it names is not there.
fn at(method: &str, path: &str) -> Request<Body> {
    let parts = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
    let path = parts.collect::<Vec<_>>().join("/");
    request(Method::from_bytes(method.as_bytes()).unwrap(), &path, Body::from("{}"))
}

#[tokio::test]
async fn acts_that_endpoints_guard_are_asked_by_the_endpoint() {
    let (house, policy) = house().await;
    for (method, path, right) in rights() {
        let Right::Endpoint(act, of) = right else { continue };
        let answer = read(house.open(at(method, path)).await).await;
        assert_ne!(answer.body["code"], "forbidden", "{method} {path}: {answer:?}");
        policy.deny(&[act]);
        let answer = read(house.open(at(method, path)).await).await;
        let denied = match (act, of) {
            (Act::Read, ActTarget::Provider | ActTarget::Upstream) => (404, Some("not_found")),
            _ => (403, Some("forbidden")),
        };
        let told = (answer.status, answer.body["code"].as_str());
        assert_eq!(told, denied, "{method} {path}: {answer:?}");
        policy.deny(&[]);
    }
}

/// Where a plan can be stored that is not there.
const NEW_PLAN: &str = "/api/v1/plans/it%2Fnew";

/// A request that changes something, well-formed, about what is there.
struct Change {
    method: Method,
    path: String,
    /// None is sent where it is null.
    body: Value,
}

impl Change {
    fn post(path: impl Into<String>, body: Value) -> Self {
        Self { method: Method::POST, path: path.into(), body }
    }

    async fn status(&self, house: &House) -> u16 {
        let body = match &self.body {
            Value::Null => Body::empty(),
            body => Body::from(body.to_string()),
        };
        house.open(request(self.method.clone(), &self.path, body)).await.status().as_u16()
    }
}

/// The main changes, each of something of its own.
async fn changes(house: &House) -> Vec<Change> {
    let adding = |session: &str| {
        let input = json!({"a": 1, "b": 1});
        json!({"planId": "math::conditional_add", "input": input, "session": session})
    };
    for session in ["forked", "removed"] {
        let done = house.run(adding(session)).await;
        assert_eq!(done["run"]["status"], "completed", "{done}");
    }
    let asks = house.greeting().await;
    let ask = format!("/api/v1/asks/{}", text(&asks["run"]["asks"][0]["id"]));
    let run = |of: &Value| format!("/api/v1/runs/{}", text(&of["run"]["id"]));
    let cancelled = run(&house.greeting().await);
    let paused = run(&house.greeting().await);
    let stuck = run(&house.run(json!({"planId": "test::plan_that_fails"})).await);
    let mut plan = question();
    plan["planId"] = json!("it/new");
    let removed = "/api/v1/sessions/removed".to_owned();
    vec![
        Change::post("/api/v1/runs", adding("started")),
        Change::post("/api/v1/runs", json!({"plan": plan})),
        Change::post("/api/v1/plans/draft", json!({"goal": "add two numbers"})),
        Change::post("/sessions", json!({"sessionId": "made"})),
        Change::post(ask, json!({"action": "accept", "content": {"name": "Ann"}})),
        Change::post(format!("{cancelled}/cancel"), json!({})),
        Change::post(format!("{paused}/pause"), json!({})),
        Change::post(format!("{stuck}/retry"), json!({})),
        Change::post("/api/v1/sessions/forked/fork", json!({})),
        Change { method: Method::DELETE, path: removed, body: Value::Null },
        Change { method: Method::PUT, path: NEW_PLAN.to_owned(), body: plan },
        Change::post("/api/v1/tools/math%3A%3Aadd/call", json!({"arguments": {"a": 1, "b": 2}})),
        Change::post("/api/v1/pipelines/desk/cases", case("T-1", "Missing ISIN")),
    ]
}

#[tokio::test]
async fn a_caller_without_rights_changes_nothing_at_any_route() {
    let (house, policy) = house().await;
    let caller = Caller::new("default", "local");
    let changes = changes(&house).await;
    let before = house.engine.feed().bounds(&caller).await.unwrap();
    let but_read: Vec<Act> = Act::ALL.iter().copied().filter(|act| *act != Act::Read).collect();
    for denied in [Act::ALL, but_read.as_slice()] {
        policy.deny(denied);
        for (method, path, right) in rights() {
            let (Right::Engine(act) | Right::Endpoint(act, _)) = right else { continue };
            let status = house.open(at(method, path)).await.status();
            let is_change = method != "GET" && act != Act::Read && path != "/rpc";
            assert!(!is_change || status.is_client_error(), "{method} {path}: {status}");
        }
        for change in &changes {
            let status = change.status(&house).await;
            let path = &change.path;
            assert!(matches!(status, 403 | 404), "{} {path}: {status}", change.method);
        }
        policy.deny(&[]);
        assert_eq!(house.engine.feed().bounds(&caller).await.unwrap(), before);
        assert_eq!(house.get(NEW_PLAN).await.status, 404);
    }
    for change in &changes {
        let status = change.status(&house).await;
        let path = &change.path;
        assert!(matches!(status, 200..=299), "{} {path}: {status}", change.method);
    }
}

/// Hides the upstream `shut`, and notes how many upstreams it judged at once.
#[derive(Default)]
struct Hiding(Mutex<Vec<usize>>);

impl Hiding {
    /// What it judged since it was last asked this.
    fn judged(&self) -> Vec<usize> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Policy for Hiding {
    fn decide(&self, request: &Asked<'_>) -> Decision {
        match (request.act, request.resource) {
            (Act::Read, Resource::Upstream("shut")) => {
                Verdict::Deny("it is shut".to_owned()).into()
            }
            _ => Decision::allow(),
        }
    }

    fn decide_all(&self, subject: &Caller, act: Act, resources: &[Resource<'_>]) -> Vec<Decision> {
        let is_upstream = |resource: &Resource<'_>| matches!(resource, Resource::Upstream(_));
        if resources.iter().any(is_upstream) {
            self.0.lock().unwrap().push(resources.len());
        }
        let context = Context::default();
        let one = |resource: &Resource<'_>| {
            self.decide(&Asked { act, subject, resource: *resource, context })
        };
        resources.iter().map(one).collect()
    }
}

/// An MCP server of this name, with a prompt, a resource and a family of resources.
async fn far(Path(name): Path<String>, Json(asked): Json<Value>) -> Response {
    let id = &asked["id"];
    let uri = &asked["params"]["uri"];
    let result = match asked["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "completions": {}},
            "serverInfo": {"name": name, "version": "1"},
        }),
        "notifications/initialized" => return StatusCode::ACCEPTED.into_response(),
        "tools/list" => json!({"tools": []}),
        "prompts/list" => json!({"prompts": [{"name": "hello", "arguments": [{"name": "who"}]}]}),
        "prompts/get" => {
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]})
        }
        "resources/list" => {
            json!({"resources": [{"uri": format!("{name}://one"), "name": "one"}]})
        }
        "resources/templates/list" => json!({
            "resourceTemplates": [{"uriTemplate": format!("{name}://{{id}}"), "name": "any"}],
        }),
        "resources/read" => json!({"contents": [{"uri": uri, "text": "it"}]}),
        "completion/complete" => json!({"completion": {"values": ["one"], "hasMore": false}}),
        _ => {
            let error = json!({"code": -32601, "message": "there is no such method"});
            return Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response();
        }
    };
    Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
}

/// A server before two others, `open` and `shut`, which are both there.
async fn before_two() -> (House, Arc<Hiding>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/{name}/mcp", post(far));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let server =
        |name: &str| format!("[mcp.servers.{name}]\nurl = \"http://{address}/{name}/mcp\"\n");
    let settings = format!("{}{}", server("open"), server("shut"));
    let config = Config::parse("waypost.toml", &settings).unwrap();
    let policy = Arc::new(Hiding::default());
    let extra = Extra { policy: Some(policy.clone()), ..Extra::default() };
    let house = House::furnished(Project { config, ..Project::demo() }, extra).await;
    for name in ["open", "shut"] {
        let checked = house.post(&format!("/api/v1/upstreams/{name}/check"), json!({})).await;
        assert_eq!(checked.body["state"], "ready", "{checked:?}");
    }
    (house, policy)
}

#[tokio::test]
async fn an_upstream_that_may_not_be_read_is_not_there() {
    let (house, policy) = before_two().await;
    policy.judged();
    let listed = house.get("/api/v1/upstreams").await.body;
    assert_eq!(each(&listed["items"], "name"), ["open"]);
    assert_eq!(policy.judged(), [2], "they are judged at once");
    let missed = async |name: &str| {
        let answer = house.get(&format!("/api/v1/upstreams/{name}")).await;
        (answer.refusal(), text(&answer.body["hint"]))
    };
    let unknown = missed("zzzz").await;
    assert_eq!(unknown.0, refused(404, "not_found", &[]));
    assert_eq!(missed("shut").await, unknown);
    assert_eq!(missed("shutt").await, unknown, "it is not meant either");
}

#[tokio::test]
async fn prompts_and_resources_of_an_upstream_are_there_for_who_may_read_it() {
    let (house, policy) = before_two().await;
    for (method, list, member, item) in [
        ("prompts/list", "prompts", "name", "open.hello"),
        ("resources/list", "resources", "uri", "open://one"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate", "open://{id}"),
    ] {
        policy.judged();
        let answer = ask(&house, method, json!({})).await;
        assert_eq!(policy.judged(), [2], "{method}");
        let items = each(&answer["result"][list], member);
        assert!(items.contains(&item.to_owned()), "{method}: {items:?}");
        assert!(!items.iter().any(|item| item.starts_with("shut")), "{method}: {items:?}");
    }
    let complete =
        |of: Value, name: &str| json!({"ref": of, "argument": {"name": name, "value": ""}});
    for (method, params) in [
        ("prompts/get", json!({"name": "open.hello"})),
        ("resources/read", json!({"uri": "open://one"})),
        ("resources/read", json!({"uri": "open://two"})),
        (
            "completion/complete",
            complete(json!({"type": "ref/prompt", "name": "open.hello"}), "who"),
        ),
        (
            "completion/complete",
            complete(json!({"type": "ref/resource", "uri": "open://{id}"}), "id"),
        ),
    ] {
        let there = ask(&house, method, params.clone()).await;
        assert!(there["result"].is_object(), "{method} {params}: {there}");
        let hidden = serde_json::from_str(&params.to_string().replace("open", "shut")).unwrap();
        let answer = ask(&house, method, hidden).await;
        let message = text(&answer["error"]["message"]);
        assert!(message.starts_with("there is no "), "{method} {params}: {answer}");
    }
}
