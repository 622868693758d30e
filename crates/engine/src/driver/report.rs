//! Wakes those who wait for a session, once what they learn is durable.

use super::state::{Driver, Waiter};
use crate::refusal::{Refusal, Result};
use crate::request::{ReplyReport, RunReport};
use kernel::ask::{Ask, AskStatus, Decision};
use kernel::contracts::SessionAsk;
use kernel::journal::projection::{AskRow, run_row, session_row};
use kernel::session::{Run, RunStatus};
use kernel::values::ids::RunId;

impl Driver {
    /// Tells everyone whose run has ended or paused, or continues elsewhere where that is enough.
    pub(super) async fn tell(&mut self) -> Result<()> {
        if !self.waiters.iter().any(|waiter| self.is_settled(waiter)) {
            // No one to tell; but what is over must be durable before the session is let go.
            return if self.waiters.is_empty() && self.ticket.is_some() && self.is_idle() {
                self.durable().await
            } else {
                Ok(())
            };
        }
        self.durable().await?;
        self.forget_closures();
        for waiter in std::mem::take(&mut self.waiters) {
            if !self.is_settled(&waiter) {
                self.waiters.push(waiter);
                continue;
            }
            let report = self.durable_report(waiter.run()).await;
            match waiter {
                Waiter::Run(_, answer) | Waiter::Task(_, answer) => drop(answer.send(report)),
                Waiter::Reply(_, ask, answer) => {
                    let reply = |run| ReplyReport { ask: *ask, run, replayed: false };
                    drop(answer.send(report.map(reply)));
                }
            }
        }
        Ok(())
    }

    fn is_settled(&self, waiter: &Waiter) -> bool {
        let run = self.session.as_ref().and_then(|session| session.run(waiter.run()));
        let rests = |run: &Run| match run.status() {
            RunStatus::Running => false,
            RunStatus::Stuck => !self.session.as_ref().is_some_and(|it| it.is_held(run.id)),
            RunStatus::Waiting
            | RunStatus::Paused
            | RunStatus::Completed
            | RunStatus::Failed
            | RunStatus::Cancelled => true,
        };
        run.is_none_or(rests)
            || match waiter {
                Waiter::Task(run, _) => self.is_elsewhere(*run),
                Waiter::Run(..) | Waiter::Reply(..) => false,
            }
    }

    /// Whether a call of this run continues elsewhere.
    fn is_elsewhere(&self, run: RunId) -> bool {
        let mut calls = self.session.iter().flat_map(|session| session.calls.values());
        calls.any(|open| open.run == run && open.is_elsewhere())
    }

    /// Forgets the closures of runs that are over.
    pub(super) fn forget_closures(&mut self) {
        let Some(session) = &self.session else { return };
        let live = &session.runs;
        self.closures.retain(|hash, _| live.values().any(|run| run.closure == *hash));
    }

    /// A run as endpoints show it.
    pub(super) fn report(&self, run: RunId) -> Result<RunReport> {
        let session = self.session.as_ref().ok_or_else(|| Refusal::no_run(run))?;
        let found = session.run(run).ok_or_else(|| Refusal::no_run(run))?;
        Ok(RunReport {
            run: run_row(found),
            session: session_row(session, session.updated_at),
            asks: session.open_asks(run).map(|ask| self.shown_ask(ask.clone(), None)).collect(),
            replayed: false,
            elsewhere: self.is_elsewhere(run),
        })
    }

    /// The same once all is durable, of any run of the session: the state keeps only the one that
    /// ended last, and where several are active another may have ended right before it.
    pub(super) async fn durable_report(&mut self, run: RunId) -> Result<RunReport> {
        let reported = self.report(run);
        let Some(session) = self.session.as_ref().filter(|_| reported.is_err()) else {
            return reported;
        };
        let session = session_row(session, session.updated_at);
        let found = self.shared.store.run(&self.key.realm, run).await?;
        match found.filter(|found| found.key == self.key) {
            Some(found) => Ok(RunReport {
                run: found.row,
                session,
                asks: Vec::new(),
                replayed: false,
                elsewhere: false,
            }),
            None => reported,
        }
    }

    /// An ask as endpoints show it.
    pub(super) fn shown_ask(&self, ask: Ask, decision: Option<Decision>) -> SessionAsk {
        let status = if decision.is_some() { AskStatus::Decided } else { AskStatus::Open };
        self.shared.gate.with_answerers(SessionAsk {
            session: self.session.as_ref().map_or(kernel::values::ids::SessionId(0), |s| s.id),
            key: self.key.clone(),
            row: AskRow { ask, status, decision },
        })
    }

    /// The run that an endpoint's rule calls active.
    pub(super) fn active_run(&self) -> Option<&Run> {
        self.session.as_ref()?.runs.values().next()
    }
}
