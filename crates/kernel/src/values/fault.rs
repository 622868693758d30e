//! Faults: what went wrong, in words that a person can act on. They are stored in the journal and
//! shown.

use crate::values::ids::CallId;
use crate::values::members::is_deeper;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// A failure as it is shown at every endpoint: who failed, why, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// A stable word for programs, such as `InputValidationError`.
    pub name: String,
    /// Who failed and why.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// More for programs, beside the words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Box<Map<String, Value>>>,
    /// The same may succeed a little later: there was no connection, no answer in time, too many
    /// requests, or the other side had trouble of its own. Who failed says so; nothing is read from
    /// the name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passing: bool,
    /// Nothing was sent, and nothing will be for so long: the calls before it failed. It says
    /// nothing about this call, so that no rule counts it as a try.
    #[serde(default, rename = "refusedMs", skip_serializing_if = "Option::is_none")]
    pub refused_ms: Option<u64>,
}

impl Fault {
    /// The name of a fault of what recovery gave up: its plan has no say in it.
    pub const RECOVERY_GAVE_UP: &str = "RecoveryGaveUp";
    /// The name of a fault of a run whose starter may not run it any more: its plan has no say in
    /// that either.
    pub const NOT_PERMITTED: &str = "NotPermittedAnyMore";
    /// The size of a detail's JSON.
    pub const DETAIL_BYTES_MAX: usize = 16 * 1024;
    /// How deep lists and objects stand in each other in a member of a detail. In a journal others
    /// stand around it, and a reader of JSON goes down 127 levels in all.
    const DETAIL_DEPTH_MAX: usize = 32;

    /// A fault without a hint.
    pub fn new(name: &str, message: impl Into<String>) -> Self {
        let name = name.to_owned();
        let message = message.into();
        Self { name, message, hint: None, detail: None, passing: false, refused_ms: None }
    }

    /// The same fault with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same fault with more for programs. Servers may send any amount: a detail that is too
    /// large or too deep is left out.
    #[must_use]
    pub fn detail(mut self, detail: Map<String, Value>) -> Self {
        let is_deep = detail.values().any(|value| is_deeper(value, Self::DETAIL_DEPTH_MAX));
        let is_small = |text: String| text.len() <= Self::DETAIL_BYTES_MAX;
        let fits = !is_deep && serde_json::to_string(&detail).is_ok_and(is_small);
        self.detail = fits.then(|| Box::new(detail));
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
    fn a_detail_is_written_beside_the_words_and_read_again() {
        let detail = Map::from_iter([("conflicts".to_owned(), json!([{"at": "/a"}]))]);
        let fault = Fault::new("Conflict", "it was changed").hint("read it").detail(detail);
        let written = json!({"name": "Conflict", "message": "it was changed", "hint": "read it",
            "detail": {"conflicts": [{"at": "/a"}]}});
        assert_eq!(json!(fault), written);
        assert_eq!(serde_json::from_value::<Fault>(written).unwrap(), fault);
    }

    #[test]
    fn a_detail_that_is_too_large_or_too_deep_is_left_out() {
        let with = |value: Value| {
            let detail = Map::from_iter([("a".to_owned(), value)]);
            Fault::new("Conflict", "it was changed").detail(detail)
        };
        // With the braces, the name and the quotes around it.
        let most = Fault::DETAIL_BYTES_MAX - r#"{"a":""}"#.len();
        assert!(with(json!("x".repeat(most))).detail.is_some());
        assert_eq!(with(json!("x".repeat(most + 1))), Fault::new("Conflict", "it was changed"));
        let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        assert!(with(nested(Fault::DETAIL_DEPTH_MAX)).detail.is_some());
        assert_eq!(with(nested(Fault::DETAIL_DEPTH_MAX + 1)).detail, None);
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
