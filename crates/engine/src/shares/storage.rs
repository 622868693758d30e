//! How much runs and what is kept beside them have stored, of what their owners and realms may
//! store. It is measured now and then, and what runs write in between is added to that: who has
//! stored too much begins nothing new, and what was begun continues. Where nothing limits it,
//! nothing is measured.

use crate::refusal::{Quota, Refusal, RefusalCode, Result};
use crate::shares::RealmSource;
use crate::system::locks::lock;
use kernel::contracts::{Clock, Read, Spawn, Store, StoreError, StoredBytes};
use kernel::event::Event;
use kernel::identity::shares::{Portion, SharedLimit};
use kernel::limits::Limits;
use kernel::tool::call::Caller;
use kernel::values::ids::{Millis, RealmId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

/// How long a measurement holds.
const HOLDS_MS: u64 = 60_000;
/// How long it holds for who would be refused: something may have been removed since.
const HOLDS_REFUSED_MS: u64 = 1_000;

/// What is stored beside runs and counts in the same limit.
pub trait OtherStorage: Send + Sync {
    fn stored_bytes(&self) -> Read<'_, Vec<StoredBytes>>;
}

/// Storage that is used, and its limits.
pub(crate) struct Storage {
    limits: Arc<Limits>,
    /// None in local mode.
    realms: Option<Arc<dyn RealmSource>>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    spawn: Arc<dyn Spawn>,
    counted: Mutex<Measurement>,
    /// What else counts, if anything does.
    other: OnceLock<Arc<dyn OtherStorage>>,
}

#[derive(Default)]
struct Measurement {
    measured: Totals,
    /// Bytes written since the last measurement began.
    added: Totals,
    measured_at: Option<Millis>,
    is_measuring: bool,
}

/// How many bytes each has.
#[derive(Default)]
struct Totals(HashMap<BytesOwner, u64>);

/// Whose bytes they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum BytesOwner {
    All,
    Realm(RealmId),
    Subject(RealmId, Arc<str>),
}

/// How much can be stored, where that is limited.
struct Bounds {
    all: Option<u64>,
    /// Of the caller's realm and of the caller.
    share: Option<Portion>,
}

/// Whose share is used up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exceeded {
    Own,
    Others,
}

impl Storage {
    pub(crate) fn new(
        limits: Arc<Limits>,
        realms: Option<Arc<dyn RealmSource>>,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        spawn: Arc<dyn Spawn>,
    ) -> Self {
        let counted = Mutex::default();
        Self { limits, realms, store, clock, spawn, counted, other: OnceLock::new() }
    }

    /// Measures this, too. A server has one.
    pub(crate) fn count_also(&self, other: Arc<dyn OtherStorage>) {
        let _ = self.other.set(other);
    }

    /// Refuses a caller that begins something, where no more may be stored for it.
    pub(crate) fn check(self: &Arc<Self>, caller: &Caller) -> Result<()> {
        let Some(bounds) = self.bounds(&caller.realm) else { return Ok(()) };
        let exceeded = bounds.exceeded(caller, &lock(&self.counted));
        self.measure_after(if exceeded.is_some() { HOLDS_REFUSED_MS } else { HOLDS_MS });
        match exceeded {
            None => Ok(()),
            Some(exceeded) => Err(bounds.refusal(exceeded)),
        }
    }

    /// Adds what these events take.
    pub(crate) fn add(&self, realm: &RealmId, owner: Option<&Arc<str>>, events: &[Event]) {
        if self.bounds(realm).is_none() {
            return;
        }
        let bytes = events.iter().map(|event| event.fact.weight());
        let bytes = bytes.fold(0, u64::saturating_add);
        lock(&self.counted).added.add(realm, owner, bytes);
    }

    fn bounds(&self, realm: &RealmId) -> Option<Bounds> {
        let all = Some(self.limits.stored_bytes_max).filter(|max| *max > 0);
        let share = self.realms.as_ref().and_then(|realms| {
            let realms = realms.realms();
            let limit = SharedLimit::StoredBytes;
            let own = realms.0.get(realm).and_then(|settings| settings.limits.get(&limit));
            let is_limited = all.is_some() || own.is_some_and(|own| *own > 0);
            is_limited.then(|| realms.portion(realm, limit, &self.limits))
        });
        (all.is_some() || share.is_some()).then_some(Bounds { all, share })
    }

    /// Measures it if the last measurement began so long ago, and nobody does already.
    fn measure_after(self: &Arc<Self>, holds_ms: u64) {
        let now = self.clock.now();
        let begins = lock(&self.counted).begin(now, holds_ms);
        if begins {
            let storage = self.clone();
            self.spawn.task("storage", Box::pin(async move { storage.measure().await }));
        }
    }

    async fn stored_bytes(&self) -> std::result::Result<Vec<StoredBytes>, StoreError> {
        let mut rows = self.store.stored_bytes().await?;
        if let Some(other) = self.other.get() {
            rows.extend(other.stored_bytes().await?);
        }
        Ok(rows)
    }

    async fn measure(&self) {
        let found = self.stored_bytes().await;
        let mut counted = lock(&self.counted);
        counted.is_measuring = false;
        match found {
            Ok(rows) => counted.measured = Totals::of(&rows),
            Err(error) => tracing::warn!(%error, "it cannot be measured what is stored"),
        }
    }
}

impl Measurement {
    /// Whether a measurement begins now. What was added before is in it.
    fn begin(&mut self, now: Millis, holds_ms: u64) -> bool {
        // A clock that was set back holds nothing up.
        let holds = |at: Millis| at <= now && now < at.plus_ms(holds_ms);
        if self.is_measuring || self.measured_at.is_some_and(holds) {
            return false;
        }
        let added = std::mem::take(&mut self.added);
        for (whose, bytes) in added.0 {
            // Until it is measured.
            self.measured.add_one(whose, bytes);
        }
        self.measured_at = Some(now);
        self.is_measuring = true;
        true
    }

    fn bytes(&self, whose: &BytesOwner) -> u64 {
        let of = |totals: &Totals| totals.0.get(whose).copied().unwrap_or(0);
        of(&self.measured).saturating_add(of(&self.added))
    }
}

impl Totals {
    fn of(rows: &[StoredBytes]) -> Self {
        let mut totals = Self::default();
        for StoredBytes { realm, owner, bytes } in rows {
            totals.add(realm, owner.as_ref(), *bytes);
        }
        totals
    }

    fn add(&mut self, realm: &RealmId, owner: Option<&Arc<str>>, bytes: u64) {
        self.add_one(BytesOwner::All, bytes);
        self.add_one(BytesOwner::Realm(realm.clone()), bytes);
        if let Some(owner) = owner {
            self.add_one(BytesOwner::Subject(realm.clone(), owner.clone()), bytes);
        }
    }

    fn add_one(&mut self, whose: BytesOwner, bytes: u64) {
        let sum = self.0.entry(whose).or_default();
        *sum = sum.saturating_add(bytes);
    }
}

impl Bounds {
    fn exceeded(&self, caller: &Caller, counted: &Measurement) -> Option<Exceeded> {
        let exceeds = |whose: BytesOwner, max: u64| counted.bytes(&whose) >= max;
        let Caller { realm, subject, .. } = caller;
        if let Some(share) = self.share {
            if exceeds(BytesOwner::Subject(realm.clone(), subject.clone()), wide(share.caller)) {
                return Some(Exceeded::Own);
            }
            if exceeds(BytesOwner::Realm(realm.clone()), wide(share.realm)) {
                return Some(Exceeded::Others);
            }
        }
        self.all.filter(|max| exceeds(BytesOwner::All, *max)).map(|_| Exceeded::Others)
    }

    /// Only the caller's own numbers are shown: others' would reveal what they do.
    fn refusal(&self, exceeded: Exceeded) -> Refusal {
        let max = self.share.map(|share| wide(share.caller)).or(self.all).unwrap_or(u64::MAX);
        let quota = Quota { of: SharedLimit::StoredBytes.name(), max, window_s: None };
        let (message, hint) = match (self.share, exceeded) {
            (Some(_), Exceeded::Own) => (
                format!("the runs of this caller may store {max} bytes, and do"),
                "remove sessions that are not needed, or ask an operator for a larger share",
            ),
            (Some(_), Exceeded::Others) => (
                "nothing more can be stored at this moment".to_owned(),
                "send it again later, or ask an operator for more room",
            ),
            (None, _) => (
                format!("runs may store {max} bytes, and do"),
                "remove sessions that are not needed, or raise `stored_bytes_max` in [limits]",
            ),
        };
        Refusal::new(RefusalCode::StoredBytesMax(Box::new(quota)), message).hint(hint)
    }
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
