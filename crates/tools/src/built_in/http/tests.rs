//! `http::request` against a peer of our own: one listener that answers what the test says.
#![allow(clippy::disallowed_methods, reason = "the peer runs beside the test")]

use super::HttpSettings;
use super::request::Request;
use crate::typed::typed;
use futures::StreamExt;
use futures::future::BoxFuture;
use kernel::contracts::Tool;
use kernel::tool::call::{
    Abilities, BlobError, Call, CallBlobs, CallContext, CallProgress, CallReporter, Caller,
    KeepBlobs, Pieces, Reach, ToolError, ToolOutput,
};
use kernel::values::datum::BlobRef;
use kernel::values::ids::{CallId, ContentHash};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long a test waits for what should come to be, on a busy machine.
const WAIT: Duration = Duration::from_secs(60);

/// Takes one connection, reads one request and answers with these bytes; gives back what it read.
async fn peer(answer: &'static str) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let handle = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut read = Vec::new();
        while !is_whole(&read) {
            let mut part = [0u8; 4096];
            let count = stream.read(&mut part).await.unwrap();
            assert!(count > 0, "the request broke off");
            read.extend_from_slice(&part[..count]);
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(read).unwrap()
    });
    (address, handle)
}

fn is_whole(read: &[u8]) -> bool {
    let text = String::from_utf8_lossy(read);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.is_none_or(|length| body.len() >= length.parse::<usize>().unwrap())
}

fn tool(allow: &[String]) -> Arc<dyn Tool> {
    typed(Request::new(HttpSettings::new(allow).unwrap()))
}

async fn call(tool: &Arc<dyn Tool>, arguments: Value) -> Result<Value, ToolError> {
    call_at(tool, CallContext::default(), arguments).await
}

async fn call_at(
    tool: &Arc<dyn Tool>,
    context: CallContext,
    arguments: Value,
) -> Result<Value, ToolError> {
    match output_at(tool, context, arguments).await? {
        ToolOutput::Value(value) => Ok(value),
        other => panic!("{other:?}"),
    }
}

async fn output_at(
    tool: &Arc<dyn Tool>,
    context: CallContext,
    arguments: Value,
) -> Result<ToolOutput, ToolError> {
    let caller = Caller::new("default", "local");
    let call = Call {
        id: CallId(7),
        tool: "http::request".into(),
        arguments: Arc::new(arguments),
        timeout_ms: 60_000,
        output_bytes_max: 1_000,
        given: Arc::default(),
        can: Abilities::PERSON,
        teller: CallReporter::default(),
        context,
    };
    tool.call(&caller, &call).await
}

fn told(error: &ToolError) -> (CallProgress, &str) {
    (error.how, error.fault.name.as_str())
}

#[tokio::test]
async fn traceparent_is_sent_unless_the_call_sets_it() {
    let span = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let own = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
    for (traced, headers, expected) in [
        (None, json!({}), None),
        (Some(span), json!({}), Some(span)),
        (Some(span), json!({"Traceparent": own}), Some(own)),
    ] {
        let (address, peer) = peer("HTTP/1.1 204 No Content\r\n\r\n").await;
        let tool = tool(&[address.to_string()]);
        let context = CallContext {
            trace: traced.map(|span| span.parse().unwrap()),
            ..CallContext::default()
        };
        let arguments = json!({"url": format!("http://{address}/"), "headers": headers});
        call_at(&tool, context, arguments).await.unwrap();
        let sent = peer.await.unwrap();
        let named = sent.lines().find_map(|line| line.strip_prefix("traceparent: "));
        assert_eq!(named, expected, "{sent}");
    }
}

#[tokio::test]
async fn a_write_carries_its_key_and_brings_json_back() {
    let (address, peer) = peer(
        "HTTP/1.1 201 Created\r\ncontent-type: application/json; charset=utf-8\r\n\
         content-length: 11\r\n\r\n{\"ok\":true}",
    )
    .await;
    let tool = tool(&[address.to_string()]);
    let url = format!("http://{address}/effects?x=1");
    let output = call(&tool, json!({"method": "POST", "url": url, "body": {"n": 1}})).await;
    let output = output.unwrap();
    assert_eq!(output["status"], json!(201));
    assert_eq!(output["body"], json!({"ok": true}));
    assert_eq!(output["headers"]["content-length"], json!("11"));
    let sent = peer.await.unwrap();
    assert!(sent.starts_with("POST /effects?x=1 HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains(&format!("idempotency-key: {}\r\n", CallId(7))), "{sent}");
    assert!(sent.contains("content-type: application/json\r\n"), "{sent}");
    assert!(sent.ends_with("\r\n\r\n{\"n\":1}"), "{sent}");
}

#[tokio::test]
async fn a_redirect_is_returned_and_not_followed() {
    let (address, _peer) =
        peer("HTTP/1.1 302 Found\r\nlocation: http://elsewhere.test/\r\ncontent-length: 0\r\n\r\n")
            .await;
    let tool = tool(&[address.to_string()]);
    let output = call(&tool, json!({"url": format!("http://{address}/")})).await.unwrap();
    assert_eq!(output["status"], json!(302));
    assert_eq!(output["headers"]["location"], json!("http://elsewhere.test/"));
    assert_eq!(output["body"], Value::Null);
}

#[tokio::test]
async fn an_http_error_is_a_failure_with_its_body() {
    let (address, _peer) = peer("HTTP/1.1 409 Conflict\r\ncontent-length: 5\r\n\r\ntaken").await;
    let tool = tool(&[address.to_string()]);
    let arguments = json!({"method": "PUT", "url": format!("http://{address}/")});
    let error = call(&tool, arguments).await.unwrap_err();
    assert_eq!(told(&error), (CallProgress::Failed, "HttpStatus"));
    assert_eq!(error.fault.message, "the other side answered 409 Conflict: taken");
}

#[tokio::test]
async fn a_gateway_error_leaves_the_outcome_unknown() {
    let answer = "HTTP/1.1 504 Gateway Timeout\r\ncontent-length: 0\r\n\r\n";
    for (method, how) in [("POST", CallProgress::Unknown), ("GET", CallProgress::Failed)] {
        let (address, _peer) = peer(answer).await;
        let tool = tool(&[address.to_string()]);
        let arguments = json!({"method": method, "url": format!("http://{address}/")});
        let error = call(&tool, arguments).await.unwrap_err();
        assert_eq!(told(&error), (how, "HttpStatus"), "{method}");
    }
}

#[tokio::test]
async fn a_timeout_leaves_a_write_unknown() {
    for (method, how) in [("POST", CallProgress::Unknown), ("GET", CallProgress::Failed)] {
        let (address, _peer) = peer("").await;
        let tool = tool(&[address.to_string()]);
        let arguments = json!({"method": method, "url": format!("http://{address}/")});
        let error = call(&tool, arguments).await.unwrap_err();
        assert_eq!(told(&error), (how, "AnswerLost"), "{method}");
    }
}

#[tokio::test]
async fn an_oversized_answer_does_not_undo_the_call() {
    let answer: &'static str =
        Box::leak(format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(2_000)).into_boxed_str());
    let (address, _peer) = peer(answer).await;
    let tool = tool(&[address.to_string()]);
    let arguments = json!({"method": "POST", "url": format!("http://{address}/")});
    let error = call(&tool, arguments).await.unwrap_err();
    assert_eq!(told(&error), (CallProgress::Unknown, "OutputTooLarge"));
}

/// Keeps what is put, and tells how much of it came.
struct Kept {
    text: Mutex<Vec<u8>>,
    came: watch::Sender<usize>,
}

impl KeepBlobs for Kept {
    fn put<'a>(
        &'a self,
        mut pieces: Pieces<'a>,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<BlobRef, BlobError>> {
        Box::pin(async move {
            let mut text = Vec::new();
            while let Some(piece) = pieces.next().await {
                text.extend(piece.map_err(|error| BlobError::BrokenOff(Box::new(error)))?);
                if text.len() as u64 > bytes_max {
                    return Err(BlobError::TooLarge(bytes_max));
                }
                self.came.send_replace(text.len());
            }
            let blob = BlobRef { hash: ContentHash::of(&text), bytes: text.len() as u64 };
            *self.text.lock().unwrap() = text;
            Ok(blob)
        })
    }

    fn get<'a>(
        &'a self,
        hash: &'a ContentHash,
        _part: Range<u64>,
    ) -> BoxFuture<'a, Result<Pieces<'static>, BlobError>> {
        Box::pin(async move { Err(BlobError::NotGiven(hash.clone())) })
    }

    fn has_put(&self, _hash: &ContentHash) -> bool {
        true
    }
}

/// A place whose blobs are kept, of at most so many bytes.
fn keeping(bytes_max: u64) -> (Arc<Kept>, CallContext) {
    let kept = Arc::new(Kept { text: Mutex::default(), came: watch::Sender::new(0) });
    let blobs = CallBlobs::new(kept.clone(), 64, bytes_max);
    (kept, CallContext { blobs, ..CallContext::default() })
}

/// Sends half of a body of so many bytes, and the rest when so much of it has come where it goes.
async fn patient_peer(
    media: &str,
    bytes: usize,
    mut came: watch::Receiver<usize>,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: {media}\r\ncontent-length: {bytes}\r\n\r\n");
    let handle = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut part = [0u8; 4096];
        let mut read = Vec::new();
        while !is_whole(&read) {
            let count = stream.read(&mut part).await.unwrap();
            read.extend_from_slice(&part[..count]);
        }
        stream.write_all(head.as_bytes()).await.unwrap();
        let half = vec![b'x'; bytes / 2];
        stream.write_all(&half).await.unwrap();
        came.wait_for(|came| *came >= bytes / 2).await.unwrap();
        // The client may have read enough and gone.
        let _ = stream.write_all(&half).await;
    });
    (address, handle)
}

#[tokio::test]
async fn a_large_body_goes_into_a_blob_while_it_comes() {
    let (kept, context) = keeping(1_000_000);
    let (address, peer) = patient_peer("text/plain", 400_000, kept.came.subscribe()).await;
    let tool = tool(&[address.to_string()]);
    let arguments = json!({"url": format!("http://{address}/")});
    let called = tokio::time::timeout(WAIT, output_at(&tool, context, arguments)).await;
    let called = called.expect("the body was held until its end");
    let text = std::mem::take(&mut *kept.text.lock().unwrap());
    let blob = BlobRef { hash: ContentHash::of(&text), bytes: text.len() as u64 };
    assert_eq!(called, Ok(ToolOutput::Blob(blob)));
    let output: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(output["status"], json!(200));
    assert_eq!(output["headers"]["content-length"], json!("400000"));
    assert!(output["body"] == json!("x".repeat(400_000)));
    assert!(output.to_string().as_bytes() == text, "it is the text of the output");
    peer.await.unwrap();
}

#[tokio::test]
async fn a_body_over_the_blob_limit_does_not_undo_the_call() {
    let (kept, context) = keeping(300_000);
    let (address, _peer) = patient_peer("text/plain", 400_000, kept.came.subscribe()).await;
    let tool = tool(&[address.to_string()]);
    let arguments = json!({"method": "POST", "url": format!("http://{address}/")});
    let called = tokio::time::timeout(WAIT, output_at(&tool, context, arguments)).await;
    let error = called.expect("the body was held until its end").unwrap_err();
    assert_eq!(told(&error), (CallProgress::Unknown, "OutputTooLarge"));
    assert!(error.fault.message.contains("300000 bytes"), "{}", error.fault.message);
}

#[tokio::test]
async fn small_or_json_bodies_are_values_and_not_blobs() {
    let (_kept, context) = keeping(1_000_000);
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
    let (address, _peer) = peer(answer).await;
    let tool = tool(&[address.to_string()]);
    let arguments = json!({"url": format!("http://{address}/")});
    let output = call_at(&tool, context.clone(), arguments).await.unwrap();
    assert_eq!(output["body"], json!("hi"));
    let text = json!("x".repeat(900)).to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 902\r\n\r\n";
    let (address, _peer) = self::peer(Box::leak(format!("{head}{text}").into_boxed_str())).await;
    let tool = self::tool(&[address.to_string()]);
    let arguments = json!({"url": format!("http://{address}/")});
    let output = call_at(&tool, context, arguments).await.unwrap();
    assert_eq!(output["body"], json!("x".repeat(900)));
}

#[tokio::test]
async fn a_refused_connection_means_nothing_was_sent() {
    // It is taken, so that no one else can listen there, and no one does.
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = taken.local_addr().unwrap();
    let tool = tool(&[address.to_string()]);
    let arguments = json!({"method": "POST", "url": format!("http://{address}/")});
    let error = call(&tool, arguments).await.unwrap_err();
    assert_eq!(told(&error), (CallProgress::NotSent, "ConnectFailed"));
}

#[tokio::test]
async fn unlisted_hosts_are_refused() {
    let tool = tool(&["127.0.0.1:1".to_owned()]);
    let url = "http://127.0.0.1:2/";
    let caller = Caller::new("default", "local");
    let error = tool.check(&caller, &json!({"url": url})).unwrap_err();
    assert_eq!(told(&error), (CallProgress::NotSent, "HostNotAllowed"));
    let error = call(&tool, json!({"url": url})).await.unwrap_err();
    assert_eq!(told(&error), (CallProgress::NotSent, "HostNotAllowed"));
}

#[tokio::test]
async fn loopback_is_allowed_only_by_its_own_name() {
    let (address, _peer) = peer("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await;
    let port = address.port();
    let tool = tool(&[format!("localhost:{port}")]);
    let output = call(&tool, json!({"url": format!("http://localhost:{port}/")})).await;
    assert_eq!(output.unwrap()["body"], json!("hi"));
}

#[test]
fn reach_follows_the_method() {
    let tool = tool(&[]);
    let of = |method: &str| tool.reach(&json!({"url": "http://a.test", "method": method}));
    assert_eq!(of("GET"), (Reach::Reads, true));
    assert_eq!(of("DELETE"), (Reach::Writes, false));
    assert_eq!(of("LIST"), (Reach::Writes, false), "what cannot be read is taken for the worst");
}
