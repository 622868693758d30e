//! Rows for lists: what a store keeps beside the journal, in the same transaction. They are a pure
//! function of a session's events and can be rebuilt from them.

use crate::ask::{Ask, AskStatus, Decision};
use crate::definition::pipeline::Tally;
pub use crate::definition::plan::StoredClosure;
use crate::event::{Event, Fact};
use crate::identity::audit::Entry;
use crate::session::{Phase, Run, RunSpent, RunStatus, Session};
use crate::tool::call::ToolSpec;
use crate::values::datum::blobs_named;
use crate::values::fault::Fault;
use crate::values::history::EntryResult;
pub use crate::values::history::HistoryRow;
use crate::values::ids::{
    AskId, ContentHash, Fence, Millis, PlanId, RunId, SessionId, SessionKey, SessionVersion, StepId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRow {
    pub id: SessionId,
    pub key: SessionKey,
    /// Whose it is: a subject. None in local mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Arc<str>>,
    /// The status of its latest run; `Running` before the first.
    pub status: RunStatus,
    /// Its latest run.
    pub run: Option<RunId>,
    /// That run's plan.
    pub plan: Option<PlanId>,
    /// Where that run stands.
    pub step: Option<StepId>,
    /// For `Stuck`, `Failed` and `Cancelled`.
    pub last_error: Option<Fault>,
    /// Its last event.
    pub seq: u64,
    /// When it should be driven: now, a time, or never (it waits for someone).
    pub wake_at: Option<Millis>,
    pub created_at: Millis,
    /// When its last event was recorded.
    pub updated_at: Millis,
    /// Why it is left alone for now, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked: Option<ParkedSession>,
    /// Its fence in the store; none where the row was worked out from events.
    #[serde(skip)]
    pub fence: Fence,
}

impl SessionRow {
    pub fn known(&self) -> SessionVersion {
        SessionVersion { id: self.id, fence: self.fence }
    }
}

/// A session that cannot be driven, because what was recorded of it cannot be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParkedSession {
    /// Why.
    pub reason: String,
    /// When it is tried again.
    pub until: Millis,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRow {
    pub id: RunId,
    /// Which run of its session, from 1.
    pub no: u32,
    /// Whose it is: a subject. None in local mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Arc<str>>,
    pub plan: PlanId,
    pub status: RunStatus,
    pub step: Option<StepId>,
    /// Its answer; a large one as a blob's URI.
    pub answer: Option<Value>,
    pub last_error: Option<Fault>,
    pub started_at: Millis,
    pub ended_at: Option<Millis>,
    /// When something of it changed last.
    pub changed_at: Millis,
    /// Usage of its models.
    #[serde(default, skip_serializing_if = "RunSpent::is_nothing")]
    pub spent: RunSpent,
    /// The limit that stopped one of its agents early, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Arc<str>>,
    /// About how many bytes of journal and blobs it stored. For the store alone.
    #[serde(skip)]
    pub bytes: u64,
}

/// An ask in the inbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskRow {
    pub ask: Ask,
    pub status: AskStatus,
    /// The reply that won.
    pub decision: Option<Decision>,
}

/// How an ask's row changes.
#[derive(Debug, Clone, PartialEq)]
pub enum AskChange {
    /// A new row.
    Opened(Box<Ask>),
    /// From open to this; a row that is not open is a conflict.
    Closed {
        ask: AskId,
        /// Its new status.
        status: AskStatus,
        /// The reply that won, if one did.
        decision: Option<Box<Decision>>,
    },
}

/// All that one append writes.
#[derive(Debug)]
pub struct Append {
    /// Whether the session is new: its row must not exist yet.
    pub creates: bool,
    /// The fence of the session that these events were decided on, none for a new one; another
    /// fence in the store is a conflict. This append moves it by one.
    pub fence: Fence,
    /// Whether the writer continues driving the session: something of it moves.
    pub owned: bool,
    /// The first of these events.
    pub first_seq: u64,
    /// The events of this append, as a JSON array.
    pub body: String,
    /// The session after them.
    pub session: SessionRow,
    /// A snapshot of the session after them, as JSON, if it is time for one.
    pub snapshot: Option<String>,
    /// The runs that changed.
    pub runs: Vec<RunRow>,
    /// The asks that changed, in order.
    pub asks: Vec<AskChange>,
    /// The calls that finished.
    pub history: Vec<HistoryRow>,
    /// The closure that a run pins which starts here. It is brought each time: the store removes
    /// a closure with the last run that pins it.
    pub closure: Option<Arc<StoredClosure>>,
    /// Closures that the starting runs pin, stored as long as these runs.
    pub pins: BTreeMap<RunId, ContentHash>,
    /// The specs that calls pin which were judged here; the store keeps those that it has not.
    pub specs: Vec<PinnedSpec>,
    /// The keyed request that this append answers; a key that is taken is a conflict.
    pub once: Option<OnceRow>,
    /// Where the same key may be taken as well: that is a conflict, too.
    pub earlier: Option<FormerRoute>,
    /// The path of the case whose run these events begin: it is counted with them.
    pub tally: Option<Tally>,
    /// The blobs that the events name: they stay as long as these events do.
    pub blobs: BTreeSet<ContentHash>,
    /// Those of them that hold values of the events: who may read the session may read these. The
    /// others are only mentioned in a text, which anybody can write.
    pub held: BTreeSet<ContentHash>,
    /// Audit entries of the decisions behind these events.
    pub audit: Vec<Entry>,
    /// The events themselves, for those who follow the session: they need not read `body`. Empty
    /// where no one does.
    pub events: Vec<Arc<Event>>,
}

/// A tool's spec that a call pins.
#[derive(Debug, Clone)]
pub struct PinnedSpec {
    /// The closure of the call's run: the spec is stored as long as that.
    pub closure: ContentHash,
    /// The spec's hash, as the call pins it.
    pub hash: ContentHash,
    pub spec: Arc<ToolSpec>,
}

/// A request that came with a key of its client's, and the outcome: a repeat finds this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnceRow {
    /// The subject, with its actor if another identity made the call.
    pub subject: Arc<str>,
    /// Of which endpoint: method and path.
    pub route: String,
    /// The client's key.
    pub key: String,
    /// The hash of the request's body.
    pub digest: ContentHash,
    /// The run that it started, or whose ask it answered.
    pub run: Option<RunId>,
    /// The ask that it answered.
    pub ask: Option<AskId>,
    pub at: Millis,
}

/// The route that a keyed request had in the time window before, and since when it counts there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerRoute {
    /// As `OnceRow::route`.
    pub route: String,
    /// Requests before that are forgotten.
    pub since: Millis,
}

impl Append {
    /// The rows of these events, which `session` has already applied, decided on this fence.
    pub fn new(
        session: &Session,
        fence: Fence,
        events: &[Event],
        history: Vec<HistoryRow>,
        now: Millis,
    ) -> Result<Self, serde_json::Error> {
        let first_seq = events.first().map_or(session.seq + 1, |event| event.seq);
        let mut runs: Vec<RunRow> = Vec::new();
        let mut asks = Vec::new();
        let mut pins = BTreeMap::new();
        for event in events {
            asks.extend(ask_change(&event.fact));
            match &event.fact {
                Fact::RunStarted { run, closure, .. } => drop(pins.insert(*run, closure.clone())),
                Fact::RunEnded { run, .. } => runs.extend(session.ended_run(*run).map(run_row)),
                _ => {}
            }
        }
        runs.extend(session.runs.values().map(run_row));
        let body = serde_json::to_string(events)?;
        Ok(Self {
            creates: first_seq == 1,
            fence,
            owned: session.phase() == Phase::Moving,
            first_seq,
            blobs: blobs_named(&body),
            held: Event::held_blobs(events),
            body,
            session: session_row(session, now),
            snapshot: None,
            runs,
            asks,
            history,
            closure: None,
            pins,
            specs: Vec::new(),
            once: None,
            earlier: None,
            tally: None,
            audit: Vec::new(),
            events: Vec::new(),
        })
    }
}

fn ask_change(fact: &Fact) -> Option<AskChange> {
    let closed = |ask: &AskId, status| AskChange::Closed { ask: *ask, status, decision: None };
    match fact {
        Fact::AskOpened(ask) => Some(AskChange::Opened(ask.clone())),
        Fact::AskDecided { ask, decision } => Some(AskChange::Closed {
            ask: *ask,
            status: AskStatus::Decided,
            decision: Some(decision.clone()),
        }),
        Fact::AskExpired { ask } => Some(closed(ask, AskStatus::Expired)),
        Fact::AskWithdrawn { ask } => Some(closed(ask, AskStatus::Withdrawn)),
        _ => None,
    }
}

pub fn run_row(run: &Run) -> RunRow {
    RunRow {
        id: run.id,
        no: run.no,
        owner: run.owner().cloned(),
        plan: run.plan.clone(),
        status: run.status(),
        step: run.step.clone(),
        answer: run.answer.as_ref().map(|answer| answer.to_value()),
        last_error: run.last_error.clone(),
        started_at: run.started_at,
        ended_at: run.ended_at,
        changed_at: run.changed_at,
        spent: run.spent,
        stopped: run.stopped.clone(),
        bytes: run.used.bytes,
    }
}

pub fn session_row(session: &Session, now: Millis) -> SessionRow {
    let run = session.latest_run();
    SessionRow {
        id: session.id,
        key: session.key.clone(),
        owner: session.owner.clone(),
        status: run.map_or(RunStatus::Running, Run::status),
        run: run.map(|run| run.id),
        plan: run.map(|run| run.plan.clone()),
        step: run.and_then(|run| run.step.clone()),
        last_error: run.and_then(|run| run.last_error.clone()),
        seq: session.seq,
        wake_at: session.wake_at(now),
        created_at: session.created_at,
        updated_at: session.updated_at,
        parked: None,
        fence: Fence::NONE,
    }
}

/// A history entry as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryItem {
    /// Its sort key.
    pub position: Vec<u8>,
    pub run: RunId,
    pub entry: crate::values::history::Entry,
}

impl HistoryItem {
    /// The entry out of the two events that hold its values.
    pub fn assemble(row: &HistoryRow, requested: &Event, finished: &Event) -> Option<Self> {
        let Fact::CallRequested(request) = &requested.fact else { return None };
        let (call, result) = match &finished.fact {
            Fact::CallFinished { call, output, .. } => (call, EntryResult::Output(output.clone())),
            Fact::CallFailed { call, fault, .. } => (call, EntryResult::Error(fault.clone())),
            _ => return None,
        };
        Some(Self {
            position: row.position.clone(),
            run: row.run,
            entry: crate::values::history::Entry {
                at: finished.at,
                step: row.step.clone(),
                call: *call,
                tool: row.tool.clone(),
                arguments: request.arguments.clone(),
                result,
            },
        })
    }
}
