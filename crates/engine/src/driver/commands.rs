//! Obeying commands: create, run, reply, resume, pause, continue, cancel.

use super::reply_checks::refuse_reply;
use super::state::{Driver, Waiter};
use crate::command::{Answer, Command, Presence, Replier, StartRun};
use crate::gate::rights::facts;
use crate::planted;
use crate::refusal::{ActiveRun, ClosedAsk, Refusal, RefusalCode, RefusalKind, Result};
use crate::request::{RunReport, SessionReply};
use crate::shares::Share;
use kernel::ask::reply::short_form;
use kernel::ask::{Ask, AskStatus, Decision, Reply};
use kernel::contracts::AskFilter;
use kernel::contracts::policy::Resource;
use kernel::event::{Fact, Occasion};
use kernel::journal::projection::{SessionRow, session_row};
use kernel::session::Session;
use kernel::tool::call::Caller;
use kernel::values::caller::Act;
use kernel::values::datum::{Datum, Origin};
use kernel::values::ids::{AskId, FrameId, RunId, SessionId};
use std::sync::Arc;

impl Driver {
    /// Obeys one command. An error means that memory and store may differ: the session is dropped.
    pub(super) async fn obey(&mut self, command: Command) -> Result<()> {
        if let Err(refusal) = self.prepare(command.is_fresh()).await {
            self.share = Share::default();
            command.refuse(refusal.clone());
            return Err(refusal);
        }
        if let Err(refusal) = self.take_share(&command) {
            command.refuse(refusal);
            return Ok(());
        }
        match command {
            Command::Create { id, owner, by, answer } => {
                let made = self.create(id, owner, *by).await;
                self.answer_caller(answer, made)
            }
            Command::Adopt { id, events, by, answer } => {
                let made = match self.session {
                    Some(_) => Ok(Err(exists(&self.key.id))),
                    None => self.adopt(id, events, &by).await.map(Ok),
                };
                self.answer_caller(answer, made)
            }
            Command::Run { start, answer } => self.run(*start, answer).await,
            Command::Reply { ask, reply, by, answer } => {
                match self.decide_ask(ask, reply, by).await {
                    Ok(Ok((ask, decision))) => {
                        let run = ask.run;
                        let shown = Box::new(self.shown_ask(ask, Some(decision)));
                        self.waiters.push(Waiter::Reply(run, shown, answer));
                        Ok(())
                    }
                    Ok(Err(refusal)) => self.answer_caller(answer, Ok(Err(refusal))),
                    Err(refusal) => self.answer_caller(answer, Err(refusal)),
                }
            }
            Command::Resume { resume, by, answer } => {
                let resumed = self.resume(resume, by).await;
                self.await_run(resumed, answer)
            }
            Command::Replies { replies, by, answer } => {
                let replied = self.reply_all(replies, by).await;
                self.await_run(replied, answer)
            }
            Command::Give { ask, said, by, answer } => {
                let given = self.give(ask, &said, &by.caller).await;
                self.await_run(given, answer)
            }
            Command::Change { run, fact, by, answer } => {
                self.change_run(run, *fact, *by, answer).await
            }
            Command::GiveUpLogin { run, by, answer } => {
                let given_up = self.give_up_login(run, by).await;
                self.await_run(given_up, answer)
            }
            Command::Report { run, answer } => {
                let report = match self.durable().await {
                    Ok(()) => Ok(self.durable_report(run).await),
                    Err(refusal) => Err(refusal),
                };
                self.answer_caller(answer, report)
            }
            Command::Await { run, answer } => {
                self.waiters.push(Waiter::Run(run, answer));
                Ok(())
            }
            Command::Wake => Ok(()),
            Command::Look(ask) => self.look_now(ask).await,
        }
    }

    /// What comes before every command: the session is there, and as old as the clock says.
    async fn prepare(&mut self, fresh: bool) -> Result<()> {
        self.fresh = fresh;
        if !fresh && let Err(refusal) = self.load().await {
            if refusal.kind() == RefusalKind::Failed {
                // Tried again at once, it would fail again, and others wait to be recovered.
                self.shared.park(&self.key, &refusal.message).await;
            }
            return Err(refusal);
        }
        // A reply that comes after its ask's end must find it expired.
        self.keep_time(None).await
    }

    /// The caller that moved a run waits until it ended or paused.
    fn await_run(&mut self, moved: CommandResult<RunId>, answer: Answer<RunReport>) -> Result<()> {
        match moved {
            Ok(Ok(run)) => {
                self.waiters.push(Waiter::Run(run, answer));
                Ok(())
            }
            Ok(Err(refusal)) => self.answer_caller(answer, Ok(Err(refusal))),
            Err(refusal) => self.answer_caller(answer, Err(refusal)),
        }
    }

    /// Answers the caller; our own failure continues to drop the session.
    fn answer_caller<T>(&mut self, answer: Answer<T>, obeyed: CommandResult<T>) -> Result<()> {
        self.free_share();
        match obeyed {
            Ok(result) => {
                drop(answer.send(result));
                Ok(())
            }
            Err(refusal) => {
                drop(answer.send(Err(refusal.clone())));
                Err(refusal)
            }
        }
    }

    async fn create(
        &mut self,
        id: SessionId,
        owner: Option<Arc<str>>,
        by: Caller,
    ) -> CommandResult<SessionRow> {
        if self.session.is_some() {
            return Ok(Err(exists(&self.key.id)));
        }
        // The audit keeps who made it; of a session that a run makes, the run's start says so.
        self.doer = Some(by);
        let begun = self.begin(id, owner).await;
        self.doer = None;
        begun?;
        self.durable().await?;
        let Some(session) = &self.session else { return Err(super::record::no_session()) };
        Ok(Ok(session_row(session, session.updated_at)))
    }

    async fn begin(&mut self, id: SessionId, owner: Option<Arc<str>>) -> Result<()> {
        let key = self.key.clone();
        self.session = Some(Session::new(id, key.clone()));
        let owner = owner.filter(|_| key.owner.is_none());
        self.record(Fact::SessionCreated { id, key, owner }).await
    }

    async fn run(&mut self, start: StartRun, answer: Answer<RunReport>) -> Result<()> {
        let refusal = match (start.presence, &self.session) {
            (Presence::MustExist, None) => {
                Some(Refusal::not_found("session", &self.key.id).hint("POST /sessions makes one"))
            }
            _ => self.taken_by_another(&start).or_else(|| self.in_use()),
        };
        if let Some(refusal) = refusal {
            // A conflict is shown only once what it speaks of is durable.
            let durable = self.durable().await;
            return self.answer_caller(answer, durable.map(|()| Err(refusal)));
        }
        if self.session.is_none() {
            // The run's start says whose it is.
            self.begin(start.session, None).await?;
        }
        let frame = self.session.as_ref().map_or(0, |session| session.frames_made) + 1;
        let main = start.closure.main.clone();
        // One append brings one closure along, and one key.
        if self.new_closure.is_some() || self.new_key.is_some() {
            self.flush();
        }
        self.closures.insert(start.closure.hash.clone(), start.closure.clone());
        self.new_closure = Some(start.closure.stored());
        self.sent = start.sent.map(|state| (start.run, state));
        self.waiters.push(match start.as_task {
            true => Waiter::Task(start.run, answer),
            false => Waiter::Run(start.run, answer),
        });
        self.keep_key(start.claim, start.run, None);
        // Right before the start is recorded: what is written next holds both.
        self.new_tally = start.about.tally;
        let makers = start.caller.makers.subjects().cloned().collect();
        let occasion = Occasion { makers, ..start.about.occasion };
        let started = Fact::RunStarted {
            run: start.run,
            plan: main.id.clone(),
            closure: start.closure.hash.clone(),
            input: Arc::new(Datum::shared(start.input, Origin::Input)),
            by: start.caller.subject.clone(),
            frame: FrameId(frame),
            start: main.start.clone(),
            trace: self.shared.observers.trace_of_run(start.run, start.about.trace),
            subject: None,
            actor: start.caller.actor.clone(),
            scopes: start.caller.scopes,
            about: occasion.recorded(),
            rules: Some(self.shared.catalog.rules(&self.key.realm)),
        };
        self.record_by(start.caller, started).await?;
        match start.about.message {
            Some(message) => self.record(message.received(start.run)).await,
            None => Ok(()),
        }
    }

    /// Refuses a run in a session that has one, or in a context that has many.
    fn in_use(&self) -> Option<Refusal> {
        if self.key.space.has_many_runs() {
            return self.is_full();
        }
        let run = self.active_run()?;
        let asks = self.session.iter().flat_map(|session| session.open_asks(run.id));
        let status = run.status();
        let asks = asks.cloned().collect();
        let active = Box::new(ActiveRun { run: run.id, status, asks });
        let message = format!("session `{}` has an active run", self.key.id);
        Some(
            Refusal::new(RefusalCode::RunActive(active), message)
                .hint("answer or cancel it first, or use another session"),
        )
    }

    fn is_full(&self) -> Option<Refusal> {
        let max = self.shared.limits.context_runs_max;
        let active = self.session.as_ref().map_or(0, |session| session.runs.len());
        let message = format!("context `{}` has {active} active runs", self.key.id);
        (active >= max).then(|| {
            Refusal::new(RefusalCode::ContextRunsMax, message)
                .hint("answer, cancel or await one of them; `context_runs_max` in [limits] sets it")
        })
    }

    /// Refuses a run in a session that another caller made after its caller was asked about: two
    /// may choose the same id at the same time. A case is there for all who may submit it.
    fn taken_by_another(&self, start: &StartRun) -> Option<Refusal> {
        let gate = &self.shared.gate;
        let caller = &start.caller;
        let session = self.session.as_ref().filter(|_| start.presence == Presence::MayExist)?;
        if self.key.space.pipeline().is_some() || gate.is_free(caller, Act::Run) {
            return None;
        }
        let plan = session.latest_run().map(|run| &run.plan);
        let there = Resource::Session(facts(&self.key, plan).owned_by(session.owner.as_deref()));
        (!gate.reads(caller, there)).then(|| Refusal::not_found("session", &self.key.id))
    }

    async fn change_run(
        &mut self,
        run: RunId,
        fact: Fact,
        by: Caller,
        answer: Answer<RunReport>,
    ) -> Result<()> {
        let active = self.session.as_ref().and_then(|session| session.runs.get(&run));
        match active {
            None => {
                let message = format!("run `{run}` is over");
                let refusal = Refusal::new(RefusalCode::RunOver, message)
                    .hint("a run that ended stays as it is; start another");
                let durable = self.durable().await;
                self.answer_caller(answer, durable.map(|()| Err(refusal)))
            }
            // A run that is being closed already is on its way to where both want it.
            Some(active) if active.closing.is_some() => {
                self.waiters.push(Waiter::Run(run, answer));
                Ok(())
            }
            Some(_) => {
                self.waiters.push(Waiter::Run(run, answer));
                self.record_by(by, fact).await
            }
        }
    }

    /// Decides the ask that a resume means; gives its run.
    async fn resume(&mut self, resume: SessionReply, by: Box<Replier>) -> CommandResult<RunId> {
        let found = match self.asked(&resume).await? {
            Ok(ask) => self.may_answer(&by.caller, &ask).and_then(|()| {
                let reply = short_form(&ask, resume.input.as_ref());
                reply.map(|reply| (ask.id, reply)).map_err(|bad| refuse_reply(&ask, bad))
            }),
            Err(refusal) => Err(refusal),
        };
        let decided = match found {
            Ok((ask, reply)) => self.decide_ask(ask, reply, by).await?,
            Err(refusal) => Err(refusal),
        };
        if decided.is_err() {
            self.durable().await?;
        }
        Ok(decided.map(|(ask, _)| ask.run))
    }

    /// The one open ask that a resume means.
    async fn asked(&mut self, resume: &SessionReply) -> CommandResult<Ask> {
        let Some(session) = &self.session else {
            return Ok(Err(Refusal::not_found("session", &self.key.id)));
        };
        let open: Vec<&Ask> =
            session.asks.values().filter(|ask| ask.is_open()).map(|open| &open.ask).collect();
        if let Some(id) = resume.ask {
            let fits = open.iter().find(|ask| ask.id == id);
            return Ok(match (fits, &resume.step) {
                (Some(ask), Some(step)) if ask.step != *step => Err(Refusal::new(
                    RefusalCode::AskMismatch,
                    format!("ask `{id}` is of step `{}`, not `{step}`", ask.step),
                )),
                (Some(ask), _) => Ok((*ask).clone()),
                (None, _) => Err(self.closed_ask(id).await?),
            });
        }
        let fits: Vec<&&Ask> = open
            .iter()
            .filter(|ask| resume.step.as_ref().is_none_or(|step| ask.step == *step))
            .collect();
        match fits.as_slice() {
            [one] => Ok(Ok((**one).clone())),
            [] => self.nothing_open(resume).await.map(Err),
            several => {
                let asks: Vec<Ask> = several.iter().map(|ask| (**ask).clone()).collect();
                let message = format!("session `{}` has {} open asks", self.key.id, asks.len());
                Ok(Err(Refusal::new(RefusalCode::AskAmbiguous(asks), message)
                    .hint("name one by `askId`")))
            }
        }
    }

    /// Nothing is open: the last decided ask's reply tells the caller what happened instead.
    async fn nothing_open(&mut self, resume: &SessionReply) -> Result<Refusal> {
        self.durable().await?;
        let Some(session) = &self.session else { return Ok(super::record::no_session()) };
        let mut decided = session.last_decided.clone();
        if let Some(step) = &resume.step {
            let filter = AskFilter {
                session: Some(session.id),
                step: Some(step.clone()),
                status: Some("decided".to_owned()),
                ..AskFilter::default()
            };
            let page = kernel::contracts::PageRequest { cursor: None, limit: 200 };
            let asks = self.shared.store.asks(&self.key.realm, &filter, &page).await?;
            decided = asks
                .items
                .into_iter()
                .next_back()
                .and_then(|ask| Some((ask.row.ask.id, ask.row.decision?)));
        }
        let message = format!("session `{}` has no open ask", self.key.id);
        Ok(Refusal::new(RefusalCode::NoOpenAsk(decided.map(Box::new)), message)
            .hint("GET the session to see where it stands"))
    }

    /// Decides an open ask. The inner error leaves everything as it was.
    async fn decide_ask(
        &mut self,
        id: AskId,
        reply: Reply,
        by: Box<Replier>,
    ) -> CommandResult<(Ask, Decision)> {
        let Some(ask) = self.open_ask(id) else {
            let refusal = self.closed_ask(id).await?;
            let answered = planted::withdrawn(&self.shared, &self.key.realm, id, &refusal).await?;
            let decided = |ask| (ask, Decision::of(&by.caller, self.shared.clock.now(), reply));
            return Ok(answered.map(decided).ok_or(refusal));
        };
        if let Err(refusal) = self.counts(&by.caller, &ask, &reply) {
            return Ok(Err(refusal));
        }
        let Replier { caller, claim, message } = *by;
        if message.is_some() {
            // The decision and its message stand in one append.
            self.flush();
        }
        let at = self.shared.clock.now();
        let decision = Decision::of(&caller, at, reply);
        self.keep_key(claim, ask.run, Some(id));
        let fact = Fact::AskDecided { ask: id, decision: Box::new(decision.clone()) };
        self.record_by(caller, fact).await?;
        if let Some(message) = message {
            self.record(message.received(ask.run)).await?;
        }
        Ok(Ok((ask, decision)))
    }

    /// Why a reply to an ask that is not open cannot count; told only once it is durable.
    pub(super) async fn closed_ask(&mut self, id: AskId) -> Result<Refusal> {
        self.durable().await?;
        let found = self.shared.store.ask(&self.key.realm, id).await?;
        let Some(ask) = found.filter(|ask| ask.key == self.key) else {
            return Ok(Refusal::not_found("ask", id));
        };
        let status = ask.row.status;
        let who = match &ask.row.decision {
            Some(decision) => format!("ask `{id}` was decided by `{}`", decision.by),
            None => format!("ask `{id}` is {}", status.name()),
        };
        let closed = Box::new(ClosedAsk { ask: id, decision: ask.row.decision });
        let code = match status {
            AskStatus::Decided => RefusalCode::AskDecided(closed),
            AskStatus::Expired => RefusalCode::AskExpired(closed),
            AskStatus::Withdrawn => RefusalCode::AskWithdrawn(closed),
            AskStatus::Open => RefusalCode::AskBusy(closed),
        };
        Ok(Refusal::new(code, who).hint("the decision stands; GET the ask to see it"))
    }
}

/// The inner error is the caller's and leaves everything as it was; the outer one is ours.
pub(super) type CommandResult<T> = Result<Result<T>>;

fn exists(key: &str) -> Refusal {
    Refusal::new(RefusalCode::SessionExists, format!("session `{key}` exists already"))
        .hint("choose another id, or use the session as it is")
}
