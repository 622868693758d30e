//! The contracts that everything outside plugs into. Boxed futures: all of them wait on disk or
//! network anyway, and signatures stay short.

mod system;

pub use system::{Clock, CrashMarks, Entropy, Spawn, Zones};

use crate::call::{Call, Caller, Reach, ToolError, ToolOutput, ToolSpec, Upstream};
use crate::datum::BlobRef;
pub use crate::figures::{CommitTimes, OpenAsks, OpenSessions, StoreFigures};
use crate::ids::{
    AskId, ContentHash, Millis, PipelineName, RealmId, RunId, SessionId, SessionKey, StepId,
};
pub use crate::lists::{
    AskFilter, FeedRow, Page, Paged, SessionAsk, SessionFilter, SessionRef, SessionRun,
};
use crate::pipeline::TallyRow;
pub use crate::policy::Policy;
use crate::projection::{Append, HistoryItem, OnceRow, Parked, SessionRow};
use crate::trim::Trim;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde_json::Value;
use std::sync::Arc;

/// A tool: one truth for MCP, REST, A2A, the model's prompt and the docs.
pub trait Tool: Send + Sync {
    /// What it says of itself.
    fn spec(&self) -> &Arc<ToolSpec>;

    /// Its own argument check, before policy: nobody is asked to approve a call that cannot run.
    fn check(&self, _arguments: &Value) -> Result<(), ToolError> {
        Ok(())
    }

    /// The server that it is of, where it is not ours. It is asked for every call that ended.
    fn upstream(&self) -> Option<Upstream> {
        None
    }

    /// What it wanted will not be given: whatever it holds for this state can go.
    fn forget(&self, _state: &Value) {}

    /// Whether a call that handed out this state can be made anew, without an answer, only to see
    /// whether it still wants what it wanted: nothing is held for the answer.
    fn can_be_asked_anew(&self, _state: &Value) -> bool {
        true
    }

    /// The name by which whoever brings it tells that a page was opened that it wanted under this
    /// key.
    fn page_name<'k>(&self, key: &'k str) -> &'k str {
        key
    }

    /// What this call does to the world, and whether it may be repeated under its key.
    fn reach(&self, _arguments: &Value) -> (Reach, bool) {
        (self.spec().reach, self.spec().idempotent)
    }

    /// Does it. The engine brings the timeout; dropping the future cancels.
    fn call<'a>(
        &'a self,
        caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// What a store could not do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Someone else wrote first: reload and decide again.
    #[error("session `{0}` was changed by another writer")]
    Conflict(String),
    /// A session with this key is there already.
    #[error("session `{0}` exists already")]
    Exists(String),
    /// Too many appends wait.
    #[error("the store's queue is full; try again")]
    Busy,
    /// No room: nothing was written.
    #[error("the disk is full; nothing was written")]
    Full,
    /// No file descriptor is left: nothing was written.
    #[error("no file descriptor is left; nothing was written")]
    Starved,
    /// An earlier append of this session failed, so this one was not tried.
    #[error("an earlier write of session `{0}` failed")]
    Poisoned(String),
    /// What is stored cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// The events after this place are not kept any more: the oldest has this sequence.
    #[error("the events after this place are not kept any more; the oldest is event {0}")]
    Gone(u64),
    /// A page's cursor is not one of ours.
    #[error("{0}")]
    BadCursor(String),
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
    /// Anything else, in the engine's words.
    #[error("the store failed: {0}")]
    Failed(String),
}

/// An append on its way to the disk.
pub type Ticket = BoxFuture<'static, Result<(), StoreError>>;

/// A session as it lies in the store: snapshot and tail, never the whole history.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Its id.
    pub id: SessionId,
    /// The newest snapshot's JSON, if there is one.
    pub snapshot: Option<String>,
    /// Size of that snapshot.
    pub snapshot_bytes: usize,
    /// The journal rows after it, each a JSON array of events.
    pub tail: Vec<String>,
    /// The process that last drove it is not this one: it must be claimed before it is driven.
    pub foreign: bool,
}

/// What a non-owner hands to the owner of a session. The embedded store has one owner and takes
/// none; the shape is here for stores with several nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// The session.
    pub key: SessionKey,
    /// The command's kind: `run`, `reply`, `cancel`, `timer`.
    pub kind: String,
    /// The command.
    pub body: Value,
}

/// A lease on a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The session.
    pub key: SessionKey,
    /// The fencing token.
    pub epoch: u64,
    /// When it ends; the embedded store's leases last as long as the process.
    pub until: Option<Millis>,
}

/// The result of a store's read.
pub type Read<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Whom a store tells which sessions a commit changed.
pub type OnCommit = Arc<dyn Fn(&[SessionKey]) + Send + Sync>;

/// Sessions: their journal and the lists beside it.
pub trait Store: Send + Sync {
    /// A session's snapshot and tail.
    fn load<'a>(&'a self, key: &'a SessionKey) -> Read<'a, Option<Stored>>;

    /// Queues an append, in call order. The ticket resolves once it is durable. A failed ticket
    /// fails all later ones of that session until it is loaded again.
    fn append(&self, append: Append) -> Ticket;

    /// What it says of its own work; none where it says nothing.
    fn figures(&self) -> Option<StoreFigures> {
        None
    }

    /// Keeps a snapshot. It is a cache: nobody waits for it, and losing it loses nothing.
    fn keep_snapshot(&self, key: &SessionKey, seq: u64, body: String);

    /// Hands a command to whoever owns the session; durable on return.
    fn deliver(&self, delivery: Delivery) -> Read<'_, ()>;

    /// Leases of sessions that should be driven now and that this process does not drive yet,
    /// those of dead processes first.
    fn claim(&self, now: Millis, limit: usize) -> Read<'_, Vec<Lease>>;

    /// Leaves a session alone until then, although it should be driven, and notes why; its next
    /// append ends that. Durable on return.
    fn park<'a>(&'a self, key: &'a SessionKey, parked: Parked) -> Read<'a, ()>;

    /// The nearest time after this one at which a session should be driven.
    fn next_wake(&self, after: Millis) -> Read<'_, Option<Millis>>;

    /// Prolongs a lease.
    fn renew<'a>(&'a self, lease: &'a Lease) -> Read<'a, Lease>;

    /// Gives a lease back.
    fn release<'a>(&'a self, lease: &'a Lease) -> Read<'a, ()>;

    /// A pinned closure's text.
    fn closure<'a>(&'a self, realm: &'a RealmId, hash: &'a ContentHash)
    -> Read<'a, Option<String>>;

    /// The text of a tool's spec that a call pinned. It is there as long as a closure of which a
    /// run pinned it; specs that release 0.1.0 pinned are not.
    fn tool_spec<'a>(
        &'a self,
        realm: &'a RealmId,
        hash: &'a ContentHash,
    ) -> Read<'a, Option<String>>;

    /// One session.
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
        page: &'a Page,
    ) -> Read<'a, Paged<SessionRow>>;

    /// One run.
    fn run<'a>(&'a self, realm: &'a RealmId, run: RunId) -> Read<'a, Option<SessionRun>>;

    /// One ask.
    fn ask<'a>(&'a self, realm: &'a RealmId, ask: AskId) -> Read<'a, Option<SessionAsk>>;

    /// Asks, oldest first.
    fn asks<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a AskFilter,
        page: &'a Page,
    ) -> Read<'a, Paged<SessionAsk>>;

    /// How many asks are open, by kind.
    fn open_asks<'a>(&'a self, realm: &'a RealmId) -> Read<'a, Vec<OpenAsks>>;

    /// How many sessions are not over, by status, and how many of them are parked. What is over
    /// costs nothing here.
    fn open_sessions<'a>(&'a self, realm: &'a RealmId) -> Read<'a, Vec<OpenSessions>>;

    /// What came of a keyed request.
    fn once<'a>(
        &'a self,
        realm: &'a RealmId,
        subject: &'a str,
        route: &'a str,
        key: &'a str,
    ) -> Read<'a, Option<OnceRow>>;

    /// A session's history, newest first; of one run and one step if named.
    fn history<'a>(
        &'a self,
        key: &'a SessionKey,
        only: HistoryFilter,
        page: &'a Page,
    ) -> Read<'a, Paged<HistoryItem>>;

    /// A session's events after a sequence, as JSON texts with their sequences; after 0 from the
    /// oldest on. `Gone` where events after that sequence were trimmed away.
    fn events<'a>(
        &'a self,
        key: &'a SessionKey,
        after: u64,
        limit: usize,
    ) -> Read<'a, Vec<(u64, String)>>;

    /// The feed of a realm after a cursor: at most so many rows, fewer where they are large, and
    /// none only at its end.
    fn feed<'a>(&'a self, realm: &'a RealmId, after: u64, limit: usize) -> Read<'a, Vec<FeedRow>>;

    /// The feed's newest cursor, of any realm; 0 before the first. It never goes back.
    fn feed_end(&self) -> Read<'_, u64>;

    /// How far a named consumer has read.
    fn consumer<'a>(&'a self, realm: &'a RealmId, consumer: &'a str) -> Read<'a, u64>;

    /// The place of a named consumer. One that has none yet is given one; durable on return.
    fn begin_consumer<'a>(
        &'a self,
        realm: &'a RealmId,
        consumer: &'a str,
        start: FeedStart,
    ) -> Read<'a, u64>;

    /// The consumers of a realm whose names begin so, by name, and how far each has read.
    fn consumers<'a>(&'a self, realm: &'a RealmId, prefix: &'a str)
    -> Read<'a, Vec<(String, u64)>>;

    /// Removes the place of a named consumer, and before it the log of deliveries of one that is a
    /// sink: after a crash midway the place is still there. False where it has no place; durable on
    /// return.
    fn forget_consumer<'a>(&'a self, realm: &'a RealmId, consumer: &'a str) -> Read<'a, bool>;

    /// Moves a named consumer on; durable on return.
    fn advance<'a>(&'a self, realm: &'a RealmId, consumer: &'a str, cursor: u64) -> Read<'a, ()>;

    /// How often cases of a pipeline took which road, the most frequent first. Removing sessions
    /// leaves this as it is.
    fn tallies<'a>(
        &'a self,
        realm: &'a RealmId,
        pipeline: &'a PipelineName,
    ) -> Read<'a, Vec<TallyRow>>;

    /// Removes a session and all that belongs to it; durable on return.
    fn remove<'a>(&'a self, key: &'a SessionKey) -> Read<'a, ()>;

    /// The same, unless a sink of its realm has not passed all its rows: then nothing is removed,
    /// and the consumer that is furthest behind is named.
    fn remove_sent<'a>(&'a self, key: &'a SessionKey) -> Read<'a, Option<String>>;

    /// Removes one slice of the old sessions: those that are over, or never had a run, and were
    /// last changed before this; those in `but` stay, and those with rows that a sink has not
    /// passed. The slice begins after a row's number (0 for the first) and looks at so many. In
    /// the same commit `RETENTION` of each realm moves on to the newest row of the feed that went.
    /// After the last slice, keys of requests that are as old and whose runs are gone are removed
    /// as well. Durable on return.
    fn prune<'a>(
        &'a self,
        realms: Realms<'a>,
        before: Millis,
        but: &'a [SessionKey],
        slice: (u64, usize),
    ) -> Read<'a, PrunedSlice>;

    /// Sessions with runs that ended before this and that are not their newest, after a place.
    fn trimmable<'a>(
        &'a self,
        realms: Realms<'a>,
        before: Millis,
        slice: (Option<(Millis, u64)>, usize),
    ) -> Read<'a, Vec<Trimmable>>;

    /// Removes the beginning of a session's journal and the runs that it is of, and puts the base
    /// in its place, in one commit, in which `RETENTION` of its realm moves on to the base's row.
    /// How many rows went; none if the session is not as the request says any more, or if a sink
    /// has not passed these rows. Durable on return.
    fn trim(&self, trim: Trim) -> Read<'_, Option<u64>>;

    /// Looks at so many closures whose runs were removed, and removes those that no run pins. How
    /// many it looked at, and how many it removed. Durable on return.
    fn sweep_closures(&self, limit: usize) -> Read<'_, (usize, u64)>;

    /// Calls `woken` after every commit, with the sessions that it changed.
    fn on_commit(&self, woken: OnCommit);

    /// Whether there is room and the writer lives.
    fn healthy(&self) -> Result<(), StoreError>;

    /// Ends the writer after what is queued; durable on return.
    fn close(&self) -> Read<'_, ()>;
}

/// Whose sessions are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Realms<'a> {
    /// One realm's.
    One(&'a RealmId),
    /// All, but not those of these realms.
    AllBut(&'a [RealmId]),
}

/// The consumer whose place says up to where `Store::prune` and `Store::trim` may have removed rows
/// of the feed.
pub const RETENTION: &str = "retention";

/// What the names of consumers begin with that take events out of the house: rows of the feed that
/// one of them has not passed stay.
pub const SINKS: &str = "sink/";

/// Where a consumer begins that has no place yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedStart {
    /// Before the oldest row there is.
    Oldest,
    /// After the newest row there is.
    Newest,
}

/// What one slice of a removal removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrunedSlice {
    /// The sessions.
    pub removed: Vec<SessionKey>,
    /// How many rows, of all kinds.
    pub rows: u64,
    /// Where the next slice begins, if there is one.
    pub next: Option<u64>,
}

/// A session that may have old runs to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trimmable {
    /// Its place in this list.
    pub place: (Millis, u64),
    /// Its key.
    pub key: SessionKey,
    /// Its id.
    pub id: SessionId,
    /// The number of the first of its runs that stays.
    pub keeps: u32,
}

/// Which history entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryFilter {
    /// Of this run.
    pub run: Option<RunId>,
    /// Of this step.
    pub step: Option<StepId>,
}

/// A stored definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// `plan`, `agent`, `provider`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its version, from 1.
    pub version: u64,
    /// Its body.
    pub body: Value,
    /// When this version was stored.
    pub updated_at: Millis,
}

/// Stored configuration: plans, agents, providers.
pub trait Definitions: Send + Sync {
    /// All of one kind.
    fn list<'a>(&'a self, realm: &'a RealmId, kind: &'a str) -> Read<'a, Vec<Definition>>;
    /// One, in its newest version.
    fn get<'a>(
        &'a self,
        realm: &'a RealmId,
        kind: &'a str,
        name: &'a str,
    ) -> Read<'a, Option<Definition>>;
    /// Stores the next version if `expected` is the newest now (0: there is none); durable on
    /// return. `Conflict` otherwise.
    fn put<'a>(
        &'a self,
        realm: &'a RealmId,
        definition: Definition,
        expected: Option<u64>,
    ) -> Read<'a, Definition>;
    /// Removes it; whether it was there.
    fn delete<'a>(&'a self, realm: &'a RealmId, kind: &'a str, name: &'a str) -> Read<'a, bool>;
}

/// A blob that is read piece by piece.
pub struct OpenBlob {
    /// Its size.
    pub bytes: u64,
    /// Its pieces in order. The last one comes only if the hash of all of them is right.
    pub pieces: BoxStream<'static, Result<Vec<u8>, StoreError>>,
}

/// Large values, by the hash of their content, per realm.
pub trait Blobs: Send + Sync {
    /// Stores bytes; the blob and its folder are synced on return.
    fn put<'a>(&'a self, realm: &'a RealmId, bytes: Vec<u8>) -> Read<'a, BlobRef>;
    /// Reads bytes; their hash is checked.
    fn get<'a>(&'a self, realm: &'a RealmId, hash: &'a ContentHash) -> Read<'a, Option<Vec<u8>>>;
    /// Opens it to be read piece by piece, for a caller that passes it on: it may be large, and its
    /// reader slow. The hash is made on the way.
    fn open<'a>(&'a self, realm: &'a RealmId, hash: &'a ContentHash) -> Read<'a, Option<OpenBlob>>;
    /// Removes it, whoever names it.
    fn delete<'a>(&'a self, realm: &'a RealmId, hash: &'a ContentHash) -> Read<'a, ()>;
    /// Looks at so many blobs that were put, or lost a session that named them, before this, and
    /// removes those that nothing names. How many it looked at, and how many it removed.
    fn sweep(&self, before: Millis, limit: usize) -> Read<'_, (usize, u64)>;
}
