//! Realms: whose data it is, and what is set for each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A realm to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RealmBody {
    /// Its name: 1 to 63 lower-case letters, digits, `.`, `_` and `-`, beginning with a letter or a
    /// digit. The name of a realm that was removed is not given again.
    pub name: String,
}

/// Where a realm comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum RealmOrigin {
    /// The settings of the server name it, so that it cannot be removed here.
    Settings,
    /// It was made here.
    Stored,
}

impl RealmOrigin {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Stored => "stored",
        }
    }
}

/// A realm, with what is set for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Realm {
    /// Its name.
    pub name: String,
    /// Where it comes from.
    pub origin: RealmOrigin,
    /// The tools that can be called in it, by patterns; absent where all can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled_tools: Option<Vec<String>>,
    /// The agents that are there in it, by patterns; absent where all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled_agents: Option<Vec<String>>,
    /// The pipelines that are there in it, by patterns; absent where all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled_pipelines: Option<Vec<String>>,
    /// The models that can be asked in it, by patterns; absent where all can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled_models: Option<Vec<String>>,
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
    /// When it was made; absent where only the settings name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub created_at: Option<String>,
    /// When it was removed; absent where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub removed_at: Option<String>,
    /// Of a realm that was removed: whether nothing of what it owned is left but its audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purged: Option<bool>,
}
