//! What endpoints may ask of sessions and runs. Everything that is answered is durable.

use crate::catalog::invalid_plan;
use crate::command::{Answer, Command, Presence, StartRun};
use crate::gate::rights::{facts, run_of, session_of};
use crate::handles::{Runs, Sessions};
use crate::refusal::{Refusal, RefusalCode, Result, no_session};
use crate::request::{RunReport, RunRequest, RunSession, RunTarget};
use crate::shared::{Shared, lock, stopping};
use crate::shares::processor::driving;
use crate::system::clock::timeout;
use crate::waiting::idempotency::{Claim, ClaimOutcome, RepeatCheck};
use futures::FutureExt;
use kernel::contracts::SessionRef;
use kernel::contracts::policy::Resource;
use kernel::definition::plan::Closure;
use kernel::event::{Closing, Fact};
use kernel::journal::projection::SessionRow;
use kernel::tool::call::Caller;
use kernel::values::caller::Act;
use kernel::values::ids::{RunId, SessionId, SessionKey, Space};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

impl Sessions<'_> {
    /// Makes a session; under the client's key if it gives one.
    pub async fn create(self, caller: &Caller, key: Option<String>) -> Result<SessionRow> {
        let id = SessionId(self.shared.id_bits());
        let key = match key {
            Some(key) => caller.key(Space::session(), self.shared.client_key(key)?),
            None => caller.key(Space::session(), id.to_string()),
        };
        let owner = caller.owner();
        let made = Resource::Session(facts(&key, None).owned_by(owner.as_deref()));
        self.shared.gate.permit(caller, Act::Run, made)?;
        let by = Box::new(caller.clone());
        self.shared.ask(&key, |answer| Command::Create { id, owner, by, answer }).await
    }
}

impl Runs<'_> {
    /// An id for a run that an endpoint wants to know before it starts.
    pub fn new_id(self) -> RunId {
        RunId(self.shared.id_bits())
    }

    /// Starts a run and waits until it ends or pauses, at most so long. A repeat under the same
    /// key gets that run and starts none.
    pub async fn start(
        self,
        caller: &Caller,
        request: RunRequest,
        wait_ms: u64,
    ) -> Result<RunReport> {
        self.start_as(caller, self.new_id(), request, wait_ms).await
    }

    /// The same, with an id that the endpoint made beforehand.
    pub(crate) async fn start_as(
        self,
        caller: &Caller,
        run: RunId,
        request: RunRequest,
        wait_ms: u64,
    ) -> Result<RunReport> {
        self.start_until(caller, run, request, StartWait::Settled(wait_ms)).await
    }

    /// Starts a run and waits until that is durable, not for what it does.
    pub async fn begin(self, caller: &Caller, request: RunRequest) -> Result<RunReport> {
        self.start_until(caller, self.new_id(), request, StartWait::Begun).await
    }

    async fn start_until(
        self,
        caller: &Caller,
        run: RunId,
        mut request: RunRequest,
        until: StartWait,
    ) -> Result<RunReport> {
        self.may_start(caller, &request).await?;
        let once = request.once.take();
        let closure = self.shared.closure_of(caller, &request.target);
        // In a session that is there, a key that was taken would stop what others do.
        let is_fresh = matches!(request.session, RunSession::New | RunSession::NewContext(_));
        let may_be_in_vain = closure.as_ref().is_ok_and(|closure| is_fresh && !closure.calls);
        let look = if may_be_in_vain { RepeatCheck::AtCommit } else { RepeatCheck::First };
        let claim = match self.shared.turn_by(caller, once.as_ref(), look).await? {
            ClaimOutcome::Repeat(row) => return self.repeated(caller, &row, until.wait_ms()).await,
            ClaimOutcome::First(claim) => claim,
        };
        let start = Start { run, closure: closure?, claim, until };
        match self.start_run(caller, request, start).await {
            Err(refusal) => {
                let row = self.shared.winner(caller, once.as_ref(), look, refusal).await?;
                self.repeated(caller, &row, until.wait_ms()).await
            }
            report => report,
        }
    }

    /// Refuses a run that this caller may not start, or not there.
    async fn may_start(self, caller: &Caller, request: &RunRequest) -> Result<()> {
        let gate = &self.shared.gate;
        // To talk and to submit need the same scope.
        if gate.is_free(caller, Act::Run) {
            return Ok(());
        }
        match &request.target {
            RunTarget::Plan(id) => gate.permit_start(caller, id, &request.input)?,
            RunTarget::Inline(_) => gate.permit(caller, Act::Run, Resource::InlinePlan)?,
            // Who pinned it has asked.
            RunTarget::Pinned(_) => {}
        }
        let named = |key: &str, space| SessionRef::Key { key: key.into(), space: Some(space) };
        let session = match &request.session {
            // A case is its pipeline's: who may submit one adds a run to it.
            RunSession::New | RunSession::NewContext(_) | RunSession::Case(..) => return Ok(()),
            RunSession::Thread(name) => named(name, Space::thread()),
            RunSession::Context(name) => named(name, Space::context()),
            RunSession::Named(name) => match name.parse() {
                Ok(existing) => SessionRef::Id(existing),
                Err(_) => named(name, Space::session()),
            },
            RunSession::Existing(reference) => reference.clone(),
        };
        let found = self.shared.store.session(&caller.realm, &caller.meant(&session)).await?;
        match found.as_ref().map(session_of) {
            Some(there) if gate.reads(caller, there) => gate.permit(caller, Act::Run, there),
            Some(_) => Err(no_session(&session)),
            // It may be made, or is missed by the one who looks for it.
            None => Ok(()),
        }
    }

    async fn start_run(
        self,
        caller: &Caller,
        request: RunRequest,
        start: Start,
    ) -> Result<RunReport> {
        let Start { run, closure, claim, until } = start;
        if let Some(parameters) = &closure.main.parameters {
            self.shared.schemas.check(parameters, &request.input).map_err(|misfits| {
                let message = format!("the input does not fit plan `{}`", closure.main.id);
                Refusal::new(RefusalCode::InputMisfit(None), message)
                    .hint(format!("`waypost plan show {}` shows its parameters", closure.main.id))
                    .errors(misfits)
            })?;
        }
        if let RunSession::Thread(thread) = &request.session {
            self.shared.threads().give_up_login(caller, thread).await?;
        }
        let (key, presence, session) = self.resolve_session(caller, request.session).await?;
        let start = StartRun {
            session,
            presence,
            run,
            closure,
            input: Arc::new(request.input),
            caller: caller.clone(),
            claim,
            as_task: false,
            sent: None,
            about: request.about,
        };
        let command = |answer| Command::Run { start: Box::new(start), answer };
        match until {
            StartWait::Settled(wait_ms) => self.wait_for(&key, run, wait_ms, command).await,
            StartWait::Begun => self.begun(&key, run, command).await,
        }
    }

    /// Resolves the session in which a run starts.
    async fn resolve_session(
        self,
        caller: &Caller,
        session: RunSession,
    ) -> Result<(SessionKey, Presence, SessionId)> {
        let id = SessionId(self.shared.id_bits());
        match session {
            RunSession::New => {
                Ok((caller.key(Space::session(), id.to_string()), Presence::Fresh, id))
            }
            RunSession::Thread(name) => {
                let name = self.shared.client_key(name)?;
                Ok((caller.key(Space::thread(), name), Presence::MayExist, id))
            }
            RunSession::Context(name) => {
                let name = self.shared.client_key(name)?;
                Ok((caller.key(Space::context(), name), Presence::MayExist, id))
            }
            RunSession::NewContext(name) => {
                Ok((caller.key(Space::context(), name), Presence::Fresh, id))
            }
            RunSession::Case(pipeline, name) => {
                let name = self.shared.client_key(name)?;
                Ok((caller.key(Space::case(&pipeline), name), Presence::MayExist, id))
            }
            // A `ses_` id names a session that is there; any other name may be new.
            RunSession::Named(name) => match name.parse::<SessionId>() {
                Ok(existing) => {
                    let row = self.shared.sessions().get(caller, &SessionRef::Id(existing)).await?;
                    Ok((row.key, Presence::MustExist, row.id))
                }
                Err(_) => {
                    let name = self.shared.client_key(name)?;
                    Ok((caller.key(Space::session(), name), Presence::MayExist, id))
                }
            },
            RunSession::Existing(reference) => {
                let row = self.shared.sessions().get(caller, &reference).await?;
                Ok((row.key, Presence::MustExist, row.id))
            }
        }
    }

    /// Sends a command that moves a run and waits for the run; a run that takes longer continues,
    /// and the caller gets it as it is, once that is durable. Why the command was refused it gets
    /// in any case: a driver obeys in order, and reports after it has obeyed.
    pub(crate) async fn wait_for(
        self,
        key: &SessionKey,
        run: RunId,
        wait_ms: u64,
        command: impl FnOnce(Answer<RunReport>) -> Command,
    ) -> Result<RunReport> {
        let mut answered = pin!(self.shared.ask(key, command));
        let clock = self.shared.clock.as_ref();
        if let Some(report) = timeout(clock, wait_ms, answered.as_mut()).await {
            return report;
        }
        let report = self.report_now(key, run).await;
        answered.now_or_never().unwrap_or(report)
    }

    /// A run as its driver has it now.
    pub(crate) async fn report_now(self, key: &SessionKey, run: RunId) -> Result<RunReport> {
        self.shared.ask(key, |answer| Command::Report { run, answer }).await
    }

    /// Stops a run at its next step.
    pub async fn pause(self, caller: &Caller, run: RunId) -> Result<RunReport> {
        let fact = Fact::RunPaused { run, by: caller.subject.clone() };
        self.change(caller, Act::Cancel, run, fact).await
    }

    /// Continues a paused run.
    pub async fn continue_run(self, caller: &Caller, run: RunId) -> Result<RunReport> {
        let fact = Fact::RunContinued { run, by: caller.subject.clone() };
        self.change(caller, Act::Answer, run, fact).await
    }

    /// Ends a run: no new effect starts, open asks are withdrawn, calls get a moment to finish.
    pub async fn cancel(self, caller: &Caller, run: RunId) -> Result<RunReport> {
        let why = Closing::Cancelled(caller.subject.clone());
        self.change(caller, Act::Cancel, run, Fact::RunClosing { run, why }).await
    }

    async fn change(self, caller: &Caller, act: Act, run: RunId, fact: Fact) -> Result<RunReport> {
        let found = self.stored(caller, run).await?;
        self.shared.gate.permit(caller, act, run_of(&found))?;
        let fact = Box::new(fact);
        let by = Box::new(caller.clone());
        let command = |answer| Command::Change { run, fact, by, answer };
        self.wait_for(&found.key, run, self.shared.limits.run_wait_ms, command).await
    }
}

/// A run that is about to start.
struct Start {
    run: RunId,
    closure: Arc<Closure>,
    claim: Option<Claim>,
    until: StartWait,
}

/// How long a start is waited for.
#[derive(Debug, Clone, Copy)]
enum StartWait {
    /// Until the run ends or pauses, at most so long.
    Settled(u64),
    /// Until it is durable.
    Begun,
}

impl StartWait {
    /// How long a repeat waits for the run that the first request started.
    fn wait_ms(self) -> u64 {
        match self {
            Self::Settled(wait_ms) => wait_ms,
            Self::Begun => 0,
        }
    }
}

impl Shared {
    /// Sends a command to a session's driver and waits for its answer.
    pub(crate) async fn ask<T>(
        self: &Arc<Self>,
        key: &SessionKey,
        command: impl FnOnce(Answer<T>) -> Command,
    ) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        self.send(key, command(answer))?;
        answered.await.unwrap_or_else(|_| {
            Err(Refusal::new(RefusalCode::DriverEnded, "the session's driver ended")
                .hint("send it again; look at the server's log"))
        })
    }

    /// Sends a command to a session's driver, starting one if there is none.
    pub(crate) fn send(self: &Arc<Self>, key: &SessionKey, mut command: Command) -> Result<()> {
        if self.stopping.load(Ordering::Acquire) {
            return Err(stopping());
        }
        if self.closed.has(&key.realm) {
            return Err(Refusal::realm_removed());
        }
        let mut driven = lock(&self.driven);
        if let Some(sender) = driven.get(key) {
            match sender.try_send(command) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(_)) => {
                    let message = format!("session `{}` has too many requests waiting", key.id);
                    return Err(Refusal::new(RefusalCode::SessionBusy, message)
                        .hint("send it again in a moment"));
                }
                // Its driver ended without saying so, by a panic: start another.
                Err(TrySendError::Closed(returned)) => command = returned,
            }
        }
        let share = self.run_share(key, &command)?;
        if driven.len() >= self.limits.runs_active_max && !matches!(command, Command::Wake) {
            return Err(self.too_many_driven(&command));
        }
        let (sender, receiver) = mpsc::channel(self.limits.session_queue_max);
        let by = driving(key, command.caller());
        if sender.try_send(command).is_ok() {
            driven.insert(key.clone(), sender);
            self.spawn_driver(key, receiver, share, by);
        }
        Ok(())
    }

    fn closure_of(&self, caller: &Caller, target: &RunTarget) -> Result<Arc<Closure>> {
        match target {
            RunTarget::Plan(id) => self.catalog.closure(&caller.realm, id),
            RunTarget::Inline(source) => {
                let read = self.gate.read_plan(caller, source);
                let (plan, _) = read.map_err(|found| invalid_plan(&found))?;
                self.catalog.close_over(&caller.realm, Arc::new(plan)).map(Arc::new)
            }
            RunTarget::Pinned(closure) => Ok(closure.clone()),
        }
    }

    /// A key that a client chose, if it can be one.
    fn client_key(&self, key: String) -> Result<Arc<str>> {
        let max = self.limits.client_id_chars_max;
        let length = key.chars().count();
        let wrong = if length == 0 || length > max {
            Some(format!("a session's id has 1 to {max} characters, not {length}"))
        } else if key.chars().any(char::is_control) {
            Some("a session's id has no control characters".to_owned())
        } else if key.starts_with(SessionId::PREFIX) {
            Some(format!("ids that begin with `{}` are given by the server", SessionId::PREFIX))
        } else {
            None
        };
        match wrong {
            None => Ok(key.into()),
            Some(message) => Err(Refusal::new(RefusalCode::BadSessionId, message)
                .hint("choose another id, or leave it out")),
        }
    }
}
