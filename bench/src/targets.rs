//! The promises, each beside what was measured. They were set before the product was built.

use std::time::Duration;

use crate::baseline::Baselines;
use crate::product::Product;
use crate::report::{Table, megabytes, ms};

const JOURNAL_ROWS_MAX: f64 = 6.0;
const LOADED_CLIENTS: usize = 64;
const RUNS_PER_SECOND_MIN: f64 = 4_200.0;
const OF_BARE_RATE_MIN: f64 = 0.25;
const SINGLE_MEDIAN_MAX: Duration = Duration::from_micros(500);
const SINGLE_COMMITS_MAX: u32 = 3;
const MARGINAL_RATIO_MAX: f64 = 1.2;
const PAUSED_SESSIONS: usize = 100_000;
const PAUSED_BYTES_MAX: u64 = 100_000_000;
const READY_MAX: Duration = Duration::from_millis(100);
const IDLE_BYTES_MAX: u64 = 40_000_000;

/// Every target: what was measured, and whether it was met.
pub fn table(baselines: &Baselines, product: &Product) -> Table {
    let verdicts = [
        ("journal rows per run ≤ 6", journal_rows(product)),
        ("read-only runs, 64 clients ≥ 4,200/s", loaded_rate(product)),
        ("the same ≥ 0.25 of the slower bare rate", loaded_share(baselines, product)),
        ("median, 1 client ≤ 0.5 ms or ≤ three bare commits", single_median(baselines, product)),
        ("marginal step, long session ≤ 1.2 × short", marginal_step(product)),
        ("memory with 100,000 paused sessions < 100 MB", paused_memory(product)),
        ("ready < 100 ms", ready(product)),
        ("idle memory < 40 MB", idle_memory(product)),
    ];
    let mut table = Table::new(&["target", "measured", "met"]);
    for (target, verdict) in verdicts {
        let (measured, met) = match verdict {
            Some(Verdict { measured, met: true }) => (measured, "yes"),
            Some(Verdict { measured, met: false }) => (measured, "no"),
            None => ("-".to_owned(), "not measured"),
        };
        table.row(vec![target.to_owned(), measured, met.to_owned()]);
    }
    table
}

struct Verdict {
    measured: String,
    met: bool,
}

fn verdict(measured: String, met: bool) -> Option<Verdict> {
    Some(Verdict { measured, met })
}

/// Holds for both kinds of runs: the one that was left out cannot vouch for the other.
fn journal_rows(product: &Product) -> Option<Verdict> {
    let reading = product.read_only.as_ref()?.journal_rows()?;
    let writing = product.writing.as_ref()?.journal_rows()?;
    let measured = format!("{reading:.2} read-only, {writing:.2} writing");
    verdict(measured, reading.max(writing) <= JOURNAL_ROWS_MAX)
}

fn loaded_rate(product: &Product) -> Option<Verdict> {
    let summary = product.read_only.as_ref()?.loads.get(&LOADED_CLIENTS)?;
    verdict(format!("{:.0}/s", summary.rate), summary.rate >= RUNS_PER_SECOND_MIN)
}

fn loaded_share(baselines: &Baselines, product: &Product) -> Option<Verdict> {
    let summary = product.read_only.as_ref()?.loads.get(&LOADED_CLIENTS)?;
    let share = summary.rate / baselines.slower_rate(LOADED_CLIENTS)?;
    verdict(format!("{share:.2}"), share >= OF_BARE_RATE_MIN)
}

fn single_median(baselines: &Baselines, product: &Product) -> Option<Verdict> {
    let median = product.read_only.as_ref()?.loads.get(&1)?.p50;
    let commits = baselines.sqlite.get(&1)?.p50 * SINGLE_COMMITS_MAX;
    let measured = format!("{} ms; three bare commits are {} ms", ms(median), ms(commits));
    verdict(measured, median <= SINGLE_MEDIAN_MAX.max(commits))
}

fn marginal_step(product: &Product) -> Option<Verdict> {
    let marginal = product.marginal.as_ref()?;
    let step = marginal.step_ratio()?;
    let run = marginal.run_ratio();
    let measured = format!("{step:.2} × a step, {run:.2} × a run");
    verdict(measured, step.max(run) <= MARGINAL_RATIO_MAX)
}

/// Fewer sessions prove nothing.
fn paused_memory(product: &Product) -> Option<Verdict> {
    let paused = product.paused.as_ref()?;
    if paused.sessions < PAUSED_SESSIONS {
        return None;
    }
    let bytes = paused.rss_bytes();
    verdict(format!("{} MB", megabytes(bytes)), bytes < PAUSED_BYTES_MAX)
}

fn ready(product: &Product) -> Option<Verdict> {
    let ready = product.start.as_ref()?.ready();
    verdict(format!("{} ms", ms(ready)), ready < READY_MAX)
}

fn idle_memory(product: &Product) -> Option<Verdict> {
    let bytes = product.start.as_ref()?.idle_bytes;
    verdict(format!("{} MB", megabytes(bytes)), bytes < IDLE_BYTES_MAX)
}
