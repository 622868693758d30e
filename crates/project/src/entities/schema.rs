//! The JSON Schema of a type's file, for editors. It is made of the table that the reader has, so
//! that both know the same keys.

use super::fields::{OF_ELEMENTS, OF_FIELDS, WORDS};
use serde_json::{Map, Value, json};

/// What names look like; `is_identifier` decides.
const NAME: &str = "^[A-Za-z][A-Za-z0-9_]{0,63}$";

/// The schema.
pub fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Type of records",
        "description": "A type of records that Waypost keeps. The file is called like the type.",
        "type": "object",
        "properties": {
            "namespace": {
                "type": "string",
                "description": "What its name begins with: `shop` makes `shop.Order` of `Order`.",
            },
            "collection": {
                "type": "string",
                "description": "What its records are stored under; the name of the type without it.",
                "pattern": NAME,
            },
            "fields": fields("What a record has beside the fields that every record has."),
            "unique": lists("Lists of fields that no two records have alike, together."),
            "indexes": lists("Lists of fields by which records are found quickly, together."),
            "additionalFields": flag("Whether a record may have fields that are not declared."),
            "seed": {
                "type": "string",
                "description": "A file with the first records, below the project's folder.",
                "pattern": "\\.(csv|jsonl)$",
            },
            "$schema": {
                "type": "string",
                "description": "The schema of this file, for editors.",
            },
        },
        "required": ["fields"],
        "patternProperties": {
            "^x-": { "description": "For other programs; Waypost ignores it." },
        },
        "additionalProperties": false,
        "$defs": definitions(),
    })
}

fn definitions() -> Value {
    let mut all = Map::new();
    let choices = WORDS.iter().map(|(name, _, _)| json!({ "$ref": format!("#/$defs/{name}") }));
    let choices: Vec<Value> = choices.collect();
    all.insert("field".to_owned(), json!({ "title": "Field", "oneOf": choices }));
    for (name, _, own) in WORDS {
        let title = format!("Field of type {name}");
        all.insert((*name).to_owned(), part(&title, name, &[OF_FIELDS, *own].concat()));
    }
    let names: Vec<&str> = WORDS.iter().map(|(name, _, _)| *name).collect();
    let mut element = part("Elements of an array", "", OF_ELEMENTS);
    element["properties"]["type"] = json!({ "enum": names, "description": KIND });
    element["required"] = json!(["type"]);
    all.insert("element".to_owned(), element);
    Value::Object(all)
}

const KIND: &str = "What kind of value it is.";

/// A map with these keys, whose type is this word.
fn part(title: &str, name: &str, keys: &[&str]) -> Value {
    let described = keys.iter().map(|key| ((*key).to_owned(), property(key, name)));
    let properties: Map<String, Value> = described.collect();
    let is_needed = |key: &&str| matches!(*key, "type" | "fields" | "items" | "to");
    let required: Vec<&str> = keys.iter().copied().filter(is_needed).collect();
    json!({
        "title": title,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// What a key means beside this word.
fn property(key: &str, name: &str) -> Value {
    let number = if name == "integer" { "integer" } else { "number" };
    let choice = if name == "string" { "string" } else { number };
    match key {
        "type" => json!({ "const": name, "description": KIND }),
        "required" => flag("Whether a record must have it."),
        "default" => json!({ "description": "Its value in a record that is saved without it." }),
        "enum" => json!({
            "type": "array",
            "description": "The only values that it can have.",
            "items": { "type": choice },
            "minItems": 1,
        }),
        "minLength" => length("How many characters it has at least."),
        "maxLength" => length("How many characters it has at most."),
        "minItems" => length("How many elements it has at least."),
        "maxItems" => length("How many elements it has at most."),
        "minimum" => json!({ "type": number, "description": "The least value." }),
        "maximum" => json!({ "type": number, "description": "The greatest value." }),
        "pattern" => json!({
            "type": "string",
            "description": "A regular expression that a part of it must match. It runs in linear \
                time, so it cannot look around or back.",
        }),
        "indexed" => flag("Whether records are found quickly by it."),
        "unique" => flag("Whether no two records have the same value."),
        "fields" => fields("What the object has."),
        "items" => json!({ "$ref": "#/$defs/element", "description": "What the elements are." }),
        "to" => json!({
            "type": "string",
            "description": "The type that is referred to, with or without its namespace.",
        }),
        _ => json!({}),
    }
}

fn fields(about: &str) -> Value {
    json!({
        "type": "object",
        "description": about,
        "propertyNames": { "pattern": NAME },
        "additionalProperties": { "$ref": "#/$defs/field" },
    })
}

fn lists(about: &str) -> Value {
    let list = json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 });
    json!({ "type": "array", "description": about, "items": list })
}

fn length(about: &str) -> Value {
    json!({ "type": "integer", "description": about, "minimum": 0 })
}

fn flag(about: &str) -> Value {
    json!({ "type": "boolean", "description": about, "default": false })
}
