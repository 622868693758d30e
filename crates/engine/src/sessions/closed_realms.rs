//! Realms that were removed: nothing is driven in them any more.

use crate::system::locks::lock;
use kernel::values::ids::RealmId;
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The names of realms that were removed.
#[derive(Default)]
pub(crate) struct ClosedRealms {
    /// Whether there is any: mostly there is none.
    any: AtomicBool,
    names: Mutex<HashSet<RealmId>>,
}

impl ClosedRealms {
    /// This one is closed from now on.
    pub(crate) fn close(&self, realm: RealmId) {
        lock(&self.names).insert(realm);
        self.any.store(true, Ordering::Release);
    }

    /// Whether this one is closed.
    pub(crate) fn has(&self, realm: &RealmId) -> bool {
        self.any.load(Ordering::Acquire) && lock(&self.names).contains(realm)
    }
}
