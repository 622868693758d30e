//! Sessions that no one drives but someone may come back to: kept in memory, a few of them, so
//! that the next request need not read them again. What rests here was durable, and is good as long
//! as the session in the store has the fence that it rested with.

use kernel::ids::{Fence, Known, SessionKey};
use kernel::session::Session;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// A session at rest, with what its driver knew of its size.
pub(crate) struct Rested {
    pub(crate) session: Session,
    /// Its fence in the store.
    pub(crate) fence: Fence,
    pub(crate) tail_bytes: usize,
    pub(crate) snapshot_bytes: usize,
}

impl Rested {
    /// Which session this is, in which state.
    pub(crate) fn known(&self) -> Known {
        Known { id: self.session.id, fence: self.fence }
    }
}

/// The sessions at rest.
pub(crate) struct Rest {
    sessions_max: usize,
    bytes_max: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    sessions: HashMap<SessionKey, Rested>,
    /// Oldest first.
    order: VecDeque<SessionKey>,
}

impl Rest {
    pub(crate) fn new(sessions_max: usize, bytes_max: usize) -> Self {
        Self { sessions_max, bytes_max, held: Mutex::default() }
    }

    /// Lets a session rest, if it is small.
    pub(crate) fn keep(&self, key: &SessionKey, rested: Rested) {
        let bytes = rested.snapshot_bytes.max(rested.tail_bytes);
        if self.sessions_max == 0 || bytes > self.bytes_max {
            return;
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        while held.order.len() >= self.sessions_max {
            let Some(oldest) = held.order.pop_front() else { break };
            held.sessions.remove(&oldest);
        }
        held.order.push_back(key.clone());
        held.sessions.insert(key.clone(), rested);
    }

    /// Takes a session that rests.
    pub(crate) fn take(&self, key: &SessionKey) -> Option<Rested> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let rested = held.sessions.remove(key)?;
        held.order.retain(|other| other != key);
        Some(rested)
    }
}
