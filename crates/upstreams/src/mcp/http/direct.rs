//! Plain HTTP requests to one URL, with everything that they have in common prepared once.

use crate::RemoteParts;
use bytes::Bytes;
use http_body_util::Full;
use hyper::Uri;
use outbound::client::USER_AGENT as OUR_NAME;
use outbound::plain::{ExchangeError, Plain, PlainAnswer, PlainParts, PlainRequest};
use reqwest::header::{ACCEPT, AUTHORIZATION, HOST, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::{Method, Url};
use std::sync::Arc;

/// A prepared way.
#[derive(Clone)]
pub(super) struct PreparedEndpoint {
    connections: Arc<Plain>,
    /// Request target of the first line.
    target: Uri,
    /// Headers of every request, unless the request sets them itself.
    shared: Arc<HeaderMap>,
}

/// A request, to be sent once or again.
pub(super) struct DirectRequest {
    pub(super) method: Method,
    /// Headers of this request, each name once.
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl PreparedEndpoint {
    /// The way to this URL; none where it is not plain, or has a name and a password in it.
    pub(super) fn new(url: &Url, given: &HeaderMap, parts: &RemoteParts) -> Option<Self> {
        let (place, target) = split(url)?;
        let host = HeaderValue::from_str(place.authority()?.as_str()).ok()?;
        let ours = [
            (HOST, host),
            (USER_AGENT, HeaderValue::from_static(OUR_NAME)),
            (ACCEPT, HeaderValue::from_static("*/*")),
        ];
        let mut shared: HeaderMap = ours.into_iter().collect();
        // What is given replaces ours under the same name.
        shared.extend(given.clone());
        let shared = Arc::new(shared);
        let parts = PlainParts {
            spawn: parts.spawn.clone(),
            clock: parts.clock.clone(),
            connect_within_ms: parts.limits.upstream_connect_timeout_ms,
        };
        Some(Self { connections: Plain::new(place, parts), target, shared })
    }

    /// The same connections to another address of the same origin.
    pub(super) fn at(&self, url: &Url) -> Option<Self> {
        let (_, target) = split(url)?;
        Some(Self { target, ..self.clone() })
    }

    /// A request with these headers over those that all have, and with our token if we have one.
    pub(super) fn request(
        &self,
        asking: &DirectRequest,
        bearer: Option<&HeaderValue>,
    ) -> PlainRequest {
        let DirectRequest { method, headers, body } = asking;
        // Room for all of them, for our token and for the length, which hyper adds.
        let mut all = HeaderMap::with_capacity(self.shared.len() + headers.len() + 2);
        for (name, value) in self.shared.iter() {
            all.append(name, value.clone());
        }
        for (name, value) in headers {
            all.insert(name, value.clone());
        }
        if let Some(bearer) = bearer {
            all.append(AUTHORIZATION, bearer.clone());
        }
        let mut request = PlainRequest::new(Full::new(body.clone()));
        *request.method_mut() = method.clone();
        *request.uri_mut() = self.target.clone();
        *request.headers_mut() = all;
        request
    }

    pub(super) async fn send(&self, request: PlainRequest) -> Result<PlainAnswer, ExchangeError> {
        self.connections.send(request).await
    }
}

/// The whole of a plain URL, and what of it stands in a request.
fn split(url: &Url) -> Option<(Uri, Uri)> {
    let is_bare = url.username().is_empty() && url.password().is_none();
    if url.scheme() != "http" || !is_bare {
        return None;
    }
    let whole: Uri = url.as_str().parse().ok()?;
    let target = Uri::from(whole.path_and_query()?.clone());
    Some((whole, target))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Stage;

    fn direct(url: &str, given: &HeaderMap) -> Option<PreparedEndpoint> {
        PreparedEndpoint::new(&Url::parse(url).unwrap(), given, &Stage::new().parts())
    }

    /// The method, the target and the headers of a request.
    fn said(request: &PlainRequest) -> (String, Vec<String>) {
        let headers = request.headers().iter();
        let headers = headers.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
        let mut headers: Vec<String> = headers.collect();
        headers.sort();
        (format!("{} {}", request.method(), request.uri()), headers)
    }

    #[test]
    fn only_plain_http_urls_use_direct_connections() {
        let none = HeaderMap::new();
        assert!(direct("http://a.test:81/mcp?x=1#part", &none).is_some());
        for url in ["https://a.test/mcp", "http://me@a.test/", "http://me:hush@a.test/mcp"] {
            assert!(direct(url, &none).is_none(), "{url}");
        }
    }

    #[test]
    fn a_request_has_the_common_headers_and_its_own() {
        let mut given = HeaderMap::new();
        for (name, value) in [("user-agent", "mine/1"), ("x-key", "a"), ("x-key", "b")] {
            given.append(name, HeaderValue::from_static(value));
        }
        let direct = direct("http://a.test:81/mcp?x=1#part", &given).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert("mcp-method", HeaderValue::from_static("tools/call"));
        let bearer = HeaderValue::from_static("Bearer t");
        let posted = DirectRequest { method: Method::POST, headers, body: Bytes::new() };
        let expected = [
            "accept: text/event-stream",
            "authorization: Bearer t",
            "host: a.test:81",
            "mcp-method: tools/call",
            "user-agent: mine/1",
            "x-key: a",
            "x-key: b",
        ];
        let expected = expected.map(str::to_owned).to_vec();
        let request = direct.request(&posted, Some(&bearer));
        assert_eq!(said(&request), ("POST /mcp?x=1".to_owned(), expected));

        let headers = HeaderMap::new();
        let body = Bytes::new();
        let bare = DirectRequest { method: Method::DELETE, headers, body };
        let expected =
            ["accept: */*", "host: a.test:81", "user-agent: mine/1", "x-key: a", "x-key: b"];
        let expected = expected.map(str::to_owned).to_vec();
        let request = direct.request(&bare, None);
        assert_eq!(said(&request), ("DELETE /mcp?x=1".to_owned(), expected));
    }
}
