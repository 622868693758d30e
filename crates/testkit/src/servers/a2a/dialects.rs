//! The agent's dialects: how each asks and answers, and its cards.

use super::tasks::{Reply, Said, Tasks};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// An answer over HTTP.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
}

impl Answer {
    pub(super) fn ok(body: Value) -> Self {
        Self { status: 200, body }
    }
}

/// What is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Rpc,
    Rest,
    OldRpc,
    OldRest,
    Vault,
}

/// What is asked for.
enum Wish {
    Send(Said),
    Get(String),
    Cancel(String),
}

/// Why there is no result: the number of JSON-RPC, the status of HTTP, the name, the words.
struct Trouble(i64, u16, &'static str, &'static str);

const NOT_FOUND: Trouble = Trouble(-32001, 404, "TASK_NOT_FOUND", "Task not found");
const NOT_CANCELABLE: Trouble = Trouble(-32002, 400, "TASK_NOT_CANCELABLE", "It is over");
const UNSUPPORTED: Trouble = Trouble(-32004, 400, "UNSUPPORTED_OPERATION", "It waits for nothing");

impl Dialect {
    /// The dialect that is spoken at this path; `is_new` where the request says so.
    pub(super) fn of(path: &str, is_new: bool) -> Option<Self> {
        match path {
            "/rpc" | "/grpc" if is_new => Some(Dialect::Rpc),
            "/rpc" => Some(Dialect::OldRpc),
            "/a2a" => Some(Dialect::Vault),
            path if path.starts_with("/rest/") && is_new => Some(Dialect::Rest),
            path if path.starts_with("/old/v1/") => Some(Dialect::OldRest),
            _ => None,
        }
    }

    pub(super) fn answer(
        self,
        tasks: &mut Tasks,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Answer {
        let wish = match self {
            Dialect::Rpc | Dialect::OldRpc | Dialect::Vault => self.asked_by_rpc(body),
            Dialect::Rest => asked_by_path(method, path.trim_start_matches("/rest"), body),
            Dialect::OldRest => asked_by_path(method, path.trim_start_matches("/old/v1"), body),
        };
        let Some(wish) = wish else {
            return self.refused(body, &Trouble(-32601, 404, "", "Method not found"));
        };
        match self.granted(tasks, &wish) {
            Ok(result) => self.result(body, result),
            Err(trouble) => self.refused(body, &trouble),
        }
    }

    fn asked_by_rpc(self, body: &Value) -> Option<Wish> {
        let params = &body["params"];
        let id = || params["id"].as_str().unwrap_or_default().to_owned();
        match (self, body["method"].as_str()?) {
            (Dialect::Rpc, "SendMessage") | (Dialect::OldRpc, "message/send") => {
                Some(Wish::Send(said(&params["message"], "parts")))
            }
            (Dialect::Vault, "tasks/send") => {
                let mut said = said(&params["message"], "parts");
                said.task = id();
                Some(Wish::Send(said))
            }
            (Dialect::Rpc, "GetTask") | (Dialect::OldRpc | Dialect::Vault, "tasks/get") => {
                Some(Wish::Get(id()))
            }
            (Dialect::Rpc, "CancelTask") | (Dialect::OldRpc | Dialect::Vault, "tasks/cancel") => {
                Some(Wish::Cancel(id()))
            }
            _ => None,
        }
    }

    fn granted(self, tasks: &mut Tasks, wish: &Wish) -> Result<Value, Trouble> {
        match wish {
            Wish::Send(said) => match tasks.send(said) {
                Reply::Task(task) => Ok(self.begun(&task)),
                Reply::Message(text) if self == Dialect::Vault => {
                    // The profile has no answer without a task.
                    let said = Said { text: format!("echo {text}"), ..Said::default() };
                    self.granted(tasks, &Wish::Send(said))
                }
                Reply::Message(text) => Ok(self.message(&text)),
                Reply::Unknown => Err(NOT_FOUND),
                Reply::Refused => Err(UNSUPPORTED),
            },
            Wish::Get(id) => tasks.get(id).map(|task| self.task(&task)).ok_or(NOT_FOUND),
            Wish::Cancel(id) => match tasks.cancel(id) {
                None => Err(NOT_FOUND),
                Some((done, _)) if self == Dialect::Vault => Ok(json!({"success": done})),
                Some((true, task)) => Ok(self.task(&task)),
                Some((false, _)) => Err(NOT_CANCELABLE),
            },
        }
    }

    /// What a message is answered with.
    fn begun(self, task: &Value) -> Value {
        match self {
            Dialect::Rpc | Dialect::Rest | Dialect::OldRest => json!({"task": self.task(task)}),
            Dialect::OldRpc => self.task(task),
            Dialect::Vault => json!({"id": task["id"]}),
        }
    }

    fn message(self, text: &str) -> Value {
        let role = "ROLE_AGENT";
        let plain = json!({"messageId": "answer", "role": role, "contextId": "c", "parts": [
            {"text": text}]});
        match self {
            Dialect::Rpc | Dialect::Rest => json!({"message": plain}),
            Dialect::OldRpc => old_message(&plain),
            Dialect::OldRest => json!({"message": proto_message(&plain)}),
            Dialect::Vault => Value::Null,
        }
    }

    fn task(self, task: &Value) -> Value {
        match self {
            Dialect::Rpc | Dialect::Rest => task.clone(),
            Dialect::OldRpc => old_task(task),
            Dialect::OldRest => proto_task(task),
            Dialect::Vault => vault_task(task),
        }
    }

    fn result(self, body: &Value, result: Value) -> Answer {
        Answer::ok(match self {
            Dialect::Rest | Dialect::OldRest => result,
            Dialect::Rpc | Dialect::OldRpc | Dialect::Vault => {
                json!({"jsonrpc": "2.0", "id": body["id"], "result": result})
            }
        })
    }

    fn refused(self, body: &Value, trouble: &Trouble) -> Answer {
        let Trouble(code, status, reason, message) = trouble;
        let details = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": reason, "domain": "a2a-protocol.org"}]);
        match self {
            Dialect::Rest | Dialect::OldRest => {
                let error = json!({"code": status, "message": message, "details": details});
                Answer { status: *status, body: json!({"error": error}) }
            }
            Dialect::Rpc | Dialect::OldRpc | Dialect::Vault => {
                let error = json!({"code": code, "message": message, "data": details});
                Answer::ok(json!({"jsonrpc": "2.0", "id": body["id"], "error": error}))
            }
        }
    }
}

fn asked_by_path(method: &str, path: &str, body: &Value) -> Option<Wish> {
    let task = path.strip_prefix("/tasks/");
    match (method, path, task.and_then(|task| task.strip_suffix(":cancel"))) {
        ("POST", "/message:send", _) => {
            let message = &body["message"];
            let parts = if message.get("content").is_some() { "content" } else { "parts" };
            Some(Wish::Send(said(message, parts)))
        }
        ("POST", _, Some(task)) => Some(Wish::Cancel(task.to_owned())),
        ("GET", _, None) => Some(Wish::Get(task?.to_owned())),
        _ => None,
    }
}

fn said(message: &Value, parts: &str) -> Said {
    let text = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
    let parts = message[parts].as_array().cloned().unwrap_or_default();
    let words = parts.iter().find_map(|part| part["text"].as_str().or(part["content"].as_str()));
    let data = parts.iter().find_map(|part| {
        let wrapped = part["data"].get("data").filter(|_| part["data"].is_object());
        wrapped.or(part.get("data")).or(part.get("content").filter(|data| data.is_object()))
    });
    Said {
        id: text("messageId"),
        task: text("taskId"),
        context: text("contextId"),
        text: words.unwrap_or_default().to_owned(),
        data: data.cloned().unwrap_or_default(),
    }
}

fn each(value: &Value, change: impl Fn(&Value) -> Value) -> Value {
    Value::Array(value.as_array().into_iter().flatten().map(change).collect())
}

fn old_part(part: &Value) -> Value {
    if part.get("text").is_some() {
        return json!({"kind": "text", "text": part["text"]});
    }
    if part.get("data").is_some() {
        return json!({"kind": "data", "data": part["data"]});
    }
    let mut file = json!({"name": part["filename"], "mimeType": part["mediaType"]});
    match part.get("raw") {
        Some(bytes) => file["bytes"] = bytes.clone(),
        None => file["uri"] = part["url"].clone(),
    }
    json!({"kind": "file", "file": file})
}

fn old_message(message: &Value) -> Value {
    let role = if message["role"] == "ROLE_USER" { "user" } else { "agent" };
    json!({"kind": "message", "messageId": message["messageId"], "role": role,
        "contextId": message["contextId"], "parts": each(&message["parts"], old_part)})
}

fn old_task(task: &Value) -> Value {
    let state = task["status"]["state"].as_str().unwrap_or_default();
    let state = state.trim_start_matches("TASK_STATE_").to_lowercase().replace('_', "-");
    let artifact = |artifact: &Value| {
        let parts = each(&artifact["parts"], old_part);
        json!({"artifactId": artifact["artifactId"], "parts": parts})
    };
    json!({"kind": "task", "id": task["id"], "contextId": task["contextId"],
        "status": {"state": state, "message": old_message(&task["status"]["message"]),
            // As many servers of 0.3 write it.
            "timestamp": "2026-01-02T03:04:05.678901"},
        "artifacts": each(&task["artifacts"], artifact)})
}

fn proto_part(part: &Value) -> Value {
    if part.get("text").is_some() {
        return json!({"text": part["text"]});
    }
    if part.get("data").is_some() {
        return json!({"data": {"data": part["data"]}});
    }
    let mut file = json!({"name": part["filename"], "mimeType": part["mediaType"]});
    match part.get("raw") {
        Some(bytes) => file["fileWithBytes"] = bytes.clone(),
        None => file["fileWithUri"] = part["url"].clone(),
    }
    json!({"file": file})
}

fn proto_message(message: &Value) -> Value {
    json!({"messageId": message["messageId"], "role": message["role"],
        "contextId": message["contextId"], "content": each(&message["parts"], proto_part)})
}

fn proto_task(task: &Value) -> Value {
    let state = match task["status"]["state"].as_str().unwrap_or_default() {
        "TASK_STATE_CANCELED" => "TASK_STATE_CANCELLED",
        state => state,
    };
    let artifact = |artifact: &Value| {
        json!({"artifactId": artifact["artifactId"],
            "parts": each(&artifact["parts"], proto_part)})
    };
    json!({"id": task["id"], "contextId": task["contextId"],
        "status": {"state": state, "message": proto_message(&task["status"]["message"])},
        "artifacts": each(&task["artifacts"], artifact)})
}

fn vault_part(part: &Value) -> Value {
    if part.get("data").is_some() {
        return json!({"type": "data", "content": part["data"], "mediaType": "application/json"});
    }
    match part.get("url") {
        Some(url) => json!({"type": "file", "url": url}),
        None => json!({"type": "text", "content": part["text"]}),
    }
}

fn vault_task(task: &Value) -> Value {
    let state = match task["status"]["state"].as_str().unwrap_or_default() {
        "TASK_STATE_REJECTED" => "FAILED",
        "TASK_STATE_AUTH_REQUIRED" => "WORKING",
        state => state.trim_start_matches("TASK_STATE_"),
    };
    let parts = task["artifacts"][0]["parts"].as_array().cloned().unwrap_or_default();
    let artifact = |part: &Value| {
        let kind = vault_part(part);
        json!({"id": "artifact-1", "type": kind["type"], "content": kind.get("content"),
            "url": kind.get("url"), "mediaType": part.get("mediaType")})
    };
    let now = "2026-01-02T03:04:05.678Z";
    json!({"id": task["id"], "state": state, "createdAt": now, "updatedAt": now,
        "messages": [
            {"role": "user", "parts": [{"type": "text", "content": "first"}]},
            {"role": "assistant",
                "parts": each(&task["status"]["message"]["parts"], vault_part)}],
        "artifacts": parts.iter().map(artifact).collect::<Vec<_>>()})
}

/// The card for this dialect.
pub(super) fn card(address: SocketAddr, name: &str) -> Option<Value> {
    let url = |path: &str| format!("http://{address}{path}");
    let skills = json!([
        {"id": "talk", "name": "Talk", "description": "Answers.", "tags": ["test"]},
        {"id": "echo", "name": "Echo", "description": "Says it again.", "tags": ["test"]}]);
    let base = json!({"name": "Test agent", "description": "Does what it is told.",
        "version": "1.2.3", "capabilities": {"streaming": false},
        "defaultInputModes": ["*/*"], "defaultOutputModes": ["*/*"], "skills": skills});
    let with = |more: Value| {
        let mut card = base.clone();
        for (key, value) in more.as_object().into_iter().flatten() {
            card[key] = value.clone();
        }
        card
    };
    let interface = |binding: &str, path: &str| {
        json!({"supportedInterfaces": [{"url": url(path), "protocolBinding": binding,
            "protocolVersion": "1.0"}]})
    };
    Some(match name {
        "rpc" => with(interface("JSONRPC", "/rpc")),
        "rest" => with(interface("HTTP+JSON", "/rest")),
        "grpc" => with(json!({"supportedInterfaces": [{"url": address.to_string(),
            "protocolBinding": "GRPC", "protocolVersion": "1.0"}]})),
        "old-rpc" => with(json!({"protocolVersion": "0.3.0", "url": url("/rpc")})),
        "old-rest" => with(json!({"protocolVersion": "0.3.0", "url": url("/old"),
            "preferredTransport": "HTTP+JSON"})),
        "vault" => json!({"schemaVersion": "1.0", "humanReadableId": "test/agent",
            "agentVersion": "1.2.3", "name": "Test agent", "description": "d",
            "url": url("/a2a"), "provider": {"name": "test"},
            "capabilities": {"a2aVersion": "1.0"}, "authSchemes": [{"scheme": "none"}],
            "skills": [{"id": "talk", "name": "Talk", "description": "Answers."},
                {"id": "echo", "name": "Echo", "description": "Says it again."}]}),
        _ => return None,
    })
}
