//! What the official MCP conformance suite wants a server to have, and what the peers of our own
//! tests call: tools, prompts, resources and plans, registered into our own server. They use what
//! every project can use; no door knows them.

pub(crate) mod fixture;
mod samples;
mod content;
mod telling;
mod asking;
mod work;
mod changing;
mod shelf;
mod plans;
mod era;
mod hints;

use changing::Later;
use engine::system::clock::SystemClock;
use kernel::contracts::shelf::Shelf;
use kernel::contracts::{Clock, Tool};
use kernel::limits::Limits;
use project::config::Config;
use project::folder::Project;
use server::{AssembleError, Assembled, Extra, Setup};
use shelf::FixtureShelf;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

pub use era::{Era, only};
pub use hints::said_to_write;

/// How the fixture server says where it listens; the address follows.
pub const BANNER: &str = "listening on ";

/// The limit that ends the plan that goes in a circle.
const STEP_VISITS_MAX: u32 = 16;
/// Longer than `slow_compute` can work.
const CALL_TIMEOUT_MS: u64 = 120_000;

/// Our server with all fixtures, for a socket of this address.
pub async fn assemble(data: PathBuf, address: SocketAddr) -> Result<Assembled, AssembleError> {
    let engine: Later = Arc::new(OnceLock::new());
    let extra = extra(&engine);
    let setup = Setup::new(
        project(),
        data,
        address,
        Arc::new(|why: String| {
            eprintln!("fixture-server: {why}");
            std::process::exit(1);
        }),
    );
    let setup = Setup { extra, ..setup };
    let assembled = server::assemble(setup).await?;
    // It was empty: this is its only writer.
    let _ = engine.set(assembled.engine.clone());
    Ok(assembled)
}

fn project() -> Project {
    let limits = Limits {
        step_visits_max: STEP_VISITS_MAX,
        call_timeout_ms: CALL_TIMEOUT_MS,
        ..Limits::default()
    };
    Project {
        config: Config { limits, ..Config::default() },
        plans: plans::all(),
        ..Project::default()
    }
}

fn extra(engine: &Later) -> Extra {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let touched = Arc::new(watch::Sender::new(0));
    let tools: Vec<Arc<dyn Tool>> = [
        content::all(),
        telling::all(&clock),
        asking::all(&clock),
        work::all(&clock),
        changing::all(engine, &touched),
    ]
    .into_iter()
    .flatten()
    .collect();
    let shelves: Vec<Arc<dyn Shelf>> = vec![Arc::new(FixtureShelf::new(touched))];
    Extra { tools, shelves, ..Extra::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::tool::call::Pace;
    use project::realm::local_caller;

    /// What the suite's scenarios call by name.
    const DEMANDED: &[&str] = &[
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_tool_with_logging",
        "test_tool_with_progress",
        "test_error_handling",
        "test_sampling",
        "test_elicitation",
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
        "json_schema_2020_12_tool",
        "test_missing_capability",
        "test_streaming_elicitation",
        "test_logging_tool",
        "test_trigger_tool_change",
        "test_trigger_prompt_change",
        "test_input_required_result_elicitation",
        "test_input_required_result_sampling",
        "test_input_required_result_list_roots",
        "test_input_required_result_request_state",
        "test_input_required_result_multiple_inputs",
        "test_input_required_result_multi_round",
        "test_input_required_result_tampered_state",
        "test_input_required_result_capabilities",
        "greet",
        "slow_compute",
        "failing_job",
        "protocol_error_job",
        "confirm_delete",
        "multi_input",
        "test_tool_with_task",
    ];

    fn in_runtime<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(work)
    }

    #[test]
    fn everything_that_the_suite_calls_is_there() {
        in_runtime(async {
            let folder = tempfile::tempdir().unwrap();
            let address = SocketAddr::from(([127, 0, 0, 1], 0));
            let assembled = assemble(folder.path().join("data"), address).await;
            let assembled = assembled.unwrap_or_else(|error| panic!("{error}"));
            assert!(assembled.warnings.is_empty(), "{:?}", assembled.warnings);
            let engine = &assembled.engine;
            for name in DEMANDED {
                let spec = engine.tools().callable(&local_caller(), name);
                assert!(spec.is_some_and(|spec| !spec.description.is_empty()), "{name}");
            }
            let pace =
                |name: &str| engine.tools().callable(&local_caller(), name).map(|spec| spec.pace);
            assert_eq!(pace("failing_job"), Some(Pace::Task));
            assert_eq!(pace("confirm_delete"), Some(Pace::Slow));
            assert_eq!(pace("test_tool_with_task"), Some(Pace::Quick));
            engine.stop().await;
        });
    }

    #[test]
    fn a_trigger_really_changes_the_catalog() {
        in_runtime(async {
            let folder = tempfile::tempdir().unwrap();
            let address = SocketAddr::from(([127, 0, 0, 1], 0));
            let assembled = assemble(folder.path().join("data"), address).await;
            let engine = assembled.unwrap_or_else(|error| panic!("{error}")).engine;
            let before = *engine.catalog().version(&local_caller().realm).borrow();
            let tool = "test_trigger_tool_change".into();
            let called =
                engine.tools().call(&local_caller(), &tool, serde_json::json!({}), 10_000).await;
            assert!(matches!(called, Ok(engine::CallReport::Done(_))), "{called:?}");
            assert!(*engine.catalog().version(&local_caller().realm).borrow() > before);
            assert!(engine.tools().callable(&local_caller(), "test_changed_tool").is_some());
            engine.stop().await;
        });
    }
}
