//! The specs of the demo's tools. Their MCP hints are exact: a new event overwrites nothing, and
//! nothing outside of this machine is touched.

use kernel::tool::call::{OutputKind, Pace, Reach, ToolSpec};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use wire::mcp::META_IDEMPOTENCY_KEY;

/// What a tool does to what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Does {
    /// It looks only.
    Reads,
    /// It adds something, once under each call's key.
    Adds,
    /// It puts something in the place of what was there; once more changes nothing.
    Changes,
}

/// A tool as it is listed.
#[derive(Debug)]
pub(crate) struct Card {
    pub(crate) name: &'static str,
    /// A short title for people.
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) family: &'static str,
    pub(crate) does: Does,
    /// JSON Schema of its arguments.
    pub(crate) input: Value,
    /// JSON Schema of its output.
    pub(crate) output: Value,
}

impl Card {
    /// The whole of it.
    pub(crate) fn spec(self) -> ToolSpec {
        let Card { name, title, description, family, does, input, output } = self;
        let mut listed = json!({
            "title": title,
            "description": description,
            "annotations": {
                "readOnlyHint": does == Does::Reads,
                "destructiveHint": does == Does::Changes,
                "idempotentHint": does != Does::Adds,
                "openWorldHint": false,
            },
        });
        if does == Does::Adds {
            listed["_meta"] = json!({META_IDEMPOTENCY_KEY: true});
        }
        ToolSpec {
            name: name.into(),
            title: title.to_owned(),
            description: description.to_owned(),
            input_schema: Arc::new(input),
            output_schema: Some(Arc::new(output)),
            reach: if does == Does::Reads { Reach::Reads } else { Reach::Writes },
            idempotent: true,
            tags: vec![family.to_owned()],
            pace: Pace::Quick,
            yields: OutputKind::Value,
            // The caller keeps the journal; what is done is in the files.
            unrecorded: true,
            listed: Some(Arc::new(listed)),
        }
    }
}

/// The schema of an object that always has these members.
pub(crate) fn object<'n>(members: impl IntoIterator<Item = (&'n str, Value)>) -> Value {
    let mut required = Vec::new();
    let mut properties = Map::new();
    for (name, schema) in members {
        required.push(name);
        properties.insert(name.to_owned(), schema);
    }
    json!({"type": "object", "properties": properties, "required": required})
}

/// The schema of an object that has these texts.
pub(crate) fn texts(names: &[&str]) -> Value {
    object(names.iter().map(|name| (*name, json!({"type": "string"}))))
}

/// The schema of an object that has a list under this name.
pub(crate) fn list(name: &str, items: Value) -> Value {
    object([(name, json!({"type": "array", "items": items}))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_required_in_the_order_in_which_they_are_written() {
        let text = json!({"type": "string"});
        let items = json!({
            "type": "object",
            "properties": {"b": text, "a": text},
            "required": ["b", "a"],
        });
        let expected = json!({
            "type": "object",
            "properties": {"all": {"type": "array", "items": items}},
            "required": ["all"],
        });
        assert_eq!(list("all", texts(&["b", "a"])), expected);
    }
}
