//! That two stores which agree are found to agree, and that one which errs is found out, by few
//! operations.

use super::agree;
use crate::contract::records::scene::{ModelRecordsArm, RecordsArm};
use crate::model_records::{ModelRecords, ModelRecordsState};
use kernel::values::ids::{Millis, RealmId};
use query::records::Records;
use query::records::error::Answer;
use query::records::requests::{
    Access, Count, Counted, Delete, DeleteMany, Explanation, Find, Found, Get, RecordLimits,
    RecordUsage, Save, Saved, Write,
};
use query::types::TypeSet;
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The model, but what it counts is one too many once there are two.
struct Miscounting(ModelRecords);

impl Records for Miscounting {
    fn find(&self, access: Access, find: Find) -> Answer<'_, Found> {
        self.0.find(access, find)
    }

    fn explain(&self, access: Access, find: Find) -> Answer<'_, Explanation> {
        self.0.explain(access, find)
    }

    fn count(&self, access: Access, count: Count) -> Answer<'_, Counted> {
        let counted = self.0.count(access, count);
        Box::pin(async {
            counted.await.map(|counted| {
                let count = counted.count + u64::from(counted.count > 1);
                Counted { count, ..counted }
            })
        })
    }

    fn get(&self, access: Access, get: Get) -> Answer<'_, Option<Value>> {
        self.0.get(access, get)
    }

    fn save(&self, access: Access, save: Save, write: Write) -> Answer<'_, Saved> {
        self.0.save(access, save, write)
    }

    fn delete(&self, access: Access, delete: Delete, write: Write) -> Answer<'_, ()> {
        self.0.delete(access, delete, write)
    }

    fn delete_many(&self, access: Access, delete: DeleteMany, write: Write) -> Answer<'_, u64> {
        self.0.delete_many(access, delete, write)
    }

    fn usage(&self) -> Answer<'_, Vec<RecordUsage>> {
        self.0.usage()
    }

    fn remove_realm(&self, realm: RealmId) -> Answer<'_, u64> {
        self.0.remove_realm(realm)
    }

    fn forget_outcomes(&self, now: Millis) -> Answer<'_, u64> {
        self.0.forget_outcomes(now)
    }

    fn close(&self) -> Answer<'_, ()> {
        self.0.close()
    }
}

#[derive(Default)]
struct MiscountingArm(Arc<ModelRecordsState>);

impl RecordsArm for MiscountingArm {
    fn open(&self, _: &Arc<TypeSet>, limits: RecordLimits) -> Arc<dyn Records> {
        Arc::new(Miscounting(ModelRecords::open(&self.0, limits)))
    }
}

#[test]
fn the_same_store_agrees_and_most_questions_can_be_asked() {
    agree(ModelRecordsArm::new(), 0..12);
}

#[test]
fn a_store_that_errs_is_found_out_by_few_operations() {
    let tried = catch_unwind(AssertUnwindSafe(|| agree(MiscountingArm::default(), 0..4)));
    let Err(panic) = tried else {
        panic!("it was not found out");
    };
    let told = panic.downcast_ref::<String>().cloned().unwrap_or_default();
    assert!(told.contains("two stores differ"), "{told}");
    let operations = told.lines().filter(|line| line.starts_with("Operation")).count();
    assert!(operations <= 4, "two saves and a count are enough: {told}");
}
