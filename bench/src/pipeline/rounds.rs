//! The deterministic path in rounds: the bare rates, the server as it is, the one with telemetry
//! and the one with a sink, one after the other, because the machine is not the same from minute to
//! minute. Each comparison is made within a round, and the round in the middle counts.

use std::time::Duration;

use super::Options;
use super::cases::Cases;
use super::server::{CaseServer, Loaded, With};
use crate::Result;
use crate::baseline;
use crate::child::{self, Child};
use crate::load::{Summary, middle};
use crate::report::{self, Table, load_cells, ms};

/// What the sections' numbers are.
pub const NOTE: &str = "`POST /trade/failures` with a known reason, each for a new case: a \
    session, a run, its event and a count in one commit, and 200 after it. The bare rates are \
    those of `bench durable`. Telemetry samples as it does by default and sends to a process that \
    drops it; the sink writes the published events to a file as JSON lines, each batch synced.";

const RATE_MIN: f64 = 8_000.0;
const BARE_SHARE_MIN: f64 = 0.25;
const TELEMETRY_COST_MAX: f64 = 0.10;

/// Everything once.
#[derive(Clone, Copy, Debug)]
struct Round {
    axum: Summary,
    sqlite: Summary,
    plain: Summary,
    traced: Summary,
    sunk: Loaded,
}

impl Round {
    /// No server of this kind can be faster than that.
    fn slower_bare(&self) -> f64 {
        self.axum.rate.min(self.sqlite.rate)
    }

    /// What is promised on this machine.
    fn promised(&self) -> f64 {
        RATE_MIN.min(self.slower_bare() * BARE_SHARE_MIN)
    }

    fn of_promised(&self) -> f64 {
        self.plain.rate / self.promised()
    }

    /// The part of the rate that is lost. Signed: where noise is larger than that, it must show.
    fn telemetry_cost(&self) -> f64 {
        1.0 - self.traced.rate / self.plain.rate
    }

    fn sink_cost(&self) -> f64 {
        1.0 - self.sunk.summary.rate / self.plain.rate
    }
}

/// All rounds, and what was counted over all of them.
#[derive(Debug)]
pub struct Rounds {
    all: Vec<Round>,
    by_rate: Round,
    by_telemetry: Round,
    by_sink: Round,
    /// How many spans the collector took.
    spans: u64,
    /// Journal rows of a case.
    rows_per_case: f64,
}

/// The three servers that are compared.
struct Servers {
    plain: CaseServer,
    traced: CaseServer,
    sunk: CaseServer,
}

/// Measures all rounds.
pub async fn measure(options: &Options) -> Result<Rounds> {
    // Held for its process.
    let collector = Child::start(child::COLLECTOR)?;
    let start = |with| options.start(Cases::Known, with);
    let mut servers = Servers {
        plain: start(With::Nothing).await?,
        traced: start(With::Telemetry(collector.address())).await?,
        sunk: start(With::Sink).await?,
    };
    let mut all = Vec::with_capacity(options.rounds);
    for number in 1..=options.rounds {
        report::progress(&format!("the deterministic path, round {number}"));
        all.push(round(options, &mut servers, number).await?);
    }
    let Servers { plain, traced, sunk } = servers;
    let spans = traced.spans().await?;
    let rows_per_case = plain.stop()?;
    traced.stop()?;
    sunk.stop()?;
    let middle_by = |by: fn(&Round) -> f64| middle(all.clone(), by).ok_or("there was no round");
    let by_rate = middle_by(Round::of_promised)?;
    let by_sink = middle_by(Round::sink_cost)?;
    let by_telemetry = middle_by(Round::telemetry_cost)?;
    Ok(Rounds { all, by_rate, by_telemetry, by_sink, spans, rows_per_case })
}

/// One after the other. Every second round goes the other way, so that whatever drifts on the
/// machine favours no one.
async fn round(options: &Options, servers: &mut Servers, number: usize) -> Result<Round> {
    let clients = options.clients;
    let span = options.span;
    let axum = baseline::axum::measure(clients, span).await?;
    let sqlite = baseline::sqlite::measure(&options.dir, clients, span).await?;
    let Servers { plain, traced, sunk } = servers;
    let order = [plain, traced, sunk];
    let mut loaded: [Option<Loaded>; 3] = [None; 3];
    for turn in 0..order.len() {
        let at = if number.is_multiple_of(2) { order.len() - 1 - turn } else { turn };
        loaded[at] = Some(order[at].load(clients, span).await?);
    }
    let [Some(plain), Some(traced), Some(sunk)] = loaded else {
        return Err("a server was not measured".into());
    };
    Ok(Round { axum, sqlite, plain: plain.summary, traced: traced.summary, sunk })
}

impl Rounds {
    /// Every round, so that one sees how much they differ.
    pub fn table(&self) -> Table {
        let mut table = Table::new(&[
            "round", "bare axum/s", "bare SQLite/s", "cases/s", "with telemetry/s", "cost",
            "with a sink/s", "cost", "sink done after s",
        ]);
        for (number, round) in self.all.iter().enumerate() {
            let rate = |summary: &Summary| format!("{:.0}", summary.rate);
            table.row(vec![
                (number + 1).to_string(),
                rate(&round.axum),
                rate(&round.sqlite),
                rate(&round.plain),
                rate(&round.traced),
                percent(round.telemetry_cost()),
                rate(&round.sunk.summary),
                percent(round.sink_cost()),
                seconds(round.sunk.sink_after),
            ]);
        }
        table
    }

    /// The rounds in the middle, each for what it is in the middle of.
    pub fn summary(&self) -> Table {
        let head = ["who", "cases/s", "p50 ms", "p99 ms", "of the slower bare rate"];
        let mut table = Table::new(&head);
        let mut row = |who: &str, round: &Round, summary: &Summary| {
            let mut cells = load_cells(who, summary);
            cells.push(format!("{:.2}", summary.rate / round.slower_bare()));
            table.row(cells);
        };
        row("bare axum", &self.by_rate, &self.by_rate.axum);
        row("bare SQLite group commit", &self.by_rate, &self.by_rate.sqlite);
        row("waypost", &self.by_rate, &self.by_rate.plain);
        row("waypost, with telemetry", &self.by_telemetry, &self.by_telemetry.traced);
        row("waypost, with a file sink", &self.by_sink, &self.by_sink.sunk.summary);
        table
    }

    /// What else was counted.
    pub fn counted(&self) -> Table {
        let mut table = Table::new(&["what", "counted"]);
        let mut row = |what: &str, value: String| table.row(vec![what.to_owned(), value]);
        row("journal rows of a case, which are its commits", format!("{:.2}", self.rows_per_case));
        row("spans that were exported, none of them lost", self.spans.to_string());
        row("what a file sink costs", percent(self.by_sink.sink_cost()));
        row("the sink was done after the load within", ms(self.by_sink.sunk.sink_after) + " ms");
        table
    }

    /// The promises, each beside what was measured.
    pub fn targets(&self, clients: usize) -> Table {
        let mut table = Table::new(&["target", "measured", "met"]);
        let round = &self.by_rate;
        let cost = self.by_telemetry.telemetry_cost();
        let mut row = |target: String, measured: String, met: bool| {
            table.row(vec![target, measured, if met { "yes" } else { "no" }.to_owned()]);
        };
        row(
            format!(
                "known reasons, {clients} clients ≥ {RATE_MIN:.0}/s or {BARE_SHARE_MIN:.2} of the \
                 slower bare rate, whichever is lower: {:.0}/s here",
                round.promised()
            ),
            format!(
                "{:.0}/s, {:.2} of it",
                round.plain.rate,
                round.plain.rate / round.slower_bare()
            ),
            round.of_promised() >= 1.0,
        );
        row(
            format!("telemetry costs < {}", percent(TELEMETRY_COST_MAX)),
            percent(cost),
            cost < TELEMETRY_COST_MAX,
        );
        table
    }
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

fn seconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64())
}
