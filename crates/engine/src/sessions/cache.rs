//! Sessions that no one drives but someone may come back to: kept in memory, a few of them, so
//! that the next request need not read them again. What rests here was durable, and is good as long
//! as the session in the store has the fence that it rested with.

use crate::system::locks::lock;
use kernel::session::Session;
use kernel::values::ids::{Fence, SessionKey, SessionVersion};
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

/// How many sessions rest at the same time.
const SESSIONS_MAX: usize = 256;
/// A larger session does not rest.
const SESSION_BYTES_MAX: usize = 64 * 1024;

/// A session at rest, with what its driver knew of its size.
pub(crate) struct CachedSession {
    pub(crate) session: Session,
    /// Its fence in the store.
    pub(crate) fence: Fence,
    pub(crate) tail_bytes: usize,
    pub(crate) snapshot_bytes: usize,
}

impl CachedSession {
    /// Which session this is, in which state.
    pub(crate) fn known(&self) -> SessionVersion {
        SessionVersion { id: self.session.id, fence: self.fence }
    }
}

/// The sessions at rest.
#[derive(Default)]
pub(crate) struct SessionCache {
    entries: Mutex<CacheEntries>,
}

#[derive(Default)]
struct CacheEntries {
    sessions: HashMap<SessionKey, CachedSession>,
    /// Oldest first.
    order: VecDeque<SessionKey>,
}

impl SessionCache {
    /// Lets a session rest, if it is small.
    pub(crate) fn keep(&self, key: &SessionKey, rested: CachedSession) {
        let bytes = rested.snapshot_bytes.max(rested.tail_bytes);
        if bytes > SESSION_BYTES_MAX {
            return;
        }
        let mut entries = lock(&self.entries);
        while entries.order.len() >= SESSIONS_MAX {
            let Some(oldest) = entries.order.pop_front() else { break };
            entries.sessions.remove(&oldest);
        }
        entries.order.push_back(key.clone());
        entries.sessions.insert(key.clone(), rested);
    }

    pub(crate) fn take(&self, key: &SessionKey) -> Option<CachedSession> {
        let mut entries = lock(&self.entries);
        let rested = entries.sessions.remove(key)?;
        entries.order.retain(|other| other != key);
        Some(rested)
    }
}
