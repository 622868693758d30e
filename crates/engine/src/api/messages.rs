//! Runs as tasks of clients that read their own messages back: a message is recorded in the commit
//! of what it does, and a task is read from its run's events and from nothing else.

use crate::api::reading::follow::{RunStream, RunUpdate};
use crate::command::{Answer, Command, Replier};
use crate::gate::rights::run_of;
use crate::handles::{Asks, Runs, Sessions};
use crate::refusal::{Refusal, Result};
use crate::request::{Message, Once, RunReport};
use crate::waiting::idempotency::Turn;
use futures::FutureExt;
use kernel::ask::Reply;
use kernel::event::{self, Event, Fact};
use kernel::journal::projection::OnceRow;
use kernel::journal::task::{Task, TaskUpdate};
use kernel::tool::call::Caller;
use kernel::values::caller::Act;
use kernel::values::datum::BlobRef;
use kernel::values::ids::{AskId, RunId, SessionKey};
use std::collections::VecDeque;
use std::pin::pin;

/// A run, and the same as a task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskReport {
    /// The run.
    pub run: RunReport,
    /// What its events tell.
    pub task: Task,
}

/// Follows a task from a place in its run's journal on. Futures of `look` and `woken` can be
/// dropped: nothing is lost.
pub struct TaskStream {
    run: RunReport,
    events: RunStream,
    task: Task,
    /// The last event that the task is made from.
    seq: u64,
    /// Events after the place that were read already.
    held: VecDeque<Event>,
    updates: VecDeque<TaskUpdate>,
}

impl TaskStream {
    /// The run as the stream began.
    pub fn run(&self) -> &RunReport {
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
                None => match self.events.look().await? {
                    Some(RunUpdate::Event { body, .. }) => read(&body)?,
                    Some(
                        RunUpdate::Snapshot(_)
                        | RunUpdate::Delta(_)
                        | RunUpdate::Rest(_)
                        | RunUpdate::End(_),
                    ) => continue,
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
        self.events.woken().await;
    }

    /// Goes to the place where the stream begins: behind the last message with this id, where one
    /// is named and recorded, else behind all that was recorded when the run was read.
    async fn seek(&mut self, message: Option<&str>) -> Result<()> {
        let last = self.run.session.seq;
        // What was read behind the message.
        let mut behind: Option<VecDeque<Event>> = None;
        while let Some(update) = self.events.look().await? {
            let (seq, body) = match update {
                RunUpdate::Event { seq, body } => (seq, body),
                RunUpdate::Snapshot(_) | RunUpdate::Delta(_) => continue,
                RunUpdate::Rest(_) | RunUpdate::End(_) => break,
            };
            let event = read(&body)?;
            if seq > last {
                behind.get_or_insert_default().push_back(event);
                break;
            }
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
        while let Some(update) = self.events.look().await? {
            let (seq, body) = match update {
                RunUpdate::Event { seq, body } => (seq, body),
                RunUpdate::Snapshot(_) | RunUpdate::Delta(_) => continue,
                RunUpdate::Rest(_) | RunUpdate::End(_) => break,
            };
            let event = read(&body)?;
            if seq > place {
                self.held.push_back(event);
                break;
            }
            self.apply(&event);
        }
        Ok(())
    }
}

impl Runs<'_> {
    /// A run and its task, as they are now.
    pub async fn task(self, caller: &Caller, run: RunId) -> Result<TaskReport> {
        let TaskStream { run, task, .. } = self.follow_task(caller, run, None).await?;
        Ok(TaskReport { run, task })
    }

    /// Follows a task: from behind the message with this id on, where one is named and recorded,
    /// else from now on.
    pub async fn follow_task(
        self,
        caller: &Caller,
        run: RunId,
        message: Option<&str>,
    ) -> Result<TaskStream> {
        let mut stream = self.replay_task(caller, run).await?;
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
        let mut events = self.follow(caller, run, None).await?.recorded_only();
        let Some(RunUpdate::Snapshot(report)) = events.look().await? else {
            return Err(Refusal::no_run(run));
        };
        let (task, held, updates) = (Task::default(), VecDeque::new(), VecDeque::new());
        Ok(TaskStream { run: *report, events, task, seq: 0, held, updates })
    }

    /// Refuses who may not add a message to a run.
    pub async fn permit_message(self, caller: &Caller, run: RunId) -> Result<()> {
        let found = self.stored(caller, run).await?;
        self.shared.gate.permit(caller, Act::Run, run_of(&found))
    }

    /// Adds a message to a run without answering anything, once that is durable.
    pub async fn note(self, caller: &Caller, run: RunId, message: Message) -> Result<RunReport> {
        let found = self.stored(caller, run).await?;
        self.shared.gate.permit(caller, Act::Run, run_of(&found))?;
        let (fact, by) = (Box::new(message.received(run)), Box::new(caller.clone()));
        self.begun(&found.key, run, |answer| Command::Change { run, fact, by, answer }).await
    }

    /// What an earlier request with this key did, if there was one. A request that holds the key
    /// is waited for.
    pub async fn done_before(self, caller: &Caller, once: &Once) -> Result<Option<OnceRow>> {
        match self.shared.turn(caller, Some(once)).await? {
            Turn::Repeat(row) => Ok(Some(row)),
            Turn::First(_) => Ok(None),
        }
    }

    /// Sends a command that moves a run, and gives the run once what the command did is durable,
    /// or why it was refused. A driver obeys in order: it reports after it has obeyed.
    pub(crate) async fn begun(
        self,
        key: &SessionKey,
        run: RunId,
        command: impl FnOnce(Answer<RunReport>) -> Command,
    ) -> Result<RunReport> {
        let mut answered = pin!(self.shared.ask(key, command));
        if let Some(report) = answered.as_mut().now_or_never() {
            return report;
        }
        let report = self.report_now(key, run).await;
        answered.now_or_never().unwrap_or(report)
    }
}

impl Asks<'_> {
    /// Answers one ask by a message that is recorded with the decision, and gives the run once
    /// both are durable. A repeat under the same key gets the outcome of the first.
    pub async fn reply_by(
        self,
        caller: &Caller,
        ask: AskId,
        reply: Reply,
        once: Option<Once>,
        message: Message,
    ) -> Result<RunReport> {
        let claim = match self.shared.turn(caller, once.as_ref()).await? {
            Turn::Repeat(row) => {
                return Ok(self.repeated_reply(caller, ask, &row, 0).await?.run);
            }
            Turn::First(claim) => claim,
        };
        let by = Replier { caller: caller.clone(), claim, message: Some(message) };
        match self.send_message(caller, ask, reply, Box::new(by)).await {
            Err(refusal) => {
                let row = self.shared.winner(caller, once.as_ref(), refusal).await?;
                Ok(self.repeated_reply(caller, ask, &row, 0).await?.run)
            }
            report => report,
        }
    }

    async fn send_message(
        self,
        caller: &Caller,
        ask: AskId,
        reply: Reply,
        by: Box<Replier>,
    ) -> Result<RunReport> {
        let found = self.get(caller, ask).await?;
        let command = |answer| Command::Reply { ask, reply, by, answer };
        let mut answered = pin!(self.shared.ask(&found.key, command));
        if let Some(report) = answered.as_mut().now_or_never() {
            return Ok(report?.run);
        }
        let run = self.shared.runs().report_now(&found.key, found.row.ask.run).await;
        match answered.now_or_never() {
            Some(report) => Ok(report?.run),
            None => run,
        }
    }
}

impl Sessions<'_> {
    /// Keeps a file that a message brings. It stays once an event holds it; else it is removed
    /// after a while.
    pub async fn keep_file(self, caller: &Caller, bytes: Vec<u8>) -> Result<BlobRef> {
        self.shared.storage.check(caller)?;
        Ok(self.shared.blobs.put(&caller.realm, bytes).await?)
    }
}

/// One event of a journal.
fn read(body: &str) -> Result<Event> {
    let events = event::read(&format!("[{body}]"));
    let event = events.map_err(|why| Refusal::unreadable(why.to_string()))?.into_iter().next();
    event.ok_or_else(|| Refusal::unreadable("an event of the journal is empty"))
}
