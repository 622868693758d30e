//! A machine whose power can go off at any step, write or sync.

use kernel::contracts::Read;
use kernel::limits::Limits;
use std::sync::Arc;
use stores::{OpenStore, Parts, StoreLocation};
use tempfile::TempDir;
use testkit::contract::arms::parts;
use testkit::sim::machine::executor::{Executor, SimSpawn};
use testkit::sim::machine::power::Power;
use testkit::sim::machine::vfs::Disk;
use testkit::sim::rng::Rng;

/// More steps than a read or a write takes.
pub(super) const STEPS_MAX: u64 = 10_000;

/// A machine whose power goes off, and its data folder.
pub(super) struct Machine {
    pub(super) power: Arc<Power>,
    pub(super) executor: Executor,
    disk: Disk,
    folder: TempDir,
}

impl Machine {
    pub(super) fn new() -> Self {
        let power = Arc::new(Power::default());
        Self {
            executor: Executor::new(1, power.clone()),
            disk: Disk::new(power.clone(), false),
            folder: tempfile::tempdir().unwrap(),
            power,
        }
    }

    pub(super) fn open(&self) -> OpenStore {
        let parts = Parts {
            // A failed sync ends a process, and this one ends with the power anyway.
            fatal: Arc::new(|_: String| {}),
            vfs: Some(self.disk.name().to_owned()),
            ..parts(Arc::new(SimSpawn(self.executor.clone())), Limits::default())
        };
        stores::open(&StoreLocation::Folder(self.folder.path().join("data")), parts).unwrap()
    }

    pub(super) fn run<T>(&self, read: Read<'_, T>) -> T {
        self.executor.run_until(read, STEPS_MAX).unwrap().unwrap()
    }

    /// Leaves what a power cut leaves, and is on again.
    pub(super) fn crash(&self, rng: &mut Rng) {
        self.executor.drop_tasks();
        self.disk.crash(rng).unwrap();
        self.power.switch_on(None);
    }
}
