//! Locking that survives a poisoned mutex.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock that a panic elsewhere does not take from us: what it guards is changed in one step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
