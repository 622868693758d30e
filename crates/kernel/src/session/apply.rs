//! `Session::apply`: the only change of a session. It takes no plan and decides nothing.

use super::frame::INPUTS;
use super::usage::{RunUsage, UsageGrant};
use super::{
    CallState, Context, Delegation, Frame, FrameKind, FrameState, Run, RunSpent, Session, ending,
};
use crate::conversation::talk::{Line, Talk};
use crate::event::{Base, Event, Fact, Outcome, StepAgain, TimerStart};
use crate::values::datum::{Datum, DatumValue, Origin};
use crate::values::fault::Fault;
use crate::values::history::{FramePath, HistoryRow};
use crate::values::ids::{AgentName, CallId, ContextKey, FrameId, Millis, PlanId, RunId, StepId};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

impl Session {
    /// Applies one event. Gives the history row of a call that it finished, for the lists.
    pub fn apply(&mut self, event: &Event) -> Option<HistoryRow> {
        // Before it is applied: what it is about may be gone after that.
        let only = match self.key.space.has_many_runs() {
            true => self.run_of(&event.fact),
            false => None,
        };
        let row = self.take_in(event);
        self.meter(event, only);
        row
    }

    fn take_in(&mut self, event: &Event) -> Option<HistoryRow> {
        self.seq = event.seq;
        self.updated_at = event.at;
        match &event.fact {
            Fact::SessionCreated { owner, .. } => {
                self.created_at = event.at;
                self.owner = owner.clone().or_else(|| self.key.owner.clone());
            }
            Fact::SessionForked { .. } => self.created_at = event.at,
            Fact::BaseSet(base) => self.begin_at(base),
            Fact::RunStarted { .. } => self.start_run(event),
            Fact::RunHeld { run, frame, fault, .. } => self.hold_run(*run, *frame, fault),
            Fact::RunQueued(queued) => self.queue_run(*queued),
            Fact::RunClaimed { run, attempt, died } => self.claim_run(*run, *attempt, *died),
            Fact::RunPaused { run, .. } => self.with_run(*run, |run| run.paused = true),
            Fact::RunContinued { run, .. } => self.with_run(*run, |run| run.paused = false),
            Fact::RunClosing { run, why } => {
                self.with_run(*run, |run| run.closing = Some(why.clone()));
            }
            Fact::RunEnded { run, outcome } => self.end_run(*run, outcome, event.at),
            Fact::CallRequested(_)
            | Fact::CallJudged { .. }
            | Fact::CallStarted { .. }
            | Fact::CallWants { .. }
            | Fact::CallResumed { .. }
            | Fact::CallFinished { .. }
            | Fact::CallFailed { .. } => return self.apply_call(event),
            // Too late to count, or only for readers of the run: it stands in the journal alone.
            Fact::CallLate { .. } | Fact::MessageReceived(_) => {}
            Fact::AskOpened(ask) => self.open_ask(ask),
            Fact::AskDecided { ask, decision } => self.decide_ask(*ask, decision),
            Fact::AskExpired { ask } => self.expire_ask(*ask),
            Fact::AskWithdrawn { ask } => self.withdraw_ask(*ask),
            Fact::TimerSet(start) => self.set_timer(start),
            Fact::TimerFired { timer } => {
                self.timers.remove(timer);
                self.end_rest(timer);
            }
            Fact::AgentEntered(entry) => self.enter_agent(entry, event.seq, event.at),
            Fact::TurnStarted(start) => self.start_turn(start),
            Fact::TurnFailed { frame, turn, attempt, fault, again_at } => {
                self.fail_turn(*frame, *turn, *attempt, fault, *again_at);
            }
            Fact::TurnFinished(end) => self.finish_turn(end, event.seq),
            Fact::ResultsGiven { frame, results } => self.give_results(*frame, results),
            Fact::TalkCompacted { lines, turn } => self.compact(*lines, turn, event.seq),
            Fact::AgentAnswered { frame, answer, stopped, .. } => {
                self.note_stop(*frame, stopped.as_deref());
                self.end_agent(*frame, answer);
            }
            Fact::StepChosen { frame, next, .. } | Fact::EventPublished { frame, next, .. } => {
                self.enter(*frame, next.clone());
            }
            Fact::StepFailed { .. }
            | Fact::StepSkipped { .. }
            | Fact::StepDiverted { .. }
            | Fact::StepRetried(_)
            | Fact::InputGiven { .. } => self.apply_step(&event.fact),
            Fact::BranchesStarted { frame, step, branches, next } => {
                self.start_branches(*frame, step, branches, next.clone());
            }
            Fact::LoopStarted(start) => self.start_loop(start),
            Fact::ItemStarted { frame, child, index, item } => {
                self.start_item(*frame, *child, *index, item.clone());
            }
            Fact::ItemFailing { frame, fault } => {
                self.with_frame(*frame, |frame| frame.failing = Some(fault.clone()));
                self.set_ready(*frame);
            }
            Fact::ItemFailed { frame, fault } => self.fail_item(*frame, fault),
            Fact::FrameWaits { frame } => {
                self.with_frame(*frame, |frame| frame.waits = true);
                self.clear_ready(*frame);
            }
            Fact::FrameEnded { frame } => self.end_frame(*frame),
            Fact::FrameCancelled { frame } => self.cancel_frame(*frame),
            Fact::FramesJoined { frame, blob, .. } => self.join_frames(*frame, blob.as_ref()),
            Fact::PlanEntered(entry) => self.enter_plan(entry),
            Fact::PlanReturned { frame, child, answer } => self.return_plan(*frame, *child, answer),
            Fact::AnswerGiven { frame, answer, .. } => self.give_answer(*frame, answer),
            Fact::CorrectionEntered(entry) => self.enter_correction(entry),
            Fact::CorrectionEnded(end) => self.end_correction(end),
            Fact::ProposalAsked(start) => self.ask_proposal(start),
            Fact::ProposalGiven(end) => self.give_proposal(end),
        }
        None
    }

    fn set_timer(&mut self, TimerStart { timer, at }: &TimerStart) {
        self.timers.insert(timer.clone(), *at);
        self.postponed.remove(timer);
    }

    /// Stands where the events stood that this base replaces.
    fn begin_at(&mut self, base: &Base) {
        self.created_at = base.created_at;
        self.owner = base.owner.clone();
        self.context = Arc::new(base.context.clone());
        self.runs_made = base.runs;
        self.frames_made = base.frames;
        self.timers = base.timers.clone();
        self.talk = match base.talk {
            Some(_) => Talk { lines: vec![Line::Base(self.seq)] },
            None => Talk::default(),
        };
        let kept = |agent: &AgentName| Talk { lines: vec![Line::BaseOf(self.seq, agent.clone())] };
        self.talks = base.talks.keys().map(|agent| (agent.clone(), kept(agent))).collect();
        self.last_decided = base.last_decided.clone();
    }

    fn start_run(&mut self, event: &Event) {
        let Fact::RunStarted {
            run,
            plan,
            closure,
            input,
            by,
            frame,
            start,
            trace,
            subject,
            actor,
            scopes,
            about,
            rules,
        } = &event.fact
        else {
            return;
        };
        self.runs_made += 1;
        let started = Run {
            id: *run,
            no: self.runs_made,
            plan: plan.clone(),
            closure: closure.clone(),
            input: input.clone(),
            by: by.clone(),
            behalf: Delegation {
                subject: subject.clone(),
                actor: actor.clone(),
                scopes: *scopes,
                makers: about.as_ref().map(|about| about.makers.clone()).unwrap_or_default(),
                hops: about.as_ref().and_then(|about| about.hops).unwrap_or_default(),
            },
            hands: BTreeSet::new(),
            lenders: BTreeSet::new(),
            root: *frame,
            base: self.context.clone(),
            step: None,
            answer: None,
            last_error: None,
            started_at: event.at,
            ended_at: None,
            changed_at: event.at,
            ending: None,
            paused: false,
            closing: None,
            behind: None,
            claims: 0,
            deaths: 0,
            used: RunUsage::default(),
            ready: 0,
            in_flight: 0,
            open_asks: 0,
            open_fixes: 0,
            spent: RunSpent::default(),
            stopped: None,
            trace: *trace,
            rules: rules.clone(),
            corrections: 0,
            proposals: 0,
        };
        self.owner = self.owner_with(&started);
        self.runs.insert(*run, started);
        self.add_frame(new_frame(*frame, *run, plan, FrameKind::Root));
        self.enter(*frame, Some(start.clone()));
    }

    /// Whose the session is once this run begins: its maker's, else of who ran in it first. A case
    /// is its pipeline's: who submitted it first has it to itself until another caller does too.
    fn owner_with(&self, started: &Run) -> Option<Arc<str>> {
        let owner = self.owner.clone();
        let starter = started.owner();
        match self.key.space.pipeline() {
            Some(_) if started.no > 1 => owner.filter(|owner| Some(owner) == starter),
            _ => owner.or_else(|| starter.cloned()),
        }
    }

    /// What the process before had sent is sent again, or asked about.
    fn claim_run(&mut self, id: RunId, attempt: u32, died: bool) {
        self.with_run(id, |run| {
            run.claims = attempt;
            run.deaths += u32::from(died);
        });
        for open in self.calls.values_mut().filter(|open| open.run == id) {
            open.sent_before |= matches!(open.state, CallState::Started);
        }
        self.restart_turns(id);
        self.lose_proposals(id);
    }

    fn end_run(&mut self, id: RunId, outcome: &Outcome, at: Millis) {
        let Some(mut run) = self.runs.remove(&id) else { return };
        run.ending = Some(ending(outcome));
        run.ended_at = Some(at);
        run.changed_at = at;
        run.base = Arc::default();
        match outcome {
            Outcome::Completed { answer } => {
                run.answer = Some(answer.clone());
                run.last_error = None;
            }
            Outcome::Failed { fault } => run.last_error = Some(fault.clone()),
            Outcome::Cancelled { by, unknown } => {
                run.last_error = Some(cancelled_fault(by, unknown));
            }
        }
        self.leave_agents(id);
        if let Some(root) = self.frames.get_mut(&run.root) {
            let written = std::mem::take(&mut root.context);
            Arc::make_mut(&mut self.context).extend(written);
        }
        self.frames.retain(|_, frame| frame.run != id);
        self.calls.retain(|_, call| call.run != id);
        self.asks.retain(|_, open| open.ask.run != id);
        self.forget_drafted();
        let frames = &self.frames;
        self.ready.retain(|frame| frames.contains_key(frame));
        self.last_run = Some(run);
        self.wake_queued_runs(id);
    }

    fn apply_step(&mut self, fact: &Fact) {
        match fact {
            Fact::StepFailed { frame, fault, .. } => {
                self.with_frame(*frame, |frame| frame.state = FrameState::Faulted(fault.clone()));
                self.set_ready(*frame);
            }
            Fact::StepSkipped { frame, save, next, .. } => {
                self.release_run(*frame, UsageGrant::Nothing);
                self.forget_call_of(*frame);
                self.forget_ask_of(*frame);
                self.drop_agent(*frame);
                if let Some((key, datum)) = save {
                    self.with_frame(*frame, |frame| {
                        frame.context.insert(key.clone(), datum.clone());
                        frame.last_output = Some(datum.clone());
                    });
                }
                self.enter(*frame, next.clone());
            }
            Fact::StepDiverted { frame, next, .. } => {
                self.forget_call_of(*frame);
                self.forget_ask_of(*frame);
                self.drop_agent(*frame);
                self.enter(*frame, Some(next.clone()));
            }
            Fact::StepRetried(StepAgain { frame, .. }) => {
                self.release_run(*frame, UsageGrant::More);
                self.forget_call_of(*frame);
                self.forget_ask_of(*frame);
                if !self.retry_agent(*frame) {
                    self.with_frame(*frame, |frame| frame.state = FrameState::AtStep);
                }
                self.set_ready(*frame);
            }
            Fact::InputGiven { frame, step, value, next } => {
                self.forget_ask_of(*frame);
                let inherited = self.visible_context(*frame, INPUTS);
                let own = BTreeMap::from([(step.to_string(), value.clone())]);
                self.with_frame(*frame, |frame| {
                    frame.context.insert("human_input".into(), value.clone());
                    inherited.iter().for_each(|inputs| frame.add_inputs(inputs));
                    frame.add_inputs(&Datum::joined(DatumValue::Object(own)));
                });
                self.enter(*frame, next.clone());
            }
            _ => {}
        }
    }

    fn visible_context(&self, frame: FrameId, key: &str) -> Option<Arc<Datum>> {
        let frame = self.frames.get(&frame)?;
        self.scope(frame).find_map(|frame| frame.context.get(key).cloned())
    }

    /// Enters a step, or the end of the list, and asks for a decision.
    pub(super) fn enter(&mut self, frame: FrameId, step: Option<StepId>) {
        let Some(entered) = self.frames.get_mut(&frame) else { return };
        entered.enter(step.clone());
        let run = entered.run;
        if step.is_some() {
            self.with_run(run, |run| run.step = step);
        }
        self.set_ready(frame);
        self.wake_above(frame);
    }

    pub(super) fn add_frame(&mut self, frame: Frame) {
        self.frames_made = self.frames_made.max(frame.id.0);
        self.frames.insert(frame.id, frame);
    }

    pub(super) fn set_ready(&mut self, frame: FrameId) {
        let Some(run) = self.frames.get(&frame).map(|frame| frame.run) else { return };
        if self.ready.insert(frame) {
            self.with_run(run, |run| run.ready += 1);
        }
    }

    pub(super) fn clear_ready(&mut self, frame: FrameId) {
        if self.ready.remove(&frame)
            && let Some(run) = self.frames.get(&frame).map(|frame| frame.run)
        {
            self.with_run(run, |run| run.ready = run.ready.saturating_sub(1));
        }
    }

    /// Something happened below: ancestors that wait for it look again.
    pub(super) fn wake_above(&mut self, frame: FrameId) {
        let mut at = self.frames.get(&frame).and_then(|frame| frame.parent);
        while let Some(parent) = at {
            let Some(frame) = self.frames.get_mut(&parent) else { return };
            at = frame.parent;
            if std::mem::take(&mut frame.waits) {
                self.set_ready(parent);
            }
        }
    }

    /// The call that a frame has open.
    pub(super) fn call_of(&self, frame: FrameId) -> Option<CallId> {
        self.calls.iter().find(|(_, open)| open.request.frame == frame).map(|(id, _)| *id)
    }

    pub(super) fn forget_call_of(&mut self, frame: FrameId) {
        if let Some(open) = self.call_of(frame).and_then(|call| self.calls.remove(&call))
            && open.in_flight()
        {
            self.with_run(open.run, |run| run.in_flight = run.in_flight.saturating_sub(1));
        }
    }

    /// An ask that has been acted upon leaves the state; the lists keep it.
    pub(super) fn forget_ask_of(&mut self, frame: FrameId) {
        let Some(of) = self.frames.get(&frame) else { return };
        let (ask, is_asked) = match of.state {
            FrameState::Asking(ask) | FrameState::Correcting { ask, .. } => (ask, false),
            FrameState::Proposing { ask, lost, .. } => (ask, !lost),
            _ => return,
        };
        let run = of.run;
        self.asks.remove(&ask);
        let asked = u32::from(is_asked);
        self.with_run(run, |run| run.in_flight = run.in_flight.saturating_sub(asked));
    }

    pub(super) fn with_run(&mut self, run: RunId, change: impl FnOnce(&mut Run)) {
        if let Some(run) = self.runs.get_mut(&run) {
            change(run);
        }
    }

    pub(super) fn with_frame(&mut self, frame: FrameId, change: impl FnOnce(&mut Frame)) {
        if let Some(frame) = self.frames.get_mut(&frame) {
            change(frame);
        }
    }
}

fn cancelled_fault(by: &str, unknown: &[CallId]) -> Fault {
    Fault::new("Cancelled", format!("`{by}` cancelled the run")).with_unknown(unknown)
}

/// A frame that has not entered a step yet.
pub(super) fn new_frame(id: FrameId, run: RunId, plan: &PlanId, kind: FrameKind) -> Frame {
    Frame {
        id,
        run,
        parent: None,
        path: FramePath::default(),
        plan: plan.clone(),
        kind,
        step: None,
        ordinal: 0,
        state: FrameState::AtStep,
        visits: BTreeMap::new(),
        context: Context::new(),
        recent: VecDeque::new(),
        older: false,
        latest: BTreeMap::new(),
        last_output: None,
        answer: None,
        failing: None,
        agent: None,
        waits: false,
        tried: Vec::new(),
        corrects: None,
    }
}

/// The item's keys in an iteration's context.
pub(super) fn item_context(alias: &ContextKey, item: Arc<Datum>, index: u32) -> Context {
    let index_value = Arc::new(Datum::inline(json!(index), Origin::Plan));
    Context::from([(alias.clone(), item), (super::frame::index_key(alias), index_value)])
}
