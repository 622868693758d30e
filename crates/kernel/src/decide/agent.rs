//! `agent`: a model where the path ends. The router first, then turn after turn: questions before
//! approvals, approvals before calls, and every call with one result.

use super::{DecideResult, FrameContext};
use crate::conversation::llm::Stop as Ended;
use crate::conversation::talk::{CallGuard, CallSettlement, Line};
use crate::definition::agent::Agent;
use crate::definition::plan::{Expr, Step, StepKind};
use crate::event::{AgentEntry, Fact, QueuedRun, TurnKind};
use crate::expression::pointer::Stop;
use crate::session::{AgentPhase, AgentState, FrameKind, Run, Session, turn_timer};
use crate::tool::call::CallProgress;
use crate::values::datum::{Datum, Origin};
use crate::values::fault::Fault;
use crate::values::ids::{AgentName, ContextKey, RunId, StepId};
use serde_json::Value;
use std::sync::Arc;

/// What an agent does next.
pub(super) enum AgentNext {
    Fact(Fact),
    Turn(TurnKind),
    /// Waits for a fact.
    Idle,
}

/// Which turn of an agent, and which attempt at it; both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnNumber {
    pub turn: u32,
    pub attempt: u32,
}

/// Which turn and attempt comes next for this agent.
pub fn turn_to_start(agent: &AgentState) -> TurnNumber {
    match agent.phase {
        AgentPhase::Resting { turn, attempts, .. } => TurnNumber { turn, attempt: attempts + 1 },
        _ => TurnNumber { turn: agent.turns + 1, attempt: 1 },
    }
}

impl FrameContext<'_> {
    pub(super) fn enter_agent(
        &self,
        step: &Step,
        agent: &AgentName,
        input: &Expr,
        save_as: &ContextKey,
        next: Option<&StepId>,
    ) -> DecideResult {
        let Some(entered) = self.closure.agents.get(agent) else {
            let message = format!("agent `{agent}` is not pinned by this run");
            return Err(Stop::Fault(Fault::new("PlanError", message)));
        };
        let Session { key, talk, .. } = self.session;
        let continues = key.space.keeps_talk() && self.frame.kind == FrameKind::Root;
        if continues && let Some(behind) = self.ahead(agent) {
            return Ok(Some(Fact::RunQueued(QueuedRun { run: self.run.id, behind })));
        }
        // A model can do nothing with the name of a blob.
        let input = self.view().opened_value(input)?.unwrap_or_default();
        // A case may come hundreds of times, and no one is there to begin a new conversation: what
        // its model reads must not grow with each request.
        let read_max = self.env.limits.case_requests_read_max;
        let is_case = continues && key.space.pipeline().is_some();
        let keeps = (is_case && talk.is_longer_than(read_max)).then_some(read_max);
        Ok(Some(Fact::AgentEntered(Box::new(AgentEntry {
            frame: self.frame.id,
            step: step.id.clone(),
            agent: agent.clone(),
            input: Arc::new(Datum::inline(input, Origin::Plan)),
            continues,
            keeps,
            commands: entered.commands,
            save_as: save_as.clone(),
            next: self.after(&step.id, next),
        }))))
    }

    /// The newest of the active runs that came before this one and talk with the same agent: what
    /// is said is said in the order of coming, and each run knows what was said before it.
    fn ahead(&self, agent: &AgentName) -> Option<RunId> {
        if !self.session.key.space.has_many_runs() {
            return None;
        }
        let is_agents = |step: &Step| match &step.kind {
            StepKind::Agent { agent: named, .. } => named == agent,
            _ => false,
        };
        let talks = |run: &&Run| {
            let closure = self.env.closures.get(&run.closure);
            closure.is_some_and(|closure| closure.main.steps.iter().any(is_agents))
        };
        let before = self.session.runs.values().filter(|run| run.no < self.run.no);
        before.filter(talks).max_by_key(|run| run.no).map(|run| run.id)
    }

    /// What an agent that waits for no one does next.
    pub(super) fn agent_next(&self) -> AgentNext {
        let Some(state) = self.frame.agent.as_deref() else { return AgentNext::Idle };
        let Some(agent) = self.closure.agents.get(&state.agent) else { return AgentNext::Idle };
        match &state.phase {
            AgentPhase::Between => self.next_turn(state, agent),
            AgentPhase::Turn { .. } => AgentNext::Idle,
            AgentPhase::Resting { kind, .. } => {
                if self.session.timers.contains_key(&turn_timer(self.frame.id)) {
                    return AgentNext::Idle;
                }
                self.rested(state, *kind)
            }
            AgentPhase::Calls => self.calls_next(state, agent),
            AgentPhase::Said(text, ended) => {
                let stopped = match ended {
                    Ended::Done => None,
                    Ended::Length => Some("length"),
                    Ended::Refused => Some("refused"),
                };
                AgentNext::Fact(match &state.output {
                    // Words after a command are no result.
                    Some(output) if state.commands && stopped.is_none() => {
                        self.answers(output.clone(), None)
                    }
                    _ => self.answer(text, stopped),
                })
            }
            AgentPhase::Failed(fault) => match self.stuck(fault, CallProgress::NotSent, None) {
                Ok(fact) => AgentNext::Fact(fact),
                Err(_) => AgentNext::Idle,
            },
        }
    }

    /// A turn whose process is gone, or whose wait is over: once more, within its attempts.
    pub(super) fn rested(&self, state: &AgentState, kind: TurnKind) -> AgentNext {
        let TurnNumber { turn, attempt } = turn_to_start(state);
        let max = self.env.limits.turn_attempts_max;
        if attempt <= max {
            return AgentNext::Turn(kind);
        }
        let message = format!("a turn of agent `{}` was begun {max} times in vain", state.agent);
        let hint = "raise `turn_attempts_max` in [limits], or look at what ends the process";
        AgentNext::Fact(Fact::TurnFailed {
            frame: self.frame.id,
            turn,
            attempt: attempt - 1,
            fault: Fault::new("LimitReached", message).hint(hint),
            again_at: None,
        })
    }

    pub(super) fn next_turn(&self, state: &AgentState, agent: &Agent) -> AgentNext {
        if let Some((limit, why)) = self.used_up(state, agent) {
            return AgentNext::Fact(self.stopped(state, agent, limit, &why));
        }
        if agent.routed && state.route.is_none() {
            return AgentNext::Turn(TurnKind::Route);
        }
        let long = agent.limits.compact_tokens.is_some_and(|max| state.last_input > max);
        if long && state.talk.compactable(agent.limits.keep_turns) > 0 {
            return AgentNext::Turn(TurnKind::Sum);
        }
        AgentNext::Turn(TurnKind::Act)
    }

    /// The limit that this agent has reached, and how.
    pub(super) fn used_up(
        &self,
        state: &AgentState,
        agent: &Agent,
    ) -> Option<(&'static str, String)> {
        let spent = &state.spent;
        let limits = &agent.limits;
        let (steps, unit) = match state.commands {
            true => (state.calls, "commands"),
            false => (spent.steps, "turns of its model"),
        };
        if steps >= limits.steps {
            return Some(("steps", format!("{} {unit}", limits.steps)));
        }
        let tokens = spent.input.saturating_add(spent.output);
        if let Some(max) = limits.tokens.filter(|max| tokens >= *max) {
            return Some(("tokens", format!("{max} tokens")));
        }
        if let Some(max) = limits.cost_micros.filter(|max| spent.cost_micros >= *max) {
            return Some(("money", format!("${}.{:06}", max / 1_000_000, max % 1_000_000)));
        }
        let since = state
            .working_since
            .map_or(0, |since| self.env.now.0.saturating_sub(since.0).max(0).unsigned_abs());
        let worked = spent.worked_ms.saturating_add(since);
        if let Some(max) = limits.time_ms.filter(|max| worked >= *max) {
            return Some(("time", format!("{max} ms of work")));
        }
        if state.made.values().any(|times| *times > limits.repeats) {
            return Some(("repeats", format!("{} times the very same call", limits.repeats)));
        }
        None
    }

    fn answer(&self, text: &str, stopped: Option<&str>) -> Fact {
        let turn = self.frame.agent.as_ref().map_or(0, |agent| agent.turns);
        self.answers(Arc::new(Datum::inline(Value::from(text), Origin::Turn(turn))), stopped)
    }

    /// The agent is done, with this.
    pub(super) fn answers(&self, answer: Arc<Datum>, stopped: Option<&str>) -> Fact {
        let stopped = stopped.map(str::to_owned);
        Fact::AgentAnswered { frame: self.frame.id, step: self.current_step(), answer, stopped }
    }

    /// An honest answer: why it ends here, and what was done so far.
    pub(super) fn stopped(
        &self,
        state: &AgentState,
        agent: &Agent,
        limit: &str,
        why: &str,
    ) -> Fact {
        let mut text = format!("I stopped here: the limit of {why} is reached.");
        let mut done = Vec::new();
        let mut not_done = Vec::new();
        // What earlier runs of the thread did is not what this one did.
        let asked = state.talk.lines.iter().rposition(|line| matches!(line, Line::User(_)));
        for line in state.talk.lines.iter().skip(asked.map_or(0, |at| at + 1)) {
            let Line::Turn { calls, .. } = line else { continue };
            for call in calls.iter().filter(|call| call.guard != CallGuard::Clarify) {
                match &call.settled {
                    Some(CallSettlement::Output(_) | CallSettlement::Skipped(_)) => {
                        done.push(&*call.said)
                    }
                    _ => not_done.push(&*call.said),
                }
            }
        }
        match done.is_empty() {
            true => text.push_str(" Nothing was done so far."),
            false => text.push_str(&format!(" Done so far: {}.", done.join(", "))),
        }
        if !not_done.is_empty() {
            text.push_str(&format!(" Not done: {}.", not_done.join(", ")));
        }
        text.push_str(&format!(" (`{limit}` of agent `{}`)", agent.name));
        self.answer(&text, Some(limit))
    }

    pub(super) fn current_step(&self) -> StepId {
        self.frame.step.clone().unwrap_or_else(|| StepId::from(""))
    }
}
