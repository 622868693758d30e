//! Retention: a reader finds what can be removed, and the writer checks again before it removes it.

use super::super::error::Result;
use super::super::large_removal::{self, RemovedSlice};
use super::super::prune::{OldSession, RemovedSessions, Scope};
use super::super::{prune, read, trim};
use crate::sqlite::SqliteStore;
use crate::sqlite::tables::closures;
use crate::sqlite::tables::consumers;
use kernel::contracts::{PrunedSlice, Read, RealmSet, Retention, Slice, StoreError, Trimmable};
use kernel::journal::trim::Trim;
use kernel::values::ids::{Millis, SessionKey, SessionVersion};
use rusqlite::Connection;

impl SqliteStore {
    /// Removes those that are still old, with all rows of those that were too large for one commit.
    async fn remove_old(
        &self,
        old: Vec<OldSession>,
        before: Millis,
    ) -> Result<RemovedSessions, StoreError> {
        let now = self.clock.now();
        let fences = self.fences.clone();
        let remove =
            move |connection: &Connection| prune::remove_sessions(connection, &old, before, now);
        let gone =
            move |removed: &RemovedSessions| removed.keys.iter().for_each(|key| fences.forget(key));
        let mut removed = self.writes.perform_then(remove, gone).await?;
        let rows = self.remove_hidden(&removed.hidden).await;
        removed.rows += rows;
        Ok(removed)
    }

    /// Removes the rows of hidden sessions, in commits between which others get theirs; how many.
    /// No one finds these sessions any more, so an error does not undo their removal: it is logged,
    /// and what stays is removed another time.
    pub(super) async fn remove_hidden(&self, sessions: &[i64]) -> u64 {
        let mut rows = 0;
        for session in sessions.iter().copied() {
            loop {
                let remove =
                    move |connection: &Connection| large_removal::remove_slice(connection, session);
                match self.writes.perform(remove).await {
                    Ok(RemovedSlice { rows: more, is_last }) => {
                        rows += more;
                        if is_last {
                            break;
                        }
                    }
                    Err(error) => {
                        tracing::warn!(%error, "rows of a removed session stay for now");
                        return rows;
                    }
                }
            }
        }
        rows
    }

    /// The same for those that a process left when it ended, or a caller that did not wait.
    async fn remove_left(&self) -> Result<u64, StoreError> {
        let left = self.readers.read(large_removal::left).await?;
        Ok(self.remove_hidden(&left).await)
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
    fn remove<'a>(&'a self, key: &'a SessionKey, known: SessionVersion) -> Read<'a, ()> {
        let now = self.clock.now();
        let moved = self.moved(key);
        let key = key.clone();
        let remove = move |connection: &Connection| -> Result<Option<i64>> {
            let Some(session) = read::known_session(connection, &key, known)? else {
                return Ok(None);
            };
            prune::remove_session(connection, &key.realm, session, now)
        };
        let removed = self.writes.perform_then(remove, move |_| moved());
        Box::pin(async move {
            let hidden = removed.await?;
            self.remove_hidden(hidden.as_slice()).await;
            Ok(())
        })
    }

    fn remove_sent<'a>(
        &'a self,
        key: &'a SessionKey,
        known: SessionVersion,
    ) -> Read<'a, Option<String>> {
        let now = self.clock.now();
        let moved = self.moved(key);
        let key = key.clone();
        let remove = move |connection: &Connection| -> Result<(Option<String>, Option<i64>)> {
            let Some(session) = read::known_session(connection, &key, known)? else {
                return Ok((None, None));
            };
            let newest = prune::newest_row(connection, session)?;
            let behind = consumers::behind(connection, &key.realm, newest)?;
            if behind.is_some() {
                return Ok((behind, None));
            }
            Ok((None, prune::remove_session(connection, &key.realm, session, now)?))
        };
        let removed = self.writes.perform_then(remove, move |_| moved());
        Box::pin(async move {
            let (behind, hidden) = removed.await?;
            self.remove_hidden(hidden.as_slice()).await;
            Ok(behind)
        })
    }

    fn prune<'a>(
        &'a self,
        realms: RealmSet<'a>,
        before: Millis,
        but: &'a [SessionKey],
        slice: Slice<u64>,
    ) -> Read<'a, PrunedSlice> {
        Box::pin(async move {
            let left = if slice.after == 0 { self.remove_left().await? } else { 0 };
            let scope = Scope::of(realms);
            let of = scope.clone();
            let look =
                move |connection: &Connection| prune::old_sessions(connection, &of, before, slice);
            let mut old = self.readers.read(look).await?;
            let is_full = old.len() >= slice.limit;
            let next = old.last().filter(|_| is_full).map(|last| last.number as u64);
            old.retain(|session| !but.contains(&session.key));
            let mut removed = RemovedSessions::default();
            if !old.is_empty() {
                removed = self.remove_old(old, before).await?;
            }
            if next.is_none() {
                removed.rows += self.prune_keys(&scope, before, slice.limit).await?;
            }
            Ok(PrunedSlice { removed: removed.keys, rows: removed.rows + left, next })
        })
    }

    fn trimmable<'a>(
        &'a self,
        realms: RealmSet<'a>,
        before: Millis,
        slice: Slice<Option<(Millis, u64)>>,
    ) -> Read<'a, Vec<Trimmable>> {
        let scope = Scope::of(realms);
        self.readers.read(move |connection| trim::trimmable(connection, &scope, before, slice))
    }

    fn trim(&self, trim: Trim) -> Read<'_, Option<u64>> {
        let now = self.clock.now();
        let moved = self.moved(&trim.key);
        let work = move |connection: &Connection| trim::trim(connection, &trim, now);
        self.writes.perform_then(work, move |_| moved())
    }

    fn sweep_closures(&self, limit: usize) -> Read<'_, (usize, u64)> {
        Box::pin(async move {
            // Where sessions stay for ever, nothing is pruned, and this comes by all the same.
            self.remove_left().await?;
            let looked = self.readers.read(move |connection| closures::look(connection, limit));
            let looked = looked.await?;
            let count = looked.len();
            if count == 0 {
                return Ok((0, 0));
            }
            let remove = move |connection: &Connection| closures::remove(connection, &looked);
            Ok((count, self.writes.perform(remove).await?))
        })
    }
}
