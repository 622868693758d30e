//! REST and JSON-RPC servers that answer out of the hostile corpus: each of their answers ends its
//! own call, and nobody else notices.

use crate::house::{CALL_TIMEOUT_MS, House, LIMIT, PROMPT, Way};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;
use testkit::caller::Era;
use testkit::fuzz::hostile::{ID, Kind, of};
use testkit::http::Client;

/// How much the server may grow meanwhile.
const GROWTH_BYTES_MAX: u64 = 150_000_000;
/// How large a request of ours can be.
const REQUEST_BYTES_MAX: usize = 100_000;

#[test]
fn providers_with_hostile_answers_harm_nobody() {
    let _turn = crate::our_turn();
    let hostile = serve();
    let house = House::beside(Way::Http("modern"), &settings(hostile));
    for tool in ["rest.many-events", "rpc.many-events"] {
        house.wait_for_tool(tool);
    }
    let before = house.rss_bytes();
    for case in of(Kind::Answered) {
        for provider in ["rest", "rpc"] {
            let tool = format!("{provider}.{}", case.name);
            let begun = Instant::now();
            let path = format!("/api/v1/tools/{tool}/call");
            let answer = Client::new(house.address()).limit(LIMIT).post(&path, &json!({}));
            let answer = answer.unwrap_or_else(|error| panic!("{tool}: {error}"));
            assert_ne!(answer.status, 500, "{tool}: {answer:?}");
            let called = house.caller(Era::Modern).limit(LIMIT).call(&tool, json!({}));
            called.unwrap_or_else(|error| panic!("{tool}: {error}"));
            assert!(begun.elapsed() < 2 * PROMPT, "{tool}: it took {:?}", begun.elapsed());
            house.others_are_well(&tool);
        }
    }
    let after = house.rss_bytes();
    assert!(after < before + GROWTH_BYTES_MAX, "{before} bytes became {after}");
}

/// Both providers, and calls that end soon.
fn settings(hostile: SocketAddr) -> String {
    let names: Vec<&str> = of(Kind::Answered).map(|case| case.name).collect();
    let limits = names.iter().flat_map(|name| [format!("rest.{name}"), format!("rpc.{name}")]);
    let limits = limits
        .map(|tool| format!("[tools.limits.\"{tool}\"]\ntimeout_ms = {CALL_TIMEOUT_MS}\n"))
        .collect::<String>();
    format!(
        "[providers.rest]\ntype = \"rest\"\ndocument = \"http://{hostile}/openapi.json\"\n\
         [providers.rpc]\ntype = \"rpc\"\nbase_url = \"http://{hostile}/rpc\"\n\
         tools = {}\n{limits}",
        json!(names)
    )
}

/// Serves both until the process ends.
fn serve() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that hung up in the middle of an answer needs none.
            thread::spawn(move || answer(stream, address).ok());
        }
    });
    address
}

/// Answers one request and closes the connection.
fn answer(mut stream: TcpStream, address: SocketAddr) -> io::Result<()> {
    stream.set_read_timeout(Some(LIMIT))?;
    let (path, body) = read(&mut stream)?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let name = match (path.as_str(), body["method"].as_str()) {
        ("/openapi.json", _) => return stream.write_all(&plain(&document(address))),
        ("/rpc", Some("tools/list")) => {
            let error = json!({"code": -32601, "message": "Method not found"});
            let error = json!({"jsonrpc": "2.0", "id": body["id"], "error": error});
            return stream.write_all(&plain(&error));
        }
        ("/rpc", method) => method.unwrap_or_default(),
        (path, _) => path.trim_start_matches('/'),
    };
    let Some(case) = of(Kind::Answered).find(|case| case.name == name) else {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    };
    let mut bytes = case.bytes();
    let place = bytes.windows(ID.len()).position(|part| part == ID.as_bytes());
    if let Some(at) = place {
        bytes.splice(at..at + ID.len(), body["id"].to_string().into_bytes());
    }
    stream.write_all(&bytes)?;
    if bytes.starts_with(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream") {
        // It stays open until the client gives up.
        let _ = stream.read(&mut [0; 1])?;
    }
    Ok(())
}

/// The path and the body of a request.
fn read(stream: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4_096];
        let read = stream.read(&mut part)?;
        bytes.extend_from_slice(&part[..read]);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length = length.map_or(0, |length| length.trim().parse().unwrap_or(0));
            if bytes.len() >= end + 4 + length {
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                return Ok((path, bytes.split_off(end + 4)));
            }
        }
        if read == 0 || bytes.len() > REQUEST_BYTES_MAX {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// An operation for each case.
fn document(address: SocketAddr) -> Value {
    let well = json!({"200": {"description": "Well."}});
    let operation = |name: &str| json!({"get": {"operationId": name, "responses": well}});
    let paths: serde_json::Map<String, Value> =
        of(Kind::Answered).map(|case| (format!("/{}", case.name), operation(case.name))).collect();
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Hostile", "version": "1"},
        "servers": [{"url": format!("http://{address}")}],
        "paths": paths,
    })
}

fn plain(body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    )
    .into()
}
