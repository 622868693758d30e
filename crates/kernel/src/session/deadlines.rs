//! Deadlines of a session: when it must be driven next, and which fact is due when a deadline has
//! passed: an ask expires, a rule acts, a correction takes too long, a timer fires.

use super::{Frame, OpenAsk, Phase, Session};
use crate::ask::remedy::{RuleHold, SUPERVISOR};
use crate::ask::{Ask, Decision};
use crate::event::Fact;
use crate::planted::{Switch, began_after, early_ms, is_on};
use crate::values::fault::Fault;
use crate::values::ids::{FrameId, Millis, RunId};

impl Session {
    /// When it must be driven next: now, at its next deadline, or (`None`) when a request comes.
    pub fn wake_at(&self, now: Millis) -> Option<Millis> {
        match self.phase() {
            Phase::Moving => Some(now),
            Phase::Waiting | Phase::Stuck | Phase::Done => self.next_deadline(),
        }
    }

    /// The earliest of its timers, of the expiry of its open asks, and of the times at which rules
    /// act.
    pub fn next_deadline(&self) -> Option<Millis> {
        let asks = self.asks.values().filter(|open| open.is_open());
        let ends = asks.filter_map(|open| open.ask.expires_at);
        let corrections = self.corrections().map(|(_, ends_at)| ends_at);
        let acts = self.next_act().filter(|_| !is_on(Switch::BackoffForgotten));
        let others = ends.chain(acts).chain(corrections);
        self.running_timers().map(|(_, at)| at).chain(others).min()
    }

    /// The timers, each with the time at which it fires in this process.
    fn running_timers(&self) -> impl Iterator<Item = (&String, Millis)> {
        self.timers.iter().map(|(timer, at)| (timer, *self.postponed.get(timer).unwrap_or(at)))
    }

    /// Postpones a timer in this process only: no event records it, so a restart uses the recorded
    /// time.
    pub fn postpone(&mut self, timer: &str, at: Millis) {
        self.postponed.insert(timer.to_owned(), at);
    }

    /// The active corrections, each with its deadline.
    fn corrections(&self) -> impl Iterator<Item = (FrameId, Millis)> {
        let works = |frame: &&Frame| frame.failing.is_none() && frame.answer.is_none();
        let all = self.frames.values().filter(works);
        all.filter_map(|frame| Some((frame.id, frame.corrects?)))
    }

    /// The earliest time at which a rule that holds an ask acts.
    pub fn next_act(&self) -> Option<Millis> {
        self.held_asks().map(|(ask, held)| acts_at(ask, held)).min()
    }

    /// Asks that a rule holds and may act on. The rules of a paused run wait.
    fn held_asks(&self) -> impl Iterator<Item = (&Ask, &RuleHold)> {
        let moves = |ask: &Ask| {
            self.runs.get(&ask.run).is_some_and(|run| !run.paused && run.closing.is_none())
        };
        let open = self.asks.values().filter(|open| open.is_open()).map(|open| &open.ask);
        open.filter(move |ask| moves(ask)).filter_map(|ask| Some((ask, ask.held.as_ref()?)))
    }

    /// Whether rules hold all open asks of the run, so that it continues without a person.
    pub fn is_held(&self, run: RunId) -> bool {
        let mut asks = self.open_asks(run).peekable();
        asks.peek().is_some() && asks.all(|ask| ask.held.is_some())
    }

    /// The first fact that is due by now: an expired ask, a rule that acts, a correction that took
    /// too long, or a timer.
    pub fn due(&self, now: Millis) -> Option<Fact> {
        let is_due =
            |open: &&OpenAsk| open.is_open() && open.ask.expires_at.is_some_and(|end| end <= now);
        if let Some(open) = self.asks.values().find(is_due) {
            return Some(Fact::AskExpired { ask: open.ask.id });
        }
        let by = now.plus_ms(early_ms());
        let acts = |(ask, held): &(&Ask, &RuleHold)| acts_at(ask, held) <= by;
        if let Some((ask, held)) = self.held_asks().find(acts) {
            let decision = Decision::new(SUPERVISOR, now, held.reply());
            return Some(Fact::AskDecided { ask: ask.id, decision: Box::new(decision) });
        }
        if let Some((frame, _)) = self.corrections().find(|(_, ends_at)| *ends_at <= now) {
            let message = "the correction took too long";
            let fault = Fault::new("CorrectionTimeout", message)
                .hint("`correction_ms_max` in [limits] says how long one may take");
            return Some(Fact::ItemFailing { frame, fault });
        }
        let (timer, _) = self.running_timers().find(|(_, at)| *at <= now)?;
        Some(Fact::TimerFired { timer: timer.clone() })
    }
}

/// When the rule that holds an ask acts: the recorded time, also after a restart.
fn acts_at(ask: &Ask, held: &RuleHold) -> Millis {
    let began_ms = began_after(ask.created_at.0).filter(|_| is_on(Switch::BackoffRepeated));
    began_ms.map_or(held.until, |began_ms| Millis(began_ms + held.until.0 - ask.created_at.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::ids::{SessionId, SessionKey, Space};

    #[test]
    fn a_timer_is_postponed_in_this_process_alone() {
        let mut session = Session::new(SessionId(1), SessionKey::new("r", Space::session(), "s"));
        session.timers.insert("t".to_owned(), Millis(10));
        session.postpone("t", Millis(50));
        assert_eq!((session.next_deadline(), session.due(Millis(49))), (Some(Millis(50)), None));
        let fired = Fact::TimerFired { timer: "t".to_owned() };
        assert_eq!(session.due(Millis(50)), Some(fired.clone()));
        let stored = session.to_snapshot().ok().and_then(|text| Session::from_snapshot(&text));
        let stored = stored.unwrap();
        assert_eq!(
            (stored.next_deadline(), stored.due(Millis(10))),
            (Some(Millis(10)), Some(fired))
        );
    }
}
