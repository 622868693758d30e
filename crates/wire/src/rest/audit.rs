//! The audit: what was decided, how far a chain of it goes, and whether that is as it was written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// One decision or change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// The number of the row that holds it.
    pub row: u64,
    /// When.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// For whom it was done.
    pub subject: String,
    /// Who did it, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The principal that the realm does it as, where it acts as one (`run_as_user_id`): both must
    /// be allowed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_as: Option<String>,
    /// What was done: an act such as `call`, a change such as `key.create` or `principal.disable`,
    /// or `server.start`, `principals.reload`, `policies.reload`, `credential.fail`, `realm.enter`,
    /// `token.issue`, `webhook.create`, `webhook.remove`.
    pub act: String,
    /// To what.
    pub object: AuditObject,
    /// The keyed digest of the arguments, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// What was decided.
    pub verdict: AuditVerdict,
    /// Why it was not simply allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The policies that decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<String>,
    /// The version of the policies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<String>,
    /// The run that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The ask that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// What was answered, in a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// At which endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub door: Option<String>,
    /// The span that it is a part of, as a `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// What the request says of itself, by header: `x-acting-on-behalf-of-..` and `x-agent-..`.
    /// Nothing checks what they say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// What else there is to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Value>,
}

/// What something was done to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct AuditObject {
    /// Its kind, such as `tool`.
    pub kind: String,
    /// Its name or id, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum AuditVerdict {
    /// It may be done.
    Allow,
    /// A person must approve it.
    Ask,
    /// It must not be done.
    Deny,
}

impl AuditVerdict {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// How far a chain goes. Who keeps `head` elsewhere can find out later whether the chain still has
/// that row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditHead {
    /// The realm whose chain it is; `*`: the server's.
    pub chain: String,
    /// The number and the code of the last row, `<row>:<64 hexadecimal digits>`.
    pub head: String,
    /// The same of the last row that was removed because it was old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

/// What a look at a whole chain found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditCheck {
    /// The realm whose chain it is; `*`: the server's.
    pub chain: String,
    /// Whether every row is as it was written. False also where rows could not be checked, unless
    /// the request says up to which row that is expected.
    pub valid: bool,
    /// How many rows it has.
    pub rows: u64,
    /// How many of them could not be checked, because they name a secret key that the server does
    /// not have: only that they follow each other was checked.
    pub unchecked: u64,
    /// How many of those come after `uncheckedUntil`, the last row of which that is expected.
    #[serde(default)]
    pub unexpected: u64,
    /// How many things are wrong.
    pub flaws: u64,
    /// The first of them.
    pub found: Vec<String>,
}
