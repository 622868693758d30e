//! `tools/list` as text, written once for each caller, shape of version and change of the catalog
//! or the policies, so that a long list costs a lookup and a copy. What a tool looks like in each
//! version is decided here too.

use super::client::Version;
use crate::lock;
use axum::body::Bytes;
use engine::{Engine, ListVersion};
use kernel::tool::call::{Caller, Reach, ToolSpec};
use kernel::values::ids::ToolName;
use kernel::values::members::take;
use kernel::values::names::{Alphabet, MCP_NAME_CHARS_MAX, outward};
use quick_cache::unsync::Cache;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

/// How many callers' lists are kept, one for each caller and shape of version.
const LISTS_MAX: usize = 1_024;
/// How many texts they have together: callers who see the same tools share one.
const TEXTS_MAX: usize = 64;
/// How much text one page of a list has, unless one tool alone has more.
const PAGE_BYTES_MAX: usize = 1024 * 1024;
/// How many tools that cannot be shown are logged; a server may have new names for ever.
const UNLISTED_MAX: usize = 1_024;

/// The lists that were written already.
#[derive(Default)]
pub(crate) struct Lists {
    cached: Mutex<CachedLists>,
    /// Tools that no client can be shown; each is logged once.
    unlisted: Mutex<BTreeSet<ToolName>>,
}

/// All tools of one reader as text.
#[derive(Debug, PartialEq)]
pub(crate) struct Rendered {
    /// The tools as JSON, with a comma between two.
    text: Bytes,
    /// Each tool and where it ends in the text, by name.
    ends: Vec<(ToolName, usize)>,
}

impl Lists {
    /// All tools that this caller sees, as a client of this version reads them. Those that are of
    /// use to runs alone are left out of a realm that only passes on what other servers have.
    pub(crate) fn tools(
        &self,
        engine: &Engine,
        caller: &Caller,
        version: Version,
    ) -> Arc<Rendered> {
        let shape = Shape::of(version);
        // Read before the tools are: a change in between is found at the next request.
        let runs = engine.catalog().has_definitions(&caller.realm);
        let Some(now) = engine.tools().list_version() else {
            return Arc::new(self.render(&offered(engine, caller, runs), shape));
        };
        let reader = Reader { caller: caller.clone(), shape, runs };
        if let Some(rendered) = lock(&self.cached).find(&reader, &now) {
            return rendered;
        }
        let specs = offered(engine, caller, runs);
        let shared = lock(&self.cached).text_of(&specs, shape);
        let rendered = shared.unwrap_or_else(|| {
            let rendered = Arc::new(self.render(&specs, shape));
            lock(&self.cached).keep_text(Text { specs, shape, rendered: rendered.clone() });
            rendered
        });
        lock(&self.cached).keep(reader, now, rendered.clone());
        rendered
    }

    fn render(&self, specs: &[Arc<ToolSpec>], shape: Shape) -> Rendered {
        let mut text = String::new();
        let mut ends: Vec<(ToolName, usize)> = Vec::with_capacity(specs.len());
        for spec in specs {
            // A tool overrides a plan of the same name, in the list as in a call.
            if ends.last().is_some_and(|(last, _)| *last == spec.name) {
                continue;
            }
            let Some(tool) = tool(spec, shape) else {
                self.tell_unlisted(spec);
                continue;
            };
            if !ends.is_empty() {
                text.push(',');
            }
            text.push_str(&tool);
            ends.push((spec.name.clone(), text.len()));
        }
        Rendered { text: text.into(), ends }
    }

    fn tell_unlisted(&self, spec: &ToolSpec) {
        let mut unlisted = lock(&self.unlisted);
        let is_new = unlisted.len() < UNLISTED_MAX && unlisted.insert(spec.name.clone());
        drop(unlisted);
        if is_new {
            let tool = spec.name.as_str();
            tracing::warn!(
                tool,
                "not listed in MCP: its name is too long there, or it takes no object"
            );
        }
    }
}

impl Rendered {
    /// The tools after this name as JSON, at most so many and not much text, and the last one's
    /// name if more follow.
    pub(crate) fn page(&self, after: Option<&str>, max: usize) -> (Bytes, Option<&str>) {
        let first =
            after.map_or(0, |after| self.ends.partition_point(|(name, _)| name.as_str() <= after));
        // One more than the end of the tool before it: the comma.
        let begin = first.checked_sub(1).map_or(0, |before| self.ends[before].1 + 1);
        let fitting = self.ends.partition_point(|(_, end)| *end <= begin + PAGE_BYTES_MAX);
        // At least one, however large it is.
        let most = max.min(fitting.saturating_sub(first)).max(1);
        let page = &self.ends[first..self.ends.len().min(first.saturating_add(most))];
        let Some((last, end)) = page.last() else { return (Bytes::new(), None) };
        let more = first + page.len() < self.ends.len();
        (self.text.slice(begin..*end), more.then_some(last.as_str()))
    }
}

/// For whom a list is written. What is visible may depend on all of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Reader {
    caller: Caller,
    shape: Shape,
    /// Whether its realm has something that runs.
    runs: bool,
}

struct CachedLists {
    lists: Cache<Reader, Entry>,
    /// What they say, oldest first.
    texts: VecDeque<Text>,
}

/// A text that every caller gets who sees these tools.
struct Text {
    specs: Vec<Arc<ToolSpec>>,
    shape: Shape,
    rendered: Arc<Rendered>,
}

struct Entry {
    /// What it follows from.
    version: ListVersion,
    rendered: Arc<Rendered>,
}

impl Default for CachedLists {
    fn default() -> Self {
        Self { lists: Cache::new(LISTS_MAX), texts: VecDeque::new() }
    }
}

impl CachedLists {
    fn find(&self, reader: &Reader, version: &ListVersion) -> Option<Arc<Rendered>> {
        let entry = self.lists.get(reader).filter(|entry| entry.version == *version)?;
        Some(entry.rendered.clone())
    }

    fn keep(&mut self, reader: Reader, version: ListVersion, rendered: Arc<Rendered>) {
        self.lists.insert(reader, Entry { version, rendered });
    }

    /// The text of these tools, if another caller sees just the same.
    fn text_of(&self, specs: &[Arc<ToolSpec>], shape: Shape) -> Option<Arc<Rendered>> {
        let is_same = |(one, other): (&Arc<ToolSpec>, &Arc<ToolSpec>)| {
            Arc::ptr_eq(one, other) || one == other
        };
        let says = |text: &&Text| {
            text.shape == shape
                && text.specs.len() == specs.len()
                && text.specs.iter().zip(specs).all(is_same)
        };
        self.texts.iter().find(says).map(|text| text.rendered.clone())
    }

    /// Keeps a text; the oldest goes, with the lists that it is the text of.
    fn keep_text(&mut self, text: Text) {
        if self.texts.len() >= TEXTS_MAX
            && let Some(oldest) = self.texts.pop_front()
        {
            self.lists.retain(|_, entry| !Arc::ptr_eq(&entry.rendered, &oldest.rendered));
        }
        self.texts.push_back(text);
    }
}

/// What a caller is offered in a realm that has something that runs, or has not.
fn offered(engine: &Engine, caller: &Caller, runs: bool) -> Vec<Arc<ToolSpec>> {
    let mut specs = engine.tools().callables(caller);
    if !runs {
        let is_other = |spec: &Arc<ToolSpec>| !tools::FOR_RUNS.contains(&spec.name.as_str());
        specs.retain(|spec| spec.listed.is_some() || is_other(spec));
    }
    specs
}

/// What a tool may look like in a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Shape {
    /// No title, no output schema.
    Bare,
    /// Both schemas describe objects.
    Objects,
    /// The output's schema may describe anything.
    Any,
}

impl Shape {
    fn of(version: Version) -> Self {
        match version {
            Version::March2025 => Shape::Bare,
            Version::June2025 | Version::November2025 => Shape::Objects,
            Version::July2026 => Shape::Any,
        }
    }
}

/// Whether every output of this schema is an object. Where structured output must be one and this
/// does not hold, output and schema are both sent as `{result: ..}`.
pub(crate) fn promises_object(output_schema: &Value) -> bool {
    output_schema["type"] == "object"
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    description: &'a str,
    input_schema: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Cow<'a, Value>>,
    annotations: Annotations<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Annotations<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    read_only_hint: bool,
    destructive_hint: bool,
    idempotent_hint: bool,
}

/// A tool as JSON; none where it cannot be shown to a client.
fn tool(spec: &ToolSpec, shape: Shape) -> Option<String> {
    let name = outward(spec.name.as_str(), Alphabet::Mcp);
    if name.is_empty() || name.len() > MCP_NAME_CHARS_MAX {
        return None;
    }
    match spec.listed.as_deref() {
        Some(Value::Object(listed)) => passed_on(listed, spec, name, shape),
        _ => own(spec, &name, shape),
    }
}

/// A tool of another server: as that lists it, whatever it says of it, but under the name that it
/// has here and with schemas that this version can hold.
fn passed_on(
    listed: &Map<String, Value>,
    spec: &ToolSpec,
    name: String,
    shape: Shape,
) -> Option<String> {
    let mut shown = listed.clone();
    shown.insert("name".to_owned(), Value::String(name));
    shown.insert("inputSchema".to_owned(), input(&spec.input_schema, shape)?.into_owned());
    match spec.output_schema.as_ref().and_then(|schema| output(schema, shape)) {
        Some(schema) => shown.insert("outputSchema".to_owned(), schema.into_owned()),
        None => take(&mut shown, "outputSchema"),
    };
    // A tool without a description is refused by some clients.
    let described = |text: &Value| text.as_str().is_some_and(|text| !text.is_empty());
    if !shown.get("description").is_some_and(described) {
        shown.insert("description".to_owned(), Value::String(spec.title.clone()));
    }
    if shape == Shape::Bare
        && let Some(title) = take(&mut shown, "title")
        && let Value::Object(annotations) = shown.entry("annotations").or_insert_with(|| json!({}))
    {
        annotations.entry("title").or_insert(title);
    }
    serde_json::to_string(&shown).ok()
}

/// A tool of our own, as we know it.
fn own(spec: &ToolSpec, name: &str, shape: Shape) -> Option<String> {
    let title = Some(spec.title.as_str()).filter(|title| !title.is_empty());
    let reads = spec.reach == Reach::Reads;
    let bare = shape == Shape::Bare;
    let tool = Tool {
        name,
        title: title.filter(|_| !bare),
        // A tool without a description is refused by some clients.
        description: if spec.description.is_empty() { &spec.title } else { &spec.description },
        input_schema: input(&spec.input_schema, shape)?,
        output_schema: spec.output_schema.as_ref().and_then(|schema| output(schema, shape)),
        annotations: Annotations {
            title: title.filter(|_| bare),
            read_only_hint: reads,
            // We do not know what a write overwrites, so the worst is said.
            destructive_hint: !reads,
            idempotent_hint: reads || spec.idempotent,
        },
    };
    serde_json::to_string(&tool).ok()
}

/// The schema of the arguments, which are always an object; none where it takes no object.
fn input(schema: &Value, shape: Shape) -> Option<Cow<'_, Value>> {
    let schema = match schema {
        Value::Bool(true) => Cow::Owned(json!({"type": "object"})),
        Value::Object(members) => match members.get("type") {
            Some(Value::String(kind)) if kind == "object" => Cow::Borrowed(schema),
            Some(Value::String(_)) => return None,
            Some(Value::Array(kinds)) if !kinds.iter().any(|kind| kind == "object") => return None,
            Some(_) | None => {
                let mut members = members.clone();
                members.insert("type".to_owned(), Value::from("object"));
                Cow::Owned(Value::Object(members))
            }
        },
        _ => return None,
    };
    Some(if shape == Shape::Any { schema } else { without_bare_properties(schema) })
}

fn output(schema: &Value, shape: Shape) -> Option<Cow<'_, Value>> {
    match (shape, schema) {
        (Shape::Bare, _) => None,
        (Shape::Any, Value::Bool(any)) => Some(Cow::Owned(as_object(*any))),
        (Shape::Any, _) => Some(Cow::Borrowed(schema)),
        (Shape::Objects, _) if promises_object(schema) => {
            Some(without_bare_properties(Cow::Borrowed(schema)))
        }
        (Shape::Objects, _) => Some(without_bare_properties(Cow::Owned(wrapped(schema)))),
    }
}

/// The schema of `{result: ..}`.
fn wrapped(schema: &Value) -> Value {
    let mut inner = schema.clone();
    // Only a root may name the dialect.
    let dialect = inner.as_object_mut().and_then(|members| take(members, "$schema"));
    rebase(&mut inner);
    let mut outer =
        json!({"type": "object", "properties": {"result": inner}, "required": ["result"]});
    if let Some(dialect) = dialect {
        outer["$schema"] = dialect;
    }
    outer
}

/// Lets references into the schema itself lead to where it stands now.
fn rebase(schema: &mut Value) {
    match schema {
        Value::Object(members) if !members.contains_key("$id") => {
            for (key, value) in members {
                rebase_member(key, value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(rebase),
        // Under an id of its own, references begin there.
        _ => {}
    }
}

fn rebase_member(key: &str, value: &mut Value) {
    match key {
        "$ref" | "$dynamicRef" => {
            if let Value::String(reference) = value
                && (*reference == "#" || reference.starts_with("#/"))
            {
                reference.insert_str(1, "/properties/result");
            }
        }
        // Values, not schemas.
        "const" | "enum" | "default" | "examples" => {}
        // Here the keys are names, whatever they are.
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            if let Value::Object(schemas) = value {
                schemas.values_mut().for_each(rebase);
            }
        }
        _ => rebase(value),
    }
}

/// The versions with a handshake want each property's schema to be an object.
fn without_bare_properties(schema: Cow<'_, Value>) -> Cow<'_, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    if !properties.is_some_and(|properties| properties.values().any(Value::is_boolean)) {
        return schema;
    }
    let mut schema = schema.into_owned();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for property in properties.values_mut() {
            if let Value::Bool(any) = *property {
                *property = as_object(any);
            }
        }
    }
    Cow::Owned(schema)
}

/// The schema of anything, or of nothing.
fn as_object(any: bool) -> Value {
    if any { Value::Object(Map::new()) } else { json!({"not": {}}) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, input: Value, output: Option<Value>) -> ToolSpec {
        ToolSpec {
            title: "A title".to_owned(),
            description: "does it".to_owned(),
            input_schema: Arc::new(input),
            output_schema: output.map(Arc::new),
            reach: Reach::Writes,
            idempotent: true,
            ..testkit::specs::tool(name)
        }
    }

    fn shown(spec: &ToolSpec, version: Version) -> Value {
        serde_json::from_str(&tool(spec, Shape::of(version)).unwrap()).unwrap()
    }

    #[test]
    fn a_page_has_so_much_text_and_at_least_one_tool() {
        let tool = |bytes: usize| "x".repeat(bytes);
        let sizes = [PAGE_BYTES_MAX / 2, PAGE_BYTES_MAX / 2 - 1, 1, 2 * PAGE_BYTES_MAX, 3];
        let mut text = String::new();
        let mut ends = Vec::new();
        for (number, bytes) in sizes.into_iter().enumerate() {
            text.push_str(if ends.is_empty() { "" } else { "," });
            text.push_str(&tool(bytes));
            ends.push((ToolName::from(format!("t{number}")), text.len()));
        }
        let rendered = Rendered { text: text.into(), ends };
        let page = |after, max| {
            let (text, last) = rendered.page(after, max);
            (text.len(), last.map(str::to_owned))
        };
        assert_eq!(page(None, 1_000), (PAGE_BYTES_MAX, Some("t1".to_owned())));
        assert_eq!(page(None, 1), (PAGE_BYTES_MAX / 2, Some("t0".to_owned())));
        assert_eq!(page(Some("t1"), 1_000), (1, Some("t2".to_owned())));
        assert_eq!(page(Some("t2"), 1_000), (2 * PAGE_BYTES_MAX, Some("t3".to_owned())));
        assert_eq!(page(Some("t3"), 1_000), (3, None));
        assert_eq!(page(Some("t4"), 1_000), (0, None));
    }

    #[test]
    fn each_version_reads_what_it_knows() {
        let spec =
            spec("a::b/c", json!({"properties": {"n": true}}), Some(json!({"type": "number"})));
        let annotations =
            json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true});
        let modern = json!({
            "name": "a__b--c", "title": "A title", "description": "does it",
            "inputSchema": {"type": "object", "properties": {"n": true}},
            "outputSchema": {"type": "number"},
            "annotations": annotations,
        });
        assert_eq!(shown(&spec, Version::July2026), modern);
        let mut objects = modern.clone();
        objects["inputSchema"]["properties"]["n"] = json!({});
        objects["outputSchema"] = json!({"type": "object",
            "properties": {"result": {"type": "number"}}, "required": ["result"]});
        assert_eq!(shown(&spec, Version::November2025), objects);
        assert_eq!(shown(&spec, Version::June2025), objects);
        let mut bare = objects.clone();
        bare["annotations"]["title"] = json!("A title");
        bare.as_object_mut().unwrap().retain(|key, _| key != "title" && key != "outputSchema");
        assert_eq!(shown(&spec, Version::March2025), bare);
    }

    #[test]
    fn the_listing_of_an_upstream_tool_is_passed_on() {
        let listed = json!({
            "name": "b", "title": "B", "icons": [{"src": "https://a.test/b.png"}],
            "inputSchema": {"type": "object", "properties": {"n": true}},
            "outputSchema": {"type": "number"},
            "annotations": {"readOnlyHint": true, "openWorldHint": false},
            "execution": {"taskSupport": "optional"}, "_meta": {"a.test/x": [1]}, "later": 1,
        });
        let input = listed["inputSchema"].clone();
        let mut spec = spec("up.b", input, Some(json!({"type": "number"})));
        spec.listed = Some(Arc::new(listed.clone()));
        let mut modern = listed;
        modern["name"] = json!("up.b");
        modern["description"] = json!("A title");
        assert_eq!(shown(&spec, Version::July2026), modern);
        let mut objects = modern.clone();
        objects["inputSchema"]["properties"]["n"] = json!({});
        objects["outputSchema"] = json!({"type": "object",
            "properties": {"result": {"type": "number"}}, "required": ["result"]});
        assert_eq!(shown(&spec, Version::November2025), objects);
        let mut bare = objects;
        bare["annotations"]["title"] = json!("B");
        bare.as_object_mut().unwrap().retain(|key, _| key != "title" && key != "outputSchema");
        assert_eq!(shown(&spec, Version::March2025), bare);
    }

    #[test]
    fn a_read_is_harmless_and_a_title_stands_in_for_a_description() {
        let mut spec = spec("a", json!({"type": "object"}), None);
        spec.reach = Reach::Reads;
        spec.idempotent = false;
        spec.description = String::new();
        let shown = shown(&spec, Version::July2026);
        let annotations =
            json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true});
        assert_eq!(
            (&shown["annotations"], &shown["description"]),
            (&annotations, &json!("A title"))
        );
        assert!(shown.get("outputSchema").is_none());
    }

    #[test]
    fn arguments_are_always_an_object() {
        let given = |schema: Value| {
            let spec = spec("a", schema, None);
            tool(&spec, Shape::Any).map(|_| shown(&spec, Version::July2026)["inputSchema"].clone())
        };
        let object = json!({"type": "object"});
        assert_eq!(given(json!(true)), Some(object.clone()));
        assert_eq!(given(json!({})), Some(object.clone()));
        assert_eq!(given(json!({"type": ["object", "null"]})), Some(object));
        let any = json!({"$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object", "allOf": [{"anyOf": [true]}], "if": {}, "$defs": {"a": {}}});
        assert_eq!(given(any.clone()), Some(any));
        for none in [json!(false), json!({"type": "string"}), json!({"type": ["null"]})] {
            assert_eq!(given(none), None);
        }
    }

    #[test]
    fn a_name_that_mcp_does_not_take_is_not_shown() {
        for (length, listed) in [(0, false), (1, true), (128, true), (129, false)] {
            let spec = spec(&"a".repeat(length), json!({}), None);
            assert_eq!(tool(&spec, Shape::Any).is_some(), listed, "{length}");
        }
    }

    #[test]
    fn an_output_is_wrapped_where_it_must_be_an_object_and_may_be_none() {
        let given = |schema: &Value| output(schema, Shape::Objects).unwrap().into_owned();
        for bare in [json!({"type": ["object", "null"]}), json!({"oneOf": []}), json!({})] {
            let expected =
                json!({"type": "object", "properties": {"result": bare}, "required": ["result"]});
            assert_eq!(given(&bare), expected);
        }
        let object = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        assert_eq!(given(&object), object);
        let any = output(&json!(true), Shape::Objects).unwrap().into_owned();
        assert_eq!(any["properties"], json!({"result": {}}));
        assert_eq!(output(&json!(false), Shape::Any).unwrap().into_owned(), json!({"not": {}}));
    }

    #[test]
    fn references_inside_a_wrapped_schema_lead_to_where_they_did() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "array",
            "items": {"$ref": "#/$defs/node"},
            "default": {"$ref": "#/x"},
            "$defs": {
                "node": {"properties": {
                    "default": {"$ref": "#"}, "$ref": {"$ref": "#anchor"},
                    "far": {"$ref": "other.json#/a"},
                }},
                "apart": {"$id": "urn:apart", "$ref": "#/y"},
            },
        });
        let wrapped = wrapped(&schema);
        let dialect = "https://json-schema.org/draft/2020-12/schema";
        assert_eq!((&wrapped["$schema"], &wrapped["type"]), (&json!(dialect), &json!("object")));
        let expected = json!({
            "type": "array",
            "items": {"$ref": "#/properties/result/$defs/node"},
            "default": {"$ref": "#/x"},
            "$defs": {
                "node": {"properties": {
                    "default": {"$ref": "#/properties/result"}, "$ref": {"$ref": "#anchor"},
                    "far": {"$ref": "other.json#/a"},
                }},
                "apart": {"$id": "urn:apart", "$ref": "#/y"},
            },
        });
        assert_eq!(wrapped["properties"]["result"], expected);
    }

    #[test]
    fn a_list_is_cut_into_pages_by_name() {
        let specs: Vec<Arc<ToolSpec>> = ["a", "a", "b", "c", "d"]
            .map(|name| Arc::new(spec(name, json!({}), None)))
            .into_iter()
            .chain([Arc::new(spec("e", json!(false), None))])
            .collect();
        let lists = Lists::default();
        let rendered = lists.render(&specs, Shape::Any);
        let names = |after: Option<&str>, max: usize| {
            let (text, next) = rendered.page(after, max);
            let text = [b"[".as_slice(), &text, b"]"].concat();
            let tools: Vec<Value> = serde_json::from_slice(&text).unwrap();
            let names: Vec<String> =
                tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
            (names.join(""), next.map(str::to_owned))
        };
        assert_eq!(names(None, 10), ("abcd".to_owned(), None));
        assert_eq!(names(None, 4), ("abcd".to_owned(), None));
        assert_eq!(names(None, 2), ("ab".to_owned(), Some("b".to_owned())));
        assert_eq!(names(Some("b"), 2), ("cd".to_owned(), None));
        // One that is gone meanwhile is no obstacle.
        assert_eq!(names(Some("bb"), 1), ("c".to_owned(), Some("c".to_owned())));
        assert_eq!(names(Some("d"), 2), (String::new(), None));
        assert_eq!(names(None, 0), ("a".to_owned(), Some("a".to_owned())));
        assert_eq!(lock(&lists.unlisted).len(), 1);
        let many: Vec<Arc<ToolSpec>> = (0..2 * UNLISTED_MAX)
            .map(|number| Arc::new(spec(&format!("n{number}"), json!({"type": "string"}), None)))
            .collect();
        assert!(lists.render(&many, Shape::Any).ends.is_empty());
        assert_eq!(lock(&lists.unlisted).len(), UNLISTED_MAX, "new names for ever are no room");
    }

    #[test]
    fn a_list_is_good_for_its_reader_and_its_version_alone_and_so_many_are_kept() {
        let reader = |subject: &str| Reader {
            caller: Caller::new("r", subject),
            shape: Shape::Any,
            runs: true,
        };
        let version = |catalog, policy: &str| ListVersion { catalog, policy: Some(policy.into()) };
        let rendered = Arc::new(Rendered { text: Bytes::new(), ends: Vec::new() });
        let mut cached = CachedLists::default();
        cached.keep(reader("a"), version(1, "p"), rendered.clone());
        assert!(cached.find(&reader("a"), &version(1, "p")).is_some());
        // A list of another catalog, of other policies or of another actor is no answer.
        assert!(cached.find(&reader("a"), &version(2, "p")).is_none());
        assert!(cached.find(&reader("a"), &version(1, "q")).is_none());
        let mut acted = reader("a");
        acted.caller.actor = Some("eve".into());
        assert!(cached.find(&acted, &version(1, "p")).is_none());
        for number in 0..LISTS_MAX + 100 {
            let reader = reader(&number.to_string());
            cached.keep(reader.clone(), version(1, "p"), rendered.clone());
            assert!(cached.find(&reader, &version(1, "p")).is_some());
        }
        assert!(cached.lists.len() <= LISTS_MAX);
    }

    #[test]
    fn callers_who_see_the_same_share_a_text_and_no_one_gets_anothers() {
        let specs = |names: &[&str]| -> Vec<Arc<ToolSpec>> {
            names.iter().map(|name| Arc::new(spec(name, json!({}), None))).collect()
        };
        let lists = Lists::default();
        let mut cached = CachedLists::default();
        for number in 0..TEXTS_MAX {
            let specs = specs(&["a", &format!("b{number}")]);
            let rendered = Arc::new(lists.render(&specs, Shape::Any));
            let reader = Reader {
                caller: Caller::new("r", format!("c{number}")),
                shape: Shape::Any,
                runs: true,
            };
            let version = ListVersion { catalog: 1, policy: None };
            cached.keep_text(Text { specs, shape: Shape::Any, rendered: rendered.clone() });
            cached.keep(reader, version, rendered);
        }
        let found = cached.text_of(&specs(&["a", "b7"]), Shape::Any).unwrap();
        assert_eq!(*found, lists.render(&specs(&["a", "b7"]), Shape::Any));
        for (names, shape) in [
            (&["a"] as &[&str], Shape::Any),
            (&["a", "b7", "c"], Shape::Any),
            (&["b7", "a"], Shape::Any),
            (&["a", "b7"], Shape::Bare),
        ] {
            assert!(cached.text_of(&specs(names), shape).is_none(), "{names:?}");
        }
        let rendered = Arc::new(lists.render(&[], Shape::Any));
        cached.keep_text(Text { specs: Vec::new(), shape: Shape::Any, rendered });
        assert_eq!((cached.texts.len(), cached.lists.len()), (TEXTS_MAX, TEXTS_MAX - 1));
        assert!(cached.text_of(&specs(&["a", "b0"]), Shape::Any).is_none(), "the oldest went");
    }
}
