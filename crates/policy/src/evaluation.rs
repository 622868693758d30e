//! Combines the outcomes of the applicable policies into a verdict.

use crate::files::{Effect, FilePolicy};
use kernel::contracts::policy::{Decision, Obligation};
use kernel::identity::roles::Role;
use kernel::tool::call::Verdict;
use kernel::values::caller::Act;
use std::sync::Arc;

/// Prefix of a built-in role's id, if one decided.
const ROLE: &str = "role:";

/// Outcome of one policy.
#[derive(Debug)]
pub(crate) enum Outcome {
    Holds,
    DoesNot,
    /// It cannot be evaluated.
    Fails(String),
    /// It does not fit the tool for this reason, and could apply.
    Misfit(String),
}

/// Outcomes of all policies.
#[derive(Default)]
pub(crate) struct Tally {
    permits: Vec<Arc<str>>,
    forbids: Vec<(Arc<str>, String)>,
    asks: Vec<(Arc<str>, String)>,
    /// Those that leave something of records.
    narrowing: Vec<Arc<str>>,
    obligations: Vec<Obligation>,
    /// Why permits do not count that could apply.
    unfit: Vec<String>,
}

impl Tally {
    pub(crate) fn note(&mut self, policy: &FilePolicy, outcome: &Outcome) {
        let id = &policy.id;
        let why = match (outcome, &policy.effect) {
            (Outcome::DoesNot, _) | (Outcome::Fails(_), Effect::Permit) => return,
            (Outcome::Holds, Effect::Permit) => {
                self.permits.push(id.clone());
                return;
            }
            (Outcome::Misfit(why), effect) => {
                let why = format!("policy `{id}` does not fit the arguments of the tool: {why}");
                match effect {
                    Effect::Permit => self.unfit.push(why),
                    Effect::Forbid | Effect::Ask(_) | Effect::Narrow(_) => {
                        self.forbids.push((id.clone(), why));
                    }
                }
                return;
            }
            (Outcome::Holds, _) => None,
            (Outcome::Fails(why), _) => {
                Some(format!("policy `{id}` cannot be evaluated, so it holds: {why}"))
            }
        };
        match &policy.effect {
            Effect::Ask(asking) => {
                self.asks.push((id.clone(), asking.why.clone()));
                self.oblige(asking.obligations.iter().cloned());
            }
            Effect::Narrow(narrowing) => {
                self.narrowing.push(id.clone());
                self.oblige(narrowing.obligations());
            }
            Effect::Permit | Effect::Forbid => {
                let why = why.unwrap_or_else(|| format!("policy `{id}` forbids it"));
                self.forbids.push((id.clone(), why));
            }
        }
    }

    fn oblige(&mut self, obligations: impl IntoIterator<Item = Obligation>) {
        for obligation in obligations {
            if !self.obligations.contains(&obligation) {
                self.obligations.push(obligation);
            }
        }
    }

    pub(crate) fn decision(self, act: Act, role: Option<Role>) -> Decision {
        let texts = |said: &[(Arc<str>, String)]| {
            let whys: Vec<&str> = said.iter().map(|(_, why)| why.as_str()).collect();
            whys.join("; ")
        };
        let ids = |said: &[(Arc<str>, String)]| -> Vec<Arc<str>> {
            said.iter().map(|(id, _)| id.clone()).collect()
        };
        let role = role.map(|role| Arc::<str>::from(format!("{ROLE}{}", role.name())));
        let permits: Vec<Arc<str>> = role.into_iter().chain(self.permits).collect();
        if !self.forbids.is_empty() {
            let verdict = Verdict::Deny(texts(&self.forbids));
            return Decision { policies: ids(&self.forbids), ..Decision::from(verdict) };
        }
        if permits.is_empty() {
            let why = format!("no role or policy permits `{}` here", act.name());
            let whys: Vec<String> = std::iter::once(why).chain(self.unfit).collect();
            return Verdict::Deny(whys.join("; ")).into();
        }
        if !self.asks.is_empty() {
            let verdict = Verdict::Ask(texts(&self.asks));
            let policies = ids(&self.asks);
            let obligations = self.obligations;
            return Decision { obligations, policies, ..Decision::from(verdict) };
        }
        let policies = permits.into_iter().chain(self.narrowing).collect();
        Decision { obligations: self.obligations, policies, ..Decision::allow() }
    }
}
