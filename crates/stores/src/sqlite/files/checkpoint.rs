//! Checkpoints: what the write-ahead log holds goes back into the database. The writer asks for
//! them itself: SQLite's own keep a failed sync to themselves and try it again.

use rusqlite::Connection;

/// From this many pages on a checkpoint is due.
const PAGES_DUE: i64 = 1_000;

/// Whether the log has grown enough. One that cannot be looked at is due too: the checkpoint meets
/// the same error, and that one is judged.
pub(crate) fn is_due(connection: &Connection) -> bool {
    !log_pages(connection, "PRAGMA wal_checkpoint(NOOP)").is_ok_and(|pages| pages < PAGES_DUE)
}

/// Writes back what no reader needs any more. It waits for no one: what is left, or all of it where
/// another process makes one, is for the next checkpoint.
pub(crate) fn passive(connection: &Connection) -> rusqlite::Result<()> {
    log_pages(connection, "PRAGMA wal_checkpoint(PASSIVE)").map(|_pages| ())
}

/// Writes back everything and empties the log, as far as readers let it.
pub(crate) fn truncate(connection: &Connection) -> rusqlite::Result<()> {
    log_pages(connection, "PRAGMA wal_checkpoint(TRUNCATE)").map(|_pages| ())
}

/// How many pages the log holds after this.
fn log_pages(connection: &Connection, checkpoint: &str) -> rusqlite::Result<i64> {
    connection.prepare_cached(checkpoint)?.query_row((), |row| row.get(1))
}
