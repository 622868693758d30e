//! Circuit breakers: the calls of a server that failed too often in a row, or of one tool, are
//! refused for a while, for each realm by itself. Only failures are remembered, and an answer
//! forgets them. No other process knows of them, and after a restart calls go out again.

use super::{Gate, StartError};
use crate::catalog::registry::ListedTool;
use crate::refusal::TryLater;
use crate::system::locks::lock;
use kernel::tool::breaker::{Breaker, BreakerRule, BreakerScope};
use kernel::tool::call::{CallProgress, Caller, ToolError, ToolOutput};
use kernel::values::fault::Fault;
use kernel::values::ids::{Millis, RealmId};
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Fault of a call that is refused because the ones before it failed.
pub(crate) const CIRCUIT_OPEN: &str = "CircuitOpen";
/// How many are remembered.
const BREAKERS_MAX: usize = 4_096;

/// Calls that failed in a row, as they are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakerState {
    /// The calls of what.
    pub guarded: BreakerScope,
    /// How many failed.
    pub failures: u32,
    /// Until when calls are refused, if they are. After that one call tries.
    pub open_until: Option<Millis>,
}

/// The breakers of what fails now.
#[derive(Debug, Default)]
pub(crate) struct Breakers {
    failing: Mutex<HashMap<Circuit, Breaker>>,
    /// How many are remembered, for who only looks whether anything fails: most often nothing does,
    /// and then calls need not wait for each other here.
    count: AtomicUsize,
}

/// Whose calls of what.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Circuit {
    realm: RealmId,
    guarded: BreakerScope,
}

/// Counts the failures of a call.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    circuit: Circuit,
    rule: BreakerRule,
}

impl Breakers {
    /// The failing breakers of a realm.
    pub(crate) fn of(&self, realm: &RealmId) -> Vec<BreakerState> {
        let failing = lock(&self.failing);
        let own = failing.iter().filter(|(circuit, _)| circuit.realm == *realm);
        let mut states: Vec<BreakerState> = own
            .map(|(circuit, breaker)| BreakerState {
                guarded: circuit.guarded.clone(),
                failures: breaker.failures(),
                open_until: breaker.open_until(),
            })
            .collect();
        states.sort_by(|left, right| left.guarded.cmp(&right.guarded));
        states
    }

    fn peek(&self, guard: &Guard, now: Millis) -> Result<(), u64> {
        let Some(mut failing) = self.any() else { return Ok(()) };
        failing.get_mut(&guard.circuit).map_or(Ok(()), |breaker| breaker.peek(guard.rule, now))
    }

    fn pass(&self, guard: &Guard, now: Millis) -> Result<(), u64> {
        let Some(mut failing) = self.any() else { return Ok(()) };
        failing.get_mut(&guard.circuit).map_or(Ok(()), |breaker| breaker.pass(guard.rule, now))
    }

    /// The failing breakers, if there are any.
    fn any(&self) -> Option<MutexGuard<'_, HashMap<Circuit, Breaker>>> {
        let has_any = self.count.load(Ordering::Acquire) > 0;
        has_any.then(|| lock(&self.failing))
    }

    fn failed(&self, guard: &Guard, now: Millis) {
        let Guard { circuit, rule } = guard;
        let mut failing = lock(&self.failing);
        if failing.len() >= BREAKERS_MAX && !failing.contains_key(circuit) {
            failing.retain(|_, breaker| breaker.open_until().is_some());
            if failing.len() >= BREAKERS_MAX {
                return;
            }
        }
        let has_opened = failing.entry(circuit.clone()).or_default().failed(*rule, now);
        self.count.store(failing.len(), Ordering::Release);
        drop(failing);
        if has_opened {
            let Circuit { realm, guarded } = circuit;
            let failures = rule.failures.get();
            let open_ms = rule.open_ms;
            tracing::warn!(%realm, failures, open_ms, "calls of {guarded} are refused for a while");
        }
    }

    fn answered(&self, guard: &Guard) {
        let Some(mut failing) = self.any() else { return };
        let before = failing.remove(&guard.circuit);
        self.count.store(failing.len(), Ordering::Release);
        drop(failing);
        if before.is_some_and(|breaker| breaker.open_until().is_some()) {
            let Circuit { realm, guarded } = &guard.circuit;
            tracing::info!(%realm, "calls of {guarded} are let through again");
        }
    }
}

impl Gate {
    /// The breaker guard of a tool's calls, if breakers are on.
    pub(super) fn guard(&self, caller: &Caller, listed: &ListedTool) -> Option<Guard> {
        let guarded = listed.guarded.clone()?;
        let failures = match listed.limits.breaker_failures {
            Some(failures) => failures,
            None => NonZeroU32::new(self.limits.breaker_failures)?,
        };
        let rule = BreakerRule { failures, open_ms: self.limits.breaker_open_ms };
        Some(Guard { circuit: Circuit { realm: caller.realm.clone(), guarded }, rule })
    }

    /// Refuses a call that could not be sent now, without letting one through.
    pub(super) fn check_breaker(&self, guard: &Guard) -> Result<(), StartError> {
        let peeked = self.breakers.peek(guard, self.clock.now());
        peeked.map_err(|retry_ms| circuit_open(guard, retry_ms))
    }

    /// Lets a call through that is about to be sent, or refuses it.
    pub(super) fn pass_breaker(&self, guard: &Guard) -> Result<(), StartError> {
        let passed = self.breakers.pass(guard, self.clock.now());
        passed.map_err(|retry_ms| circuit_open(guard, retry_ms))
    }

    /// Remembers how a call ended. Any answer shows that the other side is there, also one that
    /// says that the call failed; a call that was not sent for a lasting reason shows nothing.
    pub(super) fn note_outcome(&self, guard: &Guard, result: &Result<ToolOutput, ToolError>) {
        match result {
            Err(error) if error.fault.passing => self.breakers.failed(guard, self.clock.now()),
            Err(error) if error.how == CallProgress::NotSent => {}
            Ok(_) | Err(_) => self.breakers.answered(guard),
        }
    }
}

fn circuit_open(guard: &Guard, retry_ms: u64) -> StartError {
    let guarded = &guard.circuit.guarded;
    let failures = guard.rule.failures;
    let message = format!(
        "calls of {guarded} are refused since {failures} or more failed in a row; one may try in \
         {retry_ms} ms"
    );
    let hint = match guarded {
        BreakerScope::Upstream(name) => {
            format!("nothing was sent: come back then; `waypost mcp test {name}` checks it")
        }
        BreakerScope::Tool(_) => {
            "nothing was sent: come back then, or raise `breaker_failures` in [tools.limits]"
                .to_owned()
        }
    };
    let fault = Fault::new(CIRCUIT_OPEN, message).hint(hint).passing().refused_for(retry_ms);
    let error = ToolError::new(CallProgress::NotSent, fault);
    StartError::until(error, TryLater::after(retry_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(realm: &str, upstream: &str) -> Guard {
        let rule = BreakerRule { failures: NonZeroU32::new(2).unwrap(), open_ms: 1_000 };
        let guarded = BreakerScope::Upstream(upstream.into());
        Guard { circuit: Circuit { realm: realm.into(), guarded }, rule }
    }

    #[test]
    fn breakers_are_per_realm_and_upstream_and_a_success_resets_them() {
        let breakers = Breakers::default();
        let crm = guard("r", "crm");
        breakers.failed(&crm, Millis(0));
        breakers.answered(&crm);
        breakers.failed(&crm, Millis(1));
        assert_eq!(breakers.pass(&crm, Millis(1)), Ok(()), "they were not in a row");
        breakers.failed(&crm, Millis(2));
        assert_eq!(breakers.peek(&crm, Millis(2)), Err(1_000));
        assert_eq!(breakers.pass(&guard("other", "crm"), Millis(2)), Ok(()));
        assert_eq!(breakers.pass(&guard("r", "erp"), Millis(2)), Ok(()));
        let state = BreakerState {
            guarded: BreakerScope::Upstream("crm".into()),
            failures: 2,
            open_until: Some(Millis(1_002)),
        };
        assert_eq!(breakers.of(&"r".into()), [state]);
        assert!(breakers.of(&"other".into()).is_empty());
        breakers.answered(&crm);
        assert_eq!(breakers.pass(&crm, Millis(3)), Ok(()));
    }

    #[test]
    fn breakers_are_bounded_and_open_ones_are_kept() {
        let breakers = Breakers::default();
        let open = guard("r", "open");
        breakers.failed(&open, Millis(0));
        breakers.failed(&open, Millis(0));
        for number in 0..BREAKERS_MAX {
            breakers.failed(&guard("r", &number.to_string()), Millis(0));
        }
        assert_eq!(lock(&breakers.failing).len(), 2);
        assert_eq!(breakers.peek(&open, Millis(0)), Err(1_000));
    }
}
