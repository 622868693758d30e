//! Keyed requests: which run or ask a client's key stands for. A row is written in the commit of
//! what it names, so that a key and its run are there together or not at all.

use super::columns::one;
use crate::sqlite::error::{JobError, Result};
use kernel::contracts::StoreError;
use kernel::journal::projection::{FormerRoute, OnceRow};
use kernel::values::ids::{AskId, ContentHash, Millis, RealmId, RunId};
use rusqlite::{Connection, Row, params};

const FIND: &str = "SELECT subject, route, key, body_digest, run, ask, created_at \
     FROM idempotency WHERE realm = ?1 AND subject = ?2 AND route = ?3 AND key = ?4";

const TAKE: &str = "INSERT INTO idempotency (realm, subject, route, key, body_digest, run, ask, \
     created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING";

/// The newest outcome of a keyed request under these routes.
pub(crate) fn newest(
    connection: &Connection,
    realm: &RealmId,
    subject: &str,
    routes: &[String],
    key: &str,
) -> Result<Option<OnceRow>> {
    let mut newest: Option<OnceRow> = None;
    for route in routes {
        let found = find(connection, realm, subject, route, key)?;
        newest = newest.into_iter().chain(found).max_by_key(|row| row.at);
    }
    Ok(newest)
}

fn find(
    connection: &Connection,
    realm: &RealmId,
    subject: &str,
    route: &str,
    key: &str,
) -> Result<Option<OnceRow>> {
    one(connection, FIND, params![realm.as_str(), subject, route, key], once_row)
}

const TAKEN_BEFORE: &str = "SELECT 1 FROM idempotency \
     WHERE realm = ?1 AND subject = ?2 AND route = ?3 AND key = ?4 AND created_at >= ?5";

/// Writes a key down, or refuses one that is taken, also under its earlier route.
pub(crate) fn take(
    connection: &Connection,
    realm: &RealmId,
    once: &OnceRow,
    earlier: Option<&FormerRoute>,
) -> Result<()> {
    let conflict = || JobError::Refused(StoreError::Conflict(format!("key {}", once.key)));
    if let Some(FormerRoute { route, since }) = earlier {
        let params = params![realm.as_str(), once.subject, route, once.key, since.0];
        if connection.prepare_cached(TAKEN_BEFORE)?.exists(params)? {
            return Err(conflict());
        }
    }
    let taken = connection.prepare_cached(TAKE)?.execute(params![
        realm.as_str(),
        once.subject,
        once.route,
        once.key,
        once.digest.as_str(),
        once.run.map(|run| run.0.to_be_bytes()),
        once.ask.map(|ask| ask.0.to_be_bytes()),
        once.at.0,
    ])?;
    match taken {
        0 => Err(conflict()),
        _ => Ok(()),
    }
}

fn once_row(row: &Row<'_>) -> Result<OnceRow> {
    let bits = |column: usize| -> rusqlite::Result<Option<u128>> {
        Ok(row.get::<_, Option<[u8; 16]>>(column)?.map(u128::from_be_bytes))
    };
    Ok(OnceRow {
        subject: row.get(0)?,
        route: row.get(1)?,
        key: row.get(2)?,
        digest: ContentHash(row.get(3)?),
        run: bits(4)?.map(RunId),
        ask: bits(5)?.map(AskId),
        at: Millis(row.get(6)?),
    })
}
