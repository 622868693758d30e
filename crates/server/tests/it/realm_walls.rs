//! Servers behind this one belong to the realm that every server has. In another realm they and
//! their tools, prompts and resources are like what does not exist, also for administrators. Nor is
//! a change in one realm heard in another.

use crate::api_keys::{ADMIN, Key, asking, get, send};
use crate::house::{House, approval, refused, request, text};
use crate::mcp_client::{self, Events, modern, posted, sent};
use crate::mcp_lists::each;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

/// How long the upstream may take until its tools are there.
const LIMIT: Duration = Duration::from_secs(120);
/// How long nothing may be heard after others have heard of a change.
const QUIET: Duration = Duration::from_millis(200);

/// An MCP server with a tool, a prompt and resources.
async fn far(Json(asked): Json<Value>) -> Response {
    let id = &asked["id"];
    let result = match asked["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "completions": {}},
            "serverInfo": {"name": "far", "version": "1"},
        }),
        "notifications/initialized" => return StatusCode::ACCEPTED.into_response(),
        "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "it was called"}]}),
        "prompts/list" => json!({"prompts": [{"name": "hello", "arguments": [{"name": "who"}]}]}),
        "prompts/get" => {
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]})
        }
        "resources/list" => json!({"resources": [{"uri": "far://one", "name": "one"}]}),
        "resources/templates/list" => {
            json!({"resourceTemplates": [{"uriTemplate": "far://{id}", "name": "any"}]})
        }
        "resources/read" => json!({"contents": [{"uri": asked["params"]["uri"], "text": "it"}]}),
        "completion/complete" => json!({"completion": {"values": ["one"], "hasMore": false}}),
        _ => {
            let error = json!({"code": -32601, "message": "there is no such method"});
            return Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response();
        }
    };
    Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
}

/// A server that asks for credentials and has the realm `acme`, before `far`, whose tools are
/// there.
async fn house() -> House {
    house_where("", "default").await
}

/// The same, where this line is said of `far`, so that it is there in this realm.
async fn house_where(line: &str, realm: &str) -> House {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = Router::new().route("/mcp", post(far));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let settings = format!(
        "[server]\nhosts = [\"wp.example.com\"]\n[realms.acme]\nmax_find_limit = 100\n\
         [mcp.servers.far]\nurl = \"{url}\"\n{line}\n"
    );
    let config = Config::parse("waypost.toml", &settings).unwrap();
    let house = House::build(Project { config, ..Project::demo() }, Some(ADMIN)).await;
    let path = format!("/api/v1/upstreams/far/check?realm={realm}");
    let checked = send(&house, ADMIN, Method::POST, &path, json!({})).await;
    assert_eq!(checked.body["state"], "ready", "{checked:?}");
    let known = async {
        let path = format!("/api/v1/tools/far.echo?realm={realm}");
        while get(&house, ADMIN, &path).await.status != 200 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LIMIT, known).await.expect("waited for `far.echo` to be listed");
    house
}

/// This request as the administrator sends it in a realm.
fn in_realm(realm: &str, mut request: Request<Body>) -> Request<Body> {
    let bearer = format!("Bearer {ADMIN}");
    for (name, value) in [("authorization", bearer.as_str()), ("x-realm", realm)] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    request
}

/// The JSON-RPC message that answers it.
async fn answered(house: &House, realm: &str, request: Request<Body>) -> Value {
    let answer = house.send(in_realm(realm, request)).await;
    if answer.body.is_object() {
        return answer.body;
    }
    let last = answer.text.lines().rev().find_map(|line| line.strip_prefix("data:"));
    serde_json::from_str(last.unwrap_or_else(|| panic!("{answer:?}"))).unwrap()
}

/// The answer of `/mcp`.
async fn asked(house: &House, realm: &str, method: &str, params: Value) -> Value {
    answered(house, realm, modern(method, params)).await
}

/// The names of the tools that `/api/v1/tools` lists in a realm.
async fn tools(house: &House, realm: &str) -> Vec<String> {
    let path = format!("/api/v1/tools?limit=100&realm={realm}");
    each(&get(house, ADMIN, &path).await.body["items"], "name")
}

#[tokio::test]
async fn an_upstream_belongs_to_the_realms_that_it_names() {
    let house = house_where("realms = [\"acme*\"]", "acme").await;
    let made = json!({"name": "acme-eu"});
    let made = send(&house, ADMIN, Method::POST, "/api/v1/realms", made).await;
    assert_eq!(made.status, 201, "{made:?}");
    for (realm, is_there) in [("default", false), ("acme", true), ("acme-eu", true)] {
        let has_tool = tools(&house, realm).await.contains(&"far.echo".to_owned());
        assert_eq!(has_tool, is_there, "{realm}");
        let prompts = asked(&house, realm, "prompts/list", json!({})).await;
        let prompts = each(&prompts["result"]["prompts"], "name");
        assert_eq!(prompts.iter().any(|name| name.starts_with("far")), is_there, "{realm}");
        let shown = get(&house, ADMIN, &format!("/api/v1/upstreams/far?realm={realm}")).await;
        assert_eq!(shown.status == 200, is_there, "{realm}: {shown:?}");
    }
}

#[tokio::test]
async fn a_tool_of_an_upstream_is_not_there_in_another_realm() {
    let house = house().await;
    assert!(tools(&house, "default").await.contains(&"far.echo".to_owned()));
    let there = tools(&house, "acme").await;
    assert!(there.contains(&"math::add".to_owned()), "{there:?}");
    assert!(!there.iter().any(|name| name.starts_with("far.")), "{there:?}");
    let listed = async |realm: &str| {
        let answer = asked(&house, realm, "tools/list", json!({})).await;
        each(&answer["result"]["tools"], "name").iter().any(|name| name == "far.echo")
    };
    assert!(listed("default").await);
    assert!(!listed("acme").await);
    let shown = get(&house, ADMIN, "/api/v1/tools/far.echo?realm=acme").await;
    assert_eq!(shown.refusal(), refused(404, "not_found", &[]));
    let called = async |realm: &str, tool: &str| {
        let path = format!("/api/v1/tools/{tool}/call?realm={realm}");
        send(&house, ADMIN, Method::POST, &path, json!({"arguments": {}})).await
    };
    let done = called("default", "far.echo").await;
    assert!(done.status == 200 && done.text.contains("it was called"), "{done:?}");
    assert_eq!(called("acme", "far.echo").await.refusal(), refused(404, "not_found", &[]));
    // In the words of what is nowhere.
    let missed = async |tool: &str| {
        let answer = asked(&house, "acme", "tools/call", json!({"name": tool})).await;
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": tool, "params": {}});
        let rpc = request(Method::POST, "/rpc", Body::from(message.to_string()));
        let rpc = answered(&house, "acme", rpc).await;
        [answer, rpc].map(|answer| {
            let error = &answer["error"];
            assert!(error.is_object(), "{answer}");
            (error["code"].clone(), text(&error["message"]).replace(tool, ""))
        })
    };
    assert_eq!(missed("far.echo").await, missed("far.none").await);
}

#[tokio::test]
async fn a_plan_of_another_realm_cannot_name_it() {
    let house = house().await;
    let plan = |tool: &str| {
        json!({"plan": {"planId": "it/far", "steps": [
            {"id": "call", "type": "tool_call", "toolId": tool, "arguments": {},
             "nextStepId": "end"},
            {"id": "end", "type": "final_response", "message": "ok"},
        ]}})
    };
    let started = async |realm: &str, tool: &str| {
        let path = format!("/api/v1/runs?realm={realm}");
        send(&house, ADMIN, Method::POST, &path, plan(tool)).await
    };
    let run = started("default", "far.echo").await;
    assert!(run.status == 200 || run.status == 202, "{run:?}");
    let hidden = started("acme", "far.echo").await;
    assert_eq!(hidden.body["code"], "invalid_plan", "{hidden:?}");
    let absent = started("acme", "fur.echo").await;
    assert_eq!(hidden.refusal(), absent.refusal());
}

#[tokio::test]
async fn prompts_and_resources_of_an_upstream_are_not_there_in_another_realm() {
    let house = house().await;
    for (method, list, member) in [
        ("prompts/list", "prompts", "name"),
        ("resources/list", "resources", "uri"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate"),
    ] {
        let listed = async |realm: &str| {
            let answer = asked(&house, realm, method, json!({})).await;
            each(&answer["result"][list], member).iter().any(|item| item.starts_with("far"))
        };
        assert!(listed("default").await, "{method}");
        assert!(!listed("acme").await, "{method}");
    }
    let reference = json!({"type": "ref/prompt", "name": "far.hello"});
    let complete = json!({"ref": reference, "argument": {"name": "who", "value": ""}});
    for (method, params) in [
        ("prompts/get", json!({"name": "far.hello"})),
        ("resources/read", json!({"uri": "far://one"})),
        ("resources/read", json!({"uri": "far://two"})),
        ("completion/complete", complete),
    ] {
        let here = asked(&house, "default", method, params.clone()).await;
        assert!(here["result"].is_object(), "{method} {params}: {here}");
        let there = asked(&house, "acme", method, params.clone()).await;
        let message = text(&there["error"]["message"]);
        assert!(message.starts_with("there is no "), "{method} {params}: {there}");
    }
}

#[tokio::test]
async fn upstreams_are_not_shown_in_another_realm() {
    let house = house().await;
    let listed = async |realm: &str| {
        let path = format!("/api/v1/upstreams?realm={realm}");
        each(&get(&house, ADMIN, &path).await.body["items"], "name")
    };
    assert_eq!(listed("default").await, ["far"]);
    assert!(listed("acme").await.is_empty());
    for (method, path) in [
        (Method::GET, "/api/v1/upstreams/far"),
        (Method::POST, "/api/v1/upstreams/far/check"),
        (Method::POST, "/api/v1/upstreams/far/login"),
        (Method::DELETE, "/api/v1/upstreams/far/login"),
    ] {
        let path = format!("{path}?realm=acme");
        let answer = send(&house, ADMIN, method.clone(), &path, Value::Null).await;
        assert_eq!(answer.refusal(), refused(404, "not_found", &[]), "{method} {path}");
    }
    let counted = async |realm: &str| {
        let answer = get(&house, ADMIN, &format!("/metrics?realm={realm}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.text.contains("waypost_upstream_up{upstream=\"far\"}")
    };
    assert!(counted("default").await);
    assert!(!counted("acme").await);
}

/// Streams of what a client in a realm hears: one that it listens on, and one of a session.
async fn hearing(house: &House, realm: &str) -> [Events; 2] {
    let wanted = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true,
        "resourcesListChanged": true}});
    let listen = in_realm(realm, modern("subscriptions/listen", wanted));
    let mut listening = Events::of(house.open(listen).await);
    let first = listening.next().await.unwrap().data;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let hello = posted(&[], &mcp_client::asked(0, "initialize", hello));
    let begun = house.send(in_realm(realm, hello)).await;
    assert_eq!(begun.status, 200, "{begun:?}");
    let session = begun.header("mcp-session-id");
    let headers = [("mcp-session-id", session), ("accept", "text/event-stream")];
    let open = in_realm(realm, sent(Method::GET, &headers, Body::empty()));
    [listening, Events::of(house.open(open).await)]
}

/// All of these hear once that lists changed.
async fn hear(streams: &mut [Events]) {
    for stream in streams {
        for list in ["tools", "prompts", "resources"] {
            let heard = stream.next().await.unwrap().data;
            assert_eq!(heard["method"], format!("notifications/{list}/list_changed"), "{heard}");
        }
    }
}

/// None of these hears anything.
async fn hear_nothing(streams: &mut [Events]) {
    for stream in streams {
        let heard = timeout(QUIET, stream.next()).await;
        assert!(heard.is_err(), "{heard:?}");
    }
}

#[tokio::test]
async fn a_change_in_one_realm_is_no_news_in_another() {
    let house = asking("[realms.acme]\nmax_find_limit = 100").await;
    let mut here = hearing(&house, "default").await;
    let mut there = hearing(&house, "acme").await;
    let stored = async |realm: &str| {
        let path = format!("/api/v1/plans/it%2Fapproval?realm={realm}");
        let answer = send(&house, ADMIN, Method::PUT, &path, approval()).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    };
    stored("default").await;
    hear(&mut here).await;
    hear_nothing(&mut there).await;
    stored("acme").await;
    hear(&mut there).await;
    hear_nothing(&mut here).await;
}

#[tokio::test]
async fn a_sink_of_another_realm_is_like_none() {
    let settings = "[realms.acme]\nmax_find_limit = 100\n\
        [events.sinks.lines]\ntype = \"file\"\npath = \"events.jsonl\"";
    let house = asking(settings).await;
    let resumed = async |realm: &str, sink: &str| {
        let path = format!("/api/v1/sinks/{sink}/resume?realm={realm}");
        send(&house, ADMIN, Method::POST, &path, json!({})).await
    };
    let done = resumed("default", "lines").await;
    assert_eq!((done.status, &done.body["name"]), (200, &json!("lines")), "{done:?}");
    let missed = async |sink: &str| {
        let answer = resumed("acme", sink).await;
        assert_eq!(answer.refusal(), refused(404, "not_found", &[]), "{sink}");
        ["detail", "hint"].map(|member| text(&answer.body[member]).replace(sink, ""))
    };
    assert_eq!(missed("lines").await, missed("words").await);
    let listed = get(&house, ADMIN, "/api/v1/sinks?realm=acme").await;
    assert_eq!(listed.body["items"], json!([]), "{listed:?}");
}

#[tokio::test]
async fn a_sink_gets_the_events_of_the_realms_that_it_names() {
    let settings = "[realms.acme]\nmax_find_limit = 100\n\
        [events.sinks.lines]\ntype = \"file\"\npath = \"events.jsonl\"\nrealms = [\"acme*\"]";
    let house = asking(settings).await;
    let made = json!({"name": "acme-eu"});
    let made = send(&house, ADMIN, Method::POST, "/api/v1/realms", made).await;
    assert_eq!(made.status, 201, "{made:?}");
    let sinks = async |realm: &str| {
        let listed = get(&house, ADMIN, &format!("/api/v1/sinks?realm={realm}")).await;
        each(&listed.body["items"], "name")
    };
    assert_eq!(sinks("default").await, Vec::<String>::new());
    for realm in ["acme", "acme-eu"] {
        assert_eq!(sinks(realm).await, ["lines"], "{realm}");
        let body = json!({"planId": "math::conditional_add", "input": {"a": 1, "b": 2}});
        let path = format!("/api/v1/runs?realm={realm}");
        let run = send(&house, ADMIN, Method::POST, &path, body).await;
        assert_eq!(run.status, 200, "{run:?}");
        let delivered = async {
            let path = format!("/api/v1/sinks?realm={realm}");
            while get(&house, ADMIN, &path).await.body["items"][0]["delivered"] == 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(LIMIT, delivered).await.expect("waited for an event to go out");
    }
    let path = "/api/v1/realms/acme-eu";
    assert_eq!(send(&house, ADMIN, Method::DELETE, path, Value::Null).await.status, 200);
    let purged = async {
        while get(&house, ADMIN, path).await.body["purged"] != true {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LIMIT, purged).await.expect("waited for the realm to be purged");
    assert_eq!(sinks("acme").await, ["lines"]);
}

#[tokio::test]
async fn metrics_of_one_realm_tell_nothing_of_another() {
    let house = house().await;
    let called = json!({"arguments": {}});
    let done = send(&house, ADMIN, Method::POST, "/api/v1/tools/far.echo/call", called).await;
    assert_eq!(done.status, 200, "{done:?}");
    let metrics = async |realms: Value| {
        let key = Key::created(&house, ADMIN, json!({"name": "scrape", "realms": realms})).await;
        let answer = get(&house, &key.text, "/metrics").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.text
    };
    let everywhere = metrics(json!({"*": ["viewer"]})).await;
    for word in ["far.echo", "waypost_calls_started_total", "waypost_http_responses_total"] {
        assert!(everywhere.contains(word), "{word} is not in\n{everywhere}");
    }
    // A role in every realm must be one that reads the server's figures there.
    for realms in [
        json!({"acme": ["admin"]}),
        json!({"acme": ["viewer"]}),
        json!({"*": ["member"], "default": ["viewer"]}),
    ] {
        let own = metrics(realms.clone()).await;
        assert!(own.contains("waypost_asks_open{kind=\"fill\"} 0"), "{realms}\n{own}");
        for word in ["far.echo", "_total", "waypost_store", "_duration_seconds"] {
            let mut others = own.lines().filter(|line| !line.contains("upstream_restarts"));
            assert_eq!(others.find(|line| line.contains(word)), None, "{realms}: {word}");
        }
    }
}
