//! What an ask says of its run, as that was pinned when it was asked: which step follows each
//! answer, what its calls do to the world, and who wants them to be asked about.

use crate::tool::call::Pins;
use crate::values::ids::{CallId, StepId};
use serde::{Deserialize, Serialize};

/// What follows each answer, as far as the plan says it: neither is known of a failed step, which
/// has other answers, and of a no to what a tool wants, which is the tool's to act upon.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextSteps {
    /// After a yes, an answer, or a form that is filled in, if nothing fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yes: Option<NextStep>,
    /// After a no, or if no one answers in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no: Option<NextStep>,
}

impl NextSteps {
    pub fn is_empty(&self) -> bool {
        self.yes.is_none() && self.no.is_none()
    }
}

/// What follows an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NextStep {
    /// This step; where a list of steps ends that is the step which the list belongs to.
    Step(StepId),
    /// The end of the run.
    Ends,
}

/// Details of a call that an ask is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallDetails {
    pub call_id: CallId,
    /// Pinned tool spec, once the call was admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pins: Option<Pins>,
    /// Who requires its approval, if it needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<ApprovalReason>,
}

/// Who requires the approval of a call. If several do, it is the policy, which gives a reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ApprovalReason {
    /// The plan: `approve: true`.
    Plan,
    /// The agent: its list `approve`.
    Agent,
    /// A policy, with the text of its `@ask`.
    Policy(String),
}
