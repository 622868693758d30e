//! The way to an address without encryption, prepared as far as it can be: what all requests to it
//! have in common is made once.

use super::head::{Request, Shared};
use super::plain::{Plain, Received, Unanswered};
use crate::http::USER_AGENT as OUR_NAME;
use crate::remote::RemoteParts;
use bytes::Bytes;
use hyper::Uri;
use reqwest::header::{ACCEPT, HOST, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::{Method, Url};
use std::sync::Arc;

/// A prepared way.
#[derive(Clone)]
pub(super) struct Direct {
    connections: Arc<Plain>,
    /// What stands in the first line of a request.
    target: Arc<str>,
    /// What every request says.
    shared: Arc<Shared>,
}

impl Direct {
    /// The way to this URL; none where it is not plain, or has a name and a password in it.
    pub(super) fn new(url: &Url, given: &HeaderMap, parts: &RemoteParts) -> Option<Self> {
        let (place, target) = split(url)?;
        let host = HeaderValue::from_str(place.authority()?.as_str()).ok()?;
        let ours = [
            (HOST, host),
            (USER_AGENT, HeaderValue::from_static(OUR_NAME)),
            (ACCEPT, HeaderValue::from_static("*/*")),
        ];
        let ours = ours.into_iter().filter(|(name, _)| !given.contains_key(name));
        let given = given.iter().map(|(name, value)| (name.clone(), value.clone()));
        let shared = Arc::new(Shared::new(ours.chain(given)));
        Some(Self { connections: Plain::new(place, parts), target, shared })
    }

    /// The same connections to another address of the same origin.
    pub(super) fn at(&self, url: &Url) -> Option<Self> {
        let (_, target) = split(url)?;
        Some(Self { target, ..self.clone() })
    }

    /// A request with these headers over those that all have, and with our token if we have one.
    pub(super) fn request<'a>(
        &'a self,
        (method, own, body): (&'a Method, &'a HeaderMap, &'a Bytes),
        bearer: Option<&'a HeaderValue>,
    ) -> Request<'a> {
        Request { method, target: &self.target, shared: &self.shared, own, bearer, body }
    }

    /// Sends it.
    pub(super) async fn send(&self, request: &Request<'_>) -> Result<Received, Unanswered> {
        self.connections.send(request).await
    }
}

/// The whole of a plain URL, and what of it stands in a request.
fn split(url: &Url) -> Option<(Uri, Arc<str>)> {
    let is_bare = url.username().is_empty() && url.password().is_none();
    if url.scheme() != "http" || !is_bare {
        return None;
    }
    let whole: Uri = url.as_str().parse().ok()?;
    let target = whole.path_and_query()?.as_str().into();
    Some((whole, target))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::stage::Stage;

    fn direct(url: &str, given: &HeaderMap) -> Option<Direct> {
        Direct::new(&Url::parse(url).unwrap(), given, &Stage::new().parts())
    }

    /// The first line of a request, and its headers.
    fn said(request: &Request<'_>) -> (String, Vec<String>) {
        let mut text = Vec::new();
        request.write(&mut text);
        let text = String::from_utf8(text).unwrap();
        let mut lines = text.strip_suffix("\r\n\r\n").unwrap().split("\r\n").map(str::to_owned);
        let first = lines.next().unwrap();
        let mut headers: Vec<String> = lines.collect();
        headers.sort();
        (first, headers)
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
        let request = (&Method::POST, &own, &Bytes::new());
        let (first, headers) = said(&direct.request(request, Some(&bearer)));
        assert_eq!(first, "POST /mcp?x=1 HTTP/1.1");
        let expected = [
            "accept: text/event-stream",
            "authorization: Bearer t",
            "content-length: 0",
            "host: a.test:81",
            "mcp-method: tools/call",
            "user-agent: mine/1",
            "x-key: a",
            "x-key: b",
        ];
        assert_eq!(headers, expected);
        let bare = (&Method::DELETE, &HeaderMap::new(), &Bytes::new());
        let (first, headers) = said(&direct.request(bare, None));
        assert_eq!(first, "DELETE /mcp?x=1 HTTP/1.1");
        assert!(headers.contains(&"accept: */*".to_owned()));
        assert!(!headers.iter().any(|header| header.starts_with("content-length")));
    }
}
