//! Tool calls: what a tool says of itself, what the gate says of a call, how far a call got.

use crate::fault::Fault;
use crate::ids::{CallId, ContentHash, RealmId, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// What a tool does to the world. Declared, or assumed to be the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// Changes nothing: may be repeated at will.
    Reads,
    /// Changes something: never repeated when its outcome is unknown, unless idempotent.
    Writes,
    /// Runs code: follows the rule for writes.
    Runs,
}

/// What a tool says of itself: one truth for every door.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    /// Its stable name.
    pub name: ToolName,
    /// A short title for people.
    pub title: String,
    /// What it does, for people and models.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Arc<Value>,
    /// JSON Schema of its output, if it promises one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Arc<Value>>,
    /// What it does to the world.
    pub reach: Reach,
    /// Whether a repeat with the same key has no further effect.
    pub idempotent: bool,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

impl ToolSpec {
    /// The hash that a started call pins.
    pub fn hash(&self) -> ContentHash {
        ContentHash::of(serde_json::to_string(self).unwrap_or_default().as_bytes())
    }

    /// The reach of one call: `http::request` with GET reads, with POST writes.
    pub fn pins(&self) -> Pins {
        Pins { spec: self.hash(), reach: self.reach, idempotent: self.idempotent }
    }
}

/// What a started call pins of its tool; recovery uses this, not the tool of the day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pins {
    /// Hash of the tool's spec.
    pub spec: ContentHash,
    /// What this call does to the world.
    pub reach: Reach,
    /// Whether it may be repeated under its key.
    pub idempotent: bool,
}

impl Pins {
    /// Whether a call whose outcome is unknown may be sent again without asking.
    pub fn repeatable(&self) -> bool {
        self.reach == Reach::Reads || self.idempotent
    }
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// Whose data it may see.
    pub realm: RealmId,
    /// Who it is; `local` in local mode.
    pub subject: Arc<str>,
    /// Whether it may administer the realm.
    #[serde(default)]
    pub admin: bool,
}

/// One call as a tool sees it.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its id, and the idempotency key to send.
    pub id: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The resolved arguments.
    pub arguments: Arc<Value>,
    /// How long it may take.
    pub timeout_ms: u64,
    /// How many bytes its output may have.
    pub output_bytes_max: usize,
}

/// How far a failed call got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HowFar {
    /// Nothing was sent.
    NotSent,
    /// The tool said that it failed.
    Failed,
    /// Nobody knows: timeout, connection lost after sending, crash.
    Unknown,
}

/// What a tool answers.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// The output.
    pub value: Value,
}

/// Why a tool call failed, and how far it got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolError {
    /// How far it got.
    pub how: HowFar,
    /// What went wrong.
    pub fault: Fault,
}

impl ToolError {
    /// Nothing was sent.
    pub fn not_sent(name: &str, message: impl Into<String>) -> Self {
        Self { how: HowFar::NotSent, fault: Fault::new(name, message) }
    }
    /// The tool said that it failed.
    pub fn failed(name: &str, message: impl Into<String>) -> Self {
        Self { how: HowFar::Failed, fault: Fault::new(name, message) }
    }
    /// Nobody knows whether it happened.
    pub fn unknown(name: &str, message: impl Into<String>) -> Self {
        Self { how: HowFar::Unknown, fault: Fault::new(name, message) }
    }
    /// The same error with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.fault.hint = Some(hint.into());
        self
    }
}

/// What policy says of one call.
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

/// What the gate's first half found; journaled before the call starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Judgement {
    /// Known, visible, well-formed; policy said this.
    Admitted {
        /// What policy said.
        verdict: Verdict,
        /// What the call pins of its tool.
        pins: Pins,
    },
    /// Unknown, invisible or malformed: nothing is sent.
    Refused(Fault),
}
