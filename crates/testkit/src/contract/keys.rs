//! Idempotency keys: the stored outcome of a request.

use super::driver::{Driver, done};
use super::scene::Scene;
use futures::executor::block_on;
use kernel::contracts::StoreError;
use kernel::journal::projection::{Append, FormerRoute, OnceRow};
use kernel::values::ids::{ContentHash, Millis, RunId};

/// A key of Ann's at ten, which stands for this run.
fn once(run: RunId) -> OnceRow {
    OnceRow {
        subject: "ann".into(),
        route: "POST /runs".to_owned(),
        key: "k".to_owned(),
        digest: ContentHash::of(b"body"),
        run: Some(run),
        ask: None,
        at: Millis(10),
    }
}

pub fn a_key_is_written_with_what_it_stands_for_and_only_once(scene: Scene) {
    let mut a = Driver::new("r", "a");
    let mut b = Driver::new("r", "b");
    let found = |realm: &str, subject: &str| {
        block_on(scene.store().once(&realm.into(), subject, &["POST /runs"], "k"))
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
    let mut c = Driver::new("r", "c");
    let mut third = c.created();
    let newer =
        OnceRow { route: "POST /runs, later".to_owned(), at: Millis(11), ..once(c.run_row(1).id) };
    third.once = Some(newer.clone());
    done(scene.store().append(third));
    for routes in [["POST /runs", "POST /runs, later"], ["POST /runs, later", "POST /runs"]] {
        let found = block_on(scene.store().once(&"r".into(), "ann", &routes, "k"));
        assert_eq!(found, Ok(Some(newer.clone())), "the newest counts");
    }
}

pub fn a_key_that_is_taken_under_its_earlier_route_is_refused_until_that_is_forgotten(
    scene: Scene,
) {
    let mut a = Driver::new("r", "a");
    let mut first = a.created();
    first.once = Some(once(a.run_row(1).id));
    done(scene.store().append(first));
    let repeat = |driver: &mut Driver, subject: &str, since: i64| {
        let run = driver.run_row(1).id;
        let earlier = FormerRoute { route: "POST /runs".to_owned(), since: Millis(since) };
        let route = "POST /runs, later".to_owned();
        Append {
            once: Some(OnceRow { route, subject: subject.into(), at: Millis(20), ..once(run) }),
            earlier: Some(earlier),
            ..driver.created()
        }
    };
    let mut b = Driver::new("r", "b");
    let taken = block_on(scene.store().append(repeat(&mut b, "ann", 10)));
    assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
    assert_eq!(scene.load(b.key()), None, "half of it was written");
    let later = block_on(scene.store().once(&"r".into(), "ann", &["POST /runs, later"], "k"));
    assert_eq!(later, Ok(None), "its key was written");
    done(scene.store().append(repeat(&mut Driver::new("r", "c"), "eve", 10)));
    done(scene.store().append(repeat(&mut Driver::new("other", "d"), "ann", 10)));
    done(scene.store().append(repeat(&mut Driver::new("r", "e"), "ann", 11)));
}
