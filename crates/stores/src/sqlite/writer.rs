//! The single writer of a database: it takes all queued jobs, commits them in one transaction, and
//! only then answers. Many sessions share the transaction and its sync; none can undo another's
//! rows.

use super::append::{Opening, Statements, write_append};
use super::error::{
    JobError, Result, is_failed_checkpoint, is_failed_sync, is_full, is_local, store_error,
};
use super::queue::{Job, Shared};
use super::transaction::{Begin, Transaction};
use crate::sqlite::files::lock::FolderLock;
use crate::sqlite::files::position::{self, PositionFile};
use crate::sqlite::files::{checkpoint, compact};
use crate::sqlite::tables::audit::SharedRows;
use kernel::contracts::{Clock, CommitNotice, StoreError};
use kernel::journal::projection::Append;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
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

/// The outcome of a job.
type Answer = Result<(), StoreError>;

/// Writes to one SQLite database.
pub(crate) struct Writer {
    connection: Connection,
    opening: Opening,
    /// Let go of only when the connection is closed. Writers of other databases hold it, too.
    lock: Arc<FolderLock>,
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    /// Told when it has ended.
    closers: Vec<oneshot::Sender<()>>,
    /// Told when the database was written anew.
    compacting: Vec<oneshot::Sender<Answer>>,
    /// A sync or a checkpoint failed: nothing is written any more.
    over: bool,
    /// Statistics of the last commit, until its answers are given.
    wrote: Option<CommitStats>,
    /// How many small commits were made since the size of the log was looked at.
    unlooked: u32,
    /// The position file that is written at the end.
    positions: Option<Arc<PositionFile>>,
}

/// A commit that wrote something.
struct CommitStats {
    /// How many bytes only to see whether that works.
    probed: usize,
    is_small: bool,
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
    /// Writes on this connection; it keeps the folder's lock until it ends.
    pub(crate) fn new(
        connection: Connection,
        lock: Arc<FolderLock>,
        opening: Opening,
        shared: Arc<Shared>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            connection,
            opening,
            lock,
            shared,
            clock,
            closers: Vec::new(),
            compacting: Vec::new(),
            over: false,
            wrote: None,
            unlooked: 0,
            positions: None,
        }
    }

    /// The same, which writes into this file how far it came before it closes the database.
    pub(crate) fn telling(self, positions: Arc<PositionFile>) -> Self {
        Self { positions: Some(positions), ..self }
    }

    /// Works until it has to close, until no one can send any more, or until nothing can be
    /// written. The database is closed before anyone is notified.
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
        let closers = std::mem::take(&mut self.closers);
        self.end();
        for closer in closers {
            let _ = closer.send(());
        }
    }

    /// Commits these jobs and answers them.
    fn process(&mut self, jobs: &mut Vec<Job>) {
        let began = self.clock.elapsed();
        let answers = match self.commit(jobs) {
            Ok(answers) => {
                let took = self.clock.elapsed().saturating_sub(began);
                let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
                self.shared.committed(took_ms);
                answers
            }
            Err(error) => {
                self.give_up(&error, jobs);
                vec![Err(error); jobs.len()]
            }
        };
        self.answer(jobs, answers);
        self.look_at_log();
        self.compact();
    }

    /// Writes the database anew for those who asked for it, once for all of them.
    fn compact(&mut self) {
        let asked = std::mem::take(&mut self.compacting);
        if asked.is_empty() || self.over {
            return;
        }
        let compacted = compact::compact(&self.connection).map_err(|error| {
            if is_failed_sync(&error) {
                self.end_process("the database could not be compacted", &error);
            }
            store_error(&error)
        });
        if compacted.is_ok()
            && let Err(error) = checkpoint::truncate(&self.connection)
        {
            self.judge_checkpoint(&error);
        }
        for answer in asked {
            let _ = answer.send(compacted.clone());
        }
    }

    /// Fails all jobs and poisons their sessions, because nothing was written.
    fn give_up(&self, error: &StoreError, jobs: &[Job]) {
        tracing::warn!(%error, jobs = jobs.len(), "a commit failed");
        let bytes = jobs.iter().map(Job::size).sum::<usize>();
        self.shared.broke(error.clone(), PROBE_BYTES.saturating_add(bytes));
        let mut poison = self.shared.poison();
        for job in jobs {
            if let Job::Append { number, append, .. } = job {
                poison.failed(&append.session.key, *number);
            }
        }
    }

    /// Wakes first, then answers: who is answered can rely on it that its events were told.
    fn answer(&mut self, jobs: &mut Vec<Job>, answers: Vec<Answer>) {
        self.wake(jobs, &answers);
        let mut last = None;
        for (job, result) in jobs.drain(..).zip(answers) {
            match job {
                Job::Append { number, answer, .. } => {
                    last = Some(number);
                    let _ = answer.send(result);
                }
                Job::Chore(chore) => chore.done(result),
                Job::Close(closer) => self.closers.push(closer),
                Job::Compact(answer) if result.is_ok() => self.compacting.push(answer),
                Job::Compact(answer) => drop(answer.send(result)),
                Job::Probe { .. } => {}
            }
        }
        if let Some(number) = last {
            self.shared.poison().processed(number);
        }
    }

    /// Tells of the appends that are durable now.
    fn wake(&self, jobs: &[Job], answers: &[Answer]) {
        let mut committed = Vec::with_capacity(jobs.len());
        for (job, result) in jobs.iter().zip(answers) {
            if let (Job::Append { append, .. }, Ok(())) = (job, result) {
                self.opening.fences.appended(append);
                committed.push(CommitNotice::append(append));
            }
        }
        self.shared.wake(&committed);
    }

    /// Has the log written back once it has grown enough. All answers are given by then.
    fn look_at_log(&mut self) {
        let Some(CommitStats { probed, is_small }) = self.wrote.take() else { return };
        self.unlooked = if is_small { self.unlooked + 1 } else { COMMITS_PER_LOOK };
        if self.unlooked >= COMMITS_PER_LOOK && checkpoint::is_due(&self.connection) {
            self.checkpoint(probed);
        } else {
            self.shared.wrote(probed);
        }
        self.unlooked %= COMMITS_PER_LOOK;
    }

    /// Closes the database before it lets go of the folder.
    fn end(mut self) {
        let failed = if self.over { None } else { checkpoint::truncate(&self.connection).err() };
        if let Some(error) = &failed {
            self.judge_checkpoint(error);
            tracing::warn!("the log stays beside the database; the next start reads it");
        }
        let Self { connection, lock, over, positions, .. } = self;
        if let Some(positions) = positions.filter(|_| !over) {
            positions.write(&connection);
        }
        if over || failed.is_some() {
            // Otherwise SQLite tries the same once more as it closes.
            let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
        if let Err((_, error)) = connection.close() {
            tracing::warn!(%error, "the database was not closed cleanly");
        }
        drop(lock);
    }

    /// Writes the jobs in one commit, in order, each kept apart from the others: an answer for
    /// each. Appends that are poisoned are refused, and those that fail poison their session. An
    /// error is everybody's: nothing was written.
    fn commit(&mut self, jobs: &mut [Job]) -> Result<Vec<Answer>, StoreError> {
        let changes = self.connection.total_changes();
        let mut answers: Vec<Answer> = vec![Ok(()); jobs.len()];
        let mut result = self.attempt(jobs, &mut answers, Isolation::ChecksFirst);
        if let Err(Stop::Mixed) = result {
            self.opening.pins.forget();
            result = self.attempt(jobs, &mut answers, Isolation::Savepoints);
        }
        result.map_err(|stop| self.given_up(stop))?;
        // A commit of nothing works on a full disk too.
        if self.connection.total_changes() > changes {
            let probed = jobs.iter().map(probed).max().unwrap_or(0);
            let is_small = jobs.len() <= SMALL_JOBS && jobs.iter().all(is_small);
            self.wrote = Some(CommitStats { probed, is_small });
        }
        Ok(answers)
    }

    /// One transaction over all jobs. Nothing of it is there unless it is committed.
    fn attempt(
        &self,
        jobs: &mut [Job],
        answers: &mut [Answer],
        isolation: Isolation,
    ) -> Result<(), Stop> {
        let transaction = Transaction::begin(&self.connection, Begin::Write)?;
        let opening = &self.opening;
        let shared = &*self.shared;
        let statements = Statements::new(&self.connection);
        let audit = SharedRows::default();
        let mut batch = Batch { statements, opening, shared, isolation, audit };
        for (job, answer) in jobs.iter_mut().zip(answers) {
            *answer = batch.perform(job)?;
        }
        batch.write_audit()?;
        drop(batch);
        transaction.commit()?;
        Ok(())
    }

    /// Why nothing was written: the transaction is rolled back.
    fn given_up(&mut self, stop: Stop) -> StoreError {
        self.opening.pins.forget();
        match stop {
            Stop::Mixed => StoreError::Failed("jobs could not be kept apart".to_owned()),
            Stop::Broken(error) => {
                if is_failed_sync(&error) {
                    self.end_process("the journal could not be synced", &error);
                }
                store_error(&error)
            }
        }
    }

    /// Writes the log back into the database. All answers are given by then: what they promise is
    /// in the log. The commit before it tried to write so many bytes only to see whether it can.
    fn checkpoint(&mut self, tried: usize) {
        match checkpoint::passive(&self.connection) {
            Ok(()) => self.shared.wrote(tried),
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

    /// No one knows what the disk holds now: nothing more is written, and the process ends.
    fn end_process(&mut self, what: &str, error: &rusqlite::Error) {
        self.over = true;
        tracing::error!(%error, "{what}");
        (self.opening.fatal)(format!("{what}: {error}; check the disk"));
    }
}

struct Batch<'b> {
    statements: Statements<'b>,
    opening: &'b Opening,
    shared: &'b Shared,
    isolation: Isolation,
    /// The audit of the appends so far.
    audit: SharedRows,
}

impl Batch<'_> {
    /// Writes the audit of the appends so far. Where a chain is broken, only who has to extend it
    /// fails: each append by itself.
    fn write_audit(&mut self) -> Result<(), Stop> {
        let written = self.audit.write(self.statements.connection(), &self.opening.audit_keys);
        written.map_err(|trouble| match trouble {
            JobError::Sql(error) if !is_local(&error) => Stop::Broken(error),
            JobError::Sql(_) | JobError::Refused(_) | JobError::Midway(_) => Stop::Mixed,
        })
    }

    /// Does one job. The inner error is the job's own; the outer one ends the transaction.
    fn perform(&mut self, job: &mut Job) -> Result<Answer, Stop> {
        let Self { opening, shared, isolation, .. } = *self;
        let connection = self.statements.connection();
        match job {
            Job::Append { number, append, .. } => {
                let number = *number;
                let append: &Append = append;
                let key = &append.session.key;
                if shared.poison().refuses(key, number) {
                    return Ok(Err(StoreError::Poisoned(key.to_string())));
                }
                let statements = &mut self.statements;
                let audit = &mut self.audit;
                let write = || {
                    write_append(statements, append, opening, audit)?;
                    match isolation {
                        // With those of the others.
                        Isolation::ChecksFirst => Ok(()),
                        Isolation::Savepoints => audit.write(connection, &opening.audit_keys),
                    }
                };
                let answer = apart(connection, isolation, write)?;
                if answer.is_err() && isolation == Isolation::Savepoints {
                    opening.pins.forget();
                }
                // No one knows a session that was not made, so no one would ever load it: whatever
                // else was decided on it finds that it is not there.
                if answer.is_err() && !append.creates {
                    shared.poison().failed(key, number);
                }
                Ok(answer)
            }
            Job::Chore(chore) => {
                // It may remove what is known to be there, and may have an audit of its own.
                opening.pins.forget();
                self.write_audit()?;
                apart(connection, Isolation::Savepoints, || {
                    let changes = connection.total_changes();
                    chore.run(connection)?;
                    if connection.total_changes() > changes {
                        position::changed(connection)?;
                    }
                    Ok(())
                })
            }
            Job::Probe { bytes } => {
                // Removed and made again: SQLite writes no page whose content stays the same.
                execute(connection, "DELETE FROM meta WHERE name = 'probe'")?;
                let sql = "INSERT INTO meta (name, value) VALUES ('probe', zeroblob(?1))";
                connection.prepare_cached(sql)?.execute([*bytes as i64])?;
                Ok(Ok(()))
            }
            Job::Compact(_) | Job::Close(_) => Ok(Ok(())),
        }
    }
}

fn is_small(job: &Job) -> bool {
    matches!(job, Job::Append { .. }) && job.size() <= SMALL_BYTES
}

/// How much it writes only to see whether that works.
fn probed(job: &Job) -> usize {
    if let Job::Probe { bytes } = job { *bytes } else { 0 }
}

/// Runs one job so that its failure is its own.
fn apart(
    connection: &Connection,
    isolation: Isolation,
    work: impl FnOnce() -> Result<()>,
) -> Result<Answer, Stop> {
    let savepoint = isolation == Isolation::Savepoints;
    if savepoint {
        execute(connection, "SAVEPOINT job")?;
    }
    let answer = match work() {
        Ok(()) => Ok(()),
        Err(JobError::Sql(error)) if !is_local(&error) => return Err(Stop::Broken(error)),
        Err(trouble) if savepoint => {
            execute(connection, "ROLLBACK TO job")?;
            Err(trouble.into_error())
        }
        Err(JobError::Refused(error)) => Err(error),
        Err(JobError::Midway(_) | JobError::Sql(_)) => return Err(Stop::Mixed),
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
    use super::super::queue::Writes;
    use super::super::schema;
    use super::*;
    use crate::opening::FatalHandler;
    use crate::sqlite::MAIN;
    use crate::sqlite::files::connect;
    use crate::sqlite::tables::audit::AuditKeys;
    use crate::sqlite::tables::keys;
    use futures::FutureExt;
    use futures::future::BoxFuture;
    use kernel::contracts::{AppendedEvents, OnCommit, Read, Ticket};
    use kernel::event::{Event, Fact, VERSION};
    use kernel::identity::audit::{ChainName, Entry, Mac, Object};
    use kernel::identity::chain::ChainKeys;
    use kernel::journal::projection::OnceRow;
    use kernel::session::Session;
    use kernel::values::ids::{
        ContentHash, Fence, Millis, RunId, SessionId, SessionKey, SessionVersion, Space,
    };
    use rusqlite::{ffi, params};
    use std::path::Path;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
    use testkit::sim::machine::power::Power;
    use testkit::sim::machine::vfs::{Disk, Failing};

    /// Each look at it is so many milliseconds later.
    struct Ticking(AtomicI64);

    impl Clock for Ticking {
        fn now(&self) -> Millis {
            Millis(self.0.fetch_add(TICK_MS, Ordering::SeqCst))
        }

        fn elapsed(&self) -> std::time::Duration {
            std::time::Duration::from_millis(self.now().0.unsigned_abs())
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
        fn new(folder: &Path, fatal: FatalHandler) -> Self {
            Self::on(folder, fatal, None)
        }

        fn on(folder: &Path, fatal: FatalHandler, vfs: Option<&str>) -> Self {
            let path = folder.join("waypost.db");
            let mut connection = connect::writer(&path, vfs).unwrap();
            let node = schema::prepare(&mut connection, &path, &MAIN, Millis(0)).unwrap();
            let opening = Opening { tally_reasons_max: 8, ..Opening::new(node, fatal) };
            let lock = Arc::new(FolderLock::take(folder, Millis(0)).unwrap());
            let shared = Arc::<Shared>::default();
            let (writes, jobs) = Writes::new(shared.clone(), 8);
            let clock = Arc::new(Ticking(AtomicI64::new(0)));
            Self { writer: Writer::new(connection, lock, opening, shared, clock), writes, jobs }
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
            self.process(jobs);
        }

        fn process(&mut self, mut jobs: Vec<Job>) {
            self.writer.process(&mut jobs);
        }

        /// Queues these appends and has them committed together; what each is answered.
        fn commit(&mut self, appends: Vec<Append>) -> Vec<Answer> {
            let tickets: Vec<Ticket> =
                appends.into_iter().map(|append| self.writes.append(append)).collect();
            self.batch();
            tickets.into_iter().map(|ticket| ticket.now_or_never().unwrap()).collect()
        }

        fn pages_max(&self, pages: i64) {
            self.writer.connection.pragma_update(None, "max_page_count", pages).unwrap();
        }
    }

    fn key(id: &str) -> SessionKey {
        SessionKey::new("r", Space::session(), id)
    }

    /// A session's first append; its id is made of its key.
    fn created(id: &str) -> Append {
        let mut session = Session::new(session_id(id), key(id));
        let fact = Fact::SessionCreated { id: session.id, key: key(id), owner: None };
        let event = Event { seq: 1, at: Millis(1), v: VERSION, fact };
        session.apply(&event);
        Append::new(&session, Fence::NONE, &[event], Vec::new(), Millis(1)).unwrap()
    }

    fn session_id(id: &str) -> SessionId {
        SessionId(id.bytes().map(u128::from).sum())
    }

    /// A commit as someone hears of it.
    fn told(committed: &CommitNotice<'_>) -> (SessionKey, SessionId, u64, String) {
        let AppendedEvents { session, first_seq, last_seq, body, .. } = committed.appended.unwrap();
        assert_eq!(first_seq, last_seq, "one event");
        (committed.key.clone(), session, last_seq, body.to_owned())
    }

    #[test]
    fn every_append_is_answered_separately_and_durable_ones_are_announced() {
        let folder = tempfile::tempdir().unwrap();
        let mut bench = Bench::new(folder.path(), Arc::new(|why: String| panic!("{why}")));
        assert_eq!(bench.commit(vec![created("b")]), [Ok(())]);
        let woken = Arc::new(Mutex::new(Vec::new()));
        let heard = woken.clone();
        let hook: OnCommit = Arc::new(move |commits: &[CommitNotice<'_>]| {
            heard.lock().unwrap().extend(commits.iter().map(told));
        });
        bench.writes.on_commit(hook);
        let exists: Answer = Err(StoreError::Exists(key("b").to_string()));
        let answers = bench.commit(vec![created("a"), created("b"), created("c")]);
        assert_eq!(answers, [Ok(()), exists.clone(), Ok(())]);
        let expected = ["a", "c"].map(|id| (key(id), session_id(id), 1, created(id).body));
        assert_eq!(*woken.lock().unwrap(), expected);
        for id in ["a", "c"] {
            let known = SessionVersion { id: session_id(id), fence: Fence::NONE.next() };
            assert!(bench.writer.opening.fences.has(&key(id), known), "{id}");
        }
        // A session that was not made is in no one's way.
        assert_eq!(bench.commit(vec![created("b"), created("d")]), [exists, Ok(())]);
        assert!(bench.writes.shared().poison().is_empty(), "it is remembered for ever");
    }

    /// A keyed request, always with the same key, that started this run.
    fn keyed(run: u128) -> OnceRow {
        OnceRow {
            subject: "ann".into(),
            route: "POST /runs".to_owned(),
            key: "k".to_owned(),
            digest: ContentHash::of(b"body"),
            run: Some(RunId(run)),
            ask: None,
            at: Millis(1),
        }
    }

    #[test]
    fn a_refused_append_releases_its_key_within_the_batch() {
        let folder = tempfile::tempdir().unwrap();
        let mut bench = Bench::new(folder.path(), Arc::new(|why: String| panic!("{why}")));
        assert_eq!(bench.commit(vec![created("a")]), [Ok(())]);
        let refused = Append { once: Some(keyed(1)), ..created("a") };
        let third = Append { once: Some(keyed(3)), ..created("c") };
        let exists: Answer = Err(StoreError::Exists(key("a").to_string()));
        assert_eq!(bench.commit(vec![refused, created("b"), third]), [exists, Ok(()), Ok(())]);
        let connection = &bench.writer.connection;
        let routes = ["POST /runs".to_owned()];
        let named = keys::newest(connection, &key("c").realm, "ann", &routes, "k").unwrap();
        assert_eq!(named, Some(keyed(3)));
    }

    /// Codes that need no secret.
    struct TestKeys;

    impl ChainKeys for TestKeys {
        fn name(&self) -> &str {
            "k"
        }

        fn mac(&self, _key: &str, parts: &[&[u8]]) -> Option<Mac> {
            ContentHash::of(&parts.concat()).as_str().parse().ok()
        }

        fn digest(&self, _bytes: &[u8]) -> Mac {
            Mac::default()
        }
    }

    /// A session's first append with so many entries for the audit of its realm.
    fn audited(realm: &str, id: &str, entries: i64) -> Append {
        let object = || Object::new("tool", "math::add");
        let entry = |at| Entry::new(Millis(at), "ann".into(), "run", object());
        let mut append = Append { audit: (0..entries).map(entry).collect(), ..created(id) };
        append.session.key.realm = realm.into();
        append
    }

    #[test]
    fn appends_of_a_batch_share_an_audit_row_and_a_broken_chain_fails_only_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let mut bench = Bench::new(folder.path(), Arc::new(|why: String| panic!("{why}")));
        bench.writer.opening.audit_keys = Arc::new(AuditKeys::of(Arc::new(TestKeys)));
        let all = vec![audited("r", "a", 2), audited("s", "b", 1), audited("r", "c", 1)];
        assert_eq!(bench.commit(all), [Ok(()), Ok(()), Ok(())]);
        let rows = |bench: &Bench, realm: &str| -> i64 {
            let sql = "SELECT count(*) FROM audit WHERE chain = ?1";
            let chain = ChainName::of(&realm.into());
            bench.writer.connection.query_row(sql, [chain.as_str()], |row| row.get(0)).unwrap()
        };
        assert_eq!((rows(&bench, "r"), rows(&bench, "s")), (1, 1));
        // The next row of one of them is there already.
        let broken = ChainName::of(&"r".into());
        let sql = "UPDATE audit_heads SET seq = 0 WHERE chain = ?1";
        bench.writer.connection.execute(sql, [broken.as_str()]).unwrap();
        let answers = bench.commit(vec![audited("r", "d", 1), audited("s", "e", 1), created("f")]);
        assert_eq!(answers, [Err(StoreError::AuditBroken("r".to_owned())), Ok(()), Ok(())]);
        assert_eq!((rows(&bench, "r"), rows(&bench, "s")), (1, 2));
    }

    #[test]
    fn a_failed_commit_fails_its_batch_and_is_retried_on_demand() {
        let folder = tempfile::tempdir().unwrap();
        let mut bench = Bench::new(folder.path(), Arc::new(|why: String| panic!("{why}")));
        bench.pages_max(1);
        let large = Append { snapshot: Some("x".repeat(400_000)), ..created("a") };
        let answers = bench.commit(vec![large, created("b")]);
        assert_eq!(answers, [Err(StoreError::Full), Err(StoreError::Full)]);
        assert_eq!(bench.writes.healthy(), Err(StoreError::Full));
        // The call above left a probe in the queue.
        bench.pages_max(1_000_000);
        let poisoned: Answer = Err(StoreError::Poisoned(key("a").to_string()));
        assert_eq!(bench.commit(vec![created("a")]), [poisoned]);
        assert_eq!(bench.writes.healthy(), Ok(()));
    }

    #[test]
    fn a_full_disk_rolls_the_whole_batch_back_until_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let mut bench = Bench::new(folder.path(), Arc::new(|why: String| panic!("{why}")));
        bench.pages_max(1);
        let small = bench.insert("small", 1);
        let large = bench.insert("large", 1_000_000);
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
    fn a_disk_is_full_until_the_refused_write_fits() {
        let folder = tempfile::tempdir().unwrap();
        let mut bench = Bench::new(folder.path(), Arc::new(|why: String| panic!("{why}")));
        let pages: i64 =
            bench.writer.connection.query_row("PRAGMA page_count", (), |row| row.get(0)).unwrap();
        // Room for a small probe, and not for all that is refused.
        bench.pages_max(pages + 60);
        let large = bench.insert("large", 400_000);
        let append = Append { snapshot: Some("x".repeat(400_000)), ..created("s") };
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
    fn an_empty_commit_does_not_clear_the_full_disk_state() {
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
            bench.process(vec![Job::Probe { bytes: PROBE_BYTES }]);
            let bytes = std::fs::metadata(&log).unwrap().len();
            assert!(bytes > PROBE_BYTES as u64, "{bytes} bytes are in the log");
        }
    }

    #[test]
    fn a_job_that_violates_a_constraint_fails_alone() {
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
    fn only_successful_commits_are_timed() {
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
    fn noting() -> (FatalHandler, Arc<AtomicBool>) {
        let ended = Arc::new(AtomicBool::new(false));
        let told = ended.clone();
        (Arc::new(move |_| told.store(true, Ordering::SeqCst)), ended)
    }

    /// More than a checkpoint waits for.
    const LARGE: i64 = 5_000_000;

    /// A writer whose log is due for a checkpoint, on a disk that does not do this for the database
    /// any more: the outcome of the append, how the store is, and whether the writer and the
    /// process ended.
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
    fn a_failed_checkpoint_ends_the_process() {
        // The append was in the log, which is synced.
        for failing in [Failing::Syncs, Failing::Writes] {
            let came = checkpoint_on(failing);
            assert_eq!(came, (Some(Ok(())), Ok(()), true, true), "{failing:?}");
        }
    }

    #[test]
    fn a_checkpoint_on_a_full_disk_is_logged_and_retried() {
        let came = checkpoint_on(Failing::Room);
        assert_eq!(came, (Some(Ok(())), Err(StoreError::Full), false, false));
    }

    #[test]
    fn a_checkpoint_empties_and_restarts_the_log() {
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
    fn a_long_read_does_not_block_commits() {
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
    fn a_failed_checkpoint_at_close_ends_the_process() {
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
        bench.writer.given_up(Stop::Broken(error));
        assert!(bench.writer.over && ended.load(Ordering::SeqCst));
    }
}
