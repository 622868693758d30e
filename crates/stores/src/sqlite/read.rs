//! The reads: sessions, runs, asks, events, the feed. Each is given a connection inside a read
//! transaction.

use super::trouble::{Result, Trouble};
use crate::sqlite::tables::columns::{
    AFTER_ASK, AFTER_SESSION, ASK, RUN, SESSION, ask, bits, count, cursor_number, integer, key,
    key_text, paged, rows_max, run, session, text_of,
};
use crate::sqlite::tables::consumers::FEED_END;
use kernel::contracts::{
    AskFilter, FeedRow, Loaded, OpenAsks, OpenSessions, Page, Paged, SessionAsk, SessionFilter,
    SessionRef, SessionRun, StoreError, Stored,
};
use kernel::journal::projection::SessionRow;
use kernel::session::RunStatus;
use kernel::values::ids::{
    AskId, ContentHash, Fence, Known, Millis, RealmId, RunId, SessionId, SessionKey, Space,
};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

/// Begins with the row that holds the event after `?2`; rows follow each other without a gap.
const TAIL: &str = "SELECT body FROM journal WHERE session = ?1 AND last_seq > ?2 AND seq >= \
     (SELECT coalesce(max(seq), 0) FROM journal WHERE session = ?1 AND seq <= ?2 + 1) \
     ORDER BY seq LIMIT ?3";

/// Those of dead processes first, then those of no one whose time has come, then those that this
/// process should have in hand already: they must not crowd out the others.
const DUE: &str = "SELECT realm, space, key FROM sessions WHERE wake_at <= ?1 \
     ORDER BY CASE node WHEN ?2 THEN 2 WHEN 0 THEN 1 ELSE 0 END, wake_at LIMIT ?3";

/// The journal leads: the feed's order is the journal's.
const FEED: &str = "SELECT j.row, s.id, j.body, s.realm, s.space, s.key FROM journal AS j \
     CROSS JOIN sessions AS s ON s.pk = j.session \
     WHERE j.row > ?1 AND s.realm = ?2 ORDER BY j.row LIMIT ?3";

/// A read of the feed ends with the row that reaches this: rows may be large.
const FEED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// No limit, where SQL wants one.
const ALL: i64 = -1;

/// The number of a session in this database.
pub(crate) fn session_number(connection: &Connection, key: &SessionKey) -> Result<Option<i64>> {
    let sql = "SELECT pk FROM sessions WHERE realm = ?1 AND key = ?2 AND space = ?3";
    let params = params![key.realm.as_str(), text_of(key), key.space.as_str()];
    let number = connection.prepare_cached(sql)?.query_row(params, |row| row.get(0)).optional()?;
    Ok(number)
}

/// The number of a session, if it is there; a conflict if it is not the known one.
pub(crate) fn known_session(
    connection: &Connection,
    key: &SessionKey,
    known: Known,
) -> Result<Option<i64>> {
    let sql = "SELECT pk, id, fence FROM sessions WHERE realm = ?1 AND key = ?2 AND space = ?3";
    let params = params![key.realm.as_str(), text_of(key), key.space.as_str()];
    let found = one(connection, sql, params, |row| {
        let number: i64 = row.get(0)?;
        let found = Known { id: SessionId(bits(row, 1)?), fence: Fence(count(row, 2)?) };
        Ok((found == known).then_some(number))
    })?;
    match found {
        Some(None) => Err(Trouble::Refused(StoreError::Conflict(key.to_string()))),
        found => Ok(found.flatten()),
    }
}

/// Snapshot and tail, unless the session is the known one.
pub(crate) fn load(
    connection: &Connection,
    key: &SessionKey,
    known: Option<Known>,
) -> Result<Loaded> {
    let sql = "SELECT s.pk, s.id, s.fence, n.seq, n.body \
         FROM sessions AS s LEFT JOIN snapshots AS n ON n.session = s.pk \
         WHERE s.realm = ?1 AND s.key = ?2 AND s.space = ?3";
    let params = params![key.realm.as_str(), text_of(key), key.space.as_str()];
    let found = one(connection, sql, params, |row| {
        let (id, fence) = (SessionId(bits(row, 1)?), Fence(count(row, 2)?));
        if known == Some(Known { id, fence }) {
            return Ok(None);
        }
        let number: i64 = row.get(0)?;
        let after: Option<i64> = row.get(3)?;
        let snapshot: Option<String> = row.get(4)?;
        let snapshot_bytes = snapshot.as_ref().map_or(0, String::len);
        let stored = Stored { id, fence, snapshot, snapshot_bytes, tail: Vec::new() };
        Ok(Some((number, after.unwrap_or(0), stored)))
    })?;
    let (number, after, mut stored) = match found {
        None => return Ok(Loaded::Missing),
        Some(None) => return Ok(Loaded::Unchanged),
        Some(Some(found)) => found,
    };
    stored.tail = many(connection, TAIL, params![number, after, ALL], |row| Ok(row.get(0)?))?;
    Ok(Loaded::Found(stored))
}

/// Sessions that should be driven now.
pub(crate) fn due(
    connection: &Connection,
    now: Millis,
    node: u64,
    limit: usize,
) -> Result<Vec<SessionKey>> {
    let params = params![now.0, integer(node), limit_of(limit)];
    many(connection, DUE, params, |row| key(row, 0))
}

/// The nearest time after this one at which a session should be driven.
pub(crate) fn next_wake(connection: &Connection, after: Millis) -> Result<Option<Millis>> {
    let sql = "SELECT min(wake_at) FROM sessions WHERE wake_at > ?1";
    let nearest = one(connection, sql, params![after.0], |row| Ok(row.get::<_, Option<i64>>(0)?))?;
    Ok(nearest.flatten().map(Millis))
}

/// A pinned closure's text.
pub(crate) fn closure(
    connection: &Connection,
    realm: &RealmId,
    hash: &ContentHash,
) -> Result<Option<String>> {
    let sql = "SELECT body FROM closures WHERE realm = ?1 AND hash = ?2";
    one(connection, sql, params![realm.as_str(), hash.as_str()], |row| Ok(row.get(0)?))
}

/// The text of a tool's spec that a call pinned.
pub(crate) fn tool_spec(
    connection: &Connection,
    realm: &RealmId,
    hash: &ContentHash,
) -> Result<Option<String>> {
    let sql = "SELECT body FROM tool_specs WHERE realm = ?1 AND hash = ?2";
    one(connection, sql, params![realm.as_str(), hash.as_str()], |row| Ok(row.get(0)?))
}

/// Of ids that are their owner's only those of the owner count.
const OWN: &str = "(s.key = ?3 OR s.space NOT IN (SELECT value FROM json_each(?4)))";

/// One session. A key without a space means the one in `session`, else the only one.
pub(crate) fn find_session(
    connection: &Connection,
    realm: &RealmId,
    named: &SessionRef,
) -> Result<Option<SessionRow>> {
    let realm = realm.as_str();
    let from = format!("SELECT {SESSION} FROM sessions AS s WHERE s.realm = ?1");
    match named {
        SessionRef::Id(id) => {
            let sql = format!("{from} AND s.id = ?2");
            one(connection, &sql, params![realm, id.0.to_be_bytes()], session)
        }
        SessionRef::Key { key, space: Some(space) } => {
            let sql = format!("{from} AND s.key = ?2 AND s.space = ?3");
            one(connection, &sql, params![realm, key_text(key, None), space.as_str()], session)
        }
        SessionRef::Owned { key, space: Some(space), owner } => {
            let sql = format!("{from} AND s.key = ?2 AND s.space = ?3");
            let key = key_text(key, Some(&**owner).filter(|_| space.is_owned()));
            one(connection, &sql, params![realm, key, space.as_str()], session)
        }
        SessionRef::Key { key, space: None } => {
            let sql = format!("{from} AND s.key = ?2 ORDER BY s.space <> 'session' LIMIT 2");
            let found = many(connection, &sql, params![realm, key_text(key, None)], session)?;
            Ok(the_only(found))
        }
        SessionRef::Owned { key, space: None, owner } => {
            let sql = format!(
                "{from} AND s.key IN (?2, ?3) AND {OWN} ORDER BY s.space <> 'session' LIMIT 2"
            );
            let (nobodys, own) = (key_text(key, None), key_text(key, Some(&**owner)));
            let owned = json!(Space::OWNED).to_string();
            Ok(the_only(many(connection, &sql, params![realm, nobodys, own, owned], session)?))
        }
    }
}

/// The session that a key without a space means.
fn the_only(mut found: Vec<SessionRow>) -> Option<SessionRow> {
    let is_clear =
        found.len() == 1 || found.first().is_some_and(|first| first.key.space == Space::session());
    is_clear.then(|| found.swap_remove(0))
}

/// Sessions, newest first.
pub(crate) fn sessions(
    connection: &Connection,
    realm: &RealmId,
    filter: &SessionFilter,
    page: &Page,
) -> Result<Paged<SessionRow>> {
    // Said in so many words, so that SQLite sees that the index without the completed serves.
    let status = match filter.status {
        None => "",
        Some(RunStatus::Completed) => "AND s.status = ?3",
        Some(_) => "AND s.status = ?3 AND s.status <> 'completed'",
    };
    let parked = if filter.parked { "AND s.parked IS NOT NULL" } else { "" };
    let sql = format!(
        "SELECT {SESSION}, s.pk FROM sessions AS s WHERE s.realm = ?1 AND s.pk < ?2 {status} \
         {parked} AND (?4 IS NULL OR s.plan = ?4) AND (?5 IS NULL OR s.space = ?5) \
         ORDER BY s.pk DESC LIMIT ?6"
    );
    let params = params![
        realm.as_str(),
        cursor_number(page, i64::MAX)?,
        filter.status.map(|status| status.name()),
        filter.plan.as_ref().map(|plan| plan.as_str()),
        filter.space.as_ref().map(|space| space.as_str()),
        rows_max(page),
    ];
    let rows = many(connection, &sql, params, |row| {
        Ok((row.get::<_, i64>(AFTER_SESSION)?, session(row)?))
    })?;
    Ok(paged(rows, page, i64::to_string))
}

/// One run.
pub(crate) fn find_run(
    connection: &Connection,
    realm: &RealmId,
    id: RunId,
) -> Result<Option<SessionRun>> {
    let sql = format!(
        "SELECT {RUN} FROM runs AS r JOIN sessions AS s ON s.pk = r.session \
         WHERE r.id = ?1 AND s.realm = ?2"
    );
    one(connection, &sql, params![id.0.to_be_bytes(), realm.as_str()], run)
}

/// One ask.
pub(crate) fn find_ask(
    connection: &Connection,
    realm: &RealmId,
    id: AskId,
) -> Result<Option<SessionAsk>> {
    let sql = format!(
        "SELECT {ASK} FROM asks AS a JOIN sessions AS s ON s.pk = a.session \
         WHERE a.id = ?1 AND a.realm = ?2"
    );
    one(connection, &sql, params![id.0.to_be_bytes(), realm.as_str()], ask)
}

/// Asks, oldest first.
pub(crate) fn asks(
    connection: &Connection,
    realm: &RealmId,
    filter: &AskFilter,
    page: &Page,
) -> Result<Paged<SessionAsk>> {
    // The narrowest index that the filter allows.
    let among = match (&filter.session, filter.status.as_deref()) {
        (Some(_), _) => "a.session = (SELECT pk FROM sessions WHERE id = ?7 AND realm = ?1)",
        (None, Some("open")) => "a.realm = ?1 AND a.status = 'open'",
        (None, _) => "a.realm = ?1",
    };
    let sql = format!(
        "SELECT {ASK}, a.pk FROM asks AS a JOIN sessions AS s ON s.pk = a.session \
         WHERE {among} AND a.pk > ?2 AND (?3 IS NULL OR a.run = ?3) \
         AND (?4 IS NULL OR a.kind = ?4) AND (?5 IS NULL OR a.status = ?5) \
         AND (?6 IS NULL OR a.step = ?6) ORDER BY a.pk LIMIT ?8"
    );
    let params = params![
        realm.as_str(),
        cursor_number(page, 0)?,
        filter.run.map(|run| run.0.to_be_bytes()),
        filter.kind,
        filter.status,
        filter.step.as_ref().map(|step| step.as_str()),
        filter.session.map(|session| session.0.to_be_bytes()),
        rows_max(page),
    ];
    let rows =
        many(connection, &sql, params, |row| Ok((row.get::<_, i64>(AFTER_ASK)?, ask(row)?)))?;
    Ok(paged(rows, page, i64::to_string))
}

/// How many asks are open, by kind.
pub(crate) fn open_asks(connection: &Connection, realm: &RealmId) -> Result<Vec<OpenAsks>> {
    let sql = "SELECT kind, count(*), min(created_at) FROM asks \
         WHERE realm = ?1 AND status = 'open' GROUP BY kind ORDER BY kind";
    many(connection, sql, params![realm.as_str()], |row| {
        let oldest = Millis(row.get(2)?);
        Ok(OpenAsks { kind: row.get(0)?, count: count(row, 1)?, oldest })
    })
}

/// How many sessions are not over, by status, and how many are parked. The first condition is the
/// index's own, word for word: so that is searched, and the table is not.
pub(crate) fn open_sessions(connection: &Connection, realm: &RealmId) -> Result<Vec<OpenSessions>> {
    let sql = "SELECT status, count(*) FROM sessions \
         WHERE status <> 'completed' AND realm = ?1 \
         AND status IN ('running', 'waiting', 'stuck', 'paused') GROUP BY status \
         UNION ALL SELECT 'parked', count(*) FROM sessions \
         WHERE parked IS NOT NULL AND realm = ?1 HAVING count(*) > 0 ORDER BY status";
    many(connection, sql, params![realm.as_str()], |row| {
        Ok(OpenSessions { status: row.get(0)?, count: count(row, 1)? })
    })
}

/// A session's events after a sequence, one by one as they were written.
pub(crate) fn events(
    connection: &Connection,
    key: &SessionKey,
    after: u64,
    limit: usize,
) -> Result<Vec<(u64, String)>> {
    let Some(number) = session_number(connection, key)? else {
        return Ok(Vec::new());
    };
    if after > 0 {
        let sql = "SELECT min(seq) FROM journal WHERE session = ?1";
        let oldest = one(connection, sql, params![number], |row| count(row, 0))?.unwrap_or(0);
        if after < oldest {
            return Err(Trouble::Refused(StoreError::Gone(oldest)));
        }
    }
    let params = params![number, integer(after), limit_of(limit)];
    let rows: Vec<String> = many(connection, TAIL, params, |row| Ok(row.get(0)?))?;
    let mut events = Vec::new();
    for row in &rows {
        for event in split(row)? {
            if events.len() < limit && event.0 > after {
                events.push(event);
            }
        }
    }
    Ok(events)
}

/// The feed of a realm after a cursor; fewer rows where they are large, but at least one.
pub(crate) fn feed(
    connection: &Connection,
    realm: &RealmId,
    after: u64,
    limit: usize,
) -> Result<Vec<FeedRow>> {
    let mut statement = connection.prepare_cached(FEED)?;
    let mut rows = statement.query(params![integer(after), realm.as_str(), limit_of(limit)])?;
    let (mut feed, mut bytes) = (Vec::new(), 0);
    while bytes < FEED_BYTES_MAX
        && let Some(row) = rows.next()?
    {
        let (session, key) = (SessionId(bits(row, 1)?), key(row, 3)?);
        let body: String = row.get(2)?;
        bytes += body.len();
        feed.push(FeedRow { cursor: count(row, 0)?, session, key, body });
    }
    Ok(feed)
}

/// The newest row's cursor; one that was removed counts too.
pub(crate) fn feed_end(connection: &Connection) -> Result<u64> {
    let newest = one(connection, &format!("SELECT {FEED_END}"), params![], |row| count(row, 0))?;
    Ok(newest.unwrap_or(0))
}

/// The events of one journal row, as texts: an event that this release cannot read is shown too.
pub(crate) fn split(row: &str) -> Result<Vec<(u64, String)>> {
    #[derive(Deserialize)]
    struct Numbered {
        seq: u64,
    }
    let unreadable = |error: serde_json::Error| {
        Trouble::unreadable(format!("a journal row cannot be read: {error}"))
    };
    let texts: Vec<&RawValue> = serde_json::from_str(row).map_err(unreadable)?;
    let mut events = Vec::with_capacity(texts.len());
    for text in texts {
        let event: Numbered = serde_json::from_str(text.get()).map_err(unreadable)?;
        events.push((event.seq, text.get().to_owned()));
    }
    Ok(events)
}

fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn one<T>(
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

fn many<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_and_then(params, read)?;
    rows.collect()
}
