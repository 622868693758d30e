//! The operations of A2A 1.0 in all bindings and of 0.3 in both of its own, the methods of
//! AgentVault's profile, and the cards. One without a row fails the test.

use super::doors::{Door, Kind, PROXY, Thing, get, post, row};
use super::sending::{Key, Sending};
use super::site::{Facts, Site, text};
use kernel::values::caller::Act;
use serde_json::{Value, json};
use server::{A2A_OPERATIONS, A2aOperation, Right, VAULT_METHODS, VAULT_ROUTES};
use std::collections::{BTreeMap, BTreeSet};
use testkit::http::Answer;
use wire::a2a::{GRPC_SERVICE, HEADER_VERSION, SKILLS_EXTENSION, VERSION};

const ADDRESS: &str = "/a2a/v1";
/// That of AgentVault's profile.
const VAULT: &str = "/a2a";
/// Tasks that wait: each group of doors has one of its own.
pub(super) const TASKS: [&str; 6] =
    ["<task>", "<spare-task>", "<grpc-task>", "<vault-task>", "<old-task>", "<old-spare-task>"];
/// Where the paths of 0.3 are.
const OLD_ADDRESS: &str = "/a2a/v1/v1/";

/// An operation, with requests that it takes in JSON-RPC and over HTTP; over gRPC it takes those of
/// JSON-RPC. Each binding has a task of its own.
struct Operation {
    method: &'static str,
    thing: Thing,
    params: &'static str,
    /// Of HTTP, as readers know it and as it is asked for.
    route: &'static str,
    path: &'static str,
    body: &'static str,
}

const RPC_SEND: &str = r#"{"message": {"messageId": "rpc-send", "role": "ROLE_USER",
    "parts": [{"data": {"text": "x"}}],
    "metadata": {"https://waypost.dev/a2a/skills/v1": {"skill": "matrix::echo"}}}}"#;
const RPC_STREAM: &str = r#"{"message": {"messageId": "rpc-stream", "role": "ROLE_USER",
    "parts": [{"data": {"text": "x"}}],
    "metadata": {"https://waypost.dev/a2a/skills/v1": {"skill": "matrix::echo"}}}}"#;
const HTTP_SEND: &str = r#"{"message": {"messageId": "http-send", "role": "ROLE_USER",
    "parts": [{"data": {"text": "x"}}],
    "metadata": {"https://waypost.dev/a2a/skills/v1": {"skill": "matrix::echo"}}}}"#;
const HTTP_STREAM: &str = r#"{"message": {"messageId": "http-stream", "role": "ROLE_USER",
    "parts": [{"data": {"text": "x"}}],
    "metadata": {"https://waypost.dev/a2a/skills/v1": {"skill": "matrix::echo"}}}}"#;
const TASK: &str = r#"{"id": "<task>"}"#;
const HOOK: &str = r#"{"taskId": "<task>", "id": "hook", "url": "https://hooks.test/"}"#;
const NAMED_HOOK: &str = r#"{"taskId": "<task>", "id": "hook"}"#;
const HTTP_HOOK: &str = r#"{"id": "hook", "url": "https://hooks.test/"}"#;
const HOOKS: &str = "/a2a/v1/tasks/{id}/pushNotificationConfigs";
const HOOKS_PATH: &str = "/a2a/v1/tasks/<spare-task>/pushNotificationConfigs";
const HOOK_ROUTE: &str = "/a2a/v1/tasks/{id}/pushNotificationConfigs/{configId}";
const HOOK_PATH: &str = "/a2a/v1/tasks/<spare-task>/pushNotificationConfigs/hook";
const VAULT_TASK: &str = r#"{"id": "<vault-task>"}"#;
const VAULT_SEND: &str = r#"{"message": {"role": "user",
    "parts": [{"type": "data", "content": {"text": "x"}}],
    "metadata": {"https://waypost.dev/a2a/skills/v1": {"skill": "matrix::echo"}}}}"#;
const VAULT_CALL: &str = r#"{"message": {"role": "user", "parts": [{"type": "data", "content":
    {"target_mcp_server_id": "shelf", "tool_name": "shelf.take", "arguments": {}}}]}}"#;

/// Every operation, in an order in which all of it can be asked for, one after the other.
const OPERATIONS: &[Operation] = &[
    Operation {
        method: "GetTask",
        thing: Thing::Thread,
        params: TASK,
        route: "/a2a/v1/tasks/{id}",
        path: "/a2a/v1/tasks/<spare-task>",
        body: "",
    },
    Operation {
        method: "ListTasks",
        thing: Thing::List,
        params: "{}",
        route: "/a2a/v1/tasks",
        path: "/a2a/v1/tasks",
        body: "",
    },
    Operation {
        method: "SubscribeToTask",
        thing: Thing::Thread,
        params: TASK,
        route: "/a2a/v1/tasks/{id}:subscribe",
        path: "/a2a/v1/tasks/<spare-task>:subscribe",
        body: "",
    },
    Operation {
        method: "GetExtendedAgentCard",
        thing: Thing::List,
        params: "{}",
        route: "/a2a/v1/extendedAgentCard",
        path: "/a2a/v1/extendedAgentCard",
        body: "",
    },
    Operation {
        method: "SendMessage",
        thing: Thing::Catalog,
        params: RPC_SEND,
        route: "/a2a/v1/message:send",
        path: "/a2a/v1/message:send",
        body: HTTP_SEND,
    },
    Operation {
        method: "SendStreamingMessage",
        thing: Thing::Catalog,
        params: RPC_STREAM,
        route: "/a2a/v1/message:stream",
        path: "/a2a/v1/message:stream",
        body: HTTP_STREAM,
    },
    Operation {
        method: "CreateTaskPushNotificationConfig",
        thing: Thing::Thread,
        params: HOOK,
        route: HOOKS,
        path: HOOKS_PATH,
        body: HTTP_HOOK,
    },
    Operation {
        method: "GetTaskPushNotificationConfig",
        thing: Thing::Thread,
        params: NAMED_HOOK,
        route: HOOK_ROUTE,
        path: HOOK_PATH,
        body: "",
    },
    Operation {
        method: "ListTaskPushNotificationConfigs",
        thing: Thing::Thread,
        params: r#"{"taskId": "<task>"}"#,
        route: HOOKS,
        path: HOOKS_PATH,
        body: "",
    },
    Operation {
        method: "DeleteTaskPushNotificationConfig",
        thing: Thing::Thread,
        params: NAMED_HOOK,
        route: HOOK_ROUTE,
        path: HOOK_PATH,
        body: "",
    },
    Operation {
        method: "CancelTask",
        thing: Thing::Thread,
        params: TASK,
        route: "/a2a/v1/tasks/{id}:cancel",
        path: "/a2a/v1/tasks/<spare-task>:cancel",
        body: "",
    },
];

/// A method of JSON-RPC in 0.3, or a path of HTTP, with a request that it takes.
struct Old {
    /// The operation of 1.0 that it is.
    is: &'static str,
    /// The method, or the path as readers know it.
    name: &'static str,
    path: &'static str,
    thing: Thing,
    body: &'static str,
}

const OLD_SEND: &str = r#"{"message": {"kind": "message", "messageId": "old-send",
    "role": "user", "parts": [{"kind": "data", "data": {"text": "x"}}],
    "metadata": {"https://waypost.dev/a2a/skills/v1": {"skill": "matrix::echo"}}}}"#;
const OLD_STREAM: &str = r#"{"message": {"kind": "message", "messageId": "old-stream",
    "role": "user", "parts": [{"kind": "data", "data": {"text": "x"}}],
    "metadata": {"https://waypost.dev/a2a/skills/v1": {"skill": "matrix::echo"}}}}"#;
const OLD_HTTP_SEND: &str = r#"{"message": {"messageId": "old-http-send", "role": "ROLE_USER",
    "content": [{"data": {"data": {"text": "x"}}}],
    "metadata": {"https://waypost.dev/a2a/skills/v1": {"skill": "matrix::echo"}}}}"#;
const OLD_HTTP_STREAM: &str = r#"{"message": {"messageId": "old-http-stream",
    "role": "ROLE_USER", "content": [{"data": {"data": {"text": "x"}}}],
    "metadata": {"https://waypost.dev/a2a/skills/v1": {"skill": "matrix::echo"}}}}"#;
const OLD_TASK: &str = r#"{"id": "<old-task>"}"#;
const OLD_HOOK: &str = r#"{"taskId": "<old-task>",
    "pushNotificationConfig": {"id": "hook", "url": "https://hooks.test/"}}"#;
const OLD_NAMED_HOOK: &str = r#"{"id": "<old-task>", "pushNotificationConfigId": "hook"}"#;
const OLD_HTTP_HOOK: &str =
    r#"{"config": {"pushNotificationConfig": {"id": "hook", "url": "https://hooks.test/"}}}"#;
const OLD_HOOKS: &str = "/a2a/v1/v1/tasks/{id}/pushNotificationConfigs";
const OLD_HOOKS_PATH: &str = "/a2a/v1/v1/tasks/<old-spare-task>/pushNotificationConfigs";
const OLD_HOOK_ROUTE: &str = "/a2a/v1/v1/tasks/{id}/pushNotificationConfigs/{configId}";
const OLD_HOOK_PATH: &str = "/a2a/v1/v1/tasks/<old-spare-task>/pushNotificationConfigs/hook";

const fn old_method(is: &'static str, name: &'static str, thing: Thing, body: &'static str) -> Old {
    Old { is, name, path: ADDRESS, thing, body }
}

const fn old_route(is: &'static str, name: &'static str, path: &'static str, thing: Thing) -> Old {
    Old { is, name, path, thing, body: "" }
}

const fn old_sending(is: &'static str, name: &'static str, body: &'static str) -> Old {
    Old { is, name, path: name, thing: Thing::Catalog, body }
}

/// Every method of 0.3, in such an order, too.
const OLD_METHODS: &[Old] = &[
    old_method("GetTask", "tasks/get", Thing::Thread, OLD_TASK),
    old_method("SubscribeToTask", "tasks/resubscribe", Thing::Thread, OLD_TASK),
    old_method("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard", Thing::List, "{}"),
    old_method("SendMessage", "message/send", Thing::Catalog, OLD_SEND),
    old_method("SendStreamingMessage", "message/stream", Thing::Catalog, OLD_STREAM),
    old_method(
        "CreateTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/set",
        Thing::Thread,
        OLD_HOOK,
    ),
    old_method(
        "GetTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/get",
        Thing::Thread,
        OLD_NAMED_HOOK,
    ),
    old_method(
        "ListTaskPushNotificationConfigs",
        "tasks/pushNotificationConfig/list",
        Thing::Thread,
        OLD_TASK,
    ),
    old_method(
        "DeleteTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/delete",
        Thing::Thread,
        OLD_NAMED_HOOK,
    ),
    old_method("CancelTask", "tasks/cancel", Thing::Thread, OLD_TASK),
];

/// Every path of 0.3, likewise.
const OLD_ROUTES: &[Old] = &[
    old_route(
        "GetTask",
        "/a2a/v1/v1/tasks/{id}",
        "/a2a/v1/v1/tasks/<old-spare-task>",
        Thing::Thread,
    ),
    old_route("ListTasks", "/a2a/v1/v1/tasks", "/a2a/v1/v1/tasks", Thing::List),
    old_route(
        "SubscribeToTask",
        "/a2a/v1/v1/tasks/{id}:subscribe",
        "/a2a/v1/v1/tasks/<old-spare-task>:subscribe",
        Thing::Thread,
    ),
    old_route("GetExtendedAgentCard", "/a2a/v1/v1/card", "/a2a/v1/v1/card", Thing::List),
    old_sending("SendMessage", "/a2a/v1/v1/message:send", OLD_HTTP_SEND),
    old_sending("SendStreamingMessage", "/a2a/v1/v1/message:stream", OLD_HTTP_STREAM),
    Old {
        body: OLD_HTTP_HOOK,
        ..old_route("CreateTaskPushNotificationConfig", OLD_HOOKS, OLD_HOOKS_PATH, Thing::Thread)
    },
    old_route("GetTaskPushNotificationConfig", OLD_HOOK_ROUTE, OLD_HOOK_PATH, Thing::Thread),
    old_route("ListTaskPushNotificationConfigs", OLD_HOOKS, OLD_HOOKS_PATH, Thing::Thread),
    old_route("DeleteTaskPushNotificationConfig", OLD_HOOK_ROUTE, OLD_HOOK_PATH, Thing::Thread),
    old_route(
        "CancelTask",
        "/a2a/v1/v1/tasks/{id}:cancel",
        "/a2a/v1/v1/tasks/<old-spare-task>:cancel",
        Thing::Thread,
    ),
];

/// The operations of 1.0 that rows of 0.3 are.
fn known(rows: &[Old]) -> BTreeSet<&'static str> {
    rows.iter().map(|old| old.is).collect()
}

/// The doors of 0.3.
fn old_doors() -> impl Iterator<Item = Door> {
    let served: BTreeSet<&str> = A2A_OPERATIONS.iter().map(|served| served.method).collect();
    assert_eq!(known(OLD_ROUTES), served, "each operation of A2A has a row in `OLD_ROUTES`");
    let mut called = known(OLD_METHODS);
    assert!(called.insert("ListTasks"), "JSON-RPC of 0.3 has no list of tasks");
    assert_eq!(called, served, "each operation of A2A has a row in `OLD_METHODS`");
    let rpc = OLD_METHODS.iter().map(|old| Door {
        kind: Kind::A2aRpc(old.name),
        right: served_as(old.is).right,
        ..post(ADDRESS, old.path, old.thing, old.body)
    });
    let http = OLD_ROUTES.iter().map(|old| {
        let A2aOperation { verb, right, .. } = *served_as(old.is);
        Door { kind: Kind::A2aHttp, right, ..row(verb, old.name, old.path, old.thing, old.body) }
    });
    rpc.chain(http)
}

/// Whether a door is one of 0.3, at which no version is named.
fn is_old(door: &Door) -> bool {
    let is_method = matches!(door.kind, Kind::A2aRpc(method) if method.contains('/'));
    door.route.starts_with(OLD_ADDRESS) || (is_method && door.route == ADDRESS)
}

/// Every method of AgentVault's profile, in such an order, too.
const METHOD_ROWS: &[Method] = &[
    Method { name: "tasks/get", thing: Thing::Thread, params: VAULT_TASK },
    Method { name: "tasks/sendSubscribe", thing: Thing::Thread, params: VAULT_TASK },
    Method { name: "tasks/send", thing: Thing::Catalog, params: VAULT_SEND },
    Method { name: "tasks/cancel", thing: Thing::Thread, params: VAULT_TASK },
];

/// A method of AgentVault's profile, with parameters that it takes.
struct Method {
    name: &'static str,
    thing: Thing,
    params: &'static str,
}

/// The routes of the profile that are open.
const OPEN_ROWS: &[Door] = &[
    get("/agent-card.json", "/agent-card.json", Thing::Open),
    get("/api/v1/agent-cards", "/api/v1/agent-cards", Thing::Open),
    get("/api/v1/agent-cards/", "/api/v1/agent-cards/", Thing::Open),
    get("/api/v1/agent-cards/{*rest}", "/api/v1/agent-cards/id/waypost/default", Thing::Open),
];

/// The doors of the profile: its cards, its methods with and without a slash at the end of the
/// address, a tool by its name, and the skill that calls tools of MCP servers.
fn vault_doors() -> impl Iterator<Item = Door> {
    let slashed = "/a2a/";
    let known: BTreeSet<&str> =
        OPEN_ROWS.iter().map(|row| row.route).chain([VAULT, slashed]).collect();
    let served: BTreeSet<&str> = VAULT_ROUTES.iter().copied().collect();
    assert_eq!(known, served, "each route of AgentVault's profile has a row in `OPEN_ROWS`");
    let rights: BTreeMap<&str, Right> = VAULT_METHODS.iter().copied().collect();
    let known: BTreeSet<&str> = METHOD_ROWS.iter().map(|row| row.name).collect();
    let served: BTreeSet<&str> = rights.keys().copied().collect();
    assert_eq!(known, served, "each method of AgentVault's profile has a row in `METHOD_ROWS`");
    let run = rights["tasks/send"];
    let methods = METHOD_ROWS.iter().map(move |row| Door {
        kind: Kind::A2aRpc(row.name),
        right: rights[row.name],
        ..post(VAULT, VAULT, row.thing, row.params)
    });
    let beside = [
        Door {
            kind: Kind::A2aRpc("tasks/send"),
            right: run,
            ..post(slashed, slashed, Thing::Catalog, VAULT_SEND)
        },
        Door {
            kind: Kind::A2aRpc("math.add"),
            right: Right::Engine(Act::Call),
            ..post(VAULT, VAULT, Thing::Tool, r#"{"a": 1, "b": 2}"#)
        },
        Door {
            kind: Kind::A2aRpc("tasks/send"),
            right: Right::Engine(Act::Call),
            ..post(PROXY, VAULT, Thing::Catalog, VAULT_CALL)
        },
    ];
    OPEN_ROWS.iter().copied().chain(methods).chain(beside)
}

/// All of them, each with who asks about it, and the cards.
pub(super) fn doors() -> Vec<Door> {
    let served: BTreeSet<(&str, String)> = A2A_OPERATIONS
        .iter()
        .map(|served| (served.method, format!("{ADDRESS}{}", served.path)))
        .collect();
    let known: BTreeSet<(&str, String)> =
        OPERATIONS.iter().map(|row| (row.method, row.route.to_owned())).collect();
    assert_eq!(known, served, "each operation of A2A has a row in `OPERATIONS`");
    assert!(RPC_SEND.contains(SKILLS_EXTENSION), "the extension has another name");
    let cards = [
        get("/.well-known/agent-card.json", "/.well-known/agent-card.json", Thing::Open),
        get("/.well-known/jwks.json", "/.well-known/jwks.json", Thing::Open),
        Door {
            kind: Kind::A2aHttp,
            ..get("/a2a/v1/{realm}/agent-card.json", "/a2a/v1/default/agent-card.json", Thing::Open)
        },
    ];
    let rpc = OPERATIONS.iter().map(|operation| Door {
        kind: Kind::A2aRpc(operation.method),
        right: served_as(operation.method).right,
        ..post(ADDRESS, ADDRESS, operation.thing, operation.params)
    });
    let http = OPERATIONS.iter().map(|operation| {
        let Operation { thing, route, path, body, .. } = *operation;
        let A2aOperation { verb, right, .. } = *served_as(operation.method);
        Door { kind: Kind::A2aHttp, right, ..row(verb, route, path, thing, body) }
    });
    let grpc = OPERATIONS.iter().map(|operation| Door {
        kind: Kind::A2aGrpc(operation.method),
        right: served_as(operation.method).right,
        ..post(GRPC_SERVICE, GRPC_SERVICE, operation.thing, grpc_params(operation))
    });
    let new = rpc.chain(http).chain(grpc);
    cards.into_iter().chain(new).chain(old_doors()).chain(vault_doors()).collect()
}

/// The parameters of JSON-RPC with a task and ids of its own: a message that came before is not
/// done again. They live as long as the test.
fn grpc_params(operation: &Operation) -> &'static str {
    let own = operation.params.replace("<task>", "<grpc-task>").replace("\"rpc-", "\"grpc-");
    own.leak()
}

fn served_as(method: &str) -> &'static A2aOperation {
    let found = A2A_OPERATIONS.iter().find(|served| served.method == method);
    found.unwrap_or_else(|| panic!("there is no operation `{method}`"))
}

/// The headers of a request at this door.
pub(super) fn headers_at(door: &Door, realm: Option<&str>) -> Vec<(&'static str, String)> {
    let mut headers = headers(realm);
    headers.retain(|(name, _)| *name != HEADER_VERSION || !is_old(door));
    headers
}

/// The headers of a request of A2A 1.0.
fn headers(realm: Option<&str>) -> Vec<(&'static str, String)> {
    let realm = realm.map(|realm| ("x-realm", realm.to_owned()));
    [(HEADER_VERSION, VERSION.to_owned())].into_iter().chain(realm).collect()
}

/// A request of JSON-RPC.
pub(super) fn message(method: &str, params: &str) -> String {
    let params: Value = serde_json::from_str(params).unwrap();
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

/// Tasks of the owner, which wait, for the words in angle brackets.
pub(super) fn furnish(site: &mut Site) {
    let owner = site.keys.owner.clone();
    let facts = tasks(site, &owner, None);
    site.add_facts(facts);
}

/// The same of anybody, in any realm.
pub(super) fn tasks(site: &mut Site, key: &Key, realm: Option<&str>) -> Facts {
    TASKS.map(|word| (word, task(site, key, realm, word))).into()
}

/// What is there for this key in this realm, by A2A 1.0.
pub(super) fn got(site: &mut Site, key: &Key, realm: &str, path: &str) -> Answer {
    let (key, headers) = (Some(key), headers(Some(realm)));
    site.send(&Sending { key, headers, method: "GET", path, body: "" })
}

/// A task that waits for an answer.
pub(super) fn task(site: &mut Site, key: &Key, realm: Option<&str>, id: &str) -> String {
    let sent = json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": [{"data": {}}],
        "metadata": {SKILLS_EXTENSION: {"skill": "matrix::ask"}}}});
    let body = message("SendMessage", &sent.to_string());
    let (key, headers) = (Some(key), headers(realm));
    let sending = Sending { key, headers, method: "POST", path: ADDRESS, body: &body };
    let answer = site.send(&sending);
    assert_eq!(answer.status, 200, "{answer:?}");
    text(&answer.json()["result"]["task"]["id"])
}
