//! A server with an agent whose model answers as a test says, and whose tools note what they do.

use crate::house::House;
use engine::Model;
use futures::future::BoxFuture;
use kernel::contracts::Tool;
use kernel::conversation::llm::{Delta, DeltaSink, Llm, LlmError, ModelCall, Prompt, Turn, Usage};
use kernel::limits::Limits;
use kernel::tool::call::{
    Call, Caller, InputRequest, InputRequired, Reach, ToolError, ToolOutput, ToolSpec,
};
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};
use server::Extra;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// What a model does when it is asked to act.
pub enum Says {
    /// It answers, each word as it comes.
    Turn(Turn),
    /// The same, once it is let.
    Later(Arc<Semaphore>, Turn),
}

/// A model that goes by a list. As a router it allows the calendar.
pub struct Scripted {
    says: Mutex<VecDeque<Says>>,
}

impl Llm for Scripted {
    fn turn<'a>(
        &'a self,
        prompt: &'a Prompt,
        sink: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<Turn, LlmError>> {
        Box::pin(async move {
            if prompt.answer.is_some() {
                let route = json!({"decision": "allow", "note": "it is about the calendar",
                    "allowed_tool_types": ["calendar"]});
                return Ok(turn(&route.to_string(), Vec::new()));
            }
            let says = self.says.lock().unwrap().pop_front();
            let turn = match says {
                Some(Says::Turn(turn)) => turn,
                Some(Says::Later(gate, turn)) => {
                    gate.acquire().await.unwrap().forget();
                    turn
                }
                None => turn("done", Vec::new()),
            };
            for word in turn.text.split_inclusive(' ') {
                sink.delta(Delta::Text(word.to_owned()));
            }
            Ok(turn)
        })
    }
}

fn turn(text: &str, calls: Vec<ModelCall>) -> Turn {
    let usage = Usage { input: 10, output: 2, ..Usage::default() };
    Turn { text: text.to_owned(), calls, usage, ..Turn::default() }
}

/// It answers.
pub fn text(text: &str) -> Says {
    Says::Turn(turn(text, Vec::new()))
}

/// It calls these tools.
pub fn calls<const N: usize>(calls: [(&str, Value); N]) -> Says {
    let call = |(tool, arguments): (&str, Value)| ModelCall {
        id: "same".to_owned(),
        tool: tool.to_owned(),
        arguments: Arc::new(arguments),
    };
    Says::Turn(turn("", calls.into_iter().map(call).collect()))
}

/// It answers once it is let.
pub fn later(gate: &Arc<Semaphore>, text: &str) -> Says {
    Says::Later(gate.clone(), turn(text, Vec::new()))
}

/// What the tools did, and what they want.
#[derive(Default)]
pub struct Office {
    /// What happened: tool and arguments.
    pub done: Mutex<Vec<(String, Value)>>,
    /// Whether somebody has logged in.
    pub logged_in: AtomicBool,
    /// How often a tool that wants a login was called.
    pub knocks: AtomicUsize,
}

impl Office {
    /// The tools that did something.
    pub fn tools(&self) -> Vec<String> {
        self.done.lock().unwrap().iter().map(|(tool, _)| tool.clone()).collect()
    }

    /// The members of what they were given.
    pub fn each(&self, member: &str) -> Vec<Value> {
        self.done.lock().unwrap().iter().map(|(_, given)| given[member].clone()).collect()
    }

    fn note(&self, call: &Call) -> Result<ToolOutput, ToolError> {
        let tool = call.tool.to_string();
        self.done.lock().unwrap().push((tool, (*call.arguments).clone()));
        Ok(ToolOutput::Value(json!({"id": "e1"})))
    }

    fn call(&self, call: &Call) -> Result<ToolOutput, ToolError> {
        let wants = |key: &str, want| {
            let inputs = BTreeMap::from([(key.to_owned(), want)]);
            Ok(ToolOutput::Wants(Box::new(InputRequired { inputs, state: Value::Null })))
        };
        match call.tool.as_str() {
            "list_events" => Ok(ToolOutput::Value(json!({"events": []}))),
            "lose" => Err(ToolError::unknown("Lost", "the connection broke")),
            "book_room" => {
                let knocks = self.knocks.fetch_add(1, Ordering::SeqCst);
                if self.logged_in.load(Ordering::SeqCst) {
                    return self.note(call);
                }
                // Another page each time: the person who is asked must not notice.
                let url = format!("https://login.test/{knocks}");
                wants("login", InputRequest::Url { message: "log in first".to_owned(), url })
            }
            "invite" => match call.given.inputs.get("who").map(|who| &who["action"]) {
                Some(action) if action == "accept" => self.note(call),
                Some(_) => Err(ToolError::failed("Declined", "nobody is invited then")),
                None => {
                    let schema = json!({"type": "object", "required": ["name"],
                        "properties": {"name": {"type": "string"}}});
                    let message = "who comes?".to_owned();
                    wants("who", InputRequest::Form { message, schema: Arc::new(schema) })
                }
            },
            _ => self.note(call),
        }
    }
}

struct Fake {
    spec: Arc<ToolSpec>,
    office: Arc<Office>,
}

impl Tool for Fake {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { self.office.call(call) })
    }
}

const TOOLS: [&str; 6] =
    ["list_events", "create_event", "update_event", "book_room", "invite", "lose"];

fn fake(name: &str, office: &Arc<Office>) -> Arc<dyn Tool> {
    let reach = if name == "list_events" { Reach::Reads } else { Reach::Writes };
    Arc::new(Fake {
        spec: Arc::new(ToolSpec { reach, ..testkit::specs::tool(name) }),
        office: office.clone(),
    })
}

/// An agent for these tools; `create_event` and `update_event` are approved by a person.
pub fn assistant() -> Value {
    json!({
        "refName": "assistant", "name": "Assistant", "description": "Keeps a calendar.",
        "llmConfigRef": "scripted", "tool_types": {"calendar": TOOLS},
        "approve": ["create_event", "update_event"],
    })
}

/// Somebody who may store agents.
pub fn operator() -> Caller {
    Caller::new("default", "local").administering()
}

/// The demo with that agent and a model that says this.
pub async fn office(says: impl IntoIterator<Item = Says>) -> (House, Arc<Office>) {
    office_of(assistant(), says).await
}

/// The same with another agent. Logins are looked at twice a second, 60 times at most: a busy
/// machine must not get there before the test does something.
pub async fn office_of(agent: Value, says: impl IntoIterator<Item = Says>) -> (House, Arc<Office>) {
    let office = Arc::new(Office::default());
    let llm = Arc::new(Scripted { says: Mutex::new(says.into_iter().collect()) });
    let price = |usage: &Usage| Some(usage.input + usage.output);
    let model = Model { price: Some(Arc::new(price)), ..Model::new(llm) };
    let limits = Limits {
        authorize_poll_ms: 500,
        authorize_poll_ms_max: 500,
        recover_interval_ms: 20,
        turn_attempts_max: 1,
        ..Limits::default()
    };
    let config = Config { limits, ..Config::default() };
    let project = Project { config, ..Project::demo() };
    let extra = Extra {
        tools: TOOLS.iter().map(|name| fake(name, &office)).collect(),
        models: vec![("scripted".to_owned(), model)],
        ..Extra::default()
    };
    let house = House::furnished(project, extra).await;
    house.engine.catalog().register_agent(&operator(), agent, None).await.unwrap();
    (house, office)
}

/// The body of `/run`.
pub fn said(thread: &str, text: &str) -> Value {
    json!({"thread_id": thread, "user_request": text})
}

/// The body of `/resume` with decisions: each call's id, and the words of a no.
pub fn approvals(thread: &str, decisions: &[(&Value, Option<&str>)]) -> Value {
    let decision = |(id, no): &(&Value, Option<&str>)| match no {
        None => json!({"call_id": id, "approved": true}),
        Some(words) => json!({"call_id": id, "approved": false, "feedback": words}),
    };
    let approvals: Vec<Value> = decisions.iter().map(decision).collect();
    json!({"thread_id": thread, "approvals": approvals})
}

/// The calls that somebody is asked about.
pub fn asked(answer: &Value) -> Vec<Value> {
    let action = &answer["pending_action"];
    let list = action["tool_calls"].as_array().or(action["clarifications"].as_array());
    list.unwrap_or_else(|| panic!("nobody is asked: {answer}"))
        .iter()
        .map(|one| one["call_id"].clone())
        .collect()
}
