//! `/api/v1/upstreams`: what is shown of the servers behind this one, and what never is.

use crate::api_keys::{ADMIN, Key, asking, get, send};
use crate::house::{House, encoded, is_in_clear, request};
use axum::body::Body;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

/// How long the catalog may take to have the tools of a server, on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
/// Nobody listens on port 1.
const SETTINGS: &str = "[mcp.servers.web]\nurl = \"http://u:hunter2@127.0.0.1:1/mcp?k=${TOKEN}\"\n\
     headers = { Authorization = \"Bearer ${TOKEN}\" }\ntrusted = true\ntimeout_ms = 5000\n\
     [mcp.servers.off]\ncommand = \"x\"\nenv = { A = \"hunter2\" }\ndisabled = true\n\
     [mcp.servers.self]\nurl = \"http://127.0.0.1:8420/mcp\"\n";

async fn house() -> House {
    let config = Config::parse("waypost.toml", SETTINGS).unwrap();
    let project = Project { config, ..Project::demo() };
    House::with_variables(project, &[("TOKEN", "hunter2")]).await
}

#[tokio::test]
async fn upstreams_are_shown_without_secrets() {
    let house = house().await;
    let answer = house.get("/api/v1/upstreams").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(!answer.text.contains("hunter2"), "{answer:?}");
    let items = answer.body["items"].as_array().unwrap();
    let names: Vec<&Value> = items.iter().map(|item| &item["name"]).collect();
    assert_eq!(names, ["off", "web"], "our own address is left out");
    let off = &items[0];
    assert_eq!((&off["state"], &off["env"]), (&json!("disabled"), &json!(["A"])));
    let web = house.get("/api/v1/upstreams/web").await.body;
    assert_eq!(web["target"], "http://127.0.0.1:1/mcp");
    assert_eq!((&web["headers"], &web["prefix"]), (&json!(["Authorization"]), &json!("web.")));
    assert_eq!((&web["trusted"], &web["timeoutMs"]), (&json!(true), &json!(5000)));
    assert_eq!(web["origin"], "waypost.toml:1");
    let page = house.get("/api/v1/upstreams?limit=1").await.body;
    let cursor = encoded(&page["nextCursor"]);
    let rest = house.get(&format!("/api/v1/upstreams?cursor={cursor}")).await.body;
    assert_eq!(rest["items"][0]["name"], "web", "{rest}");
    let missing = house.get("/api/v1/upstreams/wbe").await;
    assert_eq!((missing.status, &missing.body["hint"]), (404, &json!("did you mean `web`?")));
}

#[tokio::test]
async fn a_check_answers_how_it_is_now() {
    let house = house().await;
    let checked = house.post("/api/v1/upstreams/web/check", json!({})).await;
    assert_eq!((checked.status, &checked.body["state"]), (200, &json!("failing")), "{checked:?}");
    assert!(checked.body["lastError"]["message"].is_string(), "{checked:?}");
    assert!(!checked.text.contains("hunter2"), "{checked:?}");
    let off = house.post("/api/v1/upstreams/off/check", json!({})).await;
    assert_eq!((off.status, &off.body["code"]), (409, &json!("upstream_disabled")), "{off:?}");
    let missing = house.post("/api/v1/upstreams/none/check", json!({})).await;
    assert_eq!(missing.status, 404, "{missing:?}");
    // One that cannot be reached takes nothing from the others.
    let tools = house.get("/api/v1/tools").await.body;
    assert!(tools["items"].as_array().unwrap().iter().any(|tool| tool["name"] == "math::add"));
}

#[tokio::test]
async fn only_administrators_may_check() {
    let house = House::build(Project::demo(), Some("secret")).await;
    let refused = house.post("/api/v1/upstreams/none/check", json!({})).await;
    assert_eq!(refused.status, 401, "{refused:?}");
}

/// An MCP server that repeats whom it takes us for, in an error, a failed result or a result.
async fn echo(headers: HeaderMap, Json(asked): Json<Value>) -> Response {
    let said = format!("you are {}", headers[AUTHORIZATION].to_str().unwrap());
    let id = &asked["id"];
    let answer = |result: Value| Json(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let content = json!([{"type": "text", "text": said}]);
    match asked["method"].as_str().unwrap() {
        "initialize" => answer(json!({"protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}}, "serverInfo": {"name": said, "version": "1"}}))
        .into_response(),
        "notifications/initialized" => StatusCode::ACCEPTED.into_response(),
        "tools/list" => {
            answer(json!({"tools": [tool("refuse"), tool("fail"), tool("echo")]})).into_response()
        }
        "tools/call" if asked["params"]["name"] == "fail" => {
            answer(json!({"isError": true, "content": content})).into_response()
        }
        "tools/call" if asked["params"]["name"] == "echo" => {
            answer(json!({"content": content, "structuredContent": {"said": said}})).into_response()
        }
        _ => {
            let error = json!({"code": -32000, "message": said, "data": {"said": said}});
            Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response()
        }
    }
}

#[tokio::test]
async fn a_token_that_an_upstream_repeats_is_shown_nowhere() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = Router::new().route("/mcp", post(echo));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let token = "t0ken-of-ours";
    let settings = format!(
        "[mcp.servers.far]\nurl = \"{url}\"\nheaders = {{ Authorization = \"Bearer {token}\" }}\n"
    );
    let project = || {
        let config = Config::parse("waypost.toml", &settings).unwrap();
        Project { config, ..Project::demo() }
    };
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = House::over(project, &data, None).await;
    let checked = house.post("/api/v1/upstreams/far/check", json!({})).await;
    assert_eq!(checked.body["state"], "ready", "{checked:?}");
    let known = async {
        while house.get("/api/v1/tools/far.echo").await.status != 200 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LIMIT, known).await.expect("its tools are in the catalog");
    let mut told = checked.text;
    for name in ["refuse", "fail", "echo"] {
        let path = format!("/api/v1/tools/far.{name}/call");
        let called = house.post(&path, json!({"arguments": {}})).await;
        assert!(called.text.contains("you are ***"), "{name}: {called:?}");
        told.push_str(&called.text);
    }
    for path in ["/api/v1/upstreams", "/api/v1/sessions", "/api/v1/asks", "/api/v1/tools"] {
        told.push_str(&house.get(path).await.text);
    }
    assert!(!told.contains(token), "{told}");
    stopper.stop().await;
    drop(house);
    assert!(is_in_clear(data.path(), &["you are ***".to_owned()]), "the calls are in the journal");
    assert!(!is_in_clear(data.path(), &[token.to_owned()]));
}

#[tokio::test]
async fn a_plan_gets_the_value_of_a_result_and_the_whole_where_it_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = Router::new().route("/mcp", post(echo));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let settings = format!(
        "[mcp.servers.far]\nurl = \"{url}\"\nheaders = {{ Authorization = \"Bearer t0ken\" }}\n\
         trusted = true\n"
    );
    let config = Config::parse("waypost.toml", &settings).unwrap();
    let house = House::build(Project { config, ..Project::demo() }, None).await;
    let known = async {
        while house.get("/api/v1/tools/far.echo").await.status != 200 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LIMIT, known).await.expect("its tools are in the catalog");
    let ran = async |key: &str, pointer: &str| {
        let plan = json!({"planId": "it/said", "steps": [
            {"id": "call", "type": "tool_call", "toolId": "far.echo", "arguments": {}, (key): "r",
             "nextStepId": "end"},
            {"id": "end", "type": "final_response", "message": {"jsonPath": pointer}},
        ]});
        house.post("/api/v1/runs", json!({"plan": plan})).await
    };
    let value = ran("saveAs", "$.context.r").await;
    let keys = |value: &Value| -> Vec<String> {
        value.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
    };
    assert_eq!(keys(&value.body["run"]["answer"]), ["said"], "{value:?}");
    let whole = ran("saveResultAs", "$.context.r").await;
    let answer = &whole.body["run"]["answer"];
    assert!(answer["content"].is_array() && answer["structuredContent"]["said"].is_string());
    let missing = ran("saveAs", "$.context.r.says").await;
    let asks = house.get("/api/v1/asks").await;
    assert!(asks.text.contains("`context.r` has `said`"), "{asks:?} for {missing:?}");
}

/// An MCP server with one tool that is always too busy.
async fn busy(Json(asked): Json<Value>) -> Response {
    let id = &asked["id"];
    let answer = |result: Value| Json(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    match asked["method"].as_str().unwrap() {
        "initialize" => answer(json!({"protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}}, "serverInfo": {"name": "busy", "version": "1"}}))
        .into_response(),
        "notifications/initialized" => StatusCode::ACCEPTED.into_response(),
        "tools/list" => {
            let tool = json!({"name": "find", "inputSchema": {"type": "object"}});
            answer(json!({"tools": [tool]})).into_response()
        }
        "tools/call" => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        _ => {
            let error = json!({"code": -32601, "message": "there is no such method"});
            Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response()
        }
    }
}

#[tokio::test]
async fn a_server_that_fails_in_a_row_is_left_alone_and_shown_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = Router::new().route("/mcp", post(busy));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let settings = format!(
        "[limits]\nbreaker_failures = 2\nbreaker_open_ms = 3600000\n\
         [mcp.servers.far]\nurl = \"{url}\"\njournal = false\n"
    );
    let config = Config::parse("waypost.toml", &settings).unwrap();
    let house = House::build(Project { config, ..Project::demo() }, None).await;
    let known = async {
        while house.get("/api/v1/tools/far.find").await.status != 200 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LIMIT, known).await.expect("its tool is in the catalog");

    let call = async || house.post("/api/v1/tools/far.find/call", json!({"arguments": {}})).await;
    for failures in [1, 2] {
        let failed = call().await;
        assert_eq!((failed.status, &failed.body["code"]), (502, &json!("tool_failed")));
        let shown = house.get("/api/v1/upstreams/far").await.body;
        assert_eq!(shown["breaker"]["failures"], failures, "{shown}");
        assert_eq!(shown["breaker"]["openUntil"].is_string(), failures == 2, "{shown}");
    }
    let refused = call().await;
    assert_eq!((refused.status, &refused.body["code"]), (503, &json!("circuit_open")));
    assert!(refused.body["retryAfterMs"].is_u64(), "{refused:?}");
    assert!(!refused.header("retry-after").is_empty(), "{refused:?}");
    let listed = house.get("/api/v1/upstreams").await.body;
    assert_eq!(listed["items"][0]["breaker"]["failures"], 2, "{listed}");
    let metrics = house.get("/metrics").await.text;
    assert!(metrics.contains("waypost_upstream_breaker_open{upstream=\"far\"} 1"), "{metrics}");
}

/// An MCP server whose only tool repeats the headers of its call.
async fn repeating(headers: HeaderMap, Json(asked): Json<Value>) -> Response {
    let id = &asked["id"];
    let answer = |result: Value| Json(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    match asked["method"].as_str().unwrap() {
        "initialize" => answer(json!({"protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}}, "serverInfo": {"name": "far", "version": "1"}}))
        .into_response(),
        "notifications/initialized" => StatusCode::ACCEPTED.into_response(),
        "tools/list" => {
            let tool = json!({"name": "headers", "inputSchema": {"type": "object"}});
            answer(json!({"tools": [tool]})).into_response()
        }
        "tools/call" => {
            let content = json!([{"type": "text", "text": format!("{headers:?}")}]);
            answer(json!({"content": content})).into_response()
        }
        _ => {
            let error = json!({"code": -32601, "message": "there is no such method"});
            Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response()
        }
    }
}

#[tokio::test]
async fn no_credential_of_a_caller_is_sent_on() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = Router::new().route("/mcp", post(repeating));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let settings = format!("[mcp.servers.far]\nurl = \"{url}\"\ntrusted = true\njournal = false\n");
    let house = asking(&settings).await;
    let key = Key::created(&house, ADMIN, json!({"name": "ann"})).await.text;
    let known = async {
        while get(&house, &key, "/api/v1/tools/far.headers").await.status != 200 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LIMIT, known).await.expect("its tool is in the catalog");
    let path = "/api/v1/tools/far.headers/call";
    let body = json!({"arguments": {}});
    let mut plain = request(Method::POST, path, Body::from(body.to_string()));
    plain.headers_mut().insert("x-api-key", key.parse().unwrap());
    plain.headers_mut().insert("x-realm", "default".parse().unwrap());
    for called in [send(&house, &key, Method::POST, path, body).await, house.send(plain).await] {
        assert_eq!(called.status, 200, "{called:?}");
        assert!(called.text.contains("content-type"), "nothing is repeated: {called:?}");
        for ours in [key.as_str(), "authorization", "x-api-key", "x-realm"] {
            assert!(!called.text.contains(ours), "`{ours}` is sent on: {called:?}");
        }
    }
}
