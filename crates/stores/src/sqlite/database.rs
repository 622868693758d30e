//! What the databases of a data folder differ in: the names of their files, and their schema. From
//! the connection to the backup all else is the same for each.

use crate::files::found;
use kernel::values::ids::Millis;
use rusqlite::Connection;
use std::fs;
use std::io;
use std::path::Path;

/// A SQLite database of a data folder. Its first migration makes the table `meta`, as that of
/// `waypost.db` does: the position and the writer's probes are there.
pub(crate) struct Database {
    pub(crate) file: &'static str,
    /// The file that says how far it had come.
    pub(crate) position: &'static str,
    pub(crate) migrations: &'static [Migration],
    /// What an opening does in the transaction of the migrations, once they are applied.
    pub(crate) prepare: fn(&Connection, Millis) -> rusqlite::Result<()>,
    /// Lists the realm, the owner and about how many bytes are stored for them.
    pub(crate) stored_bytes: &'static str,
    /// Whether its reads have a time after which SQLite ends them.
    pub(crate) is_timed: bool,
}

/// Plain SQL, embedded, applied once. One that is there is never changed.
pub(crate) struct Migration {
    pub(crate) version: i64,
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
}

impl Database {
    /// Its write-ahead log.
    pub(crate) fn log(&self) -> String {
        format!("{}-wal", self.file)
    }

    /// The index of its log.
    pub(crate) fn log_index(&self) -> String {
        format!("{}-shm", self.file)
    }

    /// The next version of the position until that has its name.
    pub(crate) fn next_position(&self) -> String {
        format!("{}.new", self.position)
    }

    /// Whether a file of this name belongs to it.
    pub(crate) fn owns(&self, name: &str) -> bool {
        name == self.file
            || name == self.position
            || [self.log(), self.log_index(), self.next_position()].iter().any(|own| own == name)
    }

    /// Whether this folder has it: an empty file is as good as none.
    pub(crate) fn is_in(&self, folder: &Path) -> io::Result<bool> {
        let file = found(fs::metadata(folder.join(self.file)))?;
        Ok(file.is_some_and(|file| file.len() > 0))
    }
}
