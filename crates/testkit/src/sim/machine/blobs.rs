//! Blobs under the power switch. The files are real and the store's own code writes them; what a
//! power cut leaves of them is decided here: a blob whose put was answered is whole, one whose put
//! was not may be gone, whole or cut short.

use super::power::{Point, Power};
use crate::sim::rng::Rng;
use futures::stream::{self, StreamExt, TryStreamExt};
use kernel::contracts::{Blobs, Clock, Holder, Incoming, OpenBlob, Read, StoreError};
use kernel::values::datum::BlobRef;
use kernel::values::ids::{ContentHash, Millis, RealmId};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How late a sync comes that is late on purpose.
const LATE_MS: u64 = 1_000;
/// When nothing makes a blob durable.
const NEVER: Millis = Millis(i64::MAX);

/// When a blob whose put is answered is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syncing {
    /// By then, as promised.
    InTime,
    /// Some time after: the row that names it may be there first.
    Late,
    Never,
}

/// The files of one machine: they survive its processes.
pub struct Shelf {
    realm: RealmId,
    root: PathBuf,
    clock: Arc<dyn Clock>,
    syncing: Syncing,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Blobs that a power cut cannot harm.
    durable: BTreeSet<ContentHash>,
    /// The others, and from when on it cannot harm them.
    unsynced: BTreeMap<ContentHash, Millis>,
    /// How often one was read.
    read: u64,
    /// How many a power cut met.
    met: u64,
    /// Whether a sweep is under way, which a power cut may meet.
    sweeping: bool,
    /// Those that were swept and not put again.
    swept: BTreeSet<ContentHash>,
    /// How many were swept.
    sweeps: u64,
}

impl Shelf {
    /// The blobs of one realm below this data folder.
    pub fn new(folder: &Path, realm: RealmId, clock: Arc<dyn Clock>, syncing: Syncing) -> Self {
        let root = folder.join("blobs").join(realm.as_str());
        Self { realm, root, clock, syncing, state: Mutex::default() }
    }

    /// What a power cut leaves. No one may be at work.
    pub fn crash(&self, rng: &mut Rng) -> io::Result<()> {
        let now = self.clock.now();
        let mut state = self.state();
        if std::mem::take(&mut state.sweeping) {
            self.note_swept(&mut state);
        }
        for (hash, from) in std::mem::take(&mut state.unsynced) {
            let file = self.place(&hash);
            if from > now {
                state.met += 1;
                match (rng.below(3), fs::read(&file)) {
                    (0, Ok(_)) => fs::remove_file(&file)?,
                    (1, Ok(bytes)) => {
                        let left = rng.below(bytes.len() as u64) as usize;
                        fs::write(&file, &bytes[..left])?;
                    }
                    (_, Ok(_)) => {}
                    (_, Err(error)) if error.kind() == ErrorKind::NotFound => {}
                    (_, Err(error)) => return Err(error),
                }
            }
            if self.is_whole(&hash) {
                state.durable.insert(hash);
            }
        }
        Ok(())
    }

    /// Whether a blob can be read, and is what its name says.
    pub fn is_whole(&self, hash: &ContentHash) -> bool {
        fs::read(self.place(hash)).is_ok_and(|bytes| ContentHash::of(&bytes) == *hash)
    }

    /// How often a blob was read.
    pub fn read(&self) -> u64 {
        self.state().read
    }

    /// How many blobs a power cut met before they were durable.
    pub fn met(&self) -> u64 {
        self.state().met
    }

    /// How many blobs were removed because nothing named them.
    pub fn sweeps(&self) -> u64 {
        self.state().sweeps
    }

    /// Whether it was removed because nothing named it. Whether that was right is seen at the end.
    pub fn was_swept(&self, hash: &ContentHash) -> bool {
        self.state().swept.contains(hash)
    }

    fn place(&self, hash: &ContentHash) -> PathBuf {
        let name = hash.as_str();
        self.root.join(name.get(..2).unwrap_or(name)).join(name)
    }

    /// What was durable and is not there any more was swept. One that is put again is as new.
    fn note_swept(&self, state: &mut State) {
        let (kept, gone): (BTreeSet<_>, BTreeSet<_>) = std::mem::take(&mut state.durable)
            .into_iter()
            .partition(|hash| self.place(hash).exists());
        state.durable = kept;
        state.swept.extend(gone);
    }

    fn begins(&self, hash: &ContentHash) {
        let mut state = self.state();
        if !state.durable.contains(hash) {
            state.unsynced.entry(hash.clone()).or_insert(NEVER);
        }
    }

    fn ends(&self, hash: &ContentHash) {
        let late = self.clock.now().plus_ms(LATE_MS);
        let mut state = self.state();
        // Not before: what named it when it was swept is gone, and a put that a power cut met
        // promised nothing.
        state.swept.remove(hash);
        match self.syncing {
            Syncing::InTime => {
                state.unsynced.remove(hash);
                state.durable.insert(hash.clone());
            }
            Syncing::Late => {
                if let Some(from) = state.unsynced.get_mut(hash) {
                    *from = late.min(*from);
                }
            }
            Syncing::Never => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The blobs as the engine sees them.
pub struct SimBlobs {
    /// The real ones.
    pub inner: Arc<dyn Blobs>,
    pub power: Arc<Power>,
    /// The files of each realm.
    pub shelves: Vec<Arc<Shelf>>,
}

impl SimBlobs {
    fn shelf(&self, realm: &RealmId) -> &Shelf {
        let found = self.shelves.iter().find(|shelf| shelf.realm == *realm);
        found.unwrap_or_else(|| panic!("no realm `{realm}` is simulated"))
    }

    /// Continues only while the power is on.
    async fn passes(&self, point: Point) {
        if !self.power.passes(point) {
            std::future::pending::<()>().await;
        }
    }

    /// A put of this blob, which a power cut may meet.
    async fn putting(
        &self,
        shelf: &Shelf,
        hash: ContentHash,
        put: Read<'_, BlobRef>,
    ) -> Result<BlobRef, StoreError> {
        shelf.begins(&hash);
        self.passes(Point::DiskWrite).await;
        let blob = put.await?;
        self.passes(Point::BlobSync).await;
        shelf.ends(&hash);
        Ok(blob)
    }
}

impl Blobs for SimBlobs {
    fn put<'a>(&'a self, realm: &'a RealmId, bytes: Vec<u8>) -> Read<'a, BlobRef> {
        let hash = ContentHash::of(&bytes);
        Box::pin(self.putting(self.shelf(realm), hash, self.inner.put(realm, bytes)))
    }

    fn put_pieces<'a>(&'a self, realm: &'a RealmId, incoming: Incoming<'a>) -> Read<'a, BlobRef> {
        Box::pin(async move {
            let Incoming { pieces, bytes_max, bytes } = incoming;
            // The judge must know the name before the files do.
            let whole = pieces.try_collect::<Vec<Vec<u8>>>().await?.concat();
            let hash = ContentHash::of(&whole);
            let pieces = stream::iter([Ok(whole)]).boxed();
            let incoming = Incoming { pieces, bytes_max, bytes };
            let put = self.inner.put_pieces(realm, incoming);
            self.putting(self.shelf(realm), hash, put).await
        })
    }

    fn open<'a>(
        &'a self,
        realm: &'a RealmId,
        hash: &'a ContentHash,
        part: Range<u64>,
    ) -> Read<'a, Option<OpenBlob>> {
        self.shelf(realm).state().read += 1;
        self.inner.open(realm, hash, part)
    }

    fn hold<'a>(
        &'a self,
        realm: &'a RealmId,
        holder: &'a Holder,
        blobs: &'a [ContentHash],
    ) -> Read<'a, ()> {
        self.inner.hold(realm, holder, blobs)
    }

    fn release<'a>(&'a self, realm: &'a RealmId, holder: &'a Holder) -> Read<'a, ()> {
        self.inner.release(realm, holder)
    }

    fn delete<'a>(&'a self, realm: &'a RealmId, hash: &'a ContentHash) -> Read<'a, ()> {
        self.shelf(realm).state().durable.remove(hash);
        self.inner.delete(realm, hash)
    }

    fn purge<'a>(&'a self, realm: &'a RealmId) -> Read<'a, bool> {
        self.inner.purge(realm)
    }

    fn sweep(&self, before: Millis, limit: usize) -> Read<'_, (usize, u64)> {
        Box::pin(async move {
            self.passes(Point::DiskWrite).await;
            for shelf in &self.shelves {
                shelf.state().sweeping = true;
            }
            let swept = self.inner.sweep(before, limit).await;
            for shelf in &self.shelves {
                let mut state = shelf.state();
                state.sweeping = false;
                shelf.note_swept(&mut state);
            }
            let swept = swept?;
            // Whose they were is not said.
            if let Some(shelf) = self.shelves.first() {
                shelf.state().sweeps += swept.1;
            }
            Ok(swept)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::machine::clock::SimClock;
    use crate::sim::machine::executor::Executor;

    fn shelf(folder: &Path, syncing: Syncing) -> (Shelf, Executor) {
        let executor = Executor::new(1, Arc::new(Power::default()));
        let clock = Arc::new(SimClock(executor.clone()));
        (Shelf::new(folder, "default".into(), clock, syncing), executor)
    }

    /// How many of some blobs are whole after a power cut, so long after their puts.
    fn whole_after(syncing: Syncing, ms: i64) -> usize {
        let folder = tempfile::tempdir().unwrap();
        let (shelf, executor) = shelf(folder.path(), syncing);
        let mut hashes = Vec::new();
        for number in 0..20u8 {
            let bytes = vec![number; 40];
            let hash = ContentHash::of(&bytes);
            shelf.begins(&hash);
            fs::create_dir_all(shelf.place(&hash).parent().unwrap()).unwrap();
            fs::write(shelf.place(&hash), bytes).unwrap();
            shelf.ends(&hash);
            hashes.push(hash);
        }
        executor.pass(ms);
        shelf.crash(&mut Rng::new(3)).unwrap();
        hashes.iter().filter(|hash| shelf.is_whole(hash)).count()
    }

    #[test]
    fn only_synced_blobs_survive_a_crash() {
        assert_eq!(whole_after(Syncing::InTime, 0), 20);
        assert!(whole_after(Syncing::Never, 5_000) < 20);
        assert!(whole_after(Syncing::Late, 10) < 20);
        assert_eq!(whole_after(Syncing::Late, 5_000), 20);
    }
}
