//! The file of a sink: counts its lines, and waits until it has as many as expected.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::Result;

const LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);
const READ_BYTES: usize = 64 * 1024;

/// A file that grows, read as far as it is there.
#[derive(Debug)]
pub struct Lines {
    file: File,
    count: usize,
}

impl Lines {
    /// Opens the file, which the server made when it started.
    pub fn open(path: &Path) -> Result<Self> {
        let opened = File::open(path);
        let file = opened.map_err(|error| format!("there is no file of the sink: {error}"))?;
        Ok(Self { file, count: 0 })
    }

    /// Waits until it has so many lines, and no more; how long that took.
    pub async fn wait_for(&mut self, wanted: usize) -> Result<Duration> {
        let begun = Instant::now();
        loop {
            self.read_on()?;
            if self.count == wanted {
                return Ok(begun.elapsed());
            }
            if self.count > wanted || begun.elapsed() > LIMIT {
                let count = self.count;
                let seconds = begun.elapsed().as_secs();
                let told = format!("the sink wrote {count} events of {wanted} within {seconds} s");
                return Err(told.into());
            }
            sleep(PAUSE).await;
        }
    }

    fn read_on(&mut self) -> Result<()> {
        let mut bytes = vec![0; READ_BYTES];
        loop {
            let read = self.file.read(&mut bytes)?;
            if read == 0 {
                return Ok(());
            }
            self.count += bytes[..read].iter().filter(|byte| **byte == b'\n').count();
        }
    }
}
