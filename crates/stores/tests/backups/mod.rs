//! Backups: taken while others write, given up, refused, and what comes of one.

use super::{BlobsOf, Scene, open};
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use kernel::contracts::Spawn;
use kernel::contracts::backup::{BackupError, MANIFEST_FILE, Manifest};
use kernel::identity::principal::DataDomain;
use kernel::limits::Limits;
use kernel::values::ids::{CallId, ContentHash, Fence, Millis};
use query::records::names::fresh_id;
use query::records::requests::{Access, Author, Count, RecordLimits, Save, SaveMode, Write};
use query::records::scope::CallerScope;
use query::records::type_change::{RecordStore, TypeChange};
use query::types::{Field, Kind, RealmTypes, RecordType, TypeSet};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use stores::OpenError;
use tempfile::TempDir;
use testkit::contract::api_keys::new_key;
use testkit::contract::arms::{StoppedClock, Threads, start};
use testkit::contract::driver::{Driver, done, holding, realm};

const BESIDE: &[&str] = &["secret.key", "vault", "nothing"];
/// How many backups are taken while somebody writes.
const BACKUPS: usize = 5;
/// When records are saved.
const NOW: Millis = Millis(1_700_000_000_000);

/// Threads, but backups are kept back until the test lets them go.
#[derive(Default)]
struct Held(Mutex<Option<BoxFuture<'static, ()>>>);

impl Held {
    fn let_go(&self) {
        block_on(self.0.lock().unwrap().take().unwrap());
    }
}

impl Spawn for Held {
    fn task(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        self.thread(name, future);
    }

    fn thread(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        match name {
            "store-backup" => *self.0.lock().unwrap() = Some(future),
            _ => start(future),
        }
    }
}

fn take(scene: &Scene, into: &Path) -> Result<Manifest, BackupError> {
    block_on(scene.opened.backup.backup(into.to_owned(), BESIDE))
}

/// A store over what is restored of this backup.
fn restored(backup: &Path) -> Scene {
    let folder = tempfile::tempdir().unwrap();
    stores::restore(backup, &folder.path().join("data"), BESIDE).unwrap();
    let opened = open(&folder, Arc::new(Threads::default()), Limits::default()).unwrap();
    Scene { opened, folder }
}

/// A session that names a blob, and what lies beside the store.
fn furnished() -> (Scene, Driver) {
    let scene = Scene::new();
    let large = BlobsOf(&scene).put("r", "large");
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    done(scene.store().append(a.append(vec![holding(&large)])));
    let data = scene.folder.path().join("data");
    fs::write(data.join("secret.key"), "0f0f").unwrap();
    fs::create_dir(data.join("vault")).unwrap();
    fs::write(data.join("vault/login"), "sealed").unwrap();
    fs::write(data.join("vault/login.new"), "half").unwrap();
    fs::create_dir(data.join("calendar")).unwrap();
    (scene, a)
}

/// All files below a folder, by their paths.
pub(super) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found.sort_unstable();
    found
}

#[test]
fn a_backup_contains_everything_acknowledged_before_it() {
    let scene = Scene::new();
    let backups = tempfile::tempdir().unwrap();
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    let acknowledged = AtomicU64::new(1);
    let over = AtomicBool::new(false);
    let mut taken = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                done(scene.store().append(a.next()));
                acknowledged.fetch_add(1, Ordering::SeqCst);
            }
        });
        for number in 0..BACKUPS {
            let before = acknowledged.load(Ordering::SeqCst);
            let into = backups.path().join(number.to_string());
            let made = take(&scene, &into);
            taken.push((before, into, made));
        }
        over.store(true, Ordering::SeqCst);
    });
    let key = Driver::new("r", "a").row.key;
    for (before, into, made) in taken {
        assert_eq!(made.map(|manifest| manifest.files), Ok(1));
        let copy = restored(&into);
        let events = block_on(copy.store().events(&key, 0, 1_000_000)).unwrap();
        let numbers: Vec<u64> = events.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
        assert!(numbers.len() as u64 >= before, "{before} were acknowledged: {}", numbers.len());
        // Each append was an event, and moved the fence by one.
        assert_eq!(copy.load(&key).unwrap().fence, Fence(numbers.len() as u64));
        done(copy.store().append(Driver::new("r", "b").created()));
    }
}

/// The records of a scene, of one type.
struct Shelf {
    records: Arc<dyn RecordStore>,
    types: Arc<TypeSet>,
}

impl Shelf {
    fn of(scene: &Scene) -> Self {
        let records = scene.opened.records.open(RecordLimits::default()).unwrap();
        let fields = vec![Field::new("number", Kind::Integer)];
        let types = TypeSet::new(vec![RecordType::new("", "items", "Item", fields)]);
        let change =
            TypeChange { types: Arc::new(RealmTypes::common(types.clone())), ..Default::default() };
        block_on(records.change_types(change)).unwrap();
        Self { records, types: Arc::new(types) }
    }

    fn access(&self) -> Access {
        Access {
            realm: realm(),
            types: self.types.clone(),
            scope: Arc::new(CallerScope::unlimited(&self.types)),
        }
    }

    /// Saves the record of this number under its own call.
    fn save(&self, number: u64) {
        let author =
            Author { subject: Arc::from("ann"), domain: DataDomain::default(), administers: false };
        let call = Some(CallId::of(&[&number.to_be_bytes()]));
        let write = Write { author, at: NOW, call, asked: None };
        let save = Save {
            record_type: "Item".to_owned(),
            mode: SaveMode::Put,
            entity: json!({"number": number}),
            expected: None,
            fresh_id: fresh_id(NOW, number),
        };
        block_on(self.records.save(self.access(), save, write)).unwrap();
    }

    fn count(&self) -> u64 {
        let count = Count { record_type: "Item".to_owned(), filter: None, grouping: None };
        block_on(self.records.count(self.access(), count)).unwrap().count
    }
}

#[test]
fn a_backup_contains_the_records_that_its_runs_wrote() {
    let scene = Scene::new();
    let shelf = Shelf::of(&scene);
    let backups = tempfile::tempdir().unwrap();
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    let over = AtomicBool::new(false);
    let mut taken = Vec::new();
    std::thread::scope(|scope| {
        // As a run does: the record is there before its journal says so.
        scope.spawn(|| {
            for number in 2.. {
                shelf.save(number);
                done(scene.store().append(a.next()));
                if over.load(Ordering::SeqCst) {
                    break;
                }
            }
        });
        for number in 0..BACKUPS {
            let into = backups.path().join(number.to_string());
            taken.push((into.clone(), take(&scene, &into)));
        }
        over.store(true, Ordering::SeqCst);
    });
    let key = Driver::new("r", "a").row.key;
    for (into, made) in taken {
        assert_eq!(made.map(|manifest| manifest.files), Ok(2));
        let copy = restored(&into);
        let shelf = Shelf::of(&copy);
        let events = block_on(copy.store().events(&key, 0, 1_000_000)).unwrap().len() as u64;
        let before = shelf.count();
        assert!(before >= events - 1, "{events} events and {before} records");
        // What a recovered run repeats is not written twice.
        (2..=events).for_each(|number| shelf.save(number));
        assert_eq!(shelf.count(), before);
    }
}

#[test]
fn a_backup_contains_the_database_blobs_and_other_files() {
    let (scene, a) = furnished();
    block_on(scene.store().advance(&realm(), "sink/hook", 2)).unwrap();
    let key = new_key("aaaaaaaaaa", "kept");
    block_on(scene.opened.api_keys.put(&key, None)).unwrap();
    let keys = block_on(scene.opened.api_keys.all());
    let backups = tempfile::tempdir().unwrap();
    let into = backups.path().join("b");
    let made = take(&scene, &into).unwrap();
    block_on(scene.store().advance(&realm(), "sink/hook", 3)).unwrap();
    block_on(scene.opened.api_keys.put(&key, Some(1))).unwrap();
    let files = files_below(&into);
    let bytes = |path: &PathBuf| fs::metadata(path).unwrap().len();
    let expected = Manifest {
        format: 1,
        waypost: env!("CARGO_PKG_VERSION").to_owned(),
        taken_at: "1970-01-01T00:00:01.000Z".to_owned(),
        files: 4,
        bytes: files.iter().filter(|path| !path.ends_with(MANIFEST_FILE)).map(bytes).sum(),
        beside: vec!["secret.key".to_owned(), "vault".to_owned()],
        left_out: vec!["calendar".to_owned()],
    };
    assert_eq!(made, expected);
    assert_eq!(files.len(), 5, "{files:?}");
    let written = fs::read(into.join(MANIFEST_FILE)).unwrap();
    assert_eq!(serde_json::from_slice::<Manifest>(&written).unwrap(), expected);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folders = [into.clone(), into.join("vault"), into.join("blobs")];
        assert_eq!(folders.map(|folder| mode(&folder)), [0o700; 3]);
        assert!(files.iter().all(|file| mode(file) == 0o600), "{files:?}");
    }
    let copy = restored(&into);
    assert_eq!(copy.tail(a.key()), scene.tail(a.key()));
    assert!(BlobsOf(&copy).has("r", &ContentHash::of(b"large")));
    assert_eq!(block_on(copy.store().consumer(&realm(), "sink/hook")), Ok(2), "as it was then");
    assert_eq!(block_on(copy.opened.api_keys.all()), keys, "as they were then");
    let data = copy.folder.path().join("data");
    assert_eq!(fs::read_to_string(data.join("vault/login")).unwrap(), "sealed");
    assert_eq!(fs::read_to_string(data.join("secret.key")).unwrap(), "0f0f");
}

#[test]
fn nothing_is_swept_while_a_backup_is_made_and_there_is_one_at_a_time() {
    let held = Arc::new(Held::default());
    let scene = Scene::with(held.clone(), Limits::default());
    let blobs = BlobsOf(&scene);
    let backups = tempfile::tempdir().unwrap();
    let unnamed = blobs.put("r", "unnamed");
    let mut first = scene.opened.backup.backup(backups.path().join("a"), BESIDE);
    assert!((&mut first).now_or_never().is_none());
    assert_eq!(take(&scene, &backups.path().join("b")), Err(BackupError::UnderWay));
    assert_eq!((blobs.sweep(1_001, 9), blobs.has("r", &unnamed)), ((0, 0), true));
    held.let_go();
    assert!(block_on(first).is_ok());
    assert_eq!((blobs.sweep(1_001, 9), blobs.has("r", &unnamed)), ((1, 1), false));
}

#[test]
fn an_abandoned_backup_leaves_no_files() {
    let held = Arc::new(Held::default());
    let scene = Scene::with(held.clone(), Limits::default());
    BlobsOf(&scene).put("r", "large");
    let backups = tempfile::tempdir().unwrap();
    let mut first = scene.opened.backup.backup(backups.path().join("a"), BESIDE);
    assert!((&mut first).now_or_never().is_none());
    drop(first);
    held.let_go();
    assert_eq!(files_below(backups.path()), Vec::<PathBuf>::new());
    assert!(!backups.path().join("a").exists());
    let mut second = scene.opened.backup.backup(backups.path().join("a"), BESIDE);
    assert!((&mut second).now_or_never().is_none());
    held.let_go();
    assert!(block_on(second).is_ok());
}

/// Why a folder is refused.
fn folder_refused<T: std::fmt::Debug>(made: Result<T, BackupError>) -> String {
    match made {
        Err(BackupError::Folder(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_folder_that_cannot_take_a_backup_is_refused() {
    let (scene, _) = furnished();
    let backups = tempfile::tempdir().unwrap();
    let place = fs::canonicalize(backups.path()).unwrap();
    fs::create_dir(place.join("full")).unwrap();
    fs::write(place.join("full/x"), "mine").unwrap();
    fs::create_dir(place.join("b.unfinished")).unwrap();
    let data = fs::canonicalize(scene.folder.path().join("data")).unwrap();
    for (into, why) in [
        (PathBuf::from("relative"), "is not an absolute path"),
        (place.join("full"), "is not empty"),
        (place.join("full/x"), "cannot be used"),
        (place.join("nowhere/b"), "cannot be used"),
        (place.join("b"), "an earlier attempt ended midway"),
        (data.join("b"), "lies inside"),
        (data.join("blobs/../b"), "lies inside"),
    ] {
        let told = folder_refused(take(&scene, &into));
        assert!(told.contains(why), "{told}");
    }
    assert_eq!(fs::read_to_string(place.join("full/x")).unwrap(), "mine");
    // One that is there and empty is filled, also if it cannot be replaced.
    fs::create_dir(place.join("empty")).unwrap();
    fs::create_dir(place.join("empty/lost+found")).unwrap();
    take(&scene, &place.join("empty")).unwrap();
    assert!(!place.join("empty/unfinished").exists());
    restored(&place.join("empty"));
}

#[test]
fn only_a_whole_backup_is_restored_and_only_into_an_empty_folder() {
    let (scene, _) = furnished();
    let backups = tempfile::tempdir().unwrap();
    let into = backups.path().join("b");
    take(&scene, &into).unwrap();
    let target = tempfile::tempdir().unwrap();
    let data = target.path().join("data");
    let damaged = |why: &str, damage: &dyn Fn(&Path)| {
        let broken: TempDir = tempfile::tempdir().unwrap();
        copy_all(&into, broken.path());
        damage(broken.path());
        match stores::restore(broken.path(), &data, BESIDE) {
            Err(BackupError::Unsound(told)) => assert!(told.contains(why), "{told}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(files_below(target.path()), Vec::<PathBuf>::new());
    };
    damaged("it has no `backup.json`", &|broken| {
        fs::remove_file(broken.join(MANIFEST_FILE)).unwrap();
    });
    damaged("cannot be read", &|broken| fs::write(broken.join(MANIFEST_FILE), "{").unwrap());
    damaged("has 3 files", &|broken| fs::remove_file(broken.join("vault/login")).unwrap());
    damaged("is damaged", &|broken| {
        let blob = files_below(&broken.join("blobs")).remove(0);
        fs::write(blob, "LARGE").unwrap();
    });
    damaged("is damaged", &|broken| {
        let database = broken.join("waypost.db");
        let mut bytes = fs::read(&database).unwrap();
        bytes[4096..].fill(0);
        fs::write(&database, bytes).unwrap();
    });
    damaged("is a backup of format 2", &|broken| {
        let text = fs::read_to_string(broken.join(MANIFEST_FILE)).unwrap();
        let text = text.replace("\"format\": 1", "\"format\": 2");
        fs::write(broken.join(MANIFEST_FILE), text).unwrap();
    });
    fs::create_dir(&data).unwrap();
    fs::write(data.join("waypost.db"), "somebody's").unwrap();
    let told = folder_refused(stores::restore(&into, &data, BESIDE));
    assert!(told.contains("is not empty"), "{told}");
    assert_eq!(fs::read_to_string(data.join("waypost.db")).unwrap(), "somebody's");
    fs::remove_file(data.join("waypost.db")).unwrap();
    stores::restore(&into, &data, BESIDE).unwrap();
}

pub(super) fn copy_all(from: &Path, to: &Path) {
    for file in files_below(from) {
        let place = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(&file, &place).unwrap();
    }
}

#[test]
fn only_an_unlocked_folder_is_backed_up() {
    let (scene, a) = furnished();
    let tail = scene.tail(a.key());
    let backups = tempfile::tempdir().unwrap();
    let at_rest = |folder: &Path| {
        stores::backup_at_rest(folder, Arc::new(Threads::default()), Arc::new(StoppedClock))
    };
    let data = scene.folder.path().join("data");
    assert!(matches!(at_rest(&data).err(), Some(OpenError::Held { .. })));
    let folder = scene.closed();
    let backup = at_rest(&data).unwrap();
    assert!(matches!(at_rest(&data).err(), Some(OpenError::Held { .. })), "by the backup");
    let into = backups.path().join("b");
    block_on(backup.backup(into.clone(), BESIDE)).unwrap();
    assert_eq!(restored(&into).tail(a.key()), tail);
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert!(matches!(at_rest(&empty).err(), Some(OpenError::Folder { .. })));
    assert!(files_below(&empty).is_empty(), "nothing is made by looking");
}
