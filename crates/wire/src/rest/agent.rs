//! Agents: models with a task, tools and limits.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An agent in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentSummary {
    /// Its stable name.
    pub ref_name: String,
    /// Its name for people.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The model that acts.
    pub llm_config_ref: String,
    /// The types that its tools come in.
    #[serde(default)]
    pub tool_types: Vec<String>,
    /// Whether a file of the project brings it; then it can only be changed there.
    pub from_file: bool,
    /// Its version, where it is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Whether requests that name no agent are for this one.
    #[serde(default)]
    pub default: bool,
    /// Hash of the agent.
    pub hash: String,
}

/// `GET /agents/{refName}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentAnswer {
    /// What a list shows of it.
    #[serde(flatten)]
    pub summary: AgentSummary,
    /// The agent as JSON.
    pub agent: Value,
}
