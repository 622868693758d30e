//! The keys of a server: all of them in memory, checked there, and changed in the store first. A
//! change is durable before anyone sees it, and everyone sees it before it is acknowledged.

use crate::audit_entries;
use crate::snapshot::{LastUse, Snapshot};
use kernel::contracts::identity::api_keys::{ApiKeys, StoredKey};
use kernel::contracts::{Clock, Entropy, Spawn, StoreError};
use kernel::identity::audit::Entries;
use kernel::identity::directory::Directory;
use kernel::identity::grants::{ExceededGrant, Grants};
use kernel::identity::key::{
    ApiKey, EXPIRES_DEFAULT_DAYS, KeyId, KeyRejection, KeyText, SecretHash, hash_of,
};
use kernel::identity::principal::Roster;
use kernel::identity::realm::Realms;
use kernel::identity::roles::Roles;
use kernel::values::ids::Millis;
use kernel::values::secret::Secret;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use tokio::sync::{oneshot, watch};

pub use crate::maker::Maker;
pub use crate::new_key::{Expiry, NewKey};

/// How many keys there are at most, those that were revoked included: all are held in memory.
pub const KEYS_MAX: usize = 50_000;
/// How many characters the name of a key has at most.
pub const NAME_CHARS_MAX: usize = 200;

/// How often last uses are stored.
const STORE_USES_MS: u64 = 60 * 1_000;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// A key that was made, or got another text.
#[derive(Debug, Clone)]
pub struct KeyWithText {
    /// The key.
    pub stored: StoredKey,
    /// Its text. No one sees it again.
    pub text: Secret,
}

/// Why a key was not made or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyRefusal {
    /// It would reach further than its maker administers.
    #[error(transparent)]
    Exceeds(#[from] ExceededGrant),
    /// There is none of this id, or none that this maker may see.
    #[error("there is no such key")]
    Unknown,
    /// It is not good any more.
    #[error(transparent)]
    Dead(#[from] KeyRejection),
    /// It would be good for nothing.
    #[error("a key needs at least one realm, with at least one role")]
    NoRealm,
    /// There is no such principal, or it may not enter these realms.
    #[error("there is no such principal in these realms")]
    NoPrincipal,
    /// People could not tell it from others, or not read it.
    #[error("the name of a key has 1 to 200 characters, without control characters")]
    BadName,
    /// It would be over before it began.
    #[error("a key must expire in the future")]
    BadExpiry,
    /// There are as many as there may be.
    #[error("there are 50,000 keys already, including those that were revoked")]
    TooMany,
    /// The key of its maker was revoked in the meantime, or its principal disabled.
    #[error("the credential that this was asked with is not valid any more")]
    MakerRevoked,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The keys, and who changes them.
pub(crate) struct Keys {
    parts: KeyParts,
    snapshot: RwLock<Arc<Snapshot>>,
    /// Held by who changes something, from its first look to the new snapshot.
    changing: tokio::sync::Mutex<()>,
    /// The number of the snapshot, for who waits for a change.
    numbers: watch::Sender<u64>,
    /// Compared with texts of unknown keys, so that both take the same time.
    dummy: ApiKey,
}

#[derive(Clone)]
pub(crate) struct KeyParts {
    pub(crate) store: Arc<dyn ApiKeys>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) spawn: Arc<dyn Spawn>,
}

/// A key whose text was shown.
pub(crate) struct Holder {
    snapshot: Arc<Snapshot>,
    pub(crate) key: Arc<ApiKey>,
    /// Until when that text is good, if it ends.
    pub(crate) until: Option<Millis>,
}

struct Draft<T> {
    key: ApiKey,
    /// The version that it follows; none for a new key.
    over: Option<u64>,
    /// Returned to the caller.
    gives: T,
    audit: Entries,
}

impl Keys {
    /// Reads all keys, and stores their last uses from now on, as long as this lives.
    pub(crate) async fn open(
        parts: KeyParts,
        has_admin_key: bool,
        realms: Realms,
    ) -> Result<Arc<Self>, StoreError> {
        let snapshot = Snapshot::first(has_admin_key, realms, parts.store.all().await?);
        let number = snapshot.directory.number;
        let keys = Arc::new(Self {
            parts,
            snapshot: RwLock::new(Arc::new(snapshot)),
            changing: tokio::sync::Mutex::new(()),
            numbers: watch::Sender::new(number),
            dummy: only_holding(hash_of("")),
        });
        let storing = keep_storing_uses(Arc::downgrade(&keys), keys.parts.clock.clone());
        keys.parts.spawn.task("last uses of keys", Box::pin(storing));
        Ok(keys)
    }

    /// Everyone who is known now.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same without what is remembered beside it, and without a reference to that.
    pub(crate) fn directory(&self) -> Arc<Directory> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).directory.clone()
    }

    /// The number of the snapshot.
    pub(crate) fn number(&self) -> u64 {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).directory.number
    }

    pub(crate) fn numbers(&self) -> watch::Receiver<u64> {
        self.numbers.subscribe()
    }

    /// The key with this id, if this is the hash of a text of it and both are good now.
    pub(crate) fn verify(
        &self,
        id: &KeyId,
        sha256: &str,
        now: Millis,
    ) -> Result<Holder, &'static str> {
        let snapshot = self.snapshot();
        let known = snapshot.directory.keys.get(id);
        // How long it takes must not tell whether there is such an id.
        let holds = match known {
            Some(key) => key.holds(sha256, now),
            None => self.dummy.holds(sha256, now),
        };
        let key = known.ok_or("there is no key with this id")?.clone();
        if !holds {
            return Err("the secret of the key is wrong, or it was replaced");
        }
        key.check(now).map_err(|dead| match dead {
            KeyRejection::Revoked => "the key was revoked",
            KeyRejection::Expired => "the key has expired",
        })?;
        if key.of.as_ref().is_some_and(|of| !is_enabled(&snapshot.directory, of)) {
            return Err("the principal of the key is disabled, or not there any more");
        }
        let shown = key.secrets.iter().find(|secret| secret.sha256 == sha256);
        let until = earliest([key.expires, shown.and_then(|secret| secret.until)]);
        Ok(Holder { snapshot, key, until })
    }

    /// The keys that this maker administers, by id, those that were revoked included.
    pub(crate) fn list(&self, maker: &Maker) -> Vec<StoredKey> {
        let snapshot = self.snapshot();
        let seen = snapshot.directory.keys.values().filter(|key| maker.administers(&key.realms));
        let mut stored: Vec<_> = seen.filter_map(|key| snapshot.stored(&key.id)).collect();
        stored.sort_by_key(|stored| stored.key.id.clone());
        stored
    }

    /// Makes a key.
    pub(crate) async fn create(
        self: &Arc<Self>,
        maker: &Maker,
        new: NewKey,
    ) -> Result<KeyWithText, KeyRefusal> {
        let maker = maker.clone();
        let made = self.change(move |keys| keys.new_key(&maker, &new));
        let (stored, text) = made.await?;
        Ok(KeyWithText { stored, text })
    }

    /// Gives a key another text; the one before it is good for so many milliseconds more.
    pub(crate) async fn rotate(
        self: &Arc<Self>,
        maker: &Maker,
        id: &KeyId,
        overlap_ms: u64,
    ) -> Result<KeyWithText, KeyRefusal> {
        let maker = maker.clone();
        let id = id.clone();
        let rotated = self.change(move |keys| {
            let StoredKey { key, version, .. } = keys.administered(&maker, &id)?;
            let now = keys.parts.clock.now();
            key.check(now)?;
            let KeyText { text, .. } = KeyText::renewed(id.clone(), keys.random());
            let key = key.rotated(hash_of(text.expose()), now, overlap_ms);
            let key = key.shown_to(maker.people());
            maker.may_be_shown(&key, &keys.directory())?;
            let audit = audit_entries::of_key(&maker, &key, "key.rotate", now);
            Ok(Draft { key, over: Some(version), gives: text, audit })
        });
        let (stored, text) = rotated.await?;
        Ok(KeyWithText { stored, text })
    }

    /// Ends a key, for good. One that has ended stays as it is.
    pub(crate) async fn revoke(
        self: &Arc<Self>,
        maker: &Maker,
        id: &KeyId,
    ) -> Result<StoredKey, KeyRefusal> {
        let maker = maker.clone();
        let id = id.clone();
        let revoked = self.change(move |keys| {
            let StoredKey { mut key, version, .. } = keys.administered(&maker, &id)?;
            let now = keys.parts.clock.now();
            key.revoked.get_or_insert(now);
            let audit = audit_entries::of_key(&maker, &key, "key.revoke", now);
            Ok(Draft { key, over: Some(version), gives: (), audit })
        });
        let (stored, ()) = revoked.await?;
        Ok(stored)
    }

    fn new_key(&self, maker: &Maker, new: &NewKey) -> Result<Draft<Secret>, KeyRefusal> {
        let snapshot = self.snapshot();
        check(maker, &snapshot)?;
        // First what the maker names, whether or not it exists: only administrators of a realm may
        // learn whether a principal is known there.
        new.realms.is_within(&maker.grants)?;
        let realms = realms_of(new, &snapshot.directory)?;
        if !maker.administers(&realms) {
            return Err(KeyRefusal::NoPrincipal);
        }
        let name = new.name.trim();
        let characters = name.chars().count();
        if characters == 0 || characters > NAME_CHARS_MAX || name.chars().any(char::is_control) {
            return Err(KeyRefusal::BadName);
        }
        if snapshot.directory.keys.len() >= KEYS_MAX {
            return Err(KeyRefusal::TooMany);
        }
        let now = self.parts.clock.now();
        let expires = new.expires.moment(now)?;
        let KeyText { id, text } = KeyText::mint(self.random());
        let key = ApiKey {
            id,
            name: name.to_owned(),
            of: new.of.clone(),
            realms,
            scopes: new.scopes,
            by: maker.subject.clone(),
            created: now,
            expires,
            ..only_holding(hash_of(text.expose()))
        };
        let key = key.shown_to(maker.people());
        maker.may_be_shown(&key, &snapshot.directory)?;
        let audit = audit_entries::of_key(maker, &key, "key.create", now);
        Ok(Draft { key, over: None, gives: text, audit })
    }

    /// A key that this maker may change.
    fn administered(&self, maker: &Maker, id: &KeyId) -> Result<StoredKey, KeyRefusal> {
        let snapshot = self.snapshot();
        check(maker, &snapshot)?;
        let stored = snapshot.stored(id).filter(|stored| maker.administers(&stored.key.realms));
        stored.ok_or(KeyRefusal::Unknown)
    }

    /// Makes a change in a task of its own: it is done to its end, even if the one who asked does
    /// not wait for it. What is drafted depends on what is known, so a draft may be made twice.
    async fn change<T: Send + 'static>(
        self: &Arc<Self>,
        draft: impl Fn(&Self) -> Result<Draft<T>, KeyRefusal> + Send + Sync + 'static,
    ) -> Result<(StoredKey, T), KeyRefusal> {
        let (done, answer) = oneshot::channel();
        let keys = self.clone();
        let working = async move {
            // The one who asked may be gone.
            let _ = done.send(keys.changed(&draft).await);
        };
        self.parts.spawn.task("change of keys", Box::pin(working));
        answer.await.unwrap_or(Err(KeyRefusal::Store(StoreError::Closed)))
    }

    async fn changed<T: Send>(
        &self,
        draft: &(impl Fn(&Self) -> Result<Draft<T>, KeyRefusal> + Sync),
    ) -> Result<(StoredKey, T), KeyRefusal> {
        let _changing = self.changing.lock().await;
        let error = match self.write(draft(self)?).await {
            Ok(changed) => return Ok(changed),
            Err(error) => error,
        };
        // What is stored decides: another process may have been first, and a write that is
        // reported as failed may have been made all the same.
        let reloaded = self.reload().await;
        if !matches!(error, StoreError::Conflict(_)) {
            return Err(error.into());
        }
        reloaded?;
        Ok(self.write(draft(self)?).await?)
    }

    /// Stores a key, then lets everyone see it. The caller holds `changing`.
    async fn write<T>(&self, draft: Draft<T>) -> Result<(StoredKey, T), StoreError> {
        let Draft { key, over, gives, audit } = draft;
        let version = self.parts.store.put_audited(&key, over, audit).await?;
        let next = self.replace(|before| before.with(key.clone(), version));
        let stored = next.stored(&key.id).unwrap_or(StoredKey { key, version, used: None });
        Ok((stored, gives))
    }

    /// Keeps everyone else from changing a key.
    pub(crate) async fn hold_changes(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.changing.lock().await
    }

    /// Reads all keys again. The caller holds `changing`.
    pub(crate) async fn reload(&self) -> Result<(), StoreError> {
        let stored = self.parts.store.all().await?;
        self.replace(|before| before.reloaded(stored));
        Ok(())
    }

    /// Lets everyone see these roles of subjects that tokens name, or that they have none.
    pub(crate) fn take_claims(&self, changes: Vec<(Arc<str>, Option<Arc<Grants>>)>) {
        if !changes.is_empty() {
            self.replace(|before| before.with_claims(changes));
        }
    }

    /// Lets everyone see these principals, and no others.
    pub(crate) fn take_principals(&self, principals: Roster) {
        self.replace(|before| before.with_principals(principals));
    }

    /// Lets everyone see these realms, and no others.
    pub(crate) fn take_realms(&self, realms: Realms) {
        self.replace(|before| before.with_realms(realms));
    }

    /// Lets everyone look again: a credential may have ended without a notice to this process.
    pub(crate) fn wake(&self) {
        self.replace(|before| before.with_claims(Vec::new()));
    }

    /// Puts the next snapshot into the place of the one that is there. Claims change while keys
    /// do, so that it is made while no other can be.
    fn replace(&self, next: impl FnOnce(&Snapshot) -> Snapshot) -> Arc<Snapshot> {
        let mut snapshot = self.snapshot.write().unwrap_or_else(PoisonError::into_inner);
        let next = Arc::new(next(&snapshot));
        let before = std::mem::replace(&mut *snapshot, next.clone());
        drop(snapshot);
        // The one before it is dropped after the lock.
        drop(before);
        self.numbers.send_replace(next.directory.number);
        next
    }

    /// Stores the last uses that are not stored yet.
    pub(crate) async fn store_uses(&self) -> Result<(), StoreError> {
        let uses = self.snapshot().unstored_uses();
        if !uses.is_empty() {
            self.parts.store.note_uses(&uses).await?;
            self.snapshot().uses_were_stored(&uses);
        }
        Ok(())
    }

    pub(crate) fn random<const BYTES: usize>(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        for part in bytes.chunks_mut(size_of::<u128>()) {
            part.copy_from_slice(&self.parts.entropy.bits().to_be_bytes()[..part.len()]);
        }
        bytes
    }
}

impl Holder {
    /// Notes that the key was used, and gives where that is noted.
    pub(crate) fn note_use(&self, now: Millis) -> Option<Arc<LastUse>> {
        let used = self.snapshot.last_use(&self.key.id)?;
        used.note(now);
        Some(used)
    }

    /// The realms that the key may enter, with its roles there.
    pub(crate) fn realms(&self) -> Grants {
        match &self.key.of {
            Some(of) => {
                let held = self.snapshot.directory.all_grants(of);
                held.limited_to(self.key.realms.0.keys())
            }
            None => self.key.realms.clone(),
        }
    }
}

impl Expiry {
    fn moment(self, now: Millis) -> Result<Option<Millis>, KeyRefusal> {
        match self {
            Self::Usual => Ok(Some(now.plus_ms(EXPIRES_DEFAULT_DAYS * DAY_MS))),
            Self::At(moment) if moment > now => Ok(Some(moment)),
            Self::At(_) => Err(KeyRefusal::BadExpiry),
            Self::Never => Ok(None),
        }
    }
}

fn check(maker: &Maker, snapshot: &Snapshot) -> Result<(), KeyRefusal> {
    if maker.is_good(snapshot) { Ok(()) } else { Err(KeyRefusal::MakerRevoked) }
}

/// Whether this principal is there and may do something.
fn is_enabled(directory: &Directory, id: &str) -> bool {
    directory.principals.get(id).is_some_and(|known| known.disabled.is_none())
}

/// The realms that a new key may enter, with its roles there; those of a principal's key follow
/// from the principal, as it is then.
fn realms_of(new: &NewKey, directory: &Directory) -> Result<Grants, KeyRefusal> {
    let Some(of) = &new.of else {
        let has_none = new.realms.0.values().any(|roles| roles.is_empty());
        let is_good = !new.realms.0.is_empty() && !has_none;
        return if is_good { Ok(new.realms.clone()) } else { Err(KeyRefusal::NoRealm) };
    };
    if !is_enabled(directory, of) {
        return Err(KeyRefusal::NoPrincipal);
    }
    let held = directory.all_grants(of);
    let entered = match new.realms.0.is_empty() {
        true => held,
        false => held.limited_to(new.realms.0.keys()),
    };
    if entered.0.is_empty() {
        return Err(KeyRefusal::NoPrincipal);
    }
    Ok(Grants(entered.0.into_keys().map(|realm| (realm, Roles::default())).collect()))
}

/// A key of no one that has this hash, and that is good for nothing: hashes are compared in one
/// place.
pub(crate) fn only_holding(sha256: String) -> ApiKey {
    ApiKey {
        id: KeyId("".into()),
        name: String::new(),
        of: None,
        realms: Grants::default(),
        scopes: None,
        secrets: vec![SecretHash { sha256, until: None, by: Vec::new() }],
        by: "".into(),
        created: Millis(0),
        expires: None,
        revoked: None,
    }
}

/// The first of these moments, if there is one.
pub(crate) fn earliest<const N: usize>(moments: [Option<Millis>; N]) -> Option<Millis> {
    moments.into_iter().flatten().min()
}

/// Stores last uses once a minute, as long as the keys are there.
async fn keep_storing_uses(keys: Weak<Keys>, clock: Arc<dyn Clock>) {
    loop {
        clock.sleep_ms(STORE_USES_MS).await;
        let Some(keys) = keys.upgrade() else { return };
        if let Err(error) = keys.store_uses().await {
            tracing::warn!(%error, "cannot store when API keys were last used; trying again later");
        }
    }
}
