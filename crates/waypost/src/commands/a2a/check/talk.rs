//! A test conversation with an agent over one interface: requests that must be refused, a message,
//! and its task read by every operation.

use super::finding::{Report, none_of};
use super::task_rules;
use crate::commands::a2a::line::{
    Answer, Binding, CANCEL, EXTENDED_CARD, GET, GRPC_TYPE, LIST, Line, SEND, STREAM, SUBSCRIBE,
    WEBHOOKS,
};
use crate::exit::Result;
use engine::system::clock::SystemEntropy;
use kernel::contracts::Entropy;
use serde_json::{Value, json};
use wire::a2a::card::AgentCapabilities;
use wire::a2a::error::{ERROR_INFO, ErrorKind};
use wire::a2a::task::TaskState;

/// A task that nobody has.
const NO_TASK: &str = "waypost-check-no-such-task";
const SSE_RULE: &str = "a stream has the type `text/event-stream`";
/// A version that nobody speaks.
const NO_VERSION: &str = "99.0";

pub(super) struct Talk<'a> {
    pub(super) line: &'a Line,
    pub(super) capabilities: &'a AgentCapabilities,
    /// What the agent is sent, without ids.
    pub(super) message: &'a Value,
}

impl Talk<'_> {
    /// Has it, unless the agent asks for a credential that was not shown.
    pub(super) async fn run(&self, report: &mut Report) -> Result<()> {
        let unknown = self.line.call(&GET, &json!({"id": NO_TASK})).await?;
        let wants_credential =
            |kind| [ErrorKind::Unauthenticated, ErrorKind::PermissionDenied].contains(&kind);
        if self.line.result(&unknown).is_err_and(|error| wants_credential(error.kind)) {
            let why = "it asks for a credential: `--header`";
            report.unknown("3.1", "the operations are as specified", why);
            return Ok(());
        }
        self.unknown_task(&unknown, report).await?;
        self.refusals(report).await?;
        self.without_capability(report).await?;
        if self.line.binding == Binding::Rpc {
            self.rpc_rules(report).await?;
        }
        self.conversation(report).await?;
        if self.capabilities.streaming == Some(true) {
            self.stream(report).await?;
        }
        Ok(())
    }

    async fn unknown_task(&self, unknown: &Answer, report: &mut Report) -> Result<()> {
        let not_found = self.refused(unknown, ErrorKind::TaskNotFound);
        report.must("3.1.3", "an unknown task is TaskNotFound", not_found);
        let info = self.info(unknown);
        match self.line.binding {
            Binding::Rest => report.must("11.6", "errors of A2A carry an ErrorInfo", info),
            Binding::Grpc => report.must("10.6", "errors of A2A carry an ErrorInfo", info),
            Binding::Rpc => report.should("9.5", "errors of A2A carry an ErrorInfo", info),
        }
        let cancel = self.line.call(&CANCEL, &json!({"id": NO_TASK})).await?;
        let held = self.refused(&cancel, ErrorKind::TaskNotFound);
        report.must("3.1.5", "cancelling an unknown task is TaskNotFound", held);
        let sent = self.line.call(&SEND, &self.sending(json!({"taskId": NO_TASK}))).await?;
        let held = self.refused(&sent, ErrorKind::TaskNotFound);
        report.must("3.4.2", "a message to an unknown task is TaskNotFound", held);
        Ok(())
    }

    async fn refusals(&self, report: &mut Report) -> Result<()> {
        let version = self.line.call_in(&GET, &json!({"id": NO_TASK}), NO_VERSION).await?;
        let held = self.refused(&version, ErrorKind::VersionNotSupported);
        report.must("3.6.2", "an unknown version is VersionNotSupported", held);
        let empty = self.line.call(&SEND, &self.sending(json!({"parts": []}))).await?;
        let held = match self.line.result(&empty) {
            Err(_) => Ok(()),
            Ok(_) => Err("it took a message without parts".to_owned()),
        };
        report.should("5.7", "a message without parts is refused", held);
        Ok(())
    }

    /// What the card does not promise is refused.
    async fn without_capability(&self, report: &mut Report) -> Result<()> {
        let AgentCapabilities { streaming, push_notifications, extended_agent_card, .. } =
            self.capabilities;
        if *push_notifications != Some(true) {
            let params = match self.line.binding {
                Binding::Rpc | Binding::Grpc => json!({"taskId": NO_TASK}),
                Binding::Rest => json!({"id": NO_TASK}),
            };
            let answer = self.line.call(&WEBHOOKS, &params).await?;
            let held = self.refused(&answer, ErrorKind::PushNotificationNotSupported);
            report.must("3.3.4", "without webhooks their configs are refused", held);
        }
        if *streaming != Some(true) {
            let answer = self.line.call(&STREAM, &self.sending(json!({}))).await?;
            let held = self.refused(&answer, ErrorKind::UnsupportedOperation);
            report.must("3.3.4", "without streaming a stream is UnsupportedOperation", held);
        }
        let answer = self.line.call(&EXTENDED_CARD, &json!({})).await?;
        if *extended_agent_card != Some(true) {
            let held = self.refused(&answer, ErrorKind::UnsupportedOperation);
            report.must("3.3.4", "without an extended card it is UnsupportedOperation", held);
        } else {
            let held = match self.line.result(&answer) {
                Ok(card) if card["skills"].is_array() => Ok(()),
                Ok(other) => Err(format!("it answered {}", short(&other))),
                Err(error) if error.kind == ErrorKind::ExtendedAgentCardNotConfigured => Ok(()),
                Err(error) => Err(error.message),
            };
            report.must("3.1.11", "the extended card is a card", held);
        }
        Ok(())
    }

    async fn rpc_rules(&self, report: &mut Report) -> Result<()> {
        let request = json!({"jsonrpc": "2.0", "id": "check", "method": "NoSuchMethod",
            "params": {}});
        let unknown = self.line.post(&request.to_string()).await?;
        let held = self.refused(&unknown, ErrorKind::MethodNotFound);
        report.must("9.5", "an unknown method is MethodNotFound", held);
        let version = &unknown.body["jsonrpc"];
        let id = &unknown.body["id"];
        let held = match (version.as_str(), id.as_str()) {
            (Some("2.0"), Some("check")) => Ok(()),
            _ => Err(format!("`jsonrpc` is {version}, `id` is {id}")),
        };
        report.must("9.1", "an answer has the version of JSON-RPC and the id of its request", held);
        let broken = self.line.post("{").await?;
        let held = self.refused(&broken, ErrorKind::Parse);
        report.must("9.5", "what is no JSON is a parse error", held);
        Ok(())
    }

    async fn conversation(&self, report: &mut Report) -> Result<()> {
        let answer = self.line.call(&SEND, &self.sending(json!({}))).await?;
        let sent = match self.line.result(&answer) {
            Ok(sent) => sent,
            Err(error) => {
                let held = Err(format!("it refused: {}", error.message));
                report.must("3.1.1", "a message is answered by a task or a message", held);
                return Ok(());
            }
        };
        let held = match (sent["task"].is_object(), sent["message"].is_object()) {
            (true, false) | (false, true) => Ok(()),
            _ => Err(format!("it answered {}", short(&sent))),
        };
        report.must("3.1.1", "a message is answered by a task or a message", held);
        if sent["message"].is_object() {
            task_rules::message(&sent["message"], report);
        }
        if sent["task"].is_object() {
            task_rules::task(&sent["task"], report);
            self.about_task(&sent["task"], report).await?;
        }
        Ok(())
    }

    async fn about_task(&self, task: &Value, report: &mut Report) -> Result<()> {
        let id = task["id"].as_str().unwrap_or_default();
        let state = task_rules::state(task);
        let held = match state {
            Some(state) if state.is_terminal() || state.is_interrupted() => Ok(()),
            _ => Err(format!("it is {}", task["status"]["state"])),
        };
        report.must("3.2.2", "a message is answered once its task is over or waits", held);
        let got = self.line.call(&GET, &json!({"id": id, "historyLength": 0})).await?;
        let got = self.line.result(&got).map_err(|error| error.message);
        let held = got.as_ref().map_err(Clone::clone).and_then(|got| match got["id"] == id {
            true => Ok(()),
            false => Err(format!("it answered {}", short(got))),
        });
        report.must("3.1.3", "a task can be read", held);
        let history = got.is_ok_and(|got| got["history"].is_array());
        let held = if history { Err("`history` is there".to_owned()) } else { Ok(()) };
        report.should("3.2.4", "a history of length 0 is left out", held);
        self.listed(id, report).await?;
        match state.is_some_and(TaskState::is_terminal) {
            true => self.about_ended(id, report).await,
            false => self.about_waiting(id, report).await,
        }
    }

    async fn listed(&self, id: &str, report: &mut Report) -> Result<()> {
        let answer = self.line.call(&LIST, &json!({"pageSize": 10})).await?;
        let list = match self.line.result(&answer) {
            Ok(list) => list,
            Err(error) => {
                report.must("3.1.4", "tasks can be listed", Err(error.message));
                return Ok(());
            }
        };
        let tasks: Vec<&Value> = list["tasks"].as_array().into_iter().flatten().collect();
        let mut wrong = Vec::new();
        // What is empty is not sent over gRPC.
        if self.line.binding != Binding::Grpc && !list["nextPageToken"].is_string() {
            wrong.push("there is no `nextPageToken`".to_owned());
        }
        if !tasks.iter().any(|task| task["id"] == id) {
            wrong.push(format!("the task `{id}` is not among them"));
        }
        if tasks.iter().any(|task| task.get("artifacts").is_some()) {
            wrong.push("artifacts are there that were not asked for".to_owned());
        }
        let times: Vec<&str> =
            tasks.iter().filter_map(|task| task["status"]["timestamp"].as_str()).collect();
        if times.windows(2).any(|pair| pair[0] < pair[1]) {
            wrong.push("a later one follows an earlier one".to_owned());
        }
        report.must(
            "3.1.4",
            "tasks are listed, the latest first, without artifacts",
            none_of(wrong),
        );
        Ok(())
    }

    async fn about_ended(&self, id: &str, report: &mut Report) -> Result<()> {
        let cancel = self.line.call(&CANCEL, &json!({"id": id})).await?;
        let held = self.refused(&cancel, ErrorKind::TaskNotCancelable);
        report.must("3.1.5", "a task that is over is TaskNotCancelable", held);
        let sent = self.line.call(&SEND, &self.sending(json!({"taskId": id}))).await?;
        let held = self.refused(&sent, ErrorKind::UnsupportedOperation);
        report.must("3.1.1", "a task that is over takes no message", held);
        if self.capabilities.streaming == Some(true) {
            let answer = self.line.call(&SUBSCRIBE, &json!({"id": id})).await?;
            let held = self.refused(&answer, ErrorKind::UnsupportedOperation);
            report.must("3.1.6", "a task that is over cannot be subscribed to", held);
        }
        Ok(())
    }

    /// A task that waits is not left behind.
    async fn about_waiting(&self, id: &str, report: &mut Report) -> Result<()> {
        let other = json!({"taskId": id, "contextId": "waypost-check-other-context"});
        let sent = self.line.call(&SEND, &self.sending(other)).await?;
        let held = match self.line.result(&sent) {
            Err(_) => Ok(()),
            Ok(_) => Err("it took a message with another context".to_owned()),
        };
        report.must("3.4.3", "a message with the context of another task is refused", held);
        let cancel = self.line.call(&CANCEL, &json!({"id": id})).await?;
        let held = match self.line.result(&cancel) {
            Ok(task) if task["id"] == id => Ok(()),
            Ok(other) => Err(format!("it answered {}", short(&other))),
            Err(error) if error.kind == ErrorKind::TaskNotCancelable => Ok(()),
            Err(error) => Err(error.message),
        };
        report.must("3.1.5", "a task that waits is cancelled, or TaskNotCancelable", held);
        Ok(())
    }

    async fn stream(&self, report: &mut Report) -> Result<()> {
        let answer = self.line.call(&STREAM, &self.sending(json!({}))).await?;
        let (section, rule, kind) = match self.line.binding {
            Binding::Rpc => ("9.4.2", SSE_RULE, "text/event-stream"),
            Binding::Rest => ("11.7", SSE_RULE, "text/event-stream"),
            Binding::Grpc => ("10.7", "a stream is one of gRPC", GRPC_TYPE),
        };
        let held = match answer.kind == kind {
            true => Ok(()),
            false => Err(format!("it is `{}`", answer.kind)),
        };
        report.must(section, rule, held);
        let events = task_rules::events(&answer.text, self.line.binding == Binding::Rpc);
        let begun = events.as_ref().ok().and_then(|events| events.first()?["task"]["id"].as_str());
        if let Some(id) = begun {
            // One that waits is not left behind; for one that is over this is nothing.
            self.line.call(&CANCEL, &json!({"id": id})).await?;
        }
        report.must("3.1.2", "a stream begins with its task or is one message", events.map(drop));
        Ok(())
    }

    /// The parameters that send the message, with these members beside its own.
    fn sending(&self, more: Value) -> Value {
        let mut message = self.message.clone();
        message["messageId"] = json!(format!("waypost-check-{:032x}", SystemEntropy.bits()));
        for (name, value) in more.as_object().into_iter().flatten() {
            message[name.as_str()] = value.clone();
        }
        json!({"message": message})
    }

    /// Whether this error was answered, as this binding says it.
    fn refused(&self, answer: &Answer, kind: ErrorKind) -> Result<(), String> {
        match self.line.result(answer) {
            Err(error) if error.kind != kind => {
                Err(format!("it answered {:?}: {}", error.kind, error.message))
            }
            Err(_) if self.line.binding == Binding::Rest && answer.status != kind.http() => {
                Err(format!("its status is {} and not {}", answer.status, kind.http()))
            }
            Err(_) => match &answer.ended {
                Some(ended) if ended.name() != kind.status() => {
                    Err(format!("its status is {} and not {}", ended.name(), kind.status()))
                }
                _ => Ok(()),
            },
            Ok(result) => Err(format!("it answered {}", short(&result))),
        }
    }

    /// Whether an error says which it is.
    fn info(&self, answer: &Answer) -> Result<(), String> {
        let of_status = json!(answer.ended.as_ref().map(|ended| &ended.details));
        let (member, details) = match self.line.binding {
            Binding::Rpc => ("data", &answer.body["error"]["data"]),
            Binding::Rest => ("details", &answer.body["error"]["details"]),
            Binding::Grpc => ("details", &of_status),
        };
        let mut all = details.as_array().into_iter().flatten();
        match all.any(|detail| detail["@type"] == ERROR_INFO && detail["reason"].is_string()) {
            true => Ok(()),
            false => Err(format!("`{member}` is {}", short(details))),
        }
    }
}

/// A value that fits into a line.
fn short(value: &Value) -> String {
    crate::terminal::output::one_line(&value.to_string())
}
