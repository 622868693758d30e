//! A circuit breaker: after a number of consecutive transient failures, calls are refused for a
//! while; then one probe call is let through. It knows no clock and makes no calls: the gate asks
//! it before a call and reports the outcome.

use crate::values::ids::{Millis, ToolName};
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

/// The calls that one breaker covers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BreakerScope {
    /// All tools of the upstream of this name.
    Upstream(Arc<str>),
    Tool(ToolName),
}

impl fmt::Display for BreakerScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BreakerScope::Upstream(name) => write!(f, "upstream `{name}`"),
            BreakerScope::Tool(name) => write!(f, "tool `{name}`"),
        }
    }
}

/// When calls are refused, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerRule {
    /// After how many passing failures in a row.
    pub failures: NonZeroU32,
    /// How long calls are refused before one tries again.
    pub open_ms: u64,
}

/// The failures since the last answer. Without any there is nothing to remember.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Breaker {
    failures: u32,
    open_until: Option<Millis>,
}

impl Breaker {
    /// How many passing failures came in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Until when calls are refused, if they are. After that one call tries.
    pub fn open_until(&self) -> Option<Millis> {
        self.open_until
    }

    /// Lets a call through; else in how many milliseconds one may try. Where calls were refused,
    /// this one is the try: the others are refused until its outcome is known, and at most as long
    /// again, for a call may end without an outcome.
    pub fn pass(&mut self, rule: BreakerRule, now: Millis) -> Result<(), u64> {
        self.peek(rule, now)?;
        if self.open_until.is_some() {
            self.open_until = Some(now.plus_ms(rule.open_ms));
        }
        Ok(())
    }

    /// What `pass` would say now, without letting a call through. A clock that was set back never
    /// makes the wait longer than the rule says, and that is remembered.
    pub fn peek(&mut self, rule: BreakerRule, now: Millis) -> Result<(), u64> {
        let Some(until) = self.open_until else { return Ok(()) };
        let until = until.min(now.plus_ms(rule.open_ms));
        self.open_until = Some(until);
        match u64::try_from(until.0.saturating_sub(now.0)) {
            Ok(wait_ms) if wait_ms > 0 => Err(wait_ms),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// A call failed for a passing reason. Whether calls are refused from now on that were not.
    pub fn failed(&mut self, rule: BreakerRule, now: Millis) -> bool {
        self.failures = self.failures.saturating_add(1);
        if self.failures < rule.failures.get() {
            return false;
        }
        let was_open = self.open_until.is_some();
        self.open_until = Some(now.plus_ms(rule.open_ms));
        !was_open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(failures: u32) -> BreakerRule {
        BreakerRule { failures: NonZeroU32::new(failures).unwrap(), open_ms: 100 }
    }

    /// One that refuses calls since 1,000.
    fn open() -> Breaker {
        let mut breaker = Breaker::default();
        assert!(breaker.failed(rule(1), Millis(1_000)));
        breaker
    }

    #[test]
    fn calls_are_refused_after_so_many_failures_in_a_row() {
        let mut breaker = Breaker::default();
        assert!(!breaker.failed(rule(3), Millis(1)));
        assert!(!breaker.failed(rule(3), Millis(2)));
        assert_eq!((breaker.pass(rule(3), Millis(3)), breaker.open_until()), (Ok(()), None));
        assert!(breaker.failed(rule(3), Millis(4)));
        assert_eq!((breaker.failures(), breaker.open_until()), (3, Some(Millis(104))));
        assert_eq!(breaker.pass(rule(3), Millis(4)), Err(100));
        assert_eq!(breaker.peek(rule(3), Millis(103)), Err(1));
        // One that was under way before fails, too: that is no news.
        assert!(!breaker.failed(rule(3), Millis(50)));
    }

    #[test]
    fn a_half_open_breaker_lets_one_call_through() {
        let mut breaker = open();
        assert_eq!(breaker.peek(rule(1), Millis(1_100)), Ok(()));
        assert_eq!(breaker.pass(rule(1), Millis(1_100)), Ok(()));
        assert_eq!(breaker.pass(rule(1), Millis(1_100)), Err(100));
        assert_eq!(breaker.pass(rule(1), Millis(1_199)), Err(1));
        // It failed: calls are refused as long again.
        assert!(!breaker.failed(rule(1), Millis(1_150)));
        assert_eq!(breaker.pass(rule(1), Millis(1_200)), Err(50));
        assert_eq!(breaker.pass(rule(1), Millis(1_250)), Ok(()));
        // Nobody learned how that one ended: another one tries after the same time.
        assert_eq!(breaker.pass(rule(1), Millis(1_350)), Ok(()));
    }

    #[test]
    fn a_clock_that_is_set_back_refuses_no_longer_than_the_rule_says() {
        let mut breaker = open();
        assert_eq!(breaker.peek(rule(1), Millis(0)), Err(100));
        assert_eq!(breaker.pass(rule(1), Millis(99)), Err(1));
        assert_eq!(breaker.pass(rule(1), Millis(100)), Ok(()));
    }
}
