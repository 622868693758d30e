//! Bookkeeping for the blob sweep: a note of each put, before its file has its final name; who
//! holds which blobs; and the blobs that may be deleted.

use super::refs::{self, LooseBlob};
use crate::sqlite::SqliteStore;
use crate::sqlite::error::JobError;
use kernel::contracts::{Holder, Read, StoreError};
use kernel::values::ids::{ContentHash, Millis, RealmId};

impl SqliteStore {
    /// Refuses a realm that was removed.
    pub(crate) fn check_realm(&self, realm: &RealmId) -> Result<(), StoreError> {
        self.removed.check(realm).map_err(JobError::into_error)
    }

    /// Notes that a blob is about to be put; durable on return.
    pub(crate) fn note_blob(&self, realm: &RealmId, hash: &ContentHash) -> Read<'static, ()> {
        let realm = realm.clone();
        let hash = hash.clone();
        let now = self.clock.now();
        let removed = self.removed.clone();
        self.writes.perform(move |connection| {
            removed.check(&realm)?;
            refs::put(connection, &realm, &hash, now)
        })
    }

    /// Holds blobs; durable on return.
    pub(crate) fn hold_blobs(
        &self,
        realm: &RealmId,
        holder: &Holder,
        blobs: &[ContentHash],
    ) -> Read<'static, ()> {
        let realm = realm.clone();
        let holder = holder.clone();
        let blobs = blobs.to_vec();
        let removed = self.removed.clone();
        self.writes.perform(move |connection| {
            removed.check(&realm)?;
            refs::hold(connection, &realm, &holder, &blobs)
        })
    }

    /// Lets go of all blobs that it holds; durable on return.
    pub(crate) fn release_blobs(&self, realm: &RealmId, holder: &Holder) -> Read<'static, ()> {
        let realm = realm.clone();
        let holder = holder.clone();
        let now = self.clock.now();
        self.writes.perform(move |connection| refs::release(connection, &realm, &holder, now))
    }

    /// Blobs that have been loose since before this.
    pub(crate) fn loose_blobs(
        &self,
        before: Millis,
        limit: usize,
    ) -> Read<'static, Vec<LooseBlob>> {
        self.readers.read(move |connection| refs::due(connection, before, limit))
    }

    /// Takes those off the list that were looked at.
    pub(crate) fn forget_blobs(
        &self,
        looked_at: Vec<LooseBlob>,
        before: Millis,
    ) -> Read<'static, ()> {
        self.writes.perform(move |connection| refs::forget(connection, &looked_at, before))
    }
}
