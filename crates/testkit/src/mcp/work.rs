//! Tools that take their time: what becomes a task where the client takes tasks, and what a
//! cancelled call must let go of.

use super::fixture::{Called, Fixture, content, pause, taking, text, value};
use kernel::contracts::{Clock, Tool};
use kernel::tool::call::{Call, Pace, ToolError, ToolOutput, ToolSpec};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How long the job that fails works before it does.
const FAILS_AFTER_MS: u64 = 1_000;
/// The longest that `slow_compute` works.
const SECONDS_MAX: f64 = 100.0;

/// All of them.
pub(crate) fn all(clock: &Arc<dyn Clock>) -> Vec<Arc<dyn Tool>> {
    let running = Arc::new(AtomicU64::new(0));
    vec![
        greet(),
        slow_compute(clock.clone(), running.clone()),
        failing_job(clock.clone()),
        calls_under_way(running),
    ]
}

fn greet() -> Arc<dyn Tool> {
    let schema = json!({
        "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
    });
    Fixture::at_once(taking(content("greet", "Greets at once."), schema), |call| {
        text(format!("Hello, {}!", call.arguments["name"].as_str().unwrap_or_default()))
    })
}

fn slow_compute(clock: Arc<dyn Clock>, running: Arc<AtomicU64>) -> Arc<dyn Tool> {
    let schema = json!({
        "type": "object",
        "properties": {
            "seconds": {"type": "number", "minimum": 0, "maximum": SECONDS_MAX},
            "label": {"type": "string"},
        },
        "required": ["seconds"],
    });
    let spec = content("slow_compute", "Works for some seconds.");
    let spec = ToolSpec { pace: Pace::Slow, ..taking(spec, schema) };
    Fixture::working(spec, move |_, call| computed(clock.clone(), running.clone(), call))
}

async fn computed(clock: Arc<dyn Clock>, running: Arc<AtomicU64>, call: Call) -> Called {
    let _here = Here::enter(running);
    let seconds = call.arguments["seconds"].as_f64().unwrap_or_default().clamp(0.0, SECONDS_MAX);
    pause(clock.as_ref(), (seconds * 1_000.0) as u64).await;
    let label = call.arguments["label"].as_str().unwrap_or("nothing");
    text(format!("Computed {label} for {seconds} s."))
}

/// Counts a call as long as someone waits for it: dropping the future of a call cancels it.
struct Here(Arc<AtomicU64>);

impl Here {
    fn enter(running: Arc<AtomicU64>) -> Self {
        running.fetch_add(1, Ordering::SeqCst);
        Self(running)
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn failing_job(clock: Arc<dyn Clock>) -> Arc<dyn Tool> {
    let spec = content("failing_job", "Works for a second and fails; for callers that take tasks.");
    Fixture::working(ToolSpec { pace: Pace::Task, ..spec }, move |_, _| {
        let clock = clock.clone();
        async move {
            pause(clock.as_ref(), FAILS_AFTER_MS).await;
            let failed: Called = Err(ToolError::failed("JobFailed", "the job fails by design"));
            failed
        }
    })
}

/// How a client learns that a call it cancelled is really over.
fn calls_under_way(running: Arc<AtomicU64>) -> Arc<dyn Tool> {
    let schema = json!({
        "type": "object",
        "properties": {"count": {"type": "integer", "minimum": 0}},
        "required": ["count"],
    });
    let spec = value("calls_under_way", "Counts the calls of `slow_compute` that run now.", schema);
    Fixture::at_once(spec, move |_| {
        Ok(ToolOutput::Value(json!({"count": running.load(Ordering::SeqCst)})))
    })
}
