//! Backups of a data folder with what the server keeps in it beside its store.

use kernel::contracts::backup::{Backup, BackupError, Manifest};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::rest::BackupAnswer;

/// Makes backups of one data folder.
pub struct FolderBackup {
    pub store: Arc<dyn Backup>,
    /// The files and folders beside the store that belong into one.
    pub beside: &'static [&'static str],
}

impl FolderBackup {
    /// Writes one into this folder: an absolute path, absent or empty.
    pub async fn write(&self, into: PathBuf) -> Result<BackupAnswer, BackupError> {
        let made = self.store.backup(into.clone(), self.beside).await?;
        Ok(answer(&into, made))
    }
}

/// A backup as clients are told of it.
pub fn answer(dir: &Path, made: Manifest) -> BackupAnswer {
    let Manifest { taken_at, files, bytes, beside, left_out, .. } = made;
    BackupAnswer { dir: dir.display().to_string(), taken_at, files, bytes, beside, left_out }
}
