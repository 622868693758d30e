//! What credentials proved that were shown already. It follows from the directory alone, until they
//! end: most requests of a server come with few credentials, and between two changes each of them
//! is checked once.

use crate::sent::Fingerprint;
use crate::verified::Verified;
use ahash::RandomState;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// How many are remembered. Then all are forgotten, and looked at again.
const SHOWN_MAX: usize = 10_000;

/// Credentials that were good by one directory. Of themselves only their fingerprints are kept.
#[derive(Default)]
pub(crate) struct Shown(RwLock<Known>);

#[derive(Default)]
struct Known {
    /// The number of the directory.
    number: u64,
    credentials: HashMap<Fingerprint, Arc<Verified>, RandomState>,
}

impl Shown {
    /// What a credential proved by the directory of this number. Whether it has ended is not known
    /// here.
    pub(crate) fn find(&self, number: u64, fingerprint: Fingerprint) -> Option<Arc<Verified>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.credentials.get(&fingerprint).filter(|_| known.number == number).cloned()
    }

    /// Remembers what a credential proves by the directory of this number, or a later one.
    pub(crate) fn keep(&self, number: u64, fingerprint: Fingerprint, verified: Arc<Verified>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.number > number {
            return;
        }
        if known.number < number || known.credentials.len() >= SHOWN_MAX {
            *known = Known { number, ..Known::default() };
        }
        known.credentials.insert(fingerprint, verified);
    }
}
