//! Faults: what went wrong, in words that a person can act on. They are stored in the journal and
//! shown.

use crate::values::ids::CallId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A failure as it is shown at every door: who failed, why, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// A stable word for programs, such as `InputValidationError`.
    pub name: String,
    /// Who failed and why.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The same may succeed a little later: there was no connection, no answer in time, too many
    /// requests, or the other side had trouble of its own. Who failed says so; nothing is read from
    /// the name.
    #[serde(default, skip_serializing_if = "is_false")]
    pub passing: bool,
    /// Nothing was sent, and nothing will be for so long: the calls before it failed. It says
    /// nothing about this call, so that no rule counts it as a try.
    #[serde(default, rename = "refusedMs", skip_serializing_if = "Option::is_none")]
    pub refused_ms: Option<u64>,
}

fn is_false(value: &bool) -> bool {
    !*value
}

impl Fault {
    /// The name of a fault of what recovery gave up: its plan has no say in it.
    pub const RECOVERY_GAVE_UP: &str = "RecoveryGaveUp";
    /// The name of a fault of a run whose starter may not run it any more: its plan has no say in
    /// that either.
    pub const NOT_PERMITTED: &str = "NotPermittedAnyMore";

    /// A fault without a hint.
    pub fn new(name: &str, message: impl Into<String>) -> Self {
        let name = name.to_owned();
        let message = message.into();
        Self { name, message, hint: None, passing: false, refused_ms: None }
    }

    /// The same fault with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same fault, as one that may be over a little later.
    #[must_use]
    pub fn passing(mut self) -> Self {
        self.passing = true;
        self
    }

    /// The same fault, of a call that was refused unsent, as all will be for so long.
    #[must_use]
    pub fn refused_for(mut self, ms: u64) -> Self {
        self.refused_ms = Some(ms);
        self
    }

    /// The same fault, naming calls whose outcome no one knows.
    #[must_use]
    pub fn with_unknown(self, calls: &[CallId]) -> Self {
        if calls.is_empty() {
            return self;
        }
        let calls: Vec<String> = calls.iter().map(ToString::to_string).collect();
        self.hint(format!("nobody knows whether these calls happened: {}", calls.join(", ")))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_lasting_fault_serialises_without_a_passing_member() {
        let lasting = Fault::new("HttpStatus", "it answered 404");
        let written = json!({"name": "HttpStatus", "message": "it answered 404"});
        assert_eq!(json!(lasting), written);
        assert_eq!(serde_json::from_value::<Fault>(written).unwrap(), lasting);
    }

    #[test]
    fn a_passing_fault_serialises_its_flag() {
        let passing = Fault::new("HttpStatus", "it answered 503").passing();
        let written = json!({"name": "HttpStatus", "message": "it answered 503", "passing": true});
        assert_eq!(json!(passing), written);
        assert_eq!(serde_json::from_value::<Fault>(written).unwrap(), passing);
        let refused = passing.refused_for(700);
        assert_eq!(json!(refused)["refusedMs"], 700);
        assert_eq!(serde_json::from_value::<Fault>(json!(refused)).unwrap(), refused);
    }
}
