//! Bodies of `/api/v1/webhooks`: whom tasks of A2A notify.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A webhook of a task of A2A, without what only its maker and its receiver may know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// Its id, which is one of its task's.
    pub id: String,
    /// The task, which is a run.
    pub task: String,
    /// The session of that run.
    pub session: String,
    /// Who made it.
    pub maker: String,
    /// Who acted as its maker, where someone did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// How its receiver is spoken to: `1.0` and `0.3` are versions of A2A, `vault` is AgentVault's
    /// profile.
    pub dialect: String,
    /// Scheme, host and port of its address; absent if the key that it was sealed with is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Whether there may be more for it.
    pub live: bool,
    /// How often in a row it did not take what it was sent.
    pub attempts: u32,
    /// When it was made.
    #[schemars(extend("format" = "date-time"))]
    pub made_at: String,
    /// When it is tried again, after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub next_at: Option<String>,
    /// Why the last try failed, or why there is no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}
