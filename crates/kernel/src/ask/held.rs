//! An ask that a rule holds: what the rule does about the failed step, which try of how many, and
//! when. And what rules did before a person was asked. Which rule that is, `decide` says.

use crate::ask::{FixAction, Reply};
use crate::values::ids::Millis;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Who answers an ask that a rule holds.
pub const SUPERVISOR: &str = "supervisor";

/// A rule that holds an ask: until it acts, no person need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldBy {
    /// Which rule: where it is written, and its number there from 1, such as `step 1`.
    pub rule: Arc<str>,
    /// What it does.
    pub does: Does,
    /// Which try of this rule, from 1.
    #[serde(rename = "try")]
    pub try_no: u32,
    /// How many tries it has.
    pub of: u32,
    /// When it acts.
    pub until: Millis,
}

impl HeldBy {
    /// What the supervisor answers when the time has come.
    pub fn reply(&self) -> Reply {
        match self.does {
            Does::Retry => Reply::Fix { action: FixAction::Retry, arguments: None, output: None },
        }
    }
}

/// What a rule does about a failed step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Does {
    /// Tries it once more, as it was.
    Retry,
}

impl Does {
    /// Its name in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Does::Retry => "retry",
        }
    }
}

/// What a rule did about a step that failed, and fails still.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tried {
    /// Which rule.
    pub rule: Arc<str>,
    /// What it did.
    pub does: Does,
    /// How often.
    pub times: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rule_that_holds_an_ask_is_written_and_read_back() {
        let held = HeldBy {
            rule: "step 1".into(),
            does: Does::Retry,
            try_no: 2,
            of: 3,
            until: Millis(1_500),
        };
        let written =
            json!({"rule": "step 1", "does": "retry", "try": 2, "of": 3, "until": 1_500});
        assert_eq!(json!(held), written);
        assert_eq!(serde_json::from_value::<HeldBy>(written).unwrap(), held);
        let retry = json!({"kind": "fix", "action": "retry"});
        assert_eq!(json!(held.reply()), retry);
    }
}
