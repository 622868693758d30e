//! What the embedded store promises beyond the contract suite of `testkit`: batches and the queue
//! of its writer, its folder and its lock, blobs, definitions and API keys, large sessions,
//! databases of other releases.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "deadlines here are the real clock's")]

mod deliveries;
mod backups;
mod machine;
mod position;
mod removal;
mod api_keys;
mod audit;
mod realms;
mod webhooks;
mod records;

use backups::files_below;
use futures::StreamExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use kernel::ask::AskStatus;
use kernel::contracts::{
    Definition, Holder, Incoming, LoadResult, Precondition, RealmSet, SessionRef, Slice, Spawn,
    Store, StoreError, StoredBy, StoredSession, WHOLE,
};
use kernel::event::{Event, VERSION};
use kernel::journal::projection::RunRow;
use kernel::journal::trim::Trim;
use kernel::limits::Limits;
use kernel::session::RunSpent;
use kernel::values::datum::BlobRef;
use kernel::values::ids::{CallId, ContentHash, Fence, Millis, SessionKey};
use serde_json::json;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use stores::{OpenError, OpenStore, Parts, StoreLocation};
use testkit::contract::arms::{Threads, parts, start};
use testkit::contract::driver::{
    Driver, calling, closure, decided, done, has_closure, holding, realm, speaking_of, spec,
    spec_of, starting, swept, trim_at,
};

struct Scene {
    opened: OpenStore,
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        Self::with(Arc::new(Threads::default()), Limits::default())
    }

    fn with(spawn: Arc<dyn Spawn>, limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let opened = open(&folder, spawn, limits).unwrap();
        Self { opened, folder }
    }

    fn store(&self) -> &dyn Store {
        &*self.opened.store
    }

    /// The same folder, opened by what stands for a new process.
    fn reopened(self) -> Self {
        let folder = self.closed();
        let opened = open(&folder, Arc::new(Threads::default()), Limits::default()).unwrap();
        Self { opened, folder }
    }

    fn closed(self) -> tempfile::TempDir {
        block_on(self.store().close()).unwrap();
        self.folder
    }

    fn load(&self, key: &SessionKey) -> Option<StoredSession> {
        match block_on(self.store().load(key, None)).unwrap() {
            LoadResult::Missing => None,
            LoadResult::Unchanged => panic!("nothing was said to be known"),
            LoadResult::Found(stored) => Some(stored),
        }
    }

    fn tail(&self, key: &SessionKey) -> Vec<String> {
        self.load(key).unwrap().tail
    }
}

fn open(
    folder: &tempfile::TempDir,
    spawn: Arc<dyn Spawn>,
    limits: Limits,
) -> Result<OpenStore, OpenError> {
    stores::open(&StoreLocation::Folder(folder.path().join("data")), parts(spawn, limits))
}

#[test]
fn a_conflict_leaves_the_others_of_its_batch_alone() {
    let threads = Threads::keeping();
    let scene = Scene::with(threads.clone(), Limits::default());
    let mut a = Driver::new("r", "a");
    let mut b = Driver::new("r", "b");
    let mut wrong = a.clone();
    wrong.row.seq = 7;
    wrong.row.fence = Fence(7);
    let tickets = [
        scene.store().append(a.created()),
        scene.store().append(b.created()),
        scene.store().append(wrong.next()),
        scene.store().append(b.next()),
        scene.store().append(Driver::new("r", "b").created()),
    ];
    threads.let_go();
    let answers = tickets.map(block_on);
    let conflict = StoreError::Conflict("r/session/a".into());
    let exists = StoreError::Exists("r/session/b".into());
    assert_eq!(answers, [Ok(()), Ok(()), Err(conflict), Ok(()), Err(exists)]);
    assert_eq!(scene.tail(a.key()).len(), 1);
    assert_eq!(scene.tail(b.key()).len(), 2);
}

#[test]
fn an_append_that_fails_midway_leaves_nothing_and_harms_nobody() {
    let threads = Threads::keeping();
    let scene = Scene::with(threads.clone(), Limits::default());
    let mut a = Driver::new("r", "a");
    let mut b = Driver::new("r", "b");
    let created = a.created();
    let asking = a.asking(&["one"]);
    let mut twice = a.next();
    let ask = a.ask("one");
    twice.asks = vec![decided(&ask, "ann"), decided(&ask, "bob")];
    let tickets = [
        scene.store().append(created),
        scene.store().append(asking),
        scene.store().append(twice),
        scene.store().append(b.created()),
    ];
    threads.let_go();
    let answers = tickets.map(block_on);
    let conflict = StoreError::Conflict("r/session/a".into());
    assert_eq!(answers, [Ok(()), Ok(()), Err(conflict), Ok(())]);
    let found = block_on(scene.store().ask(&realm(), ask.id)).unwrap().unwrap();
    assert_eq!((found.row.status, found.row.decision), (AskStatus::Open, None));
    assert_eq!(scene.tail(a.key()).len(), 2);
    assert_eq!(scene.tail(b.key()).len(), 1);
}

#[test]
fn a_full_queue_refuses_and_poisons_the_session() {
    let threads = Threads::keeping();
    let limits = Limits { append_queue_max: 1, ..Limits::default() };
    let scene = Scene::with(threads.clone(), limits);
    let mut a = Driver::new("r", "a");
    let first = scene.store().append(a.created());
    let second = scene.store().append(a.clone().next());
    assert_eq!(block_on(second), Err(StoreError::Busy));
    threads.let_go();
    done(first);
    let poisoned = Err(StoreError::Poisoned("r/session/a".into()));
    assert_eq!(block_on(scene.store().append(a.clone().next())), poisoned);
    assert!(scene.load(a.key()).is_some());
    done(scene.store().append(a.next()));
}

#[test]
fn a_store_tells_how_large_it_is_and_how_long_its_commits_took() {
    let scene = Scene::new();
    done(scene.store().append(Driver::new("r", "a").created()));
    let figures = scene.store().figures().unwrap();
    assert!(figures.bytes > 0 && figures.commits.counts.iter().sum::<u64>() > 0, "{figures:?}");
}

#[test]
fn a_locked_folder_names_its_holder() {
    let scene = Scene::new();
    let second = open(&scene.folder, Arc::new(Threads::default()), Limits::default());
    let error = second.err().unwrap();
    assert!(matches!(&error, OpenError::Held { holder, .. }
        if holder.pid == Some(std::process::id())));
    assert!(error.to_string().contains(&format!("process {}", std::process::id())));
    // The holder is unharmed, and once it is gone the folder is free.
    done(scene.store().append(Driver::new("r", "a").created()));
    scene.reopened();
}

/// Threads, with the names of those that the process cannot do without.
#[derive(Default)]
struct Critical {
    names: Mutex<Vec<&'static str>>,
}

impl Spawn for Critical {
    fn task(&self, name: &'static str, _future: BoxFuture<'static, ()>) {
        panic!("`{name}` may end unnoticed");
    }

    fn thread(&self, name: &'static str, _future: BoxFuture<'static, ()>) {
        panic!("`{name}` may end unnoticed");
    }

    fn critical_thread(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        self.names.lock().unwrap().push(name);
        start(future);
    }
}

#[test]
fn no_thread_of_a_store_may_end_unnoticed() {
    let threads = Arc::new(Critical::default());
    let scene = Scene::with(threads.clone(), Limits::default());
    let mut names = threads.names.lock().unwrap().clone();
    names.sort_unstable();
    assert_eq!(names, ["store-blobs", "store-reader", "store-reader", "store-writer"]);
    scene.closed();
}

#[cfg(unix)]
#[test]
fn a_holder_whose_lock_is_removed_or_replaced_ends() {
    let (told, why) = std::sync::mpsc::channel();
    let fatal = Arc::new(move |why: String| told.send(why).unwrap());
    let parts = Parts { fatal, ..parts(Arc::new(Threads::default()), Limits::default()) };
    let folder = tempfile::tempdir().unwrap();
    let opened = stores::open(&StoreLocation::Folder(folder.path().to_owned()), parts).unwrap();
    let claim = || block_on(opened.store.claim(Millis(1_000), 9));
    assert_eq!((claim(), why.try_recv().is_ok()), (Ok(Vec::new()), false));
    let lock = folder.path().join("lock");
    std::fs::remove_file(&lock).unwrap();
    // One look is not enough: a removal of the folder removes its files one by one.
    assert_eq!((claim(), why.try_recv().is_ok()), (Ok(Vec::new()), false));
    assert_eq!((claim(), why.try_recv().is_ok()), (Err(StoreError::Closed), true));
    std::fs::write(&lock, "").unwrap();
    assert_eq!((claim(), why.try_recv().is_ok()), (Err(StoreError::Closed), true));
    // Where all of it is gone there is nothing that two processes could write.
    std::fs::remove_file(&lock).unwrap();
    std::fs::remove_file(folder.path().join("waypost.db")).unwrap();
    assert_eq!((claim(), why.try_recv().is_ok()), (Ok(Vec::new()), false));
}

#[test]
fn a_folder_that_lost_its_database_is_refused_unless_it_is_renewed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_owned();
    let threads = || Arc::new(Threads::default());
    let open = |place: StoreLocation| stores::open(&place, parts(threads(), Limits::default()));
    let log = data.join("waypost.db-wal");
    for name in ["waypost.db", "waypost.db-shm", "lock"] {
        std::fs::write(data.join(name), "").unwrap();
    }
    std::fs::write(&log, "the last of it").unwrap();
    std::fs::write(data.join("secret.key"), "x").unwrap();
    std::fs::create_dir(data.join("blobs")).unwrap();
    // An empty database is as good as none, and an empty folder is no blob.
    for _ in 0..2 {
        let error = open(StoreLocation::Folder(data.clone())).err().unwrap();
        let is_lost = matches!(&error, OpenError::Lost { left, .. }
            if left == "`waypost.db-wal`, `secret.key`");
        assert!(is_lost && error.to_string().contains("`waypost up --new`"), "{error}");
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "the last of it");
        let _ = std::fs::remove_file(data.join("waypost.db"));
    }
    std::fs::write(data.join("waypost.db-wal.orphan-1"), "from before").unwrap();
    let opened = open(StoreLocation::RenewedFolder(data.clone())).unwrap();
    let mut a = Driver::new("r", "a");
    done(opened.store.append(a.created()));
    block_on(opened.store.close()).unwrap();
    let aside = std::fs::read_to_string(data.join("waypost.db-wal.orphan-2"));
    assert_eq!(aside.unwrap(), "the last of it");
    // A database that is there is opened as it is, renewed or not.
    for place in [StoreLocation::RenewedFolder(data.clone()), StoreLocation::Folder(data)] {
        let opened = open(place).unwrap();
        let found = block_on(opened.store.load(a.key(), None)).unwrap();
        assert!(matches!(found, LoadResult::Found(_)));
        block_on(opened.store.close()).unwrap();
    }
}

#[test]
fn a_reopened_store_has_everything() {
    let scene = Scene::new();
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    done(scene.store().append(a.asking(&["one"])));
    block_on(scene.store().advance(&realm(), "nats", 2)).unwrap();
    let blob = block_on(scene.opened.blobs.put(&realm(), b"large".to_vec())).unwrap();
    let before = scene.tail(a.key());
    let scene = scene.reopened();
    let stored = scene.load(a.key()).unwrap();
    assert_eq!((stored.tail, stored.fence), (before, a.row.fence));
    assert_eq!(block_on(scene.store().consumer(&realm(), "nats")), Ok(2));
    let bytes = block_on(scene.opened.blobs.get(&realm(), &blob.hash)).unwrap();
    assert_eq!(bytes.as_deref(), Some(&b"large"[..]));
    done(scene.store().append(a.next()));
}

#[test]
fn a_database_with_newer_or_changed_migrations_is_refused() {
    let folder = Scene::new().closed();
    let again = || open(&folder, Arc::new(Threads::default()), Limits::default()).err().unwrap();
    let database = rusqlite::Connection::open(folder.path().join("data/waypost.db")).unwrap();
    database.execute("INSERT INTO migrations VALUES (99, 'future', 'x', 0)", ()).unwrap();
    assert!(matches!(again(), OpenError::Newer { found: 99, known: 1, .. }));
    database.execute("DELETE FROM migrations WHERE version = 99", ()).unwrap();
    database.execute("UPDATE migrations SET checksum = 'x'", ()).unwrap();
    assert!(matches!(again(), OpenError::Changed { version: 1, .. }));
}

#[test]
fn definitions_are_put_against_a_version() {
    let scene = Scene::new();
    let definitions = &scene.opened.definitions;
    let draft = |body: i64| Definition {
        kind: "plan".to_owned(),
        name: "math/add".to_owned(),
        version: 0,
        body: json!(body),
        updated_at: Millis(0),
        // Each version has its own, and some have none.
        by: (body != 2).then(|| format!("author {body}").into()),
    };
    let put = |body: i64, version: Option<u64>| {
        let against = Precondition { version, owner: None };
        block_on(definitions.put(&realm(), draft(body), against))
    };
    let stored =
        |version: u64, body: i64| Definition { version, updated_at: Millis(1_000), ..draft(body) };
    let conflict = Err(StoreError::Conflict("plan/math/add".into()));
    assert_eq!(put(1, Some(1)), conflict);
    assert_eq!(put(1, Some(0)), Ok(stored(1, 1)));
    assert_eq!(put(2, Some(0)), conflict);
    assert_eq!(put(2, Some(1)), Ok(stored(2, 2)));
    let newest = block_on(definitions.get(&realm(), "plan", "math/add"));
    assert_eq!(newest, Ok(Some(stored(2, 2))));
    assert_eq!(put(3, None), Ok(stored(3, 3)));
    let get = |realm: &str| block_on(definitions.get(&realm.into(), "plan", "math/add"));
    assert_eq!(get("r"), Ok(Some(stored(3, 3))));
    assert_eq!(get("other"), Ok(None));
    assert_eq!(block_on(definitions.list(&realm(), "plan")), Ok(vec![stored(3, 3)]));
    assert_eq!(block_on(definitions.list(&realm(), "agent")), Ok(Vec::new()));
    // Versions are not counted, names and kinds are.
    let agent = Definition { kind: "agent".to_owned(), ..draft(1) };
    for (realm, definition) in [("a", draft(1)), ("r", agent)] {
        block_on(definitions.put(&realm.into(), definition, Precondition::default())).unwrap();
    }
    let counts = vec![("a".into(), 1), ("r".into(), 2)];
    assert_eq!(block_on(definitions.counts()), Ok(counts));
    let delete = |realm: &str| {
        let against = Precondition::default();
        block_on(definitions.delete(&realm.into(), "plan", "math/add", against))
    };
    assert_eq!(delete("other"), Ok(false));
    assert_eq!(delete("r"), Ok(true));
    assert_eq!(get("r"), Ok(None));
    assert_eq!(block_on(definitions.counts()), Ok(vec![("a".into(), 1), ("r".into(), 1)]));
}

#[test]
fn a_definition_is_changed_only_while_it_is_of_the_same_owner() {
    let scene = Scene::new();
    let definitions = &scene.opened.definitions;
    let owner = |name: &str| StoredBy((!name.is_empty()).then(|| name.into()));
    let against = |name: &str| Precondition { version: None, owner: Some(owner(name)) };
    let put = |by: &str, judged: &str| {
        let definition = Definition {
            kind: "provider".to_owned(),
            name: "crm".to_owned(),
            version: 0,
            body: json!({}),
            updated_at: Millis(0),
            by: owner(by).0,
        };
        let stored = block_on(definitions.put(&realm(), definition, against(judged)));
        stored.map(|stored| stored.version)
    };
    let delete =
        |judged: &str| block_on(definitions.delete(&realm(), "provider", "crm", against(judged)));
    let conflict = || StoreError::Conflict("provider/crm".into());
    assert_eq!(put("ann", "bob"), Err(conflict()), "it is not there");
    assert_eq!(delete("bob"), Ok(false), "there is nothing to remove");
    assert_eq!(put("ann", ""), Ok(1));
    assert_eq!(put("bob", ""), Err(conflict()), "it came meanwhile");
    assert_eq!(delete(""), Err(conflict()));
    assert_eq!(put("ann", "ann"), Ok(2));
    assert_eq!(delete("ann"), Ok(true));
    // The number of the version is the same as before, the owner is not.
    assert_eq!(put("bob", ""), Ok(1));
    assert_eq!(put("ann", "ann"), Err(conflict()));
    assert_eq!(delete("ann"), Err(conflict()));
    assert_eq!(delete("bob"), Ok(true));
}

#[test]
fn a_blob_is_whole_or_refused() {
    let scene = Scene::new();
    let blobs = &scene.opened.blobs;
    let blob = block_on(blobs.put(&realm(), b"large".to_vec())).unwrap();
    assert_eq!((blob.hash.clone(), blob.bytes), (ContentHash::of(b"large"), 5));
    let get = |realm: &str| block_on(blobs.get(&realm.into(), &blob.hash));
    assert_eq!(get("r"), Ok(Some(b"large".to_vec())));
    assert_eq!(get("other"), Ok(None));
    assert_eq!(block_on(blobs.get(&realm(), &ContentHash::from("../../lock"))), Ok(None));
    let hash = blob.hash.as_str();
    let file = scene.folder.path().join("data/blobs/r").join(&hash[..2]).join(hash);
    std::fs::write(&file, b"torn").unwrap();
    assert!(matches!(get("r"), Err(StoreError::Unreadable(_))));
    // Put again, it is whole again.
    block_on(blobs.put(&realm(), b"large".to_vec())).unwrap();
    assert_eq!(get("r"), Ok(Some(b"large".to_vec())));
    block_on(blobs.delete(&realm(), &blob.hash)).unwrap();
    block_on(blobs.delete(&realm(), &blob.hash)).unwrap();
    assert_eq!(get("r"), Ok(None));
}

/// A blob as it came, piece by piece.
type Pieces = Vec<Result<Vec<u8>, StoreError>>;

#[test]
fn a_damaged_blob_never_streams_completely() {
    let scene = Scene::new();
    let blobs = &scene.opened.blobs;
    let pieces_of = |hash: &ContentHash| -> Option<(u64, Pieces)> {
        let open = block_on(blobs.open(&realm(), hash, WHOLE)).unwrap()?;
        Some((open.bytes, block_on(open.pieces.collect())))
    };
    for size in [1_usize, 64 * 1024, 64 * 1024 + 1, 300_000] {
        let large: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        let blob = block_on(blobs.put(&realm(), large.clone())).unwrap();
        let (bytes, pieces) = pieces_of(&blob.hash).unwrap();
        let pieces: Result<Vec<Vec<u8>>, StoreError> = pieces.into_iter().collect();
        let pieces = pieces.unwrap();
        assert_eq!((bytes, pieces.len()), (size as u64, size.div_ceil(64 * 1024)));
        assert!(pieces.concat() == large, "{size} bytes");
    }
    assert!(pieces_of(&ContentHash::of(b"none")).is_none());
    assert!(pieces_of(&ContentHash::from("../../lock")).is_none());

    let large = vec![7; 300_000];
    let hash = block_on(blobs.put(&realm(), large.clone())).unwrap().hash;
    let name = hash.as_str();
    let file = scene.folder.path().join("data/blobs/r").join(&name[..2]).join(name);
    let mut changed = large.clone();
    changed[0] = 8;
    std::fs::write(&file, &changed).unwrap();
    let (_, pieces) = pieces_of(&hash).unwrap();
    let (last, before) = pieces.split_last().unwrap();
    assert_eq!(before.len(), 4);
    assert!(before.iter().all(Result::is_ok));
    assert!(matches!(last, Err(StoreError::Unreadable(_))), "{last:?}");

    // A small one is refused before anything of it is given.
    let small = block_on(blobs.put(&realm(), b"small".to_vec())).unwrap().hash;
    let name = small.as_str();
    let file = scene.folder.path().join("data/blobs/r").join(&name[..2]).join(name);
    std::fs::write(&file, b"SMALL").unwrap();
    let refused = block_on(blobs.open(&realm(), &small, WHOLE)).map(|_| ());
    assert!(matches!(refused, Err(StoreError::Unreadable(_))), "{refused:?}");
}

/// Puts these pieces, of so many bytes at most, as one blob.
fn put_pieces(
    scene: &Scene,
    pieces: Pieces,
    bytes_max: u64,
    bytes: Option<u64>,
) -> Result<BlobRef, StoreError> {
    let pieces = futures::stream::iter(pieces).boxed();
    let incoming = Incoming { pieces, bytes_max, bytes };
    block_on(scene.opened.blobs.put_pieces(&realm(), incoming))
}

#[test]
fn a_streamed_blob_has_the_same_hash_as_a_whole_one() {
    let scene = Scene::new();
    let pieces: Vec<Vec<u8>> = (0..40).map(|number| vec![number; 1_000]).collect();
    let whole = pieces.concat();
    let all = || pieces.iter().cloned().map(Ok).collect::<Pieces>();
    let blob = put_pieces(&scene, all(), 40_000, Some(40_000)).unwrap();
    assert_eq!((blob.hash.clone(), blob.bytes), (ContentHash::of(&whole), 40_000));
    let get = || block_on(scene.opened.blobs.get(&realm(), &blob.hash));
    assert_eq!(get(), Ok(Some(whole.clone())));
    // Put again, a broken one is whole again.
    let files = files_below(&scene.folder.path().join("data/blobs"));
    assert_eq!(files.len(), 1, "{files:?}");
    std::fs::write(&files[0], b"torn").unwrap();
    assert_eq!(put_pieces(&scene, all(), 40_000, None), Ok(blob.clone()));
    assert_eq!(get(), Ok(Some(whole)));
    assert_eq!(BlobsOf(&scene).sweep(1_001, 9), (1, 1), "nothing names it");
    let nothing = put_pieces(&scene, Vec::new(), 0, None).unwrap();
    assert_eq!(block_on(scene.opened.blobs.get(&realm(), &nothing.hash)), Ok(Some(Vec::new())));
}

#[test]
fn an_aborted_or_oversized_blob_leaves_no_file() {
    let scene = Scene::new();
    let piece = || Ok(vec![7; 1_000]);
    for (pieces, bytes_max, bytes, refusal) in [
        (vec![piece(), piece()], 1_999, None, StoreError::TooLarge(1_999)),
        (vec![piece(), piece()], 9_999, Some(2_001), StoreError::BrokenOff),
        (vec![piece(), piece()], 9_999, Some(1_999), StoreError::BrokenOff),
        (vec![piece(), Err(StoreError::BrokenOff)], 9_999, None, StoreError::BrokenOff),
    ] {
        assert_eq!(put_pieces(&scene, pieces, bytes_max, bytes), Err(refusal));
        assert_eq!(files_below(&scene.folder.path().join("data/blobs")), [] as [PathBuf; 0]);
    }
    // A writer that gives up midway leaves nothing either.
    let pieces = futures::stream::iter([piece()]).chain(futures::stream::pending()).boxed();
    let incoming = Incoming { pieces, bytes_max: 9_999, bytes: None };
    let realm = realm();
    let mut put = scene.opened.blobs.put_pieces(&realm, incoming);
    let drafted = || files_below(&scene.folder.path().join("data/blobs/.drafts"));
    let deadline = Instant::now() + Duration::from_secs(120);
    while drafted().is_empty() {
        assert!(futures::FutureExt::now_or_never(&mut put).is_none());
        assert!(Instant::now() < deadline, "no draft was begun");
    }
    drop(put);
    // The thread may hold it for a moment: it comes to the next job after that.
    while !drafted().is_empty() {
        assert!(!BlobsOf(&scene).has("r", &ContentHash::of(b"none")));
        assert!(Instant::now() < deadline, "the draft stays");
    }
}

#[test]
fn drafts_of_a_dead_process_are_swept() {
    let scene = Scene::new();
    let kept = BlobsOf(&scene).put("r", "kept");
    let folder = scene.closed();
    let drafts = folder.path().join("data/blobs/.drafts");
    std::fs::create_dir_all(&drafts).unwrap();
    std::fs::write(drafts.join("7.draft"), b"half of").unwrap();
    let opened = open(&folder, Arc::new(Threads::default()), Limits::default()).unwrap();
    let scene = Scene { opened, folder };
    let blobs = BlobsOf(&scene);
    assert_eq!(blobs.sweep(1_000, 9), (0, 0));
    assert_eq!(files_below(&drafts), [] as [PathBuf; 0]);
    assert!(blobs.has("r", &kept));
}

#[test]
fn a_part_of_a_blob_can_be_read() {
    let scene = Scene::new();
    let large: Vec<u8> = (0..200_000_usize).map(|at| (at % 251) as u8).collect();
    let hash = block_on(scene.opened.blobs.put(&realm(), large.clone())).unwrap().hash;
    for part in [0..1, 0..0, 5..5, 65_000..66_000, 65_536..131_072, 199_999..200_001, 7..200_000] {
        let open = block_on(scene.opened.blobs.open(&realm(), &hash, part.clone())).unwrap();
        let open = open.unwrap();
        assert_eq!(open.bytes, 200_000);
        let read = block_on(open.whole(200_000)).unwrap();
        let end = (part.end as usize).min(large.len());
        assert!(read == large[part.start as usize..end], "{part:?}");
    }
    let behind = block_on(scene.opened.blobs.open(&realm(), &hash, 300_000..400_000)).unwrap();
    assert_eq!(block_on(behind.unwrap().whole(200_000)), Ok(Vec::new()));
    let whole = block_on(scene.opened.blobs.open(&realm(), &hash, WHOLE)).unwrap().unwrap();
    assert_eq!(block_on(whole.whole(199_999)), Err(StoreError::TooLarge(199_999)));
}

/// Puts blobs, looks for them and sweeps; the store's clock stands at 1,000.
struct BlobsOf<'a>(&'a Scene);

impl BlobsOf<'_> {
    fn put(&self, realm: &str, text: &str) -> ContentHash {
        let bytes = text.as_bytes().to_vec();
        block_on(self.0.opened.blobs.put(&realm.into(), bytes)).unwrap().hash
    }

    fn has(&self, realm: &str, hash: &ContentHash) -> bool {
        block_on(self.0.opened.blobs.get(&realm.into(), hash)).unwrap().is_some()
    }

    fn sweep(&self, before: i64, limit: usize) -> (usize, u64) {
        block_on(self.0.opened.blobs.sweep(Millis(before), limit)).unwrap()
    }
}

#[test]
fn an_unreferenced_blob_is_swept_after_a_while() {
    let scene = Scene::new();
    let blobs = BlobsOf(&scene);
    let [held, spoken_of, shared, unnamed] =
        ["held", "spoken of", "shared", "unnamed"].map(|text| blobs.put("r", text));
    let elsewhere = blobs.put("other", "shared");
    let stray = scene.folder.path().join("data/blobs/r/notes.txt");
    std::fs::write(&stray, "whose?").unwrap();
    let mut a = Driver::new("r", "a");
    let mut b = Driver::new("r", "b");
    done(scene.store().append(a.created()));
    let facts = vec![holding(&held), speaking_of(&spoken_of), holding(&shared)];
    done(scene.store().append(a.append(facts)));
    done(scene.store().append(b.created()));
    done(scene.store().append(b.append(vec![holding(&shared)])));
    assert_eq!(blobs.sweep(1_000, 9), (0, 0), "they were put just now");
    let slices = [blobs.sweep(1_001, 3), blobs.sweep(1_001, 3), blobs.sweep(1_001, 3)];
    assert_eq!(slices.map(|(looked, _)| looked), [3, 2, 0]);
    assert!(!blobs.has("r", &unnamed) && !blobs.has("other", &elsewhere));
    assert!([&held, &spoken_of, &shared].iter().all(|hash| blobs.has("r", hash)));
    // What a session named is loose when it goes, and not before.
    block_on(scene.store().remove(a.key(), a.row.known())).unwrap();
    assert_eq!(blobs.sweep(1_000, 9), (0, 0), "they lost it just now");
    assert_eq!(blobs.sweep(1_001, 9), (3, 2));
    assert!(blobs.has("r", &shared), "the other session still names it");
    let ours = realm();
    let slice = Slice { after: 0, limit: 9 };
    block_on(scene.store().prune(RealmSet::One(&ours), Millis(100), &[], slice)).unwrap();
    assert_eq!((blobs.sweep(1_001, 9), blobs.has("r", &shared)), ((1, 1), false));
    assert_eq!(blobs.put("r", "shared"), shared);
    assert!(blobs.has("r", &shared) && stray.exists());
}

#[test]
fn a_blob_stays_as_long_as_a_holder_of_any_kind_has_it() {
    let scene = Scene::new();
    let blobs = BlobsOf(&scene);
    let hold = |realm: &str, holder: &Holder, hashes: &[ContentHash]| {
        block_on(scene.opened.blobs.hold(&realm.into(), holder, hashes)).unwrap();
    };
    let release = |realm: &str, holder: &Holder| {
        block_on(scene.opened.blobs.release(&realm.into(), holder)).unwrap();
    };
    let [first, second] = ["first", "second"].map(|text| blobs.put("r", text));
    let elsewhere = blobs.put("other", "first");
    let record = Holder { kind: "record", id: "7".to_owned() };
    let job = Holder { kind: "job", id: "7".to_owned() };
    hold("r", &record, &[first.clone(), second.clone()]);
    hold("r", &record, std::slice::from_ref(&first));
    hold("r", &job, std::slice::from_ref(&first));
    hold("other", &record, std::slice::from_ref(&elsewhere));
    assert_eq!(blobs.sweep(1_001, 9), (3, 0), "all are held");
    // Another kind, or another realm, with the same id is another holder.
    release("r", &record);
    assert_eq!(blobs.sweep(1_000, 9), (0, 0), "they lost it just now");
    assert_eq!(blobs.sweep(1_001, 9), (2, 1));
    assert!(blobs.has("r", &first) && !blobs.has("r", &second) && blobs.has("other", &elsewhere));
    // A session with the same number takes nothing of theirs along.
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    done(scene.store().append(a.append(vec![holding(&first)])));
    release("r", &job);
    assert_eq!(blobs.sweep(1_001, 9), (1, 0), "the session names it");
    hold("r", &job, std::slice::from_ref(&first));
    block_on(scene.store().remove(a.key(), a.row.known())).unwrap();
    assert_eq!(blobs.sweep(1_001, 9), (1, 0), "the job holds it");
    release("r", &job);
    release("r", &job);
    assert_eq!((blobs.sweep(1_001, 9), blobs.has("r", &first)), ((1, 1), false));
}

#[test]
fn blob_holds_of_a_call_end_with_its_process() {
    let scene = Scene::new();
    let blobs = BlobsOf(&scene);
    let [of_call, of_job] = ["of a call", "of a job"].map(|text| blobs.put("r", text));
    let job = Holder { kind: "job", id: "1".to_owned() };
    for (holder, hash) in [(&Holder::call(CallId(1)), &of_call), (&job, &of_job)] {
        let hashes = std::slice::from_ref(hash);
        block_on(scene.opened.blobs.hold(&realm(), holder, hashes)).unwrap();
    }
    assert_eq!(blobs.sweep(1_001, 9), (2, 0));
    let scene = scene.reopened();
    let blobs = BlobsOf(&scene);
    assert_eq!(blobs.sweep(1_001, 9), (1, 1));
    assert!(!blobs.has("r", &of_call) && blobs.has("r", &of_job));
}

#[test]
fn a_trimmed_session_holds_the_blobs_of_its_base_and_its_rest() {
    let scene = Scene::new();
    let blobs = BlobsOf(&scene);
    let [gone, in_base, in_row, later, again] =
        ["gone", "in base", "in row", "later", "again"].map(|text| blobs.put("r", text));
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    let mut first = a.append(vec![holding(&gone), holding(&in_base), holding(&again)]);
    first.runs = vec![RunRow { ended_at: Some(Millis(20)), ..a.run_row(1) }];
    done(scene.store().append(first));
    let mut second = a.append(vec![holding(&gone), holding(&in_row)]);
    second.runs = vec![a.run_row(2)];
    done(scene.store().append(second));
    done(scene.store().append(a.append(vec![holding(&later), speaking_of(&again)])));
    let base = Event { seq: 5, at: Millis(10), v: VERSION, fact: holding(&in_base) };
    let base = serde_json::to_string(&base).unwrap();
    let trimmed = block_on(scene.store().trim(Trim { base, ..trim_at(&a, 5, 1) })).unwrap();
    assert!(trimmed.is_some());
    let (_, removed) = blobs.sweep(1_001, 9);
    assert_eq!((removed, blobs.has("r", &gone)), (1, false));
    for hash in [&in_base, &in_row, &later, &again] {
        assert!(blobs.has("r", hash));
    }
    // A trim moves the fence, too.
    a.row.fence = a.row.fence.next();
    block_on(scene.store().remove(a.key(), a.row.known())).unwrap();
    assert_eq!(blobs.sweep(1_001, 9), (4, 4));
}

#[test]
fn usage_of_a_run_is_stored() {
    let scene = Scene::new();
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    let mut first = a.next();
    first.runs = vec![a.run_row(1)];
    done(scene.store().append(first));
    let spent = RunSpent {
        turns: 2,
        input: 30,
        cached: 12,
        cache_written: 6,
        output: 7,
        cost_micros: 11,
        saved_micros: -2,
        unpriced: 1,
    };
    let asked = RunRow { spent, stopped: Some("steps".into()), ..a.run_row(1) };
    let mut second = a.next();
    second.runs = vec![asked.clone()];
    done(scene.store().append(second));
    let found = block_on(scene.store().run(&realm(), asked.id)).unwrap().unwrap();
    assert_eq!(found.row, asked);
}

#[test]
fn owners_are_stored() {
    let scene = Scene::new();
    let mut a = Driver::new("r", "a");
    done(scene.store().append(a.created()));
    a.row.owner = Some("ann".into());
    let mut first = a.next();
    let run = RunRow { owner: Some("bob".into()), ..a.run_row(1) };
    first.runs = vec![run.clone()];
    done(scene.store().append(first));
    let id = SessionRef::Id(a.row.id);
    let session = block_on(scene.store().session(&realm(), &id)).unwrap().unwrap();
    let run = block_on(scene.store().run(&realm(), run.id)).unwrap().unwrap();
    assert_eq!((session.owner, run.row.owner), (Some("ann".into()), Some("bob".into())));
}

#[test]
fn a_run_that_starts_while_others_are_removed_has_its_closure() {
    let threads = Threads::keeping();
    let scene = Scene::with(threads.clone(), Limits::default());
    let pinned = closure("shared");
    let mut a = Driver::new("r", "a");
    let mut b = Driver::new("r", "b");
    let mut tickets = vec![
        scene.store().append(a.created()),
        scene.store().append(starting(&mut a, 1, &pinned)),
        scene.store().append(b.created()),
    ];
    // All of it shares a commit: the removal comes first, and the run after it brings its own.
    let mut removal = scene.store().remove(a.key(), a.row.known());
    assert!(futures::FutureExt::now_or_never(&mut removal).is_none());
    tickets.push(scene.store().append(starting(&mut b, 1, &pinned)));
    threads.let_go();
    tickets.into_iter().for_each(done);
    block_on(removal).unwrap();
    assert_eq!(swept(scene.store()), (0, 0), "the run after it took it off the list");
    assert!(has_closure(scene.store(), "r", &pinned));
}

#[test]
fn a_spec_is_stored_despite_a_rewritten_batch() {
    let threads = Threads::keeping();
    let scene = Scene::with(threads.clone(), Limits::default());
    let pinned = closure("pinned");
    let spec = spec("pinned");
    let mut a = Driver::new("r", "a");
    let mut b = Driver::new("r", "b");
    let mut tickets = vec![scene.store().append(a.created())];
    tickets.push(scene.store().append(calling(starting(&mut a, 1, &pinned), &pinned, &spec)));
    tickets.push(scene.store().append(b.created()));
    tickets.push(scene.store().append(b.asking(&["one"])));
    let mut twice = b.next();
    let ask = b.ask("one");
    twice.asks = vec![decided(&ask, "ann"), decided(&ask, "bob")];
    let fails = scene.store().append(twice);
    threads.let_go();
    tickets.into_iter().for_each(done);
    assert!(block_on(fails).is_err(), "an ask is decided once");
    assert!(spec_of(scene.store(), "r", &spec).is_some());
}
