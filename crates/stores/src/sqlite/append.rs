//! The SQL of one append. What can be refused is checked before the first write, so that a refused
//! append leaves nothing behind in the transaction that it shares with others. Only a key is taken
//! before: an append that is refused after that was refused midway.

use super::error::{JobError, Result};
use crate::opening::FatalHandler;
use crate::sqlite::tables::audit::{AuditKeys, SharedRows};
use crate::sqlite::tables::closures;
use crate::sqlite::tables::columns::{execute, integer, text_of, to_json};
use crate::sqlite::tables::fences::Fences;
use crate::sqlite::tables::keys;
use crate::sqlite::tables::pin_cache::KnownPins;
use crate::sqlite::tables::refs;
use crate::sqlite::tables::removed_realms::RemovedRealms;
use crate::sqlite::tables::specs;
use crate::sqlite::tables::tallies;
use kernel::ask::{Ask, AskStatus, Decision};
use kernel::contracts::StoreError;
use kernel::identity::audit::ChainName;
use kernel::journal::projection::{Append, AskChange, HistoryRow, ParkedSession, RunRow};
use kernel::values::ids::{AskId, Fence, Millis, SessionKey};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use std::sync::Arc;

const CREATE: &str = "INSERT INTO sessions (realm, space, key, id, status, run, plan, step, \
     last_error, seq, wake_at, node, created_at, updated_at, owner, fence) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 1) \
     ON CONFLICT DO NOTHING";

const ADVANCE: &str = "UPDATE sessions SET status = ?4, run = ?5, plan = ?6, step = ?7, \
     last_error = ?8, seq = ?9, wake_at = ?10, node = ?11, updated_at = ?12, owner = ?13, \
     parked = NULL, fence = fence + 1 WHERE id = ?1 AND realm = ?2 AND fence = ?3 RETURNING pk";

const JOURNAL: &str = "INSERT INTO journal (session, seq, last_seq, body) VALUES (?1, ?2, ?3, ?4)";

const RUN: &str = "INSERT INTO runs (id, session, no, plan, status, step, answer, last_error, \
     started_at, ended_at, spent, stopped, closure, owner, changed_at, listed, bytes) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17) \
     ON CONFLICT (id) DO UPDATE SET status = excluded.status, step = excluded.step, \
     answer = excluded.answer, last_error = excluded.last_error, ended_at = excluded.ended_at, \
     spent = excluded.spent, stopped = excluded.stopped, changed_at = excluded.changed_at, \
     bytes = excluded.bytes \
     WHERE runs.session = excluded.session";

const OPEN_ASK: &str = "INSERT INTO asks (id, session, realm, run, step, kind, status, body, \
     created_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";

const CLOSE_ASK: &str =
    "UPDATE asks SET status = ?2, decision = ?3 WHERE id = ?1 AND status = 'open'";

const HISTORY: &str = "INSERT INTO history (session, position, finished_seq, requested_seq, run, \
     step, tool, success) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

const SNAPSHOT: &str = "INSERT INTO snapshots (session, seq, body) VALUES (?1, ?2, ?3) \
     ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, body = excluded.body";

/// The node of a session that no one drives.
const NOBODY: u64 = 0;

/// A session that had no run behind a newer one has one now.
const FOLLOWED: &str = "UPDATE sessions SET trim_at = (SELECT min(ended_at) FROM runs \
     WHERE session = ?1 AND no < (SELECT max(no) FROM runs WHERE session = ?1)) \
     WHERE pk = ?1 AND trim_at IS NULL";

/// One opening of a database: what writes know of the process that opened it.
pub(crate) struct Opening {
    /// This opening's number.
    pub(crate) node: u64,
    /// How many unknown reasons of one pipeline are counted, each by itself.
    pub(crate) tally_reasons_max: usize,
    /// The sessions that were written lately, as they are.
    pub(crate) fences: Arc<Fences>,
    /// Which closures and specs are known to be there.
    pub(crate) pins: KnownPins,
    pub(crate) audit_keys: Arc<AuditKeys>,
    pub(crate) removed: Arc<RemovedRealms>,
    /// Ends the process.
    pub(crate) fatal: FatalHandler,
}

impl Opening {
    /// One of a database in which nothing is known yet: neither sessions nor an audit.
    pub(crate) fn new(node: u64, fatal: FatalHandler) -> Self {
        Self {
            node,
            tally_reasons_max: 0,
            fences: Arc::default(),
            pins: KnownPins::default(),
            audit_keys: Arc::default(),
            removed: Arc::default(),
            fatal,
        }
    }
}

/// The statements of most appends, held for as long as appends share a transaction: to look one up
/// by its text, and to put it back, takes a good part of the time that it takes to run it.
pub(crate) struct Statements<'c> {
    connection: &'c Connection,
    held: Vec<(&'static str, CachedStatement<'c>)>,
}

impl<'c> Statements<'c> {
    /// Statements of this connection; none is held yet.
    pub(crate) fn new(connection: &'c Connection) -> Self {
        Self { connection, held: Vec::new() }
    }

    pub(crate) fn connection(&self) -> &'c Connection {
        self.connection
    }

    /// The statement of this text, held from now on.
    fn get(&mut self, sql: &'static str) -> Result<&mut CachedStatement<'c>> {
        let place = match self.held.iter().position(|(text, _)| *text == sql) {
            Some(place) => place,
            None => {
                self.held.push((sql, self.connection.prepare_cached(sql)?));
                self.held.len() - 1
            }
        };
        Ok(&mut self.held[place].1)
    }
}

/// Writes one append; its audit is written with that of the appends beside it.
pub(crate) fn write_append(
    statements: &mut Statements<'_>,
    append: &Append,
    opening: &Opening,
    audit: &mut SharedRows,
) -> Result<()> {
    let connection = statements.connection();
    let row = &append.session;
    if row.seq < append.first_seq {
        let why = format!("an append to session `{}` has no events", row.key);
        return Err(JobError::Refused(StoreError::Failed(why)));
    }
    opening.removed.check(&row.key.realm)?;
    check_asks(connection, append)?;
    if !append.audit.is_empty() {
        opening.audit_keys.get()?;
    }
    let owner = if append.owned { opening.node } else { NOBODY };
    let session = match &append.once {
        Some(once) => {
            keys::take(connection, &row.key.realm, once, append.earlier.as_ref())?;
            write_session(statements, append, owner).map_err(JobError::midway)?
        }
        None => write_session(statements, append, owner)?,
    };
    let first = integer(append.first_seq);
    let last = integer(row.seq);
    statements.get(JOURNAL)?.execute(params![session, first, last, append.body])?;
    if let Some(snapshot) = &append.snapshot {
        execute(connection, SNAPSHOT, params![session, last, snapshot])?;
    }
    for run in &append.runs {
        write_run(statements, session, run, append)?;
    }
    if append.runs.iter().any(|run| run.no > 1) {
        execute(connection, FOLLOWED, [session])?;
    }
    for change in &append.asks {
        match change {
            AskChange::Opened(ask) => open_ask(connection, session, &row.key, ask)?,
            AskChange::Closed { ask, status, decision } => {
                let closed = close_ask(connection, *ask, *status, decision.as_deref())?;
                if !closed {
                    return Err(JobError::Midway(StoreError::Conflict(row.key.to_string())));
                }
            }
        }
    }
    write_history(statements, session, &append.history)?;
    refs::name(connection, session, &append.blobs, &append.held, row.seq)?;
    if let Some(closure) = &append.closure {
        closures::keep(connection, &row.key.realm, closure, &opening.pins)?;
    }
    if let Some(tally) = &append.tally {
        tallies::add(connection, row, tally, opening.tally_reasons_max)?;
    }
    specs::keep(connection, &row.key.realm, &append.specs, &opening.pins)?;
    if append.audit.is_empty() {
        return Ok(());
    }
    // Last: what fails before it leaves nothing to be written.
    audit.add(&ChainName::of(&row.key.realm), &append.audit).map_err(JobError::midway)
}

/// Leaves a session alone until then; one that waits for no one but people stays as it is.
pub(crate) fn park(
    connection: &Connection,
    key: &SessionKey,
    parked: &ParkedSession,
) -> Result<()> {
    let sql = "UPDATE sessions SET parked = ?4, fence = fence + 1, \
         wake_at = CASE WHEN wake_at IS NULL THEN NULL ELSE max(wake_at, ?5) END \
         WHERE realm = ?1 AND space = ?2 AND key = ?3";
    let realm = key.realm.as_str();
    let space = key.space.as_str();
    let params = params![realm, space, text_of(key), to_json(parked)?, parked.until.0];
    execute(connection, sql, params)?;
    Ok(())
}

/// Lets a session that waits for a time be driven at this one, unless it moved on.
pub(crate) fn postpone(
    connection: &Connection,
    key: &SessionKey,
    fence: Fence,
    at: Millis,
) -> Result<()> {
    let sql = "UPDATE sessions SET wake_at = ?5 WHERE realm = ?1 AND space = ?2 AND key = ?3 \
         AND fence = ?4 AND wake_at IS NOT NULL";
    let realm = key.realm.as_str();
    let space = key.space.as_str();
    execute(connection, sql, params![realm, space, text_of(key), integer(fence.0), at.0])?;
    Ok(())
}

/// An ask that this append closes must be open, unless the append itself opens it.
fn check_asks(connection: &Connection, append: &Append) -> Result<()> {
    for change in &append.asks {
        let AskChange::Closed { ask, .. } = change else { continue };
        let sql = "SELECT 1 FROM asks WHERE id = ?1 AND status = 'open'";
        let is_open = connection.prepare_cached(sql)?.exists(params![ask.0.to_be_bytes()])?;
        if !is_open && !opens(append, *ask) {
            let key = append.session.key.to_string();
            return Err(JobError::Refused(StoreError::Conflict(key)));
        }
    }
    Ok(())
}

fn opens(append: &Append, id: AskId) -> bool {
    let is_it = |change: &AskChange| match change {
        AskChange::Opened(ask) => ask.id == id,
        AskChange::Closed { .. } => false,
    };
    append.asks.iter().any(is_it)
}

/// Writes the session's row, and gives the number of the session.
fn write_session(statements: &mut Statements<'_>, append: &Append, owner: u64) -> Result<i64> {
    if append.creates {
        create(statements, append, owner)
    } else {
        advance(statements, append, owner)
    }
}

fn create(statements: &mut Statements<'_>, append: &Append, owner: u64) -> Result<i64> {
    let row = &append.session;
    let last_error = row.last_error.as_ref().map(to_json).transpose()?;
    let created = statements.get(CREATE)?.execute(params![
        row.key.realm.as_str(),
        row.key.space.as_str(),
        text_of(&row.key),
        row.id.0.to_be_bytes(),
        row.status.name(),
        row.run.map(|run| run.0.to_be_bytes()),
        row.plan.as_ref().map(|plan| plan.as_str()),
        row.step.as_ref().map(|step| step.as_str()),
        last_error,
        integer(row.seq),
        row.wake_at.map(|at| at.0),
        integer(owner),
        row.created_at.0,
        row.updated_at.0,
        row.owner,
    ])?;
    match created {
        0 => Err(JobError::Refused(StoreError::Exists(row.key.to_string()))),
        _ => Ok(statements.connection().last_insert_rowid()),
    }
}

/// Moves the session on if it is still as it was when the append was decided. The id is compared as
/// well: a session that was removed and made again under the same key is another one.
fn advance(statements: &mut Statements<'_>, append: &Append, owner: u64) -> Result<i64> {
    let row = &append.session;
    let last_error = row.last_error.as_ref().map(to_json).transpose()?;
    let params = params![
        row.id.0.to_be_bytes(),
        row.key.realm.as_str(),
        integer(append.fence.0),
        row.status.name(),
        row.run.map(|run| run.0.to_be_bytes()),
        row.plan.as_ref().map(|plan| plan.as_str()),
        row.step.as_ref().map(|step| step.as_str()),
        last_error,
        integer(row.seq),
        row.wake_at.map(|at| at.0),
        integer(owner),
        row.updated_at.0,
        row.owner,
    ];
    let session = statements.get(ADVANCE)?.query_row(params, |row| row.get(0)).optional()?;
    session.ok_or_else(|| JobError::Refused(StoreError::Conflict(row.key.to_string())))
}

/// Writes a run's row; what it pins is written with its start, and stays.
fn write_run(
    statements: &mut Statements<'_>,
    session: i64,
    run: &RunRow,
    append: &Append,
) -> Result<()> {
    let key = &append.session.key;
    let pinned = append.pins.get(&run.id);
    let listed = key.space.has_many_runs().then(|| key.realm.as_str());
    let written = statements.get(RUN)?.execute(params![
        run.id.0.to_be_bytes(),
        session,
        run.no,
        run.plan.as_str(),
        run.status.name(),
        run.step.as_ref().map(|step| step.as_str()),
        run.answer.as_ref().map(to_json).transpose()?,
        run.last_error.as_ref().map(to_json).transpose()?,
        run.started_at.0,
        run.ended_at.map(|at| at.0),
        (!run.spent.is_nothing()).then(|| to_json(&run.spent)).transpose()?,
        run.stopped,
        pinned.map(closures::mark),
        run.owner,
        run.changed_at.0,
        listed,
        integer(run.bytes),
    ])?;
    if written == 0 {
        let why = format!("`{}` is a run of another session", run.id);
        return Err(JobError::Midway(StoreError::Failed(why)));
    }
    Ok(())
}

fn open_ask(connection: &Connection, session: i64, key: &SessionKey, ask: &Ask) -> Result<()> {
    connection.prepare_cached(OPEN_ASK)?.execute(params![
        ask.id.0.to_be_bytes(),
        session,
        key.realm.as_str(),
        ask.run.0.to_be_bytes(),
        ask.step.as_str(),
        ask.body.kind(),
        AskStatus::Open.name(),
        to_json(ask)?,
        ask.created_at.0,
        ask.expires_at.map(|at| at.0),
    ])?;
    Ok(())
}

/// One reply wins: whether this one did.
fn close_ask(
    connection: &Connection,
    ask: AskId,
    status: AskStatus,
    decision: Option<&Decision>,
) -> Result<bool> {
    let decision = decision.map(to_json).transpose()?;
    Ok(execute(connection, CLOSE_ASK, params![ask.0.to_be_bytes(), status.name(), decision])? == 1)
}

fn write_history(statements: &mut Statements<'_>, session: i64, rows: &[HistoryRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let statement = statements.get(HISTORY)?;
    for row in rows {
        statement.execute(params![
            session,
            row.position,
            integer(row.finished_seq),
            integer(row.requested_seq),
            row.run.0.to_be_bytes(),
            row.step.as_str(),
            row.tool.as_str(),
            row.success,
        ])?;
    }
    Ok(())
}
