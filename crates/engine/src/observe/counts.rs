//! Counters since the start, for `/metrics`.

use kernel::session::RunStatus;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes a counter and its reading of each line.
macro_rules! counters {
    ($($(#[$doc:meta])* $counter:ident,)*) => {
        /// Counters that only grow.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            runs_completed: AtomicU64,
            runs_failed: AtomicU64,
            runs_cancelled: AtomicU64,
            $(pub(crate) $counter: AtomicU64,)*
        }

        /// A reading of the counters.
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct Counts {
            $($(#[$doc])* pub $counter: u64,)*
            /// Runs that ended, by status.
            pub runs_ended: BTreeMap<&'static str, u64>,
            /// Sessions that are being driven now.
            pub sessions_active: u64,
            /// Tool calls that are under way now.
            pub calls_active: u64,
            /// Turns of models that are under way now.
            pub turns_active: u64,
            /// Requests that wait now until their case is free.
            pub cases_waiting: u64,
            /// Webhooks that there may be more for now.
            pub webhooks_live: u64,
        }

        impl Counters {
            /// A reading, without what is under way now.
            pub(crate) fn read(&self) -> Counts {
                let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
                let runs_ended = BTreeMap::from([
                    ("completed", read(&self.runs_completed)),
                    ("failed", read(&self.runs_failed)),
                    ("cancelled", read(&self.runs_cancelled)),
                ]);
                Counts { runs_ended, $($counter: read(&self.$counter),)* ..Counts::default() }
            }
        }
    };
}

counters! {
    /// Runs that were started.
    runs_started,
    /// Tool calls that were sent.
    calls_started,
    /// Tool calls that failed.
    calls_failed,
    /// Asks that were raised.
    asks_opened,
    /// Asks that a reply closed.
    asks_decided,
    /// Appends to the journal.
    appends,
    /// Runs that were taken over after a crash.
    recoveries,
    /// Turns of models that were begun.
    turns_started,
    /// Turns of models that were answered.
    turns_finished,
    /// Turns of models that failed, those that were tried again included.
    turns_failed,
    /// Tokens that models read.
    tokens_read,
    /// Tokens that models wrote.
    tokens_written,
    /// Cost in millionths of a dollar, as far as prices are known.
    cost_micros,
    /// Deliveries that failed and are tried again.
    deliveries_retried,
    /// Notices that webhooks took.
    notices_taken,
    /// Notices that webhooks did not take.
    notices_failed,
    /// Webhooks that get nothing more, though their run is not over.
    webhooks_ended,
    /// Whole sessions that retention removed.
    sessions_removed,
    /// Runs that it removed of sessions that stay.
    runs_removed,
    /// Blobs that it removed.
    blobs_removed,
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
}
