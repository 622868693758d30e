//! The operations of the service: the name of each, and which messages it takes and gives. The
//! server, its clients and the servers of tests take them from here. A test holds this table
//! against `proto/a2a.proto`.

use super::schema::{self, Shape};

/// An operation of the service. Its name is its method of JSON-RPC, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Starts a task or answers one.
    SendMessage,
    /// The same, with the events of the task.
    SendStreamingMessage,
    GetTask,
    /// The tasks of the caller.
    ListTasks,
    /// Ends a task.
    CancelTask,
    /// One task, and its events from now on.
    SubscribeToTask,
    /// Makes a webhook.
    CreateTaskPushNotificationConfig,
    /// One webhook of a task.
    GetTaskPushNotificationConfig,
    /// The webhooks of a task.
    ListTaskPushNotificationConfigs,
    /// Removes a webhook.
    DeleteTaskPushNotificationConfig,
    /// The card with what the caller may use.
    GetExtendedAgentCard,
}

/// What the definition says about an operation.
struct Row {
    name: &'static str,
    request: &'static Shape,
    answer: &'static Shape,
}

const fn row(name: &'static str, request: &'static Shape, answer: &'static Shape) -> Row {
    Row { name, request, answer }
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::SendMessage,
        Self::SendStreamingMessage,
        Self::GetTask,
        Self::ListTasks,
        Self::CancelTask,
        Self::SubscribeToTask,
        Self::CreateTaskPushNotificationConfig,
        Self::GetTaskPushNotificationConfig,
        Self::ListTaskPushNotificationConfigs,
        Self::DeleteTaskPushNotificationConfig,
        Self::GetExtendedAgentCard,
    ];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.name() == name)
    }

    /// Its name in the service.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The message that it takes.
    pub fn request(self) -> &'static Shape {
        self.row().request
    }

    /// The message that it gives; one that streams gives several.
    pub fn answer(self) -> &'static Shape {
        self.row().answer
    }

    fn row(self) -> Row {
        match self {
            Self::SendMessage => {
                row("SendMessage", &schema::SEND_MESSAGE_REQUEST, &schema::SEND_MESSAGE_RESPONSE)
            }
            Self::SendStreamingMessage => {
                row("SendStreamingMessage", &schema::SEND_MESSAGE_REQUEST, &schema::STREAM_RESPONSE)
            }
            Self::GetTask => row("GetTask", &schema::GET_TASK_REQUEST, &schema::TASK),
            Self::ListTasks => {
                row("ListTasks", &schema::LIST_TASKS_REQUEST, &schema::LIST_TASKS_RESPONSE)
            }
            Self::CancelTask => row("CancelTask", &schema::CANCEL_TASK_REQUEST, &schema::TASK),
            Self::SubscribeToTask => {
                row("SubscribeToTask", &schema::SUBSCRIBE_REQUEST, &schema::STREAM_RESPONSE)
            }
            Self::CreateTaskPushNotificationConfig => {
                row("CreateTaskPushNotificationConfig", &schema::PUSH_CONFIG, &schema::PUSH_CONFIG)
            }
            Self::GetTaskPushNotificationConfig => row(
                "GetTaskPushNotificationConfig",
                &schema::GET_PUSH_CONFIG_REQUEST,
                &schema::PUSH_CONFIG,
            ),
            Self::ListTaskPushNotificationConfigs => row(
                "ListTaskPushNotificationConfigs",
                &schema::LIST_PUSH_CONFIGS_REQUEST,
                &schema::LIST_PUSH_CONFIGS_RESPONSE,
            ),
            Self::DeleteTaskPushNotificationConfig => row(
                "DeleteTaskPushNotificationConfig",
                &schema::DELETE_PUSH_CONFIG_REQUEST,
                &schema::EMPTY,
            ),
            Self::GetExtendedAgentCard => {
                row("GetExtendedAgentCard", &schema::EXTENDED_CARD_REQUEST, &schema::AGENT_CARD)
            }
        }
    }
}
