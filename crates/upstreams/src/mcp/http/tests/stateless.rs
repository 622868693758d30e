//! The stateless version: every request speaks for itself.

use super::stage::{
    BYTES_MAX, Peer, TIMEOUT_MS, TestClock, all, asked, line, request, streaming, tell,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

fn call(id: u64) -> super::super::Outgoing {
    let version = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let mut call = request(id, "tools/call", json!({"name": "wörk", "_meta": version}));
    call.name = Some("wörk".to_owned());
    call.param_headers = vec![("mcp-param-region".to_owned(), "eu".to_owned())];
    call
}

fn progress() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})
}

#[tokio::test]
async fn a_request_mirrors_its_method_in_headers_and_reuses_its_connection() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    const REQUESTS: u64 = 8;
    let mut connections = BTreeSet::new();
    for id in 0..REQUESTS {
        let replies = asked(&line, call(id));
        let arrival = peer.next().await;
        connections.insert(arrival.connection);
        assert_eq!(arrival.line(), "POST /mcp");
        for (name, value) in [
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("authorization", "Bearer hush-hush"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "=?base64?d8O2cms=?="),
            ("mcp-param-region", "eu"),
        ] {
            assert_eq!(arrival.header(name), Some(value), "{name}");
        }
        assert_eq!(arrival.header("mcp-session-id"), None);
        assert_eq!((&arrival.body["id"], &arrival.body["jsonrpc"]), (&json!(id), &json!("2.0")));
        arrival.result(&json!({"n": id})).await;
        assert_eq!(replies.await.unwrap(), [format!("result {{\"n\":{id}}}")]);
    }
    // A connection is free again a moment after its answer was read: not always soon enough.
    assert!((connections.len() as u64) < REQUESTS, "{connections:?}");
}

#[tokio::test]
async fn a_stream_yields_notifications_and_then_the_answer() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    for id in 1..3 {
        let replies = asked(&line, call(id));
        let arrival = peer.next().await;
        arrival.begin_stream().await;
        arrival.chunk(": still here\r\n\r\n").await;
        arrival.event(&progress()).await;
        let other = json!({"jsonrpc": "2.0", "id": 77, "result": {}});
        arrival.event(&other).await;
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"ok": true}}).to_string();
        let (first, second) = answer.split_at(9);
        arrival.chunk(&format!("event: message\r\ndata: {first}")).await;
        arrival.chunk(&format!("{second}\r\n\r\n")).await;
        arrival.end_stream().await;
        let expected = ["tells notifications/progress", "result {\"ok\":true}"];
        assert_eq!(replies.await.unwrap(), expected);
    }
}

#[tokio::test]
async fn dropping_the_replies_closes_the_stream() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    let (mut replies, arrival) = streaming(&mut peer, &line, call(1)).await;
    arrival.event(&progress()).await;
    assert!(replies.recv().await.is_some());
    drop(replies);
    peer.closed(arrival.connection).await;
}

#[tokio::test]
async fn dropping_the_answer_closes_the_connection() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    let asking = asked(&line, call(1));
    let arrival = peer.next().await;
    asking.abort();
    peer.closed(arrival.connection).await;
}

#[tokio::test]
async fn a_stream_that_ends_too_early_has_an_unknown_outcome() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    let replies = asked(&line, call(1));
    let arrival = peer.next().await;
    arrival.begin_stream().await;
    arrival.chunk("id: 1\nretry: 1\n\n").await;
    arrival.end_stream().await;
    assert_eq!(replies.await.unwrap(), ["broken Unknown Unreachable"]);
}

#[tokio::test]
async fn requests_time_out() {
    let mut peer = Peer::start().await;
    let clock = Arc::new(TestClock::default());
    let line = line(&peer.url(), &clock);
    let silent = asked(&line, call(1));
    let arrival = peer.next().await;
    clock.pass(TIMEOUT_MS).await;
    assert_eq!(silent.await.unwrap(), ["failed Unknown Timeout"]);
    peer.closed(arrival.connection).await;
    // What is told meanwhile does not make it longer.
    let (mut chatty, arrival) = streaming(&mut peer, &line, call(2)).await;
    arrival.event(&progress()).await;
    assert_eq!(tell(&chatty.recv().await.unwrap()), "tells notifications/progress");
    clock.pass(TIMEOUT_MS).await;
    assert_eq!(all(chatty).await, ["broken Unknown Timeout"]);
    peer.closed(arrival.connection).await;
}

#[tokio::test]
async fn responses_are_bounded_in_size() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    let large = "x".repeat(BYTES_MAX + 1);
    let announced = asked(&line, call(1));
    let json = "200 OK\r\ncontent-type: application/json";
    peer.next().await.answer(json, &format!("\"{large}\"")).await;
    assert_eq!(announced.await.unwrap(), ["failed Unknown TooLarge"]);

    let endless = asked(&line, call(2));
    let arrival = peer.next().await;
    arrival.write(&format!("HTTP/1.1 {json}\r\ntransfer-encoding: chunked\r\n\r\n")).await;
    arrival.chunk(&large).await;
    assert_eq!(endless.await.unwrap(), ["failed Unknown TooLarge"]);

    let streamed = asked(&line, call(3));
    let arrival = peer.next().await;
    arrival.begin_stream().await;
    arrival.chunk(&format!("data: {large}")).await;
    arrival.chunk(&large).await;
    assert_eq!(streamed.await.unwrap(), ["broken Unknown TooLarge"]);
}

#[tokio::test]
async fn a_response_that_is_not_json_rpc_is_not_mcp() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    let answers = [
        ("200 OK\r\ncontent-type: text/html", "<p>hello</p>"),
        ("200 OK\r\ncontent-type: application/json", "{\"hello\":1}"),
        ("200 OK\r\ncontent-type: application/json", r#"{"jsonrpc":"2.0","id":9,"result":{}}"#),
        ("202 Accepted", ""),
    ];
    for (head, body) in answers {
        let replies = asked(&line, call(1));
        peer.next().await.answer(head, body).await;
        assert_eq!(replies.await.unwrap(), ["failed Unknown NotMcp"], "{body}");
    }
}

#[tokio::test]
async fn closing_a_line_ends_its_active_requests() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    let (replies, arrival) = streaming(&mut peer, &line, call(1)).await;
    line.close().await;
    assert_eq!(all(replies).await, ["broken Unknown Closed"]);
    peer.closed(arrival.connection).await;
    assert_eq!(asked(&line, call(2)).await.unwrap(), ["failed NotSent Closed"]);
}
