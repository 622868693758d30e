//! The receiver of events: a sink with a will of its own, and the list of what it took, which
//! is outside the engine and survives every crash of it. In the end that list is held against the
//! journals: every event that they tell is there, in order, and nothing else is.

use crate::sim::machine::archive::Archive;
use crate::sim::machine::power::{Point, Power};
use crate::sim::rng::Rng;
use futures::future::BoxFuture;
use kernel::contracts::cloud::{CloudEvent, cloud_events};
use kernel::contracts::sink::{
    Deliveries, DeliveryFilter, DeliveryReceipt, DeliveryRow, EventSink, SinkError,
};
use kernel::contracts::{Clock, FeedRow, ListPage, PageRequest, Read, Store, StoreError};
use kernel::event::Event;
use kernel::journal::projection::SessionRow;
use kernel::limits::Limits;
use kernel::values::ids::{RealmId, SessionId, SessionKey};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The sink's name.
pub const NAME: &str = "sim";
/// In so many cases of a hundred a delivery fails.
const FAILS: u64 = 30;
/// More events than any session of a simulation has.
const EVENTS_MAX: usize = 100_000;
/// How many rows too far the place is kept where that fault is planted.
const AHEAD: u64 = 2;

/// What was sent, outside.
#[derive(Debug)]
pub struct Receiver {
    rng: Mutex<Rng>,
    lanes: usize,
    batch: usize,
    /// Nothing goes wrong any more.
    calm: AtomicBool,
    taken: Mutex<Vec<Taken>>,
}

/// An event that arrived.
#[derive(Debug)]
struct Taken {
    session: SessionId,
    id: String,
    text: String,
}

/// What becomes of a delivery.
struct Fate {
    /// How many of its events arrive.
    arrive: usize,
    /// Whether its sender hears of that.
    is_heard: bool,
    /// How long it takes before they arrive, and after.
    before_ms: u64,
    after_ms: u64,
}

impl Receiver {
    /// One with these whims: how many it takes at the same time, and at once, is one of them.
    pub fn new(mut rng: Rng) -> Self {
        let lanes = rng.pick(&[1, 2, 5]).copied().unwrap_or(1);
        let batch = rng.pick(&[1, 3]).copied().unwrap_or(1);
        Self {
            rng: Mutex::new(rng),
            lanes,
            batch,
            calm: AtomicBool::new(false),
            taken: Mutex::default(),
        }
    }

    /// The limits of a simulation with a sink: short waits, small windows, and nothing is given up.
    pub fn limits(&self, usual: Limits) -> Limits {
        let window = locked(&self.rng).pick(&[1, 4, 1_024]).copied();
        Limits {
            outbox_window_max: window.unwrap_or(usual.outbox_window_max),
            delivery_timeout_ms: 3_000,
            delivery_attempts_max: u32::MAX,
            delivery_backoff_ms: 200,
            delivery_backoff_ms_max: 4_000,
            ..usual
        }
    }

    /// From now on everything is taken at once.
    pub fn calm_down(&self) {
        self.calm.store(true, Ordering::SeqCst);
    }

    /// How many events arrived, and how many of them again.
    pub fn counts(&self) -> (usize, usize) {
        let taken = locked(&self.taken);
        let once: BTreeSet<&str> = taken.iter().map(|taken| taken.id.as_str()).collect();
        (once.len(), taken.len() - once.len())
    }

    /// What becomes of a delivery of so many events.
    fn fate(&self, events: usize) -> Fate {
        if self.calm.load(Ordering::SeqCst) {
            return Fate { arrive: events, is_heard: true, before_ms: 0, after_ms: 0 };
        }
        let mut rng = locked(&self.rng);
        let before_ms = latency(&mut rng);
        let after_ms = latency(&mut rng);
        let fails = rng.chance(FAILS);
        let arrive = if fails { rng.below(events as u64 + 1) as usize } else { events };
        Fate { arrive, is_heard: !fails, before_ms, after_ms }
    }

    fn take(&self, events: &[CloudEvent]) {
        let taken = |event: &CloudEvent| Taken {
            session: event.session,
            id: event.id.clone(),
            text: event.to_json(),
        };
        locked(&self.taken).extend(events.iter().map(taken));
    }

    /// What is wrong with what arrived, when all that there is has been sent.
    pub async fn judge(
        &self,
        store: &dyn Store,
        realm: &RealmId,
        sessions: &[SessionRow],
        archive: &Archive,
    ) -> Result<Vec<String>, StoreError> {
        let mut told: BTreeMap<SessionId, Vec<CloudEvent>> = BTreeMap::new();
        for (id, key) in archive.sessions(realm) {
            told.insert(id, tells(id, &key, &archive.whole(id, &[])));
        }
        for row in sessions {
            let texts = store.events(&row.key, 0, EVENTS_MAX).await?;
            let left =
                texts.iter().filter_map(|(_, text)| serde_json::from_str::<Event>(text).ok());
            let left: Vec<Event> = left.collect();
            told.insert(row.id, tells(row.id, &row.key, &archive.whole(row.id, &left)));
        }
        let taken = locked(&self.taken);
        let mut wrong = Vec::new();
        for taken in taken.iter().filter(|taken| !told.contains_key(&taken.session)) {
            wrong.push(format!("event {} arrived and its session is not there", taken.id));
        }
        for (session, told) in &told {
            let arrived: Vec<&Taken> =
                taken.iter().filter(|taken| taken.session == *session).collect();
            wrong.extend(compare(*session, told, &arrived));
        }
        Ok(wrong)
    }
}

/// What arrived of a session, held against what its journal tells.
fn compare(session: SessionId, told: &[CloudEvent], arrived: &[&Taken]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    let first = arrived.iter().filter(|taken| seen.insert(taken.id.as_str()));
    let first: Vec<&str> = first.map(|taken| taken.id.as_str()).collect();
    let expected: Vec<&str> = told.iter().map(|event| event.id.as_str()).collect();
    if first != expected {
        wrong.push(format!("{session} tells {expected:?}, and this arrived: {first:?}"));
    }
    let texts: BTreeMap<&str, String> =
        told.iter().map(|event| (event.id.as_str(), event.to_json())).collect();
    for taken in arrived {
        if texts.get(taken.id.as_str()).is_some_and(|text| *text != taken.text) {
            wrong.push(format!("event {} arrived as {}", taken.id, taken.text));
        }
    }
    wrong
}

/// What a journal tells, in order.
fn tells(session: SessionId, key: &SessionKey, events: &[Event]) -> Vec<CloudEvent> {
    let body = serde_json::to_string(events).unwrap_or_default();
    let key = key.clone();
    let owner = None;
    let plan = None;
    let row = FeedRow { cursor: 0, session, key, owner, plan, body };
    cloud_events(&row).unwrap_or_default()
}

fn latency(rng: &mut Rng) -> u64 {
    match rng.below(100) {
        0..50 => 0,
        50..95 => 1 + rng.below(600),
        // Longer than a delivery may take.
        _ => 5_000,
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sink of one life of the process.
pub struct SimSink {
    /// Who it leads to.
    pub receiver: Arc<Receiver>,
    pub clock: Arc<dyn Clock>,
    pub power: Arc<Power>,
}

impl SimSink {
    async fn hand_over(&self, events: &[CloudEvent]) -> Result<DeliveryReceipt, SinkError> {
        let Fate { arrive, is_heard, before_ms, after_ms } = self.receiver.fate(events.len());
        self.wait(before_ms).await;
        self.passes(Point::BeforeEffect).await;
        self.receiver.take(&events[..arrive]);
        self.passes(Point::AfterEffect).await;
        self.wait(after_ms).await;
        self.passes(Point::BeforeAnswer).await;
        match is_heard {
            true => Ok(DeliveryReceipt::default()),
            false => Err(SinkError::new("the line broke".to_owned())),
        }
    }

    async fn wait(&self, ms: u64) {
        if ms > 0 {
            self.clock.sleep_until(self.clock.now().plus_ms(ms)).await;
        }
    }

    /// Passes a point, or never comes back because the power is off.
    async fn passes(&self, point: Point) {
        if !self.power.passes(point) {
            std::future::pending::<()>().await;
        }
    }
}

impl EventSink for SimSink {
    fn kind(&self) -> &str {
        NAME
    }

    fn deliver<'a>(
        &'a self,
        events: &'a [CloudEvent],
    ) -> BoxFuture<'a, Result<DeliveryReceipt, SinkError>> {
        Box::pin(self.hand_over(events))
    }

    fn batch_max(&self) -> usize {
        self.receiver.batch
    }

    fn lanes(&self) -> usize {
        self.receiver.lanes
    }
}

/// A log of deliveries that keeps the sink's place too far on: a fault on purpose.
pub struct PlaceAhead(pub Arc<dyn Deliveries>);

impl Deliveries for PlaceAhead {
    fn keep_deliveries<'a>(
        &'a self,
        realm: &'a RealmId,
        rows: Vec<DeliveryRow>,
        place: Option<(&'a str, u64)>,
    ) -> Read<'a, ()> {
        self.0.keep_deliveries(realm, rows, place.map(|(name, row)| (name, row + AHEAD)))
    }

    fn deliveries<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a DeliveryFilter,
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<DeliveryRow>> {
        self.0.deliveries(realm, filter, page)
    }

    fn delivery<'a>(
        &'a self,
        realm: &'a RealmId,
        sink: &'a str,
        event: &'a str,
    ) -> Read<'a, Option<DeliveryRow>> {
        self.0.delivery(realm, sink, event)
    }
}
