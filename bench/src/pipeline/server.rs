//! A server with the pipeline, and the proof that what was answered did happen: the pipeline's own
//! counts after each load, the lines of its sink, and the rows of its database at the end.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::sleep;

use super::cases::{Cases, PIPELINE, SOURCE, configure};
use super::lines::Lines;
use crate::Result;
use crate::http::{self, Client};
use crate::load::{self, Job, Summary};
use crate::product::rows::{self, DATABASE};
use crate::product::server::{Server, Site};

/// Longer than spans wait for others before they are sent.
const SPANS_LIMIT: Duration = Duration::from_secs(20);
const SPANS_PAUSE: Duration = Duration::from_millis(100);
const SPANS: &str = "waypost_spans_";

/// Rows of the journal with an event that was published: no row has two.
const PUBLISHED: &str = "SELECT count(*) FROM journal WHERE instr(body, ?1) > 0";

/// What a server has beside the pipeline.
#[derive(Clone, Copy, Debug)]
pub enum With {
    Nothing,
    /// Telemetry that goes to a collector at this address.
    Telemetry(SocketAddr),
    /// A sink that writes to a file.
    Sink,
}

/// A server that takes cases of one kind.
#[derive(Debug)]
pub struct CaseServer {
    // First, so that it is stopped before its folders go.
    server: Server,
    site: Site,
    data: TempDir,
    cases: Cases,
    job: Arc<Job>,
    lines: Option<Lines>,
    answered: usize,
}

/// What a load came to, and how long the sink still took for it afterwards.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    pub summary: Summary,
    /// Nothing where there is no sink.
    pub sink_after: Duration,
}

impl CaseServer {
    /// Starts one on a project and data of its own.
    pub async fn start(
        server: Option<&Path>,
        dir: &Path,
        cases: Cases,
        with: With,
    ) -> Result<Self> {
        let site = Site::build(server, dir)?;
        let data = site.data()?;
        let project = site.project();
        let file = matches!(with, With::Sink).then(|| project.join("events.jsonl"));
        configure(&project, file.as_deref())?;
        let endpoint = match with {
            With::Telemetry(collector) => Some(format!("http://{collector}")),
            With::Nothing | With::Sink => None,
        };
        let variables: Vec<(&str, &str)> =
            endpoint.iter().map(|url| ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str())).collect();
        let started = Server::start_with(&site, data.path(), &variables).await;
        let server = started.map_err(|error| site.explain(&*error))?;
        let job = cases.job(server.address())?;
        let lines = file.as_deref().map(Lines::open).transpose()?;
        Ok(Self { server, site, data, cases, job, lines, answered: 0 })
    }

    /// Loads it, and sees that all of it happened.
    pub async fn load(&mut self, clients: usize, span: Duration) -> Result<Loaded> {
        let loaded = load::run_for(&self.job, clients, span).await;
        let summary = loaded.map_err(|error| self.site.explain(&*error))?;
        self.answered += summary.answered;
        let sink_after = match &mut self.lines {
            Some(lines) => lines.wait_for(self.answered).await?,
            None => Duration::ZERO,
        };
        self.check_counts().await?;
        Ok(Loaded { summary, sink_after })
    }

    /// The pipeline counted as many cases as were answered, all on their path.
    async fn check_counts(&self) -> Result<()> {
        let path = format!("/api/v1/pipelines/{PIPELINE}/stats");
        let stats: Value = serde_json::from_slice(&self.get(&path).await?)?;
        for counted in ["total", self.cases.road()] {
            same(counted, stats[counted].as_u64(), self.answered)?;
        }
        Ok(())
    }

    /// How many spans the collector took, once there are any. None may be lost.
    pub async fn spans(&self) -> Result<u64> {
        let begun = Instant::now();
        loop {
            let told = String::from_utf8(self.get("/metrics").await?)?;
            let count = |what: &str| {
                let metric = format!("{SPANS}{what}_total{{");
                let line = told.lines().find(|line| line.starts_with(&metric));
                line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            };
            for lost in ["dropped", "failed"] {
                same(&format!("spans that were {lost}"), count(lost), 0)?;
            }
            match count("exported") {
                Some(exported) if exported > 0 => return Ok(exported),
                _ if begun.elapsed() > SPANS_LIMIT => {
                    return Err("no span was exported within 20 s".into());
                }
                _ => sleep(SPANS_PAUSE).await,
            }
        }
    }

    async fn get(&self, path: &str) -> Result<Vec<u8>> {
        let address = self.server.address();
        let mut client = Client::connect(address).await?;
        let answer = client.send(&http::get(address, path)).await?;
        if answer.status != 200 {
            return Err(load::unexpected(&format!("200 from `{path}`"), &answer));
        }
        Ok(answer.body.to_vec())
    }

    /// Stops it, and sees that its database has what was answered: sessions, runs, events. Gives
    /// the rows of the journal for each case, which are its commits.
    pub fn stop(self) -> Result<f64> {
        let Self { server, site, data, cases, answered, .. } = self;
        server.stop().map_err(|error| site.explain(&*error))?;
        let tables = rows::count(data.path(), answered)?;
        let rows = |table: &str| tables.iter().find(|rows| rows.table == table);
        let count = |table: &str| rows(table).and_then(|rows| u64::try_from(rows.rows).ok());
        same("sessions", count("sessions"), cases.sessions(answered))?;
        same("runs", count("runs"), answered)?;
        same("published events", Some(published(data.path())?), answered)?;
        Ok(rows("journal").ok_or("the database has no journal")?.per_run)
    }
}

fn published(data: &Path) -> Result<u64> {
    let path = data.join(DATABASE);
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let source = format!(r#""source":"{SOURCE}""#);
    let count: i64 = connection.query_row(PUBLISHED, [source], |row| row.get(0))?;
    Ok(u64::try_from(count)?)
}

/// A load that did not happen as it was answered is no measurement.
fn same(what: &str, found: Option<u64>, wanted: usize) -> Result<()> {
    if found == Some(u64::try_from(wanted)?) {
        return Ok(());
    }
    let found = found.map_or_else(|| "nothing".to_owned(), |found| found.to_string());
    Err(format!("{what}: {wanted} were asked for, and {found} is there").into())
}
