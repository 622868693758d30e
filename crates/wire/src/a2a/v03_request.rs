//! What clients of A2A 0.3 ask for, its webhooks, and its card.

use super::card::AgentSkill;
use super::request;
use super::v03::Message;
use super::value::{Struct, is_default, members, or_default};
use serde::{Deserialize, Serialize};

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PushNotificationConfig {
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub id: String,
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
    #[serde(deserialize_with = "members", skip_serializing_if = "is_default")]
    pub metadata: Struct,
}

/// One more address of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AdditionalInterface {
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
    #[serde(deserialize_with = "or_default")]
    pub name: String,
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

impl From<PushNotificationConfig> for request::TaskPushNotificationConfig {
    fn from(config: PushNotificationConfig) -> Self {
        let PushNotificationConfig { id, url, token, authentication } = config;
        let authentication = authentication.map(|shown| request::AuthenticationInfo {
            // Of several the first is the preferred one.
            scheme: shown.schemes.into_iter().next().unwrap_or_default(),
            credentials: shown.credentials,
        });
        Self { id, url, token, authentication, ..Self::default() }
    }
}

impl From<request::TaskPushNotificationConfig> for TaskPushNotificationConfig {
    fn from(config: request::TaskPushNotificationConfig) -> Self {
        let request::TaskPushNotificationConfig { id, task_id, url, token, authentication, .. } =
            config;
        let authentication = authentication.map(|shown| PushAuthentication {
            schemes: vec![shown.scheme],
            credentials: shown.credentials,
        });
        let push_notification_config = PushNotificationConfig { id, url, token, authentication };
        Self { task_id, push_notification_config }
    }
}

impl From<SendConfiguration> for request::SendMessageConfiguration {
    fn from(configuration: SendConfiguration) -> Self {
        Self {
            accepted_output_modes: configuration.accepted_output_modes,
            task_push_notification_config: configuration.push_notification_config.map(Into::into),
            history_length: configuration.history_length,
            return_immediately: configuration.blocking == Some(false),
        }
    }
}

impl From<SendParams> for request::SendMessageRequest {
    fn from(params: SendParams) -> Self {
        Self {
            tenant: String::new(),
            message: params.message.map(Into::into),
            configuration: params.configuration.map(Into::into),
            metadata: params.metadata,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_is_the_same_in_1_0() {
        let params: SendParams = serde_json::from_value(json!({
            "message": {"kind": "message", "messageId": "m", "role": "user",
                "parts": [{"kind": "text", "text": "hi"}]},
            "configuration": {"blocking": false, "historyLength": 3, "pushNotificationConfig": {
                "id": "one", "url": "https://a.test/", "token": "t",
                "authentication": {"schemes": ["Bearer", "Basic"], "credentials": "c"}}}}))
        .unwrap();
        let request = request::SendMessageRequest::from(params);
        let configuration = request.configuration.unwrap();
        assert!(configuration.return_immediately);
        assert_eq!(configuration.history_length, Some(3));
        let config = configuration.task_push_notification_config.unwrap();
        assert_eq!((config.id.as_str(), config.token.as_str()), ("one", "t"));
        assert_eq!(config.authentication.as_ref().unwrap().scheme, "Bearer");
        let back = TaskPushNotificationConfig::from(config);
        assert_eq!(back.push_notification_config.authentication.unwrap().schemes, ["Bearer"]);
        let blocking: SendParams = serde_json::from_value(json!({"configuration": {}})).unwrap();
        let request = request::SendMessageRequest::from(blocking);
        assert!(!request.configuration.unwrap().return_immediately, "it waits unless told not to");
    }
}
