//! Agents whose answers and cards are larger than anyone reads, or have no end: they are left at
//! the limit, and nothing is sent a second time.

use crate::house::{House, agent, nothing, until};
use kernel::tool::call::{Given, HowFar};
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use testkit::servers::a2a::AgentServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use upstreams::{A2aConfig, CardPlace, UpstreamState};

const QUICK: Duration = Duration::from_millis(300);
/// More than a call may answer with, and more than a card may have.
const LARGE: usize = 2 * 1024 * 1024;
/// How large a card may be.
const CARD_BYTES_MAX: usize = 1024 * 1024;
const CHUNK_BYTES: usize = 16 * 1024;

/// How an agent answers everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// With a body that has no end.
    Endless,
    /// With one that is large, and says so.
    Large,
}

/// What happened at such an agent.
#[derive(Default)]
struct Seen {
    /// How often it was asked.
    asked: AtomicUsize,
    /// How many of its answers were left by the client, or came to their end.
    over: AtomicUsize,
}

async fn serve(answer: Answer) -> (SocketAddr, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, seen) = (listener.local_addr().unwrap(), Arc::new(Seen::default()));
    let watched = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let seen = watched.clone();
            tokio::spawn(async move {
                // The client ends the connection, whenever it likes.
                let _ = play(stream, answer, &seen).await;
                seen.over.fetch_add(1, Ordering::SeqCst);
            });
        }
    });
    (address, seen)
}

/// Answers one request on a connection of HTTP/1.1.
async fn play(mut stream: TcpStream, answer: Answer, seen: &Seen) -> io::Result<()> {
    read_request(&mut stream).await?;
    seen.asked.fetch_add(1, Ordering::SeqCst);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    match answer {
        Answer::Endless => {
            let head = format!("{head}transfer-encoding: chunked\r\n\r\n");
            stream.write_all(head.as_bytes()).await?;
            let chunk = format!("{CHUNK_BYTES:x}\r\n{}\r\n", " ".repeat(CHUNK_BYTES));
            loop {
                stream.write_all(chunk.as_bytes()).await?;
            }
        }
        Answer::Large => {
            let head = format!("{head}content-length: {LARGE}\r\n\r\n");
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(" ".repeat(LARGE).as_bytes()).await
        }
    }
}

/// Reads the head of a request and its body.
async fn read_request(stream: &mut TcpStream) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|length| length.trim().parse().ok()).unwrap_or_default();
    stream.read_exact(&mut vec![0; length]).await?;
    Ok(())
}

/// The settings of an agent whose card leads there, in this binding.
fn leading_to(binding: &str, address: SocketAddr) -> A2aConfig {
    let server = AgentServer::start(QUICK);
    let mut card = server.card();
    card["supportedInterfaces"] = json!([{"url": format!("http://{address}/"),
        "protocolBinding": binding, "protocolVersion": "1.0"}]);
    server.serve_card(card);
    let mut config = agent(&server.url());
    config.allow_private = true;
    config
}

#[tokio::test]
async fn an_answer_without_an_end_is_left_at_the_limit() {
    for binding in ["JSONRPC", "HTTP+JSON"] {
        for answer in [Answer::Endless, Answer::Large] {
            let (address, seen) = serve(answer).await;
            let house = House::open(leading_to(binding, address)).await;
            let sent = house.follow(1, "hello", nothing).await.unwrap_err();
            let known = Given { state: json!({"task": "task-1"}), ..Given::default() };
            let looked = house.invoke(2, "hello", known).await.unwrap_err();
            for (number, error) in [sent, looked].into_iter().enumerate() {
                let what = format!("{binding} {answer:?} {number}: {error:?}");
                assert_eq!(error.fault.name, "OutputTooLarge", "{what}");
                assert_eq!(error.how, HowFar::Unknown, "{what}");
                assert!(error.fault.message.contains("agent `peer`"), "{what}");
            }
            until("the agent to be left", || seen.over.load(Ordering::SeqCst) >= 2).await;
            assert_eq!(seen.asked.load(Ordering::SeqCst), 2, "nothing is sent a second time");
        }
    }
}

/// The card with a description that makes it so large.
fn as_large(mut card: Value, bytes: usize) -> Value {
    card["description"] = json!("");
    let rest = bytes - card.to_string().len();
    card["description"] = json!("d".repeat(rest));
    card
}

#[tokio::test]
async fn a_card_is_read_up_to_its_limit() {
    let server = AgentServer::start(QUICK);
    server.serve_card(as_large(server.card(), CARD_BYTES_MAX));
    assert_eq!(House::open(agent(&server.url())).await.names().len(), 3);
    server.serve_card(as_large(server.card(), CARD_BYTES_MAX + 1));
    let house = House::open(agent(&server.url())).await;
    let (name, told) = house.fault();
    assert!(name == "OutputTooLarge" && told.contains("agent `peer`"), "{name}: {told}");
    assert!(house.names().is_empty());

    let (address, seen) = serve(Answer::Endless).await;
    let house = House::open(agent(&format!("http://{address}/card.json"))).await;
    let (name, told) = house.fault();
    assert_eq!(name, "OutputTooLarge", "{told}");
    assert_eq!(house.remote.upstreams()[0].status().state, UpstreamState::Failing);
    until("the agent to be left", || seen.over.load(Ordering::SeqCst) >= 1).await;

    let folder = tempfile::tempdir().unwrap();
    for (bytes, fits) in [(CARD_BYTES_MAX, true), (CARD_BYTES_MAX + 1, false)] {
        let path = folder.path().join("card.json");
        std::fs::write(&path, as_large(server.card(), bytes).to_string()).unwrap();
        let mut config = A2aConfig::new(CardPlace::File(path));
        config.allow_private = true;
        let house = House::open(config).await;
        match fits {
            true => assert_eq!(house.names().len(), 3),
            false => {
                let (name, told) = house.fault();
                assert!(name == "CardUnusable" && told.contains("1048576"), "{name}: {told}");
            }
        }
    }
}
