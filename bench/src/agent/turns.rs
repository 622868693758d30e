//! Overhead of the engine for each turn of a model, separately for routers and executors.

use std::time::{Duration, Instant};

use super::commits::{Bare, by_turn};
use super::world::{READS, World};
use super::{Beyond, signed_ms};
use crate::Result;
use crate::load::median;
use crate::report::{Table, ms};

/// What the section's numbers are.
pub const NOTE: &str = "An engine in this process over a real store; the model and the tools \
    answer at once. A turn lasts from the answer before it (the router's: from the request) until its \
    model is asked: rendering, recording and the commit before the model is asked, and the tool \
    call in between. The bare commits write the same journal rows, by turns with the runs.";

/// How often the model of a run calls a tool before it answers.
const CALLS: u32 = 8;
/// The parts of a run: the router's turn, one executor's turn per call and one more, the end.
const PARTS: usize = CALLS as usize + 3;

/// The parts of a run of an agent, beside the commits of their rows.
#[derive(Debug)]
pub struct Turns {
    /// From the request until the router is asked: the thread and the run are made here.
    pub router: Beyond,
    /// From the router's answer until the executor is asked.
    pub first: Beyond,
    /// From an executor's call until it is asked again.
    pub next: Beyond,
    end: Beyond,
    rows: usize,
}

impl Turns {
    /// The turn that costs most beyond its commits.
    pub fn worst_ms(&self) -> f64 {
        self.router.ms().max(self.first.ms()).max(self.next.ms())
    }

    /// All parts.
    pub fn table(&self) -> Table {
        let mut table = Table::new(&["part", "p50 ms", "bare commits ms", "the engine's ms"]);
        for (part, beyond) in [
            ("router's turn, with a new thread", &self.router),
            ("executor's first turn", &self.first),
            ("executor's turn after a tool call", &self.next),
            ("last answer until the run's answer", &self.end),
        ] {
            let taken = ms(beyond.taken);
            let commits = ms(beyond.commits);
            table.row(vec![part.to_owned(), taken, commits, signed_ms(beyond.ms())]);
        }
        let rows = self.rows.to_string();
        let turns = (PARTS - 1).to_string();
        table.row(vec![format!("journal rows of a run with {turns} turns"), rows, dash(), dash()]);
        table
    }
}

fn dash() -> String {
    "-".to_owned()
}

/// One round: so many runs, each in a thread of its own, and the bare commits of one by turns.
pub async fn measure(world: &World, bare: &mut Bare, name: &str, runs: usize) -> Result<Turns> {
    let mut taken: Vec<Vec<Duration>> = vec![Vec::new(); PARTS];
    let mut commits = taken.clone();
    let mut groups = Vec::new();
    for index in 0..runs {
        let thread = format!("{name}-{index}");
        add(&mut taken, one_run(world, &thread).await?)?;
        if groups.is_empty() {
            groups = by_turn(world.journal(&thread)?);
        }
        add(&mut commits, bare.replay(&groups).await?)?;
    }
    let rows = groups.iter().map(Vec::len).sum();
    let beyond = |parts: std::ops::Range<usize>| Beyond {
        taken: median(taken[parts.clone()].concat()),
        commits: median(commits[parts].concat()),
    };
    Ok(Turns {
        router: beyond(0..1),
        first: beyond(1..2),
        next: beyond(2..PARTS - 1),
        end: beyond(PARTS - 1..PARTS),
        rows,
    })
}

/// How long each part of one run took.
async fn one_run(world: &World, thread: &str) -> Result<Vec<Duration>> {
    world.model.begin(READS, CALLS);
    let begun = Instant::now();
    let report = world.say(thread).await?;
    let ended = Instant::now();
    let status = report.run.status.name();
    if status != "completed" {
        return Err(format!("a run is {status}: {:?}", report.run.last_error).into());
    }
    let mut times = Vec::with_capacity(PARTS);
    let mut before = begun;
    for asked in world.model.asked() {
        times.push(asked.at - before);
        before = asked.answered;
    }
    times.push(ended - before);
    Ok(times)
}

fn add(all: &mut [Vec<Duration>], times: Vec<Duration>) -> Result<()> {
    if all.len() != times.len() {
        return Err(format!("a run has {} parts instead of {}", times.len(), all.len()).into());
    }
    for (part, time) in all.iter_mut().zip(times) {
        part.push(time);
    }
    Ok(())
}
