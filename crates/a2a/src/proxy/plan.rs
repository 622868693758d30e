//! The plan of a run that follows an instruction: one call, with its outcome as the answer.

use engine::ReportedPlan;
use kernel::values::ids::{PlanId, ToolName};
use serde_json::{Value, json};

/// The plan of the run of an instruction.
pub(super) const PLAN: ReportedPlan = ReportedPlan { id: "a2a/mcp.execute_tool", written };

/// Whether a run of this plan follows an instruction.
pub(crate) fn is_proxy(plan: &PlanId) -> bool {
    plan.as_str() == PLAN.id
}

fn written(tool: Option<&ToolName>) -> Value {
    match tool {
        Some(tool) => json!({
            "description": format!("a call of {tool} for an agent of others"),
            "startStepId": "call",
            "steps": [
                // Its caller learns of a failure and can call again.
                {"id": "call", "type": "tool_call", "toolId": tool, "on_error": "fail",
                 "arguments": {"jsonPath": "$.promptInput.instruction.arguments"},
                 "saveResultAs": "output", "nextStepId": "answer"},
                {"id": "answer", "type": "final_response", "message":
                 {"success": true, "mcp_result": {"jsonPath": "$.context.output"}}},
            ],
        }),
        None => nothing(),
    }
}

/// Calls nothing: its only step needs what is never there, so that the run fails at once.
fn nothing() -> Value {
    json!({
        "description": "a call for an agent of others that is not made",
        "startStepId": "refuse",
        "on_error": "fail",
        "steps": [
            {"id": "refuse", "type": "publish_event",
             "event": {"jsonPath": "$.promptInput.nothing"}},
        ],
    })
}
