//! Realms created at run time, and the removal of all data of a removed realm, in slices with other
//! commits in between.

use super::super::error::{JobError, Result};
use super::super::prune::{self, RemovedSessions};
use crate::sqlite::SqliteStore;
use crate::sqlite::tables::columns::{execute, key, many};
use crate::sqlite::tables::{api_keys, audit, principals};
use kernel::contracts::identity::realms::{LostEntries, RealmRecord, Removal, StoredRealms};
use kernel::contracts::{Read, StoreError};
use kernel::identity::audit::Entries;
use kernel::values::ids::{Millis, RealmId};
use rusqlite::{Connection, Row, params};
use std::sync::Arc;

/// How many sessions go in one commit; large ones are only hidden by it.
const SLICE_SESSIONS: i64 = 50;
/// How many rows of each other table go in one commit.
const SLICE_ROWS: i64 = 500;

const ALL: &str = "SELECT name, created_by, created_at, removed_by, removed_at, purged \
     FROM realms ORDER BY name";

const CREATE: &str = "INSERT INTO realms (name, created_by, created_at) VALUES (?1, ?2, ?3) \
     ON CONFLICT DO NOTHING";

const REMOVE: &str = "UPDATE realms SET removed_by = ?2, removed_at = ?3 \
     WHERE name = ?1 AND removed_at IS NULL";

const PURGED: &str = "UPDATE realms SET purged = 1 WHERE name = ?1 AND removed_at IS NOT NULL";

const SESSIONS: &str = "SELECT pk, realm, space, key FROM sessions WHERE realm = ?1 LIMIT ?2";

/// What a realm owns beside its sessions and the rows that refer to them, with the columns that
/// tell its rows apart. The audit stays.
const TABLES: [(&str, &str); 11] = [
    ("definitions", "kind, name, version"),
    ("idempotency", "subject, route, key"),
    ("consumers", "name"),
    ("deliveries", "pk"),
    ("tallies", "pipeline, deterministic, reason"),
    ("spec_pins", "closure, spec"),
    ("tool_specs", "hash"),
    ("loose_closures", "hash"),
    ("closures", "hash"),
    ("blob_holds", "kind, holder, hash"),
    ("loose_blobs", "hash"),
];

impl StoredRealms for SqliteStore {
    fn all_realms(&self) -> Read<'_, Vec<RealmRecord>> {
        self.readers.read(|connection| many(connection, ALL, (), record))
    }

    fn create_realm<'a>(&'a self, record: &'a RealmRecord, audit: Entries) -> Read<'a, ()> {
        let record = record.clone();
        let keys = self.audit_keys.clone();
        self.writes.perform(move |connection| {
            let RealmRecord { name, by, created, .. } = &record;
            if execute(connection, CREATE, params![name.as_str(), by, created.0])? == 0 {
                return Err(conflict(name));
            }
            audit::write_all(connection, &keys, &audit)
        })
    }

    fn remove_realm<'a>(
        &'a self,
        realm: &'a RealmId,
        removal: &'a Removal,
        lost: LostEntries,
        audit: Entries,
    ) -> Read<'a, ()> {
        let realm = realm.clone();
        let removal = removal.clone();
        let keys = self.audit_keys.clone();
        let name = realm.clone();
        let removed = self.removed.clone();
        let work = move |connection: &Connection| {
            remove(connection, &realm, &removal, &lost)?;
            audit::write_all(connection, &keys, &audit)
        };
        self.writes.perform_then(work, move |_: &()| removed.add(name))
    }

    fn purge_realm<'a>(&'a self, realm: &'a RealmId) -> Read<'a, bool> {
        Box::pin(async move {
            let name = realm.clone();
            let now = self.clock.now();
            let fences = self.fences.clone();
            let remove = move |connection: &Connection| remove_sessions(connection, &name, now);
            let gone = move |removed: &RemovedSessions| {
                removed.keys.iter().for_each(|key| fences.forget(key))
            };
            let removed = self.writes.perform_then(remove, gone).await?;
            self.remove_hidden(&removed.hidden).await;
            if !removed.keys.is_empty() {
                return Ok(true);
            }
            let name = realm.clone();
            let remove = move |connection: &Connection| remove_rows(connection, &name);
            Ok(self.writes.perform(remove).await? > 0)
        })
    }

    fn note_purged<'a>(&'a self, realm: &'a RealmId) -> Read<'a, ()> {
        let realm = realm.clone();
        Box::pin(async move {
            // First: a crash in between only does it once more.
            self.writes.compact().await?;
            let purged = move |connection: &Connection| {
                execute(connection, PURGED, [realm.as_str()])?;
                Ok(())
            };
            self.writes.perform(purged).await
        })
    }
}

fn conflict(realm: &RealmId) -> JobError {
    JobError::Refused(StoreError::Conflict(format!("realm {realm}")))
}

/// Notes that a realm is removed, and what loses it.
fn remove(
    connection: &Connection,
    realm: &RealmId,
    removal: &Removal,
    lost: &LostEntries,
) -> Result<()> {
    let params = params![realm.as_str(), removal.by, removal.at.0];
    if execute(connection, REMOVE, params)? == 0 {
        return Err(conflict(realm));
    }
    for (key, version) in &lost.keys {
        api_keys::put(connection, key, Some(*version))?;
    }
    for (record, version) in &lost.principals {
        principals::put(connection, record, Some(*version))?;
    }
    Ok(())
}

/// Removes some sessions of a realm with all that belongs to them, and hides the large ones.
fn remove_sessions(
    connection: &Connection,
    realm: &RealmId,
    now: Millis,
) -> Result<RemovedSessions> {
    let params = params![realm.as_str(), SLICE_SESSIONS];
    let found = many(connection, SESSIONS, params, |row| Ok((row.get(0)?, key(row, 1)?)))?;
    let mut removed = RemovedSessions::default();
    for (session, key) in found {
        removed.hidden.extend(prune::remove_session(connection, realm, session, now)?);
        removed.keys.push(key);
    }
    Ok(removed)
}

/// Removes some of what else a realm owns; how many rows.
fn remove_rows(connection: &Connection, realm: &RealmId) -> Result<u64> {
    let mut rows = 0;
    for (table, columns) in TABLES {
        let sql = format!(
            "DELETE FROM {table} WHERE realm = ?1 AND ({columns}) IN \
             (SELECT {columns} FROM {table} WHERE realm = ?1 LIMIT ?2)"
        );
        rows += execute(connection, &sql, params![realm.as_str(), SLICE_ROWS])?;
    }
    Ok(rows)
}

fn record(row: &Row<'_>) -> Result<RealmRecord> {
    let by: Option<Arc<str>> = row.get(3)?;
    let at: Option<i64> = row.get(4)?;
    let purged: bool = row.get(5)?;
    let removed = by.zip(at).map(|(by, at)| Removal { by, at: Millis(at), purged });
    Ok(RealmRecord {
        name: RealmId(row.get(0)?),
        by: row.get(1)?,
        created: Millis(row.get(2)?),
        removed,
    })
}
