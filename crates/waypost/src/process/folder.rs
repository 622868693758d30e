//! A private temporary folder that goes with its owner.

use crate::exit::{Exit, Failure, Result};
use engine::system::clock::SystemEntropy;
use kernel::contracts::Entropy;
use std::fs::DirBuilder;
use std::path::{Path, PathBuf};

/// A folder that no one else can read; removed when this is dropped.
#[derive(Debug)]
pub(crate) struct TemporaryFolder {
    path: PathBuf,
}

impl TemporaryFolder {
    /// Makes a new one under the system's folder for such things.
    pub(crate) fn new() -> Result<Self> {
        let name = format!("waypost-{:032x}", SystemEntropy.bits());
        let path = std::env::temp_dir().join(name);
        // Fails when the path exists: a folder that someone else prepared is never used.
        private_folder().create(&path).map_err(|error| {
            let what = format!("cannot make the folder `{}`: {error}", path.display());
            Failure::new(Exit::Failed, "temporary_folder", what)
                .hint("set TMPDIR to a folder that can be written")
        })?;
        Ok(Self { path })
    }

    /// Where it is.
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
    fn a_folder_is_private_and_goes_with_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let folder = TemporaryFolder::new().unwrap();
        let path = folder.path().to_path_buf();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        std::fs::write(path.join("file"), "x").unwrap();
        drop(folder);
        assert!(!path.exists());
    }
}
