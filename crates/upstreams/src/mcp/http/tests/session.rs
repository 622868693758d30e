//! The versions with a handshake: sessions, news, streams that are taken up again.

use super::super::super::line::Line;
use super::stage::{
    Arrival, Peer, TIMEOUT_MS, TestClock, all, asked, line, request, streaming, tell,
};
use futures::future::{Either, select};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const NO_STREAM: &str = "405 Method Not Allowed";
/// Longer than anything takes here on a busy machine.
const LONG: Duration = Duration::from_secs(120);

/// Shakes hands as the client does; gives the request that opens the stream for news.
async fn greeted(peer: &mut Peer, line: &Arc<dyn Line>) -> Arrival {
    let replies = asked(line, request(1, "initialize", json!({})));
    let arrival = peer.next().await;
    assert_eq!(arrival.header("mcp-protocol-version"), None);
    assert_eq!(arrival.header("mcp-session-id"), None);
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}}).to_string();
    let head = "200 OK\r\ncontent-type: application/json\r\nMcp-Session-Id: s-1";
    arrival.answer(head, &answer).await;
    assert_eq!(replies.await.unwrap(), ["result {}"]);
    line.agreed("2025-11-25");
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    let (sent, ()) = tokio::join!(line.send(ready), async {
        let arrival = peer.next().await;
        assert_in_session(&arrival, "POST");
        arrival.answer("202 Accepted", "").await;
    });
    sent.unwrap();
    let opening = peer.next().await;
    assert_in_session(&opening, "GET");
    assert_eq!(opening.header("accept"), Some("text/event-stream"));
    opening
}

fn assert_in_session(arrival: &Arrival, method: &str) {
    assert_eq!(arrival.line(), format!("{method} /mcp"));
    assert_eq!(arrival.header("mcp-session-id"), Some("s-1"));
    assert_eq!(arrival.header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(arrival.header("mcp-method"), None);
}

fn told(method: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": method})
}

#[tokio::test]
async fn the_session_id_is_sent_on_every_request_and_the_session_ended() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    assert!(!line.is_apart(), "there is no session yet");
    greeted(&mut peer, &line).await.answer(NO_STREAM, "").await;
    assert!(line.is_apart());
    let replies = asked(&line, request(2, "tools/list", json!({})));
    let arrival = peer.next().await;
    assert_in_session(&arrival, "POST");
    arrival.result(&json!({})).await;
    assert_eq!(replies.await.unwrap(), ["result {}"]);
    tokio::join!(line.close(), async {
        let arrival = peer.next().await;
        assert_in_session(&arrival, "DELETE");
        arrival.answer("204 No Content", "").await;
    });
}

#[tokio::test]
async fn the_notification_stream_is_resumed() {
    let mut peer = Peer::start().await;
    let clock = Arc::new(TestClock::default());
    let line = line(&peer.url(), &clock);
    let mut server_messages = line.server_messages().unwrap();
    assert!(line.server_messages().is_none());
    let opening = greeted(&mut peer, &line).await;
    opening.begin_stream().await;
    opening.chunk(&format!("id: 7\nretry: 250\ndata: {}\n\n", told("notifications/a"))).await;
    assert_eq!(tell(&server_messages.recv().await.unwrap()), "tells notifications/a");
    opening.end_stream().await;
    clock.pass(250).await;
    let again = peer.next().await;
    assert_in_session(&again, "GET");
    assert_eq!(again.header("last-event-id"), Some("7"));
    again.begin_stream().await;
    again.event(&json!({"jsonrpc": "2.0", "id": 3, "method": "ping"})).await;
    assert_eq!(tell(&server_messages.recv().await.unwrap()), "asks 3 ping");
    // A place that is not kept any more is forgotten; what fails for now is tried again later.
    again.end_stream().await;
    clock.pass(250).await;
    peer.next().await.answer("400 Bad Request", "").await;
    clock.pass(1_000).await;
    let anew = peer.next().await;
    assert_eq!(anew.header("last-event-id"), None);
    anew.answer("503 Service Unavailable", "").await;
    clock.pass(250).await;
    peer.next().await.answer("404 Not Found", "").await;
    assert_eq!(tell(&server_messages.recv().await.unwrap()), "broken Failed Gone");
}

/// A server that asks on the stream for news what belongs to a call loses the question where there
/// is no such stream yet.
#[tokio::test]
async fn the_first_call_waits_for_the_notification_stream() {
    for head in [NO_STREAM, "409 Conflict", "200 OK\r\ncontent-type: text/event-stream"] {
        let mut peer = Peer::start().await;
        let line = line(&peer.url(), &Arc::default());
        let opening = greeted(&mut peer, &line).await;
        let call = asked(&line, request(2, "tools/call", json!({})));
        // Lists ask nothing, and wait for nothing: they overtake the call.
        for id in 3..8 {
            let listing = asked(&line, request(id, "tools/list", json!({})));
            let arrival = peer.next().await;
            assert_eq!(arrival.body["method"], "tools/list", "before `{head}`");
            arrival.result(&json!({})).await;
            assert_eq!(listing.await.unwrap(), ["result {}"]);
        }
        opening.answer(head, "").await;
        let arrival = peer.next().await;
        assert_eq!(arrival.body["method"], "tools/call", "after `{head}`");
        arrival.result(&json!({})).await;
        assert_eq!(call.await.unwrap(), ["result {}"]);
    }
}

#[tokio::test]
async fn waiting_for_the_notification_stream_is_bounded() {
    let mut peer = Peer::start().await;
    let clock = Arc::new(TestClock::default());
    let line = line(&peer.url(), &clock);
    let _unanswered = greeted(&mut peer, &line).await;
    let first = asked(&line, request(2, "tools/call", json!({})));
    clock.pass(2_000).await;
    let arrival = peer.next().await;
    assert_eq!(arrival.body["id"], 2);
    arrival.result(&json!({})).await;
    assert_eq!(first.await.unwrap(), ["result {}"]);
    // Later ones do not wait again.
    let second = asked(&line, request(3, "tools/call", json!({})));
    peer.next().await.result(&json!({})).await;
    assert_eq!(second.await.unwrap(), ["result {}"]);
}

#[tokio::test]
async fn a_clock_that_is_set_back_does_not_prolong_waiting_for_the_stream() {
    let mut peer = Peer::start().await;
    let clock = Arc::new(TestClock::default());
    let line = line(&peer.url(), &clock);
    let _unanswered = greeted(&mut peer, &line).await;
    clock.set_back(60 * 60 * 1_000);
    let call = asked(&line, request(2, "tools/call", json!({})));
    let waited = tokio::time::timeout(LONG, clock.pass(2_000)).await;
    assert!(waited.is_ok(), "the call does not wait for two seconds");
    peer.next().await.result(&json!({})).await;
    assert_eq!(call.await.unwrap(), ["result {}"]);
}

#[tokio::test]
async fn a_call_that_waits_for_a_stream_ends_with_the_line() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    let _unanswered = greeted(&mut peer, &line).await;
    let call = asked(&line, request(2, "tools/call", json!({})));
    tokio::join!(line.close(), async {
        let arrival = peer.next().await;
        assert_in_session(&arrival, "DELETE");
        arrival.answer("204 No Content", "").await;
    });
    // Nobody moves the clock.
    let ended = tokio::time::timeout(LONG, call).await.expect("the call waits on");
    assert_eq!(ended.unwrap(), ["failed NotSent Closed"]);
}

#[tokio::test]
async fn a_stream_refused_as_already_open_is_retried() {
    let mut peer = Peer::start().await;
    let clock = Arc::new(TestClock::default());
    let line = line(&peer.url(), &clock);
    let mut server_messages = line.server_messages().unwrap();
    greeted(&mut peer, &line).await.answer("409 Conflict", "").await;
    clock.pass(250).await;
    let again = peer.next().await;
    assert_in_session(&again, "GET");
    again.begin_stream().await;
    again.event(&told("notifications/a")).await;
    assert_eq!(tell(&server_messages.recv().await.unwrap()), "tells notifications/a");
}

#[tokio::test]
async fn a_stream_that_ends_at_once_is_reopened_with_back_off() {
    let mut peer = Peer::start().await;
    let clock = Arc::new(TestClock::default());
    let line = line(&peer.url(), &clock);
    let mut opening = greeted(&mut peer, &line).await;
    for wait_ms in [1_000, 1_000, 1_000, 2_000] {
        opening.begin_stream().await;
        opening.end_stream().await;
        clock.pass(wait_ms).await;
        opening = peer.next().await;
        assert_in_session(&opening, "GET");
    }
}

#[tokio::test]
async fn a_lost_stream_is_resumed_after_its_last_event() {
    let mut peer = Peer::start().await;
    let clock = Arc::new(TestClock::default());
    let line = line(&peer.url(), &clock);
    greeted(&mut peer, &line).await.answer(NO_STREAM, "").await;
    let replies = asked(&line, request(2, "tools/call", json!({})));
    let arrival = peer.next().await;
    arrival.begin_stream().await;
    arrival.chunk("id: event-1\nretry: 500\ndata: \n\n").await;
    arrival.event(&told("notifications/message")).await;
    arrival.end_stream().await;
    clock.pass(500).await;
    let again = peer.next().await;
    assert_in_session(&again, "GET");
    assert_eq!(again.header("last-event-id"), Some("event-1"));
    again.answer("502 Bad Gateway", "").await;
    clock.pass(500).await;
    let again = peer.next().await;
    again.begin_stream().await;
    again.event(&json!({"jsonrpc": "2.0", "id": 2, "result": {"late": true}})).await;
    let expected = ["tells notifications/message", "result {\"late\":true}"];
    assert_eq!(replies.await.unwrap(), expected);
}

#[tokio::test]
async fn a_lost_stream_that_cannot_be_resumed_has_an_unknown_outcome() {
    let mut peer = Peer::start().await;
    let clock = Arc::new(TestClock::default());
    let line = line(&peer.url(), &clock);
    greeted(&mut peer, &line).await.answer(NO_STREAM, "").await;
    let replies = asked(&line, request(2, "tools/call", json!({})));
    let arrival = peer.next().await;
    arrival.begin_stream().await;
    arrival.chunk("id: 1\nretry: 500\n\n").await;
    arrival.end_stream().await;
    clock.pass(500).await;
    peer.next().await.answer(NO_STREAM, "").await;
    assert_eq!(replies.await.unwrap(), ["broken Unknown Refused(405)"]);
    assert_eq!(peer.next().await.body["method"], "notifications/cancelled");
}

#[tokio::test]
async fn an_answer_on_the_general_stream_finds_its_request() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    let general = greeted(&mut peer, &line).await;
    general.begin_stream().await;
    let replies = asked(&line, request(2, "tools/call", json!({})));
    let arrival = peer.next().await;
    arrival.begin_stream().await;
    arrival.chunk("id: 1\nretry: 500\n\n").await;
    arrival.event(&told("notifications/message")).await;
    arrival.end_stream().await;
    // Nothing tells the test when the request waits; the answer is repeated until it does.
    let answering = async {
        for _ in 0..100_000 {
            general.event(&json!({"jsonrpc": "2.0", "id": 2, "result": {}})).await;
            tokio::task::yield_now().await;
        }
    };
    let answered = select(replies, Box::pin(answering)).await;
    let Either::Left((told, _)) = answered else { panic!("no answer") };
    assert_eq!(told.unwrap().last().unwrap(), "result {}");
}

#[tokio::test]
async fn dropping_a_call_cancels_it_with_a_message() {
    let mut peer = Peer::start().await;
    let clock = Arc::new(TestClock::default());
    let line = line(&peer.url(), &clock);
    greeted(&mut peer, &line).await.answer(NO_STREAM, "").await;
    let asking = asked(&line, request(2, "tools/call", json!({})));
    let _call = peer.next().await;
    asking.abort();
    let cancelled = peer.next().await;
    assert_in_session(&cancelled, "POST");
    assert_eq!(cancelled.body["method"], "notifications/cancelled");
    assert_eq!(cancelled.body["params"]["requestId"], 2);
    cancelled.answer("202 Accepted", "").await;
    let late = request(3, "tools/call", json!({}));
    let (replies, _call) = streaming(&mut peer, &line, late).await;
    clock.pass(TIMEOUT_MS).await;
    assert_eq!(all(replies).await, ["broken Unknown Timeout"]);
    assert_eq!(peer.next().await.body["params"]["requestId"], 3);
}

#[tokio::test]
async fn batched_messages_are_accepted() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    greeted(&mut peer, &line).await.answer(NO_STREAM, "").await;
    let replies = asked(&line, request(2, "tools/call", json!({})));
    let answer = json!({"jsonrpc": "2.0", "id": 2, "result": {}});
    peer.next().await.json(&json!([answer, told("notifications/a")])).await;
    assert_eq!(replies.await.unwrap(), ["tells notifications/a", "result {}"]);
}

#[tokio::test]
async fn a_lost_session_is_distinguished_from_other_refusals() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    greeted(&mut peer, &line).await.answer(NO_STREAM, "").await;
    let error = |code: i64, message: &str| {
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}})
            .to_string()
    };
    for (head, body, expected) in [
        ("404 Not Found", String::new(), "failed Failed Gone"),
        ("404 Not Found", error(-32001, "Session not found"), "failed Failed Gone"),
        ("400 Bad Request", error(-32000, "No valid session ID provided"), "failed Failed Gone"),
        ("400 Bad Request", error(-32602, "what?"), "error -32602"),
        ("404 Not Found", error(-32601, "no such method"), "error -32601"),
    ] {
        let replies = asked(&line, request(2, "tools/list", json!({})));
        let head = format!("{head}\r\ncontent-type: application/json");
        peer.next().await.answer(&head, &body).await;
        assert_eq!(replies.await.unwrap(), [expected], "{body}");
    }
}
