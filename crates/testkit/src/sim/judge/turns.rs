//! Turns of agents in a journal: who may be asked when, and how one approval of several calls
//! applies to each.

use kernel::ask::CallDecision;
use kernel::event::Fact;
use kernel::session::Session;
use kernel::values::ids::{CallId, FrameId};
use std::collections::BTreeMap;

/// The turns of a session that are under way: which, and which attempt, by the agent's frame.
#[derive(Debug, Default)]
pub struct Turns(BTreeMap<FrameId, (u32, u32)>);

impl Turns {
    /// What is wrong with the next fact, if it is one of an agent. The session is as it was before.
    pub fn event(&mut self, fact: &Fact, session: &Session) -> Option<String> {
        let open = |frame: FrameId| {
            let calls = session.turn_calls(frame).iter();
            calls.filter(|line| line.settled.is_none()).count()
        };
        match fact {
            Fact::TurnStarted(start) => {
                let now = (start.turn, start.attempt);
                let before = self.0.insert(start.frame, now);
                let open = open(start.frame);
                if open > 0 {
                    return Some(format!("turn {now:?} begins while {open} calls have no result"));
                }
                // One that is begun again is the same turn, tried once more.
                before
                    .filter(|(turn, attempt)| (*turn, attempt + 1) != now)
                    .map(|before| format!("turn {now:?} begins while {before:?} is under way"))
            }
            Fact::TurnFinished(end) => {
                let now = (end.turn, end.attempt);
                let begun = self.0.remove(&end.frame);
                (begun != Some(now)).then(|| format!("turn {now:?} ends, and {begun:?} began"))
            }
            Fact::TurnFailed { frame, .. } => {
                self.0.remove(frame);
                None
            }
            Fact::AgentAnswered { frame, stopped: None, .. } => {
                let open = open(*frame);
                (open > 0).then(|| format!("an agent answers while {open} calls have no result"))
            }
            // What was under way was so elsewhere.
            Fact::SessionForked { .. } => {
                self.0.clear();
                None
            }
            _ => None,
        }
    }
}

/// What was decided of a call, or of the one that it stands in for.
pub fn decision_on(
    decisions: &[CallDecision],
    call: CallId,
    replaced: impl Fn(CallId) -> Option<CallId>,
) -> Option<&CallDecision> {
    let mut named = Some(call);
    while let Some(id) = named {
        if let Some(decision) = decisions.iter().find(|decision| decision.call_id == id) {
            return Some(decision);
        }
        named = replaced(id);
    }
    None
}
