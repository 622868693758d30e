//! Removal of members from JSON objects that keeps their order.

use serde_json::{Map, Value};

/// Takes a member out of an object; the others stay in their order. `Map::remove` would put the
/// last one in its place.
pub fn take(members: &mut Map<String, Value>, name: &str) -> Option<Value> {
    members.shift_remove(name)
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
