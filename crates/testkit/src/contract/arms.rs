//! The stores under test: the embedded one, and the model.

use super::scene::{Arm, OpenArm, limits};
use crate::model_store::{ModelState, ModelStore};
use crate::sim::people::clients::locked;
use futures::executor::block_on;
use futures::future::BoxFuture;
use kernel::contracts::{Clock, Spawn};
use kernel::limits::Limits;
use kernel::values::ids::Millis;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use stores::{OpenStore, Parts, StoreLocation};
use tempfile::TempDir;

/// Threads, or futures kept back until the test lets them go.
#[derive(Default)]
pub struct Threads {
    kept: Mutex<Option<Vec<BoxFuture<'static, ()>>>>,
}

impl Threads {
    /// Nothing is started before `let_go`.
    pub fn keeping() -> Arc<Self> {
        Arc::new(Self { kept: Mutex::new(Some(Vec::new())) })
    }

    /// Starts what was kept back, and everything from now on.
    pub fn let_go(&self) {
        let kept = locked(&self.kept).take();
        kept.into_iter().flatten().for_each(start);
    }
}

impl Spawn for Threads {
    fn task(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        self.thread(name, future);
    }

    fn thread(&self, _name: &'static str, future: BoxFuture<'static, ()>) {
        match locked(&self.kept).as_mut() {
            Some(kept) => kept.push(future),
            None => start(future),
        }
    }
}

/// Runs a future on a thread of its own.
pub fn start(future: BoxFuture<'static, ()>) {
    thread::spawn(move || block_on(future));
}

/// It is always 1,000.
pub struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Millis {
        Millis(1_000)
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep_until(&self, _then: Millis) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// What the embedded store is opened with.
pub fn parts(spawn: Arc<dyn Spawn>, limits: Limits) -> Parts {
    Parts {
        spawn,
        clock: Arc::new(StoppedClock),
        limits: Arc::new(limits),
        fatal: Arc::new(|why: String| panic!("{why}")),
        vfs: None,
    }
}

/// The embedded store, in a folder of its own.
pub struct SqliteArm {
    folder: TempDir,
}

impl SqliteArm {
    /// In a new folder.
    pub fn new() -> Self {
        let folder = tempfile::tempdir();
        Self { folder: folder.unwrap_or_else(|error| panic!("no folder: {error}")) }
    }
}

impl Default for SqliteArm {
    fn default() -> Self {
        Self::new()
    }
}

impl Arm for SqliteArm {
    fn open(&self) -> OpenArm {
        let place = StoreLocation::Folder(self.folder.path().join("data"));
        match stores::open(&place, parts(Arc::new(Threads::default()), limits())) {
            Ok(OpenStore {
                store, api_keys, claims, principals, realms, webhooks, audit, ..
            }) => OpenArm { store, api_keys, claims, principals, realms, webhooks, audit },
            Err(error) => panic!("{error}"),
        }
    }
}

/// The model store.
pub struct ModelArm {
    state: Arc<ModelState>,
}

impl ModelArm {
    /// With these delays.
    pub fn new(seed: u64) -> Self {
        Self { state: ModelState::new(seed, limits().tally_reasons_max) }
    }
}

impl Arm for ModelArm {
    fn open(&self) -> OpenArm {
        let store = Arc::new(ModelStore::open(&self.state, "one"));
        let api_keys = store.clone();
        let claims = store.clone();
        let principals = store.clone();
        let realms = store.clone();
        let audit = store.clone();
        let webhooks = store.clone();
        OpenArm { store, api_keys, claims, principals, realms, webhooks, audit }
    }
}
