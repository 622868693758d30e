//! What retention removes, kept outside of the store: the oracle judges whole journals, and what
//! stands in the place of a removed part is held against that part.

use kernel::contracts::{PageRequest, SessionFilter, Store, StoreError};
use kernel::event::{Event, Fact};
use kernel::values::ids::{RealmId, SessionId, SessionKey};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// More events than any session of a simulation has.
const EVENTS_MAX: usize = 100_000;
/// More sessions than a simulation makes.
const SESSIONS_MAX: usize = 10_000;

/// The journals as they were before something of them was removed.
#[derive(Debug, Default)]
pub struct Archive {
    sessions: Mutex<BTreeMap<SessionId, Kept>>,
}

#[derive(Debug)]
struct Kept {
    key: SessionKey,
    events: BTreeMap<u64, Event>,
}

impl Archive {
    /// Keeps a session's journal as it is now.
    pub async fn keep(
        &self,
        store: &dyn Store,
        id: SessionId,
        key: &SessionKey,
    ) -> Result<(), StoreError> {
        let texts = store.events(key, 0, EVENTS_MAX).await?;
        let events: Vec<Event> =
            texts.iter().filter_map(|(_, text)| serde_json::from_str(text).ok()).collect();
        // Another session may have come under the same key.
        let is_it = match events.first().map(|event| &event.fact) {
            Some(Fact::SessionCreated { id: named, .. }) => *named == id,
            Some(Fact::BaseSet(base)) => base.id == id,
            _ => false,
        };
        if !is_it {
            return Ok(());
        }
        let mut sessions = self.held();
        let kept = sessions
            .entry(id)
            .or_insert_with(|| Kept { key: key.clone(), events: BTreeMap::new() });
        for event in events {
            // What is known already stays: a base may stand in its place by now.
            kept.events.entry(event.seq).or_insert(event);
        }
        Ok(())
    }

    /// The same for every session of a realm.
    pub async fn keep_all(&self, store: &dyn Store, realm: &RealmId) -> Result<(), StoreError> {
        let page = PageRequest { cursor: None, limit: SESSIONS_MAX };
        let found = store.sessions(realm, &SessionFilter::default(), &page).await?;
        for row in found.items {
            self.keep(store, row.id, &row.key).await?;
        }
        Ok(())
    }

    /// The sessions of a realm of which something may have been removed.
    pub fn sessions(&self, realm: &RealmId) -> Vec<(SessionId, SessionKey)> {
        let held = self.held();
        let of_realm = held.iter().filter(|(_, kept)| kept.key.realm == *realm);
        of_realm.map(|(id, kept)| (*id, kept.key.clone())).collect()
    }

    /// A whole journal: what was removed of it, and what is left.
    pub fn whole(&self, id: SessionId, left: &[Event]) -> Vec<Event> {
        let sessions = self.held();
        let mut events = sessions.get(&id).map_or_else(BTreeMap::new, |kept| kept.events.clone());
        for event in left {
            events.entry(event.seq).or_insert_with(|| event.clone());
        }
        events.into_values().collect()
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<SessionId, Kept>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many runs of a session are gone, by the first event that is left.
pub fn runs_gone(left: &[Event]) -> u32 {
    match left.first().map(|event| &event.fact) {
        Some(Fact::BaseSet(base)) => base.runs,
        _ => 0,
    }
}
