//! The way to an address without encryption, prepared as far as it can be: what all requests to it
//! have in common is made once.

use super::plain::{Body, Plain, Sent, Unanswered};
use crate::http::USER_AGENT as OUR_NAME;
use crate::remote::RemoteParts;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Response, Uri};
use reqwest::header::{ACCEPT, AUTHORIZATION, HOST, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::{Method, Url};
use std::sync::Arc;

/// A prepared way.
#[derive(Clone)]
pub(super) struct Direct {
    connections: Arc<Plain>,
    /// What stands in the first line of a request.
    path: Uri,
    /// What every request says.
    headers: Arc<HeaderMap>,
}

impl Direct {
    /// The way to this URL; none where it is not plain, or has a name and a password in it.
    pub(super) fn new(url: &Url, given: &HeaderMap, parts: &RemoteParts) -> Option<Self> {
        let (place, path) = split(url)?;
        let host = HeaderValue::from_str(place.authority()?.as_str()).ok()?;
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host);
        headers.insert(USER_AGENT, HeaderValue::from_static(OUR_NAME));
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        for name in given.keys() {
            headers.remove(name);
        }
        for (name, value) in given {
            headers.append(name, value.clone());
        }
        Some(Self { connections: Plain::new(place, parts), path, headers: Arc::new(headers) })
    }

    /// The same connections to another address of the same origin.
    pub(super) fn at(&self, url: &Url) -> Option<Self> {
        let (_, path) = split(url)?;
        Some(Self { path, ..self.clone() })
    }

    /// A request with these headers over those that all have, and with our token if we have one.
    pub(super) fn request(
        &self,
        (method, headers, body): (&Method, &HeaderMap, &Bytes),
        bearer: Option<&HeaderValue>,
    ) -> Sent {
        let mut all = HeaderMap::with_capacity(self.headers.len() + headers.len() + 2);
        for (name, value) in self.headers.iter() {
            all.append(name, value.clone());
        }
        for (name, value) in headers {
            all.insert(name, value.clone());
        }
        if let Some(bearer) = bearer {
            all.append(AUTHORIZATION, bearer.clone());
        }
        let mut request = Sent::new(Full::new(body.clone()));
        *request.method_mut() = method.clone();
        *request.uri_mut() = self.path.clone();
        *request.headers_mut() = all;
        request
    }

    /// Sends it.
    pub(super) async fn send(&self, request: Sent) -> Result<Response<Body>, Unanswered> {
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
    let path = Uri::from(whole.path_and_query()?.clone());
    Some((whole, path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::stage::Stage;
    use reqwest::header::HeaderName;

    fn direct(url: &str, given: &HeaderMap) -> Option<Direct> {
        Direct::new(&Url::parse(url).unwrap(), given, &Stage::new().parts())
    }

    fn said(request: &Sent) -> Vec<String> {
        let line = |(name, value): (&HeaderName, &HeaderValue)| {
            format!("{name}: {}", value.to_str().unwrap())
        };
        let mut said: Vec<String> = request.headers().iter().map(line).collect();
        said.sort();
        said
    }

    #[test]
    fn only_a_bare_plain_url_has_one() {
        let none = HeaderMap::new();
        assert!(direct("http://a.test:81/mcp?x=1#part", &none).is_some());
        for url in ["https://a.test/mcp", "http://me@a.test/", "http://me:hush@a.test/mcp"] {
            assert!(direct(url, &none).is_none(), "{url}");
        }
    }

    #[test]
    fn a_request_says_what_all_do_and_then_its_own() {
        let mut given = HeaderMap::new();
        for (name, value) in [("user-agent", "mine/1"), ("x-key", "a"), ("x-key", "b")] {
            given.append(name, HeaderValue::from_static(value));
        }
        let direct = direct("http://a.test:81/mcp?x=1#part", &given).unwrap();
        let mut own = HeaderMap::new();
        own.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        own.insert("mcp-method", HeaderValue::from_static("tools/call"));
        let bearer = HeaderValue::from_static("Bearer t");
        let request = direct.request((&Method::POST, &own, &Bytes::new()), Some(&bearer));
        assert_eq!(request.uri(), "/mcp?x=1");
        let expected = [
            "accept: text/event-stream",
            "authorization: Bearer t",
            "host: a.test:81",
            "mcp-method: tools/call",
            "user-agent: mine/1",
            "x-key: a",
            "x-key: b",
        ];
        assert_eq!(said(&request), expected);
        let bare = direct.request((&Method::DELETE, &HeaderMap::new(), &Bytes::new()), None);
        assert!(said(&bare).contains(&"accept: */*".to_owned()));
    }
}
