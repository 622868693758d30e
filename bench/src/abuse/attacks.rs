//! Every attack at once, in a thread of its own, so that the clients that are timed do not wait for
//! those that attack. All of it ends with the thread.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::setpriority_process;
use serde_json::{Value, json};
use testkit::fuzz::hostile::{self, Case, Kind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::upstream::Upstream;
use crate::Result;
use crate::http::{self, Client};
use crate::report::Table;

/// Attackers are on machines of their own: here they may use what server and clients leave. On
/// Linux a thread has a priority of its own.
const ATTACKERS_NICE: i32 = 19;
/// How many clients send hostile texts, one after the other.
const SENDERS: usize = 2;
const SENDER_PAUSE: Duration = Duration::from_millis(5);
/// More connections than the usual limit of descriptors.
const SILENT: usize = 1_124;
/// What this process needs beside the silent connections.
const OWN_DESCRIPTORS: usize = 500;
const SILENT_PAUSE: Duration = Duration::from_secs(1);
/// One of so many silent connections is renewed after each pause.
const SILENT_SHARE: usize = 30;
const UNFINISHED: usize = 150;
const UNFINISHED_BYTES: usize = 4_000_000;
const UNREAD: usize = 100;
const UNREAD_FOR: Duration = Duration::from_secs(30);
const SLOW: usize = 20;
const SLOW_BYTES: usize = 64;
const SLOW_PAUSE: Duration = Duration::from_millis(100);
const SLOW_READS: usize = 600;
/// How many items each of the two loops has.
const SPIN_ITEMS: usize = 1_000;
const SPIN_LOOK: Duration = Duration::from_secs(1);
const UPSTREAM_UP: Duration = Duration::from_secs(10);
const UPSTREAM_DOWN: Duration = Duration::from_secs(2);
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
const RENEW_PAUSE: Duration = Duration::from_millis(500);

/// Where bodies of the corpus are sent.
const BODIES: [&str; 6] =
    ["/api/v1/runs", "/api/v1/plans/validate", "/run", "/sessions", "/mcp", "/rpc"];

/// The attacks by the names that `--attacks` takes.
pub const NAMES: [&str; 7] =
    ["texts", "spin", "silent", "unfinished", "unread", "slow", "upstream"];

/// How often each attack was made.
#[derive(Debug, Default)]
struct Tally {
    texts: AtomicU64,
    silent: AtomicU64,
    unfinished: AtomicU64,
    unread: AtomicU64,
    slow: AtomicU64,
    spins: AtomicU64,
    upstreams: AtomicU64,
}

fn count(attacks: &AtomicU64) {
    attacks.fetch_add(1, Ordering::Relaxed);
}

/// What is attacked.
#[derive(Debug, Clone)]
pub struct Target {
    address: SocketAddr,
    /// A large blob of the server.
    blob: String,
    /// Which attacks are made.
    attacks: Vec<String>,
    tally: Arc<Tally>,
}

impl Target {
    /// This server, which has this blob, under these attacks.
    pub fn new(address: SocketAddr, blob: String, attacks: Vec<String>) -> Self {
        Self { address, blob, attacks, tally: Arc::default() }
    }

    fn is_made(&self, attack: &str) -> bool {
        self.attacks.iter().any(|made| made == attack)
    }

    async fn connected(&self) -> Option<TcpStream> {
        timeout(CONNECT_LIMIT, TcpStream::connect(self.address)).await.ok()?.ok()
    }
}

/// The attacks under way.
pub struct Attacks {
    thread: JoinHandle<()>,
    stop: oneshot::Sender<()>,
    tally: Arc<Tally>,
}

impl Attacks {
    /// Begins all of them.
    pub fn start(target: Target, upstream: Upstream) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let tally = Arc::clone(&target.tally);
        let thread = std::thread::spawn(move || {
            if let Err(error) = setpriority_process(None, ATTACKERS_NICE) {
                eprintln!("bench: the attackers keep the priority of the server: {error}");
            }
            runtime.block_on(async move {
                begin(&target, upstream);
                // A caller that drops the other end wants an end, too.
                let _ = stopped.await;
            });
        });
        Ok(Self { thread, stop, tally })
    }

    /// Ends all of them, and says how often each was made.
    pub fn stop(self) -> Result<Table> {
        // The thread may have ended already; then its panic is reported.
        let _ = self.stop.send(());
        self.thread.join().map_err(|_| "the attacks panicked")?;
        let mut table = Table::new(&["attack", "how often"]);
        let Tally { texts, silent, unfinished, unread, slow, spins, upstreams } = &*self.tally;
        for (name, attacks) in [
            ("hostile texts, bodies and heads", texts),
            ("silent connections", silent),
            ("bodies that never end", unfinished),
            ("blobs that are never read", unread),
            ("answers that are read slowly", slow),
            ("runs that spin", spins),
            ("upstreams with hostile lists", upstreams),
        ] {
            table.row(vec![name.to_owned(), attacks.load(Ordering::Relaxed).to_string()]);
        }
        Ok(table)
    }
}

/// All tasks end with their runtime.
fn begin(target: &Target, upstream: Upstream) {
    if target.is_made("texts") {
        for sender in 0..SENDERS {
            tokio::spawn(texts(target.clone(), sender));
        }
    }
    if target.is_made("spin") {
        tokio::spawn(spin(target.clone()));
    }
    if target.is_made("silent") {
        tokio::spawn(silent(target.clone()));
    }
    if target.is_made("unfinished") {
        let body: Arc<[u8]> = vec![b' '; UNFINISHED_BYTES].into();
        for _ in 0..UNFINISHED {
            tokio::spawn(unfinished(target.clone(), Arc::clone(&body)));
        }
    }
    if target.is_made("unread") {
        for _ in 0..UNREAD {
            tokio::spawn(unread(target.clone()));
        }
    }
    if target.is_made("slow") {
        for _ in 0..SLOW {
            tokio::spawn(slow(target.clone()));
        }
    }
    if target.is_made("upstream") {
        tokio::spawn(flapping(target.clone(), upstream));
    }
}

/// Sends the corpus, again and again; each sender its share.
async fn texts(target: Target, sender: usize) {
    loop {
        for case in hostile::all().skip(sender).step_by(SENDERS) {
            for request in requests(target.address, case) {
                if let Some(mut stream) = target.connected().await {
                    // What is refused early cannot be sent to its end.
                    let _ = timeout(ANSWER_LIMIT, exchanged(&mut stream, &request)).await;
                    count(&target.tally.texts);
                }
                sleep(SENDER_PAUSE).await;
            }
        }
    }
}

/// Sends all of it, and waits for the beginning of the answer.
async fn exchanged(stream: &mut TcpStream, request: &[u8]) -> std::io::Result<()> {
    let sent = stream.write_all(request).await;
    stream.readable().await?;
    sent
}

/// A case as the requests that carry it; none for what only an upstream says.
fn requests(address: SocketAddr, case: &Case) -> Vec<Vec<u8>> {
    match case.kind {
        Kind::JsonPath | Kind::Template | Kind::Schema => {
            let plan = plan(case);
            let run = format!("{{\"plan\":{plan},\"input\":{{\"a\":[[[[[[[[1]]]]]]]]}}}}");
            vec![
                http::post(address, "/api/v1/runs", &run),
                http::post(address, "/api/v1/plans/validate", &plan),
            ]
        }
        Kind::Yaml | Kind::Body => {
            let bytes = case.bytes();
            BODIES.iter().map(|path| posted(address, path, &bytes)).collect()
        }
        Kind::Header => {
            let line = format!("POST /api/v1/runs HTTP/1.1\r\nhost: {address}\r\n");
            let mut bytes = line.into_bytes();
            bytes.extend_from_slice(&case.bytes());
            bytes.extend_from_slice(b"content-length: 2\r\n\r\n{}");
            vec![bytes]
        }
        Kind::Query => {
            let body = json!({"rootType": "Order", "query": case.text()}).to_string();
            vec![http::post(address, "/api/query/find", &body)]
        }
        Kind::Listed | Kind::Answered => Vec::new(),
    }
}

fn plan(case: &Case) -> String {
    let text = Value::from(case.text());
    let (message, schema) = match case.kind {
        Kind::JsonPath => (json!({"jsonPath": text}).to_string(), "{}".to_owned()),
        Kind::Template => (text.to_string(), "{}".to_owned()),
        _ => ("\"done\"".to_owned(), case.text()),
    };
    format!(
        "{{\"planId\":\"hostile/case\",\"description\":\"hostile\",\"parameters\":{schema},\
         \"steps\":[{{\"id\":\"end\",\"type\":\"final_response\",\"message\":{message}}}]}}"
    )
}

fn posted(address: SocketAddr, path: &str, body: &[u8]) -> Vec<u8> {
    let mut request = head(address, path, body.len());
    request.extend_from_slice(body);
    request
}

fn head(address: SocketAddr, path: &str, length: usize) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n"
    )
    .into_bytes()
}

/// One run that spins, and another one when it is held or over. What it stored goes with it, or
/// the disk would be full before the end.
async fn spin(target: Target) {
    let items: Vec<usize> = (0..SPIN_ITEMS).collect();
    let body = json!({"planId": "abuse/spin", "input": {"items": items}}).to_string();
    let start = http::post(target.address, "/api/v1/runs?wait=0", &body);
    loop {
        if let Ok((run, session)) = started(target.address, &start).await {
            count(&target.tally.spins);
            while status(target.address, &run).await.is_ok_and(|status| status == "running") {
                sleep(SPIN_LOOK).await;
            }
            let cancel = http::post(target.address, &format!("/api/v1/runs/{run}/cancel"), "");
            let _ = asked(target.address, &cancel).await;
            let remove = format!(
                "DELETE /api/v1/sessions/{session} HTTP/1.1\r\nhost: {}\r\n\r\n",
                target.address
            );
            let _ = asked(target.address, remove.as_bytes()).await;
        }
        sleep(SPIN_LOOK).await;
    }
}

async fn started(address: SocketAddr, request: &[u8]) -> Result<(String, String)> {
    let answer = asked(address, request).await?;
    let id = |part: &str| answer[part]["id"].as_str().map(str::to_owned);
    id("run").zip(id("session")).ok_or_else(|| "the run did not begin".into())
}

async fn status(address: SocketAddr, run: &str) -> Result<String> {
    let answer = asked(address, &http::get(address, &format!("/api/v1/runs/{run}"))).await?;
    let status = answer["run"]["status"].as_str();
    status.map(str::to_owned).ok_or_else(|| "a run without a status".into())
}

async fn asked(address: SocketAddr, request: &[u8]) -> Result<Value> {
    let mut client = Client::connect(address).await?;
    let answer = client.send(request).await?;
    Ok(serde_json::from_slice(answer.body)?)
}

/// Connections that say nothing; the oldest are renewed.
async fn silent(target: Target) {
    let most = SILENT.min(descriptors().saturating_sub(OWN_DESCRIPTORS));
    let mut held: VecDeque<TcpStream> = VecDeque::new();
    loop {
        while held.len() < most {
            let Some(stream) = target.connected().await else { break };
            count(&target.tally.silent);
            held.push_back(stream);
        }
        sleep(SILENT_PAUSE).await;
        let renewed = held.len() / SILENT_SHARE;
        held.drain(..renewed);
    }
}

/// How many descriptors this process may have.
fn descriptors() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find(|line| line.starts_with("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().nth(3));
    soft.map_or(SILENT, |soft| soft.parse().unwrap_or(usize::MAX))
}

/// A body that lacks its last byte, until the server hangs up.
async fn unfinished(target: Target, body: Arc<[u8]>) {
    let head = head(target.address, "/api/v1/runs", UNFINISHED_BYTES + 1);
    loop {
        if let Some(mut stream) = target.connected().await {
            count(&target.tally.unfinished);
            let sending = async {
                let _ = stream.write_all(&head).await;
                let _ = stream.write_all(&body).await;
                let _ = stream.readable().await;
            };
            let _ = timeout(ANSWER_LIMIT, sending).await;
        }
        sleep(RENEW_PAUSE).await;
    }
}

/// Asks for the blob and reads nothing of it.
async fn unread(target: Target) {
    let request = http::get(target.address, &format!("/api/v1/blobs/{}", target.blob));
    loop {
        if let Some(mut stream) = target.connected().await {
            count(&target.tally.unread);
            let _ = stream.write_all(&request).await;
            sleep(UNREAD_FOR).await;
        }
        sleep(RENEW_PAUSE).await;
    }
}

/// Reads a large answer a few bytes at a time.
async fn slow(target: Target) {
    let request = http::get(target.address, "/openapi.json");
    loop {
        if let Some(mut stream) = target.connected().await {
            count(&target.tally.slow);
            let _ = stream.write_all(&request).await;
            for _ in 0..SLOW_READS {
                if stream.read_exact(&mut [0; SLOW_BYTES]).await.is_err() {
                    break;
                }
                sleep(SLOW_PAUSE).await;
            }
        }
        sleep(RENEW_PAUSE).await;
    }
}

/// The upstream goes away and comes back on the same port.
async fn flapping(target: Target, upstream: Upstream) {
    let port = upstream.port();
    let mut up = Some(upstream);
    loop {
        count(&target.tally.upstreams);
        sleep(UPSTREAM_UP).await;
        drop(up.take());
        sleep(UPSTREAM_DOWN).await;
        // A port that is not free yet is tried again next time.
        up = Upstream::start(port).ok();
    }
}
