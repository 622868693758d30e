//! Random plans of every step kind, nested and bounded, valid by construction: a tree that
//! `source.rs` writes out for the loader and that the reference interpreter also walks.

use crate::sim::rng::Rng;
use serde_json::{Value, json};

/// The tools that plans call.
pub const TOOLS: [&str; 4] = ["sim::read", "sim::write", "sim::keyed", "sim::code"];

/// The key that steps everywhere write and read.
pub const SHARED_KEY: &str = "acc";

/// What a pointer gives where nothing is.
pub const NOTHING: &str = "nothing";

/// The number in every output: pointers go to it, also where the output is a blob.
pub const NUMBER: &str = "n";

/// The list in every large output: loops go over it.
pub const LIST: &str = "list";

/// What makes a value larger than the smaller limits.
pub const PADDING: &str = "some words that nobody reads";

#[derive(Debug, Clone)]
pub struct Node {
    /// Its id, unique over all plans of a seed.
    pub id: String,
    pub kind: Kind,
}

/// How a pointer looks at a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// At all of it: a blob is named by its URI.
    Whole,
    /// At one field: a blob is fetched.
    Inside,
}

impl Look {
    /// The names after the value's own, where this is the field.
    pub fn path(self, field: &str) -> Vec<String> {
        match self {
            Look::Whole => Vec::new(),
            Look::Inside => vec![field.to_owned()],
        }
    }
}

/// What a pointer selects from the history. Only what follows from the plan: no times, and of the
/// entries by age the newest alone, which is always a success where no one steered.
#[derive(Debug, Clone)]
pub enum Past {
    /// The latest output of a step.
    Step(String, Look),
    /// All outputs of a step: a query.
    All(String),
    /// The output of the newest entry.
    Newest(Look),
    /// The step of the newest entry.
    NewestStep,
    /// The steps of all that succeeded: a query.
    Steps,
}

/// A step that calls a tool.
#[derive(Debug, Clone)]
pub struct CallStep {
    pub tool: &'static str,
    /// Whether a person must approve it.
    pub approve: bool,
    /// The key of its output.
    pub save: String,
    /// Whether its output is large.
    pub large: bool,
    /// How often it wants something first.
    pub wants: u64,
    /// How the shared key is an argument, if it is.
    pub reads: Option<Look>,
    /// The loop's item that is an argument.
    pub item: Option<(String, Look)>,
    /// What of the history is an argument.
    pub past: Option<Past>,
    /// Whether a rejection leads to the other answer.
    pub diverts: bool,
}

/// A step in which an agent works.
#[derive(Debug, Clone)]
pub struct AgentStep {
    /// Whether its model speaks in commands.
    pub commands: bool,
    /// How many calls it makes.
    pub calls: u64,
    /// The key of its answer.
    pub save: String,
}

/// What an agent's call names as its step: neither another call nor another step has that name.
pub fn call_step(id: &str, number: u64) -> String {
    format!("{id}c{number}")
}

/// What a loop goes over.
#[derive(Debug, Clone)]
pub enum Over {
    /// The items of the input.
    Input,
    /// A list in the context.
    Context(Vec<String>),
}

/// What a step does.
#[derive(Debug, Clone)]
pub enum Kind {
    /// Calls a tool.
    Call(CallStep),
    /// A condition over the shared key that skips the next step.
    SkipIf,
    /// A match over the input that skips the next step where it fits.
    SkipCase(u64),
    /// A match over the input that skips the next step where it does not fit.
    SkipUnless(u64),
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
    Loop {
        over: Over,
        /// The item's key.
        alias: String,
        /// How many at once.
        concurrency: u32,
        /// Whether failures are collected.
        collect: bool,
        body: Vec<Node>,
    },
    /// Another plan.
    Sub {
        plan: usize,
        /// The key of its answer.
        save: String,
    },
    /// An agent works.
    Agent(AgentStep),
    /// It publishes an event.
    Publish,
    /// Answers from inside a branch or a loop: the plan is over, siblings are cut off.
    Final {
        /// Whether the answer shows the shared key.
        shows_shared: bool,
        /// The loop's item that it shows.
        item: Option<String>,
    },
}

#[derive(Debug, Clone)]
pub struct SimPlan {
    pub id: String,
    /// Its steps; the last one leads to the answer.
    pub nodes: Vec<Node>,
    /// The keys that its answer shows: paths into the context.
    pub shown: Vec<Vec<String>>,
    /// What its answer shows of the history.
    pub past: Vec<Past>,
    /// Whether its calls have rules for failures.
    pub heals: bool,
    /// Whether models are asked about some of its failures.
    pub advised: bool,
}

/// All plans of a seed; a plan names only plans before it. Those that talk have agents, and tell
/// the world something; what of an agent's calls is history depends on how they went, so that
/// nothing in them points there.
pub fn plans(rng: &mut Rng, count: usize, talks: bool) -> Vec<SimPlan> {
    let mut made: Vec<SimPlan> = Vec::new();
    for number in 0..count {
        let mut maker = Maker {
            rng: &mut *rng,
            talks,
            number,
            steps: 0,
            shown: always_shown(),
            lists: Vec::new(),
            before: Vec::new(),
        };
        let nodes = maker.top();
        let past = (0..2).filter_map(|_| maker.past()).collect();
        let id = plan_id(number);
        let shown = maker.shown;
        made.push(SimPlan { id, nodes, shown, past, heals: false, advised: false });
    }
    made
}

fn always_shown() -> Vec<Vec<String>> {
    let shared = || SHARED_KEY.to_owned();
    vec![vec![shared()], vec![shared(), NUMBER.to_owned()], vec!["human_input".to_owned()]]
}

pub fn plan_id(number: usize) -> String {
    format!("sim/p{number}")
}

/// An input that fits every plan.
pub fn input(rng: &mut Rng) -> Value {
    let mut items = Vec::new();
    for number in 0..rng.below(4) {
        let large = rng.chance(40);
        items.push(if large { json!({"id": number, "words": PADDING}) } else { json!(number) });
    }
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

impl Inside<'_> {
    /// Whether a step here sees what it did itself, for the item before.
    fn in_turn(self) -> bool {
        self.item.is_some() && !self.beside
    }
}

struct Maker<'r> {
    rng: &'r mut Rng,
    talks: bool,
    number: usize,
    steps: u32,
    shown: Vec<Vec<String>>,
    /// Lists in the plan's own context.
    lists: Vec<Vec<String>>,
    /// The calls that can have run before the next step, as far as it sees them.
    before: Vec<String>,
}

impl Maker<'_> {
    fn top(&mut self) -> Vec<Node> {
        let inside = Inside { depth: 0, item: None, beside: false };
        let count = 2 + self.rng.below(4);
        let mut nodes = Vec::new();
        for _ in 0..count {
            self.add(inside, &mut nodes);
            if self.talks {
                self.talk(&mut nodes);
            }
        }
        nodes
    }

    /// An agent, and a published event, now and then.
    fn talk(&mut self, nodes: &mut Vec<Node>) {
        if self.rng.chance(45) {
            let id = self.id();
            let save = format!("{id}_out");
            self.shown.push(vec![save.clone()]);
            let commands = self.rng.chance(50);
            let calls = 1 + self.rng.below(3);
            nodes.push(Node { id, kind: Kind::Agent(AgentStep { commands, calls, save }) });
        }
        if self.rng.chance(30) {
            nodes.push(Node { id: self.id(), kind: Kind::Publish });
        }
    }

    /// The steps of a branch or of a loop's body; the last one calls.
    fn inner(&mut self, inside: Inside<'_>) -> Vec<Node> {
        let mut nodes = Vec::new();
        for _ in 0..self.rng.below(2) {
            self.add(inside, &mut nodes);
        }
        if !self.talks && self.rng.chance(20) {
            self.way_out(inside, &mut nodes);
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

    fn look(&mut self) -> Look {
        if self.rng.chance(50) { Look::Whole } else { Look::Inside }
    }

    fn call(&mut self, inside: Inside<'_>) -> Node {
        let id = self.id();
        let tool = TOOLS[self.rng.below(TOOLS.len() as u64) as usize];
        let shared = self.rng.chance(60);
        let large = self.rng.chance(35);
        let save = if shared { SHARED_KEY.to_owned() } else { format!("{id}_out") };
        if !shared && inside.depth == 0 {
            self.shown.push(vec![save.clone()]);
            if large {
                self.lists.push(vec![save.clone(), LIST.to_owned()]);
            }
        }
        if inside.in_turn() {
            self.before.push(id.clone());
        }
        let past = self.past();
        if !inside.in_turn() {
            self.before.push(id.clone());
        }
        let look = self.look();
        let wants = if self.rng.chance(15) { 1 + self.rng.below(2) } else { 0 };
        let call = CallStep {
            tool,
            approve: self.rng.chance(20),
            save,
            large,
            wants,
            reads: (!inside.beside && self.rng.chance(60)).then_some(look),
            item: inside.item.map(|item| (item.to_owned(), look)),
            past,
            diverts: inside.depth == 0 && self.rng.chance(50),
        };
        Node { id, kind: Kind::Call(call) }
    }

    /// Something of the history, now and then.
    fn past(&mut self) -> Option<Past> {
        if self.talks || !self.rng.chance(30) {
            return None;
        }
        let choice = self.rng.below(10);
        let look = self.look();
        let step = self.rng.pick(&self.before).cloned();
        Some(match (choice, step) {
            (0..4, Some(step)) => Past::Step(step, look),
            (4 | 5, Some(step)) => Past::All(step),
            (6, _) => Past::Steps,
            (7, _) => Past::NewestStep,
            _ => Past::Newest(look),
        })
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

    /// An answer from here, for some inputs.
    fn way_out(&mut self, inside: Inside<'_>, nodes: &mut Vec<Node>) {
        let kind = Kind::SkipUnless(self.rng.below(3));
        nodes.push(Node { id: self.id(), kind });
        let shows_shared = !inside.beside;
        let item = inside.item.map(str::to_owned);
        nodes.push(Node { id: self.id(), kind: Kind::Final { shows_shared, item } });
    }

    fn parallel(&mut self, inside: Inside<'_>) -> Node {
        let id = self.id();
        let below = Inside { depth: inside.depth + 1, ..inside };
        let count = 2 + self.rng.below(2);
        let fork = self.before.len();
        let mut branches = Vec::new();
        // A branch sees nothing of the others; who comes after the join sees them all.
        let mut joined = Vec::new();
        for _ in 0..count {
            branches.push(self.inner(below));
            joined.extend(self.before.drain(fork..));
        }
        self.before.extend(joined);
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
        let list = self.rng.pick(&self.lists).cloned();
        let over = match list {
            Some(list) if self.rng.chance(50) => Over::Context(list),
            _ => Over::Input,
        };
        let beside = inside.beside || concurrency > 1;
        let below = Inside { depth: inside.depth + 1, item: Some(&alias), beside };
        let body = self.inner(below);
        if inside.depth == 0 {
            self.shown.push(vec![id.clone()]);
            self.lists.push(vec![id.clone()]);
        }
        Node { id, kind: Kind::Loop { over, alias, concurrency, collect, body } }
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

pub fn branch_id(index: usize) -> String {
    format!("b{index}")
}

/// The type of a step, as plans name it.
pub fn type_of(node: &Node) -> &'static str {
    match &node.kind {
        Kind::Call(_) => "tool_call",
        Kind::SkipIf => "conditional_branch",
        Kind::SkipCase(_) | Kind::SkipUnless(_) => "match",
        Kind::Human { .. } => "human_in_the_loop",
        Kind::Parallel(_) => "parallel_branch",
        Kind::Loop { .. } => "loop_over_items",
        Kind::Sub { .. } => "plan",
        Kind::Agent(_) => "agent",
        Kind::Publish => "publish_event",
        Kind::Final { .. } => "final_response",
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
            Kind::Call(_)
            | Kind::SkipIf
            | Kind::SkipCase(_)
            | Kind::SkipUnless(_)
            | Kind::Human { .. }
            | Kind::Sub { .. }
            | Kind::Agent(_)
            | Kind::Publish
            | Kind::Final { .. } => {}
        }
    }
    found
}
