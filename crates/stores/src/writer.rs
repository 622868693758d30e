//! The one writer of a store, whatever the store: takes what is queued, has its backend commit that
//! at once, and only then answers.

use crate::queue::{Chore, Job, Shared};
use kernel::contracts::{Clock, StoreError};
use kernel::journal::projection::Append;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// How many jobs share a commit. Above 64 the limit is the processor, not the disk, and answers
/// only come later.
const BATCH_JOBS_MAX: usize = 256;

/// What a probe writes beyond what was refused: more than most appends. A smaller one finds room
/// where they find none.
pub(crate) const PROBE_BYTES: usize = 64 * 1024;

/// What came of a job.
pub(crate) type Answer = Result<(), StoreError>;

/// Where a writer writes to.
pub(crate) trait Backend: Send + 'static {
    /// What it writes beside appends.
    type Chore: Chore + 'static;

    /// Writes the jobs in one commit, in order, each kept apart from the others: an answer for
    /// each. Appends that are poisoned are refused, and those that fail poison their session. An
    /// error is everybody's: nothing was written.
    fn commit(
        &mut self,
        shared: &Shared,
        jobs: &mut [Job<Self::Chore>],
    ) -> impl Future<Output = Result<Vec<Answer>, StoreError>> + Send;

    /// An append is durable; no one knows it yet.
    fn appended(&mut self, _append: &Append) {}

    /// All answers are given: what no one waits for can be done.
    fn answered(&mut self, shared: &Shared);

    /// Whether nothing can be written any more.
    fn is_over(&self) -> bool;

    /// Lets go of everything.
    fn end(self);
}

/// The writer.
pub(crate) struct Writer<B> {
    pub(crate) backend: B,
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    closers: Vec<oneshot::Sender<()>>,
}

impl<B: Backend> Writer<B> {
    /// A writer to this backend.
    pub(crate) fn new(backend: B, shared: Arc<Shared>, clock: Arc<dyn Clock>) -> Self {
        Self { backend, shared, clock, closers: Vec::new() }
    }

    /// Works until it has to close, until no one can send any more, or until the backend is
    /// over. The backend ends before anyone is notified.
    pub(crate) async fn run(mut self, mut queue: mpsc::Receiver<Job<B::Chore>>) {
        let mut jobs = Vec::with_capacity(BATCH_JOBS_MAX);
        while queue.recv_many(&mut jobs, BATCH_JOBS_MAX).await > 0 {
            self.process(&mut jobs).await;
            if self.backend.is_over() {
                break;
            }
            if !self.closers.is_empty() {
                // What is in the queue is still written; nothing new gets in.
                queue.close();
            }
        }
        let Self { backend, closers, .. } = self;
        backend.end();
        for closer in closers {
            let _ = closer.send(());
        }
    }

    /// Commits these jobs and answers them.
    pub(crate) async fn process(&mut self, jobs: &mut Vec<Job<B::Chore>>) {
        let began = self.clock.elapsed();
        let answers = match self.backend.commit(&self.shared, jobs).await {
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
        self.backend.answered(&self.shared);
    }

    /// Nothing was written, and every session among the jobs is poisoned.
    fn give_up(&self, error: &StoreError, jobs: &[Job<B::Chore>]) {
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

    /// Answers first, then wakes: those who are woken find the answers given.
    fn answer(&mut self, jobs: &mut Vec<Job<B::Chore>>, answers: Vec<Answer>) {
        let mut changed = Vec::with_capacity(jobs.len());
        let mut last = None;
        for (job, result) in jobs.drain(..).zip(answers) {
            match job {
                Job::Append { number, append, answer } => {
                    last = Some(number);
                    if result.is_ok() {
                        self.backend.appended(&append);
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Writes;
    use futures::FutureExt;
    use futures::future::BoxFuture;
    use kernel::event::{Event, Fact, VERSION};
    use kernel::session::Session;
    use kernel::values::ids::{Fence, Millis, SessionId, SessionKey, Space};
    use std::collections::VecDeque;
    use std::sync::Mutex;

    struct Stopped;

    impl Clock for Stopped {
        fn now(&self) -> Millis {
            Millis(0)
        }

        fn elapsed(&self) -> std::time::Duration {
            std::time::Duration::ZERO
        }

        fn sleep_until(&self, _then: Millis) -> BoxFuture<'static, ()> {
            Box::pin(std::future::pending())
        }
    }

    struct NoChore;

    impl Chore for NoChore {
        fn done(self, _result: Result<(), StoreError>) {}
    }

    /// Says what it is told to say of each commit, and refuses what is poisoned.
    #[derive(Default)]
    struct Told {
        commits: VecDeque<Result<Vec<Answer>, StoreError>>,
        appended: Vec<Fence>,
        wrote: bool,
    }

    impl Backend for Told {
        type Chore = NoChore;

        async fn commit(
            &mut self,
            shared: &Shared,
            jobs: &mut [Job<NoChore>],
        ) -> Result<Vec<Answer>, StoreError> {
            let told = self.commits.pop_front().unwrap_or(Ok(vec![Ok(()); jobs.len()]));
            self.wrote = told.is_ok();
            let mut answers = told?;
            for (job, answer) in jobs.iter().zip(&mut answers) {
                let Job::Append { number, append, .. } = job else { continue };
                let key = &append.session.key;
                if shared.poison().refuses(key, *number) {
                    *answer = Err(StoreError::Poisoned(key.to_string()));
                } else if answer.is_err() {
                    shared.poison().failed(key, *number);
                }
            }
            Ok(answers)
        }

        fn appended(&mut self, append: &Append) {
            self.appended.push(append.fence);
        }

        fn answered(&mut self, shared: &Shared) {
            if self.wrote {
                shared.wrote(usize::MAX);
            }
        }

        fn is_over(&self) -> bool {
            false
        }

        fn end(self) {}
    }

    fn key(id: &str) -> SessionKey {
        SessionKey::new("r", Space::session(), id)
    }

    fn append(id: &str, fence: u64) -> Append {
        let mut session = Session::new(SessionId(1), key(id));
        let fact = Fact::SessionCreated { id: session.id, key: key(id), owner: None };
        let event = Event { seq: 1, at: Millis(1), v: VERSION, fact };
        session.apply(&event);
        Append::new(&session, Fence(fence), &[event], Vec::new(), Millis(1)).unwrap()
    }

    struct Bench {
        writer: Writer<Told>,
        writes: Writes<NoChore>,
        queue: mpsc::Receiver<Job<NoChore>>,
    }

    impl Bench {
        fn new(commits: Vec<Result<Vec<Answer>, StoreError>>) -> Self {
            let shared = Arc::<Shared>::default();
            let (writes, queue) = Writes::new(shared.clone(), 8);
            let backend = Told { commits: commits.into(), ..Told::default() };
            Self { writer: Writer::new(backend, shared, Arc::new(Stopped)), writes, queue }
        }

        /// Queues these appends and has them committed together; what each is answered.
        fn commit(&mut self, appends: Vec<Append>) -> Vec<Answer> {
            let tickets: Vec<_> =
                appends.into_iter().map(|append| self.writes.append(append)).collect();
            let mut jobs = Vec::new();
            while let Ok(job) = self.queue.try_recv() {
                jobs.push(job);
            }
            self.writer.process(&mut jobs).now_or_never().unwrap();
            tickets.into_iter().map(|ticket| ticket.now_or_never().unwrap()).collect()
        }
    }

    #[test]
    fn every_append_has_an_answer_of_its_own_and_what_is_durable_is_told() {
        let conflict = StoreError::Conflict("r/session/b".to_owned());
        let mut bench = Bench::new(vec![Ok(vec![Ok(()), Err(conflict.clone()), Ok(())])]);
        let woken = Arc::new(Mutex::new(Vec::new()));
        let heard = woken.clone();
        bench.writes.on_commit(Arc::new(move |keys: &[SessionKey]| {
            heard.lock().unwrap().extend(keys.to_vec());
        }));
        let answers = bench.commit(vec![append("a", 1), append("b", 1), append("c", 3)]);
        assert_eq!(answers, [Ok(()), Err(conflict), Ok(())]);
        assert_eq!(*woken.lock().unwrap(), [key("a"), key("c")]);
        assert_eq!(bench.writer.backend.appended, [Fence(1), Fence(3)]);
        // What was decided on the refused one is refused too, until someone loads the session.
        let poisoned = StoreError::Poisoned("r/session/b".to_owned());
        let answers = bench.commit(vec![append("b", 2), append("a", 2)]);
        assert_eq!(answers, [Err(poisoned), Ok(())]);
        bench.writes.shared().poison().loaded(&key("b"));
        assert_eq!(bench.commit(vec![append("b", 1)])[0], Ok(()));
    }

    #[test]
    fn a_commit_that_fails_fails_all_and_is_tried_again_when_somebody_asks() {
        let mut bench = Bench::new(vec![Err(StoreError::Full)]);
        let answers = bench.commit(vec![append("a", 0), append("b", 0)]);
        assert_eq!(answers, [Err(StoreError::Full), Err(StoreError::Full)]);
        let poisoned = Err(StoreError::Poisoned("r/session/a".to_owned()));
        assert_eq!(bench.writes.healthy(), Err(StoreError::Full));
        // The call above left a probe in the queue.
        assert_eq!(bench.commit(vec![append("a", 1)])[0], poisoned);
        assert_eq!(bench.writes.healthy(), Ok(()));
    }
}
