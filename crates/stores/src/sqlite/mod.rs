//! The embedded store: SQLite in WAL mode, one writer that commits many sessions at once, readers
//! beside it. One process per folder.

mod trouble;
mod poison;
mod queue;
mod chore;
mod transaction;
mod readers;
pub(crate) mod files;
pub(crate) mod tables;
mod schema;
mod append;
mod writer;
mod read;
mod hidden;
mod prune;
mod trim;
mod webhooks;
mod store;

pub(crate) use files::copy::{copy, damage};
pub(crate) use files::lock::FolderLock;
pub(crate) use tables::refs::Loose;

use crate::files::{make_folder, sync_folder};
use crate::parts::{Fatal, OpenError, Parts};
use append::Opening;
use files::lock::LockPlace;
pub(crate) use files::lost::DATABASE;
use kernel::contracts::Clock;
use queue::{Shared, Writes};
use readers::Readers;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tables::audit::AuditKeys;
use tables::deliveries::Uncounted;
use tables::fences::Fences;
use tables::known::KnownPins;
use tables::removed::RemovedRealms;
use writer::Writer;

/// Enough that a long list does not hold up a load; each costs its cache.
const READERS: usize = 2;

/// All that is in one SQLite database: sessions, stored configuration, the log of deliveries, and
/// what the blobs' files need of it.
pub(crate) struct SqliteStore {
    writes: Writes,
    readers: Readers,
    /// The sessions that were written lately, as they are.
    fences: Arc<Fences>,
    /// What rows of the audit are made with.
    audit_keys: Arc<AuditKeys>,
    /// The realms that were removed.
    removed: Arc<RemovedRealms>,
    /// This opening's number: the owner of what it drives.
    node: u64,
    /// Ends the process.
    fatal: Fatal,
    clock: Arc<dyn Clock>,
    path: PathBuf,
    lock_place: LockPlace,
    /// What the last look at the lock found.
    lock_was_lost: AtomicBool,
    /// How many deliveries are kept of each sink.
    deliveries_max: usize,
    uncounted: Uncounted,
}

/// Opens the store in a folder and starts its threads. A folder that has lost its database gets a
/// new one if it is to be renewed, and is refused otherwise.
pub(crate) fn open(folder: &Path, parts: &Parts, renew: bool) -> Result<SqliteStore, OpenError> {
    let unusable = |why| OpenError::Folder { folder: folder.to_owned(), why };
    let now = parts.clock.now();
    make_folder(folder).map_err(unusable)?;
    let lock = FolderLock::take(folder, now)?;
    files::lost::look(folder, renew)?;
    let lock_place = lock.place().clone();
    let path = folder.join(files::lost::DATABASE);
    let vfs = parts.vfs.as_deref();
    let mut connection = files::connect::writer(&path, vfs)?;
    let node = schema::prepare(&mut connection, &path, now)?;
    let removed = RemovedRealms::load(&connection);
    let removed = removed.map_err(|error| files::connect::refused(&path, &error))?;
    let removed = Arc::new(removed);
    // SQLite syncs the folder for its logs; the database's own name is ours to make durable.
    sync_folder(folder).map_err(unusable)?;
    let connections: Vec<_> =
        (0..READERS).map(|_| files::connect::reader(&path, vfs)).collect::<Result<_, _>>()?;
    let fences = Arc::<Fences>::default();
    let audit_keys = Arc::<AuditKeys>::default();
    let opening = Opening {
        node,
        tally_reasons_max: parts.limits.tally_reasons_max,
        fences: fences.clone(),
        pins: KnownPins::default(),
        audit_keys: audit_keys.clone(),
        removed: removed.clone(),
        fatal: parts.fatal.clone(),
    };
    let shared = Arc::<Shared>::default();
    let (writes, jobs) = Writes::new(shared.clone(), parts.limits.append_queue_max);
    let writer = Writer::new(connection, lock, opening, shared, parts.clock.clone());
    parts.spawn.critical_thread("store-writer", Box::pin(writer.run(jobs)));
    let readers = Readers::start(&*parts.spawn, connections);
    tracing::info!(folder = %folder.display(), node, "the store is open");
    Ok(SqliteStore {
        writes,
        readers,
        fences,
        audit_keys,
        removed,
        node,
        fatal: parts.fatal.clone(),
        clock: parts.clock.clone(),
        path,
        lock_place,
        lock_was_lost: AtomicBool::new(false),
        deliveries_max: parts.limits.deliveries_kept_max,
        uncounted: Uncounted::default(),
    })
}
