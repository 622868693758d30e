//! Blobs as files: `blobs/<realm>/<first two digits>/<hash>`. A blob is written beside its place,
//! synced, renamed and its folder synced, so that a name never leads to half a blob.
//!
//! How old a file is, the database says and not the file: a put is noted there first, by the clock
//! of the house, and so is what a removed session named. So the sweep reads a short list instead of
//! the folder, a file whose owner never came to name it is on it too, and whatever else lies in the
//! folder is left alone.

use crate::files::{Names, is_full, is_starved, make_one, parent_of};
use crate::parts::{Fatal, Parts};
use crate::sqlite::{Loose, LooseBlobs};
use futures::stream::{self, Stream, StreamExt};
use kernel::contracts::{Blobs, OpenBlob, Read, StoreError};
use kernel::datum::BlobRef;
use kernel::ids::{ContentHash, Hashing, Millis, RealmId};
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Seek, SeekFrom, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc, oneshot};

/// How many puts and gets wait for the blobs' thread; further callers wait for a place.
const BLOB_QUEUE_MAX: usize = 256;
/// How much of a blob is read at once for a caller that passes it on.
const PIECE_BYTES: u64 = 64 * 1024;
/// The blobs' folder in the data folder.
pub(crate) const FOLDER: &str = "blobs";
/// A longer realm is named by its hash: file systems take 255 bytes.
const FOLDER_NAME_BYTES_MAX: usize = 200;

/// Blobs in a folder.
pub(crate) struct FileBlobs {
    queue: mpsc::Sender<Job>,
    loose: LooseBlobs,
    sweeping: Sweeping,
}

/// Held while blobs are removed that nothing names. Whoever copies the blobs that a copy of the
/// database names holds it too: else one of them could be gone before it is copied.
pub(crate) type Sweeping = Arc<Mutex<()>>;

type Work = Box<dyn FnOnce(&mut Shelves) + Send>;

/// What the blobs' thread does, one after the other.
enum Job {
    /// Something with files.
    Files(Work),
    /// Removes what nothing names.
    Sweep {
        /// Loose since before this.
        before: Millis,
        /// At most so many.
        limit: usize,
        /// Told what was looked at, and how many files went.
        answer: oneshot::Sender<Result<(Vec<Loose>, u64), StoreError>>,
    },
}

impl FileBlobs {
    /// Starts the thread that reads and writes below `root`, whose parent is there.
    pub(crate) fn open(root: PathBuf, loose: LooseBlobs, parts: &Parts) -> Self {
        let (queue, mut waiting) = mpsc::channel::<Job>(BLOB_QUEUE_MAX);
        let mut shelves = Shelves { root, settled: HashSet::new(), fatal: parts.fatal.clone() };
        let list = loose.clone();
        let sweeping = Sweeping::default();
        let turn = sweeping.clone();
        let serve = async move {
            while let Some(job) = waiting.recv().await {
                match job {
                    Job::Files(work) => work(&mut shelves),
                    Job::Sweep { before, limit, answer } => {
                        // A backup is under way, and may take long: a later sweep finds the same.
                        let Ok(_turn) = turn.try_lock() else {
                            let _ = answer.send(Ok((Vec::new(), 0)));
                            continue;
                        };
                        // No put comes between the list and the last file. One that comes later
                        // is noted anew, finds no file and writes it again.
                        let due = list.due(before, limit).await;
                        let _ = answer.send(due.and_then(|due| shelves.sweep(due)));
                    }
                }
            }
        };
        parts.spawn.critical_thread("store-blobs", Box::pin(serve));
        Self { queue, loose, sweeping }
    }

    /// What keeps blobs from being swept while it is held.
    pub(crate) fn sweeping(&self) -> Sweeping {
        self.sweeping.clone()
    }

    fn perform<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Shelves) -> Result<T, StoreError> + Send + 'static,
    ) -> Read<'static, T> {
        Box::pin(perform(self.queue.clone(), work))
    }
}

/// The other pieces, each read when somebody wants it.
fn read_on(
    queue: mpsc::Sender<Job>,
    rest: Rest,
) -> impl Stream<Item = Result<Vec<u8>, StoreError>> + Send + 'static {
    stream::try_unfold((queue, rest), |(queue, mut rest)| async move {
        if rest.read == rest.bytes {
            return Ok(None);
        }
        let reading = perform(queue.clone(), move |_| Ok((rest.piece()?, rest)));
        let (piece, rest) = reading.await?;
        Ok::<_, StoreError>(Some((piece, (queue, rest))))
    })
}

async fn perform<T: Send + 'static>(
    queue: mpsc::Sender<Job>,
    work: impl FnOnce(&mut Shelves) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let (answer, result) = oneshot::channel();
    let work: Work = Box::new(move |shelves: &mut Shelves| {
        let _ = answer.send(work(shelves));
    });
    queue.send(Job::Files(work)).await.map_err(|_| StoreError::Closed)?;
    result.await.unwrap_or(Err(StoreError::Closed))
}

impl Blobs for FileBlobs {
    fn put<'a>(&'a self, realm: &'a RealmId, bytes: Vec<u8>) -> Read<'a, BlobRef> {
        let (realm, hash) = (realm.clone(), ContentHash::of(&bytes));
        Box::pin(async move {
            // First: a file that nobody comes to name must be found again.
            self.loose.put(&realm, &hash).await?;
            self.perform(move |shelves| shelves.put(&realm, hash, &bytes)).await
        })
    }

    fn get<'a>(&'a self, realm: &'a RealmId, hash: &'a ContentHash) -> Read<'a, Option<Vec<u8>>> {
        let (realm, hash) = (realm.clone(), hash.clone());
        self.perform(move |shelves| shelves.get(&realm, &hash))
    }

    fn open<'a>(&'a self, realm: &'a RealmId, hash: &'a ContentHash) -> Read<'a, Option<OpenBlob>> {
        let (realm, hash) = (realm.clone(), hash.clone());
        Box::pin(async move {
            let opened = self.perform(move |shelves| shelves.open(&realm, hash)).await?;
            let queue = self.queue.clone();
            Ok(opened.map(|(first, rest)| {
                let bytes = rest.bytes;
                let pieces = stream::iter([Ok(first)]).chain(read_on(queue, rest)).boxed();
                OpenBlob { bytes, pieces }
            }))
        })
    }

    fn delete<'a>(&'a self, realm: &'a RealmId, hash: &'a ContentHash) -> Read<'a, ()> {
        let (realm, hash) = (realm.clone(), hash.clone());
        self.perform(move |shelves| shelves.delete(&realm, &hash).map(|_was_there| ()))
    }

    fn sweep(&self, before: Millis, limit: usize) -> Read<'_, (usize, u64)> {
        Box::pin(async move {
            let (answer, swept) = oneshot::channel();
            let job = Job::Sweep { before, limit, answer };
            self.queue.send(job).await.map_err(|_| StoreError::Closed)?;
            let (looked_at, removed) = swept.await.unwrap_or(Err(StoreError::Closed))?;
            let looked = looked_at.len();
            // After the files: a crash in between leaves them on the list.
            if looked > 0 {
                self.loose.forget(looked_at, before).await?;
            }
            Ok((looked, removed))
        })
    }
}

/// The files, as the one thread that touches them sees them.
struct Shelves {
    root: PathBuf,
    /// Folders whose names this process made durable; an earlier process may have died before.
    settled: HashSet<PathBuf>,
    fatal: Fatal,
}

impl Shelves {
    fn put(
        &mut self,
        realm: &RealmId,
        hash: ContentHash,
        bytes: &[u8],
    ) -> Result<BlobRef, StoreError> {
        let file = self.place(realm, &hash);
        let folder = parent_of(&file);
        self.settle(folder)?;
        let names = Names::open(folder).map_err(|error| failed(&error))?;
        // A broken file of that name is replaced: a put is a promise that a get will work.
        let there = fs::read(&file).is_ok_and(|there| there == bytes);
        if !there {
            self.write(&file, bytes)?;
        }
        // Also where it is there: whoever put it may have died before this line.
        self.synced(names.sync())?;
        Ok(BlobRef { hash, bytes: bytes.len() as u64 })
    }

    fn get(&self, realm: &RealmId, hash: &ContentHash) -> Result<Option<Vec<u8>>, StoreError> {
        if !is_hash(hash) {
            return Ok(None);
        }
        let bytes = match fs::read(self.place(realm, hash)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&error)),
        };
        if ContentHash::of(&bytes) != *hash { Err(damaged(hash)) } else { Ok(Some(bytes)) }
    }

    /// The first piece of a blob, and what is left of it. A small one is whole with it, so that its
    /// damage is known before anything is passed on.
    fn open(
        &self,
        realm: &RealmId,
        hash: ContentHash,
    ) -> Result<Option<(Vec<u8>, Rest)>, StoreError> {
        if !is_hash(&hash) {
            return Ok(None);
        }
        let file = self.place(realm, &hash);
        let bytes = match fs::metadata(&file) {
            Ok(found) => found.len(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&error)),
        };
        let mut rest = Rest { file, hash, bytes, read: 0, hashing: Hashing::default() };
        let first = rest.piece()?;
        Ok(Some((first, rest)))
    }

    /// Whether it was there.
    fn delete(&self, realm: &RealmId, hash: &ContentHash) -> Result<bool, StoreError> {
        if !is_hash(hash) {
            return Ok(false);
        }
        match fs::remove_file(self.place(realm, hash)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Removes those that nothing names. They are off the list next, so a power cut must not bring
    /// them back.
    fn sweep(&self, due: Vec<Loose>) -> Result<(Vec<Loose>, u64), StoreError> {
        let mut folders: BTreeMap<PathBuf, Vec<&Loose>> = BTreeMap::new();
        for blob in due.iter().filter(|blob| !blob.named) {
            let folder = parent_of(&self.place(&blob.realm, &blob.hash)).to_owned();
            folders.entry(folder).or_default().push(blob);
        }
        let mut removed = 0;
        for (folder, blobs) in folders {
            let names = match Names::open(&folder) {
                Ok(names) => names,
                // Whoever put these never came to write one.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(&error)),
            };
            for blob in blobs {
                removed += u64::from(self.delete(&blob.realm, &blob.hash)?);
            }
            // Also where none was there: an earlier sweep may have failed before this line.
            self.synced(names.sync())?;
        }
        Ok((due, removed))
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
        let names = Names::open(parent).map_err(|error| failed(&error))?;
        make_one(folder).map_err(|error| failed(&error))?;
        self.synced(names.sync())?;
        self.settled.insert(folder.to_owned());
        Ok(())
    }

    fn write(&self, file: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        // One thread writes, so one name is enough; a draft left by a crash is overwritten.
        let draft = file.with_extension("draft");
        let written = File::create(&draft).and_then(|mut open| {
            open.write_all(bytes)?;
            Ok(open)
        });
        let result = match written {
            Ok(open) => self.synced(open.sync_all()),
            Err(error) => Err(failed(&error)),
        };
        let result = result.and_then(|()| fs::rename(&draft, file).map_err(|error| failed(&error)));
        if result.is_err() {
            // It takes room and is never read; if even this fails, the next put overwrites it.
            let _ = fs::remove_file(&draft);
        }
        result
    }

    /// Judges the result of a sync, and of nothing else. One that fails for want of room loses only
    /// what was not yet promised. After any other failure nobody knows what the disk holds, so the
    /// process ends.
    fn synced(&self, result: io::Result<()>) -> Result<(), StoreError> {
        let Err(error) = result else { return Ok(()) };
        if !is_full(&error) {
            tracing::error!(%error, "a blob could not be synced");
            (self.fatal)(format!("a blob could not be synced: {error}; check the disk"));
        }
        Err(failed(&error))
    }
}

/// A blob that is read piece by piece.
struct Rest {
    file: PathBuf,
    hash: ContentHash,
    bytes: u64,
    /// How much of it was read.
    read: u64,
    hashing: Hashing,
}

impl Rest {
    /// The next piece; the last one only if the blob is what its name says. The file is opened for
    /// each of them: slow readers would otherwise use up the descriptors.
    fn piece(&mut self) -> Result<Vec<u8>, StoreError> {
        let wanted = PIECE_BYTES.min(self.bytes - self.read);
        let mut piece = Vec::with_capacity(wanted as usize);
        let read = File::open(&self.file).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.read))?;
            file.take(wanted).read_to_end(&mut piece)
        });
        read.map_err(|error| failed(&error))?;
        self.hashing.add(&piece);
        self.read += piece.len() as u64;
        let is_cut = (piece.len() as u64) < wanted;
        let is_last = self.read == self.bytes;
        if is_cut || (is_last && mem::take(&mut self.hashing).hash() != self.hash) {
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

fn failed(error: &io::Error) -> StoreError {
    if is_full(error) {
        StoreError::Full
    } else if is_starved(error) {
        StoreError::Starved
    } else {
        StoreError::Failed(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_realm_never_leaves_its_folder() {
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
