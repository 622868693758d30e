//! What endpoints ask of the engine and what it answers: the parameters and results of `handles`.
//! Names that end in `Request` or `Options` are asked, those that end in `Report` are answers. How
//! an endpoint writes them on its wire is in crates `wire` and `edge`.

use crate::catalog::Callable;
use crate::catalog::plan_cache::ReportedPlan;
use kernel::contracts::SessionAsk;
use kernel::definition::agent::Agent;
use kernel::definition::pipeline::Tally;
use kernel::definition::plan::Closure;
use kernel::event::{Fact, Occasion, ReceivedMessage};
use kernel::journal::projection::{FormerRoute, RunRow, SessionRow};
use kernel::session::RunStatus;
use kernel::tool::call::{Abilities, CallReporter, InputRequired, InputResponses};
use kernel::values::datum::{BlobRef, Datum, Origin};
use kernel::values::ids::{
    AgentName, AskId, ContentHash, Millis, PipelineName, PlanId, RunId, StepId, ToolName,
};
use kernel::values::trace::TraceParent;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The plan that a run executes.
#[derive(Debug, Clone, PartialEq)]
pub enum RunTarget {
    /// A plan of the catalog.
    Plan(PlanId),
    /// A plan that came with the request; it is stored with the run.
    Inline(Value),
    /// A closure that was pinned earlier, whatever the catalog has now.
    Pinned(Arc<Closure>),
}

/// In which session a run happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunSession {
    New,
    /// In the one with this key, made if there is none.
    Named(String),
    /// In the one that keeps this thread's conversation, made if there is none.
    Thread(String),
    /// Beside the other runs of this context, made if there is none.
    Context(String),
    /// In a new context with this name, which was made up just now: no one else can know it.
    NewContext(String),
    /// In the one that keeps this case of a pipeline, made if there is none.
    Case(PipelineName, String),
    /// In this one, which must exist.
    Existing(kernel::contracts::SessionRef),
}

/// Which of its own runs in contexts a caller lists, the one that changed last first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextRuns {
    /// Of this context; of all where none is named.
    pub context: Option<String>,
    /// Of these statuses; of any where none is named.
    pub statuses: Vec<RunStatus>,
    /// That changed at this time or later.
    pub since: Option<Millis>,
}

/// A key by which a client repeats a request without repeating what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The endpoint: method and path, ids in it included.
    pub route: String,
    /// The client's key.
    pub key: String,
    /// The hash of the request's body: another body under the same key is refused.
    pub digest: ContentHash,
    /// A second route under which the same request may be remembered: of the time window before,
    /// where routes name one.
    pub earlier: Option<FormerRoute>,
}

impl IdempotencyKey {
    /// A key that counts for as long as the store remembers it.
    pub fn new(route: String, key: String, digest: ContentHash) -> Self {
        Self { route, key, digest, earlier: None }
    }
}

/// A run to start.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRequest {
    pub target: RunTarget,
    pub input: Value,
    pub session: RunSession,
    /// The request's key, if it has one.
    pub once: Option<IdempotencyKey>,
    pub about: RunMetadata,
}

/// Metadata of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunMetadata {
    /// The caller's span.
    pub trace: Option<TraceParent>,
    /// The path that a case takes: it is counted with the run's start.
    pub tally: Option<Tally>,
    /// What caused it.
    pub occasion: Occasion,
    /// The message that starts it, where its client reads that back.
    pub message: Option<Message>,
}

/// A message of a client that reads its messages back, as it is recorded with what it does.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The id that the client gave it.
    pub id: Arc<str>,
    /// The message, as its protocol writes it; files are named by the URIs of their blobs.
    pub body: Value,
    pub files: Vec<BlobRef>,
    /// Why it does not answer what its run asks, where it was meant to.
    pub misfit: Option<Arc<str>>,
}

impl Message {
    pub(crate) fn received(self, run: RunId) -> Fact {
        let Self { id, body, files, misfit } = self;
        let message = Arc::new(Datum::inline(body, Origin::Input));
        Fact::MessageReceived(Box::new(ReceivedMessage { run, id, message, files, misfit }))
    }
}

/// A tool to call in a run that reports what became of the call.
#[derive(Debug, Clone)]
pub struct ReportedCall {
    /// What the endpoint makes of a call.
    pub plan: ReportedPlan,
    /// The tool; none where nothing is called, for a reason that the input says.
    pub tool: Option<ToolName>,
    /// What the plan reads.
    pub input: Value,
    /// The context, or a new one.
    pub session: RunSession,
    /// The request's key, if it has one.
    pub once: Option<IdempotencyKey>,
    pub about: RunMetadata,
    /// How long its end is waited for; without it, until it has begun.
    pub wait_ms: Option<u64>,
}

/// A message of a person to an agent, in a conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ThreadMessage<'a> {
    /// To whom; the only agent of the realm where no one is named.
    pub agent: Option<&'a AgentName>,
    pub thread: &'a str,
    pub text: &'a str,
    /// The request's key, if it has one.
    pub once: Option<IdempotencyKey>,
    /// The caller's span.
    pub trace: Option<TraceParent>,
    /// What causes the run.
    pub occasion: Occasion,
}

/// How a case is taken.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SubmitOptions {
    /// How long the caller waits, for its turn and for the run together.
    pub wait_ms: u64,
    /// The request's key, if it has one.
    pub once: Option<IdempotencyKey>,
    /// The caller's span.
    pub trace: Option<TraceParent>,
    /// What causes the run; the kind of case is added to it.
    pub occasion: Occasion,
}

/// The outcome of a case.
#[derive(Debug, Clone, PartialEq)]
pub enum CaseReport {
    /// Its run ended, or waits for someone itself.
    Ran(RunReport),
    /// An earlier run of the case waits for someone, or is paused; nothing was begun.
    Waits {
        report: RunReport,
        /// Whether a handler has it, by the plan that it began with.
        deterministic: bool,
    },
    /// Time is up. The run continues, if there is one: without it nothing was begun, nor will be.
    Late(Option<RunReport>),
}

/// A reply that names a session instead of an ask.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionReply {
    /// The input, by kind of ask.
    pub input: Option<Value>,
    /// The ask, if several are open.
    pub ask: Option<AskId>,
    /// The step, beside or instead of the ask.
    pub step: Option<StepId>,
    /// The request's key, if it has one.
    pub once: Option<IdempotencyKey>,
}

/// A run as an endpoint may show it: everything in it is durable.
#[derive(Debug, Clone, PartialEq)]
pub struct RunReport {
    pub run: RunRow,
    pub session: SessionRow,
    /// Its open asks.
    pub asks: Vec<SessionAsk>,
    /// An earlier request with the same key did it; this one did nothing.
    pub replayed: bool,
    /// A call of it continues elsewhere, as a task of another server does. A report out of the
    /// store does not say so.
    pub elsewhere: bool,
}

impl RunReport {
    /// Whether it continues without a person: it moves, or rules hold all that it asks.
    pub fn is_moving(&self) -> bool {
        let held = || self.asks.iter().all(|asked| asked.row.ask.held.is_some());
        match self.run.status {
            RunStatus::Running => true,
            RunStatus::Stuck => !self.asks.is_empty() && held(),
            RunStatus::Waiting
            | RunStatus::Paused
            | RunStatus::Completed
            | RunStatus::Failed
            | RunStatus::Cancelled => false,
        }
    }
}

/// A tool, or a plan as a tool, to call.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// The tool or the plan, as the caller found it.
    pub tool: Callable,
    pub arguments: Arc<Value>,
    /// The answers to what it wanted when it was called before.
    pub given: InputResponses,
    /// Abilities of the caller. A call that becomes a run can ask a person instead.
    pub can: Abilities,
    /// Whom it tells how far it is, while the caller waits.
    pub teller: CallReporter,
    /// The request's key, if it has one.
    pub once: Option<IdempotencyKey>,
    /// The id of the run, if it becomes one.
    pub run: Option<RunId>,
    /// Whether what is slow, or continues elsewhere, becomes a run at once, which the caller looks
    /// at later.
    pub as_task: bool,
    /// How long the caller waits.
    pub wait_ms: u64,
    /// The caller's span.
    pub trace: Option<TraceParent>,
    /// What causes the run, if it becomes one.
    pub occasion: Occasion,
}

impl CallRequest {
    /// A call that wants nothing special.
    pub fn new(tool: Callable, arguments: impl Into<Arc<Value>>, wait_ms: u64) -> Self {
        Self {
            tool,
            arguments: arguments.into(),
            given: InputResponses::default(),
            can: Abilities::PERSON,
            teller: CallReporter::default(),
            once: None,
            run: None,
            as_task: false,
            wait_ms,
            trace: None,
            occasion: Occasion::default(),
        }
    }
}

/// A call of something that its caller does not see, for the audit: it may be there all the same.
#[derive(Debug, Clone, Default)]
pub struct UnseenCall {
    /// The names under which its endpoint looked for it.
    pub names: Vec<String>,
    pub arguments: Value,
    /// The caller's span.
    pub trace: Option<TraceParent>,
    /// What would have caused the run, if it had become one.
    pub occasion: Occasion,
}

/// The outcome of a direct call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallReport {
    /// The output.
    Done(Value),
    /// The output of an earlier request with the same key; this one did nothing.
    Repeated(Value),
    /// A tool that reads needs something of its caller first; nothing happened yet. What became a
    /// run asks a person instead, and is pending.
    Wants(Box<InputRequired>),
    /// A person is asked, or it takes longer than the caller waits.
    Pending(Box<RunReport>),
    /// It is over, without an output: it failed or was cancelled.
    Failed(Box<RunReport>),
}

/// The outcome of a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplyReport {
    /// The ask with the decision.
    pub ask: SessionAsk,
    /// The run, once it ended or paused again.
    pub run: RunReport,
    /// An earlier request with the same key gave it; this one did nothing.
    pub replayed: bool,
}

/// A plan that is stored now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredPlan {
    pub id: PlanId,
    /// Its version, from 1.
    pub version: u64,
}

/// An agent that is stored now.
#[derive(Debug, Clone, PartialEq)]
pub struct RegisteredAgent {
    pub agent: Arc<Agent>,
    /// Its version, from 1.
    pub version: u64,
    /// When it was stored.
    pub updated_at: Millis,
}

/// A session as an endpoint shows it: committed state.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspection {
    pub row: SessionRow,
    /// Its context, the active run's writes included; large values as blob URIs.
    pub context: Map<String, Value>,
}
