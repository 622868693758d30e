//! The credential that a connection brought last. Most clients bring the same one with each
//! request: then it is compared, which takes less time than to find it among all that are known,
//! and what it proved is the connection's own, so that connections do not wait for each other.

use crate::sent::Sent;
use crate::verified::Verified;
use kernel::values::secret::Secret;
use std::fmt;
use std::hint::black_box;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How long a credential may be that a connection keeps.
const TEXT_BYTES_MAX: usize = 4 * 1024;

/// The last credential of one connection that was good. It is forgotten with the connection.
#[derive(Default)]
pub struct Recent(Mutex<Option<Shown>>);

struct Shown {
    text: Secret,
    /// The number of the directory by which it was good.
    number: u64,
    verified: Arc<Verified>,
}

impl Recent {
    /// What this credential proved by the directory of this number, if it came last. Whether it has
    /// ended is not known here.
    pub(crate) fn find(&self, number: u64, sent: &Sent<'_>) -> Option<Arc<Verified>> {
        let last = self.last();
        let shown = last.as_ref().filter(|shown| shown.number == number)?;
        is_same(shown.text.expose(), sent.text()).then(|| shown.verified.clone())
    }

    /// Keeps what this credential proves by the directory of this number: what is given back counts
    /// references that no other connection counts.
    pub(crate) fn keep(
        &self,
        number: u64,
        sent: &Sent<'_>,
        verified: Arc<Verified>,
    ) -> Arc<Verified> {
        if sent.text().len() > TEXT_BYTES_MAX {
            return verified;
        }
        let verified = Arc::new(verified.apart());
        let text = Secret::from(sent.text());
        *self.last() = Some(Shown { text, number, verified: verified.clone() });
        verified
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

/// Compares every byte, whatever the first ones are: behind a proxy several clients share a
/// connection, and how long it takes says nothing about the credential of another.
fn is_same(known: &str, sent: &str) -> bool {
    let pairs = known.bytes().zip(sent.bytes());
    let difference = pairs.fold(0, |seen, (left, right)| seen | (left ^ right));
    known.len() == sent.len() && black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_the_same_where_all_of_them_is() {
        assert!(is_same("abc", "abc") && is_same("", ""));
        for other in ["abd", "bbc", "ab", "abcd", ""] {
            assert!(!is_same("abc", other), "{other}");
        }
    }

    #[test]
    fn it_is_never_shown() {
        let shown = format!("{:?}", Recent::default());
        assert_eq!(shown, "Recent(***)");
    }
}
