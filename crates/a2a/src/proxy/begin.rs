//! An instruction becomes a task: always, so that its sender gets an output whatever is wrong.

use super::super::error::{Result, refused};
use super::failure::{OPEN, REFUSED};
use super::instruction::{SKILL, nothing, read};
use super::plan::PLAN;
use super::route::{ProxyRoute, RouteError, note_unseen, routed};
use crate::state::A2a;
use engine::{
    IdempotencyKey, Message, RefusalCode, ReportedCall, RunMetadata, RunSession, StartedRun,
};
use kernel::event::Occasion;
use kernel::tool::call::Caller;
use kernel::values::trace::TraceParent;
use serde_json::{Value, json};

/// An instruction and what comes with it.
pub(crate) struct Execution {
    /// None where the message has none.
    pub(crate) instruction: Option<Value>,
    /// The message, as it is recorded.
    pub(crate) message: Message,
    /// The context, or a new one.
    pub(crate) session: RunSession,
    pub(crate) once: Option<IdempotencyKey>,
    pub(crate) trace: Option<TraceParent>,
    /// How long its end is waited for; without it, until it has begun.
    pub(crate) wait_ms: Option<u64>,
}

/// Begins the task.
pub(crate) async fn begun(a2a: &A2a, caller: &Caller, execution: Execution) -> Result<StartedRun> {
    let Execution { instruction, message, session, once, trace, wait_ms } = execution;
    let instruction = instruction.unwrap_or_else(nothing);
    let (tool, input) = match meant(a2a, caller, &instruction).await {
        Ok(ProxyRoute { tool, is_open: false }) => {
            (Some(tool), json!({"instruction": instruction}))
        }
        Ok(ProxyRoute { tool, is_open: true }) => {
            (Some(tool), json!({"instruction": instruction, OPEN: true}))
        }
        Err(nowhere) => {
            note_unseen(a2a, caller, &instruction);
            // The message has the instruction: without it the reason is never kept as a blob.
            (None, json!({REFUSED: nowhere.to_value()}))
        }
    };
    let about = RunMetadata {
        trace,
        occasion: Occasion::at("a2a", SKILL),
        message: Some(message),
        ..RunMetadata::default()
    };
    let call = ReportedCall { plan: PLAN, tool, input, session, once, about, wait_ms };
    let begun = a2a.server.engine.tools().begin_reported(caller, call).await;
    begun.map_err(|refusal| match refusal.code {
        RefusalCode::BadSessionId => refused(refusal, "message.contextId"),
        _ => refused(refusal, "message.parts"),
    })
}

async fn meant(a2a: &A2a, caller: &Caller, instruction: &Value) -> Result<ProxyRoute, RouteError> {
    let wanted = read(instruction).map_err(|errors| {
        let message = "the instruction does not fit the input of `mcp.execute_tool`";
        RouteError {
            details: json!({"errors": errors}),
            ..RouteError::new("INVALID_INPUT", message.to_owned())
        }
    })?;
    routed(a2a, caller, &wanted).await
}
