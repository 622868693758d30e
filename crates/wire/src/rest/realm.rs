//! Realms: whose data it is, and what is set for each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A realm, with what is set for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Realm {
    /// Its name.
    pub name: String,
    /// The tools that can be called in it, by patterns; absent where all can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled_tools: Option<Vec<String>>,
    /// How many records one search returns at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_find_limit: Option<u64>,
    /// The principal that must be allowed as well what is done in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_as_user_id: Option<String>,
    /// Whether that principal can be used; while it cannot, nothing is started or called in the
    /// realm.
    pub usable: bool,
    /// The agent of requests that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_agent: Option<String>,
}
