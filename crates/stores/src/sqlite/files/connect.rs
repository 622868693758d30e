//! Connections and their settings. Durability is decided here and nowhere else.

use crate::opening::OpenError;
use crate::sqlite::error::{is_damaged, is_full};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// Every commit waits for the disk. Anything less loses acknowledged commits in a power cut.
const SYNCHRONOUS: &str = "FULL";
/// Cache of the writer, in KiB.
const WRITER_CACHE_KIB: u32 = 8_000;
/// Cache of each reader, in KiB.
const READER_CACHE_KIB: u32 = 2_000;
/// A log that grew past this under long reads is cut back.
const LOG_BYTES_MAX: u32 = 64 * 1024 * 1024;
/// How long a connection waits for a backup or a shell that has the database locked.
const BUSY_TIMEOUT_MS: u32 = 5_000;
/// More than there are statements in this crate.
const STATEMENTS_MAX: usize = 96;

/// The writer's connection; makes the database if there is none.
pub(crate) fn writer(path: &Path, vfs: Option<&str>) -> Result<Connection, OpenError> {
    let unusable = |error: rusqlite::Error| refused(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = connect(path, flags, vfs).map_err(unusable)?;
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
        .map_err(unusable)?;
    if mode != "wal" {
        let why = format!("journal mode is `{mode}`; the folder must lie on a local disk");
        return Err(OpenError::Database { path: path.to_owned(), why });
    }
    // `fullfsync` matters on macOS only, where a plain sync stops at the disk's cache. Checkpoints
    // are the writer's own: SQLite's would be tried again after a failed sync, and tell no one.
    let settings = format!(
        "PRAGMA synchronous = {SYNCHRONOUS};
         PRAGMA fullfsync = ON;
         PRAGMA checkpoint_fullfsync = ON;
         PRAGMA foreign_keys = ON;
         PRAGMA wal_autocheckpoint = 0;
         PRAGMA journal_size_limit = {LOG_BYTES_MAX};
         PRAGMA cache_size = -{WRITER_CACHE_KIB};"
    );
    connection.execute_batch(&settings).map_err(unusable)?;
    Ok(connection)
}

/// A reader's connection, to a database that the writer made ready.
pub(crate) fn reader(path: &Path, vfs: Option<&str>) -> Result<Connection, OpenError> {
    let unusable = |error: rusqlite::Error| refused(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = connect(path, flags, vfs).map_err(unusable)?;
    let settings = format!("PRAGMA cache_size = -{READER_CACHE_KIB};");
    connection.execute_batch(&settings).map_err(unusable)?;
    Ok(connection)
}

/// A connection to a database that is there, for copying or checking it. It may write, though
/// no one writes by it: one that may only read leaves the files of the log behind.
pub(crate) fn existing(path: &Path, vfs: Option<&str>) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    connect(path, flags, vfs)
}

fn connect(path: &Path, flags: OpenFlags, vfs: Option<&str>) -> rusqlite::Result<Connection> {
    let connection = match vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs)?,
        None => Connection::open_with_flags(path, flags)?,
    };
    // Sorts stay in memory, and no page is mapped: an IO error must be an error, not a signal.
    let settings = format!(
        "PRAGMA busy_timeout = {BUSY_TIMEOUT_MS};
         PRAGMA temp_store = MEMORY;
         PRAGMA mmap_size = 0;"
    );
    connection.execute_batch(&settings)?;
    // Plans do not depend on what is bound. Otherwise a cached statement that looks for a value, or
    // has a limit, is compiled again each time: that takes longer than to run it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
}

/// SQLite cannot open it. Only what is damaged is worth a backup: no one shall move a sound
/// database away because a disk is full.
pub(crate) fn refused(path: &Path, error: &rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    let why = error.to_string();
    if is_full(error) {
        OpenError::NoRoom { path }
    } else if is_damaged(error) {
        OpenError::Damaged { path, why }
    } else {
        OpenError::Database { path, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::{StatementStatus, ffi, params};

    #[test]
    fn only_a_damaged_database_suggests_a_restore() {
        let told = |code| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            refused(Path::new("waypost.db"), &error).to_string()
        };
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_SHMSIZE] {
            assert!(told(code).ends_with("cannot be opened: the disk is full; make room"));
        }
        for code in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB] {
            assert!(told(code).ends_with("; restore a backup or move it away"));
        }
        for code in [ffi::SQLITE_IOERR, ffi::SQLITE_CANTOPEN, ffi::SQLITE_READONLY] {
            assert!(told(code).ends_with("; check the disk and the rights of its folder"));
        }
    }

    #[test]
    fn a_statement_is_compiled_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("waypost.db");
        let writer = writer(&path, None).unwrap();
        let table = "CREATE TABLE keys (realm TEXT, name TEXT); \
             CREATE INDEX keys_by_name ON keys (name);";
        writer.execute_batch(table).unwrap();
        let reader = reader(&path, None).unwrap();
        let sql = "SELECT 1 FROM keys WHERE realm = ?1 AND name = ?2 LIMIT ?3";
        for connection in [&writer, &reader] {
            for limit in [1, 50, 7] {
                let mut statement = connection.prepare_cached(sql).unwrap();
                assert!(!statement.exists(params!["default", "a", limit]).unwrap());
            }
            let statement = connection.prepare_cached(sql).unwrap();
            assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
        }
    }
}
