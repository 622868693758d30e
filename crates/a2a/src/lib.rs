//! A2A: agents of others call this server. A task is a run, a context is a session. What is done is
//! in `operations`; the bindings of 1.0 in `v1`, and those of 0.3 in `v03`, only read requests and
//! write answers. `vault` has the same tasks in AgentVault's profile.
//! What a client sees of a task is made from the events of its run in `task`, and followed in
//! `task_stream`; `view` puts it into the words of the protocol.

mod choice;
mod card_keys;
mod documents;
mod push_parts;
mod state;
mod error;
mod proxy;
mod skills;
mod incoming;
mod task;
mod task_stream;
mod asks;
mod view;
mod repeats;
mod operations;
mod listing;
mod stream;
mod push;
mod incoming_request;
mod binding;
mod schemes;
mod card;
mod v03;
mod v1;
mod vault;
mod protocol_routes;
mod routes;

pub use card_keys::{CARD_KEYS_FILE, CardKeyError, CardKeys, given_keys, wrong_card_keys};
pub use choice::{ChooseSkill, SkillChoice};
pub use push::keep;
pub use push_parts::PushParts;
pub use routes::{TABLE, router};
pub use state::{A2a, Shared};
pub use task::TASK_REJECTED;
pub use vault::{METHODS as VAULT_METHODS, ROUTES as VAULT_ROUTES};

use edge::acts::Right;
use kernel::values::caller::Act;

/// One operation, in all bindings, and who asks policy about it.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// The method of JSON-RPC and of gRPC.
    pub method: &'static str,
    /// The verb of HTTP.
    pub verb: &'static str,
    /// The path of HTTP below the address, or below the name of a realm there.
    pub path: &'static str,
    /// Who asks policy.
    pub right: Right,
    pub about: &'static str,
}

const fn operation(
    method: &'static str,
    verb: &'static str,
    path: &'static str,
    act: Act,
    about: &'static str,
) -> Operation {
    Operation { method, verb, path, right: Right::Engine(act), about }
}

/// All operations that are served.
pub const OPERATIONS: &[Operation] = &[
    operation("SendMessage", "POST", "/message:send", Act::Run, "starts a task or answers one"),
    operation(
        "SendStreamingMessage",
        "POST",
        "/message:stream",
        Act::Run,
        "the same, with the events of the task",
    ),
    operation("GetTask", "GET", "/tasks/{id}", Act::Read, "one task"),
    operation("ListTasks", "GET", "/tasks", Act::Read, "the tasks of the caller"),
    operation("CancelTask", "POST", "/tasks/{id}:cancel", Act::Cancel, "ends a task"),
    operation(
        "SubscribeToTask",
        "GET",
        "/tasks/{id}:subscribe",
        Act::Read,
        "one task, and its events from now on",
    ),
    operation(
        "CreateTaskPushNotificationConfig",
        "POST",
        "/tasks/{id}/pushNotificationConfigs",
        Act::Run,
        "makes a webhook that is notified of what happens to a task",
    ),
    operation(
        "GetTaskPushNotificationConfig",
        "GET",
        "/tasks/{id}/pushNotificationConfigs/{configId}",
        Act::Read,
        "one webhook of a task, without its credentials",
    ),
    operation(
        "ListTaskPushNotificationConfigs",
        "GET",
        "/tasks/{id}/pushNotificationConfigs",
        Act::Read,
        "the webhooks of a task that the caller made",
    ),
    operation(
        "DeleteTaskPushNotificationConfig",
        "DELETE",
        "/tasks/{id}/pushNotificationConfigs/{configId}",
        Act::Run,
        "removes a webhook",
    ),
    operation(
        "GetExtendedAgentCard",
        "GET",
        "/extendedAgentCard",
        Act::Read,
        "the card with the skills that the caller may use",
    ),
];
