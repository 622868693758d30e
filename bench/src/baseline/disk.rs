//! Baseline of one sync: append and `fdatasync`, without a database.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Result;
use crate::load::Summary;

const BLOCK: [u8; 4096] = [0x5a; 4096];

/// Appends and syncs for `span` in a new file under `dir`; blocks the thread.
pub fn measure(dir: &Path, span: Duration) -> Result<Summary> {
    let folder = tempfile::Builder::new().prefix("waypost-bench-").tempdir_in(dir)?;
    let mut file = File::create(folder.path().join("append"))?;
    let mut latencies = Vec::new();
    let begun = Instant::now();
    let mut before = begun;
    while before - begun < span {
        file.write_all(&BLOCK)?;
        file.sync_data()?;
        let after = Instant::now();
        latencies.push(after - before);
        before = after;
    }
    Ok(Summary::of(latencies, begun.elapsed()))
}
