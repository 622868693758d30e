//! Rules for failed steps: when one fits, what it does, and how long it waits. A rule decides
//! nothing by itself: `decide` asks the rules in their order, and the first one that fits and is
//! not used up acts.

use crate::ask::remedy::Drafter;
use crate::tool::call::CallProgress;
use crate::tool::rules::Pattern;
use crate::values::fault::Fault;
use crate::values::ids::{PlanId, ToolName};
use crate::values::named_enum::named;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How often one rule may try a step again.
pub const RETRY_TIMES_MAX: u32 = 100;
/// How much longer each wait may be than the one before, in percent.
pub const FACTOR_PERCENT_MAX: u32 = 1_000;
/// How many rules one list has.
pub const RULES_MAX: usize = 32;

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Which failures it is for.
    #[serde(default, skip_serializing_if = "FailureFilter::is_any")]
    pub when: FailureFilter,
    pub act: RuleAction,
}

/// Which failures a rule is for: all that fit everything that is said here.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FailureFilter {
    /// The fault's name fits one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Pattern>,
    /// A call failed, and its tool fits one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Pattern>,
    /// It got so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub how: Vec<CallProgress>,
    /// Whether the fault says that it may be over a little later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passing: Option<bool>,
}

/// What a rule does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleAction {
    /// Tries the step again, some times.
    Retry(Retry),
    /// Runs a plan, once, which finds out what to do.
    Plan(PlanId),
    /// Asks this model, once, for other arguments.
    Propose(Arc<str>),
    /// Has a model write a plan, once, that finds out what to do.
    Draft(Drafter),
    /// Asks a person.
    Ask,
    /// Ends the run as failed.
    Fail,
}

/// How a step is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// How often.
    pub times: u32,
    /// How long it waits before the first time.
    pub wait_ms: u64,
    /// How long each later wait is, in percent of the one before.
    pub factor_percent: u32,
    /// By how much of it a wait may be shorter or longer, in percent.
    pub jitter_percent: u32,
}

impl Default for Retry {
    fn default() -> Self {
        Self::USUAL
    }
}

impl Retry {
    /// How a step is tried again for which nothing else is said.
    const USUAL: Self = Self { times: 3, wait_ms: 500, factor_percent: 200, jitter_percent: 20 };

    /// How long it waits before this try, from 1. `chance` is any number: it says where in the
    /// range of the jitter the wait is.
    pub fn wait_ms(&self, try_no: u32, chance: u64, ms_max: u64) -> u64 {
        let mut wait = self.wait_ms.min(ms_max);
        for _ in 1..try_no.min(RETRY_TIMES_MAX) {
            wait = (wait.saturating_mul(u64::from(self.factor_percent)) / 100).min(ms_max);
        }
        let spread = wait.saturating_mul(u64::from(self.jitter_percent.min(100))) / 100;
        let shift = chance % (spread.saturating_mul(2).saturating_add(1));
        (wait - spread).saturating_add(shift).min(ms_max)
    }
}

/// A failed step as rules see it.
#[derive(Debug, Clone, Copy)]
pub struct Failure<'a> {
    pub fault: &'a Fault,
    /// How far its call got.
    pub how: CallProgress,
    /// The tool, if it was a call.
    pub tool: Option<&'a ToolName>,
}

impl FailureFilter {
    /// Whether it is for every failure.
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it is for this failure.
    pub fn fits(&self, failure: &Failure<'_>) -> bool {
        let Failure { fault, how, tool } = failure;
        let one_of = |patterns: &[Pattern], name: &str| patterns.iter().any(|one| one.fits(name));
        let error = self.errors.is_empty() || one_of(&self.errors, &fault.name);
        let tool =
            self.tools.is_empty() || tool.is_some_and(|tool| one_of(&self.tools, tool.as_str()));
        let far = self.how.is_empty() || self.how.contains(how);
        error && tool && far && self.passing.is_none_or(|passing| passing == fault.passing)
    }
}

impl Rule {
    /// The plan that it runs, if it runs one.
    pub fn plan(&self) -> Option<&PlanId> {
        match &self.act {
            RuleAction::Plan(plan) => Some(plan),
            RuleAction::Retry(_)
            | RuleAction::Propose(_)
            | RuleAction::Draft(_)
            | RuleAction::Ask
            | RuleAction::Fail => None,
        }
    }

    /// The model that it asks, if it asks one.
    pub fn model(&self) -> Option<&Arc<str>> {
        match &self.act {
            RuleAction::Propose(model) | RuleAction::Draft(Drafter { model, .. }) => Some(model),
            RuleAction::Retry(_) | RuleAction::Plan(_) | RuleAction::Ask | RuleAction::Fail => None,
        }
    }

    /// A rule for every failure.
    pub fn always(act: RuleAction) -> Self {
        Self { when: FailureFilter::default(), act }
    }
}

named! {
    /// Where a rule is written; they are asked in this order.
    RuleList {
        /// In the step.
        Step = "step",
        /// At the top of the step's plan.
        Plan = "plan",
        /// In the project's settings.
        Project = "project",
        /// Nowhere: Waypost has it.
        BuiltIn = "built-in",
    }
}

/// The rules that a run pins beside those of its plans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rules {
    /// Those of the project's settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub project: Vec<Rule>,
    /// Whether the built-in ones hold too.
    pub built_in: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { project: Vec::new(), built_in: true }
    }
}

/// The built-in rule: what failed for a passing reason is tried again. It is asked only about calls
/// that may be repeated whatever their outcome.
pub static BUILT_IN: Rule = Rule {
    when: FailureFilter {
        errors: Vec::new(),
        tools: Vec::new(),
        how: Vec::new(),
        passing: Some(true),
    },
    act: RuleAction::Retry(Retry::USUAL),
};

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patterns(texts: &[&str]) -> Vec<Pattern> {
        texts.iter().map(|text| Pattern::new(text).unwrap()).collect()
    }

    #[test]
    fn a_rule_matches_if_all_its_filters_match() {
        let fault = Fault::new("UpstreamTimeout", "no answer").passing();
        let tool = ToolName::from("crm.find");
        let call = Failure { fault: &fault, how: CallProgress::Failed, tool: Some(&tool) };
        let step = Failure { tool: None, how: CallProgress::NotSent, ..call };
        let errors = FailureFilter {
            errors: patterns(&["Timeout", "Upstream*"]),
            ..FailureFilter::default()
        };
        let tools = FailureFilter { tools: patterns(&["crm.*"]), ..FailureFilter::default() };
        let how = FailureFilter { how: vec![CallProgress::NotSent], ..FailureFilter::default() };
        let lasting = FailureFilter { passing: Some(false), ..FailureFilter::default() };
        for (when, fits_call, fits_step) in [
            (FailureFilter::default(), true, true),
            (errors, true, true),
            (tools, true, false),
            (how, false, true),
            (lasting, false, false),
        ] {
            assert_eq!((when.fits(&call), when.fits(&step)), (fits_call, fits_step), "{when:?}");
        }
    }

    #[test]
    fn retry_waits_grow_to_a_limit_and_vary_only_by_jitter() {
        let retry = Retry { times: 9, wait_ms: 500, factor_percent: 200, jitter_percent: 0 };
        let waits: Vec<u64> = [1, 2, 3, 9].map(|number| retry.wait_ms(number, 77, 60_000)).into();
        assert_eq!(waits, [500, 1_000, 2_000, 60_000]);
        let shaken = Retry { jitter_percent: 20, ..retry };
        for chance in 0..1_000 {
            let wait = shaken.wait_ms(1, chance, 60_000);
            assert!((400..=600).contains(&wait), "{wait} ms");
        }
        assert_eq!((shaken.wait_ms(1, 0, 60_000), shaken.wait_ms(1, 200, 60_000)), (400, 600));
        let at_once = Retry { wait_ms: 0, ..shaken };
        assert_eq!(at_once.wait_ms(3, u64::MAX, 60_000), 0);
        let endless = Retry { wait_ms: u64::MAX, ..shaken };
        let wait = endless.wait_ms(RETRY_TIMES_MAX, u64::MAX, 1_000);
        assert!((800..=1_000).contains(&wait), "{wait} ms");
    }

    #[test]
    fn rules_round_trip_through_json() {
        let rules = Rules {
            project: vec![
                Rule {
                    when: FailureFilter {
                        errors: patterns(&["Timeout"]),
                        ..FailureFilter::default()
                    },
                    act: RuleAction::Retry(Retry::default()),
                },
                Rule::always(RuleAction::Propose("fast".into())),
                Rule::always(RuleAction::Draft(Drafter { model: "fast".into(), auto_reads: true })),
                Rule::always(RuleAction::Ask),
            ],
            built_in: false,
        };
        let text = serde_json::to_string(&rules).unwrap();
        assert_eq!(serde_json::from_str::<Rules>(&text).unwrap(), rules);
        assert_eq!(json!(Rules::default()), json!({"builtIn": true}));
        assert_eq!(json!(Rule::always(RuleAction::Fail)), json!({"act": "fail"}));
        let models: Vec<Option<&str>> =
            rules.project.iter().map(|rule| rule.model().map(|model| &**model)).collect();
        assert_eq!(models, [None, Some("fast"), Some("fast"), None]);
    }
}
