//! A store that went back: its log was lost, or an older copy took its place.

use super::Scene;
use super::backups::copy_all;
use futures::executor::block_on;
use kernel::contracts::identity::realms::RealmRecord;
use kernel::contracts::{LoadResult, StoreLoss};
use kernel::limits::Limits;
use kernel::values::ids::{Millis, RealmId};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stores::{OpenError, OpenStore, StoreLocation};
use testkit::contract::arms::{Threads, parts};
use testkit::contract::driver::{Driver, done};

fn opened(place: &StoreLocation) -> Result<OpenStore, OpenError> {
    stores::open(place, parts(Arc::new(Threads::default()), Limits::default()))
}

fn loss(data: &Path) -> Option<StoreLoss> {
    match opened(&StoreLocation::Folder(data.to_owned())) {
        Ok(opened) => {
            block_on(opened.store.close()).unwrap();
            None
        }
        Err(OpenError::WentBack { losses, .. }) => only(losses),
        Err(error) => panic!("{error}"),
    }
}

fn only(losses: Vec<StoreLoss>) -> Option<StoreLoss> {
    assert!(losses.len() < 2, "{losses:?}");
    losses.into_iter().next()
}

fn loss_at_rest(data: &Path) -> Option<StoreLoss> {
    only(stores::losses_of(data))
}

/// What a killed process leaves that wrote something and looked for work since; the scene goes on.
fn killed(scene: &Scene, name: &str) -> PathBuf {
    block_on(scene.store().claim(Millis(0), 1)).unwrap();
    let data = scene.folder.path().join(name);
    copy_all(&scene.folder.path().join("data"), &data);
    data
}

#[test]
fn a_lost_or_damaged_log_is_noticed_at_the_start() {
    let scene = Scene::new();
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    let whole = killed(&scene, "whole");
    assert_eq!(loss(&whole), None);
    let data = killed(&scene, "lost");
    std::fs::remove_file(data.join("waypost.db-wal")).unwrap();
    let cut = killed(&scene, "damaged");
    std::fs::write(cut.join("waypost.db-wal"), [0; 64]).unwrap();
    for data in [&data, &cut] {
        // Looking at it does not make it less of a loss.
        for _ in 0..2 {
            let told = loss_at_rest(data);
            assert!(told.is_some() && loss(data) == told, "{told:?}");
            let expected = told.unwrap().expected;
            assert_eq!((expected.opened, expected.feed), (1, 1));
            assert_eq!(told.unwrap().database, "waypost.db");
        }
    }
    let refused = opened(&StoreLocation::Folder(data.clone())).err().unwrap().to_string();
    assert!(refused.contains("`waypost up --after-loss`"), "{refused}");
    let renewed = opened(&StoreLocation::RenewedFolder(data.clone()));
    assert!(matches!(renewed.err(), Some(OpenError::WentBack { .. })), "its database is there");

    let accepted = opened(&StoreLocation::FolderAfterLoss(data.clone())).unwrap();
    assert!(only(accepted.losses).is_some());
    assert!(matches!(block_on(accepted.store.load(a.key(), None)), Ok(LoadResult::Missing)));
    block_on(accepted.store.close()).unwrap();
    assert_eq!((loss(&data), loss_at_rest(&data)), (None, None));
}

#[test]
fn a_lost_change_outside_of_the_feed_is_noticed() {
    let scene = Scene::new();
    let before = scene.reopened();
    let older = before.folder.path().join("older");
    let record = RealmRecord {
        name: RealmId::from("acme"),
        by: "root".into(),
        created: Millis(1),
        removed: None,
    };
    block_on(before.opened.realms.create_realm(&record, Vec::new())).unwrap();
    let folder = before.closed();
    let data = folder.path().join("data");
    assert_eq!(loss(&data), None);
    copy_all(&data, &older);
    // The same number of openings, and not the change.
    let database = rusqlite::Connection::open(older.join("waypost.db")).unwrap();
    database.execute("UPDATE meta SET value = value - 1 WHERE name = 'changes'", ()).unwrap();
    drop(database);
    let lost = loss(&older).unwrap();
    assert_eq!(lost.expected.changes, lost.found.changes + 1);
    assert_eq!(lost.expected.opened, lost.found.opened);
}

#[test]
fn a_missing_or_torn_position_file_is_rewritten() {
    let folder = Scene::new().closed();
    let data = folder.path().join("data");
    let position = data.join("position");
    std::fs::remove_file(&position).unwrap();
    for torn in ["", "opened 99\nfeed 99\nchanges 99\n"] {
        assert_eq!((loss_at_rest(&data), loss(&data)), (None, None));
        assert!(std::fs::read_to_string(&position).unwrap().contains("sum "));
        std::fs::write(&position, torn).unwrap();
    }
    assert_eq!(loss(&data), None);
    // Alone it says that there was a database.
    for name in ["waypost.db", "waypost.db-wal", "waypost.db-shm"] {
        let _ = std::fs::remove_file(data.join(name));
    }
    let _ = std::fs::remove_dir_all(data.join("blobs"));
    let lost = opened(&StoreLocation::Folder(data.clone())).err().unwrap();
    assert!(matches!(&lost, OpenError::Lost { left, .. } if left == "`position`"), "{lost}");
    let renewed = opened(&StoreLocation::RenewedFolder(data.clone())).unwrap();
    block_on(renewed.store.close()).unwrap();
    assert_eq!(loss(&data), None);
}

#[test]
fn a_restored_backup_is_no_loss_and_an_older_database_in_its_place_is_one() {
    let scene = Scene::new();
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    let backup = scene.folder.path().join("backup");
    block_on(scene.opened.backup.backup(backup.clone(), &[])).unwrap();
    done(scene.store().append(a.next()));
    let folder = scene.closed();
    let data = folder.path().join("data");
    let restored = folder.path().join("restored");
    assert!(!backup.join("position").exists());
    stores::restore(&backup, &restored, &[]).unwrap();
    assert_eq!((loss(&restored), loss(&restored)), (None, None));
    assert!(restored.join("position").exists());
    std::fs::copy(backup.join("waypost.db"), data.join("waypost.db")).unwrap();
    assert!(loss(&data).is_some());
}
