//! `tool_call`: request, judgement, approval, start.

use super::fix::asked_call;
use super::{At, Decided};
use crate::ask::AskBody;
use crate::decide::resolve::Notes;
use crate::definition::plan::{Step, ToolCall};
use crate::event::{CallRequest, Fact};
use crate::session::OpenCall;
use crate::tool::call::{Judgement, Verdict};
use crate::values::fault::Fault;
use std::sync::Arc;

impl At<'_> {
    pub(super) fn tool_call(&self, step: &Step, call: &ToolCall) -> Decided {
        let mut notes = Notes::default();
        let arguments = self.view().value(&call.arguments, &mut notes)?.unwrap_or_default();
        Ok(Some(Fact::CallRequested(Box::new(CallRequest {
            call: self.call_id(&step.id, 1),
            frame: self.frame.id,
            step: step.id.clone(),
            try_no: 1,
            tool: call.tool.clone(),
            arguments: Arc::new(arguments),
            sources: notes.sources,
            save_as: call.save_as.clone(),
            next: self.after(&step.id, call.next.as_ref()),
            approve: call.approve,
            grant: None,
            replaces: None,
        }))))
    }

    /// The gate spoke: start, ask for approval, or fail with nothing sent.
    pub(super) fn judged(&self, open: &OpenCall, judgement: &Judgement) -> Decided {
        let call = open.request.call;
        let failed = |fault: Fault| Fact::CallFailed {
            call,
            how: crate::tool::call::HowFar::NotSent,
            fault,
        };
        let (verdict, pins) = match judgement {
            Judgement::Refused(fault) => return Ok(Some(failed(fault.clone()))),
            Judgement::Admitted { verdict, pins, .. } => (verdict, pins),
        };
        let why = match verdict {
            Verdict::Deny(why) => {
                let message = format!("policy refuses `{}`: {why}", open.request.tool);
                return Ok(Some(failed(Fault::new("PolicyDenied", message))));
            }
            Verdict::Ask(why) => Some(why.as_str()),
            Verdict::Allow if open.request.approve => Some("the plan asks for approval"),
            Verdict::Allow => None,
        };
        match (why, open.request.grant) {
            (None, grant) | (Some(_), grant @ Some(_)) => {
                Ok(Some(Fact::CallStarted { call, grant }))
            }
            (Some(why), None) => {
                let title = format!("approve `{}`: {why}", open.request.tool);
                let body = AskBody::Approve { calls: vec![asked_call(open)] };
                let more = pins.spec.as_str().as_bytes().to_vec();
                let ask = self.ask(open.request.step.clone(), title, body, more);
                Ok(Some(Fact::AskOpened(Box::new(ask))))
            }
        }
    }
}
