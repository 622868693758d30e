//! Baselines: the least that a durable run costs on this machine, without Waypost. They were
//! written before the product and do not change with it, or they would measure nothing.

pub mod disk;
pub mod axum;
pub mod commits;
mod ids;
pub mod sqlite;

use crate::Result;
use crate::load::ByClients;
use crate::options::{Options, Section};
use crate::report::{self, Table, load_cells};

/// The bare rates; empty where `--only` left a section out.
#[derive(Debug, Default)]
pub struct Baselines {
    /// HTTP and JSON, nothing stored.
    pub axum: ByClients,
    /// The rows of a run, no HTTP.
    pub sqlite: ByClients,
}

impl Baselines {
    /// The slower of the two bare rates: no server of this kind can be faster than that.
    pub fn slower_rate(&self, clients: usize) -> Option<f64> {
        let axum = self.axum.get(&clients)?;
        let sqlite = self.sqlite.get(&clients)?;
        Some(axum.rate.min(sqlite.rate))
    }
}

/// Measures and reports the baselines that the options ask for.
pub async fn measure(options: &Options) -> Result<Baselines> {
    let mut baselines = Baselines::default();
    if options.wants(Section::Fdatasync) {
        fdatasync(options).await?;
    }
    if options.wants(Section::Axum) {
        baselines.axum = bare_axum(options).await?;
    }
    if options.wants(Section::Sqlite) {
        baselines.sqlite = bare_sqlite(options).await?;
    }
    Ok(baselines)
}

async fn fdatasync(options: &Options) -> Result<()> {
    report::progress("baseline: append 4 KiB and fdatasync");
    let dir = options.dir.clone();
    let span = options.span;
    let summary = tokio::task::spawn_blocking(move || disk::measure(&dir, span)).await??;
    let mut table = Table::new(&["case", "syncs/s", "p50 ms", "p99 ms"]);
    table.row(load_cells("append 4 KiB + fdatasync", &summary));
    report::section("Baseline: the disk", "", &table);
    Ok(())
}

async fn bare_axum(options: &Options) -> Result<ByClients> {
    let mut loads = ByClients::new();
    let mut table = Table::new(&["clients", "requests/s", "p50 ms", "p99 ms"]);
    for &clients in &options.clients {
        report::progress(&format!("baseline: bare axum, {clients} clients"));
        let summary = self::axum::measure(clients, options.span).await?;
        table.row(load_cells(&clients.to_string(), &summary));
        loads.insert(clients, summary);
    }
    let note = "A handler in its own process that parses the body of a run and answers as a run \
                does, and stores nothing.";
    report::section("Baseline: bare axum", note, &table);
    Ok(loads)
}

async fn bare_sqlite(options: &Options) -> Result<ByClients> {
    let mut loads = ByClients::new();
    let mut table = Table::new(&["producers", "runs/s", "p50 ms", "p99 ms"]);
    for &producers in &options.clients {
        report::progress(&format!("baseline: bare SQLite, {producers} producers"));
        let summary = sqlite::measure(&options.dir, producers, options.span).await?;
        table.row(load_cells(&producers.to_string(), &summary));
        loads.insert(producers, summary);
    }
    let note = format!(
        "WAL, synchronous=FULL, one writer thread, group commit of at most {} runs. Rows per run: \
         {}.",
        commits::BATCH_MAX,
        commits::mix()
    );
    report::section("Baseline: bare SQLite group commit", &note, &table);
    Ok(loads)
}
