//! Named consumers of the feed, and how far each of them is.

use super::columns::integer;
use super::trouble::Trouble;
use kernel::ids::RealmId;
use rusqlite::{Connection, OptionalExtension, params};

/// Only ever on: a consumer never goes back.
const ADVANCE: &str = "INSERT INTO consumers (realm, name, cursor) VALUES (?1, ?2, ?3) \
     ON CONFLICT (realm, name) DO UPDATE SET cursor = max(cursor, excluded.cursor)";

/// How far a named consumer is; 0 before its first step.
pub(crate) fn place(connection: &Connection, realm: &RealmId, name: &str) -> Result<u64, Trouble> {
    let sql = "SELECT cursor FROM consumers WHERE realm = ?1 AND name = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let params = params![realm.as_str(), name];
    let cursor: Option<i64> = statement.query_row(params, |row| row.get(0)).optional()?;
    Ok(cursor.unwrap_or(0) as u64)
}

/// Moves a named consumer on.
pub(crate) fn advance(
    connection: &Connection,
    realm: &RealmId,
    name: &str,
    cursor: u64,
) -> Result<(), Trouble> {
    let params = params![realm.as_str(), name, integer(cursor)];
    connection.prepare_cached(ADVANCE)?.execute(params)?;
    Ok(())
}
