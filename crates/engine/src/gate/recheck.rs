//! The second check of a call, right before it is sent: its tool still exists, its caller still
//! sees it, and policy does not deny it. Hours can pass between the decision and the start of a
//! call.

use super::audit::DeniedCall;
use super::{Gate, OutgoingCall, POLICY_DENIED, RATE_LIMITED, TOOL_NOT_FOUND};
use crate::catalog::registry::ListedTool;
use kernel::contracts::policy::{Context, Trigger};
use kernel::tool::call::{ToolError, Verdict};
use std::sync::Arc;

impl Gate {
    /// The tool of a call that may be sent at this moment.
    pub(super) fn recheck(&self, call: &OutgoingCall) -> Result<Arc<ListedTool>, ToolError> {
        let listed = self.still_there(call)?;
        self.heed_policy(call, &listed)?;
        Ok(listed)
    }

    /// Refuses a call that policy denies at this moment, or asks about and nobody approved.
    fn heed_policy(&self, call: &OutgoingCall, listed: &ListedTool) -> Result<(), ToolError> {
        let decision = self.decide_call(&call.caller, listed.tool.judged(), context_of(call));
        let Verdict::Deny(why) = &decision.verdict else {
            return self.heed_consent(call, &decision);
        };
        // An event says so of a call of a run.
        if call.context.run.is_none() {
            let OutgoingCall { caller, tool, arguments, .. } = call;
            let denied = DeniedCall { tool, arguments, why, policies: &decision.policies };
            let noted = self.note_denied(caller, &denied);
            noted.map_err(|full| ToolError::not_sent(RATE_LIMITED, full.message))?;
        }
        let message = match call.caller.admin || call.context.run.is_some() {
            true => format!("policy refuses `{}`: {why}", call.tool),
            // For the caller itself: why policy says so is for administrators.
            false => format!("policy refuses `{}`", call.tool),
        };
        Err(ToolError::not_sent(POLICY_DENIED, message))
    }

    /// Its tool, where it is still there for its caller.
    fn still_there(&self, call: &OutgoingCall) -> Result<Arc<ListedTool>, ToolError> {
        self.find(&call.caller, call.tool.as_str()).ok_or_else(|| {
            let message = format!("tool `{}` is gone", call.tool);
            let error = ToolError::not_sent(TOOL_NOT_FOUND, message);
            match self.switch_of(&call.tool) {
                Some(switch) => error.hint(switch),
                None => error,
            }
        })
    }
}

/// The policy context of a call that is about to be sent.
fn context_of(call: &OutgoingCall) -> Context<'_> {
    let trigger = call.context.run.map_or(Trigger::Door, |_| Trigger::Run);
    let arguments = Some(&*call.arguments);
    let sources = Some(&call.sources);
    Context { arguments, sources, trigger }
}
