//! Results of calls that came back after their timeout. A late success settles the open `Fix` ask
//! of its call; any other result is recorded and changes nothing.

use super::state::{Completion, Driver};
use crate::gate::LateCall;
use crate::refusal::Result;
use crate::system::clock::timeout;
use futures::FutureExt;
use kernel::ask::AskBody;
use kernel::definition::plan::StepKind;
use kernel::event::Fact;
use kernel::planted::{Switch, is_on};
use kernel::session::{CallState, OpenCall};
use kernel::tool::call::{CallProgress, ToolError, ToolOutput};
use kernel::values::datum::{Datum, Origin};
use kernel::values::ids::{AskId, CallId};
use std::sync::Arc;

impl Driver {
    /// Waits as long again for a call that took too long.
    pub(super) fn wait_longer(&mut self, call: CallId, late: LateCall) {
        let clock = self.shared.clock.clone();
        let LateCall { output, timeout_ms } = late;
        let waiting = async move {
            Completion::Late(call, timeout(clock.as_ref(), timeout_ms, output).await)
        };
        self.in_flight.push(waiting.boxed());
    }

    /// Takes in what came late.
    pub(super) async fn came_late(
        &mut self,
        call: CallId,
        result: Result<ToolOutput, ToolError>,
    ) -> Result<()> {
        match (output_of(call, result), self.open_fix(call)) {
            (Ok(output), None) if is_on(Switch::LateResultApplied) => {
                let settled = None;
                let published = self.published(call);
                self.record(Fact::CallFinished { call, output, settled, published }).await
            }
            (Ok(output), Some(ask)) => {
                // Both in one append: an ask that is withdrawn alone would leave its frame waiting.
                self.flush();
                self.record(Fact::AskWithdrawn { ask }).await?;
                let settled = Some(ask);
                let published = self.published(call);
                self.record(Fact::CallFinished { call, output, settled, published }).await
            }
            (result, _) => {
                let result = result.map_err(|error| error.fault);
                self.record(Fact::CallLate { call, result }).await
            }
        }
    }

    /// Whether a call's output is wanted for what it means: a step of a plan says so. A call of its
    /// own, and an agent's, gets all that its server sent.
    pub(super) fn wants_value(&self, open: &OpenCall) -> bool {
        let Some(session) = self.session.as_ref().filter(|_| !self.key.space.is_call()) else {
            return false;
        };
        let Some(frame) = session.frames.get(&open.request.frame) else { return false };
        let run = session.runs.get(&open.run);
        let pinned = run.and_then(|run| self.closures.get(&run.closure)?.plans.get(&frame.plan));
        let plan = pinned.or_else(|| self.drafted.get(&frame.plan));
        let step = plan.and_then(|plan| plan.step(&open.request.step));
        matches!(step.map(|step| &step.kind), Some(StepKind::ToolCall(call)) if !call.whole)
    }

    /// The open ask about this call, if its outcome is still what no one knows.
    fn open_fix(&self, call: CallId) -> Option<AskId> {
        let session = self.session.as_ref()?;
        let open = session.calls.get(&call)?;
        let closing = session.runs.get(&open.run).is_none_or(|run| run.closing.is_some());
        if closing || !matches!(open.state, CallState::Failed(CallProgress::Unknown, _)) {
            return None;
        }
        let about = |body: &AskBody| match body {
            AskBody::Fix { call: Some(asked), .. } => asked.call_id == call,
            _ => false,
        };
        let mut asks = session.asks.values().filter(|open| open.is_open());
        asks.find(|open| about(&open.ask.body)).map(|open| open.ask.id)
    }
}

/// The output of a call that came too late to be given anything.
pub(super) fn output_of(
    call: CallId,
    result: Result<ToolOutput, ToolError>,
) -> Result<Arc<Datum>, ToolError> {
    match result? {
        ToolOutput::Value(value) => Ok(Arc::new(Datum::inline(value, Origin::Call(call)))),
        ToolOutput::Blob(blob) => Ok(Arc::new(Datum::stored(blob, Origin::Call(call)))),
        ToolOutput::Wants(wants) if wants.inputs.is_empty() => {
            let message = "it continues elsewhere, and said so too late to be followed";
            Err(ToolError::unknown("WentOn", message).hint("look at the other side"))
        }
        ToolOutput::Wants(wants) => {
            let keys: Vec<&str> = wants.inputs.keys().map(String::as_str).collect();
            let message = format!("it did nothing: it wants `{}` first", keys.join("`, `"));
            Err(ToolError::not_sent("InputWanted", message)
                .hint("retry the call, and what it wants is asked for"))
        }
    }
}
