//! Types of records as JSON, whole, so that what is stored can be compared with what is declared.

use crate::sqlite::error::{JobError, Result};
use query::types::{Bounds, Field, Kind, Pattern, RecordType};
use serde_json::{Map, Value, json};

/// A type as it is stored.
pub(super) fn to_text(record_type: &RecordType) -> String {
    let stored = json!({
        "namespace": record_type.namespace,
        "collection": record_type.collection,
        "name": record_type.name,
        "fields": fields_to_json(&record_type.fields),
        "unique": record_type.unique,
        "indexes": record_type.indexes,
        "additionalFields": record_type.additional_fields,
    });
    stored.to_string()
}

/// The type that a text says.
pub(super) fn of_text(text: &str) -> Result<RecordType> {
    let stored: Option<Value> = serde_json::from_str(text).ok();
    let read = stored.as_ref().and_then(read);
    read.ok_or_else(|| {
        let why = "a stored type of records cannot be read; restore a backup";
        JobError::unreadable(why)
    })
}

fn read(stored: &Value) -> Option<RecordType> {
    let fields = fields_of_json(stored.get("fields")?)?;
    let text = |name: &str| stored.get(name).and_then(Value::as_str);
    let mut found = RecordType::new(text("namespace")?, text("collection")?, text("name")?, fields);
    found.unique = paths(stored.get("unique")?)?;
    found.indexes = paths(stored.get("indexes")?)?;
    found.additional_fields = flag(stored, "additionalFields")?;
    Some(found)
}

fn paths(stored: &Value) -> Option<Vec<Vec<String>>> {
    serde_json::from_value(stored.clone()).ok()
}

fn flag(stored: &Value, name: &str) -> Option<bool> {
    stored.get(name)?.as_bool()
}

fn fields_to_json(fields: &[Field]) -> Vec<Value> {
    fields.iter().map(field_to_json).collect()
}

fn fields_of_json(stored: &Value) -> Option<Vec<Field>> {
    stored.as_array()?.iter().map(field_of_json).collect()
}

fn field_to_json(field: &Field) -> Value {
    let mut stored = Map::new();
    stored.insert("name".to_owned(), json!(field.name));
    stored.insert("kind".to_owned(), kind_to_json(&field.kind));
    stored.insert("required".to_owned(), json!(field.required));
    if let Some(default) = &field.default {
        stored.insert("default".to_owned(), default.clone());
    }
    stored.insert("choices".to_owned(), json!(field.choices));
    // As texts, which are read again as they were.
    let bounds = [("min", field.bounds.min), ("max", field.bounds.max)];
    for (name, bound) in bounds.into_iter().filter_map(|(name, bound)| Some((name, bound?))) {
        stored.insert(name.to_owned(), json!(bound.to_string()));
    }
    if let Some(pattern) = &field.pattern {
        stored.insert("pattern".to_owned(), json!(pattern.as_str()));
    }
    stored.insert("indexed".to_owned(), json!(field.indexed));
    stored.insert("unique".to_owned(), json!(field.unique));
    Value::Object(stored)
}

fn field_of_json(stored: &Value) -> Option<Field> {
    let kind = kind_of_json(stored.get("kind")?)?;
    let mut field = Field::new(stored.get("name")?.as_str()?, kind);
    field.required = flag(stored, "required")?;
    field.default = stored.get("default").cloned();
    field.choices = stored.get("choices")?.as_array()?.clone();
    field.bounds = Bounds { min: bound(stored, "min")?, max: bound(stored, "max")? };
    field.pattern = match stored.get("pattern") {
        Some(pattern) => Some(Pattern::new(pattern.as_str()?).ok()?),
        None => None,
    };
    field.indexed = flag(stored, "indexed")?;
    field.unique = flag(stored, "unique")?;
    Some(field)
}

/// The inner one is none where there is no bound.
fn bound(stored: &Value, name: &str) -> Option<Option<f64>> {
    match stored.get(name) {
        Some(bound) => bound.as_str()?.parse().ok().map(Some),
        None => Some(None),
    }
}

fn kind_to_json(kind: &Kind) -> Value {
    match kind {
        Kind::Object(fields) => json!({"object": fields_to_json(fields)}),
        Kind::Array(of) => json!({"array": kind_to_json(of)}),
        Kind::Reference(to) => json!({"reference": to}),
        Kind::String
        | Kind::Integer
        | Kind::Number
        | Kind::Boolean
        | Kind::Date
        | Kind::DateTime
        | Kind::Json => Value::String(kind.to_string()),
    }
}

fn kind_of_json(stored: &Value) -> Option<Kind> {
    if let Some(fields) = stored.get("object") {
        return fields_of_json(fields).map(Kind::Object);
    }
    if let Some(of) = stored.get("array") {
        return kind_of_json(of).map(Kind::array);
    }
    if let Some(to) = stored.get("reference") {
        return to.as_str().map(|to| Kind::Reference(to.to_owned()));
    }
    let name = stored.as_str()?;
    let plain = [
        Kind::String,
        Kind::Integer,
        Kind::Number,
        Kind::Boolean,
        Kind::Date,
        Kind::DateTime,
        Kind::Json,
    ];
    plain.into_iter().find(|kind| kind.to_string() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_read_as_it_was_stored() {
        let kinds = [
            Kind::String,
            Kind::Integer,
            Kind::Number,
            Kind::Boolean,
            Kind::Date,
            Kind::DateTime,
            Kind::Json,
            Kind::Reference("shop.City".to_owned()),
            Kind::array(Kind::Object(vec![Field::new("sku", Kind::String)])),
        ];
        let named = |(place, kind): (usize, &Kind)| Field::new(&format!("f{place}"), kind.clone());
        let mut fields: Vec<Field> = kinds.iter().enumerate().map(named).collect();
        fields[0].required = true;
        fields[0].default = Some(json!("a"));
        fields[0].choices = vec![json!("a"), json!("b")];
        fields[0].pattern = Some(Pattern::new("^[ab]$").unwrap());
        fields[1].bounds = Bounds { min: Some(-0.1), max: None };
        fields[1].indexed = true;
        fields[2].unique = true;
        let mut stored = RecordType::new("shop", "orders", "Order", fields);
        stored.unique = vec![vec!["f0".to_owned(), "f1".to_owned()]];
        stored.indexes = vec![vec!["f3".to_owned()]];
        stored.additional_fields = true;
        assert_eq!(of_text(&to_text(&stored)).unwrap(), stored);
        assert!(of_text("{}").is_err());
    }
}
