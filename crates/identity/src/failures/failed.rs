//! Failed credentials in the audit: counted per address, and written once a minute, so that a flood
//! of them does not become a flood of rows.

use crate::failures::counted;
use kernel::contracts::identity::audit::Audit;
use kernel::contracts::{Clock, Spawn, StoreError};
use kernel::identity::audit::{ChainName, Entry, Object, Said};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many addresses are counted separately in a minute; all others count together.
const ADDRESSES_MAX: usize = 1_024;
const MINUTE_MS: u64 = 60 * 1_000;

/// Who sends a credential that is not valid, as the audit names it.
const UNKNOWN: &str = "unknown";

/// Failed attempts that are not written yet.
pub(crate) struct Failed {
    audit: Arc<dyn Audit>,
    clock: Arc<dyn Clock>,
    spawn: Arc<dyn Spawn>,
    minute: Mutex<Minute>,
}

/// What failed since it was last written.
#[derive(Default)]
struct Minute {
    addresses: BTreeMap<IpAddr, u64>,
    others: u64,
    /// Whether a task waits for its end.
    is_awaited: bool,
}

impl Failed {
    pub(crate) fn new(audit: Arc<dyn Audit>, clock: Arc<dyn Clock>, spawn: Arc<dyn Spawn>) -> Self {
        Self { audit, clock, spawn, minute: Mutex::default() }
    }

    /// Counts an attempt of this address.
    pub(crate) fn note(self: &Arc<Self>, from: IpAddr) {
        let begins = self.minute().add(counted(from));
        if begins {
            let failed = self.clone();
            let writing = async move {
                failed.clock.sleep_ms(MINUTE_MS).await;
                if let Err(error) = failed.store().await {
                    tracing::warn!(%error, "failed credentials are missing in the audit");
                }
            };
            self.spawn.task("failed credentials", Box::pin(writing));
        }
    }

    /// Writes what was counted.
    pub(crate) async fn store(&self) -> Result<(), StoreError> {
        let Minute { addresses, others, .. } = std::mem::take(&mut *self.minute());
        let now = self.clock.now();
        let told = |address: String, count: u64| Entry {
            verdict: Said::Deny,
            detail: Some(json!({ "count": count })),
            ..Entry::new(now, UNKNOWN.into(), "credential.fail", Object::new("address", address))
        };
        let mut entries: Vec<Entry> = addresses
            .into_iter()
            .map(|(address, count)| told(address.to_string(), count))
            .collect();
        if others > 0 {
            entries.push(told("others".to_owned(), others));
        }
        match entries.is_empty() {
            true => Ok(()),
            false => self.audit.write(Arc::new(vec![(ChainName::server(), entries)])).await,
        }
    }

    fn minute(&self) -> MutexGuard<'_, Minute> {
        self.minute.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Minute {
    /// Counts one; whether it is the first.
    fn add(&mut self, from: IpAddr) -> bool {
        let has_room = self.addresses.len() < ADDRESSES_MAX;
        match self.addresses.get_mut(&from) {
            Some(count) => *count += 1,
            None if has_room => {
                self.addresses.insert(from, 1);
            }
            None => self.others += 1,
        }
        !std::mem::replace(&mut self.is_awaited, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn only_so_many_addresses_are_told_apart() {
        let mut minute = Minute::default();
        let address = |number: usize| IpAddr::V4(Ipv4Addr::from(u32::try_from(number).unwrap()));
        assert!(minute.add(address(0)));
        for number in 0..ADDRESSES_MAX + 5 {
            assert!(!minute.add(address(number)));
        }
        assert_eq!((minute.addresses.len(), minute.others), (ADDRESSES_MAX, 5));
        assert_eq!(minute.addresses[&address(0)], 2);
    }
}
