//! Many sessions that wait for a person: they should cost disk and nothing else.

use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::sleep;

use super::rows::DATABASE;
use super::server::{Server, Site};
use crate::Result;
use crate::load::{self, Job, Summary};
use crate::report::{Table, megabytes};

/// The body of a run that asks someone.
pub const ASKING_RUN: &str = r#"{"planId":"bench/ask","input":{}}"#;
const CLIENTS: usize = 64;
const SETTLE: Duration = Duration::from_secs(1);

/// A data folder full of paused sessions, and what the server needed for it.
#[derive(Debug)]
pub struct Paused {
    /// How many sessions wait.
    pub sessions: usize,
    data: TempDir,
    created: Summary,
    made_rss_bytes: u64,
    restarted_rss_bytes: u64,
    database_bytes: u64,
}

impl Paused {
    /// The folder with the paused sessions; no server runs on it.
    pub fn data(&self) -> &Path {
        self.data.path()
    }

    /// The most memory that the server had, right after making them or after a restart.
    pub fn rss_bytes(&self) -> u64 {
        self.made_rss_bytes.max(self.restarted_rss_bytes)
    }

    /// All figures.
    pub fn table(&self) -> Table {
        let mut table = Table::new(&["what", "measured"]);
        let mut row = |what: &str, value: String| table.row(vec![what.to_owned(), value]);
        row("paused sessions", self.sessions.to_string());
        row(&format!("made per second, {CLIENTS} clients"), format!("{:.0}", self.created.rate));
        row("memory after making them", format!("{} MB", megabytes(self.made_rss_bytes)));
        row("memory after a restart", format!("{} MB", megabytes(self.restarted_rss_bytes)));
        row("database", format!("{} MB", megabytes(self.database_bytes)));
        table
    }
}

/// Makes the sessions, then stops the server and starts it again on the same data.
pub async fn measure(site: &Site, sessions: usize) -> Result<Paused> {
    let data = site.data()?;
    let server = Server::start(site, data.path()).await?;
    let job = Job::runs(server.address(), ASKING_RUN, load::waiting);
    let created = load::run_count(&job, CLIENTS, sessions).await?;
    let made_rss_bytes = server.rss_bytes()?;
    server.stop()?;
    let database_bytes = database_bytes(data.path())?;
    let server = Server::start(site, data.path()).await?;
    // What a server does behind a start counts too.
    sleep(SETTLE).await;
    let restarted_rss_bytes = server.rss_bytes()?;
    server.stop()?;
    Ok(Paused { sessions, data, created, made_rss_bytes, restarted_rss_bytes, database_bytes })
}

/// The database with its log, which a server need not have emptied when it stopped.
fn database_bytes(data: &Path) -> Result<u64> {
    let database = std::fs::metadata(data.join(DATABASE))?.len();
    let log = std::fs::metadata(data.join(format!("{DATABASE}-wal")));
    Ok(database + log.map_or(0, |log| log.len()))
}
