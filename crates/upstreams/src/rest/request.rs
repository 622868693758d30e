//! One HTTP request, built completely from arguments before anything is sent.

use super::operation::Operation;
use super::parameter::{Parameter, ParameterLocation};
use super::path::climbs;
use crate::Result;
use kernel::tool::arguments::{kind, misfit};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde_json::{Map, Value};

/// JSON before text before anything else.
const ACCEPTED: &str = "application/json, text/*;q=0.9, */*;q=0.8";

/// A request without what goes with every one.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
}

impl Request {
    pub(super) fn get(url: Url) -> Self {
        let headers = accepting();
        Self { method: Method::GET, url, headers, body: None }
    }

    /// The request of a call to a server; what is wrong with the arguments is reported.
    pub(super) fn new(operation: &Operation, base: &Url, arguments: &Value) -> Result<Self> {
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            other => {
                return Err(misfit(format!("arguments must be an object, not {}", kind(other))));
            }
        };
        if let Some(missing) = operation.parameters.iter().find(|one| is_missing(one, arguments)) {
            return Err(misfit(format!("`{}` is missing", missing.argument)));
        }
        let mut headers = accepting();
        for (parameter, value) in given(operation, arguments, ParameterLocation::Header) {
            let (name, value) = header(parameter, value)?;
            headers.insert(name, value);
        }
        let content = match &operation.body {
            Some(body) => body.content(arguments)?,
            None => None,
        };
        if let Some(content) = &content {
            let media = HeaderValue::from_str(&content.media)
                .map_err(|_| misfit("the document's media type for the body is none"))?;
            headers.insert(CONTENT_TYPE, media);
        }
        let body = content.map(|content| content.bytes);
        let url = url(operation, base, arguments)?;
        Ok(Self { method: operation.method.clone(), url, headers, body })
    }
}

fn accepting() -> HeaderMap {
    HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(ACCEPTED))])
}

/// Nothing is as good as null for a parameter, which has no way to write it.
fn value<'a>(parameter: &Parameter, arguments: &'a Map<String, Value>) -> Option<&'a Value> {
    arguments.get(&parameter.argument).filter(|value| !value.is_null())
}

fn is_missing(parameter: &Parameter, arguments: &Map<String, Value>) -> bool {
    parameter.required && value(parameter, arguments).is_none()
}

fn given<'a>(
    operation: &'a Operation,
    arguments: &'a Map<String, Value>,
    location: ParameterLocation,
) -> impl Iterator<Item = (&'a Parameter, &'a Value)> {
    let here = operation.parameters.iter().filter(move |one| one.location == location);
    here.filter_map(move |one| Some((one, value(one, arguments)?)))
}

fn header(parameter: &Parameter, value: &Value) -> Result<(HeaderName, HeaderValue)> {
    let argument = &parameter.argument;
    let text = parameter.written.in_header(argument, value)?;
    let name = HeaderName::from_bytes(parameter.name.as_bytes());
    let value = HeaderValue::from_str(&text);
    match (name, value) {
        (Ok(name), Ok(value)) => Ok((name, value)),
        _ => Err(misfit(format!("`{argument}` goes into a header: only visible characters do"))),
    }
}

fn url(operation: &Operation, base: &Url, arguments: &Map<String, Value>) -> Result<Url> {
    let path = operation.path.filled(|name| {
        let found =
            given(operation, arguments, ParameterLocation::Path).find(|(one, _)| one.name == name);
        match found {
            Some((parameter, value)) => parameter.written.in_path(&parameter.name, value),
            None => Err(misfit(format!("`{name}` is missing"))),
        }
    })?;
    if climbs(&path) {
        return Err(misfit("a part of the path is `.` or `..`, which leads elsewhere"));
    }
    let mut fields = Vec::new();
    for (parameter, value) in given(operation, arguments, ParameterLocation::Query) {
        let written = parameter.written.in_query(&parameter.name, value)?;
        fields.extend(written.into_iter().map(|(key, value)| format!("{key}={value}")));
    }
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    url.set_query((!fields.is_empty()).then(|| fields.join("&")).as_deref());
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::super::document::OpenApi;
    use super::super::operation::{ReadOptions, all};
    use super::super::parameter::SuppliedParameters;
    use super::*;
    use kernel::tool::call::CallProgress;
    use serde_json::json;

    fn operation(path: &str, item: Value) -> Operation {
        let document = json!({"openapi": "3.1.0", "paths": {path: item}});
        let document = OpenApi::parse(document.to_string()).unwrap();
        let supplied = SuppliedParameters::default();
        let reading = ReadOptions {
            supplied: &supplied,
            trusted: false,
            nodes_max: 1_000,
            parts_max: 10_000,
            operations_max: 10,
        };
        let (mut operations, warnings) = all(&document, &reading, |_| true);
        assert!(warnings.is_empty(), "{warnings:?}");
        operations.remove(0)
    }

    fn pets() -> Operation {
        operation(
            "/owners/{owner}/pets/{id}",
            json!({"put": {
                "parameters": [
                    {"name": "owner", "in": "path", "schema": {"type": "string"}},
                    {"name": "id", "in": "path", "schema": {}},
                    {"name": "tags", "in": "query", "schema": {"type": "array"}},
                    {"name": "at[]", "in": "query", "required": true, "schema": {}},
                    {"name": "X-Trace", "in": "header", "schema": {"type": "string"}}],
                "requestBody": {"content": {"application/json": {"schema": {
                    "type": "object", "properties": {"name": {"type": "string"}}}}}}
            }}),
        )
    }

    fn request(arguments: Value) -> Result<Request> {
        let base = Url::parse("https://a.test/v1/").unwrap();
        Request::new(&pets(), &base, &arguments)
    }

    #[test]
    fn arguments_go_to_path_query_headers_and_body() {
        let request = request(json!({"owner": "a/b c", "id": 7, "tags": ["x", "y&z"], "at": 1,
            "X-Trace": "t", "name": "Rex"}))
        .unwrap();
        let url = "https://a.test/v1/owners/a%2Fb%20c/pets/7?tags=x&tags=y%26z&at%5B%5D=1";
        assert_eq!((request.method, request.url.as_str()), (Method::PUT, url));
        assert_eq!(request.headers["x-trace"], "t");
        assert_eq!(request.headers[CONTENT_TYPE], "application/json");
        assert_eq!(request.body.unwrap(), b"{\"name\":\"Rex\"}");
    }

    #[test]
    fn without_a_body_no_content_type_is_sent() {
        let request = request(json!({"owner": "a", "id": "b", "at": true, "tags": null})).unwrap();
        assert_eq!(request.url.as_str(), "https://a.test/v1/owners/a/pets/b?at%5B%5D=true");
        assert!(request.body.is_none() && !request.headers.contains_key(CONTENT_TYPE));
    }

    #[test]
    fn an_invalid_request_is_reported_before_anything_is_sent() {
        let whole = json!({"owner": "a", "id": "b", "at": 1});
        for (name, value, told) in [
            ("owner", json!(null), "`owner` is missing"),
            ("at", json!(null), "`at` is missing"),
            ("id", json!(""), "must not be empty"),
            ("id", json!(".."), "leads elsewhere"),
            ("owner", json!("."), "leads elsewhere"),
            ("id", json!([[1]]), "an array inside"),
            ("X-Trace", json!("a\r\nb: c"), "only visible characters"),
        ] {
            let mut arguments = whole.clone();
            arguments[name] = value;
            let error = request(arguments).unwrap_err();
            assert_eq!(error.how, CallProgress::NotSent);
            assert!(error.fault.message.contains(told), "{}", error.fault.message);
        }
        assert!(request(json!([])).is_err());
    }
}
