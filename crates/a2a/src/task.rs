//! A run as a task of A2A: its state, what was said and what it made, as a function of its events
//! and of nothing else. So every reader of a task sees the same, however late it comes. Whether a
//! caller may answer an ask is not in the journal: asks are shown as they are, and the endpoint
//! chooses the words for each caller.

use super::proxy::{ProxiedCall, is_proxy};
use kernel::ask::Ask;
use kernel::event::{Event, Fact, Outcome, ReceivedMessage};
use kernel::journal::projection::RunRow;
use kernel::session::RunStatus;
use kernel::values::datum::{Datum, DatumValue, Origin};
use kernel::values::fault::Fault;
use kernel::values::ids::{AskId, Millis};
use serde_json::Value;
use std::sync::Arc;

/// The type of published events that are artifacts.
pub(crate) const ARTIFACT: &str = "a2a.artifact";

/// The fault of a tool that refuses the task that it is called for. Only tools of a program that
/// holds a server can fail with it: no answer of an upstream is read as one.
pub const TASK_REJECTED: &str = "TaskRejected";

/// The faults of runs that end because a person, or a tool, said no.
const REFUSALS: [&str; 3] = ["Rejected", "Declined", TASK_REJECTED];

/// The open asks of a task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskAsks {
    /// How many times the task has asked, this time included.
    pub(crate) no: u32,
    /// The open asks, in the order in which they were opened.
    pub(crate) asks: Vec<Arc<Ask>>,
    /// Why the last message did not answer them, where it was meant to.
    pub(crate) misfit: Option<Arc<str>>,
}

/// The state of a task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TaskState {
    /// It is recorded, and nothing has begun.
    Submitted,
    /// It moves, or will.
    Working,
    /// It asks; other parts of it may move meanwhile.
    Asking(TaskAsks),
    /// It has its answer.
    Completed,
    Failed(Fault),
    /// A person said no before anything was called, or a tool refused the task.
    Rejected(Fault),
    Cancelled,
}

impl TaskState {
    /// Whether nothing happens to the task any more.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Submitted | Self::Working | Self::Asking(_) => false,
            Self::Completed | Self::Failed(_) | Self::Rejected(_) | Self::Cancelled => true,
        }
    }

    /// The state of a run as its row tells it; none where only its events do.
    pub(crate) fn of_row(row: &RunRow) -> Option<Self> {
        match row.status {
            RunStatus::Completed => Some(Self::Completed),
            RunStatus::Cancelled => Some(Self::Cancelled),
            RunStatus::Failed => {
                let fault = row.last_error.clone()?;
                let is_told = !is_refusal(&fault) && !is_proxy(&row.plan);
                is_told.then_some(Self::Failed(fault))
            }
            RunStatus::Running | RunStatus::Waiting | RunStatus::Stuck | RunStatus::Paused => None,
        }
    }
}

/// A state, and when it began.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskStatus {
    pub(crate) state: TaskState,
    pub(crate) at: Millis,
}

/// One message of a task's history.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Line {
    /// Of the client.
    Received(Box<ReceivedMessage>),
    /// Earlier asks of the task.
    Asked(TaskAsks),
}

/// An artifact, or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Chunk {
    /// The answer of the run.
    Answer(Arc<Datum>),
    /// An event of type [`ARTIFACT`] that a step or a tool published.
    Published(Arc<Value>),
}

/// An update of a task for its followers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TaskUpdate {
    Status(TaskStatus),
    /// It made something.
    Chunk(Chunk),
}

/// A task as its events tell it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Task {
    pub(crate) state: TaskState,
    /// When its last event was recorded.
    pub(crate) changed_at: Millis,
    /// The messages so far, without what its state says now.
    pub(crate) lines: Vec<Line>,
    /// What it made, in order.
    pub(crate) chunks: Vec<Chunk>,
    open: Vec<Arc<Ask>>,
    asked: u32,
    has_called: bool,
    is_closing: bool,
    /// Where the run calls a tool for an agent of others.
    proxied: Option<ProxiedCall>,
}

impl Default for Task {
    fn default() -> Self {
        Self {
            state: TaskState::Submitted,
            changed_at: Millis(0),
            lines: Vec::new(),
            chunks: Vec::new(),
            open: Vec::new(),
            asked: 0,
            has_called: false,
            is_closing: false,
            proxied: None,
        }
    }
}

impl Task {
    /// Takes in the next event of the run, and gives what that changes, in order.
    pub(crate) fn apply(&mut self, event: &Event) -> Vec<TaskUpdate> {
        self.changed_at = event.at;
        match &mut self.proxied {
            Some(proxied) => proxied.note(&event.fact),
            None => self.proxied = ProxiedCall::begun(&event.fact),
        }
        let mut updates = Vec::new();
        let next = self.next(&event.fact);
        if next.is_none() && self.state == TaskState::Submitted && is_work(&event.fact) {
            updates.push(self.enter(TaskState::Working));
        }
        for chunk in self.chunks_of(&event.fact) {
            self.chunks.push(chunk.clone());
            updates.push(TaskUpdate::Chunk(chunk));
        }
        if let Fact::MessageReceived(received) = &event.fact {
            // What was asked stands before the reply to it.
            if next.is_some() {
                self.leave();
            }
            self.lines.push(Line::Received(received.clone()));
        }
        updates.extend(next.map(|next| self.enter(next)));
        updates
    }

    /// Whether the message of this id is part of the task.
    pub(crate) fn has_message(&self, id: &str) -> bool {
        self.lines.iter().any(|line| match line {
            Line::Received(received) => &*received.id == id,
            Line::Asked(_) => false,
        })
    }

    /// The state that a fact leads to, if it leads to another one.
    fn next(&mut self, fact: &Fact) -> Option<TaskState> {
        match fact {
            // What a rule holds is no one's to answer yet.
            Fact::AskOpened(ask) if ask.held.is_none() => {
                self.open.push(Arc::new((**ask).clone()));
                Some(self.asking(None))
            }
            Fact::AskDecided { ask, .. }
            | Fact::AskExpired { ask }
            | Fact::AskWithdrawn { ask } => self.closed(*ask),
            Fact::MessageReceived(received) if !self.open.is_empty() => {
                let misfit = received.misfit.clone()?;
                Some(self.asking(Some(misfit)))
            }
            Fact::CallStarted { .. } => {
                self.has_called = true;
                None
            }
            Fact::RunClosing { .. } => {
                self.is_closing = true;
                None
            }
            Fact::RunEnded { outcome, .. } => Some(self.end(outcome)),
            _ => None,
        }
    }

    fn closed(&mut self, ask: AskId) -> Option<TaskState> {
        let before = self.open.len();
        self.open.retain(|open| open.id != ask);
        // The end of the run withdraws what it asks: that is no work.
        if self.open.len() == before || self.is_closing {
            return None;
        }
        Some(match self.open.is_empty() {
            true => TaskState::Working,
            false => self.asking(None),
        })
    }

    fn asking(&mut self, misfit: Option<Arc<str>>) -> TaskState {
        self.asked += 1;
        TaskState::Asking(TaskAsks { no: self.asked, asks: self.open.clone(), misfit })
    }

    fn end(&self, outcome: &Outcome) -> TaskState {
        match outcome {
            Outcome::Completed { .. } => TaskState::Completed,
            Outcome::Failed { fault } if is_refusal(fault) && self.may_refuse(fault) => {
                TaskState::Rejected(self.shown_fault(fault))
            }
            Outcome::Failed { fault } => TaskState::Failed(self.shown_fault(fault)),
            Outcome::Cancelled { .. } => TaskState::Cancelled,
        }
    }

    /// Whether a no still refuses the task: what was called has happened, but the tool that was
    /// called may be the one that refuses.
    fn may_refuse(&self, fault: &Fault) -> bool {
        !self.has_called || fault.name.as_str() == TASK_REJECTED
    }

    /// A fault as it is reported to a client.
    fn shown_fault(&self, fault: &Fault) -> Fault {
        match &self.proxied {
            Some(proxied) => proxied.failure(fault).fault(),
            None => fault.clone(),
        }
    }

    /// What a fact brings to look at. A call for an agent of others has an output even where it
    /// failed.
    fn chunks_of(&self, fact: &Fact) -> Vec<Chunk> {
        match (fact, &self.proxied) {
            (Fact::RunEnded { outcome: Outcome::Failed { fault }, .. }, Some(proxied)) => {
                let output = proxied.failure(fault).output();
                vec![Chunk::Answer(Arc::new(Datum::inline(output, Origin::Plan)))]
            }
            _ => chunks(fact),
        }
    }

    fn enter(&mut self, state: TaskState) -> TaskUpdate {
        self.leave();
        self.state = state.clone();
        TaskUpdate::Status(TaskStatus { state, at: self.changed_at })
    }

    /// What it asked is history once its state is another one.
    fn leave(&mut self) {
        if let TaskState::Asking(asking) = &self.state {
            self.lines.push(Line::Asked(asking.clone()));
            self.state = TaskState::Working;
        }
    }
}

fn is_refusal(fault: &Fault) -> bool {
    REFUSALS.contains(&fault.name.as_str())
}

/// Whether a run that does this has begun its work.
fn is_work(fact: &Fact) -> bool {
    !matches!(
        fact,
        Fact::RunStarted { .. }
            | Fact::RunQueued(_)
            | Fact::RunClaimed { .. }
            | Fact::RunPaused { .. }
            | Fact::RunContinued { .. }
            | Fact::RunClosing { .. }
            | Fact::MessageReceived(_)
    )
}

/// What a fact brings to look at. A null answer is none.
fn chunks(fact: &Fact) -> Vec<Chunk> {
    let is_artifact = |event: &&Arc<Value>| event["type"] == ARTIFACT;
    match fact {
        Fact::RunEnded { outcome: Outcome::Completed { answer }, .. } => {
            let is_null = matches!(&answer.held, DatumValue::Value(value) if value.is_null());
            if is_null { Vec::new() } else { vec![Chunk::Answer(answer.clone())] }
        }
        Fact::EventPublished { published, .. } => {
            let event = Some(&published.event).filter(is_artifact);
            event.map(|event| Chunk::Published(event.clone())).into_iter().collect()
        }
        Fact::CallFinished { published, .. } => {
            let events = published.iter().map(|published| &published.event).filter(is_artifact);
            events.map(|event| Chunk::Published(event.clone())).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
