//! The current directory with versions and last uses of keys. A change makes a new snapshot;
//! readers keep the old one.

use kernel::contracts::identity::api_keys::StoredKey;
use kernel::identity::directory::Directory;
use kernel::identity::grants::Grants;
use kernel::identity::key::{ApiKey, KeyId};
use kernel::identity::principal::Roster;
use kernel::identity::realm::Realms;
use kernel::values::ids::Millis;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// A use that is so little later than the last one is not noted: many requests of one key would
/// all write to the same place in memory.
const PRECISION_MS: i64 = 1_000;
/// The moment of a use that never was.
const NEVER: i64 = i64::MIN;

/// Everyone who is known at one moment.
pub(crate) struct Snapshot {
    pub(crate) directory: Arc<Directory>,
    /// The directory's number as text.
    pub(crate) version: Arc<str>,
    beside: Arc<HashMap<KeyId, KeyRecord>>,
}

/// Version and last use of a key.
#[derive(Clone)]
struct KeyRecord {
    /// The version that is stored.
    version: u64,
    /// The same in all snapshots.
    used: Arc<LastUse>,
}

/// When a key was last used, and which of these moments is stored.
#[derive(Debug)]
pub(crate) struct LastUse {
    at: AtomicI64,
    stored: AtomicI64,
}

impl Snapshot {
    pub(crate) fn first(has_admin_key: bool, realms: Realms, stored: Vec<StoredKey>) -> Self {
        let realms = Arc::new(realms);
        let directory = Directory { has_admin_key, realms, ..Directory::default() };
        let nothing =
            Self { directory: Arc::new(directory), version: "".into(), beside: Arc::default() };
        nothing.reloaded(stored)
    }

    /// The next one: these keys and no others.
    pub(crate) fn reloaded(&self, stored: Vec<StoredKey>) -> Self {
        let mut next = Draft::default();
        for StoredKey { key, version, used } in stored {
            let used = self.last_use(&key.id).unwrap_or_else(|| Arc::new(LastUse::new(used)));
            next.take(key, KeyRecord { version, used });
        }
        self.followed_by(next)
    }

    /// The next one: the same with this key, or this version of it.
    pub(crate) fn with(&self, key: ApiKey, version: u64) -> Self {
        let used = self.last_use(&key.id).unwrap_or_else(|| Arc::new(LastUse::new(None)));
        let keys = HashMap::clone(&self.directory.keys);
        let mut next = Draft { keys, beside: HashMap::clone(&self.beside) };
        next.take(key, KeyRecord { version, used });
        self.followed_by(next)
    }

    fn followed_by(&self, next: Draft) -> Self {
        let directory = Directory { keys: next.keys.into(), ..Directory::clone(&self.directory) };
        Self { beside: next.beside.into(), ..self.numbered(directory) }
    }

    /// The next one: the same with these roles of subjects that tokens name, or without theirs.
    pub(crate) fn with_claims(&self, changes: Vec<(Arc<str>, Option<Arc<Grants>>)>) -> Self {
        let mut claims = HashMap::clone(&self.directory.claims);
        for (subject, grants) in changes {
            match grants {
                Some(grants) => claims.insert(subject, grants),
                None => claims.remove(&subject),
            };
        }
        self.numbered(Directory { claims: claims.into(), ..Directory::clone(&self.directory) })
    }

    /// The next one: the same with these principals and no others.
    pub(crate) fn with_principals(&self, principals: Roster) -> Self {
        let principals = Arc::new(principals);
        self.numbered(Directory { principals, ..Directory::clone(&self.directory) })
    }

    /// The next one: the same with these realms and no others.
    pub(crate) fn with_realms(&self, realms: Realms) -> Self {
        let realms = Arc::new(realms);
        self.numbered(Directory { realms, ..Directory::clone(&self.directory) })
    }

    /// The next one, with this directory and the same beside it.
    fn numbered(&self, directory: Directory) -> Self {
        let number = self.directory.number + 1;
        Self {
            directory: Arc::new(Directory { number, ..directory }),
            version: number.to_string().into(),
            beside: self.beside.clone(),
        }
    }

    /// When a key was last used, in this snapshot and in all others.
    pub(crate) fn last_use(&self, id: &KeyId) -> Option<Arc<LastUse>> {
        self.beside.get(id).map(|beside| beside.used.clone())
    }

    /// A key as it is stored, with its last use.
    pub(crate) fn stored(&self, id: &KeyId) -> Option<StoredKey> {
        let key = self.directory.keys.get(id)?;
        let beside = self.beside.get(id)?;
        let used = beside.used.moment();
        Some(StoredKey { key: ApiKey::clone(key), version: beside.version, used })
    }

    /// The last uses that are not stored yet.
    pub(crate) fn unstored_uses(&self) -> Vec<(KeyId, Millis)> {
        let unstored = |(id, beside): (&KeyId, &KeyRecord)| {
            beside.used.unstored().map(|moment| (id.clone(), moment))
        };
        self.beside.iter().filter_map(unstored).collect()
    }

    /// Notes that these uses are stored.
    pub(crate) fn uses_were_stored(&self, uses: &[(KeyId, Millis)]) {
        for (id, moment) in uses {
            if let Some(beside) = self.beside.get(id) {
                beside.used.stored.fetch_max(moment.0, Ordering::Relaxed);
            }
        }
    }
}

/// The keys of a snapshot that is being made.
#[derive(Default)]
struct Draft {
    keys: HashMap<KeyId, Arc<ApiKey>>,
    beside: HashMap<KeyId, KeyRecord>,
}

impl Draft {
    fn take(&mut self, key: ApiKey, beside: KeyRecord) {
        self.beside.insert(key.id.clone(), beside);
        self.keys.insert(key.id.clone(), Arc::new(key));
    }
}

impl LastUse {
    fn new(used: Option<Millis>) -> Self {
        let moment = used.map_or(NEVER, |moment| moment.0);
        Self { at: AtomicI64::new(moment), stored: AtomicI64::new(moment) }
    }

    pub(crate) fn note(&self, now: Millis) {
        let before = self.at.load(Ordering::Relaxed);
        if before == NEVER || now.0.saturating_sub(before) >= PRECISION_MS {
            self.at.fetch_max(now.0, Ordering::Relaxed);
        }
    }

    fn moment(&self) -> Option<Millis> {
        let at = self.at.load(Ordering::Relaxed);
        (at != NEVER).then_some(Millis(at))
    }

    fn unstored(&self) -> Option<Millis> {
        let stored = self.stored.load(Ordering::Relaxed);
        self.moment().filter(|moment| moment.0 > stored)
    }
}
