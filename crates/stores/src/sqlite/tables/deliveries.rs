//! The delivery log. It is written in the same commit as the position of its sink, so a delivery in
//! the log counts.

use super::columns::{
    bits, count, cursor_number, execute, integer, limit_of, many, one, paged, rows_max,
};
use super::consumers;
use crate::locks::held;
use crate::sqlite::SqliteStore;
use crate::sqlite::error::{JobError, Result};
use crate::sqlite::queue::Writes;
use kernel::contracts::sink::{Deliveries, DeliveryFilter, DeliveryRow, DeliveryStatus};
use kernel::contracts::{ListPage, PageRequest, Read, StoreError};
use kernel::values::ids::{Millis, RealmId, SessionId};
use rusqlite::{Connection, Row, params};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The columns that `delivery` reads.
const COLUMNS: &str = "sink, event, kind, session, seq, status, attempts, first_at, last_at, \
     next_at, code, error";
/// Where the columns after these begin.
const AFTER: usize = 12;

const KEEP: &str = "INSERT INTO deliveries (realm, sink, event, kind, session, seq, status, \
     attempts, first_at, last_at, next_at, code, error) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) \
     ON CONFLICT (realm, sink, event) DO UPDATE SET status = excluded.status, \
     attempts = excluded.attempts, first_at = min(first_at, excluded.first_at), \
     last_at = excluded.last_at, next_at = excluded.next_at, code = excluded.code, \
     error = excluded.error";

/// The oldest of a status.
const DROP: &str = "DELETE FROM deliveries WHERE pk IN (SELECT pk FROM deliveries \
     WHERE realm = ?1 AND sink = ?2 AND status = ?3 ORDER BY pk LIMIT ?4)";

/// Some of a sink's rows, whatever their status.
const FORGET: &str = "DELETE FROM deliveries WHERE pk IN (SELECT pk FROM deliveries \
     WHERE realm = ?1 AND sink = ?2 LIMIT ?3)";

/// How many rows of a log one commit removes: the writer serves others in between.
const FORGET_ROWS: u64 = 10_000;

/// The log of a sink is counted when it may have grown by this part of what is kept: counting all
/// of it for every few deliveries would cost more than they do.
const COUNTED_PART: usize = 64;

/// The log of one sink.
#[derive(Clone, Copy)]
struct Log<'a> {
    realm: &'a RealmId,
    sink: &'a str,
}

/// How many rows each sink may have got since its log was counted.
pub(crate) type Uncounted = Arc<Mutex<BTreeMap<(RealmId, String), usize>>>;

impl Deliveries for SqliteStore {
    fn keep_deliveries<'a>(
        &'a self,
        realm: &'a RealmId,
        rows: Vec<DeliveryRow>,
        place: Option<(&'a str, u64)>,
    ) -> Read<'a, ()> {
        let kept_max = self.deliveries_max;
        let uncounted = self.uncounted.clone();
        let realm = realm.clone();
        let removed = self.removed.clone();
        let place = place.map(|(consumer, cursor)| (consumer.to_owned(), cursor));
        self.writes.perform(move |connection: &Connection| {
            removed.check(&realm)?;
            for row in &rows {
                keep(connection, &realm, row)?;
            }
            let mut sinks: BTreeMap<&str, usize> = BTreeMap::new();
            rows.iter().for_each(|row| *sinks.entry(&row.sink).or_default() += 1);
            for (sink, grown) in sinks {
                let log = Log { realm: &realm, sink };
                if is_due(&uncounted, log, grown, kept_max) {
                    drop_oldest(connection, log, kept_max)?;
                }
            }
            if let Some((consumer, cursor)) = &place {
                consumers::advance(connection, &realm, consumer, *cursor)?;
            }
            Ok(())
        })
    }

    fn deliveries<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a DeliveryFilter,
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<DeliveryRow>> {
        let realm = realm.clone();
        let filter = filter.clone();
        let page = page.clone();
        self.readers.read(move |connection| {
            let sql = format!(
                "SELECT {COLUMNS}, pk FROM deliveries WHERE realm = ?1 AND pk < ?2 \
                 AND (?3 IS NULL OR sink = ?3) AND (?4 IS NULL OR status = ?4) \
                 ORDER BY pk DESC LIMIT ?5"
            );
            let params = params![
                realm.as_str(),
                cursor_number(&page, i64::MAX)?,
                filter.sink,
                filter.status.map(DeliveryStatus::name),
                rows_max(&page),
            ];
            let rows = many(connection, &sql, params, |row| {
                Ok((row.get::<_, i64>(AFTER)?, delivery(row)?))
            })?;
            Ok(paged(rows, &page, i64::to_string))
        })
    }

    fn delivery<'a>(
        &'a self,
        realm: &'a RealmId,
        sink: &'a str,
        event: &'a str,
    ) -> Read<'a, Option<DeliveryRow>> {
        let realm = realm.clone();
        let sink = sink.to_owned();
        let event = event.to_owned();
        self.readers.read(move |connection| {
            let sql = format!(
                "SELECT {COLUMNS} FROM deliveries WHERE realm = ?1 AND sink = ?2 AND event = ?3"
            );
            one(connection, &sql, params![realm.as_str(), sink, event], delivery)
        })
    }
}

/// Removes the whole log of a sink, slice by slice.
pub(crate) async fn forget(writes: &Writes, realm: &RealmId, sink: &str) -> Result<(), StoreError> {
    loop {
        let realm = realm.clone();
        let sink = sink.to_owned();
        let removed = writes.perform(move |connection: &Connection| {
            execute(connection, FORGET, params![realm.as_str(), sink, integer(FORGET_ROWS)])
        });
        if removed.await? < FORGET_ROWS {
            return Ok(());
        }
    }
}

fn keep(connection: &Connection, realm: &RealmId, row: &DeliveryRow) -> Result<()> {
    connection.prepare_cached(KEEP)?.execute(params![
        realm.as_str(),
        row.sink,
        row.event,
        row.kind,
        row.session.0.to_be_bytes(),
        integer(row.seq),
        row.status.name(),
        row.attempts,
        row.first_at.0,
        row.last_at.0,
        row.next_at.map(|at| at.0),
        row.code,
        row.error,
    ])?;
    Ok(())
}

/// Whether a log that may have grown by so much is counted now. The first time it is: no one knows
/// what is there.
fn is_due(
    uncounted: &Uncounted,
    Log { realm, sink }: Log<'_>,
    grown: usize,
    kept_max: usize,
) -> bool {
    let slack = kept_max / COUNTED_PART;
    let mut uncounted = held(uncounted);
    let count = uncounted.entry((realm.clone(), sink.to_owned())).or_insert(slack);
    *count += grown;
    let is_due = *count > slack;
    if is_due {
        *count = 0;
    }
    is_due
}

/// Lets go of what is too much: what is over there first, what failed last.
fn drop_oldest(
    connection: &Connection,
    Log { realm, sink }: Log<'_>,
    kept_max: usize,
) -> Result<()> {
    let sql = "SELECT count(*) FROM deliveries WHERE realm = ?1 AND sink = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let kept: i64 = statement.query_row(params![realm.as_str(), sink], |row| row.get(0))?;
    let mut too_many = kept.saturating_sub(limit_of(kept_max));
    let mut statement = connection.prepare_cached(DROP)?;
    for status in DeliveryStatus::ALL {
        if too_many <= 0 {
            break;
        }
        let gone = statement.execute(params![realm.as_str(), sink, status.name(), too_many])?;
        too_many -= limit_of(gone);
    }
    Ok(())
}

fn delivery(row: &Row<'_>) -> Result<DeliveryRow> {
    let status: String = row.get(5)?;
    let status = DeliveryStatus::from_name(&status).ok_or_else(|| {
        JobError::unreadable(format!("this release knows no delivery status `{status}`"))
    })?;
    Ok(DeliveryRow {
        sink: row.get(0)?,
        event: row.get(1)?,
        kind: row.get(2)?,
        session: SessionId(bits(row, 3)?),
        seq: count(row, 4)?,
        status,
        attempts: row.get(6)?,
        first_at: Millis(row.get(7)?),
        last_at: Millis(row.get(8)?),
        next_at: row.get::<_, Option<i64>>(9)?.map(Millis),
        code: row.get(10)?,
        error: row.get(11)?,
    })
}
