//! What the blobs' files need of the database: a note of each put, before its file is written, and
//! the list of blobs that may go.

use super::chore::Writes;
use super::readers::Readers;
use super::refs::{self, Loose};
use kernel::contracts::{Clock, Read};
use kernel::ids::{ContentHash, Millis, RealmId};
use rusqlite::Connection;
use std::sync::Arc;

/// The blobs that nothing may name.
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

    /// Those that have been loose since before this.
    pub(crate) fn due(&self, before: Millis, limit: usize) -> Read<'static, Vec<Loose>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.readers.read(move |connection| refs::due(connection, before, limit))
    }

    /// Takes those off the list that were looked at.
    pub(crate) fn forget(&self, looked_at: Vec<Loose>, before: Millis) -> Read<'static, ()> {
        self.writes
            .perform(move |connection: &Connection| refs::forget(connection, &looked_at, before))
    }
}
