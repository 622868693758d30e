//! Who wants to know when a session changes. The feed only wakes; truth is in the lists.

use crate::system::locks::lock;
use kernel::contracts::Committed;
use kernel::values::ids::SessionKey;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::watch;

/// The watchers of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    watched: Mutex<HashMap<SessionKey, watch::Sender<u64>>>,
    /// How many are in the map, so that a commit no one watches costs one load.
    size: AtomicUsize,
    /// Counts all commits, for those who watch every session.
    all: watch::Sender<u64>,
}

/// Wakes after commits of one session, or of all.
#[derive(Debug)]
pub struct Watch {
    changes: watch::Receiver<u64>,
}

impl Watch {
    /// Waits for a commit after the last one that this watch was woken for.
    pub async fn changed(&mut self) {
        // The sender lives as long as a receiver does, so this fails only when the engine ends.
        if self.changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Watchers {
    pub(crate) fn watch(&self, key: &SessionKey) -> Watch {
        let mut watched = lock(&self.watched);
        watched.retain(|_, sender| sender.receiver_count() > 0);
        let sender = watched.entry(key.clone()).or_insert_with(|| watch::channel(0).0);
        let changes = sender.subscribe();
        self.size.store(watched.len(), Ordering::Release);
        Watch { changes }
    }

    pub(crate) fn watch_all(&self) -> Watch {
        Watch { changes: self.all.subscribe() }
    }

    pub(crate) fn committed(&self, commits: &[Committed<'_>]) {
        if self.all.receiver_count() > 0 {
            self.all.send_modify(|commits| *commits += 1);
        }
        if self.size.load(Ordering::Acquire) == 0 {
            return;
        }
        let watched = lock(&self.watched);
        for sender in commits.iter().filter_map(|commit| watched.get(commit.key)) {
            sender.send_modify(|commits| *commits += 1);
        }
    }
}
