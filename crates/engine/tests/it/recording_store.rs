//! A store that records which methods are called, and forwards each call to a real store.

use kernel::contracts::{
    AskFilter, Feed, FeedRow, FeedStart, HistoryFilter, Journal, Keys, ListPage, Lists, LoadResult,
    OnCommit, OpenAsks, OpenSessions, Ownership, PageRequest, PrunedSlice, Read, RealmSet,
    Retention, RunFilter, RunPage, RunWithEvents, SessionAsk, SessionFilter, SessionRef,
    SessionRun, Slice, Store, StoreError, StoredBytes, Ticket, Trimmable,
};
use kernel::definition::pipeline::TallyRow;
use kernel::journal::projection::{Append, HistoryItem, OnceRow, ParkedSession, SessionRow};
use kernel::journal::trim::Trim;
use kernel::values::ids::{
    AskId, ContentHash, Fence, Millis, PipelineName, PlanId, RealmId, RunId, SessionId, SessionKey,
    SessionVersion,
};
use std::sync::{Arc, Mutex};

/// What the store was asked, by the names of the methods, in order.
pub struct RecordingStore {
    inner: Arc<dyn Store>,
    asked: Mutex<Vec<&'static str>>,
}

impl RecordingStore {
    pub fn over(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { inner, asked: Mutex::default() })
    }

    fn note(&self, name: &'static str) {
        self.asked.lock().unwrap().push(name);
    }

    /// Forgets what was asked so far.
    pub fn forget(&self) {
        self.asked.lock().unwrap().clear();
    }

    /// How often this was asked since then.
    pub fn count(&self, name: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| **asked == name).count()
    }
}

/// Methods that note their names and hand everything on.
macro_rules! recorded {
    ($($name:ident $(<$life:lifetime>)? ($($given:ident: $type:ty),*) -> $out:ty;)*) => {$(
        fn $name $(<$life>)? (&$($life)? self $(, $given: $type)*) -> $out {
            self.note(stringify!($name));
            self.inner.$name($($given),*)
        }
    )*};
}

impl Journal for RecordingStore {
    recorded! {
        load<'a>(key: &'a SessionKey, known: Option<SessionVersion>) -> Read<'a, LoadResult>;
        append(append: Append) -> Ticket;
        closure<'a>(realm: &'a RealmId, hash: &'a ContentHash) -> Read<'a, Option<String>>;
        tool_specs<'a>(realm: &'a RealmId, hashes: &'a [ContentHash])
            -> Read<'a, Vec<(ContentHash, String)>>;
        history<'a>(key: &'a SessionKey, only: HistoryFilter, page: &'a PageRequest)
            -> Read<'a, ListPage<HistoryItem>>;
        events<'a>(key: &'a SessionKey, after: u64, limit: usize) -> Read<'a, Vec<(u64, String)>>;
        events_of<'a>(realm: &'a RealmId, session: SessionId, after: u64, limit: usize)
            -> Read<'a, Vec<(u64, String)>>;
    }
}

impl Ownership for RecordingStore {
    recorded! {
        claim(now: Millis, limit: usize) -> Read<'_, Vec<SessionKey>>;
        park<'a>(key: &'a SessionKey, parked: ParkedSession) -> Read<'a, ()>;
        postpone<'a>(key: &'a SessionKey, fence: Fence, at: Millis) -> Read<'a, ()>;
        next_wake(after: Millis) -> Read<'_, Option<Millis>>;
    }
}

impl Lists for RecordingStore {
    recorded! {
        session<'a>(realm: &'a RealmId, session: &'a SessionRef) -> Read<'a, Option<SessionRow>>;
        sessions<'a>(realm: &'a RealmId, filter: &'a SessionFilter, page: &'a PageRequest)
            -> Read<'a, ListPage<SessionRow>>;
        run<'a>(realm: &'a RealmId, run: RunId) -> Read<'a, Option<SessionRun>>;
        run_plans<'a>(realm: &'a RealmId, runs: &'a [RunId]) -> Read<'a, Vec<(RunId, PlanId)>>;
        run_with_events<'a>(realm: &'a RealmId, run: RunId, limit: usize)
            -> Read<'a, Option<RunWithEvents>>;
        runs<'a>(realm: &'a RealmId, filter: &'a RunFilter, page: &'a PageRequest)
            -> Read<'a, RunPage>;
        ask<'a>(realm: &'a RealmId, ask: AskId) -> Read<'a, Option<SessionAsk>>;
        asks<'a>(realm: &'a RealmId, filter: &'a AskFilter, page: &'a PageRequest)
            -> Read<'a, ListPage<SessionAsk>>;
        open_asks<'a>(realm: &'a RealmId) -> Read<'a, Vec<OpenAsks>>;
        open_sessions<'a>(realm: &'a RealmId) -> Read<'a, Vec<OpenSessions>>;
        stored_bytes() -> Read<'_, Vec<StoredBytes>>;
        tallies<'a>(realm: &'a RealmId, pipeline: &'a PipelineName) -> Read<'a, Vec<TallyRow>>;
    }
}

impl Feed for RecordingStore {
    recorded! {
        feed<'a>(realm: &'a RealmId, after: u64, limit: usize) -> Read<'a, Vec<FeedRow>>;
        feed_ahead<'a>(realm: &'a RealmId, after: u64, max: usize) -> Read<'a, u64>;
        feed_end() -> Read<'_, u64>;
        consumer<'a>(realm: &'a RealmId, consumer: &'a str) -> Read<'a, u64>;
        begin_consumer<'a>(realm: &'a RealmId, consumer: &'a str, start: FeedStart)
            -> Read<'a, u64>;
        consumers<'a>(realm: &'a RealmId, prefix: &'a str) -> Read<'a, Vec<(String, u64)>>;
        advance<'a>(realm: &'a RealmId, consumer: &'a str, cursor: u64) -> Read<'a, ()>;
        forget_consumer<'a>(realm: &'a RealmId, consumer: &'a str) -> Read<'a, bool>;
    }
}

impl Keys for RecordingStore {
    recorded! {
        once<'a>(realm: &'a RealmId, subject: &'a str, routes: &'a [&'a str], key: &'a str)
            -> Read<'a, Option<OnceRow>>;
    }
}

impl Retention for RecordingStore {
    recorded! {
        remove<'a>(key: &'a SessionKey, known: SessionVersion) -> Read<'a, ()>;
        remove_sent<'a>(key: &'a SessionKey, known: SessionVersion) -> Read<'a, Option<String>>;
        prune<'a>(
            realms: RealmSet<'a>, before: Millis, but: &'a [SessionKey], slice: Slice<u64>
        ) -> Read<'a, PrunedSlice>;
        trimmable<'a>(realms: RealmSet<'a>, before: Millis, slice: Slice<Option<(Millis, u64)>>)
            -> Read<'a, Vec<Trimmable>>;
        trim(trim: Trim) -> Read<'_, Option<u64>>;
        sweep_closures(limit: usize) -> Read<'_, (usize, u64)>;
    }
}

impl Store for RecordingStore {
    recorded! {
        healthy() -> Result<(), StoreError>;
        close() -> Read<'_, ()>;
    }

    fn on_commit(&self, woken: OnCommit) {
        self.inner.on_commit(woken);
    }
}
