//! The profile of AgentVault: tasks whose messages are the answer, states in upper case, and a card
//! that spells some of its members with underscores. What is read becomes the types of 1.0, and
//! what is written is made of them.

use super::message::{self, Content, Role};
use super::task::{self, TaskState};
use super::value::{
    Struct, Timestamp, encoded, is_default, members, or_default, plain, plain_or_none,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The media type of data.
const JSON: &str = "application/json";
/// The media type of bytes that have none.
const BYTES: &str = "application/octet-stream";

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
fn state_of(word: &str) -> TaskState {
    let known = STATES.iter().find(|(_, known)| *known == word);
    known.map_or(TaskState::Unspecified, |(state, _)| *state)
}

/// The word of who wrote a message.
pub fn role_word(role: Role) -> &'static str {
    if role == Role::Agent { "assistant" } else { "user" }
}

/// A message as the profile writes it.
pub fn message(role: &str, parts: Vec<message::Part>, metadata: &Struct) -> Value {
    let parts: Vec<Value> = parts.into_iter().map(part).collect();
    with_metadata(json!({"role": role, "parts": parts}), metadata)
}

fn part(part: message::Part) -> Value {
    let message::Part { content, filename, media_type, .. } = part;
    let file = |url: String, media_type: String| -> Value {
        let named = [("mediaType", media_type), ("filename", filename)];
        let named = named.into_iter().filter(|(_, text)| !text.is_empty());
        [("type", "file".to_owned()), ("url", url)].into_iter().chain(named).collect()
    };
    match content {
        Content::Text(content) => json!({"type": "text", "content": content}),
        Content::Url(url) => file(url, media_type),
        Content::Data(content @ Value::Object(_)) => {
            json!({"type": "data", "content": content, "mediaType": JSON})
        }
        Content::Data(other) => json!({"type": "text", "content": other.to_string()}),
        Content::Raw(bytes) => {
            let media_type = if media_type.is_empty() { BYTES.to_owned() } else { media_type };
            file(data_url(&media_type, &bytes), media_type)
        }
    }
}

/// The profile has no place for bytes but an address.
fn data_url(media_type: &str, bytes: &[u8]) -> String {
    format!("data:{media_type};base64,{}", encoded(bytes))
}

/// An artifact of one part, since the profile's have no others.
pub fn artifact(id: &str, part: message::Part, metadata: &Struct) -> Value {
    let message::Part { content, media_type, .. } = part;
    let (kind, name, value) = match content {
        Content::Text(text) => ("text", "content", Value::String(text)),
        Content::Data(data) => ("data", "content", data),
        Content::Url(url) => ("file", "url", Value::String(url)),
        Content::Raw(bytes) => {
            let known = if media_type.is_empty() { BYTES } else { media_type.as_str() };
            ("file", "url", Value::String(data_url(known, &bytes)))
        }
    };
    let mut written = json!({"id": id, "type": kind, name: value});
    if !media_type.is_empty() {
        written["mediaType"] = json!(media_type);
    }
    with_metadata(written, metadata)
}

fn with_metadata(mut written: Value, metadata: &Struct) -> Value {
    if !metadata.is_empty() {
        written["metadata"] = json!(metadata);
    }
    written
}

/// A part of a message as it is read.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Part {
    Text {
        content: String,
    },
    #[serde(rename_all = "camelCase")]
    File {
        url: String,
        #[serde(default)]
        media_type: Option<String>,
        #[serde(default)]
        filename: Option<String>,
    },
    #[serde(rename_all = "camelCase")]
    Data {
        /// An object, where it comes from a client.
        #[serde(deserialize_with = "plain")]
        content: Value,
        #[serde(default = "json_type")]
        media_type: String,
    },
}

fn json_type() -> String {
    JSON.to_owned()
}

/// A message as it is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Message {
    /// `user`, `assistant`, `system` or `tool`.
    #[serde(deserialize_with = "or_default")]
    pub role: String,
    #[serde(deserialize_with = "or_default")]
    pub parts: Vec<Part>,
    #[serde(deserialize_with = "members")]
    pub metadata: Struct,
}

/// What a task made, as it is read.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Artifact {
    #[serde(deserialize_with = "or_default")]
    pub id: String,
    #[serde(deserialize_with = "or_default", rename = "type")]
    pub kind: String,
    #[serde(deserialize_with = "plain_or_none")]
    pub content: Option<Value>,
    /// Or where it is.
    pub url: Option<String>,
    pub media_type: Option<String>,
    #[serde(deserialize_with = "members")]
    pub metadata: Struct,
}

/// A task as it is read.
#[derive(Debug, Default, Deserialize)]
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
    #[serde(deserialize_with = "or_default")]
    pub artifacts: Vec<Artifact>,
    #[serde(deserialize_with = "members")]
    pub metadata: Struct,
}

/// `tasks/send`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SendParams {
    /// The task that is continued.
    pub id: Option<String>,
    /// The message; it is required.
    pub message: Option<Message>,
    /// Where events are sent.
    pub webhook_url: Option<String>,
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

    #[test]
    fn the_newest_answer_is_the_status_in_1_0() {
        let read: Task = serde_json::from_value(json!({"id": "t", "state": "COMPLETED",
            "createdAt": "2026-01-02T03:04:05.678Z", "updatedAt": "2026-01-02T03:04:06.000Z",
            "messages": [
                {"role": "user", "parts": [{"type": "text", "content": "go"}]},
                {"role": "assistant", "parts": [{"type": "data", "content": {"n": 1},
                    "mediaType": "application/json"}]}],
            "artifacts": [{"id": "a", "type": "text", "content": "x",
                "mediaType": "text/plain"}]}))
        .unwrap();
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
    fn artifacts_of_1_0_are_mapped() {
        let metadata = Struct::from_iter([("n".to_owned(), json!(1))]);
        let file = message::Part {
            media_type: "text/plain".to_owned(),
            filename: "a.txt".to_owned(),
            ..message::Part::new(Content::Raw(b"tck".to_vec()))
        };
        for (given, written) in [
            (
                message::Part::text("a"),
                json!({"id": "x", "type": "text", "content": "a",
                "metadata": {"n": 1}}),
            ),
            (
                message::Part::data(json!([7])),
                json!({"id": "x", "type": "data", "content": [7],
                "mediaType": "application/json", "metadata": {"n": 1}}),
            ),
            (
                file,
                json!({"id": "x", "type": "file", "url": "data:text/plain;base64,dGNr",
                "mediaType": "text/plain", "metadata": {"n": 1}}),
            ),
        ] {
            assert_eq!(artifact("x", given, &metadata).to_string(), written.to_string());
        }
    }

    #[test]
    fn parts_of_1_0_are_mapped() {
        let parts = [
            (message::Part::text("a"), json!({"type": "text", "content": "a"})),
            (message::Part::data(json!(7)), json!({"type": "text", "content": "7"})),
            (
                message::Part::new(Content::Raw(b"tck".to_vec())),
                json!({"type": "file", "url": "data:application/octet-stream;base64,dGNr",
                    "mediaType": "application/octet-stream"}),
            ),
        ];
        for (given, written) in parts {
            assert_eq!(part(given), written);
        }
    }
}
