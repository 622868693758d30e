//! Removing old sessions: a reader finds them, the writer removes them in small slices and looks
//! again before it does, so that a session that moved meanwhile stays.

use super::trouble::Trouble;
use kernel::ids::{Millis, RealmId, SessionKey, Space};
use rusqlite::{Connection, Row, params};

/// Over, or never had a run; ?1 is the time before which nobody must have touched it.
const OLD: &str = "updated_at < ?1 AND created_at < ?1 \
     AND (run IS NULL OR status IN ('completed', 'failed', 'cancelled'))";

/// A session's number and key.
pub(crate) type Found = (i64, SessionKey);

/// A request's key with its realm, subject and route.
pub(crate) type KeyName = (String, String, String, String);

/// Old sessions after a row's number.
pub(crate) fn old_sessions(
    connection: &Connection,
    realm: Option<&RealmId>,
    before: Millis,
    (after, limit): (i64, i64),
) -> Result<Vec<Found>, Trouble> {
    let sql = format!(
        "SELECT pk, realm, space, key FROM sessions WHERE {OLD} AND pk > ?2 \
         AND (?3 IS NULL OR realm = ?3) ORDER BY pk LIMIT ?4"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let realm = realm.map(RealmId::as_str);
    let rows = statement.query_and_then(params![before.0, after, realm, limit], found)?;
    rows.collect()
}

fn found(row: &Row<'_>) -> Result<Found, Trouble> {
    let key =
        SessionKey { realm: RealmId(row.get(1)?), space: Space(row.get(2)?), id: row.get(3)? };
    Ok((row.get(0)?, key))
}

/// Removes those of them that are still old, with all that belongs to them; how many rows.
pub(crate) fn remove_sessions(
    connection: &Connection,
    sessions: &[Found],
    before: Millis,
) -> Result<(Vec<SessionKey>, u64), Trouble> {
    let sql = format!("DELETE FROM sessions WHERE {OLD} AND pk = ?2");
    let changes_before = changes(connection)?;
    let mut statement = connection.prepare_cached(&sql)?;
    let mut removed = Vec::new();
    for (number, key) in sessions {
        if statement.execute(params![before.0, number])? > 0 {
            removed.push(key.clone());
        }
    }
    // Every other table refers to the session's row: what goes with it is counted here only.
    Ok((removed, changes(connection)?.saturating_sub(changes_before)))
}

fn changes(connection: &Connection) -> Result<u64, Trouble> {
    let sql = "SELECT total_changes()";
    let changes: i64 = connection.prepare_cached(sql)?.query_row((), |row| row.get(0))?;
    Ok(changes as u64)
}

/// Keys of requests that are old and whose runs are gone.
pub(crate) fn old_keys(
    connection: &Connection,
    realm: Option<&RealmId>,
    before: Millis,
    limit: i64,
) -> Result<Vec<KeyName>, Trouble> {
    let sql = "SELECT realm, subject, route, key FROM idempotency AS k WHERE created_at < ?1 \
         AND (?2 IS NULL OR realm = ?2) AND NOT EXISTS (SELECT 1 FROM runs WHERE id = k.run) \
         LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let params = params![before.0, realm.map(RealmId::as_str), limit];
    let rows = statement.query_and_then(params, |row| {
        Ok::<_, Trouble>((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    })?;
    rows.collect()
}

/// Removes these keys; how many there were.
pub(crate) fn remove_keys(connection: &Connection, keys: &[KeyName]) -> Result<u64, Trouble> {
    let sql = "DELETE FROM idempotency WHERE realm = ?1 AND subject = ?2 AND route = ?3 \
         AND key = ?4";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = 0;
    for (realm, subject, route, key) in keys {
        rows += statement.execute(params![realm, subject, route, key])? as u64;
    }
    Ok(rows)
}
