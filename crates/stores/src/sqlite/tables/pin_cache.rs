//! Cache of what runs pin and is known to be stored: closures of plans, and specs of tools. With it
//! a plan that runs repeatedly does not look them up each time. Only the writer uses it, in the
//! order of its jobs.

use crate::locks::held;
use crate::sqlite::error::Result;
use kernel::values::ids::{ContentHash, RealmId};
use std::collections::HashSet;
use std::sync::Mutex;

/// How many pins are remembered. A full cache is cleared: a pin that recurs is looked up once more.
const KNOWN_MAX: usize = 10_000;

/// Something that runs pin.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Pin {
    /// A closure that is stored, and not listed for removal.
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

    /// Stores this, unless it is known to be stored.
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
