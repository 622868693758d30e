//! A session's state: what its events add up to. `apply` is the only change; the size of the state
//! follows what is open now, not how long the session is.

use crate::ask::{Ask, Decision};
use crate::conversation::talk::Talk;
use crate::definition::rule::Rules;
use crate::event::{CallRequest, Closing, Outcome};
use crate::tool::call::{CallProgress, InputRequired, InputResponses, Judgement, Pins, Reach};
use crate::values::datum::Datum;
use crate::values::fault::Fault;
use crate::values::ids::{
    AgentName, AskId, CallId, ContentHash, ContextKey, FrameId, Millis, PlanId, RunId, SessionId,
    SessionKey, StepId,
};
use crate::values::named_enum::named;
use crate::values::trace::TraceParent;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

mod run;
mod concurrent_runs;
mod spent;
pub mod frame;
mod usage;
mod deadlines;
pub mod apply;
mod apply_asks;
mod apply_calls;
mod apply_wants;
mod apply_frames;
mod apply_corrections;
mod apply_proposals;
mod apply_agent;
mod apply_agent_calls;
mod snapshot;

pub use apply_agent::turn_timer;
pub use apply_wants::{answer_to, login_look, login_timer};
pub use frame::{AgentPhase, AgentState, Frame, FrameKind, FrameState, Join, JoinKind};
pub use run::Delegation;
pub use spent::RunSpent;
pub use usage::RunUsage;

/// A context: key to value.
pub type Context = BTreeMap<ContextKey, Arc<Datum>>;

/// A session as its events left it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    pub id: SessionId,
    pub key: SessionKey,
    /// Whose it is: of who made it, or started its first run. No one's in local mode.
    pub owner: Option<Arc<str>>,
    pub created_at: Millis,
    /// When its last event was recorded.
    pub updated_at: Millis,
    /// The sequence of its last event.
    pub seq: u64,
    /// Context that ended runs left.
    pub context: Arc<Context>,
    /// The active runs.
    pub runs: BTreeMap<RunId, Run>,
    /// The run that ended last.
    pub last_run: Option<Run>,
    /// The frames of the active runs.
    pub frames: BTreeMap<FrameId, Frame>,
    /// Calls that are not settled.
    pub calls: BTreeMap<CallId, OpenCall>,
    /// Asks that are open, or decided and not yet acted upon.
    pub asks: BTreeMap<AskId, OpenAsk>,
    /// Frames that something happened to: `next` decides for these only.
    pub ready: BTreeSet<FrameId>,
    /// How many frames were made.
    pub frames_made: u32,
    /// How many runs were started.
    pub runs_made: u32,
    /// Running timers.
    pub timers: BTreeMap<String, Millis>,
    /// Timers that fire later than is recorded. Only this process knows, so no snapshot has them.
    #[serde(skip)]
    pub postponed: BTreeMap<String, Millis>,
    /// The corrections under way that models wrote, as JSON.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub drafted: BTreeMap<PlanId, Arc<Value>>,
    /// The conversation that ended runs left.
    #[serde(default)]
    pub talk: Talk,
    /// The same for each agent, where several runs may be active at once.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub talks: BTreeMap<AgentName, Talk>,
    /// The last ask that a reply closed, for replies that come too late.
    pub last_decided: Option<(AskId, Decision)>,
}

named! {
    /// Where a run stands.
    RunStatus {
        /// Something moves.
        Running = "running",
        /// A person is asked.
        Waiting = "waiting",
        /// A step failed and a person is asked.
        Stuck = "stuck",
        /// Someone paused it.
        Paused = "paused",
        /// Over, with an answer.
        Completed = "completed",
        /// Over, without.
        Failed = "failed",
        /// Over, because someone said so.
        Cancelled = "cancelled",
    }
}

impl RunStatus {
    /// Whether the run is over for good.
    pub fn is_over(self) -> bool {
        matches!(self, RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled)
    }

    /// The status's name at `/sessions`.
    pub fn plan_session_name(self) -> &'static str {
        match self {
            RunStatus::Running => "running",
            RunStatus::Waiting => "paused_on_human",
            RunStatus::Stuck => "paused_on_error",
            RunStatus::Paused => "paused",
            RunStatus::Completed => "completed",
            RunStatus::Failed | RunStatus::Cancelled => "failed",
        }
    }
}

/// One execution of one plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub id: RunId,
    /// Which run of its session, from 1.
    pub no: u32,
    pub plan: PlanId,
    /// The pinned closure.
    pub closure: ContentHash,
    pub input: Arc<Datum>,
    /// The starter.
    pub by: Arc<str>,
    /// For whom it acts, beyond that.
    #[serde(default)]
    pub behalf: Delegation,
    /// Subjects who changed what it does by a reply to an ask.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub hands: BTreeSet<Arc<str>>,
    /// Makers of the keys of these subjects.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub lenders: BTreeSet<Arc<str>>,
    pub root: FrameId,
    /// The session's context as of its start.
    pub base: Arc<Context>,
    /// The step that it entered last.
    pub step: Option<StepId>,
    pub answer: Option<Arc<Datum>>,
    /// While it is stuck or once it failed.
    pub last_error: Option<Fault>,
    pub started_at: Millis,
    pub ended_at: Option<Millis>,
    /// When something of it changed last.
    pub changed_at: Millis,
    pub ending: Option<RunStatus>,
    /// Whether someone paused it.
    pub paused: bool,
    /// Why it is being closed, once no new effect may start.
    pub closing: Option<Closing>,
    /// The run that must be over before this one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<RunId>,
    /// How often it was claimed without progress.
    pub claims: u32,
    /// How often a process died, or its driver panicked, while it worked on this run, without
    /// progress since.
    #[serde(default)]
    pub deaths: u32,
    pub used: RunUsage,
    /// How many of its frames are ready.
    pub ready: u32,
    /// How many of its calls are in flight, judgement included.
    pub in_flight: u32,
    /// How many of its asks are open, fixes included.
    pub open_asks: u32,
    /// How many of these are fixes.
    pub open_fixes: u32,
    /// Usage of its models.
    #[serde(default)]
    pub spent: RunSpent,
    /// The limit that stopped one of its agents early, if one did.
    pub stopped: Option<Arc<str>>,
    /// The span that it is a part of, with whether its trace is recorded: the caller's, or its own
    /// where its trace begins with it.
    pub trace: Option<TraceParent>,
    /// Rules for its failed steps, beside those of its plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Arc<Rules>>,
    /// How many corrections it had.
    #[serde(default)]
    pub corrections: u32,
    /// How often it asked models about failed steps.
    #[serde(default)]
    pub proposals: u32,
}

/// A call that is not settled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenCall {
    pub request: CallRequest,
    pub run: RunId,
    /// The sequence of the request.
    pub requested_seq: u64,
    pub state: CallState,
    /// When it was sent first.
    pub started_at: Option<Millis>,
    /// Once admitted.
    pub pins: Option<Pins>,
    /// The answers to all that it wanted, once it was sent again with it.
    pub given: Arc<InputResponses>,
    /// How often it wanted something. A part of what it wanted the last time is nothing new.
    pub rounds: u32,
    /// The keys of what it wanted the last time.
    #[serde(default)]
    pub asked: BTreeSet<String>,
    /// It continues elsewhere, and was sent again only to learn its outcome.
    pub goes_on: bool,
    /// It was sent before, and the outcome is unknown: by a process that is gone, or
    /// before it was repeated under its id.
    pub sent_before: bool,
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CallState {
    /// Waits for the gate's judgement.
    Requested,
    /// The gate spoke.
    Judged(Judgement),
    /// Sent, or about to be: it may have happened.
    Started,
    /// It needs something before it goes out again; nothing happened, nothing is under way.
    Wanting(Box<PendingInput>),
    /// It failed.
    Failed(CallProgress, Fault),
}

/// Input that a call waits for before it is sent again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingInput {
    pub wants: InputRequired,
    /// The outcome so far, by the tool's keys.
    pub given: BTreeMap<String, Value>,
}

impl OpenCall {
    /// Whether it is on its way: judged soon, or sent.
    pub fn in_flight(&self) -> bool {
        matches!(self.state, CallState::Requested | CallState::Started)
    }

    /// Whether it may be sent again, or dropped, without asking anyone.
    pub fn repeatable(&self) -> bool {
        self.pins.as_ref().is_none_or(Pins::repeatable)
    }

    /// Whether it can change nothing; one that never passed the gate did not.
    pub fn only_reads(&self) -> bool {
        self.pins.as_ref().is_none_or(|pins| pins.reach == Reach::Reads)
    }

    /// Whether it can be taken up again where it was left: what only reads, and what continues
    /// elsewhere whether we look or not.
    pub fn resumable(&self) -> bool {
        self.repeatable() || self.goes_on
    }

    /// Whether it continues elsewhere now.
    pub fn is_elsewhere(&self) -> bool {
        match &self.state {
            CallState::Started => self.goes_on,
            CallState::Wanting(wanting) => wanting.wants.inputs.is_empty(),
            CallState::Requested | CallState::Judged(_) | CallState::Failed(..) => false,
        }
    }

    /// Whether its outcome is unknown.
    pub fn is_unknown(&self) -> bool {
        matches!(self.state, CallState::Failed(CallProgress::Unknown, _))
    }

    /// Whether it was sent and must not be lost sight of.
    pub fn must_be_known(&self) -> bool {
        let sent = self.is_unknown() || matches!(self.state, CallState::Started);
        sent && !self.repeatable()
    }

    /// How far it got when what was sent last did nothing. That says nothing about the time before:
    /// a retry must keep the call's id then, or the other side could not tell that it is the same.
    pub fn unsent(&self) -> CallProgress {
        if self.sent_before { CallProgress::Unknown } else { CallProgress::NotSent }
    }
}

/// An ask and, once there is one, its reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenAsk {
    pub ask: Ask,
    /// The reply that won.
    pub decision: Option<Decision>,
    /// No one answered in time.
    pub expired: bool,
}

impl OpenAsk {
    /// Whether it still waits for a reply.
    pub fn is_open(&self) -> bool {
        self.decision.is_none() && !self.expired
    }
}

/// Whether a session moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Something is ready or in flight.
    Moving,
    /// It waits for a person.
    Waiting,
    /// It waits for a person to fix something.
    Stuck,
    /// No run is active.
    Done,
}

impl Session {
    /// A session that has no event yet.
    pub fn new(id: SessionId, key: SessionKey) -> Self {
        Self {
            id,
            key,
            owner: None,
            created_at: Millis(0),
            updated_at: Millis(0),
            seq: 0,
            context: Arc::default(),
            runs: BTreeMap::new(),
            last_run: None,
            frames: BTreeMap::new(),
            calls: BTreeMap::new(),
            asks: BTreeMap::new(),
            ready: BTreeSet::new(),
            frames_made: 0,
            runs_made: 0,
            timers: BTreeMap::new(),
            postponed: BTreeMap::new(),
            drafted: BTreeMap::new(),
            talk: Talk::default(),
            talks: BTreeMap::new(),
            last_decided: None,
        }
    }

    /// How often the run was claimed without progress that was claimed most often.
    pub fn claims(&self) -> u32 {
        self.runs.values().map(|run| run.claims).max().unwrap_or_default()
    }

    /// Whether it moves, waits, is stuck or has nothing to do.
    pub fn phase(&self) -> Phase {
        let mut phase = Phase::Done;
        for run in self.runs.values() {
            // One that stands behind another moves no sooner than that one is over.
            let status = if run.is_queued() { RunStatus::Waiting } else { run.status() };
            phase = match (phase, status) {
                (_, RunStatus::Running) => return Phase::Moving,
                (_, RunStatus::Stuck) => Phase::Stuck,
                (Phase::Done, RunStatus::Waiting | RunStatus::Paused) => Phase::Waiting,
                (phase, _) => phase,
            };
        }
        phase
    }

    /// The latest run: an active one, else the one that ended last.
    pub fn latest_run(&self) -> Option<&Run> {
        self.runs.values().max_by_key(|run| run.no).or(self.last_run.as_ref())
    }

    /// A run that is active, or ended last.
    pub fn run(&self, id: RunId) -> Option<&Run> {
        self.runs.get(&id).or_else(|| self.ended_run(id))
    }

    /// A run that ended last.
    pub fn ended_run(&self, id: RunId) -> Option<&Run> {
        self.last_run.as_ref().filter(|run| run.id == id)
    }

    /// The context as endpoints show it: what ended runs left and the latest active run's root
    /// wrote.
    pub fn shown_context(&self) -> Context {
        let mut context = (*self.context).clone();
        if let Some(frame) =
            self.runs.values().max_by_key(|run| run.no).and_then(|run| self.frames.get(&run.root))
        {
            context.extend(frame.context.iter().map(|(key, datum)| (key.clone(), datum.clone())));
        }
        context
    }

    pub fn open_asks(&self, run: RunId) -> impl Iterator<Item = &Ask> {
        self.asks
            .values()
            .filter(move |open| open.is_open() && open.ask.run == run)
            .map(|open| &open.ask)
    }
}

/// How an outcome reads as a status.
pub fn ending(outcome: &Outcome) -> RunStatus {
    match outcome {
        Outcome::Completed { .. } => RunStatus::Completed,
        Outcome::Failed { .. } => RunStatus::Failed,
        Outcome::Cancelled { .. } => RunStatus::Cancelled,
    }
}
