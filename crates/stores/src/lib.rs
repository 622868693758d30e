//! Stores behind the kernel's contracts: sessions, definitions, API keys, claims, principals,
//! realms, the audit, blobs, deliveries, webhooks, records. `open` chooses by place.
//!
//! The order of the modules below is the order of reading and of import: a module uses only those
//! above it.

mod opening;
mod files;
mod locks;
mod sqlite;
mod blobs;
mod crash_marks;
mod backup;

pub use backup::restore;
pub use opening::{FatalHandler, Holder, OpenError, Parts, StoreLocation};
pub use sqlite::RecordsOpener;

use backup::FolderBackup;
use kernel::contracts::backup::Backup;
use kernel::contracts::identity::api_keys::ApiKeys;
use kernel::contracts::identity::audit::Audit;
use kernel::contracts::identity::claims::Claims;
use kernel::contracts::identity::principals::Principals;
use kernel::contracts::identity::realms::StoredRealms;
use kernel::contracts::sink::Deliveries;
use kernel::contracts::webhooks::Webhooks;
use kernel::contracts::{Blobs, Clock, CrashMarks, Definitions, Spawn, Store, StoreLoss};
use kernel::values::ids::Millis;
use sqlite::{FolderLock, MAIN};
use std::path::Path;
use std::sync::Arc;

pub struct OpenStore {
    /// Sessions: their journal and the lists beside it.
    pub store: Arc<dyn Store>,
    /// Plans, agents, providers.
    pub definitions: Arc<dyn Definitions>,
    /// API keys, without their texts.
    pub api_keys: Arc<dyn ApiKeys>,
    /// Claims of the newest tokens of subjects.
    pub claims: Arc<dyn Claims>,
    /// Principals that no file brings, and which are disabled.
    pub principals: Arc<dyn Principals>,
    /// Realms that were made at run time.
    pub realms: Arc<dyn StoredRealms>,
    /// The audit. Nothing is written to it before it has keys.
    pub audit: Arc<dyn Audit>,
    /// Large values.
    pub blobs: Arc<dyn Blobs>,
    /// The log of deliveries of events.
    pub deliveries: Arc<dyn Deliveries>,
    /// The webhooks of tasks.
    pub webhooks: Arc<dyn Webhooks>,
    /// Marks of the sessions being worked on, for the next process.
    pub marks: Arc<dyn CrashMarks>,
    /// Copies of all of it.
    pub backup: Arc<dyn Backup>,
    /// Writes that its databases had lost when it was opened, if that was accepted.
    pub losses: Vec<StoreLoss>,
    /// The records, which are opened once there are types.
    pub records: RecordsOpener,
}

/// Opens the store at a place and starts its threads. A new place is made ready; one that another
/// process holds, that a newer release wrote, or that has lost its main database or acknowledged
/// writes is refused.
pub fn open(place: &StoreLocation, parts: Parts) -> Result<OpenStore, OpenError> {
    let folder = place.folder();
    let (store, losses) = sqlite::open(place, &parts)?;
    let store = Arc::new(store);
    let marks = crash_marks::FileMarks::open(folder)
        .map_err(|why| OpenError::Folder { folder: folder.to_owned(), why })?;
    let blobs = blobs::FileBlobs::open(folder.join(blobs::FOLDER), store.clone(), &parts);
    let backup = FolderBackup::of_open(folder, &parts, blobs.sweeping());
    Ok(OpenStore {
        store: store.clone(),
        definitions: store.clone(),
        api_keys: store.clone(),
        claims: store.clone(),
        principals: store.clone(),
        realms: store.clone(),
        audit: store.clone(),
        blobs: Arc::new(blobs),
        deliveries: store.clone(),
        webhooks: store.clone(),
        marks: Arc::new(marks),
        backup: Arc::new(backup),
        losses,
        records: RecordsOpener::new(folder.to_owned(), store, parts),
    })
}

/// A folder that is held without its store being open. Others are refused as long as this lives.
pub struct FolderHold {
    _lock: FolderLock,
}

/// Holds a data folder that is there, for users of what lies beside the store.
pub fn hold(folder: &Path, now: Millis) -> Result<FolderHold, OpenError> {
    Ok(FolderHold { _lock: FolderLock::take(folder, now)? })
}

/// The losses that the next opening of an unlocked folder would find; none of a database that is
/// unreadable.
pub fn losses_of(folder: &Path) -> Vec<StoreLoss> {
    sqlite::losses_of(folder)
}

/// Makes backups of a data folder whose store is not open; others are refused as long as this
/// lives. Nothing in the folder changes but its lock, and the logs go back into the databases.
pub fn backup_at_rest(
    folder: &Path,
    spawn: Arc<dyn Spawn>,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Backup>, OpenError> {
    if !folder.join(MAIN.file).is_file() {
        let why = std::io::Error::other("there is no database in it");
        return Err(OpenError::Folder { folder: folder.to_owned(), why });
    }
    let lock = FolderLock::take(folder, clock.now())?;
    Ok(Arc::new(FolderBackup::at_rest(folder, lock, spawn, clock)))
}
