//! Calls that a server answers with a task: the task is polled until it ends, its progress reported
//! and its required input supplied. Abandoning the call cancels the task.

use super::super::Link;
use super::super::peer::{AskError, Peer, Request};
use super::invocation::Invocation;
use super::{broken, refused};
use crate::mcp::questions::{CarriedState, PendingWork, Requests, RunningTask};
use kernel::tool::call::{Abilities, CallProgress, CallUpdate, ToolError, ToolOutput};
use kernel::values::fault::Fault;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use wire::jsonrpc::{INTERNAL_ERROR, RpcError};

/// How often a task is polled where its server does not say.
const POLL_MS: u64 = 1_000;
/// How often a server may want its task to be looked at.
const POLL_MS_MIN: u64 = 50;
/// How seldom.
const POLL_MS_MAX: u64 = 60_000;
/// How often in a row looking at a task may fail before it is given up.
const FAILURES_MAX: u32 = 5;

/// Members with a task's result, failure or required input.
const MEMBERS_TOLD: [&str; 3] = ["result", "error", "inputRequests"];

/// A task that a call was answered with. A caller that can come back for it learns so at once, so
/// that its id is written down before anyone waits for it.
pub(super) async fn begin(
    calling: Invocation<'_>,
    peer: Arc<Peer>,
    task: Value,
) -> Result<ToolOutput, ToolError> {
    let Some(id) = task["taskId"].as_str() else {
        return Err(calling.not_understood("a task without an id"));
    };
    let running = RunningTask::new(peer, id.to_owned(), &calling.link().parts);
    let mut following = TaskFollower { calling, running, answered: Vec::new() };
    if calling.call.can.later {
        return Ok(following.keep(Requests::default()));
    }
    // One that is quick may be over already; its result is then in the answer to a look.
    let is_open = matches!(task["status"].as_str(), Some("working" | "submitted"));
    let is_told = || MEMBERS_TOLD.iter().any(|member| task.get(*member).is_some());
    let task = if is_open || is_told() { task } else { following.look().await? };
    following.follow_to_end(task).await
}

/// A task that is known: it had asked for something, or had only begun.
pub(super) async fn resume(
    calling: Invocation<'_>,
    running: RunningTask,
    carried: &CarriedState,
) -> Result<ToolOutput, ToolError> {
    let answers = carried.answers(&calling.call.given);
    let mut following = TaskFollower { calling, running, answered: carried.answered.clone() };
    if following.running.peer.is_lost() {
        following.running.peer = calling.peer().await?;
    }
    following.update(answers).await?;
    let task = following.look().await?;
    following.follow_to_end(task).await
}

/// Cancels a task that no one follows and no one will come back for.
pub(super) fn cancel(link: &Arc<Link>, id: String) {
    let of = link.clone();
    let cancelling = async move {
        // Where it cannot be reached, it ends by itself some day.
        if let Ok(peer) = of.peer().await {
            drop(RunningTask::new(peer, id, &of.parts));
        }
    };
    link.parts.spawn.task("cancel upstream task", Box::pin(cancelling));
}

/// One task in hand.
struct TaskFollower<'a> {
    calling: Invocation<'a>,
    running: RunningTask,
    /// The keys that have their answer.
    answered: Vec<String>,
}

impl TaskFollower<'_> {
    async fn follow_to_end(mut self, mut task: Value) -> Result<ToolOutput, ToolError> {
        let calling = self.calling;
        let mut said = String::new();
        for look in 1u64.. {
            match task["status"].as_str().unwrap_or_default() {
                "completed" => {
                    self.running.over = true;
                    return calling
                        .done(task.get_mut("result").map(Value::take).unwrap_or_default());
                }
                "failed" => {
                    self.running.over = true;
                    return Err(failed(calling, &error(&task)));
                }
                "cancelled" => {
                    self.running.over = true;
                    let message = calling.named("the task was cancelled there");
                    return Err(ToolError::failed("Cancelled", message));
                }
                "input_required" => {
                    let can = calling.call.can;
                    let requests = Requests::read(task.get("inputRequests"), can);
                    let requests = requests.without(&self.answered);
                    if !requests.wants.is_empty() {
                        return Ok(self.keep(requests));
                    }
                    match requests.impossible.first() {
                        Some((key, why)) if requests.declined.is_empty() => {
                            let what = format!("its task asks for `{key}`, but {why}");
                            return Err(calling.impossible(&what, requests.lacks));
                        }
                        _ => self.update(requests.declined).await?,
                    }
                }
                "working" | "submitted" => {}
                status => {
                    return Err(calling.not_understood(&format!("a task that is `{status}`")));
                }
            }
            tell(calling, look, &task, &mut said);
            self.pause(&task).await;
            task = self.look().await?;
        }
        Err(calling.not_understood("a task without an end"))
    }

    /// Keeps the task until what it asks for is answered.
    fn keep(self, requests: Requests) -> ToolOutput {
        let TaskFollower { calling, mut running, answered } = self;
        running.recorded = calling.call.can.later;
        let mut carried = CarriedState {
            asked: requests.wants.keys().cloned().collect(),
            declined: requests.declined.keys().cloned().collect(),
            task: Some(running.id.clone()),
            answered,
            ..CarriedState::default()
        };
        let link = calling.link();
        let token = link.pending.keep(&link.parts, calling.whose(), PendingWork::Task(running));
        carried.pending = Some(token);
        carried.wanting(requests.wants)
    }

    /// Answers what the task asks for.
    async fn update(&mut self, answers: Map<String, Value>) -> Result<(), ToolError> {
        if answers.is_empty() {
            return Ok(());
        }
        let keys: Vec<String> = answers.keys().cloned().collect();
        let params = json!({"taskId": self.running.id, "inputResponses": answers});
        match self.ask("tasks/update", params).await {
            Ok(_) => {
                self.answered.extend(keys);
                Ok(())
            }
            Err(error) => Err(self.lost(error)),
        }
    }

    /// Where the task stands. A look that fails is no failure of the task.
    async fn look(&mut self) -> Result<Value, ToolError> {
        let link = self.calling.link();
        let mut failures = 0;
        loop {
            let params = json!({"taskId": self.running.id});
            match self.ask("tasks/get", params).await {
                Ok(task) => return Ok(task),
                Err(AskError::Peer(_)) if failures < FAILURES_MAX => failures += 1,
                Err(error) => return Err(self.lost(error)),
            }
            link.parts.clock.sleep_ms(link.parts.backoff_ms(failures)).await;
            if self.running.peer.is_lost()
                && let Ok(peer) = link.peer().await
            {
                self.running.peer = peer;
            }
        }
    }

    async fn ask(&self, method: &str, params: Value) -> Result<Value, AskError> {
        let running = &self.running;
        let ms = self.calling.request_ms();
        // It is there, so we follow it, whatever its caller said of tasks.
        let can = Abilities { tasks: true, ..self.calling.call.can };
        let name = Some(running.id.as_str());
        let request = Request { name, can, ..Request::new(method, params, ms) };
        running.peer.request(request).await
    }

    /// The task can be found no more: no one knows the outcome.
    fn lost(&mut self, error: AskError) -> ToolError {
        let config = &self.calling.link().config;
        let fault = match &error {
            AskError::Peer(error) => broken(config, error),
            AskError::Rpc(error) => {
                // Who does not know it cannot cancel it either.
                self.running.over = true;
                refused(config, error)
            }
        };
        ToolError::new(CallProgress::Unknown, fault)
    }

    async fn pause(&self, task: &Value) {
        let ms = task["pollIntervalMs"].as_u64().unwrap_or(POLL_MS);
        let clock = &self.calling.link().parts.clock;
        clock.sleep_ms(ms.clamp(POLL_MS_MIN, POLL_MS_MAX)).await;
    }
}

/// Tells where the task says it stands, if it says something new.
fn tell(calling: Invocation<'_>, look: u64, task: &Value, said: &mut String) {
    let message = task["statusMessage"].as_str();
    let Some(message) = message.filter(|message| *message != said.as_str()) else { return };
    *said = message.to_owned();
    let message = Some(said.clone());
    calling.call.teller.tell(CallUpdate::Progress { progress: look as f64, total: None, message });
}

/// The server says that it could not carry its task out; a tool that failed is a result.
fn failed(calling: Invocation<'_>, error: &RpcError) -> ToolError {
    let fault = refused(&calling.link().config, error);
    let fault = Fault { name: "UpstreamTaskFailed".to_owned(), ..fault };
    ToolError::new(CallProgress::Failed, fault).answered(error.to_value())
}

/// Why a task failed.
fn error(task: &Value) -> RpcError {
    let code = task["error"]["code"].as_i64().unwrap_or(INTERNAL_ERROR);
    let said = [&task["error"]["message"], &task["statusMessage"]];
    let message = said.into_iter().find_map(Value::as_str).unwrap_or("its task failed");
    let error = RpcError::new(code, message);
    match task["error"].get("data") {
        Some(data) => error.data(data.clone()),
        None => error,
    }
}
