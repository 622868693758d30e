//! Time from the server's spawn to its first answer, and its use of resources when idle.

use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;

use super::paused::Paused;
use super::server::{Server, Site, Times};
use crate::Result;
use crate::load::median;
use crate::report::{Table, megabytes, ms};

/// What the section's numbers are.
pub const NOTE: &str = "Medians of 10 starts, files in the page cache.";

const STARTS: usize = 10;
/// Long enough for what a start does in the background.
const IDLE: Duration = Duration::from_secs(1);

/// The starts on an empty data folder and on one full of paused sessions.
#[derive(Debug)]
pub struct Start {
    empty: Times,
    full: Option<(usize, Times)>,
    /// Memory on an empty data folder, with nothing to do.
    pub idle_bytes: u64,
}

impl Start {
    /// The slower of the measured starts, until ready.
    pub fn ready(&self) -> Duration {
        let full = self.full.map_or(Duration::ZERO, |(_, times)| times.ready);
        self.empty.ready.max(full)
    }

    /// Both starts and the idle memory.
    pub fn table(&self) -> Table {
        let mut table = Table::new(&["data folder", "listening ms", "ready ms", "idle memory MB"]);
        let idle = megabytes(self.idle_bytes);
        table.row(vec!["empty".to_owned(), ms(self.empty.listening), ms(self.empty.ready), idle]);
        if let Some((sessions, times)) = self.full {
            let name = format!("{sessions} paused sessions");
            table.row(vec![name, ms(times.listening), ms(times.ready), "see above".to_owned()]);
        }
        table
    }
}

/// Starts the server again and again; the full folder is the paused section's.
pub async fn measure(site: &Site, paused: Option<&Paused>) -> Result<Start> {
    let mut starts = Vec::with_capacity(STARTS);
    for _ in 0..STARTS {
        let data = site.data()?;
        starts.push(start_once(site, data.path()).await?);
    }
    let empty = medians(&starts);
    let idle_bytes = idle_bytes(site).await?;
    let Some(paused) = paused else {
        return Ok(Start { empty, full: None, idle_bytes });
    };
    starts.clear();
    for _ in 0..STARTS {
        starts.push(start_once(site, paused.data()).await?);
    }
    let full = Some((paused.sessions, medians(&starts)));
    Ok(Start { empty, full, idle_bytes })
}

async fn start_once(site: &Site, data: &Path) -> Result<Times> {
    let server = Server::start(site, data).await?;
    let times = server.times();
    server.stop()?;
    Ok(times)
}

async fn idle_bytes(site: &Site) -> Result<u64> {
    let data = site.data()?;
    let server = Server::start(site, data.path()).await?;
    sleep(IDLE).await;
    let bytes = server.rss_bytes()?;
    server.stop()?;
    Ok(bytes)
}

fn medians(starts: &[Times]) -> Times {
    Times {
        listening: median(starts.iter().map(|times| times.listening).collect()),
        ready: median(starts.iter().map(|times| times.ready).collect()),
    }
}
