//! A2A 0.3 over HTTP: the ProtoJSON of its proto, in which messages have `content` and files have
//! names of their own. Everything is turned into the types of 1.0 when it is read, and out of them
//! when it is written.

use super::message::{self, Content, Role};
use super::request;
use super::task::{self, TaskState};
use super::v03_request::{self, PushNotificationConfig};
use super::value::{
    ByWordOrNumber, Bytes, Struct, Timestamp, is_default, members, or_default, plain,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

/// How 0.3 spells this one.
const CANCELLED: &str = "TASK_STATE_CANCELLED";

/// A state with the spelling of 0.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State(pub TaskState);

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let word = if self.0 == TaskState::Canceled { CANCELLED } else { self.0.word() };
        serializer.serialize_str(word)
    }
}

impl<'de> Deserialize<'de> for State {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let from_word = |word: &str| match word {
            CANCELLED => Some(Self(TaskState::Canceled)),
            word => TaskState::from_word(word).map(Self),
        };
        deserializer.deserialize_any(ByWordOrNumber {
            what: "a state of a task",
            from_word,
            from_number: |number| TaskState::from_number(number).map(Self),
        })
    }
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct File {
    #[serde(alias = "file_with_uri", skip_serializing_if = "Option::is_none")]
    pub file_with_uri: Option<String>,
    /// Or its bytes.
    #[serde(alias = "file_with_bytes", skip_serializing_if = "Option::is_none")]
    pub file_with_bytes: Option<Bytes>,
    #[serde(alias = "mime_type", alias = "mediaType", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub mime_type: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub name: String,
}

/// A part of a message or of an artifact: exactly one content.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Part {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<File>,
    /// An object, in an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
    #[serde(deserialize_with = "members", skip_serializing_if = "is_default")]
    pub metadata: Struct,
}

/// An object, as the proto wraps it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Data {
    /// The object.
    #[serde(deserialize_with = "plain")]
    pub data: Value,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Message {
    #[serde(alias = "message_id", deserialize_with = "or_default")]
    pub message_id: String,
    #[serde(alias = "context_id", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub context_id: String,
    #[serde(alias = "task_id", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub task_id: String,
    #[serde(deserialize_with = "or_default")]
    pub role: Role,
    /// What it says.
    #[serde(alias = "parts", deserialize_with = "or_default")]
    pub content: Vec<Part>,
    #[serde(deserialize_with = "members", skip_serializing_if = "is_default")]
    pub metadata: Struct,
    /// The extensions that it uses.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub extensions: Vec<String>,
}

/// What a task made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Artifact {
    #[serde(alias = "artifact_id", deserialize_with = "or_default")]
    pub artifact_id: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub name: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub description: String,
    /// What it holds.
    #[serde(deserialize_with = "or_default")]
    pub parts: Vec<Part>,
    #[serde(deserialize_with = "members", skip_serializing_if = "is_default")]
    pub metadata: Struct,
    /// The extensions that it uses.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub extensions: Vec<String>,
}

/// How a task is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskStatus {
    #[serde(deserialize_with = "or_default")]
    pub state: State,
    /// What the agent says about it.
    #[serde(alias = "update", skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// Since when it is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Task {
    #[serde(deserialize_with = "or_default")]
    pub id: String,
    #[serde(alias = "context_id", deserialize_with = "or_default")]
    pub context_id: String,
    #[serde(deserialize_with = "or_default")]
    pub status: TaskStatus,
    /// What it made.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub artifacts: Vec<Artifact>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub history: Vec<Message>,
    /// More for programs.
    #[serde(deserialize_with = "members", skip_serializing_if = "is_default")]
    pub metadata: Struct,
}

/// What a message is answered with: one of both.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SendResponse {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    #[serde(alias = "msg", skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
}

/// The body of `/v1/message:send` and `/v1/message:stream`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SendRequest {
    /// The message; it is required.
    #[serde(alias = "request")]
    pub message: Option<Message>,
    /// How it is to be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Struct>,
    #[serde(deserialize_with = "members", skip_serializing_if = "is_default")]
    pub metadata: Struct,
}

/// How a message is to be answered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
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

/// The body of `/v1/tasks/{id}/pushNotificationConfigs`: the request of the proto, what is in it,
/// or the webhook alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
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

impl PushRequest {
    /// The webhook.
    pub fn config(self) -> PushNotificationConfig {
        let id = self.config_id;
        let config = match (self.config, self.push_notification_config) {
            (Some(inner), _) => inner.config(),
            (None, Some(config)) => config,
            (None, None) => self.alone,
        };
        if config.id.is_empty() { PushNotificationConfig { id, ..config } } else { config }
    }
}

/// A webhook of a task as it is answered with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskPushNotificationConfig {
    /// Its name, with that of its task.
    pub name: String,
    /// The webhook.
    pub push_notification_config: PushNotificationConfig,
}

impl From<request::TaskPushNotificationConfig> for TaskPushNotificationConfig {
    fn from(config: request::TaskPushNotificationConfig) -> Self {
        let name = format!("tasks/{}/pushNotificationConfigs/{}", config.task_id, config.id);
        let shown = v03_request::TaskPushNotificationConfig::from(config);
        Self { name, push_notification_config: shown.push_notification_config }
    }
}

/// One event of a stream: one of these.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamEvent {
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<Task>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_update: Option<StatusUpdate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_update: Option<ArtifactUpdate>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusUpdate {
    task_id: String,
    context_id: String,
    status: TaskStatus,
    #[serde(rename = "final")]
    is_final: bool,
    #[serde(skip_serializing_if = "is_default")]
    metadata: Struct,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactUpdate {
    task_id: String,
    context_id: String,
    artifact: Artifact,
    #[serde(skip_serializing_if = "is_default")]
    append: bool,
    #[serde(skip_serializing_if = "is_default")]
    last_chunk: bool,
    #[serde(skip_serializing_if = "is_default")]
    metadata: Struct,
}

impl StreamEvent {
    /// The event as 0.3 says it; `is_final` where its stream ends after it.
    pub fn of(response: task::StreamResponse, is_final: bool) -> Self {
        let none = Self::default();
        match response {
            task::StreamResponse::Task(task) => Self { task: Some((*task).into()), ..none },
            task::StreamResponse::Message(message) => {
                Self { message: Some((*message).into()), ..none }
            }
            task::StreamResponse::StatusUpdate(event) => {
                let task::TaskStatusUpdateEvent { task_id, context_id, status, metadata } = *event;
                let status = status.into();
                let event = StatusUpdate { task_id, context_id, status, is_final, metadata };
                Self { status_update: Some(event), ..none }
            }
            task::StreamResponse::ArtifactUpdate(event) => {
                let event = *event;
                let event = ArtifactUpdate {
                    task_id: event.task_id,
                    context_id: event.context_id,
                    artifact: event.artifact.into(),
                    append: event.append,
                    last_chunk: event.last_chunk,
                    metadata: event.metadata,
                };
                Self { artifact_update: Some(event), ..none }
            }
        }
    }
}

impl TryFrom<SendRequest> for request::SendMessageRequest {
    type Error = serde_json::Error;

    /// A configuration that does not say `blocking`, an empty one too, says that it is not: the
    /// proto leaves out what is false. A request without one waits.
    fn try_from(asked: SendRequest) -> Result<Self, serde_json::Error> {
        let SendRequest { message, configuration, metadata } = asked;
        let configuration = match configuration {
            None => None,
            Some(configuration) => {
                let read: SendConfiguration = serde_json::from_value(Value::Object(configuration))?;
                Some(request::SendMessageConfiguration {
                    accepted_output_modes: read.accepted_output_modes,
                    task_push_notification_config: read.push_notification.map(Into::into),
                    history_length: read.history_length,
                    return_immediately: !read.blocking,
                })
            }
        };
        let message = message.map(message::Message::from);
        Ok(Self { tenant: String::new(), message, configuration, metadata })
    }
}

impl SendRequest {
    /// A message whose answer does not wait for the end of its task, or does.
    pub fn new(message: Message, blocking: bool) -> Self {
        let configuration = Struct::from_iter([("blocking".to_owned(), json!(blocking))]);
        Self { message: Some(message), configuration: Some(configuration), metadata: Struct::new() }
    }
}

fn each<T, U: From<T>>(all: Vec<T>) -> Vec<U> {
    all.into_iter().map(U::from).collect()
}

impl From<message::Part> for Part {
    fn from(part: message::Part) -> Self {
        let message::Part { content, metadata, filename: name, media_type: mime_type } = part;
        let file = File { name, mime_type, ..File::default() };
        let part = Part { metadata, ..Part::default() };
        match content {
            Content::Text(text) => Part { text: Some(text), ..part },
            Content::Raw(bytes) => {
                Part { file: Some(File { file_with_bytes: Some(Bytes(bytes)), ..file }), ..part }
            }
            Content::Url(uri) => {
                Part { file: Some(File { file_with_uri: Some(uri), ..file }), ..part }
            }
            // Only objects have a place here.
            Content::Data(data @ Value::Object(_)) => Part { data: Some(Data { data }), ..part },
            Content::Data(other) => Part { text: Some(other.to_string()), ..part },
        }
    }
}

impl From<Part> for message::Part {
    fn from(part: Part) -> Self {
        let Part { text, file, data, metadata } = part;
        match (file, data) {
            (Some(file), _) => {
                let content = match (file.file_with_bytes, file.file_with_uri) {
                    (Some(Bytes(bytes)), _) => Content::Raw(bytes),
                    (None, uri) => Content::Url(uri.unwrap_or_default()),
                };
                Self { content, metadata, filename: file.name, media_type: file.mime_type }
            }
            (None, Some(Data { data })) => Self { metadata, ..Self::data(data) },
            (None, None) => Self { metadata, ..Self::text(text.unwrap_or_default()) },
        }
    }
}

impl From<message::Message> for Message {
    fn from(message: message::Message) -> Self {
        Self {
            message_id: message.message_id,
            context_id: message.context_id,
            task_id: message.task_id,
            role: message.role,
            content: each(message.parts),
            metadata: message.metadata,
            extensions: message.extensions,
        }
    }
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

impl From<message::Artifact> for Artifact {
    fn from(artifact: message::Artifact) -> Self {
        let message::Artifact { artifact_id, name, description, parts, metadata, extensions } =
            artifact;
        Self { artifact_id, name, description, parts: each(parts), metadata, extensions }
    }
}

impl From<Artifact> for message::Artifact {
    fn from(artifact: Artifact) -> Self {
        let Artifact { artifact_id, name, description, parts, metadata, extensions } = artifact;
        Self { artifact_id, name, description, parts: each(parts), metadata, extensions }
    }
}

impl From<task::TaskStatus> for TaskStatus {
    fn from(status: task::TaskStatus) -> Self {
        let message = status.message.map(Message::from);
        Self { state: State(status.state), message, timestamp: status.timestamp }
    }
}

impl From<TaskStatus> for task::TaskStatus {
    fn from(status: TaskStatus) -> Self {
        let message = status.message.map(message::Message::from);
        Self { state: status.state.0, message, timestamp: status.timestamp }
    }
}

impl From<task::Task> for Task {
    fn from(task: task::Task) -> Self {
        let task::Task { id, context_id, status, artifacts, history, metadata } = task;
        let artifacts = each(artifacts);
        let history = each(history);
        Self { id, context_id, status: status.into(), artifacts, history, metadata }
    }
}

impl From<Task> for task::Task {
    fn from(task: Task) -> Self {
        let Task { id, context_id, status, artifacts, history, metadata } = task;
        let artifacts = each(artifacts);
        let history = each(history);
        Self { id, context_id, status: status.into(), artifacts, history, metadata }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_the_same_in_1_0() {
        let written = json!({"id": "t", "contextId": "c", "status": {
            "state": "TASK_STATE_CANCELLED", "message": {"messageId": "m", "role": "ROLE_AGENT",
            "content": [{"text": "over"}]}}, "artifacts": [{"artifactId": "a", "parts": [
                {"file": {"fileWithBytes": "dGNr", "mimeType": "text/plain", "name": "a.txt"}},
                {"file": {"fileWithUri": "https://a.test/x"}},
                {"data": {"data": {"n": 1}}}]}]});
        let read: Task = serde_json::from_value(written.clone()).unwrap();
        let task = task::Task::from(read);
        assert_eq!(task.status.state, TaskState::Canceled);
        assert_eq!(task.status.message.as_ref().unwrap().words(), "over");
        assert_eq!(task.artifacts[0].parts[2].as_data(), Some(&json!({"n": 1})));
        assert_eq!(serde_json::to_value(Task::from(task)).unwrap(), written);
    }

    #[test]
    fn a_message_is_written_with_content() {
        let message = message::Message {
            message_id: "m".to_owned(),
            role: Role::User,
            parts: vec![message::Part::text("hi"), message::Part::data(json!([1]))],
            ..message::Message::default()
        };
        let request = SendRequest::new(message.into(), false);
        let written = json!({"message": {"messageId": "m", "role": "ROLE_USER",
            "content": [{"text": "hi"}, {"text": "[1]"}]}, "configuration": {"blocking": false}});
        assert_eq!(serde_json::to_value(request).unwrap(), written);
        let old: SendResponse =
            serde_json::from_value(json!({"msg": {"message_id": "m", "role": 2}})).unwrap();
        assert_eq!(old.message.unwrap().role, Role::Agent);
    }

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
            let read = read.config();
            assert_eq!((read.id.as_str(), read.url.as_str()), ("one", "https://a.test/"), "{body}");
        }
        let unnamed =
            json!({"configId": "two", "config": {"pushNotificationConfig": {"url": "x"}}});
        let read: PushRequest = serde_json::from_value(unnamed).unwrap();
        assert_eq!(read.config().id, "two");
    }

    #[test]
    fn a_stream_says_which_event_is_its_last() {
        let event = task::TaskStatusUpdateEvent {
            task_id: "t".to_owned(),
            status: task::TaskStatus { state: TaskState::Canceled, ..Default::default() },
            ..Default::default()
        };
        let event = task::StreamResponse::StatusUpdate(Box::new(event));
        let written = json!({"statusUpdate": {"taskId": "t", "contextId": "",
            "status": {"state": "TASK_STATE_CANCELLED"}, "final": true}});
        assert_eq!(serde_json::to_value(StreamEvent::of(event, true)).unwrap(), written);
    }
}
