//! Answers to asks: by the ask, or by the session that has it open.

use crate::command::{Answer, Command, Replier};
use crate::handles::Asks;
use crate::refusal::Result;
use crate::request::{IdempotencyKey, ReplyReport, RunReport, SessionReply};
use crate::system::clock::timeout;
use crate::waiting::idempotency::{ClaimOutcome, RepeatCheck};
use futures::FutureExt;
use kernel::ask::Reply;
use kernel::contracts::SessionRef;
use kernel::journal::projection::SessionRow;
use kernel::tool::call::Caller;
use kernel::values::ids::{AskId, RunId};
use std::pin::pin;

impl Asks<'_> {
    /// Answers one ask and waits until its run ends or pauses again, at most so long. A repeat
    /// under the same key gets the outcome of the first.
    pub async fn reply(
        self,
        caller: &Caller,
        ask: AskId,
        reply: Reply,
        once: Option<IdempotencyKey>,
        wait_ms: u64,
    ) -> Result<ReplyReport> {
        let claim = match self.shared.turn(caller, once.as_ref()).await? {
            ClaimOutcome::Repeat(row) => {
                return self.repeated_reply(caller, ask, &row, wait_ms).await;
            }
            ClaimOutcome::First(claim) => claim,
        };
        let by = Replier::new(caller, claim);
        match self.send_reply(caller, ask, reply, by, wait_ms).await {
            Err(refusal) => {
                let row =
                    self.shared.winner(caller, once.as_ref(), RepeatCheck::First, refusal).await?;
                self.repeated_reply(caller, ask, &row, wait_ms).await
            }
            report => report,
        }
    }

    async fn send_reply(
        self,
        caller: &Caller,
        ask: AskId,
        reply: Reply,
        by: Box<Replier>,
        wait_ms: u64,
    ) -> Result<ReplyReport> {
        let found = self.get(caller, ask).await?;
        let command = |answer| Command::Reply { ask, reply, by, answer };
        let mut answered = pin!(self.shared.ask(&found.key, command));
        let clock = self.shared.clock.as_ref();
        if let Some(report) = timeout(clock, wait_ms, answered.as_mut()).await {
            return report;
        }
        let run = self.shared.runs().report_now(&found.key, found.row.ask.run).await;
        if let Some(report) = answered.now_or_never() {
            return report;
        }
        Ok(ReplyReport { ask: self.get(caller, ask).await?, run: run?, replayed: false })
    }

    /// Answers the ask that a session has open, and waits like `reply`.
    pub async fn resume(
        self,
        caller: &Caller,
        session: &SessionRef,
        mut resume: SessionReply,
        wait_ms: u64,
    ) -> Result<RunReport> {
        let once = resume.once.take();
        let ask = resume.ask;
        let command = |by, answer| Command::Resume { resume, by, answer };
        self.resumed(caller, session, ReplyTarget { ask, once, wait_ms }, command).await
    }

    /// Answers several asks of one run of a session, in one commit or not at all, and waits like
    /// `reply`.
    pub async fn reply_all(
        self,
        caller: &Caller,
        session: &SessionRef,
        replies: Vec<(AskId, Reply)>,
        once: Option<IdempotencyKey>,
        wait_ms: u64,
    ) -> Result<RunReport> {
        let ask = replies.first().map(|(ask, _)| *ask);
        let command = |by, answer| Command::Replies { replies, by, answer };
        self.resumed(caller, session, ReplyTarget { ask, once, wait_ms }, command).await
    }

    /// Sends a command that answers asks of a session; a repeat under the same key gets what came
    /// of the first.
    async fn resumed(
        self,
        caller: &Caller,
        session: &SessionRef,
        resuming: ReplyTarget,
        command: impl FnOnce(Box<Replier>, Answer<RunReport>) -> Command,
    ) -> Result<RunReport> {
        let ReplyTarget { ask, once, wait_ms } = resuming;
        let row = self.shared.sessions().get(caller, session).await?;
        let key = &row.key;
        let claim = match self.shared.turn(caller, once.as_ref()).await? {
            ClaimOutcome::Repeat(row) => {
                return self.repeated_resume(caller, key, &row, wait_ms).await;
            }
            ClaimOutcome::First(claim) => claim,
        };
        let by = Replier::new(caller, claim);
        let command = |answer| command(by, answer);
        let resumed = match self.run_meant(&row, ask).await? {
            Some(run) => self.shared.runs().wait_for(key, run, wait_ms, command).await,
            None => self.shared.ask(key, command).await,
        };
        match resumed {
            Err(refusal) => {
                let row =
                    self.shared.winner(caller, once.as_ref(), RepeatCheck::First, refusal).await?;
                self.repeated_resume(caller, key, &row, wait_ms).await
            }
            report => report,
        }
    }

    /// The run that a reply moves: the session's latest, or where others are active beside it the
    /// one that asks.
    async fn run_meant(self, row: &SessionRow, ask: Option<AskId>) -> Result<Option<RunId>> {
        let Some(ask) = ask.filter(|_| row.key.space.has_many_runs()) else { return Ok(row.run) };
        let found = self.shared.store.ask(&row.key.realm, ask).await?;
        Ok(found.map_or(row.run, |found| Some(found.row.ask.run)))
    }
}

/// How asks of a session are answered.
struct ReplyTarget {
    /// One of them, where it is named.
    ask: Option<AskId>,
    once: Option<IdempotencyKey>,
    wait_ms: u64,
}
