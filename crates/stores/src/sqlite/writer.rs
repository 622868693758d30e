//! The one writer: takes what is queued, writes it in one transaction, commits, and only then
//! answers. Many sessions share a commit and its sync; none of them can undo another's rows.

use super::append::write_append;
use super::checkpoint;
use super::lock::FolderLock;
use super::queue::{Job, Shared};
use super::trouble::{
    Trouble, is_failed_checkpoint, is_failed_sync, is_full, is_local, store_error,
};
use kernel::contracts::{Clock, StoreError};
use kernel::projection::Append;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// How many jobs share a commit. Above 64 the limit is the processor, not the disk, and answers
/// only come later.
const BATCH_JOBS_MAX: usize = 256;

/// What a probe writes beyond what was refused: more than most appends. A smaller one finds room
/// where they find none.
const PROBE_BYTES: usize = 64 * 1024;

/// How many small commits are made between two looks at the size of the log.
const COMMITS_PER_LOOK: u32 = 16;
/// A commit of so many appends, each of so many bytes, is small.
const SMALL_JOBS: usize = 8;
const SMALL_BYTES: usize = 16 * 1024;

type Answer = Result<(), StoreError>;

/// The writer.
pub(crate) struct Writer {
    connection: Connection,
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    /// Let go of only when the connection is closed.
    lock: FolderLock,
    closers: Vec<oneshot::Sender<()>>,
    /// A sync or a checkpoint failed: nothing is written any more.
    over: bool,
    /// How many small commits were made since the size of the log was looked at.
    unlooked: u32,
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
        Self { connection, shared, clock, lock, closers: Vec::new(), over: false, unlooked: 0 }
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
        let mut wrote = false;
        let tried = jobs.iter().map(probed).max().unwrap_or(0);
        let small = jobs.len() <= SMALL_JOBS && jobs.iter().all(is_small);
        let mut answers: Vec<Answer> = vec![Ok(()); jobs.len()];
        let mut result = self.attempt(jobs, &mut answers, Isolation::ChecksFirst);
        if let Err(Stop::Mixed) = result {
            self.shared.specs.forget();
            result = self.attempt(jobs, &mut answers, Isolation::Savepoints);
        }
        match result {
            Ok(()) => {
                // A clock that is set back makes it zero.
                let took_ms = self.clock.now().0.saturating_sub(began.0).max(0);
                self.shared.committed(took_ms.unsigned_abs());
                // A commit of nothing works on a full disk too.
                wrote = self.connection.total_changes() > changes;
            }
            Err(stop) => {
                self.shared.specs.forget();
                let error = self.give_up(stop, jobs);
                answers.fill(Err(error));
            }
        }
        self.answer(jobs, answers);
        if wrote {
            self.unlooked = if small { self.unlooked + 1 } else { COMMITS_PER_LOOK };
            self.look_at_log(tried);
        }
    }

    /// Has the log written back once it has grown enough. After the answers: nobody waits for it.
    fn look_at_log(&mut self, tried: usize) {
        if self.unlooked >= COMMITS_PER_LOOK && checkpoint::is_due(&self.connection) {
            self.checkpoint(tried);
        } else {
            self.shared.wrote(tried);
        }
        self.unlooked %= COMMITS_PER_LOOK;
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
                    self.end_process("the journal could not be synced", &error);
                }
                store_error(&error)
            }
        };
        tracing::warn!(%error, jobs = jobs.len(), "a commit failed");
        let bytes = jobs.iter().map(size).sum::<usize>();
        self.shared.broke(error.clone(), PROBE_BYTES.saturating_add(bytes));
        let mut poison = self.shared.poison();
        for job in jobs {
            if let Job::Append { number, append, .. } = job {
                poison.failed(&append.session.key, *number);
            }
        }
        error
    }

    /// Writes the log back into the database. All answers are given by then: what they promise is
    /// in the log. The commit before it tried to write so many bytes only to see whether it can.
    fn checkpoint(&mut self, tried: usize) {
        match checkpoint::passive(&self.connection) {
            Ok(_) => self.shared.wrote(tried),
            Err(error) => {
                self.judge_checkpoint(&error);
                if is_full(&error) {
                    self.shared.broke(store_error(&error), PROBE_BYTES);
                }
            }
        }
    }

    fn judge_checkpoint(&mut self, error: &rusqlite::Error) {
        if is_failed_checkpoint(error) {
            self.end_process("the log could not be written back into the database", error);
        } else {
            tracing::warn!(%error, "a checkpoint failed: the log grows until one works");
        }
    }

    /// Nobody knows what the disk holds now: nothing more is written, and the process ends.
    fn end_process(&mut self, what: &str, error: &rusqlite::Error) {
        self.over = true;
        tracing::error!(%error, "{what}");
        (self.shared.fatal)(format!("{what}: {error}; check the disk"));
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
                        self.shared.fences.appended(&append);
                        changed.push(append.session.key);
                    }
                    let _ = answer.send(result);
                }
                Job::Chore(chore) => chore.done(result),
                Job::Close(closer) => self.closers.push(closer),
                Job::Probe { .. } => {}
            }
        }
        if let Some(number) = last {
            self.shared.poison().processed(number);
        }
        self.shared.wake(changed);
    }

    /// Closes the database before it lets go of the folder, and both before it says so.
    fn end(mut self) {
        let failed = if self.over { None } else { checkpoint::truncate(&self.connection).err() };
        if let Some(error) = &failed {
            self.judge_checkpoint(error);
            tracing::warn!("the log stays beside the database; the next start reads it");
        }
        let Self { connection, lock, closers, over, .. } = self;
        if over || failed.is_some() {
            // Otherwise SQLite tries the same once more as it closes.
            let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
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
            let write = || write_append(connection, append, shared);
            let answer = apart(connection, isolation, write)?;
            if answer.is_err() {
                shared.poison().failed(key, number);
            }
            Ok(answer)
        }
        Job::Chore(chore) => apart(connection, Isolation::Savepoints, || chore.run(connection)),
        Job::Probe { bytes } => {
            // Removed and made anew: SQLite writes no page whose content stays the same.
            execute(connection, "DELETE FROM meta WHERE name = 'probe'")?;
            let sql = "INSERT INTO meta (name, value) VALUES ('probe', zeroblob(?1))";
            connection.prepare_cached(sql)?.execute([*bytes as i64])?;
            Ok(Ok(()))
        }
        Job::Close(_) => Ok(Ok(())),
    }
}

/// About how much a job writes, as far as its text says.
fn size(job: &Job) -> usize {
    match job {
        Job::Append { append, .. } => {
            let closure = append.closure.as_ref().map_or(0, |closure| closure.body.len());
            append.body.len() + closure + append.snapshot.as_ref().map_or(0, String::len)
        }
        // How much was refused before a probe is known already.
        Job::Chore(_) | Job::Probe { .. } | Job::Close(_) => 0,
    }
}

fn is_small(job: &Job) -> bool {
    matches!(job, Job::Append { .. }) && size(job) <= SMALL_BYTES
}

/// How much it writes only to see whether that works.
fn probed(job: &Job) -> usize {
    if let Job::Probe { bytes } = job { *bytes } else { 0 }
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
    use kernel::event::{Event, Fact, VERSION};
    use kernel::ids::{Fence, Millis, SessionId, SessionKey, Space};
    use kernel::session::Session;
    use rusqlite::{ffi, params};
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
    use testkit::sim::power::Power;
    use testkit::sim::vfs::{Disk, Failing};

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
            Self::on(folder, fatal, None)
        }

        fn on(folder: &Path, fatal: Fatal, vfs: Option<&str>) -> Self {
            let path = folder.join("waypost.db");
            let mut connection = connect::writer(&path, vfs).unwrap();
            let node = schema::prepare(&mut connection, &path, Millis(0)).unwrap();
            let shared = Arc::new(Shared::new(node, fatal, (Arc::default(), 8)));
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

    /// A session's first append.
    fn created() -> Append {
        let key = SessionKey::new("r", Space::session(), "s");
        let mut session = Session::new(SessionId(1), key.clone());
        let fact = Fact::SessionCreated { id: session.id, key };
        let event = Event { seq: 1, at: Millis(1), v: VERSION, fact };
        session.apply(&event);
        Append::new(&session, Fence::NONE, &[event], Vec::new(), Millis(1)).unwrap()
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
    fn a_disk_without_room_for_what_was_refused_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let mut bench = Bench::new(folder.path(), Arc::new(|why: String| panic!("{why}")));
        let pages: i64 =
            bench.writer.connection.query_row("PRAGMA page_count", (), |row| row.get(0)).unwrap();
        // Room for a small probe, and not for all that is refused.
        bench.pages_max(pages + 60);
        let large = bench.insert("large", 400_000);
        let append = Append { snapshot: Some("x".repeat(400_000)), ..created() };
        let refused = bench.writes.append(append);
        bench.batch();
        assert_eq!(large.now_or_never(), Some(Err(StoreError::Full)));
        assert_eq!(refused.now_or_never(), Some(Err(StoreError::Full)));
        for _ in 0..2 {
            assert_eq!(bench.writes.healthy(), Err(StoreError::Full));
            bench.batch();
        }
        // What is small finds room, and says nothing of what is larger.
        let small = bench.insert("small", 1);
        bench.batch();
        assert_eq!(small.now_or_never(), Some(Ok(())));
        assert_eq!(bench.writes.healthy(), Err(StoreError::Full));
        bench.pages_max(1_000_000);
        bench.batch();
        assert_eq!(bench.writes.healthy(), Ok(()));
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
            bench.writer.process(&mut vec![Job::Probe { bytes: PROBE_BYTES }]);
            let bytes = std::fs::metadata(&log).unwrap().len();
            assert!(bytes > PROBE_BYTES as u64, "{bytes} bytes are in the log");
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

    /// Something to call at the end of the process, and whether it was called.
    fn noting() -> (Fatal, Arc<AtomicBool>) {
        let ended = Arc::new(AtomicBool::new(false));
        let told = ended.clone();
        (Arc::new(move |_| told.store(true, Ordering::SeqCst)), ended)
    }

    /// More than a checkpoint waits for.
    const LARGE: i64 = 5_000_000;

    /// A writer whose log is due for a checkpoint, on a disk that does not do this for the database
    /// any more: what came of the append, how the store is, and whether the writer and the process
    /// ended.
    fn checkpoint_on(failing: Failing) -> (Option<Answer>, Answer, bool, bool) {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new(Arc::new(Power::default()), false);
        let (fatal, ended) = noting();
        let mut bench = Bench::on(folder.path(), fatal, Some(disk.name()));
        disk.fail("waypost.db", failing);
        let large = bench.insert("large", LARGE);
        bench.batch();
        let health = bench.writes.healthy();
        (large.now_or_never(), health, bench.writer.over, ended.load(Ordering::SeqCst))
    }

    #[test]
    fn a_checkpoint_that_the_disk_does_not_do_ends_the_process() {
        // The append was in the log, which is synced.
        for failing in [Failing::Syncs, Failing::Writes] {
            let came = checkpoint_on(failing);
            assert_eq!(came, (Some(Ok(())), Ok(()), true, true), "{failing:?}");
        }
    }

    #[test]
    fn a_checkpoint_without_room_is_told_and_tried_again() {
        let came = checkpoint_on(Failing::Room);
        assert_eq!(came, (Some(Ok(())), Err(StoreError::Full), false, false));
    }

    #[test]
    fn a_log_goes_back_into_the_database_and_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let mut bench = Bench::new(folder.path(), Arc::new(|why: String| panic!("{why}")));
        let bytes = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().len();
        let small = bench.insert("small", 1);
        bench.batch();
        assert_eq!(small.now_or_never(), Some(Ok(())));
        assert!(bytes("waypost.db") < LARGE.unsigned_abs(), "nothing is due yet");
        let large = bench.insert("large", LARGE);
        bench.batch();
        assert_eq!(large.now_or_never(), Some(Ok(())));
        assert!(bytes("waypost.db") > LARGE.unsigned_abs());
        let log = bytes("waypost.db-wal");
        let next = bench.insert("next", 1);
        bench.batch();
        assert_eq!(next.now_or_never(), Some(Ok(())));
        assert!(!checkpoint::is_due(&bench.writer.connection));
        assert_eq!(bytes("waypost.db-wal"), log, "the same file is written from its beginning");
    }

    #[test]
    fn a_reader_that_stays_holds_up_no_commit() {
        let folder = tempfile::tempdir().unwrap();
        let mut bench = Bench::new(folder.path(), Arc::new(|why: String| panic!("{why}")));
        let reader = connect::reader(&folder.path().join("waypost.db"), None).unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM closures;").unwrap();
        for name in ["one", "two"] {
            let large = bench.insert(name, LARGE);
            bench.batch();
            assert_eq!(large.now_or_never(), Some(Ok(())));
        }
        assert_eq!(bench.writes.healthy(), Ok(()));
        reader.execute_batch("COMMIT").unwrap();
    }

    #[test]
    fn a_failed_checkpoint_at_the_end_ends_the_process_too() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new(Arc::new(Power::default()), false);
        let (fatal, ended) = noting();
        let bench = Bench::on(folder.path(), fatal, Some(disk.name()));
        disk.fail("waypost.db", Failing::Syncs);
        let Bench { writer, writes, jobs } = bench;
        drop((writes, jobs));
        writer.end();
        assert!(ended.load(Ordering::SeqCst));
        assert!(folder.path().join("waypost.db-wal").exists(), "it is not tried again");
    }

    #[test]
    fn a_failed_sync_ends_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let (fatal, ended) = noting();
        let mut bench = Bench::new(folder.path(), fatal);
        let error = ffi::Error::new(ffi::SQLITE_IOERR_FSYNC);
        let error = rusqlite::Error::SqliteFailure(error, None);
        bench.writer.give_up(Stop::Broken(error), &[]);
        assert!(bench.writer.over && ended.load(Ordering::SeqCst));
    }
}
