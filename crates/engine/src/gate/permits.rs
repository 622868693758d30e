//! Concurrency permits of a call: one of its caller and realm, one of its tool, and one of the
//! whole server.

use super::start_error::{StartError, crowded, over_share, stopping};
use super::{Gate, OutgoingCall};
use crate::catalog::registry::ListedTool;
use crate::shares::Share;
use crate::system::clock::timeout;
use kernel::tool::call::Caller;
use tokio::sync::OwnedSemaphorePermit;

/// The places of one call.
pub(super) struct CallPermits {
    /// Among the calls of its caller and realm.
    _share: Share,
    /// Among the calls of its tool, if they are counted.
    _own: Option<OwnedSemaphorePermit>,
    /// Among all calls.
    _shared: OwnedSemaphorePermit,
}

impl Gate {
    /// The places of a call, if they are free: most often they are, and that needs no timer.
    pub(super) fn try_permits(&self, caller: &Caller, listed: &ListedTool) -> Option<CallPermits> {
        let share = self.call_shares.try_take(caller).ok()?;
        let own = match &listed.permits {
            Some(permits) => Some(permits.clone().try_acquire_owned().ok()?),
            None => None,
        };
        let shared = self.calls.clone().try_acquire_owned().ok()?;
        Some(CallPermits { _share: share, _own: own, _shared: shared })
    }

    /// Waits for the places of a call. The one among the calls of its caller comes first: who has
    /// many must not keep the places of a tool from others. Then the one among the calls of its
    /// tool: a call that waits for that must not keep other tools from running. It is waited for as
    /// long as a call may take; the call itself has its whole time after that, for one that is cut
    /// short may have happened.
    pub(super) async fn await_permits(
        &self,
        call: &OutgoingCall,
        listed: &ListedTool,
        timeout_ms: u64,
    ) -> Result<CallPermits, StartError> {
        let share = self.await_share(call, timeout_ms).await?;
        let own = match &listed.permits {
            Some(permits) => {
                let waiting = permits.clone().acquire_owned();
                match timeout(self.clock.as_ref(), timeout_ms, waiting).await {
                    Some(permit) => Some(permit.map_err(|_| stopping())?),
                    None => return Err(crowded(listed, timeout_ms)),
                }
            }
            None => None,
        };
        let shared = self.calls.clone().acquire_owned().await.map_err(|_| stopping())?;
        Ok(CallPermits { _share: share, _own: own, _shared: shared })
    }

    /// Waits for the share of a caller. A run waits as long as it takes; who waits for the answer
    /// itself hears of it after the time of a call.
    async fn await_share(&self, call: &OutgoingCall, timeout_ms: u64) -> Result<Share, StartError> {
        let OutgoingCall { caller, context, .. } = call;
        let full = match self.call_shares.try_take(caller) {
            Ok(share) => return Ok(share),
            Err(full) => full,
        };
        if context.run.is_some() {
            return Ok(self.call_shares.take(caller).await);
        }
        let waiting = self.call_shares.take(caller);
        let taken = timeout(self.clock.as_ref(), timeout_ms, waiting).await;
        taken.ok_or_else(|| over_share(&full))
    }
}
