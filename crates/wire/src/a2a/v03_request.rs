//! What clients of A2A 0.3 ask for, its webhooks, and its card.

use super::card::AgentSkill;
use super::v03::Message;
use super::value::{Struct, is_default, members, or_default};
use serde::{Deserialize, Serialize};

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PushNotificationConfig {
    /// Its id.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub id: String,
    /// Where it is.
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    /// What goes with every notification.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub token: String,
    /// How it is shown who sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication: Option<PushAuthentication>,
}

/// How a webhook is shown who sends.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PushAuthentication {
    /// The schemes that it takes.
    #[serde(deserialize_with = "or_default")]
    pub schemes: Vec<String>,
    /// What follows the scheme.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub credentials: String,
}

/// A webhook of a task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskPushNotificationConfig {
    /// The task.
    #[serde(deserialize_with = "or_default")]
    pub task_id: String,
    /// The webhook.
    #[serde(deserialize_with = "or_default")]
    pub push_notification_config: PushNotificationConfig,
}

/// How a message is to be answered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SendConfiguration {
    /// The media types that the client takes.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub accepted_output_modes: Vec<String>,
    /// Whether the answer waits for the end of the task; it does unless this says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocking: Option<bool>,
    /// How many messages of the history are wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_length: Option<i32>,
    /// A webhook for the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push_notification_config: Option<PushNotificationConfig>,
}

/// `message/send` and `message/stream`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SendParams {
    /// The message; it is required.
    pub message: Option<Message>,
    /// How it is to be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<SendConfiguration>,
    /// More for programs.
    #[serde(deserialize_with = "members", skip_serializing_if = "is_default")]
    pub metadata: Struct,
}

/// One more address of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AdditionalInterface {
    /// Where it is.
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    /// How it is spoken to there: `JSONRPC`, `GRPC` or `HTTP+JSON`.
    #[serde(deserialize_with = "or_default")]
    pub transport: String,
}

/// The members of a card that 0.3 has and 1.0 does not, with those that both need.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentCard {
    /// The version of A2A: `0.3.0`.
    #[serde(deserialize_with = "or_default")]
    pub protocol_version: String,
    /// The agent's name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// What it is for.
    #[serde(deserialize_with = "or_default")]
    pub description: String,
    /// Its own version.
    #[serde(deserialize_with = "or_default")]
    pub version: String,
    /// Its preferred address.
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    /// How it is spoken to there; `JSONRPC` if that is not said.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub preferred_transport: String,
    /// Its other addresses.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub additional_interfaces: Vec<AdditionalInterface>,
    /// What it knows how to do.
    #[serde(deserialize_with = "or_default")]
    pub skills: Vec<AgentSkill>,
}
