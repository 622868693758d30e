//! What an ask shows of its run: the step that follows each answer, the specs that its calls pin,
//! and who requires the approval.

use super::FrameContext;
use crate::ask::AskBody;
use crate::ask::context::{ApprovalReason, CallDetails, NextStep, NextSteps};
use crate::definition::plan::StepKind;
use crate::session::{CallState, FrameKind, OpenCall};
use crate::tool::call::{Judgement, Verdict};
use crate::values::ids::{FrameId, StepId};

impl FrameContext<'_> {
    pub(super) fn next_steps(&self, step: &StepId, body: &AskBody) -> NextSteps {
        let kind = self.plan.step(step).map(|step| &step.kind);
        let (Some(kind), false) = (kind, matches!(body, AskBody::Fix { .. })) else {
            return NextSteps::default();
        };
        let is_own = matches!(body, AskBody::Clarify { .. } | AskBody::Approve { .. });
        match kind {
            // The agent reads the answer, also a no, and continues.
            StepKind::Agent { .. } => {
                let stays = NextStep::Step(step.clone());
                NextSteps { no: is_own.then(|| stays.clone()), yes: Some(stays) }
            }
            StepKind::Human { next, on_declined, .. } => NextSteps {
                yes: Some(self.continues(step, next.as_ref())),
                no: Some(self.refuses(on_declined.as_ref())),
            },
            StepKind::ToolCall(call) => NextSteps {
                yes: Some(self.continues(step, call.next.as_ref())),
                no: is_own.then(|| self.refuses(call.on_rejected.as_ref())),
            },
            _ => NextSteps::default(),
        }
    }

    /// The step that runs after `step`, in this frame or in an outer one.
    fn continues(&self, step: &StepId, next: Option<&StepId>) -> NextStep {
        let next = self.after(step, next);
        next.map_or_else(|| self.step_of(self.frame.parent), NextStep::Step)
    }

    /// The step that runs after a refusal. Must agree with `refused` and `fail`.
    fn refuses(&self, aside: Option<&StepId>) -> NextStep {
        match (aside, self.correction()) {
            (Some(next), _) => NextStep::Step(next.clone()),
            (None, Some(correction)) => self.step_of(correction.parent),
            (None, None) => NextStep::Ends,
        }
    }

    fn step_of(&self, frame: Option<FrameId>) -> NextStep {
        let frame = frame.and_then(|frame| self.session.frames.get(&frame));
        let step = frame.and_then(|frame| frame.step.clone());
        step.map_or(NextStep::Ends, NextStep::Step)
    }

    /// Who requires that this call is approved; `None` if it needs no approval.
    pub(super) fn approval_reason(&self, call: &OpenCall) -> Option<ApprovalReason> {
        if let CallState::Judged(Judgement::Admitted { verdict: Verdict::Ask(why), .. }) =
            &call.state
        {
            return Some(ApprovalReason::Policy(why.clone()));
        }
        let frame = self.session.frames.get(&call.request.frame);
        let is_agents = frame.is_some_and(|frame| matches!(frame.kind, FrameKind::Call { .. }));
        call.request.approve.then_some(if is_agents {
            ApprovalReason::Agent
        } else {
            ApprovalReason::Plan
        })
    }
}

pub(super) fn call_details(call: &OpenCall, why: Option<ApprovalReason>) -> CallDetails {
    CallDetails { call_id: call.request.call, pins: call.pins.clone(), why }
}
