//! Many threads that wait for an approval, in a server of their own: they should cost disk and
//! nothing else. Some of them are approved at the end, over HTTP.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::commits::Bare;
use super::{Beyond, signed_ms};
use crate::Result;
use crate::http::{self, Answer, Client};
use crate::load::{self, Job, Summary, median};
use crate::product::server::{Server, Site};
use crate::report::{Table, megabytes, ms};

/// What the section's numbers are.
pub const NOTE: &str = "The release binary with the `rules` model. Memory is measured after the \
    first threads, which fill caches of a fixed size, and after all of them. The approvals are \
    `POST /resume` until its answer, one after the other, of threads that are not in memory any \
    more, while all the others wait.";

/// How many clients make threads at once.
pub const CLIENTS: usize = 16;
/// The number of a thread stands here; it has as many digits.
const MARK: &str = "############";
/// How many threads are made before the next approvals.
const BATCH: usize = 200;
/// How many threads are made before the first look at the memory.
const EARLY: usize = 2_000;
const SETTLE: Duration = Duration::from_secs(1);

const SETTINGS: &str = "[models.adding]\nprovider = \"rules\"\nrules = \"rules/adding.yaml\"\n\
    [agents]\ndefault = \"adder\"\n";
const AGENT: &str = r#"refName: adder
llmConfigRef: adding
context:
  - {order: 1, role: system, content: "You add numbers. It is {{now}} ({{zone}})."}
tool_types:
  sums: ["math::add"]
approve: ["math::add"]
"#;
const RULES: &str = r#"version: 1
rules:
  - rule: route
    when: {turn: router}
    answer: {decision: allow, note: It is a sum., allowed_tool_types: [sums]}
  - rule: add
    when: {turn: executor, tools: [math__add]}
    calls:
      - tool: math__add
        args: {a: 1, b: 2}
  - rule: tell
    when: {after: math__add, failed: false}
    say: 'It is {{ (calls|last).outcome }}.'
fallback: {say: I only add.}
"#;

/// What the threads needed.
#[derive(Debug)]
pub struct Waiting {
    /// How many were made between the two looks.
    pub threads: usize,
    /// `POST /resume` until its answer.
    pub resumed: Beyond,
    per_second: f64,
    early_rss_bytes: u64,
    full_rss_bytes: u64,
    restarted_rss_bytes: u64,
}

impl Waiting {
    /// The memory that one more waiting thread takes.
    pub fn bytes_per_thread(&self) -> f64 {
        (self.full_rss_bytes as f64 - self.early_rss_bytes as f64) / self.threads as f64
    }

    /// All figures.
    pub fn table(&self) -> Table {
        let mut table = Table::new(&["what", "measured"]);
        let mut row = |what: &str, value: String| table.row(vec![what.to_owned(), value]);
        row(&format!("made per second, {CLIENTS} clients"), format!("{:.0}", self.per_second));
        let memory = |bytes: u64| format!("{} MB", megabytes(bytes));
        row(&format!("memory with {EARLY} threads"), memory(self.early_rss_bytes));
        row(&format!("memory with {} more", self.threads), memory(self.full_rss_bytes));
        row("more memory for each", format!("{:.0} bytes", self.bytes_per_thread()));
        row("memory after a restart", memory(self.restarted_rss_bytes));
        let Beyond { taken, commits } = self.resumed;
        row("approval to answer over HTTP, p50", format!("{} ms", ms(taken)));
        row("one bare commit, p50", format!("{} ms", ms(commits)));
        row("beyond it", format!("{} ms", signed_ms(self.resumed.ms())));
        table
    }
}

/// Adds the agent, its model and its rules to a project.
pub fn configure(project: &Path) -> Result<()> {
    let path = project.join("waypost.toml");
    let settings = std::fs::read_to_string(&path)?;
    std::fs::write(path, format!("{settings}{SETTINGS}"))?;
    for (folder, file, text) in [("agents", "adder.yaml", AGENT), ("rules", "adding.yaml", RULES)] {
        std::fs::create_dir_all(project.join(folder))?;
        std::fs::write(project.join(folder).join(file), text)?;
    }
    Ok(())
}

/// Makes the threads, approves some, then starts the server again on the same data.
pub async fn measure(
    site: &Site,
    bare: &mut Bare,
    decision: &[Vec<String>],
    threads: usize,
    approvals: usize,
) -> Result<Waiting> {
    let data = site.data()?;
    let server = Server::start(site, data.path()).await?;
    let early = make(server.address(), 0, EARLY).await?;
    sleep(SETTLE).await;
    let early_rss_bytes = server.rss_bytes()?;
    let begun = Instant::now();
    make(server.address(), EARLY, threads).await?;
    let per_second = threads as f64 / begun.elapsed().as_secs_f64();
    sleep(SETTLE).await;
    let full_rss_bytes = server.rss_bytes()?;
    let chosen = early.get(..approvals.min(early.len())).unwrap_or_default();
    let resumed = approve(server.address(), bare, decision, chosen).await?;
    server.stop()?;
    let server = Server::start(site, data.path()).await?;
    // What a server does behind a start counts too.
    sleep(SETTLE).await;
    let restarted_rss_bytes = server.rss_bytes()?;
    server.stop()?;
    Ok(Waiting {
        threads,
        resumed,
        per_second,
        early_rss_bytes,
        full_rss_bytes,
        restarted_rss_bytes,
    })
}

/// Makes a new thread each time, until it waits for an approval.
pub fn threads(address: SocketAddr) -> Result<Arc<Job>> {
    let request = request(address, &format!("bench-{MARK}"));
    Job::numbered(address, request, MARK, load::waiting)
}

/// Approves threads one after the other until the approvals took this long together. The threads
/// are made in batches in between, which is not counted; the first batch is a warm-up.
pub async fn approvals(address: SocketAddr, span: Duration) -> Result<Summary> {
    let mut client = Client::connect(address).await?;
    for made in make(address, 0, BATCH).await? {
        resume(&mut client, address, &made).await?;
    }
    let mut taken = Vec::new();
    let mut elapsed = Duration::ZERO;
    let mut threads = BATCH;
    while elapsed < span {
        for made in make(address, threads, BATCH).await? {
            let time = resume(&mut client, address, &made).await?;
            taken.push(time);
            elapsed += time;
        }
        threads += BATCH;
    }
    Ok(Summary::of(taken, elapsed))
}

/// A thread that waits, and the call that it waits for.
struct Made {
    thread: String,
    call: String,
}

/// Makes so many threads, numbered from `first` on.
async fn make(address: SocketAddr, first: usize, count: usize) -> Result<Vec<Made>> {
    let mut tasks = JoinSet::new();
    for client in 0..CLIENTS {
        tasks.spawn(async move {
            let mut connection = Client::connect(address).await?;
            let mut made = Vec::new();
            for number in (client..count).step_by(CLIENTS) {
                let thread = format!("bench-{}", first + number);
                let answer = connection.send(&request(address, &thread)).await?;
                let call = asked_call(&answer)?;
                made.push(Made { thread, call });
            }
            Ok::<Vec<Made>, Box<dyn std::error::Error + Send + Sync>>(made)
        });
    }
    let mut made = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        made.extend(joined??);
    }
    Ok(made)
}

fn request(address: SocketAddr, thread: &str) -> Vec<u8> {
    let body = json!({"thread_id": thread, "user_request": "add one and two"});
    http::post(address, "/run", &body.to_string())
}

fn asked_call(answer: &Answer<'_>) -> Result<String> {
    let body: Value = serde_json::from_slice(answer.body)?;
    let call = body["pending_action"]["tool_calls"][0]["call_id"].as_str();
    match call {
        Some(call) if answer.status == 202 => Ok(call.to_owned()),
        _ => {
            Err(format!("expected 202 with a call to approve, got {}: {body}", answer.status)
                .into())
        }
    }
}

/// Approves these, one after the other, with a bare commit after each.
async fn approve(
    address: SocketAddr,
    bare: &mut Bare,
    decision: &[Vec<String>],
    made: &[Made],
) -> Result<Beyond> {
    let mut client = Client::connect(address).await?;
    let mut taken = Vec::new();
    let mut commits = Vec::new();
    for made in made {
        taken.push(resume(&mut client, address, made).await?);
        commits.extend(bare.replay(decision).await?);
    }
    Ok(Beyond { taken: median(taken), commits: median(commits) })
}

/// Approves one, and says how long its answer took.
async fn resume(client: &mut Client, address: SocketAddr, made: &Made) -> Result<Duration> {
    let approvals = [json!({"call_id": made.call, "approved": true})];
    let body = json!({"thread_id": made.thread, "approvals": approvals});
    let request = http::post(address, "/resume", &body.to_string());
    let begun = Instant::now();
    let answer = client.send(&request).await?;
    let taken = begun.elapsed();
    let body = String::from_utf8_lossy(answer.body);
    if answer.status != 200 || !body.contains(r#""status":"success""#) {
        return Err(format!("an approval was answered {}: {body}", answer.status).into());
    }
    Ok(taken)
}
