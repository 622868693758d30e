//! How often a caller may call a tool: a bucket of tokens for each caller and tool that has a rate.
//! A bucket holds a minute's calls. A full one is as good as none, so only those in use are
//! remembered.

use crate::system::locks::lock;
use kernel::tool::call::Caller;
use kernel::values::ids::{Millis, RealmId, ToolName};
use kernel::values::rate::{Bucket, Rate};
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

/// The buckets in use.
#[derive(Debug)]
pub(crate) struct Rates {
    buckets: Mutex<HashMap<RateKey, Bucket>>,
    buckets_max: usize,
}

/// Whose calls of what.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct RateKey {
    realm: RealmId,
    subject: Arc<str>,
    actor: Option<Arc<str>>,
    tool: ToolName,
}

impl Rates {
    /// So many buckets are remembered.
    pub(crate) fn new(buckets_max: usize) -> Self {
        Self { buckets: Mutex::default(), buckets_max: buckets_max.max(1) }
    }

    /// Takes a token for a call that begins now; else in how many milliseconds there will be one.
    pub(crate) fn take(
        &self,
        caller: &Caller,
        tool: &ToolName,
        per_minute: NonZeroU32,
        now: Millis,
    ) -> Result<(), u64> {
        let whose = whose(caller, tool);
        let rate = Rate::per_minute(per_minute);
        let mut buckets = lock(&self.buckets);
        if let Some(bucket) = buckets.get_mut(&whose) {
            return bucket.take(rate, now);
        }
        if buckets.len() >= self.buckets_max {
            make_room(&mut buckets, self.buckets_max, now);
        }
        buckets.entry(whose).or_default().take(rate, now)
    }

    /// Puts a token back: the call was not sent.
    pub(crate) fn give_back(&self, caller: &Caller, tool: &ToolName, per_minute: NonZeroU32) {
        if let Some(bucket) = lock(&self.buckets).get_mut(&whose(caller, tool)) {
            bucket.give_back(Rate::per_minute(per_minute));
        }
    }

    /// Whether `take` would give a token now, without taking it.
    pub(crate) fn peek(
        &self,
        caller: &Caller,
        tool: &ToolName,
        per_minute: NonZeroU32,
        now: Millis,
    ) -> Result<(), u64> {
        match lock(&self.buckets).get_mut(&whose(caller, tool)) {
            Some(bucket) => bucket.peek(Rate::per_minute(per_minute), now),
            None => Ok(()),
        }
    }
}

fn whose(caller: &Caller, tool: &ToolName) -> RateKey {
    RateKey {
        realm: caller.realm.clone(),
        subject: caller.subject.clone(),
        actor: caller.actor.clone(),
        tool: tool.clone(),
    }
}

/// Forgets the buckets that are full, and if all are in use the one that is next to be.
fn make_room(buckets: &mut HashMap<RateKey, Bucket>, buckets_max: usize, now: Millis) {
    buckets.retain(|_, bucket| !bucket.is_full(now));
    if buckets.len() < buckets_max {
        return;
    }
    let fullest = buckets.iter().min_by_key(|(_, bucket)| **bucket).map(|(whose, _)| whose);
    if let Some(whose) = fullest.cloned() {
        buckets.remove(&whose);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(subject: &str) -> Caller {
        Caller::new("r", subject)
    }

    fn rate(per_minute: u32) -> NonZeroU32 {
        NonZeroU32::new(per_minute).unwrap()
    }

    #[test]
    fn each_caller_has_a_bucket_and_looking_takes_no_token() {
        let rates = Rates::new(8);
        let ann = caller("ann");
        let tool = ToolName::from("t");
        let now = Millis(5);
        for _ in 0..5 {
            assert_eq!(rates.peek(&ann, &tool, rate(1), now), Ok(()));
        }
        assert_eq!(rates.take(&ann, &tool, rate(1), now), Ok(()));
        assert_eq!(rates.peek(&ann, &tool, rate(1), now), Err(60_000));
        assert_eq!(rates.take(&caller("bob"), &tool, rate(1), now), Ok(()));
        assert_eq!(rates.take(&ann, &"u".into(), rate(1), now), Ok(()));
        let through = Caller { actor: Some("bot".into()), ..ann.clone() };
        assert_eq!(rates.take(&through, &tool, rate(1), now), Ok(()));
        let elsewhere = Caller { realm: "other".into(), ..ann };
        assert_eq!(rates.take(&elsewhere, &tool, rate(1), now), Ok(()));
    }

    #[test]
    fn a_clock_that_is_set_back_locks_nobody_out() {
        let rates = Rates::new(8);
        let ann = caller("ann");
        let tool = ToolName::from("t");
        assert_eq!(rates.take(&ann, &tool, rate(2), Millis(9_000_000)), Ok(()));
        // Calls are checked before they are counted, and refused there.
        assert_eq!(rates.peek(&ann, &tool, rate(2), Millis(1_000)), Err(30_000));
        assert_eq!(rates.peek(&ann, &tool, rate(2), Millis(30_999)), Err(1));
        assert_eq!(rates.take(&ann, &tool, rate(2), Millis(31_000)), Ok(()));
    }

    #[test]
    fn buckets_are_bounded_and_the_fullest_is_evicted_first() {
        let rates = Rates::new(2);
        let tool = ToolName::from("t");
        let ann = caller("ann");
        let bob = caller("bob");
        let eve = caller("eve");
        let take = |who: &Caller, at: i64| rates.take(who, &tool, rate(2), Millis(at));
        assert_eq!([take(&ann, 0), take(&ann, 0), take(&bob, 0)], [Ok(()); 3]);
        // No one's bucket is full: bob, who used less, is forgotten, and ann stays empty.
        assert_eq!(take(&eve, 0), Ok(()));
        assert_eq!(take(&ann, 0), Err(30_000));
        assert_eq!(lock(&rates.buckets).len(), 2);
        // A minute later all are full, and forgotten.
        assert_eq!(take(&bob, 60_000), Ok(()));
        assert_eq!(lock(&rates.buckets).len(), 1);
    }
}
