//! Tools that change what there is while clients look: the catalog, and a resource that is watched.

use super::fixture::{Called, Fixture, content, text};
use engine::Engine;
use kernel::contracts::Tool;
use kernel::tool::call::{Caller, Reach, ToolError, ToolSpec};
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

/// The engine that the tools belong to. It is there only after they are, so it comes later.
pub(crate) type Later = Arc<OnceLock<Engine>>;

/// All of them; `touched` counts how often the watched resource was changed.
pub(crate) fn all(engine: &Later, touched: &Arc<watch::Sender<u64>>) -> Vec<Arc<dyn Tool>> {
    vec![
        trigger("test_trigger_tool_change", "test_changed_tool", engine.clone()),
        trigger("test_trigger_prompt_change", "test_changed_prompt", engine.clone()),
        touch(touched.clone()),
    ]
}

/// A tool that registers a plan again. Plans are tools and prompts, so both lists change; they do
/// not grow, because it is always the same plan.
fn trigger(name: &str, plan: &'static str, engine: Later) -> Arc<dyn Tool> {
    let spec = content(name, "Changes the list of tools and of prompts.");
    let times = Arc::new(AtomicU64::new(0));
    Fixture::working(writing(spec), move |caller, _| {
        let times = times.fetch_add(1, Ordering::SeqCst) + 1;
        register(engine.clone(), caller, plan, times)
    })
}

async fn register(engine: Later, caller: Caller, plan: &'static str, times: u64) -> Called {
    let engine = engine.get().ok_or_else(|| {
        ToolError::not_sent("NoEngine", "the fixtures were not told which engine is theirs")
    })?;
    let source = json!({
        "planId": plan,
        "description": format!("Was changed {times} times."),
        "steps": [{"id": "end", "type": "final_response", "message": "changed"}],
    });
    match engine.catalog().register_plan(&caller, source, None).await {
        Ok(registered) => text(format!("{} has version {}", registered.id, registered.version)),
        Err(refusal) => Err(ToolError::failed("NotRegistered", refusal.message)),
    }
}

fn touch(touched: Arc<watch::Sender<u64>>) -> Arc<dyn Tool> {
    let spec = content("test_touch_resource", "Changes the resource test://watched-resource.");
    Fixture::at_once(writing(spec), move |_| {
        touched.send_modify(|times| *times += 1);
        text("touched")
    })
}

fn writing(spec: ToolSpec) -> ToolSpec {
    ToolSpec { reach: Reach::Writes, ..spec }
}
