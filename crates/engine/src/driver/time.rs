//! What happens because time passed: asks expire, timers fire. A session that no one drives is
//! woken by recovery when its time comes; one that is being driven looks at the clock itself.

use super::state::{Alarm, Driver};
use crate::refusal::Result;

impl Driver {
    /// Records all that time has decided by now.
    pub(super) async fn keep_time(&mut self) -> Result<()> {
        let now = self.shared.clock.now();
        while let Some(fact) = self.session.as_ref().and_then(|session| session.due(now)) {
            self.record(fact).await?;
        }
        Ok(())
    }

    /// Sets the alarm to the session's next deadline.
    pub(super) fn set_alarm(&mut self) {
        let next = self.session.as_ref().and_then(|session| session.next_deadline());
        if self.alarm.as_ref().map(|alarm| alarm.at) != next {
            let clock = &self.shared.clock;
            self.alarm = next.map(|at| Alarm { at, rings: clock.sleep_until(at) });
        }
    }
}
