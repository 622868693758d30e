//! Agents: models with a task, tools and limits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An agent as JSON; keys that are not listed are kept and given back.
// Only what must be there has a type: all else is checked when the agent is stored.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct Agent {
    /// Its id at `/api/agent/config`; made if absent.
    pub id: Option<Value>,
    /// Letters, digits, `_`, `.` and `-`.
    pub ref_name: String,
    /// Its name for people.
    pub name: Option<Value>,
    /// What it is for, for people and for the router.
    pub description: Option<Value>,
    /// The model that acts.
    pub llm_config_ref: String,
    /// The model that routes; the same if absent.
    pub router_llm_config_ref: Option<Value>,
    /// Whether requests are routed first; if it has types.
    pub router: Option<Value>,
    /// The model's instructions: `[{order?, role?, content}]`, where a text may use {{ now }},
    /// {{ zone }}, {{ agent }} and {{ tools }}.
    pub prompt_steps: Option<Value>,
    /// Another word for `promptSteps`.
    pub context: Option<Value>,
    /// Patterns of the tools it may see; all if absent.
    pub enabled_tools: Option<Value>,
    /// Types of tools: `{type: [patterns]}` or `{type: {description, tools}}`; with types a tool of
    /// no type is invisible.
    #[schemars(rename = "tool_types")]
    pub tool_types: Option<Value>,
    /// Patterns of the tools that a person approves.
    pub approve: Option<Value>,
    /// What one run may take: steps, tokens, money, time, repeats, compact_tokens, keep_turns.
    pub limits: Option<Value>,
    /// The time zone of the users who talk to it, an IANA name.
    pub zone: Option<Value>,
}

/// An agent in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    #[schemars(range(min = 1))]
    pub version: Option<u64>,
    /// Whether requests that name no agent are for this one.
    #[serde(default)]
    pub default: bool,
    /// Hash of the agent.
    pub hash: String,
}

/// An agent with its JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentAnswer {
    /// What a list shows of it.
    #[serde(flatten)]
    pub summary: AgentSummary,
    /// The agent as JSON.
    #[schemars(with = "Agent")]
    pub agent: Value,
}
