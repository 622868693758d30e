//! Realms in the model store: a map by name.

use super::ModelStore;
use super::tables::Tables;
use kernel::contracts::identity::api_keys::StoredKey;
use kernel::contracts::identity::principals::StoredPrincipal;
use kernel::contracts::identity::realms::{LostEntries, RealmRecord, Removal, StoredRealms};
use kernel::contracts::{Read, StoreError};
use kernel::identity::audit::Entries;
use kernel::values::ids::RealmId;

impl StoredRealms for ModelStore {
    fn all_realms(&self) -> Read<'_, Vec<RealmRecord>> {
        Box::pin(self.read(|tables| Ok(tables.realms.values().cloned().collect::<Vec<_>>())))
    }

    fn create_realm<'a>(&'a self, record: &'a RealmRecord, audit: Entries) -> Read<'a, ()> {
        let keys = self.audit_keys();
        Box::pin(self.write(move |tables| {
            if tables.realms.contains_key(&record.name) {
                return Err(conflict(&record.name));
            }
            let rows = tables.audit_rows(keys.as_deref(), &audit)?;
            tables.realms.insert(record.name.clone(), record.clone());
            tables.keep_audit(rows);
            Ok(())
        }))
    }

    fn remove_realm<'a>(
        &'a self,
        realm: &'a RealmId,
        removal: &'a Removal,
        lost: LostEntries,
        audit: Entries,
    ) -> Read<'a, ()> {
        let keys = self.audit_keys();
        Box::pin(self.write(move |tables| {
            check(tables, realm, &lost)?;
            let rows = tables.audit_rows(keys.as_deref(), &audit)?;
            if let Some(record) = tables.realms.get_mut(realm) {
                record.removed = Some(removal.clone());
            }
            for (key, version) in lost.keys {
                let used = tables.api_keys.get(&key.id).and_then(|stored| stored.used);
                let written = StoredKey { key: key.clone(), version: version + 1, used };
                tables.api_keys.insert(key.id, written);
            }
            for (record, version) in lost.principals {
                let id = record.id.clone();
                let version = version + 1;
                tables.principals.insert(id, StoredPrincipal { record, version });
            }
            tables.keep_audit(rows);
            Ok(())
        }))
    }

    fn purge_realm<'a>(&'a self, realm: &'a RealmId) -> Read<'a, bool> {
        Box::pin(self.write(move |tables| Ok(tables.purge(realm))))
    }

    fn note_purged<'a>(&'a self, realm: &'a RealmId) -> Read<'a, ()> {
        Box::pin(self.write(move |tables| {
            let removed = tables.realms.get_mut(realm).and_then(|record| record.removed.as_mut());
            if let Some(removal) = removed {
                removal.purged = true;
            }
            Ok(())
        }))
    }
}

fn conflict(realm: &RealmId) -> StoreError {
    StoreError::Conflict(format!("realm {realm}"))
}

/// Refuses a removal before anything is written.
fn check(tables: &Tables, realm: &RealmId, lost: &LostEntries) -> Result<(), StoreError> {
    if tables.realms.get(realm).is_none_or(|record| record.removed.is_some()) {
        return Err(conflict(realm));
    }
    for (key, version) in &lost.keys {
        if tables.api_keys.get(&key.id).map(|stored| stored.version) != Some(*version) {
            return Err(StoreError::Conflict(format!("API key {}", key.id.0)));
        }
    }
    for (record, version) in &lost.principals {
        if tables.principals.get(&record.id).map(|stored| stored.version) != Some(*version) {
            return Err(StoreError::Conflict(format!("principal {}", record.id)));
        }
    }
    Ok(())
}
