//! The gate's judgement of a call before it starts, and the verdict of policy.

use super::{Answerers, Pins};
use crate::values::fault::Fault;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// It may run.
    Allow,
    /// A person must approve it.
    Ask(String),
    /// It must not run.
    Deny(String),
}

/// The gate's judgement of a call, journaled before the call starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Judgement {
    /// Known, visible, well-formed; policy said this.
    Admitted {
        verdict: Verdict,
        pins: Pins,
        /// The version of the policy that decided, where it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<Arc<str>>,
        /// The ids of the policies that decided, where it has some.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        policies: Vec<Arc<str>>,
        /// Who may approve it, if a policy that asks narrows that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answerers: Option<Answerers>,
    },
    /// Unknown, invisible or malformed: nothing is sent.
    Refused(Fault),
}

impl Judgement {
    /// Policy said this, and nothing is known of who said it.
    pub fn admitted(verdict: Verdict, pins: Pins) -> Self {
        Self::Admitted { verdict, pins, policy: None, policies: Vec::new(), answerers: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A judgement of a policy that has no version.
    const PLAIN: &str = concat!(
        r#"{"admitted":{"verdict":"allow","#,
        r#""pins":{"spec":"s","reach":"reads","idempotent":false}}}"#,
    );

    #[test]
    fn a_judgement_names_the_policy_that_decided_only_where_that_has_a_version() {
        let plain: Judgement = serde_json::from_str(PLAIN).unwrap();
        assert_eq!(serde_json::to_string(&plain).unwrap(), PLAIN, "nothing is added");
        let Judgement::Admitted { verdict, pins, policy: None, .. } = plain else {
            panic!("{PLAIN}")
        };
        let policy = Some("7".into());
        let policies = vec!["large".into()];
        let answerers = Some(Answerers { other: true, ..Answerers::default() });
        let now = Judgement::Admitted { verdict, pins, policy, policies, answerers };
        let text = serde_json::to_string(&now).unwrap();
        let end = r#","policy":"7","policies":["large"],"answerers":{"other":true}}}"#;
        assert!(text.ends_with(end), "{text}");
        assert_eq!(serde_json::from_str::<Judgement>(&text).unwrap(), now);
    }
}
