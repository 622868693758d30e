//! A record with a part of it changed: what is named is replaced, null removes it, objects are
//! merged (RFC 7396). A reference is one value, and so is an array.

use crate::types::{Field, Kind};
use kernel::values::members::take;
use serde_json::{Map, Value};

pub(super) fn merged(
    fields: &[Field],
    mut record: Map<String, Value>,
    patch: Map<String, Value>,
) -> Map<String, Value> {
    for (name, new) in patch {
        let kind = fields.iter().find(|field| field.name == name).map(|field| &field.kind);
        let inner: &[Field] = match kind {
            Some(Kind::Object(inner)) => inner,
            _ => &[],
        };
        let is_single = matches!(kind, Some(Kind::Reference(_)));
        match new {
            Value::Null => {
                take(&mut record, &name);
            }
            Value::Object(patch) if !is_single => {
                let old = match record.get_mut(&name).map(Value::take) {
                    Some(Value::Object(old)) => old,
                    _ => Map::new(),
                };
                record.insert(name, Value::Object(merged(inner, old, patch)));
            }
            new => {
                record.insert(name, new);
            }
        }
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn objects_are_merged_and_references_and_arrays_replaced() {
        let fields = [
            Field::new("owner", Kind::Reference("Person".to_owned())),
            Field::new("address", Kind::Object(vec![Field::new("city", Kind::String)])),
        ];
        let record = json!({
            "owner": {"entityId": "1", "entityRefName": "anna"}, "address": {"city": "Oslo"},
            "list": [1, 2], "note": "x",
        });
        let patch = json!({
            "owner": {"entityRefName": "ben"}, "address": {"zip": "1"}, "list": [3],
            "note": null, "new": {"a": null, "b": 1},
        });
        let expected = json!({
            "owner": {"entityRefName": "ben"}, "address": {"city": "Oslo", "zip": "1"},
            "list": [3], "new": {"b": 1},
        });
        assert_eq!(Value::Object(merged(&fields, object(record), object(patch))), expected);
    }
}
