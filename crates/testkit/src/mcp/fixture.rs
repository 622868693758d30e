//! A tool of a spec and a function: what all fixtures are made of.

use futures::future::BoxFuture;
use kernel::contracts::{Clock, Tool};
use kernel::tool::call::{Call, Caller, Pace, Reach, ToolError, ToolOutput, ToolSpec, Yields};
use serde_json::{Value, json};
use std::sync::Arc;

/// The outcome of a call.
pub(crate) type Called = Result<ToolOutput, ToolError>;

type Act = Box<dyn Fn(Caller, Call) -> BoxFuture<'static, Called> + Send + Sync>;

/// A tool of a spec and a function.
pub(crate) struct Fixture {
    spec: Arc<ToolSpec>,
    act: Act,
}

impl Fixture {
    /// A tool that waits while it works.
    pub(crate) fn working<F>(
        spec: ToolSpec,
        act: impl Fn(Caller, Call) -> F + Send + Sync + 'static,
    ) -> Arc<dyn Tool>
    where
        F: Future<Output = Called> + Send + 'static,
    {
        let act: Act = Box::new(move |caller, call| Box::pin(act(caller, call)));
        Arc::new(Self { spec: Arc::new(spec), act })
    }

    /// A tool that answers at once.
    pub(crate) fn at_once(
        spec: ToolSpec,
        act: impl Fn(&Call) -> Called + Send + Sync + 'static,
    ) -> Arc<dyn Tool> {
        Self::working(spec, move |_, call| std::future::ready(act(&call)))
    }
}

impl Tool for Fixture {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, caller: &'a Caller, call: &'a Call) -> BoxFuture<'a, Called> {
        (self.act)(caller.clone(), call.clone())
    }
}

/// The spec of a tool that reads, takes nothing and answers blocks of content.
pub(crate) fn content(name: &str, description: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        title: name.to_owned(),
        description: description.to_owned(),
        input_schema: Arc::new(json!({"type": "object", "properties": {}})),
        output_schema: None,
        reach: Reach::Reads,
        idempotent: true,
        tags: vec!["fixture".to_owned()],
        pace: Pace::Quick,
        yields: Yields::Content,
        unrecorded: false,
        listed: None,
    }
}

/// The spec of a tool that reads, takes nothing and answers a value of this schema.
pub(crate) fn value(name: &str, description: &str, output: Value) -> ToolSpec {
    ToolSpec {
        output_schema: Some(Arc::new(output)),
        yields: Yields::Value,
        ..content(name, description)
    }
}

/// The same, taking arguments of this schema.
pub(crate) fn taking(spec: ToolSpec, input: Value) -> ToolSpec {
    ToolSpec { input_schema: Arc::new(input), ..spec }
}

/// An answer of these blocks of content.
pub(crate) fn blocks(content: Value) -> Called {
    Ok(ToolOutput::Value(json!({"content": content})))
}

/// An answer of one text.
pub(crate) fn text(text: impl Into<String>) -> Called {
    blocks(json!([{"type": "text", "text": text.into()}]))
}

/// Waits so long by this clock.
pub(crate) async fn pause(clock: &dyn Clock, ms: u64) {
    clock.sleep_until(clock.now().plus_ms(ms)).await;
}
