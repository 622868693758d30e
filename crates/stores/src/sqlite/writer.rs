//! The one writer: takes what is queued, writes it in one transaction, commits, and only then
//! answers. Many sessions share a commit and its sync; none of them can undo another's rows.

use super::append::{write_append, write_snapshot};
use super::lock::FolderLock;
use super::queue::{Job, Shared};
use super::trouble::{Trouble, is_failed_sync, is_local, store_error};
use kernel::contracts::{Clock, StoreError};
use kernel::projection::Append;
use rusqlite::{Connection, TransactionBehavior};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// How many jobs share a commit. Above 64 the limit is the processor, not the disk, and answers
/// only come later.
const BATCH_JOBS_MAX: usize = 256;

/// What a probe writes: more than most appends. A smaller one finds room where they find none.
const PROBE_BYTES: i64 = 64 * 1024;

type Answer = Result<(), StoreError>;

/// The writer.
pub(crate) struct Writer {
    connection: Connection,
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    /// Let go of only when the connection is closed.
    lock: FolderLock,
    closers: Vec<oneshot::Sender<()>>,
    /// A sync failed: nothing is written any more.
    over: bool,
}

/// How the jobs of a transaction are kept apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Isolation {
    /// By checking before writing: costs nothing, and is enough unless something is wrong.
    ChecksFirst,
    /// By a savepoint around each job.
    Savepoints,
}

/// Why a transaction was given up.
enum Stop {
    /// A job failed midway, with nothing to undo it alone.
    Mixed,
    /// Something that concerns all of it.
    Broken(rusqlite::Error),
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Broken(error)
    }
}

impl Writer {
    /// A writer on this connection; it keeps the folder's lock until it ends.
    pub(crate) fn new(
        connection: Connection,
        (shared, clock): (Arc<Shared>, Arc<dyn Clock>),
        lock: FolderLock,
    ) -> Self {
        Self { connection, shared, clock, lock, closers: Vec::new(), over: false }
    }

    /// Works until it is told to close, until nobody can send any more, or until a sync fails.
    pub(crate) async fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        let mut jobs = Vec::with_capacity(BATCH_JOBS_MAX);
        while queue.recv_many(&mut jobs, BATCH_JOBS_MAX).await > 0 {
            self.process(&mut jobs);
            if self.over {
                break;
            }
            if !self.closers.is_empty() {
                // What is in the queue is still written; nothing new gets in.
                queue.close();
            }
        }
        self.end();
    }

    fn process(&mut self, jobs: &mut Vec<Job>) {
        let (began, changes) = (self.clock.now(), self.connection.total_changes());
        let mut answers: Vec<Answer> = vec![Ok(()); jobs.len()];
        let mut result = self.attempt(jobs, &mut answers, Isolation::ChecksFirst);
        if let Err(Stop::Mixed) = result {
            result = self.attempt(jobs, &mut answers, Isolation::Savepoints);
        }
        match result {
            Ok(()) => {
                // A clock that is set back makes it zero.
                let took_ms = self.clock.now().0.saturating_sub(began.0).max(0);
                self.shared.committed(took_ms.unsigned_abs());
                // A commit of nothing works on a full disk too.
                if self.connection.total_changes() > changes {
                    self.shared.set_broken(None);
                }
            }
            Err(stop) => {
                let error = self.give_up(stop, jobs);
                answers.fill(Err(error));
            }
        }
        self.answer(jobs, answers);
    }

    /// One transaction over all jobs. Nothing of it is there unless it is committed.
    fn attempt(
        &mut self,
        jobs: &mut [Job],
        answers: &mut [Answer],
        isolation: Isolation,
    ) -> Result<(), Stop> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (job, answer) in jobs.iter_mut().zip(answers) {
            *answer = perform(&transaction, &self.shared, job, isolation)?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// The transaction is rolled back: nothing was written, and every session in it is poisoned.
    fn give_up(&mut self, stop: Stop, jobs: &[Job]) -> StoreError {
        let error = match stop {
            Stop::Mixed => StoreError::Failed("jobs could not be kept apart".to_owned()),
            Stop::Broken(error) => {
                if is_failed_sync(&error) {
                    self.over = true;
                    tracing::error!(%error, "the journal could not be synced");
                    let why = format!("the journal could not be synced: {error}; check the disk");
                    (self.shared.fatal)(why);
                }
                store_error(&error)
            }
        };
        tracing::warn!(%error, jobs = jobs.len(), "a commit failed");
        self.shared.set_broken(Some(error.clone()));
        let mut poison = self.shared.poison();
        for job in jobs {
            if let Job::Append { number, append, .. } = job {
                poison.failed(&append.session.key, *number);
            }
        }
        error
    }

    /// Answers first, then wakes: whoever is woken finds the answers given.
    fn answer(&mut self, jobs: &mut Vec<Job>, answers: Vec<Answer>) {
        let mut changed = Vec::with_capacity(jobs.len());
        let mut last = None;
        for (job, result) in jobs.drain(..).zip(answers) {
            match job {
                Job::Append { number, append, answer } => {
                    last = Some(number);
                    if result.is_ok() {
                        changed.push(append.session.key);
                    }
                    let _ = answer.send(result);
                }
                Job::Chore(chore) => chore.done(result),
                Job::Close(closer) => self.closers.push(closer),
                Job::Snapshot { .. } | Job::Probe => {}
            }
        }
        if let Some(number) = last {
            self.shared.poison().processed(number);
        }
        self.shared.wake(changed);
    }

    /// Closes the database before it lets go of the folder, and both before it says so.
    fn end(self) {
        let Self { connection, lock, closers, over, .. } = self;
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        if !over && let Err(error) = connection.query_row(checkpoint, (), |_| Ok(())) {
            tracing::warn!(%error, "the log stays beside the database; the next start reads it");
        }
        if let Err((_, error)) = connection.close() {
            tracing::warn!(%error, "the database was not closed cleanly");
        }
        drop(lock);
        for closer in closers {
            let _ = closer.send(());
        }
    }
}

/// Does one job. The inner error is the job's own; the outer one ends the transaction.
fn perform(
    connection: &Connection,
    shared: &Shared,
    job: &mut Job,
    isolation: Isolation,
) -> Result<Answer, Stop> {
    match job {
        Job::Append { number, append, .. } => {
            let number = *number;
            let append: &Append = append;
            let key = &append.session.key;
            if shared.poison().refuses(key, number) {
                return Ok(Err(StoreError::Poisoned(key.to_string())));
            }
            let write = || write_append(connection, append, shared.epoch, shared.tally_reasons_max);
            let answer = apart(connection, isolation, write)?;
            if answer.is_err() {
                shared.poison().failed(key, number);
            }
            Ok(answer)
        }
        Job::Snapshot { key, seq, body } => {
            apart(connection, isolation, || write_snapshot(connection, key, *seq, body))
        }
        Job::Chore(chore) => apart(connection, Isolation::Savepoints, || chore.run(connection)),
        Job::Probe => {
            // Removed and made anew: SQLite writes no page whose content stays the same.
            execute(connection, "DELETE FROM meta WHERE name = 'probe'")?;
            let sql = "INSERT INTO meta (name, value) VALUES ('probe', zeroblob(?1))";
            connection.prepare_cached(sql)?.execute([PROBE_BYTES])?;
            Ok(Ok(()))
        }
        Job::Close(_) => Ok(Ok(())),
    }
}

/// Runs one job so that its failure is its own.
fn apart(
    connection: &Connection,
    isolation: Isolation,
    work: impl FnOnce() -> Result<(), Trouble>,
) -> Result<Answer, Stop> {
    let savepoint = isolation == Isolation::Savepoints;
    if savepoint {
        execute(connection, "SAVEPOINT job")?;
    }
    let answer = match work() {
        Ok(()) => Ok(()),
        Err(Trouble::Sql(error)) if !is_local(&error) => return Err(Stop::Broken(error)),
        Err(trouble) if savepoint => {
            execute(connection, "ROLLBACK TO job")?;
            Err(trouble.into_error())
        }
        Err(Trouble::Refused(error)) => Err(error),
        Err(Trouble::Midway(_) | Trouble::Sql(_)) => return Err(Stop::Mixed),
    };
    if savepoint {
        execute(connection, "RELEASE job")?;
    }
    Ok(answer)
}

fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute(())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::connect;
    use super::super::queue::Writes;
    use super::super::schema;
    use super::*;
    use crate::parts::Fatal;
    use futures::FutureExt;
    use futures::future::BoxFuture;
    use kernel::contracts::Read;
    use kernel::ids::Millis;
    use rusqlite::{ffi, params};
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

    /// Each look at it is so many milliseconds later.
    struct Ticking(AtomicI64);

    impl Clock for Ticking {
        fn now(&self) -> Millis {
            Millis(self.0.fetch_add(TICK_MS, Ordering::SeqCst))
        }

        fn sleep_until(&self, _then: Millis) -> BoxFuture<'static, ()> {
            Box::pin(std::future::pending())
        }
    }

    const TICK_MS: i64 = 4;

    struct Bench {
        writer: Writer,
        writes: Writes,
        jobs: mpsc::Receiver<Job>,
    }

    impl Bench {
        fn new(folder: &Path, fatal: Fatal) -> Self {
            let path = folder.join("waypost.db");
            let mut connection = connect::writer(&path, None).unwrap();
            let epoch = schema::prepare(&mut connection, &path, Millis(0)).unwrap();
            let shared = Arc::new(Shared::new(epoch, fatal, 8));
            let lock = FolderLock::take(folder, Millis(0)).unwrap();
            let (writes, jobs) = Writes::new(shared.clone(), 8);
            let around = (shared, Arc::new(Ticking(AtomicI64::new(0))) as Arc<dyn Clock>);
            Self { writer: Writer::new(connection, around, lock), writes, jobs }
        }

        /// Queues a row of this size; its answer comes with the next batch.
        fn insert(&self, name: &'static str, bytes: i64) -> Read<'static, ()> {
            let mut queued = self.writes.perform(move |connection| {
                let sql = "INSERT INTO closures (realm, hash, body) VALUES ('r', ?1, zeroblob(?2))";
                connection.execute(sql, params![name, bytes])?;
                Ok(())
            });
            assert!((&mut queued).now_or_never().is_none());
            queued
        }

        fn batch(&mut self) {
            let mut jobs = Vec::new();
            while let Ok(job) = self.jobs.try_recv() {
                jobs.push(job);
            }
            self.writer.process(&mut jobs);
        }

        fn pages_max(&self, pages: i64) {
            self.writer.connection.pragma_update(None, "max_page_count", pages).unwrap();
        }
    }

    #[test]
    fn a_full_disk_rolls_the_whole_batch_back_until_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let mut bench = Bench::new(folder.path(), Arc::new(|why: String| panic!("{why}")));
        bench.pages_max(1);
        let (small, large) = (bench.insert("small", 1), bench.insert("large", 1_000_000));
        bench.batch();
        assert_eq!(small.now_or_never(), Some(Err(StoreError::Full)));
        assert_eq!(large.now_or_never(), Some(Err(StoreError::Full)));
        assert_eq!(bench.writes.healthy(), Err(StoreError::Full));
        // The call above left a probe in the queue, which finds no more room than the rows did.
        bench.batch();
        assert_eq!(bench.writes.healthy(), Err(StoreError::Full));
        bench.pages_max(1_000_000);
        bench.batch();
        assert_eq!(bench.writes.healthy(), Ok(()));
        let again = bench.insert("small", 1);
        bench.batch();
        assert_eq!(again.now_or_never(), Some(Ok(())));
    }

    #[test]
    fn a_commit_of_nothing_says_nothing_of_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let mut bench = Bench::new(folder.path(), Arc::new(|why: String| panic!("{why}")));
        bench.pages_max(1);
        let large = bench.insert("large", 1_000_000);
        bench.batch();
        assert_eq!(large.now_or_never(), Some(Err(StoreError::Full)));
        let mut nothing = bench.writes.perform(|_| Ok(()));
        assert!((&mut nothing).now_or_never().is_none());
        bench.batch();
        assert_eq!(nothing.now_or_never(), Some(Ok(())));
        assert_eq!(bench.writes.healthy(), Err(StoreError::Full));
    }

    #[test]
    fn every_probe_reaches_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let mut bench = Bench::new(folder.path(), Arc::new(|why: String| panic!("{why}")));
        let log = folder.path().join("waypost.db-wal");
        let to_the_start = "PRAGMA wal_checkpoint(TRUNCATE)";
        for _ in 0..2 {
            bench.writer.connection.query_row(to_the_start, (), |_| Ok(())).unwrap();
            bench.writer.process(&mut vec![Job::Probe]);
            let bytes = std::fs::metadata(&log).unwrap().len();
            assert!(bytes > PROBE_BYTES.unsigned_abs(), "{bytes} bytes are in the log");
        }
    }

    #[test]
    fn a_job_that_breaks_a_rule_fails_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mut bench = Bench::new(folder.path(), Arc::new(|why: String| panic!("{why}")));
        let answers = [bench.insert("a", 1), bench.insert("a", 1), bench.insert("b", 1)];
        bench.batch();
        let [first, same, other] = answers.map(|answer| answer.now_or_never());
        assert_eq!(first, Some(Ok(())));
        assert!(matches!(same, Some(Err(StoreError::Failed(_)))), "{same:?}");
        assert_eq!(other, Some(Ok(())));
    }

    #[test]
    fn commits_are_timed_and_those_that_fail_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let mut bench = Bench::new(folder.path(), Arc::new(|why: String| panic!("{why}")));
        let first = bench.insert("a", 1);
        bench.batch();
        assert_eq!(first.now_or_never(), Some(Ok(())));
        bench.pages_max(1);
        let full = bench.insert("large", 1_000_000);
        bench.batch();
        assert_eq!(full.now_or_never(), Some(Err(StoreError::Full)));
        let figures = bench.writes.figures();
        assert_eq!(figures.commits.counts[..4], [0, 0, 1, 0], "one, of four milliseconds");
        assert_eq!((figures.commits.total_ms, figures.queued), (4, 0));
    }

    #[test]
    fn a_failed_sync_ends_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        let told = ended.clone();
        let fatal: Fatal = Arc::new(move |_| told.store(true, Ordering::SeqCst));
        let mut bench = Bench::new(folder.path(), fatal);
        let error = ffi::Error::new(ffi::SQLITE_IOERR_FSYNC);
        let error = rusqlite::Error::SqliteFailure(error, None);
        bench.writer.give_up(Stop::Broken(error), &[]);
        assert!(bench.writer.over && ended.load(Ordering::SeqCst));
    }
}
