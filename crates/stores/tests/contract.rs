//! What every store promises, told against the contracts alone: a second backend runs the same
//! stories. Only `Scene` knows which store it is.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "the threads here are the test's `Spawn`")]

mod deliveries;
mod backups;

use backups::files_below;
use futures::StreamExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use kernel::ask::{Ask, AskBody, AskStatus, Decision, Reply};
use kernel::call::ToolSpec;
use kernel::contracts::{
    AskFilter, Clock, Definition, HistoryFilter, Holder, Incoming, Loaded, OpenAsks, OpenSessions,
    Page, PrunedSlice, RETENTION, Realms, SessionFilter, SessionRef, Slice, Spawn, Store,
    StoreError, Stored, Ticket, WHOLE,
};
use kernel::datum::{BlobRef, Datum, Held, Origin, blobs_named};
use kernel::entry::EntryResult;
use kernel::event::{CallRequest, Event, Fact, VERSION};
use kernel::ids::{
    AskId, CallId, ContentHash, ContextKey, Fence, FrameId, Millis, PlanId, RealmId, RunId,
    SessionId, SessionKey, Space, StepId, ToolName,
};
use kernel::limits::Limits;
use kernel::pipeline::{OTHER_REASONS, Tally, TallyRow};
use kernel::projection::{
    Append, AskChange, HistoryRow, OnceRow, Parked, PinnedSpec, RunRow, SessionRow, StoredClosure,
};
use kernel::session::{RunSpent, RunStatus};
use kernel::trim::Trim;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use stores::{OpenError, Opened, Parts, Place};

/// Threads, or futures kept back until the test lets them go.
#[derive(Default)]
struct Threads {
    kept: Mutex<Option<Vec<BoxFuture<'static, ()>>>>,
}

impl Threads {
    fn keeping() -> Arc<Self> {
        Arc::new(Self { kept: Mutex::new(Some(Vec::new())) })
    }

    fn let_go(&self) {
        let kept = self.kept.lock().unwrap().take();
        kept.into_iter().flatten().for_each(start);
    }
}

impl Spawn for Threads {
    fn task(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        self.thread(name, future);
    }

    fn thread(&self, _name: &'static str, future: BoxFuture<'static, ()>) {
        match self.kept.lock().unwrap().as_mut() {
            Some(kept) => kept.push(future),
            None => start(future),
        }
    }
}

fn start(future: BoxFuture<'static, ()>) {
    std::thread::spawn(move || block_on(future));
}

struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Millis {
        Millis(1_000)
    }

    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }

    fn sleep_until(&self, _then: Millis) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

struct Scene {
    opened: Opened,
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        Self::with(Arc::new(Threads::default()), Limits::default())
    }

    fn with(spawn: Arc<dyn Spawn>, limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let opened = open(&folder, spawn, limits).unwrap();
        Self { opened, folder }
    }

    fn store(&self) -> &dyn Store {
        &*self.opened.store
    }

    /// The same folder, opened by what stands for a new process.
    fn reopened(self) -> Self {
        let folder = self.closed();
        let opened = open(&folder, Arc::new(Threads::default()), Limits::default()).unwrap();
        Self { opened, folder }
    }

    fn closed(self) -> tempfile::TempDir {
        block_on(self.store().close()).unwrap();
        self.folder
    }

    fn load(&self, key: &SessionKey) -> Option<Stored> {
        match block_on(self.store().load(key, None)).unwrap() {
            Loaded::Missing => None,
            Loaded::Unchanged => panic!("nothing was said to be known"),
            Loaded::Found(stored) => Some(stored),
        }
    }

    fn tail(&self, key: &SessionKey) -> Vec<String> {
        self.load(key).unwrap().tail
    }
}

fn open(
    folder: &tempfile::TempDir,
    spawn: Arc<dyn Spawn>,
    limits: Limits,
) -> Result<Opened, OpenError> {
    stores::open(&Place::Folder(folder.path().join("data")), parts(spawn, limits))
}

fn parts(spawn: Arc<dyn Spawn>, limits: Limits) -> Parts {
    Parts {
        spawn,
        clock: Arc::new(StoppedClock),
        limits: Arc::new(limits),
        fatal: Arc::new(|why: String| panic!("{why}")),
        vfs: None,
    }
}

/// The first of a list.
const NINE: Slice<u64> = Slice { after: 0, limit: 9 };

/// Whoever drives a session: knows how far it got.
#[derive(Clone)]
struct Driver {
    row: SessionRow,
}

impl Driver {
    fn new(realm: &str, id: &str) -> Self {
        let key = SessionKey::new(realm, Space::session(), id);
        Self::of(key)
    }

    fn of(key: SessionKey) -> Self {
        let row = SessionRow {
            id: SessionId::of(&[key.to_string().as_bytes()]),
            key,
            owner: None,
            status: RunStatus::Running,
            run: None,
            plan: None,
            step: None,
            last_error: None,
            seq: 0,
            wake_at: None,
            created_at: Millis(10),
            updated_at: Millis(10),
            parked: None,
            fence: Fence::NONE,
        };
        Self { row }
    }

    fn key(&self) -> &SessionKey {
        &self.row.key
    }

    /// Something else changed the session, and the driver saw it.
    fn saw_a_change(&mut self) {
        self.row.fence = self.row.fence.next();
    }

    /// The first append.
    fn created(&mut self) -> Append {
        let (id, key) = (self.row.id, self.row.key.clone());
        let fact = Fact::SessionCreated { id, key, owner: None };
        self.append(vec![fact])
    }

    /// Some later append, of one event.
    fn next(&mut self) -> Append {
        self.append(vec![Fact::TimerFired { timer: "t".to_owned() }])
    }

    fn append(&mut self, facts: Vec<Fact>) -> Append {
        let (after, fence) = (self.row.seq, self.row.fence);
        let events: Vec<Event> = (after + 1..)
            .zip(facts)
            .map(|(seq, fact)| Event { seq, at: Millis(10), v: VERSION, fact })
            .collect();
        self.row.seq += events.len() as u64;
        self.row.fence = fence.next();
        let body = serde_json::to_string(&events).unwrap();
        Append {
            creates: after == 0,
            fence,
            owned: false,
            first_seq: after + 1,
            blobs: blobs_named(&body),
            body,
            session: self.row.clone(),
            snapshot: None,
            runs: Vec::new(),
            asks: Vec::new(),
            history: Vec::new(),
            closure: None,
            pins: BTreeMap::new(),
            specs: Vec::new(),
            once: None,
            tally: None,
        }
    }

    fn run_row(&self, no: u32) -> RunRow {
        RunRow {
            id: RunId::of(&[self.key().to_string().as_bytes(), &no.to_be_bytes()]),
            no,
            owner: None,
            plan: PlanId::from("math/add"),
            status: RunStatus::Running,
            step: Some(StepId::from("one")),
            answer: None,
            last_error: None,
            started_at: Millis(11),
            ended_at: None,
            spent: RunSpent::default(),
            stopped: None,
        }
    }

    fn ask(&self, step: &str) -> Ask {
        Ask {
            id: AskId::of(&[self.key().to_string().as_bytes(), step.as_bytes()]),
            run: self.run_row(1).id,
            frame: FrameId(0),
            step: StepId::from(step),
            title: "go on?".to_owned(),
            body: AskBody::Clarify { message: "go on?".to_owned(), questions: Vec::new() },
            digest: ContentHash::of(step.as_bytes()),
            created_at: Millis(12),
            expires_at: Some(Millis(99)),
            wanted: None,
            answerers: None,
            subject: None,
        }
    }

    /// An append that opens one ask for each of these steps.
    fn asking(&mut self, steps: &[&str]) -> Append {
        let mut append = self.next();
        append.asks =
            steps.iter().map(|step| AskChange::Opened(Box::new(self.ask(step)))).collect();
        append
    }
}

fn decided(ask: &Ask, by: &str) -> AskChange {
    AskChange::Closed {
        ask: ask.id,
        status: AskStatus::Decided,
        decision: Some(Box::new(decision(by))),
    }
}

fn decision(by: &str) -> Decision {
    Decision { by: by.into(), at: Millis(20), reply: Reply::Clarify { answer: Some(json!("yes")) } }
}

fn page(limit: usize, cursor: Option<String>) -> Page {
    Page { cursor, limit }
}

fn realm() -> RealmId {
    RealmId::from("r")
}

fn done(ticket: Ticket) {
    assert_eq!(block_on(ticket), Ok(()));
}

#[test]
fn what_is_appended_is_loaded() {
    let scene = Scene::new();
    let mut a = Driver::new("r", "a");
    let (first, second) = (a.created(), a.next());
    let bodies = vec![first.body.clone(), second.body.clone()];
    done(scene.store().append(first));
    done(scene.store().append(second));
    let stored = scene.load(a.key()).unwrap();
    assert_eq!((stored.id, stored.fence), (a.row.id, a.row.fence));
    assert_eq!(stored.tail, bodies);
    assert_eq!((stored.snapshot, stored.snapshot_bytes), (None, 0));
    let found = block_on(scene.store().session(&realm(), &SessionRef::Id(a.row.id))).unwrap();
    assert_eq!(found, Some(a.row.clone()));
    let unknown = Driver::new("r", "unknown");
    assert_eq!(scene.load(unknown.key()), None);
}

/// What a load says to somebody who knows the session as this driver does.
fn known(scene: &Scene, a: &Driver) -> Loaded {
    block_on(scene.store().load(a.key(), Some(a.row.known()))).unwrap()
}

#[test]
fn who_knows_a_session_is_told_only_whether_it_changed() {
    let scene = Scene::new();
    let mut a = Driver::new("r", "a");
    assert_eq!(known(&scene, &a), Loaded::Missing);
    done(scene.store().append(a.created()));
    assert_eq!(known(&scene, &a), Loaded::Unchanged);
    let mut other = a.clone();
    done(scene.store().append(other.next()));
    let Loaded::Found(stored) = known(&scene, &a) else { panic!("it is another by now") };
    assert_eq!((stored.fence, stored.tail.len()), (other.row.fence, 2));
    assert_eq!(known(&scene, &other), Loaded::Unchanged);
    // What is no append moves the fence too.
    let parked = Parked { reason: "unreadable".to_owned(), until: Millis(2_000) };
    block_on(scene.store().park(a.key(), parked)).unwrap();
    assert!(matches!(known(&scene, &other), Loaded::Found(_)));
    other.saw_a_change();
    assert_eq!(known(&scene, &other), Loaded::Unchanged);
    let scene = scene.reopened();
    assert_eq!(known(&scene, &other), Loaded::Unchanged);
    // Another session under the same key, which has come as far.
    block_on(scene.store().remove(other.key(), other.row.known())).unwrap();
    assert_eq!(known(&scene, &other), Loaded::Missing);
    let mut again = Driver::new("r", "a");
    again.row.id = SessionId(7);
    done(scene.store().append(again.created()));
    for _ in 0..2 {
        done(scene.store().append(again.next()));
    }
    assert_eq!(again.row.fence, other.row.fence);
    assert!(matches!(known(&scene, &other), Loaded::Found(stored) if stored.id == SessionId(7)));
}

#[test]
fn who_decided_on_an_older_state_is_refused() {
    let scene = Scene::new();
    let mut a = three_runs(&scene);
    let conflict = || Err(StoreError::Conflict("r/session/a".into()));
    let mut stale = a.clone();
    let parked = Parked { reason: "unreadable".to_owned(), until: Millis(2_000) };
    block_on(scene.store().park(a.key(), parked)).unwrap();
    // No event was added, and yet the session is not as it was.
    assert_eq!(block_on(scene.store().append(stale.next())), conflict());
    assert_eq!(block_on(scene.store().remove(a.key(), a.row.known())), conflict());
    let sent = block_on(scene.store().remove_sent(a.key(), a.row.known()));
    assert_eq!(sent, Err(StoreError::Conflict("r/session/a".into())));
    assert_eq!(block_on(scene.store().trim(trim_at(&a, 6, 2))), Ok(None));
    a.saw_a_change();
    assert!(block_on(scene.store().trim(trim_at(&a, 6, 2))).unwrap().is_some());
    // The cut base moved it as well.
    assert!(scene.load(a.key()).is_some());
    assert_eq!(block_on(scene.store().append(a.clone().next())), conflict());
    a.saw_a_change();
    assert!(scene.load(a.key()).is_some());
    done(scene.store().append(a.next()));
    block_on(scene.store().remove(a.key(), a.row.known())).unwrap();
    assert_eq!(scene.load(a.key()), None);
}

#[test]
fn appends_are_queued_without_waiting_and_each_moves_the_fence_by_one() {
    let threads = Threads::keeping();
    let scene = Scene::with(threads.clone(), Limits::default());
    let mut a = Driver::new("r", "a");
    let tickets = [a.created(), a.next(), a.next()].map(|append| scene.store().append(append));
    assert_eq!(a.row.fence, Fence(3));
    threads.let_go();
    tickets.into_iter().for_each(done);
    assert_eq!(scene.load(a.key()).unwrap().fence, Fence(3));
}

#[test]
fn a_conflict_leaves_the_others_of_its_batch_alone() {
    let threads = Threads::keeping();
    let scene = Scene::with(threads.clone(), Limits::default());
    let (mut a, mut b) = (Driver::new("r", "a"), Driver::new("r", "b"));
    let mut wrong = a.clone();
    (wrong.row.seq, wrong.row.fence) = (7, Fence(7));
    let tickets = [
        scene.store().append(a.created()),
        scene.store().append(b.created()),
        scene.store().append(wrong.next()),
        scene.store().append(b.next()),
        scene.store().append(Driver::new("r", "b").created()),
    ];
    threads.let_go();
    let answers = tickets.map(block_on);
    let (conflict, exists) =
        (StoreError::Conflict("r/session/a".into()), StoreError::Exists("r/session/b".into()));
    assert_eq!(answers, [Ok(()), Ok(()), Err(conflict), Ok(()), Err(exists)]);
    assert_eq!(scene.tail(a.key()).len(), 1);
    assert_eq!(scene.tail(b.key()).len(), 2);
}

#[test]
fn an_append_that_fails_midway_leaves_nothing_and_harms_nobody() {
    let threads = Threads::keeping();
    let scene = Scene::with(threads.clone(), Limits::default());
    let (mut a, mut b) = (Driver::new("r", "a"), Driver::new("r", "b"));
    let created = a.created();
    let asking = a.asking(&["one"]);
    let mut twice = a.next();
    let ask = a.ask("one");
    twice.asks = vec![decided(&ask, "ann"), decided(&ask, "bob")];
    let tickets = [
        scene.store().append(created),
        scene.store().append(asking),
        scene.store().append(twice),
        scene.store().append(b.created()),
    ];
    threads.let_go();
    let answers = tickets.map(block_on);
    let conflict = StoreError::Conflict("r/session/a".into());
    assert_eq!(answers, [Ok(()), Ok(()), Err(conflict), Ok(())]);
    let found = block_on(scene.store().ask(&realm(), ask.id)).unwrap().unwrap();
    assert_eq!((found.row.status, found.row.decision), (AskStatus::Open, None));
    assert_eq!(scene.tail(a.key()).len(), 2);
    assert_eq!(scene.tail(b.key()).len(), 1);
}

#[test]
fn one_reply_wins() {
    let scene = Scene::new();
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    done(scene.store().append(a.asking(&["one"])));
    let ask = a.ask("one");
    let mut loser = a.clone();
    let mut first = a.next();
    first.asks = vec![decided(&ask, "ann")];
    done(scene.store().append(first));
    // Whoever else was about to answer finds the session further on ...
    let mut second = loser.next();
    second.asks = vec![decided(&ask, "bob")];
    let conflict = Err(StoreError::Conflict("r/session/a".into()));
    assert_eq!(block_on(scene.store().append(second)), conflict);
    // ... and even one who knows that finds the ask decided.
    assert!(scene.load(a.key()).is_some());
    let mut third = a.next();
    third.asks = vec![decided(&ask, "bob")];
    assert_eq!(block_on(scene.store().append(third)), conflict);
    let found = block_on(scene.store().ask(&realm(), ask.id)).unwrap().unwrap();
    assert_eq!((found.session, &found.key), (a.row.id, a.key()));
    assert_eq!(found.row.ask, ask);
    assert_eq!((found.row.status, found.row.decision), (AskStatus::Decided, Some(decision("ann"))));
}

#[test]
fn an_ask_may_open_and_close_in_one_append() {
    let scene = Scene::new();
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    let ask = a.ask("one");
    let mut both = a.asking(&["one"]);
    let withdrawn = AskChange::Closed { ask: ask.id, status: AskStatus::Withdrawn, decision: None };
    both.asks.push(withdrawn);
    done(scene.store().append(both));
    let found = block_on(scene.store().ask(&realm(), ask.id)).unwrap().unwrap();
    assert_eq!(found.row.status, AskStatus::Withdrawn);
}

#[test]
fn a_failed_append_poisons_its_session_until_it_is_loaded() {
    let scene = Scene::new();
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    let mut wrong = a.clone();
    wrong.row.fence = Fence(7);
    let conflict = Err(StoreError::Conflict("r/session/a".into()));
    assert_eq!(block_on(scene.store().append(wrong.next())), conflict);
    let poisoned = Err(StoreError::Poisoned("r/session/a".into()));
    assert_eq!(block_on(scene.store().append(a.clone().next())), poisoned);
    assert!(scene.load(a.key()).is_some());
    done(scene.store().append(a.next()));
}

#[test]
fn a_full_queue_is_an_answer_and_poisons_too() {
    let threads = Threads::keeping();
    let limits = Limits { append_queue_max: 1, ..Limits::default() };
    let scene = Scene::with(threads.clone(), limits);
    let mut a = Driver::new("r", "a");
    let first = scene.store().append(a.created());
    let second = scene.store().append(a.clone().next());
    assert_eq!(block_on(second), Err(StoreError::Busy));
    threads.let_go();
    done(first);
    let poisoned = Err(StoreError::Poisoned("r/session/a".into()));
    assert_eq!(block_on(scene.store().append(a.clone().next())), poisoned);
    assert!(scene.load(a.key()).is_some());
    done(scene.store().append(a.next()));
}

#[test]
fn due_sessions_are_claimed_and_those_of_a_dead_process_first() {
    let scene = Scene::new();
    let wake = |scene: &Scene, id: &str, at: Option<i64>, owned: bool| {
        let mut driver = Driver::new("r", id);
        driver.row.wake_at = at.map(Millis);
        let append = Append { owned, ..driver.created() };
        done(scene.store().append(append));
        driver
    };
    let mut left = wake(&scene, "left", Some(500), true);
    wake(&scene, "later", Some(5_000), false);
    wake(&scene, "waits", None, false);
    let claimed = |scene: &Scene, limit: usize| -> Vec<String> {
        let keys = block_on(scene.store().claim(Millis(1_000), limit)).unwrap();
        keys.iter().map(|key| key.id.to_string()).collect()
    };
    assert_eq!(claimed(&scene, 10), ["left"]);
    let scene = scene.reopened();
    wake(&scene, "moving", Some(10), true);
    wake(&scene, "timer", Some(600), false);
    assert_eq!(claimed(&scene, 10), ["left", "timer", "moving"]);
    assert_eq!(claimed(&scene, 1), ["left"]);
    // Whoever writes it now has it in hand.
    let taken = Append { owned: true, ..left.next() };
    done(scene.store().append(taken));
    assert_eq!(claimed(&scene, 10), ["timer", "moving", "left"]);
}

#[test]
fn a_parked_session_is_passed_over_until_its_time_or_its_next_append() {
    let scene = Scene::new();
    let mut drivers = ["due", "later", "waits"].map(|id| Driver::new("r", id));
    for (driver, wake_at) in drivers.iter_mut().zip([Some(500), Some(9_000), None]) {
        driver.row.wake_at = wake_at.map(Millis);
        done(scene.store().append(driver.created()));
    }
    let parked = Parked { reason: "event 1 cannot be read".to_owned(), until: Millis(2_000) };
    for driver in &mut drivers {
        assert_eq!(block_on(scene.store().park(driver.key(), parked.clone())), Ok(()));
        driver.saw_a_change();
    }
    let row = |driver: &Driver| {
        let named = SessionRef::Id(driver.row.id);
        block_on(scene.store().session(&realm(), &named)).unwrap().unwrap()
    };
    for (driver, wake_at) in drivers.iter().zip([Some(2_000), Some(9_000), None]) {
        let (wake_at, parked) = (wake_at.map(Millis), Some(parked.clone()));
        assert_eq!(row(driver), SessionRow { wake_at, parked, ..driver.row.clone() });
    }
    let claimed = |now: i64| -> Vec<String> {
        let keys = block_on(scene.store().claim(Millis(now), 10)).unwrap();
        keys.iter().map(|key| key.id.to_string()).collect()
    };
    assert_eq!((claimed(1_999), claimed(2_000)), (Vec::new(), vec!["due".to_owned()]));
    let listed = |realm: &str, limit: usize| -> Vec<String> {
        let filter = SessionFilter { parked: true, ..Default::default() };
        let (realm, page) = (RealmId::from(realm), page(limit, None));
        let found = block_on(scene.store().sessions(&realm, &filter, &page)).unwrap();
        found.items.iter().map(|row| row.key.id.to_string()).collect()
    };
    assert_eq!(listed("r", 10), ["waits", "later", "due"]);
    assert_eq!(listed("r", 1), ["waits"]);
    assert_eq!(listed("other", 10), [""; 0]);
    let open = |status: &str, count: u64| OpenSessions { status: status.to_owned(), count };
    let counted = || block_on(scene.store().open_sessions(&realm())).unwrap();
    assert_eq!(counted(), [open("parked", 3), open("running", 3)]);
    done(scene.store().append(drivers[0].next()));
    assert_eq!(row(&drivers[0]), drivers[0].row);
    assert_eq!(claimed(1_000), ["due"]);
    assert_eq!(listed("r", 10), ["waits", "later"]);
    assert_eq!(counted(), [open("parked", 2), open("running", 3)]);
}

#[test]
fn the_feed_skips_nothing_and_never_goes_back() {
    let scene = Scene::new();
    let (mut a, mut b) = (Driver::new("r", "a"), Driver::new("r", "b"));
    let mut elsewhere = Driver::new("other", "a");
    let (first, second, third) = (a.created(), b.created(), a.next());
    let bodies = [first.body.clone(), second.body.clone(), third.body.clone()];
    done(scene.store().append(first));
    done(scene.store().append(elsewhere.created()));
    done(scene.store().append(second));
    done(scene.store().append(third));
    let feed = |after: u64, limit: usize| block_on(scene.store().feed(&realm(), after, limit));
    let rows = feed(0, 10).unwrap();
    assert_eq!(rows.iter().map(|row| row.body.clone()).collect::<Vec<_>>(), bodies);
    assert_eq!(
        rows.iter().map(|row| row.session).collect::<Vec<_>>(),
        [a.row.id, b.row.id, a.row.id]
    );
    assert!(rows.is_sorted_by(|one, next| one.cursor < next.cursor));
    assert_eq!(feed(0, 1).unwrap(), rows[..1]);
    assert_eq!(feed(rows[0].cursor, 10).unwrap(), rows[1..]);
    // The newest row goes, and its number with it; the end stays where it was.
    block_on(scene.store().remove(a.key(), a.row.known())).unwrap();
    assert_eq!(block_on(scene.store().feed_end()), Ok(rows[2].cursor));
    done(scene.store().append(b.next()));
    let after = feed(rows[2].cursor, 10).unwrap();
    assert_eq!(after.len(), 1);
    assert!(after[0].cursor > rows[2].cursor);
    assert_eq!(block_on(scene.store().feed_end()), Ok(after[0].cursor));
    // What is refused leaves no gap: the end is a row that is there.
    let refused = block_on(scene.store().append(Driver::new("r", "b").created()));
    assert!(refused.is_err());
    assert_eq!(block_on(scene.store().feed_end()), Ok(after[0].cursor));
}

#[test]
fn a_consumer_moves_on_only() {
    let scene = Scene::new();
    let at = |realm: &str| block_on(scene.store().consumer(&realm.into(), "nats"));
    assert_eq!(at("r"), Ok(0));
    block_on(scene.store().advance(&realm(), "nats", 7)).unwrap();
    block_on(scene.store().advance(&realm(), "nats", 5)).unwrap();
    assert_eq!((at("r"), at("other")), (Ok(7), Ok(0)));
}

/// A call's two events and its history row, at this position.
fn call(a: &mut Driver, position: &[u8], step: &str) -> Append {
    let call = CallId::of(&[position, &a.row.seq.to_be_bytes()]);
    let (step, tool) = (StepId::from(step), ToolName::from("math::add"));
    let request = CallRequest {
        call,
        frame: FrameId(0),
        step: step.clone(),
        try_no: 0,
        tool: tool.clone(),
        arguments: Arc::new(json!({"a": position})),
        sources: BTreeMap::new(),
        save_as: ContextKey::from("sum"),
        next: None,
        approve: false,
        grant: None,
        replaces: None,
    };
    let output = Arc::new(Datum::inline(json!(position), Origin::Call(call)));
    let mut append = a.append(vec![
        Fact::CallRequested(Box::new(request)),
        Fact::CallFinished { call, output, settled: None, published: Vec::new() },
    ]);
    append.history = vec![HistoryRow {
        position: position.to_vec(),
        run: a.run_row(1).id,
        step,
        tool,
        success: true,
        requested_seq: append.first_seq,
        finished_seq: append.first_seq + 1,
    }];
    append
}

#[test]
fn history_comes_newest_first_in_pages() {
    let scene = Scene::new();
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    // Positions, not time, give the order; the third was tried again at the same position.
    for (position, step) in [
        ([0u8, 0, 0, 1, 2], "x"),
        ([0, 0, 0, 1, 1], "y"),
        ([0, 0, 0, 2, 0], "x"),
        ([0, 0, 0, 2, 0], "x"),
    ] {
        done(scene.store().append(call(&mut a, &position, step)));
    }
    let run = Some(a.run_row(1).id);
    let outputs = |only: HistoryFilter, limit: usize| {
        let (mut cursor, mut seen, mut pages) = (None, Vec::new(), 0);
        loop {
            let page = page(limit, cursor);
            let read = scene.store().history(a.key(), only.clone(), &page);
            let got = block_on(read).unwrap();
            seen.extend(got.items.iter().map(|item| match &item.entry.result {
                EntryResult::Output(output) => output.to_value(),
                EntryResult::Error(fault) => panic!("{fault}"),
            }));
            pages += 1;
            cursor = got.next_cursor;
            if cursor.is_none() {
                return (seen, pages);
            }
        }
    };
    let (oldest, older, new) =
        (json!([0, 0, 0, 1, 1]), json!([0, 0, 0, 1, 2]), json!([0, 0, 0, 2, 0]));
    let all = vec![new.clone(), new.clone(), older.clone(), oldest.clone()];
    assert_eq!(outputs(HistoryFilter::default(), 10), (all.clone(), 1));
    assert_eq!(outputs(HistoryFilter { run, step: None }, 3), (all.clone(), 2));
    assert_eq!(outputs(HistoryFilter::default(), 1), (all, 4));
    let of_y = HistoryFilter { run, step: Some(StepId::from("y")) };
    assert_eq!(outputs(of_y, 10), (vec![oldest], 1));
    let of_other = HistoryFilter { run: Some(RunId(1)), step: None };
    assert_eq!(outputs(of_other, 10), (Vec::new(), 1));
    let bad = page(1, Some("nonsense".to_owned()));
    let refused = block_on(scene.store().history(a.key(), HistoryFilter::default(), &bad));
    assert!(matches!(refused, Err(StoreError::BadCursor(_))), "{refused:?}");
}

#[test]
fn events_come_one_by_one_as_they_were_written() {
    let scene = Scene::new();
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    let timer = |name: &str| Fact::TimerFired { timer: name.to_owned() };
    done(scene.store().append(a.append(vec![timer("two"), timer("three")])));
    done(scene.store().append(a.append(vec![timer("four")])));
    let events =
        |after: u64, limit: usize| block_on(scene.store().events(a.key(), after, limit)).unwrap();
    let seqs = |after: u64, limit: usize| -> Vec<u64> {
        events(after, limit).iter().map(|(seq, _)| *seq).collect()
    };
    assert_eq!(seqs(0, 10), [1, 2, 3, 4]);
    assert_eq!(seqs(1, 2), [2, 3]);
    assert_eq!(seqs(2, 10), [3, 4]);
    assert_eq!(seqs(4, 10), [0; 0]);
    let (_, text) = events(2, 1).remove(0);
    let event: Event = serde_json::from_str(&text).unwrap();
    assert_eq!(event, Event { seq: 3, at: Millis(10), v: VERSION, fact: timer("three") });
}

#[test]
fn sessions_are_listed_newest_first() {
    let scene = Scene::new();
    let statuses = [RunStatus::Completed, RunStatus::Stuck, RunStatus::Completed, RunStatus::Stuck];
    for (index, status) in statuses.into_iter().enumerate() {
        let mut driver = Driver::new("r", &format!("s{index}"));
        driver.row.status = status;
        driver.row.plan = Some(PlanId::from(if index < 2 { "old" } else { "new" }));
        done(scene.store().append(driver.created()));
    }
    let list = |filter: SessionFilter, limit: usize| {
        let (mut cursor, mut seen) = (None, Vec::new());
        loop {
            let page = page(limit, cursor);
            let got = block_on(scene.store().sessions(&realm(), &filter, &page)).unwrap();
            assert!(got.items.len() <= limit);
            seen.extend(got.items.iter().map(|row| row.key.id.to_string()));
            cursor = got.next_cursor;
            if cursor.is_none() {
                return seen;
            }
        }
    };
    for limit in [1, 2, 3, 4, 10] {
        let of = |filter: SessionFilter| list(filter, limit);
        assert_eq!(of(SessionFilter::default()), ["s3", "s2", "s1", "s0"]);
        let status = Some(RunStatus::Stuck);
        assert_eq!(of(SessionFilter { status, ..Default::default() }), ["s3", "s1"]);
        let status = Some(RunStatus::Completed);
        assert_eq!(of(SessionFilter { status, ..Default::default() }), ["s2", "s0"]);
        let plan = Some(PlanId::from("old"));
        assert_eq!(of(SessionFilter { plan, ..Default::default() }), ["s1", "s0"]);
        let space = Some(Space::call());
        assert_eq!(of(SessionFilter { space, ..Default::default() }), [""; 0]);
    }
}

#[test]
fn a_key_without_a_space_is_the_only_one_or_the_session() {
    let scene = Scene::new();
    for (space, id) in [("thread", "a"), ("session", "a"), ("thread", "b"), ("context", "b")] {
        let key = SessionKey::new(realm(), space, id);
        done(scene.store().append(Driver::of(key).created()));
    }
    let key = SessionKey::new(realm(), "thread", "c");
    done(scene.store().append(Driver::of(key).created()));
    let space_of = |id: &str, space: Option<&str>| {
        let named = SessionRef::Key { key: id.into(), space: space.map(Space::from) };
        let found = block_on(scene.store().session(&realm(), &named)).unwrap();
        found.map(|row| row.key.space.to_string())
    };
    assert_eq!(space_of("a", None).as_deref(), Some("session"));
    assert_eq!(space_of("a", Some("thread")).as_deref(), Some("thread"));
    assert_eq!(space_of("b", None), None);
    assert_eq!(space_of("c", None).as_deref(), Some("thread"));
    assert_eq!(space_of("d", None), None);
}

#[test]
fn the_same_id_of_two_owners_is_two_sessions() {
    let scene = Scene::new();
    let nobodys = SessionKey::new(realm(), Space::thread(), "t");
    let of = |owner: &str| SessionKey { owner: Some(owner.into()), ..nobodys.clone() };
    let keys = [nobodys.clone(), of("ann"), of("idp:\u{1f}bob")];
    for key in &keys {
        let mut driver = Driver::of(key.clone());
        done(scene.store().append(driver.created()));
        done(scene.store().append(driver.next()));
    }
    let scene = scene.reopened();
    for key in &keys {
        assert_eq!(scene.tail(key).len(), 2, "{key}");
        let row = SessionRef::Id(Driver::of(key.clone()).row.id);
        let row = block_on(scene.store().session(&realm(), &row)).unwrap().unwrap();
        assert_eq!(row.key, *key);
    }
    let fed = block_on(scene.store().feed(&realm(), 0, 9)).unwrap();
    assert_eq!(fed.iter().filter(|row| row.key == keys[1]).count(), 2);
    assert_eq!(scene.load(&of("eve")), None);
    // No id reads as somebody else's.
    for id in ["t\u{1f}ann", "t\u{1f}idp:\u{1f}bob"] {
        let key = SessionKey::new(realm(), Space::thread(), id);
        assert_eq!(scene.load(&key), None, "{id:?}");
    }
}

#[test]
fn a_subject_means_its_own_where_ids_are_their_owners() {
    let scene = Scene::new();
    let nobodys = SessionKey::new(realm(), Space::thread(), "t");
    let anns = SessionKey { owner: Some("ann".into()), ..nobodys.clone() };
    let plain = SessionKey::new(realm(), Space::session(), "s");
    for key in [&nobodys, &anns, &plain] {
        done(scene.store().append(Driver::of(key.clone()).created()));
    }
    let found = |named: SessionRef| {
        block_on(scene.store().session(&realm(), &named)).unwrap().map(|row| row.key)
    };
    let means = |key: &str, owner: &str, space: Option<Space>| {
        found(SessionRef::Owned { key: key.into(), space, owner: owner.into() })
    };
    for space in [None, Some(Space::thread())] {
        assert_eq!(means("t", "ann", space.clone()), Some(anns.clone()));
        assert_eq!(means("t", "bob", space.clone()), None);
        assert_eq!(found(SessionRef::Key { key: "t".into(), space }), Some(nobodys.clone()));
    }
    for space in [None, Some(Space::session())] {
        assert_eq!(means("s", "bob", space), Some(plain.clone()));
    }
}

#[test]
fn asks_are_listed_oldest_first() {
    let scene = Scene::new();
    let (mut a, mut b) = (Driver::new("r", "a"), Driver::new("r", "b"));
    done(scene.store().append(a.created()));
    done(scene.store().append(b.created()));
    done(scene.store().append(a.asking(&["one", "two"])));
    done(scene.store().append(b.asking(&["three"])));
    let mut answer = a.next();
    answer.asks = vec![decided(&a.ask("one"), "ann")];
    done(scene.store().append(answer));
    let list = |filter: AskFilter, limit: usize| {
        let (mut cursor, mut seen) = (None, Vec::new());
        loop {
            let page = page(limit, cursor);
            let got = block_on(scene.store().asks(&realm(), &filter, &page)).unwrap();
            seen.extend(got.items.iter().map(|found| found.row.ask.step.to_string()));
            cursor = got.next_cursor;
            if cursor.is_none() {
                return seen;
            }
        }
    };
    for limit in [1, 2, 10] {
        let of = |filter: AskFilter| list(filter, limit);
        let open = Some("open".to_owned());
        assert_eq!(of(AskFilter::default()), ["one", "two", "three"]);
        assert_eq!(of(AskFilter { status: open.clone(), ..Default::default() }), ["two", "three"]);
        let session = Some(a.row.id);
        assert_eq!(of(AskFilter { session, ..Default::default() }), ["one", "two"]);
        assert_eq!(of(AskFilter { session, status: open, ..Default::default() }), ["two"]);
        let run = Some(b.run_row(1).id);
        assert_eq!(of(AskFilter { run, ..Default::default() }), ["three"]);
        let step = Some(StepId::from("two"));
        assert_eq!(of(AskFilter { step, ..Default::default() }), ["two"]);
        let kind = Some("approve".to_owned());
        assert_eq!(of(AskFilter { kind, ..Default::default() }), [""; 0]);
    }
    let open = block_on(scene.store().open_asks(&realm())).unwrap();
    let two = a.ask("two");
    let expected = OpenAsks { kind: two.body.kind().to_owned(), count: 2, oldest: two.created_at };
    assert_eq!(open, [expected], "all that are open, and no other");
    let figures = scene.store().figures().unwrap();
    assert!(figures.bytes > 0 && figures.commits.counts.iter().sum::<u64>() > 0, "{figures:?}");
}

#[test]
fn a_run_is_kept_up_to_date() {
    let scene = Scene::new();
    let mut a = Driver::new("r", "a");
    let mut run = a.run_row(1);
    let mut created = a.created();
    created.runs = vec![run.clone()];
    done(scene.store().append(created));
    run.status = RunStatus::Completed;
    run.answer = Some(json!(null));
    run.ended_at = Some(Millis(30));
    let mut ended = a.next();
    ended.runs = vec![run.clone()];
    done(scene.store().append(ended));
    let found = block_on(scene.store().run(&realm(), run.id)).unwrap().unwrap();
    assert_eq!((found.session, &found.key, found.row), (a.row.id, a.key(), run));
}

#[test]
fn sessions_that_are_not_over_are_counted_by_status() {
    let scene = Scene::new();
    for (index, status) in RunStatus::ALL.into_iter().enumerate() {
        // One more of each.
        for number in 0..=index {
            let mut driver = Driver::new("r", &format!("{}-{number}", status.name()));
            driver.row.status = status;
            done(scene.store().append(driver.created()));
        }
    }
    let mut expected: Vec<OpenSessions> = RunStatus::ALL
        .into_iter()
        .zip(1..)
        .filter(|(status, _)| !status.is_over())
        .map(|(status, count)| OpenSessions { status: status.name().to_owned(), count })
        .collect();
    expected.sort_by(|left, right| left.status.cmp(&right.status));
    assert_eq!(block_on(scene.store().open_sessions(&realm())), Ok(expected));
    assert_eq!(block_on(scene.store().open_sessions(&RealmId::from("other"))), Ok(Vec::new()));
}

#[test]
fn another_realm_sees_nothing() {
    let scene = Scene::new();
    let mut a = Driver::new("r", "a");
    let (run, ask) = (a.run_row(1), a.ask("one"));
    let mut created = a.created();
    created.runs = vec![run.clone()];
    created.asks = vec![AskChange::Opened(Box::new(ask.clone()))];
    let hash = ContentHash::of(b"closure");
    let closure = StoredClosure { hash: hash.clone(), body: "{}".to_owned() };
    created.closure = Some(Arc::new(closure));
    done(scene.store().append(created));
    let (store, other) = (scene.store(), RealmId::from("other"));
    assert_eq!(block_on(store.closure(&realm(), &hash)), Ok(Some("{}".to_owned())));
    assert_eq!(block_on(store.closure(&other, &hash)), Ok(None));
    assert_eq!(block_on(store.run(&other, run.id)), Ok(None));
    assert_eq!(block_on(store.ask(&other, ask.id)), Ok(None));
    assert_eq!(block_on(store.session(&other, &SessionRef::Id(a.row.id))), Ok(None));
    let named = SessionRef::Key { key: "a".into(), space: None };
    assert_eq!(block_on(store.session(&other, &named)), Ok(None));
    let everything = page(10, None);
    let sessions = block_on(store.sessions(&other, &SessionFilter::default(), &everything));
    assert!(sessions.unwrap().items.is_empty());
    for session in [None, Some(a.row.id)] {
        let filter = AskFilter { session, ..Default::default() };
        assert!(block_on(store.asks(&other, &filter, &everything)).unwrap().items.is_empty());
    }
    assert_eq!(block_on(store.open_asks(&other)), Ok(Vec::new()));
    assert_eq!(block_on(store.feed(&other, 0, 10)), Ok(Vec::new()));
    assert_eq!(scene.load(Driver::new("other", "a").key()), None);
    // The same key there is another session.
    done(store.append(Driver::new("other", "a").created()));
}

#[test]
fn a_snapshot_shortens_the_tail_and_comes_and_goes_with_its_append() {
    let scene = Scene::new();
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    let second = Append { snapshot: Some("two".to_owned()), ..a.next() };
    done(scene.store().append(second));
    let last = a.next();
    let last_body = last.body.clone();
    done(scene.store().append(last));
    let stored = scene.load(a.key()).unwrap();
    assert_eq!((stored.snapshot.as_deref(), stored.snapshot_bytes), (Some("two"), 3));
    assert_eq!(stored.tail, [last_body]);
    // An append that is refused leaves no snapshot of what never happened.
    let mut stale = a.clone();
    stale.row.fence = Fence(1);
    let refused = Append { snapshot: Some("of a lost append".to_owned()), ..stale.next() };
    assert!(block_on(scene.store().append(refused)).is_err());
    assert_eq!(scene.load(a.key()).unwrap().snapshot.as_deref(), Some("two"));
    let newer = Append { snapshot: Some("four".to_owned()), ..a.next() };
    done(scene.store().append(newer));
    let stored = scene.load(a.key()).unwrap();
    assert_eq!((stored.snapshot.as_deref(), stored.tail.len()), (Some("four"), 0));
}

#[test]
fn a_removed_session_leaves_nothing() {
    let scene = Scene::new();
    let (mut a, mut b) = (Driver::new("r", "a"), Driver::new("r", "b"));
    let mut created = a.created();
    created.runs = vec![a.run_row(1)];
    done(scene.store().append(created));
    done(scene.store().append(a.asking(&["one"])));
    let called = call(&mut a, &[0, 0, 0, 1], "x");
    done(scene.store().append(Append { snapshot: Some("one".to_owned()), ..called }));
    done(scene.store().append(b.created()));
    block_on(scene.store().remove(a.key(), a.row.known())).unwrap();
    assert_eq!(scene.load(a.key()), None);
    assert_eq!(block_on(scene.store().run(&realm(), a.run_row(1).id)), Ok(None));
    assert_eq!(block_on(scene.store().ask(&realm(), a.ask("one").id)), Ok(None));
    assert_eq!(block_on(scene.store().events(a.key(), 0, 10)), Ok(Vec::new()));
    assert_eq!(scene.tail(b.key()).len(), 1);
    // Its driver, if one still lives, cannot bring it back.
    let late = block_on(scene.store().append(a.next()));
    assert_eq!(late, Err(StoreError::Conflict("r/session/a".into())));
    block_on(scene.store().remove(a.key(), a.row.known())).unwrap();
}

#[test]
fn commits_wake_and_a_closed_store_says_so() {
    let scene = Scene::new();
    let woken = Arc::new(Mutex::new(Vec::new()));
    let heard = woken.clone();
    scene.store().on_commit(Arc::new(move |keys: &[SessionKey]| {
        heard.lock().unwrap().extend(keys.iter().map(|key| key.id.to_string()));
    }));
    assert_eq!(scene.store().healthy(), Ok(()));
    done(scene.store().append(Driver::new("r", "a").created()));
    done(scene.store().append(Driver::new("r", "b").created()));
    block_on(scene.store().close()).unwrap();
    assert_eq!(*woken.lock().unwrap(), ["a", "b"]);
    let late = block_on(scene.store().append(Driver::new("r", "c").created()));
    assert_eq!(late, Err(StoreError::Closed));
    assert_eq!(scene.store().healthy(), Err(StoreError::Closed));
    let read = block_on(scene.store().load(Driver::new("r", "a").key(), None));
    assert_eq!(read, Err(StoreError::Closed));
    assert_eq!(block_on(scene.store().close()), Ok(()));
}

#[test]
fn what_is_queued_is_written_before_a_close_returns() {
    let threads = Threads::keeping();
    let scene = Scene::with(threads.clone(), Limits::default());
    let mut drivers: Vec<Driver> =
        (0..600).map(|number| Driver::new("r", &number.to_string())).collect();
    let tickets: Vec<Ticket> =
        drivers.iter_mut().map(|driver| scene.store().append(driver.created())).collect();
    threads.let_go();
    let scene = scene.reopened();
    tickets.into_iter().for_each(done);
    for driver in &drivers {
        assert_eq!(scene.tail(driver.key()).len(), 1);
    }
}

#[test]
fn a_held_folder_names_its_holder() {
    let scene = Scene::new();
    let second = open(&scene.folder, Arc::new(Threads::default()), Limits::default());
    let error = second.err().unwrap();
    assert!(matches!(&error, OpenError::Held { holder, .. }
        if holder.pid == Some(std::process::id())));
    assert!(error.to_string().contains(&format!("process {}", std::process::id())));
    // The holder is unharmed, and once it is gone the folder is free.
    done(scene.store().append(Driver::new("r", "a").created()));
    scene.reopened();
}

/// Threads, with the names of those that the process cannot do without.
#[derive(Default)]
struct Critical {
    names: Mutex<Vec<&'static str>>,
}

impl Spawn for Critical {
    fn task(&self, name: &'static str, _future: BoxFuture<'static, ()>) {
        panic!("`{name}` may end unnoticed");
    }

    fn thread(&self, name: &'static str, _future: BoxFuture<'static, ()>) {
        panic!("`{name}` may end unnoticed");
    }

    fn critical_thread(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        self.names.lock().unwrap().push(name);
        start(future);
    }
}

#[test]
fn no_thread_of_a_store_may_end_unnoticed() {
    let threads = Arc::new(Critical::default());
    let scene = Scene::with(threads.clone(), Limits::default());
    let mut names = threads.names.lock().unwrap().clone();
    names.sort_unstable();
    assert_eq!(names, ["store-blobs", "store-reader", "store-reader", "store-writer"]);
    scene.closed();
}

#[cfg(unix)]
#[test]
fn a_holder_whose_lock_is_removed_or_replaced_ends() {
    let (told, why) = std::sync::mpsc::channel();
    let fatal = Arc::new(move |why: String| told.send(why).unwrap());
    let parts = Parts { fatal, ..parts(Arc::new(Threads::default()), Limits::default()) };
    let folder = tempfile::tempdir().unwrap();
    let opened = stores::open(&Place::Folder(folder.path().to_owned()), parts).unwrap();
    let claim = || block_on(opened.store.claim(Millis(1_000), 9));
    assert_eq!((claim(), why.try_recv().is_ok()), (Ok(Vec::new()), false));
    let lock = folder.path().join("lock");
    std::fs::remove_file(&lock).unwrap();
    // One look is not enough: whoever removes the folder removes its files one by one.
    assert_eq!((claim(), why.try_recv().is_ok()), (Ok(Vec::new()), false));
    assert_eq!((claim(), why.try_recv().is_ok()), (Err(StoreError::Closed), true));
    std::fs::write(&lock, "").unwrap();
    assert_eq!((claim(), why.try_recv().is_ok()), (Err(StoreError::Closed), true));
    // Where all of it is gone there is nothing that two processes could write.
    std::fs::remove_file(&lock).unwrap();
    std::fs::remove_file(folder.path().join("waypost.db")).unwrap();
    assert_eq!((claim(), why.try_recv().is_ok()), (Ok(Vec::new()), false));
}

#[test]
fn a_folder_that_lost_its_database_is_refused_unless_it_is_renewed() {
    let folder = tempfile::tempdir().unwrap();
    let (data, threads) = (folder.path().to_owned(), || Arc::new(Threads::default()));
    let open = |place: Place| stores::open(&place, parts(threads(), Limits::default()));
    let log = data.join("waypost.db-wal");
    for name in ["waypost.db", "waypost.db-shm", "lock"] {
        std::fs::write(data.join(name), "").unwrap();
    }
    std::fs::write(&log, "the last of it").unwrap();
    std::fs::write(data.join("secret.key"), "x").unwrap();
    std::fs::create_dir(data.join("blobs")).unwrap();
    // An empty database is as good as none, and an empty folder is no blob.
    for _ in 0..2 {
        let error = open(Place::Folder(data.clone())).err().unwrap();
        let is_lost = matches!(&error, OpenError::Lost { left, .. }
            if left == "`waypost.db-wal`, `secret.key`");
        assert!(is_lost && error.to_string().contains("`waypost up --new`"), "{error}");
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "the last of it");
        let _ = std::fs::remove_file(data.join("waypost.db"));
    }
    std::fs::write(data.join("waypost.db-wal.orphan-1"), "from before").unwrap();
    let opened = open(Place::RenewedFolder(data.clone())).unwrap();
    let mut a = Driver::new("r", "a");
    done(opened.store.append(a.created()));
    block_on(opened.store.close()).unwrap();
    let aside = std::fs::read_to_string(data.join("waypost.db-wal.orphan-2"));
    assert_eq!(aside.unwrap(), "the last of it");
    // A database that is there is opened as it is, renewed or not.
    for place in [Place::RenewedFolder(data.clone()), Place::Folder(data)] {
        let opened = open(place).unwrap();
        let found = block_on(opened.store.load(a.key(), None)).unwrap();
        assert!(matches!(found, Loaded::Found(_)));
        block_on(opened.store.close()).unwrap();
    }
}

#[test]
fn a_reopened_store_has_everything() {
    let scene = Scene::new();
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    done(scene.store().append(a.asking(&["one"])));
    block_on(scene.store().advance(&realm(), "nats", 2)).unwrap();
    let blob = block_on(scene.opened.blobs.put(&realm(), b"large".to_vec())).unwrap();
    let before = scene.tail(a.key());
    let scene = scene.reopened();
    let stored = scene.load(a.key()).unwrap();
    assert_eq!((stored.tail, stored.fence), (before, a.row.fence));
    assert_eq!(block_on(scene.store().consumer(&realm(), "nats")), Ok(2));
    let bytes = block_on(scene.opened.blobs.get(&realm(), &blob.hash)).unwrap();
    assert_eq!(bytes.as_deref(), Some(&b"large"[..]));
    done(scene.store().append(a.next()));
}

#[test]
fn a_database_of_the_first_release_gets_its_fences() {
    let scene = Scene::new();
    let (mut a, mut b) = (Driver::new("r", "a"), Driver::new("r", "b"));
    a.row.wake_at = Some(Millis(500));
    done(scene.store().append(Append { owned: true, ..a.created() }));
    done(scene.store().append(b.created()));
    let end = block_on(scene.store().feed_end()).unwrap();
    block_on(scene.store().remove(b.key(), b.row.known())).unwrap();
    let folder = scene.closed();
    let database = rusqlite::Connection::open(folder.path().join("data/waypost.db")).unwrap();
    let as_before = "ALTER TABLE sessions DROP COLUMN fence;
        ALTER TABLE sessions RENAME COLUMN node TO epoch;
        DELETE FROM meta WHERE name = 'feed_removed';
        DELETE FROM migrations WHERE version = 9;";
    database.execute_batch(as_before).unwrap();
    drop(database);
    let opened = open(&folder, Arc::new(Threads::default()), Limits::default()).unwrap();
    let scene = Scene { opened, folder };
    let claimed = block_on(scene.store().claim(Millis(1_000), 9)).unwrap();
    assert_eq!(claimed, [a.key().clone()]);
    assert_eq!(block_on(scene.store().feed_end()), Ok(end));
    a.row.fence = scene.load(a.key()).unwrap().fence;
    assert_eq!(a.row.fence, Fence(1));
    done(scene.store().append(a.next()));
}

#[test]
fn another_release_s_database_is_refused() {
    let folder = Scene::new().closed();
    let again = || open(&folder, Arc::new(Threads::default()), Limits::default()).err().unwrap();
    let database = rusqlite::Connection::open(folder.path().join("data/waypost.db")).unwrap();
    database.execute("INSERT INTO migrations VALUES (99, 'future', 'x', 0)", ()).unwrap();
    assert!(matches!(again(), OpenError::Newer { found: 99, known: 10, .. }));
    database.execute("DELETE FROM migrations WHERE version = 99", ()).unwrap();
    database.execute("UPDATE migrations SET checksum = 'x'", ()).unwrap();
    assert!(matches!(again(), OpenError::Changed { version: 10, .. }));
}

#[test]
fn definitions_are_put_against_a_version() {
    let scene = Scene::new();
    let definitions = &scene.opened.definitions;
    let draft = |body: i64| Definition {
        kind: "plan".to_owned(),
        name: "math/add".to_owned(),
        version: 0,
        body: json!(body),
        updated_at: Millis(0),
    };
    let put = |body: i64, expected: Option<u64>| {
        block_on(definitions.put(&realm(), draft(body), expected))
    };
    let stored =
        |version: u64, body: i64| Definition { version, updated_at: Millis(1_000), ..draft(body) };
    let conflict = Err(StoreError::Conflict("plan/math/add".into()));
    assert_eq!(put(1, Some(1)), conflict);
    assert_eq!(put(1, Some(0)), Ok(stored(1, 1)));
    assert_eq!(put(2, Some(0)), conflict);
    assert_eq!(put(2, Some(1)), Ok(stored(2, 2)));
    assert_eq!(put(3, None), Ok(stored(3, 3)));
    let get = |realm: &str| block_on(definitions.get(&realm.into(), "plan", "math/add"));
    assert_eq!(get("r"), Ok(Some(stored(3, 3))));
    assert_eq!(get("other"), Ok(None));
    assert_eq!(block_on(definitions.list(&realm(), "plan")), Ok(vec![stored(3, 3)]));
    assert_eq!(block_on(definitions.list(&realm(), "agent")), Ok(Vec::new()));
    let delete = |realm: &str| block_on(definitions.delete(&realm.into(), "plan", "math/add"));
    assert_eq!(delete("other"), Ok(false));
    assert_eq!(delete("r"), Ok(true));
    assert_eq!(get("r"), Ok(None));
}

#[test]
fn a_blob_is_whole_or_refused() {
    let scene = Scene::new();
    let blobs = &scene.opened.blobs;
    let blob = block_on(blobs.put(&realm(), b"large".to_vec())).unwrap();
    assert_eq!((blob.hash.clone(), blob.bytes), (ContentHash::of(b"large"), 5));
    let get = |realm: &str| block_on(blobs.get(&realm.into(), &blob.hash));
    assert_eq!(get("r"), Ok(Some(b"large".to_vec())));
    assert_eq!(get("other"), Ok(None));
    assert_eq!(block_on(blobs.get(&realm(), &ContentHash::from("../../lock"))), Ok(None));
    let hash = blob.hash.as_str();
    let file = scene.folder.path().join("data/blobs/r").join(&hash[..2]).join(hash);
    std::fs::write(&file, b"torn").unwrap();
    assert!(matches!(get("r"), Err(StoreError::Unreadable(_))));
    // Put again, it is whole again.
    block_on(blobs.put(&realm(), b"large".to_vec())).unwrap();
    assert_eq!(get("r"), Ok(Some(b"large".to_vec())));
    block_on(blobs.delete(&realm(), &blob.hash)).unwrap();
    block_on(blobs.delete(&realm(), &blob.hash)).unwrap();
    assert_eq!(get("r"), Ok(None));
}

/// A blob as it came, piece by piece.
type Pieces = Vec<Result<Vec<u8>, StoreError>>;

#[test]
fn a_blob_that_comes_in_pieces_never_comes_whole_if_it_is_damaged() {
    let scene = Scene::new();
    let blobs = &scene.opened.blobs;
    let pieces_of = |hash: &ContentHash| -> Option<(u64, Pieces)> {
        let open = block_on(blobs.open(&realm(), hash, WHOLE)).unwrap()?;
        Some((open.bytes, block_on(open.pieces.collect())))
    };
    for size in [1_usize, 64 * 1024, 64 * 1024 + 1, 300_000] {
        let large: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        let blob = block_on(blobs.put(&realm(), large.clone())).unwrap();
        let (bytes, pieces) = pieces_of(&blob.hash).unwrap();
        let pieces: Result<Vec<Vec<u8>>, StoreError> = pieces.into_iter().collect();
        let pieces = pieces.unwrap();
        assert_eq!((bytes, pieces.len()), (size as u64, size.div_ceil(64 * 1024)));
        assert!(pieces.concat() == large, "{size} bytes");
    }
    assert!(pieces_of(&ContentHash::of(b"none")).is_none());
    assert!(pieces_of(&ContentHash::from("../../lock")).is_none());

    let large = vec![7; 300_000];
    let hash = block_on(blobs.put(&realm(), large.clone())).unwrap().hash;
    let name = hash.as_str();
    let file = scene.folder.path().join("data/blobs/r").join(&name[..2]).join(name);
    let mut changed = large.clone();
    changed[0] = 8;
    std::fs::write(&file, &changed).unwrap();
    let (_, pieces) = pieces_of(&hash).unwrap();
    let (last, before) = pieces.split_last().unwrap();
    assert_eq!(before.len(), 4);
    assert!(before.iter().all(Result::is_ok));
    assert!(matches!(last, Err(StoreError::Unreadable(_))), "{last:?}");

    // A small one is refused before anything of it is given.
    let small = block_on(blobs.put(&realm(), b"small".to_vec())).unwrap().hash;
    let name = small.as_str();
    let file = scene.folder.path().join("data/blobs/r").join(&name[..2]).join(name);
    std::fs::write(&file, b"SMALL").unwrap();
    let refused = block_on(blobs.open(&realm(), &small, WHOLE)).map(|_| ());
    assert!(matches!(refused, Err(StoreError::Unreadable(_))), "{refused:?}");
}

/// Puts these pieces, of so many bytes at most, as one blob.
fn put_pieces(
    scene: &Scene,
    pieces: Pieces,
    bytes_max: u64,
    bytes: Option<u64>,
) -> Result<BlobRef, StoreError> {
    let pieces = futures::stream::iter(pieces).boxed();
    let incoming = Incoming { pieces, bytes_max, bytes };
    block_on(scene.opened.blobs.put_pieces(&realm(), incoming))
}

#[test]
fn what_comes_in_pieces_has_the_name_that_it_has_as_a_whole() {
    let scene = Scene::new();
    let pieces: Vec<Vec<u8>> = (0..40).map(|number| vec![number; 1_000]).collect();
    let whole = pieces.concat();
    let all = || pieces.iter().cloned().map(Ok).collect::<Pieces>();
    let blob = put_pieces(&scene, all(), 40_000, Some(40_000)).unwrap();
    assert_eq!((blob.hash.clone(), blob.bytes), (ContentHash::of(&whole), 40_000));
    let get = || block_on(scene.opened.blobs.get(&realm(), &blob.hash));
    assert_eq!(get(), Ok(Some(whole.clone())));
    // Put again, a broken one is whole again.
    let files = files_below(&scene.folder.path().join("data/blobs"));
    assert_eq!(files.len(), 1, "{files:?}");
    std::fs::write(&files[0], b"torn").unwrap();
    assert_eq!(put_pieces(&scene, all(), 40_000, None), Ok(blob.clone()));
    assert_eq!(get(), Ok(Some(whole)));
    assert_eq!(BlobsOf(&scene).sweep(1_001, 9), (1, 1), "nothing names it");
    let nothing = put_pieces(&scene, Vec::new(), 0, None).unwrap();
    assert_eq!(block_on(scene.opened.blobs.get(&realm(), &nothing.hash)), Ok(Some(Vec::new())));
}

#[test]
fn what_breaks_off_or_is_too_large_leaves_no_file() {
    let scene = Scene::new();
    let piece = || Ok(vec![7; 1_000]);
    for (pieces, bytes_max, bytes, refusal) in [
        (vec![piece(), piece()], 1_999, None, StoreError::TooLarge(1_999)),
        (vec![piece(), piece()], 9_999, Some(2_001), StoreError::BrokenOff),
        (vec![piece(), piece()], 9_999, Some(1_999), StoreError::BrokenOff),
        (vec![piece(), Err(StoreError::BrokenOff)], 9_999, None, StoreError::BrokenOff),
    ] {
        assert_eq!(put_pieces(&scene, pieces, bytes_max, bytes), Err(refusal));
        assert_eq!(files_below(&scene.folder.path().join("data/blobs")), [] as [PathBuf; 0]);
    }
    // Whoever gives up midway leaves nothing either.
    let pieces = futures::stream::iter([piece()]).chain(futures::stream::pending()).boxed();
    let incoming = Incoming { pieces, bytes_max: 9_999, bytes: None };
    let realm = realm();
    let mut put = scene.opened.blobs.put_pieces(&realm, incoming);
    let drafted = || files_below(&scene.folder.path().join("data/blobs/.drafts"));
    let deadline = Instant::now() + Duration::from_secs(30);
    while drafted().is_empty() {
        assert!(futures::FutureExt::now_or_never(&mut put).is_none());
        assert!(Instant::now() < deadline, "no draft was begun");
    }
    drop(put);
    // The thread may hold it for a moment: it comes to the next job after that.
    while !drafted().is_empty() {
        assert!(!BlobsOf(&scene).has("r", &ContentHash::of(b"none")));
        assert!(Instant::now() < deadline, "the draft stays");
    }
}

#[test]
fn a_draft_of_a_process_that_died_is_gone_after_the_next_sweep() {
    let scene = Scene::new();
    let kept = BlobsOf(&scene).put("r", "kept");
    let folder = scene.closed();
    let drafts = folder.path().join("data/blobs/.drafts");
    std::fs::create_dir_all(&drafts).unwrap();
    std::fs::write(drafts.join("7.draft"), b"half of").unwrap();
    let opened = open(&folder, Arc::new(Threads::default()), Limits::default()).unwrap();
    let scene = Scene { opened, folder };
    let blobs = BlobsOf(&scene);
    assert_eq!(blobs.sweep(1_000, 9), (0, 0));
    assert_eq!(files_below(&drafts), [] as [PathBuf; 0]);
    assert!(blobs.has("r", &kept));
}

#[test]
fn a_part_of_a_blob_can_be_read() {
    let scene = Scene::new();
    let large: Vec<u8> = (0..200_000_usize).map(|at| (at % 251) as u8).collect();
    let hash = block_on(scene.opened.blobs.put(&realm(), large.clone())).unwrap().hash;
    for part in [0..1, 0..0, 5..5, 65_000..66_000, 65_536..131_072, 199_999..200_001, 7..200_000] {
        let open = block_on(scene.opened.blobs.open(&realm(), &hash, part.clone())).unwrap();
        let open = open.unwrap();
        assert_eq!(open.bytes, 200_000);
        let read = block_on(open.whole(200_000)).unwrap();
        let end = (part.end as usize).min(large.len());
        assert!(read == large[part.start as usize..end], "{part:?}");
    }
    let behind = block_on(scene.opened.blobs.open(&realm(), &hash, 300_000..400_000)).unwrap();
    assert_eq!(block_on(behind.unwrap().whole(200_000)), Ok(Vec::new()));
    let whole = block_on(scene.opened.blobs.open(&realm(), &hash, WHOLE)).unwrap().unwrap();
    assert_eq!(block_on(whole.whole(199_999)), Err(StoreError::TooLarge(199_999)));
}

#[test]
fn a_key_is_written_with_what_it_stands_for_and_only_once() {
    let scene = Scene::new();
    let (mut a, mut b) = (Driver::new("r", "a"), Driver::new("r", "b"));
    let once = |run: RunId| OnceRow {
        subject: "ann".into(),
        route: "POST /runs".to_owned(),
        key: "k".to_owned(),
        digest: ContentHash::of(b"body"),
        run: Some(run),
        ask: None,
        at: Millis(10),
    };
    let found = |realm: &str, subject: &str| {
        block_on(scene.store().once(&realm.into(), subject, "POST /runs", "k"))
    };
    let mut first = a.created();
    first.once = Some(once(a.run_row(1).id));
    done(scene.store().append(first));
    assert_eq!(found("r", "ann"), Ok(Some(once(a.run_row(1).id))));
    assert_eq!(found("r", "eve"), Ok(None));
    assert_eq!(found("other", "ann"), Ok(None));
    let mut second = b.created();
    second.once = Some(once(b.run_row(1).id));
    let taken = block_on(scene.store().append(second));
    assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
    assert_eq!(scene.load(b.key()), None, "half of it was written");
    assert_eq!(found("r", "ann"), Ok(Some(once(a.run_row(1).id))));
}

/// An append that begins the run of a case with this reason.
fn counted(a: &mut Driver, at: i64, deterministic: bool, reason: &str) -> Append {
    a.row.updated_at = Millis(at);
    let mut append = a.next();
    let (pipeline, reason) = ("trades".into(), reason.into());
    append.tally = Some(Tally { pipeline, deterministic, reason });
    append
}

#[test]
fn roads_are_counted_with_the_runs_that_take_them() {
    let limits = Limits { tally_reasons_max: 2, ..Limits::default() };
    let scene = Scene::with(Arc::new(Threads::default()), limits);
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    let cases = [
        (true, "b"),
        (false, "x"),
        (true, "b"),
        (false, "y"),
        (false, "z"),
        (false, "x"),
        (true, "c"),
        (false, "w"),
    ];
    for (at, (deterministic, reason)) in (20..).zip(cases) {
        done(scene.store().append(counted(&mut a, at, deterministic, reason)));
    }
    let listed = |scene: &Scene, realm: &str, pipeline: &str| {
        block_on(scene.store().tallies(&realm.into(), &pipeline.into())).unwrap()
    };
    let row = |deterministic, reason: &str, count, at| TallyRow {
        deterministic,
        reason: reason.to_owned(),
        count,
        last_at: Millis(at),
    };
    let all = vec![
        row(false, OTHER_REASONS, 2, 27),
        row(true, "b", 2, 22),
        row(false, "x", 2, 25),
        row(true, "c", 1, 26),
        row(false, "y", 1, 23),
    ];
    assert_eq!(listed(&scene, "r", "trades"), all);
    assert_eq!(listed(&scene, "r", "other"), []);
    assert_eq!(listed(&scene, "q", "trades"), []);

    // What is refused is not counted, and what was counted outlives its session.
    let mut wrong = a.clone();
    wrong.row.fence = Fence(99);
    let refused = block_on(scene.store().append(counted(&mut wrong, 30, true, "b")));
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    block_on(scene.store().remove(a.key(), a.row.known())).unwrap();
    assert_eq!(listed(&scene.reopened(), "r", "trades"), all);
}

#[test]
fn the_next_wake_is_the_nearest_one_after_now() {
    let scene = Scene::new();
    for (id, wake_at) in [("a", Some(50)), ("b", Some(90)), ("c", None), ("d", Some(70))] {
        let mut driver = Driver::new("r", id);
        driver.row.wake_at = wake_at.map(Millis);
        done(scene.store().append(driver.created()));
    }
    assert_eq!(block_on(scene.store().next_wake(Millis(50))), Ok(Some(Millis(70))));
    assert_eq!(block_on(scene.store().next_wake(Millis(90))), Ok(None));
}

#[test]
fn old_sessions_are_removed_in_slices_and_their_keys_when_they_are_old_too() {
    let scene = Scene::new();
    let key = |run: RunId, at: i64| OnceRow {
        subject: "ann".into(),
        route: "POST /runs".to_owned(),
        key: at.to_string(),
        digest: ContentHash::of(b"body"),
        run: Some(run),
        ask: None,
        at: Millis(at),
    };
    let mut drivers: Vec<Driver> = Vec::new();
    for (id, status, updated_at) in [
        ("over", RunStatus::Completed, 10),
        ("moves", RunStatus::Running, 10),
        ("held", RunStatus::Failed, 10),
        ("young", RunStatus::Completed, 200),
        ("also over", RunStatus::Cancelled, 10),
    ] {
        let mut driver = Driver::new("r", id);
        let run = driver.run_row(1);
        (driver.row.status, driver.row.run) = (status, Some(run.id));
        driver.row.updated_at = Millis(updated_at);
        let mut created = driver.created();
        created.once = Some(key(run.id, 10 + drivers.len() as i64));
        created.runs = vec![run];
        done(scene.store().append(created));
        drivers.push(driver);
    }
    let (before, but) = (Millis(100), [drivers[2].key().clone()]);
    let others = [RealmId::from("o")];
    let whose = Realms::AllBut(&others);
    let prune =
        |after, limit| block_on(scene.store().prune(whose, before, &but, Slice { after, limit }));
    let ours = [realm()];
    let spared = block_on(scene.store().prune(Realms::AllBut(&ours), before, &[], NINE)).unwrap();
    assert_eq!(spared, PrunedSlice::default());
    let feed = block_on(scene.store().feed(&realm(), 0, 9)).unwrap();
    let gone = |realm: &str| block_on(scene.store().consumer(&realm.into(), RETENTION)).unwrap();
    assert_eq!(gone("r"), 0);
    let first = prune(0, 2).unwrap();
    assert_eq!(first.removed, [drivers[0].key().clone()]);
    assert_eq!(gone("r"), feed[0].cursor);
    let second = prune(first.next.unwrap(), 2).unwrap();
    assert_eq!((second.removed, second.next), (vec![drivers[4].key().clone()], None));
    // Up to here the feed has gaps, though some of its rows are left.
    assert_eq!((gone("r"), gone("o")), (feed[4].cursor, 0));
    assert_eq!(first.rows, 3, "the session, its journal and its run");
    let left: Vec<bool> = drivers.iter().map(|driver| scene.load(driver.key()).is_some()).collect();
    assert_eq!(left, [false, true, true, true, false]);
    let kept: Vec<bool> = (10..15)
        .map(|at: i64| {
            let (realm, key) = (realm(), at.to_string());
            let found = scene.store().once(&realm, "ann", "POST /runs", &key);
            block_on(found).unwrap().is_some()
        })
        .collect();
    assert_eq!(kept, [false, true, true, true, false]);
    let other = Realms::One(&others[0]);
    assert_eq!(block_on(scene.store().prune(other, before, &[], NINE)).unwrap().rows, 0);
    let our = Realms::One(&ours[0]);
    let last = block_on(scene.store().prune(our, before, &[], NINE)).unwrap();
    assert_eq!(last.removed, [drivers[2].key().clone()]);
}

/// An append with one call of a run that ended then.
fn ended_run(a: &mut Driver, no: u32, ended_at: i64) -> Append {
    let position = [&no.to_be_bytes()[..], &[1]].concat();
    let mut append = call(a, &position, "x");
    let ended =
        RunRow { status: RunStatus::Completed, ended_at: Some(Millis(ended_at)), ..a.run_row(no) };
    append.history[0].run = ended.id;
    append.runs = vec![ended];
    append
}

/// A trim up to this event, with some event as the base: what is in it is not the store's concern.
fn trim_at(a: &Driver, seq: u64, last_run: u32) -> Trim {
    let fact = Fact::TimerFired { timer: "base".to_owned() };
    let base = Event { seq, at: Millis(10), v: VERSION, fact };
    Trim {
        key: a.key().clone(),
        id: a.row.id,
        fence: a.row.fence,
        before: Millis(100),
        seq,
        base: serde_json::to_string(&base).unwrap(),
        last_run,
    }
}

/// A session with two old runs, in the events 2 to 5, with a snapshot of the first, and a third run
/// that goes on from event 7.
fn three_runs(scene: &Scene) -> Driver {
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    let mut first = ended_run(&mut a, 1, 20);
    first.snapshot = Some("three".to_owned());
    let ask = a.ask("one");
    first.asks = vec![AskChange::Opened(Box::new(ask.clone())), decided(&ask, "ann")];
    done(scene.store().append(first));
    done(scene.store().append(ended_run(&mut a, 2, 30)));
    let timer = |name: &str| Fact::TimerFired { timer: name.to_owned() };
    let mut third = a.append(vec![timer("six"), timer("seven")]);
    third.runs = vec![a.run_row(3)];
    done(scene.store().append(third));
    a
}

#[test]
fn sessions_with_old_runs_are_found_and_those_with_one_run_are_not() {
    let scene = Scene::new();
    let a = three_runs(&scene);
    let mut b = Driver::new("r", "b");
    done(scene.store().append(b.created()));
    done(scene.store().append(ended_run(&mut b, 1, 20)));
    let found = |realm: &str, before: i64, after| {
        let realm = RealmId::from(realm);
        let read =
            scene.store().trimmable(Realms::One(&realm), Millis(before), Slice { after, limit: 9 });
        block_on(read).unwrap()
    };
    let old = found("r", 100, None);
    assert_eq!(old.len(), 1);
    assert_eq!((&old[0].key, old[0].id, old[0].keeps), (a.key(), a.row.id, 3));
    assert_eq!(found("r", 25, None)[0].keeps, 2);
    assert!(found("r", 20, None).is_empty(), "the first run ended at that very time");
    assert!(found("other", 100, None).is_empty());
    assert!(found("r", 100, Some(old[0].place)).is_empty());
    let ours = [realm()];
    let others = scene.store().trimmable(
        Realms::AllBut(&ours),
        Millis(100),
        Slice { after: None, limit: 9 },
    );
    assert_eq!(block_on(others), Ok(Vec::new()));
}

#[test]
fn old_runs_go_and_a_base_stands_in_their_place() {
    let scene = Scene::new();
    let mut a = three_runs(&scene);
    let store = scene.store();
    let feed = block_on(store.feed(&realm(), 0, 9)).unwrap();
    let trimmed = block_on(store.trim(trim_at(&a, 6, 2))).unwrap();
    assert_eq!(trimmed, Some(9), "three rows, an ask, two entries, two runs, a snapshot");
    let seqs = |after: u64| {
        let events = block_on(store.events(a.key(), after, 9))?;
        Ok::<Vec<u64>, StoreError>(events.iter().map(|(seq, _)| *seq).collect())
    };
    assert_eq!((seqs(0), seqs(6)), (Ok(vec![6, 7]), Ok(vec![7])));
    assert_eq!((seqs(1), seqs(5)), (Err(StoreError::Gone(6)), Err(StoreError::Gone(6))));
    let stored = scene.load(a.key()).unwrap();
    assert_eq!((stored.snapshot, stored.tail.len()), (None, 1));
    assert!(stored.tail[0].contains("base") && stored.tail[0].contains("seven"));
    assert!(!stored.tail[0].contains("six"));
    // The row is where it was in the feed, and a reader before it has missed something.
    let kept = block_on(store.feed(&realm(), 0, 9)).unwrap();
    assert_eq!((kept.len(), kept[0].cursor), (1, feed[3].cursor));
    assert_eq!(block_on(store.consumer(&realm(), RETENTION)), Ok(feed[3].cursor));
    for (no, there) in [(1, false), (2, false), (3, true)] {
        let run = block_on(store.run(&realm(), a.run_row(no).id)).unwrap();
        assert_eq!(run.is_some(), there, "run {no}");
    }
    assert_eq!(block_on(store.ask(&realm(), a.ask("one").id)), Ok(None));
    let everything = page(9, None);
    let history = block_on(store.history(a.key(), HistoryFilter::default(), &everything));
    assert!(history.unwrap().items.is_empty());
    // The session goes on as it was.
    a.saw_a_change();
    let eighth = Append { snapshot: Some("eight".to_owned()), ..a.next() };
    done(store.append(eighth));
    done(store.append(a.next()));
    let stored = scene.load(a.key()).unwrap();
    assert_eq!((stored.snapshot.as_deref(), stored.tail.len()), (Some("eight"), 1));
    let ours = [realm()];
    let again =
        store.trimmable(Realms::One(&ours[0]), Millis(100), Slice { after: None, limit: 9 });
    assert_eq!(block_on(again), Ok(Vec::new()));
    assert_eq!(block_on(store.trim(trim_at(&a, 6, 2))), Ok(None));
}

#[test]
fn a_session_that_is_not_as_the_trim_says_stays_whole() {
    let scene = Scene::new();
    let a = three_runs(&scene);
    let newest = trim_at(&a, 7, 3);
    let young = Trim { before: Millis(30), ..trim_at(&a, 6, 2) };
    let other = Trim { id: SessionId(1), ..trim_at(&a, 6, 2) };
    let nothing = trim_at(&a, 1, 0);
    for trim in [newest, young, other, nothing] {
        assert_eq!(block_on(scene.store().trim(trim.clone())), Ok(None), "{trim:?}");
    }
    let events = block_on(scene.store().events(a.key(), 1, 9)).unwrap();
    assert_eq!(events.len(), 6);
    assert_eq!(block_on(scene.store().consumer(&realm(), RETENTION)), Ok(0));
    // All or nothing, also over a restart; here the base is the last event of its row.
    assert!(block_on(scene.store().trim(trim_at(&a, 5, 2))).unwrap().is_some());
    let scene = scene.reopened();
    let events = block_on(scene.store().events(a.key(), 0, 9)).unwrap();
    assert_eq!(events.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [5, 6, 7]);
}

/// An event that holds this blob.
fn holding(hash: &ContentHash) -> Fact {
    let held = Held::Blob(BlobRef { hash: hash.clone(), bytes: 1 });
    let datum = Datum { held, from: Origin::Input, labels: Vec::new() };
    Fact::CallLate { call: CallId(1), result: Ok(Arc::new(datum)) }
}

/// An event whose text speaks of this blob.
fn speaking_of(hash: &ContentHash) -> Fact {
    let words = json!(format!("it is at blob://{hash}, all of it"));
    let datum = Datum::inline(words, Origin::Input);
    Fact::CallLate { call: CallId(1), result: Ok(Arc::new(datum)) }
}

/// Puts blobs, looks for them and sweeps; the store's clock stands at 1,000.
struct BlobsOf<'a>(&'a Scene);

impl BlobsOf<'_> {
    fn put(&self, realm: &str, text: &str) -> ContentHash {
        let bytes = text.as_bytes().to_vec();
        block_on(self.0.opened.blobs.put(&realm.into(), bytes)).unwrap().hash
    }

    fn has(&self, realm: &str, hash: &ContentHash) -> bool {
        block_on(self.0.opened.blobs.get(&realm.into(), hash)).unwrap().is_some()
    }

    fn sweep(&self, before: i64, limit: usize) -> (usize, u64) {
        block_on(self.0.opened.blobs.sweep(Millis(before), limit)).unwrap()
    }
}

#[test]
fn a_blob_goes_when_nothing_has_named_it_for_long() {
    let scene = Scene::new();
    let blobs = BlobsOf(&scene);
    let [held, spoken_of, shared, unnamed] =
        ["held", "spoken of", "shared", "unnamed"].map(|text| blobs.put("r", text));
    let elsewhere = blobs.put("other", "shared");
    let stray = scene.folder.path().join("data/blobs/r/notes.txt");
    std::fs::write(&stray, "whose?").unwrap();
    let (mut a, mut b) = (Driver::new("r", "a"), Driver::new("r", "b"));
    done(scene.store().append(a.created()));
    let facts = vec![holding(&held), speaking_of(&spoken_of), holding(&shared)];
    done(scene.store().append(a.append(facts)));
    done(scene.store().append(b.created()));
    done(scene.store().append(b.append(vec![holding(&shared)])));
    assert_eq!(blobs.sweep(1_000, 9), (0, 0), "they were put just now");
    let slices = [blobs.sweep(1_001, 3), blobs.sweep(1_001, 3), blobs.sweep(1_001, 3)];
    assert_eq!(slices.map(|(looked, _)| looked), [3, 2, 0]);
    assert!(!blobs.has("r", &unnamed) && !blobs.has("other", &elsewhere));
    assert!([&held, &spoken_of, &shared].iter().all(|hash| blobs.has("r", hash)));
    // What a session named is loose when it goes, and not before.
    block_on(scene.store().remove(a.key(), a.row.known())).unwrap();
    assert_eq!(blobs.sweep(1_000, 9), (0, 0), "they lost it just now");
    assert_eq!(blobs.sweep(1_001, 9), (3, 2));
    assert!(blobs.has("r", &shared), "the other session still names it");
    let ours = [realm()];
    block_on(scene.store().prune(Realms::One(&ours[0]), Millis(100), &[], NINE)).unwrap();
    assert_eq!((blobs.sweep(1_001, 9), blobs.has("r", &shared)), ((1, 1), false));
    assert_eq!(blobs.put("r", "shared"), shared);
    assert!(blobs.has("r", &shared) && stray.exists());
}

#[test]
fn a_blob_stays_as_long_as_a_holder_of_any_kind_has_it() {
    let scene = Scene::new();
    let blobs = BlobsOf(&scene);
    let hold = |realm: &str, holder: &Holder, hashes: &[ContentHash]| {
        block_on(scene.opened.blobs.hold(&realm.into(), holder, hashes)).unwrap();
    };
    let release = |realm: &str, holder: &Holder| {
        block_on(scene.opened.blobs.release(&realm.into(), holder)).unwrap();
    };
    let [first, second] = ["first", "second"].map(|text| blobs.put("r", text));
    let elsewhere = blobs.put("other", "first");
    let record = Holder { kind: "record", id: "7".to_owned() };
    let job = Holder { kind: "job", id: "7".to_owned() };
    hold("r", &record, &[first.clone(), second.clone()]);
    hold("r", &record, std::slice::from_ref(&first));
    hold("r", &job, std::slice::from_ref(&first));
    hold("other", &record, std::slice::from_ref(&elsewhere));
    assert_eq!(blobs.sweep(1_001, 9), (3, 0), "all are held");
    // Another kind, or another realm, with the same id is another holder.
    release("r", &record);
    assert_eq!(blobs.sweep(1_000, 9), (0, 0), "they lost it just now");
    assert_eq!(blobs.sweep(1_001, 9), (2, 1));
    assert!(blobs.has("r", &first) && !blobs.has("r", &second) && blobs.has("other", &elsewhere));
    // A session with the same number takes nothing of theirs along.
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    done(scene.store().append(a.append(vec![holding(&first)])));
    release("r", &job);
    assert_eq!(blobs.sweep(1_001, 9), (1, 0), "the session names it");
    hold("r", &job, std::slice::from_ref(&first));
    block_on(scene.store().remove(a.key(), a.row.known())).unwrap();
    assert_eq!(blobs.sweep(1_001, 9), (1, 0), "the job holds it");
    release("r", &job);
    release("r", &job);
    assert_eq!((blobs.sweep(1_001, 9), blobs.has("r", &first)), ((1, 1), false));
}

#[test]
fn what_a_call_holds_it_holds_no_longer_than_its_process_lives() {
    let scene = Scene::new();
    let blobs = BlobsOf(&scene);
    let [of_call, of_job] = ["of a call", "of a job"].map(|text| blobs.put("r", text));
    let job = Holder { kind: "job", id: "1".to_owned() };
    for (holder, hash) in [(&Holder::call(CallId(1)), &of_call), (&job, &of_job)] {
        let hashes = std::slice::from_ref(hash);
        block_on(scene.opened.blobs.hold(&realm(), holder, hashes)).unwrap();
    }
    assert_eq!(blobs.sweep(1_001, 9), (2, 0));
    let scene = scene.reopened();
    let blobs = BlobsOf(&scene);
    assert_eq!(blobs.sweep(1_001, 9), (1, 1));
    assert!(!blobs.has("r", &of_call) && blobs.has("r", &of_job));
}

#[test]
fn an_older_database_keeps_what_its_sessions_name() {
    let scene = Scene::new();
    let hash = BlobsOf(&scene).put("r", "large");
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    done(scene.store().append(a.append(vec![holding(&hash)])));
    let folder = scene.closed();
    let database = rusqlite::Connection::open(folder.path().join("data/waypost.db")).unwrap();
    let as_before = "CREATE TABLE blob_refs (
            session INTEGER NOT NULL REFERENCES sessions (pk) ON DELETE CASCADE,
            hash TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (session, hash)) WITHOUT ROWID;
        INSERT INTO blob_refs SELECT holder, hash, seq FROM blob_holds WHERE kind = 'session';
        DROP TRIGGER sessions_let_go; DROP TABLE blob_holds;
        DELETE FROM migrations WHERE version = 10;";
    database.execute_batch(as_before).unwrap();
    drop(database);
    let opened = open(&folder, Arc::new(Threads::default()), Limits::default()).unwrap();
    let scene = Scene { opened, folder };
    let blobs = BlobsOf(&scene);
    assert_eq!((blobs.sweep(1_001, 9), blobs.has("r", &hash)), ((1, 0), true));
    block_on(scene.store().remove(a.key(), a.row.known())).unwrap();
    assert_eq!((blobs.sweep(1_001, 9), blobs.has("r", &hash)), ((1, 1), false));
}

#[test]
fn a_trimmed_session_names_what_its_base_and_the_rest_name() {
    let scene = Scene::new();
    let blobs = BlobsOf(&scene);
    let [gone, in_base, in_row, later, again] =
        ["gone", "in base", "in row", "later", "again"].map(|text| blobs.put("r", text));
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    let mut first = a.append(vec![holding(&gone), holding(&in_base), holding(&again)]);
    first.runs = vec![RunRow { ended_at: Some(Millis(20)), ..a.run_row(1) }];
    done(scene.store().append(first));
    let mut second = a.append(vec![holding(&gone), holding(&in_row)]);
    second.runs = vec![a.run_row(2)];
    done(scene.store().append(second));
    done(scene.store().append(a.append(vec![holding(&later), speaking_of(&again)])));
    let base = Event { seq: 5, at: Millis(10), v: VERSION, fact: holding(&in_base) };
    let base = serde_json::to_string(&base).unwrap();
    let trimmed = block_on(scene.store().trim(Trim { base, ..trim_at(&a, 5, 1) })).unwrap();
    assert!(trimmed.is_some());
    let (_, removed) = blobs.sweep(1_001, 9);
    assert_eq!((removed, blobs.has("r", &gone)), (1, false));
    for hash in [&in_base, &in_row, &later, &again] {
        assert!(blobs.has("r", hash));
    }
    block_on(scene.store().remove(a.key(), a.row.known())).unwrap();
    assert_eq!(blobs.sweep(1_001, 9), (4, 4));
}

#[test]
fn an_older_database_learns_what_its_journals_name() {
    let scene = Scene::new();
    let hash = BlobsOf(&scene).put("r", "large");
    let mut a = three_runs(&scene);
    done(scene.store().append(a.append(vec![holding(&hash)])));
    let folder = scene.closed();
    let database = rusqlite::Connection::open(folder.path().join("data/waypost.db")).unwrap();
    let as_before = "DROP TRIGGER sessions_let_go; DROP TABLE blob_holds; DROP TABLE loose_blobs;
        DROP INDEX sessions_to_trim; ALTER TABLE sessions DROP COLUMN trim_at; DROP INDEX runs_in_session;
        CREATE INDEX runs_of_session ON runs (session);
        DELETE FROM migrations WHERE version IN (2, 10);";
    database.execute_batch(as_before).unwrap();
    drop(database);
    let opened = open(&folder, Arc::new(Threads::default()), Limits::default()).unwrap();
    let scene = Scene { opened, folder };
    let ours = [realm()];
    let old = scene.store().trimmable(
        Realms::One(&ours[0]),
        Millis(100),
        Slice { after: None, limit: 9 },
    );
    assert_eq!(block_on(old).unwrap().len(), 1);
    let blobs = BlobsOf(&scene);
    assert_eq!((blobs.sweep(1_001, 9), blobs.has("r", &hash)), ((0, 0), true));
    block_on(scene.store().remove(a.key(), a.row.known())).unwrap();
    assert_eq!((blobs.sweep(1_001, 9), blobs.has("r", &hash)), ((1, 1), false));
}

#[test]
fn what_a_run_spent_is_kept_and_an_older_database_has_spent_nothing() {
    let scene = Scene::new();
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    let mut first = a.next();
    first.runs = vec![a.run_row(1)];
    done(scene.store().append(first));
    let spent = RunSpent { turns: 2, input: 30, output: 7, cost_micros: 11, unpriced: 1 };
    let asked = RunRow { spent, stopped: Some("steps".into()), ..a.run_row(1) };
    let mut second = a.next();
    second.runs = vec![asked.clone()];
    done(scene.store().append(second));
    let found = block_on(scene.store().run(&realm(), asked.id)).unwrap().unwrap();
    assert_eq!(found.row, asked);

    let folder = scene.closed();
    let database = rusqlite::Connection::open(folder.path().join("data/waypost.db")).unwrap();
    let as_before = "ALTER TABLE runs DROP COLUMN spent; ALTER TABLE runs DROP COLUMN stopped;
        DELETE FROM migrations WHERE version = 3;";
    database.execute_batch(as_before).unwrap();
    drop(database);
    let opened = open(&folder, Arc::new(Threads::default()), Limits::default()).unwrap();
    let scene = Scene { opened, folder };
    let found = block_on(scene.store().run(&realm(), asked.id)).unwrap().unwrap();
    assert_eq!(found.row, RunRow { spent: RunSpent::default(), stopped: None, ..asked });
}

#[test]
fn owners_are_kept_and_rows_of_an_older_database_have_none() {
    let scene = Scene::new();
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    a.row.owner = Some("ann".into());
    let mut first = a.next();
    let run = RunRow { owner: Some("bob".into()), ..a.run_row(1) };
    first.runs = vec![run.clone()];
    done(scene.store().append(first));
    let owners = |scene: &Scene| {
        let id = SessionRef::Id(a.row.id);
        let session = block_on(scene.store().session(&realm(), &id)).unwrap().unwrap();
        let run = block_on(scene.store().run(&realm(), run.id)).unwrap().unwrap();
        (session.owner, run.row.owner)
    };
    assert_eq!(owners(&scene), (Some("ann".into()), Some("bob".into())));

    let folder = scene.closed();
    let database = rusqlite::Connection::open(folder.path().join("data/waypost.db")).unwrap();
    let as_before = "ALTER TABLE sessions DROP COLUMN owner; ALTER TABLE runs DROP COLUMN owner;
        DROP TABLE tool_specs; DROP TABLE spec_pins; DELETE FROM migrations WHERE version = 8;";
    database.execute_batch(as_before).unwrap();
    drop(database);
    let opened = open(&folder, Arc::new(Threads::default()), Limits::default()).unwrap();
    assert_eq!(owners(&Scene { opened, folder }), (None, None));
}

/// A closure of this text.
fn closure(text: &str) -> Arc<StoredClosure> {
    Arc::new(StoredClosure { hash: ContentHash::of(text.as_bytes()), body: text.to_owned() })
}

/// The append in which a run of the session starts, with what it pins.
fn starting(a: &mut Driver, no: u32, pinned: &Arc<StoredClosure>) -> Append {
    let run = a.run_row(no);
    let fact = Fact::RunStarted {
        run: run.id,
        plan: run.plan.clone(),
        closure: pinned.hash.clone(),
        input: Arc::new(Datum::inline(json!({}), Origin::Input)),
        by: "ann".into(),
        frame: FrameId(no),
        start: StepId::from("one"),
        trace: None,
        metered: true,
        subject: None,
        actor: None,
        scopes: None,
        about: None,
    };
    let mut append = a.append(vec![fact]);
    append.pins = BTreeMap::from([(run.id, pinned.hash.clone())]);
    append.closure = Some(pinned.clone());
    append.runs = vec![run];
    append
}

impl Scene {
    /// Sweeps the closures: how many were looked at, and how many went.
    fn swept(&self) -> (usize, u64) {
        block_on(self.store().sweep_closures(9)).unwrap()
    }

    /// A session with one run that ended at 20 and pins this.
    fn pinning(&self, realm: &str, id: &str, pinned: &Arc<StoredClosure>) -> Driver {
        let mut a = Driver::new(realm, id);
        done(self.store().append(a.created()));
        done(self.store().append(starting(&mut a, 1, pinned)));
        a.row.status = RunStatus::Completed;
        done(self.store().append(ended_run(&mut a, 1, 20)));
        a
    }

    fn has_closure(&self, realm: &str, closure: &StoredClosure) -> bool {
        let found = block_on(self.store().closure(&realm.into(), &closure.hash)).unwrap();
        found.is_some_and(|body| body == closure.body)
    }

    fn prune(&self, before: i64) -> PrunedSlice {
        let realm = realm();
        let prune = self.store().prune(Realms::One(&realm), Millis(before), &[], NINE);
        block_on(prune).unwrap()
    }
}

#[test]
fn a_closure_goes_with_the_last_run_that_pins_it() {
    let scene = Scene::new();
    let (shared, own) = (closure("shared"), closure("own"));
    let a = scene.pinning("r", "a", &shared);
    let b = scene.pinning("r", "b", &shared);
    let c = scene.pinning("r", "c", &own);
    let other = scene.pinning("other", "a", &shared);
    block_on(scene.store().remove(a.key(), a.row.known())).unwrap();
    assert_eq!(scene.swept(), (1, 0));
    assert!(scene.has_closure("r", &shared), "another session pins it");
    block_on(scene.store().remove_sent(b.key(), b.row.known())).unwrap();
    block_on(scene.store().remove(other.key(), other.row.known())).unwrap();
    assert_eq!(scene.swept(), (2, 2));
    assert!(!scene.has_closure("r", &shared) && !scene.has_closure("other", &shared));
    // One that is gone comes back with the next run that pins it.
    let b = scene.pinning("r", "b", &shared);
    assert!(scene.has_closure("r", &shared));
    let pruned = scene.prune(100);
    assert_eq!(pruned.removed, [c.key().clone(), b.key().clone()]);
    let scene = scene.reopened();
    assert_eq!(scene.swept(), (2, 2));
    assert!(!scene.has_closure("r", &shared) && !scene.has_closure("r", &own));
    assert_eq!(scene.swept(), (0, 0));
}

#[test]
fn a_trimmed_run_takes_its_closure_along() {
    let scene = Scene::new();
    let (old, kept) = (closure("old"), closure("kept"));
    let mut a = scene.pinning("r", "a", &old);
    // Of two runs that pin the same one stays.
    let mut append = starting(&mut a, 2, &kept);
    append.runs[0].status = RunStatus::Completed;
    append.runs[0].ended_at = Some(Millis(30));
    done(scene.store().append(append));
    done(scene.store().append(starting(&mut a, 3, &kept)));
    let trimmed = block_on(scene.store().trim(trim_at(&a, a.row.seq - 1, 2))).unwrap();
    assert!(trimmed.is_some());
    assert_eq!(scene.swept(), (2, 1));
    assert!(!scene.has_closure("r", &old) && scene.has_closure("r", &kept));
}

#[test]
fn a_run_that_starts_while_others_are_removed_has_its_closure() {
    let threads = Threads::keeping();
    let scene = Scene::with(threads.clone(), Limits::default());
    let pinned = closure("shared");
    let (mut a, mut b) = (Driver::new("r", "a"), Driver::new("r", "b"));
    let mut tickets = vec![
        scene.store().append(a.created()),
        scene.store().append(starting(&mut a, 1, &pinned)),
        scene.store().append(b.created()),
    ];
    // All of it shares a commit: the removal comes first, and the run after it brings its own.
    let mut removal = scene.store().remove(a.key(), a.row.known());
    assert!(futures::FutureExt::now_or_never(&mut removal).is_none());
    tickets.push(scene.store().append(starting(&mut b, 1, &pinned)));
    threads.let_go();
    tickets.into_iter().for_each(done);
    block_on(removal).unwrap();
    assert_eq!(scene.swept(), (0, 0), "the run after it took it off the list");
    assert!(scene.has_closure("r", &pinned));
}

/// A tool's spec, with this description.
fn spec(description: &str) -> Arc<ToolSpec> {
    let spec = json!({
        "name": "math::add", "title": "add", "description": description,
        "inputSchema": {"type": "object"}, "reach": "reads", "idempotent": true,
    });
    Arc::new(serde_json::from_value(spec).unwrap())
}

/// The same append, with a call in it that pins this spec.
fn calling(append: Append, closure: &StoredClosure, spec: &Arc<ToolSpec>) -> Append {
    let pinned =
        PinnedSpec { closure: closure.hash.clone(), hash: spec.hash(), spec: spec.clone() };
    Append { specs: vec![pinned], ..append }
}

fn spec_of(scene: &Scene, realm: &str, spec: &ToolSpec) -> Option<ToolSpec> {
    let text = block_on(scene.store().tool_spec(&realm.into(), &spec.hash())).unwrap()?;
    assert_eq!(ContentHash::of(text.as_bytes()), spec.hash());
    Some(serde_json::from_str(&text).unwrap())
}

#[test]
fn a_spec_is_there_as_long_as_a_closure_that_pins_it() {
    let scene = Scene::new();
    let (one, two) = (closure("one"), closure("two"));
    let (shared, own) = (spec("shared"), spec("own"));
    let mut a = scene.pinning("r", "a", &one);
    let mut b = scene.pinning("r", "b", &two);
    for _ in 0..2 {
        done(scene.store().append(calling(a.next(), &one, &shared)));
        done(scene.store().append(calling(a.next(), &one, &own)));
        done(scene.store().append(calling(b.next(), &two, &shared)));
    }
    assert_eq!(spec_of(&scene, "r", &shared).as_ref(), Some(&*shared));
    assert_eq!(spec_of(&scene, "other", &shared), None);
    block_on(scene.store().remove(a.key(), a.row.known())).unwrap();
    assert_eq!(scene.swept(), (1, 1));
    assert!(spec_of(&scene, "r", &own).is_none() && spec_of(&scene, "r", &shared).is_some());
    // One that is gone comes back with the next run that pins it.
    let mut a = scene.pinning("r", "a", &one);
    done(scene.store().append(calling(a.next(), &one, &own)));
    assert!(spec_of(&scene, "r", &own).is_some());
    block_on(scene.store().remove(a.key(), a.row.known())).unwrap();
    block_on(scene.store().remove(b.key(), b.row.known())).unwrap();
    let scene = scene.reopened();
    assert_eq!(scene.swept(), (2, 2));
    assert!(spec_of(&scene, "r", &own).is_none() && spec_of(&scene, "r", &shared).is_none());
}

#[test]
fn a_spec_is_kept_whatever_else_of_its_batch_is_written_again() {
    let threads = Threads::keeping();
    let scene = Scene::with(threads.clone(), Limits::default());
    let (pinned, spec) = (closure("pinned"), spec("pinned"));
    let (mut a, mut b) = (Driver::new("r", "a"), Driver::new("r", "b"));
    let mut tickets = vec![scene.store().append(a.created())];
    tickets.push(scene.store().append(calling(starting(&mut a, 1, &pinned), &pinned, &spec)));
    tickets.push(scene.store().append(b.created()));
    tickets.push(scene.store().append(b.asking(&["one"])));
    let mut twice = b.next();
    let ask = b.ask("one");
    twice.asks = vec![decided(&ask, "ann"), decided(&ask, "bob")];
    let fails = scene.store().append(twice);
    threads.let_go();
    tickets.into_iter().for_each(done);
    assert!(block_on(fails).is_err(), "an ask is decided once");
    assert!(spec_of(&scene, "r", &spec).is_some());
}

#[test]
fn an_older_database_learns_what_its_runs_pin_and_loses_what_none_does() {
    let scene = Scene::new();
    let (pinned, orphan) = (closure("pinned"), closure("orphan"));
    let a = scene.pinning("r", "a", &pinned);
    let folder = scene.closed();
    let database = rusqlite::Connection::open(folder.path().join("data/waypost.db")).unwrap();
    let as_before = "ALTER TABLE runs DROP COLUMN closure;
        DROP TABLE loose_closures; DELETE FROM migrations WHERE version = 6;";
    database.execute_batch(as_before).unwrap();
    let sql = "INSERT INTO closures (realm, hash, body) VALUES ('r', ?1, ?2)";
    database.execute(sql, [orphan.hash.as_str(), orphan.body.as_str()]).unwrap();
    drop(database);
    let opened = open(&folder, Arc::new(Threads::default()), Limits::default()).unwrap();
    let scene = Scene { opened, folder };
    assert!(scene.has_closure("r", &orphan));
    assert_eq!(scene.swept(), (2, 1));
    assert!(!scene.has_closure("r", &orphan) && scene.has_closure("r", &pinned));
    assert_eq!(scene.swept(), (0, 0));
    block_on(scene.store().remove(a.key(), a.row.known())).unwrap();
    assert_eq!(scene.swept(), (1, 1));
    assert!(!scene.has_closure("r", &pinned));
}
