//! Trimming the old runs of an active session: a reader finds the session, the engine computes the
//! base that replaces the runs, and the writer checks again before it swaps them.

use super::error::Result;
use super::prune::Scope;
use super::read::split;
use crate::sqlite::tables::closures;
use crate::sqlite::tables::columns::{bits, count, execute, integer, key, limit_of, many, one};
use crate::sqlite::tables::consumers;
use crate::sqlite::tables::refs;
use kernel::contracts::{RETENTION, Slice, Trimmable};
use kernel::event::{self, Event};
use kernel::journal::trim::Trim;
use kernel::values::datum::blobs_named;
use kernel::values::ids::{Fence, Millis, SessionId};
use rusqlite::{Connection, params};

/// The session, if what the request says of it still holds: runs that go are there and ended before
/// ?4, one that stays is there too, and the journal still has what is to go.
const STANDS: &str = "SELECT s.pk FROM sessions AS s WHERE s.id = ?1 AND s.realm = ?2 \
     AND EXISTS (SELECT 1 FROM runs WHERE session = s.pk AND no <= ?3) \
     AND EXISTS (SELECT 1 FROM runs WHERE session = s.pk AND no > ?3) \
     AND NOT EXISTS (SELECT 1 FROM runs WHERE session = s.pk AND no <= ?3 \
         AND (ended_at IS NULL OR ended_at >= ?4)) \
     AND (SELECT min(seq) FROM journal WHERE session = s.pk) < ?5 AND s.fence = ?6";

/// The journal row that holds an event.
const ROW: &str = "SELECT row, seq, last_seq, body FROM journal WHERE session = ?1 AND seq <= ?2 \
     ORDER BY seq DESC LIMIT 1";

const ASKS: &str = "DELETE FROM asks WHERE session = ?1 \
     AND run IN (SELECT id FROM runs WHERE session = ?1 AND no <= ?2)";

/// Positions begin with the run's number.
const HISTORY: &str = "DELETE FROM history WHERE session = ?1 AND position < ?2";

const TRIMMED: &str = "UPDATE sessions SET fence = fence + 1, \
     trim_at = (SELECT min(ended_at) FROM runs \
         WHERE session = ?1 AND no < (SELECT max(no) FROM runs WHERE session = ?1)) \
     WHERE pk = ?1";

/// Sessions that have old runs behind a newer one, after a place in their list.
pub(crate) fn trimmable(
    connection: &Connection,
    scope: &Scope,
    before: Millis,
    slice: Slice<Option<(Millis, u64)>>,
) -> Result<Vec<Trimmable>> {
    let (end, number) = slice.after.unwrap_or((Millis(i64::MIN), 0));
    let sql = format!(
        "SELECT s.trim_at, s.pk, s.id, s.realm, s.space, s.key, ( \
             SELECT no FROM runs WHERE session = s.pk AND (ended_at IS NULL OR ended_at >= ?1 \
                 OR no = (SELECT max(no) FROM runs WHERE session = s.pk)) ORDER BY no LIMIT 1), \
             s.fence \
         FROM sessions AS s WHERE s.trim_at < ?1 AND (s.trim_at, s.pk) > (?2, ?3) \
         AND {} ORDER BY s.trim_at, s.pk LIMIT ?5",
        scope.sql("?4")
    );
    let params = params![before.0, end.0, integer(number), scope.names(), limit_of(slice.limit)];
    many(connection, &sql, params, |row| {
        Ok(Trimmable {
            cursor: (Millis(row.get(0)?), count(row, 1)?),
            key: key(row, 3)?,
            id: SessionId(bits(row, 2)?),
            fence: Fence(count(row, 7)?),
            keeps: row.get(6)?,
        })
    })
}

/// Does it, if the session is as the request says; how many rows went.
pub(crate) fn trim(connection: &Connection, trim: &Trim, now: Millis) -> Result<Option<u64>> {
    let realm = &trim.key.realm;
    let stands = params![
        trim.id.0.to_be_bytes(),
        realm.as_str(),
        trim.last_run,
        trim.before.0,
        integer(trim.seq),
        integer(trim.fence.0),
    ];
    let session: Option<i64> = one(connection, STANDS, stands, |row| Ok(row.get(0)?))?;
    let Some(session) = session else { return Ok(None) };
    let Some(row) = row_of(connection, session, trim.seq)? else { return Ok(None) };
    if row.number as u64 > consumers::passed(connection, realm)? {
        return Ok(None);
    }
    let body = with_base(&row.body, trim)?;
    closures::loosen(connection, realm, session, trim.last_run)?;
    let mut rows = refs::loosen_until(connection, session, row.last_seq, now)?;
    // What this release cannot read gives nobody a right.
    let held = event::read(&body).map(|events| Event::held_blobs(&events)).unwrap_or_default();
    refs::name(connection, session, &blobs_named(&body), &held, row.last_seq as u64)?;
    let mut remove = |sql: &str, params: &[&dyn rusqlite::ToSql]| -> Result<()> {
        rows += execute(connection, sql, params)?;
        Ok(())
    };
    let first_kept = trim.last_run.saturating_add(1).to_be_bytes();
    remove("DELETE FROM journal WHERE session = ?1 AND seq < ?2", params![session, row.seq])?;
    remove(ASKS, params![session, trim.last_run])?;
    remove(HISTORY, params![session, first_kept])?;
    remove("DELETE FROM runs WHERE session = ?1 AND no <= ?2", params![session, trim.last_run])?;
    let seq = integer(trim.seq);
    remove("DELETE FROM snapshots WHERE session = ?1 AND seq < ?2", params![session, seq])?;
    // The same place in the feed: what stands behind the base in this row has not moved.
    let sql = "UPDATE journal SET seq = ?2, body = ?3 WHERE row = ?1";
    execute(connection, sql, params![row.number, seq, body])?;
    execute(connection, TRIMMED, [session])?;
    consumers::advance(connection, realm, RETENTION, row.number as u64)?;
    Ok(Some(rows))
}

struct JournalRow {
    number: i64,
    seq: i64,
    last_seq: i64,
    body: String,
}

fn row_of(connection: &Connection, session: i64, seq: u64) -> Result<Option<JournalRow>> {
    let row = one(connection, ROW, params![session, integer(seq)], |row| {
        Ok(JournalRow {
            number: row.get(0)?,
            seq: row.get(1)?,
            last_seq: row.get(2)?,
            body: row.get(3)?,
        })
    })?;
    Ok(row.filter(|row| row.last_seq >= integer(seq)))
}

/// The row with the base in the place of all up to its sequence.
fn with_base(body: &str, trim: &Trim) -> Result<String> {
    let mut events = vec![trim.base.clone()];
    let rest = split(body)?.into_iter().filter(|(seq, _)| *seq > trim.seq);
    events.extend(rest.map(|(_, text)| text));
    Ok(format!("[{}]", events.join(",")))
}
