//! The contract of realm storage: realms created and removed at run time, and the removal of all
//! data of a realm.

use crate::contracts::Read;
use crate::identity::audit::Entries;
use crate::identity::key::ApiKey;
use crate::identity::principal::PrincipalRecord;
use crate::values::ids::{Millis, RealmId};
use std::sync::Arc;

/// A realm that was made at run time. One that was removed stays: its name is not given again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealmRecord {
    pub name: RealmId,
    /// The subject that made it.
    pub by: Arc<str>,
    pub created: Millis,
    /// Its removal, if it was removed.
    pub removed: Option<Removal>,
}

/// That a realm was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// The subject that removed it.
    pub by: Arc<str>,
    pub at: Millis,
    /// Whether nothing of what it owned is left.
    pub purged: bool,
}

/// What changes with the removal of a realm: keys and principals that could enter it, each with
/// the version that it follows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LostEntries {
    /// The keys, as they are from now on.
    pub keys: Vec<(ApiKey, u64)>,
    /// The principals, as they are from now on.
    pub principals: Vec<(PrincipalRecord, u64)>,
}

/// The realms that were made at run time. They are few, and all of them are held in memory.
pub trait StoredRealms: Send + Sync {
    /// All of them, by name, those that were removed included.
    fn all_realms(&self) -> Read<'_, Vec<RealmRecord>>;

    /// Writes a realm that is new, with what the audit keeps of it: both or neither. `Conflict`
    /// where one of its name is or was there. Durable on return.
    fn create_realm<'a>(&'a self, record: &'a RealmRecord, audit: Entries) -> Read<'a, ()>;

    /// Writes that a realm is removed, with the keys and principals that lose it and what the audit
    /// keeps of it: all or nothing. `Conflict` where the realm is not there, or a key or principal
    /// has another version. Durable on return; from then on nothing is written for the realm but
    /// the audit: `RealmRemoved`.
    fn remove_realm<'a>(
        &'a self,
        realm: &'a RealmId,
        removal: &'a Removal,
        lost: LostEntries,
        audit: Entries,
    ) -> Read<'a, ()>;

    /// Removes some of what a removed realm owned, blobs and audit excepted. Whether something may
    /// be left.
    fn purge_realm<'a>(&'a self, realm: &'a RealmId) -> Read<'a, bool>;

    /// Notes that nothing of a removed realm is left. Durable on return.
    fn note_purged<'a>(&'a self, realm: &'a RealmId) -> Read<'a, ()>;
}
