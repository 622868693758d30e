//! What HTTP and JSON cost for a request of A2A: a handler that parses a message and answers with a
//! completed task, or parses the id of a task and answers with that. It checks and stores nothing.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};

use ::axum::routing::post;
use ::axum::serve::ListenerExt;
use ::axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::TcpListener;

use super::wire::PATH;
use crate::Result;
use crate::child;

/// As long as a real time, and as cheap as none.
const AT: &str = "2026-01-01T00:00:00.000Z";

/// The child's side: serves until the parent is gone.
pub fn serve() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(accept())
}

async fn accept() -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    child::announce(listener.local_addr()?)?;
    let listener = listener.tap_io(|stream| {
        // Without it the connection is slower, not wrong.
        let _ = stream.set_nodelay(true);
    });
    ::axum::serve(listener, Router::new().route(PATH, post(answer))).await?;
    Ok(())
}

#[derive(Deserialize)]
struct Request {
    id: Value,
    params: Params,
}

#[derive(Deserialize)]
struct Params {
    message: Option<Message>,
    #[serde(default)]
    id: String,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    message_id: String,
    role: String,
    parts: Vec<Value>,
    metadata: Value,
}

#[derive(Serialize)]
struct Answer {
    jsonrpc: &'static str,
    id: Value,
    result: Told,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Told {
    /// What a message is answered with.
    Sent { task: Task },
    /// What a read is answered with.
    Read(Task),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    id: String,
    context_id: String,
    status: Status,
    artifacts: [Artifact; 1],
    history: Vec<Message>,
}

#[derive(Serialize)]
struct Status {
    state: &'static str,
    timestamp: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Artifact {
    artifact_id: &'static str,
    parts: Vec<Value>,
}

async fn answer(Json(request): Json<Request>) -> Json<Answer> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let Params { message, id } = request.params;
    let task = |id: String, history: Vec<Message>| Task {
        id,
        context_id: format!("ctx_{number:032x}"),
        status: Status { state: "TASK_STATE_COMPLETED", timestamp: AT },
        artifacts: [Artifact {
            artifact_id: "answer",
            parts: history.first().map(|message| message.parts.clone()).unwrap_or_default(),
        }],
        history,
    };
    let result = match message {
        Some(message) => Told::Sent { task: task(format!("run_{number:032x}"), vec![message]) },
        None => Told::Read(task(id, Vec::new())),
    };
    Json(Answer { jsonrpc: "2.0", id: request.id, result })
}
