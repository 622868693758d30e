//! The hostile corpus against the real programs: heads of requests byte for byte, bodies and plans
//! over HTTP, files on the command line. The server answers or hangs up, stays small, does not
//! panic and ends in good order.

use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use testkit::fuzz::hostile::{Case, Kind, of};
use testkit::harness::{Server, waypost};
use testkit::http::Client;

/// How large the server may become meanwhile.
// The tests run a debug build, which is larger than what users run.
const MEMORY_KB_MAX: u64 = 256 * 1_024;
/// How long one answer or one command may take on a busy machine; a free one needs less than two
/// seconds.
const LIMIT: Duration = Duration::from_secs(120);
/// Where the heads are sent.
const PATHS: [&str; 3] = ["/api/v1/runs", "/mcp", "/rpc"];
/// Cases that the command line is given as files, one of each kind of harm.
const FILES: [&str; 8] = [
    "billion-laughs", "merge-keys", "deep-lists", "deep-dashes", "deep-maps", "huge-key",
    "not-utf-8", "too-large",
];

#[test]
fn a_server_that_is_sent_the_corpus_stays_small_and_serves_on() {
    let _turn = crate::my_turn();
    let folder = tempfile::Builder::new().prefix("waypost-corpus-").tempdir().unwrap();
    let mut server = Server::demo(folder.path());
    server.wait_until_ready();
    let (address, pid) = (server.address(), server.pid());
    for case in of(Kind::Header) {
        for path in PATHS {
            let what = format!("{path}: {}", case.name);
            let begun = Instant::now();
            if let Some(status) = headed(address, path, case) {
                assert!(status < 500, "{what}: {status}");
            }
            assert!(begun.elapsed() < LIMIT, "{what}: it took {:?}", begun.elapsed());
        }
        lives(address, case.name);
    }
    let mut slowest = (Duration::ZERO, "");
    for case in of(Kind::JsonPath).chain(of(Kind::Template)).chain(of(Kind::Schema)) {
        let begun = Instant::now();
        let answer = Client::new(address).limit(LIMIT).send(&testkit::http::Request {
            method: "POST",
            path: "/api/v1/runs",
            headers: &[],
            body: Some(&run(case)),
        });
        let answer = answer.unwrap_or_else(|error| panic!("{}: {error}", case.name));
        assert!(answer.status < 500, "{}: {answer:?}", case.name);
        slowest = slowest.max((begun.elapsed(), case.name));
        lives(address, case.name);
    }
    let peak_kb = memory_kb(pid);
    let (took, name) = slowest;
    crate::tell(&format!("corpus: VmHWM {peak_kb} kB, `{name}` took {} ms", took.as_millis()));
    assert!(peak_kb < MEMORY_KB_MAX, "the server grew to {peak_kb} kB");
    let log = fs::read_to_string(folder.path().join("server.log")).unwrap();
    assert!(!log.contains("panicked"), "it panicked: {}", server.log_tail());
    let ended = server.terminate();
    assert!(ended.status.success(), "not in good order: {ended:?}");
}

#[test]
fn the_command_line_refuses_hostile_files() {
    let _turn = crate::my_turn();
    let folder = tempfile::tempdir().unwrap();
    for name in FILES {
        let case = of(Kind::Yaml).find(|case| case.name == name);
        let case = case.unwrap_or_else(|| panic!("there is no case `{name}`"));
        let file = folder.path().join("case.yaml");
        fs::write(&file, case.bytes()).unwrap();
        let begun = Instant::now();
        let output = waypost(folder.path(), &["plan", "validate", "case.yaml"]);
        assert!(begun.elapsed() < LIMIT, "{name}: it took {:?}", begun.elapsed());
        // Neither success nor the end by a signal.
        let code = output.status.code();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(code.is_some_and(|code| code != 0), "{name}: {:?}: {said}", output.status);
        assert!(!said.contains("panicked"), "{name}: {said}");
    }
}

/// The status of the answer to a request with these lines in its head; none where the server hung
/// up instead.
fn headed(address: SocketAddr, path: &str, case: &Case) -> Option<u16> {
    let mut stream = TcpStream::connect_timeout(&address, LIMIT)
        .unwrap_or_else(|error| panic!("{}: nobody takes connections: {error}", case.name));
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    let mut bytes = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\n").into_bytes();
    bytes.extend_from_slice(&case.bytes());
    bytes.extend_from_slice(b"content-length: 2\r\n\r\n{}");
    // What is refused early cannot be sent to its end, and nothing more comes after it.
    let _ = stream.write_all(&bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut head = [0; 12];
    stream.read_exact(&mut head).ok()?;
    let line = String::from_utf8_lossy(&head);
    let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.parse().ok());
    Some(status.unwrap_or_else(|| panic!("{}: this is no answer: {line}", case.name)))
}

/// A request to run a plan with this case in it.
fn run(case: &Case) -> String {
    let text = Value::from(case.text());
    let (message, schema) = match case.kind {
        Kind::JsonPath => (json!({"jsonPath": text}).to_string(), "{}".to_owned()),
        Kind::Template => (text.to_string(), "{}".to_owned()),
        _ => ("\"done\"".to_owned(), case.text()),
    };
    let input = format!("{{\"a\":{}1{}}}", "[".repeat(55), "]".repeat(55));
    format!(
        "{{\"input\":{input},\"plan\":{{\"planId\":\"hostile/case\",\"description\":\"hostile\",\
         \"parameters\":{schema},\"startStepId\":\"end\",\
         \"steps\":[{{\"id\":\"end\",\"type\":\"final_response\",\"message\":{message}}}]}}}}"
    )
}

fn lives(address: SocketAddr, after: &str) {
    let answer = Client::new(address).limit(LIMIT).get("/livez");
    let answer = answer.unwrap_or_else(|error| panic!("`/livez` after {after}: {error}"));
    assert_eq!(answer.status, 200, "after {after}: {answer:?}");
}

/// The most memory that a process had.
fn memory_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let figure = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    figure.unwrap_or_else(|| panic!("no VmHWM of process {pid}: {status}"))
}
