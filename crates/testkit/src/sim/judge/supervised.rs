//! What a journal tells of rules: that each acts on what it holds, not before its time, never more
//! often than it may, and repeats no write of unknown outcome; and that no correction begins twice.

use kernel::ask::held::{HeldBy, SUPERVISOR};
use kernel::ask::{Ask, AskBody, Decision, FixAction, Reply};
use kernel::event::{CorrectionEntry, Event, Fact};
use kernel::session::{FrameState, OpenCall, Session};
use kernel::values::ids::AskId;
use std::collections::BTreeSet;

/// What a journal told of rules so far.
#[derive(Debug, Default)]
pub struct Supervised {
    /// The asks whose corrections began.
    entered: BTreeSet<AskId>,
}

impl Supervised {
    /// What is wrong with an event, seen with the session before it.
    pub fn event(&mut self, event: &Event, session: &Session) -> Vec<String> {
        match &event.fact {
            Fact::AskOpened(ask) => ask.held.iter().filter_map(|held| used_up(ask, held)).collect(),
            Fact::AskDecided { ask, decision } if *decision.by == *SUPERVISOR => {
                let open = session.asks.get(ask);
                open.map_or_else(Vec::new, |open| acted(&open.ask, decision, session))
            }
            Fact::CorrectionEntered(entry) => self.entered(entry, session),
            _ => Vec::new(),
        }
    }

    fn entered(&mut self, entry: &CorrectionEntry, session: &Session) -> Vec<String> {
        let frame = session.frames.get(&entry.frame).map(|frame| &frame.state);
        let is_chosen = matches!(frame, Some(FrameState::Asking(ask)) if *ask == entry.ask);
        let unchosen = || format!("a correction begins that ask {} did not choose", entry.ask);
        let twice = || format!("the correction of ask {} runs twice", entry.ask);
        let is_first = self.entered.insert(entry.ask);
        let wrong = [(!is_chosen).then(unchosen), (!is_first).then(twice)];
        wrong.into_iter().flatten().collect()
    }
}

/// A rule that holds an ask more often than it may.
fn used_up(ask: &Ask, held: &HeldBy) -> Option<String> {
    let before = ask.tried.iter().find(|tried| tried.rule == held.rule);
    let before = before.map_or(0, |tried| tried.times);
    // A try that was refused unsent is made again.
    let again = matches!(&ask.body, AskBody::Fix { fault, .. } if fault.refused_ms.is_some());
    let next = if again { before.max(1) } else { before + 1 };
    let fits = held.try_no == next && held.try_no <= held.of;
    (!fits).then(|| format!("rule `{}` holds ask {} after {before} tries", held.rule, ask.id))
}

/// What is wrong with what a rule did.
fn acted(ask: &Ask, decision: &Decision, session: &Session) -> Vec<String> {
    let mut wrong = Vec::new();
    if ask.held.as_ref().is_none_or(|held| held.until > decision.at) {
        wrong.push(format!("a rule acts on ask {} before its time", ask.id));
    }
    let repeats =
        matches!(decision.reply, Reply::Fix { action: FixAction::Retry | FixAction::Edit, .. });
    let call = match &ask.body {
        AskBody::Fix { call, .. } => call.as_ref().and_then(|it| session.calls.get(&it.call_id)),
        _ => None,
    };
    if repeats && call.is_some_and(OpenCall::must_be_known) {
        wrong.push(format!("a rule repeats the write of ask {}, of unknown outcome", ask.id));
    }
    wrong
}
