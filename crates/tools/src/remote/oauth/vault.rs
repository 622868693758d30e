//! Where tokens and registrations are kept.

use crate::remote::config::Secret;
use kernel::fault::Fault;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps secrets under keys of ours, out of sight: sealed where they are written down.
pub trait Vault: Send + Sync {
    /// What is kept under this key.
    fn read(&self, key: &str) -> Result<Option<Secret>, Fault>;

    /// Keeps this under the key, in place of what was there. It is safe on return.
    fn write(&self, key: &str, value: &Secret) -> Result<(), Fault>;

    /// Lets go of what is kept under this key, if anything is.
    fn remove(&self, key: &str) -> Result<(), Fault>;
}

/// A vault that lasts as long as the process.
#[derive(Debug, Default)]
pub struct MemoryVault {
    kept: Mutex<BTreeMap<String, Secret>>,
}

impl MemoryVault {
    fn kept(&self) -> MutexGuard<'_, BTreeMap<String, Secret>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Vault for MemoryVault {
    fn read(&self, key: &str) -> Result<Option<Secret>, Fault> {
        Ok(self.kept().get(key).cloned())
    }

    fn write(&self, key: &str, value: &Secret) -> Result<(), Fault> {
        self.kept().insert(key.to_owned(), value.clone());
        Ok(())
    }

    fn remove(&self, key: &str) -> Result<(), Fault> {
        self.kept().remove(key);
        Ok(())
    }
}
