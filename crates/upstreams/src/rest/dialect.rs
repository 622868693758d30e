//! Converts schema keywords of OpenAPI 3.0 to JSON Schema 2020-12.

use serde_json::{Map, Value, json};

/// Keywords that hold one schema, for the value itself.
pub(super) const OF_SELF: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords that hold a list of schemas for the value itself.
pub(super) const LISTS_OF_SELF: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// A resolved reference with what stands beside it: words replace its words, all else holds too.
pub(super) fn together(written: Value, beside: Map<String, Value>) -> Value {
    const WORDS: [&str; 6] =
        ["title", "description", "default", "examples", "deprecated", "writeOnly"];
    match written {
        written if beside.is_empty() => written,
        Value::Object(mut fields)
            if fields.contains_key("$ref")
                || beside.keys().all(|name| WORDS.contains(&name.as_str())) =>
        {
            fields.extend(beside);
            Value::Object(fields)
        }
        written => json!({"allOf": [written, beside]}),
    }
}

/// `oneOf` as `anyOf`. Documents say it of alternatives that overlap, as integers and numbers do,
/// or that only a `discriminator` tells apart: what fits two of them is not wrong.
pub(super) fn overlapping(written: &mut Map<String, Value>) {
    let Some(alternatives) = written.remove("oneOf") else { return };
    if !written.contains_key("anyOf") {
        written.insert("anyOf".to_owned(), alternatives);
        return;
    }
    let too = json!({"anyOf": alternatives});
    match written.get_mut("allOf") {
        Some(Value::Array(all)) => all.push(too),
        _ => {
            written.insert("allOf".to_owned(), json!([too]));
        }
    }
}

/// `exclusiveMinimum: true` beside `minimum: 3` as `exclusiveMinimum: 3`.
pub(super) fn exclusive(written: &mut Map<String, Value>, exclusive: &str, inclusive: &str) {
    let Some(Value::Bool(flag)) = written.get(exclusive).cloned() else { return };
    written.remove(exclusive);
    if flag && let Some(bound) = written.remove(inclusive) {
        written.insert(exclusive.to_owned(), bound);
    }
}

/// The schema, or null.
pub(super) fn or_null(mut written: Map<String, Value>) -> Value {
    if written.is_empty() {
        return Value::Object(written);
    }
    // What holds beside the type would still refuse null.
    let has_more = LISTS_OF_SELF.iter().chain(&OF_SELF).any(|name| written.contains_key(*name));
    let said = if has_more { None } else { written.remove("type") };
    let Some(said) = said else {
        return json!({"anyOf": [written, {"type": "null"}]});
    };
    let mut names = match said {
        Value::Array(names) => names,
        name => vec![name],
    };
    let null = Value::from("null");
    if !names.contains(&null) {
        names.push(null);
    }
    written.insert("type".to_owned(), Value::Array(names));
    if let Some(Value::Array(values)) = written.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    Value::Object(written)
}
