//! How a model is asked about a failed step, and what it says is taken in.

use super::{FrameState, Session};
use crate::event::{ProposalEnd, ProposalStart};
use crate::values::ids::{FrameId, RunId};

impl Session {
    /// The ask stays: what the model proposes is its reply, or lies in the one that comes after it.
    pub(super) fn ask_proposal(&mut self, start: &ProposalStart) {
        let ProposalStart { frame, ask, attempt, .. } = *start;
        let Some(run) = self.frames.get(&frame).map(|frame| frame.run) else { return };
        let state = FrameState::Proposing { ask, attempt, lost: false };
        self.with_frame(frame, |frame| frame.state = state);
        self.clear_ready(frame);
        self.with_run(run, |run| {
            run.in_flight += 1;
            run.proposals += u32::from(attempt == 1);
        });
    }

    pub(super) fn give_proposal(&mut self, end: &ProposalEnd) {
        let Some(of) = self.frames.get(&end.frame) else { return };
        let FrameState::Proposing { ask, lost, .. } = of.state else { return };
        let run = of.run;
        self.with_run(run, |run| {
            run.in_flight = run.in_flight.saturating_sub(u32::from(!lost));
            let ProposalEnd { turns, usage, cost_micros, uncached_micros, .. } = *end;
            run.spent.add_turns(turns, usage, cost_micros, uncached_micros);
            run.progressed();
        });
        self.keep_proposal(end);
        if end.found.acts {
            self.take_found(ask, &end.found);
            self.with_frame(end.frame, |frame| frame.state = FrameState::Asking(ask));
        } else {
            self.leave_uncorrected(end.frame, ask);
        }
        self.set_ready(end.frame);
        self.wake_above(end.frame);
    }

    /// The result of the rule that asked, for the next rule or person that is asked.
    fn keep_proposal(&mut self, end: &ProposalEnd) {
        let found = Box::new(end.found.clone());
        self.with_frame(end.frame, |frame| {
            let mut asked = frame.tried.iter_mut().rev();
            let asked = asked.find(|tried| tried.does.model().is_some() && tried.found.is_none());
            if let Some(tried) = asked {
                tried.found = Some(found);
            }
        });
    }

    /// The process that asked models about failed steps is gone: they are asked again.
    pub(super) fn lose_proposals(&mut self, run: RunId) {
        let mut again: Vec<FrameId> = Vec::new();
        for frame in self.frames.values_mut().filter(|frame| frame.run == run) {
            if let FrameState::Proposing { lost, .. } = &mut frame.state
                && !std::mem::replace(lost, true)
            {
                again.push(frame.id);
            }
        }
        for frame in again {
            self.with_run(run, |run| run.in_flight = run.in_flight.saturating_sub(1));
            self.set_ready(frame);
        }
    }
}
