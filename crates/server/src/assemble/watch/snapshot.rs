//! What a poll of files sees. A file is known by its name and its content; length and time only say
//! when it has to be read.

use kernel::values::ids::{ContentHash, Millis};
use project::folder::is_plan;
use project::policies::is_policy;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A file that changed so lately may change again within the same tick of the system's clock, so
/// its time says nothing yet.
pub(super) const FRESH_MS: i64 = 2_000;

/// A file as it is named in this folder.
pub(super) fn named(path: &Path, folder: &Path) -> String {
    let below = path.strip_prefix(folder).ok().filter(|below| !below.as_os_str().is_empty());
    below.unwrap_or(path).display().to_string()
}

/// Adds the files below a folder that are read as plans, agents, pipelines, rules or policies, and
/// folders that cannot be looked into.
pub(super) fn gather(folder: &Path, depth: usize, paths: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        paths.insert(folder.to_path_buf());
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        // Said with the entry; only what a link leads to has to be asked for.
        let is_folder = match entry.file_type() {
            Ok(kind) if !kind.is_symlink() => kind.is_dir(),
            Ok(_) | Err(_) => path.is_dir(),
        };
        if is_folder {
            if depth > 1 {
                gather(&path, depth - 1, paths);
            }
        } else if is_plan(&path) || is_policy(&path) {
            paths.insert(path);
        }
    }
}

/// A file as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileStamp {
    bytes: u64,
    modified: Option<SystemTime>,
    content: ContentHash,
}

/// Files as they were seen, by path; nothing for one that cannot be read, or that is not there.
#[derive(Debug, Clone, Default)]
pub(super) struct FileSnapshot(BTreeMap<PathBuf, Option<FileStamp>>);

impl FileSnapshot {
    /// These files now. One that looks as it did before is not read again.
    pub(super) fn at(paths: &BTreeSet<PathBuf>, before: &FileSnapshot, now: Millis) -> Self {
        let seen = |path: &PathBuf| {
            let about = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
            let bytes = about.len();
            let modified = about.modified().ok();
            let known = before.0.get(path).and_then(Option::as_ref).filter(|known| {
                (known.bytes, known.modified) == (bytes, modified) && !is_fresh(modified, now)
            });
            let content = match known {
                Some(known) => known.content.clone(),
                None => ContentHash::of(&fs::read(path).ok()?),
            };
            Some(FileStamp { bytes, modified, content })
        };
        Self(paths.iter().map(|path| (path.clone(), seen(path))).collect())
    }

    /// The files that this says of, and all others.
    pub(super) fn split(self, is_first: impl Fn(&Path) -> bool) -> (Self, Self) {
        let (first, others) = self.0.into_iter().partition(|(path, _)| is_first(path.as_path()));
        (Self(first), Self(others))
    }

    /// Whether both have the same files with the same content.
    pub(super) fn same(&self, other: &FileSnapshot) -> bool {
        self.0.len() == other.0.len() && self.beside(other).next().is_none()
    }

    /// The names of the files that are not the same in both.
    pub(super) fn names_beside(&self, other: &FileSnapshot, folder: &Path) -> Vec<String> {
        let gone = other.0.keys().filter(|path| !self.0.contains_key(*path));
        let mut paths: Vec<&PathBuf> = self.beside(other).chain(gone).collect();
        paths.sort_unstable();
        paths.into_iter().map(|path| named(path, folder)).collect()
    }

    /// The files of this one that the other has not, or with another content.
    fn beside<'a>(&'a self, other: &'a FileSnapshot) -> impl Iterator<Item = &'a PathBuf> {
        let content = |seen: &'a Option<FileStamp>| seen.as_ref().map(|seen| &seen.content);
        let differs = move |(path, seen): &(&'a PathBuf, &'a Option<FileStamp>)| {
            other.0.get(*path).is_none_or(|known| content(known) != content(seen))
        };
        self.0.iter().filter(differs).map(|(path, _)| path)
    }
}

/// Whether a file changed so lately that its time says nothing yet. A time that is still to come
/// was not made by this machine's clock, and is as good as an old one.
fn is_fresh(modified: Option<SystemTime>, now: Millis) -> bool {
    let since = modified.and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
    let Some(since) = since else { return true };
    let then = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    now.0.saturating_sub(then).saturating_abs() < FRESH_MS
}
