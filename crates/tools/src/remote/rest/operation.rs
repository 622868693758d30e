//! Operations of a document: each becomes a name, a schema of arguments, what it does to the
//! world, and how its request is put together. One that cannot be called is left out by itself.

use super::body::{self, Body};
use super::document::OpenApi;
use super::parameter::{self, Declared, Found, Parameter, Place, Supplied};
use super::path::Template;
use super::schema::{Draft, Hitch, Known, translate};
use kernel::call::Reach;
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The methods that a document may have, as it writes them.
const METHODS: [(&str, Method); 7] = [
    ("get", Method::GET),
    ("head", Method::HEAD),
    ("options", Method::OPTIONS),
    ("put", Method::PUT),
    ("delete", Method::DELETE),
    ("post", Method::POST),
    ("patch", Method::PATCH),
];
/// How much of a description is kept: some documents have whole pages there.
const DESCRIPTION_CHARS_MAX: usize = 4_000;

/// One operation.
#[derive(Debug)]
pub(super) struct Operation {
    /// Its own name, without the provider's prefix.
    pub(super) name: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) tags: Vec<String>,
    pub(super) reach: Reach,
    pub(super) idempotent: bool,
    pub(super) input_schema: Value,
    /// Whether the call's own key goes with it.
    pub(super) keyed: bool,
    pub(super) method: Method,
    pub(super) path: Template,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    /// The server that it names for itself, or its path does.
    pub(super) server: Option<String>,
}

/// How a document is read.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    /// What goes with every request.
    pub(super) supplied: &'a Supplied,
    /// Whether what it says of effects is taken as it is.
    pub(super) trusted: bool,
    /// The size of one operation's schemas.
    pub(super) nodes_max: usize,
    /// How many operations are read.
    pub(super) operations_max: usize,
}

/// An operation that was left out, or something else that is worth knowing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Warning {
    /// Which, as `GET /pets`.
    pub(super) operation: String,
    pub(super) why: String,
}

/// All operations that can be called, in the order of paths and methods, and what is said of the
/// others. The operations that `wanted` refuses, by their names, are not read.
pub(super) fn all(
    document: &OpenApi,
    reading: &Reading<'_>,
    wanted: impl Fn(&str) -> bool,
) -> (Vec<Operation>, Vec<Warning>) {
    let mut known = Known::default();
    let (mut operations, mut warnings) = (Vec::new(), Vec::new());
    let mut names = BTreeSet::new();
    for (path, item) in document.paths() {
        let item = match document.object(item) {
            Ok(item) => item,
            Err(why) => {
                warnings.push(Warning { operation: path.clone(), why });
                continue;
            }
        };
        for (word, method) in METHODS {
            let Some(fields) = item.get(word).and_then(Value::as_object) else { continue };
            let operation = format!("{method} {path}");
            let name = name(fields, word, path, &names);
            if !wanted(&name) {
                continue;
            }
            if operations.len() >= reading.operations_max {
                let why = "it and all after it are more than `upstream_tools_max`".to_owned();
                warnings.push(Warning { operation, why });
                return (operations, warnings);
            }
            let place = At { path, item, method, fields };
            let read = match names.insert(name.clone()) {
                true => place.read(document, name, reading, &mut known),
                false => Err(format!("another operation is called `{name}`, too")),
            };
            match read {
                Ok(read) => operations.push(read),
                Err(why) => warnings.push(Warning { operation, why }),
            }
        }
    }
    (operations, warnings)
}

/// An operation where it stands in its document.
struct At<'d> {
    path: &'d str,
    item: &'d Map<String, Value>,
    method: Method,
    fields: &'d Map<String, Value>,
}

/// What the schemas of one operation come to.
struct Inputs {
    parameters: Vec<Parameter>,
    body: Option<Body>,
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl<'d> At<'d> {
    fn read(
        &self,
        document: &'d OpenApi,
        name: String,
        reading: &Reading<'_>,
        known: &mut Known,
    ) -> Result<Operation, String> {
        if self.streams(document) {
            return Err("it answers with a stream of events, which no call can wait for".to_owned());
        }
        let (declared, has_key) = self.parameters(document, reading.supplied)?;
        let path = Template::read(self.path);
        let (inputs, defs) =
            translate(document, known, reading.nodes_max, |draft| self.inputs(draft, &declared))?;
        let (reach, idempotent) = self.effect(reading.trusted);
        let word = |key: &str| self.fields.get(key).and_then(Value::as_str).map(str::trim);
        let said = |key: &str| word(key).filter(|text| !text.is_empty());
        let line = format!("{} {}", self.method, self.path);
        Ok(Operation {
            title: said("summary").unwrap_or(&name).to_owned(),
            description: self.described(said("description").or(said("summary")).unwrap_or(&line)),
            name,
            tags: self.tags(),
            reach,
            idempotent,
            input_schema: input_schema(inputs.properties, inputs.required, defs),
            keyed: has_key || reach != Reach::Reads,
            method: self.method.clone(),
            path,
            parameters: inputs.parameters,
            body: inputs.body,
            server: server(self.fields.get("servers")).or_else(|| server(self.item.get("servers"))),
        })
    }

    /// The parameters that arguments set, each under a name of its own, and whether the operation
    /// knows the header for a call's key.
    fn parameters(
        &self,
        document: &'d OpenApi,
        supplied: &Supplied,
    ) -> Result<(Vec<Declared<'d>>, bool), String> {
        let mut found = Vec::new();
        let mut has_key = false;
        for fields in parameter::declared(document, self.item, self.fields)? {
            match parameter::read(fields, supplied)? {
                Found::Parameter(declared) => found.push(declared),
                Found::Key => has_key = true,
                Found::Nothing => {}
            }
        }
        let template = Template::read(self.path);
        found.retain(|declared: &Declared<'_>| {
            let Parameter { place, name, .. } = &declared.parameter;
            *place != Place::Path || template.names().any(|known| known == name)
        });
        for name in template.names() {
            let here = |declared: &Declared<'_>| {
                declared.parameter.place == Place::Path && declared.parameter.name == name
            };
            if !found.iter().any(here) {
                found.push(parameter::undeclared(name).ok_or_else(|| {
                    format!("`{{{name}}}` of its path is not among its parameters")
                })?);
            }
        }
        // A name in the path goes before the same one in the query, and that before a header's.
        found.sort_by_key(|declared| declared.parameter.place);
        let mut taken = BTreeSet::new();
        for declared in &mut found {
            let Parameter { argument, place, name, .. } = &mut declared.parameter;
            if !taken.insert(argument.clone()) {
                *argument = format!("{}_{argument}", place.word());
                if !taken.insert(argument.clone()) {
                    return Err(format!("the arguments for `{name}` and another are the same"));
                }
            }
        }
        Ok((found, has_key))
    }

    fn inputs(&self, draft: &mut Draft<'_>, declared: &[Declared<'_>]) -> Result<Inputs, Hitch> {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for one in declared {
            properties.insert(one.parameter.argument.clone(), one.schema(draft)?);
            if one.parameter.required {
                required.push(Value::from(one.parameter.argument.as_str()));
            }
        }
        let taken: BTreeSet<String> = properties.keys().cloned().collect();
        let body = match self.fields.get("requestBody") {
            // What such a body means is nobody's to say.
            Some(_) if matches!(self.method, Method::GET | Method::HEAD) => None,
            Some(declared) => body::read(draft, declared, &taken)?,
            None => None,
        };
        let body = body.map(|arguments| {
            properties.extend(arguments.properties);
            required.extend(arguments.required);
            arguments.body
        });
        let parameters = declared.iter().map(|one| one.parameter.clone()).collect();
        Ok(Inputs { parameters, body, properties, required })
    }

    /// What it does to the world, by its method and by what the document says beside it.
    fn effect(&self, trusted: bool) -> (Reach, bool) {
        let (usual, repeatable) = match self.method {
            Method::GET | Method::HEAD | Method::OPTIONS => (Reach::Reads, true),
            Method::PUT | Method::DELETE => (Reach::Writes, true),
            _ => (Reach::Writes, false),
        };
        let said = match self.fields.get("x-waypost-reach").and_then(Value::as_str) {
            Some("reads") => Reach::Reads,
            Some("writes") => Reach::Writes,
            Some("runs") => Reach::Runs,
            _ => usual,
        };
        let reach = if trusted { said } else { said.max(usual) };
        let said = self.fields.get("x-waypost-idempotent").and_then(Value::as_bool);
        let idempotent = match said {
            Some(said) if trusted || !said => said,
            // A method that does more than its name says may not be repeated by its name.
            _ => repeatable && reach <= usual,
        };
        (reach, idempotent || reach == Reach::Reads)
    }

    /// Whether all it answers when it goes well is a stream of events.
    fn streams(&self, document: &OpenApi) -> bool {
        let responses = self.fields.get("responses").and_then(Value::as_object);
        let good = responses.into_iter().flatten().filter(|(status, _)| status.starts_with('2'));
        let mut kinds = good
            .filter_map(|(_, response)| document.object(response).ok()?.get("content")?.as_object())
            .flat_map(Map::keys)
            .peekable();
        kinds.peek().is_some() && kinds.all(|kind| kind.starts_with("text/event-stream"))
    }

    fn described(&self, text: &str) -> String {
        let deprecated = self.fields.get("deprecated") == Some(&Value::Bool(true));
        let mut described: String = text.chars().take(DESCRIPTION_CHARS_MAX).collect();
        if described.len() < text.len() {
            described.push_str("...");
        }
        if deprecated {
            described.push_str("\n\nDeprecated.");
        }
        described
    }

    fn tags(&self) -> Vec<String> {
        let tags = self.fields.get("tags").and_then(Value::as_array).into_iter().flatten();
        tags.filter_map(Value::as_str).map(str::to_owned).collect()
    }
}

/// The first of these servers.
pub(super) fn server(servers: Option<&Value>) -> Option<String> {
    let server = servers?.as_array()?.first()?;
    let mut url = server.get("url")?.as_str()?.to_owned();
    let variables = server.get("variables").and_then(Value::as_object);
    for (name, variable) in variables.into_iter().flatten() {
        if let Some(default) = variable.get("default").and_then(Value::as_str) {
            url = url.replace(&format!("{{{name}}}"), default);
        }
    }
    Some(url)
}

fn input_schema(
    properties: Map<String, Value>,
    required: Vec<Value>,
    defs: Map<String, Value>,
) -> Value {
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false
    });
    if !required.is_empty() {
        schema["required"] = Value::Array(required);
    }
    if !defs.is_empty() {
        schema["$defs"] = Value::Object(defs);
    }
    schema
}

/// Its id; without one, or where another has it, method and path: `get_pets_by_petId`.
fn name(fields: &Map<String, Value>, method: &str, path: &str, taken: &BTreeSet<String>) -> String {
    let id = fields.get("operationId").and_then(Value::as_str).unwrap_or_default();
    let plain = |c: char| if c.is_whitespace() || c.is_control() { '_' } else { c };
    let id: String = id.trim().chars().map(plain).collect();
    if !id.is_empty() && !taken.contains(&id) {
        return id;
    }
    let mut name = method.to_owned();
    for segment in path.split('/') {
        let by = if segment.contains('{') { "by_" } else { "" };
        let words = segment.split(|c: char| !c.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        if !words.is_empty() {
            name = format!("{name}_{by}{}", words.join("_"));
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(paths: Value, trusted: bool) -> (Vec<Operation>, Vec<Warning>) {
        let document = json!({"openapi": "3.0.3", "paths": paths, "components": {"schemas": {
            "Pet": {"type": "object", "required": ["name"], "properties": {
                "id": {"type": "integer", "readOnly": true}, "name": {"type": "string"}}}}}});
        let document = OpenApi::parse(&document.to_string()).unwrap();
        let supplied = Supplied::default();
        let reading =
            Reading { supplied: &supplied, trusted, nodes_max: 1_000, operations_max: 10 };
        all(&document, &reading, |_| true)
    }

    fn one(item: Value) -> Operation {
        one_at("/pets/{id}", item)
    }

    fn one_at(path: &str, item: Value) -> Operation {
        let (mut operations, warnings) = read(json!({path: item}), true);
        assert!(warnings.is_empty() && operations.len() == 1, "{warnings:?}");
        operations.remove(0)
    }

    fn refused(item: Value) -> String {
        let (operations, warnings) = read(json!({"/pets": item}), true);
        assert!(operations.is_empty(), "{operations:?}");
        warnings.into_iter().map(|warning| warning.why).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn an_operation_has_one_schema_of_arguments() {
        let operation = one(json!({
            "parameters": [{"name": "id", "in": "path", "required": true,
                "schema": {"type": "integer"}}],
            "put": {"operationId": "putPet", "summary": "Replaces a pet", "tags": ["pets"],
                "parameters": [
                    {"name": "id", "in": "query", "schema": {"type": "string"}},
                    {"name": "X-Trace", "in": "header", "description": "for logs"}],
                "requestBody": {"required": true, "content": {"application/json": {
                    "schema": {"$ref": "#/components/schemas/Pet"}}}}}
        }));
        let schema = json!({
            "type": "object",
            "properties": {
                "id": {"type": "integer"},
                "query_id": {"type": "string"},
                "X-Trace": {"description": "for logs"},
                "name": {"type": "string"}
            },
            "required": ["id", "name"],
            "additionalProperties": false
        });
        assert_eq!(operation.input_schema, schema);
        assert_eq!(
            (operation.name.as_str(), operation.title.as_str()),
            ("putPet", "Replaces a pet")
        );
        assert_eq!(operation.description, "Replaces a pet");
        assert_eq!((operation.reach, operation.idempotent), (Reach::Writes, true));
        assert!(operation.keyed && operation.tags == ["pets"]);
    }

    #[test]
    fn names_come_from_ids_or_paths() {
        let id = |id: &str| json!({"operationId": id});
        let (operations, warnings) = read(
            json!({
                "/a": {"get": id("list all"), "post": {}},
                "/a/b-c": {"get": {}},
                "/a/{b}": {"get": {"parameters": [{"name": "b", "in": "path"}]}},
                "/twice": {"get": id("list_all"), "post": id("postTwice")},
                "/z": {"get": id("postTwice"), "delete": id("get_z")}
            }),
            true,
        );
        let names: Vec<&str> = operations.iter().map(|one| one.name.as_str()).collect();
        let expected = [
            "list_all",
            "post_a",
            "get_a_b_c",
            "get_a_by_b",
            "get_twice",
            "postTwice",
            "get_z",
            "delete_z",
        ];
        assert_eq!(names, expected);
        assert!(warnings.is_empty(), "{warnings:?}");
    }

    #[test]
    fn reach_follows_the_method_and_trust() {
        let get = |extra: Value| {
            let mut fields = json!({"operationId": "x"});
            fields.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            fields
        };
        for (method, extra, trusted, effect) in [
            ("get", json!({}), false, (Reach::Reads, true)),
            ("options", json!({}), false, (Reach::Reads, true)),
            ("put", json!({}), false, (Reach::Writes, true)),
            ("delete", json!({}), false, (Reach::Writes, true)),
            ("post", json!({}), false, (Reach::Writes, false)),
            ("patch", json!({}), true, (Reach::Writes, false)),
            ("post", json!({"x-waypost-reach": "reads"}), true, (Reach::Reads, true)),
            ("post", json!({"x-waypost-reach": "reads"}), false, (Reach::Writes, false)),
            ("get", json!({"x-waypost-reach": "writes"}), false, (Reach::Writes, false)),
            ("put", json!({"x-waypost-reach": "runs"}), false, (Reach::Runs, false)),
            ("post", json!({"x-waypost-idempotent": true}), true, (Reach::Writes, true)),
            ("post", json!({"x-waypost-idempotent": true}), false, (Reach::Writes, false)),
            ("put", json!({"x-waypost-idempotent": false}), false, (Reach::Writes, false)),
        ] {
            let (operations, _) = read(json!({"/x": {method: get(extra.clone())}}), trusted);
            let found = (operations[0].reach, operations[0].idempotent);
            assert_eq!(found, effect, "{method} {extra} {trusted}");
        }
    }

    #[test]
    fn what_cannot_be_called_is_left_out_by_itself() {
        for (item, told) in [
            (
                json!({"get": {"responses": {"200": {"content": {"text/event-stream": {}}}}}}),
                "a stream of events",
            ),
            (
                json!({"get": {"parameters": [
                    {"name": "a", "in": "query", "schema": {"$ref": "x.yaml"}}]}}),
                "leads out of the document",
            ),
            (
                json!({"post": {"requestBody": {"required": true, "content": {
                    "multipart/form-data": {}}}}}),
                "`multipart/form-data`",
            ),
        ] {
            let told_of = refused(item);
            assert!(told_of.contains(told), "{told_of}");
        }
        let (operations, warnings) = read(json!({"/a{?b}": {"get": {}}, "/c": {"get": {}}}), true);
        assert_eq!(operations.len(), 1);
        let why = "`{?b}` of its path is not among its parameters".to_owned();
        assert_eq!(warnings, [Warning { operation: "GET /a{?b}".to_owned(), why }]);
    }

    #[test]
    fn a_part_of_the_path_that_is_not_declared_is_a_text() {
        let operation = one_at(
            "/x/{id}/{file-name}/{id}",
            json!({"get": {"parameters": [
            {"name": "id", "in": "query", "schema": {"type": "integer"}}]}}),
        );
        let places: Vec<(&str, Place)> = operation
            .parameters
            .iter()
            .map(|parameter| (parameter.argument.as_str(), parameter.place))
            .collect();
        assert_eq!(
            places,
            [("id", Place::Path), ("file-name", Place::Path), ("query_id", Place::Query)]
        );
        assert_eq!(operation.input_schema["properties"]["id"], json!({"type": "string"}));
        assert_eq!(operation.input_schema["required"], json!(["id", "file-name"]));
    }

    #[test]
    fn more_than_are_taken_are_not_read() {
        let paths = (10..30).map(|number| (format!("/p{number}"), json!({"get": {}})));
        let (operations, warnings) = read(Value::Object(paths.collect()), true);
        assert_eq!((operations.len(), warnings.len()), (10, 1));
        assert_eq!(warnings[0].operation, "GET /p20");
    }

    #[test]
    fn a_key_is_no_argument_and_servers_have_variables() {
        let operation = one(json!({"get": {
            "parameters": [{"name": "id", "in": "path"}, {"name": "Idempotency-Key", "in": "header"}],
            "servers": [{"url": "https://{region}.a.test/v{n}", "variables": {
                "region": {"default": "eu"}, "n": {"default": "2"}}}]}}));
        assert!(operation.keyed);
        assert_eq!(operation.parameters.len(), 1);
        assert_eq!(operation.server.as_deref(), Some("https://eu.a.test/v2"));
    }
}
