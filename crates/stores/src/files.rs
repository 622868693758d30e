//! Durable folders: a new name survives a power cut only once its folder is synced.

use std::fs::{self, DirBuilder, File};
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

/// Makes one folder, unless it is there. No one else may look into it: a journal holds what people
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

/// A new file that no one else may read.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes a folder with all that is below it durable; the folder's own name is not.
pub(crate) fn sync_below(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_below(&entry.path())?;
        } else {
            // Some systems sync only what may be written.
            File::options().write(true).open(entry.path())?.sync_all()?;
        }
    }
    sync_folder(folder)
}

/// A folder whose names can be made durable. It is opened before anything in it is changed: where
/// that is refused, because the process has no descriptor left for instance, nothing is half done.
/// Only Unix has, and needs, a sync of folders.
pub(crate) struct Names(Option<File>);

impl Names {
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        cfg!(unix).then(|| File::open(folder)).transpose().map(Self)
    }

    /// Makes them durable. This alone is a failed sync.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), File::sync_all)
    }
}

/// Makes the names in a folder durable, for those to whom both failures are one.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    Names::open(folder)?.sync()
}

/// Maps a missing file to `None`.
pub(crate) fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
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

/// Whether an error says that the process, or the machine, has no descriptor left. The standard
/// library has no kind for it; `ENFILE` and `EMFILE` have these numbers on every Unix.
pub(crate) fn is_starved(error: &io::Error) -> bool {
    cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn created_folders_are_private() {
        use std::fs::{Permissions, metadata, set_permissions};
        use std::os::unix::fs::PermissionsExt;
        let there = tempfile::tempdir().unwrap();
        let mode = |path: &Path| metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = there.path().join("a/b");
        make_folder(&folder).unwrap();
        assert_eq!((mode(&folder), mode(folder.parent().unwrap())), (0o700, 0o700));
        // One that someone made keeps the rights that it was given.
        set_permissions(&folder, Permissions::from_mode(0o750)).unwrap();
        make_folder(&folder).unwrap();
        assert_eq!(mode(&folder), 0o750);
    }
}
