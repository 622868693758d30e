//! The tools of other servers at the start: a run that needs one that may still come waits until
//! each server was heard, or is known to be away. Else a run that continues after a restart would
//! find its tools gone, and tell its agent so.

use crate::system::clock::timeout;
use kernel::contracts::Clock;
use tokio::sync::watch;

/// Whether all servers that were named at the start were heard.
pub(crate) struct Arrivals {
    over: watch::Sender<bool>,
    wait_ms: u64,
}

impl Arrivals {
    /// No one waits where nothing is to come, and never longer than this.
    pub(crate) fn new(some_come: bool, wait_ms: u64) -> Self {
        Self { over: watch::Sender::new(!some_come), wait_ms }
    }

    /// Nothing more comes that is worth waiting for.
    pub(crate) fn end(&self) {
        self.over.send_replace(true);
    }

    pub(crate) fn are_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Waits until they are over; a server that hangs is waited for once.
    pub(crate) async fn wait(&self, clock: &dyn Clock) {
        if self.are_over() {
            return;
        }
        let mut over = self.over.subscribe();
        let waiting = async {
            // An error would mean that the sender is gone, which we hold.
            let _ = over.wait_for(|over| *over).await;
        };
        if timeout(clock, self.wait_ms, waiting).await.is_none() {
            tracing::warn!("a server that was named at the start has still not answered");
            self.end();
        }
    }
}
