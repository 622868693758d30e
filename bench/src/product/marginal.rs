//! Cost of one more step at the start of a session and far into it. The design promises that it is
//! the same.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::server::{Server, Site};
use crate::Result;
use crate::http::{self, Client};
use crate::load::{self, RUNS_PATH, median};
use crate::report::{Table, ms};

/// What the section's numbers are.
pub const NOTE: &str = "Steps: one run that loops over items, the difference of the medians of two \
    lengths divided by the steps between them. Runs: a run of three steps in a session that has \
    that much history already.";

const SMALL_REPEATS: usize = 200;
const LARGE_REPEATS: usize = 20;
const SHORT: Pair = Pair { fewer: 0, more: 10, repeats: SMALL_REPEATS };
const LONG: Pair = Pair { fewer: 9_000, more: 10_000, repeats: LARGE_REPEATS };
const FRESH: &str = "bench-fresh";
const GROWN: &str = "bench-grown";

/// The same work in short and in long sessions.
#[derive(Debug)]
pub struct Marginal {
    short_step_us: f64,
    long_step_us: f64,
    fresh_run: Duration,
    grown_run: Duration,
}

impl Marginal {
    /// A step near the 10,000th against one of the first ten; `None` when a difference is lost in
    /// the noise.
    pub fn step_ratio(&self) -> Option<f64> {
        let measurable = self.short_step_us > 0.0 && self.long_step_us > 0.0;
        measurable.then_some(self.long_step_us / self.short_step_us)
    }

    /// A run after 10,000 history entries against a run after 10.
    pub fn run_ratio(&self) -> f64 {
        self.grown_run.as_secs_f64() / self.fresh_run.as_secs_f64()
    }

    /// Both comparisons.
    pub fn table(&self) -> Table {
        let mut table = Table::new(&["what", "short session", "long session", "ratio"]);
        let ratio = self.step_ratio().map(|ratio| format!("{ratio:.2}"));
        table.row(vec![
            "one step: of the first 10, of 9,000 to 10,000".to_owned(),
            format!("{:.1} µs", self.short_step_us),
            format!("{:.1} µs", self.long_step_us),
            ratio.unwrap_or_else(|| "lost in noise".to_owned()),
        ]);
        table.row(vec![
            "a run of 3 steps: after 10 entries, after 10,000".to_owned(),
            format!("{} ms", ms(self.fresh_run)),
            format!("{} ms", ms(self.grown_run)),
            format!("{:.2}", self.run_ratio()),
        ]);
        table
    }
}

/// Measures both on a server of its own, one request at a time.
pub async fn measure(site: &Site) -> Result<Marginal> {
    let data = site.data()?;
    let server = Server::start(site, data.path()).await?;
    let mut probe = Probe { client: Client::connect(server.address()).await?, server };
    let short_step_us = probe.step_us(SHORT).await?;
    let long_step_us = probe.step_us(LONG).await?;
    probe.time(&looping(SHORT.more, Some(FRESH))).await?;
    probe.time(&looping(LONG.more, Some(GROWN))).await?;
    let fresh = adding(FRESH);
    let grown = adding(GROWN);
    let (fresh_run, grown_run) = probe.in_turn(&fresh, &grown, SMALL_REPEATS).await?;
    let Probe { client, server } = probe;
    // An open connection would hold up a server that stops in order.
    drop(client);
    server.stop()?;
    Ok(Marginal { short_step_us, long_step_us, fresh_run, grown_run })
}

/// Two lengths of the same loop, and how often each is run.
#[derive(Clone, Copy)]
struct Pair {
    fewer: usize,
    more: usize,
    repeats: usize,
}

struct Probe {
    client: Client,
    server: Server,
}

impl Probe {
    async fn step_us(&mut self, pair: Pair) -> Result<f64> {
        let fewer = looping(pair.fewer, None);
        let more = looping(pair.more, None);
        let (fewer, more) = self.in_turn(&fewer, &more, pair.repeats).await?;
        // Signed: noise may make the longer loop the faster one, and that must show.
        let seconds = more.as_secs_f64() - fewer.as_secs_f64();
        Ok(seconds * 1e6 / (pair.more - pair.fewer) as f64)
    }

    /// The medians of two requests sent by turns, so that what drifts on the machine meets both.
    async fn in_turn(
        &mut self,
        first: &Value,
        second: &Value,
        repeats: usize,
    ) -> Result<(Duration, Duration)> {
        let mut firsts = Vec::new();
        let mut seconds = Vec::new();
        for _ in 0..repeats {
            firsts.push(self.time(first).await?);
            seconds.push(self.time(second).await?);
        }
        Ok((median(firsts), median(seconds)))
    }

    async fn time(&mut self, body: &Value) -> Result<Duration> {
        let request = http::post(self.server.address(), RUNS_PATH, &body.to_string());
        let begun = Instant::now();
        let answer = self.client.send(&request).await?;
        let elapsed = begun.elapsed();
        load::completed(&answer)?;
        Ok(elapsed)
    }
}

/// A run with one step per item, in a new session or in the named one.
fn looping(items: usize, session: Option<&str>) -> Value {
    // One digit each: 10,000 items stay small enough to be kept inline, like 10.
    let items: Vec<usize> = (0..items).map(|item| item % 10).collect();
    let mut body = json!({"planId": "bench/loop", "input": {"items": items}});
    if let Some(session) = session {
        body["session"] = json!(session);
    }
    body
}

fn adding(session: &str) -> Value {
    json!({"planId": "bench/read3", "input": {"n": 1}, "session": session})
}
