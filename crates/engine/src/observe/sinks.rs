//! The sinks that events go to: what is said of each, how it stands, and how all of them end.

use crate::system::locks::lock;
use kernel::contracts::SINKS;
use kernel::contracts::sink::{DeliveryRow, EventSink};
use kernel::tool::rules::Pattern;
use kernel::values::ids::RealmId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{Notify, watch};

/// What goes to a sink.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SinkRules {
    /// Events of these types; all where nothing is said.
    pub types: Option<Vec<Pattern>>,
    /// Whether a sink that is new here begins with the oldest event there is; else it begins with
    /// what happens from now on.
    pub from_start: bool,
}

impl SinkRules {
    /// Whether events of this type go there.
    pub(crate) fn takes(&self, kind: &str) -> bool {
        let fits = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.fits(kind));
        self.types.as_deref().is_none_or(fits)
    }
}

/// How a sink stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkState {
    pub name: String,
    /// What kind of sink it is: `webhook`; `unknown` where it is not configured.
    pub kind: String,
    /// The row of the feed up to which everything is delivered or has failed: after a crash it
    /// resumes there.
    pub place: u64,
    /// How many rows of its realm are after that, counted up to 10,000.
    pub lag: u64,
    /// Events that it took since the start.
    pub delivered: u64,
    /// Events that it did not take since the start, and that are not tried any more.
    pub failed: u64,
    /// Events that are tried again, now.
    pub retrying: u64,
    /// Whether it rests: its receiver said that it is gone. Nothing is sent, and nothing is lost.
    pub gone: bool,
    /// Whether the settings have it. One that they do not have any more keeps its place until it is
    /// forgotten: nothing is sent to it, and nothing that it has not passed is removed.
    pub configured: bool,
    /// What went wrong last since the start.
    pub last_error: Option<String>,
}

/// One sink with how it stands.
pub(crate) struct Outbox {
    pub(crate) realm: RealmId,
    pub(crate) name: String,
    /// The name under which its place is kept.
    pub(crate) consumer: String,
    pub(crate) sink: Arc<dyn EventSink>,
    pub(crate) rules: SinkRules,
    standing: Mutex<SinkProgress>,
    /// Events that were waiting for another try and that a person has sent, as the log has them.
    resent: Mutex<Vec<DeliveryRow>>,
    nudge: Notify,
}

/// What changes while a sink is sent to.
#[derive(Debug, Clone, Default)]
pub(crate) struct SinkProgress {
    pub(crate) place: u64,
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
            standing: Mutex::default(),
            resent: Mutex::default(),
            nudge: Notify::new(),
        }
    }

    /// A person has sent an event that is tried again: there is no need to.
    pub(crate) fn note_resent(&self, row: DeliveryRow) {
        lock(&self.resent).push(row);
        self.nudge.notify_one();
    }

    /// What was noted since the last time.
    pub(crate) fn take_resent(&self) -> Vec<DeliveryRow> {
        std::mem::take(&mut *lock(&self.resent))
    }

    /// Resumes it, if it rests.
    pub(crate) fn resume(&self) {
        self.standing().gone = false;
        self.nudge.notify_one();
    }

    /// Lets who sends look whether there is still something to do.
    pub(crate) fn wake(&self) {
        self.nudge.notify_one();
    }

    /// Waits until something is noted, or it may continue.
    pub(crate) async fn nudged(&self) {
        self.nudge.notified().await;
    }

    /// How it stands. Never held while something is waited for.
    pub(crate) fn standing(&self) -> MutexGuard<'_, SinkProgress> {
        lock(&self.standing)
    }

    /// The same for a caller, with how many rows are ahead of it.
    pub(crate) fn state(&self, standing: SinkProgress, lag: u64) -> SinkState {
        SinkState::of(&self.name, self.sink.kind(), standing, lag)
    }
}

impl SinkState {
    /// How a sink stands that is configured.
    fn of(name: &str, kind: &str, standing: SinkProgress, lag: u64) -> Self {
        let SinkProgress { place, delivered, failed, retrying, gone, last_error } = standing;
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            place,
            lag,
            delivered,
            failed,
            retrying,
            gone,
            configured: true,
            last_error,
        }
    }

    /// How a sink stands that only has a place.
    pub(crate) fn unconfigured(name: &str, place: u64, lag: u64) -> Self {
        let standing = SinkProgress { place, ..SinkProgress::default() };
        Self { configured: false, ..Self::of(name, "unknown", standing, lag) }
    }
}

/// The name under which a sink's place is kept.
pub(crate) fn consumer(sink: &str) -> String {
    format!("{SINKS}{sink}")
}

/// All sinks.
#[derive(Default)]
pub(crate) struct Outboxes {
    all: Mutex<BTreeMap<(RealmId, String), Arc<Outbox>>>,
    /// Those that are configured and that nothing is sent to.
    resting: Mutex<BTreeSet<(RealmId, String)>>,
    /// How many are being sent to.
    sending: AtomicUsize,
    stop: watch::Sender<bool>,
}

impl Outboxes {
    /// Takes a sink in; false if its realm has one of this name already.
    pub(crate) fn insert(&self, outbox: Arc<Outbox>) -> bool {
        let name = (outbox.realm.clone(), outbox.name.clone());
        let mut all = lock(&self.all);
        let is_new = !all.contains_key(&name);
        if is_new {
            all.insert(name, outbox);
        }
        is_new
    }

    /// Lets go of a sink.
    pub(crate) fn remove(&self, realm: &RealmId, name: &str) {
        lock(&self.all).remove(&(realm.clone(), name.to_owned()));
    }

    /// Lets go of all sinks of a realm in which nothing moves any more.
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
