//! A server of one era only, as there are many: requests of the other are refused at the door, in
//! the way of servers that never heard of it.

use axum::Json;
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

const PATH: &str = "/mcp";
const VERSION: &str = "mcp-protocol-version";
const MODERN: &str = "2026-07-28";
const SERVER_ERROR: i64 = -32000;
const UNSUPPORTED_VERSION: i64 = -32022;

/// Which versions a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// All of ours.
    Both,
    /// Those with a handshake.
    Legacy,
    /// The stateless one.
    Modern,
}

impl Era {
    /// The era of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "both" => Some(Era::Both),
            "legacy" => Some(Era::Legacy),
            "modern" => Some(Era::Modern),
            _ => None,
        }
    }
}

/// The same doors, but `/mcp` takes requests of this era only.
pub fn only(router: Router, era: Era) -> Router {
    match era {
        Era::Both => router,
        Era::Legacy => router.layer(from_fn(legacy)),
        Era::Modern => router.layer(from_fn(modern)),
    }
}

async fn legacy(request: Request, next: Next) -> Response {
    if request.uri().path() == PATH && is_modern(request.headers()) {
        let message = format!("Bad Request: Unsupported protocol version: {MODERN}");
        return refused(SERVER_ERROR, &message, Value::Null);
    }
    next.run(request).await
}

async fn modern(request: Request, next: Next) -> Response {
    if request.uri().path() == PATH && !is_modern(request.headers()) {
        if request.method() != Method::POST {
            return StatusCode::METHOD_NOT_ALLOWED.into_response();
        }
        let asked = version(request.headers()).unwrap_or_default();
        let data = json!({"supported": [MODERN], "requested": asked});
        return refused(UNSUPPORTED_VERSION, "Unsupported protocol version", data);
    }
    next.run(request).await
}

fn is_modern(headers: &HeaderMap) -> bool {
    version(headers) == Some(MODERN)
}

fn version(headers: &HeaderMap) -> Option<&str> {
    headers.get(VERSION).and_then(|value| value.to_str().ok())
}

fn refused(code: i64, message: &str, data: Value) -> Response {
    let mut error = json!({"code": code, "message": message});
    if !data.is_null() {
        error["data"] = data;
    }
    let body = json!({"jsonrpc": "2.0", "id": null, "error": error});
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}
