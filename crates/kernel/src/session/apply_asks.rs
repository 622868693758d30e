//! Applies facts of asks.

use super::usage::UsageGrant;
use super::{FrameState, OpenAsk, Session};
use crate::ask::{Ask, AskBody, Decision};
use crate::values::ids::AskId;

impl Session {
    pub(super) fn open_ask(&mut self, ask: &Ask) {
        let fix = match &ask.body {
            AskBody::Fix { fault, .. } => Some(fault.clone()),
            _ => None,
        };
        let open = OpenAsk { ask: ask.clone(), decision: None, expired: false };
        self.asks.insert(ask.id, open);
        self.with_frame(ask.frame, |frame| {
            frame.state = FrameState::Asking(ask.id);
            ask.held.iter().for_each(|held| frame.note_try(held));
        });
        self.clear_ready(ask.frame);
        self.stop_time(ask.frame, ask.created_at);
        self.with_run(ask.run, |run| {
            run.open_asks += 1;
            run.step = Some(ask.step.clone());
            if let Some(fault) = fix {
                run.open_fixes += 1;
                run.last_error = Some(fault);
            }
        });
    }

    pub(super) fn decide_ask(&mut self, id: AskId, decision: &Decision) {
        self.last_decided = Some((id, decision.clone()));
        let Some(open) = self.asks.get_mut(&id) else { return };
        open.decision = Some(decision.clone());
        let ask = open.ask.clone();
        self.count_closed(&ask);
        if decision.reply.changes() {
            self.with_run(ask.run, |run| {
                run.hands.insert(decision.by.clone());
                run.hands.extend(decision.actor.clone());
                run.lenders.extend(decision.makers.iter().cloned());
            });
        }
        self.start_time(ask.frame, decision.at);
        self.give(&ask, Some(&decision.reply));
        self.set_ready(ask.frame);
        self.wake_above(ask.frame);
    }

    pub(super) fn expire_ask(&mut self, id: AskId) {
        let Some(open) = self.asks.get_mut(&id) else { return };
        open.expired = true;
        let ask = open.ask.clone();
        self.count_closed(&ask);
        self.start_time(ask.frame, self.updated_at);
        self.give(&ask, None);
        self.set_ready(ask.frame);
    }

    pub(super) fn withdraw_ask(&mut self, id: AskId) {
        let Some(open) = self.asks.remove(&id) else { return };
        if open.is_open() {
            self.count_closed(&open.ask);
            self.start_time(open.ask.frame, self.updated_at);
        }
        // Where it asked for a limit of the run, no one is left whose reply would release it.
        self.release_run(open.ask.frame, UsageGrant::Nothing);
        let call = self.call_of(open.ask.frame);
        self.with_frame(open.ask.frame, |frame| {
            let before = match frame.agent {
                Some(_) => FrameState::Agent,
                None => FrameState::AtStep,
            };
            frame.state = call.map_or(before, FrameState::Calling);
        });
        // The one who withdraws continues with the frame in the next event; a journal that is cut
        // in between must not leave it waiting for no one.
        self.set_ready(open.ask.frame);
        self.wake_above(open.ask.frame);
    }

    fn count_closed(&mut self, ask: &Ask) {
        self.end_looks(ask.id);
        let fix = matches!(ask.body, AskBody::Fix { .. });
        self.with_run(ask.run, |run| {
            run.open_asks = run.open_asks.saturating_sub(1);
            run.open_fixes = run.open_fixes.saturating_sub(u32::from(fix));
            run.claims = 0;
            if fix && run.open_fixes == 0 {
                run.last_error = None;
            }
        });
    }
}
