//! Stored configuration: every version is kept, the newest counts, and a put says which version it
//! was written against.

use super::columns::{count, execute, integer, many, one};
use crate::sqlite::SqliteStore;
use crate::sqlite::error::{JobError, Result};
use kernel::contracts::{Definition, Definitions, Precondition, Read, StoreError, StoredBy};
use kernel::values::ids::{Millis, RealmId};
use rusqlite::{Connection, Row, params};

impl Definitions for SqliteStore {
    fn counts(&self) -> Read<'_, Vec<(RealmId, u64)>> {
        self.readers.read(|connection| {
            let sql = "SELECT realm, count(*) FROM \
                 (SELECT DISTINCT realm, kind, name FROM definitions) \
                 GROUP BY realm ORDER BY realm";
            many(connection, sql, params![], |row| Ok((RealmId(row.get(0)?), count(row, 1)?)))
        })
    }

    fn list<'a>(&'a self, realm: &'a RealmId, kind: &'a str) -> Read<'a, Vec<Definition>> {
        let realm = realm.clone();
        let kind = kind.to_owned();
        self.readers.read(move |connection| {
            // With a lone `max`, SQLite takes the other columns from the row that has it.
            let sql = "SELECT kind, name, max(version), body, updated_at, stored_by \
                 FROM definitions WHERE realm = ?1 AND kind = ?2 GROUP BY name ORDER BY name";
            many(connection, sql, params![realm.as_str(), kind], definition)
        })
    }

    fn get<'a>(
        &'a self,
        realm: &'a RealmId,
        kind: &'a str,
        name: &'a str,
    ) -> Read<'a, Option<Definition>> {
        let realm = realm.clone();
        let kind = kind.to_owned();
        let name = name.to_owned();
        self.readers.read(move |connection| get(connection, &realm, &kind, &name))
    }

    fn put<'a>(
        &'a self,
        realm: &'a RealmId,
        definition: Definition,
        against: Precondition,
    ) -> Read<'a, Definition> {
        let realm = realm.clone();
        let removed = self.removed.clone();
        let definition = Definition { updated_at: self.clock.now(), ..definition };
        self.writes.perform(move |connection| {
            removed.check(&realm)?;
            put(connection, &realm, &definition, &against)
        })
    }

    fn delete<'a>(
        &'a self,
        realm: &'a RealmId,
        kind: &'a str,
        name: &'a str,
        against: Precondition,
    ) -> Read<'a, bool> {
        let realm = realm.clone();
        let kind = kind.to_owned();
        let name = name.to_owned();
        self.writes.perform(move |connection| {
            let Some((version, owner)) = newest(connection, &realm, &kind, &name)? else {
                return Ok(false);
            };
            if !against.holds(version, &owner) {
                return Err(conflict(&kind, &name));
            }
            let sql = "DELETE FROM definitions WHERE realm = ?1 AND kind = ?2 AND name = ?3";
            Ok(execute(connection, sql, params![realm.as_str(), kind, name])? > 0)
        })
    }
}

fn get(
    connection: &Connection,
    realm: &RealmId,
    kind: &str,
    name: &str,
) -> Result<Option<Definition>> {
    let sql = "SELECT kind, name, version, body, updated_at, stored_by FROM definitions \
         WHERE realm = ?1 AND kind = ?2 AND name = ?3 ORDER BY version DESC LIMIT 1";
    one(connection, sql, params![realm.as_str(), kind, name], definition)
}

/// The newest version and who stored it. Its body is not read: one that cannot be read can be
/// replaced and removed.
fn newest(
    connection: &Connection,
    realm: &RealmId,
    kind: &str,
    name: &str,
) -> Result<Option<(u64, StoredBy)>> {
    let sql = "SELECT version, stored_by FROM definitions \
         WHERE realm = ?1 AND kind = ?2 AND name = ?3 ORDER BY version DESC LIMIT 1";
    one(connection, sql, params![realm.as_str(), kind, name], |row| {
        let by = row.get::<_, Option<String>>(1)?.map(Into::into);
        Ok((count(row, 0)?, StoredBy(by)))
    })
}

fn conflict(kind: &str, name: &str) -> JobError {
    JobError::Refused(StoreError::Conflict(format!("{kind}/{name}")))
}

fn put(
    connection: &Connection,
    realm: &RealmId,
    definition: &Definition,
    against: &Precondition,
) -> Result<Definition> {
    let Definition { kind, name, body, updated_at, by, .. } = definition;
    let (newest, owner) = newest(connection, realm, kind, name)?.unwrap_or_default();
    if !against.holds(newest, &owner) {
        return Err(conflict(kind, name));
    }
    let version = newest + 1;
    let sql = "INSERT INTO definitions (realm, kind, name, version, body, updated_at, stored_by) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let number = integer(version);
    let body = body.to_string();
    let row = params![realm.as_str(), kind, name, number, body, updated_at.0, by.as_deref()];
    execute(connection, sql, row)?;
    Ok(Definition { version, ..definition.clone() })
}

fn definition(row: &Row<'_>) -> Result<Definition> {
    let kind: String = row.get(0)?;
    let name: String = row.get(1)?;
    let body: String = row.get(3)?;
    let body = serde_json::from_str(&body).map_err(|error| {
        JobError::unreadable(format!("{kind} `{name}` cannot be read: {error}"))
    })?;
    let version = count(row, 2)?;
    let updated_at = Millis(row.get(4)?);
    let by = row.get::<_, Option<String>>(5)?.map(Into::into);
    Ok(Definition { kind, name, version, body, updated_at, by })
}
