//! Ownership: which node drives a session, and when.

use super::driver::{Driver, done, got, page, realm, there};
use super::scene::Scene;
use futures::executor::block_on;
use kernel::contracts::{OpenSessions, SessionFilter, SessionRef};
use kernel::journal::projection::{Append, ParkedSession, SessionRow};
use kernel::values::ids::{Millis, RealmId};

pub fn due_sessions_are_claimed_and_those_of_a_dead_process_first(scene: Scene) {
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
        let keys = got(scene.store().claim(Millis(1_000), limit));
        keys.iter().map(|key| key.id.to_string()).collect()
    };
    assert_eq!(claimed(&scene, 10), ["left"]);
    let scene = scene.reopened();
    wake(&scene, "moving", Some(10), true);
    wake(&scene, "timer", Some(600), false);
    assert_eq!(claimed(&scene, 10), ["left", "timer", "moving"]);
    assert_eq!(claimed(&scene, 1), ["left"]);
    // The one who writes it now has it in hand.
    let taken = Append { owned: true, ..left.next() };
    done(scene.store().append(taken));
    assert_eq!(claimed(&scene, 10), ["timer", "moving", "left"]);
}

pub fn a_parked_session_is_passed_over_until_its_time_or_its_next_append(scene: Scene) {
    let mut drivers = ["due", "later", "waits"].map(|id| Driver::new("r", id));
    for (driver, wake_at) in drivers.iter_mut().zip([Some(500), Some(9_000), None]) {
        driver.row.wake_at = wake_at.map(Millis);
        done(scene.store().append(driver.created()));
    }
    let parked =
        ParkedSession { reason: "event 1 cannot be read".to_owned(), until: Millis(2_000) };
    for driver in &mut drivers {
        assert_eq!(block_on(scene.store().park(driver.key(), parked.clone())), Ok(()));
        driver.saw_a_change();
    }
    let row = |driver: &Driver| {
        let named = SessionRef::Id(driver.row.id);
        there(got(scene.store().session(&realm(), &named)))
    };
    for (driver, wake_at) in drivers.iter().zip([Some(2_000), Some(9_000), None]) {
        let wake_at = wake_at.map(Millis);
        let parked = Some(parked.clone());
        assert_eq!(row(driver), SessionRow { wake_at, parked, ..driver.row.clone() });
    }
    let claimed = |now: i64| -> Vec<String> {
        let keys = got(scene.store().claim(Millis(now), 10));
        keys.iter().map(|key| key.id.to_string()).collect()
    };
    assert_eq!((claimed(1_999), claimed(2_000)), (Vec::new(), vec!["due".to_owned()]));
    let listed = |realm: &str, limit: usize| -> Vec<String> {
        let filter = SessionFilter { parked: true, ..Default::default() };
        let realm = RealmId::from(realm);
        let page = page(limit, None);
        let found = got(scene.store().sessions(&realm, &filter, &page));
        found.items.iter().map(|row| row.key.id.to_string()).collect()
    };
    assert_eq!(listed("r", 10), ["waits", "later", "due"]);
    assert_eq!(listed("r", 1), ["waits"]);
    assert_eq!(listed("other", 10), [""; 0]);
    let open = |status: &str, count: u64| OpenSessions { status: status.to_owned(), count };
    let counted = || got(scene.store().open_sessions(&realm()));
    assert_eq!(counted(), [open("parked", 3), open("running", 3)]);
    done(scene.store().append(drivers[0].next()));
    assert_eq!(row(&drivers[0]), drivers[0].row);
    assert_eq!(claimed(1_000), ["due"]);
    assert_eq!(listed("r", 10), ["waits", "later"]);
    assert_eq!(counted(), [open("parked", 2), open("running", 3)]);
}

pub fn a_session_is_postponed_unless_something_was_appended(scene: Scene) {
    let mut drivers = ["waits", "moved", "asks"].map(|id| Driver::new("r", id));
    for (driver, wake_at) in drivers.iter_mut().zip([Some(500), Some(500), None]) {
        driver.row.wake_at = wake_at.map(Millis);
        done(scene.store().append(driver.created()));
    }
    let fences = [0, 1, 2].map(|index| drivers[index].row.fence);
    done(scene.store().append(drivers[1].next()));
    for (driver, fence) in drivers.iter().zip(fences) {
        assert_eq!(block_on(scene.store().postpone(driver.key(), fence, Millis(900))), Ok(()));
    }
    drivers[0].row.wake_at = Some(Millis(900));
    for driver in &drivers {
        let named = SessionRef::Id(driver.row.id);
        let row = there(got(scene.store().session(&realm(), &named)));
        assert_eq!(row, driver.row, "and its fence stays");
    }
    let claimed = |now: i64| -> Vec<String> {
        let keys = got(scene.store().claim(Millis(now), 10));
        keys.iter().map(|key| key.id.to_string()).collect()
    };
    assert_eq!(claimed(899), ["moved"]);
    assert_eq!(claimed(900), ["moved", "waits"]);
    done(scene.store().append(drivers[0].next()));
}

pub fn the_next_wake_is_the_nearest_one_after_now(scene: Scene) {
    for (id, wake_at) in [("a", Some(50)), ("b", Some(90)), ("c", None), ("d", Some(70))] {
        let mut driver = Driver::new("r", id);
        driver.row.wake_at = wake_at.map(Millis);
        done(scene.store().append(driver.created()));
    }
    assert_eq!(block_on(scene.store().next_wake(Millis(50))), Ok(Some(Millis(70))));
    assert_eq!(block_on(scene.store().next_wake(Millis(90))), Ok(None));
}
