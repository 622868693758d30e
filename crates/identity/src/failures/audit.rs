//! Audit of failed credentials, counted per address, and of refused realms, counted per subject.
//! Entries are written once a minute, so that a flood of failures does not become a flood of rows.

use crate::failures::counted;
use kernel::contracts::identity::audit::Audit;
use kernel::contracts::{Clock, Spawn, StoreError};
use kernel::identity::audit::{ChainName, Entry, Object, Ruling};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many addresses, and how many subjects, are counted separately in a minute; all others count
/// together.
const ADDRESSES_MAX: usize = 1_024;
const MINUTE_MS: u64 = 60 * 1_000;

/// Subject of invalid credentials in the audit.
const UNKNOWN: &str = "unknown";
/// How many characters are kept of the name of a realm that someone asked for.
const REALM_CHARS_MAX: usize = 64;
/// Name under which further subjects are counted together.
const OTHERS: &str = "others";

/// Failed attempts that are not written yet.
pub(crate) struct FailureLog {
    audit: Arc<dyn Audit>,
    clock: Arc<dyn Clock>,
    spawn: Arc<dyn Spawn>,
    minute: Mutex<Minute>,
}

/// Failures since the last write.
#[derive(Default)]
struct Minute {
    addresses: BTreeMap<IpAddr, u64>,
    others: u64,
    /// Subjects that were refused a realm: which one first, and how often.
    refused: BTreeMap<Arc<str>, (String, u64)>,
    refused_others: u64,
    /// Whether a task waits for its end.
    is_awaited: bool,
}

impl FailureLog {
    pub(crate) fn new(audit: Arc<dyn Audit>, clock: Arc<dyn Clock>, spawn: Arc<dyn Spawn>) -> Self {
        Self { audit, clock, spawn, minute: Mutex::default() }
    }

    /// Counts an attempt of this address.
    pub(crate) fn note(self: &Arc<Self>, from: IpAddr) {
        let begins = self.minute().add(counted(from));
        self.write_soon(begins);
    }

    /// Counts that a subject asked for a realm that it may not enter.
    pub(crate) fn note_realm(self: &Arc<Self>, subject: &Arc<str>, realm: &str) {
        let begins = self.minute().add_realm(subject, realm);
        self.write_soon(begins);
    }

    /// Begins to wait for the end of the minute.
    fn write_soon(self: &Arc<Self>, begins: bool) {
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
        let minute = std::mem::take(&mut *self.minute());
        let Minute { addresses, others, refused, refused_others, .. } = minute;
        let now = self.clock.now();
        let told = |address: String, count: u64| Entry {
            verdict: Ruling::Deny,
            detail: Some(json!({ "count": count })),
            ..Entry::new(now, UNKNOWN.into(), "credential.fail", Object::new("address", address))
        };
        let mut entries: Vec<Entry> = addresses
            .into_iter()
            .map(|(address, count)| told(address.to_string(), count))
            .collect();
        if others > 0 {
            entries.push(told(OTHERS.to_owned(), others));
        }
        let realm = |subject: Arc<str>, realm: String, count: u64| Entry {
            verdict: Ruling::Deny,
            detail: Some(json!({ "count": count })),
            ..Entry::new(now, subject, "realm.enter", Object::new("realm", realm))
        };
        let refused = refused.into_iter();
        entries.extend(refused.map(|(subject, (name, count))| realm(subject, name, count)));
        if refused_others > 0 {
            entries.push(realm(OTHERS.into(), OTHERS.to_owned(), refused_others));
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

    /// The same of a realm. Of the realms that a subject asks for the first one is kept: it chooses
    /// the names, and may send any number of them.
    fn add_realm(&mut self, subject: &Arc<str>, realm: &str) -> bool {
        let has_room = self.refused.len() < ADDRESSES_MAX;
        match self.refused.get_mut(subject) {
            Some((_, count)) => *count += 1,
            None if has_room => {
                let realm = realm.chars().take(REALM_CHARS_MAX).collect();
                self.refused.insert(subject.clone(), (realm, 1));
            }
            None => self.refused_others += 1,
        }
        !std::mem::replace(&mut self.is_awaited, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn audited_failures_distinguish_a_bounded_number_of_addresses() {
        let mut minute = Minute::default();
        let address = |number: usize| IpAddr::V4(Ipv4Addr::from(u32::try_from(number).unwrap()));
        assert!(minute.add(address(0)));
        for number in 0..ADDRESSES_MAX + 5 {
            assert!(!minute.add(address(number)));
        }
        assert_eq!((minute.addresses.len(), minute.others), (ADDRESSES_MAX, 5));
        assert_eq!(minute.addresses[&address(0)], 2);
    }

    #[test]
    fn refused_realms_are_audited_once_a_minute_per_subject() {
        let mut minute = Minute::default();
        let ann: Arc<str> = "ann".into();
        let long = "x".repeat(1_000);
        assert!(minute.add_realm(&ann, &long));
        for number in 0..ADDRESSES_MAX + 5 {
            assert!(!minute.add_realm(&ann, &format!("realm-{number}")));
        }
        let (name, count) = &minute.refused["ann"];
        assert_eq!((name.len(), *count), (REALM_CHARS_MAX, ADDRESSES_MAX as u64 + 6));
        for number in 0..ADDRESSES_MAX + 5 {
            minute.add_realm(&format!("subject-{number}").into(), "acme");
        }
        assert_eq!((minute.refused.len(), minute.refused_others), (ADDRESSES_MAX, 6));
    }
}
