//! What every store must promise of the journal, and as a whole.

use super::driver::{
    Driver, call, decided, decision, done, got, page, realm, there, three_runs, trim_at,
};
use super::scene::Scene;
use crate::sim::people::clients::locked;
use futures::executor::block_on;
use kernel::ask::AskStatus;
use kernel::contracts::{
    AppendedEvents, CommitNotice, HistoryFilter, LoadResult, SessionRef, StoreError, Ticket,
};
use kernel::event::{Event, Fact, VERSION};
use kernel::journal::projection::{Append, AskChange, ParkedSession};
use kernel::values::history::EntryResult;
use kernel::values::ids::{Fence, Millis, RunId, SessionId, StepId};
use serde_json::json;
use std::sync::{Arc, Mutex};

pub fn what_is_appended_is_loaded(scene: Scene) {
    let mut a = Driver::new("r", "a");
    let first = a.created();
    let second = a.next();
    let bodies = vec![first.body.clone(), second.body.clone()];
    done(scene.store().append(first));
    done(scene.store().append(second));
    let stored = scene.stored(a.key());
    assert_eq!((stored.id, stored.fence), (a.row.id, a.row.fence));
    assert_eq!(stored.tail, bodies);
    assert_eq!((stored.snapshot, stored.snapshot_bytes), (None, 0));
    let found = got(scene.store().session(&realm(), &SessionRef::Id(a.row.id)));
    assert_eq!(found, Some(a.row.clone()));
    let unknown = Driver::new("r", "unknown");
    assert_eq!(scene.load(unknown.key()), None);
}

/// What a load says to someone who knows the session as this driver does.
fn known(scene: &Scene, a: &Driver) -> LoadResult {
    got(scene.store().load(a.key(), Some(a.row.known())))
}

pub fn who_knows_a_session_is_told_only_whether_it_changed(scene: Scene) {
    let mut a = Driver::new("r", "a");
    assert_eq!(known(&scene, &a), LoadResult::Missing);
    done(scene.store().append(a.created()));
    assert_eq!(known(&scene, &a), LoadResult::Unchanged);
    let mut other = a.clone();
    done(scene.store().append(other.next()));
    let LoadResult::Found(stored) = known(&scene, &a) else { panic!("it is another by now") };
    assert_eq!((stored.fence, stored.tail.len()), (other.row.fence, 2));
    assert_eq!(known(&scene, &other), LoadResult::Unchanged);
    // What is no append moves the fence too.
    let parked = ParkedSession { reason: "unreadable".to_owned(), until: Millis(2_000) };
    got(scene.store().park(a.key(), parked));
    assert!(matches!(known(&scene, &other), LoadResult::Found(_)));
    other.saw_a_change();
    assert_eq!(known(&scene, &other), LoadResult::Unchanged);
    let scene = scene.reopened();
    assert_eq!(known(&scene, &other), LoadResult::Unchanged);
    // Another session under the same key, which has come as far.
    got(scene.store().remove(other.key(), other.row.known()));
    assert_eq!(known(&scene, &other), LoadResult::Missing);
    let mut again = Driver::new("r", "a");
    again.row.id = SessionId(7);
    done(scene.store().append(again.created()));
    for _ in 0..2 {
        done(scene.store().append(again.next()));
    }
    assert_eq!(again.row.fence, other.row.fence);
    assert!(
        matches!(known(&scene, &other), LoadResult::Found(stored) if stored.id == SessionId(7))
    );
}

pub fn who_decided_on_an_older_state_is_refused(scene: Scene) {
    let mut a = three_runs(scene.store());
    let conflict = || Err(StoreError::Conflict("r/session/a".into()));
    let mut stale = a.clone();
    let parked = ParkedSession { reason: "unreadable".to_owned(), until: Millis(2_000) };
    got(scene.store().park(a.key(), parked));
    // No event was added, and yet the session is not as it was.
    assert_eq!(block_on(scene.store().append(stale.next())), conflict());
    assert_eq!(block_on(scene.store().remove(a.key(), a.row.known())), conflict());
    let sent = block_on(scene.store().remove_sent(a.key(), a.row.known()));
    assert_eq!(sent, Err(StoreError::Conflict("r/session/a".into())));
    assert_eq!(block_on(scene.store().trim(trim_at(&a, 6, 2))), Ok(None));
    a.saw_a_change();
    assert!(got(scene.store().trim(trim_at(&a, 6, 2))).is_some());
    // The cut base moved it as well.
    assert!(scene.load(a.key()).is_some());
    assert_eq!(block_on(scene.store().append(a.clone().next())), conflict());
    a.saw_a_change();
    assert!(scene.load(a.key()).is_some());
    done(scene.store().append(a.next()));
    got(scene.store().remove(a.key(), a.row.known()));
    assert_eq!(scene.load(a.key()), None);
}

pub fn appends_are_queued_without_waiting_and_each_moves_the_fence_by_one(scene: Scene) {
    let mut a = Driver::new("r", "a");
    let tickets = [a.created(), a.next(), a.next()].map(|append| scene.store().append(append));
    assert_eq!(a.row.fence, Fence(3));
    tickets.into_iter().for_each(done);
    assert_eq!(scene.stored(a.key()).fence, Fence(3));
}

pub fn what_is_refused_leaves_nothing_and_harms_nobody(scene: Scene) {
    let mut a = Driver::new("r", "a");
    let mut b = Driver::new("r", "b");
    let created = a.created();
    let asking = a.asking(&["one"]);
    let ask = a.ask("one");
    // Of two replies the second cannot be taken, and so nothing of their append is.
    let mut twice = a.next();
    twice.asks = vec![decided(&ask, "ann"), decided(&ask, "bob")];
    let tickets = [
        scene.store().append(created),
        scene.store().append(asking),
        scene.store().append(b.created()),
        scene.store().append(twice),
        scene.store().append(Driver::new("r", "b").created()),
        scene.store().append(Driver::new("r", "c").created()),
    ];
    let answers = tickets.map(block_on);
    let conflict = StoreError::Conflict("r/session/a".into());
    let exists = StoreError::Exists("r/session/b".into());
    assert_eq!(answers, [Ok(()), Ok(()), Ok(()), Err(conflict), Err(exists), Ok(())]);
    let found = there(got(scene.store().ask(&realm(), ask.id)));
    assert_eq!((found.row.status, found.row.decision), (AskStatus::Open, None));
    assert_eq!((scene.tail(a.key()).len(), scene.tail(b.key()).len()), (2, 1));
}

pub fn one_reply_wins(scene: Scene) {
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    done(scene.store().append(a.asking(&["one"])));
    let ask = a.ask("one");
    let mut loser = a.clone();
    let mut first = a.next();
    first.asks = vec![decided(&ask, "ann")];
    done(scene.store().append(first));
    // Another one that was about to answer finds the session further on ...
    let mut second = loser.next();
    second.asks = vec![decided(&ask, "bob")];
    let conflict = Err(StoreError::Conflict("r/session/a".into()));
    assert_eq!(block_on(scene.store().append(second)), conflict);
    // ... and even one who knows that finds the ask decided.
    assert!(scene.load(a.key()).is_some());
    let mut third = a.next();
    third.asks = vec![decided(&ask, "bob")];
    assert_eq!(block_on(scene.store().append(third)), conflict);
    let found = there(got(scene.store().ask(&realm(), ask.id)));
    assert_eq!((found.session, &found.key), (a.row.id, a.key()));
    assert_eq!(found.row.ask, ask);
    assert_eq!((found.row.status, found.row.decision), (AskStatus::Decided, Some(decision("ann"))));
}

pub fn an_ask_may_open_and_close_in_one_append(scene: Scene) {
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    let ask = a.ask("one");
    let mut both = a.asking(&["one"]);
    let withdrawn = AskChange::Closed { ask: ask.id, status: AskStatus::Withdrawn, decision: None };
    both.asks.push(withdrawn);
    done(scene.store().append(both));
    let found = there(got(scene.store().ask(&realm(), ask.id)));
    assert_eq!(found.row.status, AskStatus::Withdrawn);
}

pub fn a_failed_append_poisons_its_session_until_it_is_loaded(scene: Scene) {
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

pub fn history_comes_newest_first_in_pages(scene: Scene) {
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
        let mut cursor = None;
        let mut seen = Vec::new();
        let mut pages = 0;
        loop {
            let page = page(limit, cursor);
            let read = scene.store().history(a.key(), only.clone(), &page);
            let got = got(read);
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
    let oldest = json!([0, 0, 0, 1, 1]);
    let older = json!([0, 0, 0, 1, 2]);
    let new = json!([0, 0, 0, 2, 0]);
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

pub fn events_come_one_by_one_as_they_were_written(scene: Scene) {
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    let timer = |name: &str| Fact::TimerFired { timer: name.to_owned() };
    done(scene.store().append(a.append(vec![timer("two"), timer("three")])));
    done(scene.store().append(a.append(vec![timer("four")])));
    let events = |after: u64, limit: usize| got(scene.store().events(a.key(), after, limit));
    let seqs = |after: u64, limit: usize| -> Vec<u64> {
        events(after, limit).iter().map(|(seq, _)| *seq).collect()
    };
    assert_eq!(seqs(0, 10), [1, 2, 3, 4]);
    assert_eq!(seqs(1, 2), [2, 3]);
    assert_eq!(seqs(2, 10), [3, 4]);
    assert_eq!(seqs(4, 10), [0; 0]);
    let (_, text) = events(2, 1).remove(0);
    let event = Event { seq: 3, at: Millis(10), v: VERSION, fact: timer("three") };
    let read: Option<Event> = serde_json::from_str(&text).ok();
    assert_eq!(read, Some(event));
    // By its id, a session is never another one that has its key.
    let of = |realm: &str, id| got(scene.store().events_of(&realm.into(), id, 2, 10));
    assert_eq!(of("r", a.row.id), events(2, 10));
    assert_eq!(of("other", a.row.id), []);
    assert_eq!(of("r", SessionId(a.row.id.0 + 1)), []);
}

pub fn a_snapshot_shortens_the_tail_and_comes_and_goes_with_its_append(scene: Scene) {
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    let second = Append { snapshot: Some("two".to_owned()), ..a.next() };
    done(scene.store().append(second));
    let last = a.next();
    let last_body = last.body.clone();
    done(scene.store().append(last));
    let stored = scene.stored(a.key());
    assert_eq!((stored.snapshot.as_deref(), stored.snapshot_bytes), (Some("two"), 3));
    assert_eq!(stored.tail, [last_body]);
    // An append that is refused leaves no snapshot of what never happened.
    let mut stale = a.clone();
    stale.row.fence = Fence(1);
    let refused = Append { snapshot: Some("of a lost append".to_owned()), ..stale.next() };
    assert!(block_on(scene.store().append(refused)).is_err());
    assert_eq!(scene.stored(a.key()).snapshot.as_deref(), Some("two"));
    let newer = Append { snapshot: Some("four".to_owned()), ..a.next() };
    done(scene.store().append(newer));
    let stored = scene.stored(a.key());
    assert_eq!((stored.snapshot.as_deref(), stored.tail.len()), (Some("four"), 0));
}

pub fn commits_wake_and_a_closed_store_says_so(scene: Scene) {
    let woken = Arc::new(Mutex::new(Vec::new()));
    let heard = woken.clone();
    scene.store().on_commit(Arc::new(move |commits: &[CommitNotice<'_>]| {
        locked(&heard).extend(commits.iter().map(|commit| commit.key.id.to_string()));
    }));
    assert_eq!(scene.store().healthy(), Ok(()));
    done(scene.store().append(Driver::new("r", "a").created()));
    done(scene.store().append(Driver::new("r", "b").created()));
    got(scene.store().close());
    assert_eq!(*locked(&woken), ["a", "b"]);
    let late = block_on(scene.store().append(Driver::new("r", "c").created()));
    assert_eq!(late, Err(StoreError::Closed));
    assert_eq!(scene.store().healthy(), Err(StoreError::Closed));
    let read = block_on(scene.store().load(Driver::new("r", "a").key(), None));
    assert_eq!(read, Err(StoreError::Closed));
    assert_eq!(block_on(scene.store().close()), Ok(()));
}

pub fn a_commit_is_told_with_its_events_before_its_ticket_resolves(scene: Scene) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    scene.store().on_commit(Arc::new(move |commits: &[CommitNotice<'_>]| {
        for commit in commits {
            let AppendedEvents { session, first_seq, last_seq, body, .. } = there(commit.appended);
            let what = (commit.key.clone(), session, (first_seq, last_seq), body.to_owned());
            locked(&heard).push(what);
        }
    }));
    let mut a = Driver::new("r", "a");
    let timer = |name: &str| Fact::TimerFired { timer: name.to_owned() };
    let appends = [a.created(), a.append(vec![timer("two"), timer("three")]), a.next()];
    let mut expected = Vec::new();
    for (append, seqs) in appends.into_iter().zip([(1, 1), (2, 3), (4, 4)]) {
        expected.push((a.key().clone(), a.row.id, seqs, append.body.clone()));
        done(scene.store().append(append));
        assert_eq!(*locked(&told), expected);
    }
    // Two of one session may share a commit.
    let tickets = [a.next(), a.next()].map(|append| {
        let seqs = (append.first_seq, append.first_seq);
        expected.push((a.key().clone(), a.row.id, seqs, append.body.clone()));
        scene.store().append(append)
    });
    tickets.into_iter().for_each(done);
    assert_eq!(*locked(&told), expected);
    let mut stale = a.clone();
    stale.row.fence = Fence(1);
    assert!(block_on(scene.store().append(stale.next())).is_err());
    assert_eq!(*locked(&told), expected, "what is refused is not told");
}

pub fn what_is_queued_is_written_before_a_close_returns(scene: Scene) {
    let mut drivers: Vec<Driver> =
        (0..600).map(|number| Driver::new("r", &number.to_string())).collect();
    let tickets: Vec<Ticket> =
        drivers.iter_mut().map(|driver| scene.store().append(driver.created())).collect();
    let scene = scene.reopened();
    tickets.into_iter().for_each(done);
    for driver in &drivers {
        assert_eq!(scene.tail(driver.key()).len(), 1);
    }
}
