//! Two stores beside each other: the same operations out of one seed, and the first answer in which
//! they differ. What a caller cannot tell apart is not compared: cursors, and the words of errors.

use super::driver::{Driver, call, closure, decided, ended_run, page, starting, trim_at};
use super::scene::Arm;
use crate::sim::rng::Rng;
use futures::executor::block_on;
use kernel::contracts::{
    AskFilter, FeedStart, HistoryFilter, ListPage, OwnerFilter, PageRequest, RETENTION, RealmSet,
    RunFilter, SINKS, SessionFilter, SessionRef, Slice, Store, StoreError,
};
use kernel::definition::pipeline::Tally;
use kernel::journal::projection::{Append, FormerRoute, OnceRow, ParkedSession};
use kernel::session::RunStatus;
use kernel::values::ids::{Fence, Millis, RealmId, RunId, SessionKey, SessionVersion, Space};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::mem::discriminant;
use std::sync::Arc;

const REALMS: [&str; 2] = ["r", "o"];
const SPACES: [&str; 3] = ["session", "thread", "context"];
const IDS: [&str; 5] = ["a", "b", "c", "d", "e"];
const SINKS_THERE: [&str; 3] = ["sink/one", "sink/two", "nats"];
const REASONS: [&str; 5] = ["v", "w", "x", "y", "z"];
const CLOSURES: [&str; 3] = ["plan one", "plan two", "plan three"];
/// The windows in which keys of requests count, and how many keys there are.
const WINDOWS: [&str; 2] = ["POST /runs", "POST /runs, later"];
const KEYS: u64 = 60;
/// How long before now what is old was over.
const OLD_MS: u64 = 120;

/// The outcome of a comparison.
#[derive(Debug)]
pub struct Comparison {
    /// How many operations were refused by both.
    pub refused: u64,
    /// The first difference.
    pub wrong: Option<String>,
}

/// Gives both stores so many operations out of a seed.
pub fn differences(one: &dyn Arm, other: &dyn Arm, seed: u64, operations: u64) -> Comparison {
    let stores = [one.open().store, other.open().store];
    let mut pair = Pair {
        stores,
        rng: Rng::new(seed),
        now: 1_000,
        tracks: BTreeMap::new(),
        outcome: Comparison { refused: 0, wrong: None },
    };
    for number in 1..=operations {
        match pair.rng.below(400) {
            0 => pair.reopen([one, other]),
            1..200 => pair.append(),
            200..330 => pair.read(),
            _ => pair.change(),
        }
        if let Some(wrong) = &mut pair.outcome.wrong {
            wrong.insert_str(0, &format!("operation {number}: "));
            break;
        }
    }
    pair.outcome
}

/// What is known of a session that should be there.
#[derive(Debug, Clone)]
struct Track {
    driver: Driver,
    /// How many runs it had.
    runs: u32,
    /// Whether the last of them is under way.
    running: bool,
    /// The last events of the runs that ended.
    ends: Vec<(u32, u64)>,
    /// The steps of its asks, with whether each is open.
    asks: Vec<(String, bool)>,
}

struct Pair {
    stores: [Arc<dyn Store>; 2],
    rng: Rng,
    /// Each operation has a time of its own.
    now: i64,
    tracks: BTreeMap<SessionKey, Track>,
    outcome: Comparison,
}

/// An error by its kind, and by what callers act on.
fn plain(error: StoreError) -> String {
    match error {
        StoreError::Conflict(_)
        | StoreError::Exists(_)
        | StoreError::Poisoned(_)
        | StoreError::Gone(_) => error.to_string(),
        other => format!("{:?}", discriminant(&other)),
    }
}

/// All pages of a list.
fn all<T>(
    limit: usize,
    read: impl Fn(&PageRequest) -> Result<ListPage<T>, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut cursor = None;
    let mut items = Vec::new();
    loop {
        let got = read(&page(limit, cursor))?;
        items.extend(got.items);
        cursor = got.next_cursor;
        if cursor.is_none() {
            return Ok(items);
        }
    }
}

impl Pair {
    /// Asks both; what they agree on, if it is no refusal.
    fn both<T: PartialEq + Debug>(
        &mut self,
        what: &str,
        ask: impl Fn(&dyn Store) -> Result<T, StoreError>,
    ) -> Option<T> {
        let [one, other] = self.stores.each_ref().map(|store| ask(&**store).map_err(plain));
        if one != other {
            let wrong = format!("{what}:\n  one   {one:?}\n  other {other:?}");
            self.outcome.wrong.get_or_insert(wrong);
            return None;
        }
        self.outcome.refused += u64::from(one.is_err());
        one.ok()
    }

    fn tick(&mut self) -> i64 {
        self.now += 1;
        self.now
    }

    fn pick(&mut self, names: &[&'static str]) -> &'static str {
        self.rng.pick(names).copied().unwrap_or_default()
    }

    fn key(&mut self) -> SessionKey {
        SessionKey::new(self.pick(&REALMS), self.pick(&SPACES), self.pick(&IDS))
    }

    /// Opens both again, as new processes do.
    fn reopen(&mut self, arms: [&dyn Arm; 2]) {
        self.both("close", |store| block_on(store.close()));
        self.stores = arms.map(|arm| arm.open().store);
    }

    /// Reads a session from both, and knows from then on what is there.
    fn look(&mut self, key: &SessionKey) {
        self.both("load", |store| block_on(store.load(key, None)));
        let named = SessionRef::Key { key: key.id.clone(), space: Some(key.space.clone()) };
        let row = self.both("session", |store| block_on(store.session(&key.realm, &named)));
        let Some(row) = row.flatten() else {
            self.tracks.remove(key);
            return;
        };
        if let Some(track) = self.tracks.get_mut(key) {
            track.driver.row = row;
        }
    }

    /// Some append to some session; now and then one that was decided on an older state.
    fn append(&mut self) {
        let key = self.key();
        let at = self.tick();
        let new = Track {
            driver: Driver::of(key.clone()),
            runs: 0,
            running: false,
            ends: Vec::new(),
            asks: Vec::new(),
        };
        let known = self.tracks.get(&key).cloned().filter(|_| !self.rng.chance(3));
        let mut track = known.unwrap_or(new);
        if self.rng.chance(5) {
            track.driver.row.fence = Fence(track.driver.row.fence.0.saturating_sub(1));
        }
        let before = track.clone();
        let rng = self.rng.clone();
        let appended = self.both("append", |store| {
            // The same twice: an append cannot be copied.
            let append = some_append(&mut before.clone(), &mut rng.clone(), at);
            block_on(store.append(append))
        });
        drop(some_append(&mut track, &mut self.rng, at));
        match appended {
            Some(()) => drop(self.tracks.insert(key, track)),
            // Some go on without a look, and are refused for that.
            None if self.rng.chance(70) => self.look(&key),
            None => {}
        }
    }

    /// Some change that is no append.
    fn change(&mut self) {
        let key = self.key();
        let track = self.tracks.get(&key).cloned();
        let at = self.tick();
        match (self.rng.below(9), track) {
            (0, _) => {
                let parked = ParkedSession { reason: "unreadable".to_owned(), until: Millis(at) };
                self.both("park", |store| block_on(store.park(&key, parked.clone())));
                self.look(&key);
            }
            (1, Some(track)) => self.remove(&track),
            (2 | 3, Some(track)) => self.trim(&track),
            (4, _) => self.prune(),
            (5, _) => {
                let limit = 1 + self.rng.below(3) as usize;
                self.both("sweep", |store| block_on(store.sweep_closures(limit)));
            }
            (6 | 7, _) => self.consume(&key.realm),
            _ => self.claim(),
        }
    }

    fn remove(&mut self, track: &Track) {
        let mut known = track.driver.row.known();
        if self.rng.chance(30) {
            known = SessionVersion { fence: known.fence.next(), ..known };
        }
        let key = track.driver.key();
        if self.rng.chance(50) {
            self.both("remove", |store| block_on(store.remove(key, known)));
        } else {
            self.both("remove_sent", |store| block_on(store.remove_sent(key, known)));
        }
        self.look(key);
    }

    /// Removes the runs up to one that ended, if there is one.
    fn trim(&mut self, track: &Track) {
        let Some((last_run, seq)) = self.rng.pick(&track.ends).copied() else { return };
        let mut trim = trim_at(&track.driver, seq, last_run);
        trim.before = Millis(self.now - self.rng.below(OLD_MS) as i64);
        if self.rng.chance(15) {
            trim.fence = trim.fence.next();
        }
        let trimmed = self.both("trim", |store| block_on(store.trim(trim.clone())));
        let key = track.driver.key();
        self.look(key);
        if trimmed.flatten().is_some()
            && let Some(track) = self.tracks.get_mut(key)
        {
            track.ends.retain(|(no, _)| *no > last_run);
        }
    }

    fn prune(&mut self) {
        let before = Millis(self.now - self.rng.below(OLD_MS) as i64);
        let realm = RealmId::from(self.pick(&REALMS));
        let but = self.key();
        let only = self.rng.chance(50);
        let limit = 1 + self.rng.below(4) as usize;
        let mut after = Some(0);
        while let Some(from) = after {
            let slice = Slice { after: from, limit };
            let pruned = self.both("prune", |store| {
                let others = std::slice::from_ref(&realm);
                let realms = if only { RealmSet::One(&realm) } else { RealmSet::AllBut(others) };
                block_on(store.prune(realms, before, std::slice::from_ref(&but), slice))
            });
            let Some(pruned) = pruned else { return };
            pruned.removed.iter().for_each(|key| self.look(key));
            after = pruned.next;
        }
    }

    fn consume(&mut self, realm: &RealmId) {
        let name = self.pick(&SINKS_THERE);
        let cursor = self.rng.below(60);
        match self.rng.below(8) {
            0 => {
                self.both("forget", |store| block_on(store.forget_consumer(realm, name)));
            }
            1 => {
                let start = FeedStart::Oldest;
                self.both("begin", |store| block_on(store.begin_consumer(realm, name, start)));
            }
            2 => {
                let start = FeedStart::Newest;
                self.both("begin", |store| block_on(store.begin_consumer(realm, name, start)));
            }
            _ => {
                // Sinks that never come along would hold everything back.
                let end = self.both("feed_end", |store| block_on(store.feed_end())).unwrap_or(0);
                let cursor = end.saturating_sub(cursor / 3);
                self.both("advance", |store| block_on(store.advance(realm, name, cursor)));
            }
        }
    }

    fn claim(&mut self) {
        let now = Millis(self.now);
        let limit = 1 + self.rng.below(9) as usize;
        self.both("claim", |store| block_on(store.claim(now, limit)));
    }

    /// Some question.
    fn read(&mut self) {
        let key = self.key();
        let realm = key.realm.clone();
        let track = self.tracks.get(&key).cloned();
        match (self.rng.below(8), track) {
            (0, _) => self.look(&key),
            (1, Some(track)) => self.read_session(&track),
            (2, _) => self.read_sessions(&realm),
            (3, Some(track)) => self.read_asks(&track),
            (4, _) => self.read_feed(&realm),
            (5, _) => self.read_old(&realm),
            (6, _) => self.read_counts(&realm),
            _ => {
                let named = SessionRef::Key { key: key.id.clone(), space: None };
                self.both("session", |store| block_on(store.session(&realm, &named)));
            }
        }
    }

    fn read_session(&mut self, track: &Track) {
        let key = track.driver.key();
        let known = track.driver.row.known();
        self.both("load", |store| block_on(store.load(key, Some(known))));
        let after = self.rng.below(9);
        let limit = 1 + self.rng.below(6) as usize;
        self.both("events", |store| block_on(store.events(key, after, limit)));
        let run = track.driver.run_row(1 + self.rng.below(3) as u32).id;
        let only = HistoryFilter { run: self.rng.chance(30).then_some(run), step: None };
        self.both("history", |store| {
            all(limit, |page| block_on(store.history(key, only.clone(), page)))
        });
        self.both("run", |store| block_on(store.run(&key.realm, run)));
        self.both("run_with_events", |store| {
            block_on(store.run_with_events(&key.realm, run, limit))
        });
    }

    fn read_sessions(&mut self, realm: &RealmId) {
        let limit = 1 + self.rng.below(4) as usize;
        let filter = SessionFilter {
            status: self.rng.chance(40).then_some(RunStatus::Completed),
            space: self.rng.chance(30).then(Space::thread),
            parked: self.rng.chance(20),
            plan: None,
            blob: None,
        };
        self.both("sessions", |store| {
            all(limit, |page| block_on(store.sessions(realm, &filter, page)))
        });
        self.read_runs(realm, limit);
    }

    fn read_runs(&mut self, realm: &RealmId, limit: usize) {
        let statuses = match self.rng.below(3) {
            0 => vec![RunStatus::Running],
            1 => vec![RunStatus::Completed, RunStatus::Running],
            _ => Vec::new(),
        };
        let whose = if self.rng.chance(50) { OwnerFilter::NoOnes } else { OwnerFilter::Anyones };
        let since = self.rng.chance(30).then_some(Millis(self.now - 20));
        let filter = RunFilter { whose, session: None, statuses, since };
        self.both("runs", |store| {
            let total = block_on(store.runs(realm, &filter, &page(1, None)))?.total;
            let listed = all(limit, |page| {
                block_on(store.runs(realm, &filter, page)).map(|runs| runs.page)
            })?;
            Ok((total, listed))
        });
    }

    fn read_asks(&mut self, track: &Track) {
        let realm = &track.driver.key().realm;
        let limit = 1 + self.rng.below(4) as usize;
        let filter = AskFilter {
            session: self.rng.chance(50).then_some(track.driver.row.id),
            status: self.rng.chance(50).then(|| "open".to_owned()),
            ..AskFilter::default()
        };
        self.both("asks", |store| all(limit, |page| block_on(store.asks(realm, &filter, page))));
        if let Some((step, _)) = track.asks.last() {
            let ask = track.driver.ask(step).id;
            self.both("ask", |store| block_on(store.ask(realm, ask)));
        }
    }

    fn read_feed(&mut self, realm: &RealmId) {
        let end = self.both("feed_end", |store| block_on(store.feed_end())).unwrap_or(0);
        let after = end.saturating_sub(self.rng.below(40));
        self.both("feed", |store| block_on(store.feed(realm, after, 9)));
        self.both("consumers", |store| block_on(store.consumers(realm, SINKS)));
        for name in [SINKS_THERE[2], RETENTION] {
            self.both("consumer", |store| block_on(store.consumer(realm, name)));
        }
    }

    fn read_old(&mut self, realm: &RealmId) {
        let before = Millis(self.now - self.rng.below(OLD_MS) as i64);
        let limit = 1 + self.rng.below(4) as usize;
        let mut after = None;
        loop {
            let slice = Slice { after, limit };
            let found = self.both("trimmable", |store| {
                block_on(store.trimmable(RealmSet::One(realm), before, slice))
            });
            let Some(last) = found.as_ref().and_then(|found| found.last()) else { return };
            after = Some(last.cursor);
        }
    }

    fn read_counts(&mut self, realm: &RealmId) {
        self.both("open_asks", |store| block_on(store.open_asks(realm)));
        self.both("open_sessions", |store| block_on(store.open_sessions(realm)));
        self.both("tallies", |store| block_on(store.tallies(realm, &"trades".into())));
        let key = self.rng.below(KEYS).to_string();
        self.both("once", |store| block_on(store.once(realm, "ann", &WINDOWS, &key)));
        let hash = closure(self.pick(&CLOSURES)).hash.clone();
        self.both("closure", |store| block_on(store.closure(realm, &hash)));
        let after = Millis(self.now - 20);
        self.both("next_wake", |store| block_on(store.next_wake(after)));
    }
}

/// The next append of a session, as its track and the numbers say.
fn some_append(track: &mut Track, rng: &mut Rng, at: i64) -> Append {
    let row = &mut track.driver.row;
    row.updated_at = Millis(at);
    // Times of their own, so that no order is left to chance.
    row.wake_at = rng.chance(50).then_some(Millis(at));
    row.parked = None;
    let mut append = if row.seq == 0 { track.driver.created() } else { later(track, rng, at) };
    append.owned = rng.chance(40);
    if rng.chance(15) {
        append.snapshot = Some(format!("{{\"seq\":{}}}", append.session.seq));
    }
    if rng.chance(10) {
        let [route, other] = if rng.chance(50) { WINDOWS } else { [WINDOWS[1], WINDOWS[0]] };
        append.once = Some(once(rng, route, at, track.driver.run_row(track.runs).id));
        let since = Millis(at - rng.below(16 * OLD_MS) as i64);
        append.earlier = rng.chance(50).then(|| FormerRoute { route: other.to_owned(), since });
    }
    if rng.chance(15) {
        let reason = rng.pick(&REASONS).copied().unwrap_or_default().into();
        let deterministic = rng.chance(40);
        append.tally = Some(Tally { pipeline: "trades".into(), deterministic, reason });
    }
    append
}

fn once(rng: &mut Rng, route: &str, at: i64, run: RunId) -> OnceRow {
    OnceRow {
        subject: "ann".into(),
        route: route.to_owned(),
        key: rng.below(KEYS).to_string(),
        digest: closure("body").hash.clone(),
        run: Some(run),
        ask: None,
        at: Millis(at),
    }
}

fn later(track: &mut Track, rng: &mut Rng, at: i64) -> Append {
    let no = track.runs;
    match (rng.below(6), track.running) {
        (0 | 1, false) => {
            track.runs = no + 1;
            track.running = true;
            let pinned = closure(rng.pick(&CLOSURES).copied().unwrap_or_default());
            track.driver.row.status = RunStatus::Running;
            track.driver.row.run = Some(track.driver.run_row(no + 1).id);
            starting(&mut track.driver, no + 1, &pinned)
        }
        (0 | 1, true) => {
            track.running = false;
            track.driver.row.status = RunStatus::Completed;
            let ended = ended_run(&mut track.driver, no, at);
            track.ends.push((no, track.driver.row.seq));
            ended
        }
        (2, true) => {
            let position = [&no.to_be_bytes()[..], &[2, rng.below(9) as u8]].concat();
            let mut called = call(&mut track.driver, &position, "x");
            let run = track.driver.run_row(no).id;
            called.history.iter_mut().for_each(|entry| entry.run = run);
            called
        }
        (3, _) => {
            let step = format!("step {at}");
            let asking = track.driver.asking(&[step.as_str()]);
            track.asks.push((step, true));
            asking
        }
        (4, _) if !track.asks.is_empty() => {
            // Now and then one that was answered before.
            let any = rng.below(track.asks.len() as u64) as usize;
            let open = track.asks.iter().position(|(_, open)| *open);
            let place = open.filter(|_| rng.chance(85)).unwrap_or(any);
            let mut answer = track.driver.next();
            if let Some((step, open)) = track.asks.get_mut(place) {
                *open = false;
                answer.asks = vec![decided(&track.driver.ask(step), "ann")];
            }
            answer
        }
        _ => track.driver.next(),
    }
}
