//! Scenes: a plan or an agent, an input, what tools, models and people answer, and the journal that
//! comes of it, all in one text file. Each scene is also cut after every event and must come to the
//! same end.

use kernel::ask::reply::short_form;
use kernel::ask::{Ask, AskBody, Reply};
use kernel::event::Event;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

mod around;
mod tools;
mod outline;
mod options;
mod stage;
mod time;
mod turns;
mod proposals;
mod improvised;

pub use improvised::{Improvised, Waits};
use stage::Stage;

/// A scene's parts, by the headings of its file.
#[derive(Debug, Clone, Default)]
pub struct Scene {
    /// The plans; the first is run.
    pub plans: Vec<String>,
    /// Agents that the plans name. Without a plan the first one is talked to, in a thread.
    pub agents: Vec<String>,
    /// What models answer, in order, each one JSON object: `{text}`, `{calls: [{tool,
    /// arguments}]}`, `{route: {..}}` or `{error: kind}`; beside these `usage`, `cost_micros`,
    /// `stop` and `retry_after_ms`.
    pub model: Vec<String>,
    /// The inputs: of the run, and of those that follow it in the same session.
    pub inputs: Vec<Value>,
    /// `step = value`, `step ! how Name message` (`!~` where that is passing) or `step ? {what it
    /// wants, by key}`, in order of calling. A tool's name in the place of the step's is for the
    /// calls of that tool.
    pub tools: Vec<String>,
    /// Replies in order of asking; `step: reply` answers that step's ask, and `anyway reply` one
    /// that a rule holds.
    pub replies: Vec<String>,
    /// The project's rules for failed steps, as YAML. With `built_in: on` among the options the
    /// built-in rule holds too.
    pub rules: String,
    /// What models propose about failed steps, in order, each one JSON object as `proposal.given`
    /// has it in `found`.
    pub proposals: Vec<String>,
    /// `finish: last` lets the call that started last come back first; `cancel: N` cancels after N
    /// events; `tick_ms: N` is how long an event takes; `space: case:trades` is where it plays;
    /// `together: N` is how many of its runs are active at once, where that is more than one;
    /// `step_visits_max: N` and other limits.
    pub options: BTreeMap<String, String>,
    /// What must come of it.
    pub expect: String,
}

impl Scene {
    pub fn parse(text: &str) -> Self {
        let mut scene = Scene::default();
        for part in text.split("\n## ").skip(1) {
            let (heading, body) = part.split_once('\n').unwrap_or((part, ""));
            let lines = || body.lines().map(str::trim).filter(|line| !line.is_empty());
            match heading.trim() {
                "plan" => scene.plans.push(body.to_owned()),
                "agent" => scene.agents.push(body.to_owned()),
                "model" => scene.model = lines().map(str::to_owned).collect(),
                "input" => scene.inputs.push(serde_json::from_str(body).expect("input is JSON")),
                "tools" => scene.tools = lines().map(str::to_owned).collect(),
                "replies" => scene.replies = lines().map(str::to_owned).collect(),
                "rules" => scene.rules = body.to_owned(),
                "proposals" => scene.proposals = lines().map(str::to_owned).collect(),
                "options" => {
                    for line in lines() {
                        let (name, value) =
                            line.split_once(':').expect("options are `name: value`");
                        scene.options.insert(name.trim().to_owned(), value.trim().to_owned());
                    }
                }
                "expect" => scene.expect = body.trim_end().to_owned(),
                other => panic!("unknown heading `## {other}`"),
            }
        }
        if scene.inputs.is_empty() {
            scene.inputs.push(json!({}));
        }
        scene
    }

    /// Plays the scene and gives its journal and end as text.
    pub fn play(&self) -> String {
        let mut stage = Stage::new(self);
        stage.begin();
        stage.run();
        let whole = stage.journal();
        let end = stage.end();
        // The first two events make the session and the run: from there on every cut counts.
        for cut in 2..stage.events.len() {
            let mut again = Stage::new(self);
            again.replay(&stage.events[..cut]);
            again.run();
            assert_eq!(again.end(), end, "cut after event {cut} comes to another end");
        }
        format!("{whole}{end}")
    }

    /// Plays the scene once and gives its journal.
    pub fn record(&self) -> Vec<Event> {
        let mut stage = Stage::new(self);
        stage.begin();
        stage.run();
        stage.events
    }
}

/// A reply in an example's short form. Several questions are answered by `answers`, several calls
/// decided by `decisions`, both in the order in which they are asked.
pub fn reply_of(ask: &Ask, value: &Value) -> Reply {
    let declines = value.get("decline").is_some();
    let arguments = value.get("arguments").filter(|_| value.get("approve").is_some());
    let in_order = in_order(ask, value);
    let input = in_order.as_ref().or_else(|| value.get("answer")).or_else(|| value.get("input"));
    let input = input.unwrap_or(value);
    let mut reply = short_form(ask, Some(input)).expect("the reply fits its ask");
    match &mut reply {
        Reply::Clarify { answer } if declines => *answer = None,
        Reply::Fill { content } if declines => *content = None,
        Reply::Authorize { done } if declines => *done = false,
        Reply::Approve { decisions } if value.get("decisions").is_none() => {
            for decision in decisions {
                decision.arguments = arguments.cloned().map(Arc::new);
            }
        }
        _ => {}
    }
    reply
}

/// Answers and decisions that are given in order, by the ids of their calls.
fn in_order(ask: &Ask, value: &Value) -> Option<Value> {
    match &ask.body {
        AskBody::Clarify { questions, .. } => {
            let answers = value.get("answers")?.as_array()?;
            let by_call = questions.iter().map(|asked| asked.call_id.to_string()).zip(answers);
            let by_call = by_call.map(|(id, answer)| (id, answer.clone()));
            Some(Value::Object(by_call.collect::<Map<String, Value>>()))
        }
        AskBody::Approve { calls } => {
            let mut decisions = value.get("decisions")?.as_array()?.clone();
            for (decision, call) in decisions.iter_mut().zip(calls) {
                decision["callId"] = json!(call.call_id);
            }
            Some(json!({"decisions": decisions}))
        }
        AskBody::Fill { .. } | AskBody::Authorize { .. } | AskBody::Fix { .. } => None,
    }
}
