//! How often something may be done by everybody together, and by each realm and caller among them.

use engine::Shares;
use engine::refusal::Quota;
use kernel::identity::shares::Portion;
use kernel::tool::call::Caller;
use kernel::values::ids::{Millis, RealmId};
use kernel::values::rate::{Bucket, Rate};
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

/// How many buckets of realms and callers are remembered.
const BUCKETS_MAX: usize = 4_096;

/// One bucket for everybody.
#[derive(Debug)]
pub struct SharedRate {
    rate: Rate,
    bucket: Mutex<Bucket>,
}

impl SharedRate {
    /// So many in a minute, at least one.
    pub fn per_minute(count: u32) -> Self {
        Self { rate: per_minute(count), bucket: Mutex::default() }
    }

    /// Takes a token now; else in how many milliseconds there will be one.
    pub fn take(&self, now: Millis) -> Result<(), u64> {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.take(self.rate, now)
    }
}

fn per_minute(count: u32) -> Rate {
    Rate::per_minute(NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN))
}

/// One bucket for everybody, and where there are shares one for each realm and each caller.
pub struct CallerRates {
    of: &'static str,
    all: SharedRate,
    shares: Shares,
    buckets: Mutex<HashMap<BucketKey, Bucket>>,
}

/// Whose bucket it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct BucketKey {
    realm: RealmId,
    /// None for all of the realm.
    subject: Option<Arc<str>>,
    /// Who really calls, where that is not the subject.
    actor: Option<Arc<str>>,
}

/// It was done too often just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooSoon {
    /// In how many milliseconds it can be done.
    pub wait_ms: u64,
    /// How often the caller may do it, where it has a share.
    pub quota: Option<Quota>,
}

impl CallerRates {
    /// So many in a minute by everybody, of which callers have these shares.
    pub fn new(of: &'static str, count: u32, shares: Shares) -> Self {
        Self { of, all: SharedRate::per_minute(count), shares, buckets: Mutex::default() }
    }

    /// Takes a token of a caller now. Its own is tried first: who comes too often takes
    /// nothing from others.
    pub fn take(&self, caller: &Caller, now: Millis) -> Result<(), TooSoon> {
        let portion = self.shares.portion(&caller.realm);
        let quota = portion.map(|Portion { caller, .. }| {
            let max = u64::try_from(caller).unwrap_or(u64::MAX);
            Quota { of: self.of, max, window_s: Some(60) }
        });
        let too_soon = |wait_ms: u64| TooSoon { wait_ms, quota };
        if let Some(portion) = portion {
            self.take_share(caller, portion, now).map_err(too_soon)?;
        }
        self.all.take(now).map_err(too_soon)
    }

    fn take_share(&self, caller: &Caller, portion: Portion, now: Millis) -> Result<(), u64> {
        let Caller { realm, subject, actor, .. } = caller;
        let of_realm = BucketKey { realm: realm.clone(), subject: None, actor: None };
        let subject = Some(subject.clone());
        let actor = actor.clone();
        let of_caller = BucketKey { subject, actor, ..of_realm.clone() };
        let rate = |count: usize| per_minute(u32::try_from(count).unwrap_or(u32::MAX));
        let both = [(of_caller, rate(portion.caller)), (of_realm, rate(portion.realm))];
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= BUCKETS_MAX {
            // A full one is as good as none, and all others had a token within the last minute:
            // there are no more of them than logins of all realms in a minute.
            buckets.retain(|_, bucket| !bucket.is_full(now));
        }
        for (whose, rate) in &both {
            buckets.entry(whose.clone()).or_default().peek(*rate, now)?;
        }
        for (whose, rate) in both {
            buckets.entry(whose).or_default().take(rate, now)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::identity::realm::{RealmSettings, Realms};
    use kernel::identity::shares::SharedLimit;
    use kernel::limits::Limits;
    use std::collections::BTreeMap;

    #[test]
    fn no_caller_and_no_realm_takes_the_tokens_of_others() {
        let limits = Arc::new(Limits { logins_per_minute: 8, ..Limits::default() });
        let realms = ["red", "blue"].map(|name| (RealmId::from(name), RealmSettings::default()));
        let realms = Arc::new(Realms(BTreeMap::from(realms)));
        let shares = Shares::new(SharedLimit::Logins, limits, Some(Arc::new(realms)));
        let rates = CallerRates::new("logins", 8, shares);
        let take = |realm: &str, subject: &str, at: i64| {
            rates.take(&Caller::new(realm, subject), Millis(at))
        };
        let own = Some(Quota { of: "logins", max: 1, window_s: Some(60) });
        assert_eq!(take("red", "ann", 0), Ok(()));
        assert_eq!(take("red", "ann", 0), Err(TooSoon { wait_ms: 60_000, quota: own }));
        assert_eq!(["bob", "cat", "dan"].map(|name| take("red", name, 0)), [Ok(()); 3]);
        let full = take("red", "eve", 0).unwrap_err();
        assert_eq!(full, TooSoon { wait_ms: 15_000, quota: own }, "its realm has four");
        assert_eq!(take("blue", "ann", 0), Ok(()));
        assert_eq!(take("red", "eve", 15_000), Ok(()));
    }

    #[test]
    fn everybody_takes_from_one_bucket_and_there_is_always_one_token() {
        let rate = SharedRate::per_minute(3);
        let take = |at: i64| rate.take(Millis(at));
        assert_eq!([take(5), take(5), take(5)], [Ok(()); 3]);
        assert_eq!((take(5), take(20_004), take(20_005)), (Err(20_000), Err(1), Ok(())));
        let none = SharedRate::per_minute(0);
        assert_eq!((none.take(Millis(0)), none.take(Millis(0))), (Ok(()), Err(60_000)));
    }
}
