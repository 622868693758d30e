//! Backups of a server's data folder: what of it belongs into one, and what commands need that work
//! on a folder that no server has open.

use crate::secrets::secret::SECRET_FILE;
use crate::secrets::vault;
use a2a::CARD_KEYS_FILE;
use edge::backup::{FolderBackup, answer};
use engine::system::clock::{SystemClock, TokioSpawn};
use kernel::contracts::backup::BackupError;
use std::path::Path;
use std::sync::Arc;
use stores::OpenError;
use wire::rest::BackupAnswer;

/// What the server keeps beside its store.
pub(crate) const BESIDE: &[&str] = &[SECRET_FILE, CARD_KEYS_FILE, vault::FOLDER];

/// Takes a data folder that no server has open, for a backup of it, or says who has it. No one else
/// can use the folder as long as this lives. Call it on a tokio runtime.
pub fn backup_at_rest(data: &Path) -> Result<FolderBackup, OpenError> {
    let spawn = TokioSpawn::new(tokio::runtime::Handle::current());
    let store = stores::backup_at_rest(data, Arc::new(spawn), Arc::new(SystemClock))?;
    Ok(FolderBackup { store, beside: BESIDE })
}

/// Makes a data folder, absent or empty, out of a backup. Blocks until that is done.
pub fn restore(from: &Path, into: &Path) -> Result<BackupAnswer, BackupError> {
    Ok(answer(from, stores::restore(from, into, BESIDE)?))
}
