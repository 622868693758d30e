//! `test::always_fail`: fails, so that one can see what a failed step looks like.

use futures::future::BoxFuture;
use kernel::call::{Call, Caller, Pace, Reach, ToolError, ToolOutput, ToolSpec, Yields};
use kernel::contracts::Tool;
use serde_json::json;
use std::sync::Arc;

/// The tool.
pub(crate) struct AlwaysFail {
    spec: Arc<ToolSpec>,
}

impl AlwaysFail {
    /// The tool.
    pub(crate) fn new() -> Self {
        let spec = ToolSpec {
            name: "test::always_fail".into(),
            title: "Always fail".to_owned(),
            description: "Fails, whatever it is given. For trying out what happens then."
                .to_owned(),
            input_schema: Arc::new(json!({"type": "object"})),
            output_schema: None,
            reach: Reach::Reads,
            idempotent: true,
            tags: vec!["test".to_owned()],
            pace: Pace::Quick,
            yields: Yields::Value,
            unrecorded: false,
            listed: None,
        };
        Self { spec: Arc::new(spec) }
    }
}

impl Tool for AlwaysFail {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        _call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let error = ToolError::failed("AlwaysFails", "`test::always_fail` fails by design")
            .hint("skip the step, or abort the run");
        Box::pin(std::future::ready(Err(error)))
    }
}
