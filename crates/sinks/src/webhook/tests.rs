//! A webhook against a receiver of our own: one listener that answers what the test says.
#![allow(clippy::disallowed_methods, reason = "the receiver runs beside the test")]

use super::*;
use crate::tests::samples::{Stopped, event};
use kernel::values::ids::Millis;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Takes one connection, reads one request and answers with these bytes; gives back what it read.
/// Without an answer the connection stays open until the other side lets go of it.
async fn receiver(answer: &'static str) -> (SocketAddr, JoinHandle<String>) {
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
        if answer.is_empty() {
            let _ = stream.read(&mut [0u8; 1]).await;
        }
        // Who has read enough may be gone.
        let _ = stream.write_all(answer.as_bytes()).await;
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

fn webhook(address: SocketAddr, timeout_ms: u64) -> Webhook {
    let url = format!("http://user:hush@{address}/events?token=hush");
    let secret = Secret::new(SECRET);
    Webhook::new("audit", &url, &secret, Some(timeout_ms), Arc::new(Stopped)).unwrap()
}

/// How a receiver that answers so is heard.
async fn heard(answer: &'static str) -> Result<DeliveryReceipt, SinkError> {
    let (address, _receiver) = receiver(answer).await;
    webhook(address, 60_000).deliver(&[event(1)]).await
}

#[tokio::test]
async fn an_event_is_posted_whole_and_signed() {
    let (address, receiver) = receiver("HTTP/1.1 204 No Content\r\n\r\n").await;
    let handed = webhook(address, 60_000).deliver(&[event(7)]).await;
    assert_eq!(handed, Ok(DeliveryReceipt { status: Some(204) }));
    let sent = receiver.await.unwrap();
    let (head, body) = sent.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /events?token=hush HTTP/1.1\r\n"), "{head}");
    assert_eq!(body, event(7).to_json());
    let signed = Signer::read(&Secret::new(SECRET)).unwrap();
    let signed = signed.sign(&event(7).id, 1_614_265_330, body);
    for line in [
        "content-type: application/cloudevents+json".to_owned(),
        format!("webhook-id: {}", event(7).id),
        "webhook-timestamp: 1614265330".to_owned(),
        format!("webhook-signature: {signed}"),
    ] {
        assert!(head.lines().any(|told| told == line), "{line} is not in\n{head}");
    }
}

#[tokio::test]
async fn webhook_statuses_are_retryable_or_permanent() {
    let error =
        heard("HTTP/1.1 500 Oops\r\ncontent-length: 10\r\n\r\nno\ndisk  .").await.unwrap_err();
    assert!(error.message.starts_with("the webhook at http://127.0.0.1:"), "{error}");
    assert!(error.message.ends_with(" answered 500 Internal Server Error: no disk ."), "{error}");
    assert!(!error.message.contains("hush"), "{error}");
    assert_eq!((error.status, error.is_gone, error.retry_after_ms), (Some(500), false, None));
    let gone = heard("HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n").await.unwrap_err();
    assert_eq!((gone.status, gone.is_gone, gone.is_refusal), (Some(410), true, false));
    let page = heard("HTTP/1.1 502 X\r\ncontent-length: 6\r\n\r\n<html>").await.unwrap_err();
    assert!(page.message.ends_with("502 Bad Gateway with a page"), "{page}");
}

#[tokio::test]
async fn retry_after_of_a_receiver_is_passed_on() {
    let busy = "HTTP/1.1 429 Slow\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(heard(busy).await.unwrap_err().retry_after_ms, Some(7_000));
    let dated = "HTTP/1.1 503 Slow\r\ndate: Sun, 15 Nov 2026 10:00:00 GMT\r\n\
        retry-after: Sun, 15 Nov 2026 10:00:30 GMT\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(heard(dated).await.unwrap_err().retry_after_ms, Some(30_000));
    let odd = "HTTP/1.1 503 Slow\r\nretry-after: soon\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(heard(odd).await.unwrap_err().retry_after_ms, None);
}

#[tokio::test]
async fn a_webhook_refusal_blames_the_event_or_the_receiver() {
    for (answer, is_refusal) in [
        ("HTTP/1.1 400 X\r\ncontent-length: 0\r\n\r\n", true),
        ("HTTP/1.1 413 X\r\ncontent-length: 0\r\n\r\n", true),
        ("HTTP/1.1 422 X\r\ncontent-length: 0\r\n\r\n", true),
        ("HTTP/1.1 401 X\r\ncontent-length: 0\r\n\r\n", false),
        ("HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n", false),
        ("HTTP/1.1 429 X\r\ncontent-length: 0\r\n\r\n", false),
        ("HTTP/1.1 307 X\r\ncontent-length: 0\r\n\r\n", false),
        ("HTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n", false),
        ("hello\r\n\r\n", false),
    ] {
        let error = heard(answer).await.unwrap_err();
        assert_eq!((error.is_refusal, error.is_gone), (is_refusal, false), "{answer}");
    }
}

#[tokio::test]
async fn a_2xx_status_counts_whatever_the_body_does() {
    // Cut off in the middle, and far too long.
    let short = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc";
    assert_eq!(heard(short).await, Ok(DeliveryReceipt { status: Some(200) }));
    let long: &'static str =
        Box::leak(format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(1_000_000)).into_boxed_str());
    assert_eq!(heard(long).await, Ok(DeliveryReceipt { status: Some(200) }));
    // Begun and never ended: the time that the rest has is over at once.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let receiver = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut first = [0; 1024];
        assert!(stream.read(&mut first).await.unwrap() > 0, "a request comes first");
        let begun = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n";
        stream.write_all(begun.as_bytes()).await.unwrap();
        // Until the other side lets go of it.
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    });
    let secret = Secret::new(SECRET);
    let clock = Arc::new(Hurried);
    let webhook = Webhook::new("audit", &url, &secret, Some(600_000), clock).unwrap();
    assert_eq!(webhook.deliver(&[event(1)]).await, Ok(DeliveryReceipt { status: Some(200) }));
    drop(webhook);
    receiver.await.unwrap();
}

/// A clock on which every wait is over at once.
struct Hurried;

impl Clock for Hurried {
    fn now(&self) -> Millis {
        Stopped.now()
    }

    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }

    fn sleep_until(&self, _then: Millis) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere =
        "HTTP/1.1 307 X\r\nlocation: http://elsewhere.test/\r\ncontent-length: 0\r\n\r\n";
    let error = heard(elsewhere).await.unwrap_err();
    assert_eq!((error.status, error.is_gone), (Some(307), false));
    assert!(error.message.ends_with("points elsewhere, which is not followed"), "{error}");
}

#[tokio::test]
async fn a_long_answer_is_not_read_to_its_end() {
    let long: &'static str =
        Box::leak(format!("HTTP/1.1 400 X\r\n\r\n{}", "x".repeat(1_000_000)).into_boxed_str());
    let error = heard(long).await.unwrap_err();
    let told = error.message.chars().filter(|letter| *letter == 'x').count();
    assert!((1..=TOLD_CHARS_MAX).contains(&told), "{told}");
}

#[tokio::test]
async fn timeouts_and_refused_connections_are_transient() {
    let (address, _receiver) = receiver("").await;
    let late = webhook(address, 50).deliver(&[event(1)]).await.unwrap_err();
    assert!(late.message.ends_with("did not answer within 50 ms"), "{late}");
    // It is taken, so that no one else can listen there, and no one does.
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let nobody = webhook(taken.local_addr().unwrap(), 60_000).deliver(&[event(1)]).await;
    let nobody = nobody.unwrap_err();
    assert!(nobody.message.contains("cannot be reached"), "{nobody}");
    assert!(!nobody.is_gone && !nobody.message.contains("hush"), "{nobody}");
}
