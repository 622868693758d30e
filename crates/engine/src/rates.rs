//! How often a caller may call a tool: a bucket of tokens for each caller and tool that has a rate.
//! A bucket holds a minute's calls and fills up evenly, so that many may come at once, and then one
//! after the other. A full bucket is as good as none, so only those in use are remembered.

use kernel::call::Caller;
use kernel::ids::{Millis, RealmId, ToolName};
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

const MINUTE_US: i64 = 60_000_000;
const MS_US: i64 = 1_000;

/// The buckets in use.
#[derive(Debug)]
pub(crate) struct Rates {
    /// When each will be full again, in microseconds since 1970.
    full_at: Mutex<HashMap<Whose, i64>>,
    buckets_max: usize,
}

/// Whose calls of what.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Whose {
    realm: RealmId,
    subject: Arc<str>,
    tool: ToolName,
}

impl Rates {
    /// So many buckets are remembered.
    pub(crate) fn new(buckets_max: usize) -> Self {
        Self { full_at: Mutex::default(), buckets_max: buckets_max.max(1) }
    }

    /// Takes a token for a call that begins now; else in how many milliseconds there will be one.
    pub(crate) fn take(
        &self,
        (caller, tool): (&Caller, &ToolName),
        per_minute: NonZeroU32,
        now: Millis,
    ) -> Result<(), u64> {
        let whose = whose(caller, tool);
        let now_us = now.0.saturating_mul(MS_US);
        let mut buckets = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let then = spent(buckets.get(&whose).copied(), per_minute, now_us)?;
        if buckets.len() >= self.buckets_max && !buckets.contains_key(&whose) {
            make_room(&mut buckets, self.buckets_max, now_us);
        }
        buckets.insert(whose, then);
        Ok(())
    }

    /// Whether `take` would give a token now, without taking it.
    pub(crate) fn look(
        &self,
        (caller, tool): (&Caller, &ToolName),
        per_minute: NonZeroU32,
        now: Millis,
    ) -> Result<(), u64> {
        let buckets = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let full_at = buckets.get(&whose(caller, tool)).copied();
        spent(full_at, per_minute, now.0.saturating_mul(MS_US)).map(|_| ())
    }
}

fn whose(caller: &Caller, tool: &ToolName) -> Whose {
    let (realm, subject) = (caller.realm.clone(), caller.subject.clone());
    Whose { realm, subject, tool: tool.clone() }
}

/// When a bucket will be full again once a token is taken from it; else the milliseconds until it
/// has one.
fn spent(full_at: Option<i64>, per_minute: NonZeroU32, now_us: i64) -> Result<i64, u64> {
    let token_us = (MINUTE_US / i64::from(per_minute.get())).max(1);
    let bucket_us = token_us.saturating_mul(i64::from(per_minute.get()));
    // No bucket is emptier than empty: a clock that was set back must not lock anybody out.
    let empty = now_us.saturating_add(bucket_us);
    let full_at = full_at.unwrap_or(now_us).clamp(now_us, empty);
    let then = full_at.saturating_add(token_us);
    if then <= empty {
        return Ok(then);
    }
    let wait_us = u64::try_from(then - empty).unwrap_or(0);
    Err(wait_us.div_ceil(MS_US.unsigned_abs()).max(1))
}

/// Forgets the buckets that are full, and if all are in use the one that is next to be.
fn make_room(buckets: &mut HashMap<Whose, i64>, buckets_max: usize, now_us: i64) {
    buckets.retain(|_, full_at| *full_at > now_us);
    if buckets.len() < buckets_max {
        return;
    }
    let fullest = buckets.iter().min_by_key(|(_, full_at)| **full_at).map(|(whose, _)| whose);
    if let Some(whose) = fullest.cloned() {
        buckets.remove(&whose);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(subject: &str) -> Caller {
        Caller { realm: "r".into(), subject: subject.into(), admin: false }
    }

    fn rate(per_minute: u32) -> NonZeroU32 {
        NonZeroU32::new(per_minute).unwrap()
    }

    #[test]
    fn a_minutes_calls_may_come_at_once_and_then_one_after_the_other() {
        let (rates, ann, tool) = (Rates::new(8), caller("ann"), ToolName::from("t"));
        let take = |at: i64| rates.take((&ann, &tool), rate(3), Millis(at));
        let start = 1_000_000;
        for _ in 0..3 {
            assert_eq!(take(start), Ok(()));
        }
        assert_eq!(take(start), Err(20_000));
        assert_eq!(take(start + 19_999), Err(1));
        assert_eq!(take(start + 20_000), Ok(()));
        assert_eq!(take(start + 20_000), Err(20_000));
        // After a long rest there is one minute's worth, and no more.
        let later = start + 600_000;
        assert_eq!([take(later), take(later), take(later)], [Ok(()); 3]);
        assert_eq!(take(later), Err(20_000));
    }

    #[test]
    fn looking_takes_nothing_and_everybody_has_a_bucket() {
        let (rates, ann, tool) = (Rates::new(8), caller("ann"), ToolName::from("t"));
        let now = Millis(5);
        for _ in 0..5 {
            assert_eq!(rates.look((&ann, &tool), rate(1), now), Ok(()));
        }
        assert_eq!(rates.take((&ann, &tool), rate(1), now), Ok(()));
        assert_eq!(rates.look((&ann, &tool), rate(1), now), Err(60_000));
        assert_eq!(rates.take((&caller("bob"), &tool), rate(1), now), Ok(()));
        assert_eq!(rates.take((&ann, &"u".into()), rate(1), now), Ok(()));
        let elsewhere = Caller { realm: "other".into(), ..ann };
        assert_eq!(rates.take((&elsewhere, &tool), rate(1), now), Ok(()));
    }

    #[test]
    fn a_clock_that_is_set_back_locks_nobody_out() {
        let (rates, ann, tool) = (Rates::new(8), caller("ann"), ToolName::from("t"));
        assert_eq!(rates.take((&ann, &tool), rate(2), Millis(9_000_000)), Ok(()));
        let waits = rates.take((&ann, &tool), rate(2), Millis(1_000)).unwrap_err();
        assert_eq!(waits, 30_000, "as if the bucket were empty, not until the old time comes");
    }

    #[test]
    fn only_so_many_are_remembered_and_the_fullest_is_forgotten_first() {
        let (rates, tool) = (Rates::new(2), ToolName::from("t"));
        let (ann, bob, eve) = (caller("ann"), caller("bob"), caller("eve"));
        let take = |who: &Caller, at: i64| rates.take((who, &tool), rate(2), Millis(at));
        assert_eq!([take(&ann, 0), take(&ann, 0), take(&bob, 0)], [Ok(()); 3]);
        // Nobody's bucket is full: bob, who used less, is forgotten, and ann stays empty.
        assert_eq!(take(&eve, 0), Ok(()));
        assert_eq!(take(&ann, 0), Err(30_000));
        assert_eq!(rates.full_at.lock().unwrap().len(), 2);
        // A minute later all are full, and forgotten.
        assert_eq!(take(&bob, 60_000), Ok(()));
        assert_eq!(rates.full_at.lock().unwrap().len(), 1);
    }

    #[test]
    fn rates_beyond_the_clocks_grain_are_no_limit_that_matters() {
        let (rates, ann, tool) = (Rates::new(8), caller("ann"), ToolName::from("t"));
        for _ in 0..10_000 {
            assert_eq!(rates.take((&ann, &tool), NonZeroU32::MAX, Millis(0)), Ok(()));
        }
    }
}
