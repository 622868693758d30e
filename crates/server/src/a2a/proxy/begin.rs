//! An instruction becomes a task: always, so that its sender gets an output whatever is wrong.

use super::super::error::{Result, refused};
use super::instruction::{SKILL, nothing, read};
use super::route::{ProxyRoute, RouteError, note_unseen, routed};
use crate::request::doors::Doors;
use engine::{IdempotencyKey, Message, ProxyCall, RefusalCode, RunMetadata, RunSession, TaskRun};
use kernel::event::Occasion;
use kernel::journal::proxied::{OPEN, REFUSED};
use kernel::tool::call::Caller;
use kernel::values::trace::TraceParent;
use serde_json::{Value, json};

/// An instruction and what comes with it.
pub(in crate::a2a) struct Execution {
    /// None where the message has none.
    pub(in crate::a2a) instruction: Option<Value>,
    /// The message, as it is recorded.
    pub(in crate::a2a) message: Message,
    /// The context, or a new one.
    pub(in crate::a2a) session: RunSession,
    pub(in crate::a2a) once: Option<IdempotencyKey>,
    pub(in crate::a2a) trace: Option<TraceParent>,
    /// How long its end is waited for; without it, until it has begun.
    pub(in crate::a2a) wait_ms: Option<u64>,
}

/// Begins the task.
pub(in crate::a2a) async fn begun(
    doors: &Doors,
    caller: &Caller,
    execution: Execution,
) -> Result<TaskRun> {
    let Execution { instruction, message, session, once, trace, wait_ms } = execution;
    let instruction = instruction.unwrap_or_else(nothing);
    let (tool, input) = match meant(doors, caller, &instruction).await {
        Ok(ProxyRoute { tool, is_open: false }) => {
            (Some(tool), json!({"instruction": instruction}))
        }
        Ok(ProxyRoute { tool, is_open: true }) => {
            (Some(tool), json!({"instruction": instruction, OPEN: true}))
        }
        Err(nowhere) => {
            note_unseen(doors, caller, &instruction);
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
    let call = ProxyCall { tool, input, session, once, about, wait_ms };
    let begun = doors.engine.tools().begin_proxied(caller, call).await;
    begun.map_err(|refusal| match refusal.code {
        RefusalCode::BadSessionId => refused(refusal, "message.contextId"),
        _ => refused(refusal, "message.parts"),
    })
}

async fn meant(
    doors: &Doors,
    caller: &Caller,
    instruction: &Value,
) -> Result<ProxyRoute, RouteError> {
    let wanted = read(instruction).map_err(|errors| {
        let message = "the instruction does not fit the input of `mcp.execute_tool`";
        RouteError {
            details: json!({"errors": errors}),
            ..RouteError::new("INVALID_INPUT", message.to_owned())
        }
    })?;
    routed(doors, caller, &wanted).await
}
