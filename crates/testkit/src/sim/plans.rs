//! Random plans of every step kind, nested and bounded, valid by construction: a tree that is
//! written out for the loader and that the reference interpreter can also walk.

use super::rng::Rng;
use serde_json::{Map, Value, json};

/// The tools that plans call.
pub const TOOLS: [&str; 4] = ["sim::read", "sim::write", "sim::keyed", "sim::code"];

/// The key that steps everywhere write and read.
pub const SHARED_KEY: &str = "acc";

/// What a pointer gives where nothing is.
pub const NOTHING: &str = "nothing";

/// A step.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its id, unique over all plans of a seed.
    pub id: String,
    /// What it does.
    pub kind: Kind,
}

/// What a step does.
#[derive(Debug, Clone)]
pub enum Kind {
    /// Calls a tool.
    Call {
        /// Which.
        tool: &'static str,
        /// Whether a person must approve it.
        approve: bool,
        /// The key of its output.
        save: String,
        /// Whether the shared key is an argument.
        reads: bool,
        /// The loop's item that is an argument.
        item: Option<String>,
        /// Whether a rejection leads to the other answer.
        diverts: bool,
    },
    /// A condition over the shared key that skips the next step.
    SkipIf,
    /// A match over the input that skips the next step.
    SkipCase(u64),
    /// Asks a person.
    Human {
        /// A form, not a question.
        form: bool,
        /// Whether declining leads to the other answer.
        diverts: bool,
        /// Whether it waits for a while only.
        expires: bool,
    },
    /// Branches beside each other.
    Parallel(Vec<Vec<Node>>),
    /// A loop over the input's items.
    Loop {
        /// The item's key.
        alias: String,
        /// How many at once.
        concurrency: u32,
        /// Whether failures are collected.
        collect: bool,
        /// Its steps.
        body: Vec<Node>,
    },
    /// Another plan.
    Sub {
        /// Which.
        plan: usize,
        /// The key of its answer.
        save: String,
    },
}

/// A plan.
#[derive(Debug, Clone)]
pub struct SimPlan {
    /// Its id.
    pub id: String,
    /// Its steps; the last one leads to the answer.
    pub nodes: Vec<Node>,
    /// The keys that its answer shows: paths into the context.
    pub shown: Vec<Vec<String>>,
}

/// All plans of a seed; a plan names only plans before it.
pub fn plans(rng: &mut Rng, count: usize) -> Vec<SimPlan> {
    let mut made: Vec<SimPlan> = Vec::new();
    for number in 0..count {
        let mut maker = Maker { rng: &mut *rng, number, steps: 0, shown: always_shown() };
        let nodes = maker.top();
        let shown = maker.shown;
        made.push(SimPlan { id: plan_id(number), nodes, shown });
    }
    made
}

fn always_shown() -> Vec<Vec<String>> {
    vec![vec![SHARED_KEY.to_owned()], vec!["human_input".to_owned()]]
}

/// The id of a plan.
pub fn plan_id(number: usize) -> String {
    format!("sim/p{number}")
}

/// An input that fits every plan.
pub fn input(rng: &mut Rng) -> Value {
    let items: Vec<u64> = (0..rng.below(4)).collect();
    json!({"n": rng.below(3), "items": items})
}

/// Where steps are made, which limits what they may be.
#[derive(Clone, Copy)]
struct Inside<'a> {
    depth: u32,
    /// The item's key, inside a loop.
    item: Option<&'a str>,
    /// Whether other iterations run at the same time: then nothing shared is read.
    beside: bool,
}

struct Maker<'r> {
    rng: &'r mut Rng,
    number: usize,
    steps: u32,
    shown: Vec<Vec<String>>,
}

impl Maker<'_> {
    fn top(&mut self) -> Vec<Node> {
        let inside = Inside { depth: 0, item: None, beside: false };
        let count = 2 + self.rng.below(4);
        let mut nodes = Vec::new();
        for _ in 0..count {
            self.add(inside, &mut nodes);
        }
        nodes
    }

    /// The steps of a branch or of a loop's body; the last one calls.
    fn inner(&mut self, inside: Inside<'_>) -> Vec<Node> {
        let mut nodes = Vec::new();
        for _ in 0..self.rng.below(2) {
            self.add(inside, &mut nodes);
        }
        nodes.push(self.call(inside));
        nodes
    }

    fn add(&mut self, inside: Inside<'_>, nodes: &mut Vec<Node>) {
        let deep = inside.depth >= 2;
        match self.rng.below(100) {
            0..40 => nodes.push(self.call(inside)),
            40..52 => nodes.push(self.human(inside)),
            52..62 => self.skip(inside, nodes),
            62..76 if !deep => nodes.push(self.parallel(inside)),
            76..92 if !deep && inside.item.is_none() => nodes.push(self.looping(inside)),
            92.. if self.number > 0 => nodes.push(self.sub(inside)),
            _ => nodes.push(self.call(inside)),
        }
    }

    fn id(&mut self) -> String {
        self.steps += 1;
        format!("p{}s{}", self.number, self.steps)
    }

    fn call(&mut self, inside: Inside<'_>) -> Node {
        let id = self.id();
        let tool = TOOLS[self.rng.below(TOOLS.len() as u64) as usize];
        let shared = self.rng.chance(60);
        let save = if shared { SHARED_KEY.to_owned() } else { format!("{id}_out") };
        if !shared && inside.depth == 0 {
            self.shown.push(vec![save.clone()]);
        }
        let kind = Kind::Call {
            tool,
            approve: self.rng.chance(20),
            save,
            reads: !inside.beside && self.rng.chance(60),
            item: inside.item.map(str::to_owned),
            diverts: inside.depth == 0 && self.rng.chance(50),
        };
        Node { id, kind }
    }

    fn human(&mut self, inside: Inside<'_>) -> Node {
        let form = self.rng.chance(50);
        let diverts = inside.depth == 0 && self.rng.chance(50);
        let expires = self.rng.chance(25);
        Node { id: self.id(), kind: Kind::Human { form, diverts, expires } }
    }

    /// A choice, the step that it may skip, and the one after.
    fn skip(&mut self, inside: Inside<'_>, nodes: &mut Vec<Node>) {
        let id = self.id();
        let reads = !inside.beside && self.rng.chance(50);
        let kind = if reads { Kind::SkipIf } else { Kind::SkipCase(self.rng.below(3)) };
        nodes.push(Node { id, kind });
        nodes.push(self.call(inside));
        nodes.push(self.call(inside));
    }

    fn parallel(&mut self, inside: Inside<'_>) -> Node {
        let id = self.id();
        let below = Inside { depth: inside.depth + 1, ..inside };
        let count = 2 + self.rng.below(2);
        let branches: Vec<Vec<Node>> = (0..count).map(|_| self.inner(below)).collect();
        if inside.depth == 0 {
            for index in 0..branches.len() {
                self.shown.push(vec![id.clone(), branch_id(index), SHARED_KEY.to_owned()]);
            }
        }
        Node { id, kind: Kind::Parallel(branches) }
    }

    fn looping(&mut self, inside: Inside<'_>) -> Node {
        let id = self.id();
        let alias = format!("{id}_item");
        let concurrency = if self.rng.chance(50) { 1 } else { 3 };
        let collect = self.rng.chance(40);
        let beside = inside.beside || concurrency > 1;
        let below = Inside { depth: inside.depth + 1, item: Some(&alias), beside };
        let body = self.inner(below);
        if inside.depth == 0 {
            self.shown.push(vec![id.clone()]);
        }
        Node { id, kind: Kind::Loop { alias, concurrency, collect, body } }
    }

    fn sub(&mut self, inside: Inside<'_>) -> Node {
        let id = self.id();
        let save = format!("{id}_out");
        if inside.depth == 0 {
            self.shown.push(vec![save.clone()]);
        }
        let plan = self.rng.below(self.number as u64) as usize;
        Node { id, kind: Kind::Sub { plan, save } }
    }
}

/// The id of a branch.
pub fn branch_id(index: usize) -> String {
    format!("b{index}")
}

/// The type of a step, as plans name it.
pub fn type_of(node: &Node) -> &'static str {
    match &node.kind {
        Kind::Call { .. } => "tool_call",
        Kind::SkipIf => "conditional_branch",
        Kind::SkipCase(_) => "match",
        Kind::Human { .. } => "human_in_the_loop",
        Kind::Parallel(_) => "parallel_branch",
        Kind::Loop { .. } => "loop_over_items",
        Kind::Sub { .. } => "plan",
    }
}

/// Every step below these, with its type.
pub fn types(nodes: &[Node]) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    for node in nodes {
        found.push((node.id.clone(), type_of(node)));
        match &node.kind {
            Kind::Parallel(branches) => {
                branches.iter().for_each(|branch| found.extend(types(branch)));
            }
            Kind::Loop { body, .. } => found.extend(types(body)),
            Kind::Call { .. }
            | Kind::SkipIf
            | Kind::SkipCase(_)
            | Kind::Human { .. }
            | Kind::Sub { .. } => {}
        }
    }
    found
}

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
            let pointer = format!("$.context.{}", path.join("."));
            message.insert(path.join("_"), json!({"jsonPath": pointer, "default": NOTHING}));
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
        self.nodes.iter().any(|node| {
            matches!(
                node.kind,
                Kind::Call { diverts: true, approve: true, .. } | Kind::Human { diverts: true, .. }
            )
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
            if top && let Value::Object(fields) = &mut step {
                let key = match node.kind {
                    Kind::SkipIf | Kind::SkipCase(_) => None,
                    _ => Some("nextStepId"),
                };
                if let Some(key) = key {
                    fields.insert(key.to_owned(), json!(id_at(index + 1)));
                }
            }
            steps.push(step);
        }
        steps
    }

    fn step(&self, node: &Node, next: &str, after: &str) -> Value {
        let shared = json!({"jsonPath": format!("$.context.{SHARED_KEY}"), "default": 0});
        let mut step = json!({"id": node.id, "type": type_of(node)});
        let more = match &node.kind {
            Kind::Call { tool, approve, save, reads, item, diverts } => {
                let mut arguments = json!({"step": node.id});
                if *reads {
                    arguments["prev"] = shared;
                }
                if let Some(alias) = item {
                    arguments["item"] = json!({"jsonPath": format!("$.context.{alias}")});
                }
                let mut more = json!({"toolId": tool, "arguments": arguments, "saveAs": save});
                if *approve {
                    more["approve"] = json!(true);
                }
                if *approve && *diverts {
                    more["onRejected"] = json!({"nextStepId": self.other_id()});
                }
                more
            }
            Kind::SkipIf => json!({
                "condition": {"left": shared, "operator": "greater_than", "right": 500},
                "onTrue": {"nextStepId": after}, "onFalse": {"nextStepId": next},
            }),
            Kind::SkipCase(number) => json!({
                "value": {"jsonPath": "$.promptInput.n"},
                "cases": [{"equals": number, "nextStepId": after}],
                "default": {"nextStepId": next},
            }),
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
            Kind::Loop { alias, concurrency, collect, body } => {
                let mut more = json!({
                    "collectionPath": {"jsonPath": "$.promptInput.items"}, "itemAlias": alias,
                    "concurrency": concurrency, "loopPlan": self.list(body, false),
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
        };
        if let (Value::Object(step), Value::Object(more)) = (&mut step, more) {
            step.extend(more);
        }
        step
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
