//! The tools of other servers at the start: a run that needs one that may still come waits until
//! each server was heard, or is known to be away. Else a run that continues after a restart would
//! find its tools gone, and tell its agent so. Of servers that are away it is known why.

use crate::system::clock::timeout;
use kernel::contracts::Clock;
use kernel::values::names::may_come;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Whether all servers that were named at the start were heard.
pub(crate) struct Arrivals {
    over: watch::Sender<bool>,
    wait_ms: u64,
    /// Servers that have brought no tools yet, by what the names of their tools begin with.
    away: Mutex<BTreeMap<String, MissingUpstream>>,
}

/// A server that has brought no tools yet.
#[derive(Debug, Clone)]
pub(crate) struct MissingUpstream {
    /// The name of the server.
    pub(crate) upstream: String,
    pub(crate) why: String,
}

impl Arrivals {
    /// No one waits where nothing is to come, and never longer than this.
    pub(crate) fn new(some_come: bool, wait_ms: u64) -> Self {
        Self { over: watch::Sender::new(!some_come), wait_ms, away: Mutex::default() }
    }

    /// The server whose tools begin so has brought none yet, or it has.
    pub(crate) fn note_away(&self, beginning: &str, away: Option<MissingUpstream>) {
        match away {
            Some(away) => drop(self.away().insert(beginning.to_owned(), away)),
            None => drop(self.away().remove(beginning)),
        }
    }

    /// Tools of these names are there.
    pub(crate) fn came(&self, names: &[&str]) {
        let is_away = |beginning: &String| !names.iter().any(|name| may_come(name, beginning));
        self.away().retain(|beginning, _| is_away(beginning));
    }

    /// The beginnings of the names of tools that have not come.
    pub(crate) fn missing(&self) -> Vec<String> {
        self.away().keys().cloned().collect()
    }

    /// The server of a tool whose name begins so, if it is away.
    pub(crate) fn away_of(&self, name: &str) -> Option<MissingUpstream> {
        let away = self.away();
        away.iter().find(|(beginning, _)| may_come(name, beginning)).map(|(_, away)| away.clone())
    }

    fn away(&self) -> MutexGuard<'_, BTreeMap<String, MissingUpstream>> {
        self.away.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the waiting: no more tools arrive.
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
