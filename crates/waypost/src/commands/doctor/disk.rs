//! The data folder: whether it is writable, how long a sync takes, who holds it, and its free
//! space.

use super::report::Finding;
use crate::remote::address;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A sync that takes longer makes every answer late: nothing is reported before it is on disk.
const SYNC_SLOW: Duration = Duration::from_millis(100);
/// As much as one transaction of the journal writes.
const PROBE: [u8; 4096] = [0; 4096];
const SPACE_FAIL_BYTES: u64 = 16 * 1024 * 1024;
const SPACE_WARN_BYTES: u64 = 512 * 1024 * 1024;
const MIB: u64 = 1024 * 1024;

const RIGHTS: &str = "check its rights and its room, or name another with `--data DIR`";

/// All that is to say of a data folder; `is_served` says whether our server answers.
pub(super) fn check(data: &Path, is_served: bool) -> Vec<Finding> {
    let shown = data.display();
    if data.is_dir() {
        let written = written(data, format!("{shown} can be written"));
        let mut findings = vec![written, holder(data, is_served)];
        findings.extend(went_back(data));
        findings.push(space(data));
        return findings;
    }
    if data.exists() {
        return vec![Finding::fail("data", format!("{shown} is not a folder"), RIGHTS)];
    }
    // `waypost up` makes it, so the folder that is there must take it.
    let place = above(data);
    vec![written(&place, format!("{shown} can be made")), space(&place)]
}

/// The nearest folder above that is there.
fn above(data: &Path) -> PathBuf {
    let absolute = std::path::absolute(data).unwrap_or_else(|_| data.to_path_buf());
    let there = absolute.ancestors().find(|folder| folder.is_dir());
    there.map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Writes a file, syncs it and removes it again.
fn written(folder: &Path, well: String) -> Finding {
    let path = folder.join(format!(".waypost-doctor-{}", std::process::id()));
    let probed = probe(&path);
    let removed = fs::remove_file(&path);
    let took = match probed {
        Ok(took) => took,
        Err(error) => {
            let what = format!("{} cannot be written: {error}", folder.display());
            return Finding::fail("data", what, RIGHTS);
        }
    };
    if let Err(error) = removed {
        let what = format!("{} cannot be removed: {error}", path.display());
        return Finding::warn("data", what, "remove it by hand");
    }
    let what = format!("{well}; a sync takes {:.1} ms", took.as_secs_f64() * 1000.0);
    if took > SYNC_SLOW {
        return Finding::warn("data", what, "a faster disk makes every answer faster");
    }
    Finding::ok("data", what)
}

fn probe(path: &Path) -> io::Result<Duration> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let begun = Instant::now();
    file.write_all(&PROBE)?;
    file.sync_all()?;
    Ok(begun.elapsed())
}

/// Writes a file into this folder, or into the nearest one above that is there, and removes it.
pub(super) fn try_to_write(folder: &Path) -> io::Result<()> {
    let path = above(folder).join(format!(".waypost-doctor-{}", std::process::id()));
    OpenOptions::new().write(true).create_new(true).open(&path)?;
    fs::remove_file(&path)
}

/// Whether a process holds the folder; the lock is let go at once.
fn holder(data: &Path, is_served: bool) -> Finding {
    let path = data.join("lock");
    let Ok(file) = File::open(&path) else {
        return Finding::ok("lock", "no process holds the data folder");
    };
    match file.try_lock() {
        Ok(()) => Finding::ok("lock", "no process holds the data folder"),
        Err(TryLockError::Error(error)) => {
            let what = format!("{} cannot be locked: {error}", path.display());
            Finding::fail("lock", what, "keep the data on a disk of this machine: `--data DIR`")
        }
        Err(TryLockError::WouldBlock) => {
            // It says `pid 123` and `since ..`, a line each.
            let holder = fs::read_to_string(&path).unwrap_or_default();
            let holder = holder.trim().replace('\n', " ");
            let what = format!("the data folder is held by {holder}");
            if is_served {
                return Finding::ok("lock", what);
            }
            let pid = holder.strip_prefix("pid ").and_then(|rest| rest.split(' ').next());
            let hint = match address::of_holder(data, pid.and_then(|pid| pid.parse().ok())) {
                Some(url) => format!("that process listens elsewhere: `--server {url}`"),
                None => "that process does not answer here: see `--server`, or stop it".to_owned(),
            };
            Finding::warn("lock", what, &hint)
        }
    }
}

/// The databases that have lost acknowledged writes, where no process holds the folder. The lock is
/// kept meanwhile.
fn went_back(data: &Path) -> Vec<Finding> {
    let Ok(lock) = File::open(data.join("lock")) else { return Vec::new() };
    if lock.try_lock().is_err() {
        return Vec::new();
    }
    let losses = server::losses_of(data).into_iter();
    let findings = losses.map(|loss| {
        let what = format!("the store went back, so acknowledged writes are lost: {loss}");
        let hint = "restore what is missing or a backup, or accept it: `waypost up --after-loss`";
        Finding::fail("store", what, hint)
    });
    findings.collect()
}

fn space(folder: &Path) -> Finding {
    let free = match free_bytes(folder) {
        Ok(free) => free,
        Err(error) => {
            let what = format!("cannot tell how much room is left: {error}");
            return Finding::warn("space", what, "look yourself");
        }
    };
    let what = format!("{} MiB are free", free / MIB);
    let hint = "make room: without it nothing new is taken";
    if free < SPACE_FAIL_BYTES {
        Finding::fail("space", what, hint)
    } else if free < SPACE_WARN_BYTES {
        Finding::warn("space", what, hint)
    } else {
        Finding::ok("space", what)
    }
}

#[cfg(unix)]
fn free_bytes(folder: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_folder: &Path) -> io::Result<u64> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

#[cfg(test)]
mod tests {
    use super::super::report::Level;
    use super::*;

    #[test]
    fn a_check_of_a_folder_does_not_change_it() {
        let folder = tempfile::tempdir().unwrap();
        // A slow disk is a warning; a full one has a test of no one's.
        let found = check(folder.path(), false);
        assert!(found.iter().take(2).all(|finding| finding.level != Level::Fail), "{found:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let missing = folder.path().join("a/b");
        assert_ne!(check(&missing, false)[0].level, Level::Fail);
        assert!(!missing.exists());
    }

    #[test]
    fn a_file_is_refused_and_a_holder_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        fs::write(&path, "pid 7\nsince now\n").unwrap();
        assert_eq!(check(&path, false)[0].level, Level::Fail);
        let file = File::open(&path).unwrap();
        file.try_lock().unwrap();
        let told = holder(folder.path(), false).to_string();
        assert!(told.contains("held by pid 7 since now"), "{told}");
        assert_eq!(holder(folder.path(), true).level, Level::Ok);
        fs::write(folder.path().join("address"), "pid 7\nurl http://127.0.0.1:9\ntoken x\n")
            .unwrap();
        let told = holder(folder.path(), false).to_string();
        assert!(told.contains("`--server http://127.0.0.1:9`"), "{told}");
    }
}
