//! Pages in a browser: those of the listed origins may call, with a credential and without cookies.

use crate::credentials::Guarded;
use axum::http::Method;
use kernel::identity::roles::Role;
use serde_json::{Value, json};

const APP: &str = "https://app.test";
const LISTED: &str = "[server]\norigins = [\"https://app.test\"]\n";

#[tokio::test]
async fn a_listed_page_may_read_every_answer() {
    let guarded = Guarded::start(LISTED).await;
    let key = guarded.key(Role::Viewer).await;
    for (path, key, status) in [
        ("/api/v1/sessions", Some(key.as_str()), 200),
        ("/api/v1/sessions", None, 401),
        ("/api/v1/sessions", Some("wrong"), 401),
        ("/api/v1/sessions/none", Some(key.as_str()), 404),
        ("/mcp", None, 401),
        ("/livez", None, 200),
    ] {
        let mut headers = vec![("origin", APP)];
        headers.extend(key.map(|key| ("x-api-key", key)));
        let answer = guarded.get(path, &headers).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert_eq!(answer.header("access-control-allow-origin"), APP, "{path}");
        assert_eq!(answer.header("vary"), "Origin", "{path}");
        let exposed = answer.header("access-control-expose-headers");
        let read = "mcp-session-id, www-authenticate, retry-after, ratelimit-policy, ratelimit";
        assert_eq!(exposed, read, "{path}");
        assert!(answer.header("access-control-allow-credentials").is_empty(), "no cookies");
    }
}

#[tokio::test]
async fn other_pages_may_not_call() {
    let guarded = Guarded::start(LISTED).await;
    let key = guarded.key(Role::Viewer).await;
    for origin in ["https://evil.test", "http://app.test", "https://app.test:444", "null"] {
        let answer = guarded
            .get("/api/v1/sessions", &[("origin", origin), ("x-api-key", key.as_str())])
            .await;
        assert_eq!((answer.status, &answer.body["code"]), (403, &json!("origin_not_allowed")));
        assert!(answer.header("access-control-allow-origin").is_empty(), "{origin}");
    }
}

/// Status, and what a page may send, of an answer to a preflight.
async fn preflight(
    guarded: &Guarded,
    path: &str,
    headers: &[(&'static str, &str)],
) -> (u16, String) {
    let mut all = vec![("access-control-request-method", "POST")];
    all.extend(headers);
    let answer = guarded.open(Method::OPTIONS, path, &all, &Value::Null).await;
    let allowed = answer.headers().get("access-control-allow-headers");
    let allowed = allowed.map_or("", |value| value.to_str().unwrap());
    (answer.status().as_u16(), allowed.to_owned())
}

#[tokio::test]
async fn a_preflight_lists_what_a_listed_page_may_send() {
    let guarded = Guarded::start(LISTED).await;
    let sent = "authorization, x-api-key, content-type, x-realm, idempotency-key, mcp-session-id, \
                mcp-protocol-version, last-event-id";
    let listed = preflight(&guarded, "/api/v1/runs", &[("origin", APP)]).await;
    assert_eq!(listed, (204, sent.to_owned()));
    let wanted = ("access-control-request-headers", "mcp-method, mcp-name");
    let of_mcp = preflight(&guarded, "/mcp", &[("origin", APP), wanted]).await;
    assert_eq!(of_mcp, (204, "mcp-method, mcp-name".to_owned()));
    let own = preflight(&guarded, "/mcp", &[("origin", "http://localhost:8420"), wanted]).await;
    assert_eq!(own, (204, "mcp-method, mcp-name".to_owned()));
    for (path, origin, status) in [
        ("/api/v1/runs", "https://evil.test", 403),
        ("/api/v1/runs", "http://localhost:8420", 401),
        ("/mcp", "https://evil.test", 403),
    ] {
        let told = preflight(&guarded, path, &[("origin", origin)]).await;
        assert_eq!(told, (status, String::new()), "{path} {origin}");
    }
}
