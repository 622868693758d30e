//! The tools of the test agent: one that takes its time, one that fails, one that refuses the task.

use crate::mcp::fixture::{Called, Fixture, content, pause, taking, text};
use engine::system::clock::SystemClock;
use kernel::contracts::Tool;
use kernel::journal::task::TASK_REJECTED;
use kernel::tool::call::{Call, Pace, ToolError, ToolSpec};
use serde_json::json;
use std::sync::Arc;

/// The longest wait: as good as for ever, for tasks that are cancelled.
const SECONDS_MAX: f64 = 3_600.0;

/// All of them.
pub(super) fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        wait(),
        fails("tck::fail", "TckFailure", "failed"),
        fails("tck::reject", TASK_REJECTED, "rejected"),
    ]
}

fn wait() -> Arc<dyn Tool> {
    let schema = json!({
        "type": "object",
        "properties": {"seconds": {"type": "number", "minimum": 0, "maximum": SECONDS_MAX}},
        "required": ["seconds"],
    });
    let spec = taking(content("tck::wait", "Waits for some seconds."), schema);
    Fixture::working(ToolSpec { pace: Pace::Slow, ..spec }, |_, call| waited(call))
}

async fn waited(call: Call) -> Called {
    let seconds = call.arguments["seconds"].as_f64().unwrap_or_default().clamp(0.0, SECONDS_MAX);
    pause(&SystemClock, (seconds * 1_000.0) as u64).await;
    text(format!("Waited for {seconds} s."))
}

fn fails(name: &str, fault: &'static str, why: &'static str) -> Arc<dyn Tool> {
    Fixture::at_once(content(name, "Fails at once."), move |_| Err(ToolError::failed(fault, why)))
}
