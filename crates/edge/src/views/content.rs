//! What a tool gave, as a tool result in MCP's shape: `content` and, where the tool promises a
//! structure, `structuredContent`, as JSON text. And what a run gave, as a whole.

use engine::Engine;
use kernel::tool::call::{Caller, OutputKind, ToolSpec};
use kernel::values::ids::ContentHash;
use serde_json::Value;

/// A tool's output: `{"content":[..],"structuredContent":..}`.
pub fn content(spec: &ToolSpec, output: &Value) -> String {
    let json = output.to_string();
    if spec.yields == OutputKind::Content && output["content"].is_array() {
        return json;
    }
    // A plan's answer is not held against its schema, and a large one is a blob's address: what is
    // plainly not as promised is not passed off as it.
    let fits = |schema: &Value| schema["type"] != "object" || output.is_object();
    let structure = match spec.output_schema.as_deref().is_some_and(fits) {
        true => format!(",\"structuredContent\":{json}"),
        false => String::new(),
    };
    words(output.as_str().unwrap_or(&json), &structure)
}

/// An output as a whole: a run keeps a large one as a blob and names that.
pub async fn whole(engine: &Engine, caller: &Caller, output: Value) -> Value {
    let hash = output.as_str().and_then(|text| text.strip_prefix("blob://"));
    let Some(hash) = hash.filter(|hash| hash.len() == 64) else { return output };
    let blob = engine.sessions().blob(caller, &ContentHash::from(hash)).await;
    let read = blob.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    read.unwrap_or(output)
}

/// A failure that the caller's model can read: `{"content":[..],"isError":true}`.
pub fn failure(message: &str) -> String {
    words(message, ",\"isError\":true")
}

/// No failure, in words with values for programs beside them.
pub fn words_with(message: &str, values: &Value) -> String {
    words(message, &format!(",\"structuredContent\":{values},\"isError\":false"))
}

/// Words, and more members after them.
fn words(message: &str, more: &str) -> String {
    // A text as JSON: this cannot fail.
    let text = serde_json::to_string(message).unwrap_or_default();
    format!("{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}]{more}}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn spec(yields: OutputKind, output_schema: Option<Value>) -> ToolSpec {
        ToolSpec {
            output_schema: output_schema.map(Arc::new),
            idempotent: true,
            yields,
            ..testkit::specs::tool("t")
        }
    }

    fn read(result: &str) -> Value {
        serde_json::from_str(result).unwrap()
    }

    fn value(schema: Option<Value>, output: Value) -> Value {
        read(&content(&spec(OutputKind::Value, schema), &output))
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
            let result = value(None, output.clone());
            let text = match &output {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(result, json!({"content": [{"type": "text", "text": text}]}));
        }
    }

    #[test]
    fn output_with_a_promised_schema_is_structured() {
        let structure = |schema: Value, output: Value| {
            value(Some(schema), output).get("structuredContent").cloned()
        };
        assert_eq!(structure(json!({"type": "number"}), json!(3)), Some(json!(3)));
        assert_eq!(structure(json!({}), json!({"a": 1})), Some(json!({"a": 1})));
        let object = json!({"type": "object"});
        assert_eq!(structure(object.clone(), json!({"a": 1})), Some(json!({"a": 1})));
        assert_eq!(structure(object, json!("blob://00")), None);
    }

    #[test]
    fn blocks_of_content_pass_as_they_are() {
        let blocks = json!({"content": [{"type": "image", "data": "", "mimeType": "image/png"}],
            "structuredContent": {"a": 1}, "isError": false, "_meta": {"x": 1}});
        let passed = content(&spec(OutputKind::Content, None), &blocks);
        assert_eq!(read(&passed), blocks);
        let odd = content(&spec(OutputKind::Content, None), &json!({"a": 1}));
        assert_eq!(read(&odd)["content"][0]["text"], "{\"a\":1}");
    }

    #[test]
    fn failures_and_words_are_content_too() {
        let failed = json!({"content": [{"type": "text", "text": "no \"x\""}], "isError": true});
        assert_eq!(read(&failure("no \"x\"")), failed);
        let said = words_with("wait", &json!({"run": "r"}));
        let content = r#""content":[{"type":"text","text":"wait"}]"#;
        let values = r#""structuredContent":{"run":"r"},"isError":false"#;
        assert_eq!(said, format!("{{{content},{values}}}"));
    }
}
