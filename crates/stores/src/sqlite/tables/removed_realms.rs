//! Removed realms: nothing is written for them any more. A commit that was queued before the
//! removal is removed with the rest of the realm.

use crate::locks::held;
use crate::sqlite::error::{JobError, Result};
use kernel::contracts::StoreError;
use kernel::values::ids::RealmId;
use rusqlite::Connection;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

const REMOVED: &str = "SELECT name FROM realms WHERE removed_at IS NOT NULL";

/// The names of realms that were removed. The writer adds one right after the commit that removes
/// it, before it begins the next.
#[derive(Default)]
pub(crate) struct RemovedRealms(Mutex<HashSet<RealmId>>);

impl RemovedRealms {
    /// Those that are stored.
    pub(crate) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let mut statement = connection.prepare(REMOVED)?;
        let names = statement.query_map((), |row| row.get::<_, Arc<str>>(0))?;
        let names: rusqlite::Result<HashSet<RealmId>> =
            names.map(|name| name.map(RealmId)).collect();
        Ok(Self(Mutex::new(names?)))
    }

    /// This one is removed from now on.
    pub(crate) fn add(&self, realm: RealmId) {
        held(&self.0).insert(realm);
    }

    /// Refuses to write for a realm that was removed.
    pub(crate) fn check(&self, realm: &RealmId) -> Result<()> {
        match held(&self.0).contains(realm) {
            true => Err(JobError::Refused(StoreError::RealmRemoved(realm.to_string()))),
            false => Ok(()),
        }
    }
}
