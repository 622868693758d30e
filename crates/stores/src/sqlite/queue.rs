//! The writer's queue: the jobs, what the store shares with its writer, and the handle by which
//! jobs are queued.

use super::fences::Fences;
use super::poison::Poison;
use super::specs::KnownSpecs;
use super::trouble::Trouble;
use crate::parts::Fatal;
use kernel::contracts::{CommitTimes, Read, StoreError, StoreFigures, Ticket};
use kernel::ids::SessionKey;
use kernel::projection::Append;
use rusqlite::Connection;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

/// What the writer does; one transaction holds many.
pub(crate) enum Job {
    /// Writes an append.
    Append {
        /// Its number in the queue's order.
        number: u64,
        /// What it writes.
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
    /// Ends the writer after what is queued.
    Close(oneshot::Sender<()>),
}

/// A write that is not an append. It may be run again, in another transaction, before it is done.
pub(crate) trait Chore: Send {
    /// Writes, inside a savepoint of its own.
    fn run(&mut self, connection: &Connection) -> Result<(), Trouble>;
    /// It is durable, or why it is not.
    fn done(self: Box<Self>, result: Result<(), StoreError>);
}

struct Task<F, G, T> {
    work: F,
    /// What follows once the work is durable, before anybody is told.
    then: G,
    made: Option<T>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

impl<F, G, T> Chore for Task<F, G, T>
where
    F: FnMut(&Connection) -> Result<T, Trouble> + Send,
    G: FnOnce(&T) + Send,
    T: Send,
{
    fn run(&mut self, connection: &Connection) -> Result<(), Trouble> {
        self.made = Some((self.work)(connection)?);
        Ok(())
    }

    fn done(self: Box<Self>, result: Result<(), StoreError>) {
        let Self { then, made, answer, .. } = *self;
        let result = result.and_then(|()| made.ok_or(StoreError::Closed));
        let _ = answer.send(result.inspect(then));
    }
}

/// Told which sessions a commit changed.
pub(crate) type Woken = Arc<dyn Fn(&[SessionKey]) + Send + Sync>;

/// The largest probe: appends are smaller, for large values are blobs.
const PROBE_BYTES_MAX: usize = 1024 * 1024;

/// Commits fail.
#[derive(Clone)]
struct Broken {
    error: StoreError,
    /// How much a probe must write before a full disk counts as one with room.
    bytes: usize,
}

/// What the store and its writer both see.
pub(crate) struct Shared {
    /// This opening's number.
    pub(crate) node: u64,
    /// Ends the process.
    pub(crate) fatal: Fatal,
    /// How many unknown reasons of one pipeline are counted, each by itself.
    pub(crate) tally_reasons_max: usize,
    /// Which pinned specs the writer knows to be there.
    pub(crate) specs: Arc<KnownSpecs>,
    /// The sessions that were written lately, as they are.
    pub(crate) fences: Arc<Fences>,
    poison: Mutex<Poison>,
    /// Why commits fail; none if they do not.
    broken: Mutex<Option<Broken>>,
    woken: Mutex<Option<Woken>>,
    /// How long commits took.
    commits: Mutex<CommitTimes>,
}

impl Shared {
    /// Of a store that was just opened.
    pub(crate) fn new(
        node: u64,
        fatal: Fatal,
        (fences, tally_reasons_max): (Arc<Fences>, usize),
    ) -> Self {
        Self {
            node,
            fatal,
            fences,
            tally_reasons_max,
            specs: Arc::default(),
            poison: Mutex::default(),
            broken: Mutex::default(),
            woken: Mutex::default(),
            commits: Mutex::default(),
        }
    }

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
    pub(crate) fn wake(&self, mut changed: Vec<SessionKey>) {
        let woken = held(&self.woken).clone();
        if let Some(woken) = woken
            && !changed.is_empty()
        {
            changed.sort_unstable();
            changed.dedup();
            woken(&changed);
        }
    }
}

/// Locks. A thread that panicked while it held one of these locks left nothing half done.
pub(crate) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// What the store shares with its writer.
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

    /// Queues any other write; waits for a place, and until it is durable.
    pub(crate) fn perform<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T, Trouble> + Send + 'static,
    ) -> Read<'static, T> {
        self.perform_then(work, |_| ())
    }

    /// The same, and then something at once: after the commit, before what was queued behind it,
    /// and before anybody is told.
    pub(crate) fn perform_then<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T, Trouble> + Send + 'static,
        then: impl FnOnce(&T) + Send + 'static,
    ) -> Read<'static, T> {
        let queue = self.queue.clone();
        Box::pin(async move {
            let (answer, result) = oneshot::channel();
            let chore = Job::Chore(Box::new(Task { work, then, made: None, answer }));
            queue.send(chore).await.map_err(|_| StoreError::Closed)?;
            result.await.unwrap_or(Err(StoreError::Closed))
        })
    }

    /// Calls this after every commit.
    pub(crate) fn on_commit(&self, woken: Woken) {
        *held(&self.shared.woken) = Some(woken);
    }

    /// Whether commits work. If not, the writer tries again: with nobody sending work to a store
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
