//! The contract of principal storage: principals that no file defines, and which of all principals
//! are disabled.

use crate::contracts::Read;
use crate::identity::audit::Entries;
use crate::identity::principal::PrincipalRecord;

/// A stored principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPrincipal {
    pub record: PrincipalRecord,
    /// Which version of it this is: each write makes another.
    pub version: u64,
}

/// The principals of a server. They are few, and all of them are held in memory: the store is asked
/// at the start and told of every change. One that was stored stays: what it did has its name.
pub trait Principals: Send + Sync {
    /// All of them, by id.
    fn all_principals(&self) -> Read<'_, Vec<StoredPrincipal>>;

    /// Writes one while this version of it is stored, or none where none is named: else `Conflict`;
    /// with what the audit keeps of it: both are written or neither is. Answers with the new
    /// version. Durable on return.
    fn put_principal<'a>(
        &'a self,
        record: &'a PrincipalRecord,
        version: Option<u64>,
        audit: Entries,
    ) -> Read<'a, u64>;
}
