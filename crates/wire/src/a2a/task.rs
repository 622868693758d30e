//! Tasks of A2A 1.0, their events, and the answer to a message.

use super::message::{Artifact, Message};
use super::value::{Struct, Timestamp, is_default, members, or_default, proto_enum};
use serde::{Deserialize, Serialize};

proto_enum! {
    /// The state of a task.
    TaskState, "a state of a task" {
        /// It is not said.
        #[default]
        Unspecified = 0 "TASK_STATE_UNSPECIFIED",
        /// It is known and has not begun.
        Submitted = 1 "TASK_STATE_SUBMITTED",
        /// It is being worked on.
        Working = 2 "TASK_STATE_WORKING",
        /// It is done.
        Completed = 3 "TASK_STATE_COMPLETED",
        /// It failed.
        Failed = 4 "TASK_STATE_FAILED",
        /// It was cancelled.
        Canceled = 5 "TASK_STATE_CANCELED",
        /// It waits for a message of the client.
        InputRequired = 6 "TASK_STATE_INPUT_REQUIRED",
        /// The agent does not take it.
        Rejected = 7 "TASK_STATE_REJECTED",
        /// It waits for an authorization.
        AuthRequired = 8 "TASK_STATE_AUTH_REQUIRED",
    }
}

impl TaskState {
    /// Whether nothing happens to the task any more.
    pub fn is_terminal(self) -> bool {
        use TaskState::{Canceled, Completed, Failed, Rejected};
        matches!(self, Completed | Failed | Canceled | Rejected)
    }

    /// Whether it waits for someone.
    pub fn is_interrupted(self) -> bool {
        matches!(self, TaskState::InputRequired | TaskState::AuthRequired)
    }
}

/// How a task is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskStatus {
    #[serde(deserialize_with = "or_default")]
    pub state: TaskState,
    /// What the agent says about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// Since when it is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Task {
    /// Its id, made by the agent.
    #[serde(deserialize_with = "or_default")]
    pub id: String,
    /// The context that it belongs to.
    #[serde(alias = "context_id", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub context_id: String,
    #[serde(deserialize_with = "or_default")]
    pub status: TaskStatus,
    /// What it made.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub artifacts: Vec<Artifact>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub history: Vec<Message>,
    #[serde(deserialize_with = "members", skip_serializing_if = "is_default")]
    pub metadata: Struct,
}

/// The status of a task changed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskStatusUpdateEvent {
    #[serde(alias = "task_id", deserialize_with = "or_default")]
    pub task_id: String,
    #[serde(alias = "context_id", deserialize_with = "or_default")]
    pub context_id: String,
    #[serde(deserialize_with = "or_default")]
    pub status: TaskStatus,
    #[serde(deserialize_with = "members", skip_serializing_if = "is_default")]
    pub metadata: Struct,
}

/// A task made something, or a part of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskArtifactUpdateEvent {
    #[serde(alias = "task_id", deserialize_with = "or_default")]
    pub task_id: String,
    #[serde(alias = "context_id", deserialize_with = "or_default")]
    pub context_id: String,
    /// What it made.
    #[serde(deserialize_with = "or_default")]
    pub artifact: Artifact,
    /// Whether its parts follow those that came before.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub append: bool,
    /// Whether nothing follows.
    #[serde(alias = "last_chunk", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub last_chunk: bool,
    #[serde(deserialize_with = "members", skip_serializing_if = "is_default")]
    pub metadata: Struct,
}

/// One event of a stream or a webhook, and what a message is answered with: exactly one of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StreamBody", into = "StreamBody")]
pub enum StreamResponse {
    Task(Box<Task>),
    Message(Box<Message>),
    /// The status changed. Never the answer to a message.
    StatusUpdate(Box<TaskStatusUpdateEvent>),
    /// An artifact came. Never the answer to a message.
    ArtifactUpdate(Box<TaskArtifactUpdateEvent>),
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StreamBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<Box<Task>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Box<Message>>,
    #[serde(alias = "status_update", skip_serializing_if = "Option::is_none")]
    status_update: Option<Box<TaskStatusUpdateEvent>>,
    #[serde(alias = "artifact_update", skip_serializing_if = "Option::is_none")]
    artifact_update: Option<Box<TaskArtifactUpdateEvent>>,
}

impl TryFrom<StreamBody> for StreamResponse {
    type Error = &'static str;

    fn try_from(body: StreamBody) -> Result<Self, Self::Error> {
        let StreamBody { task, message, status_update, artifact_update } = body;
        let found = [
            task.map(StreamResponse::Task),
            message.map(StreamResponse::Message),
            status_update.map(StreamResponse::StatusUpdate),
            artifact_update.map(StreamResponse::ArtifactUpdate),
        ];
        let mut found = found.into_iter().flatten();
        match (found.next(), found.next()) {
            (Some(response), None) => Ok(response),
            _ => Err("an answer has one of `task`, `message`, `statusUpdate` and `artifactUpdate`"),
        }
    }
}

impl From<StreamResponse> for StreamBody {
    fn from(response: StreamResponse) -> Self {
        let mut body = StreamBody::default();
        match response {
            StreamResponse::Task(task) => body.task = Some(task),
            StreamResponse::Message(message) => body.message = Some(message),
            StreamResponse::StatusUpdate(event) => body.status_update = Some(event),
            StreamResponse::ArtifactUpdate(event) => body.artifact_update = Some(event),
        }
        body
    }
}

impl Task {
    /// The same after this event: what a client knows of a task that it follows.
    pub fn apply(&mut self, event: StreamResponse) {
        match event {
            StreamResponse::Task(task) => *self = *task,
            StreamResponse::Message(_) => {}
            StreamResponse::StatusUpdate(event) => {
                let said = std::mem::replace(&mut self.status, event.status).message;
                self.history.extend(said);
            }
            StreamResponse::ArtifactUpdate(event) => self.take(*event),
        }
    }

    /// The same with this piece of what it made.
    pub fn take(&mut self, event: TaskArtifactUpdateEvent) {
        let TaskArtifactUpdateEvent { artifact: new, append, .. } = event;
        let known = self.artifacts.iter_mut().find(|known| known.artifact_id == new.artifact_id);
        match known {
            Some(known) if append => known.parts.extend(new.parts),
            Some(known) => *known = new,
            None => self.artifacts.push(new),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn event(value: Value) -> StreamResponse {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn states_are_read_by_name_and_by_number() {
        for (number, state) in TaskState::ALL.iter().enumerate() {
            let by_name: TaskState = serde_json::from_value(json!(state.word())).unwrap();
            let by_number: TaskState = serde_json::from_value(json!(number)).unwrap();
            assert_eq!((by_name, by_number), (*state, *state));
        }
        for wrong in [json!("completed"), json!(9), json!(-1), json!(true)] {
            assert!(serde_json::from_value::<TaskState>(wrong.clone()).is_err(), "{wrong}");
        }
        let ended: Vec<_> = TaskState::ALL.iter().filter(|state| state.is_terminal()).collect();
        assert_eq!(ended.len(), 4);
    }

    #[test]
    fn an_answer_is_one_of_four() {
        for written in [
            json!({"task": {"id": "t", "status": {"state": "TASK_STATE_WORKING"}}}),
            json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "a"}]}}),
            json!({"statusUpdate": {"taskId": "t", "contextId": "c",
                "status": {"state": "TASK_STATE_COMPLETED"}}}),
            json!({"artifactUpdate": {"taskId": "t", "contextId": "c", "append": true,
                "artifact": {"artifactId": "a", "parts": [{"text": "x"}]}, "lastChunk": true}}),
        ] {
            assert_eq!(serde_json::to_value(event(written.clone())).unwrap(), written);
        }
        for wrong in [json!({}), json!({"task": {"id": "t"}, "message": {"messageId": "m"}})] {
            assert!(serde_json::from_value::<StreamResponse>(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_task_is_known_by_its_events() {
        let mut task = Task::default();
        task.apply(event(json!({"task": {"id": "t", "status": {"state": 2,
            "message": {"messageId": "m", "role": 2, "parts": [{"text": "begun"}]}}}})));
        let chunk = |text: &str, append: bool| {
            event(json!({"artifactUpdate": {"taskId": "t", "append": append,
                "artifact": {"artifactId": "a", "parts": [{"text": text}]}}}))
        };
        for update in [chunk("old", false), chunk("new", false), chunk("er", true)] {
            task.apply(update);
        }
        task.apply(event(json!({"statusUpdate": {"taskId": "t", "status": {"state": 3}}})));
        assert_eq!(task.status.state, TaskState::Completed);
        assert_eq!(task.history[0].words(), "begun");
        let texts: Vec<_> = task.artifacts[0].parts.iter().filter_map(|p| p.as_text()).collect();
        assert_eq!(texts, ["new", "er"]);
    }
}
