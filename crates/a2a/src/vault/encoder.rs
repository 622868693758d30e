//! What happens to a task in the profile's events, for one who follows it: a stream, or a webhook.

use super::super::push::{JSON, NoticeWriter};
use super::super::task::{Chunk, Task, TaskState, TaskUpdate};
use super::super::view::Viewer;
use super::progress::{Frame, Status, TaskProgress};
use super::words::{self, Numbers};
use kernel::values::ids::Millis;
use serde_json::json;
use wire::a2a::message::Message;
use wire::a2a::value::Timestamp;

/// Tells one task.
pub(crate) struct TaskEncoder {
    course: TaskProgress,
    numbers: Numbers,
    /// What stands before all updates, as long as it was not told.
    first: Option<Frame>,
}

impl TaskEncoder {
    /// Of a task that is followed from its start.
    pub(super) fn new(viewer: &Viewer, started_at: Millis) -> Self {
        let course = TaskProgress::new(viewer.id());
        let first = Some(course.begun(Timestamp(started_at.0)));
        Self { course, numbers: Numbers::default(), first }
    }

    /// Of a task that was reported so far.
    async fn behind(viewer: &Viewer, task: &Task) -> Self {
        let course = TaskProgress::at(viewer.id(), viewer.state(&task.state));
        let mut numbers = Numbers::default();
        for chunk in task.chunks.iter().filter(|chunk| matches!(chunk, Chunk::Published(_))) {
            if let Some(event) = viewer.chunk(chunk).await {
                numbers.artifacts(event.artifact, event.append);
            }
        }
        Self { course, numbers, first: None }
    }

    /// What stands before all updates, once.
    pub(super) fn first(&mut self) -> Option<Frame> {
        self.first.take()
    }

    /// The events that an update at this time is.
    pub(super) async fn told(
        &mut self,
        viewer: &Viewer,
        update: &TaskUpdate,
        at: Millis,
    ) -> Vec<Frame> {
        let at = Timestamp(at.0);
        match update {
            TaskUpdate::Status(status) => {
                let shown = viewer.status(&status.state, status.at);
                let words = shown.message.as_ref().map(Message::words);
                let is_asking = matches!(status.state, TaskState::Asking(_));
                let asks = shown.message.filter(|_| is_asking).map(words::said);
                let status = Status { state: shown.state, asks, words };
                self.course.status(status, at)
            }
            TaskUpdate::Chunk(chunk) => {
                let Some(event) = viewer.chunk(chunk).await else { return Vec::new() };
                match chunk {
                    Chunk::Answer(_) => self.course.answer(words::answer(event.artifact.parts), at),
                    Chunk::Published(_) => {
                        let made = self.numbers.artifacts(event.artifact, event.append);
                        self.course.made(made, at)
                    }
                }
            }
        }
    }
}

/// An object for each event.
impl NoticeWriter for TaskEncoder {
    fn media_type(&self) -> &'static str {
        JSON
    }

    async fn follow(&mut self, viewer: &Viewer, task: &Task) {
        *self = Self::behind(viewer, task).await;
    }

    async fn notices(&mut self, viewer: &Viewer, task: &Task, update: &TaskUpdate) -> Vec<String> {
        let first = self.first();
        let told = self.told(viewer, update, task.changed_at).await;
        let frames = first.into_iter().chain(told);
        frames
            .map(|Frame { name, data, .. }| json!({"event": name, "data": data}).to_string())
            .collect()
    }
}

impl Viewer {
    /// Tells a task from its start.
    pub(crate) fn vault_encoder(&self, started_at: Millis) -> TaskEncoder {
        TaskEncoder::new(self, started_at)
    }
}
