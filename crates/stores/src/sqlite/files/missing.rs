//! Detects a data folder without its database. Starting it as a new one would hide the loss and
//! discard the log, which may contain the last writes.

use super::position::{self, POSITION};
use crate::files::found;
use crate::opening::OpenError;
use std::fs;
use std::io;
use std::path::Path;

/// The database's file in its folder.
pub(crate) const DATABASE: &str = "waypost.db";
/// Its write-ahead log, and the log's index.
const LOG: &str = "waypost.db-wal";
const LOG_INDEX: &str = "waypost.db-shm";

/// Files that are created after the database, so that they prove that there was one.
const AFTER_THE_DATABASE: [&str; 4] = [LOG, "blobs", "vault", "secret.key"];

/// Refuses a folder that has lost its database. Where a new one is wanted, it puts aside what would
/// be taken for the new one's log.
pub(crate) fn look(folder: &Path, renew: bool) -> Result<(), OpenError> {
    let unusable = |why| OpenError::Folder { folder: folder.to_owned(), why };
    if has_content(&folder.join(DATABASE)).map_err(unusable)? {
        return Ok(());
    }
    let mut left = Vec::new();
    for name in AFTER_THE_DATABASE {
        if has_content(&folder.join(name)).map_err(unusable)? {
            left.push(format!("`{name}`"));
        }
    }
    // It says no more than the others, and alone it says enough.
    if left.is_empty() && has_content(&folder.join(POSITION)).map_err(unusable)? {
        left.push(format!("`{POSITION}`"));
    }
    if left.is_empty() {
        return Ok(());
    }
    if !renew {
        let folder = folder.to_owned();
        return Err(OpenError::Lost { folder, left: left.join(", ") });
    }
    for name in [LOG, LOG_INDEX] {
        put_aside(folder, name).map_err(unusable)?;
    }
    position::forget(folder).map_err(unusable)?;
    tracing::warn!(folder = %folder.display(), "the data folder gets a new database");
    Ok(())
}

/// Whether there is a file with something in it, or a folder with something in it.
fn has_content(path: &Path) -> io::Result<bool> {
    match found(fs::metadata(path))? {
        Some(there) if there.is_dir() => Ok(fs::read_dir(path)?.next().is_some()),
        Some(there) => Ok(there.len() > 0),
        None => Ok(false),
    }
}

/// Renames a file, if it is there, to the first free name of its kind.
fn put_aside(folder: &Path, name: &str) -> io::Result<()> {
    let path = folder.join(name);
    if !fs::exists(&path)? {
        return Ok(());
    }
    let mut number = 1;
    let mut aside = folder.join(format!("{name}.orphan-{number}"));
    while fs::exists(&aside)? {
        number += 1;
        aside = folder.join(format!("{name}.orphan-{number}"));
    }
    fs::rename(path, aside)
}
