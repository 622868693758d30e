//! The operations send, get and cancel in each dialect of A2A, and how each dialect requests the
//! extended card. The types on this side are those of 1.0.

use super::card::Dialect;
use super::exchange::Reply;
use kernel::tool::call::CallProgress;
use outbound::percent::encoded;
use reqwest::{Method, Url};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wire::a2a::error::A2aError;
use wire::a2a::message::Message;
use wire::a2a::proto;
use wire::a2a::proto::status::Status;
use wire::a2a::request::{
    CancelTaskRequest, GetTaskRequest, SendMessageConfiguration, SendMessageRequest,
};
use wire::a2a::task::{StreamResponse, Task, TaskState, TaskStatus};
use wire::a2a::v03::Binding;
use wire::a2a::{GRPC_SERVICE, MEDIA_TYPE, vault};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operation {
    /// Take a message, and answer without waiting for the end of its task.
    Send(Message),
    /// Say how a task is.
    Get(String),
    /// Cancel a task.
    Cancel(String),
}

impl Operation {
    /// The operation of 1.0 that it is.
    pub(super) fn defined(&self) -> proto::Operation {
        match self {
            Operation::Send(_) => proto::Operation::SendMessage,
            Operation::Get(_) => proto::Operation::GetTask,
            Operation::Cancel(_) => proto::Operation::CancelTask,
        }
    }
}

/// Where an agent is spoken to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Endpoint {
    pub(super) dialect: Dialect,
    pub(super) url: Url,
    /// The tenant of every request; may be empty.
    pub(super) tenant: String,
}

/// An operation as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EncodedOperation {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) media_type: &'static str,
    pub(super) body: Option<Value>,
    /// The id of a JSON-RPC request.
    id: Option<String>,
}

/// Why an operation has no result.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum OperationError {
    /// The agent says so.
    Error(A2aError),
    /// A status of failure that nothing explains, and how far the operation got.
    Status(u16, CallProgress),
    /// A call of gRPC ended for a reason that is not the operation's: no one knows how far it got.
    Ended(Status),
    /// Something else than A2A came back.
    Invalid(String),
}

impl Endpoint {
    /// The operation as this agent wants it.
    pub(super) fn request(&self, operation: &Operation) -> EncodedOperation {
        match self.dialect {
            Dialect::Rpc => {
                let method = operation.defined().name();
                self.rpc(request_id(operation), method, self.params(operation))
            }
            Dialect::OldRpc | Dialect::Vault => {
                let (method, params) = match operation {
                    Operation::Send(message) if self.dialect == Dialect::Vault => {
                        ("tasks/send", vault_params(message))
                    }
                    Operation::Send(message) => {
                        ("message/send", Binding::Rpc.send_request(message))
                    }
                    Operation::Get(id) => ("tasks/get", json!({"id": id})),
                    Operation::Cancel(id) => ("tasks/cancel", json!({"id": id})),
                };
                self.rpc(request_id(operation), method, params)
            }
            Dialect::Rest => {
                let body = match operation {
                    Operation::Send(_) => Some(self.params(operation)),
                    Operation::Get(_) => None,
                    Operation::Cancel(_) => Some(json!({})),
                };
                let (method, path) = rest_path(operation);
                self.rest(method, &format!("{}{path}", self.tenant_path()), MEDIA_TYPE, body)
            }
            Dialect::Grpc => self.grpc(operation.defined(), self.params(operation)),
            Dialect::OldRest => {
                let body = match operation {
                    Operation::Send(message) => Some(Binding::Rest.send_request(message)),
                    Operation::Get(_) => None,
                    Operation::Cancel(_) => Some(json!({})),
                };
                let (method, path) = rest_path(operation);
                let path = format!("{}{path}", self.version_path());
                self.rest(method, &path, "application/json", body)
            }
        }
    }

    /// The request for the card of callers with credentials; none where there is no such card.
    pub(super) fn extended_card(&self) -> Option<EncodedOperation> {
        let id = || "extended-card".to_owned();
        let defined = proto::Operation::GetExtendedAgentCard;
        let params = match self.tenant.as_str() {
            "" => json!({}),
            tenant => json!({"tenant": tenant}),
        };
        match self.dialect {
            Dialect::Rpc => Some(self.rpc(id(), defined.name(), params)),
            Dialect::Rest => {
                let path = format!("{}/extendedAgentCard", self.tenant_path());
                Some(self.rest(Method::GET, &path, MEDIA_TYPE, None))
            }
            Dialect::Grpc => Some(self.grpc(defined, params)),
            Dialect::OldRpc => {
                Some(self.rpc(id(), "agent/getAuthenticatedExtendedCard", json!({})))
            }
            Dialect::OldRest => {
                let path = format!("{}/card", self.version_path());
                Some(self.rest(Method::GET, &path, "application/json", None))
            }
            Dialect::Vault => None,
        }
    }

    /// Path prefix of 1.0.
    fn tenant_path(&self) -> String {
        match self.tenant.as_str() {
            "" => String::new(),
            tenant => format!("/{}", encoded(tenant)),
        }
    }

    /// Path prefix of 0.3: the URL in such a card does not include the version.
    fn version_path(&self) -> &'static str {
        let has_version = self.url.path().trim_end_matches('/').ends_with("/v1");
        if has_version { "" } else { "/v1" }
    }

    fn grpc(&self, operation: proto::Operation, params: Value) -> EncodedOperation {
        // The service is at the root, whatever path the card names, and has no query.
        let mut url = self.url.clone();
        url.set_query(None);
        url.set_path(&format!("{GRPC_SERVICE}/{}", operation.name()));
        let method = Method::POST;
        let media_type = "application/grpc";
        EncodedOperation { method, url, media_type, body: Some(params), id: None }
    }

    fn rpc(&self, id: String, method: &str, params: Value) -> EncodedOperation {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        EncodedOperation {
            method: Method::POST,
            url: self.url.clone(),
            media_type: "application/json",
            body: Some(body),
            id: Some(id),
        }
    }

    fn rest(
        &self,
        method: Method,
        path: &str,
        media_type: &'static str,
        body: Option<Value>,
    ) -> EncodedOperation {
        let mut url = self.url.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}{path}"));
        EncodedOperation { method, url, media_type, body, id: None }
    }

    /// The parameters of 1.0.
    fn params(&self, operation: &Operation) -> Value {
        let tenant = self.tenant.clone();
        match operation {
            Operation::Send(message) => json!(SendMessageRequest {
                tenant,
                message: Some(message.clone()),
                configuration: Some(SendMessageConfiguration {
                    return_immediately: true,
                    ..SendMessageConfiguration::default()
                }),
                ..SendMessageRequest::default()
            }),
            Operation::Get(task) => {
                json!(GetTaskRequest { tenant, id: task.clone(), history_length: None })
            }
            Operation::Cancel(task) => {
                let id = task.clone();
                json!(CancelTaskRequest { tenant, id, ..CancelTaskRequest::default() })
            }
        }
    }

    /// The outcome of an operation that was sent so. What is asked about one task is answered with
    /// that task: any other is a replay, or belongs to somebody else.
    pub(super) fn read(
        &self,
        operation: &Operation,
        sent: &EncodedOperation,
        reply: &Reply,
    ) -> Result<StreamResponse, OperationError> {
        let answer = self.understood(operation, sent, reply)?;
        if let Operation::Get(id) | Operation::Cancel(id) = operation
            && let StreamResponse::Task(task) = &answer
            && task.id != *id
        {
            // Its content is not quoted: it may be for others.
            let why = format!("it was asked about task `{id}` and answered with `{}`", task.id);
            return Err(OperationError::Invalid(why));
        }
        Ok(answer)
    }

    /// The result in a response to this operation.
    pub(super) fn result(
        &self,
        sent: &EncodedOperation,
        reply: &Reply,
    ) -> Result<Value, OperationError> {
        match (self.dialect, &sent.id) {
            (Dialect::Grpc, _) => grpc_result(reply),
            (_, Some(id)) => rpc_result(id, reply),
            (_, None) => rest_result(reply),
        }
    }

    /// The same, whichever task it is about.
    fn understood(
        &self,
        operation: &Operation,
        sent: &EncodedOperation,
        reply: &Reply,
    ) -> Result<StreamResponse, OperationError> {
        let result = self.result(sent, reply)?;
        match (self.dialect, operation) {
            (Dialect::Rpc | Dialect::Rest | Dialect::Grpc, Operation::Send(_)) => read(result),
            (Dialect::Rpc | Dialect::Rest | Dialect::Grpc, _) => read(result).map(task),
            (Dialect::OldRpc, _) => old_answer(Binding::Rpc, operation, result, reply),
            (Dialect::OldRest, _) => old_answer(Binding::Rest, operation, result, reply),
            (Dialect::Vault, Operation::Get(_)) => {
                read::<vault::Task>(result).map(|old| task(old.into()))
            }
            (Dialect::Vault, Operation::Send(_)) => match result["id"].as_str() {
                Some(id) => Ok(task(bare(id, TaskState::Submitted))),
                None => Err(invalid("the answer has no task id", reply)),
            },
            // It only says whether that could be done.
            (Dialect::Vault, Operation::Cancel(id)) => Ok(task(bare(id, TaskState::Unspecified))),
        }
    }
}

/// The id of a request of JSON-RPC.
fn request_id(operation: &Operation) -> String {
    match operation {
        Operation::Send(message) => message.message_id.clone(),
        Operation::Get(task) => format!("get-{task}"),
        Operation::Cancel(task) => format!("cancel-{task}"),
    }
}

/// The verb and the path of an operation over HTTP.
fn rest_path(operation: &Operation) -> (Method, String) {
    match operation {
        Operation::Send(_) => (Method::POST, "/message:send".to_owned()),
        Operation::Get(task) => (Method::GET, format!("/tasks/{}", encoded(task))),
        Operation::Cancel(task) => (Method::POST, format!("/tasks/{}:cancel", encoded(task))),
    }
}

fn task(task: Task) -> StreamResponse {
    StreamResponse::Task(Box::new(task))
}

/// A task of which nothing but its id is known.
fn bare(id: &str, state: TaskState) -> Task {
    let status = TaskStatus { state, ..TaskStatus::default() };
    Task { id: id.to_owned(), status, ..Task::default() }
}

/// What 0.3 answers, as 1.0 says it.
fn old_answer(
    binding: Binding,
    operation: &Operation,
    result: Value,
    reply: &Reply,
) -> Result<StreamResponse, OperationError> {
    let answer = match operation {
        Operation::Send(_) => binding.read_answer(result),
        Operation::Get(_) | Operation::Cancel(_) => {
            binding.read_task(result).map(|begun| Some(task(begun)))
        }
    };
    let answer = answer.map_err(misread)?;
    answer.ok_or_else(|| invalid("the answer has neither task nor message", reply))
}

/// A message as AgentVault's profile sends it.
fn vault_params(message: &Message) -> Value {
    let Message { task_id, role, parts, metadata, .. } = message;
    let written = vault::message(vault::role_word(*role), parts.clone(), metadata);
    match task_id.as_str() {
        "" => json!({"message": written}),
        id => json!({"id": id, "message": written}),
    }
}

fn read<T: DeserializeOwned>(result: Value) -> Result<T, OperationError> {
    serde_json::from_value(result).map_err(misread)
}

fn misread(error: serde_json::Error) -> OperationError {
    OperationError::Invalid(error.to_string())
}

fn invalid(why: &str, reply: &Reply) -> OperationError {
    OperationError::Invalid(format!("{why}: `{}`", reply.told))
}

/// The result of a JSON-RPC answer. An error counts whatever the status is, but for the words that
/// a gateway has for an answer that did not come.
fn rpc_result(id: &str, reply: &Reply) -> Result<Value, OperationError> {
    let is_gateways = matches!(reply.status, 502 | 504) && reply.body.get("jsonrpc").is_none();
    let error = reply.body.get("error").filter(|error| error.is_object() && !is_gateways);
    if let Some(error) = error {
        return Err(OperationError::Error(match reply.status {
            401 | 403 => A2aError::of_rest(reply.status, &json!({"error": error})),
            _ => A2aError::of_rpc(error),
        }));
    }
    check_status(reply)?;
    if reply.body.get("id").and_then(Value::as_str) != Some(id) {
        return Err(invalid("the answer belongs to another request", reply));
    }
    reply.body.get("result").cloned().ok_or_else(|| invalid("the answer has no result", reply))
}

fn rest_result(reply: &Reply) -> Result<Value, OperationError> {
    let is_success = (200..300).contains(&reply.status);
    let explains = reply.body.get("error").is_some() || reply.body.get("message").is_some();
    if !is_success && explains && !matches!(reply.status, 502 | 504) {
        return Err(OperationError::Error(A2aError::of_rest(reply.status, &reply.body)));
    }
    check_status(reply)?;
    match reply.body.is_object() {
        true => Ok(reply.body.clone()),
        false => Err(invalid("the answer is no JSON object", reply)),
    }
}

/// The message of a call that succeeded. What is on the way may end a call in the agent's place:
/// that it was not reached, or that no one waited for it, is no word about the operation. A gateway
/// says `UNAVAILABLE` of a call that did not arrive and of one whose answer was lost alike.
fn grpc_result(reply: &Reply) -> Result<Value, OperationError> {
    let Some(ended) = &reply.ended else {
        check_status(reply)?;
        return Err(invalid("the answer is not of gRPC", reply));
    };
    match ended.name() {
        "OK" if reply.body.is_object() => Ok(reply.body.clone()),
        "OK" => Err(invalid("the answer has no message that can be read", reply)),
        "UNAVAILABLE" | "DEADLINE_EXCEEDED" | "CANCELLED" => {
            Err(OperationError::Ended(ended.clone()))
        }
        _ => Err(OperationError::Error(ended.error())),
    }
}

/// A gateway that got no answer knows as little as we do; any other refusal is a plain failure.
fn check_status(reply: &Reply) -> Result<(), OperationError> {
    match reply.status {
        200..=299 => Ok(()),
        status @ (502 | 504) => Err(OperationError::Status(status, CallProgress::Unknown)),
        status => Err(OperationError::Status(status, CallProgress::Failed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::a2a::error::ErrorKind;
    use wire::a2a::message::{Part, Role};

    fn endpoint(dialect: Dialect) -> Endpoint {
        let url = Url::parse("https://a.test/base/").unwrap();
        Endpoint { dialect, url, tenant: "ten ant".to_owned() }
    }

    fn message() -> Operation {
        Operation::Send(Message {
            message_id: "m".to_owned(),
            role: Role::User,
            task_id: "t".to_owned(),
            parts: vec![Part::text("hi")],
            ..Message::default()
        })
    }

    fn reply(status: u16, body: Value) -> Reply {
        Reply { status, told: body.to_string(), body, ended: None }
    }

    fn ended(status: Status, body: Value) -> Reply {
        Reply { ended: Some(status), ..reply(200, body) }
    }

    #[test]
    fn each_dialect_has_its_own_method_names() {
        let get = Operation::Get("a/b".to_owned());
        let cancel = Operation::Cancel("a/b".to_owned());
        for (dialect, operation, path, told) in [
            (Dialect::Rpc, message(), "/base/", r#""method":"SendMessage","params":{"tenant":"#),
            (Dialect::Rpc, get.clone(), "/base/", r#""params":{"tenant":"ten ant","id":"a/b"}"#),
            (
                Dialect::Rest,
                message(),
                "/base/ten%20ant/message:send",
                r#""returnImmediately":true"#,
            ),
            (Dialect::Rest, get.clone(), "/base/ten%20ant/tasks/a%2Fb", ""),
            (Dialect::Rest, cancel.clone(), "/base/ten%20ant/tasks/a%2Fb:cancel", "{}"),
            (
                Dialect::Grpc,
                message(),
                "/lf.a2a.v1.A2AService/SendMessage",
                r#""tenant":"ten ant""#,
            ),
            (Dialect::Grpc, get.clone(), "/lf.a2a.v1.A2AService/GetTask", r#""id":"a/b""#),
            (Dialect::Grpc, cancel.clone(), "/lf.a2a.v1.A2AService/CancelTask", r#""id":"a/b""#),
            (Dialect::OldRpc, message(), "/base/", r#""method":"message/send""#),
            (Dialect::OldRpc, message(), "/base/", r#""blocking":false"#),
            (Dialect::OldRpc, cancel.clone(), "/base/", r#""method":"tasks/cancel""#),
            (Dialect::OldRest, message(), "/base/v1/message:send", r#""content":[{"text":"hi"}]"#),
            (Dialect::OldRest, get.clone(), "/base/v1/tasks/a%2Fb", ""),
            (Dialect::Vault, message(), "/base/", r#""params":{"id":"t","message":{"role":"user""#),
            (Dialect::Vault, get, "/base/", r#""method":"tasks/get""#),
        ] {
            let sent = endpoint(dialect).request(&operation);
            assert_eq!(sent.url.path(), path, "{dialect:?}");
            let body = sent.body.map(|body| body.to_string()).unwrap_or_default();
            assert!(body.contains(told), "{dialect:?}: {body}");
        }
    }

    #[test]
    fn each_dialect_asks_for_the_extended_card_in_its_own_words() {
        for (dialect, line, told) in [
            (
                Dialect::Rpc,
                "POST /base/",
                r#""method":"GetExtendedAgentCard","params":{"tenant":"ten ant"}"#,
            ),
            (Dialect::Rest, "GET /base/ten%20ant/extendedAgentCard", ""),
            (
                Dialect::Grpc,
                "POST /lf.a2a.v1.A2AService/GetExtendedAgentCard",
                r#"{"tenant":"ten ant"}"#,
            ),
            (
                Dialect::OldRpc,
                "POST /base/",
                r#""method":"agent/getAuthenticatedExtendedCard","params":{}"#,
            ),
            (Dialect::OldRest, "GET /base/v1/card", ""),
        ] {
            let sent = endpoint(dialect).extended_card().unwrap();
            assert_eq!(format!("{} {}", sent.method, sent.url.path()), line, "{dialect:?}");
            let body = sent.body.map(|body| body.to_string()).unwrap_or_default();
            assert!(body.contains(told), "{dialect:?}: {body}");
        }
        assert_eq!(endpoint(Dialect::Vault).extended_card(), None);
    }

    #[test]
    fn a_method_of_grpc_is_a_path_and_nothing_else() {
        let url = Url::parse("https://a.test/base?realm=b").unwrap();
        let endpoint = Endpoint { url, ..endpoint(Dialect::Grpc) };
        let sent = endpoint.request(&message());
        assert_eq!(sent.url.as_str(), "https://a.test/lf.a2a.v1.A2AService/SendMessage");
    }

    #[test]
    fn replies_are_converted_to_1_0_tasks() {
        let old = json!({"kind": "task", "id": "t", "contextId": "c", "status": {
            "state": "working"}});
        let new = json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}});
        let rpc = |result: &Value| json!({"jsonrpc": "2.0", "id": "m", "result": result});
        for (dialect, body) in [
            (Dialect::Rpc, rpc(&json!({"task": new}))),
            (Dialect::Rest, json!({"task": new})),
            (Dialect::OldRpc, rpc(&old)),
            (Dialect::OldRest, json!({"task": new})),
        ] {
            let endpoint = endpoint(dialect);
            let sending = message();
            let sent = endpoint.request(&sending);
            let read = endpoint.read(&sending, &sent, &reply(200, body)).unwrap();
            let StreamResponse::Task(task) = read else { panic!("{read:?}") };
            assert_eq!((task.id.as_str(), task.context_id.as_str()), ("t", "c"));
            assert_eq!(task.status.state, TaskState::Working);
        }
        let endpoint = endpoint(Dialect::Vault);
        let sending = message();
        let sent = endpoint.request(&sending);
        let read = endpoint.read(&sending, &sent, &reply(200, rpc(&json!({"id": "t"})))).unwrap();
        assert!(matches!(read, StreamResponse::Task(task) if task.id == "t"));
    }

    #[test]
    fn a_reply_about_another_task_is_refused() {
        let task = |dialect, id: &str| match dialect {
            Dialect::OldRpc => {
                json!({"kind": "task", "id": id, "status": {"state": "completed"}})
            }
            Dialect::Vault => json!({"id": id, "state": "COMPLETED"}),
            _ => json!({"id": id, "status": {"state": "TASK_STATE_COMPLETED"}}),
        };
        let read = |dialect, operation: &Operation, id: &str| {
            let endpoint = endpoint(dialect);
            let sent = endpoint.request(operation);
            let result = task(dialect, id);
            let body = match &sent.id {
                Some(id) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                None => result,
            };
            let reply = match dialect {
                Dialect::Grpc => ended(Status::default(), body),
                _ => reply(200, body),
            };
            endpoint.read(operation, &sent, &reply)
        };
        let get = Operation::Get("t".to_owned());
        let cancel = Operation::Cancel("t".to_owned());
        for (dialect, operation) in [
            (Dialect::Rpc, &get),
            (Dialect::Rpc, &cancel),
            (Dialect::Rest, &get),
            (Dialect::Rest, &cancel),
            (Dialect::Grpc, &get),
            (Dialect::Grpc, &cancel),
            (Dialect::OldRpc, &get),
            (Dialect::OldRpc, &cancel),
            (Dialect::OldRest, &get),
            (Dialect::OldRest, &cancel),
            // Of a cancelled task this profile says nothing but that it is.
            (Dialect::Vault, &get),
        ] {
            let right = read(dialect, operation, "t");
            assert!(right.is_ok(), "{dialect:?} {operation:?}: {right:?}");
            for other in ["", "T", "other"] {
                let refused = read(dialect, operation, other).unwrap_err();
                let OperationError::Invalid(why) = &refused else { panic!("{refused:?}") };
                let told = format!("`t` and answered with `{other}`");
                assert!(why.contains(&told), "{dialect:?} {operation:?}: {why}");
            }
        }
    }

    #[test]
    fn every_a2a_error_is_classified() {
        let read = |dialect, status, body: Value| {
            let endpoint = endpoint(dialect);
            let sending = message();
            let sent = endpoint.request(&sending);
            endpoint.read(&sending, &sent, &reply(status, body)).unwrap_err()
        };
        let error = |code: i64| json!({"jsonrpc": "2.0", "id": "m", "error": {"code": code}});
        let kind = |refused: OperationError| match refused {
            OperationError::Error(error) => error.kind,
            other => panic!("{other:?}"),
        };
        assert_eq!(kind(read(Dialect::Rpc, 200, error(-32001))), ErrorKind::TaskNotFound);
        assert_eq!(kind(read(Dialect::Rpc, 401, error(-32000))), ErrorKind::Unauthenticated);
        let rest = A2aError::new(ErrorKind::UnsupportedOperation, "no").to_rest();
        assert_eq!(kind(read(Dialect::Rest, 400, rest)), ErrorKind::UnsupportedOperation);
        for (dialect, status, body) in [
            (Dialect::Rpc, 200, json!({"id": "other", "result": {}})),
            (Dialect::Rpc, 200, json!("text")),
            (Dialect::Rest, 200, json!([])),
            (Dialect::Rest, 200, json!({"neither": 1})),
            (Dialect::Vault, 200, json!({"id": "m", "result": {}})),
        ] {
            let refused = read(dialect, status, body);
            assert!(matches!(refused, OperationError::Invalid(_)), "{refused:?}");
        }
        let gateway = read(Dialect::Rpc, 504, json!({"error": {"code": 1}}));
        assert_eq!(gateway, OperationError::Status(504, CallProgress::Unknown));
        assert_eq!(
            read(Dialect::Rest, 500, json!(1)),
            OperationError::Status(500, CallProgress::Failed)
        );
    }

    #[test]
    fn a_grpc_status_determines_the_outcome_of_a_call() {
        let endpoint = endpoint(Dialect::Grpc);
        let sending = message();
        let sent = endpoint.request(&sending);
        let read = |reply: &Reply| endpoint.read(&sending, &sent, reply);
        let task = json!({"task": {"id": "t", "status": {"state": "TASK_STATE_WORKING"}}});
        let begun = read(&ended(Status::default(), task)).unwrap();
        assert!(matches!(begun, StreamResponse::Task(task) if task.id == "t"));
        let refused =
            |name: &str| read(&ended(Status::named(name, "no"), Value::Null)).unwrap_err();
        for name in ["UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED"] {
            assert_eq!(refused(name), OperationError::Ended(Status::named(name, "no")));
        }
        for (name, kind) in [
            ("NOT_FOUND", ErrorKind::TaskNotFound),
            ("UNAUTHENTICATED", ErrorKind::Unauthenticated),
            ("UNKNOWN", ErrorKind::Internal),
        ] {
            let OperationError::Error(error) = refused(name) else { panic!("{name}") };
            assert_eq!((error.kind, error.message.as_str()), (kind, "no"));
        }
        let nothing = read(&ended(Status::default(), Value::Null)).unwrap_err();
        assert!(matches!(nothing, OperationError::Invalid(_)), "{nothing:?}");
        let other = read(&reply(200, Value::Null)).unwrap_err();
        assert!(matches!(other, OperationError::Invalid(_)), "{other:?}");
        let gateway = read(&reply(502, Value::Null)).unwrap_err();
        assert_eq!(gateway, OperationError::Status(502, CallProgress::Unknown));
    }
}
