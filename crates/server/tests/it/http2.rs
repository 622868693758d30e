//! HTTP/2 on the same port as HTTP/1.1, spoken by a client that knows it beforehand: requests side
//! by side, streams that are given up, and what a client cannot make the server do.

use crate::house::{assembled, wait_for};
use axum::http::{HeaderMap, Request, StatusCode};
use h2::client::SendRequest;
use h2::{Reason, SendStream};
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(60);
/// How many streams a client opens and resets at once: far more than anybody means to.
const RESETS: u32 = 2_000;
/// Kinds of frames.
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const GO_AWAY: u8 = 7;
/// No more headers and no body follow.
const END_OF_ALL: u8 = 5;
/// Why a stream is reset.
const CANCEL: [u8; 4] = [0, 0, 0, 8];

/// A server on a socket of its own.
struct Served {
    address: SocketAddr,
    _data: TempDir,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Served {
    async fn new() -> Self {
        Self::of(Project::demo()).await
    }

    async fn of(project: Project) -> Self {
        let data = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let assembled = assembled(project, &data, address, None).await;
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server::serve(assembled, listener, None, async move {
            let _ = stopped.await;
        }));
        Self { address, _data: data, stop, serving }
    }

    async fn client(&self) -> Client {
        Client::new(TcpStream::connect(self.address).await.unwrap(), self.address).await
    }

    /// A client that makes room for so many bytes of each answer.
    async fn narrow_client(&self, bytes: u32) -> Client {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(bytes);
        let (sender, connection) =
            timeout(LIMIT, builder.handshake(stream)).await.unwrap().unwrap();
        Client { sender, address: self.address, ended: tokio::spawn(connection) }
    }

    /// Waits until so many streams of events are open.
    async fn until_streams(&self, count: usize) {
        let wanted = format!("waypost_streams_open {count}\n");
        let metrics = async || exchange(self.address, "GET /metrics").await;
        let is_shown = |text: &String| text.contains(&wanted);
        wait_for(&format!("{count} open streams"), metrics, is_shown).await;
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        timeout(LIMIT, self.serving).await.unwrap().unwrap();
    }
}

/// One connection that speaks HTTP/2.
pub(crate) struct Client {
    sender: SendRequest<axum::body::Bytes>,
    address: SocketAddr,
    /// How the connection ended.
    ended: JoinHandle<Result<(), h2::Error>>,
}

impl Client {
    pub(crate) async fn new<S>(stream: S, address: SocketAddr) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) =
            timeout(LIMIT, h2::client::handshake(stream)).await.unwrap().unwrap();
        Self { sender, address, ended: tokio::spawn(connection) }
    }

    fn request(&self, head: &str) -> axum::http::request::Builder {
        let (method, path) = head.split_once(' ').unwrap();
        Request::builder().method(method).uri(format!("http://{}{path}", self.address))
    }

    /// Sends a request without a body, and gives what its answer comes by.
    async fn begin(
        &self,
        head: &str,
    ) -> (h2::client::ResponseFuture, SendStream<axum::body::Bytes>) {
        let mut sender = timeout(LIMIT, self.sender.clone().ready()).await.unwrap().unwrap();
        sender.send_request(self.request(head).body(()).unwrap(), true).unwrap()
    }

    /// Sends a request and reads all of its answer.
    pub(crate) async fn ask(&self, head: &str, body: &Value) -> (StatusCode, String) {
        let mut sender = timeout(LIMIT, self.sender.clone().ready()).await.unwrap().unwrap();
        let request = self.request(head).header("content-type", "application/json");
        let (answer, mut sending) = sender.send_request(request.body(()).unwrap(), false).unwrap();
        let text = if body.is_null() { String::new() } else { body.to_string() };
        sending.send_data(text.into(), true).unwrap();
        read(answer).await.unwrap()
    }
}

async fn read(answer: h2::client::ResponseFuture) -> Result<(StatusCode, String), h2::Error> {
    let answer = timeout(LIMIT, answer).await.unwrap()?;
    let status = answer.status();
    let mut body = answer.into_body();
    let mut text = Vec::new();
    while let Some(piece) = timeout(LIMIT, body.data()).await.unwrap() {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
        text.extend_from_slice(&piece);
    }
    Ok((status, String::from_utf8(text).unwrap()))
}

/// Sends one request by HTTP/1.1 and reads until the other side closes.
async fn exchange(address: SocketAddr, head: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{head} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    timeout(LIMIT, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    String::from_utf8(answer).unwrap()
}

async fn is_served(address: SocketAddr) -> bool {
    exchange(address, "GET /livez").await.starts_with("HTTP/1.1 200 OK\r\n")
}

#[tokio::test]
async fn requests_of_one_connection_are_answered_side_by_side() {
    let served = Served::new().await;
    let client = served.client().await;
    // A stream that stays open does not hold the others up.
    let plan = json!({"planId": "interaction::greeting", "session": "s"});
    let (status, _) = client.ask("POST /api/v1/runs", &plan).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let (events, _sending) = client.begin("GET /api/v1/sessions/s/events").await;
    let events = timeout(LIMIT, events).await.unwrap().unwrap();
    assert_eq!(events.status(), StatusCode::OK);
    served.until_streams(1).await;
    let nothing = Value::Null;
    let asking = (0..20).map(|_| client.ask("GET /livez", &nothing));
    for (status, text) in futures::future::join_all(asking).await {
        assert_eq!((status, text.as_str()), (StatusCode::OK, "{\"status\":\"live\"}\n"));
    }
    // Large ones, beyond what may be sent ahead.
    let (status, text) = client.ask("GET /openapi.json", &Value::Null).await;
    assert!(status == StatusCode::OK && text.contains("/api/v1/runs"));
    // And a client of HTTP/1.1 is answered as ever, at the same port.
    assert!(is_served(served.address).await);
    drop(events);
    served.stop().await;
}

#[tokio::test]
async fn a_stream_that_its_client_gives_up_ends_at_the_server() {
    let served = Served::new().await;
    let client = served.client().await;
    let plan = json!({"planId": "interaction::greeting", "session": "s"});
    client.ask("POST /api/v1/runs", &plan).await;
    let (events, mut sending) = client.begin("GET /api/v1/sessions/s/events").await;
    let events = timeout(LIMIT, events).await.unwrap().unwrap();
    served.until_streams(1).await;
    sending.send_reset(Reason::CANCEL);
    drop(events);
    served.until_streams(0).await;
    let (status, _) = client.ask("GET /livez", &Value::Null).await;
    assert_eq!(status, StatusCode::OK, "the connection goes on");
    served.stop().await;
}

#[tokio::test]
async fn answers_that_wait_in_streams_are_bounded_and_free_again_with_their_connection() {
    let config = Config::parse("waypost.toml", "[limits]\nanswers_bytes_max = 1000000\n").unwrap();
    let served = Served::of(Project { config, ..Project::demo() }).await;
    let client = served.narrow_client(0).await;
    let mut unread = Vec::new();
    for _ in 0..40 {
        let (answer, _sending) = client.begin("GET /openapi.json").await;
        unread.push(timeout(LIMIT, answer).await.unwrap().unwrap());
    }
    let served_ones = unread.iter().filter(|answer| answer.status() == StatusCode::OK).count();
    assert!((1..20).contains(&served_ones), "{served_ones} documents wait");
    let last = unread.last().map(axum::http::Response::status);
    assert_eq!(last, Some(StatusCode::SERVICE_UNAVAILABLE));
    assert!(is_served(served.address).await);
    client.ended.abort();
    drop((unread, client.sender));
    let again = async || exchange(served.address, "GET /openapi.json").await;
    let is_ok = |answer: &String| answer.starts_with("HTTP/1.1 200 OK\r\n");
    wait_for("room for answers", again, is_ok).await;
    served.stop().await;
}

#[tokio::test]
async fn an_export_whose_client_leaves_in_the_middle_ends() {
    const EXPORT: &str = "GET /api/v1/sessions/s/export";
    let config = Config::parse("waypost.toml", "[limits]\nexports_active_max = 1\n").unwrap();
    let served = Served::of(Project { config, ..Project::demo() }).await;
    let other = served.client().await;
    let plan = json!({"planId": "interaction::greeting", "session": "s"});
    let (status, text) = other.ask("POST /api/v1/runs", &plan).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{text}");
    // It reads the first byte, and leaves with the rest of its events on the way.
    let leaving = served.narrow_client(1).await;
    let (answer, _sending) = leaving.begin(EXPORT).await;
    let answer = timeout(LIMIT, answer).await.unwrap().unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let mut body = answer.into_body();
    let first = timeout(LIMIT, body.data()).await.unwrap().unwrap().unwrap();
    assert_eq!(first, "{");
    let (status, text) = other.ask(EXPORT, &Value::Null).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{text}");
    assert!(text.contains("too_many_exports"), "{text}");
    leaving.ended.abort();
    drop((body, leaving.sender));
    // What holds the place is what reads the store.
    let again = async || other.ask(EXPORT, &Value::Null).await;
    let is_ok = |(status, _): &(StatusCode, String)| *status == StatusCode::OK;
    let (_, text) = wait_for("the end of the export that was left", again, is_ok).await;
    assert!(text.ends_with('}'), "{text}");
    served.stop().await;
}

#[tokio::test]
async fn a_foreign_authority_or_host_is_refused() {
    let served = Served::new().await;
    let client = served.client().await;
    let ours = format!("http://{}/livez", served.address);
    for (uri, host) in [("http://evil.test/livez", None), (ours.as_str(), Some("evil.test"))] {
        let mut request = Request::builder().uri(uri);
        if let Some(host) = host {
            request = request.header("host", host);
        }
        let mut sender = timeout(LIMIT, client.sender.clone().ready()).await.unwrap().unwrap();
        let (answer, _) = sender.send_request(request.body(()).unwrap(), true).unwrap();
        let (status, text) = read(answer).await.unwrap();
        assert_eq!(status, StatusCode::FORBIDDEN, "{text}");
        assert!(text.contains("host_not_allowed"), "{text}");
    }
    served.stop().await;
}

#[tokio::test]
async fn headers_without_end_are_refused_and_harm_nobody() {
    let served = Served::new().await;
    let client = served.client().await;
    let other = served.client().await;
    let mut headers = HeaderMap::new();
    for number in 0..1_000 {
        let name: axum::http::HeaderName = format!("x-much-{number}").parse().unwrap();
        headers.insert(name, "y".repeat(100).parse().unwrap());
    }
    let mut request = client.request("GET /livez").body(()).unwrap();
    *request.headers_mut() = headers;
    let mut sender = timeout(LIMIT, client.sender.clone().ready()).await.unwrap().unwrap();
    let refused = match sender.send_request(request, true) {
        Ok((answer, _)) => read(answer).await,
        Err(error) => Err(error),
    };
    if let Ok((status, text)) = refused {
        assert_eq!(status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "{text}");
    }
    let (status, _) = other.ask("GET /livez", &Value::Null).await;
    assert_eq!(status, StatusCode::OK);
    served.stop().await;
}

#[tokio::test]
async fn a_client_knows_how_many_requests_it_may_have_open() {
    let served = Served::new().await;
    let client = served.client().await;
    client.ask("GET /livez", &Value::Null).await;
    assert_eq!(client.sender.current_max_send_streams(), 128);
    served.stop().await;
}

/// A frame as it goes over the wire.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A request for `/` and its reset, each in a frame of its own.
fn given_up(stream: u32, host: &str) -> Vec<u8> {
    // `GET`, `http` and `/` from the table that both sides have, and the authority in full.
    let mut headers = vec![0x82, 0x86, 0x84, 0x41, host.len() as u8];
    headers.extend_from_slice(host.as_bytes());
    [frame(HEADERS, END_OF_ALL, stream, &headers), frame(RESET, 0, stream, &CANCEL)].concat()
}

/// The reasons of all frames by which the other side says that it goes away.
fn farewells(mut bytes: &[u8]) -> Vec<u32> {
    let mut reasons = Vec::new();
    while let Some((head, rest)) = bytes.split_at_checked(9) {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let Some((payload, rest)) = rest.split_at_checked(length) else { break };
        if head[3] == GO_AWAY {
            reasons.push(u32::from_be_bytes([payload[4], payload[5], payload[6], payload[7]]));
        }
        bytes = rest;
    }
    reasons
}

#[tokio::test]
async fn a_flood_of_resets_ends_its_connection_and_no_other() {
    let served = Served::new().await;
    let other = served.client().await;
    let mut flood =
        [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(SETTINGS, 0, 0, &[])].concat();
    let host = served.address.to_string();
    for number in 0..RESETS {
        flood.extend(given_up(2 * number + 1, &host));
    }
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    // The other side may close before it has read all of it.
    let _ = stream.write_all(&flood).await;
    let mut answer = Vec::new();
    let _ = timeout(LIMIT, stream.read_to_end(&mut answer)).await.expect("it puts up with it");
    let reasons = farewells(&answer);
    let calm = u32::from(Reason::ENHANCE_YOUR_CALM);
    assert!(reasons.iter().all(|reason| *reason == calm), "{reasons:?}");
    let (status, _) = other.ask("GET /livez", &Value::Null).await;
    assert_eq!(status, StatusCode::OK);
    assert!(is_served(served.address).await);
    served.stop().await;
}

#[tokio::test]
async fn bytes_of_neither_http_version_are_refused() {
    let served = Served::new().await;
    for bytes in
        [&b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense"]
    {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        // An end or a reset, and never an answer to a request.
        let _ = timeout(LIMIT, stream.read_to_end(&mut answer)).await.unwrap();
        assert!(!String::from_utf8_lossy(&answer).contains("200 OK"), "{answer:?}");
    }
    assert!(is_served(served.address).await);
    served.stop().await;
}

#[tokio::test]
async fn a_server_that_stops_ends_its_connections() {
    let served = Served::new().await;
    let client = served.client().await;
    client.ask("GET /livez", &Value::Null).await;
    served.stop().await;
    let ended = timeout(LIMIT, client.ended).await.expect("the connection outlives its server");
    drop(ended.unwrap());
}
