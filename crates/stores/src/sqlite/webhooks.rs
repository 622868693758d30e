//! Webhooks of tasks: rows that refer to their runs and are removed with them.

use super::error::{JobError, Result};
use crate::sqlite::SqliteStore;
use crate::sqlite::tables::columns::{
    bad_cursor, bits, count, execute, integer, limit_of, many, to_json,
};
use kernel::contracts::webhooks::{
    LiveWebhook, PutOutcome, Webhook, WebhookBody, WebhookFilter, WebhookName, WebhookProgress,
    Webhooks,
};
use kernel::contracts::{ListPage, PageRequest, Read};
use kernel::values::ids::{Millis, RealmId, RunId};
use rusqlite::{Connection, Params, Row, params};
use std::sync::Arc;

/// How many webhooks are read for one page: a filter that passes few must not hold up others.
const LOOKED_AT_MAX: usize = 20_000;

const OF_RUN: &str = "SELECT realm, run, id, body, stamp, place, attempts, next_at, live, error \
     FROM webhooks WHERE run = ?1 AND realm = ?2 ORDER BY id";

/// Those of a realm below a place, of no run before this one.
const OF_REALM: &str = "SELECT realm, run, id, body, stamp, place, attempts, next_at, live, error \
     FROM webhooks WHERE realm = ?1 AND (run, id) < (?2, ?3) AND run >= ?4 \
     ORDER BY run DESC, id DESC";

const LIVE: &str =
    "SELECT realm, run, id, body, next_at FROM webhooks WHERE live ORDER BY realm, run, id";

const HAS_RUN: &str = "SELECT 1 FROM runs r JOIN sessions s ON s.pk = r.session \
     WHERE r.id = ?1 AND s.realm = ?2";

/// Another one of the run, beyond so many, whether it can be read or not.
const BEYOND: &str =
    "SELECT 1 FROM webhooks WHERE run = ?1 AND id <> ?2 LIMIT 1 OFFSET max(?3 - 1, 0)";

const PUT: &str = "INSERT INTO webhooks (run, id, realm, stamp, body, place, attempts, next_at, \
     live, error) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) \
     ON CONFLICT (run, id) DO UPDATE SET stamp = excluded.stamp, body = excluded.body, \
     place = excluded.place, attempts = excluded.attempts, next_at = excluded.next_at, \
     live = excluded.live, error = excluded.error";

const NOTE: &str = "UPDATE webhooks SET place = ?5, attempts = ?6, next_at = ?7, live = ?8, \
     error = ?9 WHERE run = ?1 AND id = ?2 AND realm = ?3 AND stamp = ?4";

const REMOVE: &str = "DELETE FROM webhooks WHERE run = ?1 AND id = ?2 AND realm = ?3";

impl Webhooks for SqliteStore {
    fn webhooks_of<'a>(&'a self, realm: &'a RealmId, run: RunId) -> Read<'a, Vec<Webhook>> {
        let realm = realm.clone();
        self.readers.read(move |connection| {
            readable(connection, OF_RUN, params![run.0.to_be_bytes(), realm.as_str()], webhook)
        })
    }

    fn live_webhooks(&self) -> Read<'_, Vec<LiveWebhook>> {
        self.readers.read(|connection| {
            readable(connection, LIVE, (), |row| {
                // One whose body cannot be read is none.
                body(row)?;
                Ok(LiveWebhook { name: name(row)?, next_at: moment(row, 4)? })
            })
        })
    }

    fn list_webhooks<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a WebhookFilter,
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<Webhook>> {
        let realm = realm.clone();
        let filter = filter.clone();
        let page = page.clone();
        self.readers.read(move |connection| listed(connection, &realm, &filter, &page))
    }

    fn put_webhook<'a>(&'a self, webhook: &'a Webhook, most: usize) -> Read<'a, PutOutcome> {
        let webhook = webhook.clone();
        let removed = self.removed.clone();
        self.writes.perform(move |connection| {
            removed.check(&webhook.name.realm)?;
            put(connection, &webhook, most)
        })
    }

    fn note_webhook<'a>(
        &'a self,
        name: &'a WebhookName,
        stamp: u64,
        standing: &'a WebhookProgress,
    ) -> Read<'a, bool> {
        let name = name.clone();
        let standing = standing.clone();
        self.writes.perform(move |connection| {
            let WebhookName { realm, run, id } = &name;
            let WebhookProgress { place, attempts, next_at, is_live, error } = &standing;
            let params = params![
                run.0.to_be_bytes(),
                id,
                realm.as_str(),
                integer(stamp),
                integer(*place),
                attempts,
                next_at.map(|at| at.0),
                is_live,
                error,
            ];
            Ok(execute(connection, NOTE, params)? > 0)
        })
    }

    fn remove_webhook<'a>(&'a self, name: &'a WebhookName) -> Read<'a, bool> {
        let name = name.clone();
        self.writes.perform(move |connection| {
            let WebhookName { realm, run, id } = &name;
            let params = params![run.0.to_be_bytes(), id, realm.as_str()];
            Ok(execute(connection, REMOVE, params)? > 0)
        })
    }

    fn remove_unreadable_webhook<'a>(&'a self, name: &'a WebhookName) -> Read<'a, bool> {
        let name = name.clone();
        self.writes.perform(move |connection| {
            let WebhookName { realm, run, id } = &name;
            let run = run.0.to_be_bytes();
            let is_it = |row: &Row<'_>| {
                let is_named = row.get::<_, Arc<str>>(2).is_ok_and(|known| known == *id);
                Ok(is_named && webhook(row).is_err())
            };
            let found = many(connection, OF_RUN, params![run, realm.as_str()], is_it)?;
            let params = params![run, id, realm.as_str()];
            Ok(found.contains(&true) && execute(connection, REMOVE, params)? > 0)
        })
    }
}

/// The rows of a query that can be read. One that cannot, such as one of a newer release, stays as
/// it is, and keeps nothing from the receivers of the others.
fn readable<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let rows = many(connection, sql, params, |row| {
        // Only columns are read here: what fails is this row, whatever SQLite calls it.
        Ok(read(row).map_err(|trouble| left_out(row, trouble)).ok())
    })?;
    Ok(rows.into_iter().flatten().collect())
}

fn left_out(row: &Row<'_>, trouble: JobError) {
    let error = trouble.into_error();
    match name(row) {
        Ok(WebhookName { realm, run, id }) => {
            tracing::error!(%realm, %run, %id, %error, "a webhook is left out");
        }
        Err(_) => tracing::error!(%error, "a webhook is left out"),
    }
}

/// A page of a realm's webhooks. Those that cannot be read are passed over.
fn listed(
    connection: &Connection,
    realm: &RealmId,
    filter: &WebhookFilter,
    page: &PageRequest,
) -> Result<ListPage<Webhook>> {
    let below = PageStart::new(filter.run, page)?;
    let lowest = filter.run.map_or_else(Vec::new, |run| run.0.to_be_bytes().to_vec());
    let mut statement = connection.prepare_cached(OF_REALM)?;
    let mut rows = statement.query(params![realm.as_str(), below.run, below.id, lowest])?;
    let mut items = Vec::new();
    let mut looked_at = 0;
    let mut last = None;
    while let Some(row) = rows.next()? {
        if items.len() >= page.limit.max(1) || looked_at >= LOOKED_AT_MAX {
            let cursor = |WebhookName { run, id, .. }: WebhookName| format!("{run}/{id}");
            return Ok(ListPage { items, next_cursor: last.map(cursor) });
        }
        looked_at += 1;
        last = name(row).ok().or(last);
        let found = webhook(row).map_err(|trouble| left_out(row, trouble)).ok();
        items.extend(found.filter(|one| filter.passes(one)));
    }
    Ok(ListPage { items, next_cursor: None })
}

/// The place that a page is below, in the columns `run` and `id`.
struct PageStart {
    run: Vec<u8>,
    id: String,
}

impl PageStart {
    /// Where the page before ended. The first one of a run, or of all, is below what is longer than
    /// its bytes, which no row has.
    fn new(run: Option<RunId>, page: &PageRequest) -> Result<Self> {
        let Some(cursor) = &page.cursor else {
            let mut above = run.map_or([u8::MAX; 16], |run| run.0.to_be_bytes()).to_vec();
            above.push(0);
            return Ok(Self { run: above, id: String::new() });
        };
        let parsed = cursor.split_once('/');
        let parsed = parsed.and_then(|(run, id)| Some((run.parse::<RunId>().ok()?, id)));
        let (run, id) = parsed.ok_or_else(|| bad_cursor(cursor))?;
        Ok(Self { run: run.0.to_be_bytes().to_vec(), id: id.to_owned() })
    }
}

/// Whether a run has this many others that can be read. One that cannot is no webhook of anyone.
fn is_full(connection: &Connection, name: &WebhookName, most: usize) -> Result<bool> {
    let WebhookName { realm, run, id } = name;
    let run = run.0.to_be_bytes();
    let may_be = connection.prepare_cached(BEYOND)?.exists(params![run, id, limit_of(most)])?;
    if most == 0 || !may_be {
        return Ok(most == 0);
    }
    let others = many(connection, OF_RUN, params![run, realm.as_str()], |row| {
        Ok(webhook(row).is_ok_and(|one| one.name.id != *id))
    })?;
    Ok(others.into_iter().filter(|is_other| *is_other).count() >= most)
}

fn put(connection: &Connection, webhook: &Webhook, most: usize) -> Result<PutOutcome> {
    let Webhook { name: WebhookName { realm, run, id }, stamp, body, standing } = webhook;
    let run = run.0.to_be_bytes();
    if !connection.prepare_cached(HAS_RUN)?.exists(params![run, realm.as_str()])? {
        return Ok(PutOutcome::NoRun);
    }
    if is_full(connection, &webhook.name, most)? {
        return Ok(PutOutcome::Full);
    }
    let WebhookProgress { place, attempts, next_at, is_live, error } = standing;
    let params = params![
        run,
        id,
        realm.as_str(),
        integer(*stamp),
        to_json(body)?,
        integer(*place),
        attempts,
        next_at.map(|at| at.0),
        is_live,
        error,
    ];
    execute(connection, PUT, params)?;
    Ok(PutOutcome::Stored)
}

/// The name out of the columns `realm`, `run`, `id`.
fn name(row: &Row<'_>) -> Result<WebhookName> {
    Ok(WebhookName { realm: RealmId(row.get(0)?), run: RunId(bits(row, 1)?), id: row.get(2)? })
}

/// The body out of the column after them.
fn body(row: &Row<'_>) -> Result<WebhookBody> {
    let body: String = row.get(3)?;
    serde_json::from_str(&body)
        .map_err(|error| JobError::unreadable(format!("a webhook cannot be read: {error}")))
}

fn moment(row: &Row<'_>, column: usize) -> Result<Option<Millis>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Millis))
}

fn webhook(row: &Row<'_>) -> Result<Webhook> {
    let standing = WebhookProgress {
        place: count(row, 5)?,
        attempts: row.get(6)?,
        next_at: moment(row, 7)?,
        is_live: row.get(8)?,
        error: row.get(9)?,
    };
    Ok(Webhook { name: name(row)?, stamp: count(row, 4)?, body: body(row)?, standing })
}
