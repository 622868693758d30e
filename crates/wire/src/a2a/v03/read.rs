//! Reads answers of 0.3 agents into the types of 1.0. Members that differ in 0.3 are taken out and
//! read separately; the rest is read as 1.0.

use super::{Binding, CANCELLED, each, rest, rpc, state_of};
use crate::a2a::message::{Artifact, Message, Part};
use crate::a2a::task::{
    StreamResponse, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus, TaskStatusUpdateEvent,
};
use crate::a2a::value::or_default;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Error, Value};

impl Binding {
    pub fn read_task(self, mut task: Value) -> Result<Task, Error> {
        let status = self.read_status(take(&mut task, "status")?)?;
        let artifacts: Vec<Value> = take(&mut task, "artifacts")?;
        let artifacts = artifacts.into_iter().map(|artifact| self.read_artifact(artifact));
        let artifacts = artifacts.collect::<Result<_, _>>()?;
        let history: Vec<Value> = take(&mut task, "history")?;
        let history = history.into_iter().map(|message| self.read_message(message));
        let history = history.collect::<Result<_, _>>()?;
        Ok(Task { status, artifacts, history, ..Task::deserialize(task)? })
    }

    /// What a message is answered with; nothing where it is neither a task nor a message, which
    /// JSON-RPC says with an error of its own.
    pub fn read_answer(self, mut answer: Value) -> Result<Option<StreamResponse>, Error> {
        if self == Self::Rpc {
            return self.read_event(answer).map(Some);
        }
        let task: Option<Value> = take(&mut answer, "task")?;
        if let Some(task) = task {
            return Ok(Some(StreamResponse::Task(Box::new(self.read_task(task)?))));
        }
        let message = either(&mut answer, "message", "msg")?;
        let message = message.map(|message| self.read_message(message)).transpose()?;
        Ok(message.map(|message| StreamResponse::Message(Box::new(message))))
    }

    /// A bare object, by its `kind`.
    fn read_event(self, mut event: Value) -> Result<StreamResponse, Error> {
        let kind = event["kind"].as_str().unwrap_or_else(|| shape(&event)).to_owned();
        Ok(match kind.as_str() {
            "task" => StreamResponse::Task(Box::new(self.read_task(event)?)),
            "message" => StreamResponse::Message(Box::new(self.read_message(event)?)),
            "status-update" => {
                let status = self.read_status(take(&mut event, "status")?)?;
                let rest = TaskStatusUpdateEvent::deserialize(event)?;
                StreamResponse::StatusUpdate(Box::new(TaskStatusUpdateEvent { status, ..rest }))
            }
            "artifact-update" => {
                let artifact: Option<Value> = take(&mut event, "artifact")?;
                let artifact = artifact.map(|artifact| self.read_artifact(artifact)).transpose()?;
                let artifact = artifact.unwrap_or_default();
                let rest = TaskArtifactUpdateEvent::deserialize(event)?;
                let event = TaskArtifactUpdateEvent { artifact, ..rest };
                StreamResponse::ArtifactUpdate(Box::new(event))
            }
            other => return Err(Error::custom(format!("`{other}` is no kind of event"))),
        })
    }

    fn read_status(self, mut status: Value) -> Result<TaskStatus, Error> {
        let state: Value = take(&mut status, "state")?;
        let state = match self {
            Self::Rpc => state_of(&or_default::<_, String>(state)?),
            Self::Rest if state == CANCELLED => TaskState::Canceled,
            Self::Rest => or_default(state)?,
        };
        let message = match self {
            Self::Rpc => take(&mut status, "message")?,
            Self::Rest => either(&mut status, "message", "update")?,
        };
        let message = message.map(|message| self.read_message(message)).transpose()?;
        Ok(TaskStatus { state, message, ..or_default(status)? })
    }

    fn read_artifact(self, mut artifact: Value) -> Result<Artifact, Error> {
        let parts: Vec<Part> = match self {
            Self::Rpc => each::<rpc::Part, _>(take(&mut artifact, "parts")?),
            Self::Rest => each::<rest::Part, _>(take(&mut artifact, "parts")?),
        };
        Ok(Artifact { parts, ..Artifact::deserialize(artifact)? })
    }

    fn read_message(self, message: Value) -> Result<Message, Error> {
        match self {
            Self::Rpc => rpc::Message::deserialize(message).map(Message::from),
            Self::Rest => rest::Message::deserialize(message).map(Message::from),
        }
    }
}

/// The kind of what does not name it.
fn shape(value: &Value) -> &'static str {
    let has = |member: &str| value.get(member).is_some();
    match (has("artifact"), has("status"), has("id"), has("parts")) {
        (true, ..) => "artifact-update",
        (false, true, true, _) => "task",
        (false, true, false, _) => "status-update",
        (false, false, _, true) => "message",
        (false, false, _, false) => "",
    }
}

/// Takes a member out of an object; the default where it is null or not there.
fn take<T: DeserializeOwned + Default>(object: &mut Value, name: &str) -> Result<T, Error> {
    let value = object.as_object_mut().and_then(|members| members.remove(name));
    or_default(value.unwrap_or_default())
}

/// Takes a member that has one of two names.
fn either(object: &mut Value, name: &str, other: &str) -> Result<Option<Value>, Error> {
    let first: Option<Value> = take(object, name)?;
    let second: Option<Value> = take(object, other)?;
    Ok(first.or(second))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::a2a::message::{Content, Role};
    use serde_json::json;

    fn there_and_back(written: Value) -> StreamResponse {
        let response = Binding::Rpc.read_answer(written.clone()).unwrap().unwrap();
        assert_eq!(Binding::Rpc.event(&response, written["final"] == true), written);
        response
    }

    #[test]
    fn every_kind_is_the_same_in_1_0() {
        let message = json!({"kind": "message", "messageId": "m", "role": "agent", "parts": [
            {"kind": "text", "text": "hi"},
            {"kind": "file", "file": {"bytes": "dGNr", "name": "a.txt", "mimeType": "text/plain"}},
            {"kind": "file", "file": {"uri": "https://a.test/x"}},
            {"kind": "data", "data": {"n": 1}}]});
        let StreamResponse::Message(read) = there_and_back(message.clone()) else { panic!() };
        assert_eq!((read.role, read.words()), (Role::Agent, "hi".to_owned()));
        assert_eq!(read.parts[1].content, Content::Raw(b"tck".to_vec()));
        let status = json!({"state": "input-required", "message": message,
            "timestamp": "2026-01-02T03:04:05.678Z"});
        let artifact = json!({"artifactId": "a", "parts": [{"kind": "text", "text": "x"}]});
        let task = json!({"kind": "task", "id": "t", "contextId": "c", "status": status,
            "artifacts": [artifact], "history": [message]});
        let StreamResponse::Task(task) = there_and_back(task) else { panic!() };
        assert_eq!(task.status.state, TaskState::InputRequired);
        there_and_back(json!({"kind": "status-update", "taskId": "t", "contextId": "c",
            "status": {"state": "completed"}, "final": true}));
        there_and_back(json!({"kind": "artifact-update", "taskId": "t", "contextId": "c",
            "artifact": artifact, "append": true, "lastChunk": true}));
    }

    #[test]
    fn members_are_mapped_to_1_0() {
        let metadata = json!({"z": 1, "a": [2]});
        let part = json!({"kind": "text", "text": "x", "metadata": metadata});
        let message = json!({"kind": "message", "messageId": "m", "contextId": "c", "taskId": "t",
            "role": "user", "parts": [part], "metadata": metadata, "extensions": ["e"],
            "referenceTaskIds": ["r"]});
        let status = json!({"state": "working", "message": message});
        let artifact = json!({"artifactId": "a", "name": "n", "parts": [part]});
        for written in [
            json!({"kind": "task", "id": "t", "contextId": "", "status": status,
                "artifacts": [artifact], "history": [message], "metadata": metadata}),
            json!({"kind": "status-update", "taskId": "t", "contextId": "c", "status": status,
                "final": false, "metadata": metadata}),
            json!({"kind": "artifact-update", "taskId": "t", "contextId": "c",
                "artifact": artifact, "append": true, "metadata": metadata}),
        ] {
            let read = Binding::Rpc.read_answer(written.clone()).unwrap().unwrap();
            assert_eq!(Binding::Rpc.event(&read, false).to_string(), written.to_string());
        }
    }

    #[test]
    fn an_object_without_kind_is_known_by_its_shape() {
        for (value, is_task) in [
            (json!({"id": "t", "contextId": "c", "status": {"state": "working"}}), true),
            (json!({"role": "agent", "messageId": "m", "parts": []}), false),
        ] {
            let answer = Binding::Rpc.read_answer(value).unwrap();
            assert_eq!(matches!(answer, Some(StreamResponse::Task(_))), is_task);
        }
        assert!(Binding::Rpc.read_answer(json!({"kind": "song"})).is_err());
        assert!(Binding::Rpc.read_answer(json!({})).is_err());
    }

    #[test]
    fn a_task_over_http_is_the_same_in_1_0() {
        let written = json!({"id": "t", "contextId": "c", "status": {
            "state": "TASK_STATE_CANCELLED", "message": {"messageId": "m", "role": "ROLE_AGENT",
            "content": [{"text": "over"}]}}, "artifacts": [{"artifactId": "a", "parts": [
                {"file": {"fileWithBytes": "dGNr", "mimeType": "text/plain", "name": "a.txt"}},
                {"file": {"fileWithUri": "https://a.test/x"}},
                {"data": {"data": {"n": 1}}}]}]});
        let task = Binding::Rest.read_task(written.clone()).unwrap();
        assert_eq!(task.status.state, TaskState::Canceled);
        assert_eq!(task.status.message.as_ref().unwrap().words(), "over");
        assert_eq!(task.artifacts[0].parts[2].as_data(), Some(&json!({"n": 1})));
        assert_eq!(Binding::Rest.task(&task).to_string(), written.to_string());
    }

    #[test]
    fn a_message_over_http_is_written_with_content() {
        let message = Message {
            message_id: "m".to_owned(),
            role: Role::User,
            parts: vec![Part::text("hi"), Part::data(json!([1]))],
            ..Message::default()
        };
        let written = json!({"message": {"messageId": "m", "role": "ROLE_USER",
            "content": [{"text": "hi"}, {"text": "[1]"}]}, "configuration": {"blocking": false}});
        assert_eq!(Binding::Rest.send_request(&message), written);
        let answer = json!({"msg": {"message_id": "m", "role": 2}});
        let Some(StreamResponse::Message(old)) = Binding::Rest.read_answer(answer).unwrap() else {
            panic!()
        };
        assert_eq!(old.role, Role::Agent);
    }

    #[test]
    fn a_stream_over_http_says_which_event_is_its_last() {
        let event = TaskStatusUpdateEvent {
            task_id: "t".to_owned(),
            status: TaskStatus { state: TaskState::Canceled, ..TaskStatus::default() },
            ..TaskStatusUpdateEvent::default()
        };
        let event = StreamResponse::StatusUpdate(Box::new(event));
        let written = json!({"statusUpdate": {"taskId": "t", "contextId": "",
            "status": {"state": "TASK_STATE_CANCELLED"}, "final": true}});
        assert_eq!(Binding::Rest.event(&event, true).to_string(), written.to_string());
    }

    #[test]
    fn unreadable_objects_are_refused_with_a_reason() {
        let status = |status: Value| json!({"kind": "task", "id": "t", "status": status});
        for (answer, why) in [
            (json!({"kind": "song"}), "`song` is no kind of event"),
            (status(json!(1)), "invalid type: integer `1`, expected struct TaskStatus"),
            (status(json!({"state": 1})), "invalid type: integer `1`, expected a string"),
            (status(json!({"message": 1})), "invalid type: integer `1`, expected struct Message"),
            (
                json!({"kind": "message", "parts": [{"kind": "song"}]}),
                "unknown variant `song`, expected one of `text`, `file`, `data`",
            ),
        ] {
            let told = Binding::Rpc.read_answer(answer).unwrap_err().to_string();
            assert_eq!(told, why);
        }
        let unknown = json!({"id": "t", "status": {"state": "TASK_STATE_LOST"}});
        let told = Binding::Rest.read_task(unknown).unwrap_err().to_string();
        assert_eq!(told, "`TASK_STATE_LOST` is not a state of a task");
    }
}
