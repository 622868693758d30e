//! Copies files and folders and counts them. Nothing is synced here: that is done once at the end.

use super::failed;
use crate::blobs::{self, is_hash};
use crate::files::{found, make_one, private_file};
use crate::sqlite;
use kernel::contracts::StoreError;
use kernel::contracts::backup::BackupError;
use kernel::values::ids::ContentHash;
use std::fs::{self, DirEntry, File};
use std::io::{self, Write};
use std::path::Path;

/// How the names of files end that are still being written under another name.
const DRAFTS: [&str; 2] = [".draft", ".new"];

/// What the files of a folder are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Files {
    /// Blobs, whose names are the hashes of what is in them.
    Blobs,
    /// Anything else.
    Plain,
}

/// One copy on its way.
pub(super) struct Copying<'a> {
    is_wanted: &'a dyn Fn() -> bool,
    /// How many files were copied.
    pub(super) files: u64,
    /// How many bytes they have.
    pub(super) bytes: u64,
}

impl<'a> Copying<'a> {
    /// A copy that ends early when it is not wanted any more.
    pub(super) fn new(is_wanted: &'a dyn Fn() -> bool) -> Self {
        Self { is_wanted, files: 0, bytes: 0 }
    }

    /// Copies a database that others may have open.
    pub(super) fn database(
        &mut self,
        from: &Path,
        vfs: Option<&str>,
        to: &Path,
    ) -> Result<(), BackupError> {
        // Made here, so that no one else may read it at any time.
        private_file(to).map_err(|error| failed(to, &error))?;
        let copied = sqlite::copy(from, vfs, to, self.is_wanted);
        copied.map_err(|trouble| match trouble.into_error() {
            StoreError::Full => BackupError::Full(to.to_owned()),
            StoreError::Unreadable(why) => BackupError::Unsound(why),
            StoreError::Closed => given_up(),
            other => {
                let from = from.display();
                BackupError::Failed(format!("database `{from}` cannot be copied: {other}"))
            }
        })?;
        let bytes = fs::metadata(to).map_err(|error| failed(to, &error))?.len();
        self.count(bytes);
        Ok(())
    }

    /// Copies the blobs, and what lies beside the store under these names; which of them are there.
    pub(super) fn rest(
        &mut self,
        from: &Path,
        to: &Path,
        beside: &[&str],
    ) -> Result<Vec<String>, BackupError> {
        self.folder(&from.join(blobs::FOLDER), &to.join(blobs::FOLDER), Files::Blobs)?;
        let mut there = Vec::new();
        for name in beside {
            let from = from.join(name);
            let to = to.join(name);
            let what = found(fs::metadata(&from)).map_err(|error| failed(&from, &error))?;
            let is_there = match what {
                Some(what) if what.is_dir() => self.folder(&from, &to, Files::Plain)?,
                Some(_) => self.file(&from, &to)?,
                None => false,
            };
            if is_there {
                there.push((*name).to_owned());
            }
        }
        Ok(there)
    }

    /// Copies a file, unless it is gone; whether it was there.
    pub(super) fn file(&mut self, from: &Path, to: &Path) -> Result<bool, BackupError> {
        self.go_on()?;
        let source = found(File::open(from)).map_err(|error| failed(from, &error))?;
        let Some(mut source) = source else { return Ok(false) };
        let copied = private_file(to).and_then(|mut copy| io::copy(&mut source, &mut copy));
        let bytes = copied.map_err(|error| failed(to, &error))?;
        self.count(bytes);
        Ok(true)
    }

    /// Copies a folder with all that is below it, unless it is gone; whether it was there.
    fn folder(&mut self, from: &Path, to: &Path, files: Files) -> Result<bool, BackupError> {
        let entries = found(fs::read_dir(from)).map_err(|error| failed(from, &error))?;
        let Some(entries) = entries else { return Ok(false) };
        make_one(to).map_err(|error| failed(to, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| failed(from, &error))?;
            self.entry(&entry, to, files)?;
        }
        Ok(true)
    }

    fn entry(&mut self, entry: &DirEntry, to: &Path, files: Files) -> Result<(), BackupError> {
        let path = entry.path();
        let name = entry.file_name();
        let to = to.join(&name);
        let kind = entry.file_type().map_err(|error| failed(&path, &error))?;
        let name = name.to_string_lossy();
        if kind.is_dir() {
            self.folder(&path, &to, files)?;
        } else if files == Files::Blobs {
            let hash = ContentHash::from(&*name);
            if is_hash(&hash) {
                self.blob(&path, &to, &hash)?;
            }
        } else if !DRAFTS.iter().any(|ending| name.ends_with(ending)) {
            self.file(&path, &to)?;
        }
        Ok(())
    }

    /// A blob that is not what its name says is of no use in a restore.
    fn blob(&mut self, from: &Path, to: &Path, hash: &ContentHash) -> Result<(), BackupError> {
        self.go_on()?;
        let bytes = found(fs::read(from)).map_err(|error| failed(from, &error))?;
        let Some(bytes) = bytes else { return Ok(()) };
        if ContentHash::of(&bytes) != *hash {
            let what = format!("blob `{}` is damaged", from.display());
            let advice = "take it from an older backup, or move it away and try again";
            return Err(BackupError::Unsound(format!("{what}; {advice}")));
        }
        let written = private_file(to).and_then(|mut copy| copy.write_all(&bytes));
        written.map_err(|error| failed(to, &error))?;
        self.count(bytes.len() as u64);
        Ok(())
    }

    fn count(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }

    fn go_on(&self) -> Result<(), BackupError> {
        if (self.is_wanted)() { Ok(()) } else { Err(given_up()) }
    }
}

/// No one is there to read this.
fn given_up() -> BackupError {
    BackupError::Failed("the backup was given up".to_owned())
}
