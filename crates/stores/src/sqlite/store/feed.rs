//! The feed and its consumers.

use super::super::read;
use super::SqliteStore;
use crate::sqlite::tables::consumers;
use crate::sqlite::tables::deliveries;
use kernel::contracts::{Feed, FeedRow, FeedStart, Read, SINKS};
use kernel::values::ids::RealmId;
use rusqlite::Connection;

impl Feed for SqliteStore {
    fn feed<'a>(&'a self, realm: &'a RealmId, after: u64, limit: usize) -> Read<'a, Vec<FeedRow>> {
        let realm = realm.clone();
        self.readers.read(move |connection| read::feed(connection, &realm, after, limit))
    }

    fn feed_end(&self) -> Read<'_, u64> {
        self.readers.read(read::feed_end)
    }

    fn consumer<'a>(&'a self, realm: &'a RealmId, consumer: &'a str) -> Read<'a, u64> {
        let (realm, consumer) = (realm.clone(), consumer.to_owned());
        self.readers.read(move |connection| consumers::place(connection, &realm, &consumer))
    }

    fn begin_consumer<'a>(
        &'a self,
        realm: &'a RealmId,
        consumer: &'a str,
        start: FeedStart,
    ) -> Read<'a, u64> {
        let (realm, consumer) = (realm.clone(), consumer.to_owned());
        self.writes
            .perform(move |connection| consumers::begin(connection, &realm, &consumer, start))
    }

    fn consumers<'a>(
        &'a self,
        realm: &'a RealmId,
        prefix: &'a str,
    ) -> Read<'a, Vec<(String, u64)>> {
        let (realm, prefix) = (realm.clone(), prefix.to_owned());
        self.readers.read(move |connection| consumers::list(connection, &realm, &prefix))
    }

    fn advance<'a>(&'a self, realm: &'a RealmId, consumer: &'a str, cursor: u64) -> Read<'a, ()> {
        let (realm, consumer) = (realm.clone(), consumer.to_owned());
        self.writes
            .perform(move |connection| consumers::advance(connection, &realm, &consumer, cursor))
    }

    fn forget_consumer<'a>(&'a self, realm: &'a RealmId, consumer: &'a str) -> Read<'a, bool> {
        Box::pin(async move {
            if let Some(sink) = consumer.strip_prefix(SINKS) {
                deliveries::forget(&self.writes, realm, sink).await?;
            }
            let (realm, consumer) = (realm.clone(), consumer.to_owned());
            let forget =
                move |connection: &Connection| consumers::forget(connection, &realm, &consumer);
            self.writes.perform(forget).await
        })
    }
}
