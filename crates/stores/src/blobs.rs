//! Blobs as files: `blobs/<realm>/<first two digits>/<hash>`. A blob is written as a draft, synced,
//! renamed and its folder synced, so that a name never leads to half a blob. One that comes piece
//! by piece is hashed while it is written, and never in memory as a whole.
//!
//! How old a file is, the database says and not the file: a put is noted there first, by the clock
//! of the server, and so is what a holder let go of. So the sweep reads a short list instead of
//! the folder, a file whose owner never came to name it is on it too, and whatever else lies in the
//! folder is left alone.

mod disk;

pub(crate) use disk::is_hash;

use crate::opening::Parts;
use crate::sqlite::{LooseBlob, SqliteStore};
use disk::{BlobPart, Shelves};
use futures::stream::{self, Stream, StreamExt};
use kernel::contracts::{Blobs, Holder, Incoming, OpenBlob, Read, StoreError};
use kernel::values::datum::BlobRef;
use kernel::values::ids::{ContentHash, Millis, RealmId};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc, oneshot};

/// How many puts and gets wait for the blobs' thread; further callers wait for a place.
const BLOB_QUEUE_MAX: usize = 256;
/// The blobs' folder in the data folder.
pub(crate) const FOLDER: &str = "blobs";

/// Blobs in a folder.
pub(crate) struct FileBlobs {
    queue: mpsc::Sender<Job>,
    store: Arc<SqliteStore>,
    sweeping: Sweeping,
}

/// Held while blobs are removed that nothing names. A backup that copies the blobs that a copy of
/// the database names holds it too: else one of them could be gone before it is copied.
pub(crate) type Sweeping = Arc<Mutex<()>>;

type Work = Box<dyn FnOnce(&mut Shelves) + Send>;

/// Jobs of the blobs' thread.
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
        answer: oneshot::Sender<Result<(Vec<LooseBlob>, u64), StoreError>>,
    },
}

impl FileBlobs {
    /// Starts the thread that reads and writes below `root`, whose parent is there.
    pub(crate) fn open(root: PathBuf, store: Arc<SqliteStore>, parts: &Parts) -> Self {
        let (queue, mut waiting) = mpsc::channel::<Job>(BLOB_QUEUE_MAX);
        let mut shelves = Shelves::new(root, parts.fatal.clone());
        let list = store.clone();
        let sweeping = Sweeping::default();
        let turn = sweeping.clone();
        let serve = async move {
            shelves.clear_drafts();
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
                        // is noted again, finds no file and writes it again.
                        let due = list.loose_blobs(before, limit).await;
                        let _ = answer.send(due.and_then(|due| shelves.sweep(due)));
                    }
                }
            }
        };
        parts.spawn.critical_thread("store-blobs", Box::pin(serve));
        Self { queue, store, sweeping }
    }

    /// A guard that prevents sweeps while it is held.
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

/// The other pieces, each read when someone wants it.
fn read_on(
    queue: mpsc::Sender<Job>,
    rest: BlobPart,
) -> impl Stream<Item = Result<Vec<u8>, StoreError>> + Send + 'static {
    stream::try_unfold((queue, rest), |(queue, mut rest)| async move {
        if rest.is_read() {
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
        let realm = realm.clone();
        let hash = ContentHash::of(&bytes);
        Box::pin(async move {
            // First: a file that never gets a name must be found again.
            self.store.note_blob(&realm, &hash).await?;
            let store = self.store.clone();
            let put = move |shelves: &mut Shelves| {
                store.check_realm(&realm)?;
                shelves.put(&realm, hash, &bytes)
            };
            self.perform(put).await
        })
    }

    fn put_pieces<'a>(&'a self, realm: &'a RealmId, incoming: Incoming<'a>) -> Read<'a, BlobRef> {
        Box::pin(async move {
            let Incoming { mut pieces, bytes_max, bytes } = incoming;
            // Wherever this ends early, the draft goes with it.
            let mut draft = self.perform(Shelves::draft).await?;
            while let Some(piece) = pieces.next().await {
                let piece = piece?;
                if draft.bytes().saturating_add(piece.len() as u64) > bytes_max {
                    return Err(StoreError::TooLarge(bytes_max));
                }
                draft = self.perform(move |shelves| shelves.add(draft, &piece)).await?;
            }
            if bytes.is_some_and(|bytes| bytes != draft.bytes()) {
                return Err(StoreError::BrokenOff);
            }
            let realm = realm.clone();
            let hash = draft.seal();
            // Before it has its name: a file that never gets a name must be found again.
            self.store.note_blob(&realm, &hash).await?;
            let store = self.store.clone();
            let name = move |shelves: &mut Shelves| {
                store.check_realm(&realm)?;
                shelves.name(draft, &realm, hash)
            };
            self.perform(name).await
        })
    }

    fn open<'a>(
        &'a self,
        realm: &'a RealmId,
        hash: &'a ContentHash,
        part: Range<u64>,
    ) -> Read<'a, Option<OpenBlob>> {
        let realm = realm.clone();
        let hash = hash.clone();
        Box::pin(async move {
            let opened = self.perform(move |shelves| shelves.open(&realm, hash, part)).await?;
            let queue = self.queue.clone();
            Ok(opened.map(|(first, rest)| {
                let bytes = rest.bytes();
                let pieces = stream::iter([Ok(first)]).chain(read_on(queue, rest)).boxed();
                OpenBlob { bytes, pieces }
            }))
        })
    }

    fn hold<'a>(
        &'a self,
        realm: &'a RealmId,
        holder: &'a Holder,
        blobs: &'a [ContentHash],
    ) -> Read<'a, ()> {
        self.store.hold_blobs(realm, holder, blobs)
    }

    fn release<'a>(&'a self, realm: &'a RealmId, holder: &'a Holder) -> Read<'a, ()> {
        self.store.release_blobs(realm, holder)
    }

    fn delete<'a>(&'a self, realm: &'a RealmId, hash: &'a ContentHash) -> Read<'a, ()> {
        let realm = realm.clone();
        let hash = hash.clone();
        self.perform(move |shelves| shelves.delete(&realm, &hash).map(|_was_there| ()))
    }

    fn purge<'a>(&'a self, realm: &'a RealmId) -> Read<'a, bool> {
        let realm = realm.clone();
        Box::pin(async move {
            // A backup that is under way may still copy what goes here.
            let _turn = self.sweeping.lock().await;
            self.perform(move |shelves| shelves.purge(&realm)).await
        })
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
                self.store.forget_blobs(looked_at, before).await?;
            }
            Ok((looked, removed))
        })
    }
}
