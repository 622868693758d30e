//! What is removed: a reader finds it, the writer looks again before it removes it.

use super::super::prune::{OldSession, Removed, Scope};
use super::super::trouble::Result;
use super::super::{prune, read, trim};
use crate::sqlite::SqliteStore;
use crate::sqlite::tables::closures;
use crate::sqlite::tables::consumers;
use kernel::contracts::{PrunedSlice, Read, Realms, Retention, Slice, StoreError, Trimmable};
use kernel::journal::trim::Trim;
use kernel::values::ids::{Known, Millis, SessionKey};
use rusqlite::Connection;

impl SqliteStore {
    /// Removes those that are still old.
    async fn remove_old(
        &self,
        old: Vec<OldSession>,
        before: Millis,
    ) -> Result<Removed, StoreError> {
        let (now, fences) = (self.clock.now(), self.fences.clone());
        let remove =
            move |connection: &Connection| prune::remove_sessions(connection, &old, before, now);
        let gone = move |removed: &Removed| removed.keys.iter().for_each(|key| fences.forget(key));
        self.writes.perform_then(remove, gone).await
    }

    /// Removes old keys whose runs are gone, slice by slice; how many.
    async fn prune_keys(
        &self,
        scope: &Scope,
        before: Millis,
        limit: usize,
    ) -> Result<u64, StoreError> {
        let mut rows = 0;
        loop {
            let scope = scope.clone();
            let look =
                move |connection: &Connection| prune::old_keys(connection, &scope, before, limit);
            let keys = self.readers.read(look).await?;
            if keys.is_empty() {
                return Ok(rows);
            }
            let remove = move |connection: &Connection| prune::remove_keys(connection, &keys);
            rows += self.writes.perform(remove).await?;
        }
    }
}

impl Retention for SqliteStore {
    fn remove<'a>(&'a self, key: &'a SessionKey, known: Known) -> Read<'a, ()> {
        let (key, now, moved) = (key.clone(), self.clock.now(), self.moved(key));
        let remove = move |connection: &Connection| -> Result<()> {
            let Some(session) = read::known_session(connection, &key, known)? else {
                return Ok(());
            };
            prune::remove_session(connection, &key.realm, session, now)
        };
        self.writes.perform_then(remove, move |()| moved())
    }

    fn remove_sent<'a>(&'a self, key: &'a SessionKey, known: Known) -> Read<'a, Option<String>> {
        let (key, now, moved) = (key.clone(), self.clock.now(), self.moved(key));
        let remove = move |connection: &Connection| -> Result<Option<String>> {
            let Some(session) = read::known_session(connection, &key, known)? else {
                return Ok(None);
            };
            let newest = prune::newest_row(connection, session)?;
            let behind = consumers::behind(connection, &key.realm, newest)?;
            if behind.is_none() {
                prune::remove_session(connection, &key.realm, session, now)?;
            }
            Ok(behind)
        };
        self.writes.perform_then(remove, move |_| moved())
    }

    fn prune<'a>(
        &'a self,
        realms: Realms<'a>,
        before: Millis,
        but: &'a [SessionKey],
        slice: Slice<u64>,
    ) -> Read<'a, PrunedSlice> {
        Box::pin(async move {
            let scope = Scope::of(realms);
            let of = scope.clone();
            let look =
                move |connection: &Connection| prune::old_sessions(connection, &of, before, slice);
            let mut old = self.readers.read(look).await?;
            let is_full = old.len() >= slice.limit;
            let next = old.last().filter(|_| is_full).map(|last| last.number as u64);
            old.retain(|session| !but.contains(&session.key));
            let mut removed = Removed::default();
            if !old.is_empty() {
                removed = self.remove_old(old, before).await?;
            }
            if next.is_none() {
                removed.rows += self.prune_keys(&scope, before, slice.limit).await?;
            }
            Ok(PrunedSlice { removed: removed.keys, rows: removed.rows, next })
        })
    }

    fn trimmable<'a>(
        &'a self,
        realms: Realms<'a>,
        before: Millis,
        slice: Slice<Option<(Millis, u64)>>,
    ) -> Read<'a, Vec<Trimmable>> {
        let scope = Scope::of(realms);
        self.readers.read(move |connection| trim::trimmable(connection, &scope, before, slice))
    }

    fn trim(&self, trim: Trim) -> Read<'_, Option<u64>> {
        let (now, moved) = (self.clock.now(), self.moved(&trim.key));
        let work = move |connection: &Connection| trim::trim(connection, &trim, now);
        self.writes.perform_then(work, move |_| moved())
    }

    fn sweep_closures(&self, limit: usize) -> Read<'_, (usize, u64)> {
        Box::pin(async move {
            let looked = self.readers.read(move |connection| closures::look(connection, limit));
            let looked = looked.await?;
            let count = looked.len();
            if count == 0 {
                return Ok((0, 0));
            }
            let known = self.specs.clone();
            let remove = move |connection: &Connection| {
                known.forget();
                closures::remove(connection, &looked)
            };
            Ok((count, self.writes.perform(remove).await?))
        })
    }
}
