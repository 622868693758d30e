//! What a server repeats of the credentials that we sent: nothing that comes in has them, whatever
//! shape it comes in.

use super::super::super::line::Line;
use super::stage::{Arrival, Peer, line, request};
use serde_json::{Value, json};
use std::sync::Arc;

const TOKEN: &str = "hush-hush";

/// All that comes back for a request, as whole as it is.
async fn heard(line: &Arc<dyn Line>) -> String {
    match line.request(request(1, "tools/call", json!({}))).await {
        Ok(mut replies) => {
            let mut heard = Vec::new();
            while let Some(incoming) = replies.recv().await {
                heard.push(format!("{incoming:?}"));
            }
            heard.join("\n")
        }
        Err(error) => format!("{error:?}"),
    }
}

/// Results and errors that repeat the token.
fn echoes() -> Vec<Value> {
    let block = json!([{"type": "text", "text": format!("you are `Bearer {TOKEN}`")}]);
    let url = json!([{"type": "resource_link", "uri": format!("http://a.test/?t={TOKEN}")}]);
    vec![
        json!({"error": {"code": -32000, "message": format!("no user has {TOKEN}")}}),
        json!({"error": {"code": -32000, "message": "no", "data": {"authorization": TOKEN}}}),
        json!({"error": {"code": -32000, "message": "no", "data": [{TOKEN: 1}]}}),
        json!({"result": {"isError": true, "content": block}}),
        json!({"result": {"content": block}}),
        json!({"result": {"content": url}}),
        json!({"result": {"content": [], "structuredContent": {"headers": {"a": [TOKEN]}}}}),
        json!({"result": {"content": [], "structuredContent": {TOKEN: true}}}),
        json!({"result": {"content": [], "_meta": {"example.com/seen": TOKEN}}}),
        json!({"result": {"contents": [{"uri": "a://b", "text": TOKEN}]}}),
        json!({"result": {"messages": [{"role": "user", "content": block[0]}]}}),
    ]
}

#[tokio::test]
async fn no_answer_contains_our_credentials() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    let statuses = ["200 OK", "400 Bad Request", "404 Not Found", "500 Internal Server Error"];
    for status in statuses {
        for echo in echoes() {
            let mut message = echo.clone();
            message["jsonrpc"] = json!("2.0");
            message["id"] = json!(1);
            let plain = message.to_string();
            let escaped = plain.replace(TOKEN, r"hush\u002dhush");
            for body in [plain, escaped] {
                let head = format!("{status}\r\ncontent-type: application/json");
                let (heard, ()) = tokio::join!(heard(&line), async {
                    peer.next().await.answer(&head, &body).await;
                });
                assert!(!heard.contains(TOKEN), "{status} {body}: {heard}");
                // Of what is refused and has no error in it only the beginning is told.
                let is_whole = status == "200 OK" || echo.get("error").is_some();
                assert!(!is_whole || heard.contains("***"), "{status} {body}: {heard}");
            }
        }
    }
}

#[tokio::test]
async fn no_stream_message_contains_our_credentials() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    let told = [
        json!({"method": "notifications/message",
            "params": {"level": "info", "data": {"t": TOKEN}}}),
        json!({"method": "notifications/progress",
            "params": {"progressToken": 1, "progress": 1, "message": format!("as {TOKEN}")}}),
        json!({"method": "notifications/resources/updated", "params": {"uri": TOKEN}}),
        json!({"id": "q", "method": "elicitation/create",
            "params": {"message": format!("is it {TOKEN}?"), "requestedSchema": {TOKEN: {}}}}),
        json!({"id": "s", "method": "sampling/createMessage", "params": {"systemPrompt": TOKEN}}),
    ];
    let send = async |arrival: &Arrival| {
        arrival.begin_stream().await;
        for message in &told {
            let mut message = message.clone();
            message["jsonrpc"] = json!("2.0");
            arrival.event(&message).await;
        }
        arrival.event(&json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [TOKEN]}})).await;
        arrival.end_stream().await;
    };
    let (heard, ()) = tokio::join!(heard(&line), async { send(&peer.next().await).await });
    assert_eq!(heard.lines().count(), told.len() + 1, "{heard}");
    assert!(!heard.contains(TOKEN), "{heard}");
    assert!(heard.lines().all(|line| line.contains("***")), "{heard}");
}

#[tokio::test]
async fn no_response_header_contains_our_credentials() {
    let mut peer = Peer::start().await;
    let line = line(&peer.url(), &Arc::default());
    for head in [
        "401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"hush-hush\"",
        "429 Too Many Requests\r\nRetry-After: hush-hush",
        "302 Found\r\nlocation: http://127.0.0.1:1/hush-hush",
        "200 OK\r\ncontent-type: text/hush-hush",
    ] {
        let (heard, ()) = tokio::join!(heard(&line), async {
            peer.next().await.answer(head, TOKEN).await;
        });
        assert!(heard.contains("***") && !heard.contains(TOKEN), "{head}: {heard}");
    }
}
