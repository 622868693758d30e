//! Implements the store contracts over the tables.

use super::ModelStore;
use super::tables::KeyName;
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

impl Journal for ModelStore {
    fn load<'a>(
        &'a self,
        key: &'a SessionKey,
        known: Option<SessionVersion>,
    ) -> Read<'a, LoadResult> {
        Box::pin(async move {
            // Before the read: appends that are still queued must not get in after it.
            self.heal(key);
            self.read(|tables| Ok(tables.load(key, known))).await
        })
    }

    fn append(&self, append: Append) -> Ticket {
        self.queue(append)
    }

    fn closure<'a>(
        &'a self,
        realm: &'a RealmId,
        hash: &'a ContentHash,
    ) -> Read<'a, Option<String>> {
        let name = (realm.clone(), hash.clone());
        Box::pin(self.read(move |tables| Ok(tables.closures.get(&name).cloned())))
    }

    fn tool_specs<'a>(
        &'a self,
        realm: &'a RealmId,
        hashes: &'a [ContentHash],
    ) -> Read<'a, Vec<(ContentHash, String)>> {
        Box::pin(self.read(move |tables| {
            let found = hashes.iter().filter_map(|hash| {
                let text = tables.specs.get(&(realm.clone(), hash.clone()))?;
                Some((hash.clone(), text.clone()))
            });
            Ok(found.collect::<Vec<_>>())
        }))
    }

    fn history<'a>(
        &'a self,
        key: &'a SessionKey,
        only: HistoryFilter,
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<HistoryItem>> {
        Box::pin(self.read(move |tables| tables.history(key, &only, page)))
    }

    fn events<'a>(
        &'a self,
        key: &'a SessionKey,
        after: u64,
        limit: usize,
    ) -> Read<'a, Vec<(u64, String)>> {
        Box::pin(self.read(move |tables| tables.events(tables.number(key), after, limit)))
    }

    fn events_of<'a>(
        &'a self,
        realm: &'a RealmId,
        session: SessionId,
        after: u64,
        limit: usize,
    ) -> Read<'a, Vec<(u64, String)>> {
        Box::pin(
            self.read(move |tables| {
                tables.events(tables.number_of_id(realm, session), after, limit)
            }),
        )
    }
}

impl Ownership for ModelStore {
    fn claim(&self, now: Millis, limit: usize) -> Read<'_, Vec<SessionKey>> {
        Box::pin(async move {
            self.read(|_| Ok(())).await?;
            Ok(self.state.shared().claim(self.node, now, limit))
        })
    }

    fn park<'a>(&'a self, key: &'a SessionKey, parked: ParkedSession) -> Read<'a, ()> {
        Box::pin(self.write(move |tables| {
            tables.park(key, parked);
            Ok(())
        }))
    }

    fn postpone<'a>(&'a self, key: &'a SessionKey, fence: Fence, at: Millis) -> Read<'a, ()> {
        Box::pin(self.write(move |tables| {
            tables.postpone(key, fence, at);
            Ok(())
        }))
    }

    fn next_wake(&self, after: Millis) -> Read<'_, Option<Millis>> {
        Box::pin(self.read(move |tables| Ok(tables.next_wake(after))))
    }
}

impl Lists for ModelStore {
    fn session<'a>(
        &'a self,
        realm: &'a RealmId,
        session: &'a SessionRef,
    ) -> Read<'a, Option<SessionRow>> {
        Box::pin(self.read(move |tables| Ok(tables.session(realm, session))))
    }

    fn sessions<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a SessionFilter,
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<SessionRow>> {
        Box::pin(self.read(move |tables| tables.sessions(realm, filter, page)))
    }

    fn run<'a>(&'a self, realm: &'a RealmId, run: RunId) -> Read<'a, Option<SessionRun>> {
        Box::pin(self.read(move |tables| Ok(tables.run(realm, run))))
    }

    fn run_plans<'a>(
        &'a self,
        realm: &'a RealmId,
        runs: &'a [RunId],
    ) -> Read<'a, Vec<(RunId, PlanId)>> {
        Box::pin(self.read(move |tables| {
            let plan = |run: &RunId| Some((*run, tables.run(realm, *run)?.row.plan));
            Ok(runs.iter().filter_map(plan).collect::<Vec<_>>())
        }))
    }

    fn run_with_events<'a>(
        &'a self,
        realm: &'a RealmId,
        run: RunId,
        limit: usize,
    ) -> Read<'a, Option<RunWithEvents>> {
        Box::pin(self.read(move |tables| tables.run_with_events(realm, run, limit)))
    }

    fn runs<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a RunFilter,
        page: &'a PageRequest,
    ) -> Read<'a, RunPage> {
        Box::pin(self.read(move |tables| tables.runs(realm, filter, page)))
    }

    fn ask<'a>(&'a self, realm: &'a RealmId, ask: AskId) -> Read<'a, Option<SessionAsk>> {
        Box::pin(self.read(move |tables| Ok(tables.ask(realm, ask))))
    }

    fn asks<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a AskFilter,
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<SessionAsk>> {
        Box::pin(self.read(move |tables| tables.asks(realm, filter, page)))
    }

    fn open_asks<'a>(&'a self, realm: &'a RealmId) -> Read<'a, Vec<OpenAsks>> {
        Box::pin(self.read(move |tables| Ok(tables.open_asks(realm))))
    }

    fn open_sessions<'a>(&'a self, realm: &'a RealmId) -> Read<'a, Vec<OpenSessions>> {
        Box::pin(self.read(move |tables| Ok(tables.open_sessions(realm))))
    }

    fn stored_bytes(&self) -> Read<'_, Vec<StoredBytes>> {
        Box::pin(self.read(|tables| Ok(tables.stored_bytes())))
    }

    fn tallies<'a>(
        &'a self,
        realm: &'a RealmId,
        pipeline: &'a PipelineName,
    ) -> Read<'a, Vec<TallyRow>> {
        Box::pin(self.read(move |tables| Ok(tables.tallies(realm, pipeline))))
    }
}

impl Keys for ModelStore {
    fn once<'a>(
        &'a self,
        realm: &'a RealmId,
        subject: &'a str,
        routes: &'a [&'a str],
        key: &'a str,
    ) -> Read<'a, Option<OnceRow>> {
        let named = |route: &&str| {
            let subject = subject.to_owned();
            let route = (*route).to_owned();
            let key = key.to_owned();
            KeyName { realm: realm.clone(), subject, route, key }
        };
        let names: Vec<KeyName> = routes.iter().map(named).collect();
        Box::pin(self.read(move |tables| {
            Ok(names.iter().filter_map(|name| tables.once(name)).max_by_key(|row| row.at))
        }))
    }
}

impl Feed for ModelStore {
    fn feed<'a>(&'a self, realm: &'a RealmId, after: u64, limit: usize) -> Read<'a, Vec<FeedRow>> {
        Box::pin(self.read(move |tables| Ok(tables.feed(realm, after, limit))))
    }

    fn feed_ahead<'a>(&'a self, realm: &'a RealmId, after: u64, max: usize) -> Read<'a, u64> {
        Box::pin(self.read(move |tables| Ok(tables.feed(realm, after, max).len() as u64)))
    }

    fn feed_end(&self) -> Read<'_, u64> {
        Box::pin(self.read(|tables| Ok(tables.feed_end())))
    }

    fn consumer<'a>(&'a self, realm: &'a RealmId, consumer: &'a str) -> Read<'a, u64> {
        Box::pin(self.read(move |tables| Ok(tables.consumer(realm, consumer))))
    }

    fn begin_consumer<'a>(
        &'a self,
        realm: &'a RealmId,
        consumer: &'a str,
        start: FeedStart,
    ) -> Read<'a, u64> {
        Box::pin(self.write(move |tables| Ok(tables.begin(realm, consumer, start))))
    }

    fn consumers<'a>(
        &'a self,
        realm: &'a RealmId,
        prefix: &'a str,
    ) -> Read<'a, Vec<(String, u64)>> {
        Box::pin(self.read(move |tables| Ok(tables.consumers(realm, prefix))))
    }

    fn advance<'a>(&'a self, realm: &'a RealmId, consumer: &'a str, cursor: u64) -> Read<'a, ()> {
        Box::pin(self.write(move |tables| {
            tables.advance(realm, consumer, cursor);
            Ok(())
        }))
    }

    fn forget_consumer<'a>(&'a self, realm: &'a RealmId, consumer: &'a str) -> Read<'a, bool> {
        Box::pin(self.write(move |tables| Ok(tables.forget(realm, consumer))))
    }
}

impl Retention for ModelStore {
    fn remove<'a>(&'a self, key: &'a SessionKey, known: SessionVersion) -> Read<'a, ()> {
        Box::pin(self.write(move |tables| tables.remove(key, known)))
    }

    fn remove_sent<'a>(
        &'a self,
        key: &'a SessionKey,
        known: SessionVersion,
    ) -> Read<'a, Option<String>> {
        Box::pin(self.write(move |tables| tables.remove_sent(key, known)))
    }

    fn prune<'a>(
        &'a self,
        realms: RealmSet<'a>,
        before: Millis,
        but: &'a [SessionKey],
        slice: Slice<u64>,
    ) -> Read<'a, PrunedSlice> {
        Box::pin(self.write(move |tables| Ok(tables.prune(realms, before, but, slice))))
    }

    fn trimmable<'a>(
        &'a self,
        realms: RealmSet<'a>,
        before: Millis,
        slice: Slice<Option<(Millis, u64)>>,
    ) -> Read<'a, Vec<Trimmable>> {
        Box::pin(self.read(move |tables| Ok(tables.trimmable(realms, before, slice))))
    }

    fn trim(&self, trim: Trim) -> Read<'_, Option<u64>> {
        Box::pin(self.write(move |tables| tables.trim(&trim)))
    }

    fn sweep_closures(&self, limit: usize) -> Read<'_, (usize, u64)> {
        Box::pin(self.write(move |tables| Ok(tables.sweep_closures(limit))))
    }
}

impl Store for ModelStore {
    fn on_commit(&self, woken: OnCommit) {
        if let Some(node) = self.state.shared().nodes.get_mut(&self.node) {
            node.woken = Some(woken);
        }
    }

    fn healthy(&self) -> Result<(), StoreError> {
        let is_there = self.state.shared().nodes.contains_key(&self.node);
        if is_there { Ok(()) } else { Err(StoreError::Closed) }
    }

    fn close(&self) -> Read<'_, ()> {
        self.leave();
        Box::pin(std::future::ready(Ok(())))
    }
}
