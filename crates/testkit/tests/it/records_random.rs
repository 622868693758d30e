//! Random types, records, callers and questions: the embedded store of records says what the
//! evaluator says. `WAYPOST_SEED` chooses the first seed.

use futures::executor::block_on;
use query::records::Records;
use query::records::requests::RecordLimits;
use query::records::type_change::TypeChange;
use query::types::{RealmTypes, TypeSet};
use std::sync::{Arc, Mutex};
use stores::{OpenStore, StoreLocation};
use tempfile::TempDir;
use testkit::contract::arms::{Threads, parts};
use testkit::contract::records::random::agree;
use testkit::contract::records::scene::RecordsArm;
use testkit::contract::scene::limits;

/// How many seeds are tried: each has types and callers of its own.
const SEEDS: u64 = 24;

/// The embedded store of records, in a folder of its own.
struct FolderArm {
    folder: TempDir,
    opened: Mutex<Option<OpenStore>>,
}

impl RecordsArm for FolderArm {
    fn open(&self, types: &Arc<TypeSet>, record_limits: RecordLimits) -> Arc<dyn Records> {
        let mut opened = self.opened.lock().unwrap();
        if let Some(before) = opened.take() {
            block_on(before.store.close()).unwrap();
        }
        let place = StoreLocation::Folder(self.folder.path().join("data"));
        let store = stores::open(&place, parts(Arc::new(Threads::default()), limits())).unwrap();
        let records = store.records.open(record_limits).unwrap();
        let types = RealmTypes { common: types.clone(), ..RealmTypes::default() };
        let change = TypeChange { types: Arc::new(types), ..TypeChange::default() };
        block_on(records.change_types(change)).unwrap();
        *opened = Some(store);
        records
    }
}

#[test]
fn the_store_says_what_the_evaluator_says() {
    let first = std::env::var("WAYPOST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let arm = FolderArm { folder: tempfile::tempdir().unwrap(), opened: Mutex::new(None) };
    agree(arm, first..first + SEEDS);
}
