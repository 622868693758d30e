//! Baseline of HTTP and JSON: the request and the answer of `POST /api/v1/runs`, with nothing
//! between.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::axum::routing::post;
use ::axum::serve::ListenerExt;
use ::axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::Result;
use crate::child::{self, Child};
use crate::load::{self, Job, READ_ONLY_RUN, RUNS_PATH, Summary};

/// As long as a real time, and as cheap as none.
const AT: &str = "2026-01-01T00:00:00.000Z";

/// Loads a handler of its own process with this many clients.
pub async fn measure(clients: usize, span: Duration) -> Result<Summary> {
    let server = Child::start(child::AXUM)?;
    let job = Job::runs(server.address(), READ_ONLY_RUN, load::completed);
    load::run_for(&job, clients, span).await
}

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
    ::axum::serve(listener, Router::new().route(RUNS_PATH, post(run))).await?;
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RunRequest {
    plan_id: String,
    input: Value,
}

#[derive(Serialize)]
struct RunAnswer {
    run: Run,
    session: Session,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    id: String,
    session: String,
    plan: String,
    status: &'static str,
    step: &'static str,
    answer: String,
    last_error: Option<String>,
    asks: Vec<String>,
    started_at: &'static str,
    ended_at: &'static str,
    cost: Cost,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cost {
    steps: u32,
    input_tokens: u32,
    output_tokens: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Session {
    id: String,
    realm: &'static str,
    space: &'static str,
    key: String,
    status: &'static str,
    run: String,
    asks: Vec<String>,
    created_at: &'static str,
    updated_at: &'static str,
}

async fn run(Json(request): Json<RunRequest>) -> Json<RunAnswer> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let id = format!("run_{number:032x}");
    let session = format!("ses_{number:032x}");
    Json(RunAnswer {
        run: Run {
            id: id.clone(),
            session: session.clone(),
            plan: request.plan_id,
            status: "completed",
            step: "end",
            answer: format!("sum: {}", request.input),
            last_error: None,
            asks: Vec::new(),
            started_at: AT,
            ended_at: AT,
            cost: Cost { steps: 4, input_tokens: 0, output_tokens: 0 },
        },
        session: Session {
            id: session.clone(),
            realm: "default",
            space: "session",
            key: session,
            status: "completed",
            run: id,
            asks: Vec::new(),
            created_at: AT,
            updated_at: AT,
        },
    })
}
