//! Which traces are recorded. By default a caller decides about the traces that it sends, and of
//! those that begin here so many a second are recorded: what telemetry costs is bounded under any
//! load, and a quiet server loses none.

use crate::config::{Rule, Sampling};
use kernel::values::ids::Millis;
use kernel::values::rate::{Bucket, Rate};
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

/// How many bits of a trace's id are random in every format.
const RANDOM_BITS: u32 = 56;

/// Decides about traces.
pub(crate) struct Sampler {
    how: SamplingMode,
    follows_caller: bool,
}

enum SamplingMode {
    Always(bool),
    /// Ids whose random bits are at least this.
    From(u64),
    /// So many a second, and as many at once.
    Limited(Rate, Mutex<Bucket>),
}

impl Sampler {
    pub(crate) fn new(sampling: Sampling, per_second: u32) -> Self {
        let how = match sampling.rule {
            Rule::All => SamplingMode::Always(true),
            Rule::None => SamplingMode::Always(false),
            Rule::Share(share) => SamplingMode::From(threshold(share)),
            Rule::Limited => match NonZeroU32::new(per_second) {
                Some(count) => SamplingMode::Limited(Rate::per_second(count), Mutex::default()),
                None => SamplingMode::Always(false),
            },
        };
        Self { how, follows_caller: sampling.follows_caller }
    }

    /// Whether this trace is recorded; `caller` is what its sender decided.
    pub(crate) fn samples(&self, trace: u128, caller: Option<bool>, now: Millis) -> bool {
        match caller {
            Some(sampled) if self.follows_caller => return sampled,
            _ => {}
        }
        match &self.how {
            SamplingMode::Always(sampled) => *sampled,
            SamplingMode::From(least) => random_bits(trace) >= *least,
            SamplingMode::Limited(rate, bucket) => {
                bucket.lock().unwrap_or_else(PoisonError::into_inner).take(*rate, now).is_ok()
            }
        }
    }
}

/// The bits that are random in ids of ours and of others.
fn random_bits(trace: u128) -> u64 {
    (trace & ((1 << RANDOM_BITS) - 1)) as u64
}

/// From which random bits on this share of all traces lies.
fn threshold(share: f64) -> u64 {
    let all = (1u64 << RANDOM_BITS) as f64;
    ((1.0 - share.clamp(0.0, 1.0)) * all) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(rule: Rule, follows_caller: bool) -> Sampler {
        Sampler::new(Sampling { rule, follows_caller }, 2)
    }

    #[test]
    fn a_followed_caller_decides_about_sampling() {
        for sampled in [false, true] {
            let asked = |sampler: Sampler| sampler.samples(1, Some(sampled), Millis(0));
            assert_eq!(asked(sampler(Rule::None, true)), sampled);
            assert_eq!(asked(sampler(Rule::Limited, true)), sampled);
            assert!(!asked(sampler(Rule::None, false)));
            assert!(asked(sampler(Rule::All, false)));
        }
    }

    #[test]
    fn ratio_sampling_uses_the_random_bits_of_the_trace_id() {
        let ids = (0..1_000u128).map(|n| {
            // As in our own ids, only the lower bits are random.
            let random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) & ((1 << RANDOM_BITS) - 1);
            (0x0192_abcd_u128 << 96) | (0b10 << 62) | random
        });
        let ids: Vec<u128> = ids.collect();
        let taken = |share: f64| {
            let sampler = sampler(Rule::Share(share), false);
            ids.iter().filter(|id| sampler.samples(**id, None, Millis(0))).count()
        };
        assert_eq!((taken(0.0), taken(1.0)), (0, 1_000));
        let quarter = taken(0.25);
        assert!((200..=300).contains(&quarter), "{quarter} of 1,000");
    }

    #[test]
    fn new_traces_per_second_are_bounded() {
        let sampler = sampler(Rule::Limited, true);
        let taken = |at: i64, asked: u32| {
            (0..asked).filter(|_| sampler.samples(1, None, Millis(at))).count()
        };
        assert_eq!(taken(0, 10), 2);
        assert_eq!(taken(499, 10), 0);
        assert_eq!(taken(500, 10), 1, "half a second later there is room for one");
        assert_eq!(taken(60_000, 10), 2, "a quiet minute saves nothing up");
        assert_eq!(taken(0, 10), 0, "a clock that is set back gives nothing");
        assert_eq!(taken(1_000, 10), 2);
    }
}
