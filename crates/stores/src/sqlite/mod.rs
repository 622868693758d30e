//! The embedded store: SQLite in WAL mode, one writer that commits many sessions at once, readers
//! beside it. One process per folder.

mod error;
mod deadline;
mod poison;
mod queue;
mod task;
mod transaction;
mod readers;
mod database;
pub(crate) mod files;
pub(crate) mod tables;
mod schema;
mod append;
mod writer;
mod databases;
mod read;
mod large_removal;
mod prune;
mod trim;
mod webhooks;
mod store;
mod records;

pub(crate) use files::copy::{copy, damage};
pub(crate) use files::lock::FolderLock;
pub use records::RecordsOpener;
pub(crate) use tables::refs::LooseBlob;

use crate::files::make_folder;
use crate::opening::{FatalHandler, OpenError, Parts, StoreLocation};
use append::Opening;
use database::Database;
use databases::{Databases, OpenDatabase};
use files::connect;
use files::lock::LockPlace;
use files::missing;
use files::position::PositionFile;
use kernel::contracts::{Clock, StoreLoss};
use queue::Writes;
use readers::Readers;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tables::audit::AuditKeys;
use tables::deliveries::Uncounted;
use tables::fences::Fences;
use tables::removed_realms::RemovedRealms;

/// The database of sessions and of all else that `SqliteStore` has.
pub(crate) static MAIN: Database = Database {
    file: "waypost.db",
    position: "position",
    migrations: schema::MIGRATIONS,
    prepare: schema::release_calls,
    stored_bytes: "SELECT s.realm, r.owner, sum(r.bytes) FROM runs AS r \
         JOIN sessions AS s ON s.pk = r.session \
         GROUP BY s.realm, r.owner ORDER BY s.realm, r.owner",
    is_timed: false,
};

/// All databases that a data folder can have, the main one first. The others are made after it, and
/// copied after it: what a run in the copy wrote to them is in their copies.
pub(crate) static DATABASES: &[&Database] = &[
    &MAIN,
    &records::RECORDS,
    #[cfg(test)]
    &tests::NOTES,
];

/// All that is in the main database: sessions, stored configuration, the log of deliveries, and
/// what the blobs' files need of it.
pub(crate) struct SqliteStore {
    writes: Writes,
    readers: Arc<Readers>,
    /// This one and those beside it.
    databases: Databases,
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

/// Opens the store in a folder and starts its threads. A folder that has lost its main database
/// gets a new one if it is to be renewed, and is refused otherwise. So is one whose databases have
/// lost acknowledged writes, unless that was accepted: then it says what they have lost.
pub(crate) fn open(
    place: &StoreLocation,
    parts: &Parts,
) -> Result<(SqliteStore, Vec<StoreLoss>), OpenError> {
    let folder = place.folder();
    let unusable = |why| OpenError::Folder { folder: folder.to_owned(), why };
    make_folder(folder).map_err(unusable)?;
    let lock = Arc::new(FolderLock::take(folder, parts.clock.now())?);
    missing::look(folder, matches!(place, StoreLocation::RenewedFolder(_)))?;
    // Before anything is written, which would hide a part of it.
    let losses = judged_losses(place, parts.vfs.as_deref())?;
    let databases = Databases::new(folder, &lock);
    let main = databases.prepare(&MAIN, parts)?;
    let node = main.node;
    let path = folder.join(MAIN.file);
    let removed = RemovedRealms::load(&main.connection);
    let removed = Arc::new(removed.map_err(|error| connect::refused(&path, &error))?);
    let fences = Arc::<Fences>::default();
    let audit_keys = Arc::<AuditKeys>::default();
    let opening = Opening {
        tally_reasons_max: parts.limits.tally_reasons_max,
        fences: fences.clone(),
        audit_keys: audit_keys.clone(),
        removed: removed.clone(),
        ..Opening::new(node, parts.fatal.clone())
    };
    let main = databases.start(main, opening, parts)?;
    tracing::info!(folder = %folder.display(), node, "the store is open");
    accept(folder, &losses).map_err(unusable)?;
    let OpenDatabase { writes, readers, positions, .. } = main;
    let store = SqliteStore {
        writes,
        readers,
        databases,
        fences,
        audit_keys,
        removed,
        node,
        fatal: parts.fatal.clone(),
        clock: parts.clock.clone(),
        path,
        lock_place: lock.place().clone(),
        lock_was_lost: AtomicBool::new(false),
        positions,
        deliveries_max: parts.limits.deliveries_kept_max,
        uncounted: Uncounted::default(),
    };
    Ok((store, losses))
}

/// What the databases have lost of what was expected. Where that was not accepted the folder is
/// refused, and left as it is: something may still be read out of a damaged log.
fn judged_losses(place: &StoreLocation, vfs: Option<&str>) -> Result<Vec<StoreLoss>, OpenError> {
    let folder = place.folder();
    let mut losses = Vec::new();
    for database in DATABASES {
        losses.extend(missing::loss(folder, database, vfs)?);
    }
    let is_accepted = matches!(place, StoreLocation::FolderAfterLoss(_));
    for StoreLoss { database, expected, found } in &losses {
        if is_accepted {
            let what = "the store went back, and that was accepted";
            tracing::warn!(database, %expected, %found, "{what}");
        } else {
            let what = "the store went back: acknowledged writes are lost";
            tracing::error!(database, %expected, %found, "{what}");
        }
    }
    if is_accepted || losses.is_empty() {
        return Ok(losses);
    }
    Err(OpenError::WentBack { folder: folder.to_owned(), losses })
}

/// Accepts what was lost, but for the main database: its opening did that.
fn accept(folder: &Path, losses: &[StoreLoss]) -> std::io::Result<()> {
    let is_lost = |file: &str| losses.iter().any(|loss| loss.database == file);
    let beside = DATABASES.iter().filter(|database| database.file != MAIN.file);
    for database in beside.filter(|database| is_lost(database.file)) {
        missing::accept(folder, database)?;
    }
    Ok(())
}

/// The losses of a folder's databases, read without changing them. One that cannot be read says
/// nothing, and a folder without the main one is refused for another reason.
pub(crate) fn losses_of(folder: &Path) -> Vec<StoreLoss> {
    if !folder.join(MAIN.file).is_file() {
        return Vec::new();
    }
    let losses = DATABASES.iter().map(|database| missing::loss(folder, database, None));
    losses.filter_map(|loss| loss.ok().flatten()).collect()
}

#[cfg(test)]
mod tests;
