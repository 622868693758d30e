//! Ends a subtree of frames: a plan answered inside a branch, or an iteration whose failure is
//! collected. Asks are withdrawn and frames cut off, leaves first; a write that was sent is waited
//! for.

use super::{DecideResult, FrameContext};
use crate::event::{Fact, Outcome};
use crate::planted::{Switch, is_on};
use crate::session::{Frame, FrameKind, FrameState};
use crate::values::datum::Datum;
use crate::values::fault::Fault;
use std::sync::Arc;

impl FrameContext<'_> {
    /// A plan that has its answer: once nothing runs below it, it returns or the run ends.
    pub(super) fn answered(&self, answer: &Arc<Datum>) -> DecideResult {
        if let Some(decided) = self.wind_down() {
            return Ok(decided);
        }
        if let Some(failed) = self.corrects() {
            return Ok(Some(self.corrected(failed, answer)));
        }
        Ok(Some(match (&self.frame.kind, self.frame.parent) {
            (FrameKind::SubPlan { .. }, Some(parent)) => {
                Fact::PlanReturned { frame: parent, child: self.frame.id, answer: answer.clone() }
            }
            _ => Fact::RunEnded {
                run: self.run.id,
                outcome: Outcome::Completed { answer: answer.clone() },
            },
        }))
    }

    /// An iteration that is failing: once nothing runs below it, its failure is collected. Or a
    /// correction that is: then the step that it corrects is whose it was.
    pub(super) fn failing(&self, fault: &Fault) -> DecideResult {
        if let Some(decided) = self.wind_down() {
            return Ok(decided);
        }
        match self.corrects() {
            Some(failed) => self.correction_failing(failed, fault),
            None => Ok(Some(Fact::ItemFailed { frame: self.frame.id, fault: fault.clone() })),
        }
    }

    /// The frame whose step this one corrects, if it does.
    fn corrects(&self) -> Option<&Frame> {
        self.frame.corrects?;
        self.session.frames.get(&self.frame.parent?)
    }

    /// The next thing to end below this frame. `Some(None)`: wait; `None`: nothing is left.
    fn wind_down(&self) -> Option<Option<Fact>> {
        let mut waits = false;
        // Children have larger numbers than their parents, so the largest come first.
        for frame in self.session.frames.values().rev() {
            if frame.run != self.run.id || !self.session.descends(frame, self.frame.id) {
                continue;
            }
            match self.end_one(frame) {
                Some(fact) => return Some(Some(fact)),
                None => waits = true,
            }
        }
        match (waits, self.frame.waits) {
            (true, false) => Some(Some(Fact::FrameWaits { frame: self.frame.id })),
            (true, true) => Some(None),
            (false, _) => None,
        }
    }

    /// How one frame below is ended; `None` when it must be waited for.
    fn end_one(&self, frame: &Frame) -> Option<Fact> {
        let has_children = self.session.frames.values().any(|other| other.parent == Some(frame.id));
        let call = self.session.calls.values().find(|call| call.request.frame == frame.id);
        let leaves = is_on(Switch::AnswerLeavesWrites);
        if call.is_some_and(|call| call.must_be_known() && !leaves) || has_children {
            return None;
        }
        if let FrameState::Asking(ask) = frame.state
            && self.session.asks.get(&ask).is_some_and(|open| open.is_open())
        {
            return Some(Fact::AskWithdrawn { ask });
        }
        Some(Fact::FrameCancelled { frame: frame.id })
    }

    /// The iteration that collects failures here, if any does. A write of unknown outcome is
    /// never swallowed: a person is asked.
    pub(super) fn collecting_item(&self) -> Option<&Frame> {
        self.session
            .scope(self.frame)
            .find(|frame| matches!(frame.kind, FrameKind::Item { collect: true, .. }))
    }
}
