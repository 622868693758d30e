//! Cache of closures and specs known to be stored, so that a plan that runs repeatedly does not
//! look them up each time. Used by the writer only, in the order of its jobs.

use crate::locks::held;
use crate::sqlite::error::Result;
use kernel::values::ids::{ContentHash, RealmId};
use std::collections::HashSet;
use std::sync::Mutex;

/// How many pins are remembered; then all are forgotten, and looked for once more where they recur.
const KNOWN_MAX: usize = 10_000;

/// Something that runs pin.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Pin {
    /// A closure that is stored, and not on the list of those that perhaps no run pins.
    Closure(RealmId, ContentHash),
    /// A spec that is stored, and that this closure pins.
    Spec(RealmId, ContentHash, ContentHash),
}

/// The pins that this process has written or found, as far as it remembers them.
#[derive(Default)]
pub(crate) struct KnownPins(Mutex<HashSet<Pin>>);

impl KnownPins {
    /// Clears the cache, because written rows may have been rolled back.
    pub(crate) fn forget(&self) {
        held(&self.0).clear();
    }

    /// Sees to it that this is stored, unless it is known to be.
    pub(crate) fn unless_known(&self, pin: Pin, store: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut known = held(&self.0);
        if known.contains(&pin) {
            return Ok(());
        }
        store()?;
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(pin);
        Ok(())
    }
}
