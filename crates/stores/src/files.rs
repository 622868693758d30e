//! Folders that survive a power cut: a new name is durable only once its folder is synced.

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Makes a folder and what is missing above it, each durable in its parent.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = parent_of(folder);
    make_folder(parent)?;
    make_one(folder)?;
    sync_folder(parent)
}

/// Makes one folder, unless it is there. Nobody else may look into it: a journal holds what people
/// said.
pub(crate) fn make_one(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Makes the names in a folder durable. Only Unix has, and needs, a sync of folders.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// The folder above; of a bare name that is the current one.
pub(crate) fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Whether an error says that there is no room left.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_folder_that_we_make_is_ours_alone() {
        use std::fs::{Permissions, metadata, set_permissions};
        use std::os::unix::fs::PermissionsExt;
        let there = tempfile::tempdir().unwrap();
        let mode = |path: &Path| metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = there.path().join("a/b");
        make_folder(&folder).unwrap();
        assert_eq!((mode(&folder), mode(folder.parent().unwrap())), (0o700, 0o700));
        // One that somebody made keeps the rights that it was given.
        set_permissions(&folder, Permissions::from_mode(0o750)).unwrap();
        make_folder(&folder).unwrap();
        assert_eq!(mode(&folder), 0o750);
    }
}
