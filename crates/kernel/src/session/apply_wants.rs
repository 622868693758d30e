//! How a call comes to what it wants: it waits, is given one answer after the other, and goes out
//! again.

use super::{CallState, FrameState, Session, Wanting};
use crate::ask::{Ask, Reply};
use crate::call::{Given, Wants};
use crate::ids::CallId;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Session {
    /// The tool needs something first: nothing happened, and nothing is under way any more.
    pub(super) fn call_wants(&mut self, call: CallId, wants: Wants) {
        let Some(open) = self.calls.get_mut(&call) else { return };
        let was_in_flight = open.in_flight();
        open.state = CallState::Wanting(Box::new(Wanting { wants, given: BTreeMap::new() }));
        open.rounds += 1;
        let (run, frame) = (open.run, open.request.frame);
        self.with_run(run, |run| {
            run.in_flight = run.in_flight.saturating_sub(u32::from(was_in_flight));
            run.claims = 0;
        });
        self.set_ready(frame);
        // Whoever waited for a write below need not wait for this one.
        self.wake_above(frame);
    }

    /// Hands what came of an ask to the call that wants it; the ask has done its work then.
    pub(super) fn give(&mut self, ask: &Ask, reply: Option<&Reply>) {
        let Some(wanted) = &ask.wanted else { return };
        let call = wanted.call.call_id;
        let state = self.calls.get_mut(&call).map(|open| &mut open.state);
        let Some(CallState::Wanting(wanting)) = state else { return };
        wanting.given.insert(wanted.key.clone(), answer(reply));
        self.asks.remove(&ask.id);
        self.with_frame(ask.frame, |frame| frame.state = FrameState::Calling(call));
    }

    /// It has all that it wanted and is sent again.
    pub(super) fn resume_call(&mut self, call: CallId, given: &Arc<Given>) {
        let Some(open) = self.calls.get_mut(&call) else { return };
        open.goes_on = open.is_elsewhere();
        open.state = CallState::Started;
        open.given = given.clone();
        let (run, frame) = (open.run, open.request.frame);
        self.with_run(run, |run| run.in_flight += 1);
        self.clear_ready(frame);
    }
}

/// What came of an ask, as its tool is told.
fn answer(reply: Option<&Reply>) -> Value {
    match reply {
        Some(Reply::Fill { content: Some(content) }) => {
            json!({"action": "accept", "content": content})
        }
        Some(Reply::Authorize { done: true }) => json!({"action": "accept"}),
        Some(
            Reply::Fill { content: None }
            | Reply::Authorize { done: false }
            | Reply::Clarify { .. }
            | Reply::Approve { .. }
            | Reply::Fix { .. },
        ) => json!({"action": "decline"}),
        // Nobody answered in time.
        None => json!({"action": "cancel"}),
    }
}
