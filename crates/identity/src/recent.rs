//! The last good credential of a connection. Most clients bring the same one with each request:
//! from the second on it is compared, which takes less time than to find it among all that are
//! known, and what it proved is a copy of the connection's own, whose references no other
//! connection counts.

use crate::sent::Sent;
use crate::verified::Verified;
use kernel::values::secret::{Secret, is_same_secret};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A longer credential is not kept.
pub(crate) const TEXT_BYTES_MAX: usize = 4 * 1024;

/// The last credential of one connection that was good. It is forgotten with the connection.
#[derive(Default)]
pub struct Recent(Mutex<Option<Shown>>);

struct Shown {
    text: Secret,
    /// The number of the directory by which it was good.
    number: u64,
    /// The connection's own once it came twice: a connection that many clients share, or that is
    /// made for one request, needs none.
    verified: Arc<Verified>,
}

impl Recent {
    /// What this credential proved by the directory of this number, if it came last: then it was
    /// looked at as a whole, and that is not done again. Whether it has ended is not known here.
    pub(crate) fn find(&self, number: u64, sent: &Sent<'_>) -> Option<Arc<Verified>> {
        let mut last = self.last();
        let shown = last.as_mut().filter(|shown| shown.number == number)?;
        // Behind a proxy several clients share a connection: as it is compared, no one learns more
        // about another's credential than its length.
        if !is_same_secret(shown.text.expose().as_bytes(), sent.bytes()) {
            return None;
        }
        if !shown.verified.is_own {
            shown.verified = Arc::new(shown.verified.apart());
        }
        Some(shown.verified.clone())
    }

    /// Keeps what this credential proves by the directory of this number.
    pub(crate) fn keep(&self, number: u64, text: &str, verified: &Arc<Verified>) {
        if text.len() <= TEXT_BYTES_MAX {
            let (text, verified) = (Secret::from(text), verified.clone());
            *self.last() = Some(Shown { text, number, verified });
        }
    }

    fn last(&self) -> MutexGuard<'_, Option<Shown>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without the credential.
impl fmt::Debug for Recent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recent(***)")
    }
}
