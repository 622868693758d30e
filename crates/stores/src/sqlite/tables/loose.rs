//! What the blobs' files need of the database: a note of each put, before its file has its name,
//! who holds which of them, and the list of blobs that may go.

use super::refs::{self, Loose};
use crate::sqlite::queue::Writes;
use crate::sqlite::readers::Readers;
use kernel::contracts::{Clock, Holder, Read};
use kernel::values::ids::{ContentHash, Millis, RealmId};
use rusqlite::Connection;
use std::sync::Arc;

/// The blobs that no one may hold.
#[derive(Clone)]
pub(crate) struct LooseBlobs {
    writes: Writes,
    readers: Readers,
    clock: Arc<dyn Clock>,
}

impl LooseBlobs {
    /// Over the same writer and readers as the sessions.
    pub(crate) fn new(writes: Writes, readers: Readers, clock: Arc<dyn Clock>) -> Self {
        Self { writes, readers, clock }
    }

    /// Notes that a blob is about to be put; durable on return.
    pub(crate) fn put(&self, realm: &RealmId, hash: &ContentHash) -> Read<'static, ()> {
        let (realm, hash, now) = (realm.clone(), hash.clone(), self.clock.now());
        self.writes
            .perform(move |connection: &Connection| refs::put(connection, &realm, &hash, now))
    }

    /// Holds blobs; durable on return.
    pub(crate) fn hold(
        &self,
        realm: &RealmId,
        holder: &Holder,
        blobs: &[ContentHash],
    ) -> Read<'static, ()> {
        let (realm, holder, blobs) = (realm.clone(), holder.clone(), blobs.to_vec());
        self.writes
            .perform(move |connection: &Connection| refs::hold(connection, &realm, &holder, &blobs))
    }

    /// Lets go of all that it holds; durable on return.
    pub(crate) fn release(&self, realm: &RealmId, holder: &Holder) -> Read<'static, ()> {
        let (realm, holder, now) = (realm.clone(), holder.clone(), self.clock.now());
        self.writes
            .perform(move |connection: &Connection| refs::release(connection, &realm, &holder, now))
    }

    /// Those that have been loose since before this.
    pub(crate) fn due(&self, before: Millis, limit: usize) -> Read<'static, Vec<Loose>> {
        self.readers.read(move |connection| refs::due(connection, before, limit))
    }

    /// Takes those off the list that were looked at.
    pub(crate) fn forget(&self, looked_at: Vec<Loose>, before: Millis) -> Read<'static, ()> {
        self.writes
            .perform(move |connection: &Connection| refs::forget(connection, &looked_at, before))
    }
}
