//! Clients that compete with rules: they answer an ask at the moment when its rule acts, freely or
//! with the rule's own answer. A second supervisor is in `world`.

use crate::sim::people::clients::{Clients, locked};
use crate::sim::people::replies::reply_to;
use kernel::ask::{Ask, Reply};
use kernel::contracts::SessionAsk;

/// How long a rival waits for a rule at most.
const RIVAL_WAITS_MS: u64 = 8_000;

impl Clients {
    /// An ask that a rule holds, in the moment in which the rule acts; now and then.
    pub(in crate::sim) async fn held_ask(&self) -> Option<SessionAsk> {
        if !self.heals || self.below(2) == 0 {
            return None;
        }
        let mut open = self.open_asks().await;
        open.retain(|ask| ask.row.ask.held.is_some());
        let ask = locked(&self.rng).pick(&open).cloned()?;
        let until = ask.row.ask.held.as_ref()?.until;
        let latest = self.executor.now().plus_ms(RIVAL_WAITS_MS);
        self.executor.sleep_until(until.min(latest)).await;
        Some(ask)
    }

    /// What a client says: often what the rule would say that holds the ask.
    pub(in crate::sim) fn reply_to(&self, ask: &Ask) -> Reply {
        let mut rng = locked(&self.rng);
        match &ask.held {
            Some(held) if self.heals && rng.chance(40) => held.reply(),
            _ => reply_to(ask, &mut rng),
        }
    }
}
