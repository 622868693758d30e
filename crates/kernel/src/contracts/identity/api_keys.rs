//! The contract of API key storage.

use crate::contracts::Read;
use crate::identity::audit::Entries;
use crate::identity::key::{ApiKey, KeyId};
use crate::values::ids::Millis;

/// A key, and what changes beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    pub key: ApiKey,
    /// Which version of it this is: each write makes another.
    pub version: u64,
    /// When it was last used, if it was.
    pub used: Option<Millis>,
}

/// The keys of a server. They are few, and all of them are held in memory: the store is asked at
/// the start and told of every change.
pub trait ApiKeys: Send + Sync {
    /// All of them, those that were revoked included, by id.
    fn all(&self) -> Read<'_, Vec<StoredKey>>;

    /// Writes a key while this version of it is stored, or none where none is named: else
    /// `Conflict`. Answers with the new version. Durable on return.
    fn put<'a>(&'a self, key: &'a ApiKey, version: Option<u64>) -> Read<'a, u64> {
        self.put_audited(key, version, Entries::new())
    }

    /// The same, with what the audit keeps of it: both are written or neither is.
    fn put_audited<'a>(
        &'a self,
        key: &'a ApiKey,
        version: Option<u64>,
        audit: Entries,
    ) -> Read<'a, u64>;

    /// Notes when keys were last used; of one that is not there nothing. A later moment stays.
    fn note_uses<'a>(&'a self, uses: &'a [(KeyId, Millis)]) -> Read<'a, ()>;
}
