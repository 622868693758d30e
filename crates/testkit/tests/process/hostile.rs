//! The real program under hostile traffic: mangled messages whose senders hang up, bytes that are
//! no HTTP, half requests that stay, sessions that nobody ends. Afterwards it answers as ever, has
//! not grown, has not panicked, and ends in good order.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;
use std::{fs, iter};
use testkit::fuzz::corpus::{Seed, seeds};
use testkit::fuzz::hunt::Hunt;
use testkit::fuzz::post::Post;
use testkit::harness::{Server, rss_kb};
use testkit::http::{Client, Request};
use testkit::sim::rng::Rng;

/// How many mangled messages are sent before memory is looked at for the first time, and after it.
const WARM_UP: u64 = 500;
const MESSAGES: u64 = 2_000;
/// How many half requests stay while others are served.
const HALVES: usize = 100;
/// How many sessions nobody ends.
const SESSIONS: usize = 300;
/// A session is opened anew after so many messages: some of them end it.
const SESSION_EVERY: u64 = 100;
/// How much larger the server may be after all of it: what it keeps is bounded by its limits.
const RSS_GROWTH_KB_MAX: u64 = 64 * 1024;
/// How long each answer may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

#[test]
fn a_server_under_hostile_traffic_serves_on_and_does_not_grow() {
    let _turn = crate::my_turn();
    let folder = tempfile::Builder::new().prefix("waypost-hostile-").tempdir().unwrap();
    let mut server = Server::demo(folder.path());
    server.wait_until_ready();
    let (address, pid) = (server.address(), server.pid());
    good(address);

    mangled(address, "hostile warm-up", WARM_UP);
    let before_kb = rss_kb(pid);
    mangled(address, "hostile", MESSAGES);
    garbage(address);
    let halves = halves(address);
    for _ in 0..SESSIONS {
        session(address);
    }
    // While half requests wait for their other half, everyone else is served.
    good(address);
    drop(halves);
    good(address);
    let after_kb = rss_kb(pid);
    crate::tell(&format!("hostile: VmRSS {before_kb} kB before, {after_kb} kB after"));
    let most_kb = before_kb + RSS_GROWTH_KB_MAX;
    assert!(after_kb <= most_kb, "{after_kb} kB after {before_kb} kB: it grows");

    let log = fs::read_to_string(folder.path().join("server.log")).unwrap();
    assert!(!log.contains("panicked"), "it panicked: {}", server.log_tail());
    let ended = server.terminate();
    assert!(ended.status.success(), "not in good order: {ended:?}");
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "process {pid} is still there");
}

/// Sends so many mangled messages, each on a connection of its own that is cut after the answer's
/// beginning.
fn mangled(address: SocketAddr, name: &'static str, count: u64) {
    let all: Vec<Seed> = seeds("mcp").into_iter().chain(seeds("rpc")).collect();
    let (mut id, mut sent) = (String::new(), 0);
    Hunt::new(name, count).run(
        |rng: &mut Rng| Post::mangled(rng, &all),
        |post| {
            if sent % SESSION_EVERY == 0 {
                id = session(address);
            }
            sent += 1;
            let of_mcp = post.headers.iter().any(|(name, _)| name.starts_with("mcp-"));
            let path = if of_mcp { "/mcp" } else { "/rpc" };
            let post = post.clone().in_session(&id);
            match status(address, &post.to_http(&address.to_string(), path))? {
                Some(status @ 500..) => Err(format!("status {status}")),
                Some(_) | None => Ok(()),
            }
        },
    );
}

/// The status of the answer; none where the server hung up instead, as it may on too large a body.
fn status(address: SocketAddr, bytes: &[u8]) -> Result<Option<u16>, String> {
    let mut stream = connected(address)?;
    // Refused before all of it is sent: the answer is there all the same, or the connection is not.
    let _ = stream.write_all(bytes);
    let mut head = Vec::new();
    let mut chunk = [0; 1_024];
    while head.len() < 16 {
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(None),
            Ok(count) => head.extend_from_slice(&chunk[..count]),
            Err(error) if is_late(&error) => return Err(format!("no answer within {LIMIT:?}")),
            Err(_) => return Ok(None),
        }
    }
    let line = String::from_utf8_lossy(&head);
    let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    status.map(Some).ok_or_else(|| format!("this is no answer: {line}"))
}

fn is_late(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

fn connected(address: SocketAddr) -> Result<TcpStream, String> {
    let stream = TcpStream::connect_timeout(&address, LIMIT);
    let stream = stream.map_err(|error| format!("nobody takes connections: {error}"))?;
    let set = stream.set_read_timeout(Some(LIMIT)).and(stream.set_write_timeout(Some(LIMIT)));
    set.map_err(|error| error.to_string())?;
    Ok(stream)
}

/// The type of the frame that HTTP/2 begins with.
const SETTINGS: u8 = 4;

/// Bytes that are no request, or too much of one.
fn garbage(address: SocketAddr) {
    let long = "a".repeat(1024 * 1024);
    let many: String = iter::repeat_n("x: y\r\n", 10_000).collect();
    let sent: [Vec<u8>; 9] = [
        vec![0; 4_096],
        vec![0xff; 4_096],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"POST /mcp\r\n\r\n".to_vec(),
        format!("GET /{long} HTTP/1.1\r\nhost: {address}\r\n\r\n").into_bytes(),
        format!("POST /mcp HTTP/1.1\r\nhost: {address}\r\nmcp-name: {long}\r\n\r\n").into_bytes(),
        format!("POST /mcp HTTP/1.1\r\nhost: {address}\r\n{many}\r\n").into_bytes(),
        format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-length: 5\r\n\
             transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n{{}}"
        )
        .into_bytes(),
    ];
    for bytes in sent {
        let shown = bytes[..40.min(bytes.len())].escape_ascii().to_string();
        let mut stream = connected(address).unwrap();
        let _ = stream.write_all(&bytes);
        // Nothing more comes: what is incomplete has no answer to wait for.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = [0; 12];
        if stream.read_exact(&mut answer).is_ok() {
            // A client of HTTP/2 that says no more gets our settings, and is left then.
            let is_settings = bytes.starts_with(b"PRI ") && answer[3] == SETTINGS;
            let is_refused = is_settings || answer.starts_with(b"HTTP/1.1 4");
            assert!(is_refused, "{shown}: {}", answer.escape_ascii());
        }
    }
}

/// Requests that stop in the middle of their head or body and stay.
fn halves(address: SocketAddr) -> Vec<TcpStream> {
    let head = format!("POST /mcp HTTP/1.1\r\nhost: {address}\r\n");
    let body = format!("{head}content-length: 1000\r\n\r\n{{\"jsonrpc\":");
    let stay = |at: usize| {
        let mut stream = connected(address).unwrap();
        let half = if at.is_multiple_of(2) { &head } else { &body };
        stream.write_all(half.as_bytes()).unwrap();
        stream
    };
    (0..HALVES).map(stay).collect()
}

/// Begins a session and gives its id.
fn session(address: SocketAddr) -> String {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "hostile", "version": "1"}});
    let answer = posted(address, &[], "initialize", &params);
    answer.header("mcp-session-id").unwrap_or_else(|| panic!("no session: {answer:?}")).to_owned()
}

/// A call and a handshake are answered as ever.
fn good(address: SocketAddr) {
    let params = json!({"name": "math__add", "arguments": {"a": 2, "b": 3}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}});
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "math__add"),
    ];
    let answer = posted(address, &headers, "tools/call", &params);
    assert_eq!(answer.json()["result"]["structuredContent"], 5, "{answer:?}");
    let id = session(address);
    let pong = posted(address, &[("mcp-session-id", id.as_str())], "ping", &json!({}));
    assert_eq!(pong.json()["result"], json!({}), "{pong:?}");
}

fn posted(
    address: SocketAddr,
    headers: &[(&str, &str)],
    method: &str,
    params: &Value,
) -> testkit::http::Answer {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let headers: Vec<(&str, &str)> = iter::once(("accept", "application/json, text/event-stream"))
        .chain(headers.iter().copied())
        .collect();
    let request = Request { method: "POST", path: "/mcp", headers: &headers, body: Some(&body) };
    let answer = Client::new(address).limit(LIMIT).send(&request);
    answer.unwrap_or_else(|error| panic!("{method}: {error}"))
}
