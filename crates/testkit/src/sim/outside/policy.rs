//! A policy of the seed: what it says of a call follows from the tool, the step in the arguments
//! and, for some steps, the time, so that each of its words can be explained. Where two realms
//! share the machine each has rules of its own, which change. It is outside the process, as an
//! operator's is.

use super::changes::{Changes, PolicyQuestion, Rules};
use super::panicking::Panics;
use crate::sim::faults::Planted;
use crate::sim::rng::{Rng, mix};
use kernel::contracts::policy::{Decision, Request, Resource};
use kernel::contracts::{Clock, Policy};
use kernel::tool::call::{Caller, Verdict};
use kernel::values::ids::RealmId;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// For how long one that wavers stays with what it said.
const MOOD_MS: i64 = 3_000;
/// The rules of a shared machine whose seed has none.
const SHARED_SALT: u64 = 5;

pub struct SimPolicy {
    /// Out of which its rules are made; none allows everything.
    salt: Option<u64>,
    /// What changes of it, where two realms share the machine.
    changes: Option<Changes>,
    clock: Arc<dyn Clock>,
    /// It denies nothing any more.
    calm: AtomicBool,
    panics: Arc<Panics>,
    /// What is wrong with it on purpose.
    planted: Option<Planted>,
    /// The calls that it did not deny once.
    passed: Mutex<BTreeSet<String>>,
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
        let (calm, passed) = (AtomicBool::new(false), Mutex::default());
        Self { salt, changes: None, clock, calm, panics, planted: None, passed }
    }

    /// The same with a fault on purpose, if it is one of a policy.
    #[must_use]
    pub fn planted(self, planted: Option<Planted>) -> Self {
        Self { planted, ..self }
    }

    /// The same for two realms that share the machine; whether changes are heeded late, which is a
    /// fault on purpose.
    #[must_use]
    pub fn shared(self, lags: bool) -> Self {
        let salt = self.salt.or(Some(SHARED_SALT));
        Self { salt, changes: Some(Changes::new(lags)), ..self }
    }

    /// What changes of it, where something does.
    pub fn changes(&self) -> Option<&Changes> {
        self.changes.as_ref()
    }

    /// Another set of rules for a realm: that is so when this is answered.
    pub fn change(&self, realm: &RealmId) {
        let now = self.clock.now();
        self.changes.iter().for_each(|changes| changes.change(realm, now));
    }

    /// A subject vanishes, or comes back.
    pub fn turn(&self, subject: &Caller) {
        let now = self.clock.now();
        self.changes.iter().for_each(|changes| changes.turn(subject, now));
    }

    /// From now on nothing is denied: all runs must come to an end.
    pub fn calm_down(&self) {
        self.calm.store(true, Ordering::SeqCst);
        let now = self.clock.now();
        self.changes.iter().for_each(|changes| changes.restore(now));
    }

    /// What it says of a call at this moment.
    pub fn says(&self, caller: &Caller, asked: PolicyQuestion<'_>) -> Verdict {
        let rules = self.changes.as_ref().map(Changes::rules);
        self.word(rules.as_deref(), caller, asked)
    }

    /// What these rules say of a call.
    fn word(&self, rules: Option<&Rules>, caller: &Caller, asked: PolicyQuestion<'_>) -> Verdict {
        let tool = asked.tool;
        let step = asked.step();
        let known = self.knows(rules, caller);
        if known != Verdict::Allow {
            return known;
        }
        let Some(digest) = self.digest(rules, &caller.realm, asked) else { return Verdict::Allow };
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

    /// What is heard of what it says of a call.
    fn heard(&self, caller: &Caller, asked: PolicyQuestion<'_>, verdict: Verdict) -> Verdict {
        if self.planted != Some(Planted::DenyIgnored) {
            return verdict;
        }
        let call = format!("{} at {} in {}", asked.tool, asked.step(), caller.realm);
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(verdict, Verdict::Deny(_)) {
            passed.insert(call);
            return verdict;
        }
        if passed.contains(&call) { Verdict::Allow } else { verdict }
    }

    /// Whether these rules know a caller: one that they do not may do nothing.
    fn knows(&self, rules: Option<&Rules>, caller: &Caller) -> Verdict {
        let is_gone = rules.is_some_and(|rules| rules.lack(caller));
        match is_gone && !self.calm.load(Ordering::SeqCst) {
            true => Verdict::Deny(format!("`{}` is not known any more", caller.subject)),
            false => Verdict::Allow,
        }
    }

    fn digest(
        &self,
        rules: Option<&Rules>,
        realm: &RealmId,
        asked: PolicyQuestion<'_>,
    ) -> Option<u64> {
        let salt = rules.map_or(self.salt, |rules| Some(rules.salt(self.salt?, realm)));
        let bytes = asked.tool.bytes().chain(asked.step().bytes());
        // The lowest bits of a mix know little of its first bytes.
        Some(bytes.fold(salt?, |digest, byte| mix(digest, u64::from(byte))) >> 13)
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
        let heeded = self.changes.as_ref().map(|changes| changes.heeded(self.clock.now()));
        let rules = heeded.as_deref();
        let subject = request.subject;
        let verdict = match (request.resource, request.context.arguments) {
            (Resource::Tool(_), Some(_)) if self.planted == Some(Planted::JudgementSkipped) => {
                return Decision::allow();
            }
            (Resource::Tool(spec), Some(arguments)) => {
                self.panics.in_driver("the policy");
                let asked = PolicyQuestion { tool: spec.name.as_str(), arguments };
                let verdict = self.word(rules, subject, asked);
                if let (Some(changes), Some(rules)) = (&self.changes, rules) {
                    changes.said(rules, &subject.realm, asked, &verdict);
                }
                self.heard(subject, asked, verdict)
            }
            _ => self.knows(rules, subject),
        };
        Decision { version: rules.map(Rules::version), ..verdict.into() }
    }

    fn version(&self) -> Option<Arc<str>> {
        let changes = self.changes.as_ref()?;
        Some(changes.heeded(self.clock.now()).version())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::machine::clock::SimClock;
    use crate::sim::machine::executor::Executor;
    use crate::sim::machine::power::Power;
    use serde_json::json;

    fn salted(clock: Arc<dyn Clock>) -> SimPolicy {
        let panics = Arc::new(Panics::new(Rng::new(1), false, Arc::default()));
        let policy = SimPolicy::new(&mut Rng::new(1), clock, panics);
        SimPolicy { salt: Some(7), ..policy }
    }

    fn says(policy: &SimPolicy, step: &str) -> Verdict {
        let arguments = json!({"step": step});
        policy.says(
            &Caller::new("default", "ann"),
            PolicyQuestion { tool: "t", arguments: &arguments },
        )
    }

    #[test]
    fn every_verdict_occurs_and_a_calm_policy_denies_nothing() {
        let executor = Executor::new(1, Arc::new(Power::default()));
        let clock = Arc::new(SimClock(executor.clone()));
        let policy = salted(clock);
        let said = |policy: &SimPolicy| -> BTreeSet<&'static str> {
            let word = |step: u32| match says(policy, &format!("s{step}")) {
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
    fn a_wavering_policy_asks_first_and_denies_later() {
        let executor = Executor::new(1, Arc::new(Power::default()));
        let clock = Arc::new(SimClock(executor.clone()));
        let policy = salted(clock);
        let wavers = (0..200).map(|step| format!("s{step}")).find(|step| {
            let arguments = json!({"step": step});
            let asked = PolicyQuestion { tool: "t", arguments: &arguments };
            let digest = policy.digest(None, &"default".into(), asked);
            digest.is_some_and(|digest| rule(digest) == Rule::Wavers)
        });
        let wavers = wavers.unwrap();
        let mut said = Vec::new();
        for _ in 0..4 {
            said.push(says(&policy, &wavers));
            executor.pass(MOOD_MS);
        }
        assert!(said.iter().any(|verdict| matches!(verdict, Verdict::Ask(_))), "{said:?}");
        assert!(said.iter().any(|verdict| matches!(verdict, Verdict::Deny(_))), "{said:?}");
    }

    #[test]
    fn each_realm_has_its_rules_and_a_vanished_subject_is_denied() {
        let executor = Executor::new(1, Arc::new(Power::default()));
        let policy = salted(Arc::new(SimClock(executor))).shared(false);
        let ann = Caller::new("acme", "ann");
        let other = Caller::new("globex", "ann");
        let said = |who: &Caller| -> Vec<Verdict> {
            let word = |step: u32| {
                let arguments = json!({"step": format!("s{step}")});
                policy.says(who, PolicyQuestion { tool: "t", arguments: &arguments })
            };
            (0..50).map(word).collect()
        };
        let before = said(&ann);
        assert_ne!(before, said(&other));
        let kept = said(&other);
        let version = policy.version();
        policy.change(&ann.realm);
        assert_ne!(before, said(&ann));
        assert_eq!(kept, said(&other), "the rules of the other realm changed");
        assert_ne!(version, policy.version());
        policy.turn(&ann);
        assert!(said(&ann).iter().all(|word| matches!(word, Verdict::Deny(_))));
        assert_eq!(kept, said(&other), "another subject vanished");
        policy.calm_down();
        assert!(!said(&ann).iter().any(|word| matches!(word, Verdict::Deny(_))));
    }
}
