//! The principals of a server: those of the project's file, and those that are stored. All of them
//! are in memory. A change is durable before anyone sees it, and everyone sees it before it is
//! acknowledged; a file replaces all that the file before it said, or nothing.

use crate::Identity;
use crate::audit_entries;
use crate::keys::Keys;
use crate::maker::Maker;
use kernel::contracts::identity::principals::{Principals as PrincipalStore, StoredPrincipal};
use kernel::contracts::{Clock, Spawn, StoreError};
use kernel::definition::plan::mistake::{Mistake, Position};
use kernel::definition::plan::source::child_pointer;
use kernel::identity::audit::Entries;
use kernel::identity::grants::{ExceededGrant, Grants, RealmPattern};
use kernel::identity::issuer::IssuerEntry;
use kernel::identity::principal::{
    Clash, KnownPrincipal, Origin, PRINCIPALS_FILE, PRINCIPALS_MAX, Principal, PrincipalRecord,
    Roster,
};
use kernel::identity::roles::Roles;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// A principal as it is shown.
#[derive(Debug, Clone)]
pub struct SeenPrincipal {
    /// It, and how it stands.
    pub known: Arc<KnownPrincipal>,
    pub stored: Option<StoredPrincipal>,
}

impl SeenPrincipal {
    /// Its version, where it is stored as a whole.
    pub fn version(&self) -> Option<u64> {
        let is_stored = self.known.origin == Origin::Stored;
        self.stored.as_ref().filter(|_| is_stored).map(|stored| stored.version)
    }
}

/// Why a principal was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrincipalRefusal {
    /// It would reach further than its maker administers.
    #[error(transparent)]
    Exceeds(#[from] ExceededGrant),
    /// There is none of this id, or none that this maker may see.
    #[error("there is no such principal")]
    Unknown,
    /// It is in the file, which alone changes it.
    #[error("the principal is in `principals.yaml`, and changed only there")]
    InFile,
    /// Another one that the maker may not see has this id, one that differs in upper and lower case
    /// only, or one of these identities. It is not said which one.
    #[error("this id or one of these identities belongs to another principal")]
    Taken,
    /// It could be taken for another that the maker may see.
    #[error(transparent)]
    Clash(#[from] Clash),
    /// Another version is stored than the request says.
    #[error("another version of the principal is stored")]
    Stale,
    /// There are as many as there may be.
    #[error("there are 50,000 principals already")]
    TooMany,
    /// The credential of its maker ended in the meantime.
    #[error("the credential that this was asked with is not valid any more")]
    MakerRevoked,
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub(crate) struct PrincipalParts<'e> {
    pub(crate) store: Arc<dyn PrincipalStore>,
    pub(crate) file: Vec<Arc<Principal>>,
    /// Whose tokens are taken.
    pub(crate) issuers: Vec<&'e IssuerEntry>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) spawn: Arc<dyn Spawn>,
}

/// The principals, and who changes them.
pub(crate) struct Principals {
    store: Arc<dyn PrincipalStore>,
    /// Where everyone sees them.
    keys: Arc<Keys>,
    clock: Arc<dyn Clock>,
    spawn: Arc<dyn Spawn>,
    /// The realms that tokens of each issuer can enter: an identity there is worth that much.
    issuers: HashMap<Arc<str>, Vec<RealmPattern>>,
    held: Mutex<PrincipalSources>,
    /// Held by who changes something that is stored, from its first look to what everyone sees.
    changing: tokio::sync::Mutex<()>,
}

struct PrincipalSources {
    file: Vec<Arc<Principal>>,
    stored: BTreeMap<Arc<str>, StoredPrincipal>,
}

struct Draft {
    record: PrincipalRecord,
    /// The version that it follows; none for a new one.
    over: Option<u64>,
    audit: Entries,
}

impl PrincipalSources {
    fn combined(&self) -> (Roster, Vec<Clash>) {
        Roster::combine(&self.file, self.stored.values().map(|stored| &stored.record))
    }
}

impl Principals {
    /// Reads what is stored, and lets everyone see it beside the file; what clashes is given too.
    pub(crate) async fn open(
        parts: PrincipalParts<'_>,
        keys: Arc<Keys>,
    ) -> Result<(Arc<Self>, Vec<Clash>), StoreError> {
        let PrincipalParts { store, file, issuers, clock, spawn } = parts;
        let stored = by_id(store.all_principals().await?);
        let issuers = issuers.iter().map(|entry| (entry.name.clone(), entry.realms.clone()));
        let issuers = issuers.collect();
        let held = Mutex::new(PrincipalSources { file, stored });
        let changing = tokio::sync::Mutex::new(());
        let principals = Arc::new(Self { store, keys, clock, spawn, issuers, held, changing });
        let clashes = principals.publish(&principals.held());
        Ok((principals, clashes))
    }

    fn held(&self) -> MutexGuard<'_, PrincipalSources> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets everyone see what is held. It stays locked, so that no older one comes after it.
    fn publish(&self, held: &PrincipalSources) -> Vec<Clash> {
        let (roster, clashes) = held.combined();
        self.keys.take_principals(roster);
        clashes
    }

    /// How far a principal reaches: its own realms, and those that its identities can enter.
    fn reach(&self, principal: &Principal) -> Grants {
        let mut reach = principal.realms.clone();
        for identity in &principal.identities {
            let issuer = identity.split_once(':').and_then(|(name, _)| self.issuers.get(name));
            // What an unknown issuer is worth, or who was `local`, only the server's own
            // administrators can say.
            let everywhere = || RealmPattern::parse("*").ok().into_iter().collect();
            for realm in issuer.cloned().unwrap_or_else(everywhere) {
                reach.give(realm, &Roles::default());
            }
        }
        reach
    }

    fn is_seen_by(&self, maker: &Maker, known: &KnownPrincipal) -> bool {
        maker.administers(&self.reach(&known.principal))
    }

    fn seen(&self, known: &Arc<KnownPrincipal>) -> SeenPrincipal {
        let stored = self.held().stored.get(&known.principal.id).cloned();
        SeenPrincipal { known: known.clone(), stored }
    }

    /// The one of this id that this maker may see.
    fn find(&self, maker: &Maker, id: &str) -> Option<SeenPrincipal> {
        let snapshot = self.keys.snapshot();
        let known = snapshot.directory.principals.get(id);
        known.filter(|known| self.is_seen_by(maker, known)).map(|known| self.seen(known))
    }

    /// The record of a new or changed principal.
    fn drafted(
        &self,
        maker: &Maker,
        principal: &Arc<Principal>,
        expected: Option<u64>,
    ) -> Result<Draft, PrincipalRefusal> {
        let snapshot = self.keys.snapshot();
        if !maker.is_good(&snapshot) {
            return Err(PrincipalRefusal::MakerRevoked);
        }
        let roster = &*snapshot.directory.principals;
        let before = roster.get(&principal.id);
        match before {
            Some(known) if !self.is_seen_by(maker, known) => return Err(PrincipalRefusal::Taken),
            Some(known) if known.origin == Origin::File => return Err(PrincipalRefusal::InFile),
            Some(_) => {}
            None if roster.len() >= PRINCIPALS_MAX => return Err(PrincipalRefusal::TooMany),
            None => {}
        }
        let reach = self.reach(principal);
        reach.may_be_given_by(&maker.grants)?;
        if let Some(clash) = clash(roster, principal) {
            let other = roster.get(clash.winner());
            let is_seen = other.is_some_and(|other| self.is_seen_by(maker, other));
            return Err(if is_seen { clash.into() } else { PrincipalRefusal::Taken });
        }
        let stored = self.held().stored.get(&principal.id).cloned();
        let version = stored.as_ref().filter(|_| before.is_some()).map(|stored| stored.version);
        if expected.is_some_and(|expected| expected != version.unwrap_or_default()) {
            return Err(PrincipalRefusal::Stale);
        }
        let now = self.clock.now();
        let act = if before.is_some() { "principal.update" } else { "principal.create" };
        let audit = audit_entries::of_principal(maker, principal, &reach, act, now);
        let record = PrincipalRecord {
            id: principal.id.clone(),
            principal: Some(principal.clone()),
            disabled: stored.as_ref().and_then(|stored| stored.record.disabled),
            by: maker.subject.clone(),
            changed: now,
        };
        Ok(Draft { record, over: stored.map(|stored| stored.version), audit })
    }

    /// The record of a principal that is disabled or enabled, wherever it is defined.
    fn switched(&self, maker: &Maker, id: &str, to: Switch) -> Result<Draft, PrincipalRefusal> {
        if !maker.is_good(&self.keys.snapshot()) {
            return Err(PrincipalRefusal::MakerRevoked);
        }
        let SeenPrincipal { known, stored } =
            self.find(maker, id).ok_or(PrincipalRefusal::Unknown)?;
        let now = self.clock.now();
        let (over, principal) = match stored {
            Some(stored) => (Some(stored.version), stored.record.principal),
            None => (None, None),
        };
        let (act, disabled) = match to {
            Switch::Off => ("principal.disable", Some(known.disabled.unwrap_or(now))),
            Switch::On => ("principal.enable", None),
        };
        let reach = self.reach(&known.principal);
        let audit = audit_entries::of_principal(maker, &known.principal, &reach, act, now);
        let id = known.principal.id.clone();
        let by = maker.subject.clone();
        let record = PrincipalRecord { id, principal, disabled, by, changed: now };
        Ok(Draft { record, over, audit })
    }

    /// Makes a change in a task of its own: it is done to its end, even if the one who asked does
    /// not wait for it. What is drafted depends on what is known, so a draft may be made twice.
    async fn change(
        self: &Arc<Self>,
        draft: impl Fn(&Self) -> Result<Draft, PrincipalRefusal> + Send + Sync + 'static,
    ) -> Result<SeenPrincipal, PrincipalRefusal> {
        let (done, answer) = oneshot::channel();
        let principals = self.clone();
        let working = async move {
            // The one who asked may be gone.
            let _ = done.send(principals.changed(&draft).await);
        };
        self.spawn.task("change of principals", Box::pin(working));
        answer.await.unwrap_or(Err(PrincipalRefusal::Store(StoreError::Closed)))
    }

    async fn changed(
        &self,
        draft: &(impl Fn(&Self) -> Result<Draft, PrincipalRefusal> + Sync),
    ) -> Result<SeenPrincipal, PrincipalRefusal> {
        // No key is revoked between the look at its holder's and the write: first keys, then these,
        // as the one that holds both.
        let _keys = self.keys.hold_changes().await;
        let _changing = self.changing.lock().await;
        let error = match self.write(draft(self)?).await {
            Ok(id) => return self.written(&id),
            Err(error) => error,
        };
        // What is stored decides: another process may have been first, and a write that is
        // reported as failed may have been made all the same.
        let reloaded = self.reload().await;
        if !matches!(error, StoreError::Conflict(_)) {
            return Err(error.into());
        }
        reloaded?;
        let id = self.write(draft(self)?).await?;
        self.written(&id)
    }

    /// Stores a record, then lets everyone see it. The caller holds `changing`.
    async fn write(&self, draft: Draft) -> Result<Arc<str>, StoreError> {
        let Draft { record, over, audit } = draft;
        let version = self.store.put_principal(&record, over, audit).await?;
        let id = record.id.clone();
        let mut held = self.held();
        held.stored.insert(id.clone(), StoredPrincipal { record, version });
        tell(&self.publish(&held));
        Ok(id)
    }

    fn written(&self, id: &str) -> Result<SeenPrincipal, PrincipalRefusal> {
        let snapshot = self.keys.snapshot();
        let known = snapshot.directory.principals.get(id).ok_or(PrincipalRefusal::Unknown)?;
        Ok(self.seen(known))
    }

    pub(crate) fn stored(&self) -> Vec<StoredPrincipal> {
        self.held().stored.values().cloned().collect()
    }

    /// Keeps everyone else from changing one that is stored.
    pub(crate) async fn hold_changes(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.changing.lock().await
    }

    /// Reads all that is stored again. The caller holds `changing`.
    pub(crate) async fn reload(&self) -> Result<(), StoreError> {
        let stored = by_id(self.store.all_principals().await?);
        let mut held = self.held();
        held.stored = stored;
        tell(&self.publish(&held));
        Ok(())
    }
}

/// Whether a principal is switched on or off.
#[derive(Debug, Clone, Copy)]
enum Switch {
    On,
    Off,
}

impl Identity {
    /// The principals that this maker administers, by id.
    pub fn list_principals(&self, maker: &Maker) -> Vec<SeenPrincipal> {
        let principals = &self.principals;
        let directory = self.directory();
        let seen = directory.principals.iter();
        let seen = seen.filter(|known| principals.is_seen_by(maker, known));
        seen.map(|known| principals.seen(known)).collect()
    }

    pub fn principal(&self, maker: &Maker, id: &str) -> Option<SeenPrincipal> {
        self.principals.find(maker, id)
    }

    /// Stores a principal; everyone sees it once this returns. Where a version is named, it must be
    /// the one that is stored; 0 stands for none.
    pub async fn put_principal(
        &self,
        maker: &Maker,
        principal: Principal,
        expected: Option<u64>,
    ) -> Result<SeenPrincipal, PrincipalRefusal> {
        let maker = maker.clone();
        let principal = Arc::new(principal);
        let draft = move |all: &Principals| all.drafted(&maker, &principal, expected);
        self.principals.change(draft).await
    }

    /// Lets a principal do nothing any more, whatever credential it shows and wherever it is
    /// defined, until it is enabled.
    pub async fn disable_principal(
        &self,
        maker: &Maker,
        id: &str,
    ) -> Result<SeenPrincipal, PrincipalRefusal> {
        self.switch(maker, id, Switch::Off).await
    }

    /// Lets a principal that was disabled do again what its roles permit.
    pub async fn enable_principal(
        &self,
        maker: &Maker,
        id: &str,
    ) -> Result<SeenPrincipal, PrincipalRefusal> {
        self.switch(maker, id, Switch::On).await
    }

    async fn switch(
        &self,
        maker: &Maker,
        id: &str,
        to: Switch,
    ) -> Result<SeenPrincipal, PrincipalRefusal> {
        let maker = maker.clone();
        let id = id.to_owned();
        self.principals.change(move |all: &Principals| all.switched(&maker, &id, to)).await
    }

    /// Mistakes of these principals of a file, beside those that are stored.
    pub fn check_principals(&self, file: &[Arc<Principal>]) -> Vec<Mistake> {
        let stored = self.principals.held().stored.clone();
        let (_, clashes) = PrincipalSources { file: file.to_vec(), stored }.combined();
        mistakes(&clashes)
    }

    /// Takes these principals in the place of those of the file before.
    pub fn take_principals(&self, file: Vec<Arc<Principal>>) {
        let mut held = self.principals.held();
        held.file = file;
        tell(&self.principals.publish(&held));
    }
}

/// Clashes as mistakes of the file.
pub fn mistakes(clashes: &[Clash]) -> Vec<Mistake> {
    let mistake = |clash: &Clash| {
        let place = child_pointer("/principals", clash.winner());
        let hint = "the other one is stored; change it first: `waypost principal apply`";
        let mistake = Mistake::error(clash.to_string()).hint(hint);
        Mistake { file: Some(PRINCIPALS_FILE.to_owned()), ..mistake.at(Position::default(), place) }
    };
    clashes.iter().map(mistake).collect()
}

fn tell(clashes: &[Clash]) {
    for clash in clashes {
        tracing::warn!("the names or identities of two principals clash: {clash}");
    }
}

fn by_id(stored: Vec<StoredPrincipal>) -> BTreeMap<Arc<str>, StoredPrincipal> {
    stored.into_iter().map(|stored| (stored.record.id.clone(), stored)).collect()
}

/// Why a principal could be taken for another that is there.
fn clash(roster: &Roster, principal: &Principal) -> Option<Clash> {
    let id = &principal.id;
    let mut ids = roster.iter().map(|known| &known.principal.id);
    if let Some(other) = ids.find(|other| *other != id && other.eq_ignore_ascii_case(id)) {
        return Some(Clash::Ids { id: id.clone(), other: other.clone() });
    }
    principal.identities.iter().find_map(|identity| {
        let owner = roster.of_subject(identity).filter(|known| known.principal.id != *id)?;
        let other = owner.principal.id.clone();
        let identity = identity.clone();
        Some(Clash::Identity { id: id.clone(), other, identity })
    })
}
