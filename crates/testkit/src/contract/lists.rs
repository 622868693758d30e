//! What every store must promise of its lists and counts.

use super::driver::{Driver, decided, done, got, holding, page, realm, speaking_of, there};
use super::scene::Scene;
use futures::executor::block_on;
use kernel::ask::remedy::{Remedy, RuleHold};
use kernel::contracts::{
    AskFilter, OpenAsks, OpenSessions, OwnerFilter, RunFilter, RunPage, RunWithEvents,
    SessionFilter, SessionRef, StoreError, StoredBytes,
};
use kernel::definition::pipeline::{OTHER_REASONS, Tally, TallyRow};
use kernel::journal::projection::{Append, AskChange, RunRow, StoredClosure};
use kernel::session::RunStatus;
use kernel::values::ids::{
    ContentHash, Fence, Millis, PlanId, RealmId, RunId, SessionKey, Space, StepId,
};
use serde_json::json;
use std::sync::Arc;

pub fn sessions_are_listed_newest_first(scene: Scene) {
    let statuses = [RunStatus::Completed, RunStatus::Stuck, RunStatus::Completed, RunStatus::Stuck];
    for (index, status) in statuses.into_iter().enumerate() {
        let mut driver = Driver::new("r", &format!("s{index}"));
        driver.row.status = status;
        driver.row.plan = Some(PlanId::from(if index < 2 { "old" } else { "new" }));
        done(scene.store().append(driver.created()));
    }
    let list = |filter: SessionFilter, limit: usize| {
        let mut cursor = None;
        let mut seen = Vec::new();
        loop {
            let page = page(limit, cursor);
            let got = got(scene.store().sessions(&realm(), &filter, &page));
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

pub fn sessions_are_found_by_a_blob_that_they_hold(scene: Scene) {
    let held = ContentHash::of(b"held");
    let other = ContentHash::of(b"other");
    for (realm, id, hash) in [("r", "a", &held), ("r", "b", &other), ("q", "c", &held)] {
        let mut driver = Driver::new(realm, id);
        done(scene.store().append(driver.created()));
        done(scene.store().append(driver.append(vec![holding(hash)])));
    }
    // A text that mentions it holds nothing, before the value comes and after.
    let mut mentions = Driver::new("r", "d");
    done(scene.store().append(mentions.created()));
    done(scene.store().append(mentions.append(vec![speaking_of(&held)])));
    let named = |hash: &ContentHash| {
        let filter = SessionFilter { blob: Some(hash.clone()), ..Default::default() };
        let found = got(scene.store().sessions(&realm(), &filter, &page(10, None)));
        found.items.iter().map(|row| row.key.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(named(&held), ["a"]);
    assert_eq!(named(&other), ["b"]);
    assert_eq!(named(&ContentHash::of(b"neither")), [""; 0]);
    done(scene.store().append(mentions.append(vec![holding(&held)])));
    done(scene.store().append(mentions.append(vec![speaking_of(&held)])));
    assert_eq!(named(&held), ["d", "a"]);
}

pub fn a_key_without_a_space_is_the_only_one_or_the_session(scene: Scene) {
    for (space, id) in [("thread", "a"), ("session", "a"), ("thread", "b"), ("context", "b")] {
        let key = SessionKey::new(realm(), space, id);
        done(scene.store().append(Driver::of(key).created()));
    }
    let key = SessionKey::new(realm(), "thread", "c");
    done(scene.store().append(Driver::of(key).created()));
    let space_of = |id: &str, space: Option<&str>| {
        let named = SessionRef::Key { key: id.into(), space: space.map(Space::from) };
        let found = got(scene.store().session(&realm(), &named));
        found.map(|row| row.key.space.to_string())
    };
    assert_eq!(space_of("a", None).as_deref(), Some("session"));
    assert_eq!(space_of("a", Some("thread")).as_deref(), Some("thread"));
    assert_eq!(space_of("b", None), None);
    assert_eq!(space_of("c", None).as_deref(), Some("thread"));
    assert_eq!(space_of("d", None), None);
}

pub fn the_same_id_of_two_owners_is_two_sessions(scene: Scene) {
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
        let row = there(got(scene.store().session(&realm(), &row)));
        assert_eq!(row.key, *key);
    }
    let fed = got(scene.store().feed(&realm(), 0, 9));
    assert_eq!(fed.iter().filter(|row| row.key == keys[1]).count(), 2);
    assert_eq!(scene.load(&of("eve")), None);
    // No id reads as someone else's.
    for id in ["t\u{1f}ann", "t\u{1f}idp:\u{1f}bob"] {
        let key = SessionKey::new(realm(), Space::thread(), id);
        assert_eq!(scene.load(&key), None, "{id:?}");
    }
}

pub fn a_subject_means_its_own_where_ids_are_their_owners(scene: Scene) {
    let of_case = SessionKey::new(realm(), Space::case(&"cases".into()), "c");
    done(scene.store().append(Driver::of(of_case.clone()).created()));
    let found = |named: SessionRef| got(scene.store().session(&realm(), &named)).map(|row| row.key);
    let means = |key: &str, owner: &str, space: Option<Space>| {
        found(SessionRef::Owned { key: key.into(), space, owner: owner.into() })
    };
    for (id, owned) in [("t", Space::thread()), ("s", Space::session())] {
        let nobodys = SessionKey::new(realm(), owned.clone(), id);
        let anns = SessionKey { owner: Some("ann".into()), ..nobodys.clone() };
        for key in [&nobodys, &anns] {
            done(scene.store().append(Driver::of(key.clone()).created()));
        }
        for space in [None, Some(owned)] {
            assert_eq!(means(id, "ann", space.clone()), Some(anns.clone()));
            assert_eq!(means(id, "bob", space.clone()), None);
            assert_eq!(found(SessionRef::Key { key: id.into(), space }), Some(nobodys.clone()));
        }
    }
    for space in [None, Some(of_case.space.clone())] {
        assert_eq!(means("c", "bob", space), Some(of_case.clone()));
    }
}

pub fn asks_that_rules_hold_are_listed_apart(scene: Scene) {
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    let mut append = a.asking(&["mine", "held"]);
    let Some(AskChange::Opened(ask)) = append.asks.last_mut() else { panic!("nothing is asked") };
    let rule = "step 1".into();
    let until = Millis(50);
    ask.held = Some(RuleHold { rule, does: Remedy::Retry, try_no: 1, of: 3, until });
    done(scene.store().append(append));
    let of = |held: Option<bool>| -> Vec<String> {
        let filter = AskFilter { held, ..Default::default() };
        let found = got(scene.store().asks(&realm(), &filter, &page(10, None)));
        found.items.iter().map(|found| found.row.ask.step.to_string()).collect()
    };
    assert_eq!(of(None), ["mine", "held"]);
    assert_eq!(of(Some(false)), ["mine"]);
    assert_eq!(of(Some(true)), ["held"]);
}

pub fn asks_are_listed_oldest_first(scene: Scene) {
    let mut a = Driver::new("r", "a");
    let mut b = Driver::new("r", "b");
    done(scene.store().append(a.created()));
    done(scene.store().append(b.created()));
    done(scene.store().append(a.asking(&["one", "two"])));
    done(scene.store().append(b.asking(&["three"])));
    let mut answer = a.next();
    answer.asks = vec![decided(&a.ask("one"), "ann")];
    done(scene.store().append(answer));
    let list = |filter: AskFilter, limit: usize| {
        let mut cursor = None;
        let mut seen = Vec::new();
        loop {
            let page = page(limit, cursor);
            let got = got(scene.store().asks(&realm(), &filter, &page));
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
    let open = got(scene.store().open_asks(&realm()));
    let two = a.ask("two");
    let expected = OpenAsks { kind: two.body.kind().to_owned(), count: 2, oldest: two.created_at };
    assert_eq!(open, [expected], "all that are open, and no other");
}

pub fn a_run_is_kept_up_to_date(scene: Scene) {
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
    let found = there(got(scene.store().run(&realm(), run.id)));
    assert_eq!((found.session, &found.key, found.row), (a.row.id, a.key(), run));
}

pub fn the_plans_of_runs_are_read_by_a_list_of_ids(scene: Scene) {
    let mut a = Driver::new("r", "a");
    let one = a.run_row(1);
    let two = RunRow { plan: PlanId::from("other"), ..a.run_row(2) };
    done(scene.store().append(Append { runs: vec![one.clone()], ..a.created() }));
    done(scene.store().append(Append { runs: vec![two.clone()], ..a.next() }));
    let plans = |realm: &str, runs: &[RunId]| {
        let mut plans = got(scene.store().run_plans(&realm.into(), runs));
        plans.sort();
        plans
    };
    let mut both = vec![(one.id, one.plan.clone()), (two.id, two.plan.clone())];
    both.sort();
    assert_eq!(plans("r", &[two.id, RunId(1), one.id]), both);
    assert_eq!(plans("r", &[one.id]), [(one.id, one.plan.clone())]);
    assert_eq!(plans("r", &[]), []);
    assert_eq!(plans("other", &[one.id, two.id]), []);
}

pub fn a_first_run_comes_with_the_first_events_of_its_session(scene: Scene) {
    let mut a = Driver::new("r", "a");
    let first = a.run_row(1);
    let second = a.run_row(2);
    done(scene.store().append(Append { runs: vec![first.clone()], ..a.created() }));
    done(scene.store().append(Append { runs: vec![second.clone()], ..a.next() }));
    let found = |run: &RunRow, limit: usize| {
        let found = got(scene.store().run_with_events(&realm(), run.id, limit));
        let RunWithEvents { run, events } = there(found);
        assert_eq!(Some(&run), got(scene.store().run(&realm(), run.row.id)).as_ref());
        events
    };
    for limit in [1, 2, 9] {
        assert_eq!(found(&first, limit), got(scene.store().events(a.key(), 0, limit)));
        assert_eq!(found(&second, limit), []);
    }
    for (realm, run) in [("q", first.id), ("r", RunId(1))] {
        assert_eq!(got(scene.store().run_with_events(&realm.into(), run, 9)), None);
    }
}

pub fn what_runs_store_is_summed_up_by_realm_and_owner(scene: Scene) {
    let append = |driver: &mut Driver, run: &RunRow| {
        let append = if driver.row.seq == 0 { driver.created() } else { driver.next() };
        done(scene.store().append(Append { runs: vec![run.clone()], ..append }));
    };
    let stored = |realm: &str, owner: Option<&str>, bytes: u64| StoredBytes {
        realm: realm.into(),
        owner: owner.map(Arc::from),
        bytes,
    };
    assert!(got(scene.store().stored_bytes()).is_empty());
    let mut a = Driver::new("q", "a");
    let mut b = Driver::new("r", "b");
    let mut c = Driver::new("r", "c");
    let of_ann = |driver: &Driver, no: u32, bytes: u64| RunRow {
        owner: Some("ann".into()),
        bytes,
        ..driver.run_row(no)
    };
    let nobodys = RunRow { bytes: 7, ..b.run_row(1) };
    append(&mut b, &nobodys);
    let first = of_ann(&c, 1, 100);
    append(&mut c, &first);
    let second = of_ann(&c, 2, 30);
    append(&mut c, &second);
    let other = of_ann(&a, 1, 5);
    append(&mut a, &other);
    let found = got(scene.store().stored_bytes());
    let anns = stored("r", Some("ann"), 130);
    assert_eq!(found, [stored("q", Some("ann"), 5), stored("r", None, 7), anns.clone()]);
    // A run that stores more has more, not both.
    append(&mut b, &RunRow { bytes: 9, ..nobodys });
    let found = got(scene.store().stored_bytes());
    assert_eq!(found[1..], [stored("r", None, 9), anns]);
    got(scene.store().remove(c.key(), c.row.known()));
    let found = got(scene.store().stored_bytes());
    assert_eq!(found, [stored("q", Some("ann"), 5), stored("r", None, 9)]);
}

/// A run of a context that changed then, written with all that came before.
fn changed(a: &mut Driver, run: &RunRow, at: i64) -> (Append, RunRow) {
    let row = RunRow { changed_at: Millis(at), ..run.clone() };
    let append = if a.row.seq == 0 { a.created() } else { a.next() };
    (Append { runs: vec![row.clone()], ..append }, row)
}

pub fn runs_of_contexts_are_listed_by_their_last_change(scene: Scene) {
    let mut anns = Driver::of(SessionKey {
        owner: Some("ann".into()),
        ..SessionKey::new(realm(), Space::context(), "c")
    });
    let mut local = Driver::of(SessionKey::new(realm(), Space::context(), "l"));
    let mut other = Driver::of(SessionKey::new(realm(), Space::thread(), "t"));
    let of_ann = |run: RunRow| RunRow { owner: Some("ann".into()), ..run };
    let one = of_ann(anns.run_row(1));
    let two = RunRow { status: RunStatus::Waiting, ..of_ann(anns.run_row(2)) };
    let three = local.run_row(1);
    let four = other.run_row(1);
    let append = |driver: &mut Driver, run: &RunRow, at: i64| {
        let (append, row) = changed(driver, run, at);
        done(scene.store().append(append));
        row
    };
    let one = append(&mut anns, &one, 10);
    append(&mut anns, &two, 20);
    append(&mut local, &three, 30);
    append(&mut other, &four, 40);
    // The first one changes once more, and is over.
    let over = RunRow { status: RunStatus::Completed, ended_at: Some(Millis(50)), ..one };
    append(&mut anns, &over, 50);
    let one = over.id;
    let two = two.id;
    let three = three.id;

    let list = |filter: &RunFilter, limit: usize| {
        let mut cursor = None;
        let mut seen = Vec::new();
        let mut totals = Vec::new();
        loop {
            let RunPage { page, total } =
                got(scene.store().runs(&realm(), filter, &page(limit, cursor)));
            assert!(page.items.len() <= limit);
            seen.extend(page.items.iter().map(|run| run.row.id));
            totals.push(total);
            cursor = page.next_cursor;
            if cursor.is_none() {
                assert!(totals.iter().all(|total| *total == seen.len() as u64), "{totals:?}");
                return seen;
            }
        }
    };
    let any = RunFilter::default();
    let ann = RunFilter { whose: OwnerFilter::Of("ann".into()), ..any.clone() };
    let nobody = RunFilter { whose: OwnerFilter::NoOnes, ..any.clone() };
    let context = RunFilter { session: Some(anns.row.id), ..any.clone() };
    let of = |filter: &RunFilter, statuses: &[RunStatus]| RunFilter {
        statuses: statuses.to_vec(),
        ..filter.clone()
    };
    for limit in [1, 2, 10] {
        assert_eq!(list(&any, limit), [one, three, two]);
        assert_eq!(list(&ann, limit), [one, two]);
        assert_eq!(list(&nobody, limit), [three]);
        assert_eq!(list(&context, limit), [one, two]);
        assert_eq!(list(&of(&any, &[RunStatus::Running]), limit), [three]);
        let two_statuses = [RunStatus::Waiting, RunStatus::Completed];
        for filter in [&any, &ann, &context] {
            assert_eq!(list(&of(filter, &two_statuses), limit), [one, two]);
            assert_eq!(list(&of(filter, &[RunStatus::Waiting]), limit), [two]);
        }
        assert_eq!(
            list(&RunFilter { since: Some(Millis(30)), ..any.clone() }, limit),
            [one, three]
        );
    }
    let bad = block_on(scene.store().runs(&realm(), &any, &page(1, Some("x".to_owned()))));
    assert!(matches!(bad, Err(StoreError::BadCursor(_))), "{bad:?}");
    assert_eq!(got(scene.store().runs(&"other".into(), &any, &page(9, None))).total, 0);
    got(scene.store().remove(anns.key(), anns.row.known()));
    assert_eq!(list(&any, 9), [three]);
}

pub fn sessions_that_are_not_over_are_counted_by_status(scene: Scene) {
    for (index, status) in RunStatus::ALL.iter().copied().enumerate() {
        // One more of each.
        for number in 0..=index {
            let mut driver = Driver::new("r", &format!("{}-{number}", status.name()));
            driver.row.status = status;
            done(scene.store().append(driver.created()));
        }
    }
    let mut expected: Vec<OpenSessions> = RunStatus::ALL
        .iter()
        .zip(1..)
        .filter(|(status, _)| !status.is_over())
        .map(|(status, count)| OpenSessions { status: status.name().to_owned(), count })
        .collect();
    expected.sort_by(|left, right| left.status.cmp(&right.status));
    assert_eq!(block_on(scene.store().open_sessions(&realm())), Ok(expected));
    assert_eq!(block_on(scene.store().open_sessions(&RealmId::from("other"))), Ok(Vec::new()));
}

pub fn another_realm_sees_nothing(scene: Scene) {
    let mut a = Driver::new("r", "a");
    let run = a.run_row(1);
    let ask = a.ask("one");
    let mut created = a.created();
    created.runs = vec![run.clone()];
    created.asks = vec![AskChange::Opened(Box::new(ask.clone()))];
    let hash = ContentHash::of(b"closure");
    let closure = StoredClosure { hash: hash.clone(), body: "{}".to_owned() };
    created.closure = Some(Arc::new(closure));
    done(scene.store().append(created));
    let store = scene.store();
    let other = RealmId::from("other");
    assert_eq!(block_on(store.closure(&realm(), &hash)), Ok(Some("{}".to_owned())));
    assert_eq!(block_on(store.closure(&other, &hash)), Ok(None));
    assert_eq!(block_on(store.run(&other, run.id)), Ok(None));
    assert_eq!(block_on(store.ask(&other, ask.id)), Ok(None));
    assert_eq!(block_on(store.session(&other, &SessionRef::Id(a.row.id))), Ok(None));
    let named = SessionRef::Key { key: "a".into(), space: None };
    assert_eq!(block_on(store.session(&other, &named)), Ok(None));
    let everything = page(10, None);
    let sessions = got(store.sessions(&other, &SessionFilter::default(), &everything));
    assert!(sessions.items.is_empty());
    for session in [None, Some(a.row.id)] {
        let filter = AskFilter { session, ..Default::default() };
        assert!(got(store.asks(&other, &filter, &everything)).items.is_empty());
    }
    assert_eq!(block_on(store.open_asks(&other)), Ok(Vec::new()));
    assert_eq!(block_on(store.feed(&other, 0, 10)), Ok(Vec::new()));
    assert_eq!(scene.load(Driver::new("other", "a").key()), None);
    // The same key there is another session.
    done(store.append(Driver::new("other", "a").created()));
}

/// An append that begins the run of a case with this reason.
fn counted(a: &mut Driver, at: i64, deterministic: bool, reason: &str) -> Append {
    a.row.updated_at = Millis(at);
    let mut append = a.next();
    let pipeline = "trades".into();
    let reason = reason.into();
    append.tally = Some(Tally { pipeline, deterministic, reason });
    append
}

pub fn roads_are_counted_with_the_runs_that_take_them(scene: Scene) {
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
        got(scene.store().tallies(&realm.into(), &pipeline.into()))
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
    got(scene.store().remove(a.key(), a.row.known()));
    assert_eq!(listed(&scene.reopened(), "r", "trades"), all);
}
