//! Writes types of 1.0 in the JSON of 0.3: an object is written as in 1.0, and then members that
//! differ in 0.3 are changed. Members that are new in 1.0 stay.

use super::Binding;
use crate::a2a::message::{Message, Role};
use crate::a2a::request::TaskPushNotificationConfig;
use crate::a2a::task::{StreamResponse, Task, TaskState};
use crate::a2a::value::Struct;
use serde_json::{Value, json};

impl Binding {
    pub fn task(self, task: &Task) -> Value {
        // The context is there also where it is empty.
        let mut written = after(json!({"id": "", "contextId": ""}), json!(task));
        within(&mut written, "status", |status| self.change_status(status));
        within(&mut written, "artifacts", |artifact| self.change_artifact(artifact));
        within(&mut written, "history", |message| self.change_message(message));
        self.with_kind("task", written)
    }

    pub fn message(self, message: &Message) -> Value {
        let mut written = json!(message);
        self.change_message(&mut written);
        written
    }

    /// What a message is answered with, and what a stream brings; `is_last` where the stream ends
    /// after it.
    pub fn event(self, response: &StreamResponse, is_last: bool) -> Value {
        let (name, event) = match response {
            StreamResponse::Task(task) => ("task", self.task(task)),
            StreamResponse::Message(message) => ("message", self.message(message)),
            StreamResponse::StatusUpdate(event) => {
                let first =
                    json!({"taskId": "", "contextId": "", "status": null, "final": is_last});
                let mut written = after(first, json!(event));
                within(&mut written, "status", |status| self.change_status(status));
                ("statusUpdate", self.with_kind("status-update", written))
            }
            StreamResponse::ArtifactUpdate(event) => {
                let mut written = json!(event);
                within(&mut written, "artifact", |artifact| self.change_artifact(artifact));
                ("artifactUpdate", self.with_kind("artifact-update", written))
            }
        };
        match self {
            Self::Rpc => event,
            Self::Rest => json!({name: event}),
        }
    }

    /// The parameters or the body that send a message; the answer does not wait for the end of the
    /// task.
    pub fn send_request(self, message: &Message) -> Value {
        json!({"message": self.message(message), "configuration": {"blocking": false}})
    }

    /// A webhook of a task.
    pub fn webhook(self, config: &TaskPushNotificationConfig) -> Value {
        let TaskPushNotificationConfig { id, task_id, .. } = config;
        let mut shown = json!(TaskPushNotificationConfig {
            tenant: String::new(),
            task_id: String::new(),
            ..config.clone()
        });
        within(&mut shown, "authentication", |authentication| {
            rename(authentication, |name, value| match name.as_str() {
                "scheme" => Some(("schemes".to_owned(), json!([value]))),
                _ => Some((name, value)),
            });
        });
        match self {
            Self::Rpc => json!({"taskId": task_id, "pushNotificationConfig": shown}),
            Self::Rest => {
                let name = format!("tasks/{task_id}/pushNotificationConfigs/{id}");
                json!({"name": name, "pushNotificationConfig": shown})
            }
        }
    }

    fn change_status(self, status: &mut Value) {
        within(status, "state", |state| {
            let known = state.as_str().and_then(TaskState::from_word);
            *state = json!(self.state_word(known.unwrap_or_default()));
        });
        within(status, "message", |message| self.change_message(message));
    }

    fn change_artifact(self, artifact: &mut Value) {
        within(artifact, "parts", |part| self.change_part(part));
    }

    fn change_message(self, message: &mut Value) {
        within(message, "parts", |part| self.change_part(part));
        match self {
            Self::Rpc => {
                within(message, "role", |role| {
                    *role = json!(if *role == Role::Agent.word() { "agent" } else { "user" });
                });
                *message = self.with_kind("message", message.take());
            }
            Self::Rest => rename(message, |name, value| match name.as_str() {
                "parts" => Some(("content".to_owned(), value)),
                // The proto has no place for them.
                "referenceTaskIds" => None,
                _ => Some((name, value)),
            }),
        }
    }

    fn change_part(self, part: &mut Value) {
        let Value::Object(mut members) = part.take() else { return };
        let metadata = members.remove("metadata").map(|metadata| ("metadata", metadata));
        let (name, content) = match (self, members.remove("text"), members.remove("data")) {
            (_, Some(text), _) => ("text", text),
            (Self::Rpc, None, Some(data)) => ("data", data),
            // Only objects have a place in the proto.
            (Self::Rest, None, Some(data @ Value::Object(_))) => ("data", json!({"data": data})),
            (Self::Rest, None, Some(other)) => ("text", json!(other.to_string())),
            (_, None, None) => ("file", self.file(members)),
        };
        let written = [(name, content)].into_iter().chain(metadata).collect();
        *part = self.with_kind(name, written);
    }

    /// What is left of a part that holds a file.
    fn file(self, mut members: Struct) -> Value {
        let names = match self {
            Self::Rpc => {
                [("raw", "bytes"), ("url", "uri"), ("filename", "name"), ("mediaType", "mimeType")]
            }
            Self::Rest => [
                ("url", "fileWithUri"),
                ("raw", "fileWithBytes"),
                ("mediaType", "mimeType"),
                ("filename", "name"),
            ],
        };
        names.into_iter().filter_map(|(name, old)| Some((old, members.remove(name)?))).collect()
    }

    fn with_kind(self, kind: &str, written: Value) -> Value {
        match self {
            Self::Rpc => after(json!({"kind": kind}), written),
            Self::Rest => written,
        }
    }
}

/// An object with the members of another after its own; one that both have is the other's.
fn after(first: Value, rest: Value) -> Value {
    match (first, rest) {
        (Value::Object(mut first), Value::Object(rest)) => {
            first.extend(rest);
            Value::Object(first)
        }
        (_, rest) => rest,
    }
}

/// Changes the value of a member, or each value of a list, where it is there.
fn within(object: &mut Value, name: &str, change: impl Fn(&mut Value)) {
    match object.get_mut(name) {
        Some(Value::Array(items)) => items.iter_mut().for_each(change),
        Some(value) => change(value),
        None => {}
    }
}

/// Gives each member of an object another name or value, or leaves it out.
fn rename(object: &mut Value, change: impl Fn(String, Value) -> Option<(String, Value)>) {
    if let Value::Object(members) = object.take() {
        *object = members.into_iter().filter_map(|(name, value)| change(name, value)).collect();
    }
}
