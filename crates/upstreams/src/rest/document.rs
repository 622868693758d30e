//! An OpenAPI document as a value: read from JSON or YAML within limits, of a known version, with
//! references that stay inside it.

use kernel::definition::plan::source::is_deeper;
use outbound::percent::decoded;
use serde_json::{Map, Value};

/// How deep lists and maps may stand in each other.
const DEPTH_MAX: usize = 64;
/// How many values a YAML document may have: more than the largest one within its size has.
const NODES_MAX: usize = 4_000_000;
/// How many references may lead to references.
const HOPS_MAX: usize = 16;

/// A document.
#[derive(Debug)]
pub(super) struct OpenApi {
    root: Value,
    pub(super) version: Version,
}

/// The versions of OpenAPI that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// 3.0, whose schemas are a dialect of their own.
    V30,
    /// 3.1, whose schemas are JSON Schema 2020-12.
    V31,
}

impl OpenApi {
    /// Reads a text; if it is none, why.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut root = if text.trim_start().starts_with('{') { json(text)? } else { yaml(text)? };
        if is_deeper(&root, DEPTH_MAX) {
            return Err(format!("its lists and maps stand more than {DEPTH_MAX} deep"));
        }
        // The names of operations and of shared schemas depend on which comes first: a document
        // that is only written in another order has the same tools.
        root.sort_all_objects();
        let version = match root.get("openapi").and_then(Value::as_str) {
            Some(said) if is_of(said, "3.0") => Version::V30,
            Some(said) if is_of(said, "3.1") => Version::V31,
            Some(said) => return Err(format!("it is of OpenAPI `{said}`; 3.0 and 3.1 are known")),
            None if root.get("swagger").is_some() => {
                return Err("it is of Swagger 2, which must be converted to OpenAPI 3".to_owned());
            }
            None => return Err("it has no `openapi` that says its version".to_owned()),
        };
        Ok(Self { root, version })
    }

    /// Its paths with what can be done there, in the order of their texts.
    pub(super) fn paths(&self) -> impl Iterator<Item = (&String, &Value)> {
        let paths = self.root.get("paths").and_then(Value::as_object);
        // Extensions stand among the paths.
        paths.into_iter().flatten().filter(|(path, _)| path.starts_with('/'))
    }

    /// A field of the whole document.
    pub(super) fn field(&self, name: &str) -> Option<&Value> {
        self.root.get(name)
    }

    /// What a pointer names.
    pub(super) fn at(&self, pointer: &str) -> Result<&Value, String> {
        self.root.pointer(pointer).ok_or_else(|| format!("`#{pointer}` leads nowhere"))
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

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))
}

fn yaml(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_nodes: NODES_MAX,
            max_events: 2 * NODES_MAX,
        },
        // As YAML 1.2 has it: `no` and `on` are texts.
        strict_booleans: true,
        emit_comments: false,
        with_snippet: false,
    };
    let read = serde_saphyr::from_str_with_options(text, options);
    read.map_err(|error| format!("it is not YAML or JSON: {error}"))
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
        let json = OpenApi::parse(&format!("\u{feff} {json}")).unwrap();
        let paths = |document: &OpenApi| -> Vec<(String, Value)> {
            document.paths().map(|(path, item)| (path.clone(), item.clone())).collect()
        };
        assert_eq!(paths(&yaml), paths(&json));
        assert_eq!((yaml.version, paths(&yaml).len()), (Version::V30, 1));
    }

    #[test]
    fn what_is_no_document_is_told() {
        let deep =
            format!("{{\"openapi\": \"3.1.0\", \"a\": {}1{}}}", "[".repeat(70), "]".repeat(70));
        for (text, told) in [
            ("{}", "no `openapi`"),
            ("{", "not JSON"),
            ("a: [", "not YAML or JSON"),
            ("[1]", "no `openapi`"),
            ("swagger: '2.0'", "Swagger 2"),
            ("openapi: 3.10.0", "`3.10.0`"),
            ("openapi: 4.0.0", "3.0 and 3.1 are known"),
            (deep.as_str(), "more than 64 deep"),
        ] {
            let error = OpenApi::parse(text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn paths_come_in_the_order_of_their_texts() {
        let text = r#"{"openapi": "3.1.0", "paths": {"/b": {}, "x-more": {}, "/a": {}}}"#;
        let document = OpenApi::parse(text).unwrap();
        let paths: Vec<&String> = document.paths().map(|(path, _)| path).collect();
        assert_eq!(paths, ["/a", "/b"]);
    }

    #[test]
    fn references_stay_inside_and_end() {
        let document = json!({"openapi": "3.1.0", "a/b": {"c d": {"n": 1}},
            "x": {"$ref": "#/a~1b/c%20d"}, "y": {"$ref": "#/y"},
            "z": {"$ref": "other.yaml#/a"}, "w": {"$ref": "#/nowhere"}});
        let document = OpenApi::parse(&document.to_string()).unwrap();
        let at = |name: &str| document.follow(document.field(name).unwrap());
        assert_eq!(at("x").unwrap(), &json!({"n": 1}));
        assert!(at("y").unwrap_err().contains("lead to each other"));
        assert!(at("z").unwrap_err().contains("leads out of the document"));
        assert!(at("w").unwrap_err().contains("leads nowhere"));
    }
}
