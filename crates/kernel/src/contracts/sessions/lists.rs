//! Lists beside the journal: rows that every append keeps up to date.

use crate::contracts::{
    AskFilter, ListPage, OpenAsks, OpenSessions, PageRequest, Read, RunFilter, RunPage,
    RunWithEvents, SessionAsk, SessionFilter, SessionRef, SessionRun, StoredBytes,
};
use crate::definition::pipeline::TallyRow;
use crate::journal::projection::SessionRow;
use crate::values::ids::{AskId, PipelineName, PlanId, RealmId, RunId};

/// Sessions, runs, asks and counts of a realm, as of the last commit.
pub trait Lists: Send + Sync {
    /// One session. A key without a space means the one in `session`, else the only one.
    fn session<'a>(
        &'a self,
        realm: &'a RealmId,
        session: &'a SessionRef,
    ) -> Read<'a, Option<SessionRow>>;

    /// Sessions, newest first.
    fn sessions<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a SessionFilter,
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<SessionRow>>;

    /// One run.
    fn run<'a>(&'a self, realm: &'a RealmId, run: RunId) -> Read<'a, Option<SessionRun>>;

    /// The plans of these runs, as far as they are there, in any order.
    fn run_plans<'a>(
        &'a self,
        realm: &'a RealmId,
        runs: &'a [RunId],
    ) -> Read<'a, Vec<(RunId, PlanId)>>;

    /// One run with the first events of its session, at most so many, where it is the session's
    /// first run: most runs are read whole by this, as they were at one moment.
    fn run_with_events<'a>(
        &'a self,
        realm: &'a RealmId,
        run: RunId,
        limit: usize,
    ) -> Read<'a, Option<RunWithEvents>>;

    /// Runs of contexts, the one that changed last first, and how many fit. A run that changes
    /// while pages are read moves to the front: none is listed twice after its last change, and
    /// none is missed that does not change. Runs of other spaces are not in this list: nobody asks
    /// for them in this order, and each would pay for it with every append.
    fn runs<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a RunFilter,
        page: &'a PageRequest,
    ) -> Read<'a, RunPage>;

    fn ask<'a>(&'a self, realm: &'a RealmId, ask: AskId) -> Read<'a, Option<SessionAsk>>;

    /// Asks, oldest first.
    fn asks<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a AskFilter,
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<SessionAsk>>;

    /// How many asks are open, by kind.
    fn open_asks<'a>(&'a self, realm: &'a RealmId) -> Read<'a, Vec<OpenAsks>>;

    /// How many sessions are not over, by status, and how many of them are parked. What is over
    /// costs nothing here.
    fn open_sessions<'a>(&'a self, realm: &'a RealmId) -> Read<'a, Vec<OpenSessions>>;

    /// About how many bytes the runs of every realm store that are there, by realm and owner, each
    /// once or more often. All runs are read: a frequent caller keeps what it learned.
    fn stored_bytes(&self) -> Read<'_, Vec<StoredBytes>>;

    /// How often cases of a pipeline took which path, the most frequent first. Removing sessions
    /// leaves this as it is.
    fn tallies<'a>(
        &'a self,
        realm: &'a RealmId,
        pipeline: &'a PipelineName,
    ) -> Read<'a, Vec<TallyRow>>;
}
