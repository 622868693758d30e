//! The `Journal` and `Ownership` contracts over SQLite.

use super::super::error::{JobError, Result};
use super::super::{append, read};
use crate::sqlite::SqliteStore;
use crate::sqlite::tables::columns::{bits, count, integer, key, limit_of, many, one, text_of};
use crate::sqlite::tables::history;
use kernel::contracts::{
    HistoryFilter, Journal, ListPage, LoadResult, Ownership, PageRequest, Read, StoreError,
    StoredSession, Ticket,
};
use kernel::journal::projection::{Append, HistoryItem, ParkedSession};
use kernel::values::ids::{
    ContentHash, Fence, Millis, RealmId, SessionId, SessionKey, SessionVersion,
};
use rusqlite::{Connection, params};
use serde_json::json;

/// Begins with the row that holds the event after `?2`; rows follow each other without a gap.
const TAIL: &str = "SELECT body FROM journal WHERE session = ?1 AND last_seq > ?2 AND seq >= \
     (SELECT coalesce(max(seq), 0) FROM journal WHERE session = ?1 AND seq <= ?2 + 1) \
     ORDER BY seq LIMIT ?3";

/// Those of dead processes first, then those of no one whose time has come, then those that this
/// process should have in hand already: they must not crowd out the others.
const DUE: &str = "SELECT realm, space, key FROM sessions WHERE wake_at <= ?1 \
     ORDER BY CASE node WHEN ?2 THEN 2 WHEN 0 THEN 1 ELSE 0 END, wake_at LIMIT ?3";

/// No limit, where SQL wants one.
const ALL: i64 = -1;

impl Journal for SqliteStore {
    fn load<'a>(
        &'a self,
        key: &'a SessionKey,
        known: Option<SessionVersion>,
    ) -> Read<'a, LoadResult> {
        Box::pin(async move {
            // Before the read: appends that are still queued must not get in after it.
            self.writes.shared().poison().loaded(key);
            if known.is_some_and(|known| self.fences.has(key, known)) {
                return Ok(LoadResult::Unchanged);
            }
            let key = key.clone();
            let realm = key.realm.clone();
            self.readers.read_of(realm, move |connection| load(connection, &key, known)).await
        })
    }

    fn append(&self, append: Append) -> Ticket {
        self.writes.append(append)
    }

    fn closure<'a>(
        &'a self,
        realm: &'a RealmId,
        hash: &'a ContentHash,
    ) -> Read<'a, Option<String>> {
        let realm = realm.clone();
        let hash = hash.clone();
        self.readers.read_of(realm.clone(), move |connection| {
            let sql = "SELECT body FROM closures WHERE realm = ?1 AND hash = ?2";
            one(connection, sql, params![realm.as_str(), hash.as_str()], |row| Ok(row.get(0)?))
        })
    }

    fn tool_specs<'a>(
        &'a self,
        realm: &'a RealmId,
        hashes: &'a [ContentHash],
    ) -> Read<'a, Vec<(ContentHash, String)>> {
        let realm = realm.clone();
        let hashes = json!(hashes).to_string();
        self.readers.read_of(realm.clone(), move |connection| {
            let sql = "SELECT hash, body FROM tool_specs \
                 WHERE realm = ?1 AND hash IN (SELECT value FROM json_each(?2))";
            many(connection, sql, params![realm.as_str(), hashes], |row| {
                Ok((ContentHash(row.get(0)?), row.get(1)?))
            })
        })
    }

    fn history<'a>(
        &'a self,
        key: &'a SessionKey,
        only: HistoryFilter,
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<HistoryItem>> {
        let key = key.clone();
        let page = page.clone();
        let realm = key.realm.clone();
        self.readers.read_of(realm, move |connection| {
            match read::session_number(connection, &key)? {
                Some(session) => history::history(connection, session, &only, &page),
                None => Ok(ListPage { items: Vec::new(), next_cursor: None }),
            }
        })
    }

    fn events<'a>(
        &'a self,
        key: &'a SessionKey,
        after: u64,
        limit: usize,
    ) -> Read<'a, Vec<(u64, String)>> {
        let key = key.clone();
        let realm = key.realm.clone();
        self.readers.read_of(realm, move |connection| {
            match read::session_number(connection, &key)? {
                Some(session) => events(connection, session, after, limit),
                None => Ok(Vec::new()),
            }
        })
    }

    fn events_of<'a>(
        &'a self,
        realm: &'a RealmId,
        session: SessionId,
        after: u64,
        limit: usize,
    ) -> Read<'a, Vec<(u64, String)>> {
        let realm = realm.clone();
        self.readers.read_of(realm.clone(), move |connection| {
            let sql = "SELECT pk FROM sessions WHERE id = ?1 AND realm = ?2";
            let params = params![session.0.to_be_bytes(), realm.as_str()];
            match one(connection, sql, params, |row| Ok(row.get(0)?))? {
                Some(session) => events(connection, session, after, limit),
                None => Ok(Vec::new()),
            }
        })
    }
}

impl Ownership for SqliteStore {
    fn claim(&self, now: Millis, limit: usize) -> Read<'_, Vec<SessionKey>> {
        Box::pin(async move {
            // Recovery comes by all the time, and a claim is worth what the lock is worth.
            self.check_lock()?;
            let node = self.node;
            let elapsed = self.clock.elapsed();
            self.databases.note_positions(elapsed).await;
            let positions = self.positions.clone();
            let is_due = positions.is_due(elapsed);
            let due = move |connection: &Connection| {
                if is_due {
                    positions.write(connection);
                }
                let params = params![now.0, integer(node), limit_of(limit)];
                many(connection, DUE, params, |row| key(row, 0))
            };
            self.readers.read(due).await
        })
    }

    fn park<'a>(&'a self, key: &'a SessionKey, parked: ParkedSession) -> Read<'a, ()> {
        let moved = self.moved(key);
        let key = key.clone();
        let park = move |connection: &Connection| append::park(connection, &key, &parked);
        self.writes.perform_then(park, move |()| moved())
    }

    fn postpone<'a>(&'a self, key: &'a SessionKey, fence: Fence, at: Millis) -> Read<'a, ()> {
        let key = key.clone();
        self.writes.perform(move |connection| append::postpone(connection, &key, fence, at))
    }

    fn next_wake(&self, after: Millis) -> Read<'_, Option<Millis>> {
        self.readers.read(move |connection| {
            let sql = "SELECT min(wake_at) FROM sessions WHERE wake_at > ?1";
            let nearest =
                one(connection, sql, params![after.0], |row| Ok(row.get::<_, Option<i64>>(0)?))?;
            Ok(nearest.flatten().map(Millis))
        })
    }
}

/// At most so many events of a session after a sequence.
pub(super) fn events(
    connection: &Connection,
    session: i64,
    after: u64,
    limit: usize,
) -> Result<Vec<(u64, String)>> {
    if after > 0 {
        let sql = "SELECT min(seq) FROM journal WHERE session = ?1";
        let oldest = one(connection, sql, params![session], |row| count(row, 0))?.unwrap_or(0);
        if after < oldest {
            return Err(JobError::Refused(StoreError::Gone(oldest)));
        }
    }
    let mut statement = connection.prepare_cached(TAIL)?;
    let params = params![session, integer(after), limit_of(limit)];
    let rows = statement.query_and_then(params, |row| -> Result<String> { Ok(row.get(0)?) })?;
    first_events(rows, after, limit)
}

/// The first events after a sequence. A row holds up to a hundred events, so no more rows are read
/// than these need: who reads a journal slice by slice would read all the rest of it each time.
fn first_events(
    rows: impl Iterator<Item = Result<String>>,
    after: u64,
    limit: usize,
) -> Result<Vec<(u64, String)>> {
    let mut events = Vec::new();
    for row in rows {
        events.extend(read::split(&row?)?.into_iter().filter(|(seq, _)| *seq > after));
        if events.len() >= limit {
            events.truncate(limit);
            break;
        }
    }
    Ok(events)
}

/// Snapshot and tail, unless the session is the known one.
fn load(
    connection: &Connection,
    key: &SessionKey,
    known: Option<SessionVersion>,
) -> Result<LoadResult> {
    let sql = "SELECT s.pk, s.id, s.fence, n.seq, n.body \
         FROM sessions AS s LEFT JOIN snapshots AS n ON n.session = s.pk \
         WHERE s.realm = ?1 AND s.key = ?2 AND s.space = ?3";
    let params = params![key.realm.as_str(), text_of(key), key.space.as_str()];
    let found = one(connection, sql, params, |row| {
        let id = SessionId(bits(row, 1)?);
        let fence = Fence(count(row, 2)?);
        if known == Some(SessionVersion { id, fence }) {
            return Ok(None);
        }
        let number: i64 = row.get(0)?;
        let after: Option<i64> = row.get(3)?;
        let snapshot: Option<String> = row.get(4)?;
        let snapshot_bytes = snapshot.as_ref().map_or(0, String::len);
        let stored = StoredSession { id, fence, snapshot, snapshot_bytes, tail: Vec::new() };
        Ok(Some((number, after.unwrap_or(0), stored)))
    })?;
    let (number, after, mut stored) = match found {
        None => return Ok(LoadResult::Missing),
        Some(None) => return Ok(LoadResult::Unchanged),
        Some(Some(found)) => found,
    };
    stored.tail = many(connection, TAIL, params![number, after, ALL], |row| Ok(row.get(0)?))?;
    Ok(LoadResult::Found(stored))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// How many events each row of the journal has.
    const EVENTS_PER_ROW: u64 = 128;

    fn row(number: u64) -> String {
        let first = number * EVENTS_PER_ROW + 1;
        let events = (first..first + EVENTS_PER_ROW).map(|seq| format!("{{\"seq\":{seq}}}"));
        format!("[{}]", events.collect::<Vec<_>>().join(","))
    }

    /// How many rows are read by one who reads a journal of so many from its beginning to its end.
    fn rows_read(rows: u64, limit: usize) -> u64 {
        let read = Cell::new(0);
        let mut after = 0;
        loop {
            // As `TAIL` has it: from the row that holds the next event on.
            let tail = (after / EVENTS_PER_ROW..rows).map(|number| {
                read.set(read.get() + 1);
                Ok(row(number))
            });
            let events = first_events(tail, after, limit).unwrap();
            let seqs: Vec<u64> = events.iter().map(|(seq, _)| *seq).collect();
            let until = (after + limit as u64).min(rows * EVENTS_PER_ROW);
            assert_eq!(seqs, (after + 1..=until).collect::<Vec<_>>());
            if after == until {
                return read.get();
            }
            after = until;
        }
    }

    #[test]
    fn a_journal_that_is_read_in_slices_is_read_once() {
        // A row that ends in the middle of a slice is read twice.
        for (rows, slices) in [(10, 3), (100, 26), (1_000, 256)] {
            let read = rows_read(rows, 500);
            assert!((rows..=rows + slices).contains(&read), "{read} of {rows} rows");
        }
        assert_eq!(rows_read(4, 1), 4 * EVENTS_PER_ROW, "one row for each event");
    }
}
