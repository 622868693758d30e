//! Calls and tasks that wait for input that their server requested. Their number and age are
//! limited; a dropped one is cancelled at its server.

use super::super::lanes::LanePermit;
use super::super::levels::LevelGuard;
use super::super::line::Replies;
use super::super::peer::Peer;
use crate::{RemoteParts, lock};
use futures::future::{Either, select};
use kernel::contracts::Spawn;
use kernel::tool::call::{Abilities, Call, Caller, InputRequest};
use kernel::values::ids::ToolName;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;
use wire::jsonrpc::Id;

/// How long a call is kept for an answer.
pub(crate) const KEPT_MS: u64 = 600_000;
/// How long the other side may take to hear that a task is cancelled.
const CANCEL_MS: u64 = 10_000;

/// Whose call it is: no one else continues with it, nor it with other arguments.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallOwner {
    caller: Caller,
    tool: ToolName,
    arguments: Arc<Value>,
}

impl CallOwner {
    pub(crate) fn of(caller: &Caller, call: &Call) -> Self {
        let tool = call.tool.clone();
        let arguments = call.arguments.clone();
        // What a caller calls directly may continue in a run, which administers nothing.
        let caller = Caller { admin: false, ..caller.clone() };
        Self { caller, tool, arguments }
    }
}

/// A call under way.
pub(crate) struct OpenCall {
    pub(crate) peer: Arc<Peer>,
    /// Dropping it cancels the call.
    pub(crate) replies: Replies,
    /// How many questions it asked so far.
    pub(crate) questions: u32,
    /// Required abilities that its caller lacks.
    pub(crate) lacks: Abilities,
    /// That its caller wants to hear the log.
    pub(crate) _log: Option<LevelGuard>,
    /// Its place among the calls of its connection, where that matters.
    pub(crate) permit: Option<LanePermit>,
    /// Whether it does no harm to make it twice.
    pub(crate) may_repeat: bool,
}

impl OpenCall {
    /// The server asked something.
    pub(crate) fn asked(&self) {
        if let Some(permit) = &self.permit {
            permit.asked();
        }
    }

    /// The server answered.
    pub(crate) fn answered(&mut self) {
        if let Some(permit) = &mut self.permit {
            permit.answered();
        }
    }

    /// Whether what the server asks on its connection can be of no other call.
    pub(crate) fn is_alone(&self) -> bool {
        self.permit.as_ref().is_none_or(LanePermit::is_alone)
    }
}

/// A question that a server asked during a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    /// The id of its request.
    pub(crate) id: Id,
    /// Our key for it.
    pub(crate) key: String,
    pub(crate) want: InputRequest,
}

/// A task of a server, which is cancelled when this is dropped, unless it is over.
pub(crate) struct RunningTask {
    pub(crate) peer: Arc<Peer>,
    pub(crate) id: String,
    pub(crate) over: bool,
    /// Whether its id is written down: who comes back for it finds it without us.
    pub(crate) recorded: bool,
    spawn: Arc<dyn Spawn>,
}

impl RunningTask {
    /// A task that is not over.
    pub(crate) fn new(peer: Arc<Peer>, id: String, parts: &RemoteParts) -> Self {
        Self { peer, id, over: false, recorded: false, spawn: parts.spawn.clone() }
    }
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let peer = self.peer.clone();
        let id = std::mem::take(&mut self.id);
        let cancel = async move {
            let params = json!({"taskId": id});
            // No one waits for it, and it ends by itself some day.
            if let Err(error) = peer.ask("tasks/cancel", params, Some(&id), CANCEL_MS).await {
                tracing::debug!(task = id, "an upstream's task could not be cancelled: {error}");
            }
        };
        self.spawn.task("cancel upstream task", Box::pin(cancel));
    }
}

pub(crate) enum PendingWork {
    /// A call, in the middle of which this was asked. It is much larger than a task.
    Talk(Box<OpenCall>, Question),
    Task(RunningTask),
}

/// Pending work by token, and the number of watchers of each resource.
#[derive(Default)]
pub(crate) struct Pending {
    kept: Arc<Mutex<VecDeque<Entry>>>,
    watched: Mutex<BTreeMap<String, usize>>,
}

/// Oldest first.
struct Entry {
    token: String,
    whose: CallOwner,
    kept: PendingWork,
    /// Its timer ends when this is dropped.
    _timer: oneshot::Sender<()>,
}

impl Pending {
    /// Keeps it until it is taken, or for as long as the limits allow; gives its token.
    pub(crate) fn keep(&self, parts: &RemoteParts, whose: CallOwner, kept: PendingWork) -> String {
        let token = format!("{:032x}", parts.entropy.bits());
        let (timer, taken) = oneshot::channel();
        let entry = Entry { token: token.clone(), whose, kept, _timer: timer };
        let crowded = {
            let mut all = lock(&self.kept);
            all.push_back(entry);
            let surplus = all.len().saturating_sub(parts.limits.upstream_pending_max.max(1));
            all.drain(..surplus).collect::<Vec<Entry>>()
        };
        // Outside of the lock: what is dropped may start a task.
        crowded.into_iter().for_each(let_go);
        let over = parts.clock.sleep_ms(KEPT_MS);
        let all = Arc::downgrade(&self.kept);
        let late = token.clone();
        let timer = async move {
            if let Either::Left(_) = select(over, taken).await
                && let Some(all) = all.upgrade()
                && let Some(entry) = remove(&all, |entry| entry.token == late)
            {
                let_go(entry);
            }
        };
        parts.spawn.task("upstream pending", Box::pin(timer));
        token
    }

    /// Takes the pending work of this token, if it belongs to this call.
    pub(crate) fn take(&self, token: &str, whose: &CallOwner) -> Option<PendingWork> {
        let found = |entry: &Entry| entry.token == token && entry.whose == *whose;
        remove(&self.kept, found).map(|entry| entry.kept)
    }

    /// Drops the pending work of this token, which nobody will answer. Whether there was any.
    pub(crate) fn forget(&self, token: &str) -> bool {
        // Outside of the lock: what is dropped may start a task.
        remove(&self.kept, |entry| entry.token == token).is_some()
    }

    /// Lets go of the call that waits longest with a connection of its own; whether there was one.
    /// It is made again when its answer comes, so one goes first that may be made twice.
    pub(crate) fn let_go_of_oldest(&self) -> bool {
        let has_own = |entry: &Entry| match &entry.kept {
            PendingWork::Talk(talk, _) => talk.permit.as_ref().is_some_and(LanePermit::is_own),
            PendingWork::Task(_) => false,
        };
        let may_repeat = |entry: &Entry| match &entry.kept {
            PendingWork::Talk(talk, _) => talk.may_repeat && has_own(entry),
            PendingWork::Task(_) => false,
        };
        // Outside of the lock: what is dropped may start a task.
        let oldest = remove(&self.kept, may_repeat).or_else(|| remove(&self.kept, has_own));
        let was_there = oldest.is_some();
        oldest.into_iter().for_each(let_go);
        was_there
    }

    /// Someone watches this resource.
    pub(crate) fn watch(&self, uri: &str) {
        *lock(&self.watched).entry(uri.to_owned()).or_default() += 1;
    }

    /// Someone watches it no more; whether no one does any more.
    pub(crate) fn unwatch(&self, uri: &str) -> bool {
        let mut watched = lock(&self.watched);
        let Some(watchers) = watched.get_mut(uri) else { return false };
        *watchers = watchers.saturating_sub(1);
        let left = *watchers == 0;
        if left {
            watched.remove(uri);
        }
        left
    }

    /// Whether someone watches it.
    pub(crate) fn is_watched(&self, uri: &str) -> bool {
        lock(&self.watched).contains_key(uri)
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        lock(&self.kept).len()
    }
}

/// Lets go of what no one came back for in time, which cancels it on the other side. A task whose
/// id is written down continues there: the one who has the answer finds it, however late.
fn let_go(mut entry: Entry) {
    if let PendingWork::Task(running) = &mut entry.kept {
        running.over |= running.recorded;
    }
}

fn remove(all: &Mutex<VecDeque<Entry>>, found: impl FnMut(&Entry) -> bool) -> Option<Entry> {
    let mut all = lock(all);
    let at = all.iter().position(found)?;
    all.remove(at)
}
