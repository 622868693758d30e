//! Detects a data folder without a database that it had, or with one that lost acknowledged writes.
//! Starting it as a new one would hide the loss and discard the log, which may contain the last
//! writes.

use super::connect;
use super::position;
use crate::files::found;
use crate::opening::OpenError;
use crate::sqlite::database::Database;
use crate::sqlite::{DATABASES, MAIN};
use kernel::contracts::{StoreLoss, StorePosition};
use rusqlite::config::DbConfig;
use std::fs;
use std::io;
use std::path::Path;

/// Files that are created after the main database, so that they prove that there was one. So do its
/// log and every other database.
const AFTER_THE_DATABASE: [&str; 3] = ["blobs", "vault", "secret.key"];

/// Refuses a folder that has lost its main database. Where a new one is wanted, it puts aside what
/// would be taken for the new one's log.
pub(crate) fn look(folder: &Path, renew: bool) -> Result<(), OpenError> {
    let unusable = |why| OpenError::Folder { folder: folder.to_owned(), why };
    if MAIN.is_in(folder).map_err(unusable)? {
        return Ok(());
    }
    let log = MAIN.log();
    let beside = DATABASES.iter().map(|database| database.file).filter(|file| *file != MAIN.file);
    let mut left = Vec::new();
    for name in [&*log].into_iter().chain(beside).chain(AFTER_THE_DATABASE) {
        if has_content(&folder.join(name)).map_err(unusable)? {
            left.push(format!("`{name}`"));
        }
    }
    // It says no more than the others, and alone it says enough.
    if left.is_empty() && has_content(&folder.join(MAIN.position)).map_err(unusable)? {
        left.push(format!("`{}`", MAIN.position));
    }
    if left.is_empty() {
        return Ok(());
    }
    if !renew {
        let folder = folder.to_owned();
        return Err(OpenError::Lost { folder, left: left.join(", ") });
    }
    for database in DATABASES {
        if !database.is_in(folder).map_err(unusable)? {
            accept(folder, database).map_err(unusable)?;
        }
    }
    tracing::warn!(folder = %folder.display(), "the data folder gets a new database");
    Ok(())
}

/// The writes that a database has lost, compared with the position in its folder, and read without
/// changing it. One that is not there has lost all of them. No one may have it open.
pub(crate) fn loss(
    folder: &Path,
    database: &Database,
    vfs: Option<&str>,
) -> Result<Option<StoreLoss>, OpenError> {
    let unusable = |why| OpenError::Folder { folder: folder.to_owned(), why };
    let Some(expected) = position::read(folder, database).map_err(unusable)? else {
        return Ok(None);
    };
    let mut found = StorePosition::default();
    if database.is_in(folder).map_err(unusable)? {
        let path = folder.join(database.file);
        let unread = |error: rusqlite::Error| connect::refused(&path, &error);
        let connection = connect::existing(&path, vfs).map_err(unread)?;
        // Something may still be read out of a damaged log.
        let stays = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        stays.map_err(unread)?;
        found = position::reached(&connection).map_err(unread)?;
    }
    let database = database.file;
    Ok(found.is_behind(expected).then_some(StoreLoss { database, expected, found }))
}

/// Expects nothing of a database any more. Where it is gone, puts aside what would be taken for the
/// log of a new one.
pub(crate) fn accept(folder: &Path, database: &Database) -> io::Result<()> {
    if !database.is_in(folder)? {
        put_aside(folder, &database.log())?;
        put_aside(folder, &database.log_index())?;
    }
    position::forget(folder, database)
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
