//! `/mcp` as a transport: eras, headers, sessions, streams, and what is refused.

use crate::house::{House, approval, request};
use crate::mcp_client::{
    CLAIMED, Client, Events, FAILING, LIMIT, LISTED, MODERN, NO_PLAN, OUR_PLAN, PAGE, WATCHED, ask,
    asked, begin, furnished, furnished_within, methods, modern, posted, sent, stateless, whole,
};
use axum::body::Body;
use axum::http::{Method, Request};
use kernel::limits::Limits;
use serde_json::{Value, json};
use tokio::time::timeout;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn without(key: &str) -> Value {
    let mut params = stateless(json!({}));
    params["_meta"].as_object_mut().unwrap().remove(key);
    params
}

/// An answer becomes a stream after so long.
fn quiet(ms: u64) -> Limits {
    Limits { mcp_quiet_ms: ms, ..Limits::default() }
}

/// Status and error number of an answer to a stateless request, which carries its id.
async fn refused(house: &House, request: Request<Body>) -> (u16, i64) {
    let answer = house.send(request).await;
    assert_eq!(answer.header("content-type"), "application/json", "{answer:?}");
    assert_eq!(answer.body["id"], 7, "{answer:?}");
    (answer.status, answer.body["error"]["code"].as_i64().unwrap_or_default())
}

#[tokio::test]
async fn a_stateless_request_says_itself_who_sends_it() {
    let house = House::demo().await;
    let answer = ask(&house, "server/discover", json!({})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let result = &answer.body["result"];
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["supportedVersions"], json!([MODERN]));
    assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
    let extensions = &result["capabilities"]["extensions"];
    assert!(extensions["io.modelcontextprotocol/tasks"].is_object());
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "waypost");
    assert!(answer.header("mcp-session-id").is_empty());

    let discover = |params: Value, version: &str| {
        let headers = [("mcp-protocol-version", version), ("mcp-method", "server/discover")];
        posted(&headers, &asked(7, "server/discover", params))
    };
    for params in [json!({}), without(VERSION), without(CAPABILITIES)] {
        assert_eq!(refused(&house, discover(params, MODERN)).await, (400, -32602));
    }
    let mut future = stateless(json!({}));
    future["_meta"][VERSION] = json!("v999.0.0");
    assert_eq!(refused(&house, discover(future.clone(), MODERN)).await, (400, -32020));
    let answer = house.send(discover(future, "v999.0.0")).await;
    assert_eq!((answer.status, &answer.body["error"]["code"]), (400, &json!(-32022)));
    let data = json!({"supported": [MODERN], "requested": "v999.0.0"});
    assert_eq!(answer.body["error"]["data"], data);
    for method in
        ["initialize", "ping", "logging/setLevel", "resources/subscribe", "tasks/list", "a/b"]
    {
        let headers = [("mcp-protocol-version", MODERN), ("mcp-method", method)];
        let request = posted(&headers, &asked(7, method, stateless(json!({}))));
        assert_eq!(refused(&house, request).await, (404, -32601), "{method}");
    }
}

#[tokio::test]
async fn headers_and_body_must_say_the_same() {
    let (house, _) = furnished("").await;
    let call = |more: &[(&str, &str)], arguments: Value| {
        let mut headers = vec![("mcp-protocol-version", MODERN)];
        headers.extend(more);
        let params = stateless(json!({"name": "it_routed", "arguments": arguments}));
        posted(&headers, &asked(7, "tools/call", params))
    };
    let region = json!({"region": "north"});
    let method = ("mcp-method", "tools/call");
    let name = ("mcp-name", "it_routed");
    let param = ("mcp-param-region", "north");
    let good = house.send(call(&[method, name, param], region.clone())).await;
    assert_eq!(good.status, 200, "{good:?}");
    assert_ne!(good.body["result"]["isError"], true, "{good:?}");
    for wrong in [
        vec![name, param],
        vec![("mcp-method", "tools/list"), name, param],
        vec![method, param],
        vec![method, ("mcp-name", "it_slow"), param],
        vec![method, name],
        vec![method, name, ("mcp-param-region", "south")],
        vec![method, name, ("mcp-param-region", "=?base64?!?=")],
    ] {
        let request = call(&wrong, region.clone());
        assert_eq!(refused(&house, request).await, (400, -32020), "{wrong:?}");
    }
    let bare = posted(&[], &asked(7, "tools/list", stateless(json!({}))));
    assert_eq!(refused(&house, bare).await, (400, -32020));

    let (lenient, _) = furnished("[mcp]\nlenient = true\n").await;
    let answer = lenient.send(call(&[], region)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_ne!(answer.body["result"]["isError"], true, "{answer:?}");
    let bare = lenient.send(posted(&[], &asked(7, "server/discover", json!({})))).await;
    assert_eq!(bare.status, 200, "{bare:?}");
}

#[tokio::test]
async fn an_answer_is_a_stream_once_something_is_told() {
    let (house, _) = furnished("").await;
    let quiet = ask(&house, "tools/call", json!({"name": "it_tells", "arguments": {}})).await;
    assert_eq!(quiet.header("content-type"), "application/json");
    assert_eq!(quiet.body["result"]["resultType"], "complete");

    let progress = json!({"name": "it_tells", "arguments": {}, "_meta": {"progressToken": "t"}});
    let mut events = Events::of(house.open(modern("tools/call", progress.clone())).await);
    let events = events.rest().await;
    let told = "notifications/progress";
    assert_eq!(methods(&events), [told, told, "result"]);
    assert_eq!(
        events[1].data["params"],
        json!({"progressToken": "t", "progress": 2.0, "total": 2.0})
    );
    assert_eq!(events[2].data["id"], 1);
    assert!(events.iter().all(|event| event.id.is_empty()), "nothing to come back to");

    let log = json!({"name": "it_tells", "arguments": {},
        "_meta": {"io.modelcontextprotocol/logLevel": "info"}});
    let mut events = Events::of(house.open(modern("tools/call", log)).await);
    assert_eq!(methods(&events.rest().await), ["notifications/message", "result"]);

    let mut json_only = modern("tools/call", progress.clone());
    json_only.headers_mut().insert("accept", "application/json".parse().unwrap());
    let answer = house.send(json_only).await;
    assert_eq!(answer.header("content-type"), "application/json");
    let mut events_only = modern("tools/call", json!({"name": "it_tells", "arguments": {}}));
    events_only.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
    let mut events = Events::of(house.open(events_only).await);
    assert_eq!(methods(&events.rest().await), ["result"]);
    let mut neither = modern("tools/call", progress);
    neither.headers_mut().insert("accept", "text/html".parse().unwrap());
    assert_eq!(house.send(neither).await.status, 406);
}

#[tokio::test]
async fn closing_a_stateless_stream_cancels_the_call() {
    let (house, strings) = furnished_within(quiet(10)).await;
    let slow = || modern("tools/call", json!({"name": "it_slow", "arguments": {}}));
    // A long silence makes a stream, too, so that the connection is seen to live.
    let response = timeout(LIMIT, house.open(slow())).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    timeout(LIMIT, strings.began.notified()).await.unwrap();
    drop(response);
    strings.cut().await;
    let mut events = Events::of(timeout(LIMIT, house.open(slow())).await.unwrap());
    strings.release.notify_one();
    assert_eq!(methods(&events.rest().await), ["result"]);
}

#[tokio::test]
async fn a_session_begins_with_initialize_and_ends_for_good() {
    let house = House::demo().await;
    let client = Client::hello(&house, "2025-06-18", json!({})).await;
    let noted =
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    assert_eq!((noted.status, noted.text.as_str()), (202, ""));
    let ping = client.ask("ping", json!({})).await;
    assert_eq!((ping.status, &ping.body), (200, &json!({"jsonrpc": "2.0", "id": 1, "result": {}})));
    assert!(client.ask("tools/list", json!({})).await.body["result"]["tools"].is_array());
    let unknown = client.ask("server/nope", json!({})).await;
    assert_eq!((unknown.status, &unknown.body["error"]["code"]), (200, &json!(-32601)));

    let list = asked(3, "tools/list", json!({}));
    let missing = house.send(posted(&[], &list)).await;
    assert_eq!((missing.status, &missing.body["id"]), (400, &json!(3)));
    let stranger = "0".repeat(32);
    assert_eq!(
        house.send(posted(&[("mcp-session-id", stranger.as_str())], &list)).await.status,
        404
    );
    let session = ("mcp-session-id", client.session.as_str());
    let odd = [session, ("mcp-protocol-version", "2023-01-01")];
    assert_eq!(house.send(posted(&odd, &list)).await.status, 400);
    let known = [session, ("mcp-protocol-version", "2025-06-18")];
    assert_eq!(house.send(posted(&known, &list)).await.status, 200);

    assert_eq!(client.end().await.status, 204);
    assert_eq!(client.end().await.status, 404);
    assert_eq!(client.send(&list).await.status, 404);
    assert_eq!(house.open(client.get(None)).await.status(), 404);
    for (asked, agreed) in [("2024-11-05", "2025-11-25"), (MODERN, "2025-11-25")] {
        let answer = begin(&house, asked, json!({})).await;
        assert_eq!(answer.body["result"]["protocolVersion"], agreed);
        assert!(answer.body["result"]["resultType"].is_null());
        assert!(answer.body["result"]["capabilities"]["extensions"].is_null());
    }
}

#[tokio::test]
async fn a_lost_stream_is_resumed_after_its_last_event() {
    let (house, strings) = furnished_within(quiet(10)).await;
    let client = Client::hello(&house, "2025-11-25", json!({})).await;
    let params = json!({"name": "it_tells", "arguments": {}, "_meta": {"progressToken": 5}});
    let call = client.request(&asked("a", "tools/call", params));
    let events = Events::of(house.open(call).await).rest().await;
    let told = "notifications/progress";
    assert_eq!(methods(&events), ["-", told, told, "result"]);
    for seen in 0..events.len() - 1 {
        let again = house.open(client.get(Some(&events[seen].id))).await;
        let again = Events::of(again).rest().await;
        assert_eq!(&again[1..], &events[seen + 1..], "after {}", events[seen].id);
    }
    for odd in ["x", "99-1", "1"] {
        let answer = house.send(client.get(Some(odd))).await;
        assert_eq!(answer.status, 400, "{odd}");
    }

    // In a session, going away is not cancelling: the answer waits for who comes back.
    let call = client.request(&asked("b", "tools/call", json!({"name": "it_slow"})));
    let mut lost = Events::of(timeout(LIMIT, house.open(call)).await.unwrap());
    let primer = lost.next().await.unwrap();
    timeout(LIMIT, strings.began.notified()).await.unwrap();
    drop(lost);
    strings.release.notify_one();
    let mut again = Events::of(house.open(client.get(Some(&primer.id))).await);
    let again = again.rest().await;
    assert_eq!(methods(&again), ["-", "result"]);
    assert_eq!(again[1].data["id"], "b");
}

#[tokio::test]
async fn a_session_cancels_by_saying_so() {
    // However long the cancelling takes, the answer does not become a stream.
    let (house, strings) = furnished_within(quiet(600_000)).await;
    let client = Client::hello(&house, "2025-06-18", json!({})).await;
    let call =
        whole(&house, client.request(&asked("slow", "tools/call", json!({"name": "it_slow"}))));
    let cancel = async {
        timeout(LIMIT, strings.began.notified()).await.unwrap();
        let again = client.send(&asked("slow", "ping", json!({}))).await;
        assert_eq!((again.status, &again.body["error"]["code"]), (400, &json!(-32600)));
        let params = json!({"requestId": "slow"});
        let noted =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        assert_eq!(client.send(&noted).await.status, 202);
    };
    let (answer, ()) = futures::future::join(call, cancel).await;
    assert_eq!(answer.body["error"]["code"], -32800, "{answer:?}");
    strings.cut().await;
    assert_eq!(client.ask("ping", json!({})).await.status, 200, "the session goes on");
}

#[tokio::test]
async fn a_sessions_client_is_asked_on_the_stream_of_its_call() {
    let (house, _) = furnished("").await;
    let client = Client::hello(&house, "2025-11-25", json!({"roots": {}})).await;
    let call = client.request(&asked(1, "tools/call", json!({"name": "it_roots"})));
    let mut events = Events::of(timeout(LIMIT, house.open(call)).await.unwrap());
    assert_eq!(events.next().await.unwrap().data, Value::Null);
    let question = events.next().await.unwrap().data;
    assert_eq!(question["method"], "roots/list");
    let roots = json!({"roots": [{"uri": "file:///work"}]});
    let late = json!({"jsonrpc": "2.0", "id": 9_999, "result": roots.clone()});
    assert_eq!(client.send(&late).await.status, 202, "nobody asked, and nobody minds");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": roots});
    assert_eq!(client.send(&answer).await.status, 202);
    let result = events.next().await.unwrap().data["result"].clone();
    assert!(result.to_string().contains("file:///work"), "{result}");
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn a_sessions_stream_has_notifications() {
    let (house, strings) = furnished("").await;
    let client = Client::hello(&house, "2025-06-18", json!({})).await;
    let unknown = client.ask("resources/subscribe", json!({"uri": "it://other"})).await;
    assert_eq!(unknown.body["error"]["code"], -32002);
    let watched = client.ask("resources/subscribe", json!({"uri": WATCHED})).await;
    assert_eq!(watched.body["result"], json!({}));
    let mut first = Events::of(house.open(client.get(None)).await);
    strings.changes.send_modify(|count| *count += 1);
    let event = first.next().await.unwrap();
    assert_eq!(event.data["method"], "notifications/resources/updated");
    assert_eq!(event.data["params"], json!({"uri": WATCHED}));
    // Who comes back takes the stream over, and the old connection is let go.
    let mut second = Events::of(house.open(client.get(Some(&event.id))).await);
    assert_eq!(first.next().await, None);
    house.put("/api/v1/plans/it%2Fapproval", &[], approval()).await;
    let mut changed = Vec::new();
    for _ in 0..3 {
        changed.push(second.next().await.unwrap());
    }
    let list = |kind: &str| format!("notifications/{kind}/list_changed");
    assert_eq!(methods(&changed), [list("tools"), list("prompts"), list("resources")]);
    let forgotten = client.ask("resources/unsubscribe", json!({"uri": WATCHED})).await;
    assert_eq!(forgotten.body["result"], json!({}));
    assert_eq!(client.end().await.status, 204);
    assert_eq!(second.next().await, None, "the session's end is the stream's");
}

/// Calls a tool that wants a page, opens it, and gives the page's id.
async fn opened(client: &Client<'_>, tool: &str) -> Value {
    let call = client.request(&asked(tool, "tools/call", json!({"name": tool})));
    let mut events = Events::of(timeout(LIMIT, client.house.open(call)).await.unwrap());
    assert_eq!(events.next().await.unwrap().data, Value::Null);
    let question = events.next().await.unwrap().data;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    assert_eq!(question["params"]["mode"], "url", "{question}");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    assert_eq!(client.send(&answer).await.status, 202);
    let answer = events.next().await.unwrap().data;
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    question["params"]["elicitationId"].clone()
}

#[tokio::test]
async fn only_the_client_that_got_a_page_hears_that_it_was_opened() {
    const HOST: &str = "the host program";
    let (house, _) = furnished("").await;
    let can = json!({"elicitation": {"url": {}}});
    let client = Client::hello(&house, "2025-11-25", can.clone()).await;
    let other = Client::hello(&house, "2025-11-25", can).await;
    let ids = [opened(&client, "it_page").await, opened(&client, "it_recorded_page").await];
    assert!(ids[0].as_str().is_some_and(|id| id.len() == 32), "{ids:?}");
    assert!(ids[1].as_str().is_some_and(|id| id.starts_with("ask_")), "{ids:?}");
    let mut news = Events::of(house.open(client.get(None)).await);
    let mut others = Events::of(house.open(other.get(None)).await);
    for (source, page) in [("another server", PAGE), (HOST, "page-key"), (HOST, PAGE), (HOST, PAGE)]
    {
        house.engine.tools().page_opened(source, page);
    }
    // Comes after all that was told.
    house.put("/api/v1/plans/it%2Fapproval", &[], approval()).await;
    let list = "notifications/tools/list_changed";
    for (events, ids) in [(&mut news, &ids[..]), (&mut others, &ids[..0])] {
        assert_eq!(events.next().await.unwrap().data, Value::Null);
        for id in ids {
            let told = events.next().await.unwrap().data;
            assert_eq!(told["method"], "notifications/elicitation/complete");
            assert_eq!(told["params"], json!({"elicitationId": id}));
        }
        assert_eq!(events.next().await.unwrap().data["method"], list);
    }
}

#[tokio::test]
async fn a_listener_gets_the_notifications_it_asked_for() {
    let (house, strings) = furnished("").await;
    let wanted = json!({"notifications": {"promptsListChanged": true,
        "resourceSubscriptions": [FAILING, WATCHED, "it://other"]}});
    let mut events = Events::of(house.open(modern("subscriptions/listen", wanted.clone())).await);
    let tag = json!({"io.modelcontextprotocol/subscriptionId": 1});
    let first = events.next().await.unwrap().data;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["_meta"], tag);
    let kept = json!({"promptsListChanged": true, "resourceSubscriptions": [WATCHED]});
    assert_eq!(first["params"]["notifications"], kept);
    strings.changes.send_modify(|count| *count += 1);
    let updated = events.next().await.unwrap().data;
    assert_eq!(updated["params"], json!({"uri": WATCHED, "_meta": tag}));
    house.put("/api/v1/plans/it%2Fapproval", &[], approval()).await;
    let changed = events.next().await.unwrap().data;
    assert_eq!(changed["method"], "notifications/prompts/list_changed");
    assert_eq!(changed["params"]["_meta"], tag);

    let mut deaf = modern("subscriptions/listen", wanted);
    deaf.headers_mut().insert("accept", "application/json".parse().unwrap());
    assert_eq!(house.send(deaf).await.status, 406);
    let odd = ask(&house, "subscriptions/listen", json!({})).await;
    assert_eq!((odd.status, &odd.body["error"]["code"]), (200, &json!(-32602)));
}

#[tokio::test]
async fn no_upstream_shadows_resources_of_the_server_or_of_another() {
    let (house, _) = furnished("").await;
    let read = async |uri: &str| {
        let answer = ask(&house, "resources/read", json!({"uri": uri})).await;
        answer.body["result"]["contents"][0]["text"].as_str().map(str::to_owned)
    };
    let plan = read(OUR_PLAN).await.unwrap();
    assert!(plan.contains("interaction::greeting"), "{plan}");
    assert_eq!(read(LISTED).await.as_deref(), Some("listed"));
    assert_eq!(read(WATCHED).await.as_deref(), Some("x"));
    // What we do not have may be another one's.
    assert_eq!(read(NO_PLAN).await.as_deref(), Some(CLAIMED));
    assert_eq!(read("it://other").await, None);
}

#[tokio::test]
async fn sessions_and_streams_are_bounded() {
    let (house, _) = furnished("[limits]\nmcp_sessions_max = 2\nstreams_max = 3\n").await;
    let one = Client::hello(&house, "2025-06-18", json!({})).await;
    let two = Client::hello(&house, "2025-06-18", json!({})).await;
    assert_eq!(one.ask("ping", json!({})).await.status, 200);
    let _busy = Events::of(house.open(two.get(None)).await);
    // The one that nobody uses makes room, in any order of arrival.
    let three = Client::hello(&house, "2025-06-18", json!({})).await;
    assert_eq!(one.ask("ping", json!({})).await.status, 404);
    let _open = Events::of(house.open(three.get(None)).await);
    let full = begin(&house, "2025-06-18", json!({})).await;
    assert_eq!((full.status, full.header("retry-after")), (429, "1"));
    assert_eq!(full.body["id"], 0);
    let listen = || modern("subscriptions/listen", json!({"notifications": {}}));
    let _last = Events::of(house.open(listen()).await);
    assert_eq!(house.send(listen()).await.status, 429);
    assert_eq!(house.send(two.get(None)).await.status, 429);
    // Where there is no room for a stream, the answer still comes.
    let progress = json!({"name": "it_tells", "arguments": {}, "_meta": {"progressToken": 1}});
    assert_eq!(ask(&house, "tools/call", progress).await.status, 200);
}

#[tokio::test]
async fn an_idle_session_is_over() {
    let limits = Limits { mcp_session_idle_ms: 1, ..Limits::default() };
    let (house, _) = furnished_within(limits).await;
    let client = Client::hello(&house, "2025-06-18", json!({})).await;
    let over = async {
        while client.ask("ping", json!({})).await.status != 404 {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    };
    timeout(LIMIT, over).await.unwrap();
}

#[tokio::test]
async fn broken_messages_are_told_apart() {
    let (house, _) = furnished("[limits]\nbody_bytes_max = 2000\nbody_depth_max = 8\n").await;
    let deep = format!("{{\"jsonrpc\":\"2.0\",\"params\":{}{}}}", "[".repeat(8), "]".repeat(8));
    let large = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{}\"}}", "x".repeat(2000));
    for (body, status, code) in [
        ("", 400, -32700),
        ("{\"jsonrpc\": ", 400, -32700),
        ("7", 400, -32600),
        ("{}", 400, -32600),
        ("[]", 400, -32600),
        ("[1", 400, -32700),
        (deep.as_str(), 400, -32600),
        (large.as_str(), 413, -32600),
    ] {
        let answer = house.send(sent(Method::POST, &[], Body::from(body.to_owned()))).await;
        let told = (answer.status, answer.body["error"]["code"].as_i64().unwrap_or_default());
        assert_eq!(told, (status, code), "{body}");
        assert!(answer.body["id"].is_null(), "{body}");
    }
    let list = posted(&[("mcp-protocol-version", MODERN)], &asked(7, "tools/list", json!([])));
    assert_eq!(refused(&house, list).await, (400, -32602));
    let alone = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    let answer = house.send(posted(&[("mcp-protocol-version", MODERN)], &alone)).await;
    assert_eq!(answer.status, 400, "without a session nothing was asked");
}

#[tokio::test]
async fn only_the_oldest_version_has_batches() {
    let house = House::demo().await;
    let batch = json!([
        asked(1, "ping", json!({})),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        asked("b", "nope", json!({})),
        {"jsonrpc": "1.0", "id": 3, "method": "ping"},
    ]);
    let old = Client::hello(&house, "2025-03-26", json!({})).await;
    let answer = old.send(&batch).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answers = answer.body.as_array().unwrap();
    assert_eq!(answers[0], json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    let codes: Vec<&Value> = answers[1..].iter().map(|answer| &answer["error"]["code"]).collect();
    assert_eq!(codes, [&json!(-32601), &json!(-32600)]);
    let noted = json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]);
    assert_eq!(old.send(&noted).await.status, 202);
    let new = Client::hello(&house, "2025-06-18", json!({})).await;
    let refused = new.send(&batch).await;
    assert_eq!((refused.status, &refused.body["error"]["code"]), (400, &json!(-32600)));
}

#[tokio::test]
async fn strangers_are_refused_and_own_pages_are_not() {
    let house = House::demo().await;
    let foreign = [("origin", "http://evil.test")];
    let answer = house.send(posted(&foreign, &asked(1, "ping", json!({})))).await;
    assert_eq!(answer.status, 403);
    assert_eq!(answer.body["jsonrpc"], "2.0");
    assert!(answer.body["id"].is_null() && answer.body["error"]["code"].is_i64());
    assert_eq!(answer.body["error"]["data"]["code"], "origin_not_allowed");
    assert!(answer.header("access-control-allow-origin").is_empty());

    let own = "http://localhost:8420";
    let wanted = "content-type, mcp-method, mcp-param-region";
    let headers = [("origin", own), ("access-control-request-headers", wanted)];
    let preflight = house.send(sent(Method::OPTIONS, &headers, Body::empty())).await;
    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.header("access-control-allow-origin"), own);
    assert_eq!(preflight.header("access-control-allow-headers"), wanted);
    assert!(preflight.header("access-control-allow-methods").contains("DELETE"));
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}});
    let begun = house.send(posted(&[("origin", own)], &asked(1, "initialize", hello))).await;
    assert!(begun.header("access-control-expose-headers").contains("Mcp-Session-Id"));

    let put = house.send(request(Method::PUT, "/mcp", Body::empty())).await;
    assert_eq!((put.status, put.header("allow")), (405, "POST, GET, DELETE, OPTIONS"));
    let deaf = house.send(sent(Method::GET, &[("accept", "application/json")], Body::empty()));
    assert_eq!(deaf.await.status, 405);
    let headers = [("mcp-protocol-version", MODERN), ("accept", "text/event-stream")];
    let modern_get = house.send(sent(Method::GET, &headers, Body::empty())).await;
    assert_eq!(modern_get.status, 405);
}
