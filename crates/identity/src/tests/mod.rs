//! What the tests of this crate stand on: keys in memory, a clock that is set by hand, chance that
//! is none, and tasks that tell when they ended.
#![allow(clippy::disallowed_methods, reason = "the tasks here are the test's `Spawn`")]

mod keys;
mod changes;
mod credentials;
mod tokens;
mod roles;
mod signing;
mod jwt;
mod fuzz;
mod issuers;
mod principals;
mod realms;
mod realm_changes;

use crate::credential::SentCredential;
use crate::keys::{Expiry, KeyWithText, Maker, NewKey};
use crate::{CredentialRefusal, Identity, IdentityParts, VerifiedCaller};
use futures::future::BoxFuture;
use kernel::contracts::identity::api_keys::{ApiKeys, StoredKey};
use kernel::contracts::identity::claims::{Claims, SubjectClaims};
use kernel::contracts::identity::principals::{Principals, StoredPrincipal};
use kernel::contracts::identity::realms::{LostEntries, RealmRecord, Removal, StoredRealms};
use kernel::contracts::{Clock, Entropy, Read, Spawn, StoreError};
use kernel::identity::audit::Entries;
use kernel::identity::grants::{Grants, RealmPattern};
use kernel::identity::issuer::IssuerEntry;
use kernel::identity::key::{ApiKey, KeyId};
use kernel::identity::principal::{Principal, PrincipalRecord};
use kernel::identity::realm::Realms;
use kernel::identity::roles::{Role, Roles};
use kernel::values::caller::{KeyMakers, Via};
use kernel::values::ids::{Millis, RealmId};
use kernel::values::secret::Secret;
use outbound::seal::Keyring;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// When every test begins.
const NOW: Millis = Millis(1_800_000_000_000);
const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;
/// Where requests come from.
const HOME: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const ADMIN_KEY: &str = "an-admin-key-of-at-least-32-characters";

/// An identity, and what is around it.
struct Stage {
    identity: Arc<Identity>,
    store: Arc<Memory>,
    clock: Arc<HandClock>,
    tasks: Arc<Tasks>,
}

impl Stage {
    /// One without keys, with an admin key.
    async fn open() -> Self {
        Self::over(Arc::default(), Arc::default()).await
    }

    /// One over what another left.
    async fn over(store: Arc<Memory>, clock: Arc<HandClock>) -> Self {
        Self::trusting(store, clock, Vec::new()).await
    }

    /// The same, which takes tokens of these issuers.
    async fn trusting(
        store: Arc<Memory>,
        clock: Arc<HandClock>,
        issuers: Vec<IssuerEntry>,
    ) -> Self {
        Self::knowing(store, clock, issuers, Vec::new()).await
    }

    /// The same, with these principals in the project's file.
    async fn knowing(
        store: Arc<Memory>,
        clock: Arc<HandClock>,
        issuers: Vec<IssuerEntry>,
        principals: Vec<Principal>,
    ) -> Self {
        let tasks = Arc::new(Tasks::default());
        let principals = principals.into_iter().map(Arc::new).collect();
        let parts = parts(store.clone(), clock.clone(), tasks.clone(), issuers, principals);
        Self { identity: Identity::open(parts).await.unwrap(), store, clock, tasks }
    }

    /// What another identity over the same store is made of.
    fn parts(
        &self,
        issuers: Vec<IssuerEntry>,
        principals_file: Vec<Arc<Principal>>,
    ) -> IdentityParts {
        let Self { store, clock, tasks, .. } = self;
        parts(store.clone(), clock.clone(), tasks.clone(), issuers, principals_file)
    }

    /// Makes a key with these roles in one realm.
    async fn made(&self, realm: &str, roles: &[Role]) -> KeyWithText {
        self.identity.create(&root(), new_key(realm, roles)).await.unwrap()
    }

    /// Who sends this text.
    fn who(&self, text: &str) -> Result<VerifiedCaller, CredentialRefusal> {
        self.identity.authenticate(&sent(text), HOME).map(Arc::unwrap_or_clone)
    }

    /// Why this text is refused.
    fn why(&self, text: &str) -> &'static str {
        match self.who(text) {
            Err(CredentialRefusal::Invalid(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    fn is_good(&self, text: &Secret) -> bool {
        self.who(text.expose()).is_ok()
    }
}

fn parts(
    store: Arc<Memory>,
    clock: Arc<HandClock>,
    spawn: Arc<Tasks>,
    issuers: Vec<IssuerEntry>,
    principals_file: Vec<Arc<Principal>>,
) -> IdentityParts {
    IdentityParts {
        keys: store.clone(),
        claims: store.clone(),
        principals: store.clone(),
        made_realms: store,
        principals_file,
        realms: Realms::default(),
        issuers,
        mcp: Some("https://wp.test/mcp".to_owned()),
        audit: None,
        admin_key: Some(ADMIN_KEY.into()),
        seal: Keyring::new([7; 32]),
        clock,
        entropy: Arc::new(Counted::default()),
        spawn,
    }
}

/// A text as a request brings it.
fn sent(text: &str) -> SentCredential<'_> {
    SentCredential::of(&[], &[text.as_bytes()]).unwrap().unwrap()
}

/// These roles in one realm, or in all that a pattern fits.
fn grants(realm: &str, roles: &[Role]) -> Grants {
    Grants::one(RealmPattern::parse(realm).unwrap(), Roles::of(roles))
}

/// Who administers everything.
fn root() -> Maker {
    maker("*")
}

/// Who administers this realm, or these.
fn maker(realm: &str) -> Maker {
    let grants = grants(realm, &[Role::Admin]);
    let makers = KeyMakers::default();
    let via = Via::default();
    Maker { subject: "admin".into(), actor: None, key: None, makers, grants, via }
}

fn new_key(realm: &str, roles: &[Role]) -> NewKey {
    let realms = grants(realm, roles);
    NewKey { name: "a key".to_owned(), of: None, realms, scopes: None, expires: Expiry::Usual }
}

/// Keys in memory, as another process may change them as well.
#[derive(Default)]
struct Memory {
    keys: Mutex<BTreeMap<KeyId, StoredKey>>,
    claims: Mutex<BTreeMap<Arc<str>, SubjectClaims>>,
    principals: Mutex<BTreeMap<Arc<str>, StoredPrincipal>>,
    realms: Mutex<BTreeMap<RealmId, RealmRecord>>,
    /// How often claims were written.
    claimed: AtomicU64,
    /// Whether writes wait.
    held: watch::Sender<bool>,
    /// Whether the next write is made and reported as failed.
    breaks: AtomicBool,
    /// How often uses were noted.
    noted: watch::Sender<u32>,
    /// What the audit got with keys and principals.
    entries: Mutex<Entries>,
}

impl Memory {
    /// A key as it is stored.
    fn stored(&self, id: &KeyId) -> StoredKey {
        self.keys.lock().unwrap()[id].clone()
    }

    /// Another process changes a key.
    fn change_elsewhere(&self, id: &KeyId, change: impl FnOnce(&mut ApiKey)) {
        let mut keys = self.keys.lock().unwrap();
        let stored = keys.get_mut(id).unwrap();
        change(&mut stored.key);
        stored.version += 1;
    }

    fn write(&self, key: &ApiKey, over: Option<u64>) -> Result<u64, StoreError> {
        let mut keys = self.keys.lock().unwrap();
        let before = keys.get(&key.id);
        if before.map(|stored| stored.version) != over {
            return Err(StoreError::Conflict(key.id.to_string()));
        }
        let version = over.unwrap_or_default() + 1;
        let used = before.and_then(|stored| stored.used);
        keys.insert(key.id.clone(), StoredKey { key: key.clone(), version, used });
        Ok(version)
    }
}

impl ApiKeys for Memory {
    fn all(&self) -> Read<'_, Vec<StoredKey>> {
        let all = self.keys.lock().unwrap().values().cloned().collect();
        Box::pin(async move { Ok(all) })
    }

    fn put_audited<'a>(
        &'a self,
        key: &'a ApiKey,
        version: Option<u64>,
        audit: Entries,
    ) -> Read<'a, u64> {
        let mut held = self.held.subscribe();
        Box::pin(async move {
            drop(held.wait_for(|held| !*held).await);
            let written = self.write(key, version);
            if written.is_ok() {
                self.entries.lock().unwrap().extend(audit);
            }
            if self.breaks.swap(false, Ordering::SeqCst) {
                return Err(StoreError::Failed("the answer was lost".to_owned()));
            }
            written
        })
    }

    fn note_uses<'a>(&'a self, uses: &'a [(KeyId, Millis)]) -> Read<'a, ()> {
        let mut keys = self.keys.lock().unwrap();
        for (id, moment) in uses {
            if let Some(stored) = keys.get_mut(id) {
                stored.used = stored.used.max(Some(*moment));
            }
        }
        self.noted.send_modify(|noted| *noted += 1);
        Box::pin(async { Ok(()) })
    }
}

impl Claims for Memory {
    fn all_claims(&self) -> Read<'_, Vec<SubjectClaims>> {
        let all = self.claims.lock().unwrap().values().cloned().collect();
        Box::pin(async move { Ok(all) })
    }

    fn put_claims<'a>(&'a self, claims: &'a SubjectClaims) -> Read<'a, ()> {
        self.claimed.fetch_add(1, Ordering::SeqCst);
        self.claims.lock().unwrap().insert(claims.subject.clone(), claims.clone());
        Box::pin(async { Ok(()) })
    }

    fn remove_claims<'a>(&'a self, subjects: &'a [Arc<str>]) -> Read<'a, ()> {
        self.claims.lock().unwrap().retain(|subject, _| !subjects.contains(subject));
        Box::pin(async { Ok(()) })
    }
}

impl Principals for Memory {
    fn all_principals(&self) -> Read<'_, Vec<StoredPrincipal>> {
        let all = self.principals.lock().unwrap().values().cloned().collect();
        Box::pin(async move { Ok(all) })
    }

    fn put_principal<'a>(
        &'a self,
        record: &'a PrincipalRecord,
        version: Option<u64>,
        audit: Entries,
    ) -> Read<'a, u64> {
        Box::pin(async move {
            let mut principals = self.principals.lock().unwrap();
            if principals.get(&record.id).map(|stored| stored.version) != version {
                return Err(StoreError::Conflict(record.id.to_string()));
            }
            let version = version.unwrap_or_default() + 1;
            let stored = StoredPrincipal { record: record.clone(), version };
            principals.insert(record.id.clone(), stored);
            self.entries.lock().unwrap().extend(audit);
            Ok(version)
        })
    }
}

impl StoredRealms for Memory {
    fn all_realms(&self) -> Read<'_, Vec<RealmRecord>> {
        let all = self.realms.lock().unwrap().values().cloned().collect();
        Box::pin(async move { Ok(all) })
    }

    fn create_realm<'a>(&'a self, record: &'a RealmRecord, audit: Entries) -> Read<'a, ()> {
        self.realms.lock().unwrap().insert(record.name.clone(), record.clone());
        self.entries.lock().unwrap().extend(audit);
        Box::pin(async { Ok(()) })
    }

    fn remove_realm<'a>(
        &'a self,
        realm: &'a RealmId,
        removal: &'a Removal,
        lost: LostEntries,
        audit: Entries,
    ) -> Read<'a, ()> {
        Box::pin(async move {
            for (key, version) in &lost.keys {
                self.write(key, Some(*version))?;
            }
            for (record, version) in lost.principals {
                self.put_principal(&record, Some(version), Entries::new()).await?;
            }
            let mut realms = self.realms.lock().unwrap();
            realms.get_mut(realm).unwrap().removed = Some(removal.clone());
            self.entries.lock().unwrap().extend(audit);
            Ok(())
        })
    }

    fn purge_realm<'a>(&'a self, _realm: &'a RealmId) -> Read<'a, bool> {
        Box::pin(async { Ok(false) })
    }

    fn note_purged<'a>(&'a self, realm: &'a RealmId) -> Read<'a, ()> {
        let mut realms = self.realms.lock().unwrap();
        realms.get_mut(realm).unwrap().removed.as_mut().unwrap().purged = true;
        Box::pin(async { Ok(()) })
    }
}

/// A clock that stands still until it is set.
struct HandClock {
    now: watch::Sender<i64>,
    /// How often someone began to wait for it.
    sleeps: watch::Sender<u32>,
}

impl Default for HandClock {
    fn default() -> Self {
        Self { now: watch::Sender::new(NOW.0), sleeps: watch::Sender::default() }
    }
}

impl HandClock {
    fn advance(&self, ms: u64) {
        self.now.send_modify(|now| *now = Millis(*now).plus_ms(ms).0);
    }

    /// Waits until someone began to wait for the clock so often.
    async fn slept(&self, times: u32) {
        reached(&self.sleeps, |sleeps| *sleeps >= times).await;
    }
}

impl Clock for HandClock {
    fn now(&self) -> Millis {
        Millis(*self.now.borrow())
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.now().0.unsigned_abs())
    }

    fn sleep_until(&self, then: Millis) -> BoxFuture<'static, ()> {
        let mut now = self.now.subscribe();
        self.sleeps.send_modify(|sleeps| *sleeps += 1);
        Box::pin(async move {
            drop(now.wait_for(|now| *now >= then.0).await);
        })
    }
}

/// Waits until a value is as expected.
async fn reached<T>(sender: &watch::Sender<T>, is_so: impl FnMut(&T) -> bool) {
    let mut values = sender.subscribe();
    assert!(values.wait_for(is_so).await.is_ok());
}

/// Randomness that is fixed.
#[derive(Default)]
struct Counted(AtomicU64);

impl Entropy for Counted {
    fn bits(&self) -> u128 {
        let count = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        u128::from(count).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    }
}

/// Tasks of the test's runtime.
#[derive(Default)]
struct Tasks {
    /// The names of those that ended.
    ended: Arc<watch::Sender<Vec<&'static str>>>,
}

impl Spawn for Tasks {
    fn task(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        let ended = self.ended.clone();
        tokio::spawn(async move {
            future.await;
            ended.send_modify(|ended| ended.push(name));
        });
    }

    fn thread(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        self.task(name, future);
    }
}
