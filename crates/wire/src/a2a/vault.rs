//! The profile of AgentVault: tasks whose messages are the answer, states in upper case, and a card
//! that spells some of its members with underscores. It is turned into the types of 1.0 when it is
//! read.

use super::message::{self, Content, Role};
use super::task::{self, TaskState};
use super::value::{
    Bytes, Struct, Timestamp, is_default, members, or_default, plain, plain_or_none,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The states of the profile; it has no others.
const STATES: [(TaskState, &str); 6] = [
    (TaskState::Submitted, "SUBMITTED"),
    (TaskState::Working, "WORKING"),
    (TaskState::InputRequired, "INPUT_REQUIRED"),
    (TaskState::Completed, "COMPLETED"),
    (TaskState::Failed, "FAILED"),
    (TaskState::Canceled, "CANCELED"),
];

/// The word of a state: what the profile lacks is the nearest that it has.
pub fn state_word(state: TaskState) -> &'static str {
    match state {
        TaskState::Unspecified | TaskState::AuthRequired => "WORKING",
        TaskState::Rejected => "FAILED",
        known => STATES.iter().find(|(state, _)| *state == known).map_or("", |(_, word)| *word),
    }
}

/// The state of a word; what is not known is not specified.
pub fn state_of(word: &str) -> TaskState {
    let known = STATES.iter().find(|(_, known)| *known == word);
    known.map_or(TaskState::Unspecified, |(state, _)| *state)
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Part {
    Text {
        content: String,
    },
    #[serde(rename_all = "camelCase")]
    File {
        url: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
        /// Its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
    },
    /// An object.
    #[serde(rename_all = "camelCase")]
    Data {
        /// The object.
        #[serde(deserialize_with = "plain")]
        content: Value,
        #[serde(default = "json_type")]
        media_type: String,
    },
}

fn json_type() -> String {
    "application/json".to_owned()
}

/// A message.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Message {
    /// `user`, `assistant`, `system` or `tool`.
    #[serde(deserialize_with = "or_default")]
    pub role: String,
    /// What it says.
    #[serde(deserialize_with = "or_default")]
    pub parts: Vec<Part>,
    #[serde(deserialize_with = "members", skip_serializing_if = "is_default")]
    pub metadata: Struct,
}

/// What a task made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Artifact {
    #[serde(deserialize_with = "or_default")]
    pub id: String,
    #[serde(deserialize_with = "or_default", rename = "type")]
    pub kind: String,
    /// What it holds.
    #[serde(deserialize_with = "plain_or_none", skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    /// Or where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    #[serde(deserialize_with = "members", skip_serializing_if = "is_default")]
    pub metadata: Struct,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Task {
    #[serde(deserialize_with = "or_default")]
    pub id: String,
    #[serde(deserialize_with = "or_default")]
    pub state: String,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    #[serde(deserialize_with = "or_default")]
    pub messages: Vec<Message>,
    /// What it made.
    #[serde(deserialize_with = "or_default")]
    pub artifacts: Vec<Artifact>,
    #[serde(deserialize_with = "members", skip_serializing_if = "is_default")]
    pub metadata: Struct,
}

/// `tasks/send`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SendParams {
    /// The task that is continued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The message; it is required.
    pub message: Option<Message>,
    /// Where events are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_url: Option<String>,
}

/// The answer to `tasks/cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CancelResult {
    /// Whether it is cancelled.
    pub success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// `task_status` of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusEvent {
    pub task_id: String,
    pub state: String,
    /// Since when.
    pub timestamp: Option<Timestamp>,
    pub message: Option<String>,
}

/// `task_message` of a stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MessageEvent {
    pub task_id: String,
    pub message: Message,
    pub timestamp: Option<Timestamp>,
}

/// `task_artifact` of a stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ArtifactEvent {
    pub task_id: String,
    pub artifact: Artifact,
    pub timestamp: Option<Timestamp>,
}

/// A card of the profile.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentCard {
    /// The version of the card's form.
    #[serde(deserialize_with = "or_default")]
    pub schema_version: String,
    /// `org/name`.
    #[serde(deserialize_with = "or_default")]
    pub human_readable_id: String,
    /// The agent's own version.
    #[serde(deserialize_with = "or_default")]
    pub agent_version: String,
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    #[serde(deserialize_with = "or_default")]
    pub description: String,
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    #[serde(deserialize_with = "or_default")]
    pub provider: Provider,
    /// What it can do.
    #[serde(deserialize_with = "or_default")]
    pub capabilities: Capabilities,
    /// How it is shown who calls; one at least.
    #[serde(deserialize_with = "or_default")]
    pub auth_schemes: Vec<AuthScheme>,
    /// What it knows how to do.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub skills: Vec<Skill>,
    /// Words to find it by.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub tags: Vec<String>,
    /// When it changed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<Timestamp>,
}

/// Whose an agent is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Provider {
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Who helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub support_contact: Option<String>,
}

/// What an agent can do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Capabilities {
    /// The version of the profile.
    #[serde(rename = "a2aVersion", deserialize_with = "or_default")]
    pub a2a_version: String,
    /// The version of MCP that it speaks, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_version: Option<String>,
    /// The kinds of parts that it takes.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub supported_message_parts: Vec<String>,
    /// Whether it calls webhooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supports_push_notifications: Option<bool>,
}

/// How an agent is shown who calls.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuthScheme {
    /// `apiKey`, `bearer`, `oauth2` or `none`.
    #[serde(deserialize_with = "or_default")]
    pub scheme: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where tokens are given; for `oauth2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_url: Option<String>,
    /// What is asked for; for `oauth2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// Under which name clients keep their key.
    #[serde(rename = "service_identifier", skip_serializing_if = "Option::is_none")]
    pub service_identifier: Option<String>,
}

/// Something that an agent knows how to do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Skill {
    #[serde(deserialize_with = "or_default")]
    pub id: String,
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    #[serde(deserialize_with = "or_default")]
    pub description: String,
    /// JSON Schema of what it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// JSON Schema of its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

impl From<message::Part> for Part {
    fn from(part: message::Part) -> Self {
        let message::Part { content, filename, media_type, .. } = part;
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        match content {
            Content::Text(content) => Part::Text { content },
            Content::Url(url) => {
                Part::File { url, media_type: some(media_type), filename: some(filename) }
            }
            Content::Data(content @ Value::Object(_)) => {
                Part::Data { content, media_type: json_type() }
            }
            Content::Data(other) => Part::Text { content: other.to_string() },
            // The profile has no place for bytes but an address.
            Content::Raw(bytes) => {
                let kind =
                    some(media_type).unwrap_or_else(|| "application/octet-stream".to_owned());
                let bytes = serde_json::to_value(Bytes(bytes)).unwrap_or_default();
                let url = format!("data:{kind};base64,{}", bytes.as_str().unwrap_or_default());
                Part::File { url, media_type: Some(kind), filename: some(filename) }
            }
        }
    }
}

impl From<Part> for message::Part {
    fn from(part: Part) -> Self {
        match part {
            Part::Text { content } => Self::text(content),
            Part::Data { content, media_type } => Self { media_type, ..Self::data(content) },
            Part::File { url, media_type, filename } => Self {
                filename: filename.unwrap_or_default(),
                media_type: media_type.unwrap_or_default(),
                ..Self::new(Content::Url(url))
            },
        }
    }
}

impl From<message::Message> for Message {
    fn from(message: message::Message) -> Self {
        let role = if message.role == Role::Agent { "assistant" } else { "user" };
        let parts = message.parts.into_iter().map(Part::from).collect();
        Self { role: role.to_owned(), parts, metadata: message.metadata }
    }
}

impl From<Message> for message::Message {
    fn from(message: Message) -> Self {
        let role = if message.role == "user" { Role::User } else { Role::Agent };
        let parts = message.parts.into_iter().map(message::Part::from).collect();
        Self { role, parts, metadata: message.metadata, ..Self::default() }
    }
}

impl From<Artifact> for message::Artifact {
    fn from(artifact: Artifact) -> Self {
        let content = match (artifact.content, artifact.url) {
            (Some(Value::String(text)), _) => Content::Text(text),
            (Some(data), _) => Content::Data(data),
            (None, url) => Content::Url(url.unwrap_or_default()),
        };
        let media_type = artifact.media_type.unwrap_or_default();
        let parts = vec![message::Part { media_type, ..message::Part::new(content) }];
        let metadata = artifact.metadata;
        Self { artifact_id: artifact.id, parts, metadata, ..Self::default() }
    }
}

impl From<Task> for task::Task {
    /// The newest message of the agent is what its status says.
    fn from(task: Task) -> Self {
        let mut history: Vec<message::Message> =
            task.messages.into_iter().map(message::Message::from).collect();
        let answered = history.iter().rposition(|message| message.role == Role::Agent);
        let is_last = |at: &usize| at + 1 == history.len();
        let message = answered.filter(is_last).and_then(|_| history.pop());
        let status =
            task::TaskStatus { state: state_of(&task.state), message, timestamp: task.updated_at };
        let artifacts = task.artifacts.into_iter().map(message::Artifact::from).collect();
        Self {
            id: task.id,
            context_id: String::new(),
            status,
            artifacts,
            history,
            metadata: task.metadata,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_newest_answer_is_the_status_in_1_0() {
        let written = json!({"id": "t", "state": "COMPLETED",
            "createdAt": "2026-01-02T03:04:05.678Z", "updatedAt": "2026-01-02T03:04:06.000Z",
            "messages": [
                {"role": "user", "parts": [{"type": "text", "content": "go"}]},
                {"role": "assistant", "parts": [{"type": "data", "content": {"n": 1},
                    "mediaType": "application/json"}]}],
            "artifacts": [{"id": "a", "type": "text", "content": "x", "mediaType": "text/plain"}]});
        let read: Task = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), written);
        let task = task::Task::from(read);
        assert_eq!((task.status.state, task.history.len()), (TaskState::Completed, 1));
        let said = task.status.message.unwrap();
        assert_eq!(said.parts[0].as_data(), Some(&json!({"n": 1})));
        assert_eq!(task.artifacts[0].parts[0].as_text(), Some("x"));
    }

    #[test]
    fn states_that_the_profile_lacks_have_the_nearest_word() {
        let words: Vec<_> = TaskState::ALL.iter().map(|state| state_word(*state)).collect();
        assert_eq!(
            words,
            [
                "WORKING", "SUBMITTED", "WORKING", "COMPLETED", "FAILED", "CANCELED",
                "INPUT_REQUIRED", "FAILED", "WORKING"
            ]
        );
        assert_eq!(state_of("completed"), TaskState::Unspecified, "they are in upper case");
    }

    #[test]
    fn a_card_mixes_both_spellings() {
        let written = json!({"schemaVersion": "1.0", "humanReadableId": "org/a",
            "agentVersion": "1", "name": "A", "description": "d", "url": "https://a.test/a2a",
            "provider": {"name": "p", "support_contact": "s"},
            "capabilities": {"a2aVersion": "1.0", "supportsPushNotifications": true},
            "authSchemes": [{"scheme": "oauth2", "tokenUrl": "https://a.test/t",
                "service_identifier": "probe"}],
            "skills": [{"id": "s", "name": "S", "description": "", "input_schema": {}}]});
        let card: AgentCard = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(card.auth_schemes[0].service_identifier.as_deref(), Some("probe"));
        assert_eq!(serde_json::to_value(card).unwrap(), written);
    }

    #[test]
    fn parts_of_1_0_find_their_place() {
        let parts = [
            (message::Part::text("a"), json!({"type": "text", "content": "a"})),
            (message::Part::data(json!(7)), json!({"type": "text", "content": "7"})),
            (
                message::Part::new(Content::Raw(b"tck".to_vec())),
                json!({"type": "file", "url": "data:application/octet-stream;base64,dGNr",
                    "mediaType": "application/octet-stream"}),
            ),
        ];
        for (part, written) in parts {
            assert_eq!(serde_json::to_value(Part::from(part)).unwrap(), written);
        }
    }
}
