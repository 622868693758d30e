//! Where a schema's references lead: its resources (`$id`), its anchors, and every place that a
//! JSON Pointer finds. Where two places could be meant, both are found: what is measured may be too
//! much and never too little. So URIs are not resolved here, only compared.

use super::{Misfit, SCHEMA_DEPTH_MAX, refused};
use crate::values::percent::decoded;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// How many resources one schema may bundle.
const HOMES_MAX: usize = 256;
/// Where the metaschemas are, which need not be fetched.
const METASCHEMAS: &str = "json-schema.org";
/// How a schema inside another says that it is draft 7, over http or https.
const DRAFT_7: &str = "//json-schema.org/draft-07/schema";
/// How it says that it is 2020-12.
const DRAFT_2020_12: &str = "//json-schema.org/draft/2020-12/schema";

/// How a schema applies a schema that stands inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Applicator<'a> {
    /// To the same value.
    Beside,
    /// To the member of this name.
    Member(&'a str),
    /// To members, whatever else is applied to them.
    AnyMember,
    /// To the members that no other is named for.
    OtherMember,
    /// To the names of members.
    Name,
    /// To the item at the next place.
    Place,
    Item,
    /// Only where something refers to it.
    Aside,
}

/// The schemas that stand directly inside a schema.
pub(super) fn children(schema: &Map<String, Value>) -> Vec<(Applicator<'_>, &Value)> {
    let mut found = Vec::new();
    for (key, value) in schema {
        let how = match key.as_str() {
            "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas"
            | "dependencies" => Applicator::Beside,
            "properties" => Applicator::Member(""),
            "patternProperties" | "unevaluatedProperties" => Applicator::AnyMember,
            "additionalProperties" => Applicator::OtherMember,
            "propertyNames" => Applicator::Name,
            "prefixItems" => Applicator::Place,
            "items" if value.is_array() => Applicator::Place,
            "items" | "additionalItems" | "contains" | "unevaluatedItems" => Applicator::Item,
            "$defs" | "definitions" | "contentSchema" => Applicator::Aside,
            _ => continue,
        };
        match (key.as_str(), value) {
            ("properties", Value::Object(named)) => {
                found.extend(named.iter().map(|(name, value)| (Applicator::Member(name), value)));
            }
            (
                "patternProperties" | "dependentSchemas" | "dependencies" | "$defs" | "definitions",
                Value::Object(named),
            ) => found.extend(named.values().filter(|it| !it.is_array()).map(|it| (how, it))),
            (_, Value::Array(all)) => found.extend(all.iter().map(|value| (how, value))),
            (_, single) => found.push((how, single)),
        }
    }
    found
}

/// A part of a schema that has a URI of its own, or the whole.
struct Home<'a> {
    /// Its `$id` as it is written, without a fragment.
    id: &'a str,
    root: &'a Value,
}

struct Anchor<'a> {
    home: usize,
    schema: &'a Value,
    /// Which one is meant depends on how one came here.
    is_dynamic: bool,
}

/// What a reference leads to.
#[derive(Default)]
pub(super) struct RefTarget<'a> {
    /// Schemas, each with its resource.
    pub(super) schemas: Vec<(&'a Value, usize)>,
    /// Perhaps a metaschema, which is not part of this schema.
    pub(super) is_outside: bool,
}

/// What a schema's references can lead to.
pub(super) struct Index<'a> {
    homes: Vec<Home<'a>>,
    home_of: HashMap<usize, usize>,
    anchors: HashMap<&'a str, Vec<Anchor<'a>>>,
    /// Draft 7: nothing that stands next to a `$ref` counts.
    pub(super) is_draft_7: bool,
    /// A metaschema may lead back into this schema.
    pub(super) is_extensible: bool,
    /// A short reference may lead to a metaschema.
    is_metaschema: bool,
}

impl<'a> Index<'a> {
    /// Reads a whole schema.
    pub(super) fn read(schema: &'a Value) -> Result<Self, Misfit> {
        let id = schema.get("$id").and_then(Value::as_str).unwrap_or_default();
        let mut index = Self {
            homes: vec![Home { id: without_fragment(id), root: schema }],
            home_of: HashMap::from([(address(schema), 0)]),
            anchors: HashMap::new(),
            is_draft_7: draft(schema).is_some_and(|uri| uri.contains("draft-07")),
            is_extensible: false,
            is_metaschema: false,
        };
        index.scan(schema, 0, 0)?;
        index.is_metaschema = index.homes.iter().any(|home| may_be_metaschema(home.id));
        Ok(index)
    }

    /// How many resources there are.
    pub(super) fn homes(&self) -> usize {
        self.homes.len()
    }

    /// The resource of a schema that stands in this one.
    pub(super) fn home_of(&self, schema: &Value, around: usize) -> usize {
        self.home_of.get(&address(schema)).copied().unwrap_or(around)
    }

    /// All that a reference in this resource may lead to.
    pub(super) fn resolve(&self, reference: &str, home: usize) -> Result<RefTarget<'a>, Misfit> {
        let mut found = RefTarget::default();
        // An empty one is skipped, whatever it would lead to.
        if reference.is_empty() {
            return Ok(found);
        }
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let wanted = if uri.is_empty() { self.homes[home].id } else { uri };
        for (at, _) in self.homes.iter().enumerate().filter(|(_, it)| alike(it.id, wanted)) {
            if fragment.is_empty() {
                found.schemas.push((self.homes[at].root, at));
            } else if let Some(pointer) = fragment.strip_prefix('/') {
                found.schemas.extend(self.pointed(at, pointer));
            }
        }
        for anchor in self.anchors.get(fragment).into_iter().flatten() {
            if anchor.is_dynamic || alike(self.homes[anchor.home].id, wanted) {
                found.schemas.push((anchor.schema, anchor.home));
            }
        }
        if uri.is_empty() && found.schemas.is_empty() {
            let why = format!("the reference `{reference}` leads nowhere");
            return Err(Misfit { pointer: String::new(), message: why });
        }
        let may_leave = self.is_metaschema || may_be_metaschema(uri) || is_odd(uri);
        found.is_outside = !uri.is_empty() && (found.schemas.is_empty() || may_leave);
        Ok(found)
    }

    fn scan(&mut self, schema: &'a Value, around: usize, depth: usize) -> Result<(), Misfit> {
        if depth > SCHEMA_DEPTH_MAX {
            return Err(refused("it nests deeper", SCHEMA_DEPTH_MAX));
        }
        let Value::Object(map) = schema else { return Ok(()) };
        let own = if self.is_draft_7 { DRAFT_7 } else { DRAFT_2020_12 };
        let is_own = |uri: &str| {
            let uri = uri.trim_end_matches('#');
            uri.strip_prefix("https:").or(uri.strip_prefix("http:")) == Some(own)
        };
        if depth > 0 && draft(schema).is_some_and(|uri| !is_own(uri)) {
            let why = "`$schema` inside a schema names another draft than the schema itself has";
            return Err(Misfit { pointer: String::new(), message: why.to_owned() });
        }
        let text = |key: &str| -> Option<&'a str> { map.get(key).and_then(Value::as_str) };
        let mut home = around;
        if let Some(id) = text("$id") {
            let is_ignored = self.is_draft_7 && map.contains_key("$ref");
            match id.strip_prefix('#') {
                _ if is_ignored || depth == 0 => {}
                Some(name) if self.is_draft_7 => {
                    self.anchor(name, Anchor { home, schema, is_dynamic: false });
                }
                _ => home = self.settle(without_fragment(id), schema)?,
            }
        }
        for (key, is_dynamic) in [("$anchor", false), ("$dynamicAnchor", true)] {
            if let Some(name) = text(key) {
                self.anchor(name, Anchor { home, schema, is_dynamic });
                self.is_extensible |= is_dynamic;
            }
        }
        self.is_extensible |= map.contains_key("$recursiveAnchor");
        for (_, child) in children(map) {
            self.scan(child, home, depth + 1)?;
        }
        Ok(())
    }

    fn settle(&mut self, id: &'a str, root: &'a Value) -> Result<usize, Misfit> {
        if self.homes.len() >= HOMES_MAX {
            let why = format!("it has more than {HOMES_MAX} parts with an `$id`");
            return Err(Misfit { pointer: String::new(), message: why });
        }
        let home = self.homes.len();
        self.homes.push(Home { id, root });
        self.home_of.insert(address(root), home);
        Ok(home)
    }

    fn anchor(&mut self, name: &'a str, anchor: Anchor<'a>) {
        self.anchors.entry(name).or_default().push(anchor);
    }

    fn pointed(&self, mut home: usize, pointer: &str) -> Option<(&'a Value, usize)> {
        let mut found = self.homes[home].root;
        for step in decoded(pointer).split('/') {
            found = match found {
                Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
                other => other.get(step.replace("~1", "/").replace("~0", "~"))?,
            };
            home = self.home_of(found, home);
        }
        Some((found, home))
    }
}

/// A schema's place in memory, by which it is known while it is read.
pub(super) fn address(schema: &Value) -> usize {
    std::ptr::from_ref(schema) as usize
}

fn draft(schema: &Value) -> Option<&str> {
    schema.get("$schema").and_then(Value::as_str)
}

fn may_be_metaschema(uri: &str) -> bool {
    uri.to_ascii_lowercase().contains(METASCHEMAS)
}

fn without_fragment(id: &str) -> &str {
    id.split_once('#').map_or(id, |(uri, _)| uri)
}

/// Whether two URIs may be the same once they are resolved: they end alike.
fn alike(one: &str, other: &str) -> bool {
    one == other || is_odd(one) || is_odd(other) || end(one) == end(other)
}

fn end(uri: &str) -> &str {
    match uri.rsplit('/').next() {
        Some("." | "..") | None => "",
        Some(last) => last,
    }
}

/// Whether a URI could be written in another way.
fn is_odd(uri: &str) -> bool {
    uri.contains(['%', '?'])
}
