//! A store in memory, after the contracts alone: maps under one lock. Several nodes may have it
//! open at the same time. A seed says when what is queued is committed and how long answers take:
//! a driver with one seed sees one history.

mod tables;
mod reads;
mod removal;
mod contracts;
mod audit;
mod api_keys;
mod claims;
mod principals;
mod realms;
mod webhooks;
pub mod simulated;

use crate::sim::rng::Rng;
use kernel::contracts::{CommitNotice, OnCommit, StoreError, Ticket};
use kernel::identity::audit::{ChainName, Entries};
use kernel::identity::chain::ChainKeys;
use kernel::journal::projection::Append;
use kernel::values::ids::{Millis, SessionKey};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use tables::{NOBODY, SessionData, Tables};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

/// Which of a seed's streams decides about delays.
const DELAYS_STREAM: u64 = 21;
/// An answer is given after fewer polls than this.
const DELAY_POLLS: u64 = 3;

type Answer = Result<(), StoreError>;

/// What all nodes share. It outlives them: a node that opens it again finds what was committed.
pub struct ModelState {
    reasons_max: usize,
    shared: Mutex<Shared>,
}

struct Shared {
    rng: Rng,
    tables: Tables,
    /// How often it was opened.
    opened: u64,
    /// The nodes that are there, by the number of their opening.
    nodes: BTreeMap<u64, Node>,
}

/// What one node has of its own.
struct Node {
    name: String,
    queue: VecDeque<Job>,
    /// The number of the last append that was queued.
    queued: u64,
    /// The sessions whose appends are refused: up to this number, or all until they are loaded.
    poison: BTreeMap<SessionKey, Option<u64>>,
    woken: Option<OnCommit>,
    /// What rows of the audit are made with.
    audit_keys: Option<Arc<dyn ChainKeys>>,
}

struct Job {
    number: u64,
    append: Box<Append>,
    answer: oneshot::Sender<Answer>,
}

/// Who is notified once the lock is free: first whom the commit wakes, then the answers.
#[derive(Default)]
struct Notifications {
    answers: Vec<(oneshot::Sender<Answer>, Answer)>,
    committed: Vec<Append>,
    /// The node that committed, which knows what it wrote, and the others, which do not.
    own: Option<OnCommit>,
    others: Vec<OnCommit>,
}

impl Notifications {
    fn send(self) {
        let Self { answers, committed, own, others } = self;
        if !committed.is_empty() {
            let known: Vec<CommitNotice<'_>> = committed.iter().map(CommitNotice::append).collect();
            let unknown: Vec<CommitNotice<'_>> =
                known.iter().map(|committed| CommitNotice::change(committed.key)).collect();
            own.iter().for_each(|woken| woken(&known));
            others.iter().for_each(|woken| woken(&unknown));
        }
        for (answer, result) in answers {
            let _ = answer.send(result);
        }
    }
}

impl ModelState {
    /// Nothing yet. So many unknown reasons of one pipeline are counted, each by itself.
    pub fn new(seed: u64, reasons_max: usize) -> Arc<Self> {
        let shared = Shared {
            rng: Rng::stream(seed, DELAYS_STREAM),
            tables: Tables::default(),
            opened: 0,
            nodes: BTreeMap::new(),
        };
        Arc::new(Self { reasons_max, shared: Mutex::new(shared) })
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits some of what a node has queued, or none: that is the seed's to say.
    fn turn(&self, node: u64) {
        let mut shared = self.shared();
        let queued = shared.nodes.get(&node).map_or(0, |node| node.queue.len());
        let many = match shared.rng.below(4) {
            0 => 0,
            1 => 1,
            2 => 2,
            _ => queued,
        };
        let notifications = shared.commit(node, many, self.reasons_max);
        drop(shared);
        notifications.send();
    }

    /// How many polls an answer takes.
    fn delay(&self) -> u64 {
        self.shared().rng.below(DELAY_POLLS)
    }
}

impl Shared {
    /// Commits so many of a node's appends, in their order.
    fn commit(&mut self, node: u64, many: usize, reasons_max: usize) -> Notifications {
        let mut notifications = Notifications::default();
        for _ in 0..many {
            let Some(job) = self.nodes.get_mut(&node).and_then(|node| node.queue.pop_front())
            else {
                break;
            };
            let result = self.perform(node, &job, reasons_max);
            if result.is_ok() {
                notifications.committed.push(*job.append);
            }
            notifications.answers.push((job.answer, result));
        }
        for (number, other) in &self.nodes {
            if *number == node {
                notifications.own = other.woken.clone();
            } else {
                notifications.others.extend(other.woken.clone());
            }
        }
        notifications
    }

    fn perform(&mut self, node: u64, job: &Job, reasons_max: usize) -> Answer {
        let key = &job.append.session.key;
        let refused = |until: &Option<u64>| until.is_none_or(|until| job.number <= until);
        let poison = self.nodes.get(&node).and_then(|node| node.poison.get(key));
        if poison.is_some_and(refused) {
            return Err(StoreError::Poisoned(key.to_string()));
        }
        let number = self.tables.number(key);
        let session = number.and_then(|number| self.tables.sessions.get(&number));
        let is_held = session.is_some_and(|session| self.is_held(session, node));
        let result = if is_held && !job.append.creates {
            Err(StoreError::Conflict(key.to_string()))
        } else {
            self.append(&job.append, node, reasons_max)
        };
        if let Some(node) = self.nodes.get_mut(&node) {
            match &result {
                Ok(()) => node.poison.remove(key),
                // What was decided on a session that was not made finds that it is not there.
                Err(_) if job.append.creates => None,
                Err(_) => node.poison.insert(key.clone(), None),
            };
        }
        result
    }

    /// Refuses an append, or writes all of it, with what the audit keeps of it.
    fn append(&mut self, append: &Append, node: u64, reasons_max: usize) -> Answer {
        let keys = self.nodes.get(&node).and_then(|node| node.audit_keys.clone());
        let entries = match append.audit.is_empty() {
            true => Entries::new(),
            false => vec![(ChainName::of(&append.session.key.realm), append.audit.clone())],
        };
        let rows = self.tables.audit_rows(keys.as_deref(), &entries)?;
        self.tables.append(append, node, reasons_max)?;
        self.tables.keep_audit(rows);
        Ok(())
    }

    /// Whether another node that is there drives a session, or has claimed it.
    fn is_held(&self, session: &SessionData, node: u64) -> bool {
        let is_other = |other: u64| other != node && self.nodes.contains_key(&other);
        is_other(session.owner) || is_other(session.claimed)
    }

    /// Up to so many sessions that should be driven now, which are this node's from now on.
    fn claim(&mut self, node: u64, now: Millis, limit: usize) -> Vec<SessionKey> {
        let mut due: Vec<(u8, Millis, u64)> = Vec::new();
        for (number, session) in &self.tables.sessions {
            let Some(wake_at) = session.row.wake_at.filter(|at| *at <= now) else { continue };
            if self.is_held(session, node) {
                continue;
            }
            let rank = match session.owner {
                NOBODY => 1,
                owner if owner == node => 2,
                _ => 0,
            };
            due.push((rank, wake_at, *number));
        }
        due.sort_unstable();
        due.truncate(limit);
        let mut claimed = Vec::new();
        for (_, _, number) in due {
            if let Some(session) = self.tables.sessions.get_mut(&number) {
                session.claimed = node;
                claimed.push(session.row.key.clone());
            }
        }
        claimed
    }
}

/// The store as one node has it open.
pub struct ModelStore {
    state: Arc<ModelState>,
    /// The number of this opening.
    node: u64,
}

impl ModelStore {
    /// Opens it for a node. What was open before under the same name is gone from then on: of that,
    /// what was not committed is lost, and what it drove has no owner.
    pub fn open(state: &Arc<ModelState>, name: &str) -> Self {
        let mut shared = state.shared();
        shared.nodes.retain(|_, node| node.name != name);
        shared.opened += 1;
        let number = shared.opened;
        let node = Node {
            name: name.to_owned(),
            queue: VecDeque::new(),
            queued: 0,
            poison: BTreeMap::new(),
            woken: None,
            audit_keys: None,
        };
        shared.nodes.insert(number, node);
        drop(shared);
        Self { state: state.clone(), node: number }
    }

    /// Queues an append; a poll of the ticket gives the queue a turn.
    fn queue(&self, append: Append) -> Ticket {
        let (answer, mut answered) = oneshot::channel();
        let mut shared = self.state.shared();
        let Some(node) = shared.nodes.get_mut(&self.node) else {
            return Box::pin(std::future::ready(Err(StoreError::Closed)));
        };
        node.queued += 1;
        let job = Job { number: node.queued, append: Box::new(append), answer };
        node.queue.push_back(job);
        drop(shared);
        let state = self.state.clone();
        let node = self.node;
        Box::pin(async move {
            loop {
                match answered.try_recv() {
                    Ok(result) => return result,
                    Err(TryRecvError::Closed) => return Err(StoreError::Closed),
                    Err(TryRecvError::Empty) => state.turn(node),
                }
                pause().await;
            }
        })
    }

    /// What is queued from now on was decided on what is there.
    fn heal(&self, key: &SessionKey) {
        let mut shared = self.state.shared();
        let Some(node) = shared.nodes.get_mut(&self.node) else { return };
        if let Some(until) = node.poison.get_mut(key) {
            *until = Some(node.queued);
        }
    }

    /// Looks at what is committed.
    async fn read<T>(
        &self,
        look: impl FnOnce(&Tables) -> Result<T, StoreError> + Send,
    ) -> Result<T, StoreError> {
        self.state.turn(self.node);
        for _ in 0..self.state.delay() {
            pause().await;
        }
        let shared = self.state.shared();
        if !shared.nodes.contains_key(&self.node) {
            return Err(StoreError::Closed);
        }
        look(&shared.tables)
    }

    /// Changes something, behind all that this node has queued.
    async fn write<T>(
        &self,
        change: impl FnOnce(&mut Tables) -> Result<T, StoreError> + Send,
    ) -> Result<T, StoreError> {
        let result = self.write_at_once(change)?;
        for _ in 0..self.state.delay() {
            pause().await;
        }
        Ok(result)
    }

    fn write_at_once<T>(
        &self,
        change: impl FnOnce(&mut Tables) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut shared = self.state.shared();
        if !shared.nodes.contains_key(&self.node) {
            return Err(StoreError::Closed);
        }
        let notifications = shared.commit(self.node, usize::MAX, self.state.reasons_max);
        let result = change(&mut shared.tables);
        drop(shared);
        notifications.send();
        result
    }

    /// Commits what is queued, and leaves.
    fn leave(&self) {
        let mut shared = self.state.shared();
        let notifications = shared.commit(self.node, usize::MAX, self.state.reasons_max);
        shared.nodes.remove(&self.node);
        drop(shared);
        notifications.send();
    }
}

/// Lets others run.
async fn pause() {
    let mut paused = false;
    std::future::poll_fn(|context| {
        if paused {
            return Poll::Ready(());
        }
        paused = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
