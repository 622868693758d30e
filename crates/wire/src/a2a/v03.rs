//! A2A 0.3 over JSON-RPC: the same things under other names, each with its `kind`. Everything is
//! turned into the types of 1.0 when it is read, and out of them when it is written.

use super::message::{self, Content};
use super::task::{self, StreamResponse, TaskState};
use super::value::{Bytes, Struct, Timestamp, is_default, members, or_default, plain};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The states as 0.3 writes them.
const STATES: [(TaskState, &str); 9] = [
    (TaskState::Unspecified, "unknown"),
    (TaskState::Submitted, "submitted"),
    (TaskState::Working, "working"),
    (TaskState::Completed, "completed"),
    (TaskState::Failed, "failed"),
    (TaskState::Canceled, "canceled"),
    (TaskState::InputRequired, "input-required"),
    (TaskState::Rejected, "rejected"),
    (TaskState::AuthRequired, "auth-required"),
];

pub fn state_word(state: TaskState) -> &'static str {
    STATES.iter().find(|(known, _)| *known == state).map_or("unknown", |(_, word)| *word)
}

/// The state of a word; what is not known is not specified.
pub fn state_of(word: &str) -> TaskState {
    let known = STATES.iter().find(|(_, known)| *known == word);
    known.map_or(TaskState::Unspecified, |(state, _)| *state)
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct File {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// Or where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub name: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub mime_type: String,
}

/// A part of a message or of an artifact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Part {
    Text {
        text: String,
        #[serde(default, deserialize_with = "members", skip_serializing_if = "is_default")]
        metadata: Struct,
    },
    File {
        file: File,
        #[serde(default, deserialize_with = "members", skip_serializing_if = "is_default")]
        metadata: Struct,
    },
    /// An object.
    Data {
        /// The object.
        #[serde(deserialize_with = "plain")]
        data: Value,
        #[serde(default, deserialize_with = "members", skip_serializing_if = "is_default")]
        metadata: Struct,
    },
}

/// A message.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "message", rename_all = "camelCase", default)]
pub struct Message {
    #[serde(deserialize_with = "or_default")]
    pub message_id: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub context_id: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub task_id: String,
    /// `user` or `agent`.
    #[serde(deserialize_with = "or_default")]
    pub role: String,
    /// What it says.
    #[serde(deserialize_with = "or_default")]
    pub parts: Vec<Part>,
    #[serde(deserialize_with = "members", skip_serializing_if = "is_default")]
    pub metadata: Struct,
    /// The extensions that it uses.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub extensions: Vec<String>,
    /// Other tasks that it is about.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub reference_task_ids: Vec<String>,
}

/// What a task made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Artifact {
    #[serde(deserialize_with = "or_default")]
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
#[serde(rename_all = "camelCase", default)]
pub struct TaskStatus {
    #[serde(deserialize_with = "or_default")]
    pub state: String,
    /// What the agent says about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// Since when it is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "task", rename_all = "camelCase", default)]
pub struct Task {
    #[serde(deserialize_with = "or_default")]
    pub id: String,
    #[serde(deserialize_with = "or_default")]
    pub context_id: String,
    #[serde(deserialize_with = "or_default")]
    pub status: TaskStatus,
    /// What it made.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub artifacts: Vec<Artifact>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub history: Vec<Message>,
    #[serde(deserialize_with = "members", skip_serializing_if = "is_default")]
    pub metadata: Struct,
}

/// The status of a task changed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "status-update", rename_all = "camelCase", default)]
pub struct StatusUpdate {
    #[serde(deserialize_with = "or_default")]
    pub task_id: String,
    #[serde(deserialize_with = "or_default")]
    pub context_id: String,
    #[serde(deserialize_with = "or_default")]
    pub status: TaskStatus,
    /// Whether the stream ends after it.
    #[serde(deserialize_with = "or_default", rename = "final")]
    pub is_final: bool,
    #[serde(deserialize_with = "members", skip_serializing_if = "is_default")]
    pub metadata: Struct,
}

/// A task made something, or a part of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "artifact-update", rename_all = "camelCase", default)]
pub struct ArtifactUpdate {
    #[serde(deserialize_with = "or_default")]
    pub task_id: String,
    #[serde(deserialize_with = "or_default")]
    pub context_id: String,
    /// What it made.
    #[serde(deserialize_with = "or_default")]
    pub artifact: Artifact,
    /// Whether its parts follow those that came before.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub append: bool,
    /// Whether nothing follows.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub last_chunk: bool,
    #[serde(deserialize_with = "members", skip_serializing_if = "is_default")]
    pub metadata: Struct,
}

/// What a message is answered with, and what a stream brings: the bare object, by its `kind`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Event {
    Task(Box<Task>),
    Message(Box<Message>),
    StatusUpdate(Box<StatusUpdate>),
    ArtifactUpdate(Box<ArtifactUpdate>),
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let kind = value["kind"].as_str().unwrap_or_else(|| shape(&value)).to_owned();
        let read = match kind.as_str() {
            "task" => serde_json::from_value(value).map(Event::Task),
            "message" => serde_json::from_value(value).map(Event::Message),
            "status-update" => serde_json::from_value(value).map(Event::StatusUpdate),
            "artifact-update" => serde_json::from_value(value).map(Event::ArtifactUpdate),
            other => return Err(D::Error::custom(format!("`{other}` is no kind of event"))),
        };
        read.map_err(D::Error::custom)
    }
}

/// The kind of what does not name it.
fn shape(value: &Value) -> &'static str {
    let has = |member: &str| value.get(member).is_some();
    match (has("artifact"), has("status"), has("id"), has("parts")) {
        (true, ..) => "artifact-update",
        (false, true, true, _) => "task",
        (false, true, false, _) => "status-update",
        (false, false, _, true) => "message",
        (false, false, _, false) => "",
    }
}

impl From<message::Part> for Part {
    fn from(part: message::Part) -> Self {
        let message::Part { content, metadata, filename: name, media_type: mime_type } = part;
        let file = File { name, mime_type, ..File::default() };
        match content {
            Content::Text(text) => Part::Text { text, metadata },
            Content::Raw(bytes) => {
                Part::File { file: File { bytes: Some(Bytes(bytes)), ..file }, metadata }
            }
            Content::Url(uri) => Part::File { file: File { uri: Some(uri), ..file }, metadata },
            Content::Data(data) => Part::Data { data, metadata },
        }
    }
}

impl From<Part> for message::Part {
    fn from(part: Part) -> Self {
        match part {
            Part::Text { text, metadata } => Self { metadata, ..Self::text(text) },
            Part::Data { data, metadata } => Self { metadata, ..Self::data(data) },
            Part::File { file, metadata } => {
                let content = match (file.bytes, file.uri) {
                    (Some(Bytes(bytes)), _) => Content::Raw(bytes),
                    (None, uri) => Content::Url(uri.unwrap_or_default()),
                };
                Self { content, metadata, filename: file.name, media_type: file.mime_type }
            }
        }
    }
}

fn each<T, U: From<T>>(all: Vec<T>) -> Vec<U> {
    all.into_iter().map(U::from).collect()
}

impl From<message::Message> for Message {
    fn from(message: message::Message) -> Self {
        let role = if message.role == message::Role::Agent { "agent" } else { "user" };
        Self {
            message_id: message.message_id,
            context_id: message.context_id,
            task_id: message.task_id,
            role: role.to_owned(),
            parts: each(message.parts),
            metadata: message.metadata,
            extensions: message.extensions,
            reference_task_ids: message.reference_task_ids,
        }
    }
}

impl From<Message> for message::Message {
    fn from(message: Message) -> Self {
        let role = match message.role.as_str() {
            "user" => message::Role::User,
            "agent" => message::Role::Agent,
            _ => message::Role::Unspecified,
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
        let state = state_word(status.state).to_owned();
        Self { state, message: status.message.map(Message::from), timestamp: status.timestamp }
    }
}

impl From<TaskStatus> for task::TaskStatus {
    fn from(status: TaskStatus) -> Self {
        let message = status.message.map(message::Message::from);
        Self { state: state_of(&status.state), message, timestamp: status.timestamp }
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

impl From<Event> for StreamResponse {
    fn from(event: Event) -> Self {
        match event {
            Event::Task(task) => StreamResponse::Task(Box::new((*task).into())),
            Event::Message(message) => StreamResponse::Message(Box::new((*message).into())),
            Event::StatusUpdate(event) => {
                let StatusUpdate { task_id, context_id, status, metadata, .. } = *event;
                let status = status.into();
                let event = task::TaskStatusUpdateEvent { task_id, context_id, status, metadata };
                StreamResponse::StatusUpdate(Box::new(event))
            }
            Event::ArtifactUpdate(event) => {
                let ArtifactUpdate { task_id, context_id, artifact, append, last_chunk, metadata } =
                    *event;
                let artifact = artifact.into();
                let event = task::TaskArtifactUpdateEvent {
                    task_id,
                    context_id,
                    artifact,
                    append,
                    last_chunk,
                    metadata,
                };
                StreamResponse::ArtifactUpdate(Box::new(event))
            }
        }
    }
}

impl Event {
    /// The event as 0.3 says it; `is_final` where its stream ends after it.
    pub fn of(response: StreamResponse, is_final: bool) -> Self {
        match response {
            StreamResponse::Task(task) => Event::Task(Box::new((*task).into())),
            StreamResponse::Message(message) => Event::Message(Box::new((*message).into())),
            StreamResponse::StatusUpdate(event) => {
                let task::TaskStatusUpdateEvent { task_id, context_id, status, metadata } = *event;
                let status = status.into();
                let event = StatusUpdate { task_id, context_id, status, is_final, metadata };
                Event::StatusUpdate(Box::new(event))
            }
            StreamResponse::ArtifactUpdate(event) => {
                let event = *event;
                Event::ArtifactUpdate(Box::new(ArtifactUpdate {
                    task_id: event.task_id,
                    context_id: event.context_id,
                    artifact: event.artifact.into(),
                    append: event.append,
                    last_chunk: event.last_chunk,
                    metadata: event.metadata,
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn there_and_back(written: Value) -> StreamResponse {
        let event: Event = serde_json::from_value(written.clone()).unwrap();
        let response = StreamResponse::from(event);
        let back = Event::of(response.clone(), written["final"] == true);
        assert_eq!(serde_json::to_value(back).unwrap(), written);
        response
    }

    #[test]
    fn everything_has_its_kind_and_is_the_same_in_1_0() {
        let message = json!({"kind": "message", "messageId": "m", "role": "agent", "parts": [
            {"kind": "text", "text": "hi"},
            {"kind": "file", "file": {"bytes": "dGNr", "name": "a.txt", "mimeType": "text/plain"}},
            {"kind": "file", "file": {"uri": "https://a.test/x"}},
            {"kind": "data", "data": {"n": 1}}]});
        let StreamResponse::Message(read) = there_and_back(message.clone()) else { panic!() };
        assert_eq!((read.role, read.words()), (message::Role::Agent, "hi".to_owned()));
        assert_eq!(read.parts[1].content, Content::Raw(b"tck".to_vec()));
        let status = json!({"state": "input-required", "message": message,
            "timestamp": "2026-01-02T03:04:05.678Z"});
        let artifact = json!({"artifactId": "a", "parts": [{"kind": "text", "text": "x"}]});
        let task = json!({"kind": "task", "id": "t", "contextId": "c", "status": status,
            "artifacts": [artifact], "history": [message]});
        let StreamResponse::Task(task) = there_and_back(task) else { panic!() };
        assert_eq!(task.status.state, TaskState::InputRequired);
        there_and_back(json!({"kind": "status-update", "taskId": "t", "contextId": "c",
            "status": {"state": "completed"}, "final": true}));
        there_and_back(json!({"kind": "artifact-update", "taskId": "t", "contextId": "c",
            "artifact": artifact, "append": true, "lastChunk": true}));
    }

    #[test]
    fn what_names_no_kind_is_known_by_its_shape() {
        for (value, is_task) in [
            (json!({"id": "t", "contextId": "c", "status": {"state": "working"}}), true),
            (json!({"role": "agent", "messageId": "m", "parts": []}), false),
        ] {
            let event: Event = serde_json::from_value(value).unwrap();
            assert_eq!(matches!(event, Event::Task(_)), is_task);
        }
        assert!(serde_json::from_value::<Event>(json!({"kind": "song"})).is_err());
        assert!(serde_json::from_value::<Event>(json!({})).is_err());
    }

    #[test]
    fn every_state_has_a_word() {
        for state in TaskState::ALL {
            assert_eq!(state_of(state_word(*state)), *state);
        }
        assert_eq!(state_of("dreaming"), TaskState::Unspecified);
    }
}
