//! The files of blobs, accessed by one thread only.

use crate::files::{Names, found, is_full, is_starved, make_one, parent_of};
use crate::opening::FatalHandler;
use crate::sqlite::LooseBlob;
use kernel::contracts::StoreError;
use kernel::values::datum::BlobRef;
use kernel::values::ids::{ContentHash, Hashing, RealmId};
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek, SeekFrom, Write};
use std::mem;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// How much of a blob is read at once for a caller that passes it on.
const PIECE_BYTES: u64 = 64 * 1024;
/// A longer realm is named by its hash: file systems take 255 bytes.
const FOLDER_NAME_BYTES_MAX: usize = 200;
/// Where blobs are written before they have their names; no realm's folder is named so.
const DRAFTS: &str = ".drafts";
/// How much of a draft is written before it is synced: others wait as long as a sync takes.
const UNSYNCED_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The files, as the one thread that touches them sees them.
pub(super) struct Shelves {
    root: PathBuf,
    /// Folders whose names this process made durable; an earlier process may have died before.
    settled: HashSet<PathBuf>,
    fatal: FatalHandler,
    /// How many drafts were begun: the next one's name.
    drafts: u64,
}

impl Shelves {
    /// Those below this folder.
    pub(super) fn new(root: PathBuf, fatal: FatalHandler) -> Self {
        Self { root, settled: HashSet::new(), fatal, drafts: 0 }
    }

    /// Removes what an earlier process was writing when it died. Before the first draft of ours.
    pub(super) fn clear_drafts(&self) {
        let Ok(entries) = fs::read_dir(self.root.join(DRAFTS)) else { return };
        for entry in entries.flatten() {
            if let Err(error) = fs::remove_file(entry.path()) {
                let draft = entry.path();
                tracing::warn!(draft = %draft.display(), %error, "a draft cannot be removed");
            }
        }
    }

    /// Stores bytes under the hash that they have.
    pub(super) fn put(
        &mut self,
        realm: &RealmId,
        hash: ContentHash,
        bytes: &[u8],
    ) -> Result<BlobRef, StoreError> {
        let file = self.place(realm, &hash);
        let folder = parent_of(&file);
        self.settle(folder)?;
        let names = Names::open(folder).map_err(failed)?;
        // A broken file of that name is replaced: a put is a promise that a get will work.
        let there = fs::read(&file).is_ok_and(|there| there == bytes);
        if !there {
            let mut draft = self.draft()?;
            draft.write(bytes).map_err(failed)?;
            self.rename(draft, &file)?;
        }
        // Also where it is there: the one who put it may have died before this line.
        self.synced(names.sync())?;
        Ok(BlobRef { hash, bytes: bytes.len() as u64 })
    }

    /// Begins a blob whose hash is not known yet.
    pub(super) fn draft(&mut self) -> Result<Draft, StoreError> {
        let folder = self.root.join(DRAFTS);
        self.settle(&folder)?;
        self.drafts += 1;
        let path = folder.join(format!("{}.draft", self.drafts));
        let file = File::create(&path).map_err(failed)?;
        let hashing = Hashing::default();
        Ok(Draft { file, path, hashing, bytes: 0, unsynced: 0, renamed: false })
    }

    /// Writes the next piece of it.
    pub(super) fn add(&mut self, mut draft: Draft, piece: &[u8]) -> Result<Draft, StoreError> {
        draft.write(piece).map_err(failed)?;
        draft.hashing.add(piece);
        draft.unsynced += piece.len() as u64;
        if draft.unsynced >= UNSYNCED_BYTES_MAX {
            self.synced(draft.file.sync_data())?;
            draft.unsynced = 0;
        }
        Ok(draft)
    }

    /// Gives it its name, now that its hash is known; durable on return. A file of that name is
    /// replaced: it has the same bytes, or is broken.
    pub(super) fn name(
        &mut self,
        draft: Draft,
        realm: &RealmId,
        hash: ContentHash,
    ) -> Result<BlobRef, StoreError> {
        let file = self.place(realm, &hash);
        let folder = parent_of(&file);
        self.settle(folder)?;
        let names = Names::open(folder).map_err(failed)?;
        let bytes = draft.bytes;
        self.rename(draft, &file)?;
        self.synced(names.sync())?;
        Ok(BlobRef { hash, bytes })
    }

    fn rename(&self, mut draft: Draft, file: &Path) -> Result<(), StoreError> {
        self.synced(draft.file.sync_all())?;
        fs::rename(&draft.path, file).map_err(failed)?;
        draft.renamed = true;
        Ok(())
    }

    /// The first piece of a part of a blob, and what is left of it. A small blob is whole with it,
    /// so that its damage is known before anything is passed on.
    pub(super) fn open(
        &self,
        realm: &RealmId,
        hash: ContentHash,
        part: Range<u64>,
    ) -> Result<Option<(Vec<u8>, BlobPart)>, StoreError> {
        if !is_hash(&hash) {
            return Ok(None);
        }
        let file = self.place(realm, &hash);
        let Some(there) = found(fs::metadata(&file)).map_err(failed)? else { return Ok(None) };
        let mut rest = BlobPart::new(file, hash, there.len(), part);
        let first = rest.piece()?;
        Ok(Some((first, rest)))
    }

    /// Whether it was there.
    pub(super) fn delete(&self, realm: &RealmId, hash: &ContentHash) -> Result<bool, StoreError> {
        if !is_hash(hash) {
            return Ok(false);
        }
        Ok(found(fs::remove_file(self.place(realm, hash))).map_err(failed)?.is_some())
    }

    /// Removes those that no one holds. They are off the list next, so a power cut must not bring
    /// them back.
    pub(super) fn sweep(&self, due: Vec<LooseBlob>) -> Result<(Vec<LooseBlob>, u64), StoreError> {
        let mut folders: BTreeMap<PathBuf, Vec<&LooseBlob>> = BTreeMap::new();
        for blob in due.iter().filter(|blob| !blob.held) {
            let folder = parent_of(&self.place(&blob.realm, &blob.hash)).to_owned();
            folders.entry(folder).or_default().push(blob);
        }
        let mut removed = 0;
        for (folder, blobs) in folders {
            // Where it is not there, the ones who put these never wrote one.
            let Some(names) = found(Names::open(&folder)).map_err(failed)? else { continue };
            for blob in blobs {
                removed += u64::from(self.delete(&blob.realm, &blob.hash)?);
            }
            // Also where none was there: an earlier sweep may have failed before this line.
            self.synced(names.sync())?;
        }
        Ok((due, removed))
    }

    /// Removes one folder of a realm with all that is in it, and the realm's own at the end.
    /// Whether more may be left.
    pub(super) fn purge(&mut self, realm: &RealmId) -> Result<bool, StoreError> {
        let folder = self.root.join(folder_name(realm.as_str()));
        let Some(mut entries) = found(fs::read_dir(&folder)).map_err(failed)? else {
            return Ok(false);
        };
        let next = entries.next().transpose().map_err(failed)?;
        let (gone, above) = match &next {
            Some(entry) => (entry.path(), folder.as_path()),
            None => (folder.clone(), self.root.as_path()),
        };
        let names = Names::open(above).map_err(failed)?;
        let is_folder = fs::symlink_metadata(&gone).is_ok_and(|there| there.is_dir());
        let removed = if is_folder { fs::remove_dir_all(&gone) } else { fs::remove_file(&gone) };
        found(removed).map_err(failed)?;
        self.settled.retain(|settled| !settled.starts_with(&gone));
        self.synced(names.sync())?;
        Ok(next.is_some())
    }

    fn place(&self, realm: &RealmId, hash: &ContentHash) -> PathBuf {
        let hash = hash.as_str();
        let shelf = hash.get(..2).unwrap_or(hash);
        self.root.join(folder_name(realm.as_str())).join(shelf).join(hash)
    }

    /// Makes a folder below the root, and the root itself, durable; once per process.
    fn settle(&mut self, folder: &Path) -> Result<(), StoreError> {
        if self.settled.contains(folder) {
            return Ok(());
        }
        let parent = parent_of(folder);
        if folder != self.root {
            self.settle(parent)?;
        }
        let names = Names::open(parent).map_err(failed)?;
        make_one(folder).map_err(failed)?;
        self.synced(names.sync())?;
        self.settled.insert(folder.to_owned());
        Ok(())
    }

    /// Judges the result of a sync, and of nothing else. One that fails for want of room loses only
    /// what was not yet promised. After any other failure no one knows what the disk holds, so the
    /// process ends.
    fn synced(&self, result: io::Result<()>) -> Result<(), StoreError> {
        let Err(error) = result else { return Ok(()) };
        if !is_full(&error) {
            tracing::error!(%error, "a blob could not be synced");
            (self.fatal)(format!("a blob could not be synced: {error}; check the disk"));
        }
        Err(failed(error))
    }
}

/// A blob that is written and has no name yet. It goes with this, unless it was renamed.
pub(super) struct Draft {
    file: File,
    path: PathBuf,
    hashing: Hashing,
    bytes: u64,
    /// How much was written since the last sync.
    unsynced: u64,
    renamed: bool,
}

impl Draft {
    /// How many bytes it has so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The hash of all its pieces; no more may come.
    pub(super) fn seal(&mut self) -> ContentHash {
        mem::take(&mut self.hashing).hash()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.renamed {
            // If even this fails, the next process removes it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A part of a blob that is read piece by piece.
pub(super) struct BlobPart {
    file: PathBuf,
    hash: ContentHash,
    bytes: u64,
    /// Up to where it was read.
    read: u64,
    /// Where the part ends.
    end: u64,
    /// Makes the hash, if the part is the whole.
    hashing: Option<Hashing>,
}

impl BlobPart {
    fn new(file: PathBuf, hash: ContentHash, bytes: u64, part: Range<u64>) -> Self {
        let end = part.end.min(bytes);
        let read = part.start.min(end);
        let hashing = (read == 0 && end == bytes).then(Hashing::default);
        Self { file, hash, bytes, read, end, hashing }
    }

    /// The size of the whole blob.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether nothing of it is left.
    pub(super) fn is_read(&self) -> bool {
        self.read == self.end
    }

    /// The next piece; the last one of a whole blob only if that is what its name says. The file is
    /// opened for each of them: slow readers would otherwise use up the descriptors.
    pub(super) fn piece(&mut self) -> Result<Vec<u8>, StoreError> {
        let wanted = PIECE_BYTES.min(self.end - self.read);
        let mut piece = Vec::with_capacity(wanted as usize);
        let read = File::open(&self.file).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.read))?;
            file.take(wanted).read_to_end(&mut piece)
        });
        read.map_err(failed)?;
        self.read += piece.len() as u64;
        let is_cut = (piece.len() as u64) < wanted;
        if let Some(hashing) = &mut self.hashing {
            hashing.add(&piece);
        }
        let is_whole = |hashing: Hashing| hashing.hash() == self.hash;
        let is_last = self.read == self.end;
        if is_cut || (is_last && !self.hashing.take().is_none_or(is_whole)) {
            return Err(damaged(&self.hash));
        }
        Ok(piece)
    }
}

fn damaged(hash: &ContentHash) -> StoreError {
    let why = format!("blob `{hash}` is damaged on disk; restore it from a backup");
    StoreError::Unreadable(why)
}

/// Whether this can be the name of a blob: a caller's text never becomes a path by itself.
pub(crate) fn is_hash(hash: &ContentHash) -> bool {
    let lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    hash.as_str().len() == 64 && hash.as_str().bytes().all(lower_hex)
}

/// A realm as a folder's name. Capitals are escaped too: some file systems do not tell them apart.
fn folder_name(realm: &str) -> String {
    let mut name = String::with_capacity(realm.len());
    for byte in realm.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    if name.is_empty() || name.len() > FOLDER_NAME_BYTES_MAX {
        return format!("~{}", ContentHash::of(realm.as_bytes()));
    }
    name
}

fn failed(error: io::Error) -> StoreError {
    if is_full(&error) {
        StoreError::Full
    } else if is_starved(&error) {
        StoreError::Starved
    } else {
        StoreError::Failed(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blob_paths_stay_in_the_folder_of_their_realm() {
        assert_eq!(folder_name("default"), "default");
        assert_eq!(folder_name("../up"), "%2e%2e%2fup");
        assert_eq!(folder_name("A"), "%41");
        assert!(folder_name(&"x".repeat(300)).starts_with('~'));
        assert!(folder_name("").starts_with('~'));
    }

    #[test]
    fn only_hashes_name_blobs() {
        assert!(is_hash(&ContentHash::of(b"x")));
        assert!(!is_hash(&ContentHash::from("../../lock")));
    }
}
