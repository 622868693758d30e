//! Bodies of `/api/agent/config`. An agent crosses as it is kept, with whatever its sender keeps
//! beside it, so only the answer to a removal has a type.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was removed, by the name that the path gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentDeleted {
    /// Always true: what is not there is an error.
    pub deleted: bool,
    /// The agent's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ref_name: Option<String>,
    /// The agent's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}
