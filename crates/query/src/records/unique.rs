//! What no two records of a type have alike in one organisation and tenant: the refName, without
//! regard to case, and the fields that are declared so, with it. A record without one of the fields
//! has no such key.

use super::error::RecordError;
use super::names::RefName;
use super::requests::Access;
use crate::numbers::Number;
use crate::types::RecordType;
use kernel::values::canonical;
use serde_json::Value;

/// Two records of a type and a realm have the same key only if they are one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UniqueKey {
    pub fields: Vec<String>,
    pub key: String,
}

pub fn unique_keys(record_type: &RecordType, record: &Value) -> Vec<UniqueKey> {
    let domain = record.get("dataDomain").unwrap_or(&Value::Null);
    let ref_name = record.get("refName").and_then(Value::as_str).unwrap_or_default();
    let name = RefName::within(domain, ref_name);
    let place = [Value::String(name.org), Value::String(name.tenant)];
    let mut keys = vec![key(vec!["refName".to_owned()], &place, &[&Value::String(name.folded)])];
    let singles = record_type.fields.iter().filter(|field| field.unique);
    let singles = singles.map(|field| vec![field.name.clone()]);
    for fields in singles.chain(record_type.unique.iter().cloned()) {
        let values: Option<Vec<&Value>> = fields.iter().map(|path| at(record, path)).collect();
        if let Some(values) = values {
            keys.push(key(fields, &place, &values));
        }
    }
    keys
}

/// What the caller is told of a key that another record has.
pub fn duplicate(access: &Access, record_type: &RecordType, key: &UniqueKey) -> RecordError {
    let visible = key.fields.iter().filter(|field| !access.scope.hides(record_type, field));
    RecordError::DuplicateKey(visible.cloned().collect())
}

fn key(fields: Vec<String>, place: &[Value; 2], values: &[&Value]) -> UniqueKey {
    let parts: Vec<String> = place.iter().chain(values.iter().copied()).map(text).collect();
    let key = format!("{}:[{}]", fields.join(","), parts.join(","));
    UniqueKey { fields, key }
}

/// Whole numbers are exact here; in canonical JSON they are doubles.
fn text(value: &Value) -> String {
    match value {
        Value::Number(number) => match Number::of(number) {
            Number::Whole(whole) => whole.to_string(),
            Number::Decimal(_) => canonical::text(value),
        },
        _ => canonical::text(value),
    }
}

fn at<'r>(record: &'r Value, path: &str) -> Option<&'r Value> {
    let found = path.split('.').try_fold(record, |value, name| value.get(name));
    // Of a reference its id: the names in it can change.
    let found = found.map(|value| value.get("entityId").unwrap_or(value));
    found.filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Field, Kind};
    use serde_json::json;

    fn keys(record: &Value) -> Vec<String> {
        let mut code = Field::new("code", Kind::String);
        code.unique = true;
        let number = Field::new("number", Kind::Number);
        let mut record_type = RecordType::new("", "things", "Thing", vec![code, number]);
        record_type.unique = vec![vec!["number".to_owned(), "code".to_owned()]];
        unique_keys(&record_type, record).into_iter().map(|key| key.key).collect()
    }

    #[test]
    fn keys_have_the_tenant_and_only_ref_names_fold() {
        let record = |tenant: &str, code: &str| {
            let domain = json!({"orgRefName": "acme", "tenantId": tenant});
            json!({"refName": "DePot", "code": code, "number": 1.0, "dataDomain": domain})
        };
        let expected = [
            "refName:[\"acme\",\"north\",\"depot\"]",
            "code:[\"acme\",\"north\",\"A\"]",
            "number,code:[\"acme\",\"north\",1,\"A\"]",
        ];
        assert_eq!(keys(&record("north", "A")), expected);
        assert_ne!(keys(&record("north", "A"))[1], keys(&record("north", "a"))[1]);
        assert_ne!(keys(&record("north", "A"))[0], keys(&record("south", "A"))[0]);
    }

    #[test]
    fn a_record_without_a_field_of_a_key_does_not_have_the_key() {
        let record = json!({"refName": "depot", "code": "A", "number": null});
        assert_eq!(keys(&record), ["refName:[\"\",\"\",\"depot\"]", "code:[\"\",\"\",\"A\"]"]);
    }
}
