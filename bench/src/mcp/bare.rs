//! Baseline of HTTP and JSON for an MCP request: one handler that adds, one that sends prepared
//! bytes. Both parse the request; neither checks anything.

use std::net::Ipv4Addr;
use std::sync::Arc;

use ::axum::body::Bytes;
use ::axum::extract::State;
use ::axum::http::header::CONTENT_TYPE;
use ::axum::response::{IntoResponse, Response};
use ::axum::routing::post;
use ::axum::serve::ListenerExt;
use ::axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::TcpListener;

use super::wire::PATH;
use crate::Result;
use crate::child;

/// The child's side: serves until the parent is gone. `list` is the file with the answer to
/// `tools/list`.
pub fn serve(list: Option<String>) -> Result<()> {
    let list = list.ok_or("the file with the list is missing")?;
    let list = Bytes::from(std::fs::read(list)?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(accept(list))
}

async fn accept(list: Bytes) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    child::announce(listener.local_addr()?)?;
    let listener = listener.tap_io(|stream| {
        // Without it the connection is slower, not wrong.
        let _ = stream.set_nodelay(true);
    });
    let router = Router::new().route(PATH, post(answer)).with_state(Arc::new(list));
    ::axum::serve(listener, router).await?;
    Ok(())
}

#[derive(Deserialize)]
struct Request {
    id: Value,
    method: String,
    params: Params,
}

#[derive(Deserialize)]
struct Params {
    #[serde(default)]
    arguments: Value,
}

#[derive(Serialize)]
struct Answer {
    jsonrpc: &'static str,
    id: Value,
    result: Called,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Called {
    result_type: &'static str,
    content: [Content; 1],
    structured_content: Value,
}

#[derive(Serialize)]
struct Content {
    #[serde(rename = "type")]
    kind: &'static str,
    text: String,
}

async fn answer(State(list): State<Arc<Bytes>>, Json(request): Json<Request>) -> Response {
    if request.method == "tools/list" {
        return ([(CONTENT_TYPE, "application/json")], Bytes::clone(&list)).into_response();
    }
    let of = |name: &str| request.params.arguments[name].as_i64().unwrap_or(0);
    let sum = of("a") + of("b");
    let result = Called {
        result_type: "complete",
        content: [Content { kind: "text", text: sum.to_string() }],
        structured_content: Value::from(sum),
    };
    Json(Answer { jsonrpc: "2.0", id: request.id, result }).into_response()
}
