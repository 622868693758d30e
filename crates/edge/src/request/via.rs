//! How a request came in, as the audit keeps it: at which endpoint, in which trace, and what it
//! says of itself. Nothing is decided by that.

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use kernel::values::caller::Via;
use kernel::values::trace::TraceParent;
use std::borrow::Cow;
use std::collections::BTreeMap;
use wire::a2a::GRPC_SERVICE;

/// How much is kept of a path that is no route.
const ROUTE_CHARS_MAX: usize = 100;

/// The prefixes of the headers that are kept.
const KEPT: [&str; 2] = ["x-acting-on-behalf-of-", "x-agent-"];
/// How many of them are kept, how long a name may be, and how much is kept of a value.
const HEADERS_MAX: usize = 8;
const NAME_CHARS_MAX: usize = 100;
const VALUE_CHARS_MAX: usize = 200;

/// How a request came in. The endpoint is its kind, and its route without the names in it.
pub fn via_of(request: &Request, is_own: bool, trace: Option<TraceParent>) -> Via {
    let path = request.uri().path();
    let kind = match path {
        _ if is_own => "pipeline",
        "/mcp" => "mcp",
        "/rpc" => "rpc",
        "/run" | "/resume" => "run",
        "/a2a" => "a2a",
        path if path.starts_with("/a2a/") || path.starts_with(GRPC_SERVICE) => "a2a",
        _ => "rest",
    };
    Via::saying(format!("{kind} {}", route(request)), trace, kept(request.headers()))
}

/// The same of a request whose body names the agent's session and trace, as the headers
/// `X-Agent-Session-Id` and `X-Agent-Trace-Id` would.
pub fn of_agent(via: &Via, session: Option<&str>, trace: Option<&str>) -> Via {
    let mut headers = via.headers().cloned().unwrap_or_default();
    for (name, value) in [("x-agent-session-id", session), ("x-agent-trace-id", trace)] {
        if let Some(value) = value {
            headers.insert(name.to_owned(), value.chars().take(VALUE_CHARS_MAX).collect());
        }
    }
    Via::saying(via.door().unwrap_or_default().to_owned(), via.trace(), headers)
}

/// The route of a request; where it has none, the beginning of its path.
fn route(request: &Request) -> Cow<'_, str> {
    match request.extensions().get::<MatchedPath>() {
        Some(matched) => matched.as_str().into(),
        None => request.uri().path().chars().take(ROUTE_CHARS_MAX).collect(),
    }
}

/// The headers that say for whom a request acts, and in which work of an agent. One that is no text
/// is left out.
fn kept(headers: &HeaderMap) -> BTreeMap<String, String> {
    let is_kept = |name: &HeaderName| {
        let name = name.as_str();
        name.len() <= NAME_CHARS_MAX && KEPT.iter().any(|beginning| name.starts_with(*beginning))
    };
    let text = |value: &HeaderValue| -> Option<String> {
        Some(value.to_str().ok()?.chars().take(VALUE_CHARS_MAX).collect())
    };
    let found = headers.iter().filter(|(name, _)| is_kept(name));
    let found = found.filter_map(|(name, value)| Some((name.to_string(), text(value)?)));
    found.take(HEADERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    #[test]
    fn the_audit_names_the_kind_of_endpoint_and_the_route() {
        for (path, is_own, endpoint) in [
            ("/mcp", false, "mcp /mcp"),
            ("/mcp", true, "pipeline /mcp"),
            ("/mcp/more", false, "rest /mcp/more"),
            ("/rpc", false, "rpc /rpc"),
            ("/run", false, "run /run"),
            ("/a2a/default", false, "a2a /a2a/default"),
        ] {
            let request = axum::http::Request::get(path).body(Body::empty()).unwrap();
            assert_eq!(via_of(&request, is_own, None).door(), Some(endpoint));
        }
    }

    #[test]
    fn a_body_names_the_agents_session_like_a_header() {
        let sent = ("x-agent-trace-id".to_owned(), "t1".to_owned());
        let via = Via::saying("rest /x".to_owned(), None, BTreeMap::from([sent.clone()]));
        let long = "s".repeat(VALUE_CHARS_MAX + 1);
        let both = of_agent(&via, Some(&long), None);
        let session = ("x-agent-session-id".to_owned(), "s".repeat(VALUE_CHARS_MAX));
        assert_eq!(both.headers(), Some(&BTreeMap::from([session, sent])));
        assert_eq!(both.door(), Some("rest /x"));
        let other = of_agent(&via, None, Some("t2"));
        let told = other.headers().and_then(|headers| headers.get("x-agent-trace-id"));
        assert_eq!(told.map(String::as_str), Some("t2"));
    }

    #[test]
    fn headers_for_the_audit_are_bounded() {
        let mut headers = HeaderMap::new();
        let mut add = |name: &str, value: &str| {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, value.parse().unwrap());
        };
        add("X-Acting-On-Behalf-Of-UserId", "ann");
        add("X-Agent-Trace-Id", &"a".repeat(VALUE_CHARS_MAX + 1));
        add("X-Agent", "not one of them");
        add("Authorization", "Bearer secret");
        add(&format!("x-agent-{}", "n".repeat(NAME_CHARS_MAX)), "too long a name");
        let expected = [
            ("x-acting-on-behalf-of-userid".to_owned(), "ann".to_owned()),
            ("x-agent-trace-id".to_owned(), "a".repeat(VALUE_CHARS_MAX)),
        ];
        assert_eq!(kept(&headers), BTreeMap::from(expected));
        for index in 0..20 {
            let name = HeaderName::from_bytes(format!("x-agent-{index}").as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_static("x"));
        }
        assert_eq!(kept(&headers).len(), HEADERS_MAX);
        let mut binary = HeaderMap::new();
        binary.append("x-agent-id", HeaderValue::from_bytes(&[0xff]).unwrap());
        assert!(kept(&binary).is_empty());
    }
}
