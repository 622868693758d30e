//! What endpoints may read: committed state, and what wakes them when it changes.

use crate::gate::rights::{ask_of, fed_session, run_of, session_of};
use crate::handles::{Admin, Asks, Feed, Runs, Sessions};
use crate::refusal::{Refusal, RefusalCode, Result, no_session};
use crate::request::{ContextRuns, Inspection, RunReport};
use crate::sessions::cache::CachedSession;
use crate::waiting::feed::Watch;
use kernel::ask::reply::BadReply;
use kernel::ask::{Ask, Reply};
use kernel::contracts::policy::Resource;
use kernel::contracts::{
    AskFilter, FeedRow, HistoryFilter, ListPage, OpenAsks, OpenBlob, OpenSessions, OwnerFilter,
    PageRequest, RETENTION, RunFilter, RunPage, SINKS, SessionAsk, SessionFilter, SessionRef,
    SessionRun, StoreError, StoreFigures, WHOLE,
};
use kernel::journal::projection::{HistoryItem, RunRow, SessionRow};
use kernel::session::RunStatus;
use kernel::tool::call::Caller;
use kernel::values::caller::Act;
use kernel::values::ids::{AskId, ContentHash, RunId, SessionKey, Space};
use std::slice;

/// How many sessions that hold a blob are judged at once.
const BLOB_SESSIONS_AT_ONCE: usize = 100;

impl Sessions<'_> {
    /// One session's row.
    pub async fn get(self, caller: &Caller, session: &SessionRef) -> Result<SessionRow> {
        let found = self.shared.store.session(&caller.realm, &caller.meant(session)).await?;
        let found = found.filter(|row| self.shared.gate.reads(caller, session_of(row)));
        found.ok_or_else(|| no_session(session))
    }

    /// The same, for something that is done to it.
    pub(crate) async fn get_for(
        self,
        caller: &Caller,
        act: Act,
        session: &SessionRef,
    ) -> Result<SessionRow> {
        let row = self.get(caller, session).await?;
        self.shared.gate.permit(caller, act, session_of(&row))?;
        Ok(row)
    }

    /// Sessions that the caller may read, newest first.
    pub async fn list(
        self,
        caller: &Caller,
        filter: &SessionFilter,
        page: &PageRequest,
    ) -> Result<ListPage<SessionRow>> {
        let store = &self.shared.store;
        let realm = &caller.realm;
        let read =
            move |page: PageRequest| async move { store.sessions(realm, filter, &page).await };
        self.shared.gate.fill_page(caller, page, read, session_of).await
    }

    /// A session with its context.
    pub async fn inspect(self, caller: &Caller, session: &SessionRef) -> Result<Inspection> {
        let row = self.get(caller, session).await?;
        let read = self.shared.read_session(&row.key).await?;
        let Some(CachedSession { session: state, .. }) = read else {
            return Err(Refusal::not_found("session", &row.key.id));
        };
        let context = state.shown_context();
        let context =
            context.iter().map(|(key, datum)| (key.to_string(), datum.to_value())).collect();
        Ok(Inspection {
            row: kernel::journal::projection::session_row(&state, state.updated_at),
            context,
        })
    }

    /// How many sessions of the caller's realm are not over, by status.
    pub async fn open(self, caller: &Caller) -> Result<Vec<OpenSessions>> {
        self.shared.gate.permit(caller, Act::Read, Resource::Server)?;
        Ok(self.shared.store.open_sessions(&caller.realm).await?)
    }

    /// A session's history, newest first.
    pub async fn history(
        self,
        caller: &Caller,
        session: &SessionRef,
        page: &PageRequest,
    ) -> Result<ListPage<HistoryItem>> {
        let row = self.get(caller, session).await?;
        Ok(self.shared.store.history(&row.key, HistoryFilter::default(), page).await?)
    }

    /// A session's events after a sequence, as JSON.
    pub async fn events(
        self,
        caller: &Caller,
        session: &SessionRef,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, String)>> {
        let row = self.get(caller, session).await?;
        Ok(self.shared.store.events(&row.key, after, limit).await?)
    }

    /// Removes a session that does not move, with all that belongs to it, once all sinks have
    /// passed its events. That is waited for a moment; then it is refused, and nothing is removed.
    /// Where a sink that has not passed them is not configured any more, it is refused at once.
    pub async fn remove(self, caller: &Caller, session: &SessionRef) -> Result<()> {
        let shared = self.shared;
        let clock = &self.shared.clock;
        let mut looks = shared.limits.unsent_wait_ms / UNSENT_LOOK_MS;
        let mut changes = REMOVE_LOOKS_MAX;
        loop {
            let row = self.removable(caller, session).await?;
            let consumer = match shared.store.remove_sent(&row.key, row.known()).await {
                // It has changed since we looked.
                Err(StoreError::Conflict(_)) if changes > 0 => {
                    changes -= 1;
                    continue;
                }
                removed => removed?,
            };
            let key = row.key;
            let Some(consumer) = consumer else {
                shared.removed(slice::from_ref(&key));
                return Ok(());
            };
            let sink = consumer.strip_prefix(SINKS).unwrap_or(&consumer);
            if !shared.outboxes.is_configured(&key.realm, sink) {
                return Err(unsent(&key, sink).hint(format!(
                    "this sink is not configured any more: forget it with `waypost events forget \
                     {sink}`, or send `?unsent=drop` to remove them unsent"
                )));
            }
            if looks == 0 {
                return Err(unsent(&key, sink));
            }
            looks -= 1;
            clock.sleep_until(clock.now().plus_ms(UNSENT_LOOK_MS)).await;
        }
    }

    /// The same at once, with events that were not sent.
    pub async fn remove_unsent(self, caller: &Caller, session: &SessionRef) -> Result<()> {
        let mut changes = REMOVE_LOOKS_MAX;
        loop {
            let row = self.removable(caller, session).await?;
            match self.shared.store.remove(&row.key, row.known()).await {
                Err(StoreError::Conflict(_)) if changes > 0 => changes -= 1,
                removed => {
                    removed?;
                    self.shared.removed(slice::from_ref(&row.key));
                    return Ok(());
                }
            }
        }
    }

    /// A session that does not move.
    async fn removable(self, caller: &Caller, session: &SessionRef) -> Result<SessionRow> {
        let row = self.get_for(caller, Act::Remove, session).await?;
        if row.run.is_some() && !row.status.is_over() {
            let message = format!("session `{}` has an active run", row.key.id);
            return Err(
                Refusal::new(RefusalCode::SessionInUse, message).hint("cancel the run first")
            );
        }
        Ok(row)
    }

    /// How long a session of the caller's realm stays after its last change once it is over; none
    /// where sessions stay for ever.
    pub fn ttl_ms(self, caller: &Caller) -> Option<u64> {
        let own = self.shared.session_ttls.get(&caller.realm).copied();
        let ttl_ms = own.unwrap_or(self.shared.limits.session_ttl_ms);
        (ttl_ms > 0).then_some(ttl_ms)
    }

    /// A blob is read by those who may read it as such, or a session that holds it as a value.
    async fn may_read_blob(self, caller: &Caller, hash: &ContentHash) -> Result<()> {
        let gate = &self.shared.gate;
        if gate.reads(caller, Resource::Blob(hash.as_str())) {
            return Ok(());
        }
        let filter = SessionFilter { blob: Some(hash.clone()), ..SessionFilter::default() };
        let mut page = PageRequest { cursor: None, limit: BLOB_SESSIONS_AT_ONCE };
        loop {
            let found = self.shared.store.sessions(&caller.realm, &filter, &page).await?;
            if !gate.readable(caller, found.items, session_of).is_empty() {
                return Ok(());
            }
            page.cursor = found.next_cursor;
            if page.cursor.is_none() {
                return Err(Refusal::not_found("blob", hash));
            }
        }
    }

    /// A blob of the caller's realm, to be read piece by piece.
    pub async fn open_blob(self, caller: &Caller, hash: &ContentHash) -> Result<OpenBlob> {
        self.may_read_blob(caller, hash).await?;
        let found = self.shared.blobs.open(&caller.realm, hash, WHOLE).await?;
        found.ok_or_else(|| Refusal::not_found("blob", hash))
    }

    /// A blob of the caller's realm, unless it is too large to be read at once.
    pub async fn blob(self, caller: &Caller, hash: &ContentHash) -> Result<Vec<u8>> {
        let open = self.open_blob(caller, hash).await?;
        Ok(open.whole(self.shared.limits.blob_value_bytes_max).await?)
    }
}

impl Runs<'_> {
    /// One run with its session's key.
    pub(crate) async fn stored(self, caller: &Caller, run: RunId) -> Result<SessionRun> {
        let found = self.shared.store.run(&caller.realm, run).await?;
        let gate = &self.shared.gate;
        let found = found.filter(|run| gate.reads(caller, run_of(run)));
        found.ok_or_else(|| Refusal::no_run(run))
    }

    /// The caller's own runs in contexts, the one that changed last first, and how many fit.
    pub async fn in_contexts(
        self,
        caller: &Caller,
        wanted: &ContextRuns,
        page: &PageRequest,
    ) -> Result<RunPage> {
        let ContextRuns { context, statuses, since } = wanted;
        let mut filter = RunFilter {
            whose: OwnerFilter::own(caller),
            session: None,
            statuses: statuses.clone(),
            since: *since,
        };
        if let Some(context) = context {
            let space = Some(Space::context());
            let named = SessionRef::Key { key: context.as_str().into(), space };
            let found = self.shared.store.session(&caller.realm, &caller.meant(&named)).await?;
            let Some(found) = found else {
                let page = ListPage { items: Vec::new(), next_cursor: None };
                return Ok(RunPage { page, total: 0 });
            };
            filter.session = Some(found.id);
        }
        let RunPage { page, total } = self.shared.store.runs(&caller.realm, &filter, page).await?;
        let items = self.shared.gate.readable(caller, page.items, run_of);
        Ok(RunPage { page: ListPage { items, ..page }, total })
    }

    /// One run with its session and its open asks.
    pub async fn report(self, caller: &Caller, run: RunId) -> Result<RunReport> {
        let mut found = self.stored(caller, run).await?;
        let filter =
            AskFilter { run: Some(run), status: Some("open".to_owned()), ..AskFilter::default() };
        let page = PageRequest { cursor: None, limit: self.shared.limits.page_items_max };
        let asks = self.shared.asks().list(caller, &filter, &page).await?;
        if asks.items.is_empty()
            && matches!(found.row.status, RunStatus::Waiting | RunStatus::Stuck)
        {
            // Its last ask may have been decided between both reads, and then it does not wait.
            found = self.stored(caller, run).await?;
        }
        let session = self.session_of_run(caller, &found).await?;
        Ok(RunReport {
            run: found.row,
            session,
            asks: asks.items,
            replayed: false,
            elsewhere: false,
        })
    }

    /// The session of a run that this caller may read. Of a case that others submitted too it sees
    /// only what its run says.
    async fn session_of_run(self, caller: &Caller, found: &SessionRun) -> Result<SessionRow> {
        let session = SessionRef::Id(found.session);
        if found.key.space.pipeline().is_none() {
            return self.shared.sessions().get(caller, &session).await;
        }
        let row = self.shared.store.session(&caller.realm, &session).await?;
        let row = row.ok_or_else(|| Refusal::no_run(found.row.id))?;
        Ok(match self.shared.gate.reads(caller, session_of(&row)) {
            true => row,
            false => of_run_alone(row, &found.row),
        })
    }
}

/// A session as far as one of its runs tells of it.
fn of_run_alone(session: SessionRow, run: &RunRow) -> SessionRow {
    SessionRow {
        owner: None,
        status: run.status,
        run: Some(run.id),
        plan: Some(run.plan.clone()),
        step: run.step.clone(),
        last_error: run.last_error.clone(),
        seq: 0,
        wake_at: None,
        created_at: run.started_at,
        updated_at: run.ended_at.unwrap_or(run.started_at),
        parked: None,
        ..session
    }
}

impl Asks<'_> {
    pub async fn get(self, caller: &Caller, ask: AskId) -> Result<SessionAsk> {
        let found = self.shared.store.ask(&caller.realm, ask).await?;
        let gate = &self.shared.gate;
        let found = found.filter(|ask| gate.reads(caller, ask_of(ask)));
        found.map(|ask| gate.with_answerers(ask)).ok_or_else(|| {
            Refusal::not_found("ask", ask).hint("`GET /api/v1/asks` lists the open asks")
        })
    }

    /// Asks that the caller may read, oldest first.
    pub async fn list(
        self,
        caller: &Caller,
        filter: &AskFilter,
        page: &PageRequest,
    ) -> Result<ListPage<SessionAsk>> {
        let store = &self.shared.store;
        let realm = &caller.realm;
        let gate = &self.shared.gate;
        let read = move |page: PageRequest| async move { store.asks(realm, filter, &page).await };
        let ListPage { items, next_cursor } = gate.fill_page(caller, page, read, ask_of).await?;
        let items = items.into_iter().map(|ask| gate.with_answerers(ask)).collect();
        Ok(ListPage { items, next_cursor })
    }

    /// Whether this caller may answer an ask, as it is now: an endpoint puts no question to one who
    /// may not. The commit of the reply decides.
    pub fn may_answer(self, caller: &Caller, asked: &SessionAsk) -> bool {
        self.shared.gate.answers(caller, asked)
    }

    /// How many asks of the caller's realm are open, by kind.
    pub async fn open(self, caller: &Caller) -> Result<Vec<OpenAsks>> {
        self.shared.gate.permit(caller, Act::Read, Resource::Server)?;
        Ok(self.shared.store.open_asks(&caller.realm).await?)
    }

    /// Whether a reply fits an ask, as far as one can tell without giving it: edited arguments are
    /// the gate's to check.
    pub fn check(self, ask: &Ask, reply: &Reply) -> Result<(), BadReply> {
        kernel::ask::reply::check(ask, reply, self.shared.schemas.as_ref())
    }
}

impl Feed<'_> {
    /// The feed of the caller's realm after a cursor: one row for the events of one append. A row
    /// of a session that the caller may not read is empty: a reader passes it, and continues.
    pub async fn rows(self, caller: &Caller, after: u64, limit: usize) -> Result<Vec<FeedRow>> {
        let mut rows = self.shared.store.feed(&caller.realm, after, limit).await?;
        if self.shared.gate.is_free(caller, Act::Read) {
            return Ok(rows);
        }
        let sessions: Vec<Resource<'_>> = rows.iter().map(fed_session).collect();
        let read = self.shared.gate.read_of(caller, &sessions);
        for (row, is_read) in rows.iter_mut().zip(read) {
            if !is_read {
                row.body = NO_EVENTS.to_owned();
            }
        }
        Ok(rows)
    }

    /// How far the feed is kept: rows up to the first cursor may be gone by retention, and the
    /// second is the newest.
    pub async fn bounds(self, caller: &Caller) -> Result<(u64, u64)> {
        let store = &self.shared.store;
        let realm = &caller.realm;
        Ok((store.consumer(realm, RETENTION).await?, store.feed_end().await?))
    }

    /// Wakes after commits of this session.
    pub fn watch(self, key: &SessionKey) -> Watch {
        self.shared.watchers.watch(key)
    }

    /// Wakes after commits of any session.
    pub fn watch_all(self) -> Watch {
        self.shared.watchers.watch_all()
    }
}

impl Admin<'_> {
    /// What the store says of its own work; none where it says nothing.
    pub fn store_figures(self) -> Option<StoreFigures> {
        self.shared.store.figures()
    }
}

/// The events of a row that its reader may not see.
const NO_EVENTS: &str = "[]";

/// How often a session that is to be removed may turn out to have changed since it was looked at.
const REMOVE_LOOKS_MAX: u32 = 8;
/// How often we check whether the sinks have passed a session that is to be removed.
const UNSENT_LOOK_MS: u64 = 50;

fn unsent(key: &SessionKey, sink: &str) -> Refusal {
    let message = format!("session `{}` has events that sink `{sink}` has not passed yet", key.id);
    Refusal::new(RefusalCode::EventsUnsent, message).hint(
        "`waypost events sinks` says what keeps it; try again when it has caught up, or send \
         `?unsent=drop` to remove them unsent",
    )
}
