//! Principals in the model store: a map by id.

use super::ModelStore;
use kernel::contracts::identity::principals::{Principals, StoredPrincipal};
use kernel::contracts::{Read, StoreError};
use kernel::identity::audit::Entries;
use kernel::identity::principal::PrincipalRecord;

impl Principals for ModelStore {
    fn all_principals(&self) -> Read<'_, Vec<StoredPrincipal>> {
        Box::pin(self.read(|tables| Ok(tables.principals.values().cloned().collect::<Vec<_>>())))
    }

    fn put_principal<'a>(
        &'a self,
        record: &'a PrincipalRecord,
        version: Option<u64>,
        audit: Entries,
    ) -> Read<'a, u64> {
        let keys = self.audit_keys();
        Box::pin(self.write(move |tables| {
            let stored = tables.principals.get(&record.id);
            if stored.map(|stored| stored.version) != version {
                return Err(StoreError::Conflict(format!("principal {}", record.id)));
            }
            let version = version.unwrap_or(0) + 1;
            let rows = tables.audit_rows(keys.as_deref(), &audit)?;
            let written = StoredPrincipal { record: record.clone(), version };
            tables.principals.insert(record.id.clone(), written);
            tables.keep_audit(rows);
            Ok(version)
        }))
    }
}
