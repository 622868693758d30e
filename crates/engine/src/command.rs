//! Messages from endpoints to the driver of a session.

use crate::refusal::{Refusal, Result};
use crate::request::{Message, ReplyReport, RunMetadata, RunReport, SessionReply};
use crate::waiting::idempotency::Claim;
use kernel::ask::Reply;
use kernel::definition::plan::Closure;
use kernel::event::{Event, Fact};
use kernel::journal::projection::SessionRow;
use kernel::tool::call::{Caller, InputResponses};
use kernel::values::ids::{AskId, RunId, SessionId};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Where an answer goes.
pub(crate) type Answer<T> = oneshot::Sender<Result<T>>;

/// Whether the session must exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It was made up just now: no one else can know it, so nothing is looked up.
    Fresh,
    MustExist,
    /// Either.
    MayExist,
}

/// A command for one session.
pub(crate) enum Command {
    /// Make the session.
    Create {
        id: SessionId,
        owner: Option<Arc<str>>,
        by: Box<Caller>,
        answer: Answer<SessionRow>,
    },
    /// Make the session out of these events.
    Adopt {
        id: SessionId,
        events: Slices,
        by: Box<Caller>,
        answer: Answer<SessionRow>,
    },
    Run {
        start: Box<StartRun>,
        answer: Answer<RunReport>,
    },
    Reply {
        ask: AskId,
        reply: Reply,
        by: Box<Replier>,
        answer: Answer<ReplyReport>,
    },
    /// A reply that names the session.
    Resume {
        resume: SessionReply,
        by: Box<Replier>,
        answer: Answer<RunReport>,
    },
    /// Replies to several asks of one run: all of them count, or none.
    Replies {
        replies: Vec<(AskId, Reply)>,
        by: Box<Replier>,
        answer: Answer<RunReport>,
    },
    /// What the caller of a direct call gives it, by the tool's keys, in the place of a reply to
    /// the ask that is open for it. The state is the call's own.
    Give {
        ask: AskId,
        said: Box<InputResponses>,
        by: Box<Replier>,
        answer: Answer<RunReport>,
    },
    /// Record this of a run that is not over: a pause, its end, or a cancellation.
    Change {
        run: RunId,
        fact: Box<Fact>,
        by: Box<Caller>,
        answer: Answer<RunReport>,
    },
    /// End it if it waits for nothing but logins; while one of them is checked, only wait.
    GiveUpLogin {
        run: RunId,
        by: Arc<str>,
        answer: Answer<RunReport>,
    },
    /// The run as it is now, once that is durable.
    Report {
        run: RunId,
        answer: Answer<RunReport>,
    },
    /// The run once it ended or paused.
    Await {
        run: RunId,
        answer: Answer<RunReport>,
    },
    /// Drive what should move: recovery or a timer.
    Wake,
    /// The page that this ask is about was opened, it is said: see whether its call can continue.
    Look(AskId),
}

/// Events that come in slices; a refusal says that no more come.
pub(crate) type Slices = mpsc::Receiver<Result<Slice>>;

/// Some of the events that a session begins with.
pub(crate) struct Slice {
    pub(crate) events: Vec<Event>,
    /// Whether all events have come with it.
    pub(crate) is_last: bool,
}

/// The caller of a reply, and its idempotency key.
pub(crate) struct Replier {
    pub(crate) caller: Caller,
    /// The key that the request holds, if it has one.
    pub(crate) claim: Option<Claim>,
    /// The message that replies, where its client reads that back.
    pub(crate) message: Option<Message>,
}

impl Replier {
    /// A reply under a key, without a message.
    pub(crate) fn new(caller: &Caller, claim: Option<Claim>) -> Box<Self> {
        Box::new(Self { caller: caller.clone(), claim, message: None })
    }
}

/// A run to start.
pub(crate) struct StartRun {
    /// The session's id, if it has to be made.
    pub(crate) session: SessionId,
    /// Whether the session must exist.
    pub(crate) presence: Presence,
    pub(crate) run: RunId,
    pub(crate) closure: Arc<Closure>,
    pub(crate) input: Arc<Value>,
    pub(crate) caller: Caller,
    /// The key that the request holds, if it has one.
    pub(crate) claim: Option<Claim>,
    /// Whether who starts it need not wait for what continues elsewhere.
    pub(crate) as_task: bool,
    /// Its one call was sent already, and continues elsewhere under this state.
    pub(crate) sent: Option<Value>,
    /// What else is to be remembered of it.
    pub(crate) about: RunMetadata,
}

impl Command {
    /// Who gives it, where that is known.
    pub(crate) fn caller(&self) -> Option<&Caller> {
        match self {
            Command::Create { by, .. } | Command::Adopt { by, .. } | Command::Change { by, .. } => {
                Some(by)
            }
            Command::Run { start, .. } => Some(&start.caller),
            Command::Reply { by, .. }
            | Command::Resume { by, .. }
            | Command::Replies { by, .. }
            | Command::Give { by, .. } => Some(&by.caller),
            Command::GiveUpLogin { .. }
            | Command::Report { .. }
            | Command::Await { .. }
            | Command::Wake
            | Command::Look(_) => None,
        }
    }

    /// Whether it begins something new, rather than continuing what was begun before.
    pub(crate) fn begins(&self) -> bool {
        matches!(self, Command::Create { .. } | Command::Adopt { .. } | Command::Run { .. })
    }

    /// Whether it starts a run in a session that was made up just now.
    pub(crate) fn is_fresh(&self) -> bool {
        matches!(self, Command::Run { start, .. } if start.presence == Presence::Fresh)
    }

    pub(crate) fn refuse(self, refusal: Refusal) {
        match self {
            Command::Create { answer, .. } | Command::Adopt { answer, .. } => {
                drop(answer.send(Err(refusal)));
            }
            Command::Reply { answer, .. } => drop(answer.send(Err(refusal))),
            Command::Run { answer, .. }
            | Command::Resume { answer, .. }
            | Command::Replies { answer, .. }
            | Command::Give { answer, .. }
            | Command::Change { answer, .. }
            | Command::GiveUpLogin { answer, .. }
            | Command::Report { answer, .. }
            | Command::Await { answer, .. } => drop(answer.send(Err(refusal))),
            Command::Wake | Command::Look(_) => {}
        }
    }
}
