//! Payloads of facts: requests, starts, endings.

use crate::ask::Decision;
use crate::ask::remedy::{Remedy, RemedyResult};
use crate::conversation::llm::{Native, Stop, Usage};
use crate::conversation::talk::AgentQuestion;
use crate::values::datum::{Datum, Sources};
use crate::values::fault::Fault;
use crate::values::ids::{
    AgentName, AskId, CallId, ContentHash, ContextKey, FrameId, Millis, PlanId, RunId, SessionId,
    SessionKey, StepId, ToolName,
};
use crate::values::named_enum::named;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many characters a text of an occasion has at most; what is longer is cut.
pub const OCCASION_CHARS_MAX: usize = 200;

/// Where a run came from, as far as its endpoint knows. It is for counting and comparing runs;
/// nothing is decided by it, but for `hops`, which ends circles of agents, and `makers`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Occasion {
    /// The kind of case: why it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Cow<'static, str>>,
    /// By which kind of endpoint: `rest`, `mcp`, `run`, `pipeline`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Cow<'static, str>>,
    /// Where at that endpoint: a route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Cow<'static, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Cow<'static, str>>,
    /// In which variant, where several are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<Cow<'static, str>>,
    /// The run that caused it, or that it is a copy of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Cow<'static, str>>,
    /// Through how many agents it came, where it came from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hops: Option<u32>,
    /// Makers of the key that it was started with, except the starter: they cannot approve what
    /// another person must.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub makers: Vec<Arc<str>>,
}

impl Occasion {
    /// A request by this kind of endpoint, at this place.
    pub fn at(trigger: &'static str, endpoint: impl Into<Cow<'static, str>>) -> Self {
        let trigger = Some(Cow::Borrowed(trigger));
        let endpoint = Some(endpoint.into());
        Self { trigger, endpoint, ..Self::default() }
    }

    /// As it is recorded: with texts that are not too long, and not at all where nothing is known.
    pub fn recorded(mut self) -> Option<Box<Self>> {
        let Self { kind, trigger, endpoint, mode, variant, account, .. } = &mut self;
        for text in [kind, trigger, endpoint, mode, variant, account].into_iter().flatten() {
            if let Some((end, _)) = text.char_indices().nth(OCCASION_CHARS_MAX) {
                text.to_mut().truncate(end);
            }
        }
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// Why a run is being closed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Closing {
    Failed(Fault),
    /// This person cancelled it.
    Cancelled(Arc<str>),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "lowercase")]
pub enum Outcome {
    Completed {
        answer: Arc<Datum>,
    },
    /// Aborted, rejected, or a limit was reached.
    Failed {
        fault: Fault,
    },
    Cancelled {
        by: Arc<str>,
        /// Calls whose outcome no one knows.
        unknown: Vec<CallId>,
    },
}

/// What a step wants of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRequest {
    pub call: CallId,
    pub frame: FrameId,
    pub step: StepId,
    /// Which try: grows after a known failure or changed arguments.
    #[serde(rename = "try")]
    pub try_no: u32,
    pub tool: ToolName,
    /// The resolved arguments.
    pub arguments: Arc<Value>,
    /// For each argument, by JSON Pointer, what it was built from.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: Sources,
    /// The context key for the output.
    pub save_as: ContextKey,
    /// Where the frame goes then.
    pub next: Option<StepId>,
    /// Whether the plan wants a person's approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approve: bool,
    /// An approval that already covers exactly this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<AskId>,
    /// The call that this one stands in for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<CallId>,
}

/// One branch of a parallel step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BranchStart {
    pub frame: FrameId,
    /// Its id in the plan.
    pub id: String,
    /// Its first step; an empty branch has none.
    pub start: Option<StepId>,
}

/// A loop as it begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoopStart {
    pub frame: FrameId,
    pub step: StepId,
    /// The items, pinned; many of them lie in a blob.
    pub items: Arc<Datum>,
    pub count: u32,
    /// The context key of the item.
    pub alias: ContextKey,
    /// How many iterations run at the same time.
    pub concurrency: u32,
    /// Whether failures are collected.
    pub collect: bool,
    /// The first step of an iteration.
    pub start: Option<StepId>,
    /// Where the parent goes after the last item.
    pub next: Option<StepId>,
}

/// A plan as a step, as it begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanEntry {
    /// The frame that waits.
    pub frame: FrameId,
    pub step: StepId,
    pub child: FrameId,
    pub plan: PlanId,
    pub input: Arc<Datum>,
    /// Its first step.
    pub start: StepId,
    /// The context key for its answer.
    pub save_as: ContextKey,
    /// Where the parent goes then.
    pub next: Option<StepId>,
}

/// A correction as it begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CorrectionEntry {
    /// The frame whose step failed.
    pub frame: FrameId,
    pub step: StepId,
    pub child: FrameId,
    pub plan: PlanId,
    /// Input: the failure.
    pub input: Arc<Datum>,
    /// Its first step.
    pub start: StepId,
    /// The ask that chose it.
    pub ask: AskId,
    /// Until when it may take.
    pub ends_at: Millis,
    /// The plan itself, where a model wrote it for this step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drafted: Option<Arc<Value>>,
}

/// A correction as it ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CorrectionEnd {
    /// The frame whose step failed.
    pub frame: FrameId,
    pub child: FrameId,
    /// Its result.
    pub found: RemedyResult,
}

/// A model as it is asked about a failed step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProposalStart {
    /// The frame whose step failed.
    pub frame: FrameId,
    pub step: StepId,
    /// The ask that chose it.
    pub ask: AskId,
    /// The requested proposal, and its model.
    pub does: Remedy,
    /// Which attempt, from 1: one that a process did not live to see is made again.
    pub attempt: u32,
}

/// What a model said about a failed step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProposalEnd {
    /// The frame whose step failed.
    pub frame: FrameId,
    pub attempt: u32,
    /// Its result.
    pub found: RemedyResult,
    /// How many turns it took.
    pub turns: u32,
    pub usage: Usage,
    /// What that cost, in millionths of a dollar, where the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// Cost without the provider's cache, if that was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncached_micros: Option<u64>,
}

impl ProposalEnd {
    /// A proposal that failed before a model answered.
    pub fn nothing(frame: FrameId, attempt: u32, fault: Fault) -> Self {
        let found = RemedyResult::nothing(fault);
        let usage = Usage::default();
        Self { frame, attempt, found, turns: 0, usage, cost_micros: None, uncached_micros: None }
    }
}

/// A step that is tried again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepAgain {
    pub frame: FrameId,
    pub step: StepId,
}

/// A timer as it is set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimerStart {
    /// Its name in the session.
    pub timer: String,
    /// When it fires.
    pub at: Millis,
}

/// An agent step as it begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentEntry {
    pub frame: FrameId,
    pub step: StepId,
    /// The agent, which the run's closure pins.
    pub agent: AgentName,
    /// A text, or a value that the model gets as JSON.
    pub input: Arc<Datum>,
    /// Whether it continues the session's conversation.
    pub continues: bool,
    /// With how many of that conversation's newest requests it continues; all where this is none.
    /// What stands before them is left behind. Counted from the end: neither a removed beginning
    /// nor a fork changes which they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeps: Option<u32>,
    /// Whether its model speaks in commands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub commands: bool,
    /// The context key for its answer.
    pub save_as: ContextKey,
    /// Where the frame goes then.
    pub next: Option<StepId>,
}

named! {
    /// What a turn is for.
    TurnKind {
        /// Which types of tools the request needs.
        Route = "route",
        /// The task itself.
        Act = "act",
        /// What older lines come down to.
        Sum = "sum",
    }
}

/// A turn of a model as it begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnStart {
    /// The agent's frame.
    pub frame: FrameId,
    /// Which turn of the agent, from 1, those of its router included.
    pub turn: u32,
    /// Which attempt, from 1.
    pub attempt: u32,
    pub kind: TurnKind,
    /// The model, by its name in this project.
    pub model: Arc<str>,
    /// sha256 over all that it is asked.
    pub digest: ContentHash,
    /// The version of the code that rendered it.
    pub renderer: u16,
    /// How many tokens it may write, of what the agent may spend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<u64>,
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnd {
    /// The agent's frame.
    pub frame: FrameId,
    pub turn: u32,
    pub attempt: u32,
    pub kind: TurnKind,
    pub text: Arc<str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallMade>,
    /// Where the router leads, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Route>,
    /// Whether the agent is done once these calls are: a command said so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stops: bool,
    #[serde(default)]
    pub stop: Stop,
    pub usage: Usage,
    /// What that cost, in millionths of a dollar, where the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// Cost without the provider's cache, if that was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncached_micros: Option<u64>,
    /// Provider-specific members that must be returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<Arc<Native>>,
}

/// A call that a model made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallMade {
    pub call: CallId,
    /// Its frame; none for a question, and for a tool that the agent does not see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<FrameId>,
    /// The tool, as the model said it.
    pub said: Arc<str>,
    /// The tool, where the agent sees one of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolName>,
    pub arguments: Arc<Value>,
    /// What a person is asked, where it is a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<AgentQuestion>,
    /// Whether the agent wants a person's approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approve: bool,
    /// Why it is not sent at all: no such tool, arguments that are no object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Fault>,
}

/// Where a router leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Whether the request is taken on; if not, only questions are possible.
    pub allow: bool,
    /// Why, in words.
    pub note: String,
    /// The types of tools that it needs.
    pub types: Vec<String>,
}

/// What the removed beginning of a journal left: all that later events can see of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Base {
    /// The session, whose first event went with the others.
    pub id: SessionId,
    pub key: SessionKey,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Arc<str>>,
    pub created_at: Millis,
    /// The context that the removed runs left.
    pub context: BTreeMap<ContextKey, Arc<Datum>>,
    /// How many runs there had been: later ones are counted on.
    pub runs: u32,
    /// How many frames there had been.
    pub frames: u32,
    /// Timers that ran.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub timers: BTreeMap<String, Millis>,
    /// The last ask that a reply had closed, for replies that come too late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_decided: Option<(AskId, Decision)>,
    /// The conversation so far: a JSON array of messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub talk: Option<Arc<Datum>>,
    /// The same for each agent, where several runs may be active at once.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub talks: BTreeMap<AgentName, Arc<Datum>>,
}

/// A run that stands behind another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuedRun {
    pub run: RunId,
    /// The one that must be over before it continues.
    pub behind: RunId,
}

/// What a fact is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    Run(RunId),
    /// A frame of a run.
    Frame(FrameId),
    /// A call of a run.
    Call(CallId),
    /// An ask of a run.
    Ask(AskId),
    /// The session, or a timer of it.
    Session,
}
