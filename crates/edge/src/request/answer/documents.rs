//! Documents that clients read again and again, and that change seldom: each is made once and kept
//! as bytes with its `ETag`, as long as what it follows from stays the same.

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use quick_cache::sync::Cache;
use serde_json::Value;
use std::hash::Hash;
use std::sync::Arc;

/// How many documents of one kind are kept.
const DOCUMENTS_MAX: usize = 32;

/// A JSON document as it is sent.
#[derive(Debug)]
pub struct Document {
    bytes: Bytes,
    tag: String,
}

impl Document {
    /// This value, under the hash of what it says.
    pub fn new(value: &Value, hash: &str) -> Self {
        Self { bytes: value.to_string().into(), tag: format!("\"{hash}\"") }
    }

    /// Its text, for an answer that it is a part of.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The answer to a request with these headers: nothing but the tag where its client has it.
    pub fn answer(&self, headers: &HeaderMap) -> Response {
        let mut response = match self.is_known(headers) {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => Body::from(self.bytes.clone()).into_response(),
        };
        let answer = response.headers_mut();
        answer.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        answer.extend(HeaderValue::try_from(&self.tag).ok().map(|tag| (ETAG, tag)));
        response
    }

    /// Whether its client has it. What went through a compressing proxy may come back as weak,
    /// which is the same here (RFC 9110, 13.1.2).
    fn is_known(&self, headers: &HeaderMap) -> bool {
        let given = headers.get_all(IF_NONE_MATCH).iter().filter_map(|given| given.to_str().ok());
        given.flat_map(|given| given.split(',')).map(str::trim).any(|one| {
            let tag = one.strip_prefix("W/").unwrap_or(one);
            one == "*" || tag == self.tag
        })
    }
}

/// The documents of one kind, by what they follow from.
pub struct Documents<K>(Cache<K, Arc<Document>>);

impl<K: Hash + Eq> Default for Documents<K> {
    fn default() -> Self {
        Self(Cache::new(DOCUMENTS_MAX))
    }
}

impl<K: Hash + Eq> Documents<K> {
    /// The one that follows from this, which is made and kept if it is not there yet. Without a key
    /// it is made each time.
    pub fn get<E>(
        &self,
        key: Option<K>,
        make: impl FnOnce() -> Result<Document, E>,
    ) -> Result<Arc<Document>, E> {
        if let Some(known) = key.as_ref().and_then(|key| self.0.get(key)) {
            return Ok(known);
        }
        let made = Arc::new(make()?);
        if let Some(key) = key {
            self.0.insert(key, made.clone());
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(document: &Document, given: &[&'static str]) -> u16 {
        let pair = |given: &&'static str| (IF_NONE_MATCH, HeaderValue::from_static(given));
        document.answer(&given.iter().map(pair).collect()).status().as_u16()
    }

    #[test]
    fn a_client_that_has_a_document_gets_only_its_tag() {
        let document = Document::new(&json!({"a": 1}), "abc");
        let none: [&[&str]; 5] = [&[], &["\"ab\""], &["abc"], &["W/\"ab\", \"abcd\""], &[""]];
        for given in none {
            assert_eq!(status(&document, given), 200, "{given:?}");
        }
        let known: [&[&str]; 4] = [&["\"abc\""], &["W/\"abc\""], &["*"], &["\"a\" , \"abc\""]];
        for given in known {
            assert_eq!(status(&document, given), 304, "{given:?}");
        }
        assert_eq!(status(&document, &["\"x\"", "\"abc\""]), 304, "in a second header");
        let answer = document.answer(&HeaderMap::new());
        assert_eq!(answer.headers()[ETAG], "\"abc\"");
    }

    #[test]
    fn the_number_of_cached_documents_is_bounded() {
        let documents = Documents::default();
        let get = |key: Option<usize>, value: usize| {
            let made = documents.get(key, || Ok::<_, ()>(Document::new(&json!(value), "x")));
            String::from_utf8(made.unwrap().bytes.to_vec()).unwrap()
        };
        for number in 0..10 * DOCUMENTS_MAX {
            assert_eq!(get(Some(number), number), number.to_string());
            assert_eq!(get(Some(number), 0), number.to_string(), "it is made once");
        }
        assert_eq!([get(None, 1), get(None, 2)], ["1", "2"], "without a key it is made each time");
        assert!(documents.0.len() <= DOCUMENTS_MAX);
        let refused = documents.get(Some(usize::MAX), || Err("no"));
        assert_eq!(refused.err(), Some("no"));
    }
}
