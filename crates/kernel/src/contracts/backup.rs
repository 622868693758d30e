//! Backups of a data folder: the contract of who makes them, and what one says of itself.

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The file that makes a folder a backup. It is written last, so an unfinished one has none.
pub const MANIFEST_FILE: &str = "backup.json";

/// How the folder of a backup is laid out.
pub const FORMAT: u32 = 1;

/// Makes backups of all that a server keeps, while it keeps on writing.
pub trait Backup: Send + Sync {
    /// Writes a backup into this folder, which must be absent or empty, with these files and
    /// folders that lie beside the store. All that was durable when this was called is inside.
    /// There is one backup at a time. Dropping the future gives it up.
    fn backup(
        &self,
        into: PathBuf,
        beside: &'static [&'static str],
    ) -> BoxFuture<'static, Result<Manifest, BackupError>>;
}

/// What a backup says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// How the folder is laid out.
    pub format: u32,
    /// The release that wrote it.
    pub waypost: String,
    /// When it began, in RFC 3339: all that was acknowledged before is inside.
    pub taken_at: String,
    /// How many files it has, this one not counted.
    pub files: u64,
    /// How many bytes they have together.
    pub bytes: u64,
    /// Files beside the store that are included.
    pub beside: Vec<String>,
    /// What lay in the data folder and is not inside, because other programs write it.
    pub left_out: Vec<String>,
}

/// Why there is no backup, or why one cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BackupError {
    /// The folder to write into cannot be used.
    #[error("{0}")]
    Folder(String),
    /// Another one is being made.
    #[error("another backup is under way; wait until it has ended")]
    UnderWay,
    /// There is no room for it.
    #[error("there is no room to write `{}`; make room, or choose another disk", .0.display())]
    Full(PathBuf),
    /// The source is damaged, or is not a backup.
    #[error("{0}")]
    Unsound(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}
