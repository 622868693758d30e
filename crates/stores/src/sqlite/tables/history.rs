//! A session's history, newest first. A history row only says in which events its values are; they
//! are read out of the journal, so that a value is stored once.

use super::columns::{bad_cursor, bits, count, integer, many, one, paged, rows_max};
use crate::sqlite::error::{JobError, Result};
use kernel::contracts::{HistoryFilter, ListPage, PageRequest};
use kernel::event::{self, Event};
use kernel::journal::projection::{HistoryItem, HistoryRow};
use kernel::values::ids::{RunId, StepId, ToolName};
use rusqlite::{Connection, Row, params};
use std::collections::BTreeMap;

/// Larger than any position: they begin with the run's number.
const ABOVE_ALL: [u8; 8] = [0xff; 8];

const ROWS: &str = "SELECT position, finished_seq, requested_seq, run, step, tool, success \
     FROM history WHERE session = ?1 AND (position, finished_seq) < (?2, ?3) \
     AND (?4 IS NULL OR run = ?4) AND (?5 IS NULL OR step = ?5) \
     ORDER BY position DESC, finished_seq DESC LIMIT ?6";

const JOURNAL_ROW: &str = "SELECT seq, body FROM journal WHERE session = ?1 AND seq <= ?2 \
     ORDER BY seq DESC LIMIT 1";

/// A page of the history of the session with this number.
pub(crate) fn history(
    connection: &Connection,
    session: i64,
    only: &HistoryFilter,
    page: &PageRequest,
) -> Result<ListPage<HistoryItem>> {
    let (position, seq) = match &page.cursor {
        None => (ABOVE_ALL.to_vec(), i64::MAX),
        Some(cursor) => read_cursor(cursor).ok_or_else(|| bad_cursor(cursor))?,
    };
    let params = params![
        session,
        position,
        seq,
        only.run.map(|run| run.0.to_be_bytes()),
        only.step.as_ref().map(|step| step.as_str()),
        rows_max(page),
    ];
    let mut journal = Journal { connection, session, rows: BTreeMap::new() };
    let mut items = Vec::new();
    for row in many(connection, ROWS, params, history_row)? {
        let item = journal.item(&row)?;
        items.push((row, item));
    }
    Ok(paged(items, page, write_cursor))
}

fn history_row(row: &Row<'_>) -> Result<HistoryRow> {
    Ok(HistoryRow {
        position: row.get(0)?,
        finished_seq: count(row, 1)?,
        requested_seq: count(row, 2)?,
        run: RunId(bits(row, 3)?),
        step: StepId(row.get(4)?),
        tool: ToolName(row.get(5)?),
        success: row.get(6)?,
    })
}

/// The session's journal rows that this page needs, each read once, by their first sequence.
struct Journal<'a> {
    connection: &'a Connection,
    session: i64,
    rows: BTreeMap<u64, Vec<Event>>,
}

impl Journal<'_> {
    fn item(&mut self, row: &HistoryRow) -> Result<HistoryItem> {
        self.fetch(row.requested_seq)?;
        self.fetch(row.finished_seq)?;
        let events = self.event(row.requested_seq).zip(self.event(row.finished_seq));
        events
            .and_then(|(requested, finished)| HistoryItem::assemble(row, requested, finished))
            .ok_or_else(|| {
                JobError::unreadable(format!(
                    "events {} and {} of a session do not make the history entry they should",
                    row.requested_seq, row.finished_seq
                ))
            })
    }

    fn fetch(&mut self, seq: u64) -> Result<()> {
        if self.event(seq).is_some() {
            return Ok(());
        }
        let params = params![self.session, integer(seq)];
        let row = one(self.connection, JOURNAL_ROW, params, |row| {
            Ok((count(row, 0)?, row.get::<_, String>(1)?))
        })?;
        if let Some((first, body)) = row {
            let events =
                event::read(&body).map_err(|error| JobError::unreadable(error.to_string()))?;
            self.rows.insert(first, events);
        }
        Ok(())
    }

    fn event(&self, seq: u64) -> Option<&Event> {
        let (_, events) = self.rows.range(..=seq).next_back()?;
        events.iter().find(|event| event.seq == seq)
    }
}

/// A row's place in the list: its position and, since that may be shared, its sequence.
fn write_cursor(row: &HistoryRow) -> String {
    let bytes = row.position.iter().copied().chain(row.finished_seq.to_be_bytes());
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

fn read_cursor(cursor: &str) -> Option<(Vec<u8>, i64)> {
    let digits = cursor.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let mut position: Vec<u8> = digits.map(byte).collect::<Option<_>>()?;
    let seq = position.split_off(position.len().checked_sub(8)?);
    let seq = u64::from_be_bytes(seq.try_into().ok()?);
    Some((position, integer(seq)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_round_trip_and_others_are_refused() {
        let row = HistoryRow {
            position: vec![0, 0, 0, 1, 0xab],
            run: RunId(1),
            step: StepId::from("a"),
            tool: ToolName::from("math::add"),
            success: true,
            requested_seq: 2,
            finished_seq: 77,
        };
        assert_eq!(read_cursor(&write_cursor(&row)), Some((row.position, 77)));
        assert_eq!(read_cursor("zz"), None);
        assert_eq!(read_cursor("00ff"), None);
    }
}
