//! Claimed roles of subjects, from the newest token of each. They apply when rights of a subject
//! are checked later, and are stored when they change, so that runs have them after a restart.

use crate::issuer::KnownToken;
use crate::keys::Keys;
use kernel::contracts::identity::claims::{Claims, SubjectClaims};
use kernel::contracts::{Clock, Spawn, StoreError};
use kernel::identity::grants::Grants;
use kernel::identity::issuer::IssuerEntry;
use kernel::values::ids::Millis;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How many subjects are remembered; one more, and the one whose token is the oldest is forgotten.
pub(crate) const SUBJECTS_MAX: usize = 50_000;
/// How often the server looks for claims that are too old.
const FORGET_MS: u64 = 60 * 1_000;
/// Claims that stay the same are stored again when they are so much newer: their age counts after a
/// restart, too.
const STORE_AGAIN_MS: i64 = 60 * 60 * 1_000;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// The claims of all subjects.
pub(crate) struct ClaimsBook {
    store: Arc<dyn Claims>,
    /// Where everyone sees the roles.
    keys: Arc<Keys>,
    clock: Arc<dyn Clock>,
    /// For how many milliseconds the claims of each issuer count.
    ages: HashMap<Arc<str>, u64>,
    newest: Mutex<HashMap<Arc<str>, NewestToken>>,
    /// Held by who changes something, from its look to what everyone sees.
    changing: tokio::sync::Mutex<()>,
}

/// The newest token of a subject.
#[derive(Debug, Clone)]
struct NewestToken {
    issuer: Arc<str>,
    issued: Millis,
    /// The moment that is stored.
    stored: Millis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClaimChange {
    /// Nothing: this token or a newer one was already seen.
    Nothing,
    /// It is newer and claims the same.
    Newer,
    /// The same, and what is stored is old.
    StoreAgain,
    Roles,
}

impl ClaimsBook {
    /// Reads what is stored of these issuers' subjects, and forgets what gets too old, as long as
    /// this lives.
    pub(crate) async fn open<'e>(
        store: Arc<dyn Claims>,
        keys: Arc<Keys>,
        entries: impl Iterator<Item = &'e IssuerEntry>,
        clock: Arc<dyn Clock>,
        spawn: &dyn Spawn,
    ) -> Result<Arc<Self>, StoreError> {
        let age = |entry: &IssuerEntry| u64::from(entry.claims_max_age_days) * DAY_MS;
        let ages: HashMap<_, _> = entries.map(|entry| (entry.name.clone(), age(entry))).collect();
        let mut stored = match ages.is_empty() {
            true => Vec::new(),
            false => store.all_claims().await?,
        };
        stored.retain(|claims| ages.contains_key(&claims.issuer));
        let newest = stored.iter().map(|claims| (claims.subject.clone(), NewestToken::of(claims)));
        let newest = Mutex::new(newest.collect());
        let all = stored.into_iter().map(|claims| (claims.subject, Some(Arc::new(claims.realms))));
        keys.take_claims(all.collect());
        let changing = tokio::sync::Mutex::new(());
        let book = Arc::new(Self { store, keys, clock: clock.clone(), ages, newest, changing });
        if !book.ages.is_empty() {
            book.forget_outdated().await;
            let forgetting = keep_forgetting(Arc::downgrade(&book), clock);
            spawn.task("claims that are too old", Box::pin(forgetting));
        }
        Ok(book)
    }

    /// Notes what a token claims that was found to be good.
    pub(crate) async fn note(&self, claims: SubjectClaims) {
        if self.took_moment(&claims) {
            return;
        }
        let _changing = self.changing.lock().await;
        // Another token of the subject may have been first.
        if self.took_moment(&claims) {
            return;
        }
        let news = self.news(&claims);
        let mut newest = NewestToken::of(&claims);
        if let Err(error) = self.store.put_claims(&claims).await {
            // The token proves its claims as long as this process lives.
            tracing::warn!(%error, "the claims of a token cannot be stored");
            newest.stored = Millis(0);
        }
        self.newest().insert(claims.subject.clone(), newest);
        if news == ClaimChange::Roles {
            self.keys.take_claims(vec![(claims.subject, Some(Arc::new(claims.realms)))]);
            self.forget(self.superfluous()).await;
        }
    }

    /// Whether nothing is to be stored; a newer moment is noted.
    fn took_moment(&self, claims: &SubjectClaims) -> bool {
        match self.news(claims) {
            ClaimChange::Nothing => true,
            ClaimChange::Newer => {
                if let Some(newest) = self.newest().get_mut(&claims.subject) {
                    newest.issued = newest.issued.max(claims.issued);
                }
                true
            }
            ClaimChange::StoreAgain | ClaimChange::Roles => false,
        }
    }

    fn news(&self, claims: &SubjectClaims) -> ClaimChange {
        let Some(newest) = self.newest().get(&claims.subject).cloned() else {
            return ClaimChange::Roles;
        };
        let snapshot = self.keys.snapshot();
        let held = snapshot.directory.claims.get(&claims.subject);
        match held {
            _ if claims.issued <= newest.issued => ClaimChange::Nothing,
            Some(held) if **held != claims.realms => ClaimChange::Roles,
            None => ClaimChange::Roles,
            Some(_) if claims.issued.0 - newest.stored.0 >= STORE_AGAIN_MS => {
                ClaimChange::StoreAgain
            }
            Some(_) => ClaimChange::Newer,
        }
    }

    fn newest(&self) -> MutexGuard<'_, HashMap<Arc<str>, NewestToken>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The subjects that are too many.
    fn superfluous(&self) -> Vec<Arc<str>> {
        let newest = self.newest();
        let most = newest.len().saturating_sub(SUBJECTS_MAX);
        if most == 0 {
            return Vec::new();
        }
        let mut by_age: Vec<_> = newest.iter().map(|(name, one)| (one.issued, name)).collect();
        by_age.sort_unstable();
        by_age.into_iter().take(most).map(|(_, name)| name.clone()).collect()
    }

    /// Forgets claims that are too old to count.
    async fn forget_outdated(&self) {
        let _changing = self.changing.lock().await;
        self.forget(self.outdated()).await;
    }

    fn outdated(&self) -> Vec<Arc<str>> {
        let now = self.clock.now();
        let is_over = |newest: &NewestToken| {
            let age = self.ages.get(&newest.issuer).copied().unwrap_or_default();
            newest.issued.plus_ms(age) <= now
        };
        let newest = self.newest();
        let over = newest.iter().filter(|(_, newest)| is_over(newest));
        over.map(|(subject, _)| subject.clone()).collect()
    }

    /// Forgets these subjects. The caller holds `changing`.
    async fn forget(&self, subjects: Vec<Arc<str>>) {
        if subjects.is_empty() {
            return;
        }
        self.remove(&subjects);
        let none: Vec<(_, Option<Arc<Grants>>)> =
            subjects.iter().map(|subject| (subject.clone(), None)).collect();
        self.keys.take_claims(none);
        if let Err(error) = self.store.remove_claims(&subjects).await {
            tracing::warn!(%error, "claims that are too old cannot be removed");
        }
    }

    fn remove(&self, subjects: &[Arc<str>]) {
        let mut newest = self.newest();
        for subject in subjects {
            newest.remove(subject);
        }
    }
}

/// The claims of a token in the form that is stored for its subject.
pub(crate) fn claimed(token: &KnownToken) -> SubjectClaims {
    let claims = &token.claims;
    SubjectClaims {
        subject: claims.subject.clone(),
        issuer: token.issuer.entry.name.clone(),
        realms: claims.realms.clone(),
        issued: claims.issued,
    }
}

impl NewestToken {
    fn of(claims: &SubjectClaims) -> Self {
        let SubjectClaims { issuer, issued, .. } = claims;
        Self { issuer: issuer.clone(), issued: *issued, stored: *issued }
    }
}

/// Forgets claims that are too old, as long as there are any to forget.
async fn keep_forgetting(book: Weak<ClaimsBook>, clock: Arc<dyn Clock>) {
    loop {
        clock.sleep_ms(FORGET_MS).await;
        let Some(book) = book.upgrade() else { return };
        book.forget_outdated().await;
    }
}
