//! Logins that a thread waits for. While someone is asked to open a page for a call, that call is
//! sent again now and then, as if for the first time: once it wants the page no more, the run goes
//! on by itself. The ask stays open meanwhile, so no one is asked twice. The times are timers, so
//! that looking continues after a restart and costs nothing in between. Where the page's own server
//! says that it was opened, that is a look between two of them.

use super::state::Driver;
use crate::refusal::{Refusal, RefusalCode, Result};
use kernel::ask::{Ask, AskBody};
use kernel::event::{Closing, Fact, TimerStart};
use kernel::limits::Limits;
use kernel::session::{CallState, OpenCall, RunStatus, login_timer};
use kernel::tool::call::{
    CallProgress, InputRequest, InputRequired, InputResponses, ToolError, ToolOutput,
};
use kernel::values::ids::{AskId, CallId, RunId, Space};
use std::sync::Arc;

/// How often the driver checks whether a login is done; after that a person has to say so.
pub(super) const LOOKS_MAX: u32 = 60;

/// What a run waits for.
enum Wait {
    /// For logins, and for nothing else.
    Login,
    /// For the results of these checks.
    Look,
    /// For something else, or for nothing.
    Else,
}

impl Driver {
    /// Looks whether a login is done, and says when to look again. Number 0 is the moment at which
    /// someone is asked: then there is nothing to see yet.
    pub(super) async fn look_at_login(&mut self, ask: AskId, look: u32) -> Result<()> {
        let Some((call, wants)) = self.awaited(ask) else { return Ok(()) };
        if look < LOOKS_MAX {
            let at =
                self.shared.clock.now().plus_ms(login_look_delay_ms(&self.shared.limits, look));
            let timer = login_timer(ask, look + 1);
            self.record(Fact::TimerSet(TimerStart { timer, at })).await?;
        }
        let Some(wants) = wants else { return Ok(()) };
        self.expect_pages(ask, call, &wants);
        match look {
            0 => Ok(()),
            _ => self.send_for_a_look(call, wants).await,
        }
    }

    /// Looks at once. The times of the regular checks stay as they are.
    pub(super) async fn look_now(&mut self, ask: AskId) -> Result<()> {
        match self.awaited(ask) {
            Some((call, Some(wants))) => self.send_for_a_look(call, wants).await,
            _ => Ok(()),
        }
    }

    async fn send_for_a_look(&mut self, call: CallId, wants: InputRequired) -> Result<()> {
        self.looking.insert(call, wants);
        let given = Arc::new(InputResponses::default());
        self.record(Fact::CallResumed { call, given }).await
    }

    /// News that one of these pages was opened finds this session.
    fn expect_pages(&self, ask: AskId, call: CallId, wants: &InputRequired) {
        let Some(tool) = self.open_call(call).map(|open| &open.request.tool) else { return };
        if let Some(source) = self.shared.catalog.source(&self.key.realm, tool.as_str()) {
            self.shared.pages.await_opening(&source, wants.inputs.keys(), &self.key, ask);
        }
    }

    /// The call for which this open ask wants a page opened, and what it wants where it can be sent
    /// again now.
    fn awaited(&self, ask: AskId) -> Option<(CallId, Option<InputRequired>)> {
        if self.key.space != Space::thread() {
            return None;
        }
        let session = self.session.as_ref()?;
        let asked = session.asks.get(&ask).filter(|open| open.is_open())?;
        if !matches!(asked.ask.body, AskBody::Authorize { .. }) {
            return None;
        }
        let call = asked.ask.wanted.as_ref()?.call.call_id;
        let open = session.calls.get(&call)?;
        let run = session.runs.get(&open.run).filter(|run| run.closing.is_none())?;
        let CallState::Wanting(wanting) = &open.state else { return Some((call, None)) };
        let untouched = open.given.inputs.is_empty() && wanting.given.is_empty();
        if run.paused || !untouched || !only_pages(&wanting.wants) {
            return Some((call, None));
        }
        let caller = run.caller(&self.key.realm);
        let listed = self.shared.gate.find(&caller, open.request.tool.as_str());
        let can = listed.is_some_and(|listed| listed.tool.can_be_asked_anew(&wanting.wants.state));
        Some((call, can.then(|| wanting.wants.clone())))
    }

    /// The outcome of a call that was sent as a check. None where it still wants its pages: then
    /// all is as it was before. Else its ask has done its work, and the result counts.
    pub(super) async fn looked(
        &mut self,
        call: CallId,
        result: Result<ToolOutput, ToolError>,
    ) -> Result<Option<Result<ToolOutput, ToolError>>> {
        let before = self.looking.remove(&call);
        if self.session.as_ref().is_none_or(|session| session.login_of(call).is_none()) {
            return Ok(Some(result));
        }
        let still = match &result {
            // The page may be another one each time: a person who is asked keeps the one that they
            // have.
            Ok(ToolOutput::Wants(wants)) if only_pages(wants) => {
                Some(before.unwrap_or_else(|| (**wants).clone()))
            }
            // The check itself gave nothing.
            Err(error) if error.how == CallProgress::NotSent => before,
            Ok(_) | Err(_) => None,
        };
        if let Some(InputRequired { inputs, state }) = still {
            self.record(Fact::CallWants { call, inputs, state }).await?;
            return Ok(None);
        }
        self.withdraw_login(call).await?;
        Ok(Some(result))
    }

    /// Ends a run that waits for nothing but logins; the inner error says that it does not. Nothing
    /// is decided while one of them is checked: it may just be done.
    pub(super) async fn give_up_login(
        &mut self,
        run: RunId,
        by: Arc<str>,
    ) -> Result<Result<RunId>> {
        match self.wait_of(run) {
            Wait::Login => {
                self.record(Fact::RunClosing { run, why: Closing::Cancelled(by) }).await?;
                Ok(Ok(run))
            }
            Wait::Look => Ok(Ok(run)),
            Wait::Else => {
                self.durable().await?;
                let message = format!("run `{run}` waits for more than a login, or is over");
                Ok(Err(Refusal::new(RefusalCode::NoLogin, message)))
            }
        }
    }

    fn wait_of(&self, run: RunId) -> Wait {
        let Some(session) = &self.session else { return Wait::Else };
        let open = session.runs.get(&run).filter(|open| open.closing.is_none());
        let is_login = |ask: &Ask| matches!(ask.body, AskBody::Authorize { .. });
        let mut asks = session.open_asks(run).peekable();
        let Some(open) = open.filter(|_| asks.peek().is_some() && asks.all(is_login)) else {
            return Wait::Else;
        };
        let mut calls = session.calls.iter().filter(|(_, call)| call.run == run);
        let is_look =
            |(id, call): (&CallId, &OpenCall)| !call.in_flight() || self.looking.contains_key(id);
        let only_looks = open.ready == 0 && calls.all(is_look);
        match open.status() {
            RunStatus::Waiting => Wait::Login,
            RunStatus::Running if only_looks => Wait::Look,
            RunStatus::Running
            | RunStatus::Stuck
            | RunStatus::Paused
            | RunStatus::Completed
            | RunStatus::Failed
            | RunStatus::Cancelled => Wait::Else,
        }
    }

    /// No one need open a page for this call any more.
    pub(super) async fn withdraw_login(&mut self, call: CallId) -> Result<()> {
        let session = self.session.as_ref();
        let ask = session.and_then(|session| session.login_of(call)).map(|ask| ask.id);
        match ask {
            Some(ask) => self.record(Fact::AskWithdrawn { ask }).await,
            None => Ok(()),
        }
    }
}

fn only_pages(wants: &InputRequired) -> bool {
    wants.inputs.values().all(|want| matches!(want, InputRequest::Url { .. }))
}

/// How long to wait before the look after this one: twice as long each time.
fn login_look_delay_ms(limits: &Limits, look: u32) -> u64 {
    let doubled = limits.authorize_poll_ms.saturating_mul(1 << look.min(20));
    doubled.min(limits.authorize_poll_ms_max).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_polls_back_off_to_a_limit() {
        let limits =
            Limits { authorize_poll_ms: 2_000, authorize_poll_ms_max: 30_000, ..Limits::default() };
        let waits: Vec<u64> =
            [0, 1, 2, 3, 4, 60].map(|look| login_look_delay_ms(&limits, look)).into();
        assert_eq!(waits, [2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        let never = Limits { authorize_poll_ms: 0, ..Limits::default() };
        assert_eq!(login_look_delay_ms(&never, 3), 1, "nothing spins");
    }
}
