//! Operations of a document: each becomes a name, a schema of arguments, what it does to the
//! world, and how its request is put together. One that cannot be called is left out by itself.

use super::body::{self, Body};
use super::document::{OpenApi, Version};
use super::parameter::{
    self, DeclaredItem, DeclaredParameter, Parameter, ParameterLocation, SuppliedParameters,
};
use super::path::Template;
use super::schema::{Draft, Hitch, ReferenceState, translate};
use super::swagger;
use crate::cut;
use kernel::tool::call::Reach;
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
/// How much of a title, and of a tag, is kept.
const TITLE_CHARS_MAX: usize = 300;
/// How many tags of an operation are kept.
const TAGS_MAX: usize = 32;
/// How many arguments may have what would be one name.
const NAMESAKES_MAX: usize = 10;

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
pub(super) struct ReadOptions<'a> {
    pub(super) supplied: &'a SuppliedParameters,
    /// Whether what it says of effects is taken as it is.
    pub(super) trusted: bool,
    /// The size of one operation's schemas.
    pub(super) nodes_max: usize,
    /// The size of all schemas.
    pub(super) parts_max: usize,
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
    reading: &ReadOptions<'_>,
    wanted: impl Fn(&str) -> bool,
) -> (Vec<Operation>, Vec<Warning>) {
    let mut known = ReferenceState::new(reading.parts_max);
    let mut operations = Vec::new();
    let mut warnings = Vec::new();
    let mut names = BTreeSet::new();
    for path in document.paths() {
        let read = document.item(path);
        let item = read.as_ref().map_err(Clone::clone).and_then(|item| document.object(item));
        let item = match item {
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
            // Also if it is not wanted: what one is called does not depend on who else is.
            let is_new = names.insert(name.clone());
            if !wanted(&name) {
                continue;
            }
            if operations.len() >= reading.operations_max {
                let most = reading.operations_max;
                let why = format!("it and all after it are more than {most} operations");
                warnings.push(Warning { operation, why });
                return (operations, warnings);
            }
            // What follows a `#` is not sent: some documents tell operations apart by it.
            let path = path.split('#').next().unwrap_or(path);
            let location = LocatedOperation { path, item, method, fields };
            let read = match is_new {
                true => location.read_any(document, name, reading, &mut known),
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
struct LocatedOperation<'d> {
    path: &'d str,
    item: &'d Map<String, Value>,
    method: Method,
    fields: &'d Map<String, Value>,
}

impl<'d> LocatedOperation<'d> {
    /// The operation, whatever version its document is of.
    fn read_any(
        &self,
        document: &'d OpenApi,
        name: String,
        reading: &ReadOptions<'_>,
        known: &mut ReferenceState,
    ) -> Result<Operation, String> {
        match document.version {
            Version::V20 => {
                let fields = swagger::operation(document, self.item, self.fields)?;
                // It has the parameters of its path already.
                let item = Map::new();
                let method = self.method.clone();
                let converted =
                    LocatedOperation { path: self.path, item: &item, method, fields: &fields };
                converted.read(document, name, reading, known)
            }
            Version::V30 | Version::V31 => self.read(document, name, reading, known),
        }
    }

    fn read(
        &self,
        document: &'d OpenApi,
        name: String,
        reading: &ReadOptions<'_>,
        known: &mut ReferenceState,
    ) -> Result<Operation, String> {
        if self.streams(document) {
            return Err("it answers with a stream of events, which no call can wait for".to_owned());
        }
        let (declared, has_key) = self.parameters(document, reading.supplied)?;
        if self.path.contains('?') {
            return Err("its path has a `?`, where only a query begins".to_owned());
        }
        let path = Template::read(self.path);
        let ((body, mut input_schema), defs) =
            translate(document, known, reading.nodes_max, |draft| self.inputs(draft, &declared))?;
        if !defs.is_empty() {
            input_schema["$defs"] = Value::Object(defs);
        }
        input_schema.sort_all_objects();
        let (reach, idempotent) = self.effect(reading.trusted);
        let word = |key: &str| self.fields.get(key).and_then(Value::as_str).map(str::trim);
        let said = |key: &str| word(key).filter(|text| !text.is_empty());
        let line = format!("{} {}", self.method, self.path);
        Ok(Operation {
            title: cut(said("summary").unwrap_or(&name), TITLE_CHARS_MAX),
            description: self.described(said("description").or(said("summary")).unwrap_or(&line)),
            name,
            tags: self.tags(),
            reach,
            idempotent,
            input_schema,
            keyed: has_key || reach != Reach::Reads,
            method: self.method.clone(),
            path,
            parameters: declared.into_iter().map(|one| one.parameter).collect(),
            body,
            server: server(self.fields.get("servers")).or_else(|| server(self.item.get("servers"))),
        })
    }

    /// The parameters that arguments set, each under a name of its own, and whether the operation
    /// knows the header for a call's key.
    fn parameters(
        &self,
        document: &'d OpenApi,
        supplied: &SuppliedParameters,
    ) -> Result<(Vec<DeclaredParameter<'d>>, bool), String> {
        let mut found = Vec::new();
        let mut has_key = false;
        for fields in parameter::declared(document, self.item, self.fields)? {
            match parameter::read(fields, supplied)? {
                DeclaredItem::Parameter(declared) => found.push(declared),
                DeclaredItem::Key => has_key = true,
                DeclaredItem::Nothing => {}
            }
        }
        let template = Template::read(self.path);
        found.retain(|declared: &DeclaredParameter<'_>| {
            let Parameter { location, name, .. } = &declared.parameter;
            *location != ParameterLocation::Path || template.names().any(|known| known == name)
        });
        for name in template.names() {
            let here = |declared: &DeclaredParameter<'_>| {
                declared.parameter.location == ParameterLocation::Path
                    && declared.parameter.name == name
            };
            if !found.iter().any(here) {
                found.push(parameter::undeclared(name).ok_or_else(|| {
                    format!("`{{{name}}}` of its path is not among its parameters")
                })?);
            }
        }
        tell_apart(&mut found)?;
        Ok((found, has_key))
    }

    /// The body, if one is sent, and the schema of all arguments.
    fn inputs(
        &self,
        draft: &mut Draft<'_>,
        declared: &[DeclaredParameter<'_>],
    ) -> Result<(Option<Body>, Value), Hitch> {
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
            // What such a body means is no one's to say.
            Some(_) if matches!(self.method, Method::GET | Method::HEAD) => None,
            Some(declared) => body::read(draft, declared, &taken)?,
            None => None,
        };
        let body = body.map(|arguments| {
            properties.extend(arguments.properties);
            required.extend(arguments.required);
            arguments.body
        });
        let mut schema = json!({
            "type": "object",
            "properties": properties,
            "additionalProperties": false
        });
        if !required.is_empty() {
            schema["required"] = Value::Array(required);
        }
        Ok((body, schema))
    }

    /// Its effect, by its method and by extensions of the document.
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
        let mut described = cut(text, DESCRIPTION_CHARS_MAX);
        if deprecated {
            described.push_str("\n\nDeprecated.");
        }
        described
    }

    fn tags(&self) -> Vec<String> {
        let tags = self.fields.get("tags").and_then(Value::as_array).into_iter().flatten();
        let tags = tags.filter_map(Value::as_str).take(TAGS_MAX);
        tags.map(|tag| cut(tag, TITLE_CHARS_MAX)).collect()
    }
}

/// Gives each parameter an argument of its own. A name in the path overrides the same one in the
/// query, and that before a header's; a name that is an argument as it is before one that is not.
fn tell_apart(found: &mut [DeclaredParameter<'_>]) -> Result<(), String> {
    found.sort_by_key(|declared| {
        let Parameter { location, argument, name, .. } = &declared.parameter;
        (*location, argument != name)
    });
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for declared in found {
        let Parameter { argument, location, name, .. } = &mut declared.parameter;
        if taken.contains(argument.as_str()) {
            let base = format!("{}_{argument}", location.word());
            let numbered = (2..NAMESAKES_MAX).map(|number| format!("{base}_{number}"));
            let mut free = std::iter::once(base.clone()).chain(numbered);
            *argument = free.find(|name| !taken.contains(name)).ok_or_else(|| {
                format!("the arguments for `{name}` and many others are the same")
            })?;
        }
        taken.insert(argument.clone());
    }
    Ok(())
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
mod tests;
