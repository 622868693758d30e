//! A remote A2A agent as its tools call it, and its tasks while a call follows them.

use super::card::Dialect;
use super::dialect::{EncodedOperation, Endpoint, Operation, OperationError};
use super::exchange::{AgentChannel, Reply, Request};
use crate::state::Board;
use crate::{RemoteParts, cut, lock};
use futures::future::{Either, select};
use kernel::tool::call::{Call, CallProgress, ToolError};
use kernel::values::trace::TraceParent;
use outbound::answer::{Effect, is_passing};
use reqwest::header::HeaderName;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, Weak};
use tokio::sync::Notify;
use wire::a2a::error::ErrorKind;
use wire::a2a::message::Message;
use wire::a2a::proto::Operation as Defined;
use wire::a2a::task::{StreamResponse, Task};
use wire::a2a::{
    HEADER_EXTENSIONS, HEADER_EXTENSIONS_OLD, HEADER_VERSION, SKILLS_EXTENSION, VERSION,
};

/// How metadata names a skill to an agent that does not know our extension.
const SKILL_HINT: &str = "skillId";
/// How long an agent may take to hear that a task is cancelled.
const CANCEL_MS: u64 = 10_000;
/// How soon after a call was dropped a stop of ours begins, if that is why.
const STOP_MS: u64 = 2_000;
/// How many bytes the answer to a cancellation may have.
const CANCEL_BYTES_MAX: usize = 1_000_000;
/// How much of what an agent says is quoted.
const TOLD_CHARS_MAX: usize = 2_000;

pub(super) struct Agent {
    pub(super) channel: AgentChannel,
    pub(super) endpoint: Endpoint,
    /// The extensions of ours that it knows, as a header names them.
    pub(super) extensions: Option<&'static str>,
    pub(super) parts: RemoteParts,
    /// Its status board, which also signals the stop.
    pub(super) board: Weak<Board>,
    pub(super) origin: String,
    /// How long one call may take.
    pub(super) timeout_ms: Option<u64>,
    /// The calls that follow tasks now, by their tasks.
    pub(super) followers: Followers,
}

/// How calls that follow tasks are told to cancel them.
pub(super) type Followers = Mutex<BTreeMap<String, Arc<Notify>>>;

/// One exchange.
struct ExchangeOptions {
    effect: Effect,
    bytes_max: usize,
    /// How long it may take: the deadline that is sent to an agent of gRPC.
    within_ms: u64,
    trace: Option<TraceParent>,
}

impl ExchangeOptions {
    fn of(agent: &Agent, call: &Call, effect: Effect) -> Self {
        let within_ms = agent.timeout_ms.unwrap_or(u64::MAX).min(call.timeout_ms);
        Self { effect, bytes_max: call.output_bytes_max, within_ms, trace: call.context.trace }
    }
}

/// Why an agent did not say how a task is.
pub(super) enum LookupError {
    /// It could not be reached, or answered something that is not A2A: it may later.
    Passing(ToolError),
    /// It says that it does not, and why.
    Refused(ToolError),
}

impl Agent {
    /// A sentence about the agent.
    pub(super) fn named(&self, what: &str) -> String {
        format!("agent `{}`: {what}", self.channel.name)
    }

    pub(super) async fn send(
        &self,
        message: Message,
        call: &Call,
    ) -> Result<StreamResponse, ToolError> {
        let asked = ExchangeOptions::of(self, call, Effect::Writes);
        let answer = self.ask(&Operation::Send(message), &asked).await?;
        answer.map_err(|refused| self.refused(refused))
    }

    /// Does one operation for nobody's call, with an answer of at most so many bytes in so much
    /// time.
    pub(super) async fn done(
        &self,
        operation: &Operation,
        effect: Effect,
        bytes_max: usize,
        within_ms: u64,
    ) -> Result<StreamResponse, ToolError> {
        let asked = ExchangeOptions { effect, bytes_max, within_ms, trace: None };
        let answer = self.ask(operation, &asked).await?;
        answer.map_err(|refused| self.refused(refused))
    }

    /// Says in a message which skill it is for.
    pub(super) fn name_skill(&self, message: &mut Message, skill: &str) {
        match self.extensions {
            Some(known) if known.contains(SKILLS_EXTENSION) => {
                message.metadata.insert(SKILLS_EXTENSION.to_owned(), json!({"skill": skill}));
                message.extensions.push(SKILLS_EXTENSION.to_owned());
            }
            _ => drop(message.metadata.insert(SKILL_HINT.to_owned(), json!(skill))),
        }
    }

    pub(super) async fn get(&self, task: &str, call: &Call) -> Result<Task, LookupError> {
        let asked = ExchangeOptions::of(self, call, Effect::Reads);
        let answer = match self.ask(&Operation::Get(task.to_owned()), &asked).await {
            Ok(answer) => answer,
            Err(error) if error.fault.passing => return Err(LookupError::Passing(error)),
            Err(error) => return Err(LookupError::Refused(error)),
        };
        match answer {
            Ok(StreamResponse::Task(task)) => Ok(*task),
            Ok(_) => Err(LookupError::Passing(self.not_a2a("it answered no task"))),
            Err(refused) if is_final(&refused) => Err(LookupError::Refused(self.refused(refused))),
            Err(refused) => Err(LookupError::Passing(self.refused(refused))),
        }
    }

    /// Cancels a task; how it is then, if the agent says so. One that is over, or that the agent
    /// does not know, needs that no more.
    pub(super) async fn cancel(&self, task: &str) -> Option<Task> {
        let asked = ExchangeOptions {
            effect: Effect::Reads,
            bytes_max: CANCEL_BYTES_MAX,
            within_ms: CANCEL_MS,
            trace: None,
        };
        let operation = Operation::Cancel(task.to_owned());
        let cancelling = self.ask(&operation, &asked);
        let why = match self.parts.within(CANCEL_MS, cancelling).await {
            Some(Ok(Ok(StreamResponse::Task(told)))) => {
                return Some(*told).filter(|told| told.id == task);
            }
            Some(Ok(Ok(_))) => return None,
            Some(Ok(Err(refused))) => self.refused(refused).fault.message,
            Some(Err(error)) => error.fault.message,
            None => format!("no answer within {CANCEL_MS} ms"),
        };
        let agent = self.channel.name.as_str();
        tracing::debug!(agent, task, "a task of an agent was not cancelled: {why}");
        None
    }

    /// Cancels a task at once. The call that follows it does that, and has the outcome.
    pub(super) fn stop(self: &Arc<Self>, task: String) {
        let follower = lock(&self.followers).get(&task).cloned();
        match follower {
            Some(follower) => follower.notify_one(),
            None => self.cancel_soon(task),
        }
    }

    async fn ask(
        &self,
        operation: &Operation,
        asked: &ExchangeOptions,
    ) -> Result<Result<StreamResponse, OperationError>, ToolError> {
        let sent = self.endpoint.request(operation);
        let reply = self.exchange(&sent, operation.defined(), asked).await?;
        Ok(self.endpoint.read(operation, &sent, &reply))
    }

    /// Its card for callers with credentials, as it is; none where it has no such card.
    pub(super) async fn extended_card(
        &self,
        bytes_max: usize,
        within_ms: u64,
    ) -> Result<Option<Value>, ToolError> {
        let Some(sent) = self.endpoint.extended_card() else { return Ok(None) };
        let asked = ExchangeOptions { effect: Effect::Reads, bytes_max, within_ms, trace: None };
        let reply = self.exchange(&sent, Defined::GetExtendedAgentCard, &asked).await?;
        let card = self.endpoint.result(&sent, &reply);
        card.map(Some).map_err(|refused| self.refused(refused))
    }

    async fn exchange(
        &self,
        sent: &EncodedOperation,
        defined: Defined,
        asked: &ExchangeOptions,
    ) -> Result<Reply, ToolError> {
        let request = Request {
            method: sent.method.clone(),
            url: sent.url.clone(),
            headers: self.headers(),
            media_type: sent.media_type,
            body: sent.body.as_ref(),
            effect: asked.effect,
            bytes_max: asked.bytes_max,
            trace: asked.trace,
        };
        match self.endpoint.dialect {
            Dialect::Grpc => self.channel.call(request, defined, asked.within_ms).await,
            _ => self.channel.exchange(request).await,
        }
    }

    fn headers(&self) -> Vec<(HeaderName, &'static str)> {
        let header =
            |name: &'static str, value: &'static str| (HeaderName::from_static(name), value);
        match (self.endpoint.dialect, self.extensions) {
            (Dialect::Rpc | Dialect::Rest | Dialect::Grpc, extensions) => {
                let extensions = extensions.map(|uris| header(HEADER_EXTENSIONS, uris));
                [Some(header(HEADER_VERSION, VERSION)), extensions].into_iter().flatten().collect()
            }
            (Dialect::OldRpc | Dialect::OldRest, Some(uris)) => {
                vec![header(HEADER_EXTENSIONS_OLD, uris)]
            }
            (Dialect::OldRpc | Dialect::OldRest | Dialect::Vault, _) => Vec::new(),
        }
    }

    /// The error of an operation that the agent did not do, or did not answer well.
    fn refused(&self, refused: OperationError) -> ToolError {
        match refused {
            OperationError::Error(error) => {
                let told = cut(&error.message, TOLD_CHARS_MAX);
                let kind = error.kind.reason().map(|reason| format!(" ({reason})"));
                let what = format!("it refused{}: {told}", kind.unwrap_or_default());
                let message = self.named(&what);
                let said = error.to_rpc().to_value();
                match error.kind {
                    ErrorKind::Unauthenticated => {
                        self.unauthorized("UpstreamUnauthorized", message)
                    }
                    ErrorKind::PermissionDenied => self.unauthorized("UpstreamForbidden", message),
                    ErrorKind::ResourceExhausted => {
                        ToolError::failed("UpstreamError", message).answered(said).passing()
                    }
                    _ => ToolError::failed("UpstreamError", message).answered(said),
                }
            }
            OperationError::Status(status @ (401 | 403), _) => {
                let message = self.named(&format!("it answered HTTP {status}"));
                self.unauthorized("UpstreamUnauthorized", message)
            }
            OperationError::Status(status, how) => {
                let message = self.named(&format!("it answered HTTP {status}"));
                let error = match how {
                    CallProgress::Unknown => Effect::Writes.lost("HttpStatus", message),
                    CallProgress::Failed | CallProgress::NotSent => {
                        ToolError::failed("HttpStatus", message)
                    }
                };
                if is_passing(status) { error.passing() } else { error }
            }
            OperationError::Ended(status) => {
                let told = cut(&status.message, TOLD_CHARS_MAX);
                let what = format!("it ended the call with {}: {told}", status.name());
                Effect::Writes.lost("UpstreamError", self.named(&what)).passing()
            }
            OperationError::Invalid(why) => self.not_a2a(&cut(&why, TOLD_CHARS_MAX)),
        }
    }

    fn unauthorized(&self, name: &str, message: String) -> ToolError {
        let hint = format!("check `auth` and `headers` of this agent in {}", self.origin);
        ToolError::failed(name, message).hint(hint)
    }

    /// It answered, but not in A2A: what was asked for may have happened.
    pub(super) fn not_a2a(&self, why: &str) -> ToolError {
        Effect::Writes.lost("UpstreamNotA2a", self.named(why))
    }

    /// Cancels a task that no call follows any more.
    pub(super) fn cancel_soon(self: &Arc<Self>, task: String) {
        let agent = self.clone();
        let cancelling = async move { drop(agent.cancel(&task).await) };
        self.parts.spawn.task("cancel agent task", Box::pin(cancelling));
    }
}

/// Whether the agent means the task, and not how it is itself.
fn is_final(refused: &OperationError) -> bool {
    match refused {
        OperationError::Error(error) => {
            !matches!(error.kind, ErrorKind::Internal | ErrorKind::ResourceExhausted)
        }
        OperationError::Status(status, _) => !is_passing(*status),
        // Something on the way may have answered in its place.
        OperationError::Ended(_) | OperationError::Invalid(_) => false,
    }
}

/// A task that a call follows. It is cancelled when the call is dropped, unless it is over or the
/// call comes back for it.
pub(super) struct RunningTask {
    agent: Arc<Agent>,
    task: String,
    /// Whether nothing is to be done about it any more.
    pub(super) over: bool,
    /// Whether its id is on record: the next process finds it.
    is_recorded: bool,
    /// Tells that it is to be cancelled.
    stop: Arc<Notify>,
}

impl RunningTask {
    /// A task that is not over.
    pub(super) fn new(agent: &Arc<Agent>, task: &str, is_recorded: bool) -> Self {
        let stop = Arc::new(Notify::new());
        lock(&agent.followers).insert(task.to_owned(), stop.clone());
        Self { agent: agent.clone(), task: task.to_owned(), over: false, is_recorded, stop }
    }

    /// Waits for so long, or until the task is to be cancelled; whether it is.
    pub(super) async fn is_stopped_within(&self, ms: u64) -> bool {
        let pause = self.agent.parts.clock.sleep_ms(ms);
        matches!(select(pin!(self.stop.notified()), pause).await, Either::Left(_))
    }
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        lock(&self.agent.followers).remove(&self.task);
        if self.over {
            return;
        }
        let agent = self.agent.clone();
        let task = std::mem::take(&mut self.task);
        if !self.is_recorded {
            return agent.cancel_soon(task);
        }
        // A stop of ours drops calls as well, and tells us a moment later: then the task continues
        // there, and the next process looks at it.
        let spawn = agent.parts.spawn.clone();
        let cancelling = async move {
            let Some(board) = agent.board.upgrade() else { return };
            let pause = agent.parts.clock.sleep_ms(STOP_MS);
            let stops = matches!(select(pin!(board.stopping()), pause).await, Either::Left(_));
            if !stops {
                agent.cancel(&task).await;
            }
        };
        spawn.task("cancel agent task", Box::pin(cancelling));
    }
}
