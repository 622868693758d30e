//! `/mcp` and `/rpc` before clients that mean no good: each learns what is wrong, learns nothing
//! else, and takes nothing away from the others.

use crate::house::{Answer, House, question, text};
use crate::mcp_client::{
    Client, Events, LIMIT, MODERN, ask, asked, begin, furnished, modern, posted, sent, stateless,
};
use axum::body::Body;
use axum::http::{HeaderValue, Method, Request};
use futures::StreamExt;
use futures::stream;
use kernel::limits::Limits;
use serde_json::{Value, json};
use std::io;
use std::time::Duration;
use tokio::time::timeout;

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// More than any client has to say at once.
const MANY: usize = 10_000;

/// The server lives: a good request gets its answer.
async fn alive(house: &House) {
    let params = json!({"name": "math__add", "arguments": {"a": 2, "b": 3}});
    let answer = timeout(LIMIT, ask(house, "tools/call", params)).await.unwrap();
    assert_eq!(answer.body["result"]["structuredContent"], 5, "{answer:?}");
}

/// Status and error number; there are words, and nothing of the inside in them.
fn refusal(answer: &Answer) -> (u16, i64) {
    let error = &answer.body["error"];
    assert_eq!(answer.body["jsonrpc"], "2.0", "{answer:?}");
    assert!(answer.body.get("result").is_none(), "{answer:?}");
    assert_ne!(text(&error["message"]), "", "{answer:?}");
    for inside in [".rs:", "panicked", "called `Option", "called `Result", "root:x:"] {
        assert!(!answer.text.contains(inside), "{answer:?}");
    }
    (answer.status, error["code"].as_i64().unwrap_or_default())
}

fn raw(bytes: impl Into<Body>) -> Request<Body> {
    sent(Method::POST, &[("mcp-protocol-version", MODERN)], bytes.into())
}

/// A call of a client whose person can be asked.
fn call(name: &str, arguments: Value, more: Value) -> Request<Body> {
    let mut params = stateless(json!({"name": name, "arguments": arguments}));
    params["_meta"][CAPABILITIES] = json!({"elicitation": {}});
    for (key, value) in more.as_object().into_iter().flatten() {
        params[key] = value.clone();
    }
    let headers =
        [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", name)];
    posted(&headers, &asked(1, "tools/call", params))
}

#[tokio::test]
async fn malformed_requests_are_jsonrpc_errors() {
    let house = House::demo().await;
    let cases: &[(&[u8], i64)] = &[
        (b"", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":NaN,\"method\":\"ping\"}", -32700),
        (b"{'jsonrpc':'2.0'}", -32700),
        (b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\"}", -32700),
        (b"\x00\x00\x00", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"\x01\",\"method\":\"ping\"}", -32700),
        (b"\x1f\x8b\x08\x00\x00", -32700),
        (b"null", -32600),
        (b"\"ping\"", -32600),
        (b"{}", -32600),
        (b"{\"jsonrpc\":2.0,\"id\":1,\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"method\":\"b\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":null}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"error\":{}}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"result\":{}}", -32600),
        (b"[{\"jsonrpc\":\"2.0\"}", -32700),
    ];
    for (body, code) in cases {
        let shown = body.escape_ascii();
        let answer = house.send(raw(body.to_vec())).await;
        assert_eq!(refusal(&answer), (400, *code), "{shown}");
    }
    for (body, code) in [("", -32700), ("{\"id\":", -32700), ("7", -32600), ("{}", -32600)] {
        let answer = house.post_text("/rpc", body).await;
        let (status, told) = refusal(&answer);
        assert!(status < 500 && told == code && answer.body["id"].is_null(), "{body}: {answer:?}");
    }
    alive(&house).await;
}

#[tokio::test]
async fn ids_come_back_as_they_came() {
    let house = House::demo().await;
    let long = "9".repeat(5_000);
    let wide = format!("\"{}\"", "\\ud83e\\udd80".repeat(5_000));
    for id in
        ["-0", "\"\"", "\"\\u0000\"", "\"\\ud800\"", "\"\\/\\u0041\"", long.as_str(), wide.as_str()]
    {
        let params = stateless(json!({}));
        let body = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\": {id} ,\"method\":\"server/discover\",\"params\":{params}}}"
        );
        let mut request = raw(body);
        request.headers_mut().insert("mcp-method", HeaderValue::from_static("server/discover"));
        let answer = house.send(request).await;
        assert_eq!(answer.status, 200, "{id}: {answer:?}");
        assert!(answer.text.starts_with(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},")), "{id}");
    }
    alive(&house).await;
}

#[tokio::test]
async fn oversized_bodies_are_not_read() {
    let house = House::limited("body_bytes_max = 4000\nbody_depth_max = 16").await;
    let nested = |depth: usize| {
        let open = "[".repeat(depth);
        let close = "]".repeat(depth);
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{open}{close}}}")
    };
    let objects = "{\"a\":".repeat(700);
    let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{}\"}}", "x".repeat(4_000));
    for (body, expected) in [
        (nested(16), (400, -32600)),
        (nested(1_900), (400, -32600)),
        (objects, (400, -32600)),
        (format!("[{}]", nested(16)), (400, -32600)),
        (long, (413, -32600)),
    ] {
        let answer = house.send(raw(body.clone())).await;
        assert_eq!(refusal(&answer), expected, "{}", &body[..40]);
        let rpc = house.post_text("/rpc", &body).await;
        assert!(rpc.status < 500, "{rpc:?}");
        assert_eq!(refusal(&rpc).1, -32600, "{}", &body[..40]);
    }
    // A body that does not say how long it is, and has no end.
    let endless = stream::repeat_with(|| Ok::<_, io::Error>("{\"jsonrpc\":[".to_owned()));
    let answer = timeout(LIMIT, house.send(raw(Body::from_stream(endless)))).await.unwrap();
    assert_eq!(refusal(&answer), (413, -32600));
    alive(&house).await;
}

#[tokio::test]
async fn slow_and_broken_bodies_hold_nobody_up() {
    let house = House::demo().await;
    // Byte by byte, but whole.
    let message = asked(1, "tools/list", stateless(json!({}))).to_string();
    let drips = stream::iter(message.into_bytes()).then(|byte| async move {
        tokio::task::yield_now().await;
        Ok::<_, io::Error>(vec![byte])
    });
    let mut slow = raw(Body::from_stream(drips));
    slow.headers_mut().insert("mcp-method", HeaderValue::from_static("tools/list"));
    let answer = timeout(LIMIT, house.send(slow)).await.unwrap();
    assert!(answer.body["result"]["tools"].is_array(), "{answer:?}");
    // Broken off.
    let broken = stream::iter([Ok("{\"jsonrpc\":"), Err(io::Error::other("gone"))]);
    let answer = house.send(raw(Body::from_stream(broken))).await;
    assert_eq!(refusal(&answer), (400, -32700));
    // Many that never go on, whose clients give up.
    let stuck = (0..200).map(|_| {
        let begun = stream::iter([Ok::<_, io::Error>("{\"jsonrpc\":")]).chain(stream::pending());
        timeout(Duration::from_millis(50), house.open(raw(Body::from_stream(begun))))
    });
    let stuck = futures::future::join_all(stuck).await;
    assert!(stuck.iter().all(Result::is_err), "nobody can answer half a message");
    alive(&house).await;
}

/// Status and error number of `math__add` whose name is written like this in the headers.
async fn named(house: &House, values: &[&[u8]]) -> (u16, i64) {
    let params = json!({"name": "math__add", "arguments": {"a": 2, "b": 3}});
    let mut request = modern("tools/call", params);
    request.headers_mut().remove("mcp-name");
    for value in values {
        request.headers_mut().append("mcp-name", HeaderValue::from_bytes(value).unwrap());
    }
    let answer = house.send(request).await;
    if answer.body["result"].is_object() { (answer.status, 0) } else { refusal(&answer) }
}

#[tokio::test]
async fn headers_cannot_say_something_else_than_the_body() {
    let house = House::demo().await;
    for good in [&b"math__add"[..], b"  math__add\t", b"=?base64?bWF0aF9fYWRk?="] {
        assert_eq!(named(&house, &[good]).await, (200, 0), "{}", good.escape_ascii());
    }
    let long = [b"=?base64?".to_vec(), b"QUFB".repeat(10_000), b"?=".to_vec()].concat();
    let bad: &[&[&[u8]]] = &[
        &[],
        &[b""],
        &[b"math::add"],
        &[b"MATH__ADD"],
        &[b"math__add", b"other"],
        &[b"other", b"math__add"],
        &[b"math__add, other"],
        &[b"math__add\xff"],
        &[b"=?base64??="],
        &[b"=?base64?bWF0aF9fYWRk"],
        &[b"bWF0aF9fYWRk?="],
        &[b"=?BASE64?bWF0aF9fYWRk?="],
        &[b"=?base64?bWF0aF9fYWR?="],
        &[b"=?base64?bWF0aF9f!WRk?="],
        &[b"=?base64?b3RoZXI=?="],
        &[b"=?base64?/////w==?="],
        // A sentinel in a sentinel is not opened twice.
        &[b"=?base64?PT9iYXNlNjQ/YldGMGFGOWZZV1JrPz0=?="],
        &[&long],
    ];
    for values in bad {
        assert_eq!(named(&house, values).await, (400, -32020), "{} values", values.len());
    }
    for (header, value) in [
        ("mcp-method", "tools/list"),
        ("mcp-method", "TOOLS/CALL"),
        ("mcp-method", ""),
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-protocol-version", "2026-07-28, 2026-07-28"),
    ] {
        let mut request = call("math__add", json!({"a": 2, "b": 3}), json!({}));
        request.headers_mut().insert(header, HeaderValue::from_static(value));
        let answer = house.send(request).await;
        assert_eq!(refusal(&answer).0, 400, "{header}: {value}");
    }
    alive(&house).await;
}

#[tokio::test]
async fn an_argument_in_a_header_cannot_become_a_header() {
    let (house, _) = furnished("").await;
    let routed = |region: &str, values: &[&'static str]| {
        let mut request = call("it_routed", json!({"region": region}), json!({}));
        for value in values {
            request.headers_mut().append("mcp-param-region", HeaderValue::from_static(value));
        }
        request
    };
    let split = "eu\r\nx-evil: 1";
    let answer = house.send(routed(split, &["=?base64?ZXUNCngtZXZpbDogMQ==?="])).await;
    assert!(answer.status == 200 && answer.body["result"].is_object(), "{answer:?}");
    assert!(answer.headers.get("x-evil").is_none(), "{answer:?}");
    let cases: &[(&str, &[&'static str])] = &[
        (split, &["eu"]),
        (split, &["eu x-evil: 1"]),
        (split, &[]),
        ("eu", &["us"]),
        ("eu", &["eu", "us"]),
        ("eu", &["us", "eu"]),
        ("eu", &["=?base64?ZXUNCngtZXZpbDogMQ==?="]),
        ("eu", &["=?base64?!?="]),
    ];
    for (region, values) in cases {
        let answer = house.send(routed(region, values)).await;
        assert_eq!(refusal(&answer), (400, -32020), "{region:?} {values:?}");
    }
    // Where no tool asks for it, such a header means nothing.
    let mut request = call("math__add", json!({"a": 2, "b": 3}), json!({}));
    request.headers_mut().insert("mcp-param-a", HeaderValue::from_static("99"));
    assert_eq!(house.send(request).await.body["result"]["structuredContent"], 5);
}

#[tokio::test]
async fn pages_of_others_reach_nothing() {
    let house = House::demo().await;
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    for (header, value) in [
        ("host", "evil.test"),
        ("host", "evil.test:8420"),
        ("host", "localhost:8420.evil.test"),
        ("host", "127.0.0.1.evil.test:8420"),
        ("host", "localhost"),
        ("host", ""),
        ("origin", "http://evil.test"),
        ("origin", "http://localhost:8420.evil.test"),
        ("origin", "http://localhost:3000"),
        ("origin", "null"),
        ("origin", ""),
    ] {
        for method in [Method::POST, Method::GET, Method::DELETE, Method::OPTIONS, Method::PUT] {
            let body = Body::from(asked(1, "initialize", hello.clone()).to_string());
            let answer = house.send(sent(method.clone(), &[(header, value)], body)).await;
            assert_eq!(refusal(&answer).0, 403, "{method} {header}: {value}");
            for told in ["mcp-session-id", "access-control-allow-origin"] {
                assert!(answer.headers.get(told).is_none(), "{method} {header}: {value}");
            }
        }
    }
    let absolute = Request::post("http://evil.test/mcp").header("host", "localhost:8420");
    let answer = house.send(absolute.body(Body::empty()).unwrap()).await;
    assert_eq!(refusal(&answer).0, 403);
    alive(&house).await;
}

/// A greeting that waits for a name: its state, and the key of its question.
async fn waiting(house: &House) -> (String, String) {
    let answer = house.send(call("interaction__greeting", json!({}), json!({}))).await;
    let result = &answer.body["result"];
    assert_eq!(result["resultType"], "input_required", "{answer:?}");
    let key = result["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    (text(&result["requestState"]), key)
}

/// What a client sends with the call when its person gave this name.
fn given(state: &str, key: &str, name: &str) -> Value {
    let answer = json!({"action": "accept", "content": {"name": name}});
    json!({"requestState": state, "inputResponses": {key: answer}})
}

async fn open_asks(house: &House) -> usize {
    house.get("/api/v1/asks?status=open").await.body["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn no_character_of_a_state_can_be_changed() {
    let house = House::demo().await;
    let (state, key) = waiting(&house).await;
    let changed = (0..state.len()).map(|at| {
        let other = if state.as_bytes()[at] == b'A' { "B" } else { "A" };
        format!("{}{other}{}", &state[..at], &state[at + 1..])
    });
    let cut = (0..state.len()).step_by(9).map(|at| state[..at].to_owned());
    let odd = [
        format!("{state}A"),
        format!("{state}="),
        format!(" {state}"),
        format!("{state}{state}"),
        format!("{state}-TAMPERED"),
        state.to_uppercase(),
        "\u{0}".to_owned(),
        "x".repeat(100_000),
    ];
    for wrong in changed.chain(cut).chain(odd) {
        let retry = given(&wrong, &key, "Eve");
        let answer = house.send(call("interaction__greeting", json!({}), retry)).await;
        let (status, code) = refusal(&answer);
        assert!(status < 500 && code == -32602, "{wrong}: {answer:?}");
        assert!(text(&answer.body["error"]["message"]).contains("requestState"), "{answer:?}");
    }
    for wrong in [json!(7), json!({}), json!([state])] {
        let retry = json!({"requestState": wrong, "inputResponses": {}});
        let answer = house.send(call("interaction__greeting", json!({}), retry)).await;
        assert_eq!(refusal(&answer).1, -32602, "{wrong}");
    }
    assert_eq!(open_asks(&house).await, 1, "nobody answered it");
    let retry = given(&state, &key, "Ann");
    let answer = house.send(call("interaction__greeting", json!({}), retry)).await;
    assert_eq!(answer.body["result"]["content"][0]["text"], "Hello, Ann!", "{answer:?}");
}

#[tokio::test]
async fn a_state_is_good_for_its_own_call_and_counts_once() {
    let house = House::demo().await;
    let stored = house.put("/api/v1/plans/it%2Fquestion", &[], question()).await;
    assert_eq!(stored.status, 201, "{stored:?}");
    let (state, key) = waiting(&house).await;
    let sessions = house.get("/api/v1/sessions").await.body["items"].clone();
    let eve = given(&state, &key, "Eve");
    for (name, arguments) in [
        ("it--question", json!({})),
        ("math__add", json!({"a": 2, "b": 3})),
        ("interaction__greeting", json!({"more": 1})),
    ] {
        let answer = house.send(call(name, arguments, eve.clone())).await;
        assert_eq!(refusal(&answer).1, -32602, "{name}: {answer:?}");
    }
    assert_eq!(open_asks(&house).await, 1, "nobody answered it");
    let ann = given(&state, &key, "Ann");
    for _ in 0..3 {
        let answer = house.send(call("interaction__greeting", json!({}), ann.clone())).await;
        assert_eq!(answer.body["result"]["content"][0]["text"], "Hello, Ann!", "{answer:?}");
    }
    let answer = house.send(call("interaction__greeting", json!({}), eve)).await;
    assert!(!answer.text.contains("Hello, Eve!"), "{answer:?}");
    assert_eq!(open_asks(&house).await, 0);
    let now = house.get("/api/v1/sessions").await.body["items"].clone();
    let count = |items: &Value| items.as_array().map(Vec::len);
    assert_eq!(count(&now), count(&sessions), "nothing was begun anew: {now}");
}

#[tokio::test]
async fn an_old_state_is_no_state() {
    let house = House::within(Limits { mcp_state_ttl_ms: 1, ..Limits::default() }).await;
    let (state, key) = waiting(&house).await;
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let answer =
        house.send(call("interaction__greeting", json!({}), given(&state, &key, "Ann"))).await;
    assert_eq!(refusal(&answer).1, -32602);
    assert!(text(&answer.body["error"]["message"]).contains("expired"), "{answer:?}");
    // What the state stood for is still there for a person who answers in the inbox.
    assert_eq!(open_asks(&house).await, 1);
}

#[tokio::test]
async fn malformed_answers_change_nothing() {
    let house = House::demo().await;
    let (state, key) = waiting(&house).await;
    let key = key.as_str();
    for responses in [
        json!(7),
        json!([]),
        json!({key: 7}),
        json!({key: null}),
        json!({key: {}}),
        json!({key: {"action": "approve"}}),
        json!({key: {"action": ["accept"]}}),
    ] {
        let retry = json!({"requestState": state, "inputResponses": responses});
        let answer = house.send(call("interaction__greeting", json!({}), retry)).await;
        assert_eq!(refusal(&answer).1, -32602, "{responses}");
    }
    // What does not fit the form, or answers something else, is asked for again.
    for responses in [
        json!({}),
        json!({"ask_00000000000000000000000000000000": {"action": "accept", "content": {}}}),
        json!({key: {"action": "accept"}}),
        json!({key: {"action": "accept", "content": {"name": ""}}}),
        json!({key: {"action": "accept", "content": {"name": {"$ref": "#"}}}}),
    ] {
        let retry = json!({"requestState": state, "inputResponses": responses});
        let answer = house.send(call("interaction__greeting", json!({}), retry)).await;
        assert_eq!(
            answer.body["result"]["resultType"], "input_required",
            "{responses}: {answer:?}"
        );
    }
    assert_eq!(open_asks(&house).await, 1);
    alive(&house).await;
}

#[tokio::test]
async fn sessions_in_use_are_not_pushed_out() {
    let house = House::limited("mcp_sessions_max = 2").await;
    let one = Client::hello(&house, "2025-11-25", json!({})).await;
    let two = Client::hello(&house, "2025-11-25", json!({})).await;
    let mut first = Events::of(house.open(one.get(None)).await);
    let _second = Events::of(house.open(two.get(None)).await);
    for _ in 0..50 {
        let full = begin(&house, "2025-11-25", json!({})).await;
        let (status, _) = refusal(&full);
        assert!([429, 503].contains(&status), "{full:?}");
        assert!(full.header("retry-after").parse::<u64>().is_ok(), "{full:?}");
        assert!(full.headers.get("mcp-session-id").is_none(), "{full:?}");
        assert!(text(&full.body["error"]["message"]).contains("sessions"), "{full:?}");
    }
    for client in [&one, &two] {
        assert_eq!(client.ask("ping", json!({})).await.status, 200);
    }
    assert_eq!(one.end().await.status, 204);
    assert!(first.rest().await.iter().all(|event| event.data.is_null()), "the stream ends, too");
    let three = Client::hello(&house, "2025-11-25", json!({})).await;
    assert_eq!(three.ask("ping", json!({})).await.status, 200);
    assert_eq!(one.ask("ping", json!({})).await.status, 404);
    // Without a session, nobody needs a place.
    alive(&house).await;
}

#[tokio::test]
async fn a_session_id_cannot_be_guessed_or_bent() {
    let house = House::demo().await;
    let real = Client::hello(&house, "2025-11-25", json!({})).await;
    let bent = [
        String::new(),
        "0".repeat(32),
        real.session.to_uppercase(),
        real.session[..31].to_owned(),
        format!("{}0", real.session),
        format!("{},{}", real.session, real.session),
        format!("\"{}\"", real.session),
        "../../etc/passwd".to_owned(),
        "*".to_owned(),
        "x".repeat(8_000),
    ];
    for session in bent {
        let guess = Client { house: &house, session };
        let posted = guess.ask("ping", json!({})).await;
        assert_eq!(refusal(&posted), (404, -32600), "{}", guess.session);
        let opened = house.send(guess.get(None)).await;
        assert_eq!(refusal(&opened), (404, -32600), "{}", guess.session);
        let ended = guess.end().await;
        assert_eq!(refusal(&ended), (404, -32600), "{}", guess.session);
        assert!(!posted.text.contains(&real.session), "{posted:?}");
    }
    let without = house.send(posted(&[], &asked(1, "tools/list", json!({})))).await;
    assert_eq!(refusal(&without).0, 400);
    assert_eq!(real.ask("ping", json!({})).await.status, 200);
}

#[tokio::test]
async fn answers_nobody_asked_for_are_dropped() {
    let house = House::demo().await;
    let client = Client::hello(&house, "2025-11-25", json!({"elicitation": {}})).await;
    for id in [json!(0), json!(1), json!(-1), json!(u64::MAX), json!("x"), json!("1")] {
        for answer in [
            json!({"jsonrpc": "2.0", "id": id, "result": {"action": "accept", "content": {}}}),
            json!({"jsonrpc": "2.0", "id": id, "result": null}),
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": "no", "message": 7}}),
        ] {
            let taken = client.send(&answer).await;
            assert_eq!((taken.status, taken.text.as_str()), (202, ""), "{answer}");
        }
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": id, "reason": "x".repeat(1_000)}});
        assert_eq!(client.send(&cancelled).await.status, 202, "{cancelled}");
    }
    for params in [json!({}), json!({"requestId": null}), json!({"requestId": {"a": [1]}})] {
        let odd = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        assert_eq!(client.send(&odd).await.status, 202, "{odd}");
    }
    let odd = json!({"jsonrpc": "2.0", "method": "notifications/nobody/knows"});
    assert_eq!(client.send(&odd).await.status, 202);
    let null = client.send(&json!({"jsonrpc": "2.0", "id": null, "result": {}})).await;
    assert_eq!(refusal(&null), (400, -32600));
    assert_eq!(client.ask("ping", json!({})).await.body["result"], json!({}));
    assert_eq!(open_asks(&house).await, 0);
}

#[tokio::test]
async fn oversized_batches_and_lists_are_refused_whole() {
    let house = House::demo().await;
    let pings: Vec<Value> = (0..MANY).map(|id| asked(id, "ping", json!({}))).collect();
    let batch = Value::Array(pings);
    for version in ["2025-03-26", "2025-11-25"] {
        let client = Client::hello(&house, version, json!({})).await;
        let answer = client.send(&batch).await;
        assert_eq!(refusal(&answer), (400, -32600), "{version}");
        // The same id twice gets two answers, and none of them never.
        let twice = json!([asked(1, "ping", json!({})), asked(1, "ping", json!({}))]);
        let answer = timeout(LIMIT, client.send(&twice)).await.unwrap();
        let answers = answer.body.as_array().map_or(0, Vec::len);
        assert_eq!(answers, if version == "2025-03-26" { 2 } else { 0 }, "{answer:?}");
    }
    assert_eq!(refusal(&house.send(raw(batch.to_string())).await), (400, -32600));
    let rpc = house.post("/rpc", batch).await;
    let (status, code) = refusal(&rpc);
    assert!(status < 500 && code == -32600, "{rpc:?}");
    let uris: Vec<String> = (0..MANY).map(|at| format!("waypost://plans/{at}")).collect();
    let wanted = json!({"notifications": {"resourceSubscriptions": uris}});
    let answer = timeout(LIMIT, ask(&house, "subscriptions/listen", wanted)).await.unwrap();
    assert_eq!(refusal(&answer).1, -32602);
    alive(&house).await;
}

#[tokio::test]
async fn addresses_lead_nowhere_else() {
    let house = House::demo().await;
    for uri in [
        "file:///etc/passwd",
        "/etc/passwd",
        "waypost://blobs/../secret.key",
        "waypost://blobs/..%2Fsecret.key",
        "waypost://plans/..%2f..%2fsecret.key",
        "waypost://sessions/%2e%2e%2fwaypost.db",
        "waypost://sessions/x%00/history",
        "waypost://sessions//history",
        "waypost://plans/{id}",
        "waypost://",
        "http://127.0.0.1:8420/metrics",
        "x",
    ] {
        for method in ["resources/read", "completion/complete"] {
            let params = match method {
                "resources/read" => json!({"uri": uri}),
                _ => json!({"ref": {"type": "ref/resource", "uri": format!("{uri}/{{a}}")},
                    "argument": {"name": "a", "value": "../"}}),
            };
            let answer = ask(&house, method, params).await;
            assert_eq!(refusal(&answer).1, -32602, "{method} {uri}");
        }
    }
    for name in ["", "..", "_-zz", "MATH__ADD", "math__add__", "math:add", "math__add%00"] {
        let answer = house.send(call(name, json!({"a": 2, "b": 3}), json!({}))).await;
        assert_eq!(refusal(&answer).1, -32602, "{name}");
    }
    alive(&house).await;
}
