//! Storage of a simulated machine: its folder, and which store lies in it. Every life of the
//! process opens the store anew, and a second node may open the same one.

use kernel::contracts::Store;
use std::path::Path;
use std::sync::Arc;
use stores::{OpenStore, Parts, StoreLocation};

/// Opens, for a second node, the store that the first one has.
pub type OpenSecondNode = Arc<dyn Fn() -> Arc<dyn Store> + Send + Sync>;

/// A kind of store. Each life of the process opens it once; that of the life before is gone.
pub trait StoreOpener {
    /// Opens what is in the folder, or says why that does not work.
    fn open(&self, folder: &Path, parts: Parts) -> Result<OpenStore, String>;

    /// How a second node opens the same store, where the store serves several nodes. Each opening
    /// fences the one before off: its node may still run, and can write nothing any more.
    fn second_node(&self) -> Option<OpenSecondNode> {
        None
    }
}

/// The embedded store.
pub struct Embedded;

impl StoreOpener for Embedded {
    fn open(&self, folder: &Path, parts: Parts) -> Result<OpenStore, String> {
        stores::open(&StoreLocation::Folder(folder.to_owned()), parts)
            .map_err(|error| format!("the store does not open: {error}"))
    }
}

/// A folder, and the store for it.
#[derive(Clone, Copy)]
pub struct SimStorage<'p> {
    pub folder: &'p Path,
    pub opener: &'p dyn StoreOpener,
}

impl SimStorage<'_> {
    pub fn open(&self, parts: Parts) -> Result<OpenStore, String> {
        self.opener.open(self.folder, parts)
    }

    /// How a second node opens it, where the store serves several nodes.
    pub fn second_node(&self) -> Option<OpenSecondNode> {
        self.opener.second_node()
    }
}
