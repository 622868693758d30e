//! Plain connections: kept for the next request, for a moment, and never used after their end.

use super::super::super::line::Line;
use super::super::HttpLine;
use super::stage::{Arrival, Peer, TestClock, asked, line, parts, request};
use crate::config::Secret;
use outbound::client::IDLE_MAX;
use serde_json::json;
use std::sync::Arc;

/// Asks once, and is answered like this.
async fn answered(peer: &mut Peer, line: &Arc<dyn Line>, more: &str) -> Arrival {
    let replies = asked(line, request(1, "tools/list", json!({})));
    let arrival = peer.next().await;
    let head = format!("200 OK\r\ncontent-type: application/json{more}");
    arrival.answer(&head, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    assert_eq!(replies.await.unwrap(), ["result {}"]);
    arrival
}

#[tokio::test]
async fn one_connection_serves_request_after_request() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    for _ in 0..3 {
        let arrival = answered(&mut peer, &line, "").await;
        assert_eq!(arrival.connection, 0);
        assert_eq!(arrival.header("host"), Some(peer.address.to_string().as_str()));
        assert!(arrival.header("user-agent").unwrap().starts_with("waypost/"));
    }
    // One whose length nobody says is whole when it ends.
    let replies = asked(&line, request(1, "tools/list", json!({})));
    let arrival = peer.next().await;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked";
    arrival.write(&format!("{head}\r\n\r\n")).await;
    arrival.chunk(r#"{"jsonrpc":"2.0","id":1,"#).await;
    arrival.chunk(r#""result":{}}"#).await;
    arrival.end_stream().await;
    assert_eq!(replies.await.unwrap(), ["result {}"]);
    assert_eq!(answered(&mut peer, &line, "").await.connection, 0);
}

#[tokio::test]
async fn requests_at_the_same_time_have_connections_of_their_own() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    let asking = [1, 2].map(|id| asked(&line, request(id, "tools/list", json!({}))));
    let arrivals = [peer.next().await, peer.next().await];
    assert_ne!(arrivals[0].connection, arrivals[1].connection);
    for arrival in &arrivals {
        arrival.result(&json!({"id": arrival.body["id"]})).await;
    }
    for (id, replies) in (1..).zip(asking) {
        assert_eq!(replies.await.unwrap(), [format!("result {{\"id\":{id}}}")]);
    }
}

#[tokio::test]
async fn lines_with_other_credentials_have_connections_of_their_own() {
    let mut peer = Peer::start().await;
    let lines = ["Bearer ada", "Bearer grace"].map(|secret| {
        let headers = vec![("Authorization".to_owned(), Secret::new(secret))];
        let line = HttpLine::new(&peer.url(), headers, None, &parts(&Arc::default())).unwrap();
        (secret, line)
    });
    for _ in 0..2 {
        for (connection, (secret, line)) in lines.iter().enumerate() {
            let arrival = answered(&mut peer, line, "").await;
            assert_eq!(
                (arrival.connection, arrival.header("authorization")),
                (connection, Some(*secret))
            );
        }
    }
}

#[tokio::test]
async fn an_idle_connection_closed_by_the_server_is_not_reused() {
    let mut peer = Peer::start().await;
    let (line, other) = (line(&peer.url(), &Arc::default()), line(&peer.url(), &Arc::default()));
    let first = answered(&mut peer, &line, "").await;
    first.hang_up().await;
    // Its end is heard at the latest with what comes on another one.
    let between = answered(&mut peer, &other, "").await;
    let second = answered(&mut peer, &line, "").await;
    assert_eq!([first, between, second].map(|arrival| arrival.connection), [0, 1, 2]);
}

#[tokio::test]
async fn an_unsolicited_response_does_not_answer_the_next_request() {
    let mut peer = Peer::start().await;
    let (line, other) = (line(&peer.url(), &Arc::default()), line(&peer.url(), &Arc::default()));
    let unasked =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n[]";
    // With an answer.
    let replies = asked(&line, request(1, "tools/list", json!({})));
    let first = peer.next().await;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 36";
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    first.write(&format!("{head}\r\n\r\n{result}{unasked}")).await;
    assert_eq!(replies.await.unwrap(), ["result {}"]);
    let second = answered(&mut peer, &line, "").await;
    // While the connection rests. It is heard at the latest with what comes on another one.
    second.write(unasked).await;
    let between = answered(&mut peer, &other, "").await;
    let third = answered(&mut peer, &line, "").await;
    assert_eq!([first, second, between, third].map(|arrival| arrival.connection), [0, 1, 2, 3]);
}

#[tokio::test]
async fn a_large_request_is_sent_whole_over_the_same_connection() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    let first = answered(&mut peer, &line, "").await;
    let large = "x".repeat(1_000_000);
    let replies = asked(&line, request(1, "tools/call", json!({"large": large})));
    let second = peer.next().await;
    assert_eq!(second.body["params"]["large"], large);
    second.result(&json!({})).await;
    assert_eq!(replies.await.unwrap(), ["result {}"]);
    assert_eq!([first, second].map(|arrival| arrival.connection), [0, 0]);
}

#[tokio::test]
async fn a_connection_that_ends_with_its_answer_is_not_kept() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    let first = answered(&mut peer, &line, "\r\nconnection: close").await;
    let second = answered(&mut peer, &line, "").await;
    assert_ne!(first.connection, second.connection);
}

#[tokio::test]
async fn idle_connections_are_closed_soon() {
    let mut peer = Peer::start().await;
    let clock = Arc::new(TestClock::default());
    let line = line(&peer.url(), &clock);
    let first = answered(&mut peer, &line, "").await;
    clock.pass(IDLE_MAX.as_millis() as u64).await;
    peer.closed(first.connection).await;
    let second = answered(&mut peer, &line, "").await;
    assert_ne!(first.connection, second.connection);
}

#[tokio::test]
async fn a_connection_with_an_unread_answer_is_closed() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    let replies = asked(&line, request(1, "tools/list", json!({})));
    let arrival = peer.next().await;
    let large = "x".repeat(100_000);
    arrival.answer("200 OK\r\ncontent-type: application/json", &large).await;
    assert_eq!(replies.await.unwrap(), ["failed Unknown TooLarge"]);
    peer.closed(arrival.connection).await;
}
