//! Reads 0.3 messages over JSON-RPC, and the parameters of its methods. They are read from the text
//! of a request, so that an error has its position.

use super::{content_of, each};
use crate::a2a::message::{self, Role};
use crate::a2a::request;
use crate::a2a::value::{Bytes, Struct, members, or_default, plain};
use serde::Deserialize;
use serde_json::Value;

/// A file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct File {
    bytes: Option<Bytes>,
    /// Or where it is.
    uri: Option<String>,
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[serde(deserialize_with = "or_default")]
    mime_type: String,
}

/// A part of a message or of an artifact.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum Part {
    Text {
        text: String,
        #[serde(default, deserialize_with = "members")]
        metadata: Struct,
    },
    File {
        file: File,
        #[serde(default, deserialize_with = "members")]
        metadata: Struct,
    },
    Data {
        #[serde(deserialize_with = "plain")]
        data: Value,
        #[serde(default, deserialize_with = "members")]
        metadata: Struct,
    },
}

impl From<Part> for message::Part {
    fn from(part: Part) -> Self {
        match part {
            Part::Text { text, metadata } => Self { metadata, ..Self::text(text) },
            Part::Data { data, metadata } => Self { metadata, ..Self::data(data) },
            Part::File { file: File { bytes, uri, name, mime_type }, metadata } => Self {
                content: content_of(bytes, uri),
                metadata,
                filename: name,
                media_type: mime_type,
            },
        }
    }
}

/// A message.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Message {
    #[serde(deserialize_with = "or_default")]
    message_id: String,
    #[serde(deserialize_with = "or_default")]
    context_id: String,
    #[serde(deserialize_with = "or_default")]
    task_id: String,
    /// `user` or `agent`.
    #[serde(deserialize_with = "or_default")]
    role: String,
    #[serde(deserialize_with = "or_default")]
    parts: Vec<Part>,
    #[serde(deserialize_with = "members")]
    metadata: Struct,
    #[serde(deserialize_with = "or_default")]
    extensions: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    reference_task_ids: Vec<String>,
}

impl From<Message> for message::Message {
    fn from(message: Message) -> Self {
        let role = match message.role.as_str() {
            "user" => Role::User,
            "agent" => Role::Agent,
            _ => Role::Unspecified,
        };
        Self {
            message_id: message.message_id,
            context_id: message.context_id,
            task_id: message.task_id,
            role,
            parts: each(message.parts),
            metadata: message.metadata,
            extensions: message.extensions,
            reference_task_ids: message.reference_task_ids,
        }
    }
}

/// A webhook.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PushNotificationConfig {
    #[serde(deserialize_with = "or_default")]
    id: String,
    #[serde(deserialize_with = "or_default")]
    url: String,
    #[serde(deserialize_with = "or_default")]
    token: String,
    authentication: Option<PushAuthentication>,
}

/// How a webhook is shown who sends.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PushAuthentication {
    /// The schemes that it takes.
    #[serde(deserialize_with = "or_default")]
    schemes: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    credentials: String,
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

/// A webhook of a task.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskPushNotificationConfig {
    #[serde(deserialize_with = "or_default")]
    task_id: String,
    #[serde(deserialize_with = "or_default")]
    push_notification_config: PushNotificationConfig,
}

impl From<TaskPushNotificationConfig> for request::TaskPushNotificationConfig {
    fn from(config: TaskPushNotificationConfig) -> Self {
        Self { task_id: config.task_id, ..config.push_notification_config.into() }
    }
}

/// How a message is to be answered.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SendConfiguration {
    #[serde(deserialize_with = "or_default")]
    accepted_output_modes: Vec<String>,
    /// Whether the answer waits for the end of the task; it does unless this says otherwise.
    blocking: Option<bool>,
    history_length: Option<i32>,
    push_notification_config: Option<PushNotificationConfig>,
}

/// `message/send` and `message/stream`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SendParams {
    message: Option<Message>,
    configuration: Option<SendConfiguration>,
    #[serde(deserialize_with = "members")]
    metadata: Struct,
}

impl From<SendParams> for request::SendMessageRequest {
    fn from(params: SendParams) -> Self {
        let configuration = params.configuration.map(|asked| request::SendMessageConfiguration {
            accepted_output_modes: asked.accepted_output_modes,
            task_push_notification_config: asked.push_notification_config.map(Into::into),
            history_length: asked.history_length,
            return_immediately: asked.blocking == Some(false),
        });
        let message = params.message.map(Into::into);
        Self { tenant: String::new(), message, configuration, metadata: params.metadata }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Binding;
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
        let back = json!({"taskId": "", "pushNotificationConfig": {"id": "one",
            "url": "https://a.test/", "token": "t",
            "authentication": {"schemes": ["Bearer"], "credentials": "c"}}});
        assert_eq!(Binding::Rpc.webhook(&config), back);
        let blocking: SendParams = serde_json::from_value(json!({"configuration": {}})).unwrap();
        let request = request::SendMessageRequest::from(blocking);
        assert!(!request.configuration.unwrap().return_immediately, "it waits unless told not to");
    }
}
