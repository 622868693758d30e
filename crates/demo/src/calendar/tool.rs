//! A tool of the family: its spec, its checks and its call.

use super::desk::Desk;
use crate::card::Card;
use futures::future::BoxFuture;
use kernel::contracts::Tool;
use kernel::tool::call::{Call, Caller, ToolError, ToolOutput, ToolSpec};
use serde_json::Value;
use std::sync::Arc;

/// A tool of the family.
pub(super) struct CalendarTool {
    desk: Arc<Desk>,
    spec: Arc<ToolSpec>,
    check: Check,
    act: Act,
}

/// Looks at arguments without a calendar.
pub(super) type Check = fn(&Desk, &Value) -> Result<(), ToolError>;
/// Does it. It blocks.
pub(super) type Act = fn(&Desk, &Call) -> Result<Value, ToolError>;

impl CalendarTool {
    pub(super) fn new(desk: &Arc<Desk>, card: Card, check: Check, act: Act) -> Self {
        Self { desk: desk.clone(), spec: Arc::new(card.spec()), check, act }
    }

    async fn run(&self, call: &Call) -> Result<ToolOutput, ToolError> {
        (self.check)(&self.desk, &call.arguments)?;
        let act = self.act;
        let call = call.clone();
        let work = move |desk: &Desk| match desk.login_first(&call)? {
            Some(wants) => Ok(wants),
            None => act(desk, &call).map(ToolOutput::Value),
        };
        self.desk.work(work).await
    }
}

impl Tool for CalendarTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn check(&self, _caller: &Caller, arguments: &Value) -> Result<(), ToolError> {
        (self.check)(&self.desk, arguments)
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.run(call))
    }
}
