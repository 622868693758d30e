//! The embedded store: SQLite in WAL mode, one writer that commits many sessions at once, readers
//! beside it. One process per folder.

mod error;
mod poison;
mod queue;
mod task;
mod transaction;
mod readers;
pub(crate) mod files;
pub(crate) mod tables;
mod schema;
mod append;
mod writer;
mod read;
mod large_removal;
mod prune;
mod trim;
mod webhooks;
mod store;

pub(crate) use files::copy::{copy, damage};
pub(crate) use files::lock::FolderLock;
pub(crate) use tables::refs::LooseBlob;

use crate::files::{make_folder, sync_folder};
use crate::opening::{FatalHandler, OpenError, Parts, StoreLocation};
use append::Opening;
use files::lock::LockPlace;
pub(crate) use files::missing::DATABASE;
use files::position::{self, PositionFile};
pub(crate) use files::position::{NEXT_POSITION, POSITION};
use kernel::contracts::{Clock, StoreLoss, StorePosition};
use queue::{Shared, Writes};
use readers::Readers;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tables::audit::AuditKeys;
use tables::deliveries::Uncounted;
use tables::fences::Fences;
use tables::pin_cache::KnownPins;
use tables::removed_realms::RemovedRealms;
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
    audit_keys: Arc<AuditKeys>,
    removed: Arc<RemovedRealms>,
    /// This opening's number: the owner of what it drives.
    node: u64,
    /// Ends the process.
    fatal: FatalHandler,
    clock: Arc<dyn Clock>,
    path: PathBuf,
    lock_place: LockPlace,
    /// Result of the last check of the lock.
    lock_was_lost: AtomicBool,
    /// Where the next opening reads how far this one came.
    positions: Arc<PositionFile>,
    /// How many deliveries are kept of each sink.
    deliveries_max: usize,
    uncounted: Uncounted,
}

/// Opens the store in a folder and starts its threads. A folder that has lost its database gets a
/// new one if it is to be renewed, and is refused otherwise. So is a database that has lost
/// acknowledged writes, unless that was accepted: then it says what it has lost.
pub(crate) fn open(
    place: &StoreLocation,
    parts: &Parts,
) -> Result<(SqliteStore, Option<StoreLoss>), OpenError> {
    let folder = place.folder();
    let unusable = |why| OpenError::Folder { folder: folder.to_owned(), why };
    let now = parts.clock.now();
    make_folder(folder).map_err(unusable)?;
    let lock = FolderLock::take(folder, now)?;
    files::missing::look(folder, matches!(place, StoreLocation::RenewedFolder(_)))?;
    let expected = position::read(folder).map_err(unusable)?;
    let lock_place = lock.place().clone();
    let path = folder.join(files::missing::DATABASE);
    let vfs = parts.vfs.as_deref();
    let mut connection = files::connect::writer(&path, vfs)?;
    // Before anything is written, which would hide a part of it.
    let loss = judged_loss(&connection, expected, place)?;
    let node = schema::prepare(&mut connection, &path, now)?;
    let removed = RemovedRealms::load(&connection);
    let removed = removed.map_err(|error| files::connect::refused(&path, &error))?;
    let removed = Arc::new(removed);
    // SQLite syncs the folder for its logs; the database's own name is ours to make durable.
    sync_folder(folder).map_err(unusable)?;
    let connections: Vec<_> =
        (0..READERS).map(|_| files::connect::reader(&path, vfs)).collect::<Result<_, _>>()?;
    let positions = Arc::new(PositionFile::new(folder));
    positions.write(&connection);
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
    let writer = Writer::new(connection, lock, opening, shared, parts.clock.clone())
        .telling(positions.clone());
    parts.spawn.critical_thread("store-writer", Box::pin(writer.run(jobs)));
    let readers = Readers::start(&*parts.spawn, connections);
    tracing::info!(folder = %folder.display(), node, "the store is open");
    let store = SqliteStore {
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
        positions,
        deliveries_max: parts.limits.deliveries_kept_max,
        uncounted: Uncounted::default(),
    };
    Ok((store, loss))
}

/// What the database has lost of what was expected. Where that was not accepted it is refused, and
/// left as it is: something may still be read out of a damaged log.
fn judged_loss(
    connection: &Connection,
    expected: Option<StorePosition>,
    place: &StoreLocation,
) -> Result<Option<StoreLoss>, OpenError> {
    let folder = place.folder();
    let unread = |error| files::connect::refused(&folder.join(DATABASE), &error);
    let Some(loss) = position::loss(connection, expected).map_err(unread)? else {
        return Ok(None);
    };
    let StoreLoss { expected, found } = loss;
    if matches!(place, StoreLocation::FolderAfterLoss(_)) {
        tracing::warn!(%expected, %found, "the store went back, and that was accepted");
        return Ok(Some(loss));
    }
    tracing::error!(%expected, %found, "the store went back: acknowledged writes are lost");
    let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    Err(OpenError::WentBack { folder: folder.to_owned(), loss })
}

/// The loss of a folder's database, read without changing it.
pub(crate) fn loss_of(folder: &Path) -> Option<StoreLoss> {
    let path = folder.join(DATABASE);
    let expected = position::read(folder).ok()?;
    if expected.is_none() || !path.is_file() {
        return None;
    }
    let connection = files::connect::existing(&path, None).ok()?;
    // A damaged log stays as it is.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).ok()?;
    position::loss(&connection, expected).ok()?
}
