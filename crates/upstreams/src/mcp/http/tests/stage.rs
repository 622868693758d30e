//! The peer, the clock and what else a line is built from.

use super::super::super::line::{Incoming, Line, Outgoing, Replies};
use super::super::HttpLine;
use crate::config::Secret;
use crate::{HOPS_MAX, RemoteParts};
use futures::future::{BoxFuture, pending};
use kernel::contracts::{Clock, Entropy, Spawn};
use kernel::limits::Limits;
use kernel::values::ids::Millis;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use wire::jsonrpc::Id;

/// How long requests of these tests may take, on the test's clock.
pub(super) const TIMEOUT_MS: u64 = 30_000;
/// How large their answers may be.
pub(super) const BYTES_MAX: usize = 1_000;

/// A clock that stands still until it is moved.
pub(super) struct TestClock {
    now: Mutex<Millis>,
    elapsed: Mutex<Duration>,
    sleepers: Mutex<Vec<(Millis, oneshot::Sender<()>)>>,
    changed: watch::Sender<()>,
}

impl Default for TestClock {
    fn default() -> Self {
        Self {
            now: Mutex::new(Millis(0)),
            elapsed: Mutex::default(),
            sleepers: Mutex::default(),
            changed: watch::Sender::new(()),
        }
    }
}

impl Clock for TestClock {
    fn now(&self) -> Millis {
        *self.now.lock().unwrap()
    }

    fn elapsed(&self) -> Duration {
        *self.elapsed.lock().unwrap()
    }

    fn sleep_until(&self, then: Millis) -> BoxFuture<'static, ()> {
        if then <= self.now() {
            return Box::pin(async {});
        }
        let (sender, woken) = oneshot::channel();
        self.sleepers.lock().unwrap().push((then, sender));
        self.changed.send_replace(());
        Box::pin(async move {
            if woken.await.is_err() {
                pending().await
            }
        })
    }
}

impl TestClock {
    /// Waits until somebody waits for exactly so many milliseconds, then lets them pass.
    pub(super) async fn pass(&self, ms: u64) {
        let then = self.now().plus_ms(ms);
        let mut changed = self.changed.subscribe();
        while !self.is_awaited(then) {
            changed.changed().await.unwrap();
        }
        *self.now.lock().unwrap() = then;
        *self.elapsed.lock().unwrap() += Duration::from_millis(ms);
        let sleepers = std::mem::take(&mut *self.sleepers.lock().unwrap());
        let is_over = |sleeper: &(Millis, oneshot::Sender<()>)| sleeper.0 <= then;
        let (woken, asleep): (Vec<_>, Vec<_>) = sleepers.into_iter().partition(is_over);
        self.sleepers.lock().unwrap().extend(asleep);
        for (_, sleeper) in woken {
            let _ = sleeper.send(());
        }
    }

    /// Somebody sets the clock back by so many milliseconds.
    pub(super) fn set_back(&self, ms: i64) {
        self.now.lock().unwrap().0 -= ms;
    }

    fn is_awaited(&self, then: Millis) -> bool {
        let sleepers = self.sleepers.lock().unwrap();
        sleepers.iter().any(|(until, sleeper)| *until == then && !sleeper.is_closed())
    }
}

struct TestSpawn;

impl Spawn for TestSpawn {
    fn task(&self, _name: &'static str, future: BoxFuture<'static, ()>) {
        tokio::spawn(future);
    }

    fn thread(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        self.task(name, future);
    }
}

struct NoEntropy;

impl Entropy for NoEntropy {
    fn bits(&self) -> u128 {
        0
    }
}

/// What a line is built from.
pub(super) fn parts(clock: &Arc<TestClock>) -> RemoteParts {
    RemoteParts {
        spawn: Arc::new(TestSpawn),
        clock: clock.clone(),
        entropy: Arc::new(NoEntropy),
        limits: Arc::new(Limits { call_output_bytes_max: BYTES_MAX, ..Limits::default() }),
        hops_max: HOPS_MAX,
        supervisor: None,
        vault: Arc::new(crate::MemoryVault::new(clock.clone())),
        login: None,
        scope: crate::Scope::default(),
    }
}

/// One request that came to the peer.
pub(super) struct Arrival {
    /// On which connection, from 0.
    pub(super) connection: usize,
    /// Its line and headers.
    pub(super) head: String,
    /// Its body as JSON; null if it has none.
    pub(super) body: Value,
    writer: Arc<tokio::sync::Mutex<OwnedWriteHalf>>,
}

impl Arrival {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            (key == name).then_some(value)
        })
    }

    /// Its method and path.
    pub(super) fn line(&self) -> &str {
        self.head.lines().next().unwrap().strip_suffix(" HTTP/1.1").unwrap()
    }

    /// Writes bytes as they are.
    pub(super) async fn write(&self, text: &str) {
        // The other side may have hung up already, as the test wants it to.
        let _ = self.writer.lock().await.write_all(text.as_bytes()).await;
    }

    /// Closes the connection.
    pub(super) async fn hang_up(&self) {
        let _ = self.writer.lock().await.shutdown().await;
    }

    /// Answers with a whole body; `head` is the status and further headers.
    pub(super) async fn answer(&self, head: &str, body: &str) {
        let length = body.len();
        self.write(&format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n{body}")).await;
    }

    /// Answers with one message.
    pub(super) async fn json(&self, message: &Value) {
        self.answer("200 OK\r\ncontent-type: application/json", &message.to_string()).await;
    }

    /// Answers the request with this result.
    pub(super) async fn result(&self, result: &Value) {
        self.json(&json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result})).await;
    }

    /// Begins a stream; what follows are its chunks.
    pub(super) async fn begin_stream(&self) {
        self.write(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
             transfer-encoding: chunked\r\n\r\n",
        )
        .await;
    }

    /// One chunk of a stream.
    pub(super) async fn chunk(&self, text: &str) {
        self.write(&format!("{:x}\r\n{text}\r\n", text.len())).await;
    }

    pub(super) async fn event(&self, message: &Value) {
        self.chunk(&format!("data: {message}\n\n")).await;
    }

    /// Ends a stream; the connection stays.
    pub(super) async fn end_stream(&self) {
        self.write("0\r\n\r\n").await;
    }
}

enum Seen {
    Request(Arrival),
    Closed(usize),
}

/// A server of which a test is the brain.
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    seen: mpsc::UnboundedReceiver<Seen>,
}

impl Peer {
    /// Listens.
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, seen) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            for connection in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                tokio::spawn(serve(connection, stream, sender.clone()));
            }
        });
        Self { address, seen }
    }

    /// Its MCP endpoint.
    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The next request.
    pub(super) async fn next(&mut self) -> Arrival {
        loop {
            match self.seen.recv().await.unwrap() {
                Seen::Request(arrival) => return arrival,
                Seen::Closed(_) => {}
            }
        }
    }

    /// Waits until the other side closes this connection.
    pub(super) async fn closed(&mut self, connection: usize) {
        loop {
            match self.seen.recv().await.unwrap() {
                Seen::Closed(closed) if closed == connection => return,
                Seen::Closed(_) => {}
                Seen::Request(arrival) => panic!("an unexpected request: {}", arrival.head),
            }
        }
    }
}

async fn serve(connection: usize, stream: TcpStream, seen: mpsc::UnboundedSender<Seen>) {
    let (mut reader, writer) = stream.into_split();
    let writer = Arc::new(tokio::sync::Mutex::new(writer));
    let mut unread = Vec::new();
    while let Some((head, body)) = read_request(&mut reader, &mut unread).await {
        let body = serde_json::from_str(&body).unwrap_or_default();
        let arrival = Arrival { connection, head, body, writer: writer.clone() };
        let _ = seen.send(Seen::Request(arrival));
    }
    let _ = seen.send(Seen::Closed(connection));
}

async fn read_request(
    reader: &mut OwnedReadHalf,
    unread: &mut Vec<u8>,
) -> Option<(String, String)> {
    loop {
        if let Some(end) = unread.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(unread[..end].to_vec()).unwrap();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length = length.map_or(0, |length| length.parse::<usize>().unwrap());
            let whole = end + 4 + length;
            if unread.len() >= whole {
                let body = String::from_utf8(unread[end + 4..whole].to_vec()).unwrap();
                unread.drain(..whole);
                return Some((head, body));
            }
        }
        let mut part = [0u8; 4096];
        match reader.read(&mut part).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => unread.extend_from_slice(&part[..count]),
        }
    }
}

/// A line to a peer, with a secret header.
pub(super) fn line(url: &str, clock: &Arc<TestClock>) -> Arc<dyn Line> {
    let headers = vec![("Authorization".to_owned(), Secret::new("Bearer hush-hush"))];
    HttpLine::new(url, headers, None, &parts(clock)).unwrap()
}

/// A request of this number.
pub(super) fn request(id: u64, method: &str, params: Value) -> Outgoing {
    Outgoing {
        id: Id::number(id),
        method: method.to_owned(),
        params: params.into(),
        name: None,
        param_headers: Vec::new(),
        timeout_ms: TIMEOUT_MS,
        is_watched: false,
    }
}

/// All replies, as short texts.
pub(super) async fn all(mut replies: Replies) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(incoming) = replies.recv().await {
        told.push(tell(&incoming));
    }
    told
}

/// One message as a short text.
pub(super) fn tell(incoming: &Incoming) -> String {
    match incoming {
        Incoming::Notification { method, .. } => format!("tells {method}"),
        Incoming::Request { id, method, .. } => format!("asks {id} {method}"),
        Incoming::Result(result) => format!("result {result}"),
        Incoming::Error(error) => format!("error {}", error.code),
        Incoming::Broken(error) => format!("broken {:?} {:?}", error.how, error.kind),
    }
}

/// Sends a request that is answered with a stream; gives both ends of it.
pub(super) async fn streaming(
    peer: &mut Peer,
    line: &Arc<dyn Line>,
    request: Outgoing,
) -> (Replies, Arrival) {
    let (replies, arrival) = tokio::join!(line.request(request), async {
        let arrival = peer.next().await;
        arrival.begin_stream().await;
        arrival
    });
    (replies.unwrap(), arrival)
}

/// Sends a request from another task, so that the test can be the other side.
pub(super) fn asked(
    line: &Arc<dyn Line>,
    request: Outgoing,
) -> tokio::task::JoinHandle<Vec<String>> {
    let line = line.clone();
    tokio::spawn(async move {
        match line.request(request).await {
            Ok(replies) => all(replies).await,
            Err(error) => vec![format!("failed {:?} {:?}", error.how, error.kind)],
        }
    })
}
