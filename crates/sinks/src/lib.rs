//! Where events go: standard output, a file, a webhook. Each is one file behind the kernel's
//! `EventSink`; to add another, write its file, give it a kind in `config` and an arm in `open`.
//!
//! The order of the modules below is the order of reading and of import: a module uses only those
//! above it.

pub mod config;
mod lines;
mod stdout;
mod file;
mod sign;
mod webhook;

use config::{SinkConfig, SinkKind};
use file::FileLines;
use kernel::contracts::sink::EventSink;
use kernel::contracts::{Clock, Spawn};
use kernel::definition::plan::mistake::Mistake;
use lines::LineSink;
use std::sync::Arc;
use stdout::StdoutLines;
use webhook::Webhook;

/// Dependencies of sinks.
#[derive(Clone)]
pub struct Parts {
    /// Says when a webhook was sent.
    pub clock: Arc<dyn Clock>,
    /// Starts the threads that write.
    pub spawn: Arc<dyn Spawn>,
}

/// The sink that this configures, or all that is wrong with it. No one is talked to yet.
pub fn open(config: &SinkConfig, parts: &Parts) -> Result<Arc<dyn EventSink>, Vec<Mistake>> {
    let SinkConfig { name, kind } = config;
    match kind {
        SinkKind::Stdout => {
            Ok(Arc::new(LineSink::start("stdout", "standard output", StdoutLines, &*parts.spawn)))
        }
        SinkKind::File { path } => {
            let place = format!("file `{}`", path.display());
            let lines = FileLines::open(path).map_err(|error| {
                let message = format!("sink `{name}`: {place} cannot be opened: {error}");
                vec![Mistake::error(message).hint("check its path and its rights")]
            })?;
            Ok(Arc::new(LineSink::start("file", &place, lines, &*parts.spawn)))
        }
        SinkKind::Webhook { url, secret, timeout_ms } => {
            Ok(Arc::new(Webhook::new(name, url, secret, *timeout_ms, parts.clock.clone())?))
        }
    }
}

#[cfg(test)]
mod tests;
