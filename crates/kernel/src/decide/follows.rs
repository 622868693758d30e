//! What an ask says of its run: the steps that follow its answers, and of the calls that it is
//! about what they pin and who wants the approval.

use super::FrameContext;
use crate::ask::AskBody;
use crate::ask::context::{ApprovalReason, CallDetails, NextStep, NextSteps};
use crate::definition::plan::StepKind;
use crate::session::{CallState, FrameKind, OpenCall};
use crate::tool::call::{Judgement, Verdict};
use crate::values::ids::{FrameId, StepId};

impl FrameContext<'_> {
    /// What follows each answer to an ask of this step.
    pub(super) fn next_of(&self, step: &StepId, body: &AskBody) -> NextSteps {
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

    /// Where this frame goes after a step.
    fn continues(&self, step: &StepId, next: Option<&StepId>) -> NextStep {
        let next = self.after(step, next);
        next.map_or_else(|| self.step_of(self.frame.parent), NextStep::Step)
    }

    /// Where a no leads: as `refused` and `fail` have it.
    fn refuses(&self, aside: Option<&StepId>) -> NextStep {
        match (aside, self.correction()) {
            (Some(next), _) => NextStep::Step(next.clone()),
            (None, Some(correction)) => self.step_of(correction.parent),
            (None, None) => NextStep::Ends,
        }
    }

    /// The step that a frame is at; without one the end of the run.
    fn step_of(&self, frame: Option<FrameId>) -> NextStep {
        let frame = frame.and_then(|frame| self.session.frames.get(&frame));
        let step = frame.and_then(|frame| frame.step.clone());
        step.map_or(NextStep::Ends, NextStep::Step)
    }

    /// Who wants this call to be approved; no one where it needs no approval.
    pub(super) fn why(&self, call: &OpenCall) -> Option<ApprovalReason> {
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

/// What an ask says of a call that it is about.
pub(super) fn about(call: &OpenCall, why: Option<ApprovalReason>) -> CallDetails {
    CallDetails { call_id: call.request.call, pins: call.pins.clone(), why }
}
