//! Locking that survives a poisoned mutex.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks. A thread that panicked while it held one of these locks left nothing half done.
pub(crate) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
