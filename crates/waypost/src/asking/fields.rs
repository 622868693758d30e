//! Checks single fields of a form. The server checks the whole form.

use serde_json::Value;

/// The value, if it is of the field's type and one of its choices; else why not.
pub(super) fn checked(field: &Value, value: Value) -> Result<Value, String> {
    let kind = field["type"].as_str().unwrap_or_default();
    let is_whole = |number: f64| number.fract() == 0.0;
    let (fits, wanted) = match kind {
        "integer" => (value.as_f64().is_some_and(is_whole), "a whole number"),
        "number" => (value.is_number(), "a number"),
        "boolean" => (value.is_boolean(), "`true` or `false`"),
        "array" => (value.is_array(), "a list as JSON, such as `[1, 2]`"),
        "object" => (value.is_object(), "an object as JSON, such as `{\"a\": 1}`"),
        _ => (true, ""),
    };
    if !fits {
        return Err(format!("this is not {wanted}"));
    }
    match field["enum"].as_array() {
        Some(choices) if !choices.contains(&value) => {
            let text =
                |choice: &Value| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned);
            let choices: Vec<String> = choices.iter().map(text).collect();
            Err(format!("choose one of: {}", choices.join(", ")))
        }
        _ => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_field_takes_only_its_type_and_its_choices() {
        let integer = json!({"type": "integer"});
        assert_eq!(checked(&integer, json!(36)), Ok(json!(36)));
        for wrong in [json!("abc"), json!(1.5), json!(true)] {
            assert_eq!(checked(&integer, wrong), Err("this is not a whole number".to_owned()));
        }
        assert!(checked(&json!({"type": "boolean"}), json!("yes")).is_err());
        assert_eq!(checked(&json!({}), json!("any")), Ok(json!("any")));
        let choice = json!({"type": "string", "enum": ["red", "blue"]});
        assert_eq!(checked(&choice, json!("red")), Ok(json!("red")));
        assert_eq!(checked(&choice, json!("x")), Err("choose one of: red, blue".to_owned()));
    }
}
