//! Applies facts of agents: turns, conversation, time.

use super::frame::{AgentPhase, AgentState};
use super::{FrameKind, FrameState, Session};
use crate::conversation::talk::{
    AgentUsage, CallGuard, CallLine, CallSettlement, Line, Talk, call_digest,
};
use crate::definition::agent::CLARIFY;
use crate::event::{AgentEntry, CallMade, TurnEnd, TurnKind, TurnStart};
use crate::values::datum::Datum;
use crate::values::fault::Fault;
use crate::values::ids::{FrameId, Millis};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Prefix of the timer of a frame's next attempt.
const TURN_TIMER: &str = "turn:";

/// The timer of a frame's next attempt.
pub fn turn_timer(frame: FrameId) -> String {
    format!("{TURN_TIMER}{}", frame.0)
}

impl Session {
    pub(super) fn enter_agent(&mut self, entry: &AgentEntry, seq: u64, at: Millis) {
        self.forget_ask_of(entry.frame);
        let before = self.talk_with(&entry.agent).filter(|_| entry.continues);
        let mut talk = match (before, entry.keeps) {
            (Some(talk), Some(requests)) => talk.newest(requests),
            (Some(talk), None) => talk.clone(),
            (None, _) => Talk::default(),
        };
        talk.lines.push(Line::User(seq));
        let state = AgentState {
            agent: entry.agent.clone(),
            input: entry.input.clone(),
            continues: entry.continues,
            commands: entry.commands,
            save_as: entry.save_as.clone(),
            next: entry.next.clone(),
            talk,
            phase: AgentPhase::Between,
            route: None,
            turns: 0,
            calls: 0,
            stops: false,
            output: None,
            spent: AgentUsage::default(),
            last_input: 0,
            made: BTreeMap::new(),
            entered_at: Some(at),
            working_since: Some(at),
        };
        self.with_frame(entry.frame, |frame| {
            frame.state = FrameState::Agent;
            frame.agent = Some(Box::new(state));
        });
        self.set_ready(entry.frame);
    }

    pub(super) fn start_turn(&mut self, start: &TurnStart) {
        let TurnStart { frame, turn, attempt, kind, .. } = start;
        self.timers.remove(&turn_timer(*frame));
        let Some(run) = self.frames.get(frame).map(|frame| frame.run) else { return };
        self.with_agent(*frame, |agent| {
            agent.turns = agent.turns.max(*turn);
            agent.phase = AgentPhase::Turn { turn: *turn, attempt: *attempt, kind: *kind };
        });
        self.clear_ready(*frame);
        self.with_run(run, |run| run.in_flight += 1);
    }

    /// The turn that is under way is over, however it ended.
    fn turn_over(&mut self, frame: FrameId) {
        let Some(of) = self.frames.get(&frame) else { return };
        let under_way =
            of.agent.as_ref().is_some_and(|agent| matches!(agent.phase, AgentPhase::Turn { .. }));
        let run = of.run;
        self.with_run(run, |run| {
            run.in_flight = run.in_flight.saturating_sub(u32::from(under_way));
            run.progressed();
        });
        self.set_ready(frame);
    }

    pub(super) fn fail_turn(
        &mut self,
        frame: FrameId,
        turn: u32,
        attempt: u32,
        fault: &Fault,
        again_at: Option<Millis>,
    ) {
        self.turn_over(frame);
        if let Some(at) = again_at {
            self.timers.insert(turn_timer(frame), at);
            self.clear_ready(frame);
        }
        self.with_agent(frame, |agent| {
            let kind = match agent.phase {
                AgentPhase::Turn { kind, .. } | AgentPhase::Resting { kind, .. } => kind,
                _ => TurnKind::Act,
            };
            agent.phase = match again_at {
                Some(_) => AgentPhase::Resting { turn, attempts: attempt, kind },
                None => AgentPhase::Failed(fault.clone()),
            };
        });
    }

    /// A timer fired: a frame that rested looks again.
    pub(super) fn end_rest(&mut self, timer: &str) {
        let frame = timer.strip_prefix(TURN_TIMER).and_then(|number| number.parse().ok());
        if let Some(frame) = frame.map(FrameId) {
            self.set_ready(frame);
        }
    }

    /// The process that asked a model is gone: it is asked again.
    pub(super) fn restart_turns(&mut self, run: crate::values::ids::RunId) {
        let asked = self.frames.values_mut().filter(|frame| frame.run == run);
        let mut again = Vec::new();
        for frame in asked {
            let Some(agent) = &mut frame.agent else { continue };
            if let AgentPhase::Turn { turn, attempt, kind } = agent.phase {
                agent.phase = AgentPhase::Resting { turn, attempts: attempt, kind };
                again.push(frame.id);
            }
        }
        for frame in again {
            self.with_run(run, |run| run.in_flight = run.in_flight.saturating_sub(1));
            self.set_ready(frame);
        }
    }

    pub(super) fn finish_turn(&mut self, end: &TurnEnd, seq: u64) {
        self.turn_over(end.frame);
        self.spend(end);
        if let Some(route) = &end.route {
            self.with_agent(end.frame, |agent| {
                agent.route = Some(route.clone());
                agent.phase = AgentPhase::Between;
            });
            return;
        }
        let line = |made: &CallMade| CallLine {
            call: made.call,
            said: made.said.clone(),
            tool: made.tool.clone(),
            guard: match (&*made.said == CLARIFY, made.approve) {
                (true, _) => CallGuard::Clarify,
                (false, true) => CallGuard::Approve,
                (false, false) => CallGuard::Free,
            },
            question: made.question.clone(),
            edited: None,
            frame: made.frame,
            settled: made.refused.clone().map(CallSettlement::Failed),
        };
        let calls: Vec<CallLine> = end.calls.iter().map(line).collect();
        let step = self.frames.get(&end.frame).and_then(|frame| frame.step.clone());
        self.with_agent(end.frame, |agent| {
            agent.phase = match calls.is_empty() {
                true => AgentPhase::Said(end.text.clone(), end.stop),
                false => AgentPhase::Calls,
            };
            agent.stops = end.stops;
            agent.talk.lines.push(Line::Turn { seq, calls });
            for made in &end.calls {
                let digest = call_digest(&made.said, &made.arguments);
                *agent.made.entry(digest).or_default() += 1;
            }
        });
        self.open_calls(end, step.as_ref());
        self.look_at_calls(end.frame);
    }

    fn spend(&mut self, end: &TurnEnd) {
        self.with_agent(end.frame, |agent| {
            let spent = &mut agent.spent;
            spent.input = spent.input.saturating_add(end.usage.input);
            spent.output = spent.output.saturating_add(end.usage.output);
            spent.cost_micros = spent.cost_micros.saturating_add(end.cost_micros.unwrap_or(0));
            if end.kind == TurnKind::Act {
                spent.steps += 1;
                agent.last_input = end.usage.input;
            }
        });
        if let Some(run) = self.frames.get(&end.frame).map(|frame| frame.run) {
            self.with_run(run, |run| run.spent.add(end));
        }
    }

    pub(super) fn compact(&mut self, lines: u32, end: &TurnEnd, seq: u64) {
        self.turn_over(end.frame);
        self.spend(end);
        self.with_agent(end.frame, |agent| {
            agent.talk.compact(lines, seq);
            // How long it is now is known after the next turn.
            agent.last_input = 0;
            agent.phase = AgentPhase::Between;
        });
    }

    pub fn agent(&self, frame: FrameId) -> Option<&AgentState> {
        self.frames.get(&frame)?.agent.as_deref()
    }

    /// A run whose agent did not come to its end says so.
    pub(super) fn note_stop(&mut self, frame: FrameId, stopped: Option<&str>) {
        let Some(run) = self.frames.get(&frame).map(|frame| frame.run) else { return };
        if let Some(stopped) = stopped {
            self.with_run(run, |run| run.stopped = Some(stopped.into()));
        }
    }

    pub(super) fn end_agent(&mut self, frame: FrameId, answer: &Arc<Datum>) {
        self.forget_ask_of(frame);
        let Some(agent) = self.frames.get_mut(&frame).and_then(|frame| frame.agent.take()) else {
            return;
        };
        let AgentState { agent, continues, talk, save_as, next, .. } = *agent;
        if continues {
            self.keep_talk(&agent, talk);
        }
        self.with_frame(frame, |frame| {
            frame.context.insert(save_as, answer.clone());
            frame.last_output = Some(answer.clone());
        });
        self.enter(frame, next);
    }

    /// Closes the conversations of agents whose run ends without them.
    pub(super) fn leave_agents(&mut self, run: crate::values::ids::RunId) {
        let of_run = self.frames.values_mut().filter(|frame| frame.run == run);
        let left: Vec<_> = of_run.filter_map(|frame| frame.agent.take()).collect();
        for agent in left.into_iter().filter(|agent| agent.continues) {
            self.keep_talk(&agent.agent, agent.talk.closed());
        }
    }

    /// A frame that is left without its agent's answer.
    pub(super) fn drop_agent(&mut self, frame: FrameId) {
        self.timers.remove(&turn_timer(frame));
        let Some(of) = self.frames.get_mut(&frame) else { return };
        let run = of.run;
        let Some(agent) = of.agent.take() else { return };
        if matches!(agent.phase, AgentPhase::Turn { .. }) {
            self.with_run(run, |run| run.in_flight = run.in_flight.saturating_sub(1));
        }
        if agent.continues {
            self.keep_talk(&agent.agent, agent.talk.closed());
        }
    }

    /// A person said try again: the agent continues where it stopped. Whether there is one.
    pub(super) fn retry_agent(&mut self, frame: FrameId) -> bool {
        let Some(of) = self.frames.get_mut(&frame) else { return false };
        let Some(agent) = &mut of.agent else { return false };
        agent.phase = AgentPhase::Between;
        of.state = FrameState::Agent;
        true
    }

    /// A person is asked by an agent or one of its calls: its time stops.
    pub(super) fn stop_time(&mut self, frame: FrameId, at: Millis) {
        let Some(frame) = self.agents_frame(frame) else { return };
        self.with_agent(frame, |agent| {
            if let Some(since) = agent.working_since.take() {
                let worked = at.0.saturating_sub(since.0).max(0).unsigned_abs();
                agent.spent.worked_ms = agent.spent.worked_ms.saturating_add(worked);
            }
        });
    }

    /// A person answered: its time continues, unless another one is asked.
    pub(super) fn start_time(&mut self, frame: FrameId, at: Millis) {
        let Some(frame) = self.agents_frame(frame) else { return };
        let asked = self.asks.values().filter(|open| open.is_open());
        let mut frames = asked.filter_map(|open| self.agents_frame(open.ask.frame));
        if frames.any(|other| other == frame) {
            return;
        }
        self.with_agent(frame, |agent| {
            agent.working_since.get_or_insert(at);
        });
    }

    /// The agent's frame that this is, or belongs to as one of its calls.
    fn agents_frame(&self, frame: FrameId) -> Option<FrameId> {
        let of = self.frames.get(&frame)?;
        if of.agent.is_some() {
            return Some(frame);
        }
        of.parent.filter(|_| matches!(of.kind, FrameKind::Call { .. }))
    }

    pub(super) fn with_agent(&mut self, frame: FrameId, change: impl FnOnce(&mut AgentState)) {
        self.with_frame(frame, |frame| {
            if let Some(agent) = &mut frame.agent {
                change(agent);
            }
        });
    }
}
