//! What all requests to the server share: how often it listed, which calls hang, who waits for a
//! reply.

use super::options::Options;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The server's memory.
pub(super) struct State {
    pub(super) options: Options,
    /// How often it was asked for its list.
    lists: AtomicU64,
    /// How many calls hang now.
    hanging: AtomicUsize,
    /// How many writes it did.
    writes: AtomicU64,
    /// The ids of requests that were cancelled.
    cancelled: Mutex<BTreeSet<String>>,
    /// Who waits for the client's reply, by the id of what was asked.
    waiting: Mutex<BTreeMap<String, Sender<Value>>>,
    asked: AtomicU64,
    changes: Mutex<u64>,
    changed: Condvar,
}

impl State {
    /// A server with these options.
    pub(super) fn new(options: Options) -> Self {
        Self {
            options,
            lists: AtomicU64::new(0),
            hanging: AtomicUsize::new(0),
            writes: AtomicU64::new(0),
            cancelled: Mutex::default(),
            waiting: Mutex::default(),
            asked: AtomicU64::new(0),
            changes: Mutex::new(0),
            changed: Condvar::new(),
        }
    }

    /// One more list; its number, from 1.
    pub(super) fn list(&self) -> u64 {
        self.lists.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The number of the newest list.
    pub(super) fn lists(&self) -> u64 {
        self.lists.load(Ordering::SeqCst)
    }

    /// One more write; how many there were.
    pub(super) fn write(&self) -> u64 {
        self.writes.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// How many writes there were.
    pub(super) fn writes(&self) -> u64 {
        self.writes.load(Ordering::SeqCst)
    }

    /// How many calls hang now.
    pub(super) fn hanging(&self) -> usize {
        self.hanging.load(Ordering::SeqCst)
    }

    /// Counts a call as hanging until this is dropped.
    pub(super) fn hang(&self) -> Hanging<'_> {
        self.hanging.fetch_add(1, Ordering::SeqCst);
        Hanging(self)
    }

    /// The client cancelled this request.
    pub(super) fn cancel(&self, id: &Value) {
        locked(&self.cancelled).insert(id.to_string());
    }

    /// Whether the client cancelled this request.
    pub(super) fn is_cancelled(&self, id: &Value) -> bool {
        locked(&self.cancelled).contains(&id.to_string())
    }

    /// A new id for something that the client is asked, and where its reply will come.
    pub(super) fn ask(&self) -> (String, Receiver<Value>) {
        let id = format!("ask-{}", self.asked.fetch_add(1, Ordering::SeqCst));
        let (sender, receiver) = mpsc::channel();
        locked(&self.waiting).insert(id.clone(), sender);
        (id, receiver)
    }

    /// The client's reply to what it was asked; one that no one waits for is dropped.
    pub(super) fn reply(&self, message: Value) {
        let id = message["id"].as_str().unwrap_or_default();
        if let Some(sender) = locked(&self.waiting).remove(id) {
            let _ = sender.send(message);
        }
    }

    /// The list is another one now.
    pub(super) fn change(&self) {
        *locked(&self.changes) += 1;
        self.changed.notify_all();
    }

    /// How often the list changed, once that is more than this or the time is up.
    pub(super) fn changes_after(&self, seen: u64, wait: Duration) -> u64 {
        let changes = locked(&self.changes);
        let waited = self.changed.wait_timeout_while(changes, wait, |changes| *changes <= seen);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// A call that hangs.
pub(super) struct Hanging<'a>(&'a State);

impl Drop for Hanging<'_> {
    fn drop(&mut self) {
        self.0.hanging.fetch_sub(1, Ordering::SeqCst);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
