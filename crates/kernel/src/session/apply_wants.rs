//! Applies facts of input that a call requires: it waits, is given one answer after the other, and
//! goes out again. A call that requires login pages may also be polled: it goes out beside its open
//! ask.

use super::{CallState, FrameState, PendingInput, Session};
use crate::ask::form_defaults::with_defaults;
use crate::ask::{Ask, AskBody, Reply};
use crate::tool::call::{InputRequest, InputRequired, InputResponses};
use crate::values::ids::{AskId, CallId};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Prefix of the timers of login polls.
const LOGIN_TIMER: &str = "login:";

/// The timer of a look at whether what this ask wants opened is done.
pub fn login_timer(ask: AskId, look: u32) -> String {
    format!("{LOGIN_TIMER}{ask}:{look}")
}

/// The ask and the number of the look that a timer is for, if it is such a timer.
pub fn login_look(timer: &str) -> Option<(AskId, u32)> {
    let (ask, look) = timer.strip_prefix(LOGIN_TIMER)?.split_once(':')?;
    Some((ask.parse().ok()?, look.parse().ok()?))
}

impl Session {
    /// The open ask by which someone is asked to open a page for this call.
    pub fn login_of(&self, call: CallId) -> Option<&Ask> {
        let frame = self.calls.get(&call)?.request.frame;
        let FrameState::Asking(ask) = &self.frames.get(&frame)?.state else { return None };
        let open = self.asks.get(ask).filter(|open| open.is_open())?;
        matches!(open.ask.body, AskBody::Authorize { .. }).then_some(&open.ask)
    }

    /// No one looks any more whether this is done.
    pub(super) fn end_looks(&mut self, ask: AskId) {
        self.timers.retain(|timer, _| login_look(timer).is_none_or(|(of, _)| of != ask));
        self.postponed.retain(|timer, _| self.timers.contains_key(timer));
    }

    /// The tool needs something first: nothing happened, and nothing is under way any more.
    pub(super) fn call_wants(&mut self, call: CallId, wants: InputRequired) {
        // A look found nothing new: the ask stays, and with it all that waits for its answer.
        let still_asked = self.login_of(call).is_some();
        let Some(open) = self.calls.get_mut(&call) else { return };
        let was_in_flight = open.in_flight();
        let asked: BTreeSet<String> = wants.inputs.keys().cloned().collect();
        // It got some of it and wants the rest: that ends by itself, so it is no further round.
        let is_rest = !asked.is_empty() && asked.len() < open.asked.len();
        let is_rest = is_rest && asked.is_subset(&open.asked);
        open.asked = asked;
        open.state = CallState::Wanting(Box::new(PendingInput { wants, given: BTreeMap::new() }));
        open.rounds += u32::from(!still_asked && !is_rest);
        let run = open.run;
        let frame = open.request.frame;
        self.with_run(run, |run| {
            run.in_flight = run.in_flight.saturating_sub(u32::from(was_in_flight));
            run.progressed();
        });
        if !still_asked {
            self.set_ready(frame);
        }
        // A frame that waited for a write below need not wait for this one.
        self.wake_above(frame);
    }

    /// Hands the outcome of an ask to the call that wants it; the ask has done its work then.
    pub(super) fn give(&mut self, ask: &Ask, reply: Option<&Reply>) {
        let Some(wanted) = &ask.wanted else { return };
        let call = wanted.call.call_id;
        let Some(open) = self.calls.get_mut(&call) else { return };
        // One that is out for a look needs no answer any more: what comes back counts.
        if let CallState::Wanting(wanting) = &mut open.state {
            let answer = answer_to(wanting.wants.inputs.get(&wanted.key), reply);
            wanting.given.insert(wanted.key.clone(), answer);
        }
        self.asks.remove(&ask.id);
        self.with_frame(ask.frame, |frame| frame.state = FrameState::Calling(call));
    }

    /// It has all that it wanted and is sent again; or it needs none of that any more, and is sent
    /// with its state alone to learn what became of it.
    pub(super) fn resume_call(&mut self, call: CallId, given: &Arc<InputResponses>) {
        let Some(open) = self.calls.get_mut(&call) else { return };
        let only_looks = given.inputs.is_empty() && given.refused.is_empty();
        open.goes_on = open.is_elsewhere() || (only_looks && !given.state.is_null());
        open.state = CallState::Started;
        open.given = given.clone();
        let run = open.run;
        let frame = open.request.frame;
        self.with_run(run, |run| run.in_flight += 1);
        self.clear_ready(frame);
    }
}

/// The outcome of an ask for this, as its tool receives it.
pub fn answer_to(want: Option<&InputRequest>, reply: Option<&Reply>) -> Value {
    match reply {
        // In the place of the caller's program: what that would have answered.
        Some(Reply::Fill { content: Some(content) })
            if want.is_some_and(InputRequest::is_for_a_program) =>
        {
            content.clone()
        }
        Some(Reply::Fill { content: Some(content) }) => {
            let content = match want {
                Some(want) => with_defaults(content.clone(), want),
                None => content.clone(),
            };
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
        // No one answered in time.
        None => json!({"action": "cancel"}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_gets_defaults_for_fields_that_a_person_left_out() {
        let schema = json!({"type": "object", "properties": {
            "name": {"type": "string"}, "age": {"type": "integer", "default": 30}}});
        let form = InputRequest::Form { message: "m".to_owned(), schema: Arc::new(schema) };
        let reply = |content: Option<Value>| Reply::Fill { content };
        let given = answer_to(Some(&form), Some(&reply(Some(json!({"name": "Ann"})))));
        assert_eq!(given, json!({"action": "accept", "content": {"name": "Ann", "age": 30}}));
        assert_eq!(answer_to(Some(&form), Some(&reply(None))), json!({"action": "decline"}));
        assert_eq!(answer_to(Some(&form), None), json!({"action": "cancel"}));
        let folders = json!({"roots": []});
        assert_eq!(
            answer_to(Some(&InputRequest::Roots), Some(&reply(Some(folders.clone())))),
            folders
        );
    }
}
