//! `multipart/form-data`: each field is a part, and a list is one for each item. A file is an
//! argument of its own shape, which is also that of bytes in an output.

use super::super::document::OpenApi;
use super::super::encode::text;
use super::{Content, encodings};
use crate::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kernel::tool::arguments::misfit;
use kernel::values::ids::ContentHash;
use outbound::answer::{essence, is_json};
use reqwest::header::HeaderValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// How many schemas inside a field's own are looked through for a file: a file that may be null,
/// and a list of such.
const DEPTH_MAX: usize = 2;
/// How many alternatives of each.
const ALTERNATIVES_MAX: usize = 16;
/// How many digits of a hash divide parts: no content has its own hash in it.
const BOUNDARY_DIGITS: usize = 32;

/// The fields that a document says something of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fields(BTreeMap<String, Field>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Field {
    holds: FieldKind,
    /// The type of its content, as the document has it.
    media: Option<String>,
    /// Whether a list is one part: `a,b`.
    joined: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum FieldKind {
    #[default]
    Value,
    File,
    Files,
}

impl Fields {
    /// The fields of a body with this schema; `content` is what the document says beside it.
    pub(super) fn read(
        document: &OpenApi,
        schema: &Value,
        content: &Value,
    ) -> Result<Self, String> {
        let mut fields: BTreeMap<String, Field> = BTreeMap::new();
        let properties = document.follow(schema)?.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let holds = holds(document, property, DEPTH_MAX)?;
            fields.insert(name.clone(), Field { holds, ..Field::default() });
        }
        for (name, said) in encodings(content) {
            let field = fields.entry(name.clone()).or_default();
            field.media = said.get("contentType").and_then(Value::as_str).and_then(sendable);
            field.joined = said.get("explode") == Some(&Value::Bool(false));
        }
        Ok(Self(fields))
    }

    /// Gives the files among these arguments the schema of a file.
    pub(super) fn show_files(&self, properties: &mut Map<String, Value>) {
        for (name, schema) in properties {
            let about = schema.get("description").cloned();
            let shown = match self.0.get(name).map(|field| field.holds) {
                Some(FieldKind::File) => file_schema(about),
                Some(FieldKind::Files) => json!({"type": "array", "items": file_schema(about)}),
                Some(FieldKind::Value) | None => continue,
            };
            *schema = shown;
        }
    }

    /// The body of these fields.
    pub(super) fn content(&self, value: &Value) -> Result<Content> {
        let Value::Object(given) = value else {
            return Err(misfit("the body must be an object: each of its members is a part"));
        };
        let unsaid = Field::default();
        let mut parts = Vec::new();
        for (name, value) in given.iter().filter(|(_, value)| !value.is_null()) {
            let field = self.0.get(name).unwrap_or(&unsaid);
            match value {
                Value::Array(items) if !field.joined => {
                    for item in items {
                        parts.push(field.part(name, item)?);
                    }
                }
                value => parts.push(field.part(name, value)?),
            }
        }
        let hash = ContentHash::of(&parts.concat());
        let digits: String = hash.as_str().chars().take(BOUNDARY_DIGITS).collect();
        let boundary = format!("waypost-{digits}");
        let mut bytes = Vec::new();
        for part in &parts {
            bytes.extend_from_slice(format!("--{boundary}\r\n").as_bytes());
            bytes.extend_from_slice(part);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        Ok(Content { media: format!("multipart/form-data; boundary={boundary}"), bytes })
    }
}

impl Field {
    /// The part of one value: its headers and its content.
    fn part(&self, name: &str, value: &Value) -> Result<Vec<u8>> {
        if self.holds != FieldKind::Value {
            return self.file(name, value);
        }
        let (content, usual) = match value {
            Value::Array(items) if self.joined => {
                let items = items.iter().map(|item| text(name, item));
                (items.collect::<Result<Vec<_>>>()?.join(","), None)
            }
            Value::Array(_) | Value::Object(_) => (value.to_string(), Some("application/json")),
            _ if self.media.as_deref().is_some_and(|media| is_json(&essence(media))) => {
                (value.to_string(), None)
            }
            plain => (text(name, plain)?, None),
        };
        let media = self.media.as_deref().or(usual);
        Ok(written(&Head { name, filename: None, media }, content.as_bytes()))
    }

    /// The part of a file: `{base64 or text, filename, mediaType}`, or base64 alone.
    fn file(&self, name: &str, value: &Value) -> Result<Vec<u8>> {
        let word = |key: &str| value.get(key).and_then(Value::as_str);
        let decoded = |text: &str| {
            let bytes = STANDARD.decode(text);
            bytes.map_err(|_| misfit(format!("the file `{name}` is not in base64")))
        };
        let (bytes, usual) = match (value.as_str().or(word("base64")), word("text")) {
            (Some(base64), None) => (decoded(base64)?, "application/octet-stream"),
            (None, Some(text)) => (text.as_bytes().to_vec(), "text/plain; charset=utf-8"),
            (Some(_), Some(_)) | (None, None) => {
                return Err(misfit(format!("the file `{name}` needs `base64` or `text`")));
            }
        };
        let media =
            match word("mediaType") {
                Some(said) => Some(sendable(said).ok_or_else(|| {
                    misfit(format!("`mediaType` of the file `{name}` is not one"))
                })?),
                None => self.media.clone(),
            };
        let media = Some(media.as_deref().unwrap_or(usual));
        let filename = Some(word("filename").unwrap_or(name));
        Ok(written(&Head { name, filename, media }, &bytes))
    }
}

/// Headers of a part.
struct Head<'a> {
    name: &'a str,
    filename: Option<&'a str>,
    media: Option<&'a str>,
}

fn written(head: &Head<'_>, content: &[u8]) -> Vec<u8> {
    let mut written = format!("Content-Disposition: form-data; name=\"{}\"", quoted(head.name));
    if let Some(filename) = head.filename {
        written.push_str(&format!("; filename=\"{}\"", quoted(filename)));
    }
    if let Some(media) = head.media {
        written.push_str(&format!("\r\nContent-Type: {media}"));
    }
    written.push_str("\r\n\r\n");
    let mut written = written.into_bytes();
    written.extend_from_slice(content);
    written
}

/// A name between quotes, as browsers write it: nothing in it can end the line.
fn quoted(name: &str) -> String {
    let mut quoted = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            '"' => quoted.push_str("%22"),
            '\r' => quoted.push_str("%0D"),
            '\n' => quoted.push_str("%0A"),
            other => quoted.push(other),
        }
    }
    quoted
}

/// The first type of a list, if it is one that can be sent.
fn sendable(said: &str) -> Option<String> {
    let first = said.split(',').next().unwrap_or_default().trim();
    let is_one = first.contains('/') && !first.contains('*');
    (is_one && HeaderValue::from_str(first).is_ok()).then(|| first.to_owned())
}

/// The kind of a schema's value.
fn holds(document: &OpenApi, schema: &Value, depth: usize) -> Result<FieldKind, String> {
    let schema = document.follow(schema)?;
    let word = |key: &str| schema.get(key).and_then(Value::as_str);
    let is_binary = |media: &str| !media.starts_with("text/") && !is_json(&essence(media));
    // OpenAPI 3.0 says it by the format, 3.1 by a type that nothing encodes.
    let encoded = word("contentEncoding").is_some();
    if word("format") == Some("binary")
        || (!encoded && word("contentMediaType").is_some_and(is_binary))
    {
        return Ok(FieldKind::File);
    }
    let Some(depth) = depth.checked_sub(1) else { return Ok(FieldKind::Value) };
    if let Some(items) = schema.get("items")
        && holds(document, items, depth)? == FieldKind::File
    {
        return Ok(FieldKind::Files);
    }
    let lists = ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| schema.get(*key)?.as_array());
    for alternative in lists.flatten().take(ALTERNATIVES_MAX) {
        let found = holds(document, alternative, depth)?;
        if found != FieldKind::Value {
            return Ok(found);
        }
    }
    Ok(FieldKind::Value)
}

fn file_schema(about: Option<Value>) -> Value {
    let about = about.unwrap_or_else(|| "A file: its bytes in `base64`, or its `text`.".into());
    json!({
        "type": "object",
        "description": about,
        "properties": {
            "base64": {"type": "string", "contentEncoding": "base64"},
            "text": {"type": "string"},
            "filename": {"type": "string"},
            "mediaType": {"type": "string"}
        },
        "additionalProperties": false
    })
}
