//! What a driver holds between two turns.

use crate::command::Answer;
use crate::refusal::Refusal;
use crate::request::{ReplyReport, RunReport};
use crate::shared::Shared;
use futures::future::{AbortHandle, BoxFuture, Shared as SharedFuture};
use futures::stream::FuturesUnordered;
use kernel::call::{ToolError, ToolOutput};
use kernel::contracts::{SessionAsk, StoreError, Ticket};
use kernel::entry::{FramePath, HistoryRow};
use kernel::event::Event;
use kernel::ids::{CallId, ContentHash, FrameId, RunId, SessionKey};
use kernel::plan::Closure;
use kernel::pointer::Want;
use kernel::resolve::Fetched;
use kernel::session::Session;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Something that was on its way and arrived.
pub(super) enum Done {
    /// A call came back; `None` when it was aborted.
    Call(CallId, Option<Result<ToolOutput, ToolError>>),
    /// A blob or a history came.
    Fetched(FrameId, Want, Result<Value, Refusal>),
    /// A closing run's calls had time enough.
    GraceOver(RunId),
}

/// Someone who waits for a run to end or pause.
pub(super) enum Waiter {
    /// Who started or resumed it.
    Run(RunId, Answer<RunReport>),
    /// Who answered an ask of it.
    Reply(RunId, Box<SessionAsk>, Answer<ReplyReport>),
}

impl Waiter {
    pub(super) fn run(&self) -> RunId {
        match self {
            Waiter::Run(run, _) | Waiter::Reply(run, ..) => *run,
        }
    }

    pub(super) fn refuse(self, refusal: Refusal) {
        match self {
            Waiter::Run(_, answer) => drop(answer.send(Err(refusal))),
            Waiter::Reply(_, _, answer) => drop(answer.send(Err(refusal))),
        }
    }
}

/// From where a frame looks at the history.
pub(super) struct Sight {
    pub(super) path: FramePath,
    pub(super) run: RunId,
    pub(super) run_no: u32,
    /// What must be durable before the store is asked.
    pub(super) ticket: Option<SharedFuture<Ticket>>,
}

/// The one who drives a session.
pub(super) struct Driver {
    pub(super) shared: Arc<Shared>,
    pub(super) key: SessionKey,
    /// None until a command makes or loads it.
    pub(super) session: Option<Session>,
    /// Events that are applied and not yet queued.
    pub(super) pending: Vec<Event>,
    pub(super) history: Vec<HistoryRow>,
    /// The closures that the active runs pin.
    pub(super) closures: HashMap<ContentHash, Arc<Closure>>,
    /// A closure that the next append has to bring along.
    pub(super) new_closure: Option<Arc<Closure>>,
    /// What was fetched for decisions, and for which frames more is on its way.
    pub(super) fetched: Fetched,
    pub(super) fetching: BTreeSet<FrameId>,
    /// Calls, fetches and timers on their way.
    pub(super) in_flight: FuturesUnordered<BoxFuture<'static, Done>>,
    pub(super) aborts: BTreeMap<CallId, AbortHandle>,
    /// The last append: when it is durable, all before it are.
    pub(super) ticket: Option<SharedFuture<Ticket>>,
    /// Who waits for a run to end or pause.
    pub(super) waiters: Vec<Waiter>,
    /// Bytes of journal since the last snapshot, and that snapshot's size.
    pub(super) tail_bytes: usize,
    pub(super) snapshot_bytes: usize,
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>, key: SessionKey) -> Self {
        Self {
            shared,
            key,
            session: None,
            pending: Vec::new(),
            history: Vec::new(),
            closures: HashMap::new(),
            new_closure: None,
            fetched: Fetched::default(),
            fetching: BTreeSet::new(),
            in_flight: FuturesUnordered::new(),
            aborts: BTreeMap::new(),
            ticket: None,
            waiters: Vec::new(),
            tail_bytes: 0,
            snapshot_bytes: 0,
        }
    }

    /// Tells everyone who waits that it went wrong.
    pub(super) fn fail(&mut self, refusal: &Refusal) {
        tracing::warn!(realm = %self.key.realm, session = %self.key.id, code = refusal.code,
            "session dropped from memory: {}", refusal.message);
        for waiter in self.waiters.drain(..) {
            waiter.refuse(refusal.clone());
        }
    }

    /// Waits until all that was recorded is durable.
    pub(super) async fn durable(&mut self) -> Result<(), Refusal> {
        self.flush();
        match self.ticket.take() {
            Some(ticket) => ticket.await.map_err(|error: StoreError| Refusal::from(error)),
            None => Ok(()),
        }
    }
}
