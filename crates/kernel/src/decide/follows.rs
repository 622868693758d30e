//! What an ask says of its run: the steps that follow its answers, and of the calls that it is
//! about what they pin and who wants the approval.

use super::At;
use crate::ask::AskBody;
use crate::ask::course::{AboutCall, Follows, Next, Why};
use crate::definition::plan::StepKind;
use crate::session::{CallState, FrameKind, OpenCall};
use crate::tool::call::{Judgement, Verdict};
use crate::values::ids::{FrameId, StepId};

impl At<'_> {
    /// What follows each answer to an ask of this step.
    pub(super) fn next_of(&self, step: &StepId, body: &AskBody) -> Next {
        let kind = self.plan.step(step).map(|step| &step.kind);
        let (Some(kind), false) = (kind, matches!(body, AskBody::Fix { .. })) else {
            return Next::default();
        };
        let is_own = matches!(body, AskBody::Clarify { .. } | AskBody::Approve { .. });
        match kind {
            // The agent reads the answer, also a no, and continues.
            StepKind::Agent { .. } => {
                let stays = Follows::Step(step.clone());
                Next { no: is_own.then(|| stays.clone()), yes: Some(stays) }
            }
            StepKind::Human { next, on_declined, .. } => Next {
                yes: Some(self.continues(step, next.as_ref())),
                no: Some(self.refuses(on_declined.as_ref())),
            },
            StepKind::ToolCall(call) => Next {
                yes: Some(self.continues(step, call.next.as_ref())),
                no: is_own.then(|| self.refuses(call.on_rejected.as_ref())),
            },
            _ => Next::default(),
        }
    }

    /// Where this frame goes after a step.
    fn continues(&self, step: &StepId, next: Option<&StepId>) -> Follows {
        let next = self.after(step, next);
        next.map_or_else(|| self.step_of(self.frame.parent), Follows::Step)
    }

    /// Where a no leads: as `refused` and `fail` have it.
    fn refuses(&self, aside: Option<&StepId>) -> Follows {
        match (aside, self.correction()) {
            (Some(next), _) => Follows::Step(next.clone()),
            (None, Some(correction)) => self.step_of(correction.parent),
            (None, None) => Follows::Ends,
        }
    }

    /// The step that a frame is at; without one the end of the run.
    fn step_of(&self, frame: Option<FrameId>) -> Follows {
        let frame = frame.and_then(|frame| self.session.frames.get(&frame));
        let step = frame.and_then(|frame| frame.step.clone());
        step.map_or(Follows::Ends, Follows::Step)
    }

    /// Who wants this call to be approved; no one where it needs no approval.
    pub(super) fn why(&self, call: &OpenCall) -> Option<Why> {
        if let CallState::Judged(Judgement::Admitted { verdict: Verdict::Ask(why), .. }) =
            &call.state
        {
            return Some(Why::Policy(why.clone()));
        }
        let frame = self.session.frames.get(&call.request.frame);
        let is_agents = frame.is_some_and(|frame| matches!(frame.kind, FrameKind::Call { .. }));
        call.request.approve.then_some(if is_agents { Why::Agent } else { Why::Plan })
    }
}

/// What an ask says of a call that it is about.
pub(super) fn about(call: &OpenCall, why: Option<Why>) -> AboutCall {
    AboutCall { call_id: call.request.call, pins: call.pins.clone(), why }
}
