//! Named consumers of the feed and their positions.

use super::columns::{count, execute, integer, many, one};
use crate::sqlite::error::Result;
use kernel::contracts::{FeedStart, SINKS};
use kernel::values::ids::RealmId;
use rusqlite::{Connection, params};

/// Only ever on: a consumer never goes back.
const ADVANCE: &str = "INSERT INTO consumers (realm, name, cursor) VALUES (?1, ?2, ?3) \
     ON CONFLICT (realm, name) DO UPDATE SET cursor = max(cursor, excluded.cursor)";

/// The newest row there is, or that was removed if that is further: the feed's end never goes back.
pub(crate) const FEED_END: &str = "max(coalesce((SELECT max(row) FROM journal), 0), \
     coalesce((SELECT value FROM meta WHERE name = 'feed_removed'), 0))";

const REMOVED: &str = "INSERT INTO meta (name, value) VALUES ('feed_removed', ?1) \
     ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)";

const LIST: &str = "SELECT name, cursor FROM consumers WHERE realm = ?1 \
     AND substr(name, 1, length(?2)) = ?2 ORDER BY name";

const FORGET: &str = "DELETE FROM consumers WHERE realm = ?1 AND name = ?2";

const PASSED: &str = "SELECT min(cursor) FROM consumers WHERE realm = ?1 \
     AND substr(name, 1, length(?2)) = ?2";

const BEHIND: &str = "SELECT name FROM consumers WHERE realm = ?1 \
     AND substr(name, 1, length(?2)) = ?2 AND cursor < ?3 ORDER BY cursor, name LIMIT 1";

/// How far a named consumer is; 0 before its first step.
pub(crate) fn place(connection: &Connection, realm: &RealmId, name: &str) -> Result<u64> {
    let sql = "SELECT cursor FROM consumers WHERE realm = ?1 AND name = ?2";
    let cursor = one(connection, sql, params![realm.as_str(), name], |row| count(row, 0))?;
    Ok(cursor.unwrap_or(0))
}

/// Moves a named consumer on.
pub(crate) fn advance(
    connection: &Connection,
    realm: &RealmId,
    name: &str,
    cursor: u64,
) -> Result<()> {
    execute(connection, ADVANCE, params![realm.as_str(), name, integer(cursor)])?;
    Ok(())
}

/// The place of a named consumer, which is given one if it has none.
pub(crate) fn begin(
    connection: &Connection,
    realm: &RealmId,
    name: &str,
    start: FeedStart,
) -> Result<u64> {
    let sql = format!(
        "INSERT INTO consumers (realm, name, cursor) \
         VALUES (?1, ?2, CASE WHEN ?3 THEN 0 ELSE {FEED_END} END) \
         ON CONFLICT (realm, name) DO NOTHING"
    );
    execute(connection, &sql, params![realm.as_str(), name, start == FeedStart::Oldest])?;
    place(connection, realm, name)
}

/// Rows of the feed up to this one are removed.
pub(crate) fn removed(connection: &Connection, row: u64) -> Result<()> {
    execute(connection, REMOVED, [integer(row)])?;
    Ok(())
}

/// Those whose names begin so, by name, and how far each is.
pub(crate) fn list(
    connection: &Connection,
    realm: &RealmId,
    prefix: &str,
) -> Result<Vec<(String, u64)>> {
    let params = params![realm.as_str(), prefix];
    many(connection, LIST, params, |row| Ok((row.get(0)?, count(row, 1)?)))
}

/// Removes the place of a named consumer; false where it has none.
pub(crate) fn forget(connection: &Connection, realm: &RealmId, name: &str) -> Result<bool> {
    Ok(execute(connection, FORGET, params![realm.as_str(), name])? > 0)
}

/// The sink of a realm that is furthest behind this row; none where all have passed it.
pub(crate) fn behind(connection: &Connection, realm: &RealmId, row: u64) -> Result<Option<String>> {
    let params = params![realm.as_str(), SINKS, integer(row)];
    one(connection, BEHIND, params, |row| Ok(row.get(0)?))
}

/// The row up to which all sinks of a realm have read; the last one there can be where it has none.
pub(crate) fn passed(connection: &Connection, realm: &RealmId) -> Result<u64> {
    let mut statement = connection.prepare_cached(PASSED)?;
    let params = params![realm.as_str(), SINKS];
    let cursor: Option<i64> = statement.query_row(params, |row| row.get(0))?;
    Ok(cursor.unwrap_or(i64::MAX) as u64)
}
