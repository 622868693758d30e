//! What rules do about a failed step: the rule that holds an ask, with its action, attempt and
//! time, and the attempts before a person was asked. Which rule applies is decided in `decide`.

use crate::ask::{FixAction, Reply};
use crate::values::datum::value_weight;
use crate::values::fault::Fault;
use crate::values::ids::{Millis, PlanId};
use crate::values::is_default;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Subject of replies by rules.
pub const SUPERVISOR: &str = "supervisor";
/// Name of attempts that a person made.
pub const PERSON: &str = "person";

/// A rule that holds an ask: until it acts, no person need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleHold {
    /// Which rule: where it is written, and its number there from 1, such as `step 1`.
    pub rule: Arc<str>,
    pub does: Remedy,
    /// Which try of this rule, from 1.
    #[serde(rename = "try")]
    pub try_no: u32,
    /// How many tries it has.
    pub of: u32,
    /// When it acts.
    pub until: Millis,
}

impl RuleHold {
    /// What the supervisor answers when the time has come.
    pub fn reply(&self) -> Reply {
        match &self.does {
            Remedy::Retry => Reply::fix(FixAction::Retry),
            Remedy::Correct(plan) => Reply::Fix {
                action: FixAction::Correct,
                arguments: None,
                output: None,
                plan_id: Some(plan.clone()),
            },
            Remedy::Propose(_) | Remedy::Draft(_) => Reply::fix(FixAction::Propose),
        }
    }
}

/// What a rule does about a failed step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Remedy {
    /// Tries it once more, as it was.
    Retry,
    /// Runs this plan, which finds out what to do.
    Correct(PlanId),
    /// Asks this model for other arguments.
    Propose(Arc<str>),
    /// Has a model write a plan that finds out what to do.
    Draft(Drafter),
}

/// What writes a correction, and whether it runs without approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Drafter {
    /// The model, by its name in this project.
    pub model: Arc<str>,
    /// One that only reads runs without asking anyone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub auto_reads: bool,
}

impl Remedy {
    /// Its name in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Remedy::Retry => "retry",
            Remedy::Correct(_) => "correct",
            Remedy::Propose(_) => "propose",
            Remedy::Draft(_) => "draft",
        }
    }

    /// The plan that it runs, if it runs one.
    pub fn plan(&self) -> Option<&PlanId> {
        match self {
            Remedy::Correct(plan) => Some(plan),
            Remedy::Retry | Remedy::Propose(_) | Remedy::Draft(_) => None,
        }
    }

    /// The model that it asks, if it asks one.
    pub fn model(&self) -> Option<&Arc<str>> {
        match self {
            Remedy::Propose(model) | Remedy::Draft(Drafter { model, .. }) => Some(model),
            Remedy::Retry | Remedy::Correct(_) => None,
        }
    }
}

/// What was done about a step that failed, and fails still; or why it was not done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemedyAttempt {
    /// Which rule did it, or [`PERSON`].
    pub rule: Arc<str>,
    pub does: Remedy,
    /// How often; 0 for a rule that a limit kept from acting.
    pub times: u32,
    /// How often it waited because the call was refused unsent; that used up no try.
    #[serde(default, skip_serializing_if = "is_default")]
    pub waits: u32,
    /// What a correction found that was not acted upon, or what a model proposes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Box<RemedyResult>>,
}

/// What a correction plan, or a model that was asked, came to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RemedyResult {
    /// Its answer or proposal, if that fits the failed step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Reply>,
    /// Whether that is acted upon; else it is a proposal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub acts: bool,
    /// The correction that a model wrote, as JSON, for a `reply` that runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Arc<Value>>,
    /// Why, in the words of the plan or the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

impl RemedyResult {
    pub fn runs(&self, plan: &PlanId) -> bool {
        matches!(&self.reply, Some(Reply::Fix { plan_id: Some(named), .. }) if named == plan)
    }

    /// About how many bytes it takes.
    pub fn weight(&self) -> u64 {
        let arguments = match &self.reply {
            Some(Reply::Fix { arguments: Some(arguments), .. }) => value_weight(arguments),
            _ => 0,
        };
        self.plan.as_deref().map_or(arguments, |plan| arguments + value_weight(plan))
    }

    /// No result, because of this fault.
    pub fn nothing(fault: Fault) -> Self {
        Self { fault: Some(fault), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rule_hold_round_trips_through_json() {
        let held = RuleHold {
            rule: "step 1".into(),
            does: Remedy::Retry,
            try_no: 2,
            of: 3,
            until: Millis(1_500),
        };
        let written = json!({"rule": "step 1", "does": "retry", "try": 2, "of": 3, "until": 1_500});
        assert_eq!(json!(held), written);
        assert_eq!(serde_json::from_value::<RuleHold>(written).unwrap(), held);
        let retry = json!({"kind": "fix", "action": "retry"});
        assert_eq!(json!(held.reply()), retry);
    }
}
