//! Files that are replaced as a whole: written beside the old one under another name, synced, and
//! renamed over it. A crash leaves the old file or the new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// How the name of a file ends that is not whole yet.
pub const UNFINISHED: &str = ".new";

/// Who may read the new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// Whoever the process's umask lets.
    Default,
    /// Its owner alone.
    Private,
    /// Whoever may read the file that is replaced, which must be there.
    Unchanged,
}

/// A file that gets its name once it is whole, and is removed where it is given up before.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    unfinished: PathBuf,
    target: PathBuf,
}

impl AtomicFile {
    /// Begins a file that will be at this path.
    pub fn create(target: &Path, access: FileAccess) -> io::Result<Self> {
        let nameless = || io::Error::new(ErrorKind::InvalidInput, "the path names no file");
        let mut name = target.file_name().ok_or_else(nameless)?.to_owned();
        name.push(format!(".{}{UNFINISHED}", std::process::id()));
        let unfinished = target.with_file_name(name);
        // One that is there was left by an earlier process with our id.
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if access != FileAccess::Default {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let file = options.open(&unfinished)?;
        let created = Self { file, unfinished, target: target.to_owned() };
        if access == FileAccess::Unchanged {
            created.file.set_permissions(fs::metadata(target)?.permissions())?;
        }
        Ok(created)
    }

    /// Puts it at its path; content and name are on the disk on return.
    pub fn finish(self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.unfinished, &self.target)?;
        match self.target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => sync_folder(folder),
            _ => sync_folder(Path::new(".")),
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // One that was finished is not there any more.
        let _ = fs::remove_file(&self.unfinished);
    }
}

/// Puts a file with this content at this path.
pub fn replace_file(target: &Path, content: &[u8], access: FileAccess) -> io::Result<()> {
    let mut file = AtomicFile::create(target, access)?;
    file.write_all(content)?;
    file.finish()
}

/// Makes the names in a folder durable. Only Unix has, and needs, a sync of folders.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Whether others may read this file of ours.
#[cfg(unix)]
pub fn is_exposed(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::metadata(path)?.permissions().mode() & 0o077 != 0)
}

/// Elsewhere the folder's own rights decide.
#[cfg(not(unix))]
pub fn is_exposed(_path: &Path) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_only_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        fs::write(&path, "old").unwrap();
        // What a crash left under the name that this process uses.
        fs::write(folder.path().join(format!("a.txt.{}.new", std::process::id())), "half").unwrap();
        let mut file = AtomicFile::create(&path, FileAccess::Default).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        file.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "something is left behind");
    }

    #[test]
    fn an_abandoned_file_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = AtomicFile::create(&folder.path().join("a"), FileAccess::Private).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        let nothing = replace_file(&folder.path().join("a"), b"x", FileAccess::Unchanged);
        assert_eq!(nothing.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let nameless = replace_file(Path::new("/"), b"x", FileAccess::Default).unwrap_err();
        assert_eq!(nameless.kind(), ErrorKind::InvalidInput);
    }

    #[cfg(unix)]
    #[test]
    fn a_private_file_has_mode_600_and_an_unchanged_one_keeps_its_mode() {
        use std::fs::Permissions;
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        replace_file(&path, b"new", FileAccess::Private).unwrap();
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o664)).unwrap();
        replace_file(&path, b"newer", FileAccess::Unchanged).unwrap();
        assert_eq!(mode(), 0o664);
    }
}
