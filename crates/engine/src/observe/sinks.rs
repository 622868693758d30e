//! Configuration and state of event sinks, and how they are stopped.

use crate::system::locks::lock;
use kernel::contracts::SINKS;
use kernel::contracts::sink::{DeliveryRow, EventSink};
use kernel::tool::rules::Pattern;
use kernel::values::ids::RealmId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{Notify, watch};

/// Which events a sink receives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SinkRules {
    /// Event types; `None` for all.
    pub types: Option<Vec<Pattern>>,
    /// A new sink begins with the oldest event of the feed, instead of with new events only.
    pub from_start: bool,
}

impl SinkRules {
    pub(crate) fn takes(&self, kind: &str) -> bool {
        let fits = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.fits(kind));
        self.types.as_deref().is_none_or(fits)
    }
}

/// State of a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkState {
    pub name: String,
    /// `webhook`, for example; `unknown` if the sink is not configured.
    pub kind: String,
    /// Row of the feed up to which every event was delivered or given up: a restart resumes there.
    pub position: u64,
    /// Rows of its realm after `position`, counted up to 10,000.
    pub lag: u64,
    /// Events delivered since the start.
    pub delivered: u64,
    /// Events given up since the start.
    pub failed: u64,
    /// Events that wait for another attempt.
    pub retrying: u64,
    /// Paused, because its receiver answered that it is gone. Nothing is sent, and nothing is lost.
    pub gone: bool,
    /// Whether the settings have it. A sink that was removed from them keeps its position until it
    /// is forgotten: nothing is sent to it, and no event after its position is removed.
    pub configured: bool,
    /// Last error since the start.
    pub last_error: Option<String>,
}

/// One sink and its progress.
pub(crate) struct Outbox {
    pub(crate) realm: RealmId,
    pub(crate) name: String,
    /// Name of its consumer of the feed.
    pub(crate) consumer: String,
    pub(crate) sink: Arc<dyn EventSink>,
    pub(crate) rules: SinkRules,
    progress: Mutex<SinkProgress>,
    /// Events that waited for another attempt and that a person resent, as rows of the delivery
    /// log.
    resent: Mutex<Vec<DeliveryRow>>,
    nudge: Notify,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct SinkProgress {
    pub(crate) position: u64,
    pub(crate) delivered: u64,
    pub(crate) failed: u64,
    pub(crate) retrying: u64,
    pub(crate) gone: bool,
    pub(crate) last_error: Option<String>,
}

impl Outbox {
    pub(crate) fn new(
        realm: &RealmId,
        name: &str,
        sink: Arc<dyn EventSink>,
        rules: SinkRules,
    ) -> Self {
        Self {
            realm: realm.clone(),
            name: name.to_owned(),
            consumer: consumer(name),
            sink,
            rules,
            progress: Mutex::default(),
            resent: Mutex::default(),
            nudge: Notify::new(),
        }
    }

    /// A person resent an event that waits for another attempt, so that attempt is not needed.
    pub(crate) fn note_resent(&self, row: DeliveryRow) {
        lock(&self.resent).push(row);
        self.nudge.notify_one();
    }

    pub(crate) fn take_resent(&self) -> Vec<DeliveryRow> {
        std::mem::take(&mut *lock(&self.resent))
    }

    /// Resumes a paused sink.
    pub(crate) fn resume(&self) {
        self.progress().gone = false;
        self.nudge.notify_one();
    }

    /// Wakes the sender.
    pub(crate) fn wake(&self) {
        self.nudge.notify_one();
    }

    /// Waits until the sender is woken.
    pub(crate) async fn nudged(&self) {
        self.nudge.notified().await;
    }

    /// Must not be held across an await.
    pub(crate) fn progress(&self) -> MutexGuard<'_, SinkProgress> {
        lock(&self.progress)
    }

    pub(crate) fn state(&self, progress: SinkProgress, lag: u64) -> SinkState {
        SinkState::of(&self.name, self.sink.kind(), progress, lag)
    }
}

impl SinkState {
    /// State of a configured sink.
    fn of(name: &str, kind: &str, progress: SinkProgress, lag: u64) -> Self {
        let SinkProgress { position, delivered, failed, retrying, gone, last_error } = progress;
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            position,
            lag,
            delivered,
            failed,
            retrying,
            gone,
            configured: true,
            last_error,
        }
    }

    /// State of a sink that is not configured and only has a position.
    pub(crate) fn unconfigured(name: &str, position: u64, lag: u64) -> Self {
        let progress = SinkProgress { position, ..SinkProgress::default() };
        Self { configured: false, ..Self::of(name, "unknown", progress, lag) }
    }
}

/// Name of a sink's consumer of the feed.
pub(crate) fn consumer(sink: &str) -> String {
    format!("{SINKS}{sink}")
}

#[derive(Default)]
pub(crate) struct Outboxes {
    all: Mutex<BTreeMap<(RealmId, String), Arc<Outbox>>>,
    /// Configured sinks that are paused.
    resting: Mutex<BTreeSet<(RealmId, String)>>,
    /// Number of active senders.
    sending: AtomicUsize,
    stop: watch::Sender<bool>,
}

impl Outboxes {
    /// Adds a sink; false if its realm already has one of this name.
    pub(crate) fn insert(&self, outbox: Arc<Outbox>) -> bool {
        let name = (outbox.realm.clone(), outbox.name.clone());
        let mut all = lock(&self.all);
        let is_new = !all.contains_key(&name);
        if is_new {
            all.insert(name, outbox);
        }
        is_new
    }

    pub(crate) fn remove(&self, realm: &RealmId, name: &str) {
        lock(&self.all).remove(&(realm.clone(), name.to_owned()));
    }

    /// Removes all sinks of a closed realm.
    pub(crate) fn close(&self, realm: &RealmId) {
        lock(&self.resting).retain(|(of, _)| of != realm);
        lock(&self.all).retain(|(of, _), outbox| {
            let stays = of != realm;
            if !stays {
                outbox.wake();
            }
            stays
        });
    }

    pub(crate) fn get(&self, realm: &RealmId, name: &str) -> Option<Arc<Outbox>> {
        lock(&self.all).get(&(realm.clone(), name.to_owned())).cloned()
    }

    /// Notes a sink that is configured and that nothing is sent to.
    pub(crate) fn rest(&self, realm: &RealmId, name: &str) {
        lock(&self.resting).insert((realm.clone(), name.to_owned()));
    }

    /// Whether there is a sink of this name, sent to or not.
    pub(crate) fn is_configured(&self, realm: &RealmId, name: &str) -> bool {
        let name = (realm.clone(), name.to_owned());
        lock(&self.all).contains_key(&name) || lock(&self.resting).contains(&name)
    }

    /// All of them, by realm and name.
    pub(crate) fn list(&self) -> Vec<Arc<Outbox>> {
        lock(&self.all).values().cloned().collect()
    }

    /// Notes that one is being sent to, until what is given back is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> SendGuard {
        self.sending.fetch_add(1, Ordering::AcqRel);
        SendGuard(self.clone())
    }

    /// Whether one is being sent to.
    pub(crate) fn are_sending(&self) -> bool {
        self.sending.load(Ordering::Acquire) > 0
    }

    /// Lets what is on its way arrive, and nothing more begin.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Tells when it is time to stop.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }
}

/// A sink is being sent to as long as this lives.
pub(crate) struct SendGuard(Arc<Outboxes>);

impl Drop for SendGuard {
    fn drop(&mut self) {
        self.0.sending.fetch_sub(1, Ordering::AcqRel);
    }
}
