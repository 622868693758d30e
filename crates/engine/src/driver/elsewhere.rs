//! What waits elsewhere for an answer, and may continue there without ours: someone else answered,
//! or it was cancelled or gave up. While an ask is open for it, its tool is asked now and then
//! whether it did, and nothing of that is recorded but the times. Once it did, the ask is withdrawn
//! and the call goes out again with its state, to learn the outcome. What continues elsewhere is
//! cancelled there as soon as its run is.

use super::login::{LOOKS_MAX, wait_ms};
use super::state::{Done, Driver};
use crate::refusal::Result;
use futures::FutureExt;
use futures::future::BoxFuture;
use kernel::event::{Fact, TimerStart};
use kernel::limits::Limits;
use kernel::session::{CallState, login_timer};
use kernel::tool::call::{Given, Wants};
use kernel::values::ids::{AskId, CallId};
use std::sync::Arc;

/// How often it is looked at what has waited for very long already.
const RARELY_MS: u64 = 300_000;

impl Driver {
    /// Looks whether this ask is still needed, and says when to look again. Number 0 is the moment
    /// at which someone is asked.
    pub(super) async fn look(&mut self, ask: AskId, look: u32) -> Result<()> {
        let Some(moving) = self.moving(ask) else { return self.look_at_login(ask, look).await };
        // A tool whose server is away for a while is asked the next time.
        let at = self.shared.clock.now().plus_ms(rarer_ms(&self.shared.limits, look));
        let timer = login_timer(ask, look.saturating_add(1));
        self.record(Fact::TimerSet(TimerStart { timer, at })).await?;
        if let Some(moving) = moving.filter(|_| look > 0) {
            self.in_flight.push(moving.map(move |moved| Done::Moved(ask, moved)).boxed());
        }
        Ok(())
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
    fn waiting_for(&self, ask: AskId) -> Option<(CallId, Wants)> {
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
        let given = Arc::new(Given { state: wants.state, ..Given::default() });
        self.record(Fact::CallResumed { call, given }).await
    }
}

/// How long to wait before the look after this one.
fn rarer_ms(limits: &Limits, look: u32) -> u64 {
    let often = wait_ms(limits, look);
    if look < LOOKS_MAX { often } else { often.max(RARELY_MS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_never_end_and_become_rare() {
        let limits =
            Limits { authorize_poll_ms: 2_000, authorize_poll_ms_max: 30_000, ..Limits::default() };
        let waits: Vec<u64> = [0, 4, 59, 60, u32::MAX].map(|look| rarer_ms(&limits, look)).into();
        assert_eq!(waits, [2_000, 30_000, 30_000, RARELY_MS, RARELY_MS]);
    }
}
