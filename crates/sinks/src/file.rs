//! File sink. Each batch is synced before it counts. A file that was moved away, as log rotation
//! does, is reopened; a torn line is terminated, so that only it is lost.

use crate::lines::Lines;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file of lines.
pub(crate) struct FileLines {
    path: PathBuf,
    /// None after a failure: it is opened again, and looked at again.
    file: Option<File>,
}

impl FileLines {
    /// Opens the file, which is made if it is not there, with its folder.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), file: Some(opened(path)?) })
    }
}

impl Lines for FileLines {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) if is_there(&self.path, &file) => file,
            _ => {
                let file = opened(&self.path)?;
                tracing::info!(path = %self.path.display(), "a file of events is opened again");
                file
            }
        };
        file.write_all(lines)?;
        // A device has nothing to sync, and says so.
        if file.metadata()?.is_file() {
            file.sync_data()?;
        }
        self.file = Some(file);
        Ok(())
    }
}

/// The file, with its last line ended.
fn opened(path: &Path) -> io::Result<File> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(file);
    }
    if file.seek(SeekFrom::End(0))? == 0 {
        // What is in a new file is safe only if its name is, too.
        sync_folder(folder.unwrap_or(Path::new(".")))?;
        return Ok(file);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    if last != *b"\n" {
        file.write_all(b"\n")?;
    }
    Ok(file)
}

/// Only Unix has, and needs, a sync of folders.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Whether this is still the file of that name.
fn is_there(path: &Path, file: &File) -> bool {
    match (fs::metadata(path), file.metadata()) {
        (Ok(there), Ok(ours)) => is_same(&there, &ours),
        _ => false,
    }
}

#[cfg(unix)]
fn is_same(there: &Metadata, ours: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (there.dev(), there.ino()) == (ours.dev(), ours.ino())
}

#[cfg(not(unix))]
fn is_same(_there: &Metadata, _ours: &Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_appended_after_a_torn_line_is_terminated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/events.jsonl");
        FileLines::open(&path).unwrap().write(b"1\n2\n").unwrap();
        FileLines::open(&path).unwrap().write(b"3\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n2\n3\n");
        fs::write(&path, "1\n{\"ha").unwrap();
        FileLines::open(&path).unwrap().write(b"2\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n{\"ha\n2\n");
    }

    #[cfg(unix)]
    #[test]
    fn a_rotated_file_is_reopened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let old = folder.path().join("events.1");
        let mut lines = FileLines::open(&path).unwrap();
        lines.write(b"1\n").unwrap();
        fs::rename(&path, &old).unwrap();
        lines.write(b"2\n").unwrap();
        // Another one is in its place.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "x\n").unwrap();
        lines.write(b"3\n").unwrap();
        assert_eq!(fs::read_to_string(&old).unwrap(), "1\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "x\n3\n");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn devices_are_written_and_a_full_one_is_an_error() {
        FileLines::open(Path::new("/dev/null")).unwrap().write(b"1\n").unwrap();
        let mut full = FileLines::open(Path::new("/dev/full")).unwrap();
        for _ in 0..2 {
            let error = full.write(b"1\n").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
    }

    #[test]
    fn a_failed_write_is_reported_and_retried() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let mut lines = FileLines::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(lines.write(b"1\n").is_err());
        fs::remove_dir(&path).unwrap();
        lines.write(b"1\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n");
    }
}
