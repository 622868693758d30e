//! Tasks in the words of A2A: what `task` makes of a run, for one caller.

use super::task::{self, Chunk, Line, TaskAsks, TaskUpdate};
use super::{asks, proxy};
use crate::state::Shared;
use edge::views::content::whole;
use kernel::ask::{Ask, AskStatus};
use kernel::contracts::{SessionAsk, SessionRun};
use kernel::event::ReceivedMessage;
use kernel::journal::projection::AskRow;
use kernel::tool::call::Caller;
use kernel::values::datum::DatumValue;
use kernel::values::fault::Fault;
use kernel::values::ids::{Millis, RunId, SessionId, SessionKey};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use wire::a2a::message::{Artifact, Content, Message, Part, Role};
use wire::a2a::task::{
    StreamResponse, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus, TaskStatusUpdateEvent,
};
use wire::a2a::value::Timestamp;

/// The id of the artifact that is the answer of a run.
const ANSWER: &str = "answer";
/// The id of an artifact whose event names none.
const UNNAMED: &str = "artifact";

/// A task as one caller sees it.
#[derive(Clone)]
pub(super) struct Viewer {
    a2a: Shared,
    caller: Arc<Caller>,
    session: SessionId,
    key: SessionKey,
    run: RunId,
    /// The client takes texts and no values: values are written as JSON text.
    texts_only: bool,
}

impl Viewer {
    /// For this run; `accepted` are the media types that the client takes, any where there are
    /// none.
    pub(super) fn new(
        a2a: &Shared,
        caller: &Arc<Caller>,
        run: &SessionRun,
        accepted: &[String],
    ) -> Self {
        let takes = |begins: &[&str]| {
            accepted.iter().any(|mode| begins.iter().any(|begin| mode.starts_with(begin)))
        };
        let takes_values =
            accepted.is_empty() || takes(&["application/json", "application/*", "*"]);
        Self {
            a2a: a2a.clone(),
            caller: caller.clone(),
            session: run.session,
            key: run.key.clone(),
            run: run.row.id,
            texts_only: !takes_values && takes(&["text/"]),
        }
    }

    /// The id of the task.
    pub(super) fn id(&self) -> String {
        self.run.to_string()
    }

    /// The id of its context.
    pub(super) fn context(&self) -> String {
        self.key.id.to_string()
    }

    /// Whether the caller may answer an ask of the task.
    pub(super) fn may_answer(&self, ask: &Ask) -> bool {
        let row = AskRow { ask: ask.clone(), status: AskStatus::Open, decision: None };
        let asked = SessionAsk { session: self.session, key: self.key.clone(), row };
        self.a2a.server.engine.asks().may_answer(&self.caller, &asked)
    }

    /// The state of the task for this caller.
    pub(super) fn state(&self, state: &task::TaskState) -> TaskState {
        match state {
            task::TaskState::Asking(asking) => self.asked(asking).0,
            task::TaskState::Submitted => TaskState::Submitted,
            task::TaskState::Working => TaskState::Working,
            task::TaskState::Completed => TaskState::Completed,
            task::TaskState::Failed(_) => TaskState::Failed,
            task::TaskState::Rejected(_) => TaskState::Rejected,
            task::TaskState::Cancelled => TaskState::Canceled,
        }
    }

    /// A state with what is said about it.
    pub(super) fn status(&self, state: &task::TaskState, at: Millis) -> TaskStatus {
        let (shown, message) = match state {
            task::TaskState::Asking(asking) => {
                let (shown, message) = self.asked(asking);
                (shown, Some(message))
            }
            task::TaskState::Failed(fault) | task::TaskState::Rejected(fault) => {
                (self.state(state), Some(self.failure(fault)))
            }
            task::TaskState::Submitted
            | task::TaskState::Working
            | task::TaskState::Completed
            | task::TaskState::Cancelled => (self.state(state), None),
        };
        TaskStatus { state: shown, message, timestamp: Some(Timestamp(at.0)) }
    }

    fn asked(&self, asking: &TaskAsks) -> (TaskState, Message) {
        let (state, message) = asks::status(&self.id(), asking, |ask| self.may_answer(ask));
        (state, self.placed(message))
    }

    fn failure(&self, fault: &Fault) -> Message {
        self.placed(Message {
            message_id: format!("{}-end", self.run),
            role: Role::Agent,
            parts: vec![Part::text(proxy::words(fault).unwrap_or_else(|| fault.to_string()))],
            ..Message::default()
        })
    }

    fn placed(&self, message: Message) -> Message {
        Message { task_id: self.id(), context_id: self.context(), ..message }
    }

    /// The whole task, with so many of its newest messages; all up to the limit where none is
    /// said.
    pub(super) async fn task(&self, task: &task::Task, history: Option<usize>) -> Task {
        let mut shown = self.bare(&task.state, task.changed_at);
        let most = self.a2a.serving.limits.a2a_history_max;
        let wanted = history.unwrap_or(most).min(most);
        let skipped = task.lines.len().saturating_sub(wanted);
        for line in &task.lines[skipped..] {
            shown.history.push(match line {
                Line::Received(received) => self.received(received).await,
                Line::Asked(asking) => self.asked(asking).1,
            });
        }
        for chunk in &task.chunks {
            if let Some(event) = self.chunk(chunk).await {
                shown.take(event);
            }
        }
        shown
    }

    /// The task without its history and what it made.
    pub(super) fn bare(&self, state: &task::TaskState, changed_at: Millis) -> Task {
        let status = self.status(state, changed_at);
        Task { id: self.id(), context_id: self.context(), status, ..Task::default() }
    }

    /// An update as a stream tells it; none where there is nothing to see.
    pub(super) async fn update(&self, update: &TaskUpdate) -> Option<StreamResponse> {
        match update {
            TaskUpdate::Status(status) => {
                let event = TaskStatusUpdateEvent {
                    task_id: self.id(),
                    context_id: self.context(),
                    status: self.status(&status.state, status.at),
                    ..TaskStatusUpdateEvent::default()
                };
                Some(StreamResponse::StatusUpdate(Box::new(event)))
            }
            TaskUpdate::Chunk(chunk) => {
                let event = self.chunk(chunk).await?;
                Some(StreamResponse::ArtifactUpdate(Box::new(event)))
            }
        }
    }

    /// A piece of what the task made; none where there is nothing to see.
    pub(super) async fn chunk(&self, chunk: &Chunk) -> Option<TaskArtifactUpdateEvent> {
        let (artifact, append, last_chunk) = match chunk {
            Chunk::Answer(answer) => {
                let value = whole(&self.a2a.server.engine, &self.caller, answer.to_value()).await;
                let value = proxy::opened(&self.a2a, &self.caller, value).await;
                (self.answer(value), false, true)
            }
            Chunk::Published(event) => {
                let artifact = published(event)?;
                (artifact, event["append"] == true, event["lastChunk"] == true)
            }
        };
        Some(TaskArtifactUpdateEvent {
            task_id: self.id(),
            context_id: self.context(),
            artifact,
            append,
            last_chunk,
            ..TaskArtifactUpdateEvent::default()
        })
    }

    fn answer(&self, value: Value) -> Artifact {
        let part = match value {
            Value::String(text) => Part::text(text),
            value if self.texts_only => Part::text(value.to_string()),
            value => Part::data(value),
        };
        Artifact { artifact_id: ANSWER.to_owned(), parts: vec![part], ..Artifact::default() }
    }

    /// A message of the client as it sent it: its files are bytes again.
    async fn received(&self, received: &ReceivedMessage) -> Message {
        let mut message = match &received.message.held {
            // Most messages are at hand: they are read where they are.
            DatumValue::Value(value) if value.is_object() => Message::deserialize(&**value),
            _ => {
                let value = received.message.to_value();
                serde_json::from_value(whole(&self.a2a.server.engine, &self.caller, value).await)
            }
        }
        .unwrap_or_default();
        for part in &mut message.parts {
            let Content::Url(url) = &part.content else { continue };
            let Some(file) = received.files.iter().find(|file| file.uri() == *url) else {
                continue;
            };
            let read = self.a2a.server.engine.sessions().blob(&self.caller, &file.hash).await;
            // One that is gone is named still.
            if let Ok(bytes) = read {
                part.content = Content::Raw(bytes);
            }
        }
        self.placed(message)
    }

    /// The answer of a completed task as a message, for a client that wants no task.
    pub(super) async fn as_message(&self, task: &task::Task) -> Option<Message> {
        let shown = self.task(task, Some(0)).await;
        if shown.status.state != TaskState::Completed {
            return None;
        }
        let parts: Vec<Part> = shown.artifacts.into_iter().flat_map(|made| made.parts).collect();
        let parts = if parts.is_empty() { vec![Part::text("")] } else { parts };
        Some(Message {
            message_id: format!("{}-end", self.run),
            context_id: self.context(),
            role: Role::Agent,
            parts,
            ..Message::default()
        })
    }
}

/// The artifact of a published event, if it is one: `parts` as A2A writes them, or one `text`,
/// `data` or `url`.
fn published(event: &Value) -> Option<Artifact> {
    let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
    let parts: Vec<Part> = match event.get("parts") {
        Some(parts) => serde_json::from_value(parts.clone()).ok()?,
        None => {
            let one = ["text", "data", "url"]
                .iter()
                .find_map(|key| Some(serde_json::json!({*key: event.get(*key)?})))?;
            vec![serde_json::from_value(one).ok()?]
        }
    };
    if parts.is_empty() {
        return None;
    }
    let id = text("artifactId");
    let artifact_id = if id.is_empty() { UNNAMED.to_owned() } else { id };
    let name = text("name");
    let description = text("description");
    Some(Artifact { artifact_id, name, description, parts, ..Artifact::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_published_event_is_an_artifact_if_it_has_something_to_show() {
        let made = published(&json!({"type": "a2a.artifact", "text": "half", "name": "draft"}));
        let made = made.unwrap();
        assert_eq!((made.artifact_id.as_str(), made.name.as_str()), (UNNAMED, "draft"));
        assert_eq!(made.parts[0].as_text(), Some("half"));
        let parts = json!({"artifactId": "a", "parts": [{"data": {"n": 1}}, {"text": "x"}]});
        assert_eq!(published(&parts).unwrap().parts.len(), 2);
        for wrong in [json!({}), json!({"parts": []}), json!({"parts": [{}]}), json!({"text": 1})] {
            assert_eq!(published(&wrong), None, "{wrong}");
        }
    }
}
