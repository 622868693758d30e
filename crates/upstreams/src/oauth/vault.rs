//! Vaults of tokens: one in memory, a view of another vault under a prefix, and the leases of a
//! vault that only one process uses. The vault on disk is in crate `server`.

use crate::lock;
use futures::future::ready;
use kernel::contracts::{
    Clock, Vault, VaultCondition, VaultEntry, VaultError, VaultFuture, VaultLease,
};
use kernel::values::secret::Secret;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A vault that is lost when the process ends.
pub struct MemoryVault {
    entries: Mutex<Entries>,
    leases: LeaseRegistry,
}

#[derive(Default)]
struct Entries {
    by_key: BTreeMap<String, VaultEntry>,
    /// The newest version, of any key.
    newest: u64,
}

impl MemoryVault {
    /// An empty vault. The clock says when leases end.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { entries: Mutex::default(), leases: LeaseRegistry::new(clock) }
    }
}

impl Entries {
    fn write(
        &mut self,
        key: &str,
        value: &Secret,
        expected: VaultCondition,
    ) -> Result<u64, VaultError> {
        if !expected.allows(self.by_key.get(key).map(|kept| kept.version)) {
            return Err(VaultError::Conflict(key.to_owned()));
        }
        self.newest += 1;
        let kept = VaultEntry { value: value.clone(), version: self.newest };
        self.by_key.insert(key.to_owned(), kept);
        Ok(self.newest)
    }
}

impl Vault for MemoryVault {
    fn read<'a>(&'a self, key: &'a str) -> VaultFuture<'a, Option<VaultEntry>> {
        Box::pin(ready(Ok(lock(&self.entries).by_key.get(key).cloned())))
    }

    fn write<'a>(
        &'a self,
        key: &'a str,
        value: &'a Secret,
        expected: VaultCondition,
    ) -> VaultFuture<'a, u64> {
        Box::pin(ready(lock(&self.entries).write(key, value, expected)))
    }

    fn remove<'a>(&'a self, key: &'a str) -> VaultFuture<'a, ()> {
        lock(&self.entries).by_key.remove(key);
        Box::pin(ready(Ok(())))
    }

    fn remove_all<'a>(&'a self, under: &'a str) -> VaultFuture<'a, ()> {
        lock(&self.entries).by_key.retain(|key, _| !is_under(key, under));
        Box::pin(ready(Ok(())))
    }

    fn hold<'a>(&'a self, key: &'a str, ms: u64) -> VaultFuture<'a, Option<VaultLease>> {
        Box::pin(ready(Ok(self.leases.acquire(key, ms))))
    }
}

/// Whether a key is under these segments, of which `*` is any.
fn is_under(key: &str, under: &str) -> bool {
    let mut segments = key.split('/');
    let mut wanted = under.trim_end_matches('/').split('/');
    wanted.all(|wanted| segments.next().is_some_and(|one| wanted == "*" || wanted == one))
        && segments.next().is_some()
}

/// The keys of a vault under a prefix.
pub(crate) struct ScopedVault {
    whole: Arc<dyn Vault>,
    /// Segments, each with `/` behind it.
    prefix: String,
}

impl ScopedVault {
    /// The part of this vault at this prefix: segments with `/` between them.
    pub(crate) fn new(whole: Arc<dyn Vault>, prefix: &str) -> Self {
        Self { whole, prefix: format!("{prefix}/") }
    }

    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }
}

impl Vault for ScopedVault {
    fn read<'a>(&'a self, key: &'a str) -> VaultFuture<'a, Option<VaultEntry>> {
        let key = self.key(key);
        Box::pin(async move { self.whole.read(&key).await })
    }

    fn write<'a>(
        &'a self,
        key: &'a str,
        value: &'a Secret,
        expected: VaultCondition,
    ) -> VaultFuture<'a, u64> {
        let key = self.key(key);
        Box::pin(async move { self.whole.write(&key, value, expected).await })
    }

    fn remove<'a>(&'a self, key: &'a str) -> VaultFuture<'a, ()> {
        let key = self.key(key);
        Box::pin(async move { self.whole.remove(&key).await })
    }

    fn remove_all<'a>(&'a self, under: &'a str) -> VaultFuture<'a, ()> {
        let under = self.key(under);
        Box::pin(async move { self.whole.remove_all(&under).await })
    }

    fn hold<'a>(&'a self, key: &'a str, ms: u64) -> VaultFuture<'a, Option<VaultLease>> {
        let key = self.key(key);
        Box::pin(async move { self.whole.hold(&key, ms).await })
    }
}

/// Leases of keys within one process.
pub struct LeaseRegistry {
    clock: Arc<dyn Clock>,
    leases: Arc<Mutex<LeaseTable>>,
}

#[derive(Default)]
struct LeaseTable {
    keys: BTreeMap<String, LeaseEntry>,
    /// How many leases were given.
    given: u64,
}

/// The lease of one key.
struct LeaseEntry {
    number: u64,
    /// When it ends by itself, by `Clock::elapsed`.
    until: Duration,
}

impl LeaseRegistry {
    /// Without any leases. The clock says when leases end.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, leases: Arc::default() }
    }

    /// A lease of a key, as `Vault::hold` promises it; none while another one lasts.
    pub fn acquire(&self, key: &str, ms: u64) -> Option<VaultLease> {
        let now = self.clock.elapsed();
        let mut leases = lock(&self.leases);
        if leases.keys.get(key).is_some_and(|lease| now < lease.until) {
            return None;
        }
        leases.given += 1;
        let number = leases.given;
        let until = now.saturating_add(Duration::from_millis(ms));
        leases.keys.insert(key.to_owned(), LeaseEntry { number, until });
        let all = self.leases.clone();
        let key = key.to_owned();
        Some(VaultLease::new(move || {
            let mut leases = lock(&all);
            // It may have expired, and somebody else may hold the key by now.
            if leases.keys.get(&key).is_some_and(|lease| lease.number == number) {
                leases.keys.remove(&key);
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Stage;
    use futures::executor::block_on;

    #[test]
    fn a_write_over_what_another_wrote_is_a_conflict() {
        let vault = MemoryVault::new(Arc::new(Stage::new()));
        let write = |text: &str, expected| block_on(vault.write("k", &text.into(), expected));
        let read = || block_on(vault.read("k")).unwrap().map(|kept| kept.value);
        let conflict = Err(VaultError::Conflict("k".to_owned()));
        assert_eq!(write("zero", VaultCondition::Version(0)), conflict);
        let first = write("one", VaultCondition::Absent).unwrap();
        assert_eq!(write("other", VaultCondition::Absent), conflict);
        let second = write("two", VaultCondition::Version(first)).unwrap();
        assert_eq!(write("other", VaultCondition::Version(first)), conflict);
        assert_eq!(read(), Some("two".into()), "what was refused left nothing behind");
        let third = write("three", VaultCondition::Any).unwrap();
        assert!(first < second && second < third);
        block_on(vault.remove("k")).unwrap();
        assert_eq!((read(), write("other", VaultCondition::Version(third))), (None, conflict));
        assert!(write("four", VaultCondition::Absent).unwrap() > third, "no version comes again");
    }

    #[test]
    fn all_keys_under_a_prefix_are_removed_together() {
        let vault = Arc::new(MemoryVault::new(Arc::new(Stage::new())));
        let all = ["t", "acme/t", "acme/crm/t", "acme/crm/bob/t", "beta/crm/bob/t", "acmes/crm/t"];
        let left = |under: &str| -> Vec<&str> {
            for key in all {
                block_on(vault.write(key, &"x".into(), VaultCondition::Any)).unwrap();
            }
            block_on(vault.remove_all(under)).unwrap();
            let is_kept = |key: &&str| block_on(vault.read(key)).unwrap().is_some();
            all.into_iter().filter(is_kept).collect()
        };
        assert_eq!(left("acme/"), ["t", "beta/crm/bob/t", "acmes/crm/t"]);
        assert_eq!(left("acme/crm/"), ["t", "acme/t", "beta/crm/bob/t", "acmes/crm/t"]);
        assert_eq!(left("*/*/bob/"), ["t", "acme/t", "acme/crm/t", "acmes/crm/t"]);
        let place = ScopedVault::new(vault.clone(), "acme/crm");
        assert!(block_on(place.read("t")).unwrap().is_some());
        block_on(place.remove_all("bob/")).unwrap();
        assert!(block_on(vault.read("acme/crm/bob/t")).unwrap().is_none());
        let held = block_on(place.hold("t", 1_000)).unwrap();
        assert!(held.is_some() && block_on(vault.hold("acme/crm/t", 1_000)).unwrap().is_none());
    }

    #[test]
    fn a_lease_is_exclusive_until_released_or_expired() {
        const HOLD_MS: u64 = 1_000;
        let stage = Stage::new();
        let leases = LeaseRegistry::new(Arc::new(stage.clone()));
        let first = leases.acquire("k", HOLD_MS);
        assert!(first.is_some() && leases.acquire("k", HOLD_MS).is_none());
        let other = leases.acquire("other", HOLD_MS);
        assert!(other.is_some(), "another key");
        drop(first);
        let second = leases.acquire("k", HOLD_MS);
        assert!(second.is_some(), "it was let go of");
        stage.run(stage.pass(HOLD_MS - 1));
        assert!(leases.acquire("k", HOLD_MS).is_none());
        stage.run(stage.pass(1));
        let third = leases.acquire("k", HOLD_MS);
        assert!(third.is_some(), "it ended by itself");
        drop(second);
        assert!(leases.acquire("k", HOLD_MS).is_none(), "who comes too late lets go of nothing");
    }
}
