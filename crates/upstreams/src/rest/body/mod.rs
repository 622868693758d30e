//! Bodies of requests: which of the media types is sent, and which arguments make it up.

mod multipart;

use self::multipart::Fields;
use super::encode::{Style, ValueEncoding};
use super::parameter::is_argument;
use super::schema::{Draft, Hitch};
use crate::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kernel::tool::arguments::misfit;
use outbound::answer::{essence, is_json};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Keywords that a schema may have and still be split into arguments.
const PLAIN: [&str; 14] = [
    "type", "properties", "required", "additionalProperties", "title", "description", "default",
    "example", "examples", "deprecated", "externalDocs", "xml", "nullable", "writeOnly",
];

/// A body that can be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Body {
    media: String,
    kind: Kind,
    carried: BodyLayout,
    required: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Content {
    /// The media type.
    pub(super) media: String,
    pub(super) bytes: Vec<u8>,
}

/// How a body is written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Json,
    /// Fields; these of them are written as the document says.
    Form(BTreeMap<String, ValueEncoding>),
    /// Fields, some of which may be files.
    Multipart(Fields),
    Text,
    /// Bytes, which come as base64.
    Bytes,
}

/// How a body comes among the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
enum BodyLayout {
    /// Each of its properties is an argument.
    Apart(Vec<String>),
    /// It is one argument.
    Whole(String),
}

/// Arguments of a body.
#[derive(Debug)]
pub(super) struct Arguments {
    /// The body that they make up.
    pub(super) body: Body,
    /// Their schemas.
    pub(super) properties: Map<String, Value>,
    pub(super) required: Vec<Value>,
}

/// Reads `requestBody`, beside arguments that are taken already; none if there is nothing to send.
pub(super) fn read(
    draft: &mut Draft<'_>,
    declared: &Value,
    taken: &BTreeSet<String>,
) -> Result<Option<Arguments>, Hitch> {
    let document = draft.document();
    let fields = document.object(declared)?;
    let required = fields.get("required") == Some(&Value::Bool(true));
    let content = fields.get("content").and_then(Value::as_object);
    let Some(ChosenContent { media, mut kind, content }) = choose(content) else {
        return match content.map(Map::len) {
            None | Some(0) => Ok(None),
            Some(_) if !required => Ok(None),
            Some(_) => {
                let said: Vec<&str> =
                    content.into_iter().flat_map(Map::keys).map(String::as_str).collect();
                Err(Hitch::Foreign(format!("it takes only `{}`", said.join("`, `"))))
            }
        };
    };
    let unsaid = json!({});
    let schema = content.get("schema").unwrap_or(&unsaid);
    if let Kind::Multipart(fields) = &mut kind {
        *fields = Fields::read(document, schema, content)?;
    }
    let about = fields.get("description");
    let body = Body { media, kind, carried: BodyLayout::Whole(String::new()), required };
    let apart = match body.kind {
        Kind::Json | Kind::Form(_) | Kind::Multipart(_) => {
            document.follow(schema)?.as_object().filter(|schema| is_plain(schema, required))
        }
        Kind::Text | Kind::Bytes => None,
    };
    if let Some(object) = apart {
        let (mut properties, required) = draft.properties(object)?;
        if let Kind::Multipart(fields) = &body.kind {
            fields.show_files(&mut properties);
        }
        let fits = |name: &String| is_argument(name) && !taken.contains(name);
        // Some documents require what they do not declare: it can only be sent in a whole body.
        let is_declared =
            |name: &Value| name.as_str().is_some_and(|name| properties.contains_key(name));
        let all_declared = required.iter().all(is_declared);
        if !properties.is_empty() && properties.keys().all(fits) && all_declared {
            let carried = BodyLayout::Apart(properties.keys().cloned().collect());
            return Ok(Some(Arguments { body: Body { carried, ..body }, properties, required }));
        }
    }
    whole(draft, schema, about, taken, body).map(Some)
}

/// A body that is one argument.
fn whole(
    draft: &mut Draft<'_>,
    schema: &Value,
    about: Option<&Value>,
    taken: &BTreeSet<String>,
    body: Body,
) -> Result<Arguments, Hitch> {
    let mut written = match &body.kind {
        Kind::Json | Kind::Form(_) => draft.schema(schema)?,
        Kind::Multipart(fields) => {
            let mut written = draft.schema(schema)?;
            if let Some(Value::Object(properties)) = written.get_mut("properties") {
                fields.show_files(properties);
            }
            written
        }
        Kind::Text => json!({"type": "string"}),
        Kind::Bytes => json!({"type": "string", "contentEncoding": "base64"}),
    };
    if written == Value::Bool(true) {
        written = json!({});
    }
    if let Value::Object(said) = &mut written
        && let Some(about) = about.filter(|about| about.is_string())
    {
        let about = draft.said(about)?;
        said.entry("description").or_insert(about);
    }
    let name = if taken.contains("body") { "request_body" } else { "body" };
    let required = if body.required { vec![Value::from(name)] } else { Vec::new() };
    Ok(Arguments {
        body: Body { carried: BodyLayout::Whole(name.to_owned()), ..body },
        properties: Map::from_iter([(name.to_owned(), written)]),
        required,
    })
}

/// The chosen media type of a body.
struct ChosenContent<'d> {
    media: String,
    kind: Kind,
    content: &'d Value,
}

/// The media type that is sent: JSON before a form before parts before text before bytes.
fn choose(content: Option<&Map<String, Value>>) -> Option<ChosenContent<'_>> {
    let content = content?;
    let find = |kind: Kind, fits: &dyn Fn(&str) -> bool| {
        let (media, content) = content.iter().find(|(media, _)| fits(&essence(media)))?;
        Some(ChosenContent { media: media.clone(), kind, content })
    };
    // What stands for many types cannot be sent: `application/*+json`.
    let is_one =
        |media: &str| !media.contains('*') && media.parse::<reqwest::header::HeaderValue>().is_ok();
    let is_text = |media: &str| {
        media.starts_with("text/") || media.ends_with("xml") || media.ends_with("yaml")
    };
    find(Kind::Json, &|media: &str| media == "application/json")
        .or_else(|| find(Kind::Json, &|media: &str| is_json(media) && is_one(media)))
        .or_else(|| {
            let open = find(Kind::Json, &|media: &str| is_json(media) || media == "*/*")?;
            Some(ChosenContent { media: "application/json".to_owned(), ..open })
        })
        .or_else(|| {
            let is_form = |media: &str| media == "application/x-www-form-urlencoded";
            let form = find(Kind::Form(BTreeMap::new()), &is_form)?;
            Some(ChosenContent { kind: Kind::Form(styles(form.content)), ..form })
        })
        .or_else(|| {
            let kind = Kind::Multipart(Fields::default());
            find(kind, &|media: &str| media == "multipart/form-data")
        })
        .or_else(|| find(Kind::Text, &|media: &str| is_text(media) && is_one(media)))
        .or_else(|| {
            find(Kind::Bytes, &|media: &str| !media.starts_with("multipart/") && is_one(media))
        })
}

/// What a document says of how the fields of a body are written.
fn encodings(content: &Value) -> impl Iterator<Item = (&String, &Value)> {
    content.get("encoding").and_then(Value::as_object).into_iter().flatten()
}

/// The fields of a form whose encoding names a style.
fn styles(content: &Value) -> BTreeMap<String, ValueEncoding> {
    let styled = |said: &Value| {
        let explode = said.get("explode").and_then(Value::as_bool);
        let style = match said.get("style").and_then(Value::as_str) {
            Some("form") => Style::Form,
            Some("spaceDelimited") => Style::Spaces,
            Some("pipeDelimited") => Style::Pipes,
            Some("deepObject") => Style::Deep,
            None if explode.is_some() => Style::Form,
            _ => return None,
        };
        let explode = explode.unwrap_or(style == Style::Form);
        Some(ValueEncoding { style, explode, json: false, reserved: false })
    };
    encodings(content).filter_map(|(name, said)| Some((name.clone(), styled(said)?))).collect()
}

/// Whether a schema is an object that can be taken apart into arguments: nothing holds between its
/// properties, and no others may come.
fn is_plain(schema: &Map<String, Value>, required: bool) -> bool {
    let known = |name: &String| PLAIN.contains(&name.as_str()) || name.starts_with("x-");
    let object = match schema.get("type") {
        None => schema.contains_key("properties"),
        Some(Value::String(name)) => name == "object",
        Some(_) => false,
    };
    let closed = matches!(schema.get("additionalProperties"), None | Some(Value::Bool(false)));
    let nullable = schema.get("nullable") == Some(&Value::Bool(true));
    // Arguments cannot say what an optional body requires.
    let needs = schema.get("required").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    object && closed && !nullable && schema.keys().all(known) && (required || !needs)
}

impl Body {
    /// The body to send; `None` if no argument requires one.
    pub(super) fn content(&self, arguments: &Map<String, Value>) -> Result<Option<Content>> {
        let gathered;
        let value = match &self.carried {
            BodyLayout::Apart(names) => {
                let given: Map<String, Value> = names
                    .iter()
                    .filter_map(|name| Some((name.clone(), arguments.get(name)?.clone())))
                    .collect();
                if given.is_empty() && !self.required {
                    return Ok(None);
                }
                gathered = Value::Object(given);
                &gathered
            }
            BodyLayout::Whole(name) => match arguments.get(name) {
                Some(value) => value,
                None if self.required => return Err(misfit(format!("`{name}` is missing"))),
                None => return Ok(None),
            },
        };
        self.written(value).map(Some)
    }

    fn written(&self, value: &Value) -> Result<Content> {
        let bytes = match &self.kind {
            Kind::Multipart(fields) => return fields.content(value),
            Kind::Json => value.to_string().into_bytes(),
            Kind::Form(styles) => form(value, styles)?.into_bytes(),
            Kind::Text => match value {
                Value::String(text) => text.clone().into_bytes(),
                _ => return Err(misfit("the body must be a text")),
            },
            Kind::Bytes => {
                let decoded = value.as_str().and_then(|text| STANDARD.decode(text).ok());
                decoded.ok_or_else(|| misfit("the body must be a text in base64"))?
            }
        };
        Ok(Content { media: self.media.clone(), bytes })
    }
}

/// The fields of a form: lists as repeated fields and objects as JSON, unless a style is named.
fn form(value: &Value, styles: &BTreeMap<String, ValueEncoding>) -> Result<String> {
    let Value::Object(fields) = value else {
        return Err(misfit("the body must be an object: it is sent as the fields of a form"));
    };
    let mut written = Vec::new();
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let json = value.is_object();
        let usual = ValueEncoding { style: Style::Form, explode: true, json, reserved: false };
        let fields = styles.get(name).copied().unwrap_or(usual).in_query(name, value)?;
        written.extend(fields.into_iter().map(|(key, value)| format!("{key}={value}")));
    }
    Ok(written.join("&"))
}

#[cfg(test)]
mod tests {
    use super::super::document::OpenApi;
    use super::super::schema::{ReferenceState, translate};
    use super::*;

    fn arguments(mut declared: Value, taken: &[&str]) -> Result<Option<Arguments>, String> {
        // As documents are read.
        declared.sort_all_objects();
        let document = json!({"openapi": "3.0.3", "components": {"schemas": {
            "Pet": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "age": {"type": "integer"}}}}}});
        let document = OpenApi::parse(document.to_string()).unwrap();
        let taken = taken.iter().map(|name| (*name).to_owned()).collect();
        let read = |draft: &mut Draft<'_>| read(draft, &declared, &taken);
        translate(&document, &mut ReferenceState::new(10_000), 1_000, read)
            .map(|(arguments, _)| arguments)
    }

    fn pet(required: bool, media: &str) -> Value {
        let schema = json!({"$ref": "#/components/schemas/Pet"});
        json!({"required": required, "content": {media: {"schema": schema}}})
    }

    fn names(arguments: &Arguments) -> (Vec<&str>, Value) {
        let names = arguments.properties.keys().map(String::as_str).collect();
        (names, Value::Array(arguments.required.clone()))
    }

    fn sent(arguments: &Arguments, given: Value) -> Result<Option<String>> {
        let content = arguments.body.content(given.as_object().unwrap())?;
        Ok(content.map(|content| String::from_utf8(content.bytes).unwrap()))
    }

    #[test]
    fn members_of_a_plain_object_body_become_arguments() {
        let body = arguments(pet(true, "application/json"), &["id"]).unwrap().unwrap();
        assert_eq!(names(&body), (vec!["age", "name"], json!(["name"])));
        let given = json!({"id": 7, "name": "Rex"});
        assert_eq!(sent(&body, given).unwrap().unwrap(), "{\"name\":\"Rex\"}");
    }

    #[test]
    fn optional_or_clashing_bodies_stay_one_argument() {
        for (required, taken) in [(true, "name"), (false, "id")] {
            let body = arguments(pet(required, "application/json"), &[taken]).unwrap().unwrap();
            let needed = if required { json!(["body"]) } else { json!([]) };
            assert_eq!(names(&body), (vec!["body"], needed));
            let given = json!({"body": {"name": "Rex"}});
            assert_eq!(sent(&body, given).unwrap().unwrap(), "{\"name\":\"Rex\"}");
            assert_eq!(sent(&body, json!({})).is_err(), required);
        }
        let open = json!({"content": {"application/json": {"schema": {"type": "object",
            "properties": {"a": {}}, "additionalProperties": true}}}});
        let open = arguments(open, &["body"]).unwrap().unwrap();
        assert_eq!(names(&open), (vec!["request_body"], json!([])));
        assert_eq!(sent(&open, json!({})), Ok(None));
    }

    #[test]
    fn bodies_not_expressible_as_arguments_stay_one_argument() {
        let body = |schema: Value| {
            let content = json!({"application/json": {"schema": schema}});
            arguments(json!({"required": true, "content": content}), &[]).unwrap().unwrap()
        };
        let long = "a".repeat(65);
        for schema in [
            json!({"type": "object", "required": ["ghost"], "properties": {"a": {}}}),
            json!({"type": "object", "properties": {"a": {}, "Order Type": {}}}),
            json!({"type": "object", "properties": {"$schema": {}}}),
            json!({"type": "object", "properties": {long: {}}}),
            json!({"type": "object", "properties": {"": {}}}),
        ] {
            let body = body(schema);
            assert_eq!(names(&body), (vec!["body"], json!(["body"])));
        }
        let twice = json!({"type": "object", "required": ["a", "a"], "properties": {"a": {}}});
        assert_eq!(names(&body(twice)), (vec!["a"], json!(["a"])));
    }

    #[test]
    fn json_bodies_use_a_declared_media_type_that_can_be_sent() {
        let media = |declared: &[&str]| {
            let content = declared.iter().map(|media| ((*media).to_owned(), json!({})));
            let content: Map<String, Value> = content.collect();
            arguments(json!({"content": content}), &[]).unwrap().unwrap().body.media
        };
        for (declared, sent) in [
            (&["application/*+json", "application/json", "text/json"][..], "application/json"),
            (
                &["application/hal+json", "application/json; charset=utf-8"],
                "application/json; charset=utf-8",
            ),
            (
                &["application/*+json", "application/merge-patch+json"],
                "application/merge-patch+json",
            ),
            (&["application/*+json"], "application/json"),
            (&["*/*", "application/x-www-form-urlencoded"], "application/json"),
        ] {
            assert_eq!(media(declared), sent);
        }
    }

    #[test]
    fn other_media_types_have_their_own_encoding() {
        let form = arguments(pet(true, "application/x-www-form-urlencoded"), &[]).unwrap().unwrap();
        let given = json!({"name": "a b&c", "age": 3});
        assert_eq!(sent(&form, given).unwrap().unwrap(), "age=3&name=a%20b%26c");
        let text = json!({"required": true, "content": {"text/csv": {}}});
        let text = arguments(text, &[]).unwrap().unwrap();
        assert_eq!(sent(&text, json!({"body": "a;b"})).unwrap().unwrap(), "a;b");
        let bytes = json!({"required": true, "content": {"image/png": {}}});
        let bytes = arguments(bytes, &[]).unwrap().unwrap();
        assert_eq!(sent(&bytes, json!({"body": "aGk="})).unwrap().unwrap(), "hi");
        assert!(sent(&bytes, json!({"body": "?"})).is_err());
        let deep = json!({"content": {"application/x-www-form-urlencoded": {
            "schema": {"type": "object", "properties": {"card": {}, "plain": {}}},
            "encoding": {"card": {"style": "deepObject"}}}}});
        let deep = arguments(deep, &[]).unwrap().unwrap();
        let given = json!({"card": {"n": [1]}, "plain": {"n": 1}});
        assert_eq!(sent(&deep, given).unwrap().unwrap(), "card[n][0]=1&plain=%7B%22n%22%3A1%7D");
    }

    #[test]
    fn form_fields_follow_the_documents_styles() {
        let form = json!({"content": {"application/x-www-form-urlencoded": {
            "schema": {"type": "object", "properties": {"a": {}, "b": {}, "c": {}, "d": {}}},
            "encoding": {"a": {"explode": false}, "b": {"style": "pipeDelimited"},
                "c": {"style": "form"}, "d": {"contentType": "text/plain"}}}}});
        let form = arguments(form, &[]).unwrap().unwrap();
        let given = json!({"a": [1, 2], "b": [3, 4], "c": {"x": 5}, "d": [6, 7]});
        assert_eq!(sent(&form, given).unwrap().unwrap(), "a=1,2&b=3%7C4&x=5&d=6&d=7");
    }

    fn upload(schema: Value, encoding: Value) -> Arguments {
        let content = json!({"multipart/form-data": {"schema": schema, "encoding": encoding}});
        arguments(json!({"required": true, "content": content}), &[]).unwrap().unwrap()
    }

    /// The parts of a body, each as one text, and whether the body is divided as its type says.
    fn parts(arguments: &Arguments, given: Value) -> Vec<String> {
        let content = arguments.body.content(given.as_object().unwrap()).unwrap().unwrap();
        let boundary = content.media.strip_prefix("multipart/form-data; boundary=").unwrap();
        let text = String::from_utf8(content.bytes).unwrap();
        let divider = format!("--{boundary}\r\n");
        let end = format!("--{boundary}--\r\n");
        let inside = text.strip_suffix(end.as_str()).unwrap();
        let parts = inside.split(divider.as_str()).filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    }

    fn part(name: &str, more: &str, content: &str) -> String {
        format!("Content-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n{content}\r\n")
    }

    #[test]
    fn each_multipart_field_is_a_part() {
        let schema = json!({"type": "object", "required": ["note"], "properties": {
            "note": {"type": "string"}, "count": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "ids": {"type": "array", "items": {"type": "integer"}},
            "about": {"type": "object"}, "raw": {"type": "string"}}});
        let encoding = json!({"ids": {"explode": false}, "raw": {"contentType": "application/json"},
            "note": {"contentType": "text/*"}});
        let body = upload(schema, encoding);
        assert_eq!(
            names(&body),
            (vec!["about", "count", "ids", "note", "raw", "tags"], json!(["note"]))
        );
        let given = json!({"note": "é\r\n--x", "count": 3, "tags": ["a", "b"], "ids": [1, 2],
            "about": {"x": [1]}, "raw": "r"});
        let json = "\r\nContent-Type: application/json";
        assert_eq!(
            parts(&body, given),
            [
                part("about", json, "{\"x\":[1]}"),
                part("count", "", "3"),
                part("ids", "", "1,2"),
                part("note", "", "é\r\n--x"),
                part("raw", json, "\"r\""),
                part("tags", "", "a"),
                part("tags", "", "b"),
            ]
        );
        let none = parts(&body, json!({"note": null}));
        assert_eq!(none, Vec::<String>::new(), "null is nothing");
    }

    #[test]
    fn a_file_comes_as_bytes_or_as_text() {
        let nothing = json!({"type": "null"});
        let binary = json!({"type": "string", "format": "binary", "description": "The photo."});
        let schema = json!({"type": "object", "properties": {
            "photo": binary,
            "more": {"anyOf": [{"type": "array", "items": binary}, nothing]},
            "sheet": {"type": "string", "contentMediaType": "application/octet-stream"},
            "code": {"type": "string", "format": "byte"}}});
        let body = upload(schema, json!({"photo": {"contentType": "image/png, image/jpeg"}}));
        let photo = &body.properties["photo"];
        assert_eq!(photo["description"], "The photo.");
        assert_eq!(photo["properties"]["base64"]["contentEncoding"], "base64");
        assert_eq!(body.properties["more"]["items"]["type"], "object");
        assert_eq!(body.properties["sheet"]["type"], "object");
        assert_eq!(body.properties["code"]["type"], "string");
        let file =
            |name: &str, media: &str| format!("; filename=\"{name}\"\r\nContent-Type: {media}");
        let given = json!({"photo": {"base64": "aGk="}, "code": "aGk=",
            "sheet": {"text": "a;b", "filename": "b\".csv\r\nx", "mediaType": "text/csv"},
            "more": [{"text": "x"}, "aGk="]});
        assert_eq!(
            parts(&body, given),
            [
                part("code", "", "aGk="),
                part("more", &file("more", "text/plain; charset=utf-8"), "x"),
                part("more", &file("more", "application/octet-stream"), "hi"),
                part("photo", &file("photo", "image/png"), "hi"),
                part("sheet", &file("b%22.csv%0D%0Ax", "text/csv"), "a;b"),
            ]
        );
        for (wrong, told) in [
            (json!({"photo": {}}), "needs `base64` or `text`"),
            (json!({"photo": {"base64": "", "text": ""}}), "needs `base64` or `text`"),
            (json!({"photo": "?"}), "is not in base64"),
            (json!({"photo": {"text": "", "mediaType": "a/b\r\nc: d"}}), "`mediaType`"),
        ] {
            let error = sent(&body, wrong).unwrap_err();
            assert!(error.fault.message.contains(told), "{}", error.fault.message);
        }
    }

    #[test]
    fn multipart_boundaries_are_deterministic_and_in_no_part() {
        let body = upload(json!({"type": "object", "additionalProperties": true}), json!({}));
        assert_eq!(names(&body), (vec!["body"], json!(["body"])));
        let given = json!({"body": {"a": "1"}});
        let first = sent(&body, given.clone()).unwrap().unwrap();
        assert_eq!(sent(&body, given).unwrap().unwrap(), first);
        let again = json!({"body": {"a": first}});
        let divider = first.lines().next().unwrap();
        let second = sent(&body, again).unwrap().unwrap();
        assert!(!second.starts_with(divider), "{second}");
        assert!(sent(&body, json!({"body": 7})).is_err());
    }

    #[test]
    fn required_unsupported_bodies_are_reported() {
        let upload = |required: bool| {
            let content = json!({"multipart/mixed": {"schema": {"type": "object"}}});
            arguments(json!({"required": required, "content": content}), &[])
        };
        assert!(upload(true).unwrap_err().contains("`multipart/mixed`"));
        assert!(upload(false).unwrap().is_none());
        assert!(arguments(json!({"content": {}}), &[]).unwrap().is_none());
    }
}
