//! The embedded store: SQLite in WAL mode, one writer that commits many sessions at once, readers
//! beside it. One process per folder.

mod trouble;
mod lock;
mod lost;
mod connect;
mod checkpoint;
mod columns;
mod refs;
mod closures;
mod specs;
mod schema;
mod keys;
mod consumers;
mod tallies;
mod append;
mod poison;
mod queue;
mod writer;
mod readers;
mod history;
mod read;
mod prune;
mod trim;
mod definitions;
mod deliveries;
mod loose;
mod copy;

pub(crate) use copy::{copy, damage};
pub(crate) use lock::FolderLock;
pub(crate) use loose::LooseBlobs;
pub(crate) use refs::Loose;

use crate::files::{make_folder, sync_folder};
use crate::parts::{OpenError, Parts};
use columns::integer;
use definitions::SqliteDefinitions;
use deliveries::SqliteDeliveries;
use kernel::contracts::{
    AskFilter, Clock, Delivery, FeedRow, FeedStart, HistoryFilter, Lease, OpenAsks, OpenSessions,
    Page, Paged, PrunedSlice, Read, Realms, SINKS, SessionAsk, SessionFilter, SessionRef,
    SessionRun, Store, StoreError, StoreFigures, Stored, Ticket, Trimmable,
};
use kernel::ids::{AskId, ContentHash, Millis, PipelineName, RealmId, RunId, SessionKey};
use kernel::pipeline::TallyRow;
use kernel::projection::{Append, HistoryItem, OnceRow, Parked, SessionRow};
use kernel::trim::Trim;
use lock::LockPlace;
pub(crate) use lost::DATABASE;
use prune::Scope;
use queue::{Shared, Writes};
use readers::Readers;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use writer::Writer;

/// Enough that a long list does not hold up a load; each costs its cache.
const READERS: usize = 2;

/// What is behind one database.
pub(crate) struct Database {
    /// Sessions.
    pub(crate) store: SqliteStore,
    /// Stored configuration.
    pub(crate) definitions: SqliteDefinitions,
    /// The log of deliveries.
    pub(crate) deliveries: SqliteDeliveries,
    /// What the blobs' files need of it.
    pub(crate) loose: LooseBlobs,
}

/// Opens the store in a folder and starts its threads. A folder that has lost its database gets a
/// new one if it is to be renewed, and is refused otherwise.
pub(crate) fn open(folder: &Path, parts: &Parts, renew: bool) -> Result<Database, OpenError> {
    let unusable = |why| OpenError::Folder { folder: folder.to_owned(), why };
    let now = parts.clock.now();
    make_folder(folder).map_err(unusable)?;
    let lock = FolderLock::take(folder, now)?;
    lost::look(folder, renew)?;
    let lock_place = lock.place().clone();
    let path = folder.join(lost::DATABASE);
    let vfs = parts.vfs.as_deref();
    let mut connection = connect::writer(&path, vfs)?;
    let epoch = schema::prepare(&mut connection, &path, now)?;
    // SQLite syncs the folder for its logs; the database's own name is ours to make durable.
    sync_folder(folder).map_err(unusable)?;
    let connections: Vec<_> =
        (0..READERS).map(|_| connect::reader(&path, vfs)).collect::<Result<_, _>>()?;
    let reasons_max = parts.limits.tally_reasons_max;
    let shared = Arc::new(Shared::new(epoch, parts.fatal.clone(), reasons_max));
    let (writes, jobs) = Writes::new(shared.clone(), parts.limits.append_queue_max);
    let writer = Writer::new(connection, (shared, parts.clock.clone()), lock);
    parts.spawn.critical_thread("store-writer", Box::pin(writer.run(jobs)));
    let readers = Readers::start(&*parts.spawn, connections);
    tracing::info!(folder = %folder.display(), epoch, "the store is open");
    let clock = parts.clock.clone();
    let kept_max = parts.limits.deliveries_kept_max;
    Ok(Database {
        definitions: SqliteDefinitions::new(writes.clone(), readers.clone(), clock.clone()),
        deliveries: SqliteDeliveries::new(writes.clone(), readers.clone(), kept_max),
        loose: LooseBlobs::new(writes.clone(), readers.clone(), clock.clone()),
        store: SqliteStore {
            writes,
            readers,
            clock,
            path,
            lock_place,
            lock_was_lost: AtomicBool::new(false),
        },
    })
}

/// Sessions in one SQLite database.
pub(crate) struct SqliteStore {
    writes: Writes,
    readers: Readers,
    clock: Arc<dyn Clock>,
    path: PathBuf,
    lock_place: LockPlace,
    /// What the last look at the lock found.
    lock_was_lost: AtomicBool,
}

impl SqliteStore {
    /// How many bytes the database and its log have on the disk.
    fn bytes(&self) -> (u64, u64) {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        (bytes(&self.path), bytes(Path::new(&log)))
    }

    /// Ends the process if another one can hold the folder too, at the second look in a row that
    /// says so: a folder that is being removed loses its files one by one, and one that was removed
    /// has nothing that two could write.
    fn check_lock(&self) -> Result<(), StoreError> {
        let is_lost = !self.lock_place.stands() && self.path.exists();
        let was_lost = self.lock_was_lost.swap(is_lost, Ordering::SeqCst);
        if !(is_lost && was_lost) {
            return Ok(());
        }
        let what = "the data folder's file `lock` was removed or replaced: another process may use \
             the folder; start again, and leave that file alone";
        (self.writes.shared().fatal)(what.to_owned());
        Err(StoreError::Closed)
    }

    /// Removes old keys whose runs are gone, slice by slice; how many.
    async fn prune_keys(
        &self,
        scope: &Scope,
        before: Millis,
        limit: i64,
    ) -> Result<u64, StoreError> {
        let mut rows = 0;
        loop {
            let scope = scope.clone();
            let look =
                move |connection: &Connection| prune::old_keys(connection, &scope, before, limit);
            let keys = self.readers.read(look).await?;
            if keys.is_empty() {
                return Ok(rows);
            }
            let remove = move |connection: &Connection| prune::remove_keys(connection, &keys);
            rows += self.writes.perform(remove).await?;
        }
    }
}

impl Store for SqliteStore {
    fn load<'a>(&'a self, key: &'a SessionKey) -> Read<'a, Option<Stored>> {
        Box::pin(async move {
            // Before the read: appends that are still queued must not get in after it.
            self.writes.shared().poison().loaded(key);
            let (key, epoch) = (key.clone(), self.writes.shared().epoch);
            self.readers.read(move |connection| read::load(connection, &key, epoch)).await
        })
    }

    fn append(&self, append: Append) -> Ticket {
        self.writes.append(append)
    }

    fn keep_snapshot(&self, key: &SessionKey, seq: u64, body: String) {
        self.writes.snapshot(key, seq, body);
    }

    fn deliver(&self, _delivery: Delivery) -> Read<'_, ()> {
        let why = "the embedded store has one owner; commands go through it";
        Box::pin(async move { Err(StoreError::Failed(why.to_owned())) })
    }

    fn claim(&self, now: Millis, limit: usize) -> Read<'_, Vec<Lease>> {
        Box::pin(async move {
            // Recovery comes by all the time, and a lease is worth what the lock is worth.
            self.check_lock()?;
            let epoch = self.writes.shared().epoch;
            self.readers.read(move |connection| read::due(connection, now, epoch, limit)).await
        })
    }

    fn next_wake(&self, after: Millis) -> Read<'_, Option<Millis>> {
        self.readers.read(move |connection| read::next_wake(connection, after))
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> Read<'a, Lease> {
        // It lasts as long as the folder's lock.
        Box::pin(async move { Ok(lease.clone()) })
    }

    fn sweep_closures(&self, limit: usize) -> Read<'_, (usize, u64)> {
        Box::pin(async move {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let looked = self.readers.read(move |connection| closures::look(connection, limit));
            let looked = looked.await?;
            let count = looked.len();
            if count == 0 {
                return Ok((0, 0));
            }
            let known = self.writes.shared().specs.clone();
            let remove = move |connection: &Connection| {
                known.forget();
                closures::remove(connection, &looked)
            };
            Ok((count, self.writes.perform(remove).await?))
        })
    }

    fn park<'a>(&'a self, key: &'a SessionKey, parked: Parked) -> Read<'a, ()> {
        let key = key.clone();
        self.writes.perform(move |connection: &Connection| append::park(connection, &key, &parked))
    }

    fn release<'a>(&'a self, _lease: &'a Lease) -> Read<'a, ()> {
        Box::pin(async move { Ok(()) })
    }

    fn closure<'a>(
        &'a self,
        realm: &'a RealmId,
        hash: &'a ContentHash,
    ) -> Read<'a, Option<String>> {
        let (realm, hash) = (realm.clone(), hash.clone());
        self.readers.read(move |connection| read::closure(connection, &realm, &hash))
    }

    fn tool_spec<'a>(
        &'a self,
        realm: &'a RealmId,
        hash: &'a ContentHash,
    ) -> Read<'a, Option<String>> {
        let (realm, hash) = (realm.clone(), hash.clone());
        self.readers.read(move |connection| read::tool_spec(connection, &realm, &hash))
    }

    fn session<'a>(
        &'a self,
        realm: &'a RealmId,
        session: &'a SessionRef,
    ) -> Read<'a, Option<SessionRow>> {
        let (realm, session) = (realm.clone(), session.clone());
        self.readers.read(move |connection| read::find_session(connection, &realm, &session))
    }

    fn sessions<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a SessionFilter,
        page: &'a Page,
    ) -> Read<'a, Paged<SessionRow>> {
        let (realm, filter, page) = (realm.clone(), filter.clone(), page.clone());
        self.readers.read(move |connection| read::sessions(connection, &realm, &filter, &page))
    }

    fn run<'a>(&'a self, realm: &'a RealmId, run: RunId) -> Read<'a, Option<SessionRun>> {
        let realm = realm.clone();
        self.readers.read(move |connection| read::find_run(connection, &realm, run))
    }

    fn ask<'a>(&'a self, realm: &'a RealmId, ask: AskId) -> Read<'a, Option<SessionAsk>> {
        let realm = realm.clone();
        self.readers.read(move |connection| read::find_ask(connection, &realm, ask))
    }

    fn asks<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a AskFilter,
        page: &'a Page,
    ) -> Read<'a, Paged<SessionAsk>> {
        let (realm, filter, page) = (realm.clone(), filter.clone(), page.clone());
        self.readers.read(move |connection| read::asks(connection, &realm, &filter, &page))
    }

    fn open_asks<'a>(&'a self, realm: &'a RealmId) -> Read<'a, Vec<OpenAsks>> {
        let realm = realm.clone();
        self.readers.read(move |connection| read::open_asks(connection, &realm))
    }

    fn open_sessions<'a>(&'a self, realm: &'a RealmId) -> Read<'a, Vec<OpenSessions>> {
        let realm = realm.clone();
        self.readers.read(move |connection| read::open_sessions(connection, &realm))
    }

    fn once<'a>(
        &'a self,
        realm: &'a RealmId,
        subject: &'a str,
        route: &'a str,
        key: &'a str,
    ) -> Read<'a, Option<OnceRow>> {
        let (subject, route, key) = (subject.to_owned(), route.to_owned(), key.to_owned());
        let realm = realm.clone();
        self.readers
            .read(move |connection| keys::find(connection, &realm, (&subject, &route, &key)))
    }

    fn history<'a>(
        &'a self,
        key: &'a SessionKey,
        only: HistoryFilter,
        page: &'a Page,
    ) -> Read<'a, Paged<HistoryItem>> {
        let (key, page) = (key.clone(), page.clone());
        self.readers.read(move |connection| match read::session_number(connection, &key)? {
            Some(session) => history::history(connection, session, &only, &page),
            None => Ok(Paged { items: Vec::new(), next_cursor: None }),
        })
    }

    fn events<'a>(
        &'a self,
        key: &'a SessionKey,
        after: u64,
        limit: usize,
    ) -> Read<'a, Vec<(u64, String)>> {
        let key = key.clone();
        self.readers.read(move |connection| read::events(connection, &key, after, limit))
    }

    fn feed<'a>(&'a self, realm: &'a RealmId, after: u64, limit: usize) -> Read<'a, Vec<FeedRow>> {
        let realm = realm.clone();
        self.readers.read(move |connection| read::feed(connection, &realm, after, limit))
    }

    fn feed_end(&self) -> Read<'_, u64> {
        self.readers.read(read::feed_end)
    }

    fn consumer<'a>(&'a self, realm: &'a RealmId, consumer: &'a str) -> Read<'a, u64> {
        let (realm, consumer) = (realm.clone(), consumer.to_owned());
        self.readers.read(move |connection| consumers::place(connection, &realm, &consumer))
    }

    fn begin_consumer<'a>(
        &'a self,
        realm: &'a RealmId,
        consumer: &'a str,
        start: FeedStart,
    ) -> Read<'a, u64> {
        let (realm, consumer) = (realm.clone(), consumer.to_owned());
        self.writes
            .perform(move |connection| consumers::begin(connection, &realm, &consumer, start))
    }

    fn consumers<'a>(
        &'a self,
        realm: &'a RealmId,
        prefix: &'a str,
    ) -> Read<'a, Vec<(String, u64)>> {
        let (realm, prefix) = (realm.clone(), prefix.to_owned());
        self.readers.read(move |connection| consumers::list(connection, &realm, &prefix))
    }

    fn forget_consumer<'a>(&'a self, realm: &'a RealmId, consumer: &'a str) -> Read<'a, bool> {
        Box::pin(async move {
            if let Some(sink) = consumer.strip_prefix(SINKS) {
                deliveries::forget(&self.writes, realm, sink).await?;
            }
            let (realm, consumer) = (realm.clone(), consumer.to_owned());
            let forget =
                move |connection: &Connection| consumers::forget(connection, &realm, &consumer);
            self.writes.perform(forget).await
        })
    }

    fn advance<'a>(&'a self, realm: &'a RealmId, consumer: &'a str, cursor: u64) -> Read<'a, ()> {
        let (realm, consumer) = (realm.clone(), consumer.to_owned());
        self.writes
            .perform(move |connection| consumers::advance(connection, &realm, &consumer, cursor))
    }

    fn tallies<'a>(
        &'a self,
        realm: &'a RealmId,
        pipeline: &'a PipelineName,
    ) -> Read<'a, Vec<TallyRow>> {
        let (realm, pipeline) = (realm.clone(), pipeline.clone());
        self.readers.read(move |connection| tallies::list(connection, &realm, &pipeline))
    }

    fn remove<'a>(&'a self, key: &'a SessionKey) -> Read<'a, ()> {
        let (key, now) = (key.clone(), self.clock.now());
        self.writes.perform(move |connection: &Connection| {
            let Some(session) = read::session_number(connection, &key)? else { return Ok(()) };
            prune::remove_session(connection, &key.realm, session, now)
        })
    }

    fn remove_sent<'a>(&'a self, key: &'a SessionKey) -> Read<'a, Option<String>> {
        let (key, now) = (key.clone(), self.clock.now());
        self.writes.perform(move |connection: &Connection| {
            let Some(session) = read::session_number(connection, &key)? else { return Ok(None) };
            let newest = prune::newest_row(connection, session)?;
            let behind = consumers::behind(connection, &key.realm, newest)?;
            if behind.is_none() {
                prune::remove_session(connection, &key.realm, session, now)?;
            }
            Ok(behind)
        })
    }

    fn prune<'a>(
        &'a self,
        realms: Realms<'a>,
        before: Millis,
        but: &'a [SessionKey],
        (after, limit): (u64, usize),
    ) -> Read<'a, PrunedSlice> {
        Box::pin(async move {
            let looked = (integer(after), i64::try_from(limit).unwrap_or(i64::MAX));
            let scope = Scope::of(realms);
            let of = scope.clone();
            let look =
                move |connection: &Connection| prune::old_sessions(connection, &of, before, looked);
            let mut old = self.readers.read(look).await?;
            let next = old.last().filter(|_| old.len() >= limit).map(|(number, _)| *number as u64);
            old.retain(|(_, key)| !but.contains(key));
            let (mut removed, mut rows) = (Vec::new(), 0);
            if !old.is_empty() {
                let now = self.clock.now();
                let remove = move |connection: &Connection| {
                    prune::remove_sessions(connection, &old, before, now)
                };
                (removed, rows) = self.writes.perform(remove).await?;
            }
            if next.is_none() {
                rows += self.prune_keys(&scope, before, looked.1).await?;
            }
            Ok(PrunedSlice { removed, rows, next })
        })
    }

    fn trimmable<'a>(
        &'a self,
        realms: Realms<'a>,
        before: Millis,
        (after, limit): (Option<(Millis, u64)>, usize),
    ) -> Read<'a, Vec<Trimmable>> {
        let slice = (after, i64::try_from(limit).unwrap_or(i64::MAX));
        let scope = Scope::of(realms);
        self.readers.read(move |connection| trim::trimmable(connection, &scope, before, slice))
    }

    fn trim(&self, trim: Trim) -> Read<'_, Option<u64>> {
        let now = self.clock.now();
        self.writes.perform(move |connection: &Connection| trim::trim(connection, &trim, now))
    }

    fn on_commit(&self, woken: Arc<dyn Fn(&[SessionKey]) + Send + Sync>) {
        self.writes.on_commit(woken);
    }

    fn figures(&self) -> Option<StoreFigures> {
        let (database, log) = self.bytes();
        let bytes = database.saturating_add(log);
        Some(StoreFigures { bytes, wal_bytes: log, ..self.writes.figures() })
    }

    fn healthy(&self) -> Result<(), StoreError> {
        self.writes.healthy()
    }

    fn close(&self) -> Read<'_, ()> {
        Box::pin(async move {
            // Readers first: the writer's last checkpoint then has the database to itself.
            self.readers.close();
            self.writes.close().await
        })
    }
}
