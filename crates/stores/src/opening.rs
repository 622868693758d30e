//! Options and location of a store, and errors of opening it.

use kernel::contracts::{Clock, Spawn, StoreLoss};
use kernel::limits::Limits;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// A folder of this machine: the embedded store, for one process at a time.
    Folder(PathBuf),
    /// The same, with a new database where the folder has lost its own.
    RenewedFolder(PathBuf),
    /// The same, with the database that is there, also where it lost acknowledged writes.
    FolderAfterLoss(PathBuf),
}

impl StoreLocation {
    pub(crate) fn folder(&self) -> &Path {
        match self {
            StoreLocation::Folder(folder)
            | StoreLocation::RenewedFolder(folder)
            | StoreLocation::FolderAfterLoss(folder) => folder,
        }
    }
}

/// Told why the process must end: a sync failed, which is never tried again since what the disk
/// holds now is known only after a restart, or the folder is not this process's alone any more.
pub type FatalHandler = Arc<dyn Fn(String) + Send + Sync>;

/// Dependencies of a store.
#[derive(Clone)]
pub struct Parts {
    /// Starts the writer, the readers and the blobs' thread.
    pub spawn: Arc<dyn Spawn>,
    /// Says when definitions and blobs were stored, when something was removed, and since when the
    /// folder is held.
    pub clock: Arc<dyn Clock>,
    /// Bounds the queues.
    pub limits: Arc<Limits>,
    /// Ends the process.
    pub fatal: FatalHandler,
    /// The SQLite VFS to use; none is the system's. A simulation injects its faults here.
    pub vfs: Option<String>,
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error(
        "data folder `{}` is held by {holder}; stop that process or choose another folder",
        .folder.display()
    )]
    Held { folder: PathBuf, holder: Holder },
    /// The folder cannot be made, read or written.
    #[error(
        "data folder `{}` cannot be used: {why}; check its path, its rights and its room",
        .folder.display()
    )]
    Folder { folder: PathBuf, why: std::io::Error },
    /// The database is gone, and what was made after it is there.
    #[error(
        "data folder `{}` has {left} and no database: `waypost.db` is missing or empty; restore it \
         from a backup, or begin with a new one by `waypost up --new`",
        .folder.display()
    )]
    Lost { folder: PathBuf, left: String },
    /// A database is not as far as it was: acknowledged writes are lost.
    #[error(
        "the store of data folder `{}` went back: {}; a log was lost or damaged, or an older copy \
         took the place of a database; restore what is missing or a backup, or accept the loss by \
         `waypost up --after-loss`",
        .folder.display(), joined(.losses)
    )]
    WentBack { folder: PathBuf, losses: Vec<StoreLoss> },
    /// A newer release wrote it.
    #[error(
        "database `{}` has schema {found} and this release knows {known}; run the newer release",
        .path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// The newest schema in it.
        found: i64,
        /// The newest schema that this release knows.
        known: i64,
    },
    /// A migration that was applied is not the one that this release has.
    #[error(
        "database `{}` was made with another migration {version} (`{name}`) than this release has; \
         run the release that made it",
        .path.display()
    )]
    Changed {
        /// The database.
        path: PathBuf,
        /// The migration's number.
        version: i64,
        name: String,
    },
    #[error("database `{}` cannot be opened: the disk is full; make room", .path.display())]
    NoRoom {
        /// The database.
        path: PathBuf,
    },
    /// The file is no database any more.
    #[error(
        "database `{}` is damaged: {why}; restore a backup or move it away",
        .path.display()
    )]
    Damaged {
        /// The database.
        path: PathBuf,
        /// SQLite's message.
        why: String,
    },
    /// SQLite cannot open it, which says nothing of what is in it.
    #[error(
        "database `{}` cannot be opened: {why}; check the disk and the rights of its folder",
        .path.display()
    )]
    Database {
        path: PathBuf,
        /// SQLite's message.
        why: String,
    },
}

fn joined(losses: &[StoreLoss]) -> String {
    let losses: Vec<String> = losses.iter().map(StoreLoss::to_string).collect();
    losses.join("; ")
}

/// The process that holds a data folder, as far as it says so.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holder {
    pub pid: Option<u32>,
    /// Since when, in RFC 3339.
    pub since: Option<String>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "process {pid}")?,
            None => f.write_str("another process")?,
        }
        match &self.since {
            Some(since) => write!(f, " since {since}"),
            None => Ok(()),
        }
    }
}
