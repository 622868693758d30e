//! What HTTP and JSON cost for a request of A2A: a handler that parses a message and answers with a
//! completed task, or parses the id of a task and answers with that. It checks nothing, and stores
//! nothing, or one durable commit for each message where it is given a folder for that.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use ::axum::extract::State;
use ::axum::http::StatusCode;
use ::axum::routing::post;
use ::axum::serve::ListenerExt;
use ::axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::TcpListener;

use super::wire::PATH;
use crate::Result;
use crate::baseline::commits::Commits;
use crate::child;

/// As long as a real time, and as cheap as none.
const AT: &str = "2026-01-01T00:00:00.000Z";

/// The child's side: serves until the parent is gone.
pub fn serve(folder: Option<String>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(accept(folder))
}

async fn accept(folder: Option<String>) -> Result<()> {
    // The writer ends with the process.
    let database = folder.map(|folder| Path::new(&folder).join("bare.db"));
    let commits = database.map(|database| Commits::start(&database)).transpose()?;
    let commits = commits.map(|(commits, _)| commits);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    child::announce(listener.local_addr()?)?;
    let listener = listener.tap_io(|stream| {
        // Without it the connection is slower, not wrong.
        let _ = stream.set_nodelay(true);
    });
    let router = Router::new().route(PATH, post(answer)).with_state(commits);
    ::axum::serve(listener, router).await?;
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

async fn answer(
    State(commits): State<Option<Commits>>,
    Json(request): Json<Request>,
) -> std::result::Result<Json<Answer>, StatusCode> {
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
        Some(message) => {
            let run = format!("run_{number:032x}");
            if let Some(commits) = commits {
                let committed = commits.commit(run.clone(), format!("ses_{number:032x}")).await;
                committed.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
            }
            Told::Sent { task: task(run, vec![message]) }
        }
        None => Told::Read(task(id, Vec::new())),
    };
    Ok(Json(Answer { jsonrpc: "2.0", id: request.id, result }))
}
