//! Removal of members from JSON objects that keeps their order, and the depth of nested values.

use serde_json::{Map, Value};

/// Takes a member out of an object; the others stay in their order. `Map::remove` would put the
/// last one in its place.
pub fn take(members: &mut Map<String, Value>, name: &str) -> Option<Value> {
    members.shift_remove(name)
}

/// Whether lists and maps stand deeper in each other than `depth_max`.
pub fn is_deeper(value: &Value, depth_max: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        Value::Array(_) | Value::Object(_) if depth_max == 0 => true,
        Value::Array(items) => items.iter().any(|item| is_deeper(item, depth_max - 1)),
        Value::Object(fields) => fields.values().any(|field| is_deeper(field, depth_max - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn taking_a_member_keeps_the_order_of_the_rest() {
        let mut value = json!({"a": 1, "b": null, "c": 3, "d": 4});
        let members = value.as_object_mut().unwrap();
        assert_eq!(take(members, "a"), Some(json!(1)));
        assert_eq!(take(members, "a"), None);
        assert_eq!(take(members, "b"), Some(Value::Null));
        assert_eq!(value.to_string(), r#"{"c":3,"d":4}"#);
    }

    #[test]
    fn taking_another_member_leaves_the_last_one_last() {
        let mut value = json!({"a": 1, "b": 2, "c": 3});
        assert_eq!(take(value.as_object_mut().unwrap(), "a"), Some(json!(1)));
        assert_eq!(value.to_string(), r#"{"b":2,"c":3}"#);
    }
}
