//! The loop that posts: it reads the feed of every realm that has a webhook, gives each webhook its
//! turn when something happened in its session, and lets none hold up another.

use super::agenda::{Agenda, NextAttempt};
use super::turn::{FinishedTurn, turn};
use crate::push_parts::PushParts;
use crate::state::{A2a, Shared};
use engine::{Refusal, Watch};
use futures::future::{BoxFuture, FutureExt, poll_fn};
use futures::stream::{FuturesUnordered, StreamExt};
use kernel::contracts::webhooks::WebhookName;
use kernel::contracts::{Clock, Spawn};
use kernel::values::ids::{Millis, RealmId};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use tokio::sync::watch;

/// How many webhooks have their turn at the same time.
const TURNS_MAX: usize = 32;
/// How many rows of the feed are read at once.
const ROWS_PER_READ: usize = 256;
/// The shortest time between two looks at the feed: many commits are one look.
const LOOK_MS: u64 = 10;
/// How soon a store that failed is asked again.
const STORE_RETRY_MS: u64 = 1_000;
/// The longest sleep: a server that is gone is noticed by then.
const SLEEP_MS: u64 = 60_000;

/// Posts to webhooks until the server stops, where it has them.
pub fn keep(a2a: &Shared, spawn: &dyn Spawn) {
    let Some(parts) = a2a.push.clone() else { return };
    let clock = a2a.doors.engine.clock().clone();
    let keeper = Keeper {
        a2a: Arc::downgrade(a2a),
        commits: a2a.doors.engine.feed().watch_all(),
        stop: parts.stopping(),
        parts,
        now: clock.now(),
        clock,
        is_loaded: false,
        agenda: Agenda::default(),
        places: BTreeMap::new(),
        look_at: None,
        flights: FuturesUnordered::new(),
    };
    spawn.critical_task("a2a-push", Box::pin(keeper.run()));
}

struct Keeper {
    /// What posts keeps no server alive.
    a2a: Weak<A2a>,
    parts: Arc<PushParts>,
    clock: Arc<dyn Clock>,
    commits: Watch,
    stop: watch::Receiver<bool>,
    /// Whether what the process before left is on the agenda.
    is_loaded: bool,
    agenda: Agenda,
    /// How far the feed is read, of each realm that has a webhook.
    places: BTreeMap<RealmId, u64>,
    /// When it is read next; none while there is no more in it.
    look_at: Option<Millis>,
    flights: FuturesUnordered<BoxFuture<'static, FinishedTurn>>,
    /// What the clock said when it was looked at last.
    now: Millis,
}

/// What the loop waits for.
enum WakeReason {
    Landed(FinishedTurn),
    /// Something was committed: there may be more in the feed.
    Commit,
    /// It is time for something, or there are new webhooks, or the server stops.
    Look,
}

impl Keeper {
    /// What is under way at a stop is posted again after the next start.
    async fn run(mut self) {
        while !self.is_stopping() {
            let Some(a2a) = self.a2a.upgrade() else { return };
            self.mind_the_clock();
            if let Err(refusal) = self.read(&a2a).await {
                tracing::warn!(why = refusal.message, "webhooks wait: the feed cannot be read");
                self.look_at = Some(self.clock.now().plus_ms(STORE_RETRY_MS));
            }
            self.launch(&a2a);
            drop(a2a);
            match self.wait().await {
                WakeReason::Landed(FinishedTurn { name, after }) => {
                    self.agenda.landed(&name, after)
                }
                WakeReason::Commit if self.look_at.is_none() => {
                    self.look_at = Some(self.clock.now().plus_ms(LOOK_MS));
                }
                WakeReason::Commit | WakeReason::Look => {}
            }
        }
    }

    fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// A clock that is set back must hold up nothing: all times here move with it.
    fn mind_the_clock(&mut self) {
        let now = self.clock.now();
        let back_ms = self.now.0 - now.0;
        if back_ms > 0 {
            self.look_at = self.look_at.map(|then| Millis(then.0 - back_ms));
            self.agenda.set_back(back_ms);
        }
        self.now = now;
    }

    /// Takes in new webhooks, and what happened since in the sessions of all.
    async fn read(&mut self, a2a: &A2a) -> Result<(), Refusal> {
        if !self.is_loaded && self.look_at.is_none_or(|then| then <= self.clock.now()) {
            let live = self.parts.store.live_webhooks().await?;
            live.into_iter().for_each(|one| self.agenda.add(one));
            self.is_loaded = true;
        }
        self.parts.take().into_iter().for_each(|one| self.agenda.add(one));
        self.parts.take_gone().iter().for_each(|realm| self.agenda.drop_realm(realm));
        let realms = self.agenda.realms();
        self.places.retain(|realm, _| realms.contains(realm));
        for realm in &realms {
            // A webhook looks at its task when it begins: only what follows wakes it.
            if !self.places.contains_key(realm) {
                let end = a2a.doors.engine.admin().feed_end().await?;
                self.places.insert(realm.clone(), end);
            }
        }
        if self.look_at.is_none_or(|then| then > self.clock.now()) {
            return Ok(());
        }
        self.look_at = None;
        for realm in &realms {
            if !self.look(a2a, realm).await? {
                self.look_at = Some(self.clock.now());
            }
        }
        Ok(())
    }

    /// Reads some of the feed of a realm; whether that is all there is.
    async fn look(&mut self, a2a: &A2a, realm: &RealmId) -> Result<bool, Refusal> {
        let after = self.places.get(realm).copied().unwrap_or_default();
        let rows = a2a.doors.engine.admin().feed(realm, after, ROWS_PER_READ).await?;
        let Some(last) = rows.last().map(|row| row.cursor) else { return Ok(true) };
        rows.iter().for_each(|row| self.agenda.changed(row.session));
        self.places.insert(realm.clone(), last);
        Ok(false)
    }

    fn launch(&mut self, a2a: &Shared) {
        self.parts.counts.set_live(self.agenda.len());
        self.agenda.wake(self.clock.now());
        let later = self.clock.now().plus_ms(a2a.doors.limits().delivery_backoff_ms_max);
        while self.flights.len() < TURNS_MAX
            && let Some(name) = self.agenda.next()
        {
            let turn = turn(a2a.clone(), self.parts.clone(), name.clone());
            self.flights.push(Box::pin(contained(turn, name, later)));
        }
    }

    async fn wait(&mut self) -> WakeReason {
        let soon = self.clock.now().plus_ms(SLEEP_MS);
        let times = [self.look_at, self.agenda.next_wake()];
        let then = times.into_iter().flatten().chain([soon]).min().unwrap_or(soon);
        let mut time = self.clock.sleep_until(then);
        let Self { flights, commits, stop, parts, agenda, look_at, .. } = self;
        // What happens where no webhook waits for it is of no concern, and before a look that is
        // due anyway it changes nothing: commits come by the thousand.
        let is_watching = !agenda.is_empty() && look_at.is_none();
        let mut made = pin!(parts.woken());
        let mut commit = pin!(commits.changed());
        let mut stopped = pin!(stop.changed());
        poll_fn(|context| {
            if let Poll::Ready(Some(landed)) = flights.poll_next_unpin(context) {
                return Poll::Ready(WakeReason::Landed(landed));
            }
            let is_time = time.poll_unpin(context).is_ready()
                || stopped.as_mut().poll(context).is_ready()
                || made.as_mut().poll(context).is_ready();
            if is_time {
                return Poll::Ready(WakeReason::Look);
            }
            match is_watching {
                true => commit.as_mut().poll(context).map(|()| WakeReason::Commit),
                false => Poll::Pending,
            }
        })
        .await
    }
}

/// A turn that panics ends alone. Else it would end the process, and again after every start: its
/// webhook would still be there.
async fn contained(
    turn: impl Future<Output = FinishedTurn>,
    name: WebhookName,
    later: Millis,
) -> FinishedTurn {
    let ended = AssertUnwindSafe(turn).catch_unwind().await;
    ended.unwrap_or_else(|_| {
        let WebhookName { run, id, .. } = &name;
        tracing::error!(%run, %id, "the turn of a webhook panicked: this is a defect, report it");
        FinishedTurn { name, after: NextAttempt::Again(later) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::lazy;
    use kernel::values::ids::RunId;

    #[test]
    fn a_turn_that_panics_ends_alone_and_its_webhook_waits() {
        let name = WebhookName { realm: "r".into(), run: RunId(1), id: "one".into() };
        let panicking = lazy(|_| -> FinishedTurn { panic!("on purpose") });
        let landed = contained(panicking, name.clone(), Millis(9)).now_or_never().unwrap();
        assert_eq!((landed.name, landed.after), (name, NextAttempt::Again(Millis(9))));
    }
}
