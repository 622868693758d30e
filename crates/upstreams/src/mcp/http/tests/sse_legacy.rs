//! The transport of 2024-11-05: one stream for all answers, and posts beside it.

use super::super::super::line::{Line, PeerError, PeerErrorKind};
use super::super::HttpLine;
use super::stage::{Arrival, Peer, TestClock, asked, parts, request, tell};
use kernel::tool::call::CallProgress;
use serde_json::json;
use std::sync::Arc;

async fn connected(peer: &mut Peer, endpoint: &str) -> (Result<Arc<dyn Line>, PeerError>, Arrival) {
    let url = peer.url();
    let parts = parts(&Arc::new(TestClock::default()));
    tokio::join!(HttpLine::connect_legacy_sse(&url, Vec::new(), None, &parts), async {
        let opening = peer.next().await;
        assert_eq!(opening.line(), "GET /mcp");
        opening.begin_stream().await;
        opening.chunk(&format!("event: endpoint\ndata: {endpoint}\n\n")).await;
        opening
    })
}

#[tokio::test]
async fn answers_and_notifications_come_on_the_sse_stream() {
    let mut peer = Peer::start().await;
    let (line, stream) = connected(&mut peer, "/messages?session=1").await;
    let line = line.unwrap();
    let mut server_messages = line.server_messages().unwrap();
    let replies = asked(&line, request(1, "initialize", json!({})));
    let arrival = peer.next().await;
    assert_eq!(arrival.line(), "POST /messages?session=1");
    assert_eq!(arrival.header("mcp-protocol-version"), None);
    // The answer may come before the post is accepted.
    stream.event(&json!({"jsonrpc": "2.0", "id": 1, "result": {}})).await;
    assert_eq!(replies.await.unwrap(), ["result {}"]);
    arrival.answer("202 Accepted", "Accepted").await;
    stream.event(&json!({"jsonrpc": "2.0", "method": "notifications/a"})).await;
    assert_eq!(tell(&server_messages.recv().await.unwrap()), "tells notifications/a");

    let replies = asked(&line, request(2, "tools/call", json!({})));
    peer.next().await.answer("400 Bad Request", "no").await;
    assert_eq!(replies.await.unwrap(), ["broken Failed Refused(400)"]);

    let replies = asked(&line, request(3, "tools/call", json!({})));
    peer.next().await.answer("202 Accepted", "").await;
    stream.end_stream().await;
    assert_eq!(replies.await.unwrap(), ["broken Unknown Closed"]);
    assert_eq!(tell(&server_messages.recv().await.unwrap()), "broken Unknown Closed");
}

#[tokio::test]
async fn the_advertised_endpoint_must_be_on_the_same_server() {
    let mut peer = Peer::start().await;
    let (line, _stream) = connected(&mut peer, "http://elsewhere.test/messages").await;
    let error = line.err().unwrap();
    assert_eq!((error.how, error.kind), (CallProgress::NotSent, PeerErrorKind::NotMcp));
}
