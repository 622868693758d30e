//! State of a driver between two turns of its loop.

use crate::advice::proposing::Proposal;
use crate::command::Answer;
use crate::driver::talk_content::TalkContent;
use crate::gate::CallOutcome;
use crate::gate::consent::Consent;
use crate::observe::content::Contents;
use crate::refusal::{Refusal, RefusalCode, Result};
use crate::request::{ReplyReport, RunReport};
use crate::sessions::cache::CachedSession;
use crate::sessions::suspects::Probation;
use crate::shared::Shared;
use crate::shares::Share;
use crate::waiting::idempotency::Claim;
use futures::future::{AbortHandle, BoxFuture, Shared as SharedFuture};
use futures::stream::FuturesUnordered;
use kernel::contracts::observe::Observation;
use kernel::contracts::{SessionAsk, StoreError, Ticket};
use kernel::conversation::llm::{LlmError, Turn};
use kernel::decide::TurnNumber;
use kernel::decide::resolve::FetchCache;
use kernel::definition::pipeline::Tally;
use kernel::definition::plan::{Closure, Plan};
use kernel::event::{Event, Fact, TurnKind};
use kernel::expression::pointer::Fetch;
use kernel::identity::audit::Entry;
use kernel::journal::projection::{OnceRow, PinnedSpec, StoredClosure};
use kernel::prompt::tool_cards::SeenTools;
use kernel::session::{OpenCall, Session, login_look};
use kernel::tool::call::{Caller, InputRequired, Publisher, ToolError, ToolOutput};
use kernel::values::history::{FramePath, HistoryRow};
use kernel::values::ids::{
    AskId, CallId, ContentHash, Fence, FrameId, Millis, PlanId, RunId, SessionKey,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::task::{Context, Poll};

/// A side effect that a recorded fact requires.
pub(super) enum Effect {
    /// Ask the gate's first half.
    Judge(CallId),
    /// Send the call.
    Start(CallId),
    /// Let the run's calls come to an end.
    Close(RunId),
    /// Drop calls that no frame waits for any more.
    DropOrphans,
    /// The same, and write: a run's row is taken from the state, so the next run must not hide it.
    EndRun,
    /// See whether a login is done, for so many times so far.
    Look(AskId, u32),
    /// Ask a model about this frame's failed step.
    Propose(FrameId),
    /// Read the correction that a model wrote and that begins.
    ReadDrafted,
    None,
}

impl Effect {
    pub(super) fn of(fact: &Fact) -> Self {
        match fact {
            Fact::CallRequested(request) => Effect::Judge(request.call),
            Fact::CallStarted { call, .. } | Fact::CallResumed { call, .. } => Effect::Start(*call),
            Fact::RunClosing { run, .. } => Effect::Close(*run),
            Fact::FrameCancelled { .. } | Fact::ItemFailed { .. } | Fact::CorrectionEnded(_) => {
                Effect::DropOrphans
            }
            Fact::RunEnded { .. } => Effect::EndRun,
            Fact::ProposalAsked(start) => Effect::Propose(start.frame),
            Fact::CorrectionEntered(entry) if entry.drafted.is_some() => Effect::ReadDrafted,
            Fact::AskOpened(ask) if ask.wanted.is_some() => Effect::Look(ask.id, 0),
            Fact::TimerFired { timer } => match login_look(timer) {
                Some((ask, look)) => Effect::Look(ask, look),
                None => Effect::None,
            },
            _ => Effect::None,
        }
    }
}

/// Something that was on its way and arrived.
pub(super) enum Completion {
    /// A call came back; `None` when it was aborted.
    Call(CallId, Option<CallOutcome>),
    /// A call that took too long came back after all, or did not.
    Late(CallId, Option<Result<ToolOutput, ToolError>>),
    /// A blob or a history came.
    Fetched(FrameId, Fetch, Result<Value>),
    /// Content of a frame's conversation was loaded.
    Gathered(FrameId, Result<TalkContent>),
    /// A model answered this turn and attempt, or did not; `None` when it was given up.
    Turned(FrameId, TurnNumber, Option<Box<TurnAnswer>>),
    /// A model said what could be done about a frame's failed step, in this attempt; `None` when it
    /// was given up.
    Proposed(FrameId, u32, Option<Box<Proposal>>),
    /// A closing run's calls had time enough.
    GraceOver(RunId),
    /// Whether what this ask is about continued elsewhere without an answer.
    Moved(AskId, bool),
    /// A required write is durable, or failed.
    Kept(Result<(), StoreError>),
}

/// The outcome of a turn, and what its model was shown.
pub(super) struct TurnAnswer {
    pub(super) asked: ModelAnswer,
    /// The tools that the model saw.
    pub(super) tools: SeenTools,
}

/// The outcome of asking a model.
pub(crate) struct ModelAnswer {
    pub(crate) result: Result<Turn, LlmError>,
    /// `None` if the price is unknown.
    pub(crate) cost_micros: Option<u64>,
    /// Cost without the provider's cache, if one was used and the price is known.
    pub(crate) uncached_micros: Option<u64>,
    /// When the first piece of its answer came.
    pub(super) first_at: Option<Millis>,
}

impl ModelAnswer {
    /// It could not be asked, or did not answer.
    pub(super) fn failed(error: LlmError) -> Self {
        Self { result: Err(error), cost_micros: None, uncached_micros: None, first_at: None }
    }
}

/// A turn as it began, for observers.
pub(super) struct TurnBegun {
    pub(super) at: Millis,
    pub(super) number: TurnNumber,
    pub(super) kind: TurnKind,
    /// The model, by its name in this project.
    pub(super) model: Arc<str>,
    /// Provider and model name.
    pub(super) provider: Option<Arc<str>>,
    pub(super) provider_model: Option<Arc<str>>,
    /// When the first piece of its answer came.
    pub(super) first_at: Option<Millis>,
    /// The request, if content is wanted.
    pub(super) asked: Contents,
}

/// A turn on its way.
pub(super) struct ActiveTurn {
    /// Which turn and attempt.
    pub(super) number: TurnNumber,
    pub(super) abort: AbortHandle,
}

/// A model on its way that is asked about a failed step.
pub(super) struct ActiveProposal {
    pub(super) attempt: u32,
    pub(super) abort: AbortHandle,
}

/// Someone who waits for a run to end or pause.
pub(super) enum Waiter {
    /// The caller that started or resumed it.
    Run(RunId, Answer<RunReport>),
    /// The caller that started it and does not wait for remote tasks.
    Task(RunId, Answer<RunReport>),
    Reply(RunId, Box<SessionAsk>, Answer<ReplyReport>),
}

impl Waiter {
    pub(super) fn run(&self) -> RunId {
        match self {
            Waiter::Run(run, _) | Waiter::Task(run, _) | Waiter::Reply(run, ..) => *run,
        }
    }

    /// Comes when no one waits any more.
    pub(super) fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            Waiter::Run(_, answer) | Waiter::Task(_, answer) => answer.poll_closed(context),
            Waiter::Reply(_, _, answer) => answer.poll_closed(context),
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        match self {
            Waiter::Run(_, answer) | Waiter::Task(_, answer) => answer.is_closed(),
            Waiter::Reply(_, _, answer) => answer.is_closed(),
        }
    }

    pub(super) fn refuse(self, refusal: Refusal) {
        match self {
            Waiter::Run(_, answer) | Waiter::Task(_, answer) => drop(answer.send(Err(refusal))),
            Waiter::Reply(_, _, answer) => drop(answer.send(Err(refusal))),
        }
    }
}

/// A session's next deadline.
pub(super) struct Alarm {
    pub(super) at: Millis,
    /// Comes then.
    pub(super) rings: BoxFuture<'static, ()>,
}

/// From where a frame looks at the history.
pub(super) struct HistoryView {
    pub(super) path: FramePath,
    pub(super) run: RunId,
    pub(super) run_no: u32,
    /// Must be durable before the store is read.
    pub(super) ticket: Option<SharedFuture<Ticket>>,
}

/// The one who drives a session.
pub(super) struct Driver {
    pub(super) shared: Arc<Shared>,
    pub(super) key: SessionKey,
    /// None until a command makes or loads it.
    pub(super) session: Option<Session>,
    /// Its fence in the store, once all that was queued is there.
    pub(super) fence: Fence,
    /// Its name was made up for the request that made it.
    pub(super) fresh: bool,
    /// It is being made out of another one: no one may wake it yet.
    pub(super) asleep: bool,
    /// Events that are applied and not yet queued.
    pub(super) pending: Vec<Event>,
    pub(super) history: Vec<HistoryRow>,
    /// The closures that the active runs pin.
    pub(super) closures: HashMap<ContentHash, Arc<Closure>>,
    /// A closure that the next append has to bring along.
    pub(super) new_closure: Option<Arc<StoredClosure>>,
    /// Specs that calls pin, for the next append to bring along.
    pub(super) new_specs: Vec<PinnedSpec>,
    /// A request's key that the next append has to write down.
    pub(super) new_key: Option<(OnceRow, Claim)>,
    /// Whether all that is done here may turn out to be a repeat, when its key is written down.
    pub(super) is_unsure: bool,
    /// Facts to count and observe once they are durable.
    pub(super) unnoted: Vec<Fact>,
    pub(super) held_observations: Vec<Observation>,
    /// The path of a case that the next append has to count.
    pub(super) new_tally: Option<Tally>,
    /// Audit entries of events that are not queued yet.
    pub(super) new_audit: Vec<Entry>,
    /// The caller that does what is recorded now, while one does.
    pub(super) doer: Option<Caller>,
    /// Data fetched for decisions, and frames with pending fetches.
    pub(super) fetched: FetchCache,
    pub(super) fetching: BTreeSet<FrameId>,
    /// Effects of recorded facts that may record facts themselves.
    pub(super) to_judge: Vec<CallId>,
    pub(super) to_close: Vec<RunId>,
    /// The state of the one call of a run that was sent before the run was made and continues.
    pub(super) sent: Option<(RunId, Value)>,
    pub(super) to_look: Vec<(AskId, u32)>,
    /// Required inputs of calls that were sent again only as polls.
    pub(super) looking: BTreeMap<CallId, InputRequired>,
    /// Calls, fetches and timers on their way.
    pub(super) in_flight: FuturesUnordered<BoxFuture<'static, Completion>>,
    pub(super) aborts: BTreeMap<CallId, AbortHandle>,
    /// Approvals of calls that are about to start.
    pub(super) consents: BTreeMap<CallId, Consent>,
    /// The call that was judged again last, because policy had changed.
    pub(super) judged_again: Option<CallId>,
    /// Publishers of active calls, read once their results count.
    pub(super) publishers: BTreeMap<CallId, Publisher>,
    /// Turns on their way, each of its frame's agent.
    pub(super) turns: BTreeMap<FrameId, ActiveTurn>,
    /// Models on their way that are asked about frames' failed steps.
    pub(super) proposals: BTreeMap<FrameId, ActiveProposal>,
    /// The corrections under way that models wrote.
    pub(super) drafted: BTreeMap<PlanId, Arc<Plan>>,
    /// Data for observers of active turns.
    pub(super) begun: BTreeMap<FrameId, TurnBegun>,
    /// Loaded content of conversations.
    pub(super) talk_content: TalkContent,
    /// The session's next deadline. It keeps no one here: recovery wakes sessions that sleep.
    pub(super) alarm: Option<Alarm>,
    /// The last append: when it is durable, all before it are.
    pub(super) ticket: Option<SharedFuture<Ticket>>,
    /// How many appends were queued since one of them was waited for.
    pub(super) appends_ahead: u32,
    /// How many decisions were taken.
    pub(super) decisions: u32,
    /// Whether the session was recovered and has made no progress since.
    pub(super) probation: Arc<Probation>,
    pub(super) waiters: Vec<Waiter>,
    /// The share of its caller's limit, held while the session moves.
    pub(super) share: Share,
    /// Bytes of journal since the last snapshot, and that snapshot's size.
    pub(super) tail_bytes: usize,
    pub(super) snapshot_bytes: usize,
    /// A run ended in the events that are not queued yet.
    pub(super) run_ended: bool,
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>, key: SessionKey, probation: Arc<Probation>) -> Self {
        Self {
            shared,
            key,
            session: None,
            fence: Fence::NONE,
            fresh: false,
            asleep: false,
            pending: Vec::new(),
            history: Vec::new(),
            closures: HashMap::new(),
            new_closure: None,
            new_specs: Vec::new(),
            new_key: None,
            is_unsure: false,
            unnoted: Vec::new(),
            held_observations: Vec::new(),
            new_tally: None,
            new_audit: Vec::new(),
            doer: None,
            fetched: FetchCache::default(),
            fetching: BTreeSet::new(),
            to_judge: Vec::new(),
            to_close: Vec::new(),
            sent: None,
            to_look: Vec::new(),
            looking: BTreeMap::new(),
            in_flight: FuturesUnordered::new(),
            aborts: BTreeMap::new(),
            consents: BTreeMap::new(),
            judged_again: None,
            publishers: BTreeMap::new(),
            turns: BTreeMap::new(),
            proposals: BTreeMap::new(),
            drafted: BTreeMap::new(),
            begun: BTreeMap::new(),
            talk_content: TalkContent::default(),
            alarm: None,
            ticket: None,
            appends_ahead: 0,
            decisions: 0,
            probation,
            waiters: Vec::new(),
            share: Share::default(),
            tail_bytes: 0,
            snapshot_bytes: 0,
            run_ended: false,
        }
    }

    /// Tells everyone who waits that it went wrong.
    pub(super) fn fail(&mut self, refusal: &Refusal) {
        let realm = &self.key.realm;
        let session = &self.key.id;
        let code = refusal.code.name();
        // A client that repeats itself is nothing to be warned of.
        if self.is_unsure && refusal.code == RefusalCode::SessionReloading {
            tracing::debug!(%realm, %session, code, "a session is given up: its key was used");
        } else {
            tracing::warn!(%realm, %session, code, "session dropped from memory: {}",
                refusal.message);
        }
        self.share = Share::default();
        for waiter in self.waiters.drain(..) {
            waiter.refuse(refusal.clone());
        }
    }

    /// Leaves the session where the next driver finds it, if someone may come back to it: a
    /// session whose name was made up for one request is not likely to be asked for again.
    pub(super) fn rest(&mut self) {
        let durable = self.ticket.is_none() && self.pending.is_empty();
        if !durable || self.fresh {
            return;
        }
        if let Some(session) = self.session.take() {
            let tail_bytes = self.tail_bytes;
            let snapshot_bytes = self.snapshot_bytes;
            let rested = CachedSession { session, fence: self.fence, tail_bytes, snapshot_bytes };
            self.shared.rest.keep(&self.key, rested);
        }
    }

    /// A call of the session that is not over.
    pub(super) fn open_call(&self, call: CallId) -> Option<&OpenCall> {
        self.session.as_ref()?.calls.get(&call)
    }

    /// Waits until all that was recorded is durable.
    pub(super) async fn durable(&mut self) -> Result<()> {
        self.flush();
        match self.ticket.take() {
            Some(ticket) => ticket.await.map_err(|error: StoreError| Refusal::from(error)),
            None => Ok(()),
        }
    }
}
