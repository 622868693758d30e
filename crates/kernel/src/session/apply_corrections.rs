//! Applies facts of corrections.

use super::{Context, Frame, FrameKind, FrameState, Session};
use crate::ask::AskBody;
use crate::ask::remedy::{PERSON, Remedy, RemedyAttempt, RemedyResult};
use crate::event::{CorrectionEnd, CorrectionEntry};
use crate::planted::{Switch, is_on};
use crate::values::history::{ForkMode, PathSegment};
use crate::values::ids::{AskId, FrameId, PlanId};

impl Session {
    /// The correction has a frame below the failed step's and reads what that one sees. The ask
    /// stays: what the correction answers is its reply.
    pub(super) fn enter_correction(&mut self, entry: &CorrectionEntry) {
        let depth = self.plan_depth(entry.frame) + 1;
        let seen = self.seen_context(entry.frame);
        let Some(failed) = self.frames.get(&entry.frame) else { return };
        let run = failed.run;
        let ordinal = failed.ordinal;
        let above = failed.path.clone();
        self.with_run(run, |run| run.corrections += 1);
        // A step may be corrected several times: each has calls of its own.
        let child = self.runs.get(&run).map_or(0, |run| run.corrections);
        let kind = FrameKind::SubPlan { input: entry.input.clone(), depth };
        self.add_child(entry.frame, entry.child, kind, ForkMode::Plan);
        self.with_frame(entry.child, |frame| {
            frame.path = above.child(PathSegment { ordinal, child, mode: ForkMode::Plan });
            frame.plan = entry.plan.clone();
            frame.context = seen;
            frame.corrects = Some(entry.ends_at);
        });
        let state = FrameState::Correcting { child: entry.child, ask: entry.ask };
        self.with_frame(entry.frame, |frame| frame.state = state);
        self.clear_ready(entry.frame);
        if let Some(source) = &entry.drafted {
            self.drafted.insert(entry.plan.clone(), source.clone());
        }
        self.enter(entry.child, Some(entry.start.clone()));
    }

    /// What it found is the reply to the ask, or stays for the next rule or person that is asked.
    pub(super) fn end_correction(&mut self, end: &CorrectionEnd) {
        self.forget_call_of(end.child);
        self.forget_ask_of(end.child);
        self.drop_agent(end.child);
        self.clear_ready(end.child);
        let plan = self.frames.remove(&end.child).map(|child| child.plan);
        self.forget_drafted();
        let state = self.frames.get(&end.frame).map(|frame| &frame.state);
        let Some(FrameState::Correcting { ask, .. }) = state else { return };
        let ask = *ask;
        if end.found.acts {
            let run = self.frames.get(&end.frame).and_then(|frame| self.runs.get(&frame.run));
            let is_first = run.is_some_and(|run| run.corrections == 1);
            if !(is_first && is_on(Switch::CorrectionRunTwice)) {
                self.take_found(ask, &end.found);
            }
            self.with_frame(end.frame, |frame| frame.state = FrameState::Asking(ask));
        } else {
            self.leave_uncorrected(end.frame, ask);
            self.with_frame(end.frame, |frame| note_found(frame, plan, &end.found));
        }
        self.set_ready(end.frame);
        self.wake_above(end.frame);
    }

    /// The correction of this frame's step was cut off: the step is as uncertain as before, and a
    /// write of unknown outcome must be asked about.
    pub(super) fn drop_correction(&mut self, failed: FrameId) {
        self.forget_drafted();
        let state = self.frames.get(&failed).map(|frame| &frame.state);
        let Some(FrameState::Correcting { ask, .. }) = state else { return };
        let ask = *ask;
        self.leave_uncorrected(failed, ask);
        self.set_ready(failed);
    }

    /// Plans that models wrote and that no frame follows any more.
    pub(super) fn forget_drafted(&mut self) {
        let frames = &self.frames;
        self.drafted.retain(|plan, _| frames.values().any(|frame| frame.plan == *plan));
    }

    pub(super) fn leave_uncorrected(&mut self, failed: FrameId, ask: AskId) {
        let before = self.before_asking(failed, ask);
        self.asks.remove(&ask);
        self.with_frame(failed, |frame| frame.state = before);
    }

    pub(super) fn take_found(&mut self, ask: AskId, found: &RemedyResult) {
        let decision = self.asks.get_mut(&ask).and_then(|open| open.decision.as_mut());
        if let (Some(decision), Some(reply)) = (decision, &found.reply) {
            decision.reply = reply.clone();
        }
    }

    /// How the frame stood when its step had failed and no one was asked yet.
    fn before_asking(&self, frame: FrameId, ask: AskId) -> FrameState {
        if let Some(call) = self.call_of(frame) {
            return FrameState::Calling(call);
        }
        if self.frames.get(&frame).is_some_and(|frame| frame.agent.is_some()) {
            return FrameState::Agent;
        }
        match self.asks.get(&ask).map(|open| &open.ask.body) {
            Some(AskBody::Fix { fault, .. }) => FrameState::Faulted(fault.clone()),
            _ => FrameState::AtStep,
        }
    }

    /// All that a frame sees of the context.
    fn seen_context(&self, frame: FrameId) -> Context {
        let Some(frame) = self.frames.get(&frame) else { return Context::new() };
        let scope: Vec<&Frame> = self.scope(frame).collect();
        let is_root = scope.last().is_some_and(|last| last.kind == FrameKind::Root);
        let base = self.runs.get(&frame.run).filter(|_| is_root).map(|run| &*run.base);
        let mut seen = base.cloned().unwrap_or_default();
        for frame in scope.into_iter().rev() {
            seen.extend(frame.context.iter().map(|(key, datum)| (key.clone(), datum.clone())));
        }
        seen
    }
}

/// Keeps what a correction found that is not acted upon, with the rule that ran it.
fn note_found(frame: &mut Frame, plan: Option<PlanId>, found: &RemedyResult) {
    let Some(plan) = plan else { return };
    let found = Some(Box::new(found.clone()));
    let does = Remedy::Correct(plan);
    let by_rule = frame.tried.iter_mut().find(|tried| tried.does == does && tried.found.is_none());
    if let Some(tried) = by_rule {
        tried.found = found;
        return;
    }
    let Remedy::Correct(plan) = &does else { return };
    let ran =
        |tried: &&RemedyAttempt| tried.found.as_ref().is_some_and(|it| it.acts && it.runs(plan));
    let rule = frame.tried.iter().find(ran).map_or_else(|| PERSON.into(), |by| by.rule.clone());
    frame.tried.push(RemedyAttempt { rule, does, times: 1, waits: 0, found });
}
