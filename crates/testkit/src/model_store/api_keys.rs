//! The keys of a server in the model store: a map by id.

use super::ModelStore;
use kernel::contracts::identity::api_keys::{ApiKeys, StoredKey};
use kernel::contracts::{Read, StoreError};
use kernel::identity::audit::Entries;
use kernel::identity::key::{ApiKey, KeyId};
use kernel::values::ids::Millis;

impl ApiKeys for ModelStore {
    fn all(&self) -> Read<'_, Vec<StoredKey>> {
        Box::pin(self.read(|tables| Ok(tables.api_keys.values().cloned().collect::<Vec<_>>())))
    }

    fn put_audited<'a>(
        &'a self,
        key: &'a ApiKey,
        version: Option<u64>,
        audit: Entries,
    ) -> Read<'a, u64> {
        let keys = self.audit_keys();
        Box::pin(self.write(move |tables| {
            let stored = tables.api_keys.get(&key.id);
            if stored.map(|stored| stored.version) != version {
                return Err(StoreError::Conflict(format!("API key {}", key.id.0)));
            }
            let used = stored.and_then(|stored| stored.used);
            let version = version.unwrap_or(0) + 1;
            let rows = tables.audit_rows(keys.as_deref(), &audit)?;
            let written = StoredKey { key: key.clone(), version, used };
            tables.api_keys.insert(key.id.clone(), written);
            tables.keep_audit(rows);
            Ok(version)
        }))
    }

    fn note_uses<'a>(&'a self, uses: &'a [(KeyId, Millis)]) -> Read<'a, ()> {
        Box::pin(self.write(move |tables| {
            for (id, at) in uses {
                if let Some(stored) = tables.api_keys.get_mut(id) {
                    stored.used = stored.used.max(Some(*at));
                }
            }
            Ok(())
        }))
    }
}
