//! The real program and clients that take without giving: connections that say nothing, bodies that
//! never end, answers that nobody reads. Everyone else is answered, and memory stays bounded.

use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};
use testkit::harness::{Project, Server, StartOptions};
use testkit::http::Client;

/// How many descriptors the server gets, and how many where this test has few itself.
const DESCRIPTORS: u32 = 1_024;
const DESCRIPTORS_FEW: u32 = 256;
/// How many connections more than descriptors are opened.
const BEYOND: u32 = 100;
const UNFINISHED: usize = 150;
const UNFINISHED_BYTES: usize = 4_000_000;
const UNREAD: usize = 100;
const UNREAD_BYTES: usize = 7_000_000;
const MEMORY_KB_MAX: u64 = 200 * 1_024;
/// An answer takes less than a second; a busy machine may need much longer.
const LIMIT: Duration = Duration::from_secs(60);
/// How often the log may say that a connection cannot be accepted.
const TOLD_EVERY_S: u64 = 5;
/// How long it may take to make a large blob, or to begin an answer with it.
const SLOW_LIMIT: Duration = Duration::from_secs(120);

const ECHO: &str = r#"planId: connections/echo
description: gives its input back
parameters: {type: object}
startStepId: end
steps:
  - {id: end, type: final_response, message: {jsonPath: $.promptInput}}
"#;

#[test]
fn silent_connections_do_not_keep_others_out() {
    let _turn = crate::my_turn();
    let folder = tempfile::Builder::new().prefix("waypost-silent-").tempdir().unwrap();
    let descriptors =
        if own_descriptors() > 2 * DESCRIPTORS { DESCRIPTORS } else { DESCRIPTORS_FEW };
    let mut server = started(folder.path(), "", Some(descriptors));
    server.wait_until_ready();
    let address = server.address();
    let begun = Instant::now();
    let silent: Vec<TcpStream> = (0..descriptors + BEYOND).map(|_| connected(address)).collect();

    let took = lives(address);
    let run = echoed(address, 30_000);
    assert_eq!(run["run"]["status"], "completed", "{run}");
    crate::tell(&format!(
        "connections: {} silent ones with {descriptors} descriptors, /livez after {} ms",
        silent.len(),
        took.as_millis()
    ));
    let log = fs::read_to_string(folder.path().join("server.log")).unwrap();
    let refused = log.matches("could not be accepted").count();
    let most = 2 + begun.elapsed().as_secs() / TOLD_EVERY_S;
    assert!(refused as u64 <= most, "{refused} lines of the log say so: {}", server.log_tail());
    drop(silent);
    let ended = server.terminate();
    assert!(ended.status.success(), "not in good order: {ended:?}");
}

#[test]
fn bodies_that_never_end_share_one_budget() {
    let _turn = crate::my_turn();
    let folder = tempfile::Builder::new().prefix("waypost-bodies-").tempdir().unwrap();
    let mut server = started(folder.path(), "", None);
    server.wait_until_ready();
    let address = server.address();
    let body = vec![b' '; UNFINISHED_BYTES];
    let head = format!(
        "POST /api/v1/runs HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        UNFINISHED_BYTES + 1
    );
    let mut unfinished = Vec::new();
    for _ in 0..UNFINISHED {
        let mut stream = connected(address);
        // One that is refused cannot send all of it.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        unfinished.push(stream);
    }
    let took = lives(address);
    let peak_kb = memory_kb(server.pid(), "VmHWM");
    crate::tell(&format!(
        "connections: {UNFINISHED} unfinished bodies, VmHWM {peak_kb} kB, /livez after {} ms",
        took.as_millis()
    ));
    assert!(peak_kb < MEMORY_KB_MAX, "{peak_kb} kB at most");
    drop(unfinished);
    let ended = server.terminate();
    assert!(ended.status.success(), "not in good order: {ended:?}");
}

#[test]
fn answers_that_nobody_reads_stay_on_the_disk() {
    let _turn = crate::my_turn();
    let folder = tempfile::Builder::new().prefix("waypost-unread-").tempdir().unwrap();
    let limits = format!("[limits]\nbody_bytes_max = {}\n", 2 * UNREAD_BYTES);
    let mut server = started(folder.path(), &limits, None);
    server.wait_until_ready();
    let address = server.address();
    let run = echoed(address, UNREAD_BYTES);
    let uri = run["run"]["answer"].as_str().unwrap_or_default();
    let hash = uri.strip_prefix("blob://").unwrap_or_else(|| panic!("no blob: {run}"));
    let request = format!("GET /api/v1/blobs/{hash} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    let asking = |_| {
        let mut stream = connected(address);
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    let mut unread: Vec<TcpStream> = (0..UNREAD).map(asking).collect();
    for stream in &mut unread {
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        assert_eq!(status.escape_ascii().to_string(), "HTTP/1.1 200");
    }
    let took = lives(address);
    let memory_kb = memory_kb(server.pid(), "VmRSS");
    crate::tell(&format!(
        "connections: {UNREAD} unread blobs, VmRSS {memory_kb} kB, /livez after {} ms",
        took.as_millis()
    ));
    assert!(memory_kb < MEMORY_KB_MAX, "{memory_kb} kB");
    // A client that reads gets all of it.
    let whole = Client::new(address).limit(SLOW_LIMIT).get(&format!("/api/v1/blobs/{hash}"));
    let whole = whole.unwrap_or_else(|error| panic!("no blob: {error}"));
    assert_eq!(
        (whole.status, whole.body.len()),
        (200, json!({"text": ""}).to_string().len() + UNREAD_BYTES)
    );
    drop(unread);
    let ended = server.terminate();
    assert!(ended.status.success(), "not in good order: {ended:?}");
}

fn started(folder: &Path, toml: &str, descriptors: Option<u32>) -> Server {
    let files = [("connections/echo.yaml", ECHO)];
    let project = Project::write(&folder.join("project"), &files, toml);
    let data = folder.join("data");
    let options = StartOptions { project: project.path(), data: &data, args: &[] };
    match descriptors {
        Some(limit) => Server::with_descriptors(&options, limit),
        None => Server::start(&options),
    }
}

fn connected(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, LIMIT)
        .unwrap_or_else(|error| panic!("nobody takes connections: {error}"));
    stream.set_read_timeout(Some(SLOW_LIMIT)).unwrap();
    stream.set_write_timeout(Some(SLOW_LIMIT)).unwrap();
    stream
}

/// `GET /livez` on a new connection; how long it took.
fn lives(address: SocketAddr) -> Duration {
    let begun = Instant::now();
    let answer = Client::new(address).limit(LIMIT).get("/livez");
    let answer = answer.unwrap_or_else(|error| panic!("`/livez`: {error}"));
    assert_eq!(answer.status, 200, "{answer:?}");
    begun.elapsed()
}

/// A run whose input and answer have so many letters.
fn echoed(address: SocketAddr, letters: usize) -> Value {
    let input = json!({"text": "x".repeat(letters)});
    let body = json!({"planId": "connections/echo", "input": input});
    let answer = Client::new(address).limit(SLOW_LIMIT).post("/api/v1/runs", &body);
    answer.unwrap_or_else(|error| panic!("no run: {error}")).json()
}

/// A figure of a process's memory, by its name in `/proc`.
fn memory_kb(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name));
    let figure = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    figure.unwrap_or_else(|| panic!("no `{name}` in {status}"))
}

/// How many descriptors this process may have.
fn own_descriptors() -> u32 {
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().nth(3));
    soft.map_or(0, |soft| soft.parse().unwrap_or(u32::MAX))
}
