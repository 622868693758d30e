//! How requests are sent: with a key, from an address that the proxy names, over a kept connection
//! or, where an answer does not end, over one of their own.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use testkit::http::grpc::{self, Call, Until};
use testkit::http::{Answer, Client, Request};

/// How long anything may take on a busy machine.
pub(super) const LIMIT: Duration = Duration::from_secs(180);
/// An address from which nothing that is wrong comes.
const HOME: &str = "192.0.2.1";

/// A key.
#[derive(Debug, Clone, Default)]
pub(super) struct Key {
    pub(super) id: String,
    pub(super) text: String,
}

/// A request with what decides who sends it.
pub(super) struct Sending<'a> {
    pub(super) key: Option<&'a Key>,
    /// More headers.
    pub(super) headers: Vec<(&'a str, String)>,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    /// Nothing where it is empty.
    pub(super) body: &'a str,
}

/// All headers of a request.
fn headers_of<'a>(sending: &'a Sending<'_>) -> Vec<(&'a str, &'a str)> {
    let given = sending.headers.iter().map(|(name, value)| (*name, value.as_str()));
    let mut headers: Vec<(&str, &str)> = given.collect();
    if !headers.iter().any(|(name, _)| *name == "x-forwarded-for") {
        headers.push(("x-forwarded-for", HOME));
    }
    headers.extend(sending.key.map(|key| ("x-api-key", key.text.as_str())));
    headers
}

/// The whole answer to a request.
pub(super) fn answered(client: &mut Client, sending: &Sending<'_>) -> Answer {
    let Sending { method, path, body, .. } = *sending;
    let headers = headers_of(sending);
    let body = Some(body).filter(|body| !body.is_empty());
    let answer = client.send(&Request { method, path, headers: &headers, body });
    answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
}

/// The answer to a call of gRPC, as one of HTTP that names its status where it is an error. Of a
/// stream that begins nothing else is read: it does not end.
pub(super) fn called(
    address: SocketAddr,
    method: &str,
    until: Until,
    sending: &Sending<'_>,
) -> Answer {
    let params: Value = serde_json::from_str(sending.body).unwrap();
    let headers = headers_of(sending);
    let call = Call { method, headers: &headers, params: &params, until };
    let told = grpc::called(address, &call, LIMIT);
    let told = told.unwrap_or_else(|error| panic!("{method} of gRPC: {error}"));
    let has_ended = told.status.is_some();
    assert!(has_ended || until == Until::Begun, "{method} of gRPC has no status: {told:?}");
    let mut body = json!({"messages": told.messages});
    if let Some(status) = told.status.filter(|status| status.code != 0) {
        body["error"] = json!({"status": status.name(), "message": status.message,
            "details": status.details});
    }
    let texts = told.head.iter().filter_map(|(name, value)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    });
    Answer { status: 200, headers: texts.collect(), body: body.to_string() }
}

/// The status of an answer that does not end.
pub(super) fn head(address: SocketAddr, sending: &Sending<'_>) -> Answer {
    let what = format!("`{} {}` to begin its answer", sending.method, sending.path);
    let heard = heard(address, sending, &what, |heard| heard.contains("\r\n"));
    let status = heard.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status: {heard}"));
    Answer { status, headers: Vec::new(), body: String::new() }
}

/// Reads an answer on a connection of its own until enough of it came.
pub(super) fn heard(
    address: SocketAddr,
    sending: &Sending<'_>,
    what: &str,
    is_enough: impl Fn(&str) -> bool,
) -> String {
    listening(address, sending, what, is_enough).1
}

/// The same with the connection, which stays open.
pub(super) fn listening(
    address: SocketAddr,
    sending: &Sending<'_>,
    what: &str,
    is_enough: impl Fn(&str) -> bool,
) -> (TcpStream, String) {
    let Sending { method, path, body, .. } = *sending;
    let mut request = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\n");
    for (name, value) in headers_of(sending) {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    let length = body.len();
    request.push_str(&format!(
        "content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    ));
    let mut stream = TcpStream::connect_timeout(&address, LIMIT).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let deadline = Instant::now() + LIMIT;
    let (mut bytes, mut chunk) = (Vec::new(), [0; 16 * 1024]);
    loop {
        let heard = String::from_utf8_lossy(&bytes).into_owned();
        if is_enough(&heard) {
            return (stream, heard);
        }
        assert!(Instant::now() < deadline, "waited {LIMIT:?} in vain for {what}: {heard}");
        let count = stream.read(&mut chunk).unwrap_or_else(|error| {
            panic!("waited in vain for {what}: {error}; {heard}");
        });
        assert!(count > 0, "the connection ended before {what}: {heard}");
        bytes.extend_from_slice(&chunk[..count]);
    }
}
