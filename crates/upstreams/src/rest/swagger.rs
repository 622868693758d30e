//! Swagger 2.0: one operation at a time, as OpenAPI 3 writes it. References stay as they are, for
//! they lead to places of the same document.

use super::document::OpenApi;
use super::parameter::declared;
use serde_json::{Map, Value, json};

/// What a parameter says of its value, which OpenAPI 3 says in a schema.
const OF_VALUES: [&str; 17] = [
    "type", "format", "items", "default", "enum", "maximum", "exclusiveMaximum", "minimum",
    "exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems",
    "multipleOf", "x-nullable",
];
/// What an operation says in another way in OpenAPI 3.
const REPLACED: [&str; 5] = ["parameters", "consumes", "produces", "schemes", "responses"];
const FORM: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data";

/// An operation with the parameters of its path; if it cannot be converted, why.
pub(super) fn operation(
    document: &OpenApi,
    path_item: &Map<String, Value>,
    fields: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let mut parameters = Vec::new();
    let mut form = Vec::new();
    let mut body = None;
    for fields in declared(document, path_item, fields)? {
        match word(fields, "in") {
            Some("body") => body = Some(fields),
            Some("formData") => form.push(fields),
            _ => parameters.push(parameter(fields)),
        }
    }
    let consumed = media_types(document, fields, "consumes");
    let body = match body {
        Some(_) if !form.is_empty() => {
            return Err("it has parameters both in `body` and in `formData`".to_owned());
        }
        Some(body) => Some(body_of(body, &consumed)),
        None if form.is_empty() => None,
        None => Some(form_of(&form, &consumed)?),
    };
    let kept = fields.iter().filter(|(name, _)| !REPLACED.contains(&name.as_str()));
    let mut written: Map<String, Value> =
        kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    written.insert("parameters".to_owned(), Value::Array(parameters));
    if let Some(body) = body {
        written.insert("requestBody".to_owned(), body);
    }
    let produced = media_types(document, fields, "produces");
    let content: Map<String, Value> =
        produced.iter().map(|media| ((*media).to_owned(), json!({}))).collect();
    written.insert("responses".to_owned(), json!({"200": {"content": content}}));
    // As all of a document is: of what it says, none comes first because it is written first.
    written.values_mut().for_each(Value::sort_all_objects);
    Ok(written)
}

/// Where the server is, as far as the document says. One that names no scheme means its own, or
/// https where it is a file.
pub(super) fn server(document: &OpenApi, is_remote: bool) -> String {
    let said = |name: &str| document.field(name).and_then(Value::as_str);
    let base = said("basePath").unwrap_or_default().trim_start_matches('/');
    let Some(host) = said("host") else { return format!("/{base}") };
    let schemes = document.field("schemes").and_then(Value::as_array);
    let offers = |scheme: &str| schemes.is_some_and(|all| all.iter().any(|one| one == scheme));
    let scheme = match (offers("https"), offers("http")) {
        (true, _) => "https:",
        (false, true) => "http:",
        (false, false) if is_remote => "",
        (false, false) => "https:",
    };
    format!("{scheme}//{host}/{base}")
}

/// The types that an operation takes or gives: its own, or else those of the document.
fn media_types<'d>(
    document: &'d OpenApi,
    fields: &'d Map<String, Value>,
    key: &str,
) -> Vec<&'d str> {
    let said = fields.get(key).or_else(|| document.field(key));
    let said = said.and_then(Value::as_array).into_iter().flatten();
    said.filter_map(Value::as_str).collect()
}

/// A parameter of a path, a query or the headers.
fn parameter(fields: &Map<String, Value>) -> Value {
    let moved = |name: &str| OF_VALUES.contains(&name) || name == "collectionFormat";
    let kept = fields.iter().filter(|(name, _)| !moved(name));
    let mut written: Map<String, Value> =
        kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    written.insert("schema".to_owned(), schema(fields));
    if let Some(ListStyle { style, explode }) = styled(fields) {
        written.insert("style".to_owned(), style.into());
        written.insert("explode".to_owned(), explode.into());
    }
    Value::Object(written)
}

/// The schema of a parameter's value.
fn schema(fields: &Map<String, Value>) -> Value {
    if word(fields, "type") == Some("file") {
        return json!({"type": "string", "format": "binary"});
    }
    let said = fields.iter().filter(|(name, _)| OF_VALUES.contains(&name.as_str()));
    said.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// How a list is written.
struct ListStyle {
    style: &'static str,
    explode: bool,
}

/// How a parameter that is a list is written; none where it is as usual. A format that OpenAPI 3
/// has no style for is named by itself, and refused with its name.
fn styled(fields: &Map<String, Value>) -> Option<ListStyle> {
    if word(fields, "type") != Some("array") {
        return None;
    }
    let (style, explode) = match (word(fields, "collectionFormat"), word(fields, "in")) {
        (Some("multi"), Some("query" | "formData")) => ("form", true),
        (None | Some("csv"), Some("query" | "formData")) => ("form", false),
        (Some("ssv"), _) => ("spaceDelimited", false),
        (Some("pipes"), _) => ("pipeDelimited", false),
        (Some("tsv"), _) => ("tsv", false),
        _ => return None,
    };
    Some(ListStyle { style, explode })
}

/// The body of a `body` parameter.
fn body_of(fields: &Map<String, Value>, consumed: &[&str]) -> Value {
    let schema = fields.get("schema").cloned().unwrap_or_else(|| json!({}));
    let consumed: &[&str] = if consumed.is_empty() { &["application/json"] } else { consumed };
    let content = consumed.iter().map(|media| ((*media).to_owned(), json!({"schema": schema})));
    let content: Map<String, Value> = content.collect();
    let mut written = json!({"content": content});
    for key in ["description", "required"] {
        if let Some(said) = fields.get(key) {
            written[key] = said.clone();
        }
    }
    written
}

/// The body of `formData` parameters.
fn form_of(form: &[&Map<String, Value>], consumed: &[&str]) -> Result<Value, String> {
    let mut properties = Map::new();
    let mut encoding = Map::new();
    let mut required = Vec::new();
    for fields in form {
        let name = word(fields, "name").ok_or("a parameter has no name")?;
        let mut property = schema(fields);
        if let Some(about) = fields.get("description") {
            property["description"] = about.clone();
        }
        properties.insert(name.to_owned(), property);
        if fields.get("required") == Some(&Value::Bool(true)) {
            required.push(name);
        }
        if let Some(ListStyle { style, explode }) = styled(fields) {
            encoding.insert(name.to_owned(), json!({"style": style, "explode": explode}));
        }
    }
    let has_file = form.iter().any(|fields| word(fields, "type") == Some("file"));
    let takes = |media: &str| consumed.iter().any(|one| one.starts_with(media));
    let media = if has_file || (takes(MULTIPART) && !takes(FORM)) { MULTIPART } else { FORM };
    let is_needed = !required.is_empty();
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let content = json!({media: {"schema": schema, "encoding": encoding}});
    Ok(json!({"content": content, "required": is_needed}))
}

fn word<'d>(fields: &'d Map<String, Value>, key: &str) -> Option<&'d str> {
    fields.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(root: Value, item: Value) -> Result<Value, String> {
        let mut document = root;
        document["swagger"] = json!("2.0");
        let document = OpenApi::parse(document.to_string()).unwrap();
        let (item, operation) = (item.as_object().unwrap(), &item["post"]);
        super::operation(&document, item, operation.as_object().unwrap()).map(Value::Object)
    }

    #[test]
    fn parameters_get_schemas_and_styles() {
        let list = |place: &str, format: &str| {
            json!({"name": format, "in": place, "type": "array", "items": {"type": "integer"},
                "collectionFormat": format})
        };
        let root = json!({"parameters": {"limit": {"name": "limit", "in": "query",
            "description": "How many.", "type": "integer", "maximum": 9, "default": 3}}});
        let item = json!({
            "parameters": [{"name": "id", "in": "path", "required": true, "type": "string"}],
            "post": {"operationId": "x", "summary": "Does it.", "schemes": ["https"],
                "parameters": [
                    {"$ref": "#/parameters/limit"}, list("query", "multi"), list("query", "csv"),
                    list("query", "ssv"), list("query", "pipes"), list("query", "tsv"),
                    list("header", "csv")]}
        });
        let items = json!({"type": "array", "items": {"type": "integer"}});
        let styled = |name: &str, style: &str, explode: bool| {
            json!({"name": name, "in": "query", "schema": items, "style": style,
                "explode": explode})
        };
        let expected = json!({"operationId": "x", "summary": "Does it.", "parameters": [
            {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}},
            {"name": "limit", "in": "query", "description": "How many.",
                "schema": {"type": "integer", "maximum": 9, "default": 3}},
            styled("multi", "form", true), styled("csv", "form", false),
            styled("ssv", "spaceDelimited", false), styled("pipes", "pipeDelimited", false),
            styled("tsv", "tsv", false), {"name": "csv", "in": "header", "schema": items}],
            "responses": {"200": {"content": {}}}});
        assert_eq!(converted(root, item), Ok(expected));
    }

    #[test]
    fn the_body_media_type_follows_consumes() {
        let body = json!({"name": "any", "in": "body", "required": true, "description": "A pet.",
            "schema": {"$ref": "#/definitions/Pet"}});
        let schema = json!({"schema": {"$ref": "#/definitions/Pet"}});
        for (root, own, media) in [
            (json!({}), json!({}), "application/json"),
            (json!({"consumes": ["application/xml"]}), json!({}), "application/xml"),
            (json!({"consumes": ["a/b"]}), json!({"consumes": ["text/json"]}), "text/json"),
        ] {
            let mut post = json!({"parameters": [body], "produces": ["text/event-stream"]});
            post.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
            let written = converted(root, json!({"post": post})).unwrap();
            let expected = json!({"content": {media: schema}, "required": true,
                "description": "A pet."});
            assert_eq!(written["requestBody"], expected);
            let answer = json!({"200": {"content": {"text/event-stream": {}}}});
            assert_eq!(written["responses"], answer);
        }
    }

    fn field(name: &str, kind: &str, required: bool) -> Value {
        json!({"name": name, "in": "formData", "type": kind, "required": required})
    }

    #[test]
    fn form_data_parameters_form_one_body() {
        let form = |consumes: &[&str], kind: &str| {
            let post = json!({"consumes": consumes, "parameters": [
                field("a", kind, true), field("b", "array", false)]});
            converted(json!({}), json!({"post": post})).unwrap()["requestBody"].clone()
        };
        let body = form(&[], "string");
        let schema = json!({"type": "object", "required": ["a"],
            "properties": {"a": {"type": "string"}, "b": {"type": "array"}}});
        let encoding = json!({"b": {"style": "form", "explode": false}});
        let expected = json!({"content": {FORM: {"schema": schema, "encoding": encoding}},
            "required": true});
        assert_eq!(body, expected);
        let file = form(&[FORM, MULTIPART], "file");
        let binary = json!({"type": "string", "format": "binary"});
        assert_eq!(file["content"][MULTIPART]["schema"]["properties"]["a"], binary);
        assert!(form(&[MULTIPART], "string")["content"][MULTIPART].is_object());
        assert!(form(&[FORM, MULTIPART], "string")["content"][FORM].is_object());
        let both = json!({"post": {"parameters": [field("a", "string", false),
            {"name": "b", "in": "body"}]}});
        let told = converted(json!({}), both).unwrap_err();
        assert_eq!(told, "it has parameters both in `body` and in `formData`");
    }
}
