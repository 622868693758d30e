//! One call of an agent: a message is sent, and its task is polled until it has ended. A task that
//! takes longer, or requires input, is returned as resumable state, so that its id is recorded and
//! it survives a restart.

use super::agent::{Agent, LookupError, RunningTask};
use super::asks::{self, OpenQuestion, Reply};
use super::dialect::Operation;
use super::output;
use crate::{Result, cut};
use kernel::tool::call::{
    Abilities, Call, CallProgress, CallUpdate, InputRequest, InputRequired, ToolError, ToolOutput,
};
use kernel::values::ids::CallId;
use outbound::answer::Effect;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wire::a2a::message::{Message, Part, Role};
use wire::a2a::task::{StreamResponse, Task, TaskState};

/// The first delay before a task is polled again; twice as long each time.
const LOOK_MS: u64 = 100;
/// How long at most.
const LOOK_MS_MAX: u64 = 5_000;
/// How long at most between two looks at a task that shows what was answered already.
const STALE_MS_MAX: u64 = 1_600;
/// How often in a row looking at a task may fail before it is given up: several minutes.
const MISSES_MAX: u32 = 20;
/// How much of what an agent says is reported.
const TOLD_CHARS_MAX: usize = 2_000;
/// How long a look at a task may take that waits for an answer of ours.
const MOVED_MS_MAX: u64 = 10_000;
/// How many bytes the task may have then.
const MOVED_BYTES_MAX: usize = 1_000_000;

/// State that a call returns with its required input, and receives again with the answers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct CarriedState {
    /// The agent's task.
    pub(super) task: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    context: String,
    /// How many messages of ours were sent to it after the first.
    replies: u32,
    /// How many questions it asked.
    questions: u32,
    /// How often in a row it could not be looked at.
    misses: u32,
    /// The question that is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<OpenQuestion>,
    /// The status that someone has done something about, where nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<String>,
}

impl CarriedState {
    /// Parses returned state; empty if it is not ours.
    pub(super) fn read(state: &Value) -> Self {
        serde_json::from_value(state.clone()).unwrap_or_default()
    }

    fn of(task: &Task) -> Self {
        let context = task.context_id.clone();
        Self { task: Some(task.id.clone()), context, ..Self::default() }
    }

    /// The task that waits for an answer, and what it asked.
    pub(super) fn waiting(self) -> Option<(String, OpenQuestion)> {
        Some((self.task?, self.asked?))
    }

    fn wanting(&self, inputs: BTreeMap<String, InputRequest>) -> ToolOutput {
        ToolOutput::Wants(Box::new(InputRequired { inputs, state: json!(self) }))
    }
}

/// One invocation.
#[derive(Clone, Copy)]
pub(super) struct Invocation<'a> {
    pub(super) agent: &'a Arc<Agent>,
    pub(super) call: &'a Call,
}

impl Invocation<'_> {
    /// Sends the message, or continues with the task that it began.
    pub(super) async fn run(self, message: impl FnOnce() -> Result<Message>) -> Result<ToolOutput> {
        let carried = CarriedState::read(&self.call.given.state);
        if carried.task.is_some() {
            return self.resume(carried).await;
        }
        match self.agent.send(message()?, self.call).await? {
            StreamResponse::Message(message) => Ok(ToolOutput::Value(output::of_message(*message))),
            StreamResponse::Task(task) if !task.id.is_empty() => {
                let carried = CarriedState::of(&task);
                self.take(*task, carried).await
            }
            _ => Err(self.agent.not_a2a("it answered neither with a task nor with a message")),
        }
    }

    /// Takes a task up again that is known.
    async fn resume(self, mut carried: CarriedState) -> Result<ToolOutput> {
        let answer = carried.asked.as_ref().and_then(|asked| {
            let answer = self.call.given.inputs.get(&asked.key)?;
            Some((asks::reply(asked, answer), asked.status.clone()))
        });
        carried.asked = None;
        let Some((reply, status)) = answer else { return self.follow(carried, None).await };
        match reply {
            Reply::Parts(parts) => self.answer(carried, parts, &status).await,
            Reply::Nothing => {
                carried.done = Some(status);
                self.follow(carried, None).await
            }
            Reply::Declined => {
                if let Some(task) = &carried.task {
                    self.agent.cancel(task).await;
                }
                let message = self.agent.named("it waited for an answer, and that was declined");
                Err(ToolError::failed("Declined", message))
            }
        }
    }

    /// Sends an answer to what the task waits for with this status.
    async fn answer(
        self,
        mut carried: CarriedState,
        parts: Vec<Part>,
        answered: &str,
    ) -> Result<ToolOutput> {
        carried.replies += 1;
        let message = Message {
            message_id: reply_id(self.call.id, carried.replies),
            task_id: carried.task.clone().unwrap_or_default(),
            context_id: carried.context.clone(),
            role: Role::User,
            parts,
            ..Message::default()
        };
        match self.agent.send(message, self.call).await {
            Ok(StreamResponse::Task(task)) if Some(&task.id) == carried.task.as_ref() => {
                let task = self.past(answered, *task).await;
                self.take(task, carried).await
            }
            // It may continue elsewhere, and say so in a message.
            Ok(_) => self.follow(carried, None).await,
            // It may be over meanwhile; if it still waits, the answer was refused.
            Err(refused) if refused.how == CallProgress::Failed => {
                self.follow(carried, Some(refused)).await
            }
            Err(error) => Err(error),
        }
    }

    /// The task once it shows another status than the one that was answered. Some agents take an
    /// answer before they change the status; one that asks the very same again is believed soon.
    async fn past(self, answered: &str, mut task: Task) -> Task {
        let mut wait_ms = LOOK_MS;
        let is_stale = |task: &Task| {
            task.status.state.is_interrupted() && asks::mark(&task.status) == answered
        };
        while is_stale(&task) && wait_ms <= STALE_MS_MAX {
            self.agent.parts.clock.sleep_ms(wait_ms).await;
            wait_ms *= 2;
            if let Ok(seen) = self.look(&task.id).await {
                task = seen;
            }
        }
        task
    }

    /// Handles a new task. A caller that can resume is told at once, so that the task's id is
    /// recorded before anyone waits for it.
    async fn take(self, task: Task, carried: CarriedState) -> Result<ToolOutput> {
        let state = task.status.state;
        if state.is_terminal() || state.is_interrupted() {
            return self.settle(task, carried);
        }
        if self.call.can.later {
            return Ok(carried.wanting(BTreeMap::new()));
        }
        self.follow(carried, None).await
    }

    /// Looks at a task until it is over or waits for someone. `refused` is why our answer was not
    /// taken, if it was not.
    async fn follow(
        self,
        mut carried: CarriedState,
        refused: Option<ToolError>,
    ) -> Result<ToolOutput> {
        let id = carried.task.clone().unwrap_or_default();
        let later = self.call.can.later;
        let mut running = RunningTask::new(self.agent, &id, later);
        let clock = &self.agent.parts.clock;
        let until = clock.elapsed() + Duration::from_millis(self.call_ms() / 4 * 3);
        let mut wait_ms = LOOK_MS;
        let mut said = String::new();
        for look in 1u64.. {
            match self.look(&id).await {
                Ok(task) => {
                    carried.misses = 0;
                    self.tell(look, &task, &mut said);
                    if self.is_settled(&task, &carried) {
                        return match refused {
                            // It would wait for ever.
                            Some(refused) if task.status.state.is_interrupted() => Err(refused),
                            _ => {
                                running.over = true;
                                self.settle(task, carried)
                            }
                        };
                    }
                }
                Err(LookupError::Passing(error)) => {
                    carried.misses += 1;
                    wait_ms = wait_ms.max(self.agent.parts.backoff_ms(carried.misses));
                    if carried.misses > MISSES_MAX {
                        running.over = true;
                        return Err(lost(error));
                    }
                }
                Err(LookupError::Refused(error)) => {
                    // An agent that does not know it cannot cancel it either.
                    running.over = true;
                    return Err(lost(error));
                }
            }
            let rest = until.saturating_sub(clock.elapsed()).as_millis() as u64;
            if rest == 0 {
                break;
            }
            if running.is_stopped_within(wait_ms.min(rest)).await {
                let told = self.agent.cancel(&id).await;
                if let Some(task) = told.filter(|task| task.status.state.is_terminal()) {
                    running.over = true;
                    return self.settle(task, carried);
                }
                // It may be over all the same, or soon.
                wait_ms = LOOK_MS;
                continue;
            }
            wait_ms = (wait_ms * 2).min(LOOK_MS_MAX);
        }
        self.left(carried, running)
    }

    /// The time for one look is over.
    fn left(self, carried: CarriedState, mut running: RunningTask) -> Result<ToolOutput> {
        if self.call.can.later {
            running.over = true;
            return Ok(carried.wanting(BTreeMap::new()));
        }
        let message = self.agent.named("its task was not over in time");
        Err(ToolError::unknown("UpstreamTimeout", message)
            .hint("call it in a run, which waits as long as it takes")
            .passing())
    }

    /// One look at a task. It is over early enough for the call to come back before the gate gives
    /// it up.
    async fn look(self, task: &str) -> Result<Task, LookupError> {
        let ms = (self.call_ms() / 8).max(1);
        let looked = self.agent.parts.within(ms, self.agent.get(task, self.call)).await;
        looked.unwrap_or_else(|| {
            let message = self.agent.named(&format!("it did not answer within {ms} ms"));
            Err(LookupError::Passing(ToolError::failed("UpstreamTimeout", message).passing()))
        })
    }

    /// How long one invocation may take.
    fn call_ms(self) -> u64 {
        self.agent.timeout_ms.unwrap_or(u64::MAX).min(self.call.timeout_ms)
    }

    /// Whether a task is over, or waits for something that no one has done yet.
    fn is_settled(self, task: &Task, carried: &CarriedState) -> bool {
        let status = &task.status;
        let is_done = carried.done.as_ref().is_some_and(|done| *done == asks::mark(status));
        status.state.is_terminal() || (status.state.is_interrupted() && !is_done)
    }

    /// The output of a task that is over, or what it waits for.
    fn settle(self, task: Task, carried: CarriedState) -> Result<ToolOutput> {
        match task.status.state {
            TaskState::InputRequired | TaskState::AuthRequired => self.wait_for(&task, carried),
            TaskState::Completed => Ok(ToolOutput::Value(output::of_task(task))),
            TaskState::Rejected => Err(self.failed("Rejected", "it rejected the task", task)),
            TaskState::Canceled => Err(self.failed("Cancelled", "the task was cancelled", task)),
            TaskState::Failed
            | TaskState::Unspecified
            | TaskState::Submitted
            | TaskState::Working => Err(self.failed("ToolFailed", "the task failed", task)),
        }
    }

    fn wait_for(self, task: &Task, mut carried: CarriedState) -> Result<ToolOutput> {
        carried.questions += 1;
        let (asked, want) = asks::question(&task.status, carried.questions);
        if !self.call.can.can(&want) {
            self.agent.cancel_soon(task.id.clone());
            let lacks = Abilities::default().and(&want);
            let message = self.agent.named("its task asks for something, and no one can be asked");
            return Err(ToolError::failed("InputWanted", message)
                .hint("call it in a run, or with a client that can be asked")
                .lacks(lacks));
        }
        let inputs = BTreeMap::from([(asked.key.clone(), want)]);
        carried.asked = Some(asked);
        Ok(carried.wanting(inputs))
    }

    fn failed(self, name: &str, what: &str, task: Task) -> ToolError {
        let words = task.status.message.as_ref().map(Message::words).unwrap_or_default();
        let told = match words.trim() {
            "" => what.to_owned(),
            words => format!("{what}: {}", cut(words, TOLD_CHARS_MAX)),
        };
        let result = output::as_failure(output::of_task(task));
        ToolError::failed(name, self.agent.named(&told)).content(result)
    }

    /// Tells how far the task is, if it says something new.
    fn tell(self, look: u64, task: &Task, said: &mut String) {
        let words = task.status.message.as_ref().map(Message::words).unwrap_or_default();
        if words.is_empty() || words == *said {
            return;
        }
        *said = words;
        let message = Some(cut(said, TOLD_CHARS_MAX));
        self.call.teller.tell(CallUpdate::Progress { progress: look as f64, total: None, message });
    }
}

/// Whether a task that asked this went on without our answer. Where the agent does not say, it did
/// not.
pub(super) async fn has_moved(agent: Arc<Agent>, task: String, asked: OpenQuestion) -> bool {
    let operation = Operation::Get(task);
    let looking = agent.done(&operation, Effect::Reads, MOVED_BYTES_MAX, MOVED_MS_MAX);
    match agent.parts.within(MOVED_MS_MAX, looking).await {
        Some(Ok(StreamResponse::Task(task))) => asks::has_moved(&asked, &task.status),
        Some(Ok(_) | Err(_)) | None => false,
    }
}

/// The id of the n-th answer of a call: the same each time, so that an agent that remembers ids
/// takes it once.
fn reply_id(call: CallId, number: u32) -> String {
    format!("{call}-{number}")
}

/// The task can be found no more: no one knows the outcome.
fn lost(error: ToolError) -> ToolError {
    ToolError { how: CallProgress::Unknown, ..error }
}
