//! Normalises schemas of tools, arguments of calls, and JSON in text, for providers that require or
//! produce other shapes.

use kernel::conversation::llm::ToolCard;
use serde_json::{Map, Value, json};

/// The keys that providers do not take at the top of a tool's schema. What they say is checked when
/// the tool is called.
const NOT_AT_THE_TOP: &[&str] =
    &["$schema", "$id", "oneOf", "anyOf", "allOf", "not", "if", "then", "else", "enum", "const"];
/// Where arguments go that are no object.
const ODD_ARGUMENTS: &str = "arguments";
const THOUGHTS: (&str, &str) = ("<think>", "</think>");
const FENCE: &str = "```";

/// The schema of a tool's arguments as every provider takes it: an object's, with properties.
pub(crate) fn parameters(card: &ToolCard) -> Value {
    let mut schema: Map<String, Value> = card.input_schema.as_object().cloned().unwrap_or_default();
    schema.retain(|key, _| !NOT_AT_THE_TOP.contains(&key.as_str()));
    schema.insert("type".to_owned(), json!("object"));
    schema.entry("properties").or_insert_with(|| json!({}));
    Value::Object(schema)
}

/// The arguments of a call as they are given back: providers take nothing but an object.
pub(crate) fn object(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        Value::Null => json!({}),
        other => json!({ ODD_ARGUMENTS: other }),
    }
}

/// The arguments that a model wrote. Some write nothing for none, some write JSON into a JSON text;
/// what is no JSON stays the text that it is.
pub(crate) fn arguments(text: &str) -> Value {
    let text = text.trim();
    if text.is_empty() {
        return json!({});
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
            Ok(Value::Object(object)) => Value::Object(object),
            _ => Value::String(inner),
        },
        Ok(Value::Null) => json!({}),
        Ok(value) => value,
        Err(_) => Value::String(text.to_owned()),
    }
}

/// The JSON of an answer that was to be JSON: models without a grammar put thoughts before it and
/// fences around it. What is none in spite of that stays as it is.
pub(crate) fn answer(text: &str) -> String {
    let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
    let whole = text.trim();
    let spoken = whole
        .strip_prefix(THOUGHTS.0)
        .and_then(|rest| rest.split_once(THOUGHTS.1))
        .map_or(whole, |(_, after)| after.trim());
    let fenced = spoken
        .strip_prefix(FENCE)
        .and_then(|rest| rest.strip_suffix(FENCE))
        .and_then(|rest| rest.split_once('\n'))
        .map_or(spoken, |(_, inside)| inside.trim());
    let found = [whole, spoken, fenced].into_iter().find(|text| is_json(text));
    found.unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn tool_schemas_are_always_objects() {
        let card = |schema: Value| ToolCard {
            name: "t".to_owned(),
            description: String::new(),
            input_schema: Arc::new(schema),
        };
        let empty = json!({"type": "object", "properties": {}});
        assert_eq!(parameters(&card(json!({}))), empty);
        assert_eq!(parameters(&card(json!(true))), empty);
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "anyOf": [{"required": ["a"]}],
            "properties": {"a": {"anyOf": [{"type": "string"}]}},
            "required": ["a"],
        });
        let expected = json!({
            "type": "object",
            "properties": {"a": {"anyOf": [{"type": "string"}]}},
            "required": ["a"],
        });
        assert_eq!(parameters(&card(schema)), expected);
    }

    #[test]
    fn arguments_are_parsed_from_text_or_object() {
        assert_eq!(arguments(""), json!({}));
        assert_eq!(arguments("null"), json!({}));
        assert_eq!(arguments(" {\"a\": 1} "), json!({"a": 1}));
        assert_eq!(arguments(r#""{\"a\": 1}""#), json!({"a": 1}));
        assert_eq!(arguments(r#""a""#), json!("a"));
        assert_eq!(arguments("[1]"), json!([1]));
        assert_eq!(arguments("{\"a\": "), json!("{\"a\":"));
        assert_eq!(object(&json!("{\"a\":")), json!({"arguments": "{\"a\":"}));
        assert_eq!(object(&json!({"a": 1})), json!({"a": 1}));
        assert_eq!(object(&Value::Null), json!({}));
    }

    #[test]
    fn json_is_extracted_from_reasoning_and_code_fences() {
        for text in [
            "{\"a\": 1}",
            "\n{\"a\": 1}\n",
            "```json\n{\"a\": 1}\n```",
            "<think>\nLet me see.\n</think>\n\n{\"a\": 1}",
            "<think></think>```\n{\"a\": 1}```",
        ] {
            assert_eq!(answer(text), "{\"a\": 1}", "{text}");
        }
        for text in ["I will not.", "{\"a\": ", "<think>{\"a\": 1}", ""] {
            assert_eq!(answer(text), text);
        }
    }
}
