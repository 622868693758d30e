//! The journal, and who drives what.

use super::super::{append, read};
use super::SqliteStore;
use crate::sqlite::tables::history;
use kernel::contracts::{HistoryFilter, Journal, Loaded, Ownership, Page, Paged, Read, Ticket};
use kernel::journal::projection::{Append, HistoryItem, Parked};
use kernel::values::ids::{ContentHash, Known, Millis, RealmId, SessionKey};
use rusqlite::Connection;

impl Journal for SqliteStore {
    fn load<'a>(&'a self, key: &'a SessionKey, known: Option<Known>) -> Read<'a, Loaded> {
        Box::pin(async move {
            // Before the read: appends that are still queued must not get in after it.
            self.writes.shared().poison().loaded(key);
            if known.is_some_and(|known| self.fences.has(key, known)) {
                return Ok(Loaded::Unchanged);
            }
            let key = key.clone();
            self.readers.read(move |connection| read::load(connection, &key, known)).await
        })
    }

    fn append(&self, append: Append) -> Ticket {
        self.writes.append(append)
    }

    fn closure<'a>(
        &'a self,
        realm: &'a RealmId,
        hash: &'a ContentHash,
    ) -> Read<'a, Option<String>> {
        let (realm, hash) = (realm.clone(), hash.clone());
        self.readers.read(move |connection| read::closure(connection, &realm, &hash))
    }

    fn tool_spec<'a>(
        &'a self,
        realm: &'a RealmId,
        hash: &'a ContentHash,
    ) -> Read<'a, Option<String>> {
        let (realm, hash) = (realm.clone(), hash.clone());
        self.readers.read(move |connection| read::tool_spec(connection, &realm, &hash))
    }

    fn history<'a>(
        &'a self,
        key: &'a SessionKey,
        only: HistoryFilter,
        page: &'a Page,
    ) -> Read<'a, Paged<HistoryItem>> {
        let (key, page) = (key.clone(), page.clone());
        self.readers.read(move |connection| match read::session_number(connection, &key)? {
            Some(session) => history::history(connection, session, &only, &page),
            None => Ok(Paged { items: Vec::new(), next_cursor: None }),
        })
    }

    fn events<'a>(
        &'a self,
        key: &'a SessionKey,
        after: u64,
        limit: usize,
    ) -> Read<'a, Vec<(u64, String)>> {
        let key = key.clone();
        self.readers.read(move |connection| read::events(connection, &key, after, limit))
    }
}

impl Ownership for SqliteStore {
    fn claim(&self, now: Millis, limit: usize) -> Read<'_, Vec<SessionKey>> {
        Box::pin(async move {
            // Recovery comes by all the time, and a claim is worth what the lock is worth.
            self.check_lock()?;
            let node = self.node;
            self.readers.read(move |connection| read::due(connection, now, node, limit)).await
        })
    }

    fn park<'a>(&'a self, key: &'a SessionKey, parked: Parked) -> Read<'a, ()> {
        let (key, moved) = (key.clone(), self.moved(key));
        let park = move |connection: &Connection| append::park(connection, &key, &parked);
        self.writes.perform_then(park, move |()| moved())
    }

    fn next_wake(&self, after: Millis) -> Read<'_, Option<Millis>> {
        self.readers.read(move |connection| read::next_wake(connection, after))
    }
}
