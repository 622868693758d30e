//! A task as it is now (`TaskReport`), and the updates of a task that is followed (`TaskStream`):
//! both are computed from the events of its run.

use super::task::{Task, TaskUpdate};
use engine::{Engine, Refusal, RunEvents, StartedRun};
use kernel::contracts::SessionRun;
use kernel::event::{Event, Fact};
use kernel::tool::call::Caller;
use kernel::values::ids::RunId;
use std::collections::VecDeque;
use std::sync::Arc;

type Result<T> = std::result::Result<T, Refusal>;

/// A run, and the task that a client of A2A sees of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskReport {
    pub(crate) run: SessionRun,
    /// What its events tell.
    pub(crate) task: Task,
}

impl TaskReport {
    /// Both as they are now.
    pub(crate) async fn read(engine: &Engine, caller: &Caller, run: RunId) -> Result<Self> {
        let mut task = Task::default();
        let mut apply = |event: &Event| drop(task.apply(event));
        let run = engine.runs().replay(caller, run, &mut apply).await?;
        Ok(Self { run, task })
    }
}

/// How far a follower is: the task as of the last event that was read, and the updates of that
/// event that were not given out yet.
#[derive(Debug, Default)]
struct TaskCursor {
    task: Task,
    /// The last event that the task is made from.
    seq: u64,
    updates: VecDeque<TaskUpdate>,
}

impl TaskCursor {
    /// Applies the next event, and keeps its updates for the follower.
    fn take(&mut self, event: &Event) {
        self.seq = event.seq;
        self.updates.extend(self.task.apply(event));
    }

    /// Applies an event whose updates the follower has already.
    fn skip(&mut self, event: &Event) {
        self.seq = event.seq;
        self.task.apply(event);
    }

    fn place(&self) -> u64 {
        if self.updates.is_empty() { self.seq } else { self.seq.saturating_sub(1) }
    }
}

/// Follows a task from a place in its run's journal on. Futures of `try_next` and `wait` can be
/// dropped: nothing is lost.
pub(crate) struct TaskStream {
    events: RunEvents,
    cursor: TaskCursor,
    /// Events behind the place that were read already.
    held: VecDeque<Arc<Event>>,
}

impl TaskStream {
    /// From its first event on.
    pub(crate) async fn replay(
        engine: &Engine,
        caller: &Caller,
        started: impl Into<StartedRun>,
    ) -> Result<Self> {
        let events = engine.runs().follow_events(caller, started).await?;
        Ok(Self { events, cursor: TaskCursor::default(), held: VecDeque::new() })
    }

    /// From behind the message with this id on, where one is named and recorded, else from now on.
    pub(crate) async fn follow(
        engine: &Engine,
        caller: &Caller,
        started: impl Into<StartedRun>,
        message: Option<&str>,
    ) -> Result<Self> {
        let mut stream = Self::replay(engine, caller, started).await?;
        stream.seek(message).await?;
        Ok(stream)
    }

    /// The run as the stream began.
    pub(crate) fn run(&self) -> &SessionRun {
        self.events.run()
    }

    /// The task as far as it was followed.
    pub(crate) fn task(&self) -> &Task {
        &self.cursor.task
    }

    /// The last event of the session's journal whose updates were all given, or lie before where
    /// the stream began: a webhook that begins behind it gets what follows.
    pub(crate) fn place(&self) -> u64 {
        self.cursor.place()
    }

    /// The next update that is there without waiting.
    pub(crate) async fn try_next(&mut self) -> Result<Option<TaskUpdate>> {
        loop {
            if let Some(update) = self.cursor.updates.pop_front() {
                return Ok(Some(update));
            }
            let event = match self.held.pop_front() {
                Some(event) => event,
                None => match self.events.try_next().await? {
                    Some(event) => event,
                    None => return Ok(None),
                },
            };
            self.cursor.take(&event);
        }
    }

    /// Waits until there may be more.
    pub(crate) async fn wait(&mut self) {
        self.events.wait().await;
    }

    /// Goes behind the last message with this id, where one is named and recorded, else behind all
    /// that is recorded.
    async fn seek(&mut self, message: Option<&str>) -> Result<()> {
        // What was read behind the message.
        let mut behind: Option<VecDeque<Arc<Event>>> = None;
        while let Some(event) = self.events.try_next().await? {
            let is_meant = match &event.fact {
                Fact::MessageReceived(received) => message == Some(&*received.id),
                _ => false,
            };
            match &mut behind {
                Some(held) if !is_meant => held.push_back(event),
                held => {
                    for event in held.take().into_iter().flatten().chain([event]) {
                        self.cursor.skip(&event);
                    }
                    *held = is_meant.then(VecDeque::new);
                }
            }
        }
        self.held = behind.unwrap_or_default();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const RUN: &str = "run_00000000000000000000000000000007";

    /// A task that asks, is answered and completes with an answer, beside the events of another
    /// run.
    fn events() -> Vec<Event> {
        let ask = format!("ask_{:032x}", 1);
        let facts = [
            json!({"type": "run.started", "data": {"run": RUN, "plan": "p", "closure": "c",
                "input": {"value": {}, "from": "input"}, "by": "ann", "frame": 1,
                "start": "ask"}}),
            json!({"type": "ask.opened", "data": {"id": ask, "run": RUN, "frame": 1,
                "step": "ask", "title": "go on?", "body": {"kind": "clarify",
                "message": "go on?"}, "digest": "d", "createdAt": 1}}),
            json!({"type": "ask.decided", "data": {"ask": ask, "decision": {"by": "ann",
                "at": 1, "reply": {"kind": "clarify", "answer": "yes"}}}}),
            json!({"type": "step.chosen", "data": {"frame": 1, "step": "s", "next": null}}),
            json!({"type": "run.ended", "data": {"run": RUN, "outcome": {"how": "completed",
                "answer": {"value": "yes", "from": "plan"}}}}),
        ];
        // The events between them are of another run.
        let numbered = (1_u64..).step_by(2).zip(facts);
        let events: Vec<Value> = numbered
            .map(|(seq, fact)| {
                json!({"seq": seq, "at": seq, "v": 1, "type": fact["type"], "data": fact["data"]})
            })
            .collect();
        kernel::event::read(&Value::Array(events).to_string()).unwrap()
    }

    /// The updates behind a place, each with the place behind it.
    fn updates(events: &[Event], place: u64) -> Vec<(TaskUpdate, u64)> {
        let mut cursor = TaskCursor::default();
        let mut updates = Vec::new();
        for event in events {
            if event.seq <= place {
                cursor.skip(event);
            } else {
                cursor.take(event);
            }
            while let Some(update) = cursor.updates.pop_front() {
                updates.push((update, cursor.place()));
            }
        }
        updates
    }

    #[test]
    fn a_task_is_followed_from_any_of_its_places_on() {
        let events = events();
        let all = updates(&events, 0);
        assert!(all.len() >= 4, "{all:?}");
        for (index, (_, place)) in all.iter().enumerate() {
            let rest = updates(&events, *place);
            assert!(all.ends_with(&rest), "{rest:?} is not the end of {all:?}");
            assert!(rest.len() + index + 1 >= all.len(), "something is missing behind {place}");
        }
        let (_, last) = all.last().unwrap();
        assert_eq!(updates(&events, *last), [], "nothing is given twice");
    }
}
