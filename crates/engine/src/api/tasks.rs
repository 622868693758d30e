//! Runs read and followed as tasks: a task is made of its run's events and of nothing else.

use crate::api::reading::own_events::{OwnEvents, read};
use crate::gate::rights::run_of;
use crate::handles::Runs;
use crate::refusal::{Refusal, Result};
use crate::request::RunReport;
use crate::shared::Shared;
use crate::waiting::feed::{RecentEvents, Watch};
use kernel::contracts::{RunWithEvents, SessionRef, SessionRun};
use kernel::event::{Event, Fact};
use kernel::journal::task::{Task, TaskUpdate};
use kernel::tool::call::Caller;
use kernel::values::ids::RunId;
use std::collections::VecDeque;
use std::sync::Arc;

/// A run, and the same as a task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskReport {
    pub run: SessionRun,
    /// What its events tell.
    pub task: Task,
}

/// A run that is followed as a task: one that was started just now, or any by its id.
#[derive(Debug)]
pub struct TaskRun {
    run: RunId,
    /// An earlier request with the same key started it.
    replayed: bool,
    /// The run and its session's watch, where that was told all that the run recorded.
    told: Option<Box<(SessionRun, Watch)>>,
}

impl TaskRun {
    /// A run that was started while its session was watched.
    pub(super) fn watched(report: RunReport, watch: Option<Watch>) -> Self {
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

impl From<RunId> for TaskRun {
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

/// Follows a task from a place in its run's journal on. Futures of `look` and `woken` can be
/// dropped: nothing is lost. Many streams are woken by one event: it is taken from the commit that
/// brought it, read once for all of them, and the store is asked by those alone that lag.
pub struct TaskStream {
    shared: Arc<Shared>,
    caller: Caller,
    run: SessionRun,
    /// Tells its events from those of the runs beside it.
    own: OwnEvents,
    /// The last event that was read, and those behind it that were not looked at.
    after: u64,
    page: VecDeque<(u64, UnreadEvent)>,
    watch: Watch,
    ahead: NextEvents,
    task: Task,
    /// The last event that the task is made from.
    seq: u64,
    /// Events after the place that were read already.
    held: VecDeque<Arc<Event>>,
    updates: VecDeque<TaskUpdate>,
}

impl TaskStream {
    /// Begins where the session's journal does.
    fn new(shared: &Arc<Shared>, caller: &Caller, run: SessionRun, watch: Watch) -> Self {
        Self {
            shared: shared.clone(),
            caller: caller.clone(),
            own: OwnEvents::new(run.row.id, 0),
            after: 0,
            page: VecDeque::new(),
            watch,
            ahead: NextEvents::Stored,
            task: Task::default(),
            seq: 0,
            held: VecDeque::new(),
            updates: VecDeque::new(),
            run,
        }
    }

    /// The run as the stream began.
    pub fn run(&self) -> &SessionRun {
        &self.run
    }

    /// The task as far as it was followed.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The last event of the session's journal whose updates were all given, or lie before where
    /// the stream began: one that begins behind it gives what follows.
    pub fn place(&self) -> u64 {
        if self.updates.is_empty() { self.seq } else { self.seq.saturating_sub(1) }
    }

    /// Whether all updates of the last event were given; its place is behind that event then.
    pub fn is_between_events(&self) -> bool {
        self.updates.is_empty()
    }

    /// The next update that is there without waiting.
    pub async fn look(&mut self) -> Result<Option<TaskUpdate>> {
        loop {
            if let Some(update) = self.updates.pop_front() {
                return Ok(Some(update));
            }
            let event = match self.held.pop_front() {
                Some(event) => event,
                None => match self.event().await? {
                    Some(event) => event,
                    None => return Ok(None),
                },
            };
            let updates = self.apply(&event);
            self.updates.extend(updates);
        }
    }

    fn apply(&mut self, event: &Event) -> Vec<TaskUpdate> {
        self.seq = event.seq;
        self.task.apply(event)
    }

    /// Waits until there may be more.
    pub async fn woken(&mut self) {
        // Commits that a look noticed before it was given up do not wake again.
        if self.ahead != NextEvents::Nothing {
            return;
        }
        // Before the wait: a follower that gives it up, after a while, reads again all the same.
        self.ahead = NextEvents::Stored;
        self.watch.changed().await;
        self.ahead = NextEvents::Told;
    }

    /// The run's next event that is recorded.
    async fn event(&mut self) -> Result<Option<Arc<Event>>> {
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

    /// Goes to the place where the stream begins: behind the last message with this id, where one
    /// is named and recorded, else behind all that is recorded.
    async fn seek(&mut self, message: Option<&str>) -> Result<()> {
        // What was read behind the message.
        let mut behind: Option<VecDeque<Arc<Event>>> = None;
        while let Some(event) = self.event().await? {
            let is_meant = match &event.fact {
                Fact::MessageReceived(received) => message == Some(&*received.id),
                _ => false,
            };
            match &mut behind {
                Some(held) if !is_meant => held.push_back(event),
                held => {
                    for event in held.take().into_iter().flatten().chain([event]) {
                        self.apply(&event);
                    }
                    *held = is_meant.then(VecDeque::new);
                }
            }
        }
        self.held = behind.unwrap_or_default();
        Ok(())
    }

    /// Goes to the place behind this event.
    async fn seek_after(&mut self, place: u64) -> Result<()> {
        while let Some(event) = self.event().await? {
            if event.seq > place {
                self.held.push_back(event);
                break;
            }
            self.apply(&event);
        }
        Ok(())
    }
}

/// What these events of a session tell of a run; they begin with its start or before.
fn task_of(run: RunId, events: &[(u64, String)]) -> Task {
    let mut own = OwnEvents::new(run, 0);
    let mut task = Task::default();
    for event in events.iter().filter_map(|(_, body)| read(body)) {
        if own.admits(&event) {
            task.apply(&event);
        }
    }
    task
}

impl Runs<'_> {
    /// A run and its task, as they are now.
    pub async fn task(self, caller: &Caller, run: RunId) -> Result<TaskReport> {
        let shared = self.shared;
        let limit = self.shared.limits.page_items_max;
        let found = shared.store.run_with_events(&caller.realm, run, limit).await?;
        let found = found.filter(|found| shared.gate.reads(caller, run_of(&found.run)));
        let RunWithEvents { run, events } = found.ok_or_else(|| Refusal::no_run(run))?;
        let is_first = run.row.no == 1;
        if is_first && events.len() < limit {
            // All that is recorded.
            let task = task_of(run.row.id, &events);
            return Ok(TaskReport { run, task });
        }
        let mut stream = self.replayed(caller, run).await?;
        if is_first {
            stream.unread(events);
        }
        stream.seek(None).await?;
        let TaskStream { run, task, .. } = stream;
        Ok(TaskReport { run, task })
    }

    /// Follows a task: from behind the message with this id on, where one is named and recorded,
    /// else from now on.
    pub async fn follow_task(
        self,
        caller: &Caller,
        started: impl Into<TaskRun>,
        message: Option<&str>,
    ) -> Result<TaskStream> {
        let TaskRun { run, told, .. } = started.into();
        let mut stream = match told {
            None => self.replay_task(caller, run).await?,
            Some(told) => {
                let (found, watch) = *told;
                let stream = TaskStream::new(self.shared, caller, found, watch);
                TaskStream { ahead: NextEvents::Told, ..stream }
            }
        };
        stream.seek(message).await?;
        Ok(stream)
    }

    /// Follows a task from behind this event of its session's journal on.
    pub async fn follow_task_after(
        self,
        caller: &Caller,
        run: RunId,
        place: u64,
    ) -> Result<TaskStream> {
        let mut stream = self.replay_task(caller, run).await?;
        stream.seek_after(place).await?;
        Ok(stream)
    }

    /// Follows a task from its first event on.
    pub async fn replay_task(self, caller: &Caller, run: RunId) -> Result<TaskStream> {
        let found = self.stored(caller, run).await?;
        self.replayed(caller, found).await
    }

    async fn replayed(self, caller: &Caller, found: SessionRun) -> Result<TaskStream> {
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
        Ok(TaskStream { after, ..TaskStream::new(shared, caller, found, watch) })
    }
}
