//! A store of records with those of built-in types, which are made from what other parts of the
//! server know. Nothing changes them here.

use super::built_in_rows::{of_agent, of_provider};
use super::engine_link::EngineLink;
use kernel::contracts::Definitions;
use kernel::values::ids::{Millis, RealmId};
use project::entities::built_in::{AGENT, is_built_in};
use project::upstream_entries::stored::KIND;
use query::records::error::{Answer, RecordError};
use query::records::requests::{
    Access, Count, Counted, Delete, DeleteMany, Explanation, Find, Found, Get, RecordLimits,
    RecordUsage, Save, Saved, Write,
};
use query::records::type_change::RecordStore;
use query::records::{Records, in_memory};
use serde_json::Value;
use std::future::ready;
use std::sync::Arc;

pub(crate) struct WithBuiltIn {
    pub(crate) store: Arc<dyn RecordStore>,
    pub(crate) engine: Arc<EngineLink>,
    pub(crate) definitions: Arc<dyn Definitions>,
    pub(crate) limits: RecordLimits,
}

impl WithBuiltIn {
    /// All records of a built-in type in a realm.
    async fn rows(&self, realm: &RealmId, full_name: &str) -> Result<Vec<Value>, RecordError> {
        if full_name == AGENT {
            let Some(engine) = self.engine.get() else { return Ok(Vec::new()) };
            let agents = engine.catalog().all_agents(realm).into_iter();
            return Ok(agents.map(|known| of_agent(realm, &known.agent, known.version)).collect());
        }
        let found = self.definitions.list(realm, KIND).await;
        let found = found.map_err(|error| RecordError::Failed(error.to_string()))?;
        Ok(found.iter().map(|definition| of_provider(realm, definition)).collect())
    }
}

impl Records for WithBuiltIn {
    fn find(&self, access: Access, find: Find) -> Answer<'_, Found> {
        if !is_built_in(&find.record_type) {
            return self.store.find(access, find);
        }
        Box::pin(async move {
            let rows = self.rows(&access.realm, &find.record_type).await?;
            // They refer to nothing.
            in_memory::find(rows.iter(), &access, &find, &self.limits, &|_, _, _| None)
        })
    }

    fn explain(&self, access: Access, find: Find) -> Answer<'_, Explanation> {
        if !is_built_in(&find.record_type) {
            return self.store.explain(access, find);
        }
        Box::pin(ready(Ok(Explanation::default())))
    }

    fn count(&self, access: Access, count: Count) -> Answer<'_, Counted> {
        if !is_built_in(&count.record_type) {
            return self.store.count(access, count);
        }
        Box::pin(async move {
            let rows = self.rows(&access.realm, &count.record_type).await?;
            in_memory::count(rows.iter(), &access, &count, &self.limits)
        })
    }

    fn get(&self, access: Access, get: Get) -> Answer<'_, Option<Value>> {
        if !is_built_in(&get.record_type) {
            return self.store.get(access, get);
        }
        Box::pin(async move {
            let rows = self.rows(&access.realm, &get.record_type).await?;
            let record_type = access.record_type(&get.record_type)?;
            Ok(in_memory::get(rows.iter(), &access, record_type, &get.name))
        })
    }

    fn save(&self, access: Access, save: Save, write: Write) -> Answer<'_, Saved> {
        self.store.save(access, save, write)
    }

    fn delete(&self, access: Access, delete: Delete, write: Write) -> Answer<'_, ()> {
        self.store.delete(access, delete, write)
    }

    fn delete_many(&self, access: Access, delete: DeleteMany, write: Write) -> Answer<'_, u64> {
        self.store.delete_many(access, delete, write)
    }

    fn usage(&self) -> Answer<'_, Vec<RecordUsage>> {
        self.store.usage()
    }

    fn remove_realm(&self, realm: RealmId) -> Answer<'_, u64> {
        self.store.remove_realm(realm)
    }

    fn forget_outcomes(&self, now: Millis) -> Answer<'_, u64> {
        self.store.forget_outcomes(now)
    }

    fn close(&self) -> Answer<'_, ()> {
        self.store.close()
    }
}
