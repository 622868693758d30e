//! Schemas of a document as JSON Schema 2020-12 that stands for itself. What a reference leads to
//! is written in its place, for many clients and models know no references; what refers to itself,
//! or would grow too large so, is kept once in `$defs`.

use super::dialect::{LISTS_OF_SELF, OF_SELF, exclusive, or_null, overlapping, together};
use super::document::{OpenApi, Version, pointer, reference};
use kernel::tool::arguments::kind;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How deep schemas may stand in each other where references are written out.
const INLINE_DEPTH_MAX: usize = 24;
/// How many references may apply to one value, each by way of the one before.
const CHAIN_MAX: usize = 64;
/// How many bytes of text count as one part of a document.
const PART_BYTES: usize = 64;
/// How much of a reference's name is its name in `$defs`.
const DEF_CHARS_MAX: usize = 64;

/// Keywords that hold one schema, for a part of the value.
const OF_PARTS: [&str; 6] = [
    "items", "additionalProperties", "contains", "propertyNames", "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords that say nothing about a request, or nothing once references are resolved.
const DROPPED: [&str; 15] = [
    "$schema", "$id", "$anchor", "$dynamicAnchor", "$comment", "$vocabulary", "$defs",
    "definitions", "discriminator", "xml", "externalDocs", "nullable", "example", "contentSchema",
    "collectionFormat",
];
/// How schemas say that null is as good: OpenAPI 3.0, and documents of Swagger 2.0.
const NULLABLE: [&str; 2] = ["nullable", "x-nullable"];

/// What is known of a document's references, over all of its operations, and how much may still be
/// written of it: a small document can say one large thing in thousands of places.
#[derive(Debug)]
pub(super) struct ReferenceState {
    /// Those that lead back to themselves.
    cyclic: BTreeSet<String>,
    /// Those that end for every value.
    sound: BTreeSet<String>,
    /// How many parts are left for the whole document. What was written in vain counts as well.
    parts_left: usize,
}

impl ReferenceState {
    /// Empty state of a document whose schemas may have so many parts together.
    pub(super) fn new(parts_max: usize) -> Self {
        Self { cyclic: BTreeSet::new(), sound: BTreeSet::new(), parts_left: parts_max }
    }
}

/// Why a schema could not be written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hitch {
    /// This reference leads back to itself: it must be kept in `$defs`.
    Cycle(String),
    /// It has become too large.
    TooLarge,
    /// All that may be written of the document is written.
    Spent,
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
    known: &mut ReferenceState,
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
            taken: BTreeMap::new(),
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
            Err(Hitch::Spent) => {
                let why = "with it the schemas of the document have too many parts";
                return Err(why.to_owned());
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
    All,
}

/// The schemas of one operation on their way.
#[derive(Debug)]
pub(super) struct Draft<'d> {
    document: &'d OpenApi,
    known: &'d mut ReferenceState,
    sharing: Sharing,
    nodes_max: usize,
    nodes: usize,
    depth: usize,
    /// The references that are written out at this place, from the outermost on.
    open: Vec<String>,
    /// The names in `$defs` of references.
    names: BTreeMap<String, String>,
    /// The names that are taken, and the last number that was put after each.
    taken: BTreeMap<String, usize>,
    /// References that have a name and are not in `$defs` yet.
    waiting: Vec<String>,
    defs: Map<String, Value>,
}

impl<'d> Draft<'d> {
    pub(super) fn document(&self) -> &'d OpenApi {
        self.document
    }

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
                self.spend(name.len() / PART_BYTES)?;
                written.insert(name.clone(), self.schema(schema)?);
            }
        }
        let required = match fields.get("required") {
            Some(required) => names(&self.said(required)?, &hidden),
            None => Vec::new(),
        };
        Ok((written, required))
    }

    /// A value of the document as it is, counted.
    pub(super) fn said(&mut self, value: &Value) -> Result<Value, Hitch> {
        self.known.parts_left = after(value, self.known.parts_left).unwrap_or(0);
        self.spend(1)?;
        Ok(value.clone())
    }

    /// Counts what is written for the operation.
    fn count(&mut self, nodes: usize) -> Result<(), Hitch> {
        self.spend(nodes)?;
        self.nodes += nodes;
        if self.nodes > self.nodes_max { Err(Hitch::TooLarge) } else { Ok(()) }
    }

    /// Counts what is written of the document.
    fn spend(&mut self, parts: usize) -> Result<(), Hitch> {
        match self.known.parts_left.checked_sub(parts) {
            Some(left) => {
                self.known.parts_left = left;
                Ok(())
            }
            // Nothing is tried any more then: each try would only take time.
            None => {
                self.known.parts_left = 0;
                Err(Hitch::Spent)
            }
        }
    }

    /// The schema of a reference, with its sibling keywords.
    fn referred(&mut self, reference: &str, fields: &Map<String, Value>) -> Result<Value, Hitch> {
        self.spend(reference.len() / PART_BYTES)?;
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

    /// Sibling keywords of a reference. Before 3.1 none counts, but descriptions do no harm.
    fn beside(&mut self, fields: &Map<String, Value>) -> Result<Map<String, Value>, Hitch> {
        let counts = |name: &str| match self.document.version {
            Version::V20 | Version::V30 => name == "description",
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
            self.spend(name.len() / PART_BYTES)?;
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
        if let Some(example) = fields.get("example") {
            written.entry("examples").or_insert(json!([self.said(example)?]));
        }
        overlapping(&mut written);
        exclusive(&mut written, "exclusiveMinimum", "minimum");
        exclusive(&mut written, "exclusiveMaximum", "maximum");
        let nullable = NULLABLE.iter().any(|name| fields.get(*name) == Some(&Value::Bool(true)));
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
                self.spend(name.len() / PART_BYTES)?;
                written.insert(name.clone(), self.schema(schema)?);
            }
            return Ok(Some(Value::Object(written)));
        }
        // Properties are written with those that are required. Documents say `required: true` of a
        // single one, and `examples` of what is no list.
        let is_odd = matches!(name, "required" | "examples") && !value.is_array();
        if name == "properties" || is_odd {
            return Ok(None);
        }
        self.count(value.as_array().map_or(1, Vec::len))?;
        let said = self.said(value)?;
        Ok(Some(match name {
            "required" => Value::Array(names(&said, &BTreeSet::new())),
            _ => said,
        }))
    }

    /// The name of a reference in `$defs`, where it will be.
    fn name(&mut self, pointer: &str) -> String {
        if let Some(name) = self.names.get(pointer) {
            return name.clone();
        }
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let base: String = last.chars().map(plain).take(DEF_CHARS_MAX).collect();
        let mut name = base.clone();
        let mut number = self.taken.get(&base).copied().unwrap_or(1);
        while self.taken.contains_key(&name) {
            number += 1;
            name = format!("{base}_{number}");
        }
        self.taken.insert(base, number);
        self.taken.entry(name.clone()).or_insert(1);
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

/// Remaining parts after a value; `None` if it has more.
fn after(value: &Value, left: usize) -> Option<usize> {
    let left = left.checked_sub(1)?;
    match value {
        Value::Array(items) => items.iter().try_fold(left, |left, item| after(item, left)),
        Value::Object(members) => members.iter().try_fold(left, |left, (name, member)| {
            after(member, left.checked_sub(name.len() / PART_BYTES)?)
        }),
        Value::String(text) => left.checked_sub(text.len() / PART_BYTES),
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(left),
    }
}

/// The names of a list, each once, without those that are hidden; what is no name is none.
fn names(list: &Value, hidden: &BTreeSet<&str>) -> Vec<Value> {
    let all = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut seen = BTreeSet::new();
    let fresh = all.filter(|name| !hidden.contains(*name) && seen.insert(*name));
    fresh.map(Value::from).collect()
}

#[cfg(test)]
mod tests;
