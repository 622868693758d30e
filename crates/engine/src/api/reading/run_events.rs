//! The events of one run, for endpoints that make their own view of a run of them. Many may follow
//! the same run, and each event wakes all of them: it is taken from the commit that brought it and
//! read once, and only followers that lag ask the store.

use crate::api::reading::run_event_filter::{RunEventFilter, read};
use crate::gate::rights::run_of;
use crate::handles::Runs;
use crate::refusal::{Refusal, Result};
use crate::request::RunReport;
use crate::shared::Shared;
use crate::waiting::feed::{RecentEvents, Watch};
use kernel::contracts::{RunWithEvents, SessionRef, SessionRun};
use kernel::event::Event;
use kernel::tool::call::Caller;
use kernel::values::ids::RunId;
use std::collections::VecDeque;
use std::sync::Arc;

/// A run whose events are wanted: one that was started just now, or any by its id.
#[derive(Debug)]
pub struct StartedRun {
    run: RunId,
    /// An earlier request with the same key started it.
    replayed: bool,
    /// The run and its session's watch, where that was told all that the run recorded.
    told: Option<Box<(SessionRun, Watch)>>,
}

impl StartedRun {
    /// A run that was started while its session was watched.
    pub(in crate::api) fn watched(report: RunReport, watch: Option<Watch>) -> Self {
        let RunReport { run: row, session, replayed, .. } = report;
        let run = row.id;
        // The first run of a session begins where its journal does.
        let watch = watch.filter(|_| !replayed && row.no == 1);
        let of = |watch| (SessionRun { session: session.id, key: session.key, row }, watch);
        Self { run, replayed, told: watch.map(of).map(Box::new) }
    }

    /// One that an earlier request with the same key started.
    pub fn replayed(run: RunId) -> Self {
        Self { replayed: true, ..Self::from(run) }
    }

    /// Its id.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// Whether an earlier request with the same key started it.
    pub fn is_replayed(&self) -> bool {
        self.replayed
    }
}

impl From<RunId> for StartedRun {
    fn from(run: RunId) -> Self {
        Self { run, replayed: false, told: None }
    }
}

/// Where a stream finds what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextEvents {
    /// Nowhere yet: a commit wakes it.
    Nothing,
    /// At hand, with the commits that were told, and in the store where it is not. Only for who is
    /// woken by the commits that are announced later: the store may have these already.
    Told,
    Stored,
}

/// An event that was not looked at.
enum UnreadEvent {
    Event(Arc<Event>),
    Text(String),
}

impl UnreadEvent {
    fn event(self) -> Option<Arc<Event>> {
        match self {
            Self::Event(event) => Some(event),
            Self::Text(body) => read(&body).map(Arc::new),
        }
    }
}

/// The events of a run from its first one on. Futures of `try_next` and `wait` can be dropped: nothing
/// is lost.
pub struct RunEvents {
    shared: Arc<Shared>,
    caller: Caller,
    run: SessionRun,
    /// Tells its events from those of the runs beside it.
    own: RunEventFilter,
    /// The last event that was read, and those behind it that were not looked at.
    after: u64,
    page: VecDeque<(u64, UnreadEvent)>,
    watch: Watch,
    ahead: NextEvents,
}

impl RunEvents {
    /// Begins where the session's journal does.
    fn new(shared: &Arc<Shared>, caller: &Caller, run: SessionRun, watch: Watch) -> Self {
        Self {
            shared: shared.clone(),
            caller: caller.clone(),
            own: RunEventFilter::new(run.row.id, 0),
            after: 0,
            page: VecDeque::new(),
            watch,
            ahead: NextEvents::Stored,
            run,
        }
    }

    /// The run as its events began to be followed.
    pub fn run(&self) -> &SessionRun {
        &self.run
    }

    /// The next event that is there without waiting.
    pub async fn try_next(&mut self) -> Result<Option<Arc<Event>>> {
        loop {
            while let Some((seq, unread)) = self.page.pop_front() {
                self.after = seq;
                let event = unread.event().filter(|event| self.own.admits(event));
                if event.is_some() {
                    return Ok(event);
                }
            }
            if self.ahead == NextEvents::Nothing {
                return Ok(None);
            }
            self.read().await?;
            if self.page.is_empty() {
                // It may be removed, and then nothing comes any more.
                self.shared.runs().stored(&self.caller, self.run.row.id).await?;
                return Ok(None);
            }
        }
    }

    /// Waits until there may be more.
    pub async fn wait(&mut self) {
        // Commits that `try_next` noticed before it was given up do not wake again.
        if self.ahead != NextEvents::Nothing {
            return;
        }
        // Before the wait: a follower that gives it up, after a while, reads again all the same.
        self.ahead = NextEvents::Stored;
        self.watch.changed().await;
        self.ahead = NextEvents::Told;
    }

    /// What wakes who has looked at all there is, and will follow the run again from a place on:
    /// nothing else of it is kept for so long.
    pub(crate) fn into_watch(self) -> Watch {
        self.watch.asleep()
    }

    /// Gets the events that come next, for a caller that may still read them.
    async fn read(&mut self) -> Result<()> {
        let at_hand = match self.ahead {
            NextEvents::Told => self.watch.at_hand(self.run.session, self.after),
            NextEvents::Nothing | NextEvents::Stored => None,
        };
        if let Some(RecentEvents { events, are_newest }) = at_hand {
            self.ahead = if are_newest { NextEvents::Nothing } else { NextEvents::Told };
            self.page
                .extend(events.into_iter().map(|event| (event.seq, UnreadEvent::Event(event))));
        } else {
            // What was told before the read is in it.
            self.watch.notice();
            let store = &self.shared.store;
            let limit = self.shared.limits.page_items_max;
            let SessionRun { session, key, .. } = &self.run;
            let page = store.events_of(&key.realm, *session, self.after, limit).await?;
            self.unread(page);
        }
        match self.shared.gate.reads(&self.caller, run_of(&self.run)) {
            true => Ok(()),
            false => Err(Refusal::no_run(self.run.row.id)),
        }
    }

    /// A page out of the store comes next. One that is not full is the journal's end: a commit
    /// behind it wakes.
    fn unread(&mut self, page: Vec<(u64, String)>) {
        let is_full = page.len() >= self.shared.limits.page_items_max;
        self.ahead = if is_full { NextEvents::Stored } else { NextEvents::Nothing };
        self.page.extend(page.into_iter().map(|(seq, body)| (seq, UnreadEvent::Text(body))));
    }
}

impl Runs<'_> {
    /// Gives `apply` every event of a run that is recorded by now, in order. The run, as it is now.
    pub async fn replay(
        self,
        caller: &Caller,
        run: RunId,
        apply: &mut (dyn FnMut(&Event) + Send),
    ) -> Result<SessionRun> {
        let shared = self.shared;
        let limit = shared.limits.page_items_max;
        let found = shared.store.run_with_events(&caller.realm, run, limit).await?;
        let found = found.filter(|found| shared.gate.reads(caller, run_of(&found.run)));
        let RunWithEvents { run, events } = found.ok_or_else(|| Refusal::no_run(run))?;
        let is_first = run.row.no == 1;
        if is_first && events.len() < limit {
            // All that is recorded.
            let mut own = RunEventFilter::new(run.row.id, 0);
            for event in events.iter().filter_map(|(_, body)| read(body)) {
                if own.admits(&event) {
                    apply(&event);
                }
            }
            return Ok(run);
        }
        let mut followed = self.events_of(caller, run).await?;
        if is_first {
            followed.unread(events);
        }
        while let Some(event) = followed.try_next().await? {
            apply(&event);
        }
        Ok(followed.run)
    }

    /// The events of a run from its first one on, and those that come.
    pub async fn follow_events(
        self,
        caller: &Caller,
        started: impl Into<StartedRun>,
    ) -> Result<RunEvents> {
        let StartedRun { run, told, .. } = started.into();
        let Some(told) = told else {
            let found = self.stored(caller, run).await?;
            return self.events_of(caller, found).await;
        };
        let (found, watch) = *told;
        let events = RunEvents::new(self.shared, caller, found, watch);
        Ok(RunEvents { ahead: NextEvents::Told, ..events })
    }

    async fn events_of(self, caller: &Caller, found: SessionRun) -> Result<RunEvents> {
        let shared = self.shared;
        let run = found.row.id;
        // The first run of a session begins where its journal does.
        let start = match found.row.no {
            1 => None,
            _ => {
                let place = SessionRef::Id(found.session);
                let session = shared.store.session(&found.key.realm, &place).await?;
                let session = session.ok_or_else(|| Refusal::no_run(run))?;
                shared.newest_start(&found.key, session.seq, Some(run)).await?
            }
        };
        let watch = shared.watchers.watch(&found.key);
        let after = start.map_or(0, |(seq, _)| seq - 1);
        Ok(RunEvents { after, ..RunEvents::new(shared, caller, found, watch) })
    }
}
