//! Sessions that may have ended a process. Who works on a session that was recovered and made no
//! progress yet notes it while that work runs; the process after a crash counts it against the
//! session, and after some such deaths a person is asked instead. A process that is killed while
//! its sessions only wait leaves no note, so that counts against none of them.

use crate::system::locks::lock;
use kernel::contracts::{CrashMarks, Suspect};
use kernel::session::Session;
use kernel::values::ids::SessionId;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
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
        probation.take_marks().into_iter().for_each(|mark| self.marks.end(mark));
        done
    }

    /// Puts a session on probation and marks the stretch of work under way: the next thing that
    /// this stretch does may already end the process.
    pub(crate) fn begin(&self, probation: &Probation, session: &Session) {
        probation.begin(session);
        self.mark(probation);
    }

    /// Looks at what was recorded: the probation ends once all runs of the session got further.
    /// Where a reply changes the claims, the stretch of work gets another mark beside the one that
    /// it has: no one knows yet whether the reply will outlive the process.
    pub(crate) fn review(&self, probation: &Probation, session: Option<&Session>) {
        if probation.review(session) && probation.is_marked() {
            self.add_mark(probation);
        }
    }

    fn mark(&self, probation: &Probation) {
        if !probation.is_marked() {
            self.add_mark(probation);
        }
    }

    fn add_mark(&self, probation: &Probation) {
        let Some(session) = probation.session() else { return };
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
    /// Whether the stretch of work under way has marks.
    marked: AtomicBool,
    marks: Mutex<Vec<usize>>,
}

impl Probation {
    fn begin(&self, session: &Session) {
        *lock(&self.session) = Some(session.id);
        self.claims.store(session.claims(), Ordering::Relaxed);
        self.on.store(true, Ordering::Relaxed);
    }

    /// Ends once all runs of the session got further; whether it lasts with other claims.
    fn review(&self, session: Option<&Session>) -> bool {
        if !self.on.load(Ordering::Relaxed) {
            return false;
        }
        let claims = session.map_or(0, Session::claims);
        let before = self.claims.swap(claims, Ordering::Relaxed);
        let mut runs = session.iter().flat_map(|session| session.runs.values());
        // A reply ends the claims, and not the deaths.
        let pending = runs.any(|run| run.claims > 0 || run.deaths > 0);
        self.on.store(pending, Ordering::Relaxed);
        pending && claims != before
    }

    fn session(&self) -> Option<SessionId> {
        // Every stretch of work of every driver asks: most are not on probation.
        if !self.on.load(Ordering::Relaxed) {
            return None;
        }
        *lock(&self.session)
    }

    fn is_marked(&self) -> bool {
        self.marked.load(Ordering::Relaxed)
    }

    fn keep_mark(&self, mark: usize) {
        lock(&self.marks).push(mark);
        self.marked.store(true, Ordering::Relaxed);
    }

    /// The marks of a stretch of work that is over. Only the driver of the session comes here.
    fn take_marks(&self) -> Vec<usize> {
        match self.marked.swap(false, Ordering::Relaxed) {
            true => std::mem::take(&mut lock(&self.marks)),
            false => Vec::new(),
        }
    }
}
