//! What a tool gave, as a tool result in MCP's shape: `content` and, where the tool promises a
//! structure, `structuredContent`. It is written as the members of a JSON object, without the
//! braces, so that a door adds its own and nothing is built twice. And what a run gave, as a whole.

use engine::Engine;
use kernel::tool::call::{Caller, ToolSpec, Yields};
use kernel::values::ids::ContentHash;
use serde_json::Value;

/// Which structured outputs a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Structures {
    /// None: MCP 2025-03-26.
    None,
    /// Objects; any other value is wrapped as `{result: ..}`: MCP 2025-06-18 and 2025-11-25.
    Objects,
    /// Any value: MCP 2026-07-28, and `/rpc`.
    Any,
}

/// A tool's output: `"content":[..],"structuredContent":..`.
pub(crate) fn content(spec: &ToolSpec, output: &Value, takes: Structures) -> String {
    if spec.yields == Yields::Content && output["content"].is_array() {
        return inside(output.to_string());
    }
    let json = output.to_string();
    let mut members = String::with_capacity(2 * json.len() + 80);
    members.push_str("\"content\":[{\"type\":\"text\",\"text\":");
    if output.is_string() {
        members.push_str(&json);
    } else {
        quote(&mut members, &json);
    }
    members.push_str("}]");
    if let Some(schema) = &spec.output_schema {
        structure(&mut members, (schema.as_ref(), output), &json, takes);
    }
    members
}

/// An output as a whole: a run keeps a large one as a blob and names that.
pub(crate) async fn whole(engine: &Engine, caller: &Caller, output: Value) -> Value {
    let hash = output.as_str().and_then(|text| text.strip_prefix("blob://"));
    let Some(hash) = hash.filter(|hash| hash.len() == 64) else { return output };
    let blob = engine.sessions().blob(caller, &ContentHash::from(hash)).await;
    let read = blob.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    read.unwrap_or(output)
}

/// A failure that the caller's model can read: `"content":[..],"isError":true`.
pub(crate) fn failure(message: &str) -> String {
    let mut members = words(message);
    members.push_str(",\"isError\":true");
    members
}

/// Words with values for programs beside them: `"content":[..],"structuredContent":..`.
pub(crate) fn words_with(message: &str, values: &Value) -> String {
    let mut members = words(message);
    members.push_str(",\"structuredContent\":");
    members.push_str(&values.to_string());
    members
}

/// Words: `"content":[..]`.
pub(crate) fn words(message: &str) -> String {
    let mut members = String::with_capacity(message.len() + 64);
    members.push_str("\"content\":[{\"type\":\"text\",\"text\":");
    // A text as JSON: this cannot fail.
    members.push_str(&serde_json::to_string(message).unwrap_or_default());
    members.push_str("}]");
    members
}

/// Whether what this schema describes is wrapped as `{result: ..}` for clients that take objects
/// only. The schema decides, not the value: a client holds each value against the listed schema.
pub(crate) fn is_wrapped(schema: &Value) -> bool {
    schema["type"] != "object"
}

fn structure(
    members: &mut String,
    (schema, output): (&Value, &Value),
    json: &str,
    takes: Structures,
) {
    let wrapped = is_wrapped(schema);
    // A plan's answer is not held against its schema, and a large one is a blob's address: what is
    // plainly not as promised is not passed off as it.
    let broken = !wrapped && !output.is_object();
    if takes == Structures::None || broken {
        return;
    }
    members.push_str(",\"structuredContent\":");
    if wrapped && takes == Structures::Objects {
        members.push_str("{\"result\":");
        members.push_str(json);
        members.push('}');
    } else {
        members.push_str(json);
    }
}

/// JSON text as a JSON string. Only quotes and backslashes of it need care: everything else that
/// would is written with backslashes already.
fn quote(members: &mut String, json: &str) {
    members.push('"');
    let mut rest = json;
    while let Some(at) = rest.find(['"', '\\']) {
        let (before, after) = rest.split_at(at);
        let (special, after) = after.split_at(1);
        members.push_str(before);
        members.push('\\');
        members.push_str(special);
        rest = after;
    }
    members.push_str(rest);
    members.push('"');
}

/// An object's text without its braces.
fn inside(mut object: String) -> String {
    object.pop();
    if !object.is_empty() {
        object.remove(0);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::tool::call::{Pace, Reach};
    use serde_json::json;
    use std::sync::Arc;

    fn spec(yields: Yields, output_schema: Option<Value>) -> ToolSpec {
        ToolSpec {
            name: "t".into(),
            title: String::new(),
            description: String::new(),
            input_schema: Arc::new(json!({"type": "object"})),
            output_schema: output_schema.map(Arc::new),
            reach: Reach::Reads,
            idempotent: true,
            tags: Vec::new(),
            pace: Pace::Quick,
            yields,
            unrecorded: false,
            listed: None,
        }
    }

    fn read(members: &str) -> Value {
        serde_json::from_str(&format!("{{{members}}}")).unwrap()
    }

    fn value(schema: Option<Value>, output: Value, takes: Structures) -> Value {
        read(&content(&spec(Yields::Value, schema), &output, takes))
    }

    #[test]
    fn a_text_is_itself_and_anything_else_is_compact_json() {
        for output in [
            json!("a \"quoted\" \\ line\nand ü"),
            json!({"a": [1, "b\"\\\n\u{1}"], "é": null}),
            json!(3),
            json!(null),
            json!("\u{2028}"),
        ] {
            let result = value(None, output.clone(), Structures::Any);
            let text = match &output {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(result, json!({"content": [{"type": "text", "text": text}]}));
        }
    }

    #[test]
    fn what_is_promised_is_structured_as_the_client_takes_it() {
        let number = json!({"type": "number"});
        let structure = |schema: &Value, output: Value, takes| {
            value(Some(schema.clone()), output, takes).get("structuredContent").cloned()
        };
        assert_eq!(structure(&number, json!(3), Structures::Any), Some(json!(3)));
        let wrapped = Some(json!({"result": 3}));
        assert_eq!(structure(&number, json!(3), Structures::Objects), wrapped);
        assert_eq!(structure(&number, json!(3), Structures::None), None);
        let object = json!({"type": "object"});
        for takes in [Structures::Any, Structures::Objects] {
            assert_eq!(structure(&object, json!({"a": 1}), takes), Some(json!({"a": 1})));
            assert_eq!(structure(&object, json!("blob://00"), takes), None);
        }
        // Listed as wrapped, so wrapped, though this value is an object.
        let wrapped = Some(json!({"result": {"a": 1}}));
        assert_eq!(structure(&json!({}), json!({"a": 1}), Structures::Objects), wrapped);
    }

    #[test]
    fn blocks_of_content_pass_as_they_are() {
        let blocks = json!({"content": [{"type": "image", "data": "", "mimeType": "image/png"}],
            "structuredContent": {"a": 1}, "isError": false, "_meta": {"x": 1}});
        let passed = content(&spec(Yields::Content, None), &blocks, Structures::None);
        assert_eq!(read(&passed), blocks);
        let odd = content(&spec(Yields::Content, None), &json!({"a": 1}), Structures::Any);
        assert_eq!(read(&odd)["content"][0]["text"], "{\"a\":1}");
    }

    #[test]
    fn failures_and_words_are_content_too() {
        let failed = json!({"content": [{"type": "text", "text": "no \"x\""}], "isError": true});
        assert_eq!(read(&failure("no \"x\"")), failed);
        let said = read(&words_with("wait", &json!({"run": "r"})));
        assert_eq!(said["structuredContent"], json!({"run": "r"}));
    }
}
