//! What a caller of one realm notices of the callers of another one, by the kind of their load.
//! Both have keys of the role `member`. The loads have a thread of low priority, so that the
//! clients that are timed do not wait for it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::setpriority_process;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::Options;
use crate::Result;
use crate::a2a;
use crate::http::{Client, post_with};
use crate::load::{self, Job, RUNS_PATH, run_for, unexpected};
use crate::mcp::wire;
use crate::product::server::{Server, Site};
use crate::report::{self, Table, ms};

/// As long as an admin key must be.
const ADMIN_KEY: &str = "the-admin-key-of-a-benchmark-and-of-nothing-else";
const RATIO_MAX: f64 = 5.0;
const CLIENTS: usize = 32;
const SPINNING: usize = 13;
const LOOP_ITEMS: usize = 200;
const SPIN_ITEMS: usize = 1_000;
const LARGE_BYTES: usize = 300_000;
const LOAD_NICE: i32 = 19;
/// How long a load runs before anything is timed beside it.
const SETTLE: Duration = Duration::from_secs(1);
const REFUSED_PAUSE: Duration = Duration::from_millis(50);

const REALMS: &str = "[server]\nhosts = [\"wp.test\"]\n[realms.red]\n[realms.blue]\n";

/// A load of the other realm.
#[derive(Debug, Clone, Copy)]
struct Load {
    name: &'static str,
    callers: usize,
    clients: usize,
    /// What its clients send by turns.
    kinds: &'static [Sent],
}

/// One request of a load.
#[derive(Debug, Clone, Copy)]
enum Sent {
    Read,
    Run,
    List,
    Loop,
    Large,
    Spin,
}

const LOADS: [Load; 7] = [
    Load {
        name: "one caller, 32 clients, mixed",
        callers: 1,
        clients: CLIENTS,
        kinds: &[Sent::Read, Sent::Run, Sent::List, Sent::Loop],
    },
    Load {
        name: "three callers, 96 clients, mixed",
        callers: 3,
        clients: 3 * CLIENTS,
        kinds: &[Sent::Read, Sent::Run, Sent::List, Sent::Loop],
    },
    Load { name: "loops of 200 reads", callers: 1, clients: CLIENTS, kinds: &[Sent::Loop] },
    Load { name: "inputs of 300 KB", callers: 1, clients: CLIENTS, kinds: &[Sent::Large] },
    Load { name: "small durable runs", callers: 1, clients: CLIENTS, kinds: &[Sent::Run] },
    Load { name: "reads", callers: 1, clients: CLIENTS, kinds: &[Sent::Read] },
    Load { name: "13 spinning runs", callers: 1, clients: SPINNING, kinds: &[Sent::Spin] },
];

impl Sent {
    /// A request of a caller with this credential, a header line.
    fn request(self, address: SocketAddr, credential: &str) -> Vec<u8> {
        let run =
            |path: &str, body: &Value| post_with(address, path, credential, &body.to_string());
        let items = |count: usize| (0..count).collect::<Vec<usize>>();
        match self {
            Self::Read => wire::call_as(address, credential),
            Self::Run => post_with(address, RUNS_PATH, credential, load::READ_ONLY_RUN),
            Self::List => get_as(address, "/api/v1/sessions?limit=20", credential),
            Self::Loop => {
                let input = json!({"items": items(LOOP_ITEMS)});
                run(RUNS_PATH, &json!({"planId": "bench/loop", "input": input}))
            }
            Self::Large => {
                let input = json!({"n": 1, "text": "x".repeat(LARGE_BYTES)});
                run(RUNS_PATH, &json!({"planId": "bench/read3", "input": input}))
            }
            Self::Spin => {
                let input = json!({"items": items(SPIN_ITEMS)});
                run(RUNS_PATH, &json!({"planId": "abuse/spin", "input": input}))
            }
        }
    }
}

fn get_as(address: SocketAddr, path: &str, credential: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n{credential}\r\n").into_bytes()
}

/// A server with two realms.
struct Shared {
    // First, so that it is stopped before its folders go.
    server: Server,
    site: Site,
    _data: TempDir,
}

/// Times one caller of a realm alone, and beside each load of another realm.
pub async fn measure(options: &Options) -> Result<()> {
    let shared = Shared::start(options).await?;
    let measured = beside_all(&shared, options.fairness).await;
    measured.map_err(|error| shared.site.explain(&*error))?;
    shared.server.stop()
}

impl Shared {
    async fn start(options: &Options) -> Result<Self> {
        let binary = options.server.as_deref().ok_or("no server to start: set WAYPOST_BIN")?;
        let site = a2a::site(binary, &options.dir)?;
        let folder = site.project().join("plans/abuse");
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("spin.yaml"), super::SPIN)?;
        let path = site.project().join("waypost.toml");
        let settings = std::fs::read_to_string(&path)?;
        std::fs::write(path, format!("{settings}{REALMS}"))?;
        let data = site.data()?;
        let variables = [("WAYPOST_ADMIN_KEY", ADMIN_KEY)];
        let started = Server::start_with(&site, data.path(), &variables).await;
        let server = started.map_err(|error| site.explain(&*error))?;
        Ok(Self { server, site, _data: data })
    }

    /// A new key of a member of a realm, as a header line.
    async fn key(&self, realm: &str, name: &str) -> Result<String> {
        let address = self.server.address();
        let body = json!({"name": name, "realms": {realm: ["member"]}}).to_string();
        let admin = format!("x-api-key: {ADMIN_KEY}\r\n");
        let mut client = Client::connect(address).await?;
        let answer = client.send(&post_with(address, "/api/v1/keys", &admin, &body)).await?;
        if answer.status != 201 {
            return Err(unexpected("201 with a key", &answer));
        }
        let made: Value = serde_json::from_slice(answer.body)?;
        let text = made["text"].as_str().ok_or("the new key has no text")?;
        Ok(format!("x-api-key: {text}\r\n"))
    }
}

/// What is timed, each with one client.
struct Probes([(&'static str, Arc<Job>); 4]);

impl Probes {
    fn of(address: SocketAddr, key: &str) -> Result<Self> {
        let run = post_with(address, RUNS_PATH, key, load::READ_ONLY_RUN);
        let list = Sent::List.request(address, key);
        Ok(Self([
            ("read", Job::of(address, wire::call_as(address, key), wire::called)),
            ("run", Job::of(address, run, load::completed)),
            ("list", Job::of(address, list, listed)),
            ("A2A task", a2a::messages_as(address, key)?),
        ]))
    }

    async fn time(&self, span: Duration) -> Result<Vec<Duration>> {
        let mut medians = Vec::new();
        for (_, job) in &self.0 {
            medians.push(run_for(job, 1, span / 4).await?.p50);
        }
        Ok(medians)
    }
}

fn listed(answer: &crate::http::Answer<'_>) -> Result<()> {
    if answer.status == 200 { Ok(()) } else { Err(unexpected("200 with a list", answer)) }
}

async fn beside_all(shared: &Shared, span: Duration) -> Result<()> {
    let address = shared.server.address();
    // A2A takes a request without a realm for one of the card's.
    let timed = format!("{}x-realm: blue\r\n", shared.key("blue", "timed").await?);
    let probes = Probes::of(address, &timed)?;
    report::progress("a caller of one realm alone");
    let alone = probes.time(span).await?;
    let mut table = Table::new(&[
        "load of the other realm",
        "read",
        "run",
        "list",
        "A2A task",
        "its answers/s",
        "refused/s",
    ]);
    let mut cells = vec!["none, ms".to_owned()];
    cells.extend(alone.iter().copied().map(ms));
    cells.extend([String::new(), String::new()]);
    table.row(cells);
    let mut targets = Table::new(&["target", "measured", "met"]);
    for load in LOADS {
        report::progress(load.name);
        let mut keys = Vec::new();
        for caller in 0..load.callers {
            keys.push(shared.key("red", &format!("{} {caller}", load.name)).await?);
        }
        let running = Running::start(load, address, keys)?;
        sleep(SETTLE).await;
        let beside = probes.time(span).await;
        let (answered, refused) = running.stop()?;
        let beside = beside?;
        let ratios: Vec<f64> = alone
            .iter()
            .zip(&beside)
            .map(|(alone, beside)| beside.as_secs_f64() / alone.as_secs_f64())
            .collect();
        let mut cells = vec![load.name.to_owned()];
        cells.extend(ratios.iter().map(|ratio| format!("x{ratio:.1}")));
        cells.extend([format!("{answered:.0}"), format!("{refused:.0}")]);
        table.row(cells);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        let met = if most <= RATIO_MAX { "yes" } else { "no" };
        let target = format!("beside {}: medians ≤ {RATIO_MAX:.0} × alone", load.name);
        targets.row(vec![target, format!("{most:.1} ×"), met.to_owned()]);
    }
    let note = "One client of one realm at a time: `tools/call` of `math::add`, a run of three \
                reads, a page of sessions, a message of A2A. Medians, as multiples of those alone.";
    report::section("Beside another realm", note, &table);
    report::section("Fairness targets", "", &targets);
    Ok(())
}

/// A load under way.
struct Running {
    thread: JoinHandle<()>,
    stopped: Arc<AtomicBool>,
    counts: Arc<Counts>,
    begun: Instant,
}

#[derive(Debug, Default)]
struct Counts {
    answered: AtomicU64,
    refused: AtomicU64,
}

impl Running {
    fn start(load: Load, address: SocketAddr, keys: Vec<String>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stopped = Arc::<AtomicBool>::default();
        let counts = Arc::<Counts>::default();
        let ends = Arc::clone(&stopped);
        let counted = Arc::clone(&counts);
        let thread = std::thread::spawn(move || {
            if let Err(error) = setpriority_process(None, LOAD_NICE) {
                eprintln!("bench: the load keeps the priority of the server: {error}");
            }
            runtime.block_on(async move {
                let mut clients = JoinSet::new();
                for client in 0..load.clients {
                    let requests: Vec<Vec<u8>> = (load.kinds.iter())
                        .map(|kind| kind.request(address, &keys[client % keys.len()]))
                        .collect();
                    clients.spawn(repeat(address, requests, ends.clone(), counted.clone()));
                }
                while !ends.load(Ordering::Relaxed) {
                    sleep(REFUSED_PAUSE).await;
                }
                // What is under way ends with its connection.
                clients.abort_all();
            });
        });
        Ok(Self { thread, stopped, counts, begun: Instant::now() })
    }

    /// Ends it; answers and refusals a second.
    fn stop(self) -> Result<(f64, f64)> {
        let seconds = self.begun.elapsed().as_secs_f64();
        self.stopped.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the load panicked")?;
        let rate = |count: &AtomicU64| count.load(Ordering::Relaxed) as f64 / seconds;
        Ok((rate(&self.counts.answered), rate(&self.counts.refused)))
    }
}

/// One client, until the load ends.
async fn repeat(
    address: SocketAddr,
    requests: Vec<Vec<u8>>,
    ends: Arc<AtomicBool>,
    counts: Arc<Counts>,
) {
    let mut kept: Option<Client> = None;
    for request in requests.iter().cycle() {
        if ends.load(Ordering::Relaxed) {
            return;
        }
        let Ok(mut client) = Client::kept_or_new(&mut kept, address).await else {
            sleep(REFUSED_PAUSE).await;
            continue;
        };
        let status = client.send(request).await.map(|answer| answer.status);
        let is_answered = matches!(status, Ok(200 | 202));
        let count = if is_answered { &counts.answered } else { &counts.refused };
        count.fetch_add(1, Ordering::Relaxed);
        if status.is_ok() {
            kept = Some(client);
            if !is_answered {
                sleep(REFUSED_PAUSE).await;
            }
        }
    }
}
