//! Removing old sessions: a reader finds them, the writer removes them in small slices and looks
//! again before it does, so that a session that moved meanwhile stays. A large one is hidden at
//! once, and its rows go later, as `large_removal` says.

use super::error::Result;
use super::large_removal;
use crate::sqlite::tables::closures;
use crate::sqlite::tables::columns::{count, execute, integer, key, limit_of, many, one};
use crate::sqlite::tables::consumers;
use crate::sqlite::tables::refs;
use kernel::contracts::{RETENTION, RealmSet, Slice};
use kernel::values::ids::{Millis, RealmId, SessionKey};
use rusqlite::{Connection, params};
use serde_json::json;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Over, or never had a run, and not hidden; ?1 is the time before which no one must have touched
/// it.
const OLD: &str = "updated_at < ?1 AND created_at < ?1 AND realm <> '' \
     AND (run IS NULL OR status IN ('completed', 'failed', 'cancelled'))";

/// A session that was old when it was looked at.
pub(crate) struct OldSession {
    /// Its number in this database.
    pub(crate) number: i64,
    pub(crate) key: SessionKey,
}

#[derive(Default)]
pub(crate) struct RemovedSessions {
    pub(crate) keys: Vec<SessionKey>,
    /// How many rows, of all kinds.
    pub(crate) rows: u64,
    /// Those of the sessions that are hidden, by their numbers: their rows are still there.
    pub(crate) hidden: Vec<i64>,
}

/// A request's key that is old.
pub(crate) struct OldKey {
    realm: String,
    subject: String,
    route: String,
    key: String,
}

/// Whose sessions are read, as a condition on `realm`.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    within: &'static str,
    /// A JSON list of realms.
    names: String,
}

impl Scope {
    /// These realms' sessions.
    pub(crate) fn of(realms: RealmSet<'_>) -> Self {
        let (within, realms) = match realms {
            RealmSet::One(realm) => ("IN", std::slice::from_ref(realm)),
            RealmSet::AllBut(realms) => ("NOT IN", realms),
        };
        let names: Vec<&str> = realms.iter().map(RealmId::as_str).collect();
        Self { within, names: json!(names).to_string() }
    }

    /// The condition, with the names as this parameter.
    pub(crate) fn sql(&self, parameter: &str) -> String {
        format!("realm {} (SELECT value FROM json_each({parameter}))", self.within)
    }

    /// The names, as that parameter.
    pub(crate) fn names(&self) -> &str {
        &self.names
    }
}

/// Old sessions after a row's number.
pub(crate) fn old_sessions(
    connection: &Connection,
    scope: &Scope,
    before: Millis,
    slice: Slice<u64>,
) -> Result<Vec<OldSession>> {
    let sql = format!(
        "SELECT pk, realm, space, key FROM sessions WHERE {OLD} AND pk > ?2 \
         AND {} ORDER BY pk LIMIT ?4",
        scope.sql("?3")
    );
    let params = params![before.0, integer(slice.after), scope.names, limit_of(slice.limit)];
    many(connection, &sql, params, |row| Ok(OldSession { number: row.get(0)?, key: key(row, 1)? }))
}

/// Removes those of them that are still old, with all that belongs to them, and hides the large
/// ones; how many rows. What a sink has not passed stays. What went from the feed is noted with it:
/// any other reader that is not past it has missed something.
pub(crate) fn remove_sessions(
    connection: &Connection,
    sessions: &[OldSession],
    before: Millis,
    now: Millis,
) -> Result<RemovedSessions> {
    let sql = format!("SELECT 1 FROM sessions WHERE {OLD} AND pk = ?2");
    let changes_before = connection.total_changes();
    let mut is_old = connection.prepare_cached(&sql)?;
    let mut keys = Vec::new();
    let mut hidden = Vec::new();
    let mut gone: BTreeMap<&RealmId, u64> = BTreeMap::new();
    let mut passed: BTreeMap<&RealmId, u64> = BTreeMap::new();
    // Rows that change and stay.
    let mut changed = 0;
    for OldSession { number, key } in sessions {
        if !is_old.exists(params![before.0, number])? {
            continue;
        }
        let newest = newest_row(connection, *number)?;
        let passed = match passed.entry(&key.realm) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => *unknown.insert(consumers::passed(connection, &key.realm)?),
        };
        if newest > passed {
            continue;
        }
        changed += refs::loosen(connection, *number, now)?;
        changed += closures::loosen(connection, &key.realm, *number, u32::MAX)?;
        if remove_or_hide(connection, *number)? == Fate::Hidden {
            changed += 1;
            hidden.push(*number);
        }
        keys.push(key.clone());
        let gone = gone.entry(&key.realm).or_default();
        *gone = newest.max(*gone);
    }
    // Every other table refers to the session's row: what goes with it is counted here only.
    let rows = connection.total_changes().saturating_sub(changes_before + changed);
    for (realm, cursor) in gone {
        consumers::advance(connection, realm, RETENTION, cursor)?;
        consumers::removed(connection, cursor)?;
    }
    Ok(RemovedSessions { keys, rows, hidden })
}

/// Removes one session, with all that belongs to it. Its number if it is hidden: then its rows are
/// still there.
pub(crate) fn remove_session(
    connection: &Connection,
    realm: &RealmId,
    session: i64,
    now: Millis,
) -> Result<Option<i64>> {
    consumers::removed(connection, newest_row(connection, session)?)?;
    refs::loosen(connection, session, now)?;
    closures::loosen(connection, realm, session, u32::MAX)?;
    let fate = remove_or_hide(connection, session)?;
    Ok((fate == Fate::Hidden).then_some(session))
}

#[derive(PartialEq, Eq)]
enum Fate {
    Removed,
    Hidden,
}

/// Removes a session's row, and with it the rows of all other tables that refer to it, unless that
/// is too much for one commit.
fn remove_or_hide(connection: &Connection, session: i64) -> Result<Fate> {
    if large_removal::is_large(connection, session)? {
        large_removal::hide(connection, session)?;
        return Ok(Fate::Hidden);
    }
    execute(connection, "DELETE FROM sessions WHERE pk = ?1", [session])?;
    Ok(Fate::Removed)
}

/// The last row that a session has in the feed; 0 if it has none.
pub(crate) fn newest_row(connection: &Connection, session: i64) -> Result<u64> {
    let sql = "SELECT row FROM journal WHERE session = ?1 ORDER BY seq DESC LIMIT 1";
    Ok(one(connection, sql, [session], |row| count(row, 0))?.unwrap_or(0))
}

/// Keys of requests that are old and whose runs are gone.
pub(crate) fn old_keys(
    connection: &Connection,
    scope: &Scope,
    before: Millis,
    limit: usize,
) -> Result<Vec<OldKey>> {
    let sql = format!(
        "SELECT realm, subject, route, key FROM idempotency AS k WHERE created_at < ?1 \
         AND {} AND NOT EXISTS (SELECT 1 FROM runs WHERE id = k.run) LIMIT ?3",
        scope.sql("?2")
    );
    many(connection, &sql, params![before.0, scope.names, limit_of(limit)], |row| {
        let realm = row.get(0)?;
        let subject = row.get(1)?;
        let route = row.get(2)?;
        Ok(OldKey { realm, subject, route, key: row.get(3)? })
    })
}

/// Removes these keys; how many there were.
pub(crate) fn remove_keys(connection: &Connection, keys: &[OldKey]) -> Result<u64> {
    let sql = "DELETE FROM idempotency WHERE realm = ?1 AND subject = ?2 AND route = ?3 \
         AND key = ?4";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = 0;
    for OldKey { realm, subject, route, key } in keys {
        rows += statement.execute(params![realm, subject, route, key])? as u64;
    }
    Ok(rows)
}
