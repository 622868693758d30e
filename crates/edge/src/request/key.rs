//! `Idempotency-Key`: a client that does not know whether its request arrived sends it again under
//! the same key, and it is done once. The engine remembers; here the header is read.

use crate::problem::{Failure, Result};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use engine::{IdempotencyKey, Refusal, RefusalCode};
use kernel::values::canonical;
use kernel::values::ids::ContentHash;
use serde_json::Value;

const KEY: &str = "idempotency-key";
const KEY_CHARS_MAX: usize = 255;
const REPLAYED: &str = "idempotency-replayed";

/// The key of a request, if it has one, and the endpoint it came to.
#[derive(Debug, Clone)]
pub struct Key {
    route: String,
    key: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for Key {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self> {
        // The path as it was sent: the ids in it belong to what is done.
        let route = format!("{} {}", parts.method, parts.uri.path());
        Ok(Self { route, key: key(&parts.headers)? })
    }
}

impl Key {
    /// Whether the request has one.
    pub fn is_given(&self) -> bool {
        self.key.is_some()
    }

    /// The key of one of several things that a request asks for.
    pub fn nth(&self, index: usize) -> Self {
        Self { route: format!("{} #{index}", self.route), key: self.key.clone() }
    }

    /// What the engine remembers the request by; nothing if it has no key.
    pub fn once(self, body: &[u8]) -> Option<IdempotencyKey> {
        self.key.map(|key| IdempotencyKey::new(self.route, key, digest(body)))
    }
}

/// Says in an answer that an earlier request did it.
pub fn replayed(mut response: Response, replayed: bool) -> Response {
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// The same of a failure.
pub fn replayed_failure(failure: Failure, replayed: bool) -> Failure {
    if !replayed {
        return failure;
    }
    failure.header(HeaderName::from_static(REPLAYED), HeaderValue::from_static("true"))
}

fn key(headers: &HeaderMap) -> Result<Option<String>> {
    let mut given = headers.get_all(KEY).iter();
    let Some(first) = given.next() else { return Ok(None) };
    let text = first.as_bytes();
    let fits = (1..=KEY_CHARS_MAX).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic);
    if !fits || given.next().is_some() {
        let message =
            format!("`Idempotency-Key` is one word of 1 to {KEY_CHARS_MAX} visible characters");
        let refusal = Refusal::new(RefusalCode::BadIdempotencyKey, message);
        return Err(refusal.hint("a UUID is a good key").into());
    }
    Ok(Some(String::from_utf8_lossy(text).into_owned()))
}

/// Spaces and the order of keys are no other request.
fn digest(body: &[u8]) -> ContentHash {
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => canonical::digest(&value),
        Err(_) => ContentHash::of(body.trim_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Result<Option<String>, &'static str> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(KEY, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        key(&headers).map_err(|failure| failure.code())
    }

    #[test]
    fn a_key_is_one_word_of_visible_characters() {
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&["a-7"]), Ok(Some("a-7".to_owned())));
        let longest = "x".repeat(KEY_CHARS_MAX);
        assert_eq!(read(&[&longest]), Ok(Some(longest.clone())));
        let too_long = format!("{longest}x");
        let wrong: [&[&str]; 5] = [&["a b"], &[""], &["a", "a"], &["\u{e9}"], &[too_long.as_str()]];
        for wrong in wrong {
            assert_eq!(read(wrong), Err("bad_idempotency_key"), "{wrong:?}");
        }
    }

    #[test]
    fn another_spelling_is_the_same_request() {
        assert_eq!(digest(b"{\"a\": 1, \"b\": 2}"), digest(b" {\"b\":2,\"a\":1}\n"));
        assert_ne!(digest(b"{\"a\": 1}"), digest(b"{\"a\": 2}"));
        assert_eq!(digest(b""), digest(b" \n"));
    }
}
