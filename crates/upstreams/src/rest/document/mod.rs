//! A document: OpenAPI 3 or Swagger 2.0, read from JSON or YAML within limits, with references that
//! stay inside it. Held is its text with an index of it; a part becomes a value when it is needed,
//! since all of a large document as values would take many times the memory.

mod value;
mod text;

use outbound::percent::decoded;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// How many references may lead to references.
const HOPS_MAX: usize = 16;
/// How many paths and named parts a document may have.
const ENTRIES_MAX: usize = 500_000;
/// How much memory the values of one path may take.
const ITEM_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How much memory those may take that references lead to: they are kept.
const KEPT_BYTES_MAX: usize = 256 * 1024 * 1024;
/// What holds named parts, and how many maps stand above these.
const SECTIONS: [(&str, usize); 5] =
    [("paths", 1), ("components", 2), ("definitions", 1), ("parameters", 1), ("responses", 1)];

/// A document.
#[derive(Debug)]
pub(super) struct OpenApi {
    /// JSON, whatever it was written in.
    text: String,
    parts: BTreeMap<String, Part>,
    /// How much memory is left for values that are kept.
    kept: Cell<usize>,
    pub(super) version: Version,
}

/// The versions that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// Swagger 2.0.
    V20,
    /// OpenAPI 3.0, whose schemas are a dialect of their own.
    V30,
    /// OpenAPI 3.1, whose schemas are JSON Schema 2020-12.
    V31,
}

/// A part of the document.
#[derive(Debug)]
enum Part {
    /// One that becomes a value as a whole.
    Whole(Whole),
    Named(BTreeMap<String, Part>),
}

#[derive(Debug)]
struct Whole {
    place: Range<usize>,
    /// The value, once it was needed, or why it cannot be one.
    value: OnceCell<Result<Value, String>>,
}

impl OpenApi {
    /// Reads a text; if it is none, why.
    pub(super) fn parse(text: impl Into<String>) -> Result<Self, String> {
        let text = text::json(text.into())?;
        let left = Cell::new(ENTRIES_MAX);
        let parts = Index { text: &text, left: &left }.top()?;
        let kept = Cell::new(KEPT_BYTES_MAX);
        let mut document = Self { text, parts, kept, version: Version::V31 };
        document.version = document.said_version()?;
        Ok(document)
    }

    fn said_version(&self) -> Result<Version, String> {
        let said = |name: &str| match self.field(name)? {
            Value::String(said) => Some(said.clone()),
            Value::Number(said) => Some(said.to_string()),
            _ => None,
        };
        let known = "Swagger 2.0 and OpenAPI 3.0 and 3.1 are known";
        match (said("openapi"), said("swagger")) {
            (Some(said), _) if is_of(&said, "3.0") => Ok(Version::V30),
            (Some(said), _) if is_of(&said, "3.1") => Ok(Version::V31),
            (Some(said), _) => Err(format!("it is of OpenAPI `{said}`; {known}")),
            (None, Some(said)) if is_of(&said, "2.0") || said == "2" => Ok(Version::V20),
            (None, Some(said)) => Err(format!("it is of Swagger `{said}`; {known}")),
            (None, None) => Err(format!("it has no `openapi` or `swagger` version; {known}")),
        }
    }

    /// Its paths, in the order of their texts.
    pub(super) fn paths(&self) -> impl Iterator<Item = &String> {
        let paths = match self.parts.get("paths") {
            Some(Part::Named(paths)) => Some(paths),
            Some(Part::Whole(_)) | None => None,
        };
        // Extensions stand among the paths.
        paths.into_iter().flat_map(BTreeMap::keys).filter(|path| path.starts_with('/'))
    }

    /// The operations of a path. Parsed on each call, because each is needed only once.
    pub(super) fn item(&self, path: &str) -> Result<Value, String> {
        match self.parts.get("paths") {
            Some(Part::Named(paths)) => match paths.get(path) {
                Some(Part::Whole(item)) => {
                    value::read(self.written(item), &Cell::new(ITEM_BYTES_MAX))
                }
                Some(Part::Named(_)) | None => Err(format!("there is no `{path}`")),
            },
            Some(Part::Whole(_)) | None => Err(format!("there is no `{path}`")),
        }
    }

    /// A field of the whole document, other than those that hold named parts.
    pub(super) fn field(&self, name: &str) -> Option<&Value> {
        match self.parts.get(name)? {
            Part::Whole(whole) => self.value(whole).ok(),
            Part::Named(_) => None,
        }
    }

    pub(super) fn at(&self, pointer: &str) -> Result<&Value, String> {
        let nowhere = || format!("`#{pointer}` leads nowhere");
        let mut parts = &self.parts;
        let mut rest = pointer;
        loop {
            let below = rest.strip_prefix('/').ok_or_else(nowhere)?;
            let (name, after) = below.split_at(below.find('/').unwrap_or(below.len()));
            let name = name.replace("~1", "/").replace("~0", "~");
            match parts.get(&name) {
                Some(Part::Named(named)) => (parts, rest) = (named, after),
                Some(Part::Whole(whole)) => {
                    return self.value(whole)?.pointer(after).ok_or_else(nowhere);
                }
                None => return Err(nowhere()),
            }
        }
    }

    /// The value itself, or what its reference leads to in the end.
    pub(super) fn follow<'a>(&'a self, value: &'a Value) -> Result<&'a Value, String> {
        let mut value = value;
        for _ in 0..HOPS_MAX {
            match reference(value) {
                Some(reference) => value = self.at(&pointer(reference)?)?,
                None => return Ok(value),
            }
        }
        Err(format!("more than {HOPS_MAX} references lead to each other"))
    }

    /// The same for what must be an object.
    pub(super) fn object<'a>(&'a self, value: &'a Value) -> Result<&'a Map<String, Value>, String> {
        let object = self.follow(value)?.as_object();
        object.ok_or_else(|| "there is a value where an object should be".to_owned())
    }

    /// A part as a value, which is kept.
    fn value<'a>(&'a self, whole: &'a Whole) -> Result<&'a Value, String> {
        let read = || value::read(self.written(whole), &self.kept);
        whole.value.get_or_init(read).as_ref().map_err(Clone::clone)
    }

    fn written(&self, whole: &Whole) -> &str {
        self.text.get(whole.place.clone()).unwrap_or_default()
    }
}

/// The reference that stands in the place of a value.
pub(super) fn reference(value: &Value) -> Option<&str> {
    value.get("$ref").and_then(Value::as_str)
}

/// The JSON Pointer of a reference into the same document.
pub(super) fn pointer(reference: &str) -> Result<String, String> {
    match reference.strip_prefix('#') {
        Some(pointer) if pointer.starts_with('/') => Ok(decoded(pointer)),
        _ => Err(format!("`{reference}` leads out of the document")),
    }
}

fn is_of(said: &str, version: &str) -> bool {
    said.strip_prefix(version).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Finds where the parts of a text are.
#[derive(Clone, Copy)]
struct Index<'t> {
    text: &'t str,
    /// How many entries there may still be.
    left: &'t Cell<usize>,
}

impl<'t> Index<'t> {
    fn top(self) -> Result<BTreeMap<String, Part>, String> {
        let mut parts = BTreeMap::new();
        for (name, raw) in self.entries(self.text)? {
            let section = SECTIONS.iter().find(|(section, _)| *section == name);
            let part = self.part(raw, section.map_or(0, |(_, maps)| *maps))?;
            parts.insert(name, part);
        }
        Ok(parts)
    }

    /// A part, or the parts in so many maps above each other.
    fn part(self, raw: &'t RawValue, maps: usize) -> Result<Part, String> {
        if maps > 0 && raw.get().starts_with('{') {
            let mut named = BTreeMap::new();
            for (name, raw) in self.entries(raw.get())? {
                named.insert(name, self.part(raw, maps - 1)?);
            }
            return Ok(Part::Named(named));
        }
        // It is borrowed from the text, so that its address says where it is.
        let begin = raw.get().as_ptr().addr().saturating_sub(self.text.as_ptr().addr());
        let place = begin..begin + raw.get().len();
        Ok(Part::Whole(Whole { place, value: OnceCell::new() }))
    }

    /// The entries of a map; none of what is no map.
    fn entries(self, text: &'t str) -> Result<BTreeMap<String, &'t RawValue>, String> {
        if !text.trim_start().starts_with('{') {
            return Ok(BTreeMap::new());
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        let entries = Entries { left: self.left }.deserialize(&mut reader);
        let entries = entries.and_then(|entries| reader.end().map(|()| entries));
        entries.map_err(|error| format!("it is not JSON: {error}"))
    }
}

/// Reads a map without reading what is in it.
struct Entries<'l> {
    left: &'l Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Entries<'_> {
    type Value = BTreeMap<String, &'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = BTreeMap<String, &'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some((name, raw)) = map.next_entry::<String, &RawValue>()? {
            let left = self.left.get().checked_sub(1);
            self.left.set(left.ok_or_else(|| {
                A::Error::custom(format!("it has more than {ENTRIES_MAX} paths and named parts"))
            })?);
            entries.insert(name, raw);
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_and_yaml_read_the_same() {
        let yaml = "openapi: 3.0.3\npaths:\n  /a:\n    get:\n      responses:\n        200: \
                    {description: no}\n  x-more: 1\n";
        let json = json!({"openapi": "3.0.3", "x": 1, "paths": {
            "/a": {"get": {"responses": {"200": {"description": "no"}}}}, "x-more": 1}});
        let yaml = OpenApi::parse(yaml).unwrap();
        let json = OpenApi::parse(format!("\u{feff} {json}")).unwrap();
        let paths = |document: &OpenApi| -> Vec<(String, Value)> {
            document.paths().map(|path| (path.clone(), document.item(path).unwrap())).collect()
        };
        assert_eq!(paths(&yaml), paths(&json));
        assert_eq!((yaml.version, paths(&yaml).len()), (Version::V30, 1));
    }

    #[test]
    fn key_order_of_a_document_does_not_matter() {
        let text = r#"{"paths": {"/b": {"put": {}, "get": {}}, "x-more": {}, "/a": {}},
            "openapi": "3.1.0", "components": {"schemas": {"A": {"type": "null", "enum": []}}}}"#;
        let document = OpenApi::parse(text).unwrap();
        let paths: Vec<&String> = document.paths().collect();
        assert_eq!(paths, ["/a", "/b"]);
        assert_eq!(document.item("/b").unwrap().to_string(), r#"{"get":{},"put":{}}"#);
        let shared = document.at("/components/schemas/A").unwrap();
        assert_eq!(shared.to_string(), r#"{"enum":[],"type":"null"}"#);
    }

    #[test]
    fn an_invalid_document_is_reported() {
        for (text, told) in [
            ("{}", "no `openapi`"),
            ("{", "not JSON"),
            ("{\"openapi\": \"3.1.0\"} x", "not JSON"),
            ("a: [", "not YAML or JSON"),
            ("[1]", "no `openapi`"),
            ("swagger: '1.2'", "Swagger `1.2`"),
            ("openapi: 3.10.0", "`3.10.0`"),
            ("openapi: 4.0.0", "OpenAPI 3.0 and 3.1 are known"),
        ] {
            let error = OpenApi::parse(text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
        for (text, version) in [
            ("swagger: '2.0'", Version::V20),
            ("swagger: 2.0", Version::V20),
            ("openapi: 3.0.3", Version::V30),
            ("openapi: 3.1", Version::V31),
        ] {
            assert_eq!(OpenApi::parse(text).unwrap().version, version, "{text}");
        }
    }

    #[test]
    fn an_unreadable_part_affects_no_other() {
        let deep = format!("{}1{}", "[".repeat(70), "]".repeat(70));
        let text = format!(
            "{{\"openapi\": \"3.1.0\", \"x\": {deep}, \"paths\": {{\"/a\": {deep}, \"/b\": {{}}}},
            \"components\": {{\"schemas\": {{\"A\": {deep}, \"B\": {{\"C\": 1}}}}}}}}"
        );
        let document = OpenApi::parse(text).unwrap();
        let told = "its lists and maps stand more than 64 deep";
        assert_eq!(document.item("/a").unwrap_err(), told);
        assert_eq!(document.at("/components/schemas/A").unwrap_err(), told);
        assert_eq!(document.field("x"), None);
        assert_eq!(document.item("/b"), Ok(json!({})));
        assert_eq!(document.at("/components/schemas/B/C"), Ok(&json!(1)));
        assert_eq!(document.at("/paths/~1b"), Ok(&json!({})));
        for nowhere in ["/components", "/components/schemas", "/components/schemas/D", ""] {
            assert!(document.at(nowhere).unwrap_err().contains("leads nowhere"), "{nowhere}");
        }
    }

    #[test]
    fn oversized_parts_are_refused_one_by_one() {
        // Seven bytes of text take many times the memory.
        let many = vec!["{\"\":0}"; 300].join(",");
        let names: Vec<String> = (0..20).map(|number| format!("\"S{number}\": [{many}]")).collect();
        let schemas = names.join(",");
        let text =
            format!("{{\"openapi\": \"3.1.0\", \"components\": {{\"schemas\": {{{schemas}}}}}}}");
        let document = OpenApi::parse(text).unwrap();
        document.kept.set(1_000_000);
        let read = |number: usize| document.at(&format!("/components/schemas/S{number}"));
        let count = (0..20).filter(|number| read(*number).is_ok()).count();
        assert!((2..10).contains(&count), "{count} of 20 fit");
        assert_eq!(read(19).unwrap_err(), "with it the document takes too much memory");
        assert!(read(0).is_ok(), "what was read is kept");
    }

    #[test]
    fn documents_with_too_many_names_are_refused() {
        let text = "{\"paths\": {\"/a\": 0, \"/b\": 0}, \"components\": {\"schemas\": {\"A\": 0}}}";
        let index = |entries: usize| Index { text, left: &Cell::new(entries) }.top();
        assert!(index(6).is_ok());
        let told = index(5).unwrap_err();
        assert!(told.contains("paths and named parts"), "{told}");
    }

    #[test]
    fn references_are_internal_and_finite() {
        let document = json!({"openapi": "3.1.0", "a/b": {"c d": {"n": 1}},
            "x": {"$ref": "#/a~1b/c%20d"}, "y": {"$ref": "#/y"},
            "z": {"$ref": "other.yaml#/a"}, "w": {"$ref": "#/nowhere"}});
        let document = OpenApi::parse(document.to_string()).unwrap();
        let at = |name: &str| document.follow(document.field(name).unwrap());
        assert_eq!(at("x").unwrap(), &json!({"n": 1}));
        assert!(at("y").unwrap_err().contains("lead to each other"));
        assert!(at("z").unwrap_err().contains("leads out of the document"));
        assert!(at("w").unwrap_err().contains("leads nowhere"));
    }
}
