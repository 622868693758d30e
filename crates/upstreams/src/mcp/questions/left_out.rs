//! Fields of a form that its answer leaves out: they have the value that the form gives them by
//! default. The person who answers may not have seen the form, so it is not left to them.

use kernel::tool::call::Want;
use serde_json::{Map, Value, json};

/// The values that a form's fields have by default, by their names; none where no field has one.
pub(crate) fn defaults(want: &Want) -> Option<Value> {
    let Want::Form { schema, .. } = want else { return None };
    let fields = schema.get("properties")?.as_object()?;
    let default =
        |(name, field): (&String, &Value)| Some((name.clone(), field.get("default")?.clone()));
    let defaults: Map<String, Value> = fields.iter().filter_map(default).collect();
    (!defaults.is_empty()).then_some(Value::Object(defaults))
}

/// An answer with what it leaves out. One that does not accept the form stays as it is.
pub(crate) fn filled(mut answer: Value, defaults: Option<&Value>) -> Value {
    let Some(Value::Object(defaults)) = defaults else { return answer };
    if answer.get("action").is_none_or(|action| action != "accept") {
        return answer;
    }
    let content = &mut answer["content"];
    if content.is_null() {
        *content = json!({});
    }
    if let Value::Object(content) = content {
        for (name, default) in defaults {
            content.entry(name.clone()).or_insert_with(|| default.clone());
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn form(properties: Value) -> Want {
        let schema = Arc::new(json!({"type": "object", "properties": properties}));
        Want::Form { message: "m".to_owned(), schema }
    }

    #[test]
    fn what_an_answer_leaves_out_has_its_default() {
        let form = form(json!({
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["on", "off"], "default": "on"},
            "sure": {"type": "boolean", "default": false},
            "some": {"type": "array", "items": {"enum": ["a", "b"]}, "default": ["a"]},
            "free": {"type": "string"},
        }));
        let defaults = defaults(&form);
        let filled = |answer: Value| filled(answer, defaults.as_ref());
        let all = json!({"name": "John Doe", "age": 30, "score": 95.5, "status": "on",
            "sure": false, "some": ["a"]});
        for content in [Value::Null, json!({})] {
            let answer = filled(json!({"action": "accept", "content": content}));
            assert_eq!(answer, json!({"action": "accept", "content": all}));
        }
        assert_eq!(filled(json!({"action": "accept"}))["content"], all);
        let said = filled(json!({"action": "accept", "content": {"name": "Ann", "sure": true}}));
        assert_eq!(said["content"]["name"], "Ann");
        assert_eq!(said["content"]["sure"], true);
        assert_eq!(said["content"]["age"], 30);
        assert_eq!(said["content"].get("free"), None);
    }

    #[test]
    fn nothing_is_filled_in_that_was_not_accepted() {
        let defaults = Some(json!({"name": "Ann"}));
        for answer in [
            json!({"action": "decline"}),
            json!({"action": "cancel", "content": {}}),
            json!({"roots": []}),
            json!("accept"),
            json!({"action": "accept", "content": "odd"}),
        ] {
            assert_eq!(filled(answer.clone(), defaults.as_ref()), answer);
        }
        let accepted = json!({"action": "accept"});
        assert_eq!(filled(accepted.clone(), None), accepted);
    }

    #[test]
    fn only_a_form_has_defaults() {
        assert_eq!(defaults(&Want::Roots), None);
        assert_eq!(defaults(&form(json!({"a": {"type": "string"}}))), None);
        let page = Want::Url { message: "m".to_owned(), url: "https://a.test/".to_owned() };
        assert_eq!(defaults(&page), None);
    }
}
