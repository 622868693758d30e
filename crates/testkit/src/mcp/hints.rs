//! A server that says of none of its tools that they only read, as there are many: who believes it
//! has to remember every call.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};

const READS: &str = "\"readOnlyHint\":true";
const WRITES: &str = "\"readOnlyHint\":false";
/// Longer than any answer of the fixtures.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The same doors, but each tool is listed as one that may write. What the tools do stays the same.
pub fn said_to_write(router: Router) -> Router {
    router.layer(from_fn(rewritten))
}

async fn rewritten(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let kind = response.headers().get(CONTENT_TYPE);
    // Lists are never streams.
    if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json")) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    match to_bytes(body, ANSWER_BYTES_MAX).await {
        Ok(bytes) => {
            let text = without_reads(&String::from_utf8_lossy(&bytes));
            parts.headers.remove(CONTENT_LENGTH);
            Response::from_parts(parts, Body::from(text))
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn without_reads(answer: &str) -> String {
    answer.replace(READS, WRITES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn no_tool_is_said_to_read() {
        let tool = |name: &str, reads: bool| {
            json!({"name": name,
                "annotations": {"readOnlyHint": reads, "idempotentHint": true}})
        };
        let listed = json!({"tools": [tool("a", true), tool("b", false)]}).to_string();
        let told: Value = serde_json::from_str(&without_reads(&listed)).unwrap();
        assert_eq!(told, json!({"tools": [tool("a", false), tool("b", false)]}));
    }
}
