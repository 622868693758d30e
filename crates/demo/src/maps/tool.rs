//! A tool of the family: a lookup that answers at once.

use crate::card::Card;
use futures::future::BoxFuture;
use kernel::contracts::Tool;
use kernel::tool::call::{Call, Caller, ToolError, ToolOutput, ToolSpec};
use serde_json::Value;
use std::sync::Arc;

/// A tool of the family.
pub(super) struct MapsTool {
    spec: Arc<ToolSpec>,
    act: Act,
}

/// What a tool answers to arguments.
pub(super) type Act = fn(&Value) -> Result<Value, ToolError>;

impl MapsTool {
    pub(super) fn new(card: Card, act: Act) -> Self {
        Self { spec: Arc::new(card.spec()), act }
    }
}

impl Tool for MapsTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let output = (self.act)(&call.arguments).map(ToolOutput::Value);
        Box::pin(std::future::ready(output))
    }
}
