//! How often something may be done by everybody together: a bucket that holds a minute's worth and
//! fills up evenly, so that many may come at once, and then one after the other.

use kernel::ids::Millis;
use std::sync::{Mutex, PoisonError};

const MINUTE_MS: i64 = 60_000;

/// The bucket.
#[derive(Debug)]
pub(crate) struct Rate {
    /// How long one token takes to come back.
    token_ms: i64,
    /// How long an empty bucket takes to be full.
    bucket_ms: i64,
    /// When it will be full again, in milliseconds since 1970.
    full_at: Mutex<i64>,
}

impl Rate {
    /// So many in a minute, at least one.
    pub(crate) fn per_minute(count: u32) -> Self {
        let count = i64::from(count.max(1));
        let token_ms = (MINUTE_MS / count).max(1);
        let bucket_ms = token_ms.saturating_mul(count);
        Self { token_ms, bucket_ms, full_at: Mutex::new(i64::MIN) }
    }

    /// Takes a token now; else in how many milliseconds there will be one.
    pub(crate) fn take(&self, now: Millis) -> Result<(), u64> {
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        // No bucket is emptier than empty, and that is remembered: a clock that was set back must
        // not lock anybody out.
        let empty = now.0.saturating_add(self.bucket_ms);
        *full_at = (*full_at).clamp(now.0, empty);
        let then = full_at.saturating_add(self.token_ms);
        if then <= empty {
            *full_at = then;
            return Ok(());
        }
        Err(u64::try_from(then - empty).unwrap_or(1).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minutes_worth_may_come_at_once_and_then_one_after_the_other() {
        let rate = Rate::per_minute(3);
        let take = |at: i64| rate.take(Millis(at));
        assert_eq!([take(5), take(5), take(5)], [Ok(()); 3]);
        assert_eq!(take(5), Err(20_000));
        assert_eq!(take(20_004), Err(1));
        assert_eq!((take(20_005), take(20_005)), (Ok(()), Err(20_000)));
        assert_eq!([take(900_000), take(900_000), take(900_000)], [Ok(()); 3]);
        assert_eq!(take(900_000), Err(20_000));
        assert_eq!(take(1_000), Err(20_000));
        assert_eq!(take(21_000), Ok(()), "a clock that was set back locks nobody out for long");
        assert!(Rate::per_minute(0).take(Millis(0)).is_ok());
    }
}
