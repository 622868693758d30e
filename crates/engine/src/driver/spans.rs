//! Spans of calls, turns, waits, agents and runs, each reported to the observers as an
//! `Observation` when a fact ends it. They are derived from the session's state, so a restart gives
//! the same spans. Only the start of a turn is kept beside it: a turn that a process left behind is
//! begun again.

use super::state::{Driver, TurnBegun};
use crate::observe::content::{answered, asked, called, stop_word};
use crate::observe::observers::{agent_span, ask_span, call_span, run_span, turn_span};
use kernel::ask::{FixAction, Reply};
use kernel::contracts::observe::{Observation, ObservedWork, StepRef};
use kernel::conversation::llm::{Prompt, Usage};
use kernel::decide::TurnNumber;
use kernel::definition::agent::TALKS;
use kernel::definition::plan::{Closure, StepKind};
use kernel::event::{Event, Fact, Outcome, TurnEnd, TurnStart};
use kernel::session::{Frame, FrameKind, Run, Session, ending};
use kernel::tool::call::{CallProgress, Reach};
use kernel::values::datum::Datum;
use kernel::values::fault::Fault;
use kernel::values::ids::{AgentName, AskId, CallId, FrameId, Millis, RunId, StepId};
use kernel::values::trace::TraceParent;
use std::sync::Arc;

/// Why an agent ended without its answer.
const CUT_OFF: &str = "CutOff";

impl Driver {
    /// Observations of the spans that this event ends. Must be called before the event is applied,
    /// because what it ends is gone after that.
    pub(super) fn ended_spans(&mut self, event: &Event) -> Vec<Observation> {
        if self.shared.observers.are_none() {
            return Vec::new();
        }
        let at = event.at;
        let observation = match &event.fact {
            // One that a person or a late result settled was reported when it failed.
            Fact::CallFinished { call, output, settled: None, .. } => {
                self.call_observation(*call, at, Ok(output))
            }
            Fact::CallFailed { call, how, fault, .. } => {
                self.call_observation(*call, at, Err((*how, fault)))
            }
            Fact::TurnFinished(end) | Fact::TalkCompacted { turn: end, .. } => {
                let number = TurnNumber { turn: end.turn, attempt: end.attempt };
                let begun = self.take_turn_start(end.frame, number);
                begun.and_then(|begun| self.turn_observation(end.frame, at, begun, Ok(end)))
            }
            Fact::TurnFailed { frame, turn, attempt, fault, .. } => {
                let number = TurnNumber { turn: *turn, attempt: *attempt };
                let begun = self.take_turn_start(*frame, number);
                begun.and_then(|begun| self.turn_observation(*frame, at, begun, Err(fault)))
            }
            Fact::AgentAnswered { frame, stopped, .. } => {
                let observation = self.agent_observation(*frame, at, None);
                observation.map(|observation| stopped_by(observation, stopped.as_deref()))
            }
            Fact::StepSkipped { frame, .. }
            | Fact::StepDiverted { frame, .. }
            | Fact::FrameCancelled { frame } => self.agent_observation(*frame, at, Some(CUT_OFF)),
            Fact::ItemFailed { frame, fault } => {
                self.agent_observation(*frame, at, Some(&fault.name))
            }
            Fact::AskDecided { ask, decision } => {
                let ending = if says_no(&decision.reply) { "declined" } else { "decided" };
                self.wait_observation(*ask, at, ending)
            }
            Fact::AskExpired { ask } => self.wait_observation(*ask, at, "expired"),
            Fact::AskWithdrawn { ask } => self.wait_observation(*ask, at, "withdrawn"),
            Fact::RunEnded { run, outcome } => return self.run_observations(*run, at, outcome),
            _ => None,
        };
        observation.into_iter().collect()
    }

    /// The span of a turn of this frame's agent, for the provider that is asked.
    pub(super) fn turn_trace(&self, frame: FrameId, number: TurnNumber) -> Option<TraceParent> {
        let (run, frame) = self.place_of(frame)?;
        let observers = &self.shared.observers;
        run.trace.map(|trace| observers.outward(trace, || turn_span(frame, number)))
    }

    /// Keeps what observers get of a turn once it ends.
    pub(super) fn keep_turn_start(&mut self, start: &TurnStart, prompt: &Prompt) {
        let observers = &self.shared.observers;
        if observers.are_none() {
            return;
        }
        let bytes_max = self.shared.limits.span_content_bytes_max;
        let content = observers.want_content().then(|| asked(prompt, bytes_max));
        let models = self.shared.models();
        let model = models.get(&start.model);
        let begun = TurnBegun {
            at: self.shared.clock.now(),
            number: TurnNumber { turn: start.turn, attempt: start.attempt },
            kind: start.kind,
            model: start.model.clone(),
            provider: model.and_then(|model| model.provider.clone()),
            provider_model: model.and_then(|model| model.provider_model.clone()),
            first_at: None,
            asked: content.unwrap_or_default(),
        };
        self.begun.insert(start.frame, begun);
    }

    /// The kept start of this turn; none if this process did not start it.
    fn take_turn_start(&mut self, frame: FrameId, number: TurnNumber) -> Option<TurnBegun> {
        self.begun.remove(&frame).filter(|begun| begun.number == number)
    }

    fn call_observation(
        &self,
        call: CallId,
        at: Millis,
        result: Result<&Arc<Datum>, (CallProgress, &Fault)>,
    ) -> Option<Observation> {
        let session = self.session.as_ref()?;
        let open = session.calls.get(&call)?;
        let run = session.runs.get(&open.run)?;
        let reach = open.pins.as_ref().map_or(Reach::Writes, |pins| pins.reach);
        let work = ObservedWork::Call {
            tool: open.request.tool.clone(),
            upstream: self.shared.upstream_of(&self.key.realm, &open.request.tool),
            id: call,
            reach: reach.name(),
            outcome: result.map_or_else(|(how, _)| how.name(), |_| "ok"),
        };
        let span = || call_span(call, open.requested_seq);
        let parent = || span_above(session, open.request.frame, run.id);
        let began = open.started_at.unwrap_or(at);
        let mut observation = self.observation(run, began, at, work, traced(run, span, parent));
        observation.at = at_step(session, open.request.frame, &open.request.step);
        observation.error = result.err().map(|(_, fault)| fault.name.as_str().into());
        if self.shared.observers.want_content() {
            let output = result.ok().map(|output| output.to_value());
            let bytes_max = self.shared.limits.span_content_bytes_max;
            observation.content = called(&open.request.arguments, output.as_ref(), bytes_max);
        }
        Some(observation)
    }

    fn turn_observation(
        &self,
        frame: FrameId,
        at: Millis,
        begun: TurnBegun,
        result: Result<&TurnEnd, &Fault>,
    ) -> Option<Observation> {
        let (run, frame) = self.place_of(frame)?;
        let TurnBegun { number, model, provider, provider_model, asked, .. } = begun;
        let since = |first: Millis| first.0.saturating_sub(begun.at.0).max(0).unsigned_abs();
        let work = ObservedWork::Turn {
            agent: frame.agent.as_ref()?.agent.clone(),
            model,
            provider,
            provider_model,
            kind: begun.kind.name(),
            usage: result.map_or_else(|_| Usage::default(), |end| end.usage),
            cost_micros: result.ok().and_then(|end| end.cost_micros),
            stop: result.ok().map(|end| stop_word(end.stop, !end.calls.is_empty())),
            first_piece_ms: begun.first_at.map(since),
        };
        let span = || turn_span(frame, number);
        let parent = || agent_span(frame);
        let mut observation = self.observation(run, begun.at, at, work, traced(run, span, parent));
        observation.at = step_of(frame);
        observation.error = result.err().map(|fault| fault.name.as_str().into());
        observation.content = asked;
        if let (Ok(end), true) = (result, self.shared.observers.want_content()) {
            observation.content.extend(answered(end, self.shared.limits.span_content_bytes_max));
        }
        Some(observation)
    }

    /// The agent that works in this frame, if there is one.
    fn agent_observation(
        &self,
        frame: FrameId,
        at: Millis,
        error: Option<&str>,
    ) -> Option<Observation> {
        let (run, frame) = self.place_of(frame)?;
        self.observation_of_agent(run, frame, at, error)
    }

    fn observation_of_agent(
        &self,
        run: &Run,
        frame: &Frame,
        at: Millis,
        error: Option<&str>,
    ) -> Option<Observation> {
        let agent = frame.agent.as_ref()?;
        let work = ObservedWork::Agent {
            agent: agent.agent.clone(),
            turns: agent.turns,
            calls: agent.calls,
            stopped: None,
        };
        let began = agent.entered_at.unwrap_or(run.started_at);
        let trace = traced(run, || agent_span(frame), || run_span(run.id));
        let mut observation = self.observation(run, began, at, work, trace);
        observation.at = step_of(frame);
        observation.error = error.map(Into::into);
        Some(observation)
    }

    fn wait_observation(
        &self,
        ask: AskId,
        at: Millis,
        ending: &'static str,
    ) -> Option<Observation> {
        let session = self.session.as_ref()?;
        let open = session.asks.get(&ask).filter(|open| open.is_open())?;
        let run = session.runs.get(&open.ask.run)?;
        let work = ObservedWork::Wait { ask, kind: open.ask.body.kind(), ending };
        let parent = || span_above(session, open.ask.frame, run.id);
        let trace = traced(run, || ask_span(ask), parent);
        let mut observation = self.observation(run, open.ask.created_at, at, work, trace);
        observation.at = at_step(session, open.ask.frame, &open.ask.step);
        Some(observation)
    }

    /// The run, after the agents that it cuts off.
    fn run_observations(&self, run: RunId, at: Millis, outcome: &Outcome) -> Vec<Observation> {
        let Some(session) = &self.session else { return Vec::new() };
        let Some(run) = session.runs.get(&run) else { return Vec::new() };
        let of_run = session.frames.values().filter(|frame| frame.run == run.id);
        let agents =
            of_run.filter_map(|frame| self.observation_of_agent(run, frame, at, Some(CUT_OFF)));
        let mut all: Vec<Observation> = agents.collect();
        let closure = self.closures.get(&run.closure);
        let agent_step = closure.is_some_and(|closure| came_to_an_agent(session, run, closure));
        // A plan that someone sent may be called like one of ours.
        let talk = run.plan.as_str().strip_prefix(TALKS).filter(|_| agent_step);
        let work = ObservedWork::Run {
            plan: run.plan.clone(),
            status: ending(outcome).name(),
            agent: talk.map(AgentName::from),
            turns: run.spent.turns,
            agent_step,
        };
        let caller = || run.trace.map(|trace| trace.span).filter(|span| *span != run_span(run.id));
        let span = || run_span(run.id);
        let trace = traced_below(run, span, caller);
        let mut observation = self.observation(run, run.started_at, at, work, trace);
        if let Outcome::Failed { fault } = outcome {
            observation.error = Some(fault.name.as_str().into());
        }
        all.push(observation);
        all
    }

    fn observation(
        &self,
        run: &Run,
        began: Millis,
        ended: Millis,
        work: ObservedWork,
        traced: TracedSpan,
    ) -> Observation {
        Observation {
            realm: self.key.realm.clone(),
            subject: run.acts_for().cloned(),
            actor: run.behalf.actor.clone(),
            session: Some(self.key.clone()),
            run: Some(run.id),
            at: None,
            trace: traced.trace,
            parent: traced.parent,
            began,
            ended,
            work,
            error: None,
            content: Vec::new(),
        }
    }

    fn place_of(&self, frame: FrameId) -> Option<(&Run, &Frame)> {
        let session = self.session.as_ref()?;
        let frame = session.frames.get(&frame)?;
        Some((session.runs.get(&frame.run)?, frame))
    }
}

/// Whether the run's own plan came to a step that is an agent's.
pub(super) fn came_to_an_agent(session: &Session, run: &Run, closure: &Closure) -> bool {
    let Some(root) = session.frames.get(&run.root) else { return false };
    root.visits.keys().any(|step| {
        let step = closure.main.step(step);
        step.is_some_and(|step| matches!(step.kind, StepKind::Agent { .. }))
    })
}

/// A span in its trace, and the span that it is a part of.
#[derive(Default)]
struct TracedSpan {
    trace: Option<TraceParent>,
    parent: Option<u64>,
}

/// Where something stands that is a part of a run. Ids are made only of what is recorded.
fn traced(run: &Run, span: impl FnOnce() -> u64, parent: impl FnOnce() -> u64) -> TracedSpan {
    traced_below(run, span, || Some(parent()))
}

fn traced_below(
    run: &Run,
    span: impl FnOnce() -> u64,
    parent: impl FnOnce() -> Option<u64>,
) -> TracedSpan {
    match run.trace.filter(|trace| trace.sampled) {
        Some(trace) => TracedSpan { trace: Some(trace.at(span())), parent: parent() },
        None => TracedSpan::default(),
    }
}

/// The span of what happens in this frame: its agent's, or that of the agent whose call it is, or
/// the run's.
fn span_above(session: &Session, frame: FrameId, run: RunId) -> u64 {
    let agents = |frame: &&Frame| frame.agent.is_some();
    let frame = session.frames.get(&frame);
    let own = frame.filter(agents);
    let calls = frame.filter(|frame| matches!(frame.kind, FrameKind::Call { .. }));
    let above = calls.and_then(|frame| session.frames.get(&frame.parent?)).filter(agents);
    own.or(above).map_or_else(|| run_span(run), agent_span)
}

/// A step that this frame takes.
fn at_step(session: &Session, frame: FrameId, step: &StepId) -> Option<StepRef> {
    let frame = session.frames.get(&frame)?;
    Some(StepRef { plan: frame.plan.clone(), step: step.clone() })
}

fn step_of(frame: &Frame) -> Option<StepRef> {
    Some(StepRef { plan: frame.plan.clone(), step: frame.step.clone()? })
}

/// Whether someone does not want what they were asked about, or one of several calls.
fn says_no(reply: &Reply) -> bool {
    match reply {
        Reply::Clarify { answer } => answer.is_none(),
        Reply::Approve { decisions } => decisions.iter().any(|decision| !decision.approve),
        Reply::Fill { content } => content.is_none(),
        Reply::Authorize { done } => !done,
        Reply::Fix { action, .. } => *action == FixAction::Abort,
    }
}

/// The same agent, stopped by this limit.
fn stopped_by(mut observation: Observation, limit: Option<&str>) -> Observation {
    if let ObservedWork::Agent { stopped, .. } = &mut observation.work {
        *stopped = limit.map(Into::into);
    }
    observation
}
