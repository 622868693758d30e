//! Sessions and runs as they change, for their followers: the status first, then every
//! event in the order of the journal, after any sequence. The journal is read page by page, when
//! the reader wants more; commits only wake. So a slow reader costs one page, and a late one gets
//! what an early one got. Pieces of turns come between the events that begin and end these, to
//! followers that want them and keep up.

use crate::api::reading::ordered_deltas::OrderedDeltas;
use crate::api::reading::run_event_filter::RunEventFilter;
use crate::handles::{Asks, Runs, Sessions, Threads};
use crate::refusal::{RefusalKind, Result};
use crate::request::RunReport;
use crate::shared::Shared;
use crate::waiting::deltas::{Deltas, TurnUpdate};
use crate::waiting::feed::Watch;
use futures::future::{Either, select};
use kernel::ask::AskStatus;
use kernel::contracts::{SessionAsk, SessionRef};
use kernel::event::{self, Fact};
use kernel::journal::projection::SessionRow;
use kernel::session::RunStatus;
use kernel::tool::call::Caller;
use kernel::values::ids::{RunId, SessionKey};
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;

/// What a stream of a session gives.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionUpdate {
    Event {
        /// Its sequence.
        seq: u64,
        /// All of it, as JSON.
        body: String,
    },
    /// There is no more for now: so the session stands.
    Still(Box<SessionRow>),
}

/// What a stream of a run gives.
#[derive(Debug, Clone, PartialEq)]
pub enum RunUpdate {
    /// The run as the stream began.
    Snapshot(Box<RunReport>),
    Event {
        /// Its sequence in the journal of the session: the stream can be resumed after it.
        seq: u64,
        /// All of it, as JSON.
        body: String,
    },
    /// A turn while it is made, after the event that began it. Its outcome is in an event, and
    /// nothing more is heard of it after that.
    Delta(TurnUpdate),
    /// The run waits, is stuck or paused: nothing more comes until someone acts.
    Rest(Box<RunReport>),
    /// The run is over, and nothing more comes.
    End(Box<RunReport>),
}

/// Reads a session's journal after a place.
pub struct SessionStream {
    shared: Arc<Shared>,
    caller: Caller,
    session: SessionRef,
    /// The last event that was given, or that the reader had before.
    after: u64,
    /// Events that were read and not given yet.
    page: VecDeque<(u64, String)>,
    watch: Watch,
    /// Whether several of its runs may be active at once.
    has_many_runs: bool,
}

impl SessionStream {
    fn new(shared: &Arc<Shared>, caller: &Caller, session: SessionRef, key: &SessionKey) -> Self {
        let shared = shared.clone();
        let caller = caller.clone();
        let watch = shared.watchers.watch(key);
        let page = VecDeque::new();
        let has_many_runs = key.space.has_many_runs();
        Self { shared, caller, session, after: 0, page, watch, has_many_runs }
    }

    /// What comes next, without waiting.
    pub async fn try_next(&mut self) -> Result<SessionUpdate> {
        loop {
            if let Some((seq, body)) = self.take() {
                return Ok(SessionUpdate::Event { seq, body });
            }
            if let Some(row) = self.read().await? {
                return Ok(SessionUpdate::Still(Box::new(row)));
            }
        }
    }

    /// Waits until there may be more.
    pub async fn wait(&mut self) {
        self.watch.changed().await;
    }

    fn take(&mut self) -> Option<(u64, String)> {
        let event = self.page.pop_front()?;
        self.after = event.0;
        Some(event)
    }

    /// Reads the next page; where there is none, the session as it stands at this place.
    async fn read(&mut self) -> Result<Option<SessionRow>> {
        let row = self.shared.sessions().get(&self.caller, &self.session).await?;
        if row.seq <= self.after {
            return Ok(Some(row));
        }
        let limit = self.shared.limits.page_items_max;
        // By its id: another session may have its key by now.
        let store = &self.shared.store;
        let page = store.events_of(&row.key.realm, row.id, self.after, limit).await?;
        self.page.extend(page);
        Ok(None)
    }
}

/// Where a stream's place is, seen from its run, in a session with one run at a time: the events
/// from one start to the next are of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunPosition {
    Before,
    Within,
    Behind,
}

impl RunPosition {
    /// At a place where this is the newest run of the session.
    fn of(run: RunId, newest: Option<RunId>) -> Self {
        if newest == Some(run) { Self::Within } else { Self::Before }
    }
}

/// Follows one run. Futures of `next`, `try_next` and `wait` can be dropped: nothing is lost.
pub struct RunStream {
    journal: SessionStream,
    run: RunId,
    position: RunPosition,
    /// Tells its events from those of the runs beside it, where there may be some.
    own: Option<RunEventFilter>,
    /// How it stood, until that is delivered.
    snapshot: Option<Box<RunReport>>,
    /// Deltas of its turns, if requested.
    pieces: Option<OrderedDeltas>,
    /// How it stands after all events, told after what was heard before.
    last: Option<RunUpdate>,
    /// Whether something may be committed that was not read.
    stale: bool,
    /// The session's last event when the follower learned that the run rests.
    rested: Option<u64>,
    over: bool,
}

impl RunStream {
    fn new(journal: SessionStream, run: RunId, newest: Option<RunId>) -> Self {
        let own = journal.has_many_runs.then(|| RunEventFilter::new(run, journal.after));
        Self {
            journal,
            run,
            position: RunPosition::of(run, newest),
            own,
            snapshot: None,
            pieces: None,
            last: None,
            stale: true,
            rested: None,
            over: false,
        }
    }

    /// The next update, waited for; none after the end.
    pub async fn next(&mut self) -> Result<Option<RunUpdate>> {
        loop {
            let update = self.try_next().await?;
            if update.is_some() || self.over {
                return Ok(update);
            }
            self.wait().await;
        }
    }

    /// The next update that is there without waiting.
    pub async fn try_next(&mut self) -> Result<Option<RunUpdate>> {
        if let Some(report) = self.snapshot.take() {
            return Ok(Some(RunUpdate::Snapshot(report)));
        }
        self.seek().await?;
        while !self.over || self.last.is_some() {
            // Before each event: what was heard of a turn comes before the event that ends it.
            if let Some(heard) = self.hear() {
                return Ok(Some(RunUpdate::Delta(heard)));
            }
            if let Some((seq, body)) = self.journal.take() {
                if self.is_own(&body) {
                    self.pieces.iter_mut().for_each(|pieces| pieces.pass(seq, &body));
                    return Ok(Some(RunUpdate::Event { seq, body }));
                }
                continue;
            }
            if self.last.is_some() || !self.stale {
                return Ok(self.last.take());
            }
            self.read().await?;
        }
        Ok(None)
    }

    /// Waits until there may be more. A follower that gives that up, after a while, looks again all
    /// the same.
    pub async fn wait(&mut self) {
        let was_stale = std::mem::replace(&mut self.stale, true);
        let commit = self.journal.watch.changed();
        let Some(pieces) = &mut self.pieces else { return commit.await };
        if let Either::Right(_) = select(pin!(commit), pin!(pieces.come())).await {
            // No reason to read: where it waits for a commit, that wakes us itself.
            self.stale = was_stale;
        }
    }

    /// Waits for a commit, passes over what it brought, and gives the run as it is then: for
    /// those who report where a run is, and not how it came there.
    pub async fn skip(&mut self) -> Result<RunReport> {
        self.journal.watch.changed().await;
        let report = self.report().await?;
        self.journal.page.clear();
        self.journal.after = report.session.seq;
        self.position = RunPosition::of(self.run, report.session.run);
        self.own = self.own.take().map(|_| RunEventFilter::new(self.run, self.journal.after));
        self.stale = true;
        Ok(report)
    }

    /// Goes to the run's start where other runs are beside it: from there on it is known which
    /// events are its own.
    async fn seek(&mut self) -> Result<()> {
        if self.own.as_ref().is_none_or(|own| own.is_begun) {
            return Ok(());
        }
        let RunReport { session, .. } = self.report().await?;
        let shared = &self.journal.shared;
        let start = shared.newest_start(&session.key, session.seq, Some(self.run)).await?;
        self.journal.page.clear();
        self.journal.after = start.map_or(0, |(seq, _)| seq - 1);
        self.own.iter_mut().for_each(|own| own.is_begun = true);
        Ok(())
    }

    /// What moves with every change of the run: where others are beside it, its own last event.
    fn mark(&self, session_seq: u64) -> u64 {
        self.own.as_ref().map_or(session_seq, |own| own.last)
    }

    /// Whether an event is one of this run.
    fn is_own(&mut self, body: &str) -> bool {
        if let Some(own) = &mut self.own {
            return own.take(body);
        }
        match begun(body) {
            Some(run) if run == self.run => self.position = RunPosition::Within,
            Some(_) if self.position == RunPosition::Within => {
                self.position = RunPosition::Behind;
                self.journal.page.clear();
            }
            Some(_) | None => {}
        }
        self.position == RunPosition::Within
    }

    /// What was heard of a turn, unless it waits for events.
    fn hear(&mut self) -> Option<TurnUpdate> {
        self.pieces.as_mut()?.take(self.journal.after)
    }

    /// Reads more of the journal; where there is no more, how the run stands.
    async fn read(&mut self) -> Result<()> {
        if self.position != RunPosition::Behind {
            let Some(row) = self.journal.read().await? else { return Ok(()) };
            let moves = row.run == Some(self.run) && row.status == RunStatus::Running;
            if moves || self.rested == Some(self.mark(row.seq)) {
                self.stale = false;
                return Ok(());
            }
        }
        let report = self.report().await?;
        // Something was committed between the two reads.
        if self.position != RunPosition::Behind && report.session.seq > self.journal.after {
            return Ok(());
        }
        self.stale = false;
        self.over = report.run.status.is_over();
        if self.over {
            self.last = Some(RunUpdate::End(Box::new(report)));
        } else if !report.is_moving() {
            self.rested = Some(self.mark(report.session.seq));
            self.last = Some(RunUpdate::Rest(Box::new(report)));
        }
        Ok(())
    }

    async fn report(&self) -> Result<RunReport> {
        self.journal.shared.runs().report(&self.journal.caller, self.run).await
    }

    /// Goes back to a place in the journal, or to the run's beginning. A place that is not kept any
    /// more is refused.
    async fn go_back(&mut self, report: &RunReport, wanted: Option<u64>) -> Result<()> {
        let shared = self.journal.shared.clone();
        let session = &report.session;
        if self.own.is_some() {
            self.own = Some(RunEventFilter::new(self.run, wanted.unwrap_or_default()));
            self.seek().await?;
        } else if let Some(after) = wanted {
            self.journal.after = after;
            if after < session.seq {
                let start = shared.newest_start(&session.key, after, None).await?;
                self.position = RunPosition::of(self.run, start.map(|(_, run)| run));
            }
        } else {
            // The first run of a session begins where its journal does.
            let start = match report.run.no {
                1 => None,
                _ => shared.newest_start(&session.key, session.seq, Some(self.run)).await?,
            };
            self.journal.after = start.map_or(0, |(seq, _)| seq - 1);
            self.position = RunPosition::Before;
        }
        self.journal.read().await?;
        Ok(())
    }
}

/// Listens to a thread, from before something is said in it.
pub struct ThreadListener {
    journal: SessionStream,
    /// The thread's newest run so far.
    newest: Option<RunId>,
    deltas: Deltas,
}

impl ThreadListener {
    /// Follows a run of this thread: what happens to it after the listening began.
    pub fn follow(self, run: RunId) -> RunStream {
        let Self { journal, newest, deltas } = self;
        let pieces = Some(OrderedDeltas::new(run, deltas));
        RunStream { pieces, ..RunStream::new(journal, run, newest) }
    }
}

impl Sessions<'_> {
    /// A session as it stands, and its events after a sequence: after 0 from the oldest on.
    pub async fn follow(
        self,
        caller: &Caller,
        session: &SessionRef,
        after: u64,
    ) -> Result<(SessionRow, SessionStream)> {
        let row = self.get(caller, session).await?;
        let stream = SessionStream::new(self.shared, caller, SessionRef::Id(row.id), &row.key);
        let mut stream = SessionStream { after, ..stream };
        // A place that is not kept any more is refused here.
        stream.read().await?;
        Ok((row, stream))
    }
}

impl Runs<'_> {
    /// A run as it stands, and its events after a sequence; from its first one on where none is
    /// named. Turns are heard while they are made; a follower that is too slow for that loses some.
    pub async fn follow(
        self,
        caller: &Caller,
        run: RunId,
        after: Option<u64>,
    ) -> Result<RunStream> {
        let report = self.report(caller, run).await?;
        let mut stream = self.follow_on(caller, &report);
        let deltas = self.shared.listeners.listen(&report.session.key);
        stream.pieces = Some(OrderedDeltas::new(run, deltas));
        stream.go_back(&report, after).await?;
        stream.snapshot = Some(Box::new(report));
        Ok(stream)
    }

    /// The events of a run after this report of it, which is not delivered again.
    pub fn follow_on(self, caller: &Caller, report: &RunReport) -> RunStream {
        let session = &report.session;
        let journal =
            SessionStream::new(self.shared, caller, SessionRef::Id(session.id), &session.key);
        let journal = SessionStream { after: session.seq, ..journal };
        RunStream::new(journal, report.run.id, session.run)
    }
}

impl Threads<'_> {
    /// Listens to a thread before something is said in it, so that nothing of that is missed.
    pub async fn listen(self, caller: &Caller, thread: &str) -> ThreadListener {
        let key = Self::key(caller, thread);
        let deltas = self.shared.listeners.listen(&key);
        let session = SessionRef::Key { key: key.id.clone(), space: Some(key.space.clone()) };
        let mut journal = SessionStream::new(self.shared, caller, session, &key);
        // A thread that is not there yet has no events.
        let row = self.shared.sessions().get(caller, &journal.session).await.ok();
        let newest = row.and_then(|row| {
            journal.after = row.seq;
            row.run
        });
        ThreadListener { journal, newest, deltas }
    }
}

impl Asks<'_> {
    /// Waits until an ask is not open any more, no matter who closed it.
    pub async fn closed(self, caller: &Caller, asked: &SessionAsk) {
        let mut watch = self.shared.watchers.watch(&asked.key);
        loop {
            match self.get(caller, asked.row.ask.id).await {
                Ok(now) if now.row.status == AskStatus::Open => {}
                // It cannot be read just now.
                Err(refusal) if refusal.kind() != RefusalKind::NotFound => {}
                Ok(_) | Err(_) => return,
            }
            watch.changed().await;
        }
    }
}

impl Shared {
    /// The newest start of a run up to a sequence, of this run if one is named; none where it is
    /// not kept any more. Read backwards: who follows a run wants a late one.
    pub(in crate::api) async fn newest_start(
        &self,
        key: &SessionKey,
        up_to: u64,
        only: Option<RunId>,
    ) -> Result<Option<(u64, RunId)>> {
        let piece = self.limits.page_items_max.max(1) as u64;
        let mut last = up_to;
        while last > 0 {
            let first = last.saturating_sub(piece) + 1;
            let events = self.events_between(key, first, last).await?;
            let mut starts =
                events.iter().rev().filter_map(|(seq, body)| Some((*seq, begun(body)?)));
            let found = starts.find(|(_, run)| only.is_none_or(|only| only == *run));
            if found.is_some() || events.first().is_none_or(|(oldest, _)| *oldest > first) {
                return Ok(found);
            }
            last = first - 1;
        }
        Ok(None)
    }
}

/// The run that an event begins.
fn begun(body: &str) -> Option<RunId> {
    // Few events do; the others need not be read.
    if !body.contains("\"run.started\"") {
        return None;
    }
    let events = event::read(&format!("[{body}]")).ok()?;
    events.into_iter().find_map(|event| match event.fact {
        Fact::RunStarted { run, .. } => Some(run),
        _ => None,
    })
}
