//! Answers that refuse, and servers that are not there.

use super::super::super::line::{PeerError, PeerErrorKind};
use super::stage::{Peer, asked, line, request};
use kernel::tool::call::CallProgress;
use serde_json::json;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpSocket};

/// The error of a request that is answered like this.
async fn refused(head: &str, body: &str) -> PeerError {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    let asking = line.request(request(1, "tools/list", json!({})));
    let (answered, ()) = tokio::join!(asking, async {
        peer.next().await.answer(head, body).await;
    });
    answered.unwrap_err()
}

fn kind(error: &PeerError) -> (CallProgress, PeerErrorKind) {
    (error.how, error.kind)
}

#[tokio::test]
async fn a_refused_connection_sent_nothing() {
    // It is taken, so that nobody else can listen there, and nobody does.
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/mcp?key=hidden", taken.local_addr().unwrap());
    let line = line(&url, &Arc::default());
    let error = line.request(request(1, "tools/list", json!({}))).await.unwrap_err();
    assert_eq!(kind(&error), (CallProgress::NotSent, PeerErrorKind::Unreachable));
    assert!(!error.message.contains("hidden"), "{}", error.message);
}

#[tokio::test]
async fn a_closed_connection_leaves_an_unknown_outcome() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    for begun in
        ["", "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{"]
    {
        let replies = asked(&line, request(1, "tools/call", json!({})));
        let arrival = peer.next().await;
        arrival.write(begun).await;
        arrival.hang_up().await;
        assert_eq!(replies.await.unwrap(), ["failed Unknown Unreachable"], "{begun}");
    }
}

#[tokio::test]
async fn an_answer_that_is_not_http_fails_its_own_request_and_several_in_a_row_the_line() {
    let broken = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                  transfer-encoding: chunked\r\n\r\nnot a size\r\n";
    let mut peer = Peer::start().await;
    // An address with a user is asked by the client that also does what is encrypted.
    let other = format!("http://ada:lovelace@{}/mcp", peer.address);
    for (url, answers) in [(peer.url(), ["SSH-2.0-x\r\n", broken]), (other, ["SSH-2.0-x\r\n"; 2])] {
        let line = line(&url, &Arc::default());
        for good_after in [1, 2] {
            for answer in answers.into_iter().cycle().take(good_after) {
                let replies = asked(&line, request(1, "tools/call", json!({})));
                let arrival = peer.next().await;
                arrival.write(answer).await;
                arrival.hang_up().await;
                assert_eq!(replies.await.unwrap(), ["failed Unknown Garbled"], "{answer}");
            }
            let replies = asked(&line, request(1, "tools/call", json!({})));
            peer.next().await.result(&json!({})).await;
            assert_eq!(replies.await.unwrap(), ["result {}"]);
        }
        for expected in ["Garbled", "Garbled", "Unreachable"] {
            let replies = asked(&line, request(1, "tools/call", json!({})));
            let arrival = peer.next().await;
            arrival.write("SSH-2.0-x\r\n").await;
            arrival.hang_up().await;
            assert_eq!(replies.await.unwrap(), [format!("failed Unknown {expected}")]);
        }
    }
}

#[tokio::test]
async fn json_rpc_errors_in_http_refusals_are_answers() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    for (status, code) in [
        ("400 Bad Request", -32022),
        ("400 Bad Request", -32020),
        ("404 Not Found", -32601),
        ("500 Internal Server Error", -32603),
    ] {
        let replies = asked(&line, request(1, "server/discover", json!({})));
        let head = format!("{status}\r\ncontent-type: application/json");
        let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no"}});
        peer.next().await.answer(&head, &error.to_string()).await;
        assert_eq!(replies.await.unwrap(), [format!("error {code}")]);
    }
}

#[tokio::test]
async fn an_http_refusal_has_a_hint_and_no_secret() {
    let challenge =
        "401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"a\", error=\"invalid_token\"";
    let error = refused(challenge, "`hush-hush` is not valid").await;
    assert_eq!(kind(&error), (CallProgress::Failed, PeerErrorKind::Unauthorized));
    assert!(error.message.contains("401 Unauthorized: `***` is not valid"), "{}", error.message);
    assert!(error.message.contains("invalid_token"), "{}", error.message);

    let error = refused("429 Too Many Requests\r\nRetry-After: 7", "").await;
    assert_eq!(kind(&error), (CallProgress::Failed, PeerErrorKind::Refused(429)));
    assert_eq!(error.hint.as_deref(), Some("it asks to try again after 7 seconds"));

    let error = refused("500 Internal Server Error", "<html>oh</html>").await;
    assert_eq!(kind(&error), (CallProgress::Failed, PeerErrorKind::Refused(500)));
    assert!(error.message.ends_with("500 Internal Server Error with a page"), "{}", error.message);

    let error = refused("504 Gateway Timeout", "").await;
    assert_eq!(kind(&error), (CallProgress::Unknown, PeerErrorKind::Refused(504)));
}

#[tokio::test]
async fn redirects_to_another_origin_are_refused() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = elsewhere.local_addr().unwrap();
    for status in ["302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let head = format!("{status}\r\nlocation: http://{place}/mcp?code=1");
        let error = refused(&head, "").await;
        assert_eq!(error.how, CallProgress::Failed);
        assert!(error.message.contains(&place.to_string()), "{}", error.message);
        assert!(!error.message.contains("code=1"), "{}", error.message);
    }
    let error = refused("302 Found\r\nlocation: /other", "").await;
    assert_eq!(kind(&error), (CallProgress::Failed, PeerErrorKind::Refused(302)));
}

#[tokio::test]
async fn a_redirect_within_the_server_is_followed_with_body_and_headers() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    let replies = asked(&line, request(1, "tools/list", json!({})));
    let redirect = "308 Permanent Redirect\r\nlocation: /mcp/";
    peer.next().await.answer(redirect, "").await;
    let arrival = peer.next().await;
    assert_eq!(arrival.line(), "POST /mcp/");
    assert_eq!(arrival.header("authorization"), Some("Bearer hush-hush"));
    assert_eq!(arrival.header("mcp-method"), Some("tools/list"));
    assert_eq!(arrival.body["method"], "tools/list");
    arrival.result(&json!({})).await;
    assert_eq!(replies.await.unwrap(), ["result {}"]);
}

#[tokio::test]
async fn redirects_are_bounded() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    let replies = asked(&line, request(1, "tools/list", json!({})));
    for _ in 0..4 {
        peer.next().await.answer("307 Temporary Redirect\r\nlocation: /mcp", "").await;
    }
    assert_eq!(replies.await.unwrap(), ["failed Failed Refused(307)"]);
}
