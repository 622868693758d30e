//! A plan is data: steps, pointers and texts, checked when they are loaded.

use crate::definition::agent::Agent;
use crate::definition::rule::Rule;
use crate::expression::condition::Condition;
use crate::expression::pointer::Pointer;
use crate::expression::template::Template;
use crate::tool::call::Pace;
use crate::values::canonical;
use crate::values::ids::{AgentName, ContentHash, ContextKey, PlanId, StepId, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

mod example;
pub mod mistake;
pub mod source;
pub mod read;
pub mod rules;
pub mod steps;
pub mod check;
pub mod flow;
pub mod graph;

pub use example::{Example, ExampleError, Expect, Stub, StubFault};
use source::Node;

/// A checked plan.
#[derive(Debug)]
pub struct Plan {
    pub id: PlanId,
    /// Shown to people and models.
    pub description: String,
    /// JSON Schema of its input.
    pub parameters: Option<Arc<Value>>,
    /// JSON Schema of its answer, if it promises one.
    pub output_schema: Option<Arc<Value>>,
    /// How long it takes, for a client that calls it as a tool.
    pub pace: Pace,
    /// The source under which its runs publish; the realm's own where there is none.
    pub event_source: Option<Arc<str>>,
    pub start: StepId,
    /// Its steps, in the order of the text.
    pub steps: Vec<Step>,
    /// Rules for failed steps, after those of the step itself.
    pub rules: Vec<Rule>,
    /// Its run reports what became of a call, also where no one knows it: nobody is asked, the call
    /// is never made again, and what the other side said of it is kept. Only plans that an endpoint
    /// makes for one call are such.
    pub reports_calls: bool,
    /// Runs that must come out as told; a test runs them.
    pub examples: Vec<Example>,
    /// The plan as JSON: what a run pins and what is shown.
    pub source: Arc<Value>,
    /// Hash of `source` without its examples and description.
    pub hash: ContentHash,
    /// Where each step stands, inner ones included.
    pub index: BTreeMap<StepId, StepPosition>,
}

/// Where a step stands: the way down from the top level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepPosition {
    /// The list that holds it.
    pub list: ListPlace,
    /// Its position in that list.
    pub position: usize,
}

/// Which list of steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListPlace {
    /// The plan's own steps.
    Top,
    /// The steps of a branch of a `parallel_branch` step.
    Branch(StepId, usize),
    /// The `loopPlan` of a `loop_over_items` step.
    Body(StepId),
}

/// One step.
#[derive(Debug)]
pub struct Step {
    /// Its id, unique in the plan.
    pub id: StepId,
    pub description: Option<String>,
    pub kind: StepKind,
    /// Rules for its failure.
    pub rules: Vec<Rule>,
}

/// What a step does. `next` of an inner step is set only when it names a step of the same list.
#[derive(Debug)]
pub enum StepKind {
    ToolCall(ToolCall),
    /// Goes where the first equal case says.
    Match {
        value: Expr,
        /// The cases, in order.
        cases: Vec<Case>,
        /// Where to go when no case is equal; none falls through.
        default: Option<StepId>,
    },
    /// Goes one of two ways.
    Conditional {
        condition: Condition<Expr>,
        /// Where to go when it holds; none falls through.
        on_true: Option<StepId>,
        /// Where to go when it does not.
        on_false: Option<StepId>,
    },
    /// Runs branches beside each other, then joins them.
    Parallel {
        /// The branches, in declared order.
        branches: Vec<Branch>,
        /// Where to go after the join.
        next: Option<StepId>,
    },
    /// Runs its body once for each item.
    Loop(Loop),
    /// Asks a person.
    Human {
        /// The question.
        message: Text,
        /// JSON Schema of the answer; with it the ask is a form.
        schema: Option<Arc<Value>>,
        /// Where to go with the answer.
        next: Option<StepId>,
        /// Where to go when the person declines.
        on_declined: Option<StepId>,
        /// How long the ask stays open.
        expires_ms: Option<u64>,
    },
    /// Runs another plan with a context of its own; only its answer comes back.
    Plan {
        /// The other plan.
        plan: PlanId,
        /// Its input.
        arguments: Expr,
        /// The context key for its answer.
        save_as: ContextKey,
        /// Where to go then.
        next: Option<StepId>,
    },
    /// Gives the work to an agent: a model where the path ends.
    Agent {
        agent: AgentName,
        input: Expr,
        /// The context key for its answer.
        save_as: ContextKey,
        /// Where to go then.
        next: Option<StepId>,
        /// How long an ask of it stays open.
        expires_ms: Option<u64>,
    },
    /// Tells the world something; no one is called.
    Publish {
        /// The event: an object whose `type` is a text.
        event: Expr,
        /// Where to go then.
        next: Option<StepId>,
    },
    /// Ends the run (or the sub-plan) with an answer.
    Final {
        /// The answer.
        message: Text,
    },
}

/// A `tool_call` step.
#[derive(Debug)]
pub struct ToolCall {
    pub tool: ToolName,
    /// Its arguments: an object with pointers at any depth.
    pub arguments: Expr,
    /// The context key for its output.
    pub save_as: ContextKey,
    /// Whether the output is kept as its server sent it, with all that MCP puts around a value.
    pub whole: bool,
    /// Whether a person is asked before the call.
    pub approve: bool,
    /// Where to go then.
    pub next: Option<StepId>,
    /// Where to go when the person says no.
    pub on_rejected: Option<StepId>,
    /// How long an approval stays open.
    pub expires_ms: Option<u64>,
}

/// A `loop_over_items` step.
#[derive(Debug)]
pub struct Loop {
    /// The items; resolved once and pinned.
    pub collection: Expr,
    /// The context key of the item; `<alias>_index` holds its index.
    pub alias: ContextKey,
    /// How many iterations run at the same time.
    pub concurrency: u32,
    /// Whether a failing item is collected as `{error}` instead of stopping for a person.
    pub collect: bool,
    /// The steps of one iteration, in array order.
    pub body: Vec<Step>,
    /// Where to go after the last item.
    pub next: Option<StepId>,
}

/// One branch of a `parallel_branch` step.
#[derive(Debug)]
pub struct Branch {
    /// Its id, or its index where the plan gives none.
    pub id: String,
    /// Its steps, in array order.
    pub steps: Vec<Step>,
}

/// One case of a `match` step.
#[derive(Debug)]
pub struct Case {
    /// The value that takes this case.
    pub equals: Expr,
    /// `None` falls through.
    pub next: Option<StepId>,
}

/// A value in a plan: literal, pointer, or a tree of both.
#[derive(Debug)]
pub enum Expr {
    /// As it stands.
    Literal(Arc<Value>),
    /// Selected when the step runs.
    Pointer(Box<PointerExpr>),
    /// An object with at least one pointer inside.
    Object(Vec<(String, Expr)>),
    /// An array with at least one pointer inside.
    Array(Vec<Expr>),
}

/// `{jsonPath, default?, all?}`.
#[derive(Debug)]
pub struct PointerExpr {
    pub pointer: Pointer,
    /// What stands in when nothing is selected.
    pub default: Option<Arc<Value>>,
}

/// A message: a text with `{{ }}` or a pointer.
#[derive(Debug)]
pub enum Text {
    /// A template over `{context, history, promptInput}`.
    Template(Box<Template>),
    /// Whatever the expression yields.
    Expr(Expr),
}

impl Plan {
    pub fn list(&self, place: &ListPlace) -> &[Step] {
        match place {
            ListPlace::Top => &self.steps,
            ListPlace::Branch(owner, index) => match self.step(owner).map(|step| &step.kind) {
                Some(StepKind::Parallel { branches, .. }) => {
                    branches.get(*index).map_or(&[], |branch| &branch.steps)
                }
                _ => &[],
            },
            ListPlace::Body(owner) => match self.step(owner).map(|step| &step.kind) {
                Some(StepKind::Loop(looping)) => &looping.body,
                _ => &[],
            },
        }
    }

    /// A step by its id, wherever it stands.
    pub fn step(&self, id: &StepId) -> Option<&Step> {
        let place = self.index.get(id)?;
        self.list(&place.list).get(place.position)
    }

    /// Where a list goes after this step: its `next`, else in inner lists the one below it.
    pub fn after(&self, id: &StepId, next: Option<&StepId>) -> Option<StepId> {
        if let Some(next) = next {
            return Some(next.clone());
        }
        let place = self.index.get(id)?;
        match place.list {
            ListPlace::Top => None,
            ListPlace::Branch(..) | ListPlace::Body(_) => {
                self.list(&place.list).get(place.position + 1).map(|step| step.id.clone())
            }
        }
    }
}

impl Step {
    /// The lists of steps that it holds, in declared order.
    pub fn bodies(&self) -> Vec<&[Step]> {
        match &self.kind {
            StepKind::Parallel { branches, .. } => {
                branches.iter().map(|branch| branch.steps.as_slice()).collect()
            }
            StepKind::Loop(looping) => vec![looping.body.as_slice()],
            StepKind::ToolCall(_)
            | StepKind::Match { .. }
            | StepKind::Conditional { .. }
            | StepKind::Human { .. }
            | StepKind::Plan { .. }
            | StepKind::Agent { .. }
            | StepKind::Publish { .. }
            | StepKind::Final { .. } => Vec::new(),
        }
    }
}

impl Expr {
    /// It in few words, for a picture.
    fn short(&self) -> String {
        match self {
            Expr::Literal(value) => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
            Expr::Pointer(pointing) => pointing.pointer.text.clone(),
            Expr::Object(_) => "{…}".to_owned(),
            Expr::Array(_) => "[…]".to_owned(),
        }
    }
}

/// A run's plans: the one it began with and all that those can reach, pinned by hash.
#[derive(Debug)]
pub struct Closure {
    /// Hash over all plans' hashes.
    pub hash: ContentHash,
    /// The plan that a run begins with.
    pub main: Arc<Plan>,
    /// All plans by id, the main one included.
    pub plans: BTreeMap<PlanId, Arc<Plan>>,
    /// The agents that their steps name.
    pub agents: BTreeMap<AgentName, Arc<Agent>>,
    /// Whether its steps call a tool or an agent. What a rule has a model write may call as well,
    /// but only once the start of the run is durable.
    pub calls: bool,
    /// Its stored form, computed on first use.
    stored: OnceLock<Arc<StoredClosure>>,
}

/// A closure's text under its hash.
#[derive(Debug)]
pub struct StoredClosure {
    pub hash: ContentHash,
    /// Its JSON text.
    pub body: String,
}

/// A closure as it is stored with the runs that pin it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClosureText {
    pub main: PlanId,
    /// The sources of all plans.
    pub plans: Vec<Arc<Value>>,
    /// The sources of all agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Arc<Value>>,
}

impl Closure {
    /// The closure of these plans, which must hold every plan that they name.
    pub fn new(
        main: Arc<Plan>,
        plans: BTreeMap<PlanId, Arc<Plan>>,
        agents: BTreeMap<AgentName, Arc<Agent>>,
    ) -> Self {
        let mut text = format!("{}\n", main.id);
        for (id, plan) in &plans {
            text.push_str(&format!("{id} {}\n", plan.hash));
        }
        for (name, agent) in &agents {
            text.push_str(&format!("agent {name} {}\n", agent.hash));
        }
        let hash = ContentHash::of(text.as_bytes());
        let calls = !agents.is_empty() || plans.values().any(|plan| any_calls(&plan.steps));
        Self { hash, main, plans, agents, calls, stored: OnceLock::new() }
    }

    /// Its stored form. Every run brings it, so it is serialised once.
    pub fn stored(&self) -> Arc<StoredClosure> {
        let stored = self.stored.get_or_init(|| {
            let text = ClosureText {
                main: self.main.id.clone(),
                plans: self.plans.values().map(|plan| plan.source.clone()).collect(),
                agents: self.agents.values().map(|agent| agent.source.clone()).collect(),
            };
            let body = serde_json::to_string(&text).unwrap_or_default();
            Arc::new(StoredClosure { hash: self.hash.clone(), body })
        });
        stored.clone()
    }
}

/// Two that have one hash pin the same.
impl PartialEq for Closure {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

/// Whether one of these steps calls a tool or an agent, inner ones included.
fn any_calls(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step.kind {
        StepKind::ToolCall(_) | StepKind::Agent { .. } => true,
        StepKind::Match { .. }
        | StepKind::Conditional { .. }
        | StepKind::Parallel { .. }
        | StepKind::Loop(_)
        | StepKind::Human { .. }
        | StepKind::Plan { .. }
        | StepKind::Publish { .. }
        | StepKind::Final { .. } => step.bodies().into_iter().any(any_calls),
    })
}

/// Notes where each step stands, inner ones included.
fn index_steps(steps: &[Step], list: &ListPlace, index: &mut BTreeMap<StepId, StepPosition>) {
    for (position, step) in steps.iter().enumerate() {
        index.insert(step.id.clone(), StepPosition { list: list.clone(), position });
        for (number, body) in step.bodies().into_iter().enumerate() {
            let place = match &step.kind {
                StepKind::Loop(_) => ListPlace::Body(step.id.clone()),
                _ => ListPlace::Branch(step.id.clone(), number),
            };
            index_steps(body, &place, index);
        }
    }
}

/// A plan as JSON, with its id.
fn source_of(node: &Node, id: &PlanId) -> Value {
    let mut source = node.to_value();
    if let Value::Object(fields) = &mut source {
        fields.insert("planId".to_owned(), Value::from(id.as_str()));
    }
    source
}

/// Words for people do not change what a plan does, so they do not change its hash.
fn hash_of(source: &Value) -> ContentHash {
    let mut pinned = source.clone();
    if let Value::Object(fields) = &mut pinned {
        fields.remove("examples");
        fields.remove("description");
    }
    ContentHash::of(canonical::sorted(&pinned).to_string().as_bytes())
}
