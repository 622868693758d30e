//! Messages of clients that read them back with the run: each is recorded in the commit of what it
//! does, which starts a run, answers an ask or only adds a note.

use crate::api::reading::run_events::StartedRun;
use crate::command::{Answer, Command, Replier};
use crate::gate::rights::run_of;
use crate::handles::{Asks, Runs, Sessions};
use crate::refusal::Result;
use crate::request::{IdempotencyKey, Message, RunReport, RunRequest, RunSession};
use crate::waiting::feed::Watch;
use crate::waiting::idempotency::{ClaimOutcome, RepeatCheck};
use futures::FutureExt;
use kernel::ask::Reply;
use kernel::contracts::SessionRun;
use kernel::journal::projection::OnceRow;
use kernel::tool::call::Caller;
use kernel::values::caller::Act;
use kernel::values::datum::BlobRef;
use kernel::values::ids::{AskId, RunId, SessionKey, Space};
use std::pin::pin;

impl Runs<'_> {
    /// A run of a caller that may read it, without its session and its asks.
    pub async fn get(self, caller: &Caller, run: RunId) -> Result<SessionRun> {
        self.stored(caller, run).await
    }

    /// Starts a run whose events are wanted. It is waited for until it ends or pauses, at most so
    /// long, or where no time is named until it has begun. One that was waited for and has begun is
    /// the caller's, also where what it does fails for a moment: it continues later.
    pub async fn start_followed(
        self,
        caller: &Caller,
        request: RunRequest,
        wait_ms: Option<u64>,
    ) -> Result<StartedRun> {
        // From before the start on: what the run records comes with its commits, without a read.
        let watch = self.watch_context(caller, &request.session);
        let Some(wait_ms) = wait_ms else {
            return Ok(StartedRun::watched(self.begin(caller, request).await?, watch));
        };
        let run = self.new_id();
        match self.start_as(caller, run, request, wait_ms).await {
            Ok(report) => Ok(StartedRun::watched(report, watch)),
            Err(refusal) => match self.stored(caller, run).await {
                Ok(found) => Ok(found.row.id.into()),
                Err(_) => Err(refusal),
            },
        }
    }

    fn watch_context(self, caller: &Caller, session: &RunSession) -> Option<Watch> {
        let (RunSession::NewContext(name) | RunSession::Context(name)) = session else {
            return None;
        };
        Some(self.shared.watchers.watch(&caller.key(Space::context(), name.as_str())))
    }

    /// Refuses who may not add a message to a run.
    pub async fn permit_message(self, caller: &Caller, run: RunId) -> Result<()> {
        let found = self.stored(caller, run).await?;
        self.shared.gate.permit(caller, Act::Run, run_of(&found))
    }

    /// Adds a message to a run without answering anything, once that is durable.
    pub async fn note(self, caller: &Caller, run: RunId, message: Message) -> Result<RunReport> {
        let found = self.stored(caller, run).await?;
        self.shared.gate.permit(caller, Act::Run, run_of(&found))?;
        let fact = Box::new(message.received(run));
        let by = Box::new(caller.clone());
        self.begun(&found.key, run, |answer| Command::Change { run, fact, by, answer }).await
    }

    /// What an earlier request with this key did, if there was one. A request that holds the key
    /// is waited for.
    pub async fn done_before(
        self,
        caller: &Caller,
        once: &IdempotencyKey,
    ) -> Result<Option<OnceRow>> {
        match self.shared.turn(caller, Some(once)).await? {
            ClaimOutcome::Repeat(row) => Ok(Some(row)),
            ClaimOutcome::First(_) => Ok(None),
        }
    }

    /// Sends a command that moves a run, and gives the run once what the command did is durable,
    /// or why it was refused. A driver obeys in order: it reports after it has obeyed.
    pub(crate) async fn begun(
        self,
        key: &SessionKey,
        run: RunId,
        command: impl FnOnce(Answer<RunReport>) -> Command,
    ) -> Result<RunReport> {
        let mut answered = pin!(self.shared.ask(key, command));
        if let Some(report) = answered.as_mut().now_or_never() {
            return report;
        }
        let report = self.report_now(key, run).await;
        answered.now_or_never().unwrap_or(report)
    }
}

impl Asks<'_> {
    /// Answers one ask by a message that is recorded with the decision, and gives the run once
    /// both are durable. A repeat under the same key gets the outcome of the first.
    pub async fn reply_by(
        self,
        caller: &Caller,
        ask: AskId,
        reply: Reply,
        once: Option<IdempotencyKey>,
        message: Message,
    ) -> Result<RunReport> {
        let claim = match self.shared.turn(caller, once.as_ref()).await? {
            ClaimOutcome::Repeat(row) => {
                return Ok(self.repeated_reply(caller, ask, &row, 0).await?.run);
            }
            ClaimOutcome::First(claim) => claim,
        };
        let by = Replier { caller: caller.clone(), claim, message: Some(message) };
        match self.send_message(caller, ask, reply, Box::new(by)).await {
            Err(refusal) => {
                let row =
                    self.shared.winner(caller, once.as_ref(), RepeatCheck::First, refusal).await?;
                Ok(self.repeated_reply(caller, ask, &row, 0).await?.run)
            }
            report => report,
        }
    }

    async fn send_message(
        self,
        caller: &Caller,
        ask: AskId,
        reply: Reply,
        by: Box<Replier>,
    ) -> Result<RunReport> {
        let found = self.get(caller, ask).await?;
        let command = |answer| Command::Reply { ask, reply, by, answer };
        let mut answered = pin!(self.shared.ask(&found.key, command));
        if let Some(report) = answered.as_mut().now_or_never() {
            return Ok(report?.run);
        }
        let run = self.shared.runs().report_now(&found.key, found.row.ask.run).await;
        match answered.now_or_never() {
            Some(report) => Ok(report?.run),
            None => run,
        }
    }
}

impl Sessions<'_> {
    /// Keeps a file that a message brings. It stays once an event holds it; else it is removed
    /// after a while.
    pub async fn keep_file(self, caller: &Caller, bytes: Vec<u8>) -> Result<BlobRef> {
        self.shared.storage.check(caller)?;
        Ok(self.shared.blobs.put(&caller.realm, bytes).await?)
    }
}
