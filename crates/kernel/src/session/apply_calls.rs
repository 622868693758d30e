//! Applies facts of calls: requested, judged, started, settled.

use super::{CallState, FrameKind, FrameState, OpenCall, Session};
use crate::conversation::talk::CallSettlement;
use crate::event::{CallRequest, Event, Fact};
use crate::planted::{Switch, is_on};
use crate::tool::call::{CallProgress, InputRequired, Judgement};
use crate::values::datum::{Datum, DatumValue, Origin};
use crate::values::fault::Fault;
use crate::values::history::{Entry, EntryResult, HistoryRow};
use crate::values::ids::{CallId, FrameId, Millis};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Session {
    pub(super) fn apply_call(&mut self, event: &Event) -> Option<HistoryRow> {
        match &event.fact {
            Fact::CallRequested(request) => self.request_call(request, event.seq),
            Fact::CallJudged { call, judgement } => {
                let open = self.calls.get_mut(call)?;
                if let Judgement::Admitted { pins, .. } = judgement {
                    open.pins = Some(pins.clone());
                }
                let was_in_flight = open.in_flight();
                open.state = CallState::Judged(judgement.clone());
                let run = open.run;
                let frame = open.request.frame;
                self.with_run(run, |run| {
                    run.in_flight = run.in_flight.saturating_sub(u32::from(was_in_flight))
                });
                match self.is_agents_call(frame) {
                    true => self.call_judged(frame, judgement),
                    false => self.set_ready(frame),
                }
            }
            Fact::CallStarted { call, grant } => {
                let open = self.calls.get_mut(call)?;
                open.state = CallState::Started;
                open.started_at = Some(event.at);
                if is_on(Switch::ApprovalUsedTwice) {
                    open.request.grant = *grant;
                }
                let run = open.run;
                let frame = open.request.frame;
                self.with_run(run, |run| run.in_flight += 1);
                self.clear_ready(frame);
                self.forget_ask_of(frame);
                self.with_frame(frame, |frame| frame.state = FrameState::Calling(*call));
                self.look_above_call(frame);
            }
            Fact::CallWants { call, inputs, state } => {
                let wants = InputRequired { inputs: inputs.clone(), state: state.clone() };
                self.call_wants(*call, wants);
            }
            Fact::CallResumed { call, given } => self.resume_call(*call, given),
            Fact::CallFinished { call, output, .. } => {
                let (open, row) = self.close_call(*call, event.seq, true)?;
                match self.is_agents_call(open.request.frame) {
                    true => self.keep_output(&open, output, event.seq, event.at),
                    false => self.save_output(&open, output, event.at),
                }
                return Some(row);
            }
            Fact::CallFailed { call, how, fault, .. } => {
                return self.fail_call(event, *call, *how, fault);
            }
            _ => {}
        }
        None
    }

    fn request_call(&mut self, request: &CallRequest, seq: u64) {
        let replaced = request.replaces.and_then(|replaced| self.calls.remove(&replaced));
        // The same id once more: its outcome when it was sent before is unknown, and stays so if
        // it does not go out now, or is not even admitted.
        let sent_before = request.replaces == Some(request.call);
        let pins = replaced.filter(|_| sent_before).and_then(|replaced| replaced.pins);
        self.forget_ask_of(request.frame);
        let Some(frame) = self.frames.get_mut(&request.frame) else { return };
        frame.state = FrameState::Calling(request.call);
        let run = frame.run;
        let open = OpenCall {
            request: request.clone(),
            run,
            requested_seq: seq,
            state: CallState::Requested,
            started_at: None,
            pins,
            given: Arc::default(),
            rounds: 0,
            asked: BTreeSet::new(),
            goes_on: false,
            sent_before,
        };
        self.calls.insert(request.call, open);
        self.with_run(run, |run| run.in_flight += 1);
        self.clear_ready(request.frame);
        self.note_arguments(request);
        self.look_above_call(request.frame);
    }

    /// Takes a call out of the open ones and gives its history row.
    fn close_call(
        &mut self,
        id: CallId,
        seq: u64,
        success: bool,
    ) -> Option<(OpenCall, HistoryRow)> {
        let open = self.calls.remove(&id)?;
        let was_in_flight = open.in_flight();
        self.with_run(open.run, |run| {
            run.in_flight = run.in_flight.saturating_sub(u32::from(was_in_flight));
            run.progressed();
        });
        let row = self.history_row(&open, seq, success)?;
        Some((open, row))
    }

    fn history_row(&self, open: &OpenCall, seq: u64, success: bool) -> Option<HistoryRow> {
        let frame = self.frames.get(&open.request.frame)?;
        let run = self.runs.get(&open.run)?;
        Some(HistoryRow {
            position: frame.path.position(run.no, frame.ordinal),
            run: open.run,
            step: open.request.step.clone(),
            tool: open.request.tool.clone(),
            success,
            requested_seq: open.requested_seq,
            finished_seq: seq,
        })
    }

    fn save_output(&mut self, open: &OpenCall, output: &Arc<Datum>, at: Millis) {
        let request = &open.request;
        self.forget_ask_of(request.frame);
        let from = Origin::Call(request.call);
        let inline = |value| Arc::new(Datum::inline(value, from.clone()));
        let execution = BTreeMap::from([
            ("toolId".to_owned(), inline(json!(request.tool))),
            ("timestamp".to_owned(), inline(json!(at.rfc3339()))),
            ("output".to_owned(), output.clone()),
        ]);
        let entry = entry(open, at, EntryResult::Output(output.clone()));
        self.with_frame(request.frame, |frame| {
            frame.context.insert(request.save_as.clone(), output.clone());
            let execution = Datum::joined(DatumValue::Object(execution));
            frame.context.insert("lastToolExecution".into(), Arc::new(execution));
            frame.last_output = Some(output.clone());
            frame.remember(entry);
        });
        self.enter(request.frame, request.next.clone());
    }

    /// An agent's call has its output: it is for the model, and stands in the journal.
    fn keep_output(&mut self, open: &OpenCall, output: &Arc<Datum>, seq: u64, at: Millis) {
        let frame = open.request.frame;
        let entry = entry(open, at, EntryResult::Output(output.clone()));
        self.with_frame(frame, |frame| {
            frame.last_output = Some(output.clone());
            frame.remember(entry);
        });
        self.settle_call(frame, CallSettlement::Output(seq));
    }

    /// A call of an agent's turn moved on: the approval that covers it may have done its work.
    fn look_above_call(&mut self, frame: FrameId) {
        let Some(of) = self.frames.get(&frame) else { return };
        if let (FrameKind::Call { .. }, Some(parent)) = (&of.kind, of.parent) {
            self.close_approval(parent);
            self.look_at_calls(parent);
        }
    }

    fn fail_call(
        &mut self,
        event: &Event,
        call: CallId,
        how: CallProgress,
        fault: &Fault,
    ) -> Option<HistoryRow> {
        let open = self.calls.get_mut(&call)?;
        let was_in_flight = open.in_flight();
        open.state = CallState::Failed(how, fault.clone());
        let open = open.clone();
        self.with_run(open.run, |run| {
            run.in_flight = run.in_flight.saturating_sub(u32::from(was_in_flight));
            // Giving up is no progress: a retry that fails gets the same warning again.
            if fault.name != Fault::RECOVERY_GAVE_UP {
                run.progressed();
            }
        });
        let entry = entry(&open, event.at, EntryResult::Error(fault.clone()));
        self.with_frame(open.request.frame, |frame| frame.remember(entry));
        let row = self.history_row(&open, event.seq, false);
        if self.is_for_the_model(call, how) {
            self.settle_call(open.request.frame, CallSettlement::Failed(fault.clone()));
            return row;
        }
        self.set_ready(open.request.frame);
        self.wake_above(open.request.frame);
        // A command that the gate refused: its agent has nothing to decide while a person looks.
        self.look_above_call(open.request.frame);
        row
    }
}

/// The entry of a call in the history.
fn entry(open: &OpenCall, at: Millis, result: EntryResult) -> Arc<Entry> {
    let CallRequest { call, step, tool, arguments, .. } = &open.request;
    Arc::new(Entry {
        at,
        step: step.clone(),
        call: *call,
        tool: tool.clone(),
        arguments: arguments.clone(),
        result,
    })
}
