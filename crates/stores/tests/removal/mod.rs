//! Large sessions in the embedded store: they are removed in many commits, between which others get
//! theirs, and nothing shows what a crash left of one.

use super::machine::{Machine, STEPS_MAX};
use futures::FutureExt;
use kernel::contracts::{
    AskFilter, HistoryFilter, LoadResult, PrunedSlice, Read, RealmSet, SessionFilter, SessionRef,
    Slice, Store, Ticket,
};
use kernel::event::Fact;
use kernel::journal::projection::{Append, HistoryRow, RunRow};
use kernel::session::RunStatus;
use kernel::values::ids::{Millis, SessionKey};
use std::fmt::Debug;
use stores::OpenStore;
use testkit::contract::driver::{Driver, call, holding, page, realm};
use testkit::sim::machine::power::Point;
use testkit::sim::rng::Rng;

/// How many calls a large session has in its history: ten slices.
const CALLS: u32 = 5_000;
/// The commits of its removal: the first hides it, and its own row goes in the last.
const COMMITS: u64 = 12;
/// What is left of it once it is hidden: its history, four journal rows, a snapshot, its own row.
const HIDDEN_ROWS: u64 = 5_006;
/// Two runs, an ask and a hold of a blob go when it is hidden.
const ROWS: u64 = HIDDEN_ROWS + 4;

/// A machine and the store that is open on it.
struct House {
    machine: Machine,
    opened: OpenStore,
}

impl House {
    fn new() -> Self {
        let machine = Machine::new();
        let opened = machine.open();
        Self { machine, opened }
    }

    fn store(&self) -> &dyn Store {
        &*self.opened.store
    }

    fn run<T>(&self, read: Read<'_, T>) -> T {
        self.machine.run(read)
    }

    fn append(&self, append: Append) {
        self.run(self.store().append(append));
    }

    fn commits(&self) -> u64 {
        self.store().figures().unwrap().commits.counts.iter().sum()
    }

    fn prune(&self, before: i64) -> PrunedSlice {
        let slice = Slice { after: 0, limit: 9 };
        self.run(self.store().prune(RealmSet::AllBut(&[]), Millis(before), &[], slice))
    }

    /// The same folder, after the power went off.
    fn crashed(self, rng: &mut Rng) -> Self {
        let Self { machine, opened } = self;
        machine.power.switch_off();
        drop(opened);
        machine.crash(rng);
        let opened = machine.open();
        Self { machine, opened }
    }

    fn end(self) {
        drop(self.opened);
        self.machine.executor.drop_tasks();
    }

    /// A session that is over, and whose time to wake has come, with all that a session can have.
    fn large(&self) -> Driver {
        let blob = self.run(self.opened.blobs.put(&realm(), b"large".to_vec()));
        let mut a = Driver::new("r", "a");
        a.row.status = RunStatus::Completed;
        a.row.wake_at = Some(Millis(500));
        let mut created = a.created();
        created.runs = vec![RunRow { ended_at: Some(Millis(20)), ..a.run_row(1) }, a.run_row(2)];
        self.append(created);
        self.append(a.asking(&["one"]));
        let mut calls = call(&mut a, &[0, 0, 0, 1], "x");
        let row = calls.history.remove(0);
        let position = |no: u32| [&1_u32.to_be_bytes()[..], &no.to_be_bytes()].concat();
        calls.history =
            (0..CALLS).map(|no| HistoryRow { position: position(no), ..row.clone() }).collect();
        calls.snapshot = Some("four".to_owned());
        self.append(calls);
        self.append(a.append(vec![holding(&blob.hash)]));
        a
    }

    /// Nothing finds this session.
    fn shows_nothing_of(&self, a: &Driver) {
        let store = self.store();
        let ours = realm();
        let all = page(99, None);
        assert_eq!(self.run(store.load(a.key(), None)), LoadResult::Missing);
        assert_eq!(self.run(store.session(&ours, &SessionRef::Id(a.row.id))), None);
        let listed = self.run(store.sessions(&ours, &SessionFilter::default(), &all)).items;
        let keys: Vec<SessionKey> = listed.into_iter().map(|row| row.key).collect();
        assert!(!keys.contains(a.key()), "{keys:?}");
        let feed = self.run(store.feed(&ours, 0, 99));
        assert!(feed.iter().all(|row| row.key != *a.key()), "{feed:?}");
        for no in [1, 2] {
            assert_eq!(self.run(store.run(&ours, a.run_row(no).id)), None);
        }
        assert_eq!(self.run(store.ask(&ours, a.ask("one").id)), None);
        none(&self.run(store.asks(&ours, &AskFilter::default(), &all)).items);
        none(&self.run(store.open_asks(&ours)));
        none(&self.run(store.events(a.key(), 0, 9)));
        none(&self.run(store.history(a.key(), HistoryFilter::default(), &all)).items);
        none(&self.run(store.claim(Millis(1_000), 9)));
        assert_eq!(self.run(store.next_wake(Millis(0))), None);
        let slice = Slice { after: None, limit: 9 };
        let trimmable = store.trimmable(RealmSet::AllBut(&[]), Millis(100), slice);
        none(&self.run(trimmable));
    }
}

#[track_caller]
fn none<T: Debug>(found: &[T]) {
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn others_commit_while_a_large_session_is_removed() {
    let house = House::new();
    let a = house.large();
    let mut b = Driver::new("r", "b");
    house.append(b.created());
    let before = house.commits();
    let mut between = 0;
    let mut removal = house.store().remove(a.key(), a.row.known());
    let removed = loop {
        if let Some(removed) = (&mut removal).now_or_never() {
            break removed;
        }
        // It is queued behind the next piece of the removal, and durable before the one after it.
        house.append(b.next());
        between += 1;
        house.shows_nothing_of(&a);
    };
    drop(removal);
    assert_eq!((removed, between, house.commits() - before), (Ok(()), COMMITS, COMMITS));
    assert_eq!(house.prune(5), PrunedSlice::default(), "nothing is left");
    assert_eq!(house.run(house.store().events(b.key(), 0, 99)).len() as u64, 1 + COMMITS);
    house.end();
}

#[test]
fn leftovers_of_a_removal_are_hidden_and_go_with_the_next_prune() {
    let house = House::new();
    let a = house.large();
    let mut b = Driver::new("r", "b");
    let mut removal = house.store().remove_sent(a.key(), a.row.known());
    assert!((&mut removal).now_or_never().is_none());
    house.append(b.created());
    drop(removal);
    house.shows_nothing_of(&a);
    assert_eq!(house.run(house.opened.blobs.sweep(Millis(1_001), 9)), (1, 1), "it is let go");
    let house = house.crashed(&mut Rng::new(1));
    house.shows_nothing_of(&a);
    // Its key, its id and those of its runs are free.
    let mut again = Driver::new("r", "a");
    let mut created = again.created();
    created.runs = vec![again.run_row(1)];
    house.append(created);
    let left = PrunedSlice { removed: Vec::new(), rows: HIDDEN_ROWS, next: None };
    assert_eq!(house.prune(5), left, "no session is as old as that");
    assert_eq!(house.prune(5), PrunedSlice::default());
    house.append(again.next());
    assert_eq!(house.run(house.store().events(again.key(), 0, 9)).len(), 2);
    assert_eq!(house.run(house.store().events(b.key(), 0, 9)).len(), 1);
    house.end();
}

#[test]
fn leftovers_of_a_removal_go_without_a_prune() {
    let house = House::new();
    let a = house.large();
    let mut b = Driver::new("r", "b");
    let mut removal = house.store().remove(a.key(), a.row.known());
    assert!((&mut removal).now_or_never().is_none());
    house.append(b.created());
    drop(removal);
    house.run(house.store().sweep_closures(9));
    assert_eq!(house.prune(5), PrunedSlice::default());
    house.end();
}

#[test]
fn a_prune_removes_large_sessions_and_counts_all_their_rows() {
    let house = House::new();
    let a = house.large();
    let mut b = Driver::new("r", "b");
    b.row.status = RunStatus::Completed;
    house.append(b.created());
    let removed = vec![a.key().clone(), b.key().clone()];
    let before = house.commits();
    assert_eq!(house.prune(100), PrunedSlice { removed, rows: ROWS + 2, next: None });
    assert_eq!(house.commits() - before, COMMITS, "the small one goes as the large one is hidden");
    house.shows_nothing_of(&a);
    assert_eq!(house.prune(100), PrunedSlice::default());
    house.end();
}

#[test]
fn journal_and_snapshot_size_make_a_session_large() {
    const MIB: usize = 1024 * 1024;
    for (rows, bytes, snapshot, commits) in
        [(499, 1, 1, 1), (500, 1, 1, 4), (2, 3 * MIB, 1, 4), (0, 1, MIB, 1), (0, 1, MIB + 1, 3)]
    {
        let house = House::new();
        let mut a = Driver::new("r", "a");
        house.append(Append { snapshot: Some("x".repeat(snapshot)), ..a.created() });
        let tickets: Vec<Ticket> = (0..rows)
            .map(|_| {
                let fact = Fact::TimerFired { timer: "x".repeat(bytes) };
                house.store().append(a.append(vec![fact]))
            })
            .collect();
        tickets.into_iter().for_each(|ticket| house.run(ticket));
        let before = house.commits();
        house.run(house.store().remove(a.key(), a.row.known()));
        let what = format!("{rows} rows of {bytes} bytes, a snapshot of {snapshot}");
        assert_eq!(house.commits() - before, commits, "{what}");
        assert_eq!(house.prune(5), PrunedSlice::default(), "{what}");
        house.end();
    }
}

#[test]
fn a_power_cut_leaves_a_large_session_whole_or_gone() {
    let mut rng = Rng::new(1);
    let mut whole = 0;
    let mut gone = 0;
    for point in [Point::Step, Point::DiskWrite, Point::DiskSync] {
        for hit in [1, 2, 3, 6, 12] {
            let house = House::new();
            let a = house.large();
            house.machine.power.switch_on(Some((point, hit)));
            let removal = house.store().remove(a.key(), a.row.known());
            let removed = house.machine.executor.run_until(removal, STEPS_MAX);
            let house = house.crashed(&mut rng);
            let place = format!("hit {hit} of {point:?}: {removed:?}");
            if house.run(house.store().events(a.key(), 0, 9)).is_empty() {
                house.shows_nothing_of(&a);
                none(&house.prune(100).removed);
                gone += 1;
            } else {
                let pruned = PrunedSlice { removed: vec![a.key().clone()], rows: ROWS, next: None };
                assert!(removed.is_err(), "{place}");
                assert_eq!(house.prune(100), pruned, "{place}");
                whole += 1;
            }
            assert_eq!(house.prune(100), PrunedSlice::default(), "{place}");
            house.end();
        }
    }
    assert!(whole > 0 && gone > 0, "{whole} whole, {gone} gone");
}
