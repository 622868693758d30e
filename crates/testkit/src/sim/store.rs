//! The store as the engine sees it in the simulation: the real one, with crash points around it and
//! with the faults that are planted.

use super::faults::damage::HIDDEN;
use super::faults::{Planted, SimStore};
use crate::sim::machine::power::Point;
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

impl Journal for SimStore {
    fn load<'a>(
        &'a self,
        key: &'a SessionKey,
        known: Option<SessionVersion>,
    ) -> Read<'a, LoadResult> {
        if self.damage.refuses(key) {
            let hidden = Err(StoreError::Unreadable(HIDDEN.to_owned()));
            return Box::pin(std::future::ready(hidden));
        }
        match &self.other_writer {
            Some(other_writer) => Box::pin(self.load_beside(other_writer, key, known)),
            None => self.inner.load(key, known),
        }
    }

    fn append(&self, mut append: Append) -> Ticket {
        if self.loses(&mut append) {
            return Box::pin(std::future::ready(Err(StoreError::Busy)));
        }
        let early = self.acknowledges_early(&append);
        let beside = self.beside(&append);
        let writing = self.node.as_ref().map(|node| node.writes(&append));
        let accepts = self.planted == Some(Planted::RefusedActs);
        let ticket = self.inner.append(append);
        if !self.power.passes(Point::Queued) {
            return Box::pin(std::future::pending());
        }
        if early {
            return Box::pin(std::future::ready(Ok(())));
        }
        let power = self.power.clone();
        Box::pin(async move {
            if let Some(writing) = &writing {
                writing.takes_a_moment().await;
            }
            let result = ticket.await;
            if !power.passes(Point::Durable) {
                std::future::pending::<()>().await;
            }
            if let Some(writing) = &writing {
                writing.ended(&result);
                if accepts {
                    return Ok(());
                }
            }
            match beside {
                Some(beside) => beside.judged(result).await,
                None => result,
            }
        })
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

    fn tool_specs<'a>(
        &'a self,
        realm: &'a RealmId,
        hashes: &'a [ContentHash],
    ) -> Read<'a, Vec<(ContentHash, String)>> {
        self.inner.tool_specs(realm, hashes)
    }

    fn history<'a>(
        &'a self,
        key: &'a SessionKey,
        only: HistoryFilter,
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<HistoryItem>> {
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

    fn events_of<'a>(
        &'a self,
        realm: &'a RealmId,
        session: SessionId,
        after: u64,
        limit: usize,
    ) -> Read<'a, Vec<(u64, String)>> {
        self.inner.events_of(realm, session, after, limit)
    }
}

impl Ownership for SimStore {
    fn claim(&self, now: Millis, limit: usize) -> Read<'_, Vec<SessionKey>> {
        if self.planted == Some(Planted::LostWakeUp) {
            return Box::pin(std::future::ready(Ok(Vec::new())));
        }
        self.inner.claim(now, limit)
    }

    fn park<'a>(&'a self, key: &'a SessionKey, parked: ParkedSession) -> Read<'a, ()> {
        if self.planted == Some(Planted::UnreadableNotParked) {
            return Box::pin(std::future::ready(Ok(())));
        }
        self.inner.park(key, parked)
    }

    fn postpone<'a>(&'a self, key: &'a SessionKey, fence: Fence, at: Millis) -> Read<'a, ()> {
        self.inner.postpone(key, fence, at)
    }

    fn next_wake(&self, after: Millis) -> Read<'_, Option<Millis>> {
        self.inner.next_wake(after)
    }
}

impl Lists for SimStore {
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
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<SessionRow>> {
        Box::pin(self.listed(realm, filter, page))
    }

    fn run<'a>(&'a self, realm: &'a RealmId, run: RunId) -> Read<'a, Option<SessionRun>> {
        self.inner.run(realm, run)
    }

    fn run_plans<'a>(
        &'a self,
        realm: &'a RealmId,
        runs: &'a [RunId],
    ) -> Read<'a, Vec<(RunId, PlanId)>> {
        self.inner.run_plans(realm, runs)
    }

    fn run_with_events<'a>(
        &'a self,
        realm: &'a RealmId,
        run: RunId,
        limit: usize,
    ) -> Read<'a, Option<RunWithEvents>> {
        self.inner.run_with_events(realm, run, limit)
    }

    fn runs<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a RunFilter,
        page: &'a PageRequest,
    ) -> Read<'a, RunPage> {
        self.inner.runs(realm, filter, page)
    }

    fn ask<'a>(&'a self, realm: &'a RealmId, ask: AskId) -> Read<'a, Option<SessionAsk>> {
        self.inner.ask(realm, ask)
    }

    fn asks<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a AskFilter,
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<SessionAsk>> {
        self.inner.asks(realm, filter, page)
    }

    fn open_asks<'a>(&'a self, realm: &'a RealmId) -> Read<'a, Vec<OpenAsks>> {
        self.inner.open_asks(realm)
    }

    fn open_sessions<'a>(&'a self, realm: &'a RealmId) -> Read<'a, Vec<OpenSessions>> {
        self.inner.open_sessions(realm)
    }

    fn stored_bytes(&self) -> Read<'_, Vec<StoredBytes>> {
        self.inner.stored_bytes()
    }

    fn tallies<'a>(
        &'a self,
        realm: &'a RealmId,
        pipeline: &'a PipelineName,
    ) -> Read<'a, Vec<TallyRow>> {
        self.inner.tallies(realm, pipeline)
    }
}

impl Feed for SimStore {
    fn feed<'a>(&'a self, realm: &'a RealmId, after: u64, limit: usize) -> Read<'a, Vec<FeedRow>> {
        Box::pin(async move {
            let rows = self.inner.feed(realm, after, limit).await?;
            Ok(self.late(self.skip(rows)))
        })
    }

    fn feed_ahead<'a>(&'a self, realm: &'a RealmId, after: u64, max: usize) -> Read<'a, u64> {
        self.inner.feed_ahead(realm, after, max)
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

    fn advance<'a>(&'a self, realm: &'a RealmId, consumer: &'a str, cursor: u64) -> Read<'a, ()> {
        self.inner.advance(realm, consumer, cursor)
    }

    fn forget_consumer<'a>(&'a self, realm: &'a RealmId, consumer: &'a str) -> Read<'a, bool> {
        self.inner.forget_consumer(realm, consumer)
    }
}

impl Keys for SimStore {
    fn once<'a>(
        &'a self,
        realm: &'a RealmId,
        subject: &'a str,
        routes: &'a [&'a str],
        key: &'a str,
    ) -> Read<'a, Option<OnceRow>> {
        self.inner.once(realm, subject, routes, key)
    }
}

impl Retention for SimStore {
    fn remove<'a>(&'a self, key: &'a SessionKey, known: SessionVersion) -> Read<'a, ()> {
        self.inner.remove(key, known)
    }

    fn remove_sent<'a>(
        &'a self,
        key: &'a SessionKey,
        known: SessionVersion,
    ) -> Read<'a, Option<String>> {
        self.inner.remove_sent(key, known)
    }

    fn prune<'a>(
        &'a self,
        realms: RealmSet<'a>,
        before: Millis,
        but: &'a [SessionKey],
        slice: Slice<u64>,
    ) -> Read<'a, PrunedSlice> {
        Box::pin(async move {
            if let RealmSet::One(realm) = realms {
                self.archive.keep_all(self.inner.as_ref(), realm).await?;
            }
            self.inner.prune(realms, before, but, slice).await
        })
    }

    fn trimmable<'a>(
        &'a self,
        realms: RealmSet<'a>,
        before: Millis,
        slice: Slice<Option<(Millis, u64)>>,
    ) -> Read<'a, Vec<Trimmable>> {
        self.inner.trimmable(realms, before, slice)
    }

    fn trim(&self, trim: Trim) -> Read<'_, Option<u64>> {
        Box::pin(async move {
            self.archive.keep(self.inner.as_ref(), trim.id, &trim.key).await?;
            self.inner.trim(trim).await
        })
    }

    fn sweep_closures(&self, limit: usize) -> Read<'_, (usize, u64)> {
        self.inner.sweep_closures(limit)
    }
}

impl Store for SimStore {
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
