//! Implementations of the store's contracts over the SQL of the other modules.

mod feed;
mod journal;
mod lists;
mod retention;
mod realms;

use super::SqliteStore;
use kernel::contracts::{OnCommit, Read, Store, StoreError, StoreFigures};
use kernel::values::ids::SessionKey;
use std::sync::atomic::Ordering;

impl SqliteStore {
    /// Forgets the fence of a session, once a write that is not an append has changed it.
    fn moved(&self, key: &SessionKey) -> impl FnOnce() + Send + use<> {
        let fences = self.fences.clone();
        let key = key.clone();
        move || fences.forget(&key)
    }

    /// Ends the process if another one can hold the folder too, at the second look in a row that
    /// says so: a folder that is being removed loses its files one by one, and one that was removed
    /// has nothing that two could write.
    fn check_lock(&self) -> Result<(), StoreError> {
        let is_lost = !self.lock_place.stands() && self.path.exists();
        let was_lost = self.lock_was_lost.swap(is_lost, Ordering::SeqCst);
        if !(is_lost && was_lost) {
            return Ok(());
        }
        let what = "the data folder's file `lock` was removed or replaced: another process may use \
             the folder; start again, and leave that file alone";
        (self.fatal)(what.to_owned());
        Err(StoreError::Closed)
    }
}

impl Store for SqliteStore {
    fn figures(&self) -> Option<StoreFigures> {
        let (bytes, wal_bytes) = self.databases.bytes();
        Some(StoreFigures { bytes, wal_bytes, ..self.writes.figures() })
    }

    fn on_commit(&self, woken: OnCommit) {
        self.writes.on_commit(woken);
    }

    fn healthy(&self) -> Result<(), StoreError> {
        self.databases.healthy()
    }

    fn close(&self) -> Read<'_, ()> {
        Box::pin(self.databases.close())
    }
}
