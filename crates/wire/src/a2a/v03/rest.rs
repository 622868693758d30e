//! Reads 0.3 messages over HTTP, and the bodies of its requests.

use super::rpc::PushNotificationConfig;
use super::{content_of, each};
use crate::a2a::message::{self, Role};
use crate::a2a::request;
use crate::a2a::value::{Bytes, Struct, members, or_default, plain};
use serde::Deserialize;
use serde_json::Value;

/// A file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct File {
    #[serde(alias = "file_with_uri")]
    file_with_uri: Option<String>,
    /// Or its bytes.
    #[serde(alias = "file_with_bytes")]
    file_with_bytes: Option<Bytes>,
    #[serde(alias = "mime_type", alias = "mediaType", deserialize_with = "or_default")]
    mime_type: String,
    #[serde(deserialize_with = "or_default")]
    name: String,
}

/// A part of a message or of an artifact: exactly one content.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Part {
    text: Option<String>,
    file: Option<File>,
    data: Option<Data>,
    #[serde(deserialize_with = "members")]
    metadata: Struct,
}

/// An object, as the proto wraps it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Data {
    #[serde(deserialize_with = "plain")]
    data: Value,
}

impl From<Part> for message::Part {
    fn from(part: Part) -> Self {
        let Part { text, file, data, metadata } = part;
        match (file, data) {
            (Some(file), _) => Self {
                content: content_of(file.file_with_bytes, file.file_with_uri),
                metadata,
                filename: file.name,
                media_type: file.mime_type,
            },
            (None, Some(Data { data })) => Self { metadata, ..Self::data(data) },
            (None, None) => Self { metadata, ..Self::text(text.unwrap_or_default()) },
        }
    }
}

/// A message.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Message {
    #[serde(alias = "message_id", deserialize_with = "or_default")]
    message_id: String,
    #[serde(alias = "context_id", deserialize_with = "or_default")]
    context_id: String,
    #[serde(alias = "task_id", deserialize_with = "or_default")]
    task_id: String,
    #[serde(deserialize_with = "or_default")]
    role: Role,
    #[serde(alias = "parts", deserialize_with = "or_default")]
    content: Vec<Part>,
    #[serde(deserialize_with = "members")]
    metadata: Struct,
    #[serde(deserialize_with = "or_default")]
    extensions: Vec<String>,
}

impl From<Message> for message::Message {
    fn from(message: Message) -> Self {
        Self {
            message_id: message.message_id,
            context_id: message.context_id,
            task_id: message.task_id,
            role: message.role,
            parts: each(message.content),
            metadata: message.metadata,
            extensions: message.extensions,
            reference_task_ids: Vec::new(),
        }
    }
}

/// The body of `/v1/message:send` and `/v1/message:stream`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SendRequest {
    #[serde(alias = "request")]
    message: Option<Message>,
    configuration: Option<Struct>,
    #[serde(deserialize_with = "members")]
    metadata: Struct,
}

/// How a message is to be answered.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SendConfiguration {
    #[serde(alias = "accepted_output_modes", deserialize_with = "or_default")]
    accepted_output_modes: Vec<String>,
    #[serde(alias = "push_notification", alias = "pushNotificationConfig")]
    push_notification: Option<PushNotificationConfig>,
    #[serde(alias = "history_length")]
    history_length: Option<i32>,
    #[serde(deserialize_with = "or_default")]
    blocking: bool,
}

impl TryFrom<SendRequest> for request::SendMessageRequest {
    type Error = serde_json::Error;

    /// A configuration that does not say `blocking`, an empty one too, says that it is not: the
    /// proto leaves out what is false. A request without one waits.
    fn try_from(asked: SendRequest) -> Result<Self, serde_json::Error> {
        let SendRequest { message, configuration, metadata } = asked;
        let configuration = configuration.map(Value::Object).map(SendConfiguration::deserialize);
        let configuration = configuration.transpose()?;
        let configuration = configuration.map(|asked| request::SendMessageConfiguration {
            accepted_output_modes: asked.accepted_output_modes,
            task_push_notification_config: asked.push_notification.map(Into::into),
            history_length: asked.history_length,
            return_immediately: !asked.blocking,
        });
        let message = message.map(Into::into);
        Ok(Self { tenant: String::new(), message, configuration, metadata })
    }
}

/// The body of `/v1/tasks/{id}/pushNotificationConfigs`: the request of the proto, what is in it,
/// or the webhook alone.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PushRequest {
    #[serde(alias = "config_id", deserialize_with = "or_default")]
    config_id: String,
    config: Option<Box<PushRequest>>,
    #[serde(alias = "push_notification_config")]
    push_notification_config: Option<PushNotificationConfig>,
    #[serde(flatten)]
    alone: PushNotificationConfig,
}

impl From<PushRequest> for request::TaskPushNotificationConfig {
    fn from(asked: PushRequest) -> Self {
        let config = match (asked.config, asked.push_notification_config) {
            (Some(inner), _) => Self::from(*inner),
            (None, Some(config)) => config.into(),
            (None, None) => asked.alone.into(),
        };
        if config.id.is_empty() { Self { id: asked.config_id, ..config } } else { config }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_is_the_same_in_1_0() {
        let asked = |configuration: Value| {
            let body = json!({"message": {"messageId": "m", "role": "ROLE_USER",
                "content": [{"text": "hi"}]}, "configuration": configuration});
            let asked: SendRequest = serde_json::from_value(body).unwrap();
            request::SendMessageRequest::try_from(asked).unwrap()
        };
        assert_eq!(asked(Value::Null).configuration, None, "it waits");
        assert!(asked(json!({})).configuration.unwrap().return_immediately);
        assert_eq!(asked(Value::Null).message.unwrap().words(), "hi");
        let waits = |configuration| !asked(configuration).configuration.unwrap().return_immediately;
        assert!(waits(json!({"blocking": true, "historyLength": 1})));
        assert!(!waits(json!({"historyLength": 1})), "what is false is left out");
        let pushed = asked(json!({"pushNotification": {"url": "https://a.test/"}}));
        let config = pushed.configuration.unwrap().task_push_notification_config.unwrap();
        assert_eq!(config.url, "https://a.test/");
    }

    #[test]
    fn a_webhook_is_read_however_it_is_wrapped() {
        let config = json!({"id": "one", "url": "https://a.test/"});
        let inner = json!({"name": "tasks/t/pushNotificationConfigs/one",
            "pushNotificationConfig": config});
        let whole = json!({"parent": "tasks/t", "configId": "one", "config": inner});
        for body in [config, inner, whole] {
            let read: PushRequest = serde_json::from_value(body.clone()).unwrap();
            let read = request::TaskPushNotificationConfig::from(read);
            assert_eq!((read.id.as_str(), read.url.as_str()), ("one", "https://a.test/"), "{body}");
        }
        let unnamed =
            json!({"configId": "two", "config": {"pushNotificationConfig": {"url": "x"}}});
        let read: PushRequest = serde_json::from_value(unnamed).unwrap();
        assert_eq!(request::TaskPushNotificationConfig::from(read).id, "two");
    }
}
