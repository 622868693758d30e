//! Bodies of `/api/v1/tools` and `/api/v1/plans`: what can be called, and direct calls.

use super::ask::Ask;
use super::run::{Run, Session};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A tool of the catalog, or a plan that is called like one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// Its stable name.
    pub name: String,
    /// A short title for people.
    pub title: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// JSON Schema of its output, if it promises one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What it does to the world.
    #[schemars(extend("enum" = ["reads", "writes", "runs"]))]
    pub reach: String,
    /// Whether a repeat with the same key has no further effect.
    pub idempotent: bool,
    /// Words to find it by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// What it is: `tool`, or `plan` where it is a plan that is called like a tool.
    #[serde(default = "tool_kind")]
    #[schemars(extend("enum" = ["tool", "plan"]))]
    pub kind: String,
    /// How long it takes: `quick`, `slow`, or `task` where only callers that come back can call it.
    #[serde(default = "quick")]
    #[schemars(extend("enum" = ["quick", "slow", "task"]))]
    pub pace: String,
    /// Whether direct calls that change something are kept as runs; absent where they are.
    #[serde(default = "kept", skip_serializing_if = "is_kept")]
    #[schemars(extend("default" = true))]
    pub journal: bool,
}

/// What servers that say no kind list.
fn tool_kind() -> String {
    "tool".to_owned()
}

/// How long the tools of servers take that do not say it.
fn quick() -> String {
    "quick".to_owned()
}

fn kept() -> bool {
    true
}

fn is_kept(journal: &bool) -> bool {
    *journal
}

/// What a tool is called with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallBody {
    /// The arguments, `{}` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

/// A call that is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallAnswer {
    /// The tool's output.
    pub result: Value,
}

/// A call that waits for a person or continues, as a run of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PendingCall {
    /// The one-step run that carries the call.
    pub run: Run,
    /// Its session.
    pub session: Session,
    /// What a person is asked, if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Ask>,
}

/// A plan as JSON.
#[derive(JsonSchema)]
pub struct Plan(pub Map<String, Value>);

/// A plan in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanSummary {
    /// Its id.
    pub id: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its input, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// JSON Schema of its answer, if it promises one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hash of what it does.
    pub hash: String,
}

/// A plan with its JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanAnswer {
    /// What a list shows of it.
    #[serde(flatten)]
    pub summary: PlanSummary,
    /// Its version, where it is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub version: Option<u64>,
    /// The plan as JSON.
    #[schemars(with = "Plan")]
    pub plan: Value,
}

/// Whether a plan would be taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanCheck {
    /// Whether it can be run.
    pub valid: bool,
    /// What must be mended.
    pub errors: Vec<PlanMistake>,
    /// What has no effect.
    pub warnings: Vec<PlanMistake>,
}

/// One mistake in a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanMistake {
    /// JSON Pointer to the faulty value; empty for the whole.
    pub pointer: String,
    /// What is wrong.
    pub detail: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
