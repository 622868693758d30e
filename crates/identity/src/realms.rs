//! The realms of a server: those that the settings name, and those that were made at run time. A
//! realm that was removed stays as a name, which is not given again. A change is durable before
//! anyone sees it, and everyone sees it before it is acknowledged.

use crate::Identity;
use crate::audit_entries;
use crate::keys::Keys;
use crate::maker::Maker;
use crate::principals::Principals;
use kernel::contracts::identity::principals::StoredPrincipal;
use kernel::contracts::identity::realms::{LostEntries, RealmRecord, Removal, StoredRealms};
use kernel::contracts::{Clock, StoreError};
use kernel::identity::grants::{BadRealm, Grants, RealmPattern, check_realm};
use kernel::identity::key::ApiKey;
use kernel::identity::principal::Principal;
use kernel::identity::realm::Realms;
use kernel::identity::roles::Roles;
use kernel::values::ids::{Millis, RealmId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many realms can be made at run time, those that were removed included: all are held in
/// memory.
pub const REALMS_MAX: usize = 10_000;

/// Why a realm was not made or removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RealmRefusal {
    /// Its maker does not administer the whole server.
    #[error("making and removing realms needs the role `admin` in `*`")]
    NotAllowed,
    /// No realm can have this name.
    #[error(transparent)]
    BadName(#[from] BadRealm),
    /// There is one of this name.
    #[error("there is a realm `{0}` already")]
    Exists(RealmId),
    /// There was one of this name: what is left of its credentials must stay dead.
    #[error("there was a realm `{0}`, and the name of a removed realm is not given again")]
    WasRemoved(RealmId),
    /// There is none of this name.
    #[error("there is no such realm")]
    Unknown,
    /// The settings name it, which would bring it back.
    #[error("the realm `{0}` is configured in the settings of the server")]
    Configured(RealmId),
    /// There are as many as there may be.
    #[error("10,000 realms were made already, including those that were removed")]
    TooMany,
    /// The credential of its maker ended in the meantime.
    #[error("the credential that this was asked with is not valid any more")]
    MakerRevoked,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The realms that were made at run time, by name.
type Records = BTreeMap<RealmId, RealmRecord>;

/// The realms as they were read at the start.
pub(crate) struct FirstRealms {
    store: Arc<dyn StoredRealms>,
    configured: Realms,
    stored: Records,
}

impl FirstRealms {
    /// Those that the settings name, and those that are stored.
    pub(crate) async fn read(
        store: Arc<dyn StoredRealms>,
        configured: Realms,
    ) -> Result<Self, StoreError> {
        let stored = read(&*store).await?;
        Ok(Self { store, configured, stored })
    }

    pub(crate) fn all(&self) -> Realms {
        combined(&self.configured, &self.stored)
    }
}

async fn read(store: &dyn StoredRealms) -> Result<Records, StoreError> {
    let records = store.all_realms().await?;
    Ok(records.into_iter().map(|record| (record.name.clone(), record)).collect())
}

/// The realms that there are: none that was removed, whatever the settings say.
fn combined(configured: &Realms, stored: &Records) -> Realms {
    let mut realms = configured.clone();
    for record in stored.values() {
        if record.removed.is_some() {
            realms.0.remove(&record.name);
        } else {
            realms.0.entry(record.name.clone()).or_default();
        }
    }
    realms
}

/// The realms, and who changes them.
pub(crate) struct RealmBook {
    store: Arc<dyn StoredRealms>,
    /// Where everyone sees them.
    keys: Arc<Keys>,
    principals: Arc<Principals>,
    clock: Arc<dyn Clock>,
    /// Those that the settings name, with what is set for each.
    configured: Realms,
    stored: Mutex<Records>,
    /// Held by who changes something, from its first look to what everyone sees.
    changing: tokio::sync::Mutex<()>,
}

impl RealmBook {
    /// Those of the start, which everyone sees already.
    pub(crate) fn new(
        first: FirstRealms,
        keys: Arc<Keys>,
        principals: Arc<Principals>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let FirstRealms { store, configured, stored } = first;
        let stored = Mutex::new(stored);
        let changing = tokio::sync::Mutex::new(());
        Self { store, keys, principals, clock, configured, stored, changing }
    }

    fn stored(&self) -> MutexGuard<'_, Records> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads all that is stored again, and lets everyone see it. It stays locked until then, so
    /// that no older one comes after it.
    async fn reload(&self) -> Result<(), StoreError> {
        let records = read(&*self.store).await?;
        let mut stored = self.stored();
        *stored = records;
        self.keys.take_realms(combined(&self.configured, &stored));
        Ok(())
    }

    /// Checks that the maker administers the whole server, with a valid credential.
    fn check(&self, maker: &Maker) -> Result<(), RealmRefusal> {
        if !maker.administers_everything() {
            return Err(RealmRefusal::NotAllowed);
        }
        match maker.is_good(&self.keys.snapshot()) {
            true => Ok(()),
            false => Err(RealmRefusal::MakerRevoked),
        }
    }

    async fn create(&self, maker: &Maker, name: &str) -> Result<RealmRecord, RealmRefusal> {
        let _changing = self.changing.lock().await;
        // No key is revoked between the look at its holder's and the write.
        let _keys = self.keys.hold_changes().await;
        self.check(maker)?;
        check_realm(name)?;
        let name = RealmId::from(name);
        let before = self.stored().get(&name).cloned();
        match before {
            Some(record) if record.removed.is_some() => {
                return Err(RealmRefusal::WasRemoved(name));
            }
            Some(_) => return Err(RealmRefusal::Exists(name)),
            None if self.configured.0.contains_key(&name) => {
                return Err(RealmRefusal::Exists(name));
            }
            None if self.stored().len() >= REALMS_MAX => return Err(RealmRefusal::TooMany),
            None => {}
        }
        let by = maker.subject.clone();
        let created = self.clock.now();
        let audit = audit_entries::of_realm(maker, &name, "realm.create", None, created);
        let record = RealmRecord { name, by, created, removed: None };
        self.settled(self.store.create_realm(&record, audit).await).await?;
        Ok(record)
    }

    async fn remove(&self, maker: &Maker, name: &str) -> Result<RealmRecord, RealmRefusal> {
        let _changing = self.changing.lock().await;
        // No key and no principal gets the realm while it goes.
        let _keys = self.keys.hold_changes().await;
        let _principals = self.principals.hold_changes().await;
        self.check(maker)?;
        let name = RealmId::from(name);
        let stored = self.stored().get(&name).cloned();
        let record = match stored {
            Some(record) if record.removed.is_some() => return Ok(record),
            _ if self.configured.0.contains_key(&name) => {
                return Err(RealmRefusal::Configured(name));
            }
            Some(record) => record,
            None => return Err(RealmRefusal::Unknown),
        };
        let now = self.clock.now();
        let removal = Removal { by: maker.subject.clone(), at: now, purged: false };
        let lost = self.lost(maker, &name, now);
        let audit = audit_entries::of_realm(maker, &name, "realm.remove", Some(&lost), now);
        let removed = self.store.remove_realm(&name, &removal, lost, audit).await;
        self.settled(removed).await?;
        // Everyone sees already that the realm is gone: what could enter it reaches nothing there.
        let reloaded = match self.keys.reload().await {
            Ok(()) => self.principals.reload().await,
            Err(error) => Err(error),
        };
        if let Err(error) = reloaded {
            tracing::warn!(%error, realm = %name, "keys and principals cannot be read again yet");
        }
        Ok(RealmRecord { removed: Some(removal), ..record })
    }

    /// Lets everyone see what is stored after a change. What is stored decides: a write that is
    /// reported as failed may have been made all the same.
    async fn settled(&self, written: Result<(), StoreError>) -> Result<(), StoreError> {
        let reloaded = self.reload().await;
        written.and(reloaded)
    }

    /// The keys and principals that name this realm, without it.
    fn lost(&self, maker: &Maker, realm: &RealmId, now: Millis) -> LostEntries {
        let snapshot = self.keys.snapshot();
        let all = snapshot.directory.keys.values();
        let keys = all.filter_map(|key| {
            let lost = without_key(key, realm, now)?;
            Some((lost, snapshot.stored(&key.id)?.version))
        });
        let principals = self.principals.stored().into_iter().filter_map(|stored| {
            let StoredPrincipal { mut record, version } = stored;
            let principal = without_principal(record.principal.as_deref()?, realm)?;
            record.by = maker.subject.clone();
            record.changed = now;
            record.principal = Some(Arc::new(principal));
            Some((record, version))
        });
        LostEntries { keys: keys.collect(), principals: principals.collect() }
    }
}

/// The entry of grants that is for this realm alone.
fn own_entry<'g>(grants: &'g Grants, realm: &RealmId) -> Option<&'g RealmPattern> {
    grants.0.keys().find(|pattern| pattern.is_exact() && pattern.fits(realm))
}

/// A key without this realm. One that enters no other realm is revoked, and keeps the entry: who
/// sees it follows from that.
fn without_key(key: &ApiKey, realm: &RealmId, now: Millis) -> Option<ApiKey> {
    let entry = own_entry(&key.realms, realm)?;
    let mut changed = key.clone();
    match key.realms.0.len() {
        1 if key.revoked.is_some() => return None,
        1 => changed.revoked = Some(now),
        _ => drop(changed.realms.0.remove(entry)),
    }
    Some(changed)
}

/// A principal without its roles in this realm. One that has no other realm keeps an entry without
/// roles, for the same reason.
fn without_principal(principal: &Principal, realm: &RealmId) -> Option<Principal> {
    let mut changed = principal.clone();
    if let Some(entry) = own_entry(&principal.realms, realm) {
        match principal.realms.0.len() {
            1 => drop(changed.realms.0.insert(entry.clone(), Roles::default())),
            _ => drop(changed.realms.0.remove(entry)),
        }
    }
    if changed.default_realm.as_ref() == Some(realm) {
        changed.default_realm = None;
    }
    changed.realm_overrides.retain(|_, other| *other != *realm);
    (changed != *principal).then_some(changed)
}

impl Identity {
    /// Makes a realm; everyone sees it once this returns. The caller lets it come to its end.
    pub async fn create_realm(
        &self,
        maker: &Maker,
        name: &str,
    ) -> Result<RealmRecord, RealmRefusal> {
        self.realms.create(maker, name).await
    }

    /// Removes a realm that was made at run time: no request enters it once this returns. What it
    /// owned is still there. One that was removed before stays as it is. The caller lets it come
    /// to its end.
    pub async fn remove_realm(
        &self,
        maker: &Maker,
        name: &str,
    ) -> Result<RealmRecord, RealmRefusal> {
        self.realms.remove(maker, name).await
    }

    /// A realm that was made at run time, also one that was removed.
    pub fn made_realm(&self, name: &RealmId) -> Option<RealmRecord> {
        self.realms.stored().get(name).cloned()
    }

    /// Whether the settings name this realm.
    pub fn is_configured(&self, name: &RealmId) -> bool {
        self.realms.configured.0.contains_key(name)
    }

    /// The realms that were removed and of which something may be left.
    pub fn unpurged_realms(&self) -> Vec<RealmId> {
        let is_left = |removal: &Removal| !removal.purged;
        let stored = self.realms.stored();
        let left = stored.values().filter(|record| record.removed.as_ref().is_some_and(is_left));
        left.map(|record| record.name.clone()).collect()
    }

    /// The realms that the settings name and that are not there, because they were removed.
    pub fn buried_realms(&self) -> Vec<RealmId> {
        let stored = self.realms.stored();
        let removed = stored.values().filter(|record| record.removed.is_some());
        let names = removed.map(|record| record.name.clone());
        names.filter(|name| self.is_configured(name)).collect()
    }

    /// Notes that nothing of a removed realm is left.
    pub async fn note_purged(&self, realm: &RealmId) -> Result<(), StoreError> {
        self.realms.settled(self.realms.store.note_purged(realm).await).await
    }

    /// Whether there is such a realm now.
    pub fn has_realm(&self, realm: &RealmId) -> bool {
        self.directory().realms.0.contains_key(realm)
    }
}
