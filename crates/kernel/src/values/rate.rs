//! Token buckets: a rate with a burst of one period, refilled evenly.

use crate::values::ids::Millis;
use std::num::NonZeroU32;

const SECOND_US: i64 = 1_000_000;
const MINUTE_US: i64 = 60 * SECOND_US;
const MS_US: i64 = 1_000;

/// How fast a bucket fills up, and how much it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How long one token takes to come back.
    token_us: i64,
    /// How long an empty bucket takes to be full.
    bucket_us: i64,
}

impl Rate {
    /// So many in a minute, and as many at once.
    pub fn per_minute(count: NonZeroU32) -> Self {
        Self::within(MINUTE_US, count)
    }

    /// So many in a second, and as many at once.
    pub fn per_second(count: NonZeroU32) -> Self {
        Self::within(SECOND_US, count)
    }

    fn within(time_us: i64, count: NonZeroU32) -> Self {
        let token_us = (time_us / i64::from(count.get())).max(1);
        Self { token_us, bucket_us: token_us.saturating_mul(i64::from(count.get())) }
    }
}

/// One bucket. It is full at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bucket {
    /// When it will be full again, in microseconds since 1970.
    full_at_us: i64,
}

impl Default for Bucket {
    fn default() -> Self {
        Self { full_at_us: i64::MIN }
    }
}

impl Bucket {
    /// Takes a token now; else in how many milliseconds there will be one.
    pub fn take(&mut self, rate: Rate, now: Millis) -> Result<(), u64> {
        self.full_at_us = self.without_one(rate, now)?;
        Ok(())
    }

    /// The result of `take` now, without taking a token.
    pub fn peek(&mut self, rate: Rate, now: Millis) -> Result<(), u64> {
        self.without_one(rate, now).map(|_| ())
    }

    /// Puts a token back that was taken for nothing.
    pub fn give_back(&mut self, rate: Rate) {
        self.full_at_us = self.full_at_us.saturating_sub(rate.token_us);
    }

    /// Whether nothing is missing: such a bucket need not be remembered.
    pub fn is_full(&self, now: Millis) -> bool {
        self.full_at_us <= micros(now)
    }

    /// When it will be full again once a token is taken from it; else the milliseconds until there
    /// is one. No bucket is emptier than empty, and that is remembered, whatever the answer is:
    /// else a clock that was set back would refuse until the old time comes again.
    fn without_one(&mut self, rate: Rate, now: Millis) -> Result<i64, u64> {
        let now_us = micros(now);
        let empty = now_us.saturating_add(rate.bucket_us);
        self.full_at_us = self.full_at_us.clamp(now_us, empty);
        let then = self.full_at_us.saturating_add(rate.token_us);
        if then <= empty {
            return Ok(then);
        }
        let wait_us = then.saturating_sub(empty).unsigned_abs();
        Err(wait_us.div_ceil(MS_US.unsigned_abs()).max(1))
    }
}

fn micros(at: Millis) -> i64 {
    at.0.saturating_mul(MS_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Asks = fn(&mut Bucket, Millis) -> Result<(), u64>;

    fn rate(per_minute: u32) -> Rate {
        Rate::per_minute(NonZeroU32::new(per_minute).unwrap())
    }

    #[test]
    fn a_bucket_allows_a_burst_of_one_minute_and_then_refills_evenly() {
        let mut bucket = Bucket::default();
        let mut take = |at: i64| bucket.take(rate(3), Millis(at));
        let start = 1_000_000;
        assert_eq!([take(start), take(start), take(start)], [Ok(()); 3]);
        assert_eq!(take(start), Err(20_000));
        assert_eq!(take(start + 19_999), Err(1));
        assert_eq!((take(start + 20_000), take(start + 20_000)), (Ok(()), Err(20_000)));
        // After a long rest there is one minute's worth, and no more.
        let later = start + 600_000;
        assert_eq!([take(later), take(later), take(later)], [Ok(()); 3]);
        assert_eq!(take(later), Err(20_000));
    }

    #[test]
    fn a_per_second_bucket_holds_one_second() {
        let mut bucket = Bucket::default();
        let rate = Rate::per_second(NonZeroU32::new(2).unwrap());
        let mut take = |at: i64| bucket.take(rate, Millis(at));
        assert_eq!((take(0), take(0), take(0)), (Ok(()), Ok(()), Err(500)));
        assert_eq!((take(499), take(500)), (Err(1), Ok(())));
    }

    #[test]
    fn a_returned_token_can_be_taken_once() {
        let mut bucket = Bucket::default();
        assert_eq!(bucket.take(rate(1), Millis(5)), Ok(()));
        bucket.give_back(rate(1));
        assert_eq!(bucket.take(rate(1), Millis(5)), Ok(()));
        assert_eq!(bucket.take(rate(1), Millis(5)), Err(60_000));
        // A full one does not become fuller than full.
        let mut bucket = Bucket::default();
        bucket.give_back(rate(1));
        assert_eq!(bucket.take(rate(1), Millis(5)), Ok(()));
        assert_eq!(bucket.take(rate(1), Millis(5)), Err(60_000));
    }

    #[test]
    fn looking_at_a_bucket_takes_no_token() {
        let mut bucket = Bucket::default();
        for _ in 0..5 {
            assert_eq!(bucket.peek(rate(1), Millis(5)), Ok(()));
        }
        assert!(bucket.is_full(Millis(5)));
        assert_eq!(bucket.take(rate(1), Millis(5)), Ok(()));
        assert_eq!(bucket.peek(rate(1), Millis(5)), Err(60_000));
        assert!(!bucket.is_full(Millis(60_004)) && bucket.is_full(Millis(60_005)));
    }

    #[test]
    fn a_clock_that_is_set_back_never_refuses_longer_than_a_bucket_takes_to_fill() {
        let asks: [Asks; 2] =
            [|bucket, now| bucket.take(rate(2), now), |bucket, now| bucket.peek(rate(2), now)];
        for ask in asks {
            let mut bucket = Bucket::default();
            assert_eq!(bucket.take(rate(2), Millis(9_000_000_000)), Ok(()));
            // A caller who asks all the time, and is refused, is not held up by it.
            let refused =
                (0_i64..).take_while(|second| ask(&mut bucket, Millis(second * 1_000)).is_err());
            assert_eq!(refused.count(), 30, "as if it were empty, not until the old time comes");
        }
    }

    #[test]
    fn rates_finer_than_the_clock_still_work() {
        let mut bucket = Bucket::default();
        for _ in 0..10_000 {
            assert_eq!(bucket.take(Rate::per_minute(NonZeroU32::MAX), Millis(0)), Ok(()));
        }
    }
}
