//! Tools that tell how far they are while they run.

use super::fixture::{Fixture, content, pause, text};
use kernel::contracts::{Clock, Tool};
use kernel::tool::call::{Call, LogLevel, Told};
use serde_json::json;
use std::sync::Arc;

/// Between two notifications, so that a client hears them one by one.
const PAUSE_MS: u64 = 50;

/// All of them.
pub(crate) fn all(clock: &Arc<dyn Clock>) -> Vec<Arc<dyn Tool>> {
    vec![
        progress(clock.clone()),
        logging("test_tool_with_logging", clock.clone()),
        logging("test_logging_tool", clock.clone()),
    ]
}

fn progress(clock: Arc<dyn Clock>) -> Arc<dyn Tool> {
    let spec = content("test_tool_with_progress", "Tells its progress: 0, 50 and 100 of 100.");
    Fixture::working(spec, move |_, call| {
        let clock = clock.clone();
        async move {
            for progress in [0.0, 50.0, 100.0] {
                call.teller.tell(Told::Progress {
                    progress,
                    total: Some(100.0),
                    message: Some(format!("Completed step {progress} of 100")),
                });
                // After the last, too: a client that reads both at once may drop the notification.
                pause(clock.as_ref(), PAUSE_MS).await;
            }
            text("Progress was told three times.")
        }
    })
}

fn logging(name: &'static str, clock: Arc<dyn Clock>) -> Arc<dyn Tool> {
    let spec = content(name, "Writes three lines to the log of its client.");
    Fixture::working(spec, move |_, call| {
        let clock = clock.clone();
        async move {
            log(&call, "Tool execution started");
            pause(clock.as_ref(), PAUSE_MS).await;
            log(&call, "Tool processing data");
            pause(clock.as_ref(), PAUSE_MS).await;
            log(&call, "Tool execution completed");
            pause(clock.as_ref(), PAUSE_MS).await;
            text("Three lines were logged.")
        }
    })
}

fn log(call: &Call, line: &str) {
    let logger = Some("fixtures".to_owned());
    call.teller.tell(Told::Log { level: LogLevel::Info, logger, data: json!(line) });
}
