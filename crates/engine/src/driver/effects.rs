//! Performing what facts name: judge, call, fetch, cancel. Results come back as facts.

use super::late_results::output_of;
use super::record::no_session;
use super::state::{Completion, Driver, Effect, HistoryView};
use crate::gate::{CallOutcome, OutgoingCall, POLICY_DENIED, TOOL_NOT_FOUND};
use crate::observe::counts::count;
use crate::observe::observers::call_span;
use crate::refusal::{Refusal, RefusalCode, Result};
use crate::waiting::attendants::Attendant;
use futures::FutureExt;
use futures::future::{abortable, ready};
use kernel::contracts::cloud::PublishedEvent;
use kernel::contracts::policy::{Context, Trigger};
use kernel::event::{CallRequest, Fact};
use kernel::expression::pointer::Fetch;
use kernel::journal::projection::PinnedSpec;
use kernel::session::{CallState, OpenCall, Run};
use kernel::tool::call::{
    Abilities, CallContext, CallProgress, InputRequired, Judgement, Publisher, RawFailure, Reach,
    ToolError, ToolOutput, Verdict,
};
use kernel::values::datum::{Datum, Origin};
use kernel::values::fault::Fault;
use kernel::values::ids::{CallId, FrameId, RunId};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Driver {
    /// Performs an effect, or puts it where `pump` finds it when it records in its turn.
    pub(super) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Judge(call) => self.to_judge.push(call),
            Effect::Start(call) => self.start_call(call),
            Effect::Close(run) => self.to_close.push(run),
            Effect::Look(ask, look) => self.to_look.push((ask, look)),
            Effect::Propose(frame) => self.ask_proposal(frame),
            Effect::ReadDrafted => self.read_drafted(),
            Effect::DropOrphans => self.drop_orphans(),
            Effect::EndRun => {
                self.drop_orphans();
                self.free_share();
                self.flush();
            }
            Effect::None => {}
        }
    }

    /// Asks the gate's first half and records what it says.
    pub(super) async fn judge(&mut self, call: CallId) -> Result<()> {
        let tool = self.open_call(call).map(|open| open.request.tool.clone());
        if let Some(tool) = tool {
            self.shared.gate.await_tool(&self.key.realm, &tool).await;
        }
        let Some(session) = &self.session else { return Err(no_session()) };
        let Some(open) = session.calls.get(&call) else { return Ok(()) };
        let Some(run) = session.runs.get(&open.run) else { return Ok(()) };
        let caller = run.caller(&self.key.realm);
        let CallRequest { tool, arguments, sources, .. } = &open.request;
        let context =
            Context { sources: Some(sources), trigger: Trigger::Run, ..Context::default() };
        let admitted = self.shared.gate.admit_by_name(&caller, tool, arguments, context);
        let listed = admitted.as_ref().ok().map(|call| call.listed.clone());
        let judgement = match admitted {
            Ok(call) => call.into_judgement(),
            Err(ill_formed) => {
                let gate = &self.shared.gate;
                Judgement::Refused(gate.with_reason(&caller, tool, *ill_formed.fault))
            }
        };
        let judgement = match is_denial(&judgement) {
            true => self.not_any_more(run).map_or(judgement, Judgement::Refused),
            false => judgement,
        };
        if let Some(listed) = listed {
            let closure = run.closure.clone();
            let hash = listed.spec_hash.clone();
            // Calls of one tool often come one after the other.
            let is_same = |last: &PinnedSpec| last.hash == hash && last.closure == closure;
            if !self.new_specs.last().is_some_and(is_same) {
                let spec = listed.tool.spec().clone();
                self.new_specs.push(PinnedSpec { closure, hash, spec });
            }
        }
        self.record(Fact::CallJudged { call, judgement }).await
    }

    /// What a run says that its starter may not run any more; none where it may.
    pub(super) fn not_any_more(&self, run: &Run) -> Option<Fault> {
        self.shared.gate.still_starts(&run.caller(&self.key.realm), run).err()
    }

    /// Why a call was not sent, in words that name the starter where it lost its rights: without
    /// them its tools are not there for it.
    fn unsent_fault(&self, run: RunId, error: ToolError) -> Fault {
        let is_denial = [TOOL_NOT_FOUND, POLICY_DENIED].contains(&error.fault.name.as_str());
        let run = self.session.as_ref().and_then(|session| session.runs.get(&run));
        let lost = run.filter(|_| is_denial && error.how == CallProgress::NotSent);
        lost.and_then(|run| self.not_any_more(run)).unwrap_or(error.fault)
    }

    /// Sends a started call. A write waits until its start is durable: after a crash we must know
    /// that it may have happened.
    pub(super) fn start_call(&mut self, id: CallId) {
        let Some(session) = &self.session else { return };
        let Some(open) = session.calls.get(&id) else { return };
        let Some(run) = session.runs.get(&open.run) else { return };
        if let Some((_, state)) = self.sent.take_if(|(run, _)| *run == open.run) {
            // What it answered when it was sent is known: it comes back with that at once.
            let wants = Box::new(InputRequired { inputs: BTreeMap::new(), state });
            let started = CallOutcome::answered(ToolOutput::Wants(wants));
            self.in_flight.push(ready(Completion::Call(id, Some(started))).boxed());
            return;
        }
        let reach = open.pins.as_ref().map_or(Reach::Writes, |pins| pins.reach);
        let Attendant { can, teller, given } = self.attendant(open.run);
        // What was brought along counts once: what a call wants it is given after that.
        let given = if open.rounds == 0 { Arc::new(given) } else { open.given.clone() };
        let outgoing = OutgoingCall {
            caller: run.caller(&self.key.realm),
            id,
            tool: open.request.tool.clone(),
            arguments: open.request.arguments.clone(),
            sources: open.request.sources.clone(),
            reach,
            given,
            can,
            teller,
            context: CallContext {
                session: Some(self.key.clone()),
                run: Some(open.run),
                trace: run.trace.map(|trace| {
                    self.shared.observers.outward(trace, || call_span(id, open.requested_seq))
                }),
                hops: run.behalf.hops,
                publisher: if reach == Reach::Reads {
                    Publisher::default()
                } else {
                    let publisher = Publisher::recorded();
                    self.publishers.insert(id, publisher.clone());
                    publisher
                },
                blobs: self.shared.blobs_of_call(&self.key.realm, id, &open.request.arguments),
                ..CallContext::default()
            },
            consent: self.consents.remove(&id).unwrap_or_default(),
            value_only: self.wants_value(open),
        };
        let ticket = if reach == Reach::Reads {
            None
        } else {
            self.flush();
            self.ticket.clone()
        };
        count(&self.shared.counters.calls_started);
        let gate = self.shared.gate.clone();
        let calling = async move {
            if let Some(ticket) = ticket
                && let Err(error) = ticket.await
            {
                let message = format!("the start could not be recorded: {error}");
                return CallOutcome::failed(ToolError::not_sent("StoreError", message));
            }
            gate.start(outgoing).await
        };
        let (calling, abort) = abortable(calling);
        self.aborts.insert(id, abort);
        self.in_flight.push(calling.map(move |result| Completion::Call(id, result.ok())).boxed());
    }

    /// Whether a run reports what became of its call.
    fn is_reported(&self, run: RunId) -> bool {
        let run = self.session.as_ref().and_then(|session| session.runs.get(&run));
        let closure = run.and_then(|run| self.closures.get(&run.closure));
        closure.is_some_and(|closure| closure.main.reports_calls)
    }

    /// Who is there for a call of this run. The client of a direct call is, as if there were no
    /// run; without one a person can be asked.
    fn attendant(&self, run: RunId) -> Attendant {
        let is_direct = self.key.space.is_call();
        match is_direct.then(|| self.shared.attending.of(run)).flatten() {
            // The run waits for what continues elsewhere, whatever its client does.
            Some(client) => Attendant { can: Abilities { later: true, ..client.can }, ..client },
            None => Attendant { can: Abilities::RUN, ..Attendant::default() },
        }
    }

    /// A closing run starts nothing new: reads are dropped at once, writes get time to finish.
    pub(super) async fn close_calls(&mut self, run: RunId) -> Result<()> {
        let started = self.started_calls(run);
        let mut waits = false;
        for (call, repeatable) in started {
            if repeatable {
                self.give_up(call, "the run is being closed").await?;
            } else {
                self.cancel_elsewhere(call);
                waits = true;
            }
        }
        if waits {
            let clock = self.shared.clock.clone();
            let over = clock.now().plus_ms(self.shared.limits.cancel_grace_ms);
            let grace = clock.sleep_until(over);
            self.in_flight.push(grace.map(move |()| Completion::GraceOver(run)).boxed());
        }
        Ok(())
    }

    fn started_calls(&self, run: RunId) -> Vec<(CallId, bool)> {
        let Some(session) = &self.session else { return Vec::new() };
        let started = session
            .calls
            .iter()
            .filter(|(_, open)| open.run == run && matches!(open.state, CallState::Started));
        started.map(|(id, open)| (*id, open.repeatable())).collect()
    }

    async fn give_up(&mut self, call: CallId, why: &str) -> Result<()> {
        if let Some(abort) = self.aborts.remove(&call) {
            abort.abort();
        }
        let fault = Fault::new("Cancelled", format!("it is unknown whether it happened: {why}"));
        self.record(Fact::CallFailed { call, how: CallProgress::Unknown, fault, said: None }).await
    }

    /// Drops calls and turns that no frame waits for any more.
    fn drop_orphans(&mut self) {
        let Some(session) = &self.session else { return };
        let open = &session.calls;
        self.aborts.retain(|call, abort| {
            let wanted = open.contains_key(call);
            if !wanted {
                abort.abort();
            }
            wanted
        });
        self.consents.retain(|call, _| open.contains_key(call));
        self.drop_orphan_turns();
        self.drop_orphan_proposals();
    }

    /// What calls wanted that end with this fact will not be given any more: whatever their tools
    /// hold for it can go. To be asked before the fact is applied.
    pub(super) fn forget_wants(&self, fact: &Fact) {
        let (Fact::RunEnded { .. } | Fact::FrameCancelled { .. } | Fact::CorrectionEnded(_)) = fact
        else {
            return;
        };
        let ends = |open: &OpenCall| match fact {
            Fact::RunEnded { run, .. } => open.run == *run,
            Fact::FrameCancelled { frame } => open.request.frame == *frame,
            Fact::CorrectionEnded(end) => open.request.frame == end.child,
            _ => false,
        };
        let Some(session) = &self.session else { return };
        for open in session.calls.values().filter(|&open| ends(open)) {
            let CallState::Wanting(wanting) = &open.state else { continue };
            let Some(run) = session.runs.get(&open.run) else { continue };
            let caller = run.caller(&self.key.realm);
            if let Some(listed) = self.shared.gate.find(&caller, open.request.tool.as_str()) {
                listed.tool.forget(&wanting.wants.state);
            }
        }
    }

    /// Takes in what arrived.
    pub(super) async fn finish(&mut self, done: Completion) -> Result<()> {
        match done {
            Completion::Call(call, Some(started)) => self.called(call, started).await,
            Completion::Late(call, Some(result)) => self.came_late(call, result).await,
            Completion::Moved(ask, true) => self.go_after(ask).await,
            Completion::Call(_, None)
            | Completion::Late(_, None)
            | Completion::Moved(_, false)
            | Completion::Turned(_, _, None)
            | Completion::Proposed(_, _, None) => Ok(()),
            Completion::Kept(Ok(())) => {
                self.key_kept();
                Ok(())
            }
            Completion::Kept(Err(error)) => Err(error.into()),
            Completion::Turned(frame, number, Some(answered)) => {
                self.turn_done(frame, number, *answered).await
            }
            Completion::Proposed(frame, attempt, Some(proposal)) => {
                self.proposed(frame, attempt, *proposal).await
            }
            Completion::Gathered(frame, said) => {
                self.gathered(frame, said?);
                Ok(())
            }
            Completion::GraceOver(run) => {
                for (call, _) in self.started_calls(run) {
                    self.give_up(call, "it was cancelled while under way").await?;
                }
                Ok(())
            }
            Completion::Fetched(frame, want, Ok(value)) => {
                self.fetching.remove(&frame);
                match want {
                    Fetch::Blob(hash) => {
                        self.fetched.blobs.insert(hash, Arc::new(value));
                    }
                    Fetch::History(step) => {
                        let frames = self.session.as_ref().map(|session| &session.frames);
                        let ordinal = frames.and_then(|frames| frames.get(&frame));
                        let ordinal = ordinal.map_or(0, |frame| frame.ordinal);
                        let place = (frame, ordinal, step);
                        self.fetched.histories.insert(place, Arc::new(value));
                    }
                }
                Ok(())
            }
            Completion::Fetched(_, _, Err(refusal)) => Err(refusal),
        }
    }

    async fn called(&mut self, call: CallId, started: CallOutcome) -> Result<()> {
        let CallOutcome { result, late, .. } = started;
        self.aborts.remove(&call);
        if let Some(late) = late {
            self.wait_longer(call, late);
        }
        let Some(result) = self.looked(call, result).await? else { return Ok(()) };
        let open = self.open_call(call);
        let expected = open.filter(|open| matches!(open.state, CallState::Started));
        let fact = match (result, expected) {
            (Ok(ToolOutput::Value(output)), Some(_)) => {
                self.finished(call, Datum::inline(output, Origin::Call(call)))
            }
            (Ok(ToolOutput::Blob(blob)), Some(_)) => {
                self.finished(call, Datum::stored(blob, Origin::Call(call)))
            }
            (Ok(ToolOutput::Wants(wants)), Some(_)) => {
                let InputRequired { inputs, state } = *wants;
                Fact::CallWants { call, inputs, state }
            }
            (Err(mut error), Some(open)) => {
                count(&self.shared.counters.calls_failed);
                let how = match error.how {
                    CallProgress::NotSent => open.unsent(),
                    how @ (CallProgress::Failed | CallProgress::Unknown) => how,
                };
                // Only who called directly is answered with it, or to whom the run reports it.
                let is_reported = self.is_reported(open.run);
                let is_kept = |said: &RawFailure| match said {
                    RawFailure::Reply(_) => is_reported,
                    RawFailure::Result(_) | RawFailure::Error(_) | RawFailure::Lacks(_) => {
                        is_reported || self.key.space.is_call()
                    }
                };
                let said = error.take_own_words().filter(is_kept);
                let said = said.map(|said| Datum::inline(json!(said), Origin::Call(call)));
                let fault = self.unsent_fault(open.run, error);
                Fact::CallFailed { call, how, fault, said: said.map(Arc::new) }
            }
            (result, None) => {
                let result = output_of(call, result).map_err(|error| error.fault);
                Fact::CallLate { call, result }
            }
        };
        self.record(fact).await
    }

    fn finished(&mut self, call: CallId, output: Datum) -> Fact {
        let published = self.published(call);
        Fact::CallFinished { call, output: Arc::new(output), settled: None, published }
    }

    /// What a call published, now that its result counts.
    pub(super) fn published(&mut self, call: CallId) -> Vec<PublishedEvent> {
        let Some(publisher) = self.publishers.remove(&call) else { return Vec::new() };
        let events = publisher.take();
        if events.is_empty() {
            return Vec::new();
        }
        let run = self.open_call(call).and_then(|open| self.session.as_ref()?.runs.get(&open.run));
        let closure = run.and_then(|run| self.closures.get(&run.closure));
        let source = closure.and_then(|closure| closure.main.event_source.clone());
        let published = |event| PublishedEvent { source: source.clone(), event: Arc::new(event) };
        events.into_iter().map(published).collect()
    }

    /// Fetches what a frame's decision needs.
    pub(super) fn fetch(&mut self, frame: FrameId, want: Fetch) {
        self.fetching.insert(frame);
        // The store answers: it must have what was recorded so far.
        self.flush();
        let shared = self.shared.clone();
        let key = self.key.clone();
        let sight = self.sight(frame);
        self.fetched.make_room();
        let fetching = async move {
            let value = match &want {
                Fetch::Blob(hash) => shared.open_blob(&key.realm, hash).await,
                Fetch::History(step) => shared.visible_history(&key, sight, step.as_ref()).await,
            };
            Completion::Fetched(frame, want, value)
        };
        self.in_flight.push(fetching.boxed());
    }

    /// From where a frame looks at the history, and until when the store must be ahead.
    fn sight(&self, frame: FrameId) -> Option<HistoryView> {
        let session = self.session.as_ref()?;
        let frame = session.frames.get(&frame)?;
        let run = session.runs.get(&frame.run)?;
        Some(HistoryView {
            path: frame.path.clone(),
            run: run.id,
            run_no: run.no,
            ticket: self.ticket.clone(),
        })
    }

    /// Counts and logs; never arguments nor outputs.
    pub(super) fn note(&self, fact: &Fact) {
        let counters = &self.shared.counters;
        let realm = &self.key.realm;
        let session = &self.key.id;
        let plan = self.session.as_ref().and_then(|s| s.latest_run()).map(|run| run.plan.as_str());
        let subject = self.subject();
        match fact {
            Fact::RunStarted { run, plan, by, subject, .. } => {
                count(&counters.runs_started);
                let subject = subject.as_ref().unwrap_or(by);
                tracing::debug!(%realm, %session, %subject, %run, %plan, "run started");
            }
            Fact::RunEnded { run, outcome } => {
                let status = kernel::session::ending(outcome);
                counters.ended(status);
                let status = status.name();
                tracing::debug!(%realm, %session, subject, %run, plan, status, "run ended");
            }
            Fact::CallStarted { call, .. } | Fact::CallResumed { call, .. } => {
                let step = self.step_of(*call);
                tracing::debug!(%realm, %session, subject, plan, step, %call, "call started");
            }
            Fact::CallWants { call, inputs, .. } => {
                let step = self.step_of(*call);
                let wants = inputs.len();
                tracing::debug!(%realm, %session, subject, plan, step, %call, wants,
                    "call wants more");
            }
            Fact::CallFinished { call, .. } => {
                let step = self.last_step();
                tracing::debug!(%realm, %session, subject, plan, step, %call, "call finished");
            }
            Fact::CallFailed { call, how, fault, .. } => {
                let step = self.step_of(*call);
                let name = &fault.name;
                tracing::info!(%realm, %session, subject, plan, step, %call, ?how, name,
                    "call failed");
            }
            Fact::AskOpened(ask) => {
                count(&counters.asks_opened);
                let step = &ask.step;
                let kind = ask.body.kind();
                tracing::info!(%realm, %session, subject, plan, %step, ask = %ask.id, kind,
                    "ask opened");
            }
            Fact::AskDecided { ask, decision } => {
                count(&counters.asks_decided);
                let by = &decision.by;
                tracing::info!(%realm, %session, subject, plan, %ask, %by, "ask decided");
            }
            Fact::RunClaimed { run, attempt, .. } => {
                count(&counters.recoveries);
                tracing::info!(%realm, %session, subject, plan, %run, attempt, "run claimed");
            }
            _ => self.note_turn(fact),
        }
    }

    /// For whom the latest run acts.
    pub(super) fn subject(&self) -> Option<&str> {
        let run = self.session.as_ref().and_then(|session| session.latest_run());
        run.map(|run| &**run.subject())
    }

    /// The step of the newest finished call.
    fn last_step(&self) -> Option<&str> {
        self.history.last().map(|row| row.step.as_str())
    }

    fn step_of(&self, call: CallId) -> Option<&str> {
        self.open_call(call).map(|open| open.request.step.as_str())
    }
}

/// Whether a caller may not make a call: policy says so, or its tool is not there for the caller.
fn is_denial(judgement: &Judgement) -> bool {
    match judgement {
        Judgement::Refused(fault) => fault.name == TOOL_NOT_FOUND,
        Judgement::Admitted { verdict, .. } => matches!(verdict, Verdict::Deny(_)),
    }
}

/// A stored value that cannot be read back.
pub(super) fn unreadable(what: &str) -> Refusal {
    Refusal::new(RefusalCode::Unreadable, format!("{what} cannot be read"))
        .hint("look at the server's log; the data folder may be damaged")
}
