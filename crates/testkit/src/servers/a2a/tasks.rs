//! The agent's tasks, in the JSON of 1.0, and what its triggers do to them.

use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A message, whatever its dialect.
#[derive(Debug, Clone, Default)]
pub(super) struct Said {
    pub(super) id: String,
    pub(super) task: String,
    pub(super) context: String,
    /// The text of its first part.
    pub(super) text: String,
    /// The data of its first part, if it has some.
    pub(super) data: Value,
}

/// What a message is answered with.
pub(super) enum Reply {
    /// A task of 1.0.
    Task(Value),
    /// The text of a message.
    Message(String),
    /// There is no such task.
    Unknown,
    /// The task is over, or waits for nothing.
    Refused,
}

#[derive(Debug)]
pub(super) struct Tasks {
    all: Vec<Task>,
    long: Duration,
    messages: Vec<String>,
    begun: usize,
    authorized: bool,
    /// How many questions about a task are answered with somebody else's.
    mixed_up: u32,
}

#[derive(Debug)]
struct Task {
    id: String,
    context: String,
    state: &'static str,
    status: Vec<Value>,
    parts: Vec<Value>,
    /// What it does about time and replies.
    kind: Kind,
    asked: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Nothing more happens.
    Still,
    /// It is done at this time.
    Until(Instant),
    /// A reply completes it.
    Once,
    /// The reply `done` completes it.
    Turns,
    /// It waits for an authorization.
    Auth,
    /// A reply that fits its form completes it.
    Form,
}

fn text(text: &str) -> Value {
    json!({"text": text})
}

impl Tasks {
    pub(super) fn new(long: Duration) -> Self {
        let all = Vec::new();
        let messages = Vec::new();
        Self { all, long, messages, begun: 0, authorized: false, mixed_up: 0 }
    }

    pub(super) fn authorize(&mut self) {
        self.authorized = true;
    }

    pub(super) fn mix_up(&mut self, answers: u32) {
        self.mixed_up = answers;
    }

    pub(super) fn forget(&mut self) {
        self.all.clear();
    }

    pub(super) fn begun(&self) -> usize {
        self.begun
    }

    pub(super) fn message_ids(&self) -> Vec<String> {
        self.messages.clone()
    }

    pub(super) fn count(&mut self, state: &str) -> usize {
        self.pass();
        self.all.iter().filter(|task| task.state == state).count()
    }

    /// Takes a message.
    pub(super) fn send(&mut self, said: &Said) -> Reply {
        self.pass();
        self.messages.push(said.id.clone());
        if !said.task.is_empty() {
            return self.reply(said);
        }
        if trigger(said) == "tck-message-response" {
            return Reply::Message(format!("You said: {}", said.text));
        }
        self.begun += 1;
        let context = match said.context.as_str() {
            "" => format!("context-{}", self.begun),
            context => context.to_owned(),
        };
        let mut task = Task {
            id: format!("task-{}", self.begun),
            context,
            state: "TASK_STATE_COMPLETED",
            status: vec![text("done")],
            parts: Vec::new(),
            kind: Kind::Still,
            asked: said.text.clone(),
        };
        begin(&mut task, trigger(said), self.long);
        if trigger(said) == "echo" {
            task.parts = vec![json!({"data": {"text": said.text, "data": said.data}})];
        }
        self.all.push(task);
        self.pass();
        self.all.last().map(shown).map_or(Reply::Unknown, Reply::Task)
    }

    fn reply(&mut self, said: &Said) -> Reply {
        let Some(task) = self.all.iter_mut().find(|task| task.id == said.task) else {
            return Reply::Unknown;
        };
        match (task.kind, said.text.as_str()) {
            (Kind::Once, reply) => complete(task, &format!("You said: {reply}")),
            (Kind::Turns, "done") => complete(task, "done"),
            (Kind::Turns, reply) => task.status = vec![text(&format!("And after {reply}?"))],
            (Kind::Form, _) if said.data["action"] == "accept" => {
                complete(task, &format!("{} it is", said.data["content"]["count"]));
            }
            (Kind::Form, _) => {
                task.state = "TASK_STATE_REJECTED";
                task.kind = Kind::Still;
                task.status = vec![text("not wanted")];
            }
            (Kind::Still | Kind::Until(_) | Kind::Auth, _) => return Reply::Refused,
        }
        Reply::Task(shown(task))
    }

    pub(super) fn get(&mut self, id: &str) -> Option<Value> {
        self.pass();
        let asked = self.all.iter().find(|task| task.id == id).map(shown)?;
        Some(self.foreign().unwrap_or(asked))
    }

    /// A task of somebody else, where the next answer is one.
    fn foreign(&mut self) -> Option<Value> {
        self.mixed_up = self.mixed_up.checked_sub(1)?;
        Some(shown(&Task {
            id: "task-of-others".to_owned(),
            context: "context-of-others".to_owned(),
            state: "TASK_STATE_COMPLETED",
            status: vec![text("what others were told")],
            parts: vec![text("what others were given")],
            kind: Kind::Still,
            asked: "what others asked".to_owned(),
        }))
    }

    /// Cancels a task; nothing where there is none, false where it is over.
    pub(super) fn cancel(&mut self, id: &str) -> Option<(bool, Value)> {
        self.pass();
        let task = self.all.iter_mut().find(|task| task.id == id)?;
        let is_open = task.kind != Kind::Still || task.state == "TASK_STATE_WORKING";
        if is_open {
            task.state = "TASK_STATE_CANCELED";
            task.kind = Kind::Still;
            task.status = vec![text("cancelled")];
        }
        let asked = shown(task);
        Some((is_open, self.foreign().unwrap_or(asked)))
    }

    /// What time and others have done since.
    fn pass(&mut self) {
        let authorized = self.authorized;
        for task in &mut self.all {
            match task.kind {
                Kind::Until(then) if Instant::now() >= then => complete(task, "done"),
                Kind::Auth if authorized => complete(task, "authorized"),
                _ => {}
            }
        }
    }
}

fn complete(task: &mut Task, words: &str) {
    task.state = "TASK_STATE_COMPLETED";
    task.kind = Kind::Still;
    task.status = vec![text(words)];
}

/// The trigger of a message: the first word of its text, else its id.
fn trigger(said: &Said) -> &str {
    let word = said.text.split_whitespace().next().unwrap_or_default();
    let is_known =
        ["tck-", "waypost-", "echo", "test-"].iter().any(|begin| word.starts_with(begin));
    if is_known { word } else { &said.id }
}

fn begin(task: &mut Task, trigger: &str, long: Duration) {
    let starts = |begin: &str| trigger.starts_with(begin);
    let wait = |task: &mut Task, state: &'static str, kind: Kind, asked: Vec<Value>| {
        task.state = state;
        task.kind = kind;
        task.status = asked;
    };
    let input = "TASK_STATE_INPUT_REQUIRED";
    match () {
        () if starts("tck-artifact-file-url") => {
            task.parts = vec![json!({"url": "https://example.com/output.txt",
                "mediaType": "text/plain", "filename": "output.txt"})];
        }
        () if starts("tck-artifact-file") || starts("tck-stream-artifact-file") => {
            task.parts = vec![json!({"raw": "dGNr", "mediaType": "text/plain",
                "filename": "output.txt"})];
        }
        () if starts("tck-artifact-data") => {
            task.parts = vec![json!({"data": {"key": "value", "count": 42.0}})];
        }
        () if starts("tck-stream-artifact-chunked") || starts("tck-stream-chunked") => {
            task.parts = vec![text("chunk-1"), text("chunk-2")];
        }
        () if starts("tck-artifact") || (starts("tck-stream") && !starts("tck-stream-002")) => {
            task.parts = vec![text("Generated text content")];
        }
        () if starts("tck-input-required") => {
            wait(task, input, Kind::Once, vec![text("What else?")]);
        }
        () if starts("tck-multi-turn") => {
            wait(task, input, Kind::Turns, vec![text("And first?")]);
        }
        () if starts("tck-reject-task") => {
            wait(task, "TASK_STATE_REJECTED", Kind::Still, vec![text("rejected")]);
        }
        () if starts("tck-task-failure") => {
            wait(task, "TASK_STATE_FAILED", Kind::Still, vec![text("it broke")]);
        }
        () if starts("tck-long-running") || starts("test-resubscribe-message-id") => {
            let until = Kind::Until(Instant::now() + long);
            wait(task, "TASK_STATE_WORKING", until, vec![text("working on it")]);
        }
        () if starts("tck-cancel") => {
            wait(task, "TASK_STATE_WORKING", Kind::Still, vec![text("until cancelled")]);
        }
        () if starts("waypost-auth") => {
            let page = json!({"url": "https://login.example.com/page"});
            let asked = vec![text("Log in first."), page];
            wait(task, "TASK_STATE_AUTH_REQUIRED", Kind::Auth, asked);
        }
        () if starts("waypost-form") => {
            let form = json!({"data": {"kind": "elicitation", "key": "form-1", "mode": "form",
                "requestedSchema": {"type": "object", "required": ["count"],
                    "properties": {"count": {"type": "integer"}}}}});
            wait(task, input, Kind::Form, vec![text("How many?"), form]);
        }
        () => {}
    }
}

/// A task in the JSON of 1.0.
fn shown(task: &Task) -> Value {
    let status = json!({"state": task.state, "timestamp": "2026-01-02T03:04:05.678Z",
        "message": {"messageId": format!("{}-status-{}", task.id, task.status.len()),
            "role": "ROLE_AGENT", "taskId": task.id, "contextId": task.context,
            "parts": task.status}});
    let history = json!([{"messageId": "first", "role": "ROLE_USER",
        "parts": [text(&task.asked)]}]);
    let mut shown = json!({"id": task.id, "contextId": task.context, "status": status,
        "history": history});
    if !task.parts.is_empty() {
        shown["artifacts"] = json!([{"artifactId": "artifact-1", "name": "output",
            "parts": task.parts}]);
    }
    shown
}
