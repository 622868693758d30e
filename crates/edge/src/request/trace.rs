//! The trace that a request belongs to: its sender's span, by the W3C header. What is done for the
//! request becomes a part of it. A header that is wrong is as good as none, as the standard wants.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use kernel::values::trace::TraceParent;
use std::convert::Infallible;
use wire::mcp::TRACEPARENT;

/// What is static need not be read letter by letter with each request.
static HEADER: HeaderName = HeaderName::from_static(TRACEPARENT);

/// The span of the sender of a request, if it names one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace(pub Option<TraceParent>);

impl<S: Send + Sync> FromRequestParts<S> for Trace {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self(of(&parts.headers)))
    }
}

/// The span that these headers name. Of two no one knows which is meant, so that neither is.
pub fn of(headers: &HeaderMap) -> Option<TraceParent> {
    let mut given = headers.get_all(&HEADER).iter();
    match (given.next(), given.next()) {
        (Some(only), None) => only.to_str().ok()?.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn read(values: &[&[u8]]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("traceparent", HeaderValue::from_bytes(value).unwrap());
        }
        of(&headers).map(|parent| parent.to_string())
    }

    #[test]
    fn one_good_header_names_the_span() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[PARENT.as_bytes()]).as_deref(), Some(PARENT));
    }

    #[test]
    fn a_wrong_header_is_as_good_as_none() {
        let wrong: [&[&[u8]]; 5] = [
            &[b""],
            &[b"nonsense"],
            &[b"00-00000000000000000000000000000000-b7ad6b7169203331-01"],
            &[b"\xff\xfe"],
            &[PARENT.as_bytes(), PARENT.as_bytes()],
        ];
        for values in wrong {
            assert_eq!(read(values), None, "{values:?}");
        }
    }
}
