//! The `Lists` and `Keys` contracts over SQLite.

use super::super::error::Result;
use super::journal::events;
use crate::sqlite::SqliteStore;
use crate::sqlite::tables::changed_runs;
use crate::sqlite::tables::columns::{
    AFTER_ASK, AFTER_RUN, AFTER_SESSION, ASK, RUN, SESSION, ask, bits, count, cursor_number,
    key_text, many, one, paged, rows_max, run, session,
};
use crate::sqlite::tables::keys;
use crate::sqlite::tables::tallies;
use kernel::contracts::{
    AskFilter, Keys, ListPage, Lists, OpenAsks, OpenSessions, PageRequest, Read, RunFilter,
    RunPage, RunWithEvents, SessionAsk, SessionFilter, SessionRef, SessionRun, StoredBytes,
};
use kernel::definition::pipeline::TallyRow;
use kernel::journal::projection::{OnceRow, SessionRow};
use kernel::session::RunStatus;
use kernel::values::ids::{AskId, Millis, PipelineName, PlanId, RealmId, RunId, Space};
use rusqlite::{Connection, params};
use serde_json::json;
use std::sync::LazyLock;

// Put together once: these are asked for all the time.

/// A run by its id, and the number of its session.
static RUN_BY_ID: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {RUN}, s.pk FROM runs AS r JOIN sessions AS s ON s.pk = r.session \
         WHERE r.id = ?1 AND s.realm = ?2"
    )
});

/// The plans of runs by their ids, which come first: else all runs of the realm would be looked at.
const RUN_PLANS: &str = "SELECT r.id, r.plan FROM json_each(?2) AS wanted \
     CROSS JOIN runs AS r ON r.id = unhex(wanted.value) \
     CROSS JOIN sessions AS s ON s.pk = r.session \
     WHERE s.realm = ?1";

/// An ask by its id.
static ASK_BY_ID: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {ASK} FROM asks AS a JOIN sessions AS s ON s.pk = a.session \
         WHERE a.id = ?1 AND a.realm = ?2"
    )
});

/// The sessions of a realm; what follows says which.
static SESSIONS: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {SESSION} FROM sessions AS s WHERE s.realm = ?1"));

/// A session by its id.
static SESSION_BY_ID: LazyLock<String> = LazyLock::new(|| format!("{} AND s.id = ?2", *SESSIONS));

/// A session by its whole key.
static SESSION_BY_KEY: LazyLock<String> =
    LazyLock::new(|| format!("{} AND s.key = ?2 AND s.space = ?3", *SESSIONS));

/// Of ids that are their owner's only those of the owner count.
const OWN: &str = "(s.key = ?3 OR s.space NOT IN (SELECT value FROM json_each(?4)))";

impl Lists for SqliteStore {
    fn session<'a>(
        &'a self,
        realm: &'a RealmId,
        named: &'a SessionRef,
    ) -> Read<'a, Option<SessionRow>> {
        let realm = realm.clone();
        let named = named.clone();
        self.readers
            .read_of(realm.clone(), move |connection| find_session(connection, &realm, &named))
    }

    fn sessions<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a SessionFilter,
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<SessionRow>> {
        let realm = realm.clone();
        let filter = filter.clone();
        let page = page.clone();
        self.readers.read_of(realm.clone(), move |connection| {
            // Said in so many words, so that SQLite sees that the index without the completed
            // serves.
            let status = match filter.status {
                None => "",
                Some(RunStatus::Completed) => "AND s.status = ?3",
                Some(_) => "AND s.status = ?3 AND s.status <> 'completed'",
            };
            let parked = if filter.parked { "AND s.parked IS NOT NULL" } else { "" };
            let holding = match &filter.blob {
                None => "AND ?7 IS NULL",
                Some(_) => {
                    "AND s.pk IN (SELECT holder FROM blob_holds \
                     WHERE hash = ?7 AND realm = ?1 AND kind = 'session' AND is_value)"
                }
            };
            let sql = format!(
                "SELECT {SESSION}, s.pk FROM sessions AS s WHERE s.realm = ?1 AND s.pk < ?2 \
                 {status} {parked} {holding} AND (?4 IS NULL OR s.plan = ?4) \
                 AND (?5 IS NULL OR s.space = ?5) \
                 ORDER BY s.pk DESC LIMIT ?6"
            );
            let params = params![
                realm.as_str(),
                cursor_number(&page, i64::MAX)?,
                filter.status.map(|status| status.name()),
                filter.plan.as_ref().map(|plan| plan.as_str()),
                filter.space.as_ref().map(|space| space.as_str()),
                rows_max(&page),
                filter.blob.as_ref().map(|hash| hash.as_str()),
            ];
            let rows = many(connection, &sql, params, |row| {
                Ok((row.get::<_, i64>(AFTER_SESSION)?, session(row)?))
            })?;
            Ok(paged(rows, &page, i64::to_string))
        })
    }

    fn run<'a>(&'a self, realm: &'a RealmId, id: RunId) -> Read<'a, Option<SessionRun>> {
        let realm = realm.clone();
        self.readers.read_of(realm.clone(), move |connection| {
            Ok(find_run(connection, &realm, id)?.map(|(_, run)| run))
        })
    }

    fn run_plans<'a>(
        &'a self,
        realm: &'a RealmId,
        runs: &'a [RunId],
    ) -> Read<'a, Vec<(RunId, PlanId)>> {
        let realm = realm.clone();
        let ids: Vec<String> = runs.iter().map(|run| format!("{:032x}", run.0)).collect();
        let ids = json!(ids).to_string();
        self.readers.read_of(realm.clone(), move |connection| {
            many(connection, RUN_PLANS, params![realm.as_str(), ids], |row| {
                Ok((RunId(bits(row, 0)?), PlanId(row.get(1)?)))
            })
        })
    }

    fn run_with_events<'a>(
        &'a self,
        realm: &'a RealmId,
        id: RunId,
        limit: usize,
    ) -> Read<'a, Option<RunWithEvents>> {
        let realm = realm.clone();
        self.readers.read_of(realm.clone(), move |connection| {
            let Some((session, run)) = find_run(connection, &realm, id)? else { return Ok(None) };
            let events = match run.row.no {
                1 => events(connection, session, 0, limit)?,
                _ => Vec::new(),
            };
            Ok(Some(RunWithEvents { run, events }))
        })
    }

    fn runs<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a RunFilter,
        page: &'a PageRequest,
    ) -> Read<'a, RunPage> {
        let realm = realm.clone();
        let filter = filter.clone();
        let page = page.clone();
        self.readers.read_of(realm.clone(), move |connection| {
            changed_runs::list(connection, &realm, &filter, &page)
        })
    }

    fn ask<'a>(&'a self, realm: &'a RealmId, id: AskId) -> Read<'a, Option<SessionAsk>> {
        let realm = realm.clone();
        self.readers.read_of(realm.clone(), move |connection| {
            one(connection, &ASK_BY_ID, params![id.0.to_be_bytes(), realm.as_str()], ask)
        })
    }

    fn asks<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a AskFilter,
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<SessionAsk>> {
        let realm = realm.clone();
        let filter = filter.clone();
        let page = page.clone();
        self.readers.read_of(realm.clone(), move |connection| {
            // The narrowest index that the filter allows.
            let among = match (&filter.session, filter.status.as_deref()) {
                (Some(_), _) => {
                    "a.session = (SELECT pk FROM sessions WHERE id = ?7 AND realm = ?1)"
                }
                (None, Some("open")) => "a.realm = ?1 AND a.status = 'open'",
                (None, _) => "a.realm = ?1",
            };
            let sql = format!(
                "SELECT {ASK}, a.pk FROM asks AS a JOIN sessions AS s ON s.pk = a.session \
                 WHERE {among} AND a.pk > ?2 AND (?3 IS NULL OR a.run = ?3) \
                 AND (?4 IS NULL OR a.kind = ?4) AND (?5 IS NULL OR a.status = ?5) \
                 AND (?6 IS NULL OR a.step = ?6) \
                 AND (?9 IS NULL OR (json_extract(a.body, '$.held') IS NOT NULL) = ?9) \
                 ORDER BY a.pk LIMIT ?8"
            );
            let params = params![
                realm.as_str(),
                cursor_number(&page, 0)?,
                filter.run.map(|run| run.0.to_be_bytes()),
                filter.kind,
                filter.status,
                filter.step.as_ref().map(|step| step.as_str()),
                filter.session.map(|session| session.0.to_be_bytes()),
                rows_max(&page),
                filter.held,
            ];
            let rows = many(connection, &sql, params, |row| {
                Ok((row.get::<_, i64>(AFTER_ASK)?, ask(row)?))
            })?;
            Ok(paged(rows, &page, i64::to_string))
        })
    }

    fn open_asks<'a>(&'a self, realm: &'a RealmId) -> Read<'a, Vec<OpenAsks>> {
        let realm = realm.clone();
        self.readers.read_of(realm.clone(), move |connection| {
            let sql = "SELECT kind, count(*), min(created_at) FROM asks \
                 WHERE realm = ?1 AND status = 'open' GROUP BY kind ORDER BY kind";
            many(connection, sql, params![realm.as_str()], |row| {
                let oldest = Millis(row.get(2)?);
                Ok(OpenAsks { kind: row.get(0)?, count: count(row, 1)?, oldest })
            })
        })
    }

    /// The first condition is the index's own, word for word: so that is searched, and the table is
    /// not.
    fn open_sessions<'a>(&'a self, realm: &'a RealmId) -> Read<'a, Vec<OpenSessions>> {
        let realm = realm.clone();
        self.readers.read_of(realm.clone(), move |connection| {
            let sql = "SELECT status, count(*) FROM sessions \
                 WHERE status <> 'completed' AND realm = ?1 \
                 AND status IN ('running', 'waiting', 'stuck', 'paused') GROUP BY status \
                 UNION ALL SELECT 'parked', count(*) FROM sessions \
                 WHERE parked IS NOT NULL AND realm = ?1 HAVING count(*) > 0 ORDER BY status";
            many(connection, sql, params![realm.as_str()], |row| {
                Ok(OpenSessions { status: row.get(0)?, count: count(row, 1)? })
            })
        })
    }

    fn stored_bytes(&self) -> Read<'_, Vec<StoredBytes>> {
        Box::pin(self.databases.stored_bytes())
    }

    fn tallies<'a>(
        &'a self,
        realm: &'a RealmId,
        pipeline: &'a PipelineName,
    ) -> Read<'a, Vec<TallyRow>> {
        let realm = realm.clone();
        let pipeline = pipeline.clone();
        self.readers
            .read_of(realm.clone(), move |connection| tallies::list(connection, &realm, &pipeline))
    }
}

impl Keys for SqliteStore {
    fn once<'a>(
        &'a self,
        realm: &'a RealmId,
        subject: &'a str,
        routes: &'a [&'a str],
        key: &'a str,
    ) -> Read<'a, Option<OnceRow>> {
        let routes: Vec<String> = routes.iter().map(|route| (*route).to_owned()).collect();
        let realm = realm.clone();
        let subject = subject.to_owned();
        let key = key.to_owned();
        self.readers.read_of(realm.clone(), move |connection| {
            keys::newest(connection, &realm, &subject, &routes, &key)
        })
    }
}

/// One run, and the number of its session.
fn find_run(
    connection: &Connection,
    realm: &RealmId,
    id: RunId,
) -> Result<Option<(i64, SessionRun)>> {
    one(connection, &RUN_BY_ID, params![id.0.to_be_bytes(), realm.as_str()], |row| {
        Ok((row.get(AFTER_RUN)?, run(row)?))
    })
}

/// One session. A key without a space means the one in `session`, else the only one.
fn find_session(
    connection: &Connection,
    realm: &RealmId,
    named: &SessionRef,
) -> Result<Option<SessionRow>> {
    let realm = realm.as_str();
    let sessions = &*SESSIONS;
    match named {
        SessionRef::Id(id) => {
            one(connection, &SESSION_BY_ID, params![realm, id.0.to_be_bytes()], session)
        }
        SessionRef::Key { key, space: Some(space) } => {
            let params = params![realm, key_text(key, None), space.as_str()];
            one(connection, &SESSION_BY_KEY, params, session)
        }
        SessionRef::Owned { key, space: Some(space), owner } => {
            let key = key_text(key, Some(&**owner).filter(|_| space.is_owned()));
            one(connection, &SESSION_BY_KEY, params![realm, key, space.as_str()], session)
        }
        SessionRef::Key { key, space: None } => {
            let sql = format!("{sessions} AND s.key = ?2 ORDER BY s.space <> 'session' LIMIT 2");
            let found = many(connection, &sql, params![realm, key_text(key, None)], session)?;
            Ok(the_only(found))
        }
        SessionRef::Owned { key, space: None, owner } => {
            let sql = format!(
                "{sessions} AND s.key IN (?2, ?3) AND {OWN} \
                 ORDER BY s.space <> 'session' LIMIT 2"
            );
            let nobodys = key_text(key, None);
            let own = key_text(key, Some(&**owner));
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
