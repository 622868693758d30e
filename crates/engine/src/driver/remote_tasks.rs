//! Asks of tasks on other servers. Such a task may continue without our answer: someone else
//! answered, or it was cancelled or gave up. So its tool is polled while the ask is open. Only the
//! time of the first poll is recorded: the next process begins with it, and the journal does not
//! grow while nothing changes. Once the task has moved, the ask is withdrawn and the call goes out
//! again with its state, to learn the outcome. When the run is cancelled, its remote tasks are
//! cancelled too.

use super::login::LOOKS_MAX;
use super::state::{Completion, Driver};
use crate::refusal::Result;
use futures::FutureExt;
use futures::future::BoxFuture;
use kernel::event::{Fact, TimerStart};
use kernel::limits::Limits;
use kernel::session::{CallState, login_look, login_timer};
use kernel::tool::call::{InputRequired, InputResponses};
use kernel::values::ids::{AskId, CallId, Millis};
use std::sync::Arc;

/// So many times rarer are looks at what has waited for very long already.
const RARER: u64 = 10;

impl Driver {
    /// Says when to look for the first time whether this ask is still needed. Number 0 is the
    /// moment at which someone is asked.
    pub(super) async fn look(&mut self, ask: AskId, look: u32) -> Result<()> {
        if self.moving(ask).is_none() {
            return self.look_at_login(ask, look).await;
        }
        let at = self.shared.clock.now().plus_ms(remote_look_delay_ms(&self.shared.limits, 0));
        let timer = login_timer(ask, look.saturating_add(1));
        self.record(Fact::TimerSet(TimerStart { timer, at })).await
    }

    /// Looks whether an ask is still needed, if that is what is due, and postpones the timer to the
    /// next look. Nothing of that is recorded. Says when it looked.
    pub(super) fn look_again(&mut self, due: &Fact) -> Option<Millis> {
        let Fact::TimerFired { timer } = due else { return None };
        let (ask, _) = login_look(timer)?;
        let moving = self.moving(ask)?;
        let now = self.shared.clock.now();
        let session = self.session.as_mut()?;
        let since = session.asks.get(&ask).map_or(now, |open| open.ask.created_at);
        let waited_ms = u64::try_from(now.0.saturating_sub(since.0)).unwrap_or_default();
        let delay_ms = match &moving {
            Some(_) => remote_look_delay_ms(&self.shared.limits, waited_ms),
            None => away_look_delay_ms(&self.shared.limits, waited_ms),
        };
        session.postpone(timer, now.plus_ms(delay_ms));
        // A tool whose server is away for a while is asked the next time.
        if let Some(moving) = moving {
            self.in_flight.push(moving.map(move |moved| Completion::Moved(ask, moved)).boxed());
        }
        Some(now)
    }

    /// The store learns when the session is to be driven next, where no append says so.
    pub(super) async fn keep_next_look(&mut self, now: Millis) -> Result<()> {
        let session = self.session.as_ref().filter(|_| self.pending.is_empty());
        match session.and_then(|session| session.wake_at(now)) {
            Some(at) => Ok(self.shared.store.postpone(&self.key, self.fence, at).await?),
            None => Ok(()),
        }
    }

    /// Says whether what this ask is about continued, if its tool can tell: then something, which
    /// is nothing inside while the tool is not there.
    fn moving(&self, ask: AskId) -> Option<Option<BoxFuture<'static, bool>>> {
        let (call, wants) = self.waiting_for(ask)?;
        let open = self.open_call(call)?;
        let run = self.session.as_ref()?.runs.get(&open.run)?;
        let caller = run.caller(&self.key.realm);
        match self.shared.gate.find(&caller, open.request.tool.as_str()) {
            Some(listed) => listed.tool.moved_on(&wants.state).map(Some),
            None => Some(None),
        }
    }

    /// Lets the tool of a call that continues elsewhere cancel it there: what comes of that is the
    /// outcome of the call, if it comes in time.
    pub(super) fn cancel_elsewhere(&self, call: CallId) {
        let Some(open) = self.open_call(call).filter(|open| !open.given.state.is_null()) else {
            return;
        };
        let run = self.session.as_ref().and_then(|session| session.runs.get(&open.run));
        let caller = run.map(|run| run.caller(&self.key.realm));
        let tool = open.request.tool.as_str();
        if let Some(listed) = caller.and_then(|caller| self.shared.gate.find(&caller, tool)) {
            listed.tool.cancel(&open.given.state);
        }
    }

    /// The call for which this ask is open, and what it wants, where it was given nothing yet.
    fn waiting_for(&self, ask: AskId) -> Option<(CallId, InputRequired)> {
        let session = self.session.as_ref()?;
        let asked = session.asks.get(&ask).filter(|open| open.is_open())?;
        let call = asked.ask.wanted.as_ref()?.call.call_id;
        let open = session.calls.get(&call)?;
        session.runs.get(&open.run).filter(|run| run.closing.is_none())?;
        let CallState::Wanting(wanting) = &open.state else { return None };
        wanting.given.is_empty().then(|| (call, wanting.wants.clone()))
    }

    /// Sends the call after what continued without an answer. A run that is paused sends nothing:
    /// the next look finds the same.
    pub(super) async fn go_after(&mut self, ask: AskId) -> Result<()> {
        let Some((call, wants)) = self.waiting_for(ask) else { return Ok(()) };
        let run = self.open_call(call).and_then(|open| self.session.as_ref()?.runs.get(&open.run));
        if run.is_none_or(|run| run.paused) {
            return Ok(());
        }
        // Both in one append: without its ask alone, the call would ask the same again.
        self.flush();
        self.record(Fact::AskWithdrawn { ask }).await?;
        let given = Arc::new(InputResponses { state: wants.state, ..InputResponses::default() });
        self.record(Fact::CallResumed { call, given }).await
    }
}

/// The same while the tool is not there, as at every start before its server is connected. What
/// waits may be a login that was just made, so the next look is never a rare one.
fn away_look_delay_ms(limits: &Limits, waited_ms: u64) -> u64 {
    remote_look_delay_ms(limits, waited_ms).min(limits.authorize_poll_ms_max.max(1))
}

/// How long to wait before the next look at what has waited for so long already: as long again, up
/// to a limit, and rarely once it waited for very long.
fn remote_look_delay_ms(limits: &Limits, waited_ms: u64) -> u64 {
    let Limits { authorize_poll_ms: first, authorize_poll_ms_max: max, .. } = *limits;
    if waited_ms >= max.saturating_mul(LOOKS_MAX.into()) {
        return max.saturating_mul(RARER).max(1);
    }
    waited_ms.max(first).min(max).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_task_polls_never_stop_and_become_rare() {
        let limits =
            Limits { authorize_poll_ms: 2_000, authorize_poll_ms_max: 30_000, ..Limits::default() };
        let waits = [0, 2_000, 9_000, 31_000, 1_799_999, 1_800_000, u64::MAX]
            .map(|waited_ms| remote_look_delay_ms(&limits, waited_ms));
        assert_eq!(waits, [2_000, 2_000, 9_000, 30_000, 30_000, 300_000, 300_000]);
        assert_eq!(away_look_delay_ms(&limits, u64::MAX), 30_000, "its server is back any moment");
        let never = Limits { authorize_poll_ms: 0, authorize_poll_ms_max: 0, ..limits };
        assert_eq!(
            [0, 9].map(|waited_ms| remote_look_delay_ms(&never, waited_ms)),
            [1, 1],
            "nothing spins"
        );
    }
}
