//! Sessions that may have ended a process. Who works on a session that was recovered and made no
//! progress yet notes it while that work runs; the process after a crash counts it against the
//! session, and after some such deaths a person is asked instead. A process that is killed while
//! its sessions only wait leaves no note, so that counts against none of them.

use crate::locks::lock;
use kernel::contracts::CrashMarks;
use kernel::ids::SessionId;
use kernel::session::Session;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The sessions that something died of, until that is on record.
pub(crate) struct Suspects {
    marks: Arc<dyn CrashMarks>,
    sessions: Mutex<BTreeSet<SessionId>>,
}

impl Suspects {
    /// Begins with those that the process before left.
    pub(crate) fn new(marks: Arc<dyn CrashMarks>) -> Self {
        let sessions = Mutex::new(marks.suspects().into_iter().collect());
        Self { marks, sessions }
    }

    /// A driver of this process panicked while it worked on the session.
    pub(crate) fn add(&self, session: SessionId) {
        lock(&self.sessions).insert(session);
    }

    /// Whether something died of it.
    pub(crate) fn contains(&self, session: SessionId) -> bool {
        lock(&self.sessions).contains(&session)
    }

    /// That is on record now, or no longer of interest.
    pub(crate) fn settle(&self, session: SessionId) {
        if lock(&self.sessions).remove(&session) {
            self.marks.settle(session);
        }
    }

    /// Does one stretch of work on a session that may be on probation.
    pub(crate) fn watch<T>(&self, probation: &Probation, work: impl FnOnce() -> T) -> T {
        let mark = probation.session().and_then(|session| self.marks.begin(session));
        let done = work();
        if let Some(mark) = mark {
            self.marks.end(mark);
        }
        done
    }
}

/// Whether the session of one driver was recovered and has made no progress since.
#[derive(Default)]
pub(crate) struct Probation {
    on: AtomicBool,
    session: Mutex<Option<SessionId>>,
}

impl Probation {
    /// Begins for a session that was taken over.
    pub(crate) fn begin(&self, session: SessionId) {
        *lock(&self.session) = Some(session);
        self.on.store(true, Ordering::Relaxed);
    }

    /// Ends once all runs of the session got further.
    pub(crate) fn review(&self, session: Option<&Session>) {
        if !self.on.load(Ordering::Relaxed) {
            return;
        }
        let runs = session.iter().flat_map(|session| session.runs.values());
        let pending = runs.into_iter().any(|run| run.claims > 0 || run.deaths > 0);
        self.on.store(pending, Ordering::Relaxed);
    }

    fn session(&self) -> Option<SessionId> {
        // Every stretch of work of every driver asks: most are not on probation.
        if !self.on.load(Ordering::Relaxed) {
            return None;
        }
        *lock(&self.session)
    }
}
