//! Sessions that no one drives but someone may come back to: kept in memory, a few of them, so
//! that the next request need not read them again. What rests here was durable, and is good as long
//! as the session in the store has the fence that it rested with.

use crate::system::locks::lock;
use kernel::session::Session;
use kernel::values::ids::{Fence, Known, SessionKey};
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

/// How many sessions rest at the same time.
const SESSIONS_MAX: usize = 256;
/// A larger session does not rest.
const SESSION_BYTES_MAX: usize = 64 * 1024;

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
#[derive(Default)]
pub(crate) struct Rest {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    sessions: HashMap<SessionKey, Rested>,
    /// Oldest first.
    order: VecDeque<SessionKey>,
}

impl Rest {
    /// Lets a session rest, if it is small.
    pub(crate) fn keep(&self, key: &SessionKey, rested: Rested) {
        let bytes = rested.snapshot_bytes.max(rested.tail_bytes);
        if bytes > SESSION_BYTES_MAX {
            return;
        }
        let mut held = lock(&self.held);
        while held.order.len() >= SESSIONS_MAX {
            let Some(oldest) = held.order.pop_front() else { break };
            held.sessions.remove(&oldest);
        }
        held.order.push_back(key.clone());
        held.sessions.insert(key.clone(), rested);
    }

    pub(crate) fn take(&self, key: &SessionKey) -> Option<Rested> {
        let mut held = lock(&self.held);
        let rested = held.sessions.remove(key)?;
        held.order.retain(|other| other != key);
        Some(rested)
    }
}
