//! Stubs for tools of other servers while examples run: each call is answered as the example says,
//! in order.

use kernel::contracts::Tool;
use kernel::definition::plan::{Plan, Stub, StubFault};
use kernel::tool::call::{
    Call, CallProgress, Caller, OutputKind, Pace, Reach, ToolError, ToolOutput, ToolSpec,
};
use kernel::values::fault::Fault;
use outbound::answer::is_passing;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The answers that are left of the example that runs, by tool.
#[derive(Debug, Clone, Default)]
pub(super) struct Stubs(Arc<Mutex<BTreeMap<String, VecDeque<Stub>>>>);

/// A tool that is stood in for.
struct StubTool {
    spec: Arc<ToolSpec>,
    stubs: Stubs,
}

impl Stubs {
    /// The tools for which an example of these plans stands in.
    pub(super) fn names(plans: &[Plan]) -> BTreeSet<String> {
        let examples = plans.iter().flat_map(|plan| &plan.examples);
        examples.flat_map(|example| example.stubs.keys().cloned()).collect()
    }

    /// These tools, which answer as the example says that runs.
    pub(super) fn tools(&self, names: BTreeSet<String>) -> Vec<Arc<dyn Tool>> {
        let tool = |name: String| {
            let spec = Arc::new(spec(&name));
            let stubs = self.clone();
            let tool: Arc<dyn Tool> = Arc::new(StubTool { spec, stubs });
            tool
        };
        names.into_iter().map(tool).collect()
    }

    /// Answers by these from now on.
    pub(super) fn begin(&self, stubs: &BTreeMap<String, Vec<Stub>>) {
        let queue = |(name, stubs): (&String, &Vec<Stub>)| {
            (name.clone(), stubs.iter().cloned().collect::<VecDeque<Stub>>())
        };
        let queues = stubs.iter().map(queue).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = queues;
    }

    /// The answers that no call took, as sentences.
    pub(super) fn unused(&self) -> Vec<String> {
        let left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let unused = left.iter().filter(|(_, stubs)| !stubs.is_empty());
        unused
            .map(|(tool, stubs)| format!("stubs of `{tool}` left over: {}", stubs.len()))
            .collect()
    }

    fn take(&self, tool: &str) -> Option<Stub> {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.get_mut(tool)?.pop_front()
    }
}

impl StubTool {
    async fn answer(&self) -> Result<ToolOutput, ToolError> {
        let tool = self.spec.name.as_str();
        let Some(Stub { result, fault, delay_ms }) = self.stubs.take(tool) else {
            let what = format!("the example has no stub left for this call of `{tool}`");
            let hint = format!("add one: `stubs: {{{tool}: [{{result: ..}}]}}`");
            return Err(ToolError::not_sent("NoStub", what).hint(hint));
        };
        if let Some(delay) = delay_ms {
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
        match fault {
            Some(fault) => Err(error(fault)),
            None => Ok(ToolOutput::Value(result.unwrap_or(Value::Null))),
        }
    }
}

impl Tool for StubTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        _call: &'a Call,
    ) -> Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'a>> {
        Box::pin(self.answer())
    }
}

/// A failure as the server of the tool would report it.
fn error(fault: StubFault) -> ToolError {
    let StubFault { status, name, message, how } = fault;
    let usual = if status.is_some() { "HttpStatus" } else { "ToolFailed" };
    let message = match (status, message) {
        (_, Some(message)) => message,
        (Some(status), None) => format!("the other side answered {status}"),
        (None, None) => "the tool failed".to_owned(),
    };
    let fault = Fault::new(name.as_deref().unwrap_or(usual), message);
    let error = ToolError::new(how.unwrap_or(CallProgress::Failed), fault);
    if status.is_some_and(is_passing) { error.passing() } else { error }
}

/// What is known of a tool that is stood in for: it may do anything.
fn spec(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        title: name.to_owned(),
        description: "A tool of another server that an example stands in for.".to_owned(),
        input_schema: Arc::new(json!({"type": "object"})),
        output_schema: None,
        reach: Reach::Writes,
        idempotent: false,
        tags: Vec::new(),
        pace: Pace::Quick,
        yields: OutputKind::Value,
        unrecorded: false,
        listed: None,
    }
}
