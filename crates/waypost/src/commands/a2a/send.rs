//! `waypost a2a send`: a message to an agent, and its task until that is over or asks something.

use super::reference::{Reference, failed, parts};
use crate::context::Context;
use crate::exit::{Exit, Failure, Result};
use crate::outcome;
use crate::terminal::input;
use clap::Args;
use engine::system::clock::SystemEntropy;
use kernel::contracts::Entropy;
use serde_json::json;
use std::time::{Duration, Instant};
use upstreams::Peer;
use wire::a2a::message::{Content, Message, Part, Role};
use wire::a2a::task::{StreamResponse, Task, TaskState};

const EXAMPLES: &str = "\
Examples:
  waypost a2a send https://agent.example.com 'a train to Rome, tomorrow'
  waypost a2a send http://127.0.0.1:8420 --skill math::conditional_add --data '{\"a\":1,\"b\":2}'
  waypost a2a send http://127.0.0.1:8420 'yes' --task run_0f..    # answers what a task asks
  waypost a2a send card.json 'hello' --header 'X-Api-Key: ${KEY}'";

/// How soon the command asks for a task again; twice as long each time, up to the second.
const LOOK: Duration = Duration::from_millis(100);
const LOOK_MAX: Duration = Duration::from_secs(3);
/// How often in a row looking may fail.
const MISSES_MAX: u32 = 3;

/// What `waypost a2a send` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SendArgs {
    #[command(flatten)]
    agent: Reference,
    /// What to say
    #[arg(value_name = "TEXT", required_unless_present = "data")]
    text: Option<String>,
    /// The skill that is meant, by its id
    #[arg(long)]
    skill: Option<String>,
    /// A JSON value to send, or @file
    #[arg(long, value_name = "JSON")]
    data: Option<String>,
    /// The task that this answers
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// The conversation that this belongs to
    #[arg(long, value_name = "ID")]
    context: Option<String>,
    /// How many seconds to wait for the end of the task
    #[arg(long, default_value_t = 300, value_parser = crate::commands::wait)]
    wait: u64,
}

/// Sends it, and ends with 3 where the task asks something.
pub(super) async fn run(args: &SendArgs, context: &Context) -> Result<Exit> {
    let config = args.agent.config(context)?;
    let parts = parts();
    let talking = async {
        let peer = Peer::open(&config, &parts).await.map_err(failed)?;
        let message = message(args, &peer)?;
        match peer.send(message).await.map_err(|error| failed(error.fault))? {
            StreamResponse::Message(message) => Ok(Answer::Message(*message)),
            StreamResponse::Task(task) => followed(&peer, *task, args.wait).await.map(Answer::Task),
            StreamResponse::StatusUpdate(_) | StreamResponse::ArtifactUpdate(_) => {
                let what = "it answered neither with a task nor with a message";
                Err(Failure::new(Exit::Upstream, "not_a2a", what))
            }
        }
    };
    match context.progress().during("waiting for the agent", talking).await? {
        Answer::Message(message) => {
            context.output.data(&json!({"message": message}), &shown_parts(&message.parts))
        }
        Answer::Task(task) => print_task(args, context, &task),
    }
}

enum Answer {
    Message(Message),
    Task(Task),
}

fn message(args: &SendArgs, peer: &Peer) -> Result<Message> {
    let data = args.data.as_deref().map(input::text_or_file).transpose()?;
    let text = args.text.as_deref().map(Part::text);
    let mut message = Message {
        message_id: format!("msg_{:032x}", SystemEntropy.bits()),
        role: Role::User,
        parts: text.into_iter().chain(data.map(Part::data)).collect(),
        task_id: args.task.clone().unwrap_or_default(),
        context_id: args.context.clone().unwrap_or_default(),
        ..Message::default()
    };
    if let Some(skill) = &args.skill {
        peer.name_skill(&mut message, skill);
    }
    Ok(message)
}

/// The task when it is over, asks something, or has taken too long.
async fn followed(peer: &Peer, mut task: Task, seconds: u64) -> Result<Task> {
    let begun = Instant::now();
    let limit = Duration::from_secs(seconds);
    let mut pause = LOOK;
    let mut misses = 0;
    while !is_still(task.status.state) && begun.elapsed() < limit {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LOOK_MAX);
        match peer.task(&task.id).await {
            Ok(seen) => (task, misses) = (seen, 0),
            Err(error) if error.fault.passing && misses < MISSES_MAX => misses += 1,
            Err(error) => return Err(failed(error.fault)),
        }
    }
    Ok(task)
}

/// Whether a task is over, or waits for a message or a person.
fn is_still(state: TaskState) -> bool {
    state.is_terminal() || state.is_interrupted()
}

fn print_task(args: &SendArgs, context: &Context, task: &Task) -> Result<Exit> {
    let id = task.id.as_str();
    let agent = args.agent.agent.as_str();
    let state = task.status.state;
    let exit = exit_of(state);
    if context.output.is_json() {
        context.output.document(&json!({"task": task}))?;
        return Ok(exit);
    }
    let said = task.status.message.as_ref().map(|message| shown_parts(&message.parts));
    let said = said.unwrap_or_default();
    if exit == Exit::Failed {
        let words = if said.is_empty() { String::new() } else { format!(": {said}") };
        let what = format!("task {id} is {}{words}", word(state));
        return Err(Failure::new(Exit::Failed, word(state), what));
    }
    let made: Vec<String> = task.artifacts.iter().map(|one| shown_parts(&one.parts)).collect();
    let shown = if made.is_empty() { said } else { made.join("\n") };
    if !shown.is_empty() {
        context.output.text(&shown)?;
    }
    let output = context.output;
    match exit {
        Exit::Paused => {
            output.talk(&format!("task {id} is {}; answer with", word(state)));
            output.talk(&format!("  waypost a2a send {agent} '..' --task {id}"));
        }
        Exit::Timeout => output.talk(&format!("task {id} continues: `waypost a2a tasks {agent}`")),
        _ => output.talk(&format!("task {id} is {}", word(state))),
    }
    Ok(exit)
}

fn exit_of(state: TaskState) -> Exit {
    match state {
        TaskState::Completed => Exit::Ok,
        TaskState::Failed | TaskState::Canceled | TaskState::Rejected => Exit::Failed,
        TaskState::InputRequired | TaskState::AuthRequired => Exit::Paused,
        TaskState::Unspecified | TaskState::Submitted | TaskState::Working => Exit::Timeout,
    }
}

/// A state in a word or two.
pub(super) fn word(state: TaskState) -> &'static str {
    match state {
        TaskState::Unspecified => "unknown",
        TaskState::Submitted => "submitted",
        TaskState::Working => "working",
        TaskState::Completed => "completed",
        TaskState::Failed => "failed",
        TaskState::Canceled => "canceled",
        TaskState::InputRequired => "input-required",
        TaskState::Rejected => "rejected",
        TaskState::AuthRequired => "auth-required",
    }
}

/// Parts as data: texts as they are, values as JSON, files by name.
fn shown_parts(parts: &[Part]) -> String {
    let shown = |part: &Part| match &part.content {
        Content::Text(text) => text.clone(),
        Content::Data(data) => outcome::value_text(data),
        Content::Url(url) => url.clone(),
        Content::Raw(bytes) => {
            let name = if part.filename.is_empty() { "a file" } else { part.filename.as_str() };
            format!("{name}, {} bytes", bytes.len())
        }
    };
    parts.iter().map(shown).collect::<Vec<_>>().join("\n")
}
