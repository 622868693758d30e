//! Outgoing `traceparent`, which makes the other server's work a part of the call's span.

use kernel::values::trace::TraceParent;
use reqwest::header::{HeaderMap, HeaderValue};

/// The header that names a request's trace.
const TRACEPARENT: &str = "traceparent";

/// Names the call's span in the headers of a request, unless they name one already.
pub fn traced(headers: &mut HeaderMap, trace: Option<TraceParent>) {
    let Some(trace) = trace else { return };
    // Digits and dashes, which every header can hold.
    if let Ok(span) = HeaderValue::from_str(&trace.to_string()) {
        headers.entry(TRACEPARENT).or_insert(span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

    #[test]
    fn traceparent_is_added_unless_already_set() {
        let mut headers = HeaderMap::new();
        traced(&mut headers, None);
        assert!(headers.is_empty());
        traced(&mut headers, SPAN.parse().ok());
        assert_eq!(headers["traceparent"], SPAN);
        let other = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        traced(&mut headers, other.parse().ok());
        assert_eq!(headers["traceparent"], SPAN);
    }
}
