//! Cache of the fences of recently written sessions. Only this process writes to its database, so a
//! caller that returns to such a session need not read it to know that it has not changed.

use crate::locks::held;
use kernel::journal::projection::Append;
use kernel::values::ids::{SessionKey, SessionVersion};
use std::collections::HashMap;
use std::sync::Mutex;

/// How many of them are remembered; then it begins again. What is not among them is read.
const SESSIONS_MAX: usize = 4_096;

/// Fences of recently written sessions. Only the writer changes them, right after each commit and
/// in queue order.
#[derive(Default)]
pub(crate) struct Fences {
    sessions: Mutex<HashMap<SessionKey, SessionVersion>>,
}

impl Fences {
    /// This append is durable. The driver of a session knows it anyway.
    pub(crate) fn appended(&self, append: &Append) {
        let row = &append.session;
        let mut sessions = held(&self.sessions);
        if append.owned {
            sessions.remove(&row.key);
            return;
        }
        if sessions.len() >= SESSIONS_MAX {
            sessions.clear();
        }
        let known = SessionVersion { id: row.id, fence: append.fence.next() };
        sessions.insert(row.key.clone(), known);
    }

    /// Something else changed this session, or removed it.
    pub(crate) fn forget(&self, key: &SessionKey) {
        held(&self.sessions).remove(key);
    }

    /// Whether the session is known to be this one. If not, it may be all the same.
    pub(crate) fn has(&self, key: &SessionKey, known: SessionVersion) -> bool {
        held(&self.sessions).get(key) == Some(&known)
    }
}
