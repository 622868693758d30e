//! Removes a large session without blocking others: one commit hides it from all reads and writes,
//! and small ones remove its rows, with other commits in between. A hidden session has the empty
//! realm, which no realm can be, so leftovers of a crash are found and shown nowhere.

use super::error::Result;
use crate::sqlite::tables::columns::{count, execute, many, one};
use rusqlite::{Connection, params};

/// A session with more than this, of any kind, is large.
const HISTORY_ROWS_MAX: i64 = 2_000;
const JOURNAL_ROWS_MAX: i64 = 500;
const JOURNAL_BYTES_MAX: i64 = 4 * 1024 * 1024;
const SNAPSHOT_BYTES_MAX: i64 = 1024 * 1024;

/// How many rows of each kind go in one commit.
const SLICE_ROWS: i64 = 500;
/// Rows of the journal may be large: a commit ends with the one that reaches this.
const SLICE_BYTES: u64 = 1024 * 1024;

const HISTORY_BEYOND: &str = "SELECT 1 FROM history WHERE session = ?1 LIMIT 1 OFFSET ?2";

const JOURNAL_BEYOND: &str = "SELECT 1 FROM journal WHERE session = ?1 LIMIT 1 OFFSET ?2";

/// By octets: SQLite has them without reading the text.
const JOURNAL_BYTES_BEYOND: &str = "SELECT 1 WHERE \
     (SELECT sum(octet_length(body)) FROM journal WHERE session = ?1) > ?2";

const SNAPSHOT_BEYOND: &str =
    "SELECT 1 FROM snapshots WHERE session = ?1 AND octet_length(body) > ?2";

/// Its key and its id are free for another session at once: ids are blobs, and this one is none.
/// No index by which work is found has it any more.
const HIDE: &str = "UPDATE sessions SET realm = '', space = '', key = CAST(pk AS TEXT), id = pk, \
     status = 'completed', run = NULL, plan = NULL, step = NULL, last_error = NULL, \
     wake_at = NULL, node = 0, trim_at = NULL, parked = NULL, owner = NULL, fence = fence + 1 \
     WHERE pk = ?1";

/// Tables whose rows are found without the session's row.
const FOUND_ALONE: [&str; 3] = [
    "DELETE FROM runs WHERE session = ?1",
    "DELETE FROM asks WHERE session = ?1",
    "DELETE FROM blob_holds WHERE kind = 'session' AND holder = ?1",
];

const IS_HIDDEN: &str = "SELECT 1 FROM sessions WHERE pk = ?1 AND realm = ''";

/// The last row of a slice; none where fewer are left.
const HISTORY_END: &str = "SELECT position, finished_seq FROM history WHERE session = ?1 \
     ORDER BY position, finished_seq LIMIT 1 OFFSET ?2";

const HISTORY_UNTIL: &str =
    "DELETE FROM history WHERE session = ?1 AND (position, finished_seq) <= (?2, ?3)";

const JOURNAL_SLICE: &str =
    "SELECT row, octet_length(body) FROM journal WHERE session = ?1 ORDER BY seq LIMIT ?2";

#[derive(Debug)]
pub(crate) struct RemovedSlice {
    /// How many rows.
    pub(crate) rows: u64,
    /// The session is removed completely.
    pub(crate) is_last: bool,
}

/// Whether removing a session at once would hold up others.
pub(crate) fn is_large(connection: &Connection, session: i64) -> Result<bool> {
    let exceeds = |sql: &str, max: i64| -> Result<bool> {
        Ok(connection.prepare_cached(sql)?.exists(params![session, max])?)
    };
    Ok(exceeds(HISTORY_BEYOND, HISTORY_ROWS_MAX)?
        || exceeds(JOURNAL_BEYOND, JOURNAL_ROWS_MAX)?
        || exceeds(JOURNAL_BYTES_BEYOND, JOURNAL_BYTES_MAX)?
        || exceeds(SNAPSHOT_BEYOND, SNAPSHOT_BYTES_MAX)?)
}

/// Hides a session from everything but `left` and `remove_slice`. What it held must be on the lists
/// of what is loose by then.
pub(crate) fn hide(connection: &Connection, session: i64) -> Result<()> {
    execute(connection, HIDE, [session])?;
    for sql in FOUND_ALONE {
        execute(connection, sql, [session])?;
    }
    Ok(())
}

/// The hidden sessions, by their numbers.
pub(crate) fn left(connection: &Connection) -> Result<Vec<i64>> {
    let sql = "SELECT pk FROM sessions WHERE realm = ''";
    many(connection, sql, (), |row| Ok(row.get(0)?))
}

/// Removes as much of a hidden session as fits one commit, its own row last.
pub(crate) fn remove_slice(connection: &Connection, session: i64) -> Result<RemovedSlice> {
    // Another caller may have removed the rest, and another session may have its number since.
    if !connection.prepare_cached(IS_HIDDEN)?.exists([session])? {
        return Ok(RemovedSlice { rows: 0, is_last: true });
    }
    let rows = remove_history(connection, session)? + remove_journal(connection, session)?;
    if rows > 0 {
        return Ok(RemovedSlice { rows, is_last: false });
    }
    let snapshots = execute(connection, "DELETE FROM snapshots WHERE session = ?1", [session])?;
    let sessions = execute(connection, "DELETE FROM sessions WHERE pk = ?1", [session])?;
    Ok(RemovedSlice { rows: snapshots + sessions, is_last: true })
}

fn remove_history(connection: &Connection, session: i64) -> Result<u64> {
    let end = one(connection, HISTORY_END, params![session, SLICE_ROWS - 1], |row| {
        Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, i64>(1)?))
    })?;
    match end {
        Some((position, seq)) => {
            execute(connection, HISTORY_UNTIL, params![session, position, seq])
        }
        None => execute(connection, "DELETE FROM history WHERE session = ?1", [session]),
    }
}

fn remove_journal(connection: &Connection, session: i64) -> Result<u64> {
    let found = many(connection, JOURNAL_SLICE, params![session, SLICE_ROWS], |row| {
        Ok((row.get::<_, i64>(0)?, count(row, 1)?))
    })?;
    let mut rows = 0;
    let mut bytes = 0;
    for (number, size) in found {
        rows += execute(connection, "DELETE FROM journal WHERE row = ?1", [number])?;
        bytes += size;
        if bytes >= SLICE_BYTES {
            break;
        }
    }
    Ok(rows)
}
