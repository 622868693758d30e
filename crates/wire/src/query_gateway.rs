//! Bodies of `/api/query` and of what `/api/agent` tells about records.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An error of `/api/query` and `/api/agent`; a wrong query has more members, such as `position`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamedError {
    /// A stable word for programs.
    pub error: String,
    /// Who failed and why.
    pub message: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What to look for in the server's log.
    pub trace_id: String,
    /// More for programs: where the fault is, what would do, which fields are wrong.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// The arguments of a tool of records, and `realm`, which counts like that of the query.
#[derive(JsonSchema)]
pub struct RecordArguments(pub Map<String, Value>);

/// A tool to call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecuteBody {
    /// Its name.
    #[serde(default, alias = "name", skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What it is called with, `{}` if absent.
    #[serde(default, alias = "params", skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Map<String, Value>>,
    /// The agent's session, for the audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The agent's trace, for the audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The realm, where the query names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realm: Option<String>,
}

/// The tools that an agent may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentTools {
    /// By name.
    pub tools: Vec<AgentTool>,
    /// How many there are.
    pub count: u64,
}

/// A tool as an agent reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentTool {
    /// Its stable name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Its arguments, in a flat list.
    pub parameters: Vec<AgentToolParameter>,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// In which area it is: `integration`, or `waypost`.
    pub area: String,
    /// In which domain of that: `query`, or `tool`.
    pub domain: String,
}

/// One argument of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentToolParameter {
    /// Its name.
    pub name: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is for.
    pub description: String,
}
