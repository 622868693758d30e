//! Principals: one row for each, which a put replaces if it names the version that is there.

use super::audit;
use super::columns::{count, execute, integer, many, one, to_json};
use crate::sqlite::SqliteStore;
use crate::sqlite::error::{JobError, Result};
use kernel::contracts::identity::principals::{Principals, StoredPrincipal};
use kernel::contracts::{Read, StoreError};
use kernel::identity::audit::Entries;
use kernel::identity::principal::PrincipalRecord;
use rusqlite::{Connection, Row, params};

const ALL: &str = "SELECT id, version, body FROM principals ORDER BY id";

const VERSION: &str = "SELECT version FROM principals WHERE id = ?1";

const PUT: &str = "INSERT INTO principals (id, version, body) VALUES (?1, ?2, ?3) \
     ON CONFLICT (id) DO UPDATE SET version = excluded.version, body = excluded.body";

impl Principals for SqliteStore {
    fn all_principals(&self) -> Read<'_, Vec<StoredPrincipal>> {
        self.readers.read(|connection| many(connection, ALL, (), stored_principal))
    }

    fn put_principal<'a>(
        &'a self,
        record: &'a PrincipalRecord,
        version: Option<u64>,
        audit: Entries,
    ) -> Read<'a, u64> {
        let record = record.clone();
        let keys = self.audit_keys.clone();
        self.writes.perform(move |connection| {
            let version = put(connection, &record, version)?;
            audit::write_all(connection, &keys, &audit)?;
            Ok(version)
        })
    }
}

/// Writes one over this version of it, or a new one; the version that it has now.
pub(crate) fn put(
    connection: &Connection,
    record: &PrincipalRecord,
    expected: Option<u64>,
) -> Result<u64> {
    let stored = one(connection, VERSION, params![record.id], |row| count(row, 0))?;
    if stored != expected {
        let what = format!("principal {}", record.id);
        return Err(JobError::Refused(StoreError::Conflict(what)));
    }
    let version = stored.unwrap_or(0) + 1;
    execute(connection, PUT, params![record.id, integer(version), to_json(record)?])?;
    Ok(version)
}

fn stored_principal(row: &Row<'_>) -> Result<StoredPrincipal> {
    let id: String = row.get(0)?;
    let body: String = row.get(2)?;
    let record = serde_json::from_str(&body).map_err(|error| {
        JobError::unreadable(format!("principal `{id}` cannot be read: {error}"))
    })?;
    Ok(StoredPrincipal { record, version: count(row, 1)? })
}
