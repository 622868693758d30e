//! API keys in the embedded store: what a power cut leaves of them, how many writes a note of their
//! uses is, and a row that cannot be read.

use super::machine::{Machine, STEPS_MAX};
use super::{Scene, open};
use futures::executor::block_on;
use kernel::contracts::StoreError;
use kernel::contracts::identity::api_keys::StoredKey;
use kernel::identity::key::ApiKey;
use kernel::limits::Limits;
use kernel::values::ids::Millis;
use std::sync::Arc;
use stores::OpenStore;
use testkit::contract::api_keys::new_key;
use testkit::contract::arms::Threads;
use testkit::sim::machine::executor::Stop;
use testkit::sim::machine::power::Point;
use testkit::sim::rng::Rng;

const ID: &str = "aaaaaaaaaa";
/// The power goes off at each of the first so many hits of a point.
const HITS: u64 = 20;

/// The key as a version of it is written: a part of one version and a part of another differ from
/// all of them.
fn of_version(version: u64) -> ApiKey {
    new_key(ID, &format!("version {version}"))
}

/// Writes version after version until the power goes off: the last that was acknowledged.
fn put_until_cut(machine: &Machine, opened: &OpenStore, mut version: u64) -> u64 {
    loop {
        let key = of_version(version + 1);
        let put = opened.api_keys.put(&key, Some(version));
        match machine.executor.run_until(put, STEPS_MAX) {
            Ok(written) => version = written.unwrap(),
            Err(Stop::Cut) => return version,
            Err(stop) => panic!("{stop:?}"),
        }
    }
}

#[test]
fn a_power_cut_leaves_every_key_in_its_acknowledged_or_pending_state() {
    let machine = Machine::new();
    let mut rng = Rng::new(1);
    let mut opened = machine.open();
    let mut version = machine.run(opened.api_keys.put(&of_version(1), None));
    let mut unheard = 0;
    for point in [Point::Step, Point::DiskWrite, Point::DiskSync] {
        for hit in 1..=HITS {
            machine.power.switch_on(Some((point, hit)));
            let acknowledged = put_until_cut(&machine, &opened, version);
            assert_eq!(machine.power.cut(), Some(point));
            drop(opened);
            machine.crash(&mut rng);
            opened = machine.open();
            let stored = machine.run(opened.api_keys.all());
            version = stored.first().map_or(0, |stored| stored.version);
            assert_eq!(stored, [StoredKey { key: of_version(version), version, used: None }]);
            let place = format!("hit {hit} of {point:?}: {version} after {acknowledged}");
            assert!(version == acknowledged || version == acknowledged + 1, "{place}");
            unheard += version - acknowledged;
        }
    }
    assert!(unheard > 0, "no cut came between a commit and its answer");
    drop(opened);
    machine.executor.drop_tasks();
}

#[test]
fn the_uses_of_many_keys_are_one_commit() {
    let scene = Scene::new();
    let keys = &scene.opened.api_keys;
    let ids = [ID, "bbbbbbbbbb", "cccccccccc"];
    for id in ids {
        block_on(keys.put(&new_key(id, "new"), None)).unwrap();
    }
    let commits = || scene.store().figures().unwrap().commits.counts.iter().sum::<u64>();
    let before = commits();
    let uses = ids.map(|id| (new_key(id, "any").id, Millis(50)));
    block_on(keys.note_uses(&uses)).unwrap();
    assert_eq!(commits(), before + 1);
    let stored = block_on(keys.all()).unwrap();
    let used: Vec<Option<Millis>> = stored.iter().map(|stored| stored.used).collect();
    assert_eq!(used, [Some(Millis(50)); 3]);
}

/// What is left of a store with one key once this SQL was run on it, opened again.
fn changed_by(sql: &str) -> Scene {
    let scene = Scene::new();
    block_on(scene.opened.api_keys.put(&of_version(1), None)).unwrap();
    let folder = scene.closed();
    let database = rusqlite::Connection::open(folder.path().join("data/waypost.db")).unwrap();
    database.execute_batch(sql).unwrap();
    drop(database);
    let opened = open(&folder, Arc::new(Threads::default()), Limits::default()).unwrap();
    Scene { opened, folder }
}

#[test]
fn an_unreadable_key_fails_the_list() {
    let scene = changed_by("UPDATE api_keys SET body = '{}';");
    let error = block_on(scene.opened.api_keys.all()).unwrap_err();
    assert!(matches!(&error, StoreError::Unreadable(why) if why.contains(ID)), "{error}");
}
