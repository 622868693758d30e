//! The `Feed` contract over SQLite: events of a realm in commit order, and how far each consumer
//! is.

use crate::sqlite::SqliteStore;
use crate::sqlite::tables::columns::{bits, count, integer, key, limit_of, one};
use crate::sqlite::tables::consumers::{self, FEED_END};
use crate::sqlite::tables::deliveries;
use kernel::contracts::{Feed, FeedRow, FeedStart, Read, SINKS};
use kernel::values::ids::{PlanId, RealmId, SessionId};
use rusqlite::{Connection, params};
use std::sync::Arc;

/// The journal leads: the feed's order is the journal's.
const FEED: &str = "SELECT j.row, s.id, j.body, s.realm, s.space, s.key, s.owner, s.plan \
     FROM journal AS j \
     CROSS JOIN sessions AS s ON s.pk = j.session \
     WHERE j.row > ?1 AND s.realm = ?2 ORDER BY j.row LIMIT ?3";

/// The same rows, counted.
const FEED_AHEAD: &str = "SELECT count(*) FROM (SELECT 1 FROM journal AS j \
     CROSS JOIN sessions AS s ON s.pk = j.session \
     WHERE j.row > ?1 AND s.realm = ?2 LIMIT ?3)";

/// A read of the feed ends with the row that reaches this: rows may be large.
const FEED_BYTES_MAX: usize = 4 * 1024 * 1024;

impl Feed for SqliteStore {
    fn feed<'a>(&'a self, realm: &'a RealmId, after: u64, limit: usize) -> Read<'a, Vec<FeedRow>> {
        let realm = realm.clone();
        self.readers.read_of(realm.clone(), move |connection| {
            let mut statement = connection.prepare_cached(FEED)?;
            let mut rows =
                statement.query(params![integer(after), realm.as_str(), limit_of(limit)])?;
            let mut feed = Vec::new();
            let mut bytes = 0;
            while bytes < FEED_BYTES_MAX
                && let Some(row) = rows.next()?
            {
                let session = SessionId(bits(row, 1)?);
                let key = key(row, 3)?;
                let body: String = row.get(2)?;
                bytes += body.len();
                let plan = row.get::<_, Option<Arc<str>>>(7)?.map(PlanId);
                let cursor = count(row, 0)?;
                let owner = row.get(6)?;
                feed.push(FeedRow { cursor, session, key, owner, plan, body });
            }
            Ok(feed)
        })
    }

    fn feed_ahead<'a>(&'a self, realm: &'a RealmId, after: u64, max: usize) -> Read<'a, u64> {
        let realm = realm.clone();
        self.readers.read_of(realm.clone(), move |connection| {
            let params = params![integer(after), realm.as_str(), limit_of(max)];
            Ok(one(connection, FEED_AHEAD, params, |row| count(row, 0))?.unwrap_or(0))
        })
    }

    fn feed_end(&self) -> Read<'_, u64> {
        self.readers.read(|connection| {
            let sql = format!("SELECT {FEED_END}");
            Ok(one(connection, &sql, params![], |row| count(row, 0))?.unwrap_or(0))
        })
    }

    fn consumer<'a>(&'a self, realm: &'a RealmId, consumer: &'a str) -> Read<'a, u64> {
        let realm = realm.clone();
        let consumer = consumer.to_owned();
        self.readers.read_of(realm.clone(), move |connection| {
            consumers::place(connection, &realm, &consumer)
        })
    }

    fn begin_consumer<'a>(
        &'a self,
        realm: &'a RealmId,
        consumer: &'a str,
        start: FeedStart,
    ) -> Read<'a, u64> {
        let realm = realm.clone();
        let consumer = consumer.to_owned();
        let removed = self.removed.clone();
        self.writes.perform(move |connection| {
            removed.check(&realm)?;
            consumers::begin(connection, &realm, &consumer, start)
        })
    }

    fn consumers<'a>(
        &'a self,
        realm: &'a RealmId,
        prefix: &'a str,
    ) -> Read<'a, Vec<(String, u64)>> {
        let realm = realm.clone();
        let prefix = prefix.to_owned();
        self.readers
            .read_of(realm.clone(), move |connection| consumers::list(connection, &realm, &prefix))
    }

    fn advance<'a>(&'a self, realm: &'a RealmId, consumer: &'a str, cursor: u64) -> Read<'a, ()> {
        let realm = realm.clone();
        let consumer = consumer.to_owned();
        let removed = self.removed.clone();
        self.writes.perform(move |connection| {
            removed.check(&realm)?;
            consumers::advance(connection, &realm, &consumer, cursor)
        })
    }

    fn forget_consumer<'a>(&'a self, realm: &'a RealmId, consumer: &'a str) -> Read<'a, bool> {
        Box::pin(async move {
            if let Some(sink) = consumer.strip_prefix(SINKS) {
                deliveries::forget(&self.writes, realm, sink).await?;
            }
            let realm = realm.clone();
            let consumer = consumer.to_owned();
            let forget =
                move |connection: &Connection| consumers::forget(connection, &realm, &consumer);
            self.writes.perform(forget).await
        })
    }
}
