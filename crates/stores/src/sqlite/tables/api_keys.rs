//! API keys: one row for each, which a put replaces if it names the version that is there. The
//! last use stands beside it.

use super::audit;
use super::columns::{count, execute, integer, many, one, to_json};
use crate::sqlite::SqliteStore;
use crate::sqlite::error::{JobError, Result};
use kernel::contracts::identity::api_keys::{ApiKeys, StoredKey};
use kernel::contracts::{Read, StoreError};
use kernel::identity::audit::Entries;
use kernel::identity::key::{ApiKey, KeyId};
use kernel::values::ids::Millis;
use rusqlite::{Connection, Row, params};

const ALL: &str = "SELECT id, version, body, used_at FROM api_keys ORDER BY id";

const VERSION: &str = "SELECT version FROM api_keys WHERE id = ?1";

const PUT: &str = "INSERT INTO api_keys (id, version, body) VALUES (?1, ?2, ?3) \
     ON CONFLICT (id) DO UPDATE SET version = excluded.version, body = excluded.body";

const USED: &str = "UPDATE api_keys SET used_at = ?2 \
     WHERE id = ?1 AND (used_at IS NULL OR used_at < ?2)";

impl ApiKeys for SqliteStore {
    fn all(&self) -> Read<'_, Vec<StoredKey>> {
        self.readers.read(|connection| many(connection, ALL, (), stored_key))
    }

    fn put_audited<'a>(
        &'a self,
        key: &'a ApiKey,
        version: Option<u64>,
        audit: Entries,
    ) -> Read<'a, u64> {
        let key = key.clone();
        let keys = self.audit_keys.clone();
        self.writes.perform(move |connection| {
            let version = put(connection, &key, version)?;
            audit::write_all(connection, &keys, &audit)?;
            Ok(version)
        })
    }

    fn note_uses<'a>(&'a self, uses: &'a [(KeyId, Millis)]) -> Read<'a, ()> {
        let uses = uses.to_vec();
        self.writes.perform(move |connection| {
            let mut statement = connection.prepare_cached(USED)?;
            for (id, at) in &uses {
                statement.execute(params![id.0, at.0])?;
            }
            Ok(())
        })
    }
}

/// Writes one over this version of it, or a new one; the version that it has now.
pub(crate) fn put(connection: &Connection, key: &ApiKey, expected: Option<u64>) -> Result<u64> {
    let stored = one(connection, VERSION, params![key.id.0], |row| count(row, 0))?;
    if stored != expected {
        let what = format!("API key {}", key.id.0);
        return Err(JobError::Refused(StoreError::Conflict(what)));
    }
    let version = stored.unwrap_or(0) + 1;
    let params = params![key.id.0, integer(version), to_json(key)?];
    execute(connection, PUT, params)?;
    Ok(version)
}

fn stored_key(row: &Row<'_>) -> Result<StoredKey> {
    let id: String = row.get(0)?;
    let body: String = row.get(2)?;
    let key = serde_json::from_str(&body)
        .map_err(|error| JobError::unreadable(format!("API key `{id}` cannot be read: {error}")))?;
    let used = row.get::<_, Option<i64>>(3)?.map(Millis);
    Ok(StoredKey { key, version: count(row, 1)?, used })
}
