//! Conversations as `/run` and `/resume` show them: what someone has to do, and what was said.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a user has to do before a request continues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PendingAction {
    /// Answer these questions.
    Clarification {
        /// The questions.
        clarifications: Vec<ClarificationInfo>,
    },
    /// Decide about these calls.
    Confirmation {
        /// The calls.
        tool_calls: Vec<ToolCallInfo>,
    },
    /// Fill in this form.
    FormElicitation {
        /// By what it is answered.
        elicitation_id: String,
        /// JSON Schema of the answer.
        schema: Value,
        /// What it is for.
        message: String,
    },
    /// Open this page.
    OauthUrl {
        /// By what it is answered, where it has to be.
        elicitation_id: String,
        /// The page.
        url: String,
        /// What it is for.
        message: String,
    },
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClarificationInfo {
    /// The call that asks; for a question of a plan the ask.
    pub call_id: String,
    /// The question.
    pub question: String,
    /// What it is about; empty where nothing is said.
    #[serde(default)]
    pub context: String,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallInfo {
    /// By what it is decided.
    pub call_id: String,
    /// The tool.
    pub tool_name: String,
    /// Exactly what would be sent.
    pub arguments: Value,
}

/// The state of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestState {
    /// What was said, as a model reads it: `{type: human|ai|tool|system, content, ..}`.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub messages: Vec<Value>,
    /// The types of tools that the router allowed last.
    pub allowed_tool_types: Vec<String>,
    /// What someone has to do.
    pub pending_action: Option<PendingAction>,
    /// The answer to the last request, once it is done.
    pub final_response: Option<String>,
    /// The outcome of the last approval.
    pub approval_outcome: Option<ApprovalOutcome>,
    /// The page that someone has to open.
    pub auth_url: Option<String>,
}

/// The outcome of an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalOutcome {
    /// Whether all calls may run.
    pub all_approved: bool,
    /// Those that may.
    pub approved_call_ids: Vec<String>,
    /// Those that may not, and why.
    pub rejected_feedback: Vec<RejectedToolFeedback>,
}

/// A call that may not run, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RejectedToolFeedback {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool_name: String,
    /// Why.
    pub feedback: String,
}
