//! How far a database had come, in a small file beside it. SQLite takes a log that is gone or
//! damaged for one that ended early: only a second file says that more was acknowledged.

use crate::files::{found, private_file};
use crate::locks::held;
use crate::sqlite::database::Database;
use kernel::contracts::StorePosition;
use kernel::values::ids::ContentHash;
use rusqlite::Connection;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// How often it is written at most: what was acknowledged since may be lost unnoticed.
const EVERY: Duration = Duration::from_secs(1);

/// A database whose log is lost may have no tables at all.
const HAS_TABLE: &str = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?1)";

const REACHED: &str = "SELECT \
     coalesce((SELECT value FROM meta WHERE name = 'epoch'), 0), \
     coalesce((SELECT value FROM meta WHERE name = 'changes'), 0)";

/// `sqlite_sequence` keeps the highest number that a row of the journal ever had. A database
/// without a journal may not have this table.
const FEED: &str = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'journal'), 0)";

const CHANGED: &str = "INSERT INTO meta (name, value) VALUES ('changes', 1) \
     ON CONFLICT (name) DO UPDATE SET value = value + 1";

/// Counts a change that is not in the feed, in the transaction that makes it.
pub(crate) fn changed(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached(CHANGED)?.execute(())?;
    Ok(())
}

/// How far a database has come. What a reader sees of one is synced.
pub(crate) fn reached(connection: &Connection) -> rusqlite::Result<StorePosition> {
    let has = |table: &str| connection.query_row(HAS_TABLE, [table], |row| row.get::<_, bool>(0));
    if !has("meta")? {
        return Ok(StorePosition::default());
    }
    let feed = match has("sqlite_sequence")? {
        true => connection.prepare_cached(FEED)?.query_row((), |row| row.get::<_, i64>(0))?,
        false => 0,
    };
    connection.prepare_cached(REACHED)?.query_row((), |row| {
        Ok(StorePosition {
            opened: row.get::<_, i64>(0)?.unsigned_abs(),
            feed: feed.unsigned_abs(),
            changes: row.get::<_, i64>(1)?.unsigned_abs(),
        })
    })
}

/// How far the folder says that this database had come. A new folder and a restored one do not say
/// it, and what a power cut left of the file says nothing.
pub(crate) fn read(folder: &Path, database: &Database) -> io::Result<Option<StorePosition>> {
    let file = folder.join(database.position);
    let Some(bytes) = found(fs::read(&file))? else { return Ok(None) };
    let position = parsed(&String::from_utf8_lossy(&bytes));
    if position.is_none() {
        tracing::warn!(file = %file.display(), "torn: this start does not notice lost writes");
    }
    Ok(position)
}

/// The file of an open database.
pub(crate) struct PositionFile {
    folder: PathBuf,
    database: &'static Database,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    written: Option<StorePosition>,
    due: Option<Duration>,
    is_failing: bool,
}

impl PositionFile {
    /// The file in this folder. Whatever is in it is replaced by the first write.
    pub(crate) fn new(folder: &Path, database: &'static Database) -> Self {
        Self { folder: folder.to_owned(), database, last: Mutex::default() }
    }

    /// Whether enough time has passed since this was last true.
    pub(crate) fn is_due(&self, now: Duration) -> bool {
        let mut last = held(&self.last);
        let is_due = last.due.is_none_or(|due| now.saturating_sub(due) >= EVERY);
        if is_due {
            last.due = Some(now);
        }
        is_due
    }

    /// Writes how far the database has come, unless that is there already. It is not synced: an
    /// older file, or none, only notices less.
    pub(crate) fn write(&self, connection: &Connection) {
        let reached = match reached(connection) {
            Ok(reached) => reached,
            Err(error) => {
                let database = self.database.file;
                tracing::warn!(database, %error, "how far it has come could not be read");
                return;
            }
        };
        let mut last = held(&self.last);
        if last.written.is_some_and(|written| !written.is_behind(reached)) {
            return;
        }
        match self.replace(reached) {
            Ok(()) => (last.written, last.is_failing) = (Some(reached), false),
            // Told once: a disk that is full stays so for a while.
            Err(error) => {
                if !last.is_failing {
                    let file = self.folder.join(self.database.position);
                    tracing::warn!(file = %file.display(), %error, "it cannot be written");
                }
                last.is_failing = true;
            }
        }
    }

    /// One file takes the place of the other: whoever reads sees one of them.
    fn replace(&self, position: StorePosition) -> io::Result<()> {
        let next = self.folder.join(self.database.next_position());
        found(fs::remove_file(&next))?;
        private_file(&next)?.write_all(told(position).as_bytes())?;
        fs::rename(&next, self.folder.join(self.database.position))
    }
}

/// Removes the file: nothing is expected of this database any more.
pub(crate) fn forget(folder: &Path, database: &Database) -> io::Result<()> {
    found(fs::remove_file(folder.join(database.position))).map(|_| ())
}

fn told(StorePosition { opened, feed, changes }: StorePosition) -> String {
    let text = format!("opened {opened}\nfeed {feed}\nchanges {changes}\n");
    let sum = ContentHash::of(text.as_bytes());
    format!("{text}sum {sum}\n")
}

/// Parses a position; `None` if the text is incomplete.
fn parsed(text: &str) -> Option<StorePosition> {
    let number = |word: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(word))?;
        line.trim().parse::<u64>().ok()
    };
    let opened = number("opened ")?;
    let feed = number("feed ")?;
    let changes = number("changes ")?;
    let position = StorePosition { opened, feed, changes };
    (told(position) == text).then_some(position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::MAIN;

    const POINT: StorePosition = StorePosition { opened: 3, feed: 120, changes: 7 };

    #[test]
    fn a_torn_position_file_is_ignored() {
        let text = told(POINT);
        assert_eq!(parsed(&text), Some(POINT));
        for end in 0..text.len() {
            assert_eq!(parsed(&text[..end]), None, "{end} bytes of it");
        }
        assert_eq!(parsed(&text.replace("120", "121")), None);
        assert_eq!(parsed(&"\0".repeat(text.len())), None);
    }

    #[test]
    fn a_position_is_behind_if_any_component_is_smaller() {
        let ahead = StorePosition { feed: 121, ..POINT };
        assert!(POINT.is_behind(ahead) && !ahead.is_behind(POINT) && !POINT.is_behind(POINT));
        let mixed = StorePosition { changes: 6, ..ahead };
        assert!(mixed.is_behind(POINT) && POINT.is_behind(mixed));
    }

    #[test]
    fn a_position_is_written_at_most_once_a_second() {
        let folder = tempfile::tempdir().unwrap();
        let file = PositionFile::new(folder.path(), &MAIN);
        let due = [0, 400, 1_000, 1_900, 2_000].map(|ms| file.is_due(Duration::from_millis(ms)));
        assert_eq!(due, [true, false, true, false, true]);
        assert_eq!(read(folder.path(), &MAIN).unwrap(), None);
        file.replace(POINT).unwrap();
        assert_eq!(read(folder.path(), &MAIN).unwrap(), Some(POINT));
        forget(folder.path(), &MAIN).unwrap();
        assert_eq!(read(folder.path(), &MAIN).unwrap(), None);
    }
}
