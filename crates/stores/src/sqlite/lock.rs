//! One process per data folder: an OS lock, which ends with its holder however that ends. The
//! lock file says who holds it.

use crate::parts::{Holder, OpenError};
use kernel::ids::Millis;
use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::path::Path;

/// The lock, for as long as this value lives. The file stays: removing it would let two
/// processes lock two files of one name.
pub(crate) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes the lock, or says who has it.
    pub(crate) fn take(folder: &Path, now: Millis) -> Result<Self, OpenError> {
        let unusable = |why| OpenError::Folder { folder: folder.to_owned(), why };
        // Not truncated here: until it is locked it belongs to someone else.
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(folder.join("lock"))
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
        Ok(Self { _file: file })
    }
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
