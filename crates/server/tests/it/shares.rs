//! Shares, over a server that asks for credentials: who has used its own up is refused in its own
//! numbers, at every kind of endpoint, and no one else is.

use crate::api_keys::{ADMIN, Key, asking, get, send};
use crate::house::{Answer, House, read, refused, request, text};
use crate::mcp_client::{asked, modern, posted, sent};
use axum::body::Body;
use axum::http::{Method, Request, Response};
use serde_json::{Value, json};

const RUNS: &str = "/api/v1/runs";

async fn member(house: &House, name: &str) -> String {
    Key::created(house, ADMIN, json!({"name": name})).await.text
}

fn with_key(mut request: Request<Body>, key: &str) -> Request<Body> {
    let value = format!("Bearer {key}").parse().unwrap();
    request.headers_mut().insert("authorization", value);
    request
}

/// Whether an answer is refused for these numbers of its caller.
fn assert_used_up(answer: &Answer, policy: &str, left: &str) {
    assert_eq!(answer.status, 429, "{answer:?}");
    let numbers = (answer.header("ratelimit-policy"), answer.header("ratelimit"));
    assert_eq!(numbers, (policy, left), "{answer:?}");
    assert_eq!(answer.header("retry-after"), "1", "{answer:?}");
}

/// The path of the events of a session that the caller makes, which waits.
async fn events_of(house: &House, key: &str) -> String {
    let body = json!({"planId": "interaction::greeting"});
    let started = send(house, key, Method::POST, RUNS, body).await;
    assert_eq!(started.status, 202, "{started:?}");
    format!("/api/v1/sessions/{}/events", text(&started.body["session"]["id"]))
}

async fn open(house: &House, key: &str, path: &str) -> Response<Body> {
    house.open(with_key(request(Method::GET, path, Body::empty()), key)).await
}

#[tokio::test]
async fn a_caller_opens_no_more_event_streams_than_its_share() {
    let house = asking("[limits]\nstreams_max = 4").await;
    let ann = member(&house, "ann").await;
    let bob = member(&house, "bob").await;
    let of_ann = events_of(&house, &ann).await;
    let of_bob = events_of(&house, &bob).await;
    let held = open(&house, &ann, &of_ann).await;
    assert_eq!(held.status(), 200);
    let full = get(&house, &ann, &of_ann).await;
    assert_eq!(full.refusal(), refused(429, "too_many_streams", &[]));
    assert_used_up(&full, "\"streams\";q=1;qu=\"concurrent-requests\"", "\"streams\";r=0");
    let told = "this caller may have 1 event streams at the same time";
    assert_eq!(full.body["detail"], told, "{full:?}");
    let other = open(&house, &bob, &of_bob).await;
    assert_eq!(other.status(), 200, "another caller has a share of its own");
    // An MCP client is the same caller.
    let listen = modern("subscriptions/listen", json!({"notifications": {}}));
    let full = house.send(with_key(listen, &ann)).await;
    assert_used_up(&full, "\"streams\";q=1;qu=\"concurrent-requests\"", "\"streams\";r=0");
    drop(held);
    assert_eq!(open(&house, &ann, &of_ann).await.status(), 200);
}

#[tokio::test]
async fn a_caller_begins_no_more_requests_than_its_share() {
    let house = asking("[limits]\nrequests_active_max = 4").await;
    let ann = member(&house, "ann").await;
    let bob = member(&house, "bob").await;
    let whoami = "/api/v1/whoami";
    let unread = open(&house, &ann, whoami).await;
    assert_eq!(unread.status(), 200);
    let full = get(&house, &ann, whoami).await;
    assert_eq!(full.refusal(), refused(429, "too_many_requests", &[]));
    assert_used_up(&full, "\"requests\";q=1;qu=\"concurrent-requests\"", "\"requests\";r=0");
    let told = "this caller may have 1 requests at the same time";
    assert_eq!(full.body["detail"], told, "{full:?}");
    assert_eq!(get(&house, &bob, whoami).await.status, 200, "another caller has its own share");
    // Each endpoint tells it in its own words.
    let mcp = house.send(with_key(modern("tools/list", json!({})), &ann)).await;
    assert_used_up(&mcp, "\"requests\";q=1;qu=\"concurrent-requests\"", "\"requests\";r=0");
    assert_eq!(mcp.body["error"]["data"]["code"], "too_many_requests", "{mcp:?}");
    let live = house.get("/livez").await;
    assert_eq!(live.status, 200, "{live:?}");
    drop(unread);
    assert_eq!(get(&house, &ann, whoami).await.status, 200);
    // A stream of events has a limit of its own, and no place among the requests.
    let events = events_of(&house, &ann).await;
    let stream = open(&house, &ann, &events).await;
    assert_eq!((stream.status().as_u16(), get(&house, &ann, whoami).await.status), (200, 200));
}

#[tokio::test]
async fn unread_answers_count_against_their_callers_share_alone() {
    // A caller has a quarter, which is less than two or three of these documents.
    let house = asking("[limits]\nanswers_bytes_max = 1000000").await;
    let ann = member(&house, "ann").await;
    let bob = member(&house, "bob").await;
    let mut unread = Vec::new();
    let full = loop {
        let answer = open(&house, &ann, "/openapi.json").await;
        if answer.status() != 200 {
            break read(answer).await;
        }
        unread.push(answer);
        assert!(unread.len() < 100, "nothing bounds what is not read");
    };
    assert_eq!(full.refusal(), refused(429, "answers_unread", &[]));
    let numbers = "\"unread-bytes\";q=250000;qu=\"content-bytes\"";
    assert_used_up(&full, numbers, "\"unread-bytes\";r=0");
    let other = get(&house, &bob, "/openapi.json").await;
    assert_eq!(other.status, 200, "another caller has a share of its own");
    assert_eq!(house.get("/livez").await.status, 200);
    // What was read makes room, and so does what was given up.
    let last = unread.pop().unwrap();
    drop(unread);
    assert_eq!(read(last).await.body["openapi"], "3.1.0");
    assert_eq!(get(&house, &ann, "/openapi.json").await.status, 200);
}

async fn initialize(house: &House, key: &str) -> Answer {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    house.send(with_key(posted(&[], &asked(0, "initialize", params)), key)).await
}

/// The id of a session that begins.
async fn begun(house: &House, key: &str) -> String {
    let answer = initialize(house, key).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.header("mcp-session-id").to_owned()
}

async fn ping(house: &House, key: &str, session: &str) -> u16 {
    let message = asked(1, "ping", json!({}));
    let ping = posted(&[("mcp-session-id", session)], &message);
    house.send(with_key(ping, key)).await.status
}

#[tokio::test]
async fn a_caller_begins_no_more_mcp_sessions_than_its_share_and_ends_none_of_others() {
    let house = asking("[limits]\nmcp_sessions_max = 4").await;
    let ann = member(&house, "ann").await;
    let bob = member(&house, "bob").await;
    let of_ann = begun(&house, &ann).await;
    let of_bob = begun(&house, &bob).await;
    let headers = [("mcp-session-id", of_ann.as_str()), ("accept", "text/event-stream")];
    let stream = with_key(sent(Method::GET, &headers, Body::empty()), &ann);
    let stream = house.open(stream).await;
    assert_eq!(stream.status(), 200);
    let full = initialize(&house, &ann).await;
    assert_used_up(&full, "\"sessions\";q=1;qu=\"concurrent-requests\"", "\"sessions\";r=0");
    let told = "this caller may have 1 MCP sessions, and all of them are in use";
    assert_eq!((&full.body["error"]["message"], &full.body["id"]), (&json!(told), &json!(0)));
    assert_eq!(begun(&house, &bob).await.len(), 32, "another caller has a share of its own");
    assert_eq!(ping(&house, &bob, &of_bob).await, 404, "its own idle one made room");
    drop(stream);
    let next = begun(&house, &ann).await;
    assert_eq!((ping(&house, &ann, &of_ann).await, ping(&house, &ann, &next).await), (404, 200));
}

/// The answer to a call of a tool over MCP, and as a method of `/rpc`.
async fn called(house: &House, key: &str, tool: &str, arguments: Value) -> [Value; 2] {
    let params = json!({"name": tool, "arguments": arguments});
    let mcp = house.send(with_key(modern("tools/call", params), key)).await;
    let body = asked(1, tool, arguments);
    let rpc = send(house, key, Method::POST, "/rpc", body).await;
    assert_eq!((mcp.status, rpc.status), (200, 200), "{mcp:?} {rpc:?}");
    [mcp.body, rpc.body]
}

#[tokio::test]
async fn rate_limits_over_json_rpc_are_each_callers_own() {
    let house = asking("[tools.limits.\"math::*\"]\nper_minute = 2").await;
    let ann = member(&house, "ann").await;
    let bob = member(&house, "bob").await;
    let sum = json!({"a": 1, "b": 2});
    for answer in called(&house, &ann, "math__add", sum.clone()).await {
        assert_eq!(answer["result"]["structuredContent"], 3, "{answer}");
    }
    let [mcp, rpc] = called(&house, &ann, "math__add", sum.clone()).await;
    let error = &mcp["error"];
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32603), &json!("rate_limited")));
    let quota = json!({"of": "calls", "max": 2, "windowSeconds": 60});
    assert_eq!(error["data"]["quota"], quota, "{mcp}");
    let retry_ms = error["data"]["retryAfterMs"].as_u64().unwrap();
    assert!((1..=30_000).contains(&retry_ms), "{mcp}");
    assert_eq!(rpc["result"]["isError"], true, "{rpc}");
    let words = text(&rpc["result"]["content"][0]["text"]);
    assert!(words.contains("per_minute"), "{rpc}");
    for answer in called(&house, &bob, "math__add", sum).await {
        assert_eq!(answer["result"]["structuredContent"], 3, "{answer}");
    }
}

#[tokio::test]
async fn a_caller_that_has_stored_its_share_starts_nothing_at_any_endpoint() {
    // One run takes more than 200 bytes, and several take less than 20,000.
    let house = asking("[limits]\nstored_bytes_max = 20000\ncaller_share_percent = 1").await;
    let ann = member(&house, "ann").await;
    let bob = member(&house, "bob").await;
    let greet = async |key: &str| {
        let body = json!({"planId": "interaction::greeting"});
        send(&house, key, Method::POST, RUNS, body).await
    };
    assert_eq!(greet(&ann).await.status, 202);
    let full = greet(&ann).await;
    assert_eq!(full.refusal(), refused(429, "stored_bytes_max", &[]));
    assert_used_up(&full, "\"bytes\";q=200;qu=\"content-bytes\"", "\"bytes\";r=0");
    let [mcp, rpc] = called(&house, &ann, "interaction__greeting", json!({})).await;
    let error = &mcp["error"];
    assert_eq!(error["code"], -32603, "{mcp}");
    assert_eq!(error["data"]["code"], "stored_bytes_max", "{mcp}");
    assert_eq!(error["data"]["quota"], json!({"of": "bytes", "max": 200}), "{mcp}");
    assert_eq!(rpc["result"]["isError"], true, "{rpc}");
    let told = "the runs of this caller may store 200 bytes, and do";
    assert_eq!(error["message"], told, "{mcp}");
    assert!(text(&rpc["result"]["content"][0]["text"]).starts_with(told), "{rpc}");
    let sum = json!({"a": 1, "b": 2});
    for answer in called(&house, &ann, "math__add", sum).await {
        assert_eq!(answer["result"]["structuredContent"], 3, "it stores nothing: {answer}");
    }
    assert_eq!(greet(&bob).await.status, 202, "another caller has a share of its own");
}
