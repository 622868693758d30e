//! Bodies of `/sessions`, `/capabilities` and `/admin/capabilities`.

use crate::rest::{Fault, FaultyValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A session to make.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateSession {
    /// The client's own id; the server makes one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// What is always at hand of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionCore {
    /// The client's own id, or the server's.
    pub session_id: String,
    /// Where its latest run is.
    #[schemars(extend("enum" = [
        "running", "paused", "completed", "failed", "paused_on_error", "paused_on_human"
    ]))]
    pub status: String,
    /// When it began.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
    /// When its last event was recorded.
    #[schemars(extend("format" = "date-time"))]
    pub updated_at: String,
    /// Its latest run's plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_plan_id: Option<String>,
    /// The step that run is at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_step_id: Option<String>,
    /// What went wrong, for `failed` and `paused_on_error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<Fault>,
}

/// A session with its context and its history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    /// Where it stands.
    pub core: SessionCore,
    /// Key to value; large values as blob URIs. While it waits for a person, `humanPromptMessage`
    /// is what that person is asked.
    pub context: Map<String, Value>,
    /// Finished tool calls, newest first.
    #[schemars(with = "Vec<HistoryEntry>")]
    pub history: Vec<Value>,
    /// Where the next page of the history begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One finished tool call, as clients read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PlanHistoryEntry")]
pub struct HistoryEntry {
    /// When it finished.
    pub timestamp: String,
    /// The tool.
    pub tool_id: String,
    /// The step that made it.
    pub plan_step_id: Option<String>,
    /// `{toolId, arguments}`.
    pub request: Value,
    /// `{status: success, output}` or `{status: error, error}`.
    pub result: Value,
}

/// A run to start: either `planId` or `plan`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecutePlan {
    /// A plan that comes with the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "object"))]
    pub plan: Option<Value>,
    /// A plan of the catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
    /// The run's input, `{}` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_args: Option<Value>,
}

/// A reply; an absent body retries a failed step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResumeBody {
    /// The input, or `{action, arguments?, output?}` for a failed step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The ask, needed when several are open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_id: Option<String>,
    /// The step, beside or instead of the ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<String>,
}

/// Where a session is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionStatus {
    /// The client's own id, or the server's.
    pub session_id: String,
    /// Where its latest run is.
    #[schemars(extend("enum" = [
        "running", "paused", "completed", "failed", "paused_on_error", "paused_on_human"
    ]))]
    pub status: String,
}

/// Tools and plans.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Capabilities {
    /// The tools.
    pub tools: Vec<Capability>,
    /// The plans.
    pub plans: Vec<Capability>,
}

/// A tool or a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Capability {
    /// Its name.
    pub id: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its input; `{}` where it takes anything.
    pub parameters: Value,
    /// JSON Schema of its output; `{}` where it promises nothing.
    pub output_schema: Value,
    /// A plan: its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
    /// A plan: the step that it begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_step_id: Option<String>,
    /// A plan: its steps, as they are written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub steps: Vec<Value>,
}

/// The text to search for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Discover {
    /// Part of an id or a description, in any case.
    pub query: String,
    /// How many tools and plans together, 10 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// What `POST /admin/capabilities` registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum CapabilityType {
    /// A tool; it would have no implementation, so it is refused.
    Tool,
    /// A plan.
    Plan,
}

/// What is registered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Register {
    /// What it is. A tool would have no implementation, so it is refused.
    #[serde(rename = "type")]
    pub kind: CapabilityType,
    /// The plan.
    pub definition: Value,
}

/// What is registered now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Registered {
    /// Its id.
    pub id: String,
    /// The outcome.
    #[schemars(extend("enum" = ["registered"]))]
    pub status: String,
}

/// An error at the session endpoints; a conflict carries more members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlainError {
    /// Who failed and why.
    pub error: String,
    /// A stable word for programs.
    pub code: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The faulty values, if it is about values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FaultyValue>,
    /// What to look for in the server's log.
    pub trace_id: String,
    /// More for programs: the winning decision, the open asks.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}
