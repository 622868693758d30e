//! Schemas of a document as JSON Schema 2020-12 that stands for itself. What a reference leads to
//! is written in its place, for many clients and models know no references; what refers to itself,
//! or would grow too large so, is kept once in `$defs`.

use super::document::{OpenApi, Version, pointer, reference};
use crate::arguments::kind;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How deep schemas may stand in each other where references are written out.
const INLINE_DEPTH_MAX: usize = 24;
/// How many references may apply to one value, each by way of the one before.
const CHAIN_MAX: usize = 64;

/// Keywords that hold one schema, for a part of the value.
const OF_PARTS: [&str; 6] = [
    "items",
    "additionalProperties",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords that hold one schema, for the value itself.
const OF_SELF: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords that hold a list of schemas for the value itself.
const LISTS_OF_SELF: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords that say nothing about a request, or nothing once references are resolved.
const DROPPED: [&str; 14] = [
    "$schema",
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$comment",
    "$vocabulary",
    "$defs",
    "definitions",
    "discriminator",
    "xml",
    "externalDocs",
    "nullable",
    "example",
    "contentSchema",
];

/// What is known of a document's references, over all of its operations.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Those that lead back to themselves.
    cyclic: BTreeSet<String>,
    /// Those that end for every value.
    sound: BTreeSet<String>,
}

/// Why a schema could not be written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hitch {
    /// This reference leads back to itself: it must be kept in `$defs`.
    Cycle(String),
    /// It has become too large.
    TooLarge,
    /// It cannot be translated.
    Foreign(String),
}

impl From<String> for Hitch {
    fn from(why: String) -> Self {
        Hitch::Foreign(why)
    }
}

/// Writes the schemas of one operation: `write` is called again with what was found out.
pub(super) fn translate<T>(
    document: &OpenApi,
    known: &mut Known,
    nodes_max: usize,
    mut write: impl FnMut(&mut Draft<'_>) -> Result<T, Hitch>,
) -> Result<(T, Map<String, Value>), String> {
    let mut sharing = Sharing::Cyclic;
    loop {
        let mut draft = Draft {
            document,
            known: &mut *known,
            sharing,
            nodes_max,
            nodes: 0,
            depth: 0,
            open: Vec::new(),
            names: BTreeMap::new(),
            waiting: Vec::new(),
            defs: Map::new(),
        };
        let written = write(&mut draft).and_then(|written| Ok((written, draft.finish()?)));
        match written {
            Ok(written) => return Ok(written),
            Err(Hitch::Cycle(pointer)) => {
                known.cyclic.insert(pointer);
            }
            Err(Hitch::TooLarge) if sharing == Sharing::Cyclic => sharing = Sharing::All,
            Err(Hitch::TooLarge) => {
                return Err(format!("its schemas have more than {nodes_max} parts"));
            }
            Err(Hitch::Foreign(why)) => return Err(why),
        }
    }
}

/// Which references are kept in `$defs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sharing {
    /// Those that lead back to themselves.
    Cyclic,
    /// All.
    All,
}

/// The schemas of one operation on their way.
#[derive(Debug)]
pub(super) struct Draft<'d> {
    document: &'d OpenApi,
    known: &'d mut Known,
    sharing: Sharing,
    nodes_max: usize,
    nodes: usize,
    depth: usize,
    /// The references that are written out at this place, from the outermost on.
    open: Vec<String>,
    /// The names in `$defs` of references.
    names: BTreeMap<String, String>,
    /// References that have a name and are not in `$defs` yet.
    waiting: Vec<String>,
    defs: Map<String, Value>,
}

impl<'d> Draft<'d> {
    /// The document.
    pub(super) fn document(&self) -> &'d OpenApi {
        self.document
    }

    /// One schema.
    pub(super) fn schema(&mut self, schema: &Value) -> Result<Value, Hitch> {
        self.count(1)?;
        let fields = match schema {
            Value::Bool(_) => return Ok(schema.clone()),
            Value::Object(fields) => fields,
            other => return Err(Hitch::Foreign(format!("a schema is {}", kind(other)))),
        };
        self.depth += 1;
        if self.depth > INLINE_DEPTH_MAX && self.sharing == Sharing::Cyclic {
            return Err(Hitch::TooLarge);
        }
        let written = match reference(schema) {
            Some(reference) => self.referred(reference, fields)?,
            None => self.object(fields)?,
        };
        self.depth -= 1;
        Ok(written)
    }

    /// The properties of an object's schema, and which of them are required. What a server alone
    /// sets is left out.
    pub(super) fn properties(
        &mut self,
        fields: &Map<String, Value>,
    ) -> Result<(Map<String, Value>, Vec<Value>), Hitch> {
        let mut written = Map::new();
        let mut hidden = BTreeSet::new();
        let properties = fields.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            let target = self.document.follow(schema)?;
            if target.get("readOnly") == Some(&Value::Bool(true)) {
                hidden.insert(name.as_str());
            } else {
                written.insert(name.clone(), self.schema(schema)?);
            }
        }
        let required = fields.get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten();
        let shown = |name: &&Value| name.as_str().is_some_and(|name| !hidden.contains(name));
        Ok((written, required.filter(shown).cloned().collect()))
    }

    fn count(&mut self, nodes: usize) -> Result<(), Hitch> {
        self.nodes += nodes;
        if self.nodes > self.nodes_max { Err(Hitch::TooLarge) } else { Ok(()) }
    }

    /// What a reference stands for, with what stands beside it.
    fn referred(&mut self, reference: &str, fields: &Map<String, Value>) -> Result<Value, Hitch> {
        let pointer = pointer(reference)?;
        self.end(&pointer)?;
        let written = if self.sharing == Sharing::All || self.known.cyclic.contains(&pointer) {
            let name = self.name(&pointer);
            json!({"$ref": format!("#/$defs/{name}")})
        } else if self.open.contains(&pointer) {
            return Err(Hitch::Cycle(pointer));
        } else {
            let target = self.document.at(&pointer)?;
            self.open.push(pointer);
            let written = self.schema(target)?;
            self.open.pop();
            written
        };
        let beside = self.beside(fields)?;
        Ok(together(written, beside))
    }

    /// What stands beside a reference: in 3.0 nothing counts, but words do no harm.
    fn beside(&mut self, fields: &Map<String, Value>) -> Result<Map<String, Value>, Hitch> {
        let counts = |name: &str| match self.document.version {
            Version::V30 => name == "description",
            Version::V31 => name != "$ref",
        };
        let beside: Map<String, Value> = fields
            .iter()
            .filter(|(name, _)| counts(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        match self.object(&beside)? {
            Value::Object(beside) => Ok(beside),
            other => Ok(Map::from_iter([("allOf".to_owned(), json!([other]))])),
        }
    }

    /// A schema that is no reference.
    fn object(&mut self, fields: &Map<String, Value>) -> Result<Value, Hitch> {
        let mut written = Map::new();
        for (name, value) in fields {
            let name = name.as_str();
            if DROPPED.contains(&name) || name.starts_with("x-") {
                continue;
            }
            if matches!(name, "$dynamicRef" | "$recursiveRef") {
                return Err(Hitch::Foreign(format!("`{name}` in a schema is not known")));
            }
            if let Some(value) = self.keyword(name, value)? {
                written.insert(name.to_owned(), value);
            }
        }
        if fields.contains_key("properties") {
            let (properties, required) = self.properties(fields)?;
            written.insert("properties".to_owned(), Value::Object(properties));
            written.insert("required".to_owned(), Value::Array(required));
        }
        if written.get("required").is_some_and(|required| required == &json!([])) {
            written.remove("required");
        }
        examples(fields, &mut written);
        overlapping(&mut written);
        exclusive(&mut written, "exclusiveMinimum", "minimum");
        exclusive(&mut written, "exclusiveMaximum", "maximum");
        let nullable = fields.get("nullable") == Some(&Value::Bool(true));
        Ok(if nullable { or_null(written) } else { Value::Object(written) })
    }

    /// A keyword's value; none if it must not be there.
    fn keyword(&mut self, name: &str, value: &Value) -> Result<Option<Value>, Hitch> {
        if OF_PARTS.contains(&name) || OF_SELF.contains(&name) {
            return self.schema(value).map(Some);
        }
        if LISTS_OF_SELF.contains(&name) || name == "prefixItems" {
            let Value::Array(schemas) = value else { return Ok(None) };
            let schemas: Result<Vec<Value>, Hitch> =
                schemas.iter().map(|schema| self.schema(schema)).collect();
            return schemas.map(|schemas| (!schemas.is_empty()).then_some(Value::Array(schemas)));
        }
        if matches!(name, "patternProperties" | "dependentSchemas") {
            let Value::Object(schemas) = value else { return Ok(None) };
            let mut written = Map::new();
            for (name, schema) in schemas {
                written.insert(name.clone(), self.schema(schema)?);
            }
            return Ok(Some(Value::Object(written)));
        }
        // Written with their properties; and documents say `required: true` of a single one.
        if name == "properties" || (name == "required" && !value.is_array()) {
            return Ok(None);
        }
        self.count(value.as_array().map_or(1, Vec::len))?;
        Ok(Some(value.clone()))
    }

    /// The name of a reference in `$defs`, where it will be.
    fn name(&mut self, pointer: &str) -> String {
        if let Some(name) = self.names.get(pointer) {
            return name.clone();
        }
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let base: String = last.chars().map(plain).collect();
        let taken = |name: &String| self.names.values().any(|known| known == name);
        let numbered = (2..).map(|number: usize| format!("{base}_{number}"));
        let mut candidates = std::iter::once(base.clone()).chain(numbered);
        let name = candidates.find(|name| !taken(name)).unwrap_or_default();
        self.names.insert(pointer.to_owned(), name.clone());
        self.waiting.push(pointer.to_owned());
        name
    }

    /// All that `$defs` must hold. Not by recursion: a chain of references may be long.
    fn finish(mut self) -> Result<Map<String, Value>, Hitch> {
        while let Some(pointer) = self.waiting.pop() {
            let target = self.document.at(&pointer)?;
            let name = self.name(&pointer);
            self.open.clear();
            let written = self.schema(target)?;
            self.defs.insert(name, written);
        }
        Ok(self.defs)
    }

    /// Whether following this reference ends for every value: one that applies to a value by way
    /// of itself would keep a validator busy for ever.
    fn end(&mut self, pointer: &str) -> Result<(), Hitch> {
        let mut chain = Vec::new();
        ends(self.document, &mut self.known.sound, pointer, &mut chain).map_err(Hitch::Foreign)
    }
}

fn ends(
    document: &OpenApi,
    sound: &mut BTreeSet<String>,
    at: &str,
    chain: &mut Vec<String>,
) -> Result<(), String> {
    if sound.contains(at) {
        return Ok(());
    }
    if chain.iter().any(|before| before == at) || chain.len() >= CHAIN_MAX {
        return Err(format!("`#{at}` refers to itself, or to others without an end"));
    }
    chain.push(at.to_owned());
    let mut found = Vec::new();
    applied(document.at(at)?, &mut found);
    for reference in found {
        ends(document, sound, &pointer(reference)?, chain)?;
    }
    chain.pop();
    sound.insert(at.to_owned());
    Ok(())
}

/// The references in a schema that apply to the value itself.
fn applied<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
    found.extend(reference(schema));
    let Some(fields) = schema.as_object() else { return };
    let of_self = OF_SELF.iter().filter_map(|name| fields.get(*name));
    let lists = LISTS_OF_SELF.iter().filter_map(|name| fields.get(*name)?.as_array()).flatten();
    let dependent = fields.get("dependentSchemas").and_then(Value::as_object);
    let dependent = dependent.into_iter().flat_map(Map::values);
    for inner in of_self.chain(lists).chain(dependent) {
        applied(inner, found);
    }
}

/// A resolved reference with what stands beside it: words replace its words, all else holds too.
fn together(written: Value, beside: Map<String, Value>) -> Value {
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

/// `example` as `examples`; what is no list is none.
fn examples(fields: &Map<String, Value>, written: &mut Map<String, Value>) {
    if !written.get("examples").is_some_and(Value::is_array) {
        written.remove("examples");
    }
    if let Some(example) = fields.get("example") {
        written.entry("examples").or_insert_with(|| json!([example]));
    }
}

/// `oneOf` as `anyOf`. Documents say it of alternatives that overlap, as integers and numbers do,
/// or that only a `discriminator` tells apart: what fits two of them is not wrong.
fn overlapping(written: &mut Map<String, Value>) {
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
fn exclusive(written: &mut Map<String, Value>, exclusive: &str, inclusive: &str) {
    let Some(Value::Bool(flag)) = written.get(exclusive).cloned() else { return };
    written.remove(exclusive);
    if flag && let Some(bound) = written.remove(inclusive) {
        written.insert(exclusive.to_owned(), bound);
    }
}

/// The schema, or null.
fn or_null(mut written: Map<String, Value>) -> Value {
    if written.is_empty() {
        return Value::Object(written);
    }
    // What holds beside the type would go on refusing null.
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

#[cfg(test)]
mod tests {
    use super::*;

    const NODES_MAX: usize = 200;

    fn document(version: &str, schemas: Value) -> OpenApi {
        let document = json!({"openapi": version, "components": {"schemas": schemas}});
        OpenApi::parse(&document.to_string()).unwrap()
    }

    fn read(version: &str, schemas: Value, schema: Value) -> Result<(Value, Value), String> {
        let document = document(version, schemas);
        let (written, defs) =
            translate(&document, &mut Known::default(), NODES_MAX, |draft| draft.schema(&schema))?;
        Ok((written, Value::Object(defs)))
    }

    fn to(name: &str) -> Value {
        json!({"$ref": format!("#/components/schemas/{name}")})
    }

    #[test]
    fn the_dialect_of_3_0_is_translated() {
        for (old, new) in [
            (json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"]})),
            (
                json!({"type": "string", "enum": ["a"], "nullable": true}),
                json!({"type": ["string", "null"], "enum": ["a", null]}),
            ),
            (json!({"type": "string", "nullable": false}), json!({"type": "string"})),
            (
                json!({"allOf": [{"type": "string"}], "nullable": true}),
                json!({"anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]}),
            ),
            (
                json!({"type": "object", "allOf": [{"required": ["a"]}], "nullable": true}),
                json!({"anyOf": [{"type": "object", "allOf": [{"required": ["a"]}]},
                    {"type": "null"}]}),
            ),
            (
                json!({"minimum": 1, "exclusiveMinimum": true, "maximum": 9,
                    "exclusiveMaximum": false}),
                json!({"exclusiveMinimum": 1, "maximum": 9}),
            ),
            (json!({"type": "integer", "example": 7}), json!({"type": "integer", "examples": [7]})),
            (
                json!({"discriminator": {"propertyName": "a"}, "xml": {}, "externalDocs": {},
                    "x-any": 1, "format": "int32"}),
                json!({"format": "int32"}),
            ),
            (json!({"type": "string", "required": true}), json!({"type": "string"})),
            (
                json!({"properties": {"id": {"type": "string", "readOnly": true},
                    "name": {"type": "string"}}, "required": ["id", "name"]}),
                json!({"properties": {"name": {"type": "string"}}, "required": ["name"]}),
            ),
        ] {
            let (written, defs) = read("3.0.3", json!({}), old).unwrap();
            assert_eq!((written, defs), (new, json!({})));
        }
    }

    #[test]
    fn what_is_one_of_several_may_be_two_of_them() {
        let kinds = json!([{"type": "integer"}, {"type": "number"}]);
        for (said, meant) in [
            (json!({"oneOf": kinds}), json!({"anyOf": kinds})),
            (
                json!({"oneOf": kinds, "anyOf": [{"minimum": 0}]}),
                json!({"anyOf": [{"minimum": 0}], "allOf": [{"anyOf": kinds}]}),
            ),
            (
                json!({"oneOf": kinds, "anyOf": [{"minimum": 0}], "allOf": [{"maximum": 9}]}),
                json!({"anyOf": [{"minimum": 0}], "allOf": [{"maximum": 9}, {"anyOf": kinds}]}),
            ),
        ] {
            let (written, _) = read("3.1.0", json!({}), said).unwrap();
            assert_eq!(written, meant);
        }
    }

    #[test]
    fn references_are_written_out() {
        let schemas = json!({"Pet": {"type": "object", "properties": {"tag": to("Tag")}},
            "Tag": {"type": "string", "description": "a tag"}});
        let pet = json!({"type": "object", "properties": {
            "tag": {"type": "string", "description": "a tag"}}});
        assert_eq!(read("3.1.0", schemas.clone(), to("Pet")).unwrap(), (pet, json!({})));
        let beside = json!({"$ref": "#/components/schemas/Tag", "description": "mine",
            "maxLength": 3});
        let (old, _) = read("3.0.0", schemas.clone(), beside.clone()).unwrap();
        assert_eq!(old, json!({"type": "string", "description": "mine"}));
        let (new, _) = read("3.1.0", schemas, beside).unwrap();
        let both = json!({"allOf": [{"type": "string", "description": "a tag"},
            {"description": "mine", "maxLength": 3}]});
        assert_eq!(new, both);
    }

    #[test]
    fn what_refers_to_itself_is_kept_once() {
        let schemas = json!({"Node": {"type": "object", "properties": {
            "children": {"type": "array", "items": to("Node")}}}});
        let (written, defs) = read("3.1.0", schemas, to("Node")).unwrap();
        assert_eq!(written, json!({"$ref": "#/$defs/Node"}));
        let children = json!({"type": "array", "items": {"$ref": "#/$defs/Node"}});
        let node = json!({"type": "object", "properties": {"children": children}});
        assert_eq!(defs, json!({"Node": node}));
    }

    #[test]
    fn what_grows_too_large_is_shared() {
        let mut schemas = Map::from_iter([("L0".to_owned(), json!({"type": "string"}))]);
        for level in 1..12 {
            let below = to(&format!("L{}", level - 1));
            let both = json!({"properties": {"a": below, "b": below}});
            schemas.insert(format!("L{level}"), both);
        }
        let (written, defs) = read("3.1.0", Value::Object(schemas), to("L11")).unwrap();
        assert_eq!(written, json!({"$ref": "#/$defs/L11"}));
        assert_eq!(defs.as_object().unwrap().len(), 12);
        let below = json!({"$ref": "#/$defs/L0"});
        assert_eq!(defs["L1"], json!({"properties": {"a": below, "b": below}}));
        let many: Vec<usize> = (0..=NODES_MAX).collect();
        let told = read("3.1.0", json!({}), json!({"enum": many})).unwrap_err();
        assert_eq!(told, "its schemas have more than 200 parts");
    }

    #[test]
    fn what_cannot_be_translated_is_told() {
        let schemas = json!({"Self": to("Self"), "All": {"allOf": [to("Other")]},
            "Other": {"anyOf": [{"not": to("All")}]}});
        for (schema, told) in [
            (to("Self"), "refers to itself"),
            (to("All"), "refers to itself"),
            (to("Nowhere"), "leads nowhere"),
            (json!({"items": {"$ref": "a.yaml"}}), "leads out of the document"),
            (json!({"$dynamicRef": "#a"}), "`$dynamicRef`"),
            (json!({"items": [{"type": "string"}]}), "a schema is an array"),
        ] {
            let error = read("3.1.0", schemas.clone(), schema).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn two_of_one_name_are_told_apart() {
        let schemas = json!({"A": {"properties": {"a": {"$ref":
            "#/components/schemas/B/properties/A"}, "b": to("A")}},
            "B": {"properties": {"A": {"items": {"$ref": "#/components/schemas/B/properties/A"}}}}});
        let (written, defs) = read("3.1.0", schemas, to("A")).unwrap();
        assert_eq!(written, json!({"$ref": "#/$defs/A"}));
        assert_eq!(defs["A"]["properties"]["a"], json!({"$ref": "#/$defs/A_2"}));
        assert_eq!(defs["A_2"], json!({"items": {"$ref": "#/$defs/A_2"}}));
    }
}
