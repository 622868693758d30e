//! `bench a2a`: tasks of A2A beside the least that they cost: bare handlers that answer the same, a
//! bare durable commit, and the statements of a page by hand. In turns, because the machine is not
//! the same from minute to minute.

mod wire;
pub mod bare;
mod grpc;
mod page;
mod streams;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::Result;
use crate::baseline::sqlite;
use crate::child::{self, Child};
use crate::gateway::{Chain, KEPT};
use crate::load::{self, Check, Job, Summary};
use crate::mcp::wire::TOOL;
use crate::options::{USAGE, positive};
use crate::product::server::{Server, Site};
use crate::report::{self, Table, load_cells, ms};
use grpc::Program;
use page::Pages;

const SECONDS: u64 = 3;
/// How many clients send messages and read tasks.
pub const CLIENTS: usize = 16;
const TASKS: usize = 1_000_000;
const STREAMS: usize = 1_000;
/// Room for streams of one round that end while those of the next one begin.
const STREAMS_MAX: usize = 4 * STREAMS;
/// How often each load is measured; the middle one counts.
const ROUNDS: usize = 5;

const SEND_SHARE_MIN: f64 = 0.35;
const GET_SHARE_MIN: f64 = 0.25;
const PAGE_TIMES_MAX: f64 = 2.0;
const EVENT_MAX: Duration = Duration::from_millis(50);
const PROXIED_SHARE_MIN: f64 = 0.5;

/// What to measure, and for how long.
#[derive(Debug)]
pub struct Options {
    span: Duration,
    clients: usize,
    tasks: usize,
    dir: PathBuf,
    server: Option<PathBuf>,
    /// The program that loads over gRPC, if it is built.
    grpc: Option<PathBuf>,
}

impl Options {
    /// Reads the arguments after `a2a` and the environment.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            span: Duration::from_secs(SECONDS),
            clients: CLIENTS,
            tasks: TASKS,
            dir: std::env::temp_dir(),
            server: std::env::var_os("WAYPOST_BIN").map(PathBuf::from),
            grpc: Program::path(),
        };
        while let Some(flag) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
            let number = || positive(&flag, &value);
            match flag.as_str() {
                "--seconds" => options.span = Duration::from_secs(u64::try_from(number()?)?),
                "--clients" => options.clients = number()?,
                "--tasks" => options.tasks = number()?,
                "--dir" => options.dir = PathBuf::from(&value),
                _ => return Err(format!("unknown option `{flag}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }
}

/// Measures all of it and says which targets were met.
pub async fn measure(options: &Options) -> Result<()> {
    report::header("A2A", &options.dir)?;
    let mut targets = Table::new(&["target", "measured", "met"]);
    let site = Site::build(options.server.as_deref(), &options.dir)?;
    wire::configure(&site.project(), STREAMS_MAX)?;
    let measured = served(options, &site, &mut targets).await;
    measured.map_err(|error| site.explain(&*error))?;
    proxied(options, &mut targets).await?;
    report::section("Targets", "", &targets);
    Ok(())
}

/// A project with the plans that messages start, for this server.
pub fn site(binary: &Path, dir: &Path) -> Result<Site> {
    let site = Site::build(Some(binary), dir)?;
    wire::configure(&site.project(), STREAMS_MAX)?;
    Ok(site)
}

/// Messages with a credential to a server whose project has what `site` adds.
pub fn messages_as(address: SocketAddr, credential: &str) -> Result<Arc<Job>> {
    wire::sends_as(address, credential)
}

/// Messages to a server, or reads of the task of one.
pub async fn job(address: SocketAddr, is_read: bool) -> Result<Arc<Job>> {
    match is_read {
        true => Ok(wire::gets(address, &wire::sent(address).await?)),
        false => wire::sends(address),
    }
}

/// So many messages, each under an id of its own, and what their answers must be.
pub fn messages(address: SocketAddr, count: usize) -> (Vec<Vec<u8>>, Check) {
    ((0..count).map(|number| wire::send(address, number)).collect(), wire::completed)
}

/// What one server is asked for.
async fn served(options: &Options, site: &Site, targets: &mut Table) -> Result<()> {
    let data = site.data()?;
    let server = Server::start(site, data.path()).await?;
    let floor = Child::start(child::A2A)?;
    let address = server.address();
    let folder = commits_folder(&options.dir)?;
    let committing = Child::start_with(child::A2A, &[folder.path().as_os_str()])?;
    let sends = Sends {
        bare: wire::sends(floor.address())?,
        committing: wire::sends(committing.address())?,
        served: wire::sends(address)?,
    };
    let task = wire::sent(address).await?;
    let gets = [wire::gets(floor.address(), &task), wire::gets(address, &task)];

    let round = sent(options, &sends).await?;
    drop(committing);
    let note = "`SendMessage` over JSON-RPC of a plan that gives its input back; it waits for the \
                task. The commit is the rows of a run, in a group commit. A bare handler that \
                makes this commit before it answers is what a server could be at best.";
    report::section("A message", note, &round.table());
    round.judge("a message ≥", SEND_SHARE_MIN, options, targets);
    over_grpc(options, address, targets).await?;

    let round = read(options, &gets).await?;
    let note = "`GetTask` over JSON-RPC of a completed task.";
    report::section("A read", note, &round.table());
    round.judge("a read ≥", GET_SHARE_MIN, options, targets);

    report::progress(&format!("one event on {STREAMS} streams"));
    let event = streams::measure(address, STREAMS).await?;
    targets.row(vec![
        format!("one event on {STREAMS} streams ≤ {} ms", ms(EVENT_MAX)),
        format!("{} ms, with the answer that leads to it", ms(event)),
        met(event <= EVENT_MAX),
    ]);
    server.stop()?;

    report::progress(&format!("a page among {} tasks", options.tasks));
    let Pages { hand, ours } = page::measure(site, options.tasks).await?;
    let times = ours.as_secs_f64() / hand.as_secs_f64();
    targets.row(vec![
        format!("a page of {} among {} ≤ {PAGE_TIMES_MAX} × by hand", wire::PAGE, options.tasks),
        format!("{times:.2}: {} ms beside {} ms", ms(ours), ms(hand)),
        met(times <= PAGE_TIMES_MAX),
    ]);
    Ok(())
}

/// The same message over gRPC, beside a bare server of `tonic`.
async fn over_grpc(options: &Options, address: SocketAddr, targets: &mut Table) -> Result<()> {
    let Options { span, clients, dir, grpc, .. } = options;
    let Some(path) = grpc else {
        println!("gRPC is not measured: `cargo xtask bench a2a` builds what it needs.\n");
        return Ok(());
    };
    let program = Program(path);
    let folder = commits_folder(dir)?;
    let bare = program.serve(folder.path())?;
    let mut rounds = Vec::new();
    for round in 1..=ROUNDS {
        report::progress(&format!("messages over gRPC, round {round}"));
        let prefix = format!("grpc-{round}");
        let floor = program.load(bare.address(), &prefix, *clients, *span).await?;
        let ours = program.load(address, &prefix, *clients, *span).await?;
        rounds.push(Round::of("bare tonic with that commit", floor, ours));
    }
    let round = load::middle(rounds, Round::share).ok_or("no round was measured")?;
    let note = "The same message, and the same commit before the bare server answers; each client \
                has a connection of its own.";
    report::section("A message over gRPC", note, &round.table());
    round.judge("a message over gRPC ≥", SEND_SHARE_MIN, options, targets);
    Ok(())
}

/// Calls of a tool of another server by the proxy's skill, beside the same calls over MCP.
async fn proxied(options: &Options, targets: &mut Table) -> Result<()> {
    let Options { span, clients, dir, server, .. } = options;
    let chain = Chain::start(server.as_deref(), server.as_deref(), dir).await?;
    let job = wire::proxied(chain.address(), KEPT, TOOL)?;
    let mut rounds = Vec::new();
    for round in 1..=ROUNDS {
        report::progress(&format!("proxied calls, round {round}"));
        // It waits until the other server is there.
        let floor = chain.recorded(*clients, *span).await?;
        let ours = load::run_for(&job, *clients, *span).await?;
        rounds.push(Round::of("a recorded call over MCP", floor, ours));
    }
    chain.stop()?;
    let round = load::middle(rounds, Round::share).ok_or("no round was measured")?;
    let mut table = Table::new(&["who", "calls/s", "p50 ms", "p99 ms"]);
    table.row(load_cells(round.bare, &round.floor));
    table.row(load_cells("the same by `mcp.execute_tool`", &round.ours));
    report::section("A proxied call", "`math::add` of another server of ours.", &table);
    targets.row(vec![
        format!("a proxied call ≥ {PROXIED_SHARE_MIN} of a recorded one, {clients} clients"),
        format!("{:.2}", round.share()),
        met(round.share() >= PROXIED_SHARE_MIN),
    ]);
    Ok(())
}

/// What was measured in one round.
#[derive(Clone, Copy)]
struct Round {
    /// What the floor is.
    bare: &'static str,
    floor: Summary,
    /// One durable commit for each task, where that is a floor of its own.
    commit: Option<Summary>,
    /// Both in one server, where that was measured.
    together: Option<Summary>,
    ours: Summary,
}

impl Round {
    fn of(bare: &'static str, floor: Summary, ours: Summary) -> Self {
        Self { bare, floor, commit: None, together: None, ours }
    }

    /// Of the slower floor: no server of this kind can be faster.
    fn share(&self) -> f64 {
        let commit = self.commit.map_or(f64::INFINITY, |commit| commit.rate);
        self.ours.rate / self.floor.rate.min(commit)
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&["who", "requests/s", "p50 ms", "p99 ms"]);
        table.row(load_cells(self.bare, &self.floor));
        if let Some(commit) = &self.commit {
            table.row(load_cells("one bare durable commit", commit));
        }
        if let Some(together) = &self.together {
            table.row(load_cells("a bare handler with that commit", together));
        }
        table.row(load_cells("waypost", &self.ours));
        table
    }

    fn judge(&self, what: &str, min: f64, options: &Options, targets: &mut Table) {
        let beside = if self.commit.is_some() { "the slower bare rate" } else { self.bare };
        let share = self.share();
        targets.row(vec![
            format!("{what} {min} of {beside}, {} clients", options.clients),
            format!("{share:.2}"),
            met(share >= min),
        ]);
    }
}

/// The same messages to each of them.
struct Sends {
    /// A bare handler.
    bare: Arc<Job>,
    /// One that makes a durable commit before it answers.
    committing: Arc<Job>,
    /// Ours.
    served: Arc<Job>,
}

/// Messages in turns, beside bare commits without a handler; the middle round.
async fn sent(options: &Options, sends: &Sends) -> Result<Round> {
    let Options { span, clients, dir, .. } = options;
    let mut rounds = Vec::new();
    for round in 1..=ROUNDS {
        report::progress(&format!("messages, round {round}"));
        let floor = load::run_for(&sends.bare, *clients, *span).await?;
        let commit = Some(sqlite::measure(dir, *clients, *span).await?);
        let together = Some(load::run_for(&sends.committing, *clients, *span).await?);
        let ours = load::run_for(&sends.served, *clients, *span).await?;
        rounds.push(Round { commit, together, ..Round::of("bare axum", floor, ours) });
    }
    Ok(load::middle(rounds, Round::share).ok_or("no round was measured")?)
}

/// The bare handler's reads and ours in turns; the middle round.
async fn read(options: &Options, jobs: &[Arc<Job>; 2]) -> Result<Round> {
    let Options { span, clients, .. } = options;
    let [bare, served] = jobs;
    let mut rounds = Vec::new();
    for round in 1..=ROUNDS {
        report::progress(&format!("reads, round {round}"));
        let floor = load::run_for(bare, *clients, *span).await?;
        let ours = load::run_for(served, *clients, *span).await?;
        rounds.push(Round::of("bare axum", floor, ours));
    }
    Ok(load::middle(rounds, Round::share).ok_or("no round was measured")?)
}

fn commits_folder(dir: &Path) -> Result<tempfile::TempDir> {
    Ok(tempfile::Builder::new().prefix("waypost-bench-").tempdir_in(dir)?)
}

fn met(met: bool) -> String {
    if met { "yes" } else { "no" }.to_owned()
}
