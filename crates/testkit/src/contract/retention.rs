//! Retention: what is removed, and what consumers hold back.

use super::driver::{
    Driver, call, calling, closure, done, ended_run, got, has_closure, page, pinning, realm, spec,
    spec_of, starting, swept, there, three_runs, trim_at,
};
use super::scene::Scene;
use futures::executor::block_on;
use kernel::contracts::{
    FeedStart, HistoryFilter, PrunedSlice, RETENTION, RealmSet, Slice, StoreError,
};
use kernel::journal::projection::{Append, OnceRow};
use kernel::journal::trim::Trim;
use kernel::session::RunStatus;
use kernel::tool::call::ToolSpec;
use kernel::values::ids::{ContentHash, Millis, RealmId, RunId, SessionId};
use std::collections::BTreeSet;

pub fn a_removed_session_leaves_nothing(scene: Scene) {
    let mut a = Driver::new("r", "a");
    let mut b = Driver::new("r", "b");
    let mut created = a.created();
    created.runs = vec![a.run_row(1)];
    done(scene.store().append(created));
    done(scene.store().append(a.asking(&["one"])));
    let called = call(&mut a, &[0, 0, 0, 1], "x");
    done(scene.store().append(Append { snapshot: Some("one".to_owned()), ..called }));
    done(scene.store().append(b.created()));
    got(scene.store().remove(a.key(), a.row.known()));
    assert_eq!(scene.load(a.key()), None);
    assert_eq!(block_on(scene.store().run(&realm(), a.run_row(1).id)), Ok(None));
    assert_eq!(block_on(scene.store().ask(&realm(), a.ask("one").id)), Ok(None));
    assert_eq!(block_on(scene.store().events(a.key(), 0, 10)), Ok(Vec::new()));
    assert_eq!(scene.tail(b.key()).len(), 1);
    // Its driver, if one still lives, cannot bring it back.
    let late = block_on(scene.store().append(a.next()));
    assert_eq!(late, Err(StoreError::Conflict("r/session/a".into())));
    got(scene.store().remove(a.key(), a.row.known()));
}

pub fn old_sessions_are_removed_in_slices_and_their_keys_when_they_are_old_too(scene: Scene) {
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
        driver.row.status = status;
        driver.row.run = Some(run.id);
        driver.row.updated_at = Millis(updated_at);
        let mut created = driver.created();
        created.once = Some(key(run.id, 10 + drivers.len() as i64));
        created.runs = vec![run];
        done(scene.store().append(created));
        drivers.push(driver);
    }
    let before = Millis(100);
    let but = [drivers[2].key().clone()];
    let others = [RealmId::from("o")];
    let all = Slice { after: 0, limit: 9 };
    let whose = RealmSet::AllBut(&others);
    let prune =
        |after, limit| got(scene.store().prune(whose, before, &but, Slice { after, limit }));
    let ours = [realm()];
    let spared = got(scene.store().prune(RealmSet::AllBut(&ours), before, &[], all));
    assert_eq!(spared, PrunedSlice::default());
    let feed = got(scene.store().feed(&realm(), 0, 9));
    let gone = |realm: &str| got(scene.store().consumer(&realm.into(), RETENTION));
    assert_eq!(gone("r"), 0);
    let first = prune(0, 2);
    assert_eq!(first.removed, [drivers[0].key().clone()]);
    assert_eq!(gone("r"), feed[0].cursor);
    let second = prune(there(first.next), 2);
    assert_eq!((second.removed, second.next), (vec![drivers[4].key().clone()], None));
    // Up to here the feed has gaps, though some of its rows are left.
    assert_eq!((gone("r"), gone("o")), (feed[4].cursor, 0));
    assert_eq!(first.rows, 3, "the session, its journal and its run");
    let left: Vec<bool> = drivers.iter().map(|driver| scene.load(driver.key()).is_some()).collect();
    assert_eq!(left, [false, true, true, true, false]);
    let kept: Vec<bool> = (10..15)
        .map(|at: i64| {
            let realm = realm();
            let key = at.to_string();
            let found = scene.store().once(&realm, "ann", &["POST /runs"], &key);
            got(found).is_some()
        })
        .collect();
    assert_eq!(kept, [false, true, true, true, false]);
    let other = RealmSet::One(&others[0]);
    assert_eq!(got(scene.store().prune(other, before, &[], all)).rows, 0);
    let our = RealmSet::One(&ours[0]);
    let last = got(scene.store().prune(our, before, &[], all));
    assert_eq!(last.removed, [drivers[2].key().clone()]);
}

pub fn sessions_with_old_runs_are_found_and_those_with_one_run_are_not(scene: Scene) {
    let a = three_runs(scene.store());
    let mut b = Driver::new("r", "b");
    done(scene.store().append(b.created()));
    done(scene.store().append(ended_run(&mut b, 1, 20)));
    let found = |realm: &str, before: i64, after| {
        let realm = RealmId::from(realm);
        let read = scene.store().trimmable(
            RealmSet::One(&realm),
            Millis(before),
            Slice { after, limit: 9 },
        );
        got(read)
    };
    let old = found("r", 100, None);
    assert_eq!(old.len(), 1);
    assert_eq!((&old[0].key, old[0].id, old[0].keeps), (a.key(), a.row.id, 3));
    assert_eq!(found("r", 25, None)[0].keeps, 2);
    assert!(found("r", 20, None).is_empty(), "the first run ended at that very time");
    assert!(found("other", 100, None).is_empty());
    assert!(found("r", 100, Some(old[0].cursor)).is_empty());
    let ours = [realm()];
    let others = scene.store().trimmable(
        RealmSet::AllBut(&ours),
        Millis(100),
        Slice { after: None, limit: 9 },
    );
    assert_eq!(block_on(others), Ok(Vec::new()));
}

pub fn old_runs_go_and_a_base_stands_in_their_place(scene: Scene) {
    let mut a = three_runs(scene.store());
    let store = scene.store();
    let feed = got(store.feed(&realm(), 0, 9));
    let trimmed = got(store.trim(trim_at(&a, 6, 2)));
    assert_eq!(trimmed, Some(9), "three rows, an ask, two entries, two runs, a snapshot");
    let seqs = |after: u64| {
        let events = block_on(store.events(a.key(), after, 9))?;
        Ok::<Vec<u64>, StoreError>(events.iter().map(|(seq, _)| *seq).collect())
    };
    assert_eq!((seqs(0), seqs(6)), (Ok(vec![6, 7]), Ok(vec![7])));
    assert_eq!((seqs(1), seqs(5)), (Err(StoreError::Gone(6)), Err(StoreError::Gone(6))));
    let stored = scene.stored(a.key());
    assert_eq!((stored.snapshot, stored.tail.len()), (None, 1));
    assert!(stored.tail[0].contains("base") && stored.tail[0].contains("seven"));
    assert!(!stored.tail[0].contains("six"));
    // The row is where it was in the feed, and a reader before it has missed something.
    let kept = got(store.feed(&realm(), 0, 9));
    assert_eq!((kept.len(), kept[0].cursor), (1, feed[3].cursor));
    assert_eq!(block_on(store.consumer(&realm(), RETENTION)), Ok(feed[3].cursor));
    for (no, there) in [(1, false), (2, false), (3, true)] {
        let run = got(store.run(&realm(), a.run_row(no).id));
        assert_eq!(run.is_some(), there, "run {no}");
    }
    assert_eq!(block_on(store.ask(&realm(), a.ask("one").id)), Ok(None));
    let everything = page(9, None);
    let history = got(store.history(a.key(), HistoryFilter::default(), &everything));
    assert!(history.items.is_empty());
    // The session continues as it was.
    a.saw_a_change();
    let eighth = Append { snapshot: Some("eight".to_owned()), ..a.next() };
    done(store.append(eighth));
    done(store.append(a.next()));
    let stored = scene.stored(a.key());
    assert_eq!((stored.snapshot.as_deref(), stored.tail.len()), (Some("eight"), 1));
    let ours = [realm()];
    let again =
        store.trimmable(RealmSet::One(&ours[0]), Millis(100), Slice { after: None, limit: 9 });
    assert_eq!(block_on(again), Ok(Vec::new()));
    assert_eq!(block_on(store.trim(trim_at(&a, 6, 2))), Ok(None));
}

pub fn a_session_that_is_not_as_the_trim_says_stays_whole(scene: Scene) {
    let a = three_runs(scene.store());
    let newest = trim_at(&a, 7, 3);
    let young = Trim { before: Millis(30), ..trim_at(&a, 6, 2) };
    let other = Trim { id: SessionId(1), ..trim_at(&a, 6, 2) };
    let nothing = trim_at(&a, 1, 0);
    for trim in [newest, young, other, nothing] {
        assert_eq!(block_on(scene.store().trim(trim.clone())), Ok(None), "{trim:?}");
    }
    let events = got(scene.store().events(a.key(), 1, 9));
    assert_eq!(events.len(), 6);
    assert_eq!(block_on(scene.store().consumer(&realm(), RETENTION)), Ok(0));
    // All or nothing, also over a restart; here the base is the last event of its row.
    assert!(got(scene.store().trim(trim_at(&a, 5, 2))).is_some());
    let scene = scene.reopened();
    let events = got(scene.store().events(a.key(), 0, 9));
    assert_eq!(events.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [5, 6, 7]);
}

/// A session that is over, with one row in the feed.
fn over(scene: &Scene, realm: &str, id: &str) -> Driver {
    let mut driver = Driver::new(realm, id);
    driver.row.status = RunStatus::Completed;
    driver.row.run = Some(driver.run_row(1).id);
    done(scene.store().append(driver.created()));
    driver
}

pub fn sessions_stay_until_every_sink_has_passed_them(scene: Scene) {
    let store = scene.store();
    let a = over(&scene, "r", "a");
    let b = over(&scene, "r", "b");
    let other = over(&scene, "o", "a");
    let feed = got(store.feed(&realm(), 0, 9));
    let prune = || {
        let slice = Slice { after: 0, limit: 9 };
        got(store.prune(RealmSet::AllBut(&[]), Millis(100), &[], slice)).removed
    };
    for sink in ["sink/slow", "sink/quick"] {
        got(store.begin_consumer(&realm(), sink, FeedStart::Oldest));
    }
    got(store.advance(&realm(), "sink/quick", feed[1].cursor));
    assert_eq!(prune(), [other.key().clone()], "another realm has no sinks");
    assert_eq!(scene.place(RETENTION), 0);
    got(store.advance(&realm(), "sink/slow", feed[0].cursor));
    assert_eq!(prune(), [a.key().clone()]);
    assert_eq!(scene.place(RETENTION), feed[0].cursor);
    // A sink that is forgotten holds nothing.
    assert_eq!(block_on(store.forget_consumer(&realm(), "sink/slow")), Ok(true));
    assert_eq!(prune(), [b.key().clone()]);
}

pub fn a_session_is_removed_once_every_sink_has_passed_it(scene: Scene) {
    let store = scene.store();
    let a = over(&scene, "r", "a");
    let b = over(&scene, "r", "b");
    let feed = got(store.feed(&realm(), 0, 9));
    let remove = |driver: &Driver| got(store.remove_sent(driver.key(), driver.row.known()));
    for sink in ["sink/slow", "sink/quick"] {
        got(store.begin_consumer(&realm(), sink, FeedStart::Oldest));
    }
    got(store.advance(&realm(), "sink/quick", feed[1].cursor));
    got(store.advance(&realm(), "nats", 0));
    assert_eq!(remove(&a).as_deref(), Some("sink/slow"));
    got(store.advance(&realm(), "sink/slow", feed[0].cursor));
    assert_eq!((remove(&a), remove(&b).as_deref()), (None, Some("sink/slow")));
    let left = got(store.feed(&realm(), 0, 9));
    assert_eq!(left, feed[1..], "one is gone, the other is there");
    // A caller that insists removes it all the same, and another time there is nothing to do.
    got(store.remove(b.key(), b.row.known()));
    assert_eq!(remove(&b), None);
}

pub fn old_runs_stay_until_every_sink_has_passed_them(scene: Scene) {
    let a = three_runs(scene.store());
    let store = scene.store();
    let feed = got(store.feed(&realm(), 0, 9));
    got(store.begin_consumer(&realm(), "sink/a", FeedStart::Oldest));
    got(store.advance(&realm(), "sink/a", feed[2].cursor));
    assert_eq!(block_on(store.trim(trim_at(&a, 6, 2))), Ok(None), "event 6 is in the fourth row");
    assert_eq!(got(store.events(a.key(), 0, 1))[0].0, 1);
    got(store.advance(&realm(), "sink/a", feed[3].cursor));
    assert!(got(store.trim(trim_at(&a, 6, 2))).is_some());
}

pub fn a_closure_goes_with_the_last_run_that_pins_it(scene: Scene) {
    let shared = closure("shared");
    let own = closure("own");
    let a = pinning(scene.store(), "r", "a", &shared);
    let b = pinning(scene.store(), "r", "b", &shared);
    let c = pinning(scene.store(), "r", "c", &own);
    let other = pinning(scene.store(), "other", "a", &shared);
    got(scene.store().remove(a.key(), a.row.known()));
    assert_eq!(swept(scene.store()), (1, 0));
    assert!(has_closure(scene.store(), "r", &shared), "another session pins it");
    got(scene.store().remove_sent(b.key(), b.row.known()));
    got(scene.store().remove(other.key(), other.row.known()));
    assert_eq!(swept(scene.store()), (2, 2));
    assert!(
        !has_closure(scene.store(), "r", &shared) && !has_closure(scene.store(), "other", &shared)
    );
    // One that is gone comes back with the next run that pins it.
    let b = pinning(scene.store(), "r", "b", &shared);
    assert!(has_closure(scene.store(), "r", &shared));
    let ours = realm();
    let slice = Slice { after: 0, limit: 9 };
    let pruned = got(scene.store().prune(RealmSet::One(&ours), Millis(100), &[], slice));
    assert_eq!(pruned.removed, [c.key().clone(), b.key().clone()]);
    let scene = scene.reopened();
    assert_eq!(swept(scene.store()), (2, 2));
    assert!(!has_closure(scene.store(), "r", &shared) && !has_closure(scene.store(), "r", &own));
    assert_eq!(swept(scene.store()), (0, 0));
}

pub fn a_trimmed_run_takes_its_closure_along(scene: Scene) {
    let old = closure("old");
    let kept = closure("kept");
    let mut a = pinning(scene.store(), "r", "a", &old);
    // Of two runs that pin the same one stays.
    let mut append = starting(&mut a, 2, &kept);
    append.runs[0].status = RunStatus::Completed;
    append.runs[0].ended_at = Some(Millis(30));
    done(scene.store().append(append));
    done(scene.store().append(starting(&mut a, 3, &kept)));
    let trimmed = got(scene.store().trim(trim_at(&a, a.row.seq - 1, 2)));
    assert!(trimmed.is_some());
    assert_eq!(swept(scene.store()), (2, 1));
    assert!(!has_closure(scene.store(), "r", &old) && has_closure(scene.store(), "r", &kept));
}

/// Whether a spec is there as it was pinned.
fn has_spec(scene: &Scene, spec: &ToolSpec) -> bool {
    spec_of(scene.store(), "r", spec).is_some_and(|found| found == *spec)
}

pub fn a_spec_is_there_as_long_as_a_closure_that_pins_it(scene: Scene) {
    let one = closure("one");
    let two = closure("two");
    let shared = spec("shared");
    let own = spec("own");
    let mut a = pinning(scene.store(), "r", "a", &one);
    let mut b = pinning(scene.store(), "r", "b", &two);
    for _ in 0..2 {
        done(scene.store().append(calling(a.next(), &one, &shared)));
        done(scene.store().append(calling(a.next(), &one, &own)));
        done(scene.store().append(calling(b.next(), &two, &shared)));
    }
    assert!(has_spec(&scene, &shared) && has_spec(&scene, &own));
    let hashes = [own.hash(), ContentHash::of(b"none"), shared.hash()];
    let found = got(scene.store().tool_specs(&"r".into(), &hashes));
    let found: BTreeSet<ContentHash> = found.into_iter().map(|(hash, _)| hash).collect();
    assert_eq!(found, BTreeSet::from([own.hash(), shared.hash()]), "all at once");
    assert_eq!(spec_of(scene.store(), "other", &shared), None);
    got(scene.store().remove(a.key(), a.row.known()));
    assert_eq!(swept(scene.store()), (1, 1));
    assert!(!has_spec(&scene, &own) && has_spec(&scene, &shared));
    // One that is gone comes back with the next run that pins it.
    let mut a = pinning(scene.store(), "r", "a", &one);
    done(scene.store().append(calling(a.next(), &one, &own)));
    assert!(has_spec(&scene, &own));
    got(scene.store().remove(a.key(), a.row.known()));
    got(scene.store().remove(b.key(), b.row.known()));
    let scene = scene.reopened();
    assert_eq!(swept(scene.store()), (2, 2));
    assert!(!has_spec(&scene, &own) && !has_spec(&scene, &shared));
}
