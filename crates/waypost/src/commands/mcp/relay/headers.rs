//! What a request of the stateless version repeats in its headers: the version, the method, what
//! it is about, and the arguments that the tool's schema names.

use super::message::{Kind, Message};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::collections::BTreeMap;
use wire::mcp::{HEADER_METHOD, HEADER_NAME, HEADER_PARAM, HEADER_VERSION};

/// In a tool's input schema: the argument is repeated in this header.
const ANNOTATION: &str = "x-mcp-header";

/// Which arguments of which tools are repeated, as far as the server listed its tools.
#[derive(Debug, Default)]
pub(super) struct MirroredArguments {
    tools: BTreeMap<String, Vec<Argument>>,
}

#[derive(Debug)]
struct Argument {
    name: String,
    header: HeaderName,
}

impl MirroredArguments {
    /// Learns from an answer to `tools/list`.
    pub(super) fn learn(&mut self, answer: &str) {
        let answer: Value = serde_json::from_str(answer).unwrap_or_default();
        for tool in answer["result"]["tools"].as_array().into_iter().flatten() {
            let Some(name) = tool["name"].as_str() else { continue };
            let properties = tool["inputSchema"]["properties"].as_object();
            let arguments: Vec<Argument> = properties
                .into_iter()
                .flatten()
                .filter_map(|(name, property)| argument(name, property))
                .collect();
            if arguments.is_empty() {
                self.tools.remove(name);
            } else {
                self.tools.insert(name.to_owned(), arguments);
            }
        }
    }

    /// The headers of a request that says this version.
    pub(super) fn headers(&self, message: &Message, version: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        put(&mut headers, HeaderName::from_static(HEADER_VERSION), version);
        let (Kind::Request { method, .. } | Kind::Notification { method }) = &message.kind else {
            return headers;
        };
        put(&mut headers, HeaderName::from_static(HEADER_METHOD), method);
        let Some(subject) = message.subject() else { return headers };
        put(&mut headers, HeaderName::from_static(HEADER_NAME), subject);
        let arguments = self.tools.get(subject).filter(|_| method == "tools/call");
        for Argument { name, header } in arguments.into_iter().flatten() {
            match message.argument(name) {
                Value::String(text) => put(&mut headers, header.clone(), text),
                value @ (Value::Bool(_) | Value::Number(_)) => {
                    put(&mut headers, header.clone(), &value.to_string());
                }
                Value::Null | Value::Array(_) | Value::Object(_) => {}
            }
        }
        headers
    }
}

fn argument(name: &str, property: &Value) -> Option<Argument> {
    let suffix = property.get(ANNOTATION)?.as_str().filter(|suffix| !suffix.is_empty())?;
    let header = HeaderName::try_from(format!("{HEADER_PARAM}{suffix}")).ok()?;
    Some(Argument { name: name.to_owned(), header })
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    // Cannot fail: what no header can hold is written in base64.
    if let Ok(value) = HeaderValue::try_from(written(value)) {
        headers.insert(name, value);
    }
}

/// A value as a header can hold it.
fn written(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && value.trim() == value
        && !(value.starts_with("=?base64?") && value.ends_with("?="));
    if is_plain { value.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(value)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn headers(repeated: &MirroredArguments, message: &Value) -> Vec<(String, String)> {
        let message = Message::read(message.to_string()).unwrap();
        let made = repeated.headers(&message, "2026-07-28");
        let mut all: Vec<(String, String)> = made
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        all.sort();
        all
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn headers_repeat_what_the_message_says() {
        let none = MirroredArguments::default();
        let list = json!({"id": 1, "method": "tools/list", "params": {"name": "no subject here"}});
        let version = (HEADER_VERSION, "2026-07-28");
        assert_eq!(headers(&none, &list), pairs(&[(HEADER_METHOD, "tools/list"), version]));
        let read = json!({"id": 1, "method": "resources/read", "params": {"uri": "a://ü"}});
        let expected =
            [(HEADER_METHOD, "resources/read"), (HEADER_NAME, "=?base64?YTovL8O8?="), version];
        assert_eq!(headers(&none, &read), pairs(&expected));
    }

    #[test]
    fn annotated_arguments_are_repeated_once_they_are_known() {
        let mut repeated = MirroredArguments::default();
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "size": {"type": "integer", "x-mcp-header": "Size"},
            "sure": {"type": "boolean", "x-mcp-header": "Sure"},
            "wrong": {"type": "string", "x-mcp-header": "no header"},
            "free": {"type": "string"}}});
        let tools = json!([{"name": "deploy", "inputSchema": schema}]);
        repeated.learn(&json!({"id": 1, "result": {"tools": tools}}).to_string());
        let call = json!({"id": 2, "method": "tools/call", "params": {"name": "deploy",
            "arguments": {"region": "eu", "size": 42, "sure": null, "wrong": "x", "free": "x"}}});
        let expected = [
            (HEADER_METHOD, "tools/call"),
            (HEADER_NAME, "deploy"),
            ("mcp-param-region", "eu"),
            ("mcp-param-size", "42"),
            (HEADER_VERSION, "2026-07-28"),
        ];
        assert_eq!(headers(&repeated, &call), pairs(&expected));
        let plain = json!([{"name": "deploy", "inputSchema": {"type": "object"}}]);
        repeated.learn(&json!({"id": 3, "result": {"tools": plain}}).to_string());
        assert_eq!(headers(&repeated, &call).len(), 3, "the tool was changed");
    }

    #[test]
    fn what_no_header_holds_is_base64() {
        for (value, expected) in [
            ("plain text", "plain text"),
            ("", ""),
            (" a", "=?base64?IGE=?="),
            ("a\n", "=?base64?YQo=?="),
            ("\ta", "=?base64?CWE=?="),
            ("ä", "=?base64?w6Q=?="),
            ("a\u{7f}b", "=?base64?YX9i?="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ] {
            assert_eq!(written(value), expected, "{value:?}");
        }
    }
}
