//! Backups of a data folder, and how one becomes a data folder again. First the main database is
//! copied as of one moment, then each of the others as of a later one: what a run in the copy wrote
//! to them is in theirs. Then the blobs, which never change: so every blob that a copy names is
//! there to be copied. What lies beside the store follows, and last a file that says what is inside.

mod draft;
mod copying;

use crate::blobs::{self, Sweeping};
use crate::files::{found, is_full, private_file};
use crate::opening::Parts;
use crate::sqlite::{self, DATABASES, FolderLock, MAIN};
use copying::Copying;
use draft::Draft;
use futures::future::{BoxFuture, ready};
use kernel::contracts::backup::{Backup, BackupError, FORMAT, MANIFEST_FILE, Manifest};
use kernel::contracts::{Clock, Spawn};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{Mutex, oneshot};

/// What a data folder has that is of no use in another: it says who has the folder open. Logs of
/// databases are not copied either, for they are in the copies, nor are positions: those are of the
/// originals, which go on.
const NOT_COPIED: [&str; 3] = ["lock", "address", "working"];

/// Makes backups of one data folder.
pub(crate) struct FolderBackup {
    source: Source,
    spawn: Arc<dyn Spawn>,
    sweeping: Sweeping,
    under_way: Arc<Mutex<()>>,
    /// Keeps others out where no store is open that does.
    _lock: Option<FolderLock>,
}

#[derive(Clone)]
struct Source {
    folder: PathBuf,
    vfs: Option<String>,
    clock: Arc<dyn Clock>,
}

impl FolderBackup {
    /// Of a folder whose store is not open; others are kept out as long as this lives.
    pub(crate) fn at_rest(
        folder: &Path,
        lock: FolderLock,
        spawn: Arc<dyn Spawn>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let source = Source { folder: folder.to_owned(), vfs: None, clock };
        let sweeping = Sweeping::default();
        let under_way = Arc::default();
        Self { source, spawn, sweeping, under_way, _lock: Some(lock) }
    }

    /// Of a folder whose store is open with these parts, and whose blobs are swept.
    pub(crate) fn of_open(folder: &Path, parts: &Parts, sweeping: Sweeping) -> Self {
        let vfs = parts.vfs.clone();
        let clock = parts.clock.clone();
        let source = Source { folder: folder.to_owned(), vfs, clock };
        let spawn = parts.spawn.clone();
        let under_way = Arc::default();
        Self { source, spawn, sweeping, under_way, _lock: None }
    }
}

impl Backup for FolderBackup {
    fn backup(
        &self,
        into: PathBuf,
        beside: &'static [&'static str],
    ) -> BoxFuture<'static, Result<Manifest, BackupError>> {
        let Ok(turn) = self.under_way.clone().try_lock_owned() else {
            return Box::pin(ready(Err(BackupError::UnderWay)));
        };
        let source = self.source.clone();
        let spawn = self.spawn.clone();
        let sweeping = self.sweeping.clone();
        Box::pin(async move {
            let kept = sweeping.lock_owned().await;
            let (answer, made) = oneshot::channel();
            let work = async move {
                let is_wanted = || !answer.is_closed();
                let written = source.write(&into, beside, &is_wanted);
                drop((kept, turn));
                let _ = answer.send(written);
            };
            spawn.thread("store-backup", Box::pin(work));
            let ended = || Err(BackupError::Failed("the backup ended midway".to_owned()));
            made.await.unwrap_or_else(|_| ended())
        })
    }
}

impl Source {
    fn write(
        &self,
        into: &Path,
        beside: &[&str],
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Manifest, BackupError> {
        if !into.is_absolute() {
            let what = format!("`{}` is not an absolute path", into.display());
            return Err(BackupError::Folder(format!("{what}; begin it at the root")));
        }
        let taken_at = self.clock.now().rfc3339();
        let draft = Draft::begin(into, Some(&self.folder))?;
        let copy = draft.folder();
        let mut copying = Copying::new(is_wanted);
        for database in DATABASES {
            let from = self.folder.join(database.file);
            let is_there = database.is_in(&self.folder).map_err(|error| failed(&from, &error))?;
            // Without the main one there is no backup.
            if is_there || database.file == MAIN.file {
                copying.database(&from, self.vfs.as_deref(), &copy.join(database.file))?;
            }
        }
        let inside = copying.rest(&self.folder, copy, beside)?;
        let files = copying.files;
        let bytes = copying.bytes;
        let manifest = Manifest {
            format: FORMAT,
            waypost: env!("CARGO_PKG_VERSION").to_owned(),
            taken_at,
            files,
            bytes,
            beside: inside,
            left_out: left_out(&self.folder, beside)?,
        };
        draft.sync()?;
        write_manifest(copy, &manifest)?;
        draft.finish(MANIFEST_FILE)?;
        Ok(manifest)
    }
}

/// Makes a data folder out of a backup: one that is absent or empty. The backup is checked while it
/// is copied, and it becomes a data folder only if it is whole. Blocks until that is done.
pub fn restore(from: &Path, into: &Path, beside: &[&str]) -> Result<Manifest, BackupError> {
    let manifest = read_manifest(from)?;
    let draft = Draft::begin(into, Some(from))?;
    let data = draft.folder();
    let is_wanted = || true;
    let mut copying = Copying::new(&is_wanted);
    for database in DATABASES {
        copying.file(&from.join(database.file), &data.join(database.file))?;
    }
    copying.rest(from, data, beside)?;
    if (copying.files, copying.bytes) != (manifest.files, manifest.bytes) {
        return Err(BackupError::Unsound(format!(
            "backup `{}` has {} files of {} bytes, and had {} of {} when it was made; restore \
             another one",
            from.display(),
            copying.files,
            copying.bytes,
            manifest.files,
            manifest.bytes
        )));
    }
    for database in DATABASES {
        let copy = data.join(database.file);
        if copy.is_file()
            && let Some(damage) = sqlite::damage(&copy)
        {
            return Err(BackupError::Unsound(format!(
                "database `{}` of backup `{}` is damaged: {damage}; restore another one",
                database.file,
                from.display()
            )));
        }
    }
    draft.sync()?;
    draft.finish(MAIN.file)?;
    Ok(manifest)
}

/// What the data folder holds beside the store and its companions.
fn left_out(folder: &Path, beside: &[&str]) -> Result<Vec<String>, BackupError> {
    let unread = |error: io::Error| failed(folder, &error);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(unread)? {
        let name = entry.map_err(unread)?.file_name().to_string_lossy().into_owned();
        let is_known = DATABASES.iter().any(|database| database.owns(&name))
            || name == blobs::FOLDER
            || NOT_COPIED.contains(&name.as_str())
            || beside.contains(&name.as_str());
        if !is_known {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn write_manifest(folder: &Path, manifest: &Manifest) -> Result<(), BackupError> {
    let path = folder.join(MANIFEST_FILE);
    let written = serde_json::to_vec_pretty(manifest).map_err(io::Error::other).and_then(|text| {
        let mut file = private_file(&path)?;
        file.write_all(&text)?;
        file.write_all(b"\n")?;
        file.sync_all()
    });
    written.map_err(|error| failed(&path, &error))
}

/// The manifest of a backup. A folder without one was never finished, or is something else.
fn read_manifest(folder: &Path) -> Result<Manifest, BackupError> {
    let path = folder.join(MANIFEST_FILE);
    let unsound = |why: String| BackupError::Unsound(format!("`{}` {why}", folder.display()));
    let Some(text) = found(fs::read(&path)).map_err(|error| failed(&path, &error))? else {
        let why = format!("is no backup, or an unfinished one: it has no `{MANIFEST_FILE}`");
        return Err(unsound(format!("{why}; name the folder that `waypost backup` wrote")));
    };
    let manifest: Manifest = serde_json::from_slice(&text).map_err(|error| {
        unsound(format!("has a `{MANIFEST_FILE}` that cannot be read: {error}; restore another"))
    })?;
    if manifest.format != FORMAT {
        let why = format!("is a backup of format {}, and this release knows", manifest.format);
        let release = &manifest.waypost;
        return Err(unsound(format!("{why} {FORMAT}; run release {release} to restore it")));
    }
    Ok(manifest)
}

/// Something could not be read or written.
fn failed(path: &Path, error: &io::Error) -> BackupError {
    if is_full(error) {
        return BackupError::Full(path.to_owned());
    }
    let what = format!("`{}` cannot be read or written: {error}", path.display());
    BackupError::Failed(format!("{what}; check the disk and the rights"))
}
