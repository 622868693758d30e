//! Faults on purpose, each behind a switch, to see that the oracle notices; and the store's
//! wrapper, where crash points lie and where those faults sit that a store can have.

use super::archive::Archive;
use super::damage::{Damage, HIDDEN};
use super::power::{Point, Power};
use kernel::contracts::{
    AskFilter, Delivery, FeedRow, FeedStart, HistoryFilter, Lease, OnCommit, OpenAsks,
    OpenSessions, Page, Paged, PrunedSlice, Read, Realms, SessionAsk, SessionFilter, SessionRef,
    SessionRun, Store, StoreError, Stored, Ticket, Trimmable,
};
use kernel::ids::{AskId, ContentHash, Millis, PipelineName, RealmId, RunId, SessionKey};
use kernel::pipeline::TallyRow;
use kernel::planted::Switch;
use kernel::projection::{Append, HistoryItem, OnceRow, Parked, SessionRow};
use kernel::trim::Trim;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A fault that can be planted: in what surrounds the engine, or by a switch inside the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// Every ticket resolves before its append is written.
    AcknowledgeBeforeCommit,
    /// The ticket of an append that starts a call resolves before it is written.
    CallBeforeStarted,
    /// Syncs do nothing.
    NoSync,
    /// A blob is durable only some time after the row that names it.
    RowBeforeBlob,
    /// Nobody is told which sessions should move.
    LostWakeUp,
    /// The feed leaves out a row now and then.
    FeedSkips,
    /// A snapshot claims to be one event further than it is.
    SnapshotAhead,
    /// The place that is kept of a sink is further than the sink is.
    PlaceAhead,
    /// A rule inside is broken.
    Inside(Switch),
}

impl Planted {
    /// The switch inside the rules that this fault turns, if it is one of those.
    pub fn switch(self) -> Option<Switch> {
        match self {
            Planted::Inside(switch) => Some(switch),
            _ => None,
        }
    }

    /// Whether only a rough seed can meet it.
    pub fn is_rough(self) -> bool {
        let switch = self.switch();
        matches!(
            switch,
            Some(
                Switch::PanickedWriteRepeated
                    | Switch::PinnedPlansLimited
                    | Switch::DeathsForgotten
                    | Switch::UnreadableNotParked
            )
        )
    }
}

/// The store as the engine sees it.
pub struct SimStore {
    /// The real one.
    pub inner: Arc<dyn Store>,
    /// The switch.
    pub power: Arc<Power>,
    /// What is wrong with it.
    pub planted: Option<Planted>,
    /// How many feed rows were given.
    pub fed: AtomicU64,
    /// Where the oracle finds what was removed.
    pub archive: Arc<Archive>,
    /// What cannot be read.
    pub damage: Arc<Damage>,
}

/// How many rows the broken feed gives before it leaves one out.
const FEED_SKIPS_AFTER: u64 = 10;

impl SimStore {
    fn acknowledges_early(&self, append: &Append) -> bool {
        match self.planted {
            Some(Planted::AcknowledgeBeforeCommit) => true,
            Some(Planted::CallBeforeStarted) => {
                let holds = |kind: &str| append.body.contains(kind);
                holds("\"call.started\"") || holds("\"call.resumed\"")
            }
            _ => false,
        }
    }

    fn skip(&self, rows: Vec<FeedRow>) -> Vec<FeedRow> {
        if self.planted != Some(Planted::FeedSkips) {
            return rows;
        }
        let kept = |_: &FeedRow| self.fed.fetch_add(1, Ordering::SeqCst) != FEED_SKIPS_AFTER;
        rows.into_iter().filter(kept).collect()
    }
}

impl Store for SimStore {
    fn load<'a>(&'a self, key: &'a SessionKey) -> Read<'a, Option<Stored>> {
        if self.damage.refuses(key) {
            let hidden = Err(StoreError::Unreadable(HIDDEN.to_owned()));
            return Box::pin(std::future::ready(hidden));
        }
        self.inner.load(key)
    }

    fn append(&self, append: Append) -> Ticket {
        let early = self.acknowledges_early(&append);
        let ticket = self.inner.append(append);
        if !self.power.passes(Point::Queued) {
            return Box::pin(std::future::pending());
        }
        if early {
            return Box::pin(std::future::ready(Ok(())));
        }
        let power = self.power.clone();
        Box::pin(async move {
            let result = ticket.await;
            if !power.passes(Point::Durable) {
                std::future::pending::<()>().await;
            }
            result
        })
    }

    fn open_asks<'a>(&'a self, realm: &'a RealmId) -> Read<'a, Vec<OpenAsks>> {
        self.inner.open_asks(realm)
    }

    fn sweep_closures(&self, limit: usize) -> Read<'_, (usize, u64)> {
        self.inner.sweep_closures(limit)
    }

    fn park<'a>(&'a self, key: &'a SessionKey, parked: Parked) -> Read<'a, ()> {
        self.inner.park(key, parked)
    }

    fn open_sessions<'a>(&'a self, realm: &'a RealmId) -> Read<'a, Vec<OpenSessions>> {
        self.inner.open_sessions(realm)
    }

    fn keep_snapshot(&self, key: &SessionKey, seq: u64, body: String) {
        if self.planted != Some(Planted::SnapshotAhead) {
            return self.inner.keep_snapshot(key, seq, body);
        }
        let ahead = body.replacen(&format!("\"seq\":{seq}"), &format!("\"seq\":{}", seq + 1), 1);
        self.inner.keep_snapshot(key, seq, ahead);
    }

    fn deliver(&self, delivery: Delivery) -> Read<'_, ()> {
        self.inner.deliver(delivery)
    }

    fn claim(&self, now: Millis, limit: usize) -> Read<'_, Vec<Lease>> {
        if self.planted == Some(Planted::LostWakeUp) {
            return Box::pin(std::future::ready(Ok(Vec::new())));
        }
        self.inner.claim(now, limit)
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> Read<'a, Lease> {
        self.inner.renew(lease)
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> Read<'a, ()> {
        self.inner.release(lease)
    }

    fn closure<'a>(
        &'a self,
        realm: &'a RealmId,
        hash: &'a ContentHash,
    ) -> Read<'a, Option<String>> {
        Box::pin(async move {
            let text = self.inner.closure(realm, hash).await?;
            Ok(text.and_then(|text| self.damage.shown(text)))
        })
    }

    fn tool_spec<'a>(
        &'a self,
        realm: &'a RealmId,
        hash: &'a ContentHash,
    ) -> Read<'a, Option<String>> {
        self.inner.tool_spec(realm, hash)
    }

    fn session<'a>(
        &'a self,
        realm: &'a RealmId,
        session: &'a SessionRef,
    ) -> Read<'a, Option<SessionRow>> {
        self.inner.session(realm, session)
    }

    fn sessions<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a SessionFilter,
        page: &'a Page,
    ) -> Read<'a, Paged<SessionRow>> {
        self.inner.sessions(realm, filter, page)
    }

    fn run<'a>(&'a self, realm: &'a RealmId, run: RunId) -> Read<'a, Option<SessionRun>> {
        self.inner.run(realm, run)
    }

    fn ask<'a>(&'a self, realm: &'a RealmId, ask: AskId) -> Read<'a, Option<SessionAsk>> {
        self.inner.ask(realm, ask)
    }

    fn asks<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a AskFilter,
        page: &'a Page,
    ) -> Read<'a, Paged<SessionAsk>> {
        self.inner.asks(realm, filter, page)
    }

    fn next_wake(&self, after: Millis) -> Read<'_, Option<Millis>> {
        self.inner.next_wake(after)
    }

    fn once<'a>(
        &'a self,
        realm: &'a RealmId,
        subject: &'a str,
        route: &'a str,
        key: &'a str,
    ) -> Read<'a, Option<OnceRow>> {
        self.inner.once(realm, subject, route, key)
    }

    fn prune<'a>(
        &'a self,
        realms: Realms<'a>,
        before: Millis,
        but: &'a [SessionKey],
        slice: (u64, usize),
    ) -> Read<'a, PrunedSlice> {
        Box::pin(async move {
            if let Realms::One(realm) = realms {
                self.archive.keep_all(self.inner.as_ref(), realm).await?;
            }
            self.inner.prune(realms, before, but, slice).await
        })
    }

    fn trimmable<'a>(
        &'a self,
        realms: Realms<'a>,
        before: Millis,
        slice: (Option<(Millis, u64)>, usize),
    ) -> Read<'a, Vec<Trimmable>> {
        self.inner.trimmable(realms, before, slice)
    }

    fn trim(&self, trim: Trim) -> Read<'_, Option<u64>> {
        Box::pin(async move {
            self.archive.keep(self.inner.as_ref(), trim.id, &trim.key).await?;
            self.inner.trim(trim).await
        })
    }

    fn history<'a>(
        &'a self,
        key: &'a SessionKey,
        only: HistoryFilter,
        page: &'a Page,
    ) -> Read<'a, Paged<HistoryItem>> {
        self.inner.history(key, only, page)
    }

    fn events<'a>(
        &'a self,
        key: &'a SessionKey,
        after: u64,
        limit: usize,
    ) -> Read<'a, Vec<(u64, String)>> {
        self.inner.events(key, after, limit)
    }

    fn feed<'a>(&'a self, realm: &'a RealmId, after: u64, limit: usize) -> Read<'a, Vec<FeedRow>> {
        Box::pin(async move { Ok(self.skip(self.inner.feed(realm, after, limit).await?)) })
    }

    fn feed_end(&self) -> Read<'_, u64> {
        self.inner.feed_end()
    }

    fn consumer<'a>(&'a self, realm: &'a RealmId, consumer: &'a str) -> Read<'a, u64> {
        self.inner.consumer(realm, consumer)
    }

    fn begin_consumer<'a>(
        &'a self,
        realm: &'a RealmId,
        consumer: &'a str,
        start: FeedStart,
    ) -> Read<'a, u64> {
        self.inner.begin_consumer(realm, consumer, start)
    }

    fn consumers<'a>(
        &'a self,
        realm: &'a RealmId,
        prefix: &'a str,
    ) -> Read<'a, Vec<(String, u64)>> {
        self.inner.consumers(realm, prefix)
    }

    fn forget_consumer<'a>(&'a self, realm: &'a RealmId, consumer: &'a str) -> Read<'a, bool> {
        self.inner.forget_consumer(realm, consumer)
    }

    fn advance<'a>(&'a self, realm: &'a RealmId, consumer: &'a str, cursor: u64) -> Read<'a, ()> {
        self.inner.advance(realm, consumer, cursor)
    }

    fn tallies<'a>(
        &'a self,
        realm: &'a RealmId,
        pipeline: &'a PipelineName,
    ) -> Read<'a, Vec<TallyRow>> {
        self.inner.tallies(realm, pipeline)
    }

    fn remove<'a>(&'a self, key: &'a SessionKey) -> Read<'a, ()> {
        self.inner.remove(key)
    }

    fn remove_sent<'a>(&'a self, key: &'a SessionKey) -> Read<'a, Option<String>> {
        self.inner.remove_sent(key)
    }

    fn on_commit(&self, woken: OnCommit) {
        self.inner.on_commit(woken);
    }

    fn healthy(&self) -> Result<(), StoreError> {
        self.inner.healthy()
    }

    fn close(&self) -> Read<'_, ()> {
        self.inner.close()
    }
}
