//! Fires rules and timers in a scene when nothing else can happen.

use super::stage::Stage;
use kernel::event::Fact;

impl Stage {
    /// The nearest rule acts that holds an ask.
    pub(super) fn act_one(&mut self) -> bool {
        let due = self.session.next_act().and_then(|at| self.session.due(at));
        let Some(fact) = due else { return false };
        self.record(fact);
        true
    }

    /// The nearest timer fires.
    pub(super) fn fire_one(&mut self) -> bool {
        let nearest = self.session.timers.iter().min_by_key(|(_, at)| **at);
        let Some(timer) = nearest.map(|(timer, _)| timer.clone()) else { return self.time_out() };
        self.record(Fact::TimerFired { timer });
        true
    }

    /// A correction that nothing happens in takes too long.
    fn time_out(&mut self) -> bool {
        let due = self.session.next_deadline().and_then(|at| self.session.due(at));
        let Some(fact @ Fact::ItemFailing { .. }) = due else { return false };
        self.record(fact);
        true
    }
}
