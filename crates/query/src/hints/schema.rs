//! A type as JSON Schema, as far as the caller sees it.

use crate::records::reach::Visible;
use crate::types::{Bounds, Field, Kind, RecordType, TypeSet, reference_fields};
use serde_json::{Map, Value, json};

/// The store gives it; a schema is of what else a record has.
const ID: &str = "id";

/// The schema of the records of a type. A field that is hidden from the caller is not in it, nor is
/// the name of a type that it may not read.
pub fn schema_of(visible: &Visible, types: &TypeSet, record_type: &RecordType) -> Value {
    let describer = Describer { visible, types, record_type };
    let fields = record_type.all_fields().filter(|field| field.name != ID);
    let mut schema = describer.object(fields, "");
    schema.insert("title".to_owned(), json!(record_type.name));
    schema.insert("additionalProperties".to_owned(), json!(record_type.additional_fields));
    Value::Object(schema)
}

struct Describer<'d> {
    visible: &'d Visible,
    types: &'d TypeSet,
    record_type: &'d RecordType,
}

impl Describer<'_> {
    /// Fields of an object at this path, which is empty for the record.
    fn object<'f>(
        &self,
        fields: impl Iterator<Item = &'f Field>,
        within: &str,
    ) -> Map<String, Value> {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for field in fields {
            let path = match within {
                "" => field.name.clone(),
                within => format!("{within}.{}", field.name),
            };
            if self.visible.access.scope.hides(self.record_type, &path) {
                continue;
            }
            properties.insert(field.name.clone(), self.field(field, &path));
            if field.required && field.default.is_none() {
                required.push(field.name.clone());
            }
        }
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        schema
    }

    fn field(&self, field: &Field, path: &str) -> Value {
        let mut schema = self.kind(&field.kind, path);
        bound(&mut schema, &field.kind, field.bounds);
        // What is said of values holds for the elements of an array.
        let element = match matches!(field.kind, Kind::Array(_)) {
            true => schema.get_mut("items").and_then(Value::as_object_mut),
            false => Some(&mut schema),
        };
        if let Some(element) = element {
            if !field.choices.is_empty() {
                element.insert("enum".to_owned(), json!(field.choices));
            }
            if let Some(pattern) = &field.pattern {
                element.insert("pattern".to_owned(), json!(pattern.as_str()));
            }
        }
        if let Some(default) = &field.default {
            schema.insert("default".to_owned(), default.clone());
        }
        Value::Object(schema)
    }

    fn kind(&self, kind: &Kind, path: &str) -> Map<String, Value> {
        match kind {
            Kind::String => typed("string"),
            Kind::Integer => typed("integer"),
            Kind::Number => typed("number"),
            Kind::Boolean => typed("boolean"),
            Kind::Date => with(typed("string"), "format", json!("date")),
            Kind::DateTime => with(typed("string"), "format", json!("date-time")),
            Kind::Object(fields) => {
                with(self.object(fields.iter(), path), "additionalProperties", json!(false))
            }
            Kind::Array(element) => {
                with(typed("array"), "items", Value::Object(self.kind(element, path)))
            }
            Kind::Json => Map::new(),
            Kind::Reference(to) => self.reference(to, path),
        }
    }

    fn reference(&self, to: &str, path: &str) -> Map<String, Value> {
        let schema = self.object(reference_fields().iter(), path);
        let known = self.types.find(to).map(RecordType::full_name);
        let known = known.ok().filter(|name| self.visible.rights.contains_key(name));
        let what = known.map(|name| format!(" of type `{name}`")).unwrap_or_default();
        let about = format!("A record{what}; a save also takes its id or its refName as a text.");
        with(schema, "description", json!(about))
    }
}

fn typed(name: &str) -> Map<String, Value> {
    with(Map::new(), "type", json!(name))
}

fn with(mut schema: Map<String, Value>, key: &str, value: Value) -> Map<String, Value> {
    schema.insert(key.to_owned(), value);
    schema
}

/// Bounds are those of a number, or of a length.
fn bound(schema: &mut Map<String, Value>, kind: &Kind, bounds: Bounds) {
    let [least, greatest] = match kind {
        Kind::Integer | Kind::Number => ["minimum", "maximum"],
        Kind::String => ["minLength", "maxLength"],
        Kind::Array(_) => ["minItems", "maxItems"],
        Kind::Boolean
        | Kind::Date
        | Kind::DateTime
        | Kind::Object(_)
        | Kind::Json
        | Kind::Reference(_) => return,
    };
    let is_whole = *kind != Kind::Number;
    for (key, bound) in [(least, bounds.min), (greatest, bounds.max)] {
        if let Some(bound) = bound {
            let value = if is_whole { json!(bound as i64) } else { json!(bound) };
            schema.insert(key.to_owned(), value);
        }
    }
}
