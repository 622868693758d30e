//! The supervisor: it answers `Fix` asks for the rules that hold them. Which rule acts, and when,
//! is in the ask, and `Session::due` gives its reply once the time has come. So it keeps no list of
//! its own: the store has the sessions by their next time, recovery wakes those that no one drives,
//! and a driver that is there looks at the clock itself. Its reply is recorded like any other, in
//! one append that counts only if the ask is still open.

use super::state::Driver;
use kernel::ask::remedy::SUPERVISOR;
use kernel::event::Fact;
use kernel::session::Session;

impl Driver {
    /// Whether a rule acts before recovery would look again: then the session is not put away for
    /// so short a time, and the rule is not late.
    pub(super) fn acts_soon(&self) -> bool {
        let Some(act) = self.session.as_ref().and_then(Session::next_act) else { return false };
        act <= self.shared.clock.now().plus_ms(self.shared.limits.recover_interval_ms)
    }

    /// Logs what a rule does.
    pub(super) fn log_act(&self, fact: &Fact) {
        let Fact::AskDecided { ask, decision } = fact else { return };
        let open = self.session.as_ref().and_then(|session| session.asks.get(ask));
        let held = open.and_then(|open| open.ask.held.as_ref());
        if let Some(held) = held.filter(|_| *decision.by == *SUPERVISOR) {
            tracing::info!(realm = %self.key.realm, session = %self.key.id, ask = %ask,
                rule = &*held.rule, does = held.does.name(), "a rule acts on a failed step");
        }
    }
}
