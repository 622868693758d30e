//! The contract suite over every store of records that there is.

use futures::executor::block_on;
use query::records::Records;
use query::records::requests::RecordLimits;
use query::records::type_change::TypeChange;
use query::types::{RealmTypes, TypeSet};
use std::sync::{Arc, Mutex};
use stores::{OpenStore, StoreLocation};
use tempfile::TempDir;
use testkit::contract::arms::{Threads, parts};
use testkit::contract::records::scene::RecordsArm;

mod model {
    testkit::records_contract!(testkit::contract::records::scene::ModelRecordsArm::new());
}

mod sqlite {
    testkit::records_contract!(super::SqliteRecordsArm::new(false));
}

mod sqlite_of_a_realm_s_own_types {
    testkit::records_contract!(super::SqliteRecordsArm::new(true));
}

/// The embedded store of records, in a folder of its own.
struct SqliteRecordsArm {
    folder: TempDir,
    opened: Mutex<Option<OpenStore>>,
    /// Whether the realm `r` has types of its own.
    has_own: bool,
}

impl SqliteRecordsArm {
    fn new(has_own: bool) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), opened: Mutex::new(None), has_own }
    }
}

impl RecordsArm for SqliteRecordsArm {
    fn open(&self, types: &Arc<TypeSet>, limits: RecordLimits) -> Arc<dyn Records> {
        let mut opened = self.opened.lock().unwrap();
        if let Some(before) = opened.take() {
            block_on(before.store.close()).unwrap();
        }
        let place = StoreLocation::Folder(self.folder.path().join("data"));
        let threads = Arc::new(Threads::default());
        let store = stores::open(&place, parts(threads, kernel::limits::Limits::default()));
        let store = store.unwrap();
        let records = store.records.open(limits).unwrap();
        let mut types = RealmTypes { common: types.clone(), ..RealmTypes::default() };
        if self.has_own {
            types.own.insert("r".into(), types.common.clone());
        }
        let change = TypeChange { types: Arc::new(types), ..TypeChange::default() };
        block_on(records.change_types(change)).unwrap();
        *opened = Some(store);
        records
    }
}
