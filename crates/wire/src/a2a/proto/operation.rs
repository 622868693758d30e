//! The operations of the service: the name of each, and which messages it takes and gives. The
//! server, its clients and the servers of tests take them from here. A test holds this table
//! against `proto/a2a.proto`.

use super::schema::{self, Shape};

/// Operations, each with the message that it takes and the one that it gives.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident($request:ident) -> $answer:ident;)+) => {
        /// An operation of the service. Its name is its method of JSON-RPC, too.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Operation {
            $($(#[$doc])* $name,)+
        }

        impl Operation {
            /// All of them.
            pub const ALL: [Self; [$(stringify!($name)),+].len()] = [$(Self::$name),+];

            /// Its name in the service.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }

            /// The message that it takes.
            pub fn request(self) -> &'static Shape {
                match self {
                    $(Self::$name => &schema::$request,)+
                }
            }

            /// The message that it gives; one that streams gives several.
            pub fn answer(self) -> &'static Shape {
                match self {
                    $(Self::$name => &schema::$answer,)+
                }
            }
        }
    };
}

operations! {
    /// Starts a task or answers one.
    SendMessage(SEND_MESSAGE_REQUEST) -> SEND_MESSAGE_RESPONSE;
    /// The same, with the events of the task.
    SendStreamingMessage(SEND_MESSAGE_REQUEST) -> STREAM_RESPONSE;
    GetTask(GET_TASK_REQUEST) -> TASK;
    /// The tasks of the caller.
    ListTasks(LIST_TASKS_REQUEST) -> LIST_TASKS_RESPONSE;
    /// Ends a task.
    CancelTask(CANCEL_TASK_REQUEST) -> TASK;
    /// One task, and its events from now on.
    SubscribeToTask(SUBSCRIBE_REQUEST) -> STREAM_RESPONSE;
    /// Makes a webhook.
    CreateTaskPushNotificationConfig(PUSH_CONFIG) -> PUSH_CONFIG;
    /// One webhook of a task.
    GetTaskPushNotificationConfig(GET_PUSH_CONFIG_REQUEST) -> PUSH_CONFIG;
    /// The webhooks of a task.
    ListTaskPushNotificationConfigs(LIST_PUSH_CONFIGS_REQUEST) -> LIST_PUSH_CONFIGS_RESPONSE;
    /// Removes a webhook.
    DeleteTaskPushNotificationConfig(DELETE_PUSH_CONFIG_REQUEST) -> EMPTY;
    /// The card with what the caller may use.
    GetExtendedAgentCard(EXTENDED_CARD_REQUEST) -> AGENT_CARD;
}

impl Operation {
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.name() == name)
    }
}
