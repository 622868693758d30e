//! Parameters of an operation: where an argument goes, and how it is encoded there.

use super::document::OpenApi;
use super::encode::{Style, ValueEncoding};
use super::schema::{Draft, Hitch};
use outbound::METHOD_OVERRIDES;
use outbound::answer::{essence, is_json};
use reqwest::header::HeaderName;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Headers that are the connection's, the body's or ours: no argument sets them.
const OURS: [&str; 17] = [
    "accept", "authorization", "connection", "content-length", "content-type", "cookie", "expect",
    "host", "idempotency-key", "keep-alive", "proxy-authorization", "te", "trailer",
    "transfer-encoding", "upgrade", "user-agent", "via",
];

/// Those of them that OpenAPI itself leaves to others, and those that every request has anyway: an
/// operation that wants one can still be called.
const SENT_ANYWAY: [&str; 6] =
    ["accept", "authorization", "content-length", "content-type", "host", "user-agent"];

/// How many parameters one operation may have.
const PARAMETERS_MAX: usize = 1_000;
/// How long the name of a parameter may be.
const NAME_BYTES_MAX: usize = 1_000;
/// How long the name of an argument may be: model providers take no longer ones.
const ARGUMENT_CHARS_MAX: usize = 64;

/// The header that a call's own key goes into.
pub(super) const KEY_HEADER: &str = "idempotency-key";

/// A part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ParameterLocation {
    Path,
    Query,
    Header,
}

impl ParameterLocation {
    /// As OpenAPI calls it.
    pub(super) fn word(self) -> &'static str {
        match self {
            ParameterLocation::Path => "path",
            ParameterLocation::Query => "query",
            ParameterLocation::Header => "header",
        }
    }
}

/// One parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    /// The argument that it takes.
    pub(super) argument: String,
    /// Its name on the wire.
    pub(super) name: String,
    pub(super) location: ParameterLocation,
    pub(super) written: ValueEncoding,
    pub(super) required: bool,
}

impl Parameter {
    /// Its name, if its argument shows too little of it: of `date`, `date<` and `date>` only the
    /// first is an argument as it is.
    fn lost_name(&self) -> Option<&str> {
        let usual = argument(&self.name);
        (usual != self.name && usual != self.argument).then_some(self.name.as_str())
    }
}

/// A parameter as a document has it.
#[derive(Debug)]
pub(super) struct DeclaredParameter<'d> {
    pub(super) parameter: Parameter,
    /// Its declaration; `None` for an undeclared part of a path.
    fields: Option<&'d Map<String, Value>>,
    schema: Option<&'d Value>,
}

#[derive(Debug)]
pub(super) enum DeclaredItem<'d> {
    /// A parameter that an argument sets.
    Parameter(DeclaredParameter<'d>),
    /// The header for a call's own key.
    Key,
    /// One that no one sets.
    Nothing,
}

/// Parameters that every request has, so that no argument sets them.
#[derive(Debug, Clone, Default)]
pub(super) struct SuppliedParameters {
    /// Headers, in lower case.
    pub(super) headers: Vec<String>,
    /// Fields of the query.
    pub(super) query: Vec<String>,
}

/// The parameters of an operation: its own, and those of its path that it does not replace.
pub(super) fn declared<'d>(
    document: &'d OpenApi,
    path_item: &'d Map<String, Value>,
    operation: &'d Map<String, Value>,
) -> Result<Vec<&'d Map<String, Value>>, String> {
    let mut found: Vec<&Map<String, Value>> = Vec::new();
    let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for owner in [path_item, operation] {
        let parameters = owner.get("parameters").and_then(Value::as_array);
        for parameter in parameters.into_iter().flatten() {
            let fields = document.object(parameter)?;
            match places.entry((word(fields, "name"), word(fields, "in"))) {
                Entry::Occupied(location) => found[*location.get()] = fields,
                Entry::Vacant(location) => {
                    location.insert(found.len());
                    found.push(fields);
                }
            }
            if found.len() > PARAMETERS_MAX {
                return Err(format!("it has more than {PARAMETERS_MAX} parameters"));
            }
        }
    }
    Ok(found)
}

fn word<'d>(fields: &'d Map<String, Value>, key: &str) -> &'d str {
    fields.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Reads one parameter; if an operation that has it cannot be called, why.
pub(super) fn read<'d>(
    fields: &'d Map<String, Value>,
    supplied: &SuppliedParameters,
) -> Result<DeclaredItem<'d>, String> {
    let word = |key: &str| fields.get(key).and_then(Value::as_str);
    let name = word("name").ok_or("a parameter has no name")?;
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("the name of a parameter has more than {NAME_BYTES_MAX} bytes"));
    }
    let required = fields.get("required") == Some(&Value::Bool(true));
    let location = match word("in") {
        Some("path") => ParameterLocation::Path,
        Some("query") if supplied.query.iter().any(|given| given == name) => {
            return Ok(DeclaredItem::Nothing);
        }
        Some("query") => ParameterLocation::Query,
        Some("header") => match header(name, required, supplied)? {
            Some(found) => return Ok(found),
            None => ParameterLocation::Header,
        },
        Some(other) if required => {
            return Err(format!("it needs `{name}` in `{other}`, which is not supported"));
        }
        _ => return Ok(DeclaredItem::Nothing),
    };
    let content = fields.get("content").and_then(Value::as_object);
    let content = content.and_then(|content| content.iter().next());
    let schema = match content {
        Some((_, media)) => media.get("schema"),
        None => fields.get("schema"),
    };
    let required = required || location == ParameterLocation::Path;
    let written = match written(fields, name, location, content.map(|(media, _)| media.as_str())) {
        Ok(written) => written,
        Err(why) if required => return Err(why),
        // The operation can do without it.
        Err(_) => return Ok(DeclaredItem::Nothing),
    };
    let argument = argument(name);
    let name = name.to_owned();
    let parameter = Parameter { argument, name, location, written, required };
    Ok(DeclaredItem::Parameter(DeclaredParameter { parameter, fields: Some(fields), schema }))
}

/// A part of the path that the document does not declare: a text, as nearly all of them are. None
/// if its name is more than a name, for then no one knows what it means.
pub(super) fn undeclared(name: &str) -> Option<DeclaredParameter<'static>> {
    let parameter = Parameter {
        argument: argument(name),
        name: name.to_owned(),
        location: ParameterLocation::Path,
        written: ValueEncoding {
            style: Style::Simple,
            explode: false,
            json: false,
            reserved: false,
        },
        required: true,
    };
    (parameter.argument == name && !name.is_empty()).then_some(DeclaredParameter {
        parameter,
        fields: None,
        schema: None,
    })
}

impl DeclaredParameter<'_> {
    /// The schema of its argument.
    pub(super) fn schema(&self, draft: &mut Draft<'_>) -> Result<Value, Hitch> {
        let Some(fields) = self.fields else { return Ok(json!({"type": "string"})) };
        let schema = match self.schema {
            Some(schema) => draft.schema(schema)?,
            None => json!({}),
        };
        let mut said = match schema {
            Value::Object(said) => said,
            Value::Bool(true) => Map::new(),
            other => return Ok(other),
        };
        if let Some(about) = fields.get("description").filter(|about| about.is_string()) {
            said.insert("description".to_owned(), draft.said(about)?);
        }
        if let Some(name) = self.parameter.lost_name() {
            let about = said.get("description").and_then(Value::as_str).unwrap_or_default();
            let about = format!("`{name}` of the {}. {about}", self.parameter.location.word());
            said.insert("description".to_owned(), about.trim_end().into());
        }
        if let Some(example) = fields.get("example") {
            said.insert("examples".to_owned(), json!([draft.said(example)?]));
        }
        if fields.get("deprecated") == Some(&Value::Bool(true)) {
            said.insert("deprecated".to_owned(), Value::Bool(true));
        }
        Ok(Value::Object(said))
    }
}

/// What becomes of a header that an argument does not set; none if one does.
fn header(
    name: &str,
    required: bool,
    supplied: &SuppliedParameters,
) -> Result<Option<DeclaredItem<'static>>, String> {
    let lower = name.to_ascii_lowercase();
    if lower == KEY_HEADER {
        return Ok(Some(DeclaredItem::Key));
    }
    if SENT_ANYWAY.contains(&lower.as_str()) || supplied.headers.contains(&lower) {
        return Ok(Some(DeclaredItem::Nothing));
    }
    let settable = HeaderName::from_bytes(lower.as_bytes()).is_ok();
    let is_free = |lower: &str| !OURS.contains(&lower) && !METHOD_OVERRIDES.contains(&lower);
    if settable && is_free(&lower) {
        return Ok(None);
    }
    if required {
        Err(format!("no argument can set its header `{name}`"))
    } else {
        Ok(Some(DeclaredItem::Nothing))
    }
}

fn written(
    fields: &Map<String, Value>,
    name: &str,
    location: ParameterLocation,
    media: Option<&str>,
) -> Result<ValueEncoding, String> {
    let said = fields.get("style").and_then(Value::as_str);
    let style = match (location, said) {
        (ParameterLocation::Path | ParameterLocation::Header, None | Some("simple")) => {
            Style::Simple
        }
        (ParameterLocation::Path, Some("label")) => Style::Label,
        (ParameterLocation::Path, Some("matrix")) => Style::Matrix,
        (ParameterLocation::Query, None | Some("form")) => Style::Form,
        (ParameterLocation::Query, Some("spaceDelimited")) => Style::Spaces,
        (ParameterLocation::Query, Some("pipeDelimited")) => Style::Pipes,
        (ParameterLocation::Query, Some("deepObject")) => Style::Deep,
        (_, Some(style)) => {
            let location = location.word();
            return Err(format!(
                "the style `{style}` of `{name}` in `{location}` is not supported"
            ));
        }
    };
    let explode = fields.get("explode").and_then(Value::as_bool).unwrap_or(style == Style::Form);
    let json = media.is_some_and(|media| is_json(&essence(media)));
    let reserved = fields.get("allowReserved") == Some(&Value::Bool(true));
    Ok(ValueEncoding { style, explode, json, reserved })
}

/// Whether an argument may have this name.
pub(super) fn is_argument(name: &str) -> bool {
    !name.is_empty() && argument(name) == name
}

/// The argument of a parameter: its name, in letters that every model provider takes.
fn argument(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let written: String = name.chars().map(plain).take(ARGUMENT_CHARS_MAX).collect();
    if written == name {
        return written;
    }
    match written.trim_matches('_') {
        "" => "value".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn parameter(value: Value) -> Parameter {
        match read(&fields(value), &SuppliedParameters::default()).unwrap() {
            DeclaredItem::Parameter(declared) => declared.parameter,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_parameter_location_has_its_default_style() {
        let path = parameter(json!({"name": "id", "in": "path"}));
        assert!(path.required && path.written.style == Style::Simple && !path.written.explode);
        let query = parameter(json!({"name": "tags[]", "in": "query"}));
        assert!(!query.required && query.written.style == Style::Form && query.written.explode);
        assert_eq!((query.argument.as_str(), query.name.as_str()), ("tags", "tags[]"));
        let deep = parameter(json!({"name": "filter", "in": "query", "style": "deepObject"}));
        assert_eq!(deep.written.style, Style::Deep);
        let matrix = parameter(json!({"name": "a", "in": "path", "style": "matrix"}));
        assert!(matrix.written.style == Style::Matrix && !matrix.written.explode);
        let label = json!({"name": "a", "in": "path", "style": "label", "explode": true});
        let label = parameter(label);
        assert!(label.written.style == Style::Label && label.written.explode);
        let content = json!({"name": "q", "in": "query", "content": {
            "application/json": {"schema": {"type": "object"}}}});
        assert!(parameter(content).written.json);
    }

    #[test]
    fn reserved_headers_are_not_arguments() {
        let supplied = SuppliedParameters {
            headers: vec!["x-api-key".to_owned()],
            query: vec!["key".to_owned()],
        };
        for (name, location, key) in [
            ("X-API-Key", "header", false),
            ("Accept", "header", false),
            ("Via", "header", false),
            ("key", "query", false),
            ("session", "cookie", false),
            ("Idempotency-Key", "header", true),
        ] {
            let fields = fields(json!({"name": name, "in": location}));
            let found = read(&fields, &supplied).unwrap();
            assert_eq!(matches!(found, DeclaredItem::Key), key, "{name}");
            assert!(!matches!(found, DeclaredItem::Parameter(_)), "{name}");
        }
    }

    #[test]
    fn unsendable_parameters_are_reported() {
        for (declared, told) in [
            (json!({"name": "s", "in": "cookie", "required": true}), "`cookie`"),
            (json!({"name": "Via", "in": "header", "required": true}), "`Via`"),
            (json!({"name": "X-HTTP-Method", "in": "header", "required": true}), "X-HTTP-Method"),
            (json!({"name": "a", "in": "path", "style": "deepObject"}), "`deepObject`"),
            (json!({"name": "a", "in": "query", "required": true, "style": "tsv"}), "`tsv`"),
            (json!({"in": "query"}), "has no name"),
            (json!({"name": "a".repeat(1_001), "in": "query"}), "more than 1000 bytes"),
        ] {
            let error = read(&fields(declared), &SuppliedParameters::default()).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn optional_unsendable_parameters_are_dropped() {
        for declared in [
            json!({"name": "User-Agent", "in": "header", "required": true}),
            json!({"name": "Content-Length", "in": "header", "required": true}),
            json!({"name": "host", "in": "header", "required": true}),
            json!({"name": "a", "in": "query", "style": "matrix"}),
            json!({"name": "a", "in": "header", "style": "form"}),
            json!({"name": "a", "in": "cookie"}),
            json!({"name": "X-HTTP-Method-Override", "in": "header"}),
            json!({"name": "X-Http-Method", "in": "header"}),
            json!({"name": "x-method-override", "in": "header"}),
        ] {
            let fields = fields(declared);
            let found = read(&fields, &SuppliedParameters::default());
            assert!(matches!(found, Ok(DeclaredItem::Nothing)), "{found:?}");
        }
    }

    #[test]
    fn operation_parameters_override_path_parameters() {
        let document = json!({"openapi": "3.1.0", "components": {"parameters": {
            "id": {"name": "id", "in": "path", "description": "old"}}}});
        let document = OpenApi::parse(document.to_string()).unwrap();
        let path = fields(json!({"parameters": [{"$ref": "#/components/parameters/id"},
            {"name": "id", "in": "query"}]}));
        let operation = fields(json!({"parameters": [
            {"name": "id", "in": "path", "description": "new"}]}));
        let found = declared(&document, &path, &operation).unwrap();
        let told: Vec<_> = found.iter().map(|fields| fields.get("description")).collect();
        assert_eq!(told, [Some(&json!("new")), None]);
        let many: Vec<Value> =
            (0..=1_000).map(|number| json!({"name": number.to_string(), "in": "query"})).collect();
        let path = fields(json!({"parameters": many}));
        let operation = Map::new();
        let told = declared(&document, &path, &operation).unwrap_err();
        assert!(told.contains("more than 1000 parameters"), "{told}");
    }

    #[test]
    fn argument_names_are_valid_for_model_providers() {
        for (name, written) in [
            ("petId", "petId"),
            ("filter[name]", "filter_name"),
            ("$top", "top"),
            ("_a", "_a"),
            ("é", "value"),
        ] {
            assert_eq!(argument(name), written);
            assert_eq!(is_argument(name), name == written, "{name}");
        }
        assert_eq!(argument(&"a".repeat(100)), "a".repeat(64));
        assert!(!is_argument(""));
    }
}
