//! The operations, whatever binding asks for them. Each finds only what is the caller's own; the
//! engine asks policy.

use super::asks::{self, Answer};
use super::error::{Result, invalid, no_task, refused, refused_task, unsupported};
use super::incoming::{self, CheckedMessage};
use super::proxy::{self, Execution};
use super::repeats;
use super::skills::{self, Kind};
use super::task;
use super::task_stream::{TaskReport, TaskStream};
use super::view::Viewer;
use crate::state::Shared;
use engine::refusal::RefusalKind;
use engine::{RunMetadata, RunRequest, RunSession, RunTarget, StartedRun};
use kernel::contracts::SessionRun;
use kernel::event::Occasion;
use kernel::tool::call::Caller;
use kernel::values::ids::{Millis, RunId, Space};
use kernel::values::trace::TraceParent;
use std::sync::Arc;
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::request::{SendMessageConfiguration, SendMessageRequest};
use wire::a2a::task::{StreamResponse, Task};
use wire::a2a::{VERSION, VERSION_UNNAMED};

/// How long one wait for a task takes before it is polled again, where no limit is set.
const WAIT_MS: u64 = 60_000;
/// How long a new task is waited for before it is followed: a short one is read once, and a long
/// one is answered with what it asks as soon as it does.
const UNFOLLOWED_MS: u64 = 1_000;

/// Which version of A2A a client speaks. What is done is the same in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// 1.0.
    V1,
    /// 0.3.
    V03,
}

impl Dialect {
    /// Its number, which is its word in the store, too.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::V1 => VERSION,
            Self::V03 => VERSION_UNNAMED,
        }
    }

    /// The one of a number.
    pub(super) fn of(word: &str) -> Option<Self> {
        [Self::V1, Self::V03].into_iter().find(|dialect| dialect.word() == word)
    }
}

/// Who calls, where, and in which trace.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) a2a: Shared,
    pub(super) caller: Arc<Caller>,
    /// Whether policy lets someone else act as the caller.
    pub(super) impersonates: bool,
    pub(super) trace: Option<TraceParent>,
    /// The version that it speaks.
    pub(super) dialect: Dialect,
}

/// How long a client waits for a task: as long as it takes, or until then.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    ends_at: Option<Millis>,
}

impl Wait {
    /// How long one wait from now on takes; zero where it is over.
    fn left_ms(self, now: Millis) -> u64 {
        self.ends_at.map_or(WAIT_MS, |end| end.0.saturating_sub(now.0).max(0).unsigned_abs())
    }
}

/// A message that was taken: its task, followed from behind the message on.
pub(super) struct SentMessage {
    pub(super) stream: TaskStream,
    pub(super) viewer: Viewer,
    pub(super) configuration: SendMessageConfiguration,
    /// The client wants a message for an answer.
    pub(super) wants_message: bool,
}

/// `historyLength` of a request.
pub(super) fn history(length: Option<i32>) -> Result<Option<usize>> {
    let wrong = |_| invalid("historyLength", "`historyLength` is not negative");
    length.map(usize::try_from).transpose().map_err(wrong)
}

impl Client {
    /// A run of this id that is a task of the caller's own.
    pub(super) async fn own(&self, id: &str) -> Result<SessionRun> {
        let run: RunId = id.parse().map_err(|_| no_task(id))?;
        let found = self.a2a.server.engine.runs().get(&self.caller, run).await;
        let found = found.map_err(|refusal| refused_task(refusal, id))?;
        if self.is_own(&found) { Ok(found) } else { Err(no_task(id)) }
    }

    fn is_own(&self, run: &SessionRun) -> bool {
        run.key.space == Space::context() && run.key.owner == self.caller.owner()
    }

    /// The same with what its events say.
    pub(super) async fn own_task(&self, id: &str) -> Result<TaskReport> {
        let run: RunId = id.parse().map_err(|_| no_task(id))?;
        let found = TaskReport::read(&self.a2a.server.engine, &self.caller, run).await;
        let found = found.map_err(|refusal| refused_task(refusal, id))?;
        if self.is_own(&found.run) { Ok(found) } else { Err(no_task(id)) }
    }

    pub(super) fn viewer(&self, run: &SessionRun, accepted: &[String]) -> Viewer {
        Viewer::new(&self.a2a, &self.caller, run, accepted)
    }

    pub(super) async fn get(&self, id: &str, length: Option<i32>) -> Result<Task> {
        let history = history(length)?;
        let TaskReport { run, task } = self.own_task(id).await?;
        Ok(self.viewer(&run, &[]).task(&task, history).await)
    }

    /// `CancelTask`: answers when the run has ended.
    pub(super) async fn cancel(&self, id: &str) -> Result<Task> {
        let found = self.own(id).await?;
        let run = found.row.id;
        let not_cancelable =
            || A2aError::new(ErrorKind::TaskNotCancelable, format!("task `{id}` is over"));
        if found.row.status.is_over() {
            return Err(not_cancelable());
        }
        match self.a2a.server.engine.runs().cancel(&self.caller, run).await {
            Ok(_) => {}
            Err(refusal) if refusal.kind() == RefusalKind::Conflict => return Err(not_cancelable()),
            Err(refusal) => return Err(refused_task(refusal, id)),
        }
        let mut stream = self.followed(run, None).await?;
        while !stream.task().state.is_over() {
            self.next(&mut stream, WAIT_MS).await?;
        }
        Ok(self.viewer(&found, &[]).task(stream.task(), None).await)
    }

    /// `SubscribeToTask`: a task that is not over, followed from now on.
    pub(super) async fn subscribe(&self, id: &str) -> Result<(TaskStream, Viewer)> {
        let found = self.own(id).await?;
        if found.row.status.is_over() {
            return Err(unsupported(format!("task `{id}` is over; get it instead")));
        }
        let stream = self.followed(found.row.id, None).await?;
        let viewer = self.viewer(&found, &[]);
        Ok((stream, viewer))
    }

    pub(super) async fn followed(
        &self,
        started: impl Into<StartedRun>,
        message: Option<&str>,
    ) -> Result<TaskStream> {
        let started = started.into();
        let run = started.run();
        let engine = &self.a2a.server.engine;
        let found = TaskStream::follow(engine, &self.caller, started, message).await;
        found.map_err(|refusal| refused_task(refusal, &run.to_string()))
    }

    /// Takes in what comes next, or waits for it at most so long; whether there was something.
    async fn next(&self, stream: &mut TaskStream, wait_ms: u64) -> Result<bool> {
        let next = stream.try_next().await;
        if next.map_err(|refusal| refused(refusal, "id"))?.is_some() {
            return Ok(true);
        }
        let clock = self.a2a.server.engine.clock().as_ref();
        Ok(engine::timeout(clock, wait_ms, stream.wait()).await.is_some())
    }

    /// `SendMessage`: the task once it ended or asks, or as it begins where the client wants that.
    pub(super) async fn send(&self, request: SendMessageRequest) -> Result<StreamResponse> {
        let wait = self.wait();
        let is_waited_for =
            request.configuration.as_ref().is_none_or(|how| !how.return_immediately);
        let taken = self.taken(request, is_waited_for.then_some(wait)).await?;
        let SentMessage { mut stream, viewer, configuration, wants_message } = taken;
        let history = history(configuration.history_length)?;
        if is_waited_for || wants_message {
            self.settle(&mut stream, &viewer, wait).await?;
        }
        if wants_message && let Some(message) = viewer.as_message(stream.task()).await {
            return Ok(StreamResponse::Message(Box::new(message)));
        }
        Ok(StreamResponse::Task(Box::new(viewer.task(stream.task(), history).await)))
    }

    /// Follows a task until it is over or waits for someone, at most as long as the limit says.
    pub(super) async fn settle(
        &self,
        stream: &mut TaskStream,
        viewer: &Viewer,
        wait: Wait,
    ) -> Result<()> {
        loop {
            let state = &stream.task().state;
            if state.is_over() || viewer.state(state).is_interrupted() {
                return Ok(());
            }
            // What is recorded counts, also where the wait is over.
            let left = wait.left_ms(self.a2a.server.engine.clock().now());
            if !self.next(stream, left).await? && left == 0 {
                return Ok(());
            }
        }
    }

    /// A wait that begins now.
    pub(super) fn wait(&self) -> Wait {
        let most_ms = self.a2a.serving.limits.a2a_wait_ms_max;
        Wait {
            ends_at: (most_ms > 0).then(|| self.a2a.server.engine.clock().now().plus_ms(most_ms)),
        }
    }

    /// Takes a message: it starts a task, or answers one. A new task may be waited for before it is
    /// read for the first time, where no one follows it meanwhile.
    pub(super) async fn taken(
        &self,
        request: SendMessageRequest,
        wait: Option<Wait>,
    ) -> Result<SentMessage> {
        let configuration = request.configuration.unwrap_or_default();
        let webhook = self.webhook_wanted(&configuration)?;
        history(configuration.history_length)?;
        let checked = incoming::checked(&self.a2a, request.message)?;
        let message = &checked.message;
        let wants_message = skills::wants_message(&self.a2a, message);
        let once = repeats::key_of(&self.a2a, &checked);
        let id = message.message_id.clone();
        let (started, behind): (StartedRun, Option<&str>) = if message.task_id.is_empty() {
            // A webhook is made before its task is waited for.
            let wait = wait.filter(|_| webhook.is_none());
            let started = self.started(checked, once, wait).await?;
            // What happened while it was waited for is past: an ask may be answered by now.
            let is_new = wait.is_none() && !started.is_replayed();
            (started, is_new.then_some(id.as_str()))
        } else if let Some(run) = self.repeated(once.as_ref()).await? {
            (run.into(), None)
        } else {
            if webhook.is_some() {
                // To answer needs less than to send a message.
                self.permit_webhook(self.own(&message.task_id).await?.row.id).await?;
            }
            (self.reply(checked, once).await?.into(), Some(id.as_str()))
        };
        let stream = self.followed(started, behind).await?;
        if let Some(webhook) = webhook {
            // A repeat is followed from now on; its webhook began where the first one did.
            let place = match behind {
                Some(_) => stream.place(),
                None => {
                    let run = stream.run().row.id;
                    self.followed(run, Some(&id)).await?.place()
                }
            };
            self.webhook_of_message(stream.run(), webhook, place, behind.is_none()).await?;
        }
        let viewer = self.viewer(stream.run(), &configuration.accepted_output_modes);
        Ok(SentMessage { stream, viewer, configuration, wants_message })
    }

    /// Starts a task, or finds the one that this message started before.
    async fn started(
        &self,
        checked: CheckedMessage,
        once: Option<engine::IdempotencyKey>,
        wait: Option<Wait>,
    ) -> Result<StartedRun> {
        match self.start(checked, once.clone(), wait).await {
            Ok(started) => Ok(started),
            // A repeat gets what the first did, also where it could not begin any more.
            Err(error) => match self.repeated(once.as_ref()).await? {
                Some(run) => Ok(StartedRun::replayed(run)),
                None => Err(error),
            },
        }
    }

    /// The task that an earlier message under this key made or moved.
    async fn repeated(&self, once: Option<&engine::IdempotencyKey>) -> Result<Option<RunId>> {
        match repeats::find(&self.a2a, &self.caller, once).await? {
            Some(run) => Ok(Some(self.own(&run.to_string()).await?.row.id)),
            None => Ok(None),
        }
    }

    /// Starts a task.
    pub(super) async fn start(
        &self,
        checked: CheckedMessage,
        once: Option<engine::IdempotencyKey>,
        wait: Option<Wait>,
    ) -> Result<StartedRun> {
        let a2a = &self.a2a;
        let caller = &self.caller;
        let CheckedMessage { message, body } = checked;
        let now = a2a.server.engine.clock().now();
        let wait_ms = wait.map(|wait| wait.left_ms(now).min(UNFOLLOWED_MS));
        let skill = skills::chosen(a2a, caller, &message)?;
        let hops = incoming::hops(a2a, &message)?;
        let recorded = incoming::recorded(a2a, caller, &message, body).await?;
        let session = match message.context_id.is_empty() {
            // In the order of time, as ids of runs are: contexts that begin together are stored
            // together.
            true => {
                RunSession::NewContext(format!("ctx_{:032x}", a2a.server.engine.runs().new_id().0))
            }
            false => RunSession::Context(message.context_id.clone()),
        };
        if let Kind::Proxy = skill.kind {
            let instruction = proxy::instruction(&message);
            let trace = self.trace;
            let message = recorded;
            let execution = Execution { instruction, message, session, once, trace, wait_ms };
            // What begins a task is large: it is not part of what every request moves.
            return Box::pin(proxy::begun(a2a, caller, execution)).await;
        }
        let input = match recorded.files.is_empty() {
            true => incoming::input(a2a, &skill, &message)?,
            // They are named in it now.
            false => {
                let named = serde_json::from_value(recorded.body.clone()).unwrap_or_default();
                incoming::input(a2a, &skill, &named)?
            }
        };
        let request = RunRequest {
            target: RunTarget::Plan(skill.plan),
            input: input.value,
            session,
            once,
            about: RunMetadata {
                trace: self.trace,
                tally: input.tally,
                occasion: Occasion { hops, ..Occasion::at("a2a", "/a2a/v1") },
                message: Some(recorded),
            },
        };
        let started =
            Box::pin(a2a.server.engine.runs().start_followed(caller, request, wait_ms)).await;
        started.map_err(|refusal| match refusal.code {
            engine::RefusalCode::BadSessionId => refused(refusal, "message.contextId"),
            _ => refused(refusal, "message.parts"),
        })
    }

    /// Answers what a task asks, or adds a note where that is not the caller's to answer.
    pub(super) async fn reply(
        &self,
        checked: CheckedMessage,
        once: Option<engine::IdempotencyKey>,
    ) -> Result<RunId> {
        let CheckedMessage { message, body } = checked;
        let id = message.task_id.as_str();
        let engine = &self.a2a.server.engine;
        let TaskReport { run: found, task } = self.own_task(id).await?;
        let run = found.row.id;
        let viewer = self.viewer(&found, &[]);
        if !message.context_id.is_empty() && message.context_id != viewer.context() {
            let why = "`contextId` is not that of the task";
            return Err(invalid("message.contextId", why));
        }
        let interrupted = viewer.state(&task.state).is_interrupted();
        let task::TaskState::Asking(asking) = task.state.clone() else {
            return Err(waits_for_nothing(id));
        };
        if !interrupted {
            return Err(waits_for_nothing(id));
        }
        let recorded = incoming::recorded(&self.a2a, &self.caller, &message, body).await?;
        let own: Vec<_> = asking.asks.iter().filter(|ask| viewer.may_answer(ask)).collect();
        let read = if own.is_empty() { Answer::Note } else { asks::answer(&own, &message) };
        let misfit = match read {
            // A note has no key of its own: a repeat is known by its id.
            Answer::Note | Answer::Misfit(_)
                if once.is_some() && task.has_message(&message.message_id) =>
            {
                return Ok(run);
            }
            Answer::Note => None,
            Answer::Misfit(why) => Some(why),
            Answer::To(ask, reply) => {
                let sent = recorded.clone();
                let asks = engine.asks();
                match asks.reply_by(&self.caller, ask, reply, once, sent).await {
                    Ok(_) => return Ok(run),
                    Err(refusal) if is_misfit(refusal.kind()) => Some(told(&refusal)),
                    Err(refusal) => return Err(refused(refusal, "message.parts")),
                }
            }
        };
        let noted = engine::Message { misfit: misfit.map(Arc::from), ..recorded };
        let noted = engine.runs().note(&self.caller, run, noted).await;
        noted.map_err(|refusal| refused_task(refusal, id))?;
        Ok(run)
    }
}

fn waits_for_nothing(id: &str) -> A2aError {
    unsupported(format!("task `{id}` waits for no message"))
}

/// An answer of the wrong form is asked for again; all else is an error.
fn is_misfit(kind: RefusalKind) -> bool {
    matches!(kind, RefusalKind::WrongShape | RefusalKind::BadRequest)
}

fn told(refusal: &engine::Refusal) -> String {
    let values =
        refusal.errors.iter().map(|misfit| format!("`{}` {}", misfit.pointer, misfit.message));
    std::iter::once(refusal.message.clone()).chain(values).collect::<Vec<_>>().join("; ")
}
