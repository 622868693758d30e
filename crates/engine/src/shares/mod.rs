//! The shares of one limit: how much of it each realm and each caller uses at this moment, and who
//! waits for more of its own. The limit over all callers is kept where it always was; a share is
//! taken before it, so that who waits for its own share keeps nothing from anyone else. In local
//! mode nothing is shared.

pub(crate) mod processor;
pub(crate) mod storage;

use crate::refusal::Quota;
use crate::system::locks::lock;
use kernel::identity::reads_for::ReadsFor;
use kernel::identity::realm::Realms;
use kernel::identity::shares::{Portion, SharedLimit};
use kernel::limits::Limits;
use kernel::tool::call::Caller;
use kernel::values::ids::RealmId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Where the realms are known.
pub trait RealmSource: Send + Sync {
    /// The realms as they are now.
    fn realms(&self) -> Arc<Realms>;
}

/// Realms that never change.
impl RealmSource for Arc<Realms> {
    fn realms(&self) -> Arc<Realms> {
        self.clone()
    }
}

/// How many shares are remembered before the unused ones are searched for.
const UNUSED_MIN: usize = 64;

/// The shares of one limit.
pub struct Shares {
    limit: SharedLimit,
    limits: Arc<Limits>,
    /// None in local mode.
    realms: Option<Arc<dyn RealmSource>>,
    used: Mutex<ShareTable>,
}

/// A unit taken from the shares of a caller and its realm. Dropping it frees the unit.
#[derive(Debug, Default)]
pub struct Share {
    own: Option<OwnedSemaphorePermit>,
    _realm: Option<OwnedSemaphorePermit>,
}

impl Share {
    /// Whether something is taken.
    pub(crate) fn is_held(&self) -> bool {
        self.own.is_some()
    }
}

/// There is no more for a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareExhausted {
    limit: SharedLimit,
    /// How much the caller may have.
    max: usize,
    /// Whether the caller itself uses it up.
    is_own: bool,
}

/// Whose share it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Holder {
    realm: RealmId,
    /// None for all of the realm.
    subject: Option<Arc<str>>,
    /// The actor, if it is not the subject.
    actor: Option<Arc<str>>,
}

/// The shares that are in use.
#[derive(Default)]
struct ShareTable {
    parts: HashMap<Holder, ShareEntry>,
    /// At how many of them the unused ones are searched for.
    unused_at: usize,
}

/// One share.
struct ShareEntry {
    max: usize,
    free: Arc<Semaphore>,
}

/// The shares of one caller.
struct CallerShares {
    own: Arc<Semaphore>,
    realm: Arc<Semaphore>,
    portion: Portion,
}

impl Shares {
    /// The shares of this limit; none where no realms are given.
    pub fn new(
        limit: SharedLimit,
        limits: Arc<Limits>,
        realms: Option<Arc<dyn RealmSource>>,
    ) -> Self {
        Self { limit, limits, realms, used: Mutex::default() }
    }

    /// The share of a realm and of each of its callers; `None` if nothing is shared.
    pub fn portion(&self, realm: &RealmId) -> Option<Portion> {
        let source = self.realms.as_ref()?;
        Some(source.realms().portion(realm, self.limit, &self.limits))
    }

    /// Takes one for a caller, at once or not at all.
    pub fn try_take(&self, caller: &Caller) -> Result<Share, ShareExhausted> {
        let Some(parts) = self.parts(caller) else { return Ok(Share::default()) };
        let CallerShares { own, realm, portion } = parts;
        let own = own.try_acquire_owned().map_err(|_| self.full(portion, true))?;
        // Where the realm has no more, the caller's own is given back.
        let realm = realm.try_acquire_owned().map_err(|_| self.full(portion, false))?;
        Ok(Share { own: Some(own), _realm: Some(realm) })
    }

    /// Waits until there is one for a caller. Who comes first gets it first, among those of one
    /// caller and among those of one realm.
    pub(crate) async fn take(&self, caller: &Caller) -> Share {
        let Some(parts) = self.parts(caller) else { return Share::default() };
        // They are never closed.
        let own = parts.own.acquire_owned().await.ok();
        let realm = parts.realm.acquire_owned().await.ok();
        Share { own, _realm: realm }
    }

    /// Why a caller gets nothing though its share is not used up: there is nothing left for anyone.
    /// None where nothing is shared, so that the whole limit may be shown.
    pub fn crowded(&self, caller: &Caller) -> Option<ShareExhausted> {
        self.parts(caller).map(|parts| self.full(parts.portion, false))
    }

    fn full(&self, portion: Portion, is_own: bool) -> ShareExhausted {
        ShareExhausted { limit: self.limit, max: portion.caller, is_own }
    }

    fn parts(&self, caller: &Caller) -> Option<CallerShares> {
        let portion = self.portion(&caller.realm)?;
        let mut used = lock(&self.used);
        let own = used.part(Holder::caller(caller), portion.caller);
        let realm = used.part(Holder::realm(&caller.realm), portion.realm);
        Some(CallerShares { own, realm, portion })
    }
}

impl ShareExhausted {
    /// The message for the caller. It contains only the caller's own numbers: others would reveal
    /// what others do.
    pub fn message(&self) -> String {
        let things = self.limit.noun();
        match self.is_own {
            true => {
                format!("this caller may have {} {things} at the same time", self.max)
            }
            false => format!("no more {things} are possible at this moment"),
        }
    }

    pub fn quota(&self) -> Quota {
        let max = u64::try_from(self.max).unwrap_or(u64::MAX);
        Quota { of: self.limit.name(), max, window_s: None }
    }

    pub fn hint(&self) -> &'static str {
        match self.is_own {
            true => "let some of them end first, or ask an operator for a larger share",
            false => "send it again in a moment",
        }
    }
}

impl Holder {
    fn caller(caller: &Caller) -> Self {
        let Caller { realm, subject, actor, .. } = caller;
        Self { realm: realm.clone(), subject: Some(subject.clone()), actor: actor.clone() }
    }

    fn realm(realm: &RealmId) -> Self {
        Self { realm: realm.clone(), subject: None, actor: None }
    }

    /// As whom it reads; none for all of the realm.
    fn asker(&self) -> Option<ReadsFor> {
        let subject = self.subject.clone()?;
        Some(ReadsFor::new(subject, self.actor.clone()))
    }
}

impl ShareTable {
    /// The share of a holder, of so much from now on.
    fn part(&mut self, holder: Holder, max: usize) -> Arc<Semaphore> {
        let max = max.min(Semaphore::MAX_PERMITS);
        if let Some(part) = self.parts.get_mut(&holder) {
            part.resize(max);
            return part.free.clone();
        }
        if self.parts.len() >= self.unused_at {
            // Who holds or awaits something of a share holds the share.
            self.parts.retain(|_, part| Arc::strong_count(&part.free) > 1);
            self.unused_at = (2 * self.parts.len()).max(UNUSED_MIN);
        }
        let free = Arc::new(Semaphore::new(max));
        self.parts.insert(holder, ShareEntry { max, free: free.clone() });
        free
    }
}

impl ShareEntry {
    /// So much from now on. What is in use beyond that is taken away as it comes back.
    fn resize(&mut self, max: usize) {
        if max > self.max {
            self.free.add_permits(max - self.max);
            self.max = max;
        } else if max < self.max {
            self.max -= self.free.forget_permits(self.max - max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use kernel::identity::realm::RealmSettings;

    /// The realms of a test, which can change.
    #[derive(Clone, Default)]
    struct Changing(Arc<Mutex<Arc<Realms>>>);

    impl RealmSource for Changing {
        fn realms(&self) -> Arc<Realms> {
            lock(&self.0).clone()
        }
    }

    impl Changing {
        fn set(&self, names: &[&str]) {
            let realms = names.iter().map(|name| ((*name).into(), RealmSettings::default()));
            *lock(&self.0) = Arc::new(Realms(realms.collect()));
        }

        /// Shares of calls of these realms: so many calls run over all of them.
        fn shares(&self, calls_active_max: usize) -> Shares {
            let limits = Limits { calls_active_max, ..Limits::default() };
            Shares::new(SharedLimit::Calls, Arc::new(limits), Some(Arc::new(self.clone())))
        }
    }

    /// Two realms of which each may have 8 calls, and each caller 2.
    fn shares() -> Shares {
        let realms = Changing::default();
        realms.set(&["red", "blue"]);
        realms.shares(16)
    }

    fn caller(subject: &str) -> Caller {
        Caller::new("red", subject)
    }

    fn taken(shares: &Shares, caller: &Caller, count: usize) -> Vec<Share> {
        (0..count).map(|_| shares.try_take(caller).unwrap()).collect()
    }

    #[test]
    fn an_exhausted_share_takes_nothing_from_others() {
        let shares = shares();
        let ann = caller("ann");
        let bob = caller("bob");
        let mut held = taken(&shares, &ann, 2);
        let full = shares.try_take(&ann).unwrap_err();
        assert_eq!(full.message(), "this caller may have 2 calls at the same time");
        held.extend(taken(&shares, &bob, 2));
        let through = Caller { actor: Some("bot".into()), ..ann.clone() };
        held.extend(taken(&shares, &through, 2));
        held.extend(taken(&shares, &Caller { realm: "blue".into(), ..ann.clone() }, 2));
        assert!(shares.try_take(&ann).is_err());
        held.truncate(1);
        assert_eq!(taken(&shares, &ann, 1).len(), 1, "what is dropped is free again");
    }

    #[test]
    fn refusals_reveal_no_numbers_of_another_caller() {
        let shares = shares();
        let names = ["a", "b", "c", "d"];
        let held: Vec<_> = names.iter().flat_map(|name| taken(&shares, &caller(name), 2)).collect();
        let full = shares.try_take(&caller("ann")).unwrap_err();
        assert_eq!(full.message(), "no more calls are possible at this moment");
        let other = Caller::new("blue", "ann");
        assert_eq!(shares.crowded(&other).unwrap(), full, "whoever is full");
        assert_eq!(taken(&shares, &other, 2).len(), 2);
        drop(held);
        assert_eq!(taken(&shares, &caller("ann"), 2).len(), 2);
    }

    #[test]
    fn a_refused_share_counts_neither_for_caller_nor_realm() {
        let shares = shares();
        let ann = caller("ann");
        let held = taken(&shares, &ann, 2);
        for _ in 0..20 {
            assert!(shares.try_take(&ann).is_err());
        }
        drop(held);
        let names = ["ann", "b", "c", "d"];
        let all = names.iter().flat_map(|name| taken(&shares, &caller(name), 2));
        assert_eq!(all.collect::<Vec<_>>().len(), 8, "all of the realm's share is there");
    }

    #[test]
    fn waiters_get_shares_in_order_and_a_dropped_waiter_leaks_nothing() {
        let shares = shares();
        let ann = caller("ann");
        let mut held = taken(&shares, &ann, 2);
        let mut first = Box::pin(shares.take(&ann));
        let mut given_up = Box::pin(shares.take(&ann));
        let mut last = Box::pin(shares.take(&ann));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(given_up.as_mut().now_or_never().is_none());
        assert!(last.as_mut().now_or_never().is_none());
        assert!(shares.take(&caller("bob")).now_or_never().is_some(), "no one else waits");
        drop(given_up);
        held.pop();
        assert!(last.as_mut().now_or_never().is_none(), "who came first is next");
        let first = first.now_or_never();
        assert!(first.is_some());
        held.pop();
        assert!(last.now_or_never().is_some());
        drop(first);
        assert_eq!(taken(&shares, &ann, 2).len(), 2);
    }

    #[test]
    fn shares_change_with_the_realms() {
        let realms = Changing::default();
        realms.set(&["red"]);
        let shares = realms.shares(16);
        let ann = caller("ann");
        let mut held = taken(&shares, &ann, 4);
        realms.set(&["red", "blue"]);
        assert_eq!(shares.crowded(&ann).map(|full| full.max), Some(2));
        held.truncate(2);
        assert!(shares.try_take(&ann).is_err(), "what came back is beyond the share");
        held.truncate(1);
        held.extend(taken(&shares, &ann, 1));
        assert!(shares.try_take(&ann).is_err());
        realms.set(&["red"]);
        assert_eq!(taken(&shares, &ann, 2).len(), 2);
        assert_eq!(lock(&shares.used).parts.len(), 2, "one caller and its realm all the time");
    }

    #[test]
    fn shares_that_no_one_uses_are_forgotten() {
        let shares = shares();
        let ann = caller("ann");
        let held = taken(&shares, &ann, 2);
        for number in 0..10 * UNUSED_MIN {
            drop(taken(&shares, &caller(&number.to_string()), 1));
        }
        assert!(lock(&shares.used).parts.len() <= 2 * UNUSED_MIN);
        assert!(shares.try_take(&ann).is_err(), "what is in use stays");
        drop(held);
    }

    #[test]
    fn in_local_mode_nothing_is_shared() {
        let limits = Arc::new(Limits { calls_active_max: 1, ..Limits::default() });
        let shares = Shares::new(SharedLimit::Calls, limits, None);
        let ann = caller("ann");
        assert_eq!(taken(&shares, &ann, 9).len(), 9);
        assert!(shares.take(&ann).now_or_never().is_some() && shares.crowded(&ann).is_none());
        assert!(lock(&shares.used).parts.is_empty());
    }
}
