//! Applies facts of calls of an agent's turn: a frame for each, and one result that settles it.

use super::frame::AgentPhase;
use super::{CallState, FrameKind, FrameState, Session};
use crate::ask::{AskBody, AskedCall};
use crate::conversation::talk::{CallGuard, CallLine, CallSettlement};
use crate::event::{CallRequest, TurnEnd};
use crate::tool::call::{CallProgress, Judgement, Verdict};
use crate::values::datum::{Datum, Origin};
use crate::values::history::ForkMode;
use crate::values::ids::{CallId, FrameId, StepId};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Session {
    /// A frame for each call that goes out.
    pub(super) fn open_calls(&mut self, end: &TurnEnd, step: Option<&StepId>) {
        for made in &end.calls {
            let mut index = 0;
            self.with_agent(end.frame, |agent| {
                index = agent.calls;
                agent.calls += 1;
            });
            let (Some(child), Some(tool)) = (made.frame, &made.tool) else { continue };
            let kind = FrameKind::Call {
                index,
                tool: tool.clone(),
                arguments: made.arguments.clone(),
                approve: made.approve,
            };
            self.add_child(end.frame, child, kind, ForkMode::Apart);
            self.enter(child, step.cloned());
        }
    }

    pub(super) fn give_results(
        &mut self,
        frame: FrameId,
        results: &BTreeMap<CallId, CallSettlement>,
    ) {
        for (call, settled) in results {
            let child = self.turn_calls(frame).iter().find(|line| line.call == *call);
            match child.and_then(|line| line.frame) {
                Some(child) => self.settle_call(child, settled.clone()),
                None => self.settle_line(frame, *call, settled),
            }
        }
        if self.asked_of(frame).is_some_and(|kind| kind == "clarify") {
            self.forget_ask_of(frame);
            self.with_frame(frame, |frame| frame.state = FrameState::Agent);
        }
        self.close_approval(frame);
        self.look_at_calls(frame);
    }

    fn settle_line(&mut self, frame: FrameId, call: CallId, settled: &CallSettlement) {
        self.with_agent(frame, |agent| {
            let line = agent.talk.last_calls_mut().iter_mut().find(|line| line.call == call);
            if let Some(line) = line.filter(|line| line.settled.is_none()) {
                line.settled = Some(settled.clone());
            }
        });
    }

    /// Ends the frame of a call: its one result is known.
    pub(super) fn settle_call(&mut self, child: FrameId, settled: CallSettlement) {
        self.forget_call_of(child);
        self.forget_ask_of(child);
        self.clear_ready(child);
        self.wake_above(child);
        let Some(frame) = self.frames.remove(&child) else { return };
        let Some(parent) = frame.parent else { return };
        let output = match (&settled, &frame.state) {
            (CallSettlement::Skipped(value), FrameState::Asking(ask)) => {
                Some(Arc::new(Datum::inline((**value).clone(), Origin::Reply(*ask))))
            }
            _ => frame.last_output.clone(),
        };
        self.with_frame(parent, |above| {
            frame.recent.iter().for_each(|entry| above.remember(entry.clone()));
            above.last_output = frame.last_output.clone().or(above.last_output.take());
            if let Some(agent) = &mut above.agent {
                agent.output = output.or(agent.output.take());
            }
        });
        self.with_line(parent, child, |line| {
            line.frame = None;
            line.settled = Some(settled);
        });
        self.close_approval(parent);
        self.look_at_calls(parent);
    }

    /// An agent's call is requested: with the model's arguments, or with a person's.
    pub(super) fn note_arguments(&mut self, request: &CallRequest) {
        let Some(frame) = self.frames.get(&request.frame) else { return };
        let (FrameKind::Call { arguments, .. }, Some(parent)) = (&frame.kind, frame.parent) else {
            return;
        };
        let edited = (*arguments != request.arguments).then(|| request.arguments.clone());
        self.with_line(parent, request.frame, |line| line.edited = edited);
    }

    /// Changes what the conversation of an agent says of a call of its last turn, by that call's
    /// frame.
    fn with_line(&mut self, agent: FrameId, child: FrameId, change: impl FnOnce(&mut CallLine)) {
        self.with_agent(agent, |agent| {
            let calls = agent.talk.last_calls_mut();
            if let Some(line) = calls.iter_mut().find(|line| line.frame == Some(child)) {
                change(line);
            }
        });
    }

    /// Whether this frame is one call of an agent's turn.
    pub(super) fn is_agents_call(&self, frame: FrameId) -> bool {
        let frame = self.frames.get(&frame);
        frame.is_some_and(|frame| matches!(frame.kind, FrameKind::Call { .. }))
    }

    /// The gate spoke about an agent's call: its agent decides what follows.
    pub(super) fn call_judged(&mut self, child: FrameId, judgement: &Judgement) {
        self.clear_ready(child);
        let Some(parent) = self.frames.get(&child).and_then(|frame| frame.parent) else { return };
        if let Judgement::Admitted { verdict: Verdict::Ask(_), .. } = judgement {
            self.with_line(parent, child, |line| line.guard = CallGuard::Approve);
        }
        self.look_at_calls(parent);
    }

    /// Whether the outcome of a call is for the model. A write of which no one knows whether it
    /// happened is for a person, also one that may be repeated under its key: the model would make
    /// a call with another. A command that failed is a person's too, however far it got.
    pub(super) fn is_for_the_model(&self, call: CallId, how: CallProgress) -> bool {
        let Some(open) = self.calls.get(&call) else { return false };
        let frame = open.request.frame;
        self.is_agents_call(frame)
            && !self.is_command(frame)
            && (how != CallProgress::Unknown || open.only_reads())
    }

    /// Whether this frame is a call that an agent in command mode made.
    fn is_command(&self, frame: FrameId) -> bool {
        let parent = self.frames.get(&frame).and_then(|frame| frame.parent);
        parent.and_then(|parent| self.agent(parent)).is_some_and(|agent| agent.commands)
    }

    /// An approval of which every call was started or settled has done its work.
    pub(super) fn close_approval(&mut self, frame: FrameId) {
        let state = self.frames.get(&frame).map(|frame| &frame.state);
        let Some(FrameState::Asking(ask)) = state else { return };
        let Some(open) = self.asks.get(ask).filter(|open| !open.is_open()) else { return };
        let AskBody::Approve { calls } = &open.ask.body else { return };
        let waits = |call: &AskedCall| {
            let open = self.calls.get(&call.call_id);
            open.is_some_and(|open| matches!(open.state, CallState::Judged(_)))
        };
        if calls.iter().any(waits) || self.agent(frame).is_none() {
            return;
        }
        self.forget_ask_of(frame);
        self.with_frame(frame, |frame| frame.state = FrameState::Agent);
        self.look_at_calls(frame);
    }

    /// An agent that waits for its calls is ready when it can do something about them, and only
    /// then: a run whose calls all wait for people must count as waiting.
    pub(super) fn look_at_calls(&mut self, frame: FrameId) {
        let Some(agent) = self.agent(frame) else { return };
        if agent.phase != AgentPhase::Calls {
            return;
        }
        let state = self.frames.get(&frame).map(|frame| &frame.state);
        match state {
            Some(FrameState::Agent) => {}
            _ => return,
        }
        if self.calls_can_go_on(frame) {
            self.set_ready(frame);
        } else {
            self.clear_ready(frame);
        }
    }

    fn calls_can_go_on(&self, frame: FrameId) -> bool {
        let open = || self.turn_calls(frame).iter().filter(|line| line.settled.is_none());
        if open().next().is_none() || open().any(|line| line.frame.is_none()) {
            return true;
        }
        let states = || open().map(|line| line.frame.and_then(|child| self.call_state(child)));
        let refused = |judgement: &Judgement| match judgement {
            Judgement::Refused(_) => true,
            Judgement::Admitted { verdict, .. } => matches!(verdict, Verdict::Deny(_)),
        };
        let is_refused =
            |state: Option<&CallState>| matches!(state, Some(CallState::Judged(j)) if refused(j));
        let judged = |state: Option<&CallState>| matches!(state, Some(CallState::Judged(_)));
        let unjudged =
            |state: Option<&CallState>| matches!(state, None | Some(CallState::Requested));
        states().any(is_refused) || (states().any(judged) && !states().any(unjudged))
    }

    /// The calls of a frame's last turn.
    pub fn turn_calls(&self, frame: FrameId) -> &[CallLine] {
        self.agent(frame).map_or(&[], |agent| agent.talk.last_calls())
    }

    fn call_state(&self, child: FrameId) -> Option<&CallState> {
        self.calls.get(&self.call_of(child)?).map(|open| &open.state)
    }

    fn asked_of(&self, frame: FrameId) -> Option<&'static str> {
        let FrameState::Asking(ask) = self.frames.get(&frame)?.state else { return None };
        self.asks.get(&ask).map(|open| open.ask.body.kind())
    }
}
