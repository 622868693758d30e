//! Storage of a simulated machine: its folder, and which store opens it.

use kernel::contracts::Store;
use std::path::Path;
use std::sync::Arc;
use stores::{OpenStore, Parts, StoreLocation};

/// Opens a store for a node beside the first.
pub type OpenBeside = Arc<dyn Fn() -> Arc<dyn Store> + Send + Sync>;

/// Opens a store for the next life of the process; the one of the life before is gone.
pub trait Opener {
    /// Opens what is in the folder, or says why that does not work.
    fn open(&self, folder: &Path, parts: Parts) -> Result<OpenStore, String>;

    /// How a second node opens the same store, where it serves several. Each opening ends the one
    /// before: who has that open may still run, and can write nothing any more.
    fn beside(&self) -> Option<OpenBeside> {
        None
    }
}

/// The embedded store.
pub struct Embedded;

impl Opener for Embedded {
    fn open(&self, folder: &Path, parts: Parts) -> Result<OpenStore, String> {
        stores::open(&StoreLocation::Folder(folder.to_owned()), parts)
            .map_err(|error| format!("the store does not open: {error}"))
    }
}

/// A folder, and the store for it.
#[derive(Clone, Copy)]
pub struct SimStorage<'p> {
    pub folder: &'p Path,
    pub opener: &'p dyn Opener,
}

impl SimStorage<'_> {
    pub fn open(&self, parts: Parts) -> Result<OpenStore, String> {
        self.opener.open(self.folder, parts)
    }

    /// How a second node opens it, where that is possible.
    pub fn beside(&self) -> Option<OpenBeside> {
        self.opener.beside()
    }
}
