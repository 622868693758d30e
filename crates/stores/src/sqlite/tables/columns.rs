//! Encoding of kernel values in columns: ids as 16 bytes, moments as milliseconds, the rest as text
//! or JSON.

use crate::sqlite::error::{JobError, Result};
use kernel::ask::{Ask, AskStatus};
use kernel::contracts::{ListPage, PageRequest, SessionAsk, SessionRun, StoreError};
use kernel::journal::projection::{AskRow, RunRow, SessionRow};
use kernel::session::RunStatus;
use kernel::values::ids::{
    Fence, Millis, PlanId, RealmId, RunId, SessionId, SessionKey, Space, StepId,
};
use rusqlite::{Connection, Params, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::sync::Arc;

/// The columns that `session` reads, from the table `s`.
pub(crate) const SESSION: &str = "s.id, s.realm, s.space, s.key, s.status, s.run, s.plan, s.step, \
     s.last_error, s.seq, s.wake_at, s.created_at, s.updated_at, s.parked, s.owner, \
     s.fence";
/// Where the columns after `SESSION` begin.
pub(crate) const AFTER_SESSION: usize = 16;
/// The columns that `run` reads, from the tables `s` and `r`.
pub(crate) const RUN: &str = "s.id, s.realm, s.space, s.key, r.id, r.no, r.plan, r.status, \
     r.step, r.answer, r.last_error, r.started_at, r.ended_at, r.spent, r.stopped, r.owner, \
     r.changed_at, r.bytes";
/// Where the columns after `RUN` begin.
pub(crate) const AFTER_RUN: usize = 18;
/// The columns that `ask` reads, from the tables `s` and `a`.
pub(crate) const ASK: &str = "s.id, s.realm, s.space, s.key, a.body, a.status, a.decision";
/// Where the columns after `ASK` begin.
pub(crate) const AFTER_ASK: usize = 7;

/// A session's id and key, which begin every row.
fn head(row: &Row<'_>) -> Result<(SessionId, SessionKey)> {
    Ok((SessionId(bits(row, 0)?), key(row, 1)?))
}

/// Between a client's key and its owner, in the column `key`. No stored key has a control
/// character, so what stands before the first one is the key, whatever the owner looks like.
const OWNER: char = '\u{1f}';

/// A session's key out of the columns `realm`, `space` and `key`, from this one on.
pub(crate) fn key(row: &Row<'_>, first: usize) -> Result<SessionKey> {
    let realm = RealmId(row.get(first)?);
    let space = Space(row.get(first + 1)?);
    let text: Arc<str> = row.get(first + 2)?;
    let (id, owner) = match text.split_once(OWNER) {
        None => (text, None),
        Some((id, owner)) => (id.into(), Some(owner.into())),
    };
    Ok(SessionKey { realm, space, id, owner })
}

/// What stands for a key in the column `key`: the client's, with its owner if it has one.
pub(crate) fn key_text<'k>(id: &'k str, owner: Option<&str>) -> Cow<'k, str> {
    match owner {
        // No one can have stored it: it must not read as someone's.
        _ if id.contains(OWNER) => Cow::Owned(format!("{OWNER}{id}")),
        None => Cow::Borrowed(id),
        Some(owner) => Cow::Owned(format!("{id}{OWNER}{owner}")),
    }
}

/// The same of a whole key.
pub(crate) fn text_of(key: &SessionKey) -> Cow<'_, str> {
    key_text(&key.id, key.owner.as_deref())
}

/// A session out of the columns `SESSION`.
pub(crate) fn session(row: &Row<'_>) -> Result<SessionRow> {
    let (id, key) = head(row)?;
    Ok(SessionRow {
        id,
        key,
        status: run_status(row, 4)?,
        run: row.get::<_, Option<[u8; 16]>>(5)?.map(u128::from_be_bytes).map(RunId),
        plan: row.get::<_, Option<Arc<str>>>(6)?.map(PlanId),
        step: row.get::<_, Option<Arc<str>>>(7)?.map(StepId),
        last_error: from_json(row, 8)?,
        seq: count(row, 9)?,
        wake_at: row.get::<_, Option<i64>>(10)?.map(Millis),
        created_at: Millis(row.get(11)?),
        updated_at: Millis(row.get(12)?),
        parked: from_json(row, 13)?,
        owner: row.get(14)?,
        fence: Fence(count(row, 15)?),
    })
}

/// A run out of the columns `RUN`.
pub(crate) fn run(row: &Row<'_>) -> Result<SessionRun> {
    let (session, key) = head(row)?;
    let run = RunRow {
        id: RunId(bits(row, 4)?),
        no: row.get(5)?,
        plan: PlanId(row.get(6)?),
        status: run_status(row, 7)?,
        step: row.get::<_, Option<Arc<str>>>(8)?.map(StepId),
        answer: from_json(row, 9)?,
        last_error: from_json(row, 10)?,
        started_at: Millis(row.get(11)?),
        ended_at: row.get::<_, Option<i64>>(12)?.map(Millis),
        spent: from_json(row, 13)?.unwrap_or_default(),
        stopped: row.get(14)?,
        owner: row.get(15)?,
        changed_at: Millis(row.get(16)?),
        bytes: count(row, 17)?,
    };
    Ok(SessionRun { session, key, row: run })
}

/// An ask out of the columns `ASK`.
pub(crate) fn ask(row: &Row<'_>) -> Result<SessionAsk> {
    let (session, key) = head(row)?;
    let ask: Option<Ask> = from_json(row, 4)?;
    let ask = ask.ok_or_else(|| JobError::unreadable("an ask without a body"))?;
    let row = AskRow { ask, status: ask_status(row, 5)?, decision: from_json(row, 6)? };
    Ok(SessionAsk { session, key, row })
}

/// The bits of an id.
pub(crate) fn bits(row: &Row<'_>, column: usize) -> Result<u128> {
    Ok(u128::from_be_bytes(row.get::<_, [u8; 16]>(column)?))
}

/// A sequence, cursor, fence or node. SQLite's integers are signed; ours never reach the sign.
pub(crate) fn count(row: &Row<'_>, column: usize) -> Result<u64> {
    Ok(row.get::<_, i64>(column)? as u64)
}

/// A sequence, cursor, fence or node as a column takes it.
pub(crate) fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A limit as SQL takes it.
pub(crate) fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// How many rows a query for a page asks for: one more than the page, to know whether more follow.
pub(crate) fn rows_max(page: &PageRequest) -> i64 {
    i64::try_from(page.limit.max(1)).map_or(i64::MAX, |limit| limit.saturating_add(1))
}

/// The page out of what the query gave; each item with its place in the list.
pub(crate) fn paged<P, T>(
    mut rows: Vec<(P, T)>,
    page: &PageRequest,
    cursor: impl Fn(&P) -> String,
) -> ListPage<T> {
    let limit = page.limit.max(1);
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next_cursor = rows.last().filter(|_| more).map(|(place, _)| cursor(place));
    ListPage { items: rows.into_iter().map(|(_, item)| item).collect(), next_cursor }
}

/// A cursor that is a row's number; `first` where the page is the first.
pub(crate) fn cursor_number(page: &PageRequest, first: i64) -> Result<i64> {
    match &page.cursor {
        None => Ok(first),
        Some(cursor) => cursor.parse().map_err(|_| bad_cursor(cursor)),
    }
}

/// A cursor that this list never gave.
pub(crate) fn bad_cursor(cursor: &str) -> JobError {
    let shown: String = cursor.chars().take(80).collect();
    JobError::Refused(StoreError::BadCursor(format!(
        "cursor `{shown}` is not of this list; begin without one"
    )))
}

/// A value as JSON text.
pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| JobError::Midway(StoreError::Failed(error.to_string())))
}

fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<Option<T>> {
    let Some(text) = row.get::<_, Option<String>>(column)? else { return Ok(None) };
    match serde_json::from_str(&text) {
        Ok(value) => Ok(Some(value)),
        Err(error) => Err(JobError::unreadable(format!(
            "a stored row cannot be read: {error}; a newer release may have written it"
        ))),
    }
}

fn run_status(row: &Row<'_>, column: usize) -> Result<RunStatus> {
    let name: String = row.get(column)?;
    RunStatus::from_name(&name)
        .ok_or_else(|| JobError::unreadable(format!("this release knows no run status `{name}`")))
}

fn ask_status(row: &Row<'_>, column: usize) -> Result<AskStatus> {
    let name: String = row.get(column)?;
    AskStatus::from_name(&name)
        .ok_or_else(|| JobError::unreadable(format!("this release knows no ask status `{name}`")))
}

/// Runs a statement that writes; how many rows it changed.
pub(crate) fn execute(connection: &Connection, sql: &str, params: impl Params) -> Result<u64> {
    Ok(connection.prepare_cached(sql)?.execute(params)? as u64)
}

/// The first row of a query, if it has one.
pub(crate) fn one<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    match rows.next()? {
        Some(row) => read(row).map(Some),
        None => Ok(None),
    }
}

/// All rows of a query.
pub(crate) fn many<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_and_then(params, read)?;
    rows.collect()
}
