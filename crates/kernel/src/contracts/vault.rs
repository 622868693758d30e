//! The contract of a vault: secrets that outlive a call. Several processes may share a vault, so
//! entries have versions, and a process can lease a key while it changes the entry.

use crate::values::fault::Fault;
use crate::values::secret::Secret;
use futures::future::BoxFuture;
use std::fmt;

/// An entry of a vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultEntry {
    /// The secret.
    pub value: Secret,
    /// Which version of it this is. Each write makes another, and under one key none comes again
    /// for as long as someone could remember it, not even after a removal.
    pub version: u64,
}

/// What must be kept under a key for a write to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VaultCondition {
    /// Anything, or nothing.
    Any,
    Version(u64),
    Absent,
}

impl VaultCondition {
    /// Whether a write is done while this version is kept, or nothing is.
    pub fn allows(self, version: Option<u64>) -> bool {
        match self {
            VaultCondition::Any => true,
            VaultCondition::Version(expected) => version == Some(expected),
            VaultCondition::Absent => version.is_none(),
        }
    }
}

impl From<Option<u64>> for VaultCondition {
    /// The same that was found before: this version, or nothing.
    fn from(version: Option<u64>) -> Self {
        version.map_or(VaultCondition::Absent, VaultCondition::Version)
    }
}

/// What a vault could not do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    /// Something else is kept than the writer expected: read again and decide again.
    #[error("the value stored as `{0}` was changed by another writer")]
    Conflict(String),
    /// Anything else.
    #[error("{}", .0.message)]
    Failed(Fault),
}

impl From<Fault> for VaultError {
    fn from(fault: Fault) -> Self {
        VaultError::Failed(fault)
    }
}

impl From<VaultError> for Fault {
    fn from(error: VaultError) -> Self {
        match error {
            VaultError::Conflict(_) => {
                Fault::new("VaultConflict", error.to_string()).hint("try it again")
            }
            VaultError::Failed(fault) => fault,
        }
    }
}

/// The result of a vault's work.
pub type VaultFuture<'a, T> = BoxFuture<'a, Result<T, VaultError>>;

/// Keeps secrets under keys of ours, out of sight: sealed where they are written down.
pub trait Vault: Send + Sync {
    /// Reads the entry of this key.
    fn read<'a>(&'a self, key: &'a str) -> VaultFuture<'a, Option<VaultEntry>>;

    /// Keeps this under the key in place of what was there, if that is as expected, and gives its
    /// version; durable on return. `Conflict` otherwise.
    fn write<'a>(
        &'a self,
        key: &'a str,
        value: &'a Secret,
        expected: VaultCondition,
    ) -> VaultFuture<'a, u64>;

    /// Lets go of what is kept under this key, if anything is; durable on return.
    fn remove<'a>(&'a self, key: &'a str) -> VaultFuture<'a, ()>;

    /// Lets go of all whose keys begin so; durable on return. Keys have segments that `/` ends, and
    /// what is under one goes as a whole: `acme/` is all of `acme`, and a segment `*` is any.
    fn remove_all<'a>(&'a self, under: &'a str) -> VaultFuture<'a, ()>;

    /// Holds a key, unless someone holds it already. It is let go of when the hold is dropped, and
    /// by itself after so many milliseconds. A hold keeps others from holding only: who must not
    /// write over what another wrote says which version they expect.
    fn hold<'a>(&'a self, key: &'a str, ms: u64) -> VaultFuture<'a, Option<VaultLease>>;
}

/// A key that is held.
#[must_use = "it is let go of at once"]
pub struct VaultLease {
    release: Option<Box<dyn FnOnce() + Send>>,
}

impl VaultLease {
    /// A hold that is let go of in this way.
    pub fn new(release: impl FnOnce() + Send + 'static) -> Self {
        Self { release: Some(Box::new(release)) }
    }
}

impl fmt::Debug for VaultLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hold")
    }
}

impl Drop for VaultLease {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vault_write_happens_only_if_its_condition_holds() {
        let found = [None, Some(0), Some(7)];
        let allowed = |expected: VaultCondition| found.map(|version| expected.allows(version));
        assert_eq!(allowed(VaultCondition::Any), [true, true, true]);
        assert_eq!(allowed(VaultCondition::Absent), [true, false, false]);
        assert_eq!(allowed(VaultCondition::Version(7)), [false, false, true]);
        assert!(found.into_iter().all(|version| VaultCondition::from(version).allows(version)));
    }

    #[test]
    fn a_vault_fault_keeps_its_hint() {
        let fault = Fault::new("VaultFailed", "no room").hint("make room");
        let error = VaultError::from(fault.clone());
        assert_eq!((error.to_string().as_str(), Fault::from(error)), ("no room", fault));
        let fault = Fault::from(VaultError::Conflict("k".to_owned()));
        assert!(fault.name == "VaultConflict" && fault.hint.is_some(), "{fault}");
    }
}
