//! What a call of `http::request` wants, read from its arguments before anything is sent.

use kernel::tool::arguments::misfit;
use kernel::tool::call::ToolError;
use outbound::METHOD_OVERRIDES;
use outbound::addresses::{HttpSettings, web_url};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Headers that are the connection's, or ours: a call cannot set them.
const OURS: [&str; 11] = [
    "connection", "content-length", "expect", "host", "idempotency-key", "keep-alive",
    "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade",
];

/// The arguments of a call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    #[serde(default)]
    method: Verb,
    url: String,
    headers: Option<BTreeMap<String, String>>,
    /// A string is sent as it is, anything else as JSON.
    body: Option<Value>,
}

// The methods that a call may use.
#[derive(Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum Verb {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

impl Asked {
    /// Whether a call with these arguments only reads.
    pub(super) fn reads(&self) -> bool {
        matches!(self.method, Verb::Get | Verb::Head)
    }
}

impl From<Verb> for Method {
    fn from(verb: Verb) -> Self {
        match verb {
            Verb::Get => Method::GET,
            Verb::Head => Method::HEAD,
            Verb::Post => Method::POST,
            Verb::Put => Method::PUT,
            Verb::Patch => Method::PATCH,
            Verb::Delete => Method::DELETE,
        }
    }
}

/// A request that may be sent.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    body: Option<&'a Value>,
}

impl<'a> Wanted<'a> {
    /// Reads the arguments. Refuses wrong and forbidden ones before anything is sent.
    pub(super) fn read(asked: &'a Asked, settings: &HttpSettings) -> Result<Self, ToolError> {
        let method = Method::from(asked.method);
        let url = url(&asked.url)?;
        if !settings.permits(&url) {
            return Err(not_allowed(&url));
        }
        let mut headers = asked.headers.as_ref().map(headers).transpose()?.unwrap_or_default();
        let body = asked.body.as_ref();
        if body.is_some() && asked.reads() {
            return Err(misfit(format!("a `{method}` request has no `body`")));
        }
        if let Some(body) = body {
            let guess =
                if body.is_string() { "text/plain; charset=utf-8" } else { "application/json" };
            headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(guess));
        }
        Ok(Self { method, url, headers, body })
    }

    /// The body's bytes: a string as it is, anything else as JSON.
    pub(super) fn body(&self) -> Option<Vec<u8>> {
        self.body.map(|body| match body {
            Value::String(text) => text.clone().into_bytes(),
            other => other.to_string().into_bytes(),
        })
    }
}

fn url(text: &str) -> Result<Url, ToolError> {
    let url = web_url("`url`", text).map_err(misfit)?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(misfit("`url` must not hold a user or password")
            .hint("send them in an `authorization` header"));
    }
    Ok(url)
}

fn headers(given: &BTreeMap<String, String>) -> Result<HeaderMap, ToolError> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| misfit(format!("`{name}` is not the name of a header")))?;
        if OURS.contains(&key.as_str()) {
            return Err(misfit(format!("header `{name}` cannot be set by a call")));
        }
        if METHOD_OVERRIDES.contains(&key.as_str()) {
            let what = format!("header `{name}` would hide what the request does");
            return Err(misfit(what).hint("say the method in `method`"));
        }
        let value = HeaderValue::from_str(value).map_err(|_| {
            misfit(format!("header `{name}` must be a string of visible characters"))
        })?;
        headers.append(key, value);
    }
    Ok(headers)
}

fn not_allowed(url: &Url) -> ToolError {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    ToolError::not_sent("HostNotAllowed", format!("`{host}:{port}` is not in `[tools.http] allow`"))
        .hint(format!("add `\"{host}:{port}\"` to `allow` of `[tools.http]` in waypost.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::tool::arguments;
    use kernel::tool::call::CallProgress;
    use serde_json::json;

    fn read(arguments: &Value) -> Result<(String, String, Option<Vec<u8>>), ToolError> {
        let settings = HttpSettings::new(&["a.test"]).unwrap();
        let asked: Asked = arguments::read(arguments)?;
        let wanted = Wanted::read(&asked, &settings)?;
        let line = format!("{} {}", wanted.method, wanted.url);
        let mut headers: Vec<String> = wanted
            .headers
            .iter()
            .map(|(name, value)| format!("{name}={}", value.to_str().unwrap()))
            .collect();
        headers.sort();
        Ok((line, headers.join(";"), wanted.body()))
    }

    #[test]
    fn arguments_become_a_request() {
        let get = read(&json!({"url": "http://a.test/x?y=1"})).unwrap();
        assert_eq!(get, ("GET http://a.test/x?y=1".to_owned(), String::new(), None));
        let post = json!({"method": "POST", "url": "http://a.test", "body": {"n": 1},
            "headers": {"X-One": "1"}});
        let json = (
            "POST http://a.test/".to_owned(),
            "content-type=application/json;x-one=1".to_owned(),
            Some(b"{\"n\":1}".to_vec()),
        );
        assert_eq!(read(&post).unwrap(), json);
        let text = json!({"method": "PUT", "url": "http://a.test", "body": "hi",
            "headers": {"content-type": "text/csv"}});
        let (_, headers, body) = read(&text).unwrap();
        assert_eq!((headers.as_str(), body), ("content-type=text/csv", Some(b"hi".to_vec())));
    }

    #[test]
    fn an_invalid_request_is_reported_before_anything_is_sent() {
        for (arguments, name) in [
            (json!({}), "InputValidationError"),
            (json!({"url": "nowhere"}), "InputValidationError"),
            (json!({"url": "file:///etc/passwd"}), "InputValidationError"),
            (json!({"url": "http://u:p@a.test"}), "InputValidationError"),
            (json!({"url": "http://a.test", "method": "TRACE"}), "InputValidationError"),
            (json!({"url": "http://a.test", "method": 7}), "InputValidationError"),
            (json!({"url": "http://a.test", "body": 1}), "InputValidationError"),
            (json!({"url": "http://a.test", "headers": {"Host": "b"}}), "InputValidationError"),
            (json!({"url": "http://a.test", "headers": {"x": "a\r\nb"}}), "InputValidationError"),
            (json!({"url": "http://b.test"}), "HostNotAllowed"),
        ] {
            let error = read(&arguments).unwrap_err();
            assert_eq!((error.how, error.fault.name.as_str()), (CallProgress::NotSent, name));
        }
    }

    #[test]
    fn method_override_headers_are_refused() {
        for name in ["X-HTTP-Method-Override", "x-http-method", "X-Method-OVERRIDE"] {
            for method in ["GET", "HEAD", "POST"] {
                let arguments = json!({"url": "http://a.test", "method": method,
                    "headers": {name: "DELETE"}});
                let error = read(&arguments).unwrap_err();
                let told = (error.how, error.fault.name.as_str());
                assert_eq!(
                    told,
                    (CallProgress::NotSent, "InputValidationError"),
                    "{name} {method}"
                );
                assert!(error.fault.message.contains(name), "{}", error.fault.message);
            }
        }
    }

    #[test]
    fn only_get_and_head_read() {
        for (method, reads) in [("GET", true), ("HEAD", true), ("POST", false), ("DELETE", false)] {
            let asked = json!({"url": "http://a.test", "method": method});
            assert_eq!(arguments::read::<Asked>(&asked).unwrap().reads(), reads, "{method}");
        }
        let asked = json!({"url": "http://a.test"});
        assert!(arguments::read::<Asked>(&asked).unwrap().reads());
        for method in [json!("get"), json!(null)] {
            let asked = json!({"url": "http://a.test", "method": method});
            assert!(arguments::read::<Asked>(&asked).is_err(), "{method}");
        }
    }
}
