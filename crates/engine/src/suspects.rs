//! Sessions that may have ended a process. Who works on a session that was recovered and made no
//! progress yet notes it while that work runs; the process after a crash counts it against the
//! session, and after some such deaths a person is asked instead. A process that is killed while
//! its sessions only wait leaves no note, so that counts against none of them.

use crate::system::locks::lock;
use kernel::contracts::{CrashMarks, Suspect};
use kernel::session::Session;
use kernel::values::ids::SessionId;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The sessions that something died of, until that is on record.
pub(crate) struct Suspects {
    marks: Arc<dyn CrashMarks>,
    sessions: Mutex<Vec<Suspect>>,
}

impl Suspects {
    /// Begins with those that the process before left.
    pub(crate) fn new(marks: Arc<dyn CrashMarks>) -> Self {
        let sessions = Mutex::new(marks.suspects());
        Self { marks, sessions }
    }

    /// A driver of this process panicked while it worked on the session.
    pub(crate) fn add(&self, session: SessionId) {
        lock(&self.sessions).push(Suspect { session, claims: None });
    }

    /// Whether something died of it that no claim has counted: a process that is killed once it
    /// has recorded a death, and before it could remove the mark, leaves that mark to the next one.
    pub(crate) fn contains(&self, session: &Session) -> bool {
        let is_new = |suspect: &Suspect| suspect.claims.is_none_or(|then| then == session.claims());
        lock(&self.sessions).iter().any(|suspect| suspect.session == session.id && is_new(suspect))
    }

    /// That is on record now, or no longer of interest.
    pub(crate) fn settle(&self, session: SessionId) {
        let mut sessions = lock(&self.sessions);
        let before = sessions.len();
        sessions.retain(|suspect| suspect.session != session);
        if sessions.len() < before {
            drop(sessions);
            self.marks.settle(session);
        }
    }

    /// Does one stretch of work on a session that may be on probation.
    pub(crate) fn watch<T>(&self, probation: &Probation, work: impl FnOnce() -> T) -> T {
        self.mark(probation);
        let done = work();
        if let Some(mark) = probation.take_mark() {
            self.marks.end(mark);
        }
        done
    }

    /// Puts a session on probation and marks the stretch of work under way: the next thing that
    /// this stretch does may already end the process.
    pub(crate) fn begin(&self, probation: &Probation, session: &Session) {
        probation.begin(session);
        self.mark(probation);
    }

    fn mark(&self, probation: &Probation) {
        let Some(session) = probation.session().filter(|_| !probation.is_marked()) else { return };
        if let Some(mark) = self.marks.begin(session, probation.claims.load(Ordering::Relaxed)) {
            probation.keep_mark(mark);
        }
    }
}

/// Whether the session of one driver was recovered, or ended a process before, and has made no
/// progress since.
#[derive(Default)]
pub(crate) struct Probation {
    on: AtomicBool,
    session: Mutex<Option<SessionId>>,
    /// How often its runs were claimed without progress.
    claims: AtomicU32,
    /// One more than the mark of the stretch of work under way; 0 where it has none.
    mark: AtomicUsize,
}

impl Probation {
    fn begin(&self, session: &Session) {
        *lock(&self.session) = Some(session.id);
        self.claims.store(session.claims(), Ordering::Relaxed);
        self.on.store(true, Ordering::Relaxed);
    }

    /// Ends once all runs of the session got further.
    pub(crate) fn review(&self, session: Option<&Session>) {
        if !self.on.load(Ordering::Relaxed) {
            return;
        }
        self.claims.store(session.map_or(0, Session::claims), Ordering::Relaxed);
        let mut runs = session.iter().flat_map(|session| session.runs.values());
        // A reply ends the claims, and not the deaths.
        let pending = runs.any(|run| run.claims > 0 || run.deaths > 0);
        self.on.store(pending, Ordering::Relaxed);
    }

    fn session(&self) -> Option<SessionId> {
        // Every stretch of work of every driver asks: most are not on probation.
        if !self.on.load(Ordering::Relaxed) {
            return None;
        }
        *lock(&self.session)
    }

    fn is_marked(&self) -> bool {
        self.mark.load(Ordering::Relaxed) != 0
    }

    fn keep_mark(&self, mark: usize) {
        self.mark.store(mark + 1, Ordering::Relaxed);
    }

    /// The mark of a stretch of work that is over. Only the driver of the session comes here.
    fn take_mark(&self) -> Option<usize> {
        let mark = self.mark.load(Ordering::Relaxed).checked_sub(1)?;
        self.mark.store(0, Ordering::Relaxed);
        Some(mark)
    }
}
