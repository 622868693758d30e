//! Recovery, at start and continuously: sessions that should move and that no one drives. And the
//! realms in which nothing moves any more.

use crate::command::Command;
use crate::handles::Admin;
use crate::refusal::Result;
use crate::shared::lock;
use crate::shares::storage::OtherStorage;
use kernel::contracts::{FeedRow, OpenSessions};
use kernel::values::caller::Caller;
use kernel::values::ids::{Millis, RealmId};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How often the server looks for old sessions.
const PRUNE_INTERVAL_MS: u64 = 60_000;
/// How soon recovery looks again when there was more to wake than it takes at once.
const LOOK_AGAIN_MS: u64 = 20;

/// Unfinished work that a starting server finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnfinishedRuns {
    /// Runs that resume by themselves.
    pub running: u64,
    /// Runs that wait for a person, or for rules about a failed step.
    pub waiting: u64,
    /// Runs that someone paused.
    pub paused: u64,
}

impl Admin<'_> {
    /// Unfinished runs of these realms. Must be read before recovery begins, because recovery moves
    /// them.
    pub async fn undone(self, realms: &[RealmId]) -> Result<UnfinishedRuns> {
        let mut undone = UnfinishedRuns::default();
        for realm in realms {
            for OpenSessions { status, count } in self.shared.store.open_sessions(realm).await? {
                match status.as_str() {
                    "running" => undone.running += count,
                    "waiting" | "stuck" => undone.waiting += count,
                    "paused" => undone.paused += count,
                    // Parked sessions are counted by their last status, too.
                    _ => {}
                }
            }
        }
        Ok(undone)
    }

    /// The feed of a realm after a cursor, for the server itself: no caller asks.
    pub async fn feed(self, realm: &RealmId, after: u64, limit: usize) -> Result<Vec<FeedRow>> {
        Ok(self.shared.store.feed(realm, after, limit).await?)
    }

    /// Where the feed ends now.
    pub async fn feed_end(self) -> Result<u64> {
        Ok(self.shared.store.feed_end().await?)
    }

    /// Counts what this stores in `stored_bytes_max`, too.
    pub fn count_storage_of(self, other: Arc<dyn OtherStorage>) {
        self.shared.storage.count_also(other);
    }

    /// Whether more may be stored for a caller. What is refused can be tried again once something
    /// was removed.
    pub fn may_store(self, caller: &Caller) -> Result<()> {
        self.shared.storage.check(caller)
    }

    /// Starts looking for sessions that should move, until the engine stops.
    pub fn keep_recovering(self) {
        let shared = self.shared.clone();
        let task = async move {
            while !shared.stopping.load(Ordering::Acquire) {
                let (found, woken) = shared.admin().recover_batch().await;
                let more = found >= shared.limits.recover_batch_max && woken > 0;
                let then = shared.admin().next_look(more).await;
                shared.clock.sleep_until(then).await;
            }
        };
        self.shared.spawn.critical_task("recover", Box::pin(task));
        self.keep_pruning();
    }

    /// Drives nothing in this realm any more, sends none of its events, notifies none of its
    /// webhooks and forgets its plans, agents and pipelines: it was removed. What is under way there
    /// is given up, and who waits for it is refused.
    pub fn close_realm(self, realm: &RealmId) {
        let shared = self.shared;
        shared.closed.close(realm.clone());
        for (key, sender) in lock(&shared.driven).iter() {
            if key.realm == *realm {
                // Its driver looks when it gets anything: one whose queue is full does.
                let _ = sender.try_send(Command::Wake);
            }
        }
        shared.outboxes.close(realm);
        shared.webhooks.close(realm);
        shared.catalog.forget(realm);
    }

    /// Removes what is old, in a task of its own: a large removal must not stop the clock of
    /// timers, asks and recovery.
    fn keep_pruning(self) {
        let shared = self.shared.clone();
        let task = async move {
            while !shared.stopping.load(Ordering::Acquire) {
                shared.admin().prune_expired().await;
                let then = shared.clock.now().plus_ms(PRUNE_INTERVAL_MS);
                shared.clock.sleep_until(then).await;
            }
        };
        self.shared.spawn.critical_task("prune", Box::pin(task));
    }

    /// When to look next: at the nearest time that a session waits for, and often anyway.
    async fn next_look(self, more: bool) -> Millis {
        let now = self.shared.clock.now();
        if more {
            return now.plus_ms(LOOK_AGAIN_MS);
        }
        let often = now.plus_ms(self.shared.limits.recover_interval_ms);
        let nearest = self.shared.store.next_wake(now).await.ok().flatten();
        nearest.map_or(often, |nearest| nearest.min(often))
    }

    /// Wakes the sessions that should move now and that no one drives; how many.
    pub async fn recover_once(self) -> usize {
        self.recover_batch().await.1
    }

    /// The same: how many should move, and how many of them were woken.
    async fn recover_batch(self) -> (usize, usize) {
        let shared = self.shared;
        let limit = shared.limits.recover_batch_max;
        let claimed = match shared.store.claim(shared.clock.now(), limit).await {
            Ok(claimed) => claimed,
            Err(error) => {
                tracing::warn!(%error, "sessions that should move cannot be listed");
                return (0, 0);
            }
        };
        let found = claimed.len();
        let mut woken = 0;
        for key in claimed {
            let driven = {
                let driven = lock(&shared.driven);
                driven.get(&key).is_some_and(|sender| !sender.is_closed())
            };
            if !driven && shared.send(&key, Command::Wake).is_ok() {
                woken += 1;
            }
        }
        (found, woken)
    }
}
