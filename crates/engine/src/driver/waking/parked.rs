//! Sessions that cannot be driven for now: what was recorded of them cannot be read, or reading it
//! panics. They are parked with the reason, and looked at again later, so that they keep no one
//! else from being recovered.

use crate::command::Command;
use crate::driver::state::{Driver, Waiter};
use crate::refusal::{Refusal, RefusalCode, Result};
use crate::shared::{Shared, lock};
use crate::system::panics::PanicMessage;
use kernel::ask::Decision;
use kernel::journal::projection::ParkedSession;
use kernel::values::ids::{AskId, RunId, SessionKey};

/// How long a session is parked at first: twice as long each time.
const PARK_MS: u64 = 1_000;
/// The longest that one is parked at once.
const PARK_MS_MAX: u64 = 60 * 60 * 1_000;
/// How many of them are remembered by this process; the others begin again.
const PARKED_MAX: usize = 4_096;
/// How much of the reason is kept.
const REASON_CHARS_MAX: usize = 500;

impl Shared {
    /// Leaves a session alone for a while, and says why where people look.
    pub(crate) async fn park(&self, key: &SessionKey, why: &str) {
        let times = {
            let mut parked = lock(&self.parked);
            if parked.len() >= PARKED_MAX && !parked.contains_key(key) {
                parked.clear();
            }
            let times = parked.entry(key.clone()).or_default();
            *times = times.saturating_add(1);
            *times
        };
        let wait_ms = PARK_MS.saturating_mul(1 << (times - 1).min(20)).min(PARK_MS_MAX);
        let until = self.clock.now().plus_ms(wait_ms);
        let reason = why.chars().take(REASON_CHARS_MAX).collect();
        tracing::warn!(realm = %key.realm, session = %key.id, why, wait_ms, "session parked");
        if let Err(error) = self.store.park(key, ParkedSession { reason, until }).await {
            tracing::warn!(realm = %key.realm, session = %key.id, %error,
                "a session could not be parked");
        }
    }

    /// The session was read: whatever kept us from it is gone.
    pub(crate) fn unpark(&self, key: &SessionKey) {
        let mut parked = lock(&self.parked);
        if !parked.is_empty() {
            parked.remove(key);
        }
    }
}

impl Driver {
    /// Counts a panic against the session that was worked on; whether there was one.
    pub(in crate::driver) fn accuse(&self, PanicMessage(said): &PanicMessage) -> bool {
        tracing::error!(realm = %self.key.realm, session = %self.key.id, panic = said,
            "the driver of a session panicked");
        let session = self.session.as_ref();
        session.inspect(|session| self.shared.suspects.add(session.id)).is_some()
    }

    /// Loads the session after a panic: what was under way is taken over. Those who wait for
    /// something that was not recorded yet are refused.
    pub(in crate::driver) async fn take_up_again(&mut self) -> Result<()> {
        self.obey(Command::Wake).await?;
        let lost = PanicMessage("the request was not recorded yet; nothing was done".to_owned());
        for waiter in std::mem::take(&mut self.waiters) {
            let reply = match &waiter {
                Waiter::Reply(_, ask, _) => Some((ask.row.ask.id, ask.row.decision.clone())),
                Waiter::Run(..) | Waiter::Task(..) => None,
            };
            if self.is_recorded(waiter.run(), reply).await? {
                self.waiters.push(waiter);
            } else {
                waiter.refuse(panicked_refusal(&lost));
            }
        }
        Ok(())
    }

    /// Whether a run is there and, for who replied to one of its asks, that very decision.
    async fn is_recorded(
        &mut self,
        run: RunId,
        reply: Option<(AskId, Option<Decision>)>,
    ) -> Result<bool> {
        let session = self.session.as_ref();
        let is_there = session.and_then(|session| session.run(run)).is_some();
        let (true, Some((ask, decision))) = (is_there, reply) else { return Ok(is_there) };
        let stored = self.shared.store.ask(&self.key.realm, ask).await?;
        Ok(stored.is_some_and(|stored| stored.row.decision == decision))
    }
}

/// The refusal for a caller whose answer was lost to a panic.
pub(in crate::driver) fn panicked_refusal(PanicMessage(said): &PanicMessage) -> Refusal {
    let message = format!("the session's driver panicked: {said}");
    Refusal::new(RefusalCode::DriverEnded, message)
        .hint("this is a defect: look at the server's log and report it")
}
