//! The headers that repeat what a stateless request says, so that others can route it without
//! reading it. A reader of the body must compare both: a router and we must not
//! see different things.

use crate::messages::message::{RequestMembers, text};
use axum::http::header::AsHeaderName;
use axum::http::{HeaderMap, HeaderName};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt::Display;
use wire::jsonrpc::RpcError;
use wire::mcp::{HEADER_METHOD, HEADER_MISMATCH, HEADER_NAME, HEADER_PARAM, HEADER_VERSION};

/// In a tool's input schema: the argument is repeated in this header.
const ANNOTATION: &str = "x-mcp-header";

/// Names that most requests say. What is static need not be read letter by letter each time.
pub(crate) static VERSION: HeaderName = HeaderName::from_static(HEADER_VERSION);
static METHOD: HeaderName = HeaderName::from_static(HEADER_METHOD);
static NAME: HeaderName = HeaderName::from_static(HEADER_NAME);

/// A header as text, without the spaces around it; what is no ASCII is empty.
pub(crate) fn header(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    headers.get(name).map(|value| value.to_str().unwrap_or_default().trim())
}

/// The version's header is required, whatever else is wrong.
pub(crate) fn has_version(headers: &HeaderMap) -> Result<(), RpcError> {
    if headers.contains_key(&VERSION) {
        return Ok(());
    }
    Err(mismatch(format!("the header `{HEADER_VERSION}` is missing")))
}

/// Whether the headers say the same as the body: its version, its method, what it is about.
pub(crate) fn check(
    headers: &HeaderMap,
    version: &str,
    method: &str,
    members: &RequestMembers<'_>,
) -> Result<(), RpcError> {
    same(headers, &VERSION, Some(version))?;
    same(headers, &METHOD, Some(method))?;
    let subject = match method {
        "tools/call" | "prompts/get" => members.name,
        "resources/read" => members.uri,
        "tasks/get" | "tasks/update" | "tasks/cancel" => members.task_id,
        _ => None,
    };
    // Where the body does not say it, the method will.
    match subject.and_then(text) {
        Some(subject) => same(headers, &NAME, Some(&subject)),
        None => Ok(()),
    }
}

/// Whether the headers say the same as the arguments that this schema wants to see there.
pub(crate) fn check_arguments(
    headers: &HeaderMap,
    schema: &Value,
    members: &RequestMembers<'_>,
) -> Result<(), RpcError> {
    let Some(properties) = schema["properties"].as_object() else { return Ok(()) };
    let mut annotated = properties
        .iter()
        .filter_map(|(name, property)| Some((name, property.get(ANNOTATION)?.as_str()?)))
        .peekable();
    if annotated.peek().is_none() {
        return Ok(());
    }
    let arguments: Map<String, Value> = members
        .arguments
        .and_then(|arguments| serde_json::from_str(arguments.get()).ok())
        .unwrap_or_default();
    for (name, suffix) in annotated {
        let header_name = format!("{HEADER_PARAM}{suffix}");
        let expected = match arguments.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(value)) => Some(Cow::Borrowed(value.as_str())),
            Some(Value::Bool(value)) => Some(Cow::Owned(value.to_string())),
            Some(Value::Number(number)) => {
                let told = header(headers, header_name.as_str());
                let told = told.and_then(|told| told.parse::<f64>().ok());
                if told.is_some() && told == number.as_f64() {
                    // The same number, maybe in other digits.
                    continue;
                }
                Some(Cow::Owned(number.to_string()))
            }
            // Its schema refuses it.
            Some(Value::Array(_) | Value::Object(_)) => continue,
        };
        same(headers, header_name.as_str(), expected.as_deref())?;
    }
    Ok(())
}

/// Whether a header is there, once or more, and says this and nothing else; or is not there.
fn same(
    headers: &HeaderMap,
    name: impl AsHeaderName + Display + Copy,
    expected: Option<&str>,
) -> Result<(), RpcError> {
    let mut told = false;
    for value in headers.get_all(name) {
        told = true;
        let Some(expected) = expected else {
            return Err(mismatch(format!("the header `{name}` repeats what the body lacks")));
        };
        let value = value.to_str().ok().and_then(|value| decoded(value.trim()));
        if value.is_none_or(|value| value != expected) {
            return Err(mismatch(format!("the header `{name}` does not say the same as the body")));
        }
    }
    if expected.is_some() && !told {
        return Err(mismatch(format!("the header `{name}` is missing")));
    }
    Ok(())
}

/// A header's value; what no header can hold is written as `=?base64?..?=`: with its padding, and
/// one way only to write the same bytes.
fn decoded(value: &str) -> Option<Cow<'_, str>> {
    let inside = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    match inside {
        None => Some(Cow::Borrowed(value)),
        Some(written) => String::from_utf8(STANDARD.decode(written).ok()?).ok().map(Cow::Owned),
    }
}

fn mismatch(message: String) -> RpcError {
    RpcError::new(HEADER_MISMATCH, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use serde_json::json;
    use serde_json::value::RawValue;

    /// What a request says, in its method, its headers and its body.
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a Value);

    fn headers(given: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn checked(given: &[(&str, &str)], method: &str, params: &Value) -> Option<i64> {
        let params = params.to_string();
        let raw: &RawValue = serde_json::from_str(&params).unwrap();
        let members = RequestMembers::read(Some(raw)).unwrap();
        let checked = check(&headers(given), "2026-07-28", method, &members);
        checked.err().map(|error| error.code)
    }

    const VERSION: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");

    #[test]
    fn headers_say_the_same_as_the_body() {
        let none = json!({});
        let call = json!({"name": "math__add"});
        let good: &[Case<'_>] = &[
            ("tools/list", &[VERSION, ("Mcp-Method", "tools/list")], &none),
            ("tools/list", &[VERSION, ("MCP-METHOD", " tools/list ")], &none),
            (
                "tools/call",
                &[VERSION, ("mcp-method", "tools/call"), ("Mcp-Name", "  math__add  ")],
                &call,
            ),
            ("tools/call", &[VERSION, ("mcp-method", "tools/call")], &none),
        ];
        for (method, given, params) in good {
            assert_eq!(checked(given, method, params), None, "{given:?}");
        }
        let bad: &[Case<'_>] = &[
            ("tools/list", &[("Mcp-Method", "tools/list")], &none),
            ("tools/list", &[VERSION], &none),
            ("tools/list", &[VERSION, ("Mcp-Method", "TOOLS/LIST")], &none),
            ("tools/list", &[VERSION, ("Mcp-Method", "prompts/list")], &none),
            (
                "tools/list",
                &[VERSION, ("Mcp-Method", "tools/list"), ("Mcp-Method", "tools/call")],
                &none,
            ),
            ("tools/call", &[VERSION, ("Mcp-Method", "tools/call")], &call),
            ("tools/call", &[VERSION, ("Mcp-Method", "tools/call"), ("Mcp-Name", "other")], &call),
        ];
        for (method, given, params) in bad {
            assert_eq!(checked(given, method, params), Some(-32020), "{given:?}");
        }
        let task = json!({"taskId": "run_1"});
        let given = [VERSION, ("Mcp-Method", "tasks/get"), ("Mcp-Name", "run_2")];
        assert_eq!(checked(&given, "tasks/get", &task), Some(-32020));
        let uri = json!({"uri": "a://ü"});
        let given =
            [VERSION, ("Mcp-Method", "resources/read"), ("Mcp-Name", "=?base64?YTovL8O8?=")];
        assert_eq!(checked(&given, "resources/read", &uri), None);
    }

    fn repeated(given: &[(&str, &str)], arguments: &Value) -> Option<i64> {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "size": {"type": "integer", "x-mcp-header": "Size"},
            "sure": {"type": "boolean", "x-mcp-header": "Sure"},
            "free": {"type": "string"}}});
        let params = json!({"arguments": arguments}).to_string();
        let raw: &RawValue = serde_json::from_str(&params).unwrap();
        let members = RequestMembers::read(Some(raw)).unwrap();
        check_arguments(&headers(given), &schema, &members).err().map(|error| error.code)
    }

    #[test]
    fn annotated_arguments_are_repeated_in_headers() {
        let hello = json!({"region": "Hello"});
        for value in ["Hello", "=?base64?SGVsbG8=?="] {
            assert_eq!(repeated(&[("Mcp-Param-Region", value)], &hello), None, "{value}");
        }
        for value in ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "hello", ""] {
            let told = repeated(&[("Mcp-Param-Region", value)], &hello);
            assert_eq!(told, Some(-32020), "{value}");
        }
        for literal in ["SGVsbG8=", "=?base64?SGVsbG8="] {
            let arguments = json!({"region": literal});
            assert_eq!(repeated(&[("mcp-param-region", literal)], &arguments), None, "{literal}");
        }
        assert_eq!(repeated(&[], &hello), Some(-32020), "it is missing");
        assert_eq!(repeated(&[], &json!({"region": null, "free": "x"})), None);
        assert_eq!(repeated(&[("mcp-param-region", "x")], &json!({})), Some(-32020));
        let both = [("mcp-param-size", "42"), ("mcp-param-sure", "false")];
        assert_eq!(repeated(&both, &json!({"size": 42, "sure": false})), None);
        let digits = [("mcp-param-size", "42.0"), ("mcp-param-sure", "false")];
        assert_eq!(repeated(&digits, &json!({"size": 42, "sure": false})), None);
        assert_eq!(repeated(&both, &json!({"size": 43, "sure": false})), Some(-32020));
        let plain = RequestMembers::default();
        assert_eq!(check_arguments(&headers(&[]), &json!({"type": "object"}), &plain), Ok(()));
    }

    #[test]
    fn base64_is_strict() {
        for (written, bytes) in [("", ""), ("YQ==", "a"), ("YWI=", "ab"), ("YWJj", "abc")] {
            let header = format!("=?base64?{written}?=");
            assert_eq!(decoded(&header).as_deref(), Some(bytes), "{written}");
        }
        for wrong in ["Y", "YQ", "YQ=", "YR==", "Y===", "====", "YQ==YQ==", "Y Q=", "YWI-"] {
            assert_eq!(decoded(&format!("=?base64?{wrong}?=")), None, "{wrong}");
        }
    }
}
