//! The writer's queue: its jobs, the state shared with the writer, and the handle that queues jobs.

use super::error::Result;
use super::poison::Poison;
use crate::locks::held;
use kernel::contracts::{CommitNotice, CommitTimes, OnCommit, StoreError, StoreFigures, Ticket};
use kernel::journal::projection::Append;
use rusqlite::Connection;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

/// Jobs of the writer; one commit contains many.
pub(crate) enum Job {
    /// Writes an append.
    Append {
        /// Its number in the queue's order.
        number: u64,
        append: Box<Append>,
        /// Told once it is durable or refused.
        answer: oneshot::Sender<Result<(), StoreError>>,
    },
    /// Anything else that writes.
    Chore(Box<dyn Chore>),
    /// Writes so many bytes, to see whether writing works again.
    Probe {
        /// As many as were refused.
        bytes: usize,
    },
    /// Writes the database anew, without what is in its free space.
    Compact(oneshot::Sender<Result<(), StoreError>>),
    /// Ends the writer after what is queued.
    Close(oneshot::Sender<()>),
}

/// A write that is not an append. It may be run again, in another transaction, before it is done.
pub(crate) trait Chore: Send {
    /// Writes, inside a savepoint of its own.
    fn run(&mut self, connection: &Connection) -> Result<()>;

    /// About how many bytes it writes, where that is much.
    fn size(&self) -> usize;

    /// It is durable, or why it is not.
    fn done(self: Box<Self>, result: Result<(), StoreError>);
}

impl Job {
    /// About how much it writes, as far as its text says.
    pub(crate) fn size(&self) -> usize {
        match self {
            Job::Append { append, .. } => {
                let closure = append.closure.as_ref().map_or(0, |closure| closure.body.len());
                append.body.len() + closure + append.snapshot.as_ref().map_or(0, String::len)
            }
            Job::Chore(chore) => chore.size(),
            // How much was refused before a probe is known already.
            Job::Probe { .. } | Job::Compact(_) | Job::Close(_) => 0,
        }
    }
}

/// The largest probe: appends are smaller, for large values are blobs, and so is most often what is
/// written of the audit at once.
const PROBE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Commits fail.
#[derive(Clone)]
struct Broken {
    error: StoreError,
    /// How much a probe must write before a full disk counts as one with room.
    bytes: usize,
}

/// State shared by the store and its writer.
#[derive(Default)]
pub(crate) struct Shared {
    poison: Mutex<Poison>,
    /// Why commits fail; none if they do not.
    broken: Mutex<Option<Broken>>,
    woken: Mutex<Option<OnCommit>>,
    /// How long commits took.
    commits: Mutex<CommitTimes>,
}

impl Shared {
    /// A commit was made, and took so long.
    pub(crate) fn committed(&self, took_ms: u64) {
        held(&self.commits).add(took_ms);
    }

    /// Which appends are to be refused.
    pub(crate) fn poison(&self) -> MutexGuard<'_, Poison> {
        held(&self.poison)
    }

    /// A commit of about so many bytes failed.
    pub(crate) fn broke(&self, error: StoreError, bytes: usize) {
        let mut broken = held(&self.broken);
        let before = broken.as_ref().map_or(0, |broken| broken.bytes);
        *broken = Some(Broken { error, bytes: bytes.min(PROBE_BYTES_MAX).max(before) });
    }

    /// A commit wrote something, and a probe of so many bytes with it. On a full disk little finds
    /// room where more does not, so only a probe of the right size says that there is room again.
    pub(crate) fn wrote(&self, probed: usize) {
        let mut broken = held(&self.broken);
        let still_full =
            |broken: &Broken| broken.error == StoreError::Full && probed < broken.bytes;
        if !broken.as_ref().is_some_and(still_full) {
            *broken = None;
        }
    }

    /// Calls the hook. Not under the lock: the hook may come back to the store.
    pub(crate) fn wake(&self, committed: &[CommitNotice<'_>]) {
        let woken = held(&self.woken).clone();
        if let Some(woken) = woken
            && !committed.is_empty()
        {
            woken(committed);
        }
    }
}

/// Queues jobs for the writer.
#[derive(Clone)]
pub(crate) struct Writes {
    queue: mpsc::Sender<Job>,
    shared: Arc<Shared>,
}

impl Writes {
    /// A queue of this length, and the end that the writer takes jobs from.
    pub(crate) fn new(shared: Arc<Shared>, jobs_max: usize) -> (Self, mpsc::Receiver<Job>) {
        let (queue, jobs) = mpsc::channel(jobs_max.max(1));
        (Self { queue, shared }, jobs)
    }

    /// How many jobs wait, and how long commits took; how large all of it is, others know.
    pub(crate) fn figures(&self) -> StoreFigures {
        let queued = self.queue.max_capacity() - self.queue.capacity();
        let commits = held(&self.shared.commits).clone();
        StoreFigures { queued, commits, ..StoreFigures::default() }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Queues an append, in call order. It never waits for a place: a full queue is an answer.
    pub(crate) fn append(&self, append: Append) -> Ticket {
        let append = Box::new(append);
        let (answer, result) = oneshot::channel();
        // Numbered and queued under one lock, so that numbers stand in the queue's order.
        let mut poison = self.shared.poison();
        let job = Job::Append { number: poison.next_number(), append, answer };
        match self.queue.try_send(job) {
            Ok(()) => poison.queued(),
            Err(TrySendError::Full(job)) => {
                if let Job::Append { append, .. } = job {
                    poison.turned_away(&append.session.key);
                }
                return at_once(Err(StoreError::Busy));
            }
            Err(TrySendError::Closed(_)) => return at_once(Err(StoreError::Closed)),
        }
        drop(poison);
        Box::pin(async move { result.await.unwrap_or(Err(StoreError::Closed)) })
    }

    /// Queues any other write; waits for a place, and not until it is done.
    pub(crate) async fn chore(&self, chore: Box<dyn Chore>) -> Result<(), StoreError> {
        self.queue.send(Job::Chore(chore)).await.map_err(|_| StoreError::Closed)
    }

    /// Writes the database anew, after what is queued. Nothing else is written meanwhile.
    pub(crate) async fn compact(&self) -> Result<(), StoreError> {
        let (answer, compacted) = oneshot::channel();
        self.queue.send(Job::Compact(answer)).await.map_err(|_| StoreError::Closed)?;
        compacted.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Calls this after every commit.
    pub(crate) fn on_commit(&self, woken: OnCommit) {
        *held(&self.shared.woken) = Some(woken);
    }

    /// Whether commits work. If not, the writer tries again: with no one sending work to a store
    /// that is not ready, nothing else would.
    pub(crate) fn healthy(&self) -> Result<(), StoreError> {
        if self.queue.is_closed() {
            return Err(StoreError::Closed);
        }
        let broken = held(&self.shared.broken).clone();
        let Some(Broken { error, bytes }) = broken else { return Ok(()) };
        let _ = self.queue.try_send(Job::Probe { bytes });
        Err(error)
    }

    /// Ends the writer after what is queued. A second call finds it ended or ending.
    pub(crate) async fn close(&self) -> Result<(), StoreError> {
        let (answer, ended) = oneshot::channel();
        if self.queue.send(Job::Close(answer)).await.is_err() {
            return Ok(());
        }
        ended.await.map_err(|_| StoreError::Closed)
    }
}

fn at_once(answer: Result<(), StoreError>) -> Ticket {
    Box::pin(std::future::ready(answer))
}
