//! Configuration of a sink as plain data. Crate `project` parses it from files.

use kernel::values::secret::Secret;
use std::path::PathBuf;

/// One sink, by its name in its realm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkConfig {
    pub name: String,
    pub kind: SinkKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkKind {
    /// Standard output, one JSON text per line.
    Stdout,
    /// A file that grows, one JSON text per line.
    File { path: PathBuf },
    /// Someone who is posted each event, signed as Standard Webhooks says.
    Webhook {
        /// Where: `http` or `https`.
        url: String,
        /// `whsec_` and base64; several with spaces between them, while one replaces another.
        secret: Secret,
        /// How long an answer may take; 15 seconds where this is none.
        timeout_ms: Option<u64>,
    },
}
