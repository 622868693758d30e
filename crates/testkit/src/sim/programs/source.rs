//! Writes plans in the format of the loader.

use super::healing::{advice_of, rules_of};
use super::plans::{
    AgentStep, CallStep, Kind, Look, NOTHING, NUMBER, Node, Over, Past, SHARED_KEY, SimPlan,
    branch_id, plan_id, type_of,
};
use serde_json::{Map, Value, json};

impl SimPlan {
    /// The id of the step that answers.
    pub fn end_id(&self) -> String {
        format!("{}end", self.prefix())
    }

    fn other_id(&self) -> String {
        format!("{}no", self.prefix())
    }

    fn prefix(&self) -> &str {
        self.id.rsplit('/').next().unwrap_or_default()
    }

    /// The plan as the loader reads it.
    pub fn source(&self) -> Value {
        let mut steps = self.list(&self.nodes, true);
        let mut message = Map::new();
        for path in &self.shown {
            message.insert(path.join("_"), in_context(path, &json!(NOTHING)));
        }
        for (index, past) in self.past.iter().enumerate() {
            message.insert(past_key(index), in_history(past));
        }
        steps.push(json!({"id": self.end_id(), "type": "final_response", "message": message}));
        if self.diverts() {
            let id = self.other_id();
            steps.push(json!({"id": id, "type": "final_response", "message": "no"}));
        }
        let start = self.nodes.first().map_or_else(|| self.end_id(), |node| node.id.clone());
        json!({"planId": self.id, "startStepId": start, "steps": steps})
    }

    fn diverts(&self) -> bool {
        self.nodes.iter().any(|node| match &node.kind {
            Kind::Call(call) => call.diverts && call.approve,
            Kind::Human { diverts, .. } => *diverts,
            _ => false,
        })
    }

    /// At the top a step names the next one; below, the order of the list rules.
    fn list(&self, nodes: &[Node], top: bool) -> Vec<Value> {
        let id_at = |index: usize| match nodes.get(index) {
            Some(node) => node.id.clone(),
            None => self.end_id(),
        };
        let mut steps = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            let mut step = self.step(node, &id_at(index + 1), &id_at(index + 2));
            let chooses =
                matches!(node.kind, Kind::SkipIf | Kind::SkipCase(_) | Kind::SkipUnless(_));
            if top && !chooses {
                step["nextStepId"] = json!(id_at(index + 1));
            }
            steps.push(step);
        }
        steps
    }

    fn step(&self, node: &Node, next: &str, after: &str) -> Value {
        let mut step = json!({"id": node.id, "type": type_of(node)});
        let more = match &node.kind {
            Kind::Call(call) => self.call(&node.id, call),
            Kind::SkipIf => json!({
                "condition": {
                    "left": shared(Look::Inside), "operator": "greater_than", "right": 500,
                },
                "onTrue": {"nextStepId": after}, "onFalse": {"nextStepId": next},
            }),
            Kind::SkipCase(number) => choice(*number, after, next),
            Kind::SkipUnless(number) => choice(*number, next, after),
            Kind::Human { form, diverts, expires } => self.human(node, *form, *diverts, *expires),
            Kind::Parallel(branches) => {
                let branches: Vec<Value> = branches
                    .iter()
                    .enumerate()
                    .map(|(index, nodes)| {
                        json!({"id": branch_id(index), "steps": self.list(nodes, false)})
                    })
                    .collect();
                json!({"branches": branches})
            }
            Kind::Loop { over, alias, concurrency, collect, body } => {
                let items = match over {
                    Over::Input => json!({"jsonPath": "$.promptInput.items"}),
                    Over::Context(path) => in_context(path, &json!([])),
                };
                let mut more = json!({
                    "collectionPath": items, "itemAlias": alias, "concurrency": concurrency,
                    "loopPlan": self.list(body, false),
                });
                if *collect {
                    more["on_error"] = json!("collect");
                }
                more
            }
            Kind::Sub { plan, save } => json!({
                "planId": plan_id(*plan), "saveAs": save,
                "arguments": {
                    "n": {"jsonPath": "$.promptInput.n"},
                    "items": {"jsonPath": "$.promptInput.items"},
                },
            }),
            Kind::Agent(agent) => talk(&node.id, agent),
            Kind::Publish => {
                let told = shared(Look::Inside);
                json!({"event": {"type": "SimHappened", "step": node.id, "shared": told}})
            }
            Kind::Final { shows_shared, item } => {
                json!({"message": early(&node.id, *shows_shared, item.as_ref())})
            }
        };
        if let (Value::Object(step), Value::Object(more)) = (&mut step, more) {
            step.extend(more);
        }
        step
    }

    fn call(&self, id: &str, call: &CallStep) -> Value {
        let mut arguments = json!({"step": id});
        if call.large {
            arguments["large"] = json!(true);
        }
        if call.wants > 0 {
            arguments["wants"] = json!(call.wants);
        }
        if let Some(look) = call.reads {
            arguments["prev"] = shared(look);
        }
        if let Some((alias, look)) = &call.item {
            let path = [vec![alias.clone()], look.path("id")].concat();
            arguments["item"] = in_context(&path, &json!(NOTHING));
        }
        if let Some(past) = &call.past {
            arguments["past"] = in_history(past);
        }
        let mut more = json!({"toolId": call.tool, "arguments": arguments, "saveAs": call.save});
        let advice = advice_of(id).filter(|_| self.advised);
        if let Some(rules) = advice.or_else(|| rules_of(id).filter(|_| self.heals)) {
            more["on_error"] = rules;
        }
        if call.approve {
            more["approve"] = json!(true);
        }
        if call.approve && call.diverts {
            more["onRejected"] = json!({"nextStepId": self.other_id()});
        }
        more
    }

    fn human(&self, node: &Node, form: bool, diverts: bool, expires: bool) -> Value {
        let mut more = json!({"message": format!("what of {}?", node.id)});
        if form {
            more["expectedInputSchema"] = json!({"type": "object", "required": ["name"]});
        }
        if expires {
            more["expiresIn"] = json!("20s");
        }
        if diverts {
            more["onDeclined"] = json!({"nextStepId": self.other_id()});
        }
        more
    }
}

/// What an agent is asked: its model makes so many calls.
fn talk(id: &str, agent: &AgentStep) -> Value {
    let name = if agent.commands { DOER } else { TALKER };
    let asked = json!({"step": id, "calls": agent.calls}).to_string();
    json!({"agent": name, "input": asked, "saveAs": agent.save})
}

/// An agent that talks: some of its calls need a person's approval.
pub const TALKER: &str = "talker";

/// An agent that speaks in commands.
pub const DOER: &str = "doer";

/// The agents as the loader reads them, each with a model of its name.
pub fn agents() -> Vec<Value> {
    vec![
        json!({"refName": TALKER, "llmConfigRef": TALKER, "enabledTools": ["sim::*"],
            "approve": ["sim::write", "sim::read"]}),
        json!({"refName": DOER, "llmConfigRef": DOER, "enabledTools": ["sim::*"],
            "mode": "commands"}),
    ]
}

/// The key in an answer of what it shows of the history.
pub fn past_key(index: usize) -> String {
    format!("past{index}")
}

fn in_context(path: &[String], default: &Value) -> Value {
    json!({"jsonPath": format!("$.context.{}", path.join(".")), "default": default})
}

fn shared(look: Look) -> Value {
    let path = [vec![SHARED_KEY.to_owned()], look.path(NUMBER)].concat();
    in_context(&path, &json!(0))
}

/// Each kind is spelled in a way of its own, by which the tally tells them apart.
fn in_history(past: &Past) -> Value {
    let inside = |look: &Look| match look {
        Look::Whole => String::new(),
        Look::Inside => format!(".{NUMBER}"),
    };
    let path = match past {
        Past::Step(step, look) => {
            format!("$.history[?(@.planStepId == '{step}')].result.output{}", inside(look))
        }
        Past::All(step) => format!("$.history[?'{step}' == @.planStepId].result.output"),
        Past::Newest(look) => format!("$.history[0].result.output{}", inside(look)),
        Past::NewestStep => "$.history[0].planStepId".to_owned(),
        Past::Steps => "$.history[?@.result.status == 'success'].planStepId".to_owned(),
    };
    let mut pointer = json!({"jsonPath": path, "default": NOTHING});
    if matches!(past, Past::All(_)) {
        pointer["all"] = json!(true);
    }
    pointer
}

fn choice(number: u64, fits: &str, otherwise: &str) -> Value {
    json!({
        "value": {"jsonPath": "$.promptInput.n"},
        "cases": [{"equals": number, "nextStepId": fits}],
        "default": {"nextStepId": otherwise},
    })
}

/// The answer from inside: who gives it, and what is seen from there.
fn early(id: &str, shows_shared: bool, item: Option<&String>) -> Value {
    let mut message = json!({"from": id, "newest": in_history(&Past::NewestStep)});
    if shows_shared {
        message["shared"] = shared(Look::Whole);
        message["number"] = shared(Look::Inside);
    }
    if let Some(alias) = item {
        message["item"] = in_context(std::slice::from_ref(alias), &json!(NOTHING));
    }
    message
}
