//! Messages and artifacts of A2A 1.0, and the parts that both are made of.

use super::value::{Bytes, Struct, encoded, is_default, members, or_default, present, proto_enum};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

proto_enum! {
    /// Who wrote a message.
    Role, "a role: `ROLE_USER` or `ROLE_AGENT`" {
        /// It is not said.
        #[default]
        Unspecified = 0 "ROLE_UNSPECIFIED",
        /// The client.
        User = 1 "ROLE_USER",
        /// The agent.
        Agent = 2 "ROLE_AGENT",
    }
}

/// What a part holds: exactly one of these.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    Text(String),
    /// The bytes of a file.
    Raw(Vec<u8>),
    /// Where a file is.
    Url(String),
    /// Any JSON value; null is one.
    Data(Value),
}

/// A part of a message or of an artifact.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "PartBody")]
pub struct Part {
    /// What it holds.
    pub content: Content,
    pub metadata: Struct,
    /// The name of a file; empty if there is none.
    pub filename: String,
    /// What kind of content it is; empty if that is not said.
    pub media_type: String,
}

impl Part {
    /// A part with this content and nothing else.
    pub fn new(content: Content) -> Self {
        let filename = String::new();
        let media_type = String::new();
        Self { content, metadata: Struct::new(), filename, media_type }
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Content::Text(text.into()))
    }

    /// A value, as JSON.
    pub fn data(data: Value) -> Self {
        Self { media_type: "application/json".to_owned(), ..Self::new(Content::Data(data)) }
    }

    /// Its text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            Content::Raw(_) | Content::Url(_) | Content::Data(_) => None,
        }
    }

    /// Its value, if it has one.
    pub fn as_data(&self) -> Option<&Value> {
        match &self.content {
            Content::Data(data) => Some(data),
            Content::Text(_) | Content::Raw(_) | Content::Url(_) => None,
        }
    }
}

/// A part as it is read.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PartBody {
    text: Option<String>,
    raw: Option<Bytes>,
    url: Option<String>,
    #[serde(deserialize_with = "present")]
    data: Option<Value>,
    #[serde(deserialize_with = "members")]
    metadata: Struct,
    #[serde(deserialize_with = "or_default")]
    filename: String,
    #[serde(alias = "media_type", deserialize_with = "or_default")]
    media_type: String,
}

impl TryFrom<PartBody> for Part {
    type Error = &'static str;

    fn try_from(body: PartBody) -> Result<Self, Self::Error> {
        let PartBody { text, raw, url, data, metadata, filename, media_type } = body;
        let others = [text.is_some(), raw.is_some(), url.is_some()];
        // Null beside a content is how some writers say that there is no data.
        let has_other = others.contains(&true);
        let data = data.filter(|data| !(data.is_null() && has_other));
        let contents = [
            text.map(Content::Text),
            raw.map(|Bytes(bytes)| Content::Raw(bytes)),
            url.map(Content::Url),
            data.map(Content::Data),
        ];
        let mut contents = contents.into_iter().flatten();
        match (contents.next(), contents.next()) {
            (Some(content), None) => Ok(Self { content, metadata, filename, media_type }),
            (None, _) => {
                Err("a part has one of `text`, `raw`, `url` and `data`, and this has none")
            }
            (Some(_), Some(_)) => {
                Err("a part has one of `text`, `raw`, `url` and `data`, and this has several")
            }
        }
    }
}

/// Written as it is: a part may be large, and is written several times.
impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { content, metadata, filename, media_type } = self;
        let mut body = serializer.serialize_map(None)?;
        match content {
            Content::Text(text) => body.serialize_entry("text", text)?,
            Content::Raw(bytes) => body.serialize_entry("raw", &encoded(bytes))?,
            Content::Url(url) => body.serialize_entry("url", url)?,
            Content::Data(data) => body.serialize_entry("data", data)?,
        }
        if !metadata.is_empty() {
            body.serialize_entry("metadata", metadata)?;
        }
        for (name, text) in [("filename", filename), ("mediaType", media_type)] {
            if !text.is_empty() {
                body.serialize_entry(name, text)?;
            }
        }
        body.end()
    }
}

/// A message. What is not there is empty; `missing` says whether something must be.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Message {
    /// Its id, made by who wrote it.
    #[serde(alias = "message_id", deserialize_with = "or_default")]
    pub message_id: String,
    /// The context that it belongs to.
    #[serde(alias = "context_id", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub context_id: String,
    /// The task that it belongs to.
    #[serde(alias = "task_id", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub task_id: String,
    #[serde(deserialize_with = "or_default")]
    pub role: Role,
    /// What it says.
    #[serde(deserialize_with = "or_default")]
    pub parts: Vec<Part>,
    #[serde(deserialize_with = "members", skip_serializing_if = "is_default")]
    pub metadata: Struct,
    /// The extensions that it uses.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub extensions: Vec<String>,
    /// Other tasks that it is about.
    #[serde(alias = "reference_task_ids", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub reference_task_ids: Vec<String>,
}

impl Message {
    /// The first required member that is not there.
    pub fn missing(&self) -> Option<&'static str> {
        if self.message_id.is_empty() {
            return Some("messageId");
        }
        if self.role == Role::Unspecified {
            return Some("role");
        }
        self.parts.is_empty().then_some("parts")
    }

    /// Its texts, one below the other.
    pub fn words(&self) -> String {
        let texts: Vec<&str> = self.parts.iter().filter_map(Part::as_text).collect();
        texts.join("\n")
    }
}

/// What a task made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Artifact {
    /// Its id within the task.
    #[serde(alias = "artifact_id", deserialize_with = "or_default")]
    pub artifact_id: String,
    /// A name for people.
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_part_has_one_content() {
        for (written, content) in [
            (json!({"text": ""}), Content::Text(String::new())),
            (json!({"raw": "dGNr"}), Content::Raw(b"tck".to_vec())),
            (json!({"url": "https://a.test/x"}), Content::Url("https://a.test/x".to_owned())),
            (json!({"data": null}), Content::Data(Value::Null)),
            (json!({"data": [1]}), Content::Data(json!([1]))),
        ] {
            let part: Part = serde_json::from_value(written.clone()).unwrap();
            assert_eq!(part, Part::new(content));
            assert_eq!(serde_json::to_value(part).unwrap(), written);
        }
        for wrong in [json!({}), json!({"text": "a", "url": "b"}), json!({"text": null})] {
            assert!(serde_json::from_value::<Part>(wrong.clone()).is_err(), "{wrong}");
        }
        let beside = json!({"text": "a", "data": null, "media_type": "text/plain", "more": 1});
        let part: Part = serde_json::from_value(beside).unwrap();
        assert_eq!((part.as_text(), part.media_type.as_str()), (Some("a"), "text/plain"));
    }

    #[test]
    fn both_spellings_of_names_are_read_and_one_is_written() {
        let read = json!({"message_id": "m", "role": 1, "parts": [{"text": "hi"}],
            "task_id": "t", "reference_task_ids": ["r"], "metadata": null, "contextId": null});
        let message: Message = serde_json::from_value(read).unwrap();
        assert_eq!((message.missing(), message.words()), (None, "hi".to_owned()));
        let written = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}],
            "taskId": "t", "referenceTaskIds": ["r"]});
        assert_eq!(serde_json::to_value(&message).unwrap(), written);
        assert!(serde_json::from_value::<Message>(json!({"role": "ROLE_BOSS"})).is_err());
    }

    #[test]
    fn a_missing_required_member_is_named() {
        let whole = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": ""}]});
        for member in ["messageId", "role", "parts"] {
            let mut part = whole.clone();
            part.as_object_mut().unwrap().remove(member);
            let message: Message = serde_json::from_value(part).unwrap();
            assert_eq!(message.missing(), Some(member));
        }
    }
}
