//! A keyed request: its key is written in the commit of what it does, and repeats are let go on
//! once that is durable.

use super::state::{Done, Driver};
use crate::idempotency::Claim;
use futures::FutureExt;
use kernel::journal::projection::{Append, OnceRow};
use kernel::values::ids::{AskId, RunId};

impl Driver {
    /// The next append writes this key down; call it right before what the key stands for is
    /// recorded.
    pub(super) fn keep_key(&mut self, claim: Option<Claim>, run: RunId, ask: Option<AskId>) {
        let Some(claim) = claim else { return };
        // One append holds one key.
        if self.new_key.is_some() {
            self.flush();
        }
        let row: OnceRow = claim.row(run, ask, self.shared.clock.now());
        self.new_key = Some((row, claim));
    }

    /// Gives the append its key.
    pub(super) fn with_key(&mut self, append: &mut Append) -> Option<Claim> {
        let (row, claim) = self.new_key.take()?;
        append.once = Some(row);
        Some(claim)
    }

    /// Holds the key until the append that was queued last is durable or refused.
    pub(super) fn let_key_go(&mut self, claim: Claim) {
        let Some(ticket) = self.ticket.clone() else { return };
        let kept = async move {
            let result = ticket.await;
            drop(claim);
            Done::Kept(result)
        };
        self.in_flight.push(kept.boxed());
    }
}
