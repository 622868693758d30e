//! Backups of a data folder.

use serde::{Deserialize, Serialize};

/// `POST /backup`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BackupBody {
    /// The folder to write, on the server's machine: an absolute path, absent or empty.
    pub dir: String,
}

/// What a backup holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupAnswer {
    /// Its folder.
    pub dir: String,
    /// When it began: all that was acknowledged before is inside.
    pub taken_at: String,
    /// How many files it has, beside the one that says so.
    pub files: u64,
    /// How many bytes they have.
    pub bytes: u64,
    /// What is inside beside the database and the blobs: the server's secret, what logins brought.
    pub beside: Vec<String>,
    /// What lay in the data folder and is not inside, because other programs write it.
    pub left_out: Vec<String>,
}
