//! `bench agent`: what agents cost beside their models. The engine in this process with a model
//! that answers at once, so that nothing but the engine and the disk is measured; and the real
//! server with many threads that wait for a person. Bare commits of the same rows stand beside.

pub mod world;
mod commits;
mod turns;
mod approval;
pub mod waiting;

use std::path::PathBuf;
use std::time::Duration;

use crate::Result;
use crate::load::middle;
use crate::options::{USAGE, positive};
use crate::product::server::Site;
use crate::report::{self, Table};
use approval::Approval;
use commits::Bare;
use turns::Turns;
use waiting::Waiting;
use world::World;

/// How long a run may take: never, with a model that answers at once.
const WAIT_MS: u64 = 60_000;
/// How often everything in this process is measured; the middle one counts.
const ROUNDS: usize = 3;
const RUNS: usize = 200;
const THREADS: usize = 10_000;
const APPROVALS: usize = 200;

const TURN_MS_MAX: f64 = 0.5;
const APPROVAL_MS_MAX: f64 = 2.0;
/// Less is what an allocator keeps by chance.
const THREAD_BYTES_MAX: f64 = 1_000.0;

/// Others, as the milestone names them. They are words here, not measurements of this run.
const PEERS: &str = "From an approval to the continued run, as measured earlier on this kind of \
    machine: LangGraph 6.4 ms, DBOS 19.8 ms. They were not run again here.";

/// What to measure, and how often.
#[derive(Debug)]
pub struct Options {
    runs: usize,
    threads: usize,
    dir: PathBuf,
    server: Option<PathBuf>,
}

impl Options {
    /// Reads the arguments after `agent` and the environment.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            runs: RUNS,
            threads: THREADS,
            dir: std::env::temp_dir(),
            server: std::env::var_os("WAYPOST_BIN").map(PathBuf::from),
        };
        while let Some(flag) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
            match flag.as_str() {
                "--runs" => options.runs = positive(&flag, &value)?,
                "--threads" => options.threads = positive(&flag, &value)?,
                "--dir" => options.dir = PathBuf::from(&value),
                _ => return Err(format!("unknown option `{flag}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }
}

/// A time beside that of bare commits, both medians of the same round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beyond {
    taken: Duration,
    commits: Duration,
}

impl Beyond {
    /// What is not the disk's. Signed: where noise is larger than that, it must show.
    fn ms(&self) -> f64 {
        (self.taken.as_secs_f64() - self.commits.as_secs_f64()) * 1e3
    }
}

fn signed_ms(ms: f64) -> String {
    format!("{ms:.3}")
}

/// Measures all of it and says which targets were met.
pub async fn measure(options: &Options) -> Result<()> {
    report::header("Agents", &options.dir)?;
    let mut bare = Bare::open(&options.dir)?;
    let measured = sections(options, &mut bare).await;
    // The writer's error comes first: those who wait for it only know that it stopped.
    bare.close().await?;
    report::section("Targets", PEERS, &targets(&measured?));
    Ok(())
}

/// What was measured.
struct Measured {
    turns: Turns,
    approval: Approval,
    waiting: Waiting,
}

async fn sections(options: &Options, bare: &mut Bare) -> Result<Measured> {
    let world = World::open(&options.dir)?;
    report::progress("warm-up");
    turns::measure(&world, bare, "warm", options.runs.div_ceil(4)).await?;
    let mut all_turns = Vec::new();
    let mut approvals = Vec::new();
    let mut decision = Vec::new();
    for round in 1..=ROUNDS {
        report::progress(&format!("turns and approvals, round {round}"));
        let turns = turns::measure(&world, bare, &format!("turns-{round}"), options.runs).await?;
        all_turns.push(turns);
        let name = format!("approvals-{round}");
        let (approval, row) = approval::measure(&world, bare, &name, options.runs).await?;
        approvals.push(approval);
        decision = row;
    }
    world.close().await;
    let turns = middle(all_turns, Turns::worst_ms).ok_or("no round was measured")?;
    let approval = middle(approvals, |approval| approval.asked.ms());
    let approval = approval.ok_or("no round was measured")?;
    report::section("Turns", turns::NOTE, &turns.table());
    report::section("Approvals", approval::NOTE, &approval.table());
    report::progress(&format!("{} threads that wait", options.threads));
    let site = Site::build(options.server.as_deref(), &options.dir)?;
    waiting::configure(&site.project())?;
    let waiting = waiting::measure(&site, bare, &decision, options.threads, APPROVALS).await;
    let waiting = waiting.map_err(|error| site.explain(&*error))?;
    report::section("Threads that wait for approval", waiting::NOTE, &waiting.table());
    Ok(Measured { turns, approval, waiting })
}

fn targets(Measured { turns, approval, waiting }: &Measured) -> Table {
    let mut table = Table::new(&["target", "measured", "met"]);
    let mut row = |target: String, measured: String, met: bool| {
        table.row(vec![target, measured, if met { "yes" } else { "no" }.to_owned()]);
    };
    for (who, beyond) in
        [("router", turns.router), ("executor, first", turns.first), ("executor", turns.next)]
    {
        row(
            format!("a turn ({who}): the engine takes < {TURN_MS_MAX:.1} ms beyond the commit"),
            format!("{} ms", signed_ms(beyond.ms())),
            beyond.ms() < TURN_MS_MAX,
        );
    }
    for (how, beyond) in [
        ("to the model's next turn, in process", approval.asked),
        ("to the answer, over HTTP", waiting.resumed),
    ] {
        row(
            format!("approval {how}: ≤ {APPROVAL_MS_MAX:.1} ms beyond one commit"),
            format!("{} ms", signed_ms(beyond.ms())),
            beyond.ms() <= APPROVAL_MS_MAX,
        );
    }
    let bytes = waiting.bytes_per_thread();
    // Fewer threads prove nothing.
    if waiting.threads >= THREADS {
        row(
            format!("{THREADS} waiting threads: < {THREAD_BYTES_MAX:.0} bytes of memory each"),
            format!("{bytes:.0} bytes"),
            bytes < THREAD_BYTES_MAX,
        );
    }
    table
}
