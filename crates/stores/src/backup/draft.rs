//! A folder that is being filled under a temporary name, so that an interrupted one is never taken
//! for complete.

use crate::files::{make_one, parent_of, sync_below, sync_folder};
use kernel::contracts::backup::BackupError;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Suffix of the name of an unfinished folder.
const UNFINISHED: &str = "unfinished";

/// Entries that file systems create themselves.
const NOBODYS: &str = "lost+found";

/// A folder that is being filled. Unless it is finished it goes with this value.
pub(super) struct Draft {
    /// Where it is written: beside the target, or inside where the target is there already. That
    /// one may be the root of a disk, which cannot be replaced.
    folder: PathBuf,
    target: PathBuf,
    is_finished: bool,
}

impl Draft {
    /// Begins to fill this folder, which must be absent or empty, its parent there, and which must
    /// not lie inside `never_in`.
    pub(super) fn begin(target: &Path, never_in: Option<&Path>) -> Result<Self, BackupError> {
        let target = real(target)?;
        if let Some(outer) = never_in.and_then(|outer| fs::canonicalize(outer).ok())
            && target.starts_with(&outer)
        {
            let what = format!("`{}` lies inside `{}`", target.display(), outer.display());
            return Err(BackupError::Folder(format!("{what}; name a folder outside of it")));
        }
        let folder = match is_empty(&target) {
            Ok(true) => target.join(UNFINISHED),
            Ok(false) => {
                let what = format!("`{}` is not empty", target.display());
                return Err(BackupError::Folder(format!("{what}; name a folder that is new")));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => beside(&target),
            Err(error) => return Err(unusable(&target, &error)),
        };
        if folder.exists() {
            let what = format!("`{}` is there: an earlier attempt ended midway", folder.display());
            return Err(BackupError::Folder(format!("{what}; remove it if nothing writes to it")));
        }
        make_one(&folder).map_err(|error| unusable(&folder, &error))?;
        Ok(Self { folder, target, is_finished: false })
    }

    /// Where to write.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes all that was written durable.
    pub(super) fn sync(&self) -> Result<(), BackupError> {
        sync_below(&self.folder).map_err(|error| super::failed(&self.folder, &error))
    }

    /// Gives the folder its own name, once its files are durable. The file `last` is there only if
    /// all else is.
    pub(super) fn finish(mut self, last: &str) -> Result<(), BackupError> {
        let finished = sync_folder(&self.folder).and_then(|()| self.take_name(last));
        finished.map_err(|error| super::failed(&self.target, &error))?;
        self.is_finished = true;
        Ok(())
    }

    fn take_name(&self, last: &str) -> io::Result<()> {
        if self.folder.parent() != Some(self.target.as_path()) {
            fs::rename(&self.folder, &self.target)?;
            return sync_folder(parent_of(&self.target));
        }
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            if name != last {
                fs::rename(self.folder.join(&name), self.target.join(&name))?;
            }
        }
        sync_folder(&self.target)?;
        fs::rename(self.folder.join(last), self.target.join(last))?;
        fs::remove_dir(&self.folder)?;
        sync_folder(&self.target)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_finished {
            // One that stays is seen by its name, and the next command reports it.
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// The path without links and dots, as far as it is there.
fn real(target: &Path) -> Result<PathBuf, BackupError> {
    if let Ok(real) = fs::canonicalize(target) {
        return Ok(real);
    }
    let parent = parent_of(target);
    let Some(name) = target.file_name() else {
        let what = format!("`{}` names no folder", target.display());
        return Err(BackupError::Folder(format!("{what}; end the path with a name")));
    };
    match fs::canonicalize(parent) {
        Ok(parent) if parent.is_dir() => Ok(parent.join(name)),
        Ok(parent) => {
            let what = format!("`{}` is not a folder", parent.display());
            Err(BackupError::Folder(format!("{what}; name a place below one")))
        }
        Err(error) => Err(unusable(parent, &error)),
    }
}

fn is_empty(folder: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        if entry?.file_name() != NOBODYS {
            return Ok(false);
        }
    }
    Ok(true)
}

fn beside(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_os_string();
    name.push(".");
    name.push(UNFINISHED);
    target.with_file_name(name)
}

fn unusable(folder: &Path, error: &io::Error) -> BackupError {
    let what = format!("`{}` cannot be used: {error}", folder.display());
    BackupError::Folder(format!("{what}; check the path and its rights"))
}
