//! Bodies of `/api/v1/backup`, by which a running server copies its data folder.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the backup is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BackupBody {
    /// A folder of the server's machine, as an absolute path: absent or empty, and its parent is
    /// there.
    pub dir: String,
}

/// What a backup holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupAnswer {
    /// Its folder.
    pub dir: String,
    /// When it began: all that was acknowledged before is inside.
    #[schemars(extend("format" = "date-time"))]
    pub taken_at: String,
    /// How many files it has, beside the one that says so.
    pub files: u64,
    /// How many bytes they have.
    pub bytes: u64,
    /// What is inside beside the database and the blobs: `secret.key`, `vault`.
    pub beside: Vec<String>,
    /// What lay in the data folder and is not inside, because other programs write it.
    pub left_out: Vec<String>,
}
