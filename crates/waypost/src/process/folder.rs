//! A private temporary folder that is removed on drop.

use crate::exit::{Exit, Failure, Result};
use engine::system::clock::SystemEntropy;
use kernel::contracts::Entropy;
use std::fs::DirBuilder;
use std::path::{Path, PathBuf};

/// What the names of such folders begin with; the process that made one follows.
const NAME: &str = "waypost-";

/// A folder that no one else can read; removed when this is dropped.
#[derive(Debug)]
pub(crate) struct TemporaryFolder {
    path: PathBuf,
}

impl TemporaryFolder {
    /// Makes a new one under the system's folder for such things.
    pub(crate) fn new() -> Result<Self> {
        let all = std::env::temp_dir();
        sweep(&all);
        let name = format!("{NAME}{}-{:032x}", std::process::id(), SystemEntropy.bits());
        let path = all.join(name);
        // Fails when the path exists: a folder that someone else prepared is never used.
        private_folder().create(&path).map_err(|error| {
            let what = format!("cannot make the folder `{}`: {error}", path.display());
            Failure::new(Exit::Failed, "temporary_folder", what)
                .hint("set TMPDIR to a folder that can be written")
        })?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!(folder = %self.path.display(), %error, "temporary folder stays");
        }
    }
}

/// Removes the folders of processes that were killed. What cannot be removed stays: nothing depends
/// on it.
#[cfg(unix)]
fn sweep(all: &Path) {
    for entry in std::fs::read_dir(all).into_iter().flatten().flatten() {
        if is_left(&entry) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether this is a folder of ours whose process is gone.
#[cfg(unix)]
fn is_left(entry: &std::fs::DirEntry) -> bool {
    use rustix::process::{Pid, geteuid, test_kill_process};
    use std::os::unix::fs::MetadataExt;
    let name = entry.file_name();
    let name = name.to_str().and_then(|name| name.strip_prefix(NAME));
    let owner = name.and_then(|rest| rest.split_once('-')).and_then(|(pid, _)| pid.parse().ok());
    let Some(owner) = owner.and_then(Pid::from_raw) else { return false };
    // Of the entry itself, not of what a link leads to.
    let is_ours = |about: std::fs::Metadata| about.is_dir() && about.uid() == geteuid().as_raw();
    entry.metadata().is_ok_and(is_ours) && test_kill_process(owner) == Err(rustix::io::Errno::SRCH)
}

/// Other systems have no such call.
#[cfg(not(unix))]
fn sweep(_: &Path) {}

#[cfg(unix)]
fn private_folder() -> DirBuilder {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

#[cfg(not(unix))]
fn private_folder() -> DirBuilder {
    DirBuilder::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_temporary_folder_is_private_and_removed_on_drop() {
        use std::os::unix::fs::PermissionsExt;
        let folder = TemporaryFolder::new().unwrap();
        let path = folder.path().to_path_buf();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        std::fs::write(path.join("file"), "x").unwrap();
        drop(folder);
        assert!(!path.exists());
    }

    #[cfg(unix)]
    #[test]
    fn the_folders_of_killed_processes_are_removed() {
        let all = tempfile::tempdir().unwrap();
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let named = |owner: u32| all.path().join(format!("{NAME}{owner}-x"));
        let others = [named(std::process::id()), all.path().join("waypost-old")];
        let left = named(gone.id());
        for folder in others.iter().chain([&left]) {
            std::fs::create_dir_all(folder.join("data")).unwrap();
        }
        sweep(all.path());
        assert!(!left.exists(), "{}", left.display());
        assert!(others.iter().all(|folder| folder.exists()), "they are no one's to remove");
    }
}
