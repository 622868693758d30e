//! Observations of a driver: the spans that a fact ends, for calls, turns, waits, agents and runs.
//! They are derived from the session's state, so that a restart gives the same spans; only the
//! request of a turn is kept beside it, because a turn that a process left behind is begun again.

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
    /// Observations that this event ends. Must be called before the event is applied, because its
    /// subjects are gone after that.
    pub(super) fn ended(&mut self, event: &Event) -> Vec<Observation> {
        if self.shared.observers.are_none() {
            return Vec::new();
        }
        let at = event.at;
        let seen = match &event.fact {
            // One that a person or a late result settled was seen when it failed.
            Fact::CallFinished { call, output, settled: None, .. } => {
                self.call_seen(*call, at, Ok(output))
            }
            Fact::CallFailed { call, how, fault, .. } => {
                self.call_seen(*call, at, Err((*how, fault)))
            }
            Fact::TurnFinished(end) | Fact::TalkCompacted { turn: end, .. } => {
                let number = TurnNumber { turn: end.turn, attempt: end.attempt };
                let begun = self.turn_begun(end.frame, number);
                begun.and_then(|begun| self.turn_seen(end.frame, at, begun, Ok(end)))
            }
            Fact::TurnFailed { frame, turn, attempt, fault, .. } => {
                let number = TurnNumber { turn: *turn, attempt: *attempt };
                let begun = self.turn_begun(*frame, number);
                begun.and_then(|begun| self.turn_seen(*frame, at, begun, Err(fault)))
            }
            Fact::AgentAnswered { frame, stopped, .. } => {
                let seen = self.agent_seen(*frame, at, None);
                seen.map(|seen| stopped_by(seen, stopped.as_deref()))
            }
            Fact::StepSkipped { frame, .. }
            | Fact::StepDiverted { frame, .. }
            | Fact::FrameCancelled { frame } => self.agent_seen(*frame, at, Some(CUT_OFF)),
            Fact::ItemFailed { frame, fault } => self.agent_seen(*frame, at, Some(&fault.name)),
            Fact::AskDecided { ask, decision } => {
                let ending = if says_no(&decision.reply) { "declined" } else { "decided" };
                self.wait_seen(*ask, at, ending)
            }
            Fact::AskExpired { ask } => self.wait_seen(*ask, at, "expired"),
            Fact::AskWithdrawn { ask } => self.wait_seen(*ask, at, "withdrawn"),
            Fact::RunEnded { run, outcome } => return self.run_seen(*run, at, outcome),
            _ => None,
        };
        seen.into_iter().collect()
    }

    /// The span of a turn of this frame's agent, for the provider that is asked.
    pub(super) fn turn_trace(&self, frame: FrameId, number: TurnNumber) -> Option<TraceParent> {
        let (run, frame) = self.place_of(frame)?;
        let observers = &self.shared.observers;
        run.trace.map(|trace| observers.outward(trace, || turn_span(frame, number)))
    }

    /// Keeps what observers get of a turn once it ends.
    pub(super) fn turn_begins(&mut self, start: &TurnStart, prompt: &Prompt) {
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

    /// The turn as it began; none if it never did.
    fn turn_begun(&mut self, frame: FrameId, number: TurnNumber) -> Option<TurnBegun> {
        self.begun.remove(&frame).filter(|begun| begun.number == number)
    }

    fn call_seen(
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
        let mut seen = self.seen(run, began, at, work, traced(run, span, parent));
        seen.at = at_step(session, open.request.frame, &open.request.step);
        seen.error = result.err().map(|(_, fault)| fault.name.as_str().into());
        if self.shared.observers.want_content() {
            let output = result.ok().map(|output| output.to_value());
            let bytes_max = self.shared.limits.span_content_bytes_max;
            seen.content = called(&open.request.arguments, output.as_ref(), bytes_max);
        }
        Some(seen)
    }

    fn turn_seen(
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
        let mut seen = self.seen(run, begun.at, at, work, traced(run, span, parent));
        seen.at = step_of(frame);
        seen.error = result.err().map(|fault| fault.name.as_str().into());
        seen.content = asked;
        if let (Ok(end), true) = (result, self.shared.observers.want_content()) {
            seen.content.extend(answered(end, self.shared.limits.span_content_bytes_max));
        }
        Some(seen)
    }

    /// The agent that works in this frame, if there is one.
    fn agent_seen(&self, frame: FrameId, at: Millis, error: Option<&str>) -> Option<Observation> {
        let (run, frame) = self.place_of(frame)?;
        self.agent_of(run, frame, at, error)
    }

    fn agent_of(
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
        let mut seen = self.seen(run, began, at, work, trace);
        seen.at = step_of(frame);
        seen.error = error.map(Into::into);
        Some(seen)
    }

    fn wait_seen(&self, ask: AskId, at: Millis, ending: &'static str) -> Option<Observation> {
        let session = self.session.as_ref()?;
        let open = session.asks.get(&ask).filter(|open| open.is_open())?;
        let run = session.runs.get(&open.ask.run)?;
        let work = ObservedWork::Wait { ask, kind: open.ask.body.kind(), ending };
        let parent = || span_above(session, open.ask.frame, run.id);
        let trace = traced(run, || ask_span(ask), parent);
        let mut seen = self.seen(run, open.ask.created_at, at, work, trace);
        seen.at = at_step(session, open.ask.frame, &open.ask.step);
        Some(seen)
    }

    /// The run, after the agents that it cuts off.
    fn run_seen(&self, run: RunId, at: Millis, outcome: &Outcome) -> Vec<Observation> {
        let Some(session) = &self.session else { return Vec::new() };
        let Some(run) = session.runs.get(&run) else { return Vec::new() };
        let of_run = session.frames.values().filter(|frame| frame.run == run.id);
        let agents = of_run.filter_map(|frame| self.agent_of(run, frame, at, Some(CUT_OFF)));
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
        let mut seen = self.seen(run, run.started_at, at, work, trace);
        if let Outcome::Failed { fault } = outcome {
            seen.error = Some(fault.name.as_str().into());
        }
        all.push(seen);
        all
    }

    fn seen(
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
fn stopped_by(mut seen: Observation, limit: Option<&str>) -> Observation {
    if let ObservedWork::Agent { stopped, .. } = &mut seen.work {
        *stopped = limit.map(Into::into);
    }
    seen
}
