//! A vault in memory, and holds for vaults that one process has for itself.

use crate::lock;
use futures::future::ready;
use kernel::contracts::{
    Clock, Vault, VaultCondition, VaultEntry, VaultError, VaultFuture, VaultLease,
};
use kernel::values::secret::Secret;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A vault that lasts as long as the process.
pub struct MemoryVault {
    entries: Mutex<Entries>,
    holds: HoldRegistry,
}

#[derive(Default)]
struct Entries {
    kept: BTreeMap<String, VaultEntry>,
    /// The newest version, of any key.
    newest: u64,
}

impl MemoryVault {
    /// An empty vault. The clock says when holds end.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { entries: Mutex::default(), holds: HoldRegistry::new(clock) }
    }
}

impl Entries {
    fn write(
        &mut self,
        key: &str,
        value: &Secret,
        expected: VaultCondition,
    ) -> Result<u64, VaultError> {
        if !expected.allows(self.kept.get(key).map(|kept| kept.version)) {
            return Err(VaultError::Conflict(key.to_owned()));
        }
        self.newest += 1;
        let kept = VaultEntry { value: value.clone(), version: self.newest };
        self.kept.insert(key.to_owned(), kept);
        Ok(self.newest)
    }
}

impl Vault for MemoryVault {
    fn read<'a>(&'a self, key: &'a str) -> VaultFuture<'a, Option<VaultEntry>> {
        Box::pin(ready(Ok(lock(&self.entries).kept.get(key).cloned())))
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
        lock(&self.entries).kept.remove(key);
        Box::pin(ready(Ok(())))
    }

    fn remove_all<'a>(&'a self, under: &'a str) -> VaultFuture<'a, ()> {
        lock(&self.entries).kept.retain(|key, _| !is_under(key, under));
        Box::pin(ready(Ok(())))
    }

    fn hold<'a>(&'a self, key: &'a str, ms: u64) -> VaultFuture<'a, Option<VaultLease>> {
        Box::pin(ready(Ok(self.holds.hold(key, ms))))
    }
}

/// Whether a key is under these segments, of which `*` is any.
fn is_under(key: &str, under: &str) -> bool {
    let mut segments = key.split('/');
    let mut wanted = under.trim_end_matches('/').split('/');
    wanted.all(|wanted| segments.next().is_some_and(|one| wanted == "*" || wanted == one))
        && segments.next().is_some()
}

/// The part of a vault whose keys begin so.
pub(crate) struct PlaceInVault {
    whole: Arc<dyn Vault>,
    /// Segments, each with `/` behind it.
    place: String,
}

impl PlaceInVault {
    /// The part of this vault at this place: segments with `/` between them.
    pub(crate) fn new(whole: Arc<dyn Vault>, place: &str) -> Self {
        Self { whole, place: format!("{place}/") }
    }

    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.place)
    }
}

impl Vault for PlaceInVault {
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

/// Who holds which key, within one process.
pub struct HoldRegistry {
    clock: Arc<dyn Clock>,
    held: Arc<Mutex<HoldTable>>,
}

#[derive(Default)]
struct HoldTable {
    keys: BTreeMap<String, HoldEntry>,
    /// How many holds there were.
    made: u64,
}

/// One key that is held.
struct HoldEntry {
    number: u64,
    /// When it ends by itself, by `Clock::elapsed`.
    until: Duration,
}

impl HoldRegistry {
    /// No one holds anything. The clock says when holds end.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, held: Arc::default() }
    }

    /// Holds a key, as `Vault::hold` says.
    pub fn hold(&self, key: &str, ms: u64) -> Option<VaultLease> {
        let now = self.clock.elapsed();
        let mut held = lock(&self.held);
        if held.keys.get(key).is_some_and(|holding| now < holding.until) {
            return None;
        }
        held.made += 1;
        let number = held.made;
        let until = now.saturating_add(Duration::from_millis(ms));
        held.keys.insert(key.to_owned(), HoldEntry { number, until });
        let all = self.held.clone();
        let key = key.to_owned();
        Some(VaultLease::new(move || {
            let mut held = lock(&all);
            // It may have ended by itself, and be another's by now.
            if held.keys.get(&key).is_some_and(|holding| holding.number == number) {
                held.keys.remove(&key);
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
    fn what_is_under_a_place_goes_as_a_whole() {
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
        let place = PlaceInVault::new(vault.clone(), "acme/crm");
        assert!(block_on(place.read("t")).unwrap().is_some());
        block_on(place.remove_all("bob/")).unwrap();
        assert!(block_on(vault.read("acme/crm/bob/t")).unwrap().is_none());
        let held = block_on(place.hold("t", 1_000)).unwrap();
        assert!(held.is_some() && block_on(vault.hold("acme/crm/t", 1_000)).unwrap().is_none());
    }

    #[test]
    fn a_key_is_held_by_one_until_it_is_let_go_of_or_time_is_up() {
        const HOLD_MS: u64 = 1_000;
        let stage = Stage::new();
        let holds = HoldRegistry::new(Arc::new(stage.clone()));
        let first = holds.hold("k", HOLD_MS);
        assert!(first.is_some() && holds.hold("k", HOLD_MS).is_none());
        let other = holds.hold("other", HOLD_MS);
        assert!(other.is_some(), "another key");
        drop(first);
        let second = holds.hold("k", HOLD_MS);
        assert!(second.is_some(), "it was let go of");
        stage.run(stage.pass(HOLD_MS - 1));
        assert!(holds.hold("k", HOLD_MS).is_none());
        stage.run(stage.pass(1));
        let third = holds.hold("k", HOLD_MS);
        assert!(third.is_some(), "it ended by itself");
        drop(second);
        assert!(holds.hold("k", HOLD_MS).is_none(), "who comes too late lets go of nothing");
    }
}
