//! Finds the row of a session, and the events in a journal row.

use super::error::{JobError, Result};
use crate::sqlite::tables::columns::{bits, count, one, text_of};
use kernel::contracts::StoreError;
use kernel::values::ids::{Fence, SessionId, SessionKey, SessionVersion};
use rusqlite::{Connection, params};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The number of a session in this database.
pub(crate) fn session_number(connection: &Connection, key: &SessionKey) -> Result<Option<i64>> {
    let sql = "SELECT pk FROM sessions WHERE realm = ?1 AND key = ?2 AND space = ?3";
    let params = params![key.realm.as_str(), text_of(key), key.space.as_str()];
    one(connection, sql, params, |row| Ok(row.get(0)?))
}

/// The number of a session, if it is there; a conflict if it is not the known one.
pub(crate) fn known_session(
    connection: &Connection,
    key: &SessionKey,
    known: SessionVersion,
) -> Result<Option<i64>> {
    let sql = "SELECT pk, id, fence FROM sessions WHERE realm = ?1 AND key = ?2 AND space = ?3";
    let params = params![key.realm.as_str(), text_of(key), key.space.as_str()];
    let found = one(connection, sql, params, |row| {
        let number: i64 = row.get(0)?;
        let found = SessionVersion { id: SessionId(bits(row, 1)?), fence: Fence(count(row, 2)?) };
        Ok((found == known).then_some(number))
    })?;
    match found {
        Some(None) => Err(JobError::Refused(StoreError::Conflict(key.to_string()))),
        found => Ok(found.flatten()),
    }
}

/// The events of one journal row, as texts: an event that this release cannot read is shown too.
pub(crate) fn split(row: &str) -> Result<Vec<(u64, String)>> {
    #[derive(Deserialize)]
    struct Numbered {
        seq: u64,
    }
    let unreadable = |error: serde_json::Error| {
        JobError::unreadable(format!("a journal row cannot be read: {error}"))
    };
    let texts: Vec<&RawValue> = serde_json::from_str(row).map_err(unreadable)?;
    let mut events = Vec::with_capacity(texts.len());
    for text in texts {
        let event: Numbered = serde_json::from_str(text.get()).map_err(unreadable)?;
        events.push((event.seq, text.get().to_owned()));
    }
    Ok(events)
}
