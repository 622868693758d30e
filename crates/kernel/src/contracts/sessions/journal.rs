//! The journal of sessions: events, and the snapshots of their state.

use crate::contracts::{ListPage, PageRequest, Read, StoreError};
use crate::journal::projection::{Append, HistoryItem};
use crate::values::ids::{
    ContentHash, Fence, RealmId, RunId, SessionId, SessionKey, SessionVersion, StepId,
};
use futures::future::BoxFuture;

/// Sessions as their events, read from the newest snapshot on and written append by append.
///
/// A session has a fence: a number that grows with every change of it, by one. Who decides
/// something for a session names the fence of what was loaded. So of two who decided on the same
/// state one is refused, and what someone kept in memory is current while the fence is the same.
pub trait Journal: Send + Sync {
    /// A session's snapshot and tail; only that nothing changed where it is the known one. The
    /// answer is as new as any append that was acknowledged before the call.
    fn load<'a>(
        &'a self,
        key: &'a SessionKey,
        known: Option<SessionVersion>,
    ) -> Read<'a, LoadResult>;

    /// Queues an append, in call order. The ticket resolves once all of it is durable, its snapshot
    /// included, or nothing of it is there.
    ///
    /// An append moves the fence by one: the next one of the same session names the next fence, and
    /// may be queued before the ticket of this one resolves. Another fence than the session has
    /// when it is this append's turn is a `Conflict`, and so is an ask that is not open any more or
    /// a request's key that is taken; a session that is to be new and is there already `Exists`. A
    /// failed ticket fails all later ones of that session until it is loaded again.
    fn append(&self, append: Append) -> Ticket;

    /// A pinned closure's text.
    fn closure<'a>(&'a self, realm: &'a RealmId, hash: &'a ContentHash)
    -> Read<'a, Option<String>>;

    /// The texts of specs of tools that calls pinned, as far as they are there, in any order. One is
    /// there as long as a closure of which a run pinned it.
    fn tool_specs<'a>(
        &'a self,
        realm: &'a RealmId,
        hashes: &'a [ContentHash],
    ) -> Read<'a, Vec<(ContentHash, String)>>;

    /// A session's history, newest first; of one run and one step if named.
    fn history<'a>(
        &'a self,
        key: &'a SessionKey,
        only: HistoryFilter,
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<HistoryItem>>;

    /// A session's events after a sequence, as JSON texts with their sequences; after 0 from the
    /// oldest on. `Gone` where events after that sequence were trimmed away.
    fn events<'a>(
        &'a self,
        key: &'a SessionKey,
        after: u64,
        limit: usize,
    ) -> Read<'a, Vec<(u64, String)>>;

    /// The same of the session with this id, and of no other one that may have its key by now.
    fn events_of<'a>(
        &'a self,
        realm: &'a RealmId,
        session: SessionId,
        after: u64,
        limit: usize,
    ) -> Read<'a, Vec<(u64, String)>>;
}

/// An append on its way to the disk.
pub type Ticket = BoxFuture<'static, Result<(), StoreError>>;

/// What a load finds.
#[derive(Debug, Clone, PartialEq)]
pub enum LoadResult {
    /// There is no such session.
    Missing,
    /// The session is as the caller knows it.
    Unchanged,
    /// The session.
    Found(StoredSession),
}

/// A session as it lies in the store: snapshot and tail, never the whole history.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSession {
    pub id: SessionId,
    /// Its fence: an append that is decided on this names it.
    pub fence: Fence,
    /// The newest snapshot's JSON, if there is one.
    pub snapshot: Option<String>,
    /// Size of that snapshot.
    pub snapshot_bytes: usize,
    /// The journal rows after it, each a JSON array of events.
    pub tail: Vec<String>,
}

/// Which history entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryFilter {
    pub run: Option<RunId>,
    pub step: Option<StepId>,
}
