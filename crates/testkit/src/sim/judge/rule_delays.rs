//! Checks that rules act in time. A rule that holds an ask says until when; from then on the
//! process may take no longer than it takes to look again. Only time counts in which the process
//! was up and the rule could act: while a run is paused, or is being closed, its rules wait too.

use kernel::ask::Ask;
use kernel::event::{Event, Fact};
use kernel::session::Session;
use kernel::values::ids::{AskId, Millis};
use std::collections::BTreeMap;

/// One life of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    pub began: Millis,
    /// When it ended; none for the life that is still running.
    pub ended: Option<Millis>,
}

impl Life {
    /// For how long a rule was due in it.
    fn due_ms(self, due: &Due) -> u64 {
        let end = self.ended.map_or(due.to, |ended| ended.min(due.to));
        let begin = self.began.max(due.from);
        u64::try_from(end.0 - begin.0).unwrap_or_default()
    }
}

/// When the process was up, and how late a rule may be then.
#[derive(Debug)]
pub struct RuleTiming<'t> {
    /// When the process was up.
    pub lives: &'t [Life],
    /// How late a rule may be in each of these lives: a process that ends takes its look at the
    /// clock with it, and the next one looks when it begins.
    pub late_ms_max: u64,
}

/// How late the rules of one session acted.
#[derive(Debug, Default)]
pub struct RuleDelays {
    /// The asks that rules can act on, each with the time from which they should.
    open: BTreeMap<AskId, Millis>,
    /// The asks that rules should have acted on for a while.
    over: Vec<Due>,
}

/// An ask that a rule should have acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Due {
    ask: AskId,
    from: Millis,
    /// Until it did, someone else did, or the rule could not any more.
    to: Millis,
}

impl RuleDelays {
    /// Takes in the next event, with the session as it is after it.
    pub fn event(&mut self, event: &Event, session: &Session) {
        if matches!(event.fact, Fact::SessionForked { .. }) {
            // What stands before this happened elsewhere; here it can be acted on from now on.
            *self = Self::default();
        }
        self.see(event.at, &can_act_on(session));
    }

    /// At this moment rules can act on these asks, each from its time on.
    fn see(&mut self, at: Millis, held: &BTreeMap<AskId, Millis>) {
        let over = &mut self.over;
        self.open.retain(|ask, from| {
            let is_held = held.contains_key(ask);
            if !is_held && *from < at {
                over.push(Due { ask: *ask, from: *from, to: at });
            }
            is_held
        });
        for (ask, until) in held {
            self.open.entry(*ask).or_insert_with(|| at.max(*until));
        }
    }

    /// The rules that were late.
    pub fn judge(&self, timing: &RuleTiming<'_>) -> Vec<String> {
        let mut wrong = Vec::new();
        for due in &self.over {
            let late_ms =
                timing.lives.iter().map(|life| life.due_ms(due)).max().unwrap_or_default();
            if late_ms > timing.late_ms_max {
                wrong.push(format!("the rule that holds ask {} is {late_ms} ms late", due.ask));
            }
        }
        wrong
    }
}

/// The asks of a session that rules can act on, each with the time that is on record for it.
fn can_act_on(session: &Session) -> BTreeMap<AskId, Millis> {
    let moves = |ask: &Ask| {
        let run = session.runs.get(&ask.run);
        run.is_some_and(|run| !run.paused && run.closing.is_none())
    };
    let open = session.asks.values().filter(|open| open.is_open()).map(|open| &open.ask);
    let held = open.filter(|ask| moves(ask));
    held.filter_map(|ask| Some((ask.id, ask.held.as_ref()?.until))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASK: AskId = AskId(1);

    fn held_until(until: i64) -> BTreeMap<AskId, Millis> {
        BTreeMap::from([(ASK, Millis(until))])
    }

    /// What is wrong with a rule that is to act at 1,000 and does so at `acted`.
    fn judged(acted: i64, lives: &[Life]) -> usize {
        let mut delays = RuleDelays::default();
        delays.see(Millis(400), &held_until(1_000));
        delays.see(Millis(acted), &BTreeMap::new());
        delays.judge(&RuleTiming { lives, late_ms_max: 100 }).len()
    }

    #[test]
    fn a_rule_is_late_by_the_time_in_which_its_process_was_up() {
        let up = Life { began: Millis(0), ended: None };
        assert_eq!([900, 1_000, 1_100].map(|acted| judged(acted, &[up])), [0, 0, 0]);
        assert_eq!(judged(1_101, &[up]), 1);
        let before = Life { began: Millis(0), ended: Some(Millis(1_080)) };
        let after = Life { began: Millis(5_000), ended: None };
        assert_eq!(judged(5_090, &[before, after]), 0, "in no life for longer than it may");
        assert_eq!(judged(5_101, &[before, after]), 1);
    }

    #[test]
    fn a_rule_that_could_not_act_is_not_late() {
        let lives = [Life { began: Millis(0), ended: None }];
        let mut delays = RuleDelays::default();
        delays.see(Millis(400), &held_until(1_000));
        // Someone pauses the run, and lets it continue much later.
        delays.see(Millis(900), &BTreeMap::new());
        delays.see(Millis(9_000), &held_until(1_000));
        delays.see(Millis(9_050), &BTreeMap::new());
        let timing = RuleTiming { lives: &lives, late_ms_max: 100 };
        assert_eq!(delays.judge(&timing), [""; 0]);
        delays.see(Millis(9_100), &held_until(1_000));
        delays.see(Millis(9_300), &BTreeMap::new());
        assert_eq!(delays.judge(&timing).len(), 1);
    }
}
