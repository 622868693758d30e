//! What happened since the start, for `/metrics`.

use kernel::session::RunStatus;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters that only grow.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) runs_started: AtomicU64,
    pub(crate) runs_completed: AtomicU64,
    pub(crate) runs_failed: AtomicU64,
    pub(crate) runs_cancelled: AtomicU64,
    pub(crate) calls_started: AtomicU64,
    pub(crate) calls_failed: AtomicU64,
    pub(crate) asks_opened: AtomicU64,
    pub(crate) asks_decided: AtomicU64,
    pub(crate) appends: AtomicU64,
    pub(crate) recoveries: AtomicU64,
    pub(crate) turns_started: AtomicU64,
    pub(crate) turns_finished: AtomicU64,
    pub(crate) turns_failed: AtomicU64,
    pub(crate) tokens_read: AtomicU64,
    pub(crate) tokens_written: AtomicU64,
    pub(crate) cost_micros: AtomicU64,
    pub(crate) deliveries_retried: AtomicU64,
    pub(crate) sessions_removed: AtomicU64,
    pub(crate) runs_removed: AtomicU64,
    pub(crate) blobs_removed: AtomicU64,
}

/// A reading of the counters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Runs that were started.
    pub runs_started: u64,
    /// Runs that ended, by status.
    pub runs_ended: BTreeMap<&'static str, u64>,
    /// Tool calls that were sent.
    pub calls_started: u64,
    /// Tool calls that failed.
    pub calls_failed: u64,
    /// Asks that were raised.
    pub asks_opened: u64,
    /// Asks that a reply closed.
    pub asks_decided: u64,
    /// Appends to the journal.
    pub appends: u64,
    /// Runs that were taken over after a crash.
    pub recoveries: u64,
    /// Turns of models that were begun.
    pub turns_started: u64,
    /// Turns of models that were answered.
    pub turns_finished: u64,
    /// Turns of models that failed, those that were tried again included.
    pub turns_failed: u64,
    /// Tokens that models read.
    pub tokens_read: u64,
    /// Tokens that models wrote.
    pub tokens_written: u64,
    /// What that cost, in millionths of a dollar, as far as prices are known.
    pub cost_micros: u64,
    /// Deliveries that failed and are tried again.
    pub deliveries_retried: u64,
    /// Whole sessions that retention removed.
    pub sessions_removed: u64,
    /// Runs that it removed of sessions that stay.
    pub runs_removed: u64,
    /// Blobs that it removed.
    pub blobs_removed: u64,
    /// Sessions that are being driven now.
    pub sessions_active: u64,
    /// Tool calls that are under way now.
    pub calls_active: u64,
    /// Turns of models that are under way now.
    pub turns_active: u64,
    /// Requests that wait now until their case is free.
    pub cases_waiting: u64,
}

/// What continues at one moment.
pub(crate) struct Now {
    pub(crate) sessions_active: u64,
    pub(crate) calls_active: u64,
    pub(crate) turns_active: u64,
    pub(crate) cases_waiting: u64,
}

/// Adds one.
pub(crate) fn count(counter: &AtomicU64) {
    add(counter, 1);
}

/// Adds so many.
pub(crate) fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl Counters {
    pub(crate) fn ended(&self, status: RunStatus) {
        match status {
            RunStatus::Completed => count(&self.runs_completed),
            RunStatus::Cancelled => count(&self.runs_cancelled),
            _ => count(&self.runs_failed),
        }
    }

    pub(crate) fn read(&self, now: Now) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            runs_started: read(&self.runs_started),
            runs_ended: BTreeMap::from([
                ("completed", read(&self.runs_completed)),
                ("failed", read(&self.runs_failed)),
                ("cancelled", read(&self.runs_cancelled)),
            ]),
            calls_started: read(&self.calls_started),
            calls_failed: read(&self.calls_failed),
            asks_opened: read(&self.asks_opened),
            asks_decided: read(&self.asks_decided),
            appends: read(&self.appends),
            recoveries: read(&self.recoveries),
            turns_started: read(&self.turns_started),
            turns_finished: read(&self.turns_finished),
            turns_failed: read(&self.turns_failed),
            tokens_read: read(&self.tokens_read),
            tokens_written: read(&self.tokens_written),
            cost_micros: read(&self.cost_micros),
            deliveries_retried: read(&self.deliveries_retried),
            sessions_removed: read(&self.sessions_removed),
            runs_removed: read(&self.runs_removed),
            blobs_removed: read(&self.blobs_removed),
            sessions_active: now.sessions_active,
            calls_active: now.calls_active,
            turns_active: now.turns_active,
            cases_waiting: now.cases_waiting,
        }
    }
}
