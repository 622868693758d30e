//! The audit in the embedded store: what is done to the database behind our back is found, and a
//! power cut leaves an event and its entry, or neither.

use super::machine::{Machine, STEPS_MAX};
use super::{Scene, open};
use kernel::contracts::LoadResult;
use kernel::identity::chain::{ChainReport, Flaw, Head};
use kernel::journal::projection::Append;
use kernel::limits::Limits;
use std::sync::Arc;
use stores::OpenStore;
use testkit::contract::arms::Threads;
use testkit::contract::audit::{self, TestKeys, entry, of_realm};
use testkit::contract::driver::Driver;
use testkit::sim::machine::executor::Stop;
use testkit::sim::machine::power::Point;
use testkit::sim::rng::Rng;

/// The power goes off at each of the first so many hits of a point.
const HITS: u64 = 20;

/// A store with a chain of the realm `r` that has so many rows.
fn chained(rows: i64) -> Scene {
    let scene = Scene::new();
    audit::chained(scene.store(), &*scene.opened.audit, rows);
    scene
}

fn verified(scene: &Scene, known: &[Head]) -> ChainReport {
    audit::verified(&*scene.opened.audit, &of_realm(), known)
}

fn head(scene: &Scene) -> Head {
    audit::state(&*scene.opened.audit, &of_realm()).head
}

fn write(scene: &Scene, at: i64) {
    audit::write(&*scene.opened.audit, of_realm(), vec![entry(at, "ann", "call")]);
}

/// The same folder after this SQL was run on it.
fn changed_by(scene: Scene, sql: &str) -> Scene {
    let folder = scene.closed();
    let database = rusqlite::Connection::open(folder.path().join("data/waypost.db")).unwrap();
    database.execute_batch(sql).unwrap();
    drop(database);
    let opened = open(&folder, Arc::new(Threads::default()), Limits::default()).unwrap();
    opened.audit.begin(Arc::new(TestKeys));
    Scene { opened, folder }
}

#[test]
fn each_change_of_the_database_is_found() {
    for sql in [
        "UPDATE audit SET body = replace(body, 'ann', 'eve') WHERE seq = 2;",
        "UPDATE audit SET at = 7 WHERE seq = 1;",
        "UPDATE audit SET chain = '*' WHERE seq = 3;",
        "UPDATE audit SET mac = zeroblob(32) WHERE seq = 4;",
        "UPDATE audit SET mac = x'00' WHERE seq = 4;",
        "INSERT INTO audit SELECT chain, 6, at, key, mac, x'00', body FROM audit WHERE seq = 5;",
        "DELETE FROM audit WHERE seq = 1;",
        "DELETE FROM audit WHERE seq = 3;",
        "DELETE FROM audit WHERE seq = 5;",
        "DELETE FROM audit;",
        "UPDATE audit SET seq = 100 WHERE seq = 2; UPDATE audit SET seq = 2 WHERE seq = 3;
         UPDATE audit SET seq = 3 WHERE seq = 100;",
        "DELETE FROM audit WHERE seq <= 2; UPDATE audit_heads SET base_seq = 2, base_key = 'k1',
         base_proof = zeroblob(32), base_mac = (SELECT prev FROM audit WHERE seq = 3);",
    ] {
        let scene = changed_by(chained(5), sql);
        assert!(verified(&scene, &[]).flaws > 0, "{sql}");
    }
    let unknown = "UPDATE audit SET key = '00000000', body = replace(body, 'ann', 'eve');";
    let found = verified(&changed_by(chained(5), unknown), &[]);
    assert!(!found.is_valid(), "{found:?}");
}

#[test]
fn truncation_and_an_older_copy_are_found_by_a_kept_head() {
    let scene = chained(5);
    let kept = head(&scene);
    let cut = "DELETE FROM audit WHERE seq > 3; UPDATE audit_heads SET seq = 3, \
         mac = (SELECT mac FROM audit WHERE seq = 3);";
    let scene = changed_by(scene, cut);
    assert_eq!(verified(&scene, &[]).found, [], "the chain itself does not tell");
    assert_eq!(verified(&scene, &[kept]).found, [Flaw::Older { found: 3, known: 5 }]);
    // It continues, and has other rows than it had.
    (20..23).for_each(|at| write(&scene, at));
    assert_eq!(verified(&scene, &[kept]).found, [Flaw::Other { seq: 5 }]);
}

/// Appends that bring an entry each, until the power goes off: how many were acknowledged.
fn append_until_cut(machine: &Machine, opened: &OpenStore, driver: &mut Driver) -> u64 {
    loop {
        let at = i64::try_from(driver.row.seq).unwrap();
        let acknowledged = driver.row.seq;
        let append = Append { audit: vec![entry(at, "ann", "call")], ..driver.next() };
        match machine.executor.run_until(opened.store.append(append), STEPS_MAX) {
            Ok(written) => written.unwrap(),
            Err(Stop::Cut) => return acknowledged,
            Err(stop) => panic!("{stop:?}"),
        }
    }
}

#[test]
fn a_power_cut_leaves_an_event_with_its_entry_or_neither() {
    let machine = Machine::new();
    let mut rng = Rng::new(1);
    let mut opened = machine.open();
    opened.audit.begin(Arc::new(TestKeys));
    let mut driver = Driver::new("r", "a");
    let created = Append { audit: vec![entry(0, "ann", "run")], ..driver.created() };
    machine.run(opened.store.append(created));
    let mut unheard = 0;
    for point in [Point::Step, Point::DiskWrite, Point::DiskSync] {
        for hit in 1..=HITS {
            machine.power.switch_on(Some((point, hit)));
            let acknowledged = append_until_cut(&machine, &opened, &mut driver);
            drop(opened);
            machine.crash(&mut rng);
            opened = machine.open();
            opened.audit.begin(Arc::new(TestKeys));
            let loaded = machine.run(opened.store.load(driver.key(), None));
            let LoadResult::Found(stored) = loaded else { panic!("the session is gone") };
            let place = format!("hit {hit} of {point:?}");
            let events = stored.tail.len() as u64;
            assert!(events == acknowledged || events == acknowledged + 1, "{place}");
            unheard += events - acknowledged;
            let chains = machine.run(opened.audit.chains());
            assert_eq!(chains.len(), 1, "{place}");
            assert_eq!(chains[0].head.seq, events, "{place}: one row for each append");
            driver.row.seq = events;
            driver.row.fence = stored.fence;
        }
    }
    assert!(unheard > 0, "no cut came between a commit and its answer");
    drop(opened);
    machine.executor.drop_tasks();
}
