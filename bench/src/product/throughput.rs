//! Runs per second and the data that they leave, for runs that read and for runs that write.

use std::time::Duration;

use super::rows::{self, TableRows};
use super::server::{Server, Site};
use crate::Result;
use crate::baseline::Baselines;
use crate::load::{self, ByClients, Job, READ_ONLY_RUN};
use crate::report::{self, Table, load_cells};

const WRITING_RUN: &str = r#"{"planId":"bench/write3","input":{"n":1}}"#;
const JOURNAL: &str = "journal";

/// Which plan is run.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Three steps that read: one sync per run.
    ReadOnly,
    /// Three steps that write elsewhere: each is durable before it is sent.
    Writing,
}

impl Kind {
    /// As the report calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Writing => "writing",
        }
    }

    /// What one run does.
    pub fn note(self) -> &'static str {
        match self {
            Self::ReadOnly => "Three `math::add` steps and an answer over `POST /api/v1/runs`.",
            Self::Writing => "Three `http::request` POSTs to a local receiver and an answer.",
        }
    }

    fn body(self) -> &'static str {
        match self {
            Self::ReadOnly => READ_ONLY_RUN,
            Self::Writing => WRITING_RUN,
        }
    }
}

/// One kind of run under load, and its rows afterwards.
#[derive(Debug)]
pub struct Throughput {
    /// The load for each number of clients.
    pub loads: ByClients,
    rows: Vec<TableRows>,
}

impl Throughput {
    /// Journal rows per run; `None` when the database has no such table.
    pub fn journal_rows(&self) -> Option<f64> {
        let journal = self.rows.iter().find(|rows| rows.table == JOURNAL)?;
        Some(journal.per_run)
    }

    /// The rates beside the slower bare rate with as many clients.
    pub fn load_table(&self, baselines: &Baselines) -> Table {
        let mut table =
            Table::new(&["clients", "runs/s", "p50 ms", "p99 ms", "of the slower bare rate"]);
        for (clients, summary) in &self.loads {
            let mut cells = load_cells(&clients.to_string(), summary);
            let bare = baselines.slower_rate(*clients);
            let ratio = bare.map(|rate| format!("{:.2}", summary.rate / rate));
            cells.push(ratio.unwrap_or_else(|| "not measured".to_owned()));
            table.row(cells);
        }
        table
    }

    /// Every table's rows.
    pub fn row_table(&self) -> Table {
        let mut table = Table::new(&["table", "rows", "rows per run"]);
        for counted in &self.rows {
            let per_run = format!("{:.3}", counted.per_run);
            table.row(vec![counted.table.clone(), counted.rows.to_string(), per_run]);
        }
        table
    }
}

/// Loads one server with each number of clients in turn, then stops it and counts.
pub async fn measure(
    site: &Site,
    kind: Kind,
    clients: &[usize],
    span: Duration,
) -> Result<Throughput> {
    let data = site.data()?;
    let server = Server::start(site, data.path()).await?;
    let job = Job::runs(server.address(), kind.body(), load::completed);
    let mut loads = ByClients::new();
    let mut runs = 0;
    for &clients in clients {
        report::progress(&format!("{} runs, {clients} clients", kind.name()));
        let summary = load::run_for(&job, clients, span).await?;
        runs += summary.answered;
        loads.insert(clients, summary);
    }
    server.stop()?;
    Ok(Throughput { loads, rows: rows::count(data.path(), runs)? })
}
