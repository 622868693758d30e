//! Watchers of sessions, and the rows of recent commits, so that many followers of one session do
//! not all read them from the store. Commits wake watchers; the store is authoritative: a follower
//! that does not find the next event here reads it there.

use crate::system::locks::lock;
use kernel::contracts::{AppendedEvents, CommitNotice};
use kernel::event::{self, Event};
use kernel::values::ids::{SessionId, SessionKey};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tokio::sync::watch;

/// How many commits of a watched session are at hand. A follower that is further behind reads.
const COMMITS_KEPT_MAX: usize = 16;
/// How many bytes of journal they have together. A commit that has more is not at hand.
const BYTES_KEPT_MAX: usize = 64 * 1024;

/// The watchers of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    watched: Mutex<HashMap<SessionKey, SessionWatchers>>,
    /// How many are in the map, so that a commit no one watches costs one load.
    size: AtomicUsize,
    /// For those who watch every session: it wakes, and brings nothing.
    all: watch::Sender<RecentCommits>,
}

/// A session, as long as someone watches it.
#[derive(Debug, Default)]
struct SessionWatchers {
    watches: usize,
    /// How many of them only wait to be woken. What commits bring is kept for the others.
    sleepers: usize,
    news: watch::Sender<RecentCommits>,
}

/// Events of the last commits of a session, newest last, without a gap.
#[derive(Debug, Default)]
struct RecentCommits {
    recent: VecDeque<Arc<CommitEvents>>,
}

/// The events of one commit. Where they did not come with it, they are read once, by the first who
/// wants them.
#[derive(Debug)]
struct CommitEvents {
    session: SessionId,
    first_seq: u64,
    last_seq: u64,
    /// As a JSON array; empty where they came with the commit.
    body: String,
    /// How long that is.
    bytes: usize,
    events: OnceLock<Option<Vec<Arc<Event>>>>,
}

/// Events that a commit brought.
#[derive(Debug)]
pub(crate) struct RecentEvents {
    /// Consecutive, without a gap.
    pub(crate) events: Vec<Arc<Event>>,
    /// Whether no commit was told that came after theirs.
    pub(crate) are_newest: bool,
}

/// Wakes after commits of one session, or of all.
#[derive(Debug)]
pub struct Watch {
    news: watch::Receiver<RecentCommits>,
    /// Of the session, if it is one.
    place: Option<(Arc<Watchers>, SessionKey)>,
    /// Whether it only wakes.
    is_sleeper: bool,
}

impl Watch {
    /// Waits for a commit after the last one that this watch was woken for.
    pub async fn changed(&mut self) {
        // The sender lives as long as a receiver does, so this fails only when the engine ends.
        if self.news.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Marks everything so far as noticed, for a reader that reads the store next.
    pub(crate) fn notice(&mut self) {
        self.news.mark_unchanged();
    }

    /// The same watch, which only wakes from now on: one that may wait for days keeps nothing in
    /// memory of what is committed.
    pub(crate) fn asleep(mut self) -> Self {
        if let Some((watchers, key)) = &self.place
            && !self.is_sleeper
        {
            watchers.sleep(key);
        }
        self.is_sleeper = true;
        self
    }

    /// The events after this one, as far as one commit brought them, if it is at hand. All that was
    /// told so far counts as noticed: the store has it, for who gets nothing here.
    pub(crate) fn at_hand(&mut self, session: SessionId, after: u64) -> Option<RecentEvents> {
        let (brought, are_newest) = {
            let news = self.news.borrow_and_update();
            let has_next = |brought: &Arc<CommitEvents>| brought.has(session, after + 1);
            let place = news.recent.iter().position(has_next)?;
            (news.recent.get(place)?.clone(), place + 1 == news.recent.len())
        };
        let events = brought.events()?.iter().filter(|event| event.seq > after).cloned().collect();
        Some(RecentEvents { events, are_newest })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some((watchers, key)) = &self.place {
            watchers.leave(key, self.is_sleeper);
        }
    }
}

impl Watchers {
    pub(crate) fn watch(self: &Arc<Self>, key: &SessionKey) -> Watch {
        let mut watched = lock(&self.watched);
        let session = watched.entry(key.clone()).or_default();
        session.watches += 1;
        let news = session.news.subscribe();
        self.size.store(watched.len(), Ordering::Release);
        Watch { news, place: Some((self.clone(), key.clone())), is_sleeper: false }
    }

    pub(crate) fn watch_all(&self) -> Watch {
        Watch { news: self.all.subscribe(), place: None, is_sleeper: false }
    }

    /// Whether someone who watches this session wants what commits bring.
    pub(crate) fn has(&self, key: &SessionKey) -> bool {
        self.size.load(Ordering::Acquire) > 0
            && lock(&self.watched).get(key).is_some_and(SessionWatchers::is_read)
    }

    /// A watch of this session only wakes from now on.
    fn sleep(&self, key: &SessionKey) {
        let mut watched = lock(&self.watched);
        let Some(session) = watched.get_mut(key) else { return };
        session.sleepers += 1;
        session.forget_unread();
    }

    /// A watch of this session ends; with the last one, all that is kept of it.
    fn leave(&self, key: &SessionKey, is_sleeper: bool) {
        let mut watched = lock(&self.watched);
        let Some(session) = watched.get_mut(key) else { return };
        session.watches -= 1;
        session.sleepers -= usize::from(is_sleeper);
        session.forget_unread();
        if session.watches == 0 {
            watched.remove(key);
        }
        self.size.store(watched.len(), Ordering::Release);
    }

    pub(crate) fn committed(&self, commits: &[CommitNotice<'_>]) {
        if self.all.receiver_count() > 0 {
            self.all.send_modify(|_| {});
        }
        if self.size.load(Ordering::Acquire) == 0 {
            return;
        }
        for commit in commits {
            // Told without the lock: who is woken may let go of its watch, which takes it.
            let watchers = lock(&self.watched)
                .get(commit.key)
                .map(|session| (session.news.clone(), session.is_read()));
            if let Some((news, is_read)) = watchers {
                news.send_modify(|news| news.take(commit.appended.filter(|_| is_read)));
            }
        }
    }
}

impl SessionWatchers {
    fn is_read(&self) -> bool {
        self.watches > self.sleepers
    }

    /// Keeps nothing that nobody reads. It wakes nobody.
    fn forget_unread(&self) {
        if !self.is_read() {
            self.news.send_if_modified(|news| {
                news.recent.clear();
                false
            });
        }
    }
}

impl RecentCommits {
    fn take(&mut self, appended: Option<AppendedEvents<'_>>) {
        let follows = |last: &Arc<CommitEvents>| {
            let end = (last.session, last.last_seq + 1);
            appended.is_some_and(|next| (next.session, next.first_seq) == end)
        };
        if !self.recent.back().is_some_and(follows) {
            self.recent.clear();
        }
        self.recent.extend(appended.map(|appended| Arc::new(CommitEvents::new(&appended))));
        while self.is_too_much() {
            self.recent.pop_front();
        }
    }

    fn is_too_much(&self) -> bool {
        let bytes: usize = self.recent.iter().map(|brought| brought.bytes).sum();
        self.recent.len() > COMMITS_KEPT_MAX || bytes > BYTES_KEPT_MAX
    }
}

impl CommitEvents {
    fn new(appended: &AppendedEvents<'_>) -> Self {
        let AppendedEvents { session, first_seq, last_seq, body, events } = *appended;
        let bytes = body.len();
        let (body, events) = match events {
            [] => (body.to_owned(), OnceLock::new()),
            events => (String::new(), OnceLock::from(Some(events.to_vec()))),
        };
        Self { session, first_seq, last_seq, body, bytes, events }
    }

    /// Whether this event of this session is one of them.
    fn has(&self, session: SessionId, seq: u64) -> bool {
        self.session == session && (self.first_seq..=self.last_seq).contains(&seq)
    }

    /// All of them; none where this release cannot read each one.
    fn events(&self) -> Option<&[Arc<Event>]> {
        let read = || -> Option<Vec<Arc<Event>>> {
            let events = event::read(&self.body).ok()?;
            let is_whole = events.iter().map(|event| event.seq).eq(self.first_seq..=self.last_seq);
            is_whole.then(|| events.into_iter().map(Arc::new).collect())
        };
        self.events.get_or_init(read).as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use kernel::event::{Fact, VERSION};
    use kernel::values::ids::{Millis, Space};
    use std::ops::RangeInclusive;

    const ONE: SessionId = SessionId(1);
    const OTHER: SessionId = SessionId(2);

    fn key() -> SessionKey {
        SessionKey::new("r", Space::context(), "c")
    }

    fn events(seqs: RangeInclusive<u64>, timer: &str) -> Vec<Event> {
        let event = |seq| {
            let fact = Fact::TimerFired { timer: timer.to_owned() };
            Event { seq, at: Millis(1), v: VERSION, fact }
        };
        seqs.map(event).collect()
    }

    fn body(seqs: RangeInclusive<u64>, timer: &str) -> String {
        serde_json::to_string(&events(seqs, timer)).unwrap()
    }

    /// A commit of these events of a session, as this process made it.
    fn commit(watchers: &Watchers, session: SessionId, seqs: RangeInclusive<u64>) {
        told(watchers, session, seqs.clone(), &body(seqs, "t"));
    }

    fn told(watchers: &Watchers, session: SessionId, seqs: RangeInclusive<u64>, body: &str) {
        let first_seq = *seqs.start();
        let last_seq = *seqs.end();
        let appended = Some(AppendedEvents { session, first_seq, last_seq, body, events: &[] });
        watchers.committed(&[CommitNotice { key: &key(), appended }]);
    }

    /// Which events are at hand after this one, and whether they are the newest.
    fn seen(watch: &mut Watch, after: u64) -> Option<(Vec<u64>, bool)> {
        let RecentEvents { events, are_newest } = watch.at_hand(ONE, after)?;
        Some((events.iter().map(|event| event.seq).collect(), are_newest))
    }

    fn is_woken(watch: &mut Watch) -> bool {
        watch.changed().now_or_never().is_some()
    }

    #[test]
    fn a_commit_is_read_once_for_all_watchers() {
        let watchers = Arc::new(Watchers::default());
        let mut first = watchers.watch(&key());
        let mut second = watchers.watch(&key());
        assert_eq!(seen(&mut first, 0), None);
        commit(&watchers, ONE, 1..=3);
        let one = first.at_hand(ONE, 0).unwrap();
        let other = second.at_hand(ONE, 0).unwrap();
        assert!(Arc::ptr_eq(&one.events[0], &other.events[0]));
        // A follower in the middle of a commit gets the rest of it, and one that has all nothing.
        assert_eq!(seen(&mut first, 2), Some((vec![3], true)));
        assert_eq!(seen(&mut first, 3), None);
        // One that comes later finds what is at hand.
        assert_eq!(seen(&mut watchers.watch(&key()), 0), Some((vec![1, 2, 3], true)));
    }

    #[test]
    fn events_that_come_with_a_commit_are_not_read() {
        let watchers = Arc::new(Watchers::default());
        let mut watch = watchers.watch(&key());
        let brought: Vec<Arc<Event>> = events(1..=2, "t").into_iter().map(Arc::new).collect();
        let events = &brought[..];
        let body = "unreadable";
        let appended =
            Some(AppendedEvents { session: ONE, first_seq: 1, last_seq: 2, body, events });
        watchers.committed(&[CommitNotice { key: &key(), appended }]);
        let seen = watch.at_hand(ONE, 0).unwrap();
        assert!(Arc::ptr_eq(&seen.events[1], &brought[1]));
    }

    #[test]
    fn a_follower_that_lags_gets_commit_by_commit() {
        let watchers = Arc::new(Watchers::default());
        let mut watch = watchers.watch(&key());
        commit(&watchers, ONE, 1..=2);
        commit(&watchers, ONE, 3..=3);
        assert_eq!(seen(&mut watch, 0), Some((vec![1, 2], false)));
        assert_eq!(seen(&mut watch, 2), Some((vec![3], true)));
        assert!(!is_woken(&mut watch), "what was looked at is noticed");
        commit(&watchers, ONE, 4..=4);
        assert!(is_woken(&mut watch));
        assert_eq!(seen(&mut watch, 3), Some((vec![4], true)));
    }

    #[test]
    fn after_a_gap_no_cached_events_are_returned() {
        let watchers = Arc::new(Watchers::default());
        let mut watch = watchers.watch(&key());
        commit(&watchers, ONE, 1..=1);
        commit(&watchers, ONE, 3..=3);
        assert_eq!((seen(&mut watch, 0), seen(&mut watch, 1)), (None, None));
        assert_eq!(seen(&mut watch, 2), Some((vec![3], true)));
    }

    #[test]
    fn a_commit_of_another_process_only_wakes() {
        let watchers = Arc::new(Watchers::default());
        let mut watch = watchers.watch(&key());
        commit(&watchers, ONE, 1..=1);
        watchers.committed(&[CommitNotice::change(&key())]);
        assert!(is_woken(&mut watch));
        assert_eq!(seen(&mut watch, 0), None);
    }

    #[test]
    fn another_session_under_the_same_key_is_another_one() {
        let watchers = Arc::new(Watchers::default());
        let mut watch = watchers.watch(&key());
        commit(&watchers, ONE, 1..=1);
        commit(&watchers, OTHER, 1..=1);
        assert_eq!(seen(&mut watch, 0), None);
        assert!(watch.at_hand(OTHER, 0).is_some());
        commit(&watchers, ONE, 2..=2);
        assert_eq!(seen(&mut watch, 1), Some((vec![2], true)));
        assert!(watch.at_hand(OTHER, 0).is_none());
    }

    #[test]
    fn unreadable_events_are_not_cached() {
        let watchers = Arc::new(Watchers::default());
        let mut watch = watchers.watch(&key());
        let short = body(1..=1, "t");
        for unreadable in ["[{\"seq\":1,\"type\":\"of.tomorrow\"}]", short.as_str()] {
            told(&watchers, ONE, 1..=2, unreadable);
            assert_eq!(seen(&mut watch, 0), None, "{unreadable}");
        }
    }

    #[test]
    fn a_sleeping_watch_caches_nothing() {
        let watchers = Arc::new(Watchers::default());
        let reader = watchers.watch(&key());
        commit(&watchers, ONE, 1..=1);
        let mut sleeper = watchers.watch(&key()).asleep();
        assert!(watchers.has(&key()), "the other one reads");
        commit(&watchers, ONE, 2..=2);
        assert!(is_woken(&mut sleeper));
        drop(reader);
        assert!(!watchers.has(&key()));
        commit(&watchers, ONE, 3..=3);
        assert!(is_woken(&mut sleeper), "it is woken all the same");
        assert_eq!(seen(&mut watchers.watch(&key()), 2), None);
        let last = watchers.watch(&key());
        commit(&watchers, ONE, 4..=4);
        drop(last.asleep());
        assert_eq!(seen(&mut watchers.watch(&key()), 3), None);
        drop(sleeper);
        assert_eq!(lock(&watchers.watched).len(), 0);
    }

    #[test]
    fn cached_events_are_bounded_and_dropped_with_the_last_watch() {
        let watchers = Arc::new(Watchers::default());
        let mut watch = watchers.watch(&key());
        let last = COMMITS_KEPT_MAX as u64 + 1;
        (1..=last).for_each(|seq| commit(&watchers, ONE, seq..=seq));
        assert_eq!(seen(&mut watch, 0), None);
        assert_eq!(seen(&mut watch, 1), Some((vec![2], false)));
        let large = body(last + 1..=last + 1, &"x".repeat(BYTES_KEPT_MAX));
        told(&watchers, ONE, last + 1..=last + 1, &large);
        assert_eq!(seen(&mut watch, 1), None);
        assert_eq!(seen(&mut watch, last), None, "it is read from the store");
        let second = watchers.watch(&key());
        drop(watch);
        assert_eq!(lock(&watchers.watched).len(), 1);
        drop(second);
        assert_eq!(lock(&watchers.watched).len(), 0);
        assert_eq!(watchers.size.load(Ordering::Acquire), 0);
        assert_eq!(seen(&mut watchers.watch(&key()), last), None);
    }
}
