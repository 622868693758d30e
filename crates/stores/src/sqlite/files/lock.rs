//! One process per data folder: an OS lock, which ends with its holder however that ends. The
//! lock file says who holds it.

use crate::opening::{Holder, OpenError};
use kernel::values::ids::Millis;
use std::fs::{self, File, Metadata, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// The lock, for as long as this value lives. The file stays: removing it would let two
/// processes lock two files of one name.
pub(crate) struct FolderLock {
    _file: File,
    place: LockPlace,
}

impl FolderLock {
    /// Takes the lock, or says who has it.
    pub(crate) fn take(folder: &Path, now: Millis) -> Result<Self, OpenError> {
        let unusable = |why| OpenError::Folder { folder: folder.to_owned(), why };
        let path = folder.join("lock");
        // Not truncated here: until it is locked it belongs to someone else.
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = read_holder(&mut file);
                return Err(OpenError::Held { folder: folder.to_owned(), holder });
            }
            Err(TryLockError::Error(why)) => return Err(unusable(why)),
        }
        file.set_len(0).map_err(unusable)?;
        let text = format!("pid {}\nsince {}\n", std::process::id(), now.rfc3339());
        file.write_all(text.as_bytes()).map_err(unusable)?;
        let locked = file.metadata().map_err(unusable)?;
        Ok(Self { place: LockPlace { path, file: file_id(&locked) }, _file: file })
    }

    pub(crate) fn place(&self) -> &LockPlace {
        &self.place
    }
}

/// Where a lock is: a path, and which file it led to when that was locked.
#[derive(Debug, Clone)]
pub(crate) struct LockPlace {
    path: PathBuf,
    file: Option<FileId>,
}

/// The device and the number of a file; no other file has both as long as this one is open.
type FileId = (u64, u64);

impl LockPlace {
    /// Whether the path still leads to the file that was locked. If not, another process can lock
    /// the folder as well. What cannot be looked at counts as unchanged.
    pub(crate) fn stands(&self) -> bool {
        match fs::metadata(&self.path) {
            Ok(found) => self.file.is_none() || file_id(&found) == self.file,
            Err(error) => error.kind() != ErrorKind::NotFound,
        }
    }
}

#[cfg(unix)]
fn file_id(file: &Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    Some((file.dev(), file.ino()))
}

/// Other systems do not let anyone remove a file that is open.
#[cfg(not(unix))]
fn file_id(_file: &Metadata) -> Option<FileId> {
    None
}

/// What the holder wrote. Where a lock also forbids reading, or it wrote nothing yet: nothing.
fn read_holder(file: &mut File) -> Holder {
    let mut text = String::new();
    if file.read_to_string(&mut text).is_err() {
        return Holder::default();
    }
    let after = |word: &str| text.lines().find_map(|line| line.strip_prefix(word));
    Holder {
        pid: after("pid ").and_then(|pid| pid.parse().ok()),
        since: after("since ").map(str::to_owned),
    }
}
