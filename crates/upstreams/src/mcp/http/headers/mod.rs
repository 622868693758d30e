//! The headers of what is sent: those that the operator gave, and those that a version asks for. The
//! latter are public: a bridge that passes on the messages of another client sends the same.

mod mirror;

use super::super::line::{PeerError, PeerErrorKind, Result};
use super::super::params::Params;
use crate::config::Secret;
use crate::secret_header;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kernel::tool::call::CallProgress;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::borrow::Cow;
use wire::mcp::{HEADER_METHOD, HEADER_NAME, HEADER_SESSION, HEADER_VERSION, MODERN, TRACEPARENT};

pub use mirror::MirroredArguments;

const LAST_EVENT_ID: &str = "last-event-id";
/// The type of one message.
pub(super) const JSON: &str = "application/json";
/// The type of a stream of messages.
pub const EVENTS: &str = "text/event-stream";
/// The method of most requests.
pub(super) const CALL: &str = "tools/call";
const BOTH: &str = "application/json, text/event-stream";

/// Names that most requests say. What is static need not be read letter by letter each time.
static VERSION: HeaderName = HeaderName::from_static(HEADER_VERSION);
static METHOD: HeaderName = HeaderName::from_static(HEADER_METHOD);
static NAME: HeaderName = HeaderName::from_static(HEADER_NAME);

/// These are the connection's: an operator cannot set them.
const CONNECTION: [&str; 9] = [
    "connection", "content-length", "expect", "host", "keep-alive", "te", "trailer",
    "transfer-encoding", "upgrade",
];

/// These say what we send: many configurations repeat them, and ours are right.
const OURS: [&str; 7] = [
    "accept", "content-type", "last-event-id", "mcp-protocol-version", "mcp-session-id",
    "mcp-method", "mcp-name",
];

/// The operator's headers; what is wrong with them is reported without their values.
pub(super) fn given(headers: &[(String, Secret)]) -> Result<HeaderMap> {
    let mut given = HeaderMap::new();
    for (name, value) in headers {
        let lower = name.to_ascii_lowercase();
        if CONNECTION.contains(&lower.as_str()) {
            return Err(misfit(format!("header `{name}` cannot be set: it is the connection's")));
        }
        if !OURS.contains(&lower.as_str()) {
            let (key, value) = secret_header(name, value.expose()).map_err(misfit)?;
            given.append(key, value);
        }
    }
    Ok(given)
}

/// Headers of every POST: media types of its body and of the accepted answers.
pub fn posted(mut more: HeaderMap) -> HeaderMap {
    more.insert(ACCEPT, HeaderValue::from_static(BOTH));
    more.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    more
}

/// Headers that open a stream, or resume one after an event.
pub fn opened(mut more: HeaderMap, last_id: Option<&str>) -> HeaderMap {
    more.insert(ACCEPT, HeaderValue::from_static(EVENTS));
    if let Some(last_id) = last_id.and_then(|id| HeaderValue::from_bytes(id.as_bytes()).ok()) {
        more.insert(LAST_EVENT_ID, last_id);
    }
    more
}

/// Headers of a stateless message, which mirror its body.
pub fn stateless(version: &str, method: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(&VERSION, encoded(version));
    if let Some(method) = method {
        headers.insert(&METHOD, encoded(method));
    }
    headers
}

/// Headers of a stateless request, which mirror its body, name and arguments.
pub fn stateless_request(
    version: &str,
    method: &str,
    name: Option<&str>,
    mirrored: &[(String, String)],
) -> HeaderMap {
    let mut headers = stateless(version, Some(method));
    if let Some(name) = name {
        headers.insert(&NAME, encoded(name));
    }
    for (name, value) in mirrored {
        // A tool whose arguments cannot be headers was left out when it was listed.
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            headers.insert(name, value);
        }
    }
    headers
}

/// What every message of a session says, in the versions with a handshake.
#[derive(Debug, Clone, Default)]
pub struct SessionHeaders {
    /// A server that keeps nothing gives none.
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

impl SessionHeaders {
    /// Those of the session that begins with an answer to `initialize` that has these headers. Its
    /// version is still to be read.
    pub fn begun(answer: &HeaderMap) -> Self {
        let mut id = answer.get(HEADER_SESSION).cloned();
        if let Some(id) = &mut id {
            id.set_sensitive(true);
        }
        Self { id, version: None }
    }

    /// The same, now that both sides speak this version.
    #[must_use]
    pub fn agreed(self, version: &str) -> Self {
        Self { version: HeaderValue::from_str(version).ok(), ..self }
    }

    /// Whether the version is known.
    pub(super) fn has_version(&self) -> bool {
        self.version.is_some()
    }

    /// Whether the server gave the session a name, and so keeps it and can forget it.
    pub fn is_named(&self) -> bool {
        self.id.is_some()
    }

    pub fn to_map(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(id) = &self.id {
            headers.insert(HEADER_SESSION, id.clone());
        }
        if let Some(version) = &self.version {
            headers.insert(&VERSION, version.clone());
        }
        headers
    }
}

/// The same headers with the span that a request names in its `_meta`, for who reads no bodies.
pub(super) fn traced(mut headers: HeaderMap, params: &Params) -> HeaderMap {
    let named = params.said(TRACEPARENT).and_then(Value::as_str);
    if let Some(span) = named.and_then(|named| HeaderValue::from_str(named).ok()) {
        headers.insert(TRACEPARENT, span);
    }
    headers
}

/// A text as a header holds it: as it is where that can be, else as `=?base64?..?=`.
fn header_text(text: &str) -> Cow<'_, str> {
    let visible = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let bare = !text.starts_with(' ') && !text.ends_with(' ');
    // It would be taken for the other way to write it.
    let mistakable = text.starts_with("=?base64?") && text.ends_with("?=");
    match visible && bare && !mistakable {
        true => text.into(),
        false => format!("=?base64?{}?=", STANDARD.encode(text)).into(),
    }
}

fn encoded(value: &str) -> HeaderValue {
    // What most requests say need not be made again.
    match value {
        MODERN => return HeaderValue::from_static(MODERN),
        CALL => return HeaderValue::from_static(CALL),
        _ => {}
    }
    HeaderValue::from_str(&header_text(value)).unwrap_or(HeaderValue::from_static(""))
}

fn misfit(message: String) -> PeerError {
    PeerError::new(CallProgress::NotSent, PeerErrorKind::Unreachable, message)
        .hint("correct the headers of this server in its configuration")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_unfit_for_headers_are_encoded() {
        for (value, expected) in [
            ("math.add", "math.add"),
            ("us west 1", "us west 1"),
            ("", ""),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("a://ü", "=?base64?YTovL8O8?="),
            ("\tx", "=?base64?CXg=?="),
            ("a\u{7f}b", "=?base64?YX9i?="),
            ("a\r\nb", "=?base64?YQ0KYg==?="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ] {
            assert_eq!(encoded(value).to_str().unwrap(), expected, "{value:?}");
        }
    }

    #[test]
    fn a_stateless_request_repeats_its_method_and_name_in_headers() {
        let mirrored = [
            ("mcp-param-region".to_owned(), "=?base64?ZXU=?=".to_owned()),
            ("Mcp-Param-Size".to_owned(), "42".to_owned()),
        ];
        let headers = stateless_request("2026-07-28", "tools/call", Some("wörk"), &mirrored);
        let header = |name: &str| headers.get(name).unwrap().to_str().unwrap().to_owned();
        assert_eq!(header("mcp-protocol-version"), "2026-07-28");
        assert_eq!(header("mcp-method"), "tools/call");
        assert_eq!(header("mcp-name"), "=?base64?d8O2cms=?=");
        assert_eq!(header("mcp-param-region"), "=?base64?ZXU=?=");
        assert_eq!(header("mcp-param-size"), "42");
    }

    #[test]
    fn a_session_is_in_its_headers() {
        let answer: HeaderMap =
            [(HeaderName::from_static(HEADER_SESSION), HeaderValue::from_static("abc"))]
                .into_iter()
                .collect();
        let begun = SessionHeaders::begun(&answer);
        assert!(begun.is_named() && !begun.has_version());
        let session = begun.agreed("2025-06-18");
        let headers = session.to_map();
        assert_eq!((headers.len(), &headers[HEADER_SESSION]), (2, &answer[HEADER_SESSION]));
        assert_eq!(headers[HEADER_VERSION], "2025-06-18");
        assert!(!format!("{session:?}").contains("abc"));
        assert!(!SessionHeaders::begun(&HeaderMap::new()).is_named());
    }

    #[test]
    fn traceparent_is_in_header_and_meta_or_in_neither() {
        let span = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let headers = traced(HeaderMap::new(), &json!({"_meta": {"traceparent": span}}).into());
        assert_eq!(headers["traceparent"], span);
        for params in [json!(null), json!({}), json!({"_meta": {}}), json!({"traceparent": span})] {
            let headers = traced(HeaderMap::new(), &params.clone().into());
            assert!(headers.is_empty(), "{params}");
        }
    }

    #[test]
    fn configured_headers_are_validated_and_never_shown() {
        let secret = |name: &str, value: &str| [(name.to_owned(), Secret::new(value))];
        let good = given(&secret("Authorization", "Bearer abc")).unwrap();
        assert!(!format!("{good:?}").contains("abc"));
        assert!(given(&secret("Accept", "text/html")).unwrap().is_empty());
        for (name, value) in [("a b", "x"), ("Host", "elsewhere"), ("X-Key", "hidden\n")] {
            let error = given(&secret(name, value)).unwrap_err();
            assert!(error.message.contains(name), "{}", error.message);
            assert!(!error.message.contains("hidden"), "{}", error.message);
        }
    }
}
