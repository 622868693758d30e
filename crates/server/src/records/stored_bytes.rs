//! What records take up, for the limit of all that is stored.

use engine::OtherStorage;
use kernel::contracts::{Read, StoreError, StoredBytes};
use kernel::values::caller::LOCAL;
use query::records::requests::RecordUsage;
use query::records::type_change::RecordStore;
use std::sync::Arc;

pub(crate) struct RecordBytes(pub(crate) Arc<dyn RecordStore>);

impl OtherStorage for RecordBytes {
    fn stored_bytes(&self) -> Read<'_, Vec<StoredBytes>> {
        Box::pin(async {
            let usage = self.0.usage().await;
            let usage = usage.map_err(|error| StoreError::Failed(error.to_string()))?;
            Ok(usage.into_iter().map(of_owner).collect())
        })
    }
}

/// In local mode nothing has an owner.
fn of_owner(usage: RecordUsage) -> StoredBytes {
    let RecordUsage { realm, owner, bytes, .. } = usage;
    let owner = Some(owner).filter(|owner| owner != LOCAL).map(Arc::from);
    StoredBytes { realm, owner, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_one_person_of_a_local_server_stores_has_no_owner() {
        let usage = |owner: &str| RecordUsage {
            realm: "shop".into(),
            owner: owner.to_owned(),
            records: 2,
            bytes: 70,
        };
        let ann = StoredBytes { realm: "shop".into(), owner: Some("ann".into()), bytes: 70 };
        assert_eq!(of_owner(usage("ann")), ann);
        assert_eq!(of_owner(usage("local")).owner, None);
    }
}
