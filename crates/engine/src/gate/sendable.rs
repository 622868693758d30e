//! Whether a call may be sent at this moment: its tool is still there, its caller still sees it,
//! and policy does not deny it. Between the decision about a call and its start can lie hours.

use super::consent::Consent;
use super::noted::DeniedCall;
use super::{Gate, JustAllowed, POLICY_DENIED, RATE_LIMITED, Sending, TOOL_NOT_FOUND};
use crate::catalog::registry::Listed;
use kernel::contracts::policy::{Context, Request, Resource, Trigger};
use kernel::identity::audit::Said;
use kernel::planted::{Switch, is_on};
use kernel::tool::call::{ToolError, Verdict};
use kernel::values::caller::Act;
use std::sync::Arc;

impl Gate {
    /// The tool of a call that policy allows at this moment, where no approval has to count. That
    /// is one decision: what is allowed with its arguments is seen, unless it is allowed because
    /// of where they came from, which no list knows.
    pub(super) fn plainly_allowed(&self, sending: &Sending) -> Option<JustAllowed> {
        if matches!(sending.consent, Consent::Given(_)) || !sending.sources.is_empty() {
            return None;
        }
        let listed = self.catalog.tool(&sending.caller.realm, sending.tool.as_str())?;
        let (subject, resource) = (&sending.caller, Resource::Tool(listed.tool.spec()));
        let request = Request { act: Act::Call, subject, resource, context: context_of(sending) };
        let is_allowed = self.is_free(subject, Act::Call) || self.word(&request) == Said::Allow;
        is_allowed.then_some(JustAllowed(listed))
    }

    /// The tool of any other call that may be sent: still there, visible and not denied.
    pub(super) async fn heeded(&self, sending: &Sending) -> Result<Arc<Listed>, ToolError> {
        let listed = match self.find(&sending.caller, sending.tool.as_str()) {
            Some(listed) => listed,
            None => {
                self.await_tool(&sending.caller.realm, &sending.tool).await;
                self.still_there(sending)?
            }
        };
        self.heed_policy(sending, &listed)?;
        Ok(listed)
    }

    /// Refuses a call that policy denies at this moment, or asks about and nobody approved.
    pub(super) fn heed_policy(&self, sending: &Sending, listed: &Listed) -> Result<(), ToolError> {
        let decision = self.decide_call(&sending.caller, listed.tool.spec(), context_of(sending));
        let Verdict::Deny(why) = &decision.verdict else {
            return self.heed_consent(sending, &decision);
        };
        if is_on(Switch::DenyIgnoredAtStart) {
            return Ok(());
        }
        // An event says so of a call of a run.
        if sending.place.run.is_none() {
            let Sending { caller, tool, arguments, .. } = sending;
            let denied = DeniedCall { tool, arguments, why, policies: &decision.policies };
            let noted = self.note_denied(caller, &denied);
            noted.map_err(|full| ToolError::not_sent(RATE_LIMITED, full.message))?;
        }
        let message = match sending.caller.admin || sending.place.run.is_some() {
            true => format!("policy refuses `{}`: {why}", sending.tool),
            // For the caller itself: why policy says so is for administrators.
            false => format!("policy refuses `{}`", sending.tool),
        };
        Err(ToolError::not_sent(POLICY_DENIED, message))
    }

    /// Its tool, where it is still there for its caller.
    pub(super) fn still_there(&self, sending: &Sending) -> Result<Arc<Listed>, ToolError> {
        self.find(&sending.caller, sending.tool.as_str()).ok_or_else(|| {
            let message = format!("tool `{}` is gone", sending.tool);
            let error = ToolError::not_sent(TOOL_NOT_FOUND, message);
            match self.switch_of(&sending.tool) {
                Some(switch) => error.hint(switch),
                None => error,
            }
        })
    }
}

/// What policy knows of a call that is to be sent.
fn context_of(sending: &Sending) -> Context<'_> {
    let trigger = sending.place.run.map_or(Trigger::Door, |_| Trigger::Run);
    let (arguments, sources) = (Some(&*sending.arguments), Some(&sending.sources));
    Context { arguments, sources, trigger }
}
