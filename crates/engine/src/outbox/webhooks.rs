//! Webhooks of runs: each gets what happens to its run, one event after the other, as its maker may
//! see it now. They share with sinks the wait before another try, the stop and the end with a realm.
//! A sink has one place in the feed for all that it gets, in a window that it reads ahead. A webhook
//! has a place of its own in its run's journal, which moves once an event was taken: there may be
//! thousands, and one that fails holds up neither another one nor retention. So each has a loop here,
//! which sleeps until a commit of its session wakes it, and reads nothing ahead.

use super::attempt::{STORE_RETRY_MS, wait_ms};
use crate::handles::Feed;
use crate::observe::counts::count;
use crate::observe::webhooks::{
    FindNotices, NoticeLimits, Notices, Recipient, WebhookEntry, WebhookParts, WebhookTurn,
};
use crate::refusal::{Refusal, RefusalKind};
use crate::shared::Shared;
use crate::system::panics::{PanicMessage, caught};
use crate::waiting::feed::Watch;
use futures::future::select;
use kernel::contracts::StoreError;
use kernel::contracts::sink::SinkError;
use kernel::contracts::webhooks::{LiveWebhook, Webhook, WebhookName, WebhookProgress, Webhooks};
use kernel::event::Fact;
use kernel::limits::Limits;
use kernel::tool::call::Caller;
use kernel::values::ids::Millis;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long a commit waits for others: each turn reads the run from its start, so that many commits
/// are one turn.
const LOOK_MS: u64 = 10;
/// After how long a turn gives others theirs: a run may tell more than a slow receiver takes.
const TURN_MAX: Duration = Duration::from_secs(5);
/// Why a webhook ends whose maker has lost its rights.
const NO_MAKER: &str = "who made it may do nothing any more";
/// Why one ends that cannot be read any more.
const UNREADABLE: &str = "what it was sealed with is gone";

/// When a webhook that there may be more for has its next turn.
enum NextTurn {
    /// When something is committed to its session.
    Commit(Watch),
    /// After so many milliseconds, whatever happens until then.
    After(u64),
}

/// Why a turn ends before all is told.
enum Stop {
    /// The webhook gets nothing more, for this reason.
    End(String),
    /// It has another turn after so many milliseconds.
    Again(u64),
}

impl Stop {
    /// The run cannot be read: it is gone, or its maker may not see it, or not at this moment.
    fn by(refusal: &Refusal) -> Self {
        match refusal.kind() {
            RefusalKind::NotFound | RefusalKind::Forbidden | RefusalKind::Gone => {
                Self::End(format!("its maker cannot read the run: {}", refusal.message))
            }
            _ => Self::Again(STORE_RETRY_MS),
        }
    }
}

impl Feed<'_> {
    /// Posts to the webhooks that are stored here until the engine stops: to those that there may be
    /// more for now, and to those that `notify` names.
    pub fn keep_notifying(self, store: Arc<dyn Webhooks>, find: FindNotices) {
        let shared = self.shared;
        shared.webhooks.begin(WebhookParts { store: store.clone(), find });
        let loading = load(Arc::downgrade(shared), store);
        shared.spawn.critical_task("webhooks", Box::pin(loading));
    }

    /// A webhook is stored that there may be something for, or is removed: it gets nothing more.
    pub fn notify(self, webhook: LiveWebhook) {
        let shared = self.shared;
        let LiveWebhook { name, next_at } = webhook;
        if let Some(entry) = shared.webhooks.enter(&name) {
            let first_ms = left_ms(&shared.limits, next_at, shared.clock.now());
            let task = until_stopped(Arc::downgrade(shared), name, entry, first_ms);
            shared.spawn.task("webhook", Box::pin(task));
        }
    }
}

/// Wakes those that the process before left.
async fn load(shared: Weak<Shared>, store: Arc<dyn Webhooks>) {
    loop {
        let Some(there) = shared.upgrade() else { return };
        if there.stopping.load(Ordering::Acquire) {
            return;
        }
        match store.live_webhooks().await {
            Ok(live) => {
                live.into_iter().for_each(|webhook| there.feed().notify(webhook));
                return;
            }
            Err(StoreError::Closed) => return,
            Err(error) => tracing::warn!(%error, "webhooks wait: they cannot be read"),
        }
        let later = there.clock.sleep_ms(STORE_RETRY_MS);
        drop(there);
        later.await;
    }
}

/// What is under way at a stop is posted again after the next start.
async fn until_stopped(
    shared: Weak<Shared>,
    name: WebhookName,
    entry: WebhookEntry,
    first_ms: u64,
) {
    let Some(mut stop) = shared.upgrade().map(|shared| shared.outboxes.stopping()) else { return };
    let turns = take_turns(shared, name, entry, first_ms);
    let stopped = async move {
        // It fails when the engine is gone.
        let _ = stop.wait_for(|stops| *stops).await;
    };
    select(pin!(stopped), pin!(turns)).await;
}

/// Gives a webhook one turn after the other, until there is no more for it. Between them it keeps no
/// engine alive.
async fn take_turns(shared: Weak<Shared>, name: WebhookName, entry: WebhookEntry, first_ms: u64) {
    let Some(clock) = shared.upgrade().map(|shared| shared.clock.clone()) else { return };
    let mut next = NextTurn::After(first_ms);
    loop {
        match next {
            NextTurn::Commit(mut watch) => {
                let committed = async {
                    watch.changed().await;
                    clock.sleep_ms(LOOK_MS).await;
                };
                select(pin!(entry.nudge.notified()), pin!(committed)).await;
            }
            NextTurn::After(ms) => {
                select(pin!(entry.nudge.notified()), clock.sleep_ms(ms)).await;
            }
        }
        let Ok(_permit) = entry.turns.acquire().await else { return };
        let Some(there) = shared.upgrade() else { return };
        let mut turn = Box::pin(turn(&there, &name));
        next = match caught(turn.as_mut()).await {
            Ok(Some(next)) => next,
            Ok(None) if there.webhooks.leave(&name) => return,
            Ok(None) => NextTurn::After(0),
            // It ends alone. Else it would end the process, and again after every start.
            Err(PanicMessage(why)) => {
                let WebhookName { run, id, .. } = &name;
                tracing::error!(%run, %id, why, "a webhook panicked: this is a defect, report it");
                NextTurn::After(there.limits.delivery_backoff_ms_max)
            }
        };
    }
}

/// Gives a webhook what there is for it; when it has its next turn, unless there is no more for it.
async fn turn(shared: &Arc<Shared>, name: &WebhookName) -> Option<NextTurn> {
    if shared.closed.has(&name.realm) {
        return None;
    }
    let WebhookParts { store, find } = shared.webhooks.parts()?;
    let stored = match store.webhooks_of(&name.realm, name.run).await {
        Ok(stored) => stored,
        Err(error) => {
            tracing::warn!(%error, "a webhook cannot be read");
            return Some(NextTurn::After(STORE_RETRY_MS));
        }
    };
    let webhook = stored.into_iter().find(|one| one.name == *name && one.standing.is_live)?;
    let notices = find()?;
    Turn { shared: shared.clone(), store: store.clone(), notices, webhook }.take().await
}

/// How long one that waited before a restart still waits. A clock that was set back meanwhile makes
/// it wait no longer than it would have.
fn left_ms(limits: &Limits, next_at: Option<Millis>, now: Millis) -> u64 {
    let left = next_at.map_or(0, |then| then.0.saturating_sub(now.0));
    let left = u64::try_from(left).unwrap_or(0);
    if left > limits.delivery_backoff_ms_max { 0 } else { left }
}

struct Turn {
    shared: Arc<Shared>,
    store: Arc<dyn Webhooks>,
    notices: Arc<dyn Notices>,
    webhook: Webhook,
}

impl Turn {
    async fn take(mut self) -> Option<NextTurn> {
        let again_ms = match self.tell().await {
            Ok(Some(watch)) => return Some(NextTurn::Commit(watch)),
            Ok(None) => self.end(None).await,
            Err(Stop::End(why)) => {
                let WebhookName { run, id, .. } = &self.webhook.name;
                tracing::warn!(%run, %id, why, "a webhook gets nothing more");
                count(&self.shared.counters.webhooks_ended);
                self.end(Some(why)).await
            }
            Err(Stop::Again(ms)) => Some(ms),
        };
        again_ms.map(NextTurn::After)
    }

    /// Posts all that there is; what wakes for more, unless the run is over.
    async fn tell(&mut self) -> Result<Option<Watch>, Stop> {
        let maker = Arc::new(self.maker()?);
        let run = self.webhook.name.run;
        let followed = self.shared.runs().follow_events(&maker, run).await;
        let mut events = followed.map_err(|refusal| Stop::by(&refusal))?;
        let turn = WebhookTurn { webhook: &self.webhook, maker: &maker, run: events.run() };
        let found = self.notices.recipient(turn);
        let mut recipient = found.ok_or_else(|| Stop::End(UNREADABLE.to_owned()))?;
        let began = self.shared.clock.elapsed();
        let mut is_over = false;
        while let Some(event) = events.try_next().await.map_err(|refusal| Stop::by(&refusal))? {
            is_over |= matches!(event.fact, Fact::RunEnded { .. });
            if event.seq <= self.webhook.standing.place {
                recipient.pass(&event);
                continue;
            }
            let notices = recipient.notices(&event).await;
            // Most events are none: a place behind them is not worth a write.
            if notices.is_empty() {
                continue;
            }
            // The notices of one event are posted again together: one of them alone is no progress,
            // and must not make the failures of the next one count from the start.
            for notice in notices {
                // A right that was withdrawn since the turn began counts as well.
                self.maker()?;
                if let Err(error) = self.post(&mut *recipient, notice).await {
                    return Err(self.failed(error).await);
                }
            }
            let standing =
                WebhookProgress { place: event.seq, is_live: true, ..WebhookProgress::default() };
            self.note(standing).await.map_err(Stop::Again)?;
            if self.shared.clock.elapsed().saturating_sub(began) > TURN_MAX {
                return Err(Stop::Again(0));
            }
        }
        Ok((!is_over).then(|| events.into_watch()))
    }

    fn maker(&self) -> Result<Caller, Stop> {
        let maker = self.notices.maker(&self.webhook.body);
        maker.ok_or_else(|| Stop::End(NO_MAKER.to_owned()))
    }

    async fn post(&self, recipient: &mut dyn Recipient, notice: String) -> Result<(), SinkError> {
        let bytes = notice.len();
        let NoticeLimits { bytes_max, .. } = self.notices.limits();
        if bytes > bytes_max {
            let WebhookName { run, id, .. } = &self.webhook.name;
            tracing::warn!(%run, %id, bytes, "an update is too large for a webhook, and left out");
            return Ok(());
        }
        let posted = recipient.post(notice).await;
        let counters = &self.shared.counters;
        count(match posted {
            Ok(()) => &counters.notices_taken,
            Err(_) => &counters.notices_failed,
        });
        posted
    }

    async fn failed(&mut self, error: SinkError) -> Stop {
        let shared = self.shared.clone();
        let attempts = self.webhook.standing.attempts.saturating_add(1);
        if error.is_gone || attempts >= self.notices.limits().attempts_max {
            self.webhook.standing.attempts = attempts;
            return Stop::End(error.message);
        }
        let ms = wait_ms(&shared.limits, attempts, &error, shared.entropy.bits());
        let WebhookName { run, id, .. } = &self.webhook.name;
        tracing::debug!(%run, %id, attempts, %error, "a webhook took nothing");
        let standing = WebhookProgress {
            attempts,
            next_at: Some(shared.clock.now().plus_ms(ms)),
            error: Some(error.message),
            ..self.webhook.standing.clone()
        };
        Stop::Again(self.note(standing).await.err().unwrap_or(ms))
    }

    /// It gets nothing more, and stays to be read. Where that cannot be written, it looks again after
    /// so many milliseconds.
    async fn end(&mut self, why: Option<String>) -> Option<u64> {
        let before = self.webhook.standing.clone();
        let error = why.or_else(|| before.error.clone());
        let standing = WebhookProgress { next_at: None, is_live: false, error, ..before };
        self.note(standing).await.err()
    }

    /// Writes how far it has got. Where that cannot be, or where it is another one by now, it looks
    /// again after so many milliseconds.
    async fn note(&mut self, standing: WebhookProgress) -> Result<(), u64> {
        let Webhook { name, stamp, .. } = &self.webhook;
        let noted = self.store.note_webhook(name, *stamp, &standing).await;
        match noted {
            Ok(true) => {
                self.webhook.standing = standing;
                Ok(())
            }
            // It was removed, or made again.
            Ok(false) => Err(0),
            Err(error) => {
                tracing::warn!(%error, "how far a webhook has got cannot be written");
                Err(STORE_RETRY_MS)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_makes_no_webhook_wait_longer() {
        let limits = Limits::default();
        let left = |then: i64| left_ms(&limits, Some(Millis(then)), Millis(100));
        assert_eq!((left(99), left(100), left(101)), (0, 0, 1));
        assert_eq!((left(100 + 300_000), left(100 + 300_001)), (300_000, 0));
        assert_eq!(left_ms(&limits, None, Millis(100)), 0);
    }
}
