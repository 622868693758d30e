//! Applies facts of proposals: a model is asked about a failed step, and its answer is judged and
//! used.

use super::{FrameState, Session};
use crate::ask::AskBody;
use crate::ask::remedy::RemedyResult;
use crate::event::{ProposalEnd, ProposalStart};
use crate::planted::{Switch, is_on};
use crate::tool::call::Reach;
use crate::values::ids::{AskId, FrameId, RunId};

impl Session {
    /// What a model found about this frame's failed step, as it may be acted upon. A correction
    /// that a model wrote runs unasked only where the failed call reads: its answer decides the
    /// outcome of the call, and the outcome of a write is a person's to say.
    pub fn judged(&self, frame: FrameId, found: RemedyResult) -> RemedyResult {
        let ask = match self.frames.get(&frame).map(|frame| &frame.state) {
            Some(FrameState::Proposing { ask, .. }) => Some(*ask),
            _ => None,
        };
        let only_reads = ask.is_some_and(|ask| self.asks_about_read(ask));
        let may_act = found.plan.is_none() || only_reads || is_on(Switch::WritingDraftRuns);
        RemedyResult { acts: found.acts && may_act, ..found }
    }

    /// Whether this ask is about a call that reads. What the gate refused is not known to read.
    pub fn asks_about_read(&self, ask: AskId) -> bool {
        let call = match self.asks.get(&ask).map(|open| &open.ask.body) {
            Some(AskBody::Fix { call: Some(call), .. }) => self.calls.get(&call.call_id),
            _ => None,
        };
        let pins = call.and_then(|call| call.pins.as_ref());
        pins.is_some_and(|pins| pins.reach == Reach::Reads)
    }

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
