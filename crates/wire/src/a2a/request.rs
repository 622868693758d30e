//! Requests of A2A 1.0, and answers that are lists.

use super::message::Message;
use super::task::{Task, TaskState};
use super::value::{Struct, Timestamp, is_default, members, or_default};
use serde::{Deserialize, Serialize};

/// How a webhook is shown who sends to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuthenticationInfo {
    /// The scheme of HTTP: `Bearer`.
    #[serde(deserialize_with = "or_default")]
    pub scheme: String,
    /// What follows it.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub credentials: String,
}

/// A webhook for one task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskPushNotificationConfig {
    /// The tenant of the interface.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub tenant: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub id: String,
    #[serde(alias = "task_id", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub task_id: String,
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    /// What goes with every notification, for its receiver.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub token: String,
    /// How it is shown who sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication: Option<AuthenticationInfo>,
}

/// How a message is to be answered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SendMessageConfiguration {
    /// The media types that the client takes.
    #[serde(alias = "accepted_output_modes", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub accepted_output_modes: Vec<String>,
    /// A webhook for the task.
    #[serde(alias = "task_push_notification_config", skip_serializing_if = "Option::is_none")]
    pub task_push_notification_config: Option<TaskPushNotificationConfig>,
    /// How many messages of the history are wanted.
    #[serde(alias = "history_length", skip_serializing_if = "Option::is_none")]
    pub history_length: Option<i32>,
    /// Whether the answer is the task as it begins.
    #[serde(alias = "return_immediately", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub return_immediately: bool,
}

/// `SendMessage` and `SendStreamingMessage`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SendMessageRequest {
    /// The tenant of the interface.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub tenant: String,
    /// The message; it is required.
    pub message: Option<Message>,
    /// How it is to be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<SendMessageConfiguration>,
    #[serde(deserialize_with = "members", skip_serializing_if = "is_default")]
    pub metadata: Struct,
}

/// `GetTask`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GetTaskRequest {
    /// The tenant of the interface.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub tenant: String,
    #[serde(deserialize_with = "or_default")]
    pub id: String,
    /// How many messages of the history are wanted.
    #[serde(alias = "history_length", skip_serializing_if = "Option::is_none")]
    pub history_length: Option<i32>,
}

/// `ListTasks`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListTasksRequest {
    /// The tenant of the interface.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub tenant: String,
    /// Of this context only.
    #[serde(alias = "context_id", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub context_id: String,
    /// In this state only.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub status: TaskState,
    /// How many at once.
    #[serde(alias = "page_size", skip_serializing_if = "Option::is_none")]
    pub page_size: Option<i32>,
    /// Where the page begins, as the page before it said.
    #[serde(alias = "page_token", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub page_token: String,
    /// How many messages of each history are wanted.
    #[serde(alias = "history_length", skip_serializing_if = "Option::is_none")]
    pub history_length: Option<i32>,
    /// Only those whose status is not older.
    #[serde(alias = "status_timestamp_after", skip_serializing_if = "Option::is_none")]
    pub status_timestamp_after: Option<Timestamp>,
    /// Whether artifacts are wanted.
    #[serde(alias = "include_artifacts", skip_serializing_if = "Option::is_none")]
    pub include_artifacts: Option<bool>,
}

/// The answer to `ListTasks`; all of it is always there.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListTasksResponse {
    /// The tasks of this page.
    #[serde(deserialize_with = "or_default")]
    pub tasks: Vec<Task>,
    /// Where the next page begins; empty at the end.
    #[serde(alias = "next_page_token", deserialize_with = "or_default")]
    pub next_page_token: String,
    /// How many at once.
    #[serde(alias = "page_size", deserialize_with = "or_default")]
    pub page_size: i32,
    /// How many there are in all.
    #[serde(alias = "total_size", deserialize_with = "or_default")]
    pub total_size: i32,
}

/// `CancelTask`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CancelTaskRequest {
    /// The tenant of the interface.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub tenant: String,
    #[serde(deserialize_with = "or_default")]
    pub id: String,
    #[serde(deserialize_with = "members", skip_serializing_if = "is_default")]
    pub metadata: Struct,
}

/// `SubscribeToTask`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscribeToTaskRequest {
    /// The tenant of the interface.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub tenant: String,
    #[serde(deserialize_with = "or_default")]
    pub id: String,
}

/// `GetTaskPushNotificationConfig` and `DeleteTaskPushNotificationConfig`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PushNotificationConfigRequest {
    /// The tenant of the interface.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub tenant: String,
    #[serde(alias = "task_id", deserialize_with = "or_default")]
    pub task_id: String,
    /// The webhook's id.
    #[serde(deserialize_with = "or_default")]
    pub id: String,
}

/// `ListTaskPushNotificationConfigs`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListPushNotificationConfigsRequest {
    /// The tenant of the interface.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub tenant: String,
    #[serde(alias = "task_id", deserialize_with = "or_default")]
    pub task_id: String,
    /// How many at once.
    #[serde(alias = "page_size", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub page_size: i32,
    /// Where the page begins, as the page before it said.
    #[serde(alias = "page_token", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub page_token: String,
}

/// The answer to `ListTaskPushNotificationConfigs`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListPushNotificationConfigsResponse {
    /// The webhooks of this page.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub configs: Vec<TaskPushNotificationConfig>,
    /// Where the next page begins; empty at the end.
    #[serde(alias = "next_page_token", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub next_page_token: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn required_members_of_a_list_stay_and_defaults_go() {
        let empty = ListTasksResponse { page_size: 50, ..ListTasksResponse::default() };
        let written = json!({"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0});
        assert_eq!(serde_json::to_value(empty).unwrap(), written);
        let none = serde_json::to_value(ListPushNotificationConfigsResponse::default());
        assert_eq!(none.unwrap(), json!({}));
        let asked: ListTasksRequest = serde_json::from_value(json!({"context_id": "c",
            "status": 2, "historyLength": 0, "statusTimestampAfter": "2026-01-01T00:00:00Z"}))
        .unwrap();
        let written = json!({"contextId": "c", "status": "TASK_STATE_WORKING",
            "historyLength": 0, "statusTimestampAfter": "2026-01-01T00:00:00.000Z"});
        assert_eq!(serde_json::to_value(asked).unwrap(), written);
    }
}
