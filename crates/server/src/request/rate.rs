//! How often something may be done by everybody together.

use kernel::values::ids::Millis;
use kernel::values::rate::{Bucket, Rate};
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

/// One bucket for everybody.
#[derive(Debug)]
pub(crate) struct SharedRate {
    rate: Rate,
    bucket: Mutex<Bucket>,
}

impl SharedRate {
    /// So many in a minute, at least one.
    pub(crate) fn per_minute(count: u32) -> Self {
        let count = NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        Self { rate: Rate::per_minute(count), bucket: Mutex::default() }
    }

    /// Takes a token now; else in how many milliseconds there will be one.
    pub(crate) fn take(&self, now: Millis) -> Result<(), u64> {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.take(self.rate, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
