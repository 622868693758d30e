//! A REST document of nearly the size that is allowed: all its tools are there, the server answers
//! meanwhile, and its memory stays within a small multiple of the text.

use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use testkit::harness::{Project, Server, StartOptions, wait_for};
use testkit::http::Client;

/// Just below the default of `upstream_document_bytes_max`.
const DOCUMENT_BYTES: usize = 63 * 1024 * 1024;
/// As many as one upstream may have.
const OPERATIONS: usize = 2_000;
/// How many properties a schema has. Each has a description, as large documents do.
const PROPERTIES: usize = 20;
/// How many times the text the server may have had in memory at most. All of the document as values
/// would take more.
const MEMORY_FACTOR_MAX: u64 = 8;
/// The tests run a debug build, which reads some MiB in a second.
const READ_LIMIT: Duration = Duration::from_secs(900);
/// An answer takes less than a second; a busy machine may need much longer.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

#[test]
fn a_document_of_nearly_64_mib_is_read_in_bounded_memory() {
    let _turn = crate::my_turn();
    let folder = tempfile::Builder::new().prefix("waypost-document-").tempdir().unwrap();
    let toml = "[providers.large]\ntype = \"rest\"\ndocument = \"large.json\"\n\
                base_url = \"http://127.0.0.1:1\"\n";
    let project = Project::write(&folder.path().join("project"), &[], toml);
    let bytes = write_document(&project.path().join("large.json"));
    let data = folder.path().join("data");
    let options = StartOptions { project: project.path(), data: &data, args: &[] };
    let mut server = Server::start(&options);
    server.wait_until_ready();
    let (address, begun) = (server.address(), Instant::now());
    let mut slowest = Duration::ZERO;
    let tools = wait_for("the tools of the large document", READ_LIMIT, || {
        slowest = slowest.max(lives(address));
        let upstream = upstream(address);
        assert_ne!(upstream["state"], "failing", "{upstream}");
        (upstream["state"] == "ready").then(|| upstream["tools"].clone())
    });
    assert_eq!(tools, OPERATIONS, "{}", server.log_tail());
    let peak_kb = memory_kb(server.pid());
    let text_kb = u64::try_from(bytes / 1024).unwrap();
    crate::tell(&format!(
        "document: {text_kb} kB, {OPERATIONS} operations, read in {} ms, VmHWM {peak_kb} kB, \
         /livez after {} ms at most",
        begun.elapsed().as_millis(),
        slowest.as_millis()
    ));
    let most_kb = MEMORY_FACTOR_MAX * text_kb;
    assert!(peak_kb < most_kb, "{peak_kb} kB for {text_kb} kB of text, {most_kb} kB are allowed");
    let ended = server.terminate();
    assert!(ended.status.success(), "not in good order: {ended:?}");
}

/// Writes a document: each operation has a body whose schema is a named one, and there are many
/// named ones that no operation uses. Its size.
fn write_document(path: &Path) -> usize {
    let mut text = String::with_capacity(DOCUMENT_BYTES + 64 * 1024);
    text.push_str(
        "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Large\",\"version\":\"1\"},\"paths\":{",
    );
    for number in 0..OPERATIONS {
        let comma = if number > 0 { "," } else { "" };
        write!(
            text,
            "{comma}\"/orders/{number}\":{{\"post\":{{\"operationId\":\"order{number}\",\
             \"requestBody\":{{\"content\":{{\"application/json\":{{\"schema\":\
             {{\"$ref\":\"#/components/schemas/Order{number}\"}}}}}}}},\
             \"responses\":{{\"200\":{{\"description\":\"done\"}}}}}}}}"
        )
        .unwrap();
    }
    text.push_str("},\"components\":{\"schemas\":{");
    let mut number = 0;
    while text.len() < DOCUMENT_BYTES {
        let comma = if number > 0 { "," } else { "" };
        write!(text, "{comma}\"Order{number}\":{{\"type\":\"object\",\"properties\":{{").unwrap();
        for property in 0..PROPERTIES {
            let comma = if property > 0 { "," } else { "" };
            write!(
                text,
                "{comma}\"field{property}\":{{\"type\":\"string\",\"maxLength\":{number},\
                 \"description\":\"What field {property} of order {number} is for, in the words \
                 of who wrote it down, which nobody read again since.\"}}"
            )
            .unwrap();
        }
        text.push_str("}}");
        number += 1;
    }
    text.push_str("}}}");
    assert!(number > OPERATIONS, "every operation has its schema");
    fs::write(path, &text).unwrap();
    text.len()
}

/// The upstream as the server shows it.
fn upstream(address: SocketAddr) -> Value {
    let answer = Client::new(address).limit(ANSWER_LIMIT).get("/api/v1/upstreams/large");
    let answer = answer.unwrap_or_else(|error| panic!("`/api/v1/upstreams/large`: {error}"));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// `GET /livez` on a new connection; how long it took.
fn lives(address: SocketAddr) -> Duration {
    let begun = Instant::now();
    let answer = Client::new(address).limit(ANSWER_LIMIT).get("/livez");
    let answer = answer.unwrap_or_else(|error| panic!("`/livez`: {error}"));
    assert_eq!(answer.status, 200, "{answer:?}");
    begun.elapsed()
}

/// The most memory that a process had.
fn memory_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let figure = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    figure.unwrap_or_else(|| panic!("no VmHWM of process {pid}: {status}"))
}
