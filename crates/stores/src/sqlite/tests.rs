//! A second database of a data folder: durable, copied, restored and missed as the main one is.

use super::database::Migration;
use super::*;
use crate::backup::FolderBackup;
use crate::restore;
use futures::FutureExt;
use futures::executor::block_on;
use kernel::contracts::backup::{Backup, BackupError};
use kernel::contracts::{Lists, Read, Spawn, Store, StoreError, StoredBytes};
use kernel::limits::Limits;
use std::fs;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use testkit::contract::arms::{StoppedClock, Threads};
use testkit::sim::machine::executor::{Executor, SimSpawn};
use testkit::sim::machine::power::{Point, Power};
use testkit::sim::machine::vfs::Disk;
use testkit::sim::rng::Rng;

/// More steps than a read or a write takes.
const STEPS_MAX: u64 = 10_000;

/// The second database.
pub(crate) static NOTES: Database = Database {
    file: "notes.db",
    position: "notes.position",
    migrations: &[Migration {
        version: 1,
        name: "init",
        sql: "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
              CREATE TABLE notes (number INTEGER PRIMARY KEY, body BLOB NOT NULL);",
    }],
    prepare: |_connection, _now| Ok(()),
    stored_bytes: "SELECT 'r', 'ann', sum(length(body)) FROM notes HAVING count(*) > 0",
    is_timed: false,
};

/// What a store is opened with.
fn parts(spawn: Arc<dyn Spawn>, vfs: Option<String>) -> Parts {
    Parts {
        spawn,
        clock: Arc::new(StoppedClock),
        limits: Arc::new(Limits::default()),
        // A failed sync ends a process, and these end with the power anyway.
        fatal: Arc::new(|_: String| {}),
        vfs,
    }
}

fn threads() -> Parts {
    parts(Arc::new(Threads::default()), None)
}

/// Both databases of a data folder.
struct Opened {
    store: SqliteStore,
    notes: OpenDatabase,
}

impl Opened {
    fn new(data: &Path, parts: &Parts) -> Self {
        let (store, losses) = open(&StoreLocation::Folder(data.to_owned()), parts).unwrap();
        assert_eq!(losses, []);
        let notes = notes_of(&store, parts);
        Self { store, notes }
    }

    /// Writes a row of the main database.
    fn row(&self, number: i64) -> Read<'static, ()> {
        self.store.writes.perform(move |connection| {
            let sql = "INSERT INTO closures (realm, hash, body) VALUES ('r', ?1, '{}')";
            connection.execute(sql, [number])?;
            Ok(())
        })
    }

    /// Writes a row of the second one.
    fn note(&self, number: i64, bytes: i64) -> Read<'static, ()> {
        self.notes.writes.perform(move |connection| {
            let sql = "INSERT INTO notes (number, body) VALUES (?1, zeroblob(?2))";
            connection.execute(sql, [number, bytes])?;
            Ok(())
        })
    }

    fn rows(&self) -> Read<'static, i64> {
        counted(&self.store.readers, "SELECT count(*) FROM closures")
    }

    fn notes(&self) -> Read<'static, i64> {
        counted(&self.notes.readers, "SELECT count(*) FROM notes")
    }

    fn pages_max(&self, pages: i64) {
        let set = self.notes.writes.perform(move |connection| {
            connection.pragma_update(None, "max_page_count", pages)?;
            Ok(())
        });
        block_on(set).unwrap();
    }
}

fn notes_of(store: &SqliteStore, parts: &Parts) -> OpenDatabase {
    let prepared = store.databases.prepare(&NOTES, parts).unwrap();
    let opening = Opening::new(prepared.node, parts.fatal.clone());
    store.databases.start(prepared, opening, parts).unwrap()
}

fn counted(readers: &Readers, sql: &'static str) -> Read<'static, i64> {
    readers.read(move |connection| Ok(connection.query_row(sql, (), |row| row.get(0))?))
}

/// What a process leaves that is killed now; the folder goes on.
fn killed(folder: &TempDir, name: &str) -> PathBuf {
    let left = folder.path().join(name);
    fs::create_dir(&left).unwrap();
    for entry in fs::read_dir(folder.path().join("data")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), left.join(entry.file_name())).unwrap();
    }
    left
}

fn remove(data: &Path, names: &[&str]) {
    names.iter().for_each(|name| fs::remove_file(data.join(name)).unwrap());
}

/// Which databases a start would find to have lost something, by looking and by trying.
fn lost(data: &Path) -> Vec<&'static str> {
    let at_rest = losses_of(data);
    let tried = match open(&StoreLocation::Folder(data.to_owned()), &threads()) {
        Ok((store, losses)) => {
            block_on(store.close()).unwrap();
            losses
        }
        Err(OpenError::WentBack { losses, .. }) => losses,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(at_rest, tried);
    tried.into_iter().map(|loss| loss.database).collect()
}

#[test]
fn what_was_acknowledged_in_either_database_survives_a_power_cut() {
    for seed in 0..32 {
        let mut rng = Rng::new(seed);
        let power = Arc::new(Power::default());
        let executor = Executor::new(seed, power.clone());
        let disk = Disk::new(power.clone(), false);
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let spawn = Arc::new(SimSpawn(executor.clone()));
        let parts = parts(spawn, Some(disk.name().to_owned()));
        let opened = Opened::new(&data, &parts);
        let point = [Point::DiskWrite, Point::DiskSync, Point::Step][seed as usize % 3];
        power.switch_on(Some((point, 1 + rng.below(40))));
        let mut acknowledged = [0, 0];
        for number in 1.. {
            let Ok(noted) = executor.run_until(opened.note(number, 9), STEPS_MAX) else { break };
            noted.unwrap();
            acknowledged[1] = number;
            let Ok(written) = executor.run_until(opened.row(number), STEPS_MAX) else { break };
            written.unwrap();
            acknowledged[0] = number;
        }
        assert!(!power.is_on());
        drop(opened);
        executor.drop_tasks();
        disk.crash(&mut rng).unwrap();
        power.switch_on(None);
        let opened = Opened::new(&data, &parts);
        let rows = executor.run_until(opened.rows(), STEPS_MAX).unwrap().unwrap();
        let notes = executor.run_until(opened.notes(), STEPS_MAX).unwrap().unwrap();
        for (found, acknowledged) in [rows, notes].into_iter().zip(acknowledged) {
            // The one that was under way may be there.
            let expected = acknowledged..=acknowledged + 1;
            assert!(expected.contains(&found), "seed {seed}: {found} of {acknowledged}");
        }
        drop(opened);
        executor.drop_tasks();
    }
}

#[test]
fn writes_that_are_queued_together_share_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    let threads = Threads::keeping();
    let opened = Opened::new(&folder.path().join("data"), &parts(threads.clone(), None));
    let mut queued: Vec<_> = (1..=64).map(|number| opened.note(number, 9)).collect();
    assert!(queued.iter_mut().all(|note| note.now_or_never().is_none()));
    threads.let_go();
    assert!(queued.into_iter().all(|note| block_on(note) == Ok(())));
    let commits: u64 = opened.notes.writes.figures().commits.counts.iter().sum();
    assert_eq!((commits, block_on(opened.notes())), (1, Ok(64)));
}

#[test]
fn a_backup_under_load_has_the_second_database_at_or_after_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let parts = threads();
    let opened = Opened::new(&data, &parts);
    let backup = FolderBackup::of_open(&data, &parts, Arc::default());
    let acknowledged = AtomicI64::new(0);
    let over = AtomicBool::new(false);
    let mut taken = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !over.load(Ordering::SeqCst) {
                number += 1;
                // As a run does: what it wrote is durable before its journal says so.
                block_on(opened.note(number, 9)).unwrap();
                block_on(opened.row(number)).unwrap();
                acknowledged.store(number, Ordering::SeqCst);
            }
        });
        for name in ["a", "b", "c", "d"] {
            let before = acknowledged.load(Ordering::SeqCst);
            let made = block_on(backup.backup(folder.path().join(name), &[]));
            taken.push((before, name, made));
        }
        over.store(true, Ordering::SeqCst);
    });
    for (before, name, made) in taken {
        assert_eq!(made.map(|manifest| (manifest.files, manifest.left_out)), Ok((2, Vec::new())));
        let restored = folder.path().join(format!("{name}-restored"));
        restore(&folder.path().join(name), &restored, &[]).unwrap();
        let copy = Opened::new(&restored, &threads());
        let rows = block_on(copy.rows()).unwrap();
        let notes = block_on(copy.notes()).unwrap();
        assert!(before <= rows && rows <= notes, "{before}, {rows}, {notes}");
        let last = counted(&copy.notes.readers, "SELECT coalesce(max(number), 0) FROM notes");
        assert_eq!(block_on(last), Ok(notes), "one is missing");
        block_on(copy.store.close()).unwrap();
    }
    block_on(opened.store.close()).unwrap();
}

#[test]
fn a_backup_is_restored_with_both_databases_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let parts = threads();
    let opened = Opened::new(&data, &parts);
    block_on(opened.note(1, 9)).unwrap();
    let backup = FolderBackup::of_open(&data, &parts, Arc::default());
    let copy = folder.path().join("copy");
    block_on(backup.backup(copy.clone(), &[])).unwrap();
    let database = copy.join("notes.db");
    let bytes = fs::read(&database).unwrap();
    let mut damaged = bytes.clone();
    damaged[4096..].fill(0);
    let restored = folder.path().join("restored");
    for (written, why) in [(Some(damaged), "`notes.db`"), (None, "has 1 files")] {
        match written {
            Some(bytes) => fs::write(&database, bytes).unwrap(),
            None => fs::remove_file(&database).unwrap(),
        }
        match restore(&copy, &restored, &[]) {
            Err(BackupError::Unsound(told)) => assert!(told.contains(why), "{told}"),
            other => panic!("{other:?}"),
        }
        assert!(!restored.exists());
    }
    fs::write(&database, bytes).unwrap();
    restore(&copy, &restored, &[]).unwrap();
    let copy = Opened::new(&restored, &threads());
    assert_eq!(block_on(copy.notes()), Ok(1));
}

#[test]
fn a_folder_whose_second_database_nobody_opened_has_no_file_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let parts = threads();
    let (store, _) = open(&StoreLocation::Folder(data.clone()), &parts).unwrap();
    let backup = FolderBackup::of_open(&data, &parts, Arc::default());
    let copy = folder.path().join("copy");
    let made = block_on(backup.backup(copy.clone(), &[])).unwrap();
    assert_eq!((made.files, copy.join("notes.db").exists()), (1, false));
    restore(&copy, &folder.path().join("restored"), &[]).unwrap();
    block_on(store.close()).unwrap();
    assert_eq!(lost(&data), [""; 0]);
    for folder in [&data, &folder.path().join("restored")] {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let names: Vec<_> = names.filter(|name| NOTES.owns(&name.to_string_lossy())).collect();
        assert!(names.is_empty(), "{names:?}");
    }
}

#[test]
fn a_second_database_that_went_back_is_noticed_until_that_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let opened = Opened::new(&folder.path().join("data"), &threads());
    block_on(opened.note(1, 9)).unwrap();
    block_on(opened.store.databases.note_positions(Duration::ZERO));
    let whole = killed(&folder, "whole");
    assert_eq!(lost(&whole), [""; 0]);
    let data = killed(&folder, "cut");
    remove(&data, &["notes.db-wal"]);
    // Looking at it does not make it less of a loss, and a new main database is not asked for.
    assert_eq!([lost(&data), lost(&data)], [["notes.db"], ["notes.db"]]);
    let renewed = open(&StoreLocation::RenewedFolder(data.clone()), &threads());
    assert!(matches!(renewed.err(), Some(OpenError::WentBack { .. })));
    let told = open(&StoreLocation::Folder(data.clone()), &threads()).err().unwrap().to_string();
    assert!(told.contains("`notes.db` had come to opening 1"), "{told}");

    let accepted = open(&StoreLocation::FolderAfterLoss(data.clone()), &threads()).unwrap();
    assert_eq!(accepted.1.len(), 1);
    block_on(accepted.0.close()).unwrap();
    // Nobody opened it in between.
    assert_eq!(lost(&data), [""; 0]);
    let reopened = Opened::new(&data, &threads());
    assert_eq!(block_on(reopened.notes()), Ok(0));
    block_on(reopened.store.close()).unwrap();
    assert_eq!(lost(&data), [""; 0]);
}

#[test]
fn a_missing_second_database_is_a_loss_only_if_its_position_says_that_it_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let opened = Opened::new(&folder.path().join("data"), &threads());
    block_on(opened.note(1, 9)).unwrap();
    let files = ["notes.db", "notes.db-wal", "notes.db-shm"];
    let unsaid = killed(&folder, "unsaid");
    remove(&unsaid, &files);
    remove(&unsaid, &["notes.position"]);
    assert_eq!(lost(&unsaid), [""; 0]);
    let data = killed(&folder, "missing");
    remove(&data, &["notes.db"]);
    assert_eq!(lost(&data), ["notes.db"]);
    assert!(!data.join("notes.db").exists(), "nothing is made by looking");
    let accepted = open(&StoreLocation::FolderAfterLoss(data.clone()), &threads()).unwrap();
    block_on(accepted.0.close()).unwrap();
    // No one takes it for the log of a new one.
    assert!(data.join("notes.db-wal.orphan-1").exists());
    assert_eq!(block_on(Opened::new(&data, &threads()).notes()), Ok(0));
    // Alone it says that there was a main one.
    let alone = killed(&folder, "alone");
    remove(&alone, &["waypost.db", "waypost.db-wal", "waypost.db-shm"]);
    let refused = open(&StoreLocation::Folder(alone), &threads()).err();
    assert!(matches!(refused, Some(OpenError::Lost { left, .. }) if left == "`notes.db`"));
}

#[test]
fn a_second_database_without_room_makes_the_store_unready_until_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let opened = Opened::new(&folder.path().join("data"), &threads());
    block_on(opened.note(1, 9)).unwrap();
    opened.pages_max(1);
    assert_eq!(block_on(opened.note(2, 1_000_000)), Err(StoreError::Full));
    assert_eq!(opened.store.healthy(), Err(StoreError::Full));
    block_on(opened.row(1)).unwrap();
    // The look above left a probe in the queue, with which this may fail.
    let _ = block_on(opened.notes.writes.perform(|_| Ok(())));
    opened.pages_max(1_000_000);
    assert_eq!(opened.store.healthy(), Err(StoreError::Full));
    // The second of these comes after the commit of the probe, whatever shared that.
    opened.pages_max(1_000_000);
    opened.pages_max(1_000_000);
    assert_eq!(opened.store.healthy(), Ok(()));
    block_on(opened.note(2, 9)).unwrap();
    assert_eq!(block_on(opened.notes()), Ok(2));
}

#[test]
fn what_is_stored_in_the_second_database_counts_too() {
    let folder = tempfile::tempdir().unwrap();
    let opened = Opened::new(&folder.path().join("data"), &threads());
    assert_eq!(block_on(opened.store.stored_bytes()), Ok(Vec::new()));
    block_on(opened.note(1, 30)).unwrap();
    block_on(opened.note(2, 12)).unwrap();
    let expected = StoredBytes { realm: "r".into(), owner: Some("ann".into()), bytes: 42 };
    assert_eq!(block_on(opened.store.stored_bytes()), Ok(vec![expected]));
}

#[test]
fn the_lock_is_held_until_every_database_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let parts = threads();
    let opened = Opened::new(&data, &parts);
    block_on(opened.store.writes.close()).unwrap();
    let held = open(&StoreLocation::Folder(data.clone()), &parts);
    assert!(matches!(held.err(), Some(OpenError::Held { .. })));
    block_on(opened.store.close()).unwrap();
    let (store, _) = open(&StoreLocation::Folder(data.clone()), &parts).unwrap();
    let bytes = |name: &str| fs::metadata(data.join(name)).map_or(0, |file| file.len());
    let found = store.figures().map(|figures| figures.bytes - figures.wal_bytes);
    assert_eq!(found, Some(bytes("waypost.db") + bytes("notes.db")));
    block_on(store.close()).unwrap();
}
