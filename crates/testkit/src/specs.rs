//! What tools that exist only in tests say of themselves.

use kernel::tool::call::{OutputKind, Pace, Reach, ToolSpec};
use serde_json::json;
use std::sync::Arc;

/// A tool that reads and takes any object. A test writes down what its own tool says otherwise:
/// `ToolSpec { reach: Reach::Writes, ..tool("bank::pay") }`.
pub fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        title: name.to_owned(),
        description: name.to_owned(),
        input_schema: Arc::new(json!({"type": "object"})),
        output_schema: None,
        reach: Reach::Reads,
        idempotent: false,
        tags: Vec::new(),
        pace: Pace::Quick,
        yields: OutputKind::Value,
        unrecorded: false,
        listed: None,
    }
}
