//! A policy of the seed: what it says of a call follows from the tool, the step in the arguments
//! and, for some steps, the time, so that each of its words can be explained. It is outside the
//! process, as an operator's is.

use super::panicking::Panics;
use crate::sim::rng::{Rng, mix};
use kernel::contracts::policy::{Decision, Request, Resource};
use kernel::contracts::{Clock, Policy};
use kernel::tool::call::Verdict;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// For how long one that wavers stays with what it said.
const MOOD_MS: i64 = 3_000;

/// The policy.
pub struct SimPolicy {
    /// Out of which its rules are made; none allows everything.
    salt: Option<u64>,
    clock: Arc<dyn Clock>,
    /// It denies nothing any more.
    calm: AtomicBool,
    panics: Arc<Panics>,
}

/// What holds for a tool at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Allows,
    Asks,
    Denies,
    /// Asks, denies and allows in turn: a call that a person approved meets a policy that has
    /// changed its mind.
    Wavers,
}

impl SimPolicy {
    /// A policy; for some seeds one that allows everything.
    pub fn new(rng: &mut Rng, clock: Arc<dyn Clock>, panics: Arc<Panics>) -> Self {
        let salt = rng.draw();
        let salt = rng.chance(60).then_some(salt);
        Self { salt, clock, calm: AtomicBool::new(false), panics }
    }

    /// From now on nothing is denied: all runs must come to an end.
    pub fn calm_down(&self) {
        self.calm.store(true, Ordering::SeqCst);
    }

    /// What it says of a call at this moment.
    pub fn says(&self, tool: &str, arguments: &Value) -> Verdict {
        let step = arguments["step"].as_str().unwrap_or_default();
        let Some(digest) = self.digest(tool, step) else { return Verdict::Allow };
        let asks = || Verdict::Ask(format!("{tool} at {step} needs a person"));
        let denies = || {
            if self.calm.load(Ordering::SeqCst) {
                return Verdict::Allow;
            }
            Verdict::Deny(format!("{tool} at {step} is closed"))
        };
        match rule(digest) {
            Rule::Allows => Verdict::Allow,
            Rule::Asks => asks(),
            Rule::Denies => denies(),
            Rule::Wavers => {
                let moods = self.clock.now().0.div_euclid(MOOD_MS).unsigned_abs();
                match moods.wrapping_add(digest) % 4 {
                    0 | 2 => asks(),
                    1 => denies(),
                    _ => Verdict::Allow,
                }
            }
        }
    }

    fn digest(&self, tool: &str, step: &str) -> Option<u64> {
        let bytes = tool.bytes().chain(step.bytes());
        // The lowest bits of a mix know little of its first bytes.
        Some(bytes.fold(self.salt?, |digest, byte| mix(digest, u64::from(byte))) >> 13)
    }
}

fn rule(digest: u64) -> Rule {
    match digest % 100 {
        0..66 => Rule::Allows,
        66..80 => Rule::Asks,
        80..86 => Rule::Denies,
        _ => Rule::Wavers,
    }
}

impl Policy for SimPolicy {
    fn decide(&self, request: &Request<'_>) -> Decision {
        match (request.resource, request.context.arguments) {
            (Resource::Tool(spec), Some(arguments)) => {
                self.panics.in_driver("the policy");
                self.says(spec.name.as_str(), arguments).into()
            }
            _ => Decision::allow(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::machine::clock::SimClock;
    use crate::sim::machine::executor::Executor;
    use crate::sim::machine::power::Power;
    use serde_json::json;
    use std::collections::BTreeSet;

    fn salted(clock: Arc<dyn Clock>) -> SimPolicy {
        let panics = Arc::new(Panics::new(Rng::new(1), false, Arc::default()));
        SimPolicy { salt: Some(7), clock, calm: AtomicBool::new(false), panics }
    }

    #[test]
    fn it_says_everything_somewhere_and_denies_nothing_once_it_is_calm() {
        let executor = Executor::new(1, Arc::new(Power::default()));
        let clock = Arc::new(SimClock(executor.clone()));
        let policy = salted(clock);
        let said = |policy: &SimPolicy| -> BTreeSet<&'static str> {
            let word = |step: u32| match policy.says("t", &json!({"step": format!("s{step}")})) {
                Verdict::Allow => "allow",
                Verdict::Ask(_) => "ask",
                Verdict::Deny(_) => "deny",
            };
            (0..200).map(word).collect()
        };
        assert_eq!(said(&policy), BTreeSet::from(["allow", "ask", "deny"]));
        policy.calm_down();
        assert_eq!(said(&policy), BTreeSet::from(["allow", "ask"]));
    }

    #[test]
    fn one_that_wavers_asks_first_and_denies_later() {
        let executor = Executor::new(1, Arc::new(Power::default()));
        let clock = Arc::new(SimClock(executor.clone()));
        let policy = salted(clock);
        let wavers = (0..200).map(|step| format!("s{step}")).find(|step| {
            policy.digest("t", step).is_some_and(|digest| rule(digest) == Rule::Wavers)
        });
        let arguments = json!({"step": wavers.unwrap()});
        let mut said = Vec::new();
        for _ in 0..4 {
            said.push(policy.says("t", &arguments));
            executor.pass(MOOD_MS);
        }
        assert!(said.iter().any(|verdict| matches!(verdict, Verdict::Ask(_))), "{said:?}");
        assert!(said.iter().any(|verdict| matches!(verdict, Verdict::Deny(_))), "{said:?}");
    }
}
