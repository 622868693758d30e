//! Shared state of an upstream and its task: status, tools, a version that grows with every change;
//! and requests to check or to stop.

use crate::lock;
use kernel::contracts::Tool;
use kernel::values::fault::Fault;
use kernel::values::ids::{ContentHash, Millis};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, oneshot, watch};

/// How many checks wait at the same time; more are refused.
const CHECKS_MAX: usize = 16;

/// Whether an upstream can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamState {
    /// It is being connected to, for the first time or again.
    Connecting,
    /// It is connected and has listed what it has.
    Ready,
    /// It could not be reached, or answered wrongly. It is tried again.
    Failing,
    /// It wants someone to log in first.
    Login,
}

impl UpstreamState {
    pub fn word(self) -> &'static str {
        match self {
            UpstreamState::Connecting => "connecting",
            UpstreamState::Ready => "ready",
            UpstreamState::Failing => "failing",
            UpstreamState::Login => "login",
        }
    }
}

/// Facts from an agent's card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFacts {
    /// The digest of the card.
    pub card: ContentHash,
    /// Whether a pinned key signed it.
    pub is_signed: bool,
    /// Where the agent is spoken to, without a query.
    pub address: String,
    /// How often the card changed since it was first read.
    pub changes: u64,
}

/// How an upstream is.
#[derive(Debug, Clone, PartialEq)]
pub struct UpstreamStatus {
    /// Whether it can be used.
    pub state: UpstreamState,
    /// The version of MCP that is spoken with it, if it speaks MCP and was reached.
    pub version: Option<String>,
    /// `{name, version, title?}` in MCP's shape.
    pub server: Option<Value>,
    /// For an agent whose card was read.
    pub agent: Option<AgentFacts>,
    /// How many tools it has that can be called.
    pub tools: usize,
    /// How many prompts it has.
    pub prompts: usize,
    /// How many resources it lists, families of them included.
    pub resources: usize,
    /// Since when it is in this state.
    pub since: Millis,
    /// The last error since the last success.
    pub last_error: Option<Fault>,
    /// How often it was reconnected after it had been ready.
    pub restarts: u64,
}

/// A request for a check, answered with the status.
pub(crate) type Check = oneshot::Sender<Result<UpstreamStatus, Fault>>;

/// The board of one upstream.
pub(crate) struct Board {
    shown: Mutex<BoardState>,
    changes: watch::Sender<u64>,
    checks: mpsc::Sender<Check>,
    /// It was heard, could not be reached, or was let go.
    tried: watch::Sender<bool>,
    /// Its tools were put into the catalog, or it was let go.
    listed: watch::Sender<bool>,
    stop: watch::Sender<bool>,
    stopped: watch::Sender<bool>,
}

struct BoardState {
    status: UpstreamStatus,
    tools: Vec<Arc<dyn Tool>>,
    /// Why tools that it lists are not among them, one by one as far as that is kept.
    left_out: Vec<String>,
    /// Why calls of some of them are denied, whoever calls.
    unfit: Option<Fault>,
    changed: ListVersions,
}

/// How often each list of an upstream changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListVersions {
    pub tools: u64,
    pub prompts: u64,
    /// Its resources, families of them included.
    pub resources: u64,
}

impl Board {
    /// The board of an upstream that begins to connect now, and the checks that are wanted of it.
    pub(crate) fn new(now: Millis) -> (Self, mpsc::Receiver<Check>) {
        let status = UpstreamStatus {
            state: UpstreamState::Connecting,
            version: None,
            server: None,
            agent: None,
            tools: 0,
            prompts: 0,
            resources: 0,
            since: now,
            last_error: None,
            restarts: 0,
        };
        let (checks, wanted) = mpsc::channel(CHECKS_MAX);
        let board = Self {
            shown: Mutex::new(BoardState {
                status,
                tools: Vec::new(),
                left_out: Vec::new(),
                unfit: None,
                changed: ListVersions::default(),
            }),
            changes: watch::Sender::new(0),
            checks,
            tried: watch::Sender::new(false),
            listed: watch::Sender::new(false),
            stop: watch::Sender::new(false),
            stopped: watch::Sender::new(false),
        };
        (board, wanted)
    }

    pub(crate) fn status(&self) -> UpstreamStatus {
        lock(&self.shown).status.clone()
    }

    /// The tools that it had when it was last heard.
    pub(crate) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        lock(&self.shown).tools.clone()
    }

    /// Why tools that it lists cannot be used, one by one as far as that is kept.
    pub(crate) fn left_out(&self) -> Vec<String> {
        lock(&self.shown).left_out.clone()
    }

    /// These reasons keep tools that it lists from being used.
    pub(crate) fn leave_out(&self, reasons: Vec<String>) {
        lock(&self.shown).left_out = reasons;
    }

    /// Why calls of some of its tools are denied, whoever calls.
    pub(crate) fn unfit(&self) -> Option<Fault> {
        lock(&self.shown).unfit.clone()
    }

    /// Calls of some of its tools are denied for this reason, or none are.
    pub(crate) fn note_unfit(&self, why: Option<Fault>) {
        lock(&self.shown).unfit = why;
    }

    /// Grows when tools, prompts or resources changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Has it checked now.
    pub(crate) async fn check(&self) -> Result<UpstreamStatus, Fault> {
        let (answer, answered) = oneshot::channel();
        if let Err(mpsc::error::TrySendError::Full(_)) = self.checks.try_send(answer) {
            return Err(Fault::new("Busy", "the upstream is being checked already; try again"));
        }
        let stopped = || Fault::new("UpstreamClosed", "the upstream was let go");
        answered.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Has it checked soon, without waiting for the result.
    pub(crate) fn look_soon(&self) {
        let (answer, _) = oneshot::channel();
        // Where it is full, the keeper looks anyway.
        let _ = self.checks.try_send(answer);
    }

    /// It can be used, but something went wrong.
    pub(crate) fn stumbled(&self, error: Fault) {
        lock(&self.shown).status.last_error = Some(error);
        self.tried.send_replace(true);
    }

    /// This version is spoken with it, and this it says of itself.
    pub(crate) fn greeted(&self, version: &str, server: &Value) {
        let mut shown = lock(&self.shown);
        shown.status.version = Some(version.to_owned());
        shown.status.server = server.is_object().then(|| server.clone());
    }

    /// This is its card from now on; whether it is another one than before.
    pub(crate) fn carded(&self, facts: AgentFacts) -> bool {
        let mut shown = lock(&self.shown);
        let before = shown.status.agent.take();
        let is_other = before.as_ref().is_some_and(|before| before.card != facts.card);
        let changes = before.map_or(0, |before| before.changes) + u64::from(is_other);
        shown.status.agent = Some(AgentFacts { changes, ..facts });
        is_other
    }

    /// It has so many prompts and resources.
    pub(crate) fn counts(&self, prompts: usize, resources: usize) {
        let mut shown = lock(&self.shown);
        shown.status.prompts = prompts;
        shown.status.resources = resources;
    }

    /// These are its tools from now on.
    pub(crate) fn replace_tools(&self, tools: Vec<Arc<dyn Tool>>) {
        let mut shown = lock(&self.shown);
        shown.status.tools = tools.len();
        shown.tools = tools;
        shown.changed.tools += 1;
    }

    /// These of its other lists changed.
    pub(crate) fn changed_lists(&self, prompts: bool, resources: bool) {
        let mut shown = lock(&self.shown);
        shown.changed.prompts += u64::from(prompts);
        shown.changed.resources += u64::from(resources);
    }

    /// How often each list changed.
    pub(crate) fn changed(&self) -> ListVersions {
        lock(&self.shown).changed
    }

    /// So many of its tools can be called; the others were left out.
    pub(crate) fn count_tools(&self, tools: usize) {
        lock(&self.shown).status.tools = tools;
        self.listed.send_replace(true);
    }

    /// Tells everybody that something changed; after it can be seen.
    pub(crate) fn tell_change(&self) {
        self.changes.send_modify(|version| *version += 1);
    }

    /// Its keeper should let it go.
    pub(crate) fn begin_stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until it should be let go.
    pub(crate) async fn stopping(&self) {
        // An error would mean that the board is gone, which we hold.
        let _ = self.stop.subscribe().wait_for(|stop| *stop).await;
    }

    /// Waits until it was tried for the first time, whatever the outcome.
    pub(crate) async fn tried(&self) {
        let _ = self.tried.subscribe().wait_for(|tried| *tried).await;
    }

    /// Waits until it was tried for the first time, and until the tools that it has can be called.
    pub(crate) async fn listed(&self) {
        self.tried().await;
        if !self.tools().is_empty() {
            let _ = self.listed.subscribe().wait_for(|listed| *listed).await;
        }
    }

    /// It is let go.
    pub(crate) fn end_stop(&self) {
        self.tried.send_replace(true);
        self.listed.send_replace(true);
        self.stopped.send_replace(true);
    }

    /// Waits until it is let go.
    pub(crate) async fn stopped(&self) {
        let _ = self.stopped.subscribe().wait_for(|stopped| *stopped).await;
    }

    /// It is in this state now, and this went wrong, if something did.
    pub(crate) fn enter(&self, state: UpstreamState, now: Millis, last_error: Option<Fault>) {
        let mut shown = lock(&self.shown);
        let status = &mut shown.status;
        status.last_error = last_error;
        if status.state != state {
            let is_lost = status.state == UpstreamState::Ready;
            status.restarts += u64::from(is_lost);
            status.state = state;
            status.since = now;
        }
        drop(shown);
        if state != UpstreamState::Connecting {
            self.tried.send_replace(true);
        }
    }
}
