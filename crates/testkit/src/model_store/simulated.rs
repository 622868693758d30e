//! The model store under the simulation: sessions are in it, and survive every crash as far as they
//! were committed. Everything else lies in the folder, as it does beside the embedded store.

use super::{ModelState, ModelStore};
use crate::sim::machine::storage::{Embedded, OpenSecondNode, StoreOpener};
use kernel::contracts::{Blobs, Holder, Incoming, OpenBlob, Read, Store};
use kernel::limits::Limits;
use kernel::values::datum::BlobRef;
use kernel::values::ids::{ContentHash, Millis, RealmId};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use stores::{OpenStore, Parts};

/// The node of every life: a new life ends the one before.
const NODE: &str = "simulated";
/// The second node, of another process.
const SECOND_NODE: &str = "beside";

/// The sessions of one simulated machine. Nothing may be sent to sinks: the log of deliveries is in
/// the folder, and moves places that are not there.
pub struct Simulated {
    state: Arc<ModelState>,
}

impl Simulated {
    /// With the delays of this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: ModelState::new(seed, Limits::default().tally_reasons_max) }
    }
}

impl StoreOpener for Simulated {
    fn open(&self, folder: &Path, parts: Parts) -> Result<OpenStore, String> {
        let opened = Embedded.open(folder, parts)?;
        let store = Arc::new(ModelStore::open(&self.state, NODE));
        let blobs = Arc::new(Unswept(opened.blobs));
        let webhooks = store.clone();
        let audit = store.clone();
        Ok(OpenStore { store, webhooks, audit, blobs, ..opened })
    }

    fn second_node(&self) -> Option<OpenSecondNode> {
        let state = self.state.clone();
        let open = move || -> Arc<dyn Store> { Arc::new(ModelStore::open(&state, SECOND_NODE)) };
        Some(Arc::new(open))
    }
}

/// Blobs that stay: what the sessions hold is not known where they lie.
struct Unswept(Arc<dyn Blobs>);

impl Blobs for Unswept {
    fn put<'a>(&'a self, realm: &'a RealmId, bytes: Vec<u8>) -> Read<'a, BlobRef> {
        self.0.put(realm, bytes)
    }

    fn put_pieces<'a>(&'a self, realm: &'a RealmId, incoming: Incoming<'a>) -> Read<'a, BlobRef> {
        self.0.put_pieces(realm, incoming)
    }

    fn open<'a>(
        &'a self,
        realm: &'a RealmId,
        hash: &'a ContentHash,
        part: Range<u64>,
    ) -> Read<'a, Option<OpenBlob>> {
        self.0.open(realm, hash, part)
    }

    fn hold<'a>(
        &'a self,
        realm: &'a RealmId,
        holder: &'a Holder,
        blobs: &'a [ContentHash],
    ) -> Read<'a, ()> {
        self.0.hold(realm, holder, blobs)
    }

    fn release<'a>(&'a self, realm: &'a RealmId, holder: &'a Holder) -> Read<'a, ()> {
        self.0.release(realm, holder)
    }

    fn delete<'a>(&'a self, realm: &'a RealmId, hash: &'a ContentHash) -> Read<'a, ()> {
        self.0.delete(realm, hash)
    }

    fn purge<'a>(&'a self, realm: &'a RealmId) -> Read<'a, bool> {
        self.0.purge(realm)
    }

    fn sweep(&self, _before: Millis, _limit: usize) -> Read<'_, (usize, u64)> {
        Box::pin(std::future::ready(Ok((0, 0))))
    }
}
