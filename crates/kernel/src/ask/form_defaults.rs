//! Defaults of a form: fields that a person leaves out get the default of the tool's schema, because
//! whoever answers an ask may not have seen the form. Answers of the client that made the call are
//! not changed.

use crate::tool::call::InputRequest;
use serde_json::{Map, Value};

/// What was with_defaults into what is wanted, with what it leaves out.
pub fn with_defaults(content: Value, want: &InputRequest) -> Value {
    let defaults = defaults(want);
    let mut fields = match content {
        Value::Object(fields) => fields,
        Value::Null if !defaults.is_empty() => Map::new(),
        other => return other,
    };
    for (name, default) in defaults {
        fields.entry(name).or_insert(default);
    }
    Value::Object(fields)
}

fn defaults(want: &InputRequest) -> Map<String, Value> {
    let InputRequest::Form { schema, .. } = want else { return Map::new() };
    let fields = schema.get("properties").and_then(Value::as_object);
    let default =
        |(name, field): (&String, &Value)| Some((name.clone(), field.get("default")?.clone()));
    fields.into_iter().flatten().filter_map(default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn form(properties: Value) -> InputRequest {
        let schema = Arc::new(json!({"type": "object", "properties": properties}));
        InputRequest::Form { message: "m".to_owned(), schema }
    }

    #[test]
    fn missing_form_fields_get_their_defaults() {
        let form = form(json!({
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["on", "off"], "default": "on"},
            "sure": {"type": "boolean", "default": false},
            "some": {"type": "array", "items": {"enum": ["a", "b"]}, "default": ["a"]},
            "free": {"type": "string"},
        }));
        let all = json!({"name": "John Doe", "age": 30, "score": 95.5, "status": "on",
            "sure": false, "some": ["a"]});
        for content in [Value::Null, json!({})] {
            assert_eq!(with_defaults(content, &form), all);
        }
        let said = with_defaults(json!({"name": "Ann", "sure": true}), &form);
        assert_eq!(
            (&said["name"], &said["sure"], &said["age"]),
            (&json!("Ann"), &json!(true), &json!(30))
        );
        assert_eq!(said.get("free"), None);
        assert_eq!(with_defaults(json!("odd"), &form), "odd");
    }

    #[test]
    fn only_forms_with_defaults_add_fields() {
        let plain = form(json!({"a": {"type": "string"}}));
        for (content, want) in [
            (Value::Null, plain.clone()),
            (json!({}), plain),
            (json!({"roots": []}), InputRequest::Roots),
            (
                Value::Null,
                InputRequest::Url { message: "m".to_owned(), url: "https://a.test/".to_owned() },
            ),
        ] {
            assert_eq!(with_defaults(content.clone(), &want), content);
        }
    }
}
