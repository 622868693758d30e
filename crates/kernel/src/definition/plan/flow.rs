//! Control-flow analysis of a plan: unreachable steps, references to steps that cannot have run,
//! races between loop iterations. Plans are also loaded here: parsed, checked against the tools and
//! plans around them, and checked for their flow.

use super::check::{PlanScope, ReadTarget, check_plan, reads, step_pointer, type_name};
use super::mistake::{CheckResult, Mistake, checked, meant_step};
use super::read::Origin;
use super::source::{DEPTH_MAX, Node, Subject};
use super::steps::{read_generated_plan, read_pinned_plan, read_plan};
use super::{Loop, Plan, Step, StepKind};
use crate::limits::Limits;
use crate::values::ids::StepId;
use crate::values::members::is_deeper;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Loads a plan from a YAML or JSON text. Mistakes that come with the plan are warnings.
pub fn load_text(
    text: &str,
    origin: &Origin,
    limits: &Limits,
    scope: &PlanScope<'_>,
) -> CheckResult<Plan> {
    let node = Node::parse(text, limits).map_err(|found| origin.all_filed(found))?;
    load_node(&node, origin, limits, scope)
}

/// Loads a plan that arrives as a value, such as one inside a request.
pub fn load_value(
    value: &Value,
    origin: &Origin,
    limits: &Limits,
    scope: &PlanScope<'_>,
) -> CheckResult<Plan> {
    if let Some(mistake) = Subject::PLAN.refuses(value, limits) {
        return Err(vec![origin.filed(mistake)]);
    }
    load_node(&Node::from_value(value), origin, limits, scope)
}

/// Reads a pinned plan. It was checked when its run began, and tools or plans that it names may be
/// gone by now, so it is only parsed. Today's limits do not apply, so that lowering one stops no
/// active run.
pub fn reload(source: &Value) -> Result<Plan, Vec<Mistake>> {
    let node = shallow(source)?;
    read_pinned_plan(&node, &Limits::unbounded_plans())
}

/// Reads a plan that Waypost generated, from a pipeline or for one call: its source was already
/// checked against its surroundings.
pub fn read_generated(source: &Value, limits: &Limits) -> Result<Plan, Vec<Mistake>> {
    read_generated_plan(&shallow(source)?, limits)
}

fn shallow(source: &Value) -> Result<Node, Vec<Mistake>> {
    if is_deeper(source, DEPTH_MAX) {
        return Err(vec![Subject::PLAN.too_deep()]);
    }
    Ok(Node::from_value(source))
}

/// How a step ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepExit {
    /// With a result.
    Completed,
    /// Without a result: a person rejected or declined it.
    Refused,
}

/// An edge of the flow graph: a step and one of its successors.
pub struct Edge {
    pub exit: StepExit,
    /// Distinguishes the step's edges, for people.
    pub label: Option<String>,
    /// `None` ends the list that the step is in.
    pub next: Option<StepId>,
}

/// All edges that leave a step.
pub fn edges(plan: &Plan, step: &Step) -> Vec<Edge> {
    let completed = |next: &Option<StepId>| Edge {
        exit: StepExit::Completed,
        label: None,
        next: plan.after(&step.id, next.as_ref()),
    };
    let labelled = |label: &str, next: &Option<StepId>| Edge {
        label: Some(label.to_owned()),
        ..completed(next)
    };
    let refused = |label: &str, next: &Option<StepId>| {
        next.as_ref().map(|_| Edge { exit: StepExit::Refused, ..labelled(label, next) })
    };
    match &step.kind {
        StepKind::ToolCall(call) => std::iter::once(completed(&call.next))
            .chain(refused("rejected", &call.on_rejected))
            .collect(),
        StepKind::Human { next, on_declined, .. } => {
            std::iter::once(completed(next)).chain(refused("declined", on_declined)).collect()
        }
        StepKind::Match { cases, default, .. } => {
            let cases = cases.iter().map(|case| labelled(&case.equals.short(), &case.next));
            cases.chain([labelled("else", default)]).collect()
        }
        StepKind::Conditional { on_true, on_false, .. } => {
            vec![labelled("true", on_true), labelled("false", on_false)]
        }
        StepKind::Parallel { next, .. }
        | StepKind::Plan { next, .. }
        | StepKind::Agent { next, .. }
        | StepKind::Publish { next, .. } => vec![completed(next)],
        StepKind::Loop(looping) => vec![completed(&looping.next)],
        StepKind::Final { .. } => Vec::new(),
    }
}

/// Mistakes in the flow of a plan. `node` is its source.
pub fn check_flow(plan: &Plan, node: &Node, origin: &Origin) -> Vec<Mistake> {
    let lists = Lists::of(plan);
    let mut found = unreached(plan, &lists);
    for step in plan.index.keys().filter_map(|id| plan.step(id)) {
        found.extend(blind_references(plan, &lists, step));
        if let StepKind::Loop(looping) = &step.kind
            && looping.concurrency > 1
        {
            found.extend(races(plan, &lists, step, looping));
        }
    }
    found.into_iter().map(|(pointer, mistake)| origin.place(node, &pointer, mistake)).collect()
}

/// A mistake and the JSON Pointer to its place.
type FlowMistakes = Vec<(String, Mistake)>;

fn load_node(
    node: &Node,
    origin: &Origin,
    limits: &Limits,
    scope: &PlanScope<'_>,
) -> CheckResult<Plan> {
    let (plan, mut mistakes) = read_plan(node, origin, limits)?;
    mistakes.extend(check_plan(&plan, node, origin, scope));
    mistakes.extend(check_flow(&plan, node, origin));
    checked(Some(plan), mistakes)
}

/// One list of steps: the plan's own, a branch's, a loop's.
struct List<'p> {
    steps: &'p [Step],
    /// For each step, its successors in this list.
    successors: Vec<Vec<(StepExit, Option<usize>)>>,
    /// For each step, which steps of this list can come after it.
    after: Vec<Vec<bool>>,
    /// For each step, the lists inside it.
    inner: Vec<Vec<usize>>,
    /// List and position of the step that holds this list.
    parent: Option<(usize, usize)>,
    /// Whether it runs once per item, each time seeing what the time before left.
    in_turn: bool,
}

/// All lists of a plan; the first is the plan's own.
struct Lists<'p> {
    all: Vec<List<'p>>,
    at: BTreeMap<&'p StepId, (usize, usize)>,
}

impl<'p> Lists<'p> {
    fn of(plan: &'p Plan) -> Self {
        let mut lists = Self { all: Vec::new(), at: BTreeMap::new() };
        lists.add(plan, &plan.steps, None);
        lists
    }

    fn add(&mut self, plan: &'p Plan, steps: &'p [Step], parent: Option<(usize, usize)>) -> usize {
        let index = self.all.len();
        let in_turn = parent.is_some_and(|(list, position)| {
            let holder = &self.all[list].steps[position].kind;
            matches!(holder, StepKind::Loop(looping) if looping.concurrency == 1)
        });
        let successors = successors_in_list(plan, steps);
        let after = successors.iter().map(|first| reached(first, &successors)).collect();
        let inner = vec![Vec::new(); steps.len()];
        self.all.push(List { steps, successors, after, inner, parent, in_turn });
        for (position, step) in steps.iter().enumerate() {
            self.at.insert(&step.id, (index, position));
            for body in step.bodies() {
                let body = self.add(plan, body, Some((index, position)));
                self.all[index].inner[position].push(body);
            }
        }
        index
    }

    /// List and position of a step and of every step that contains it, innermost first.
    fn chain(&self, id: &StepId) -> Vec<(usize, usize)> {
        let first = self.at.get(id).copied();
        std::iter::successors(first, |(list, _)| self.all[*list].parent).collect()
    }

    /// Whether `earlier` can have run, and be visible, when `later` begins. In the innermost list
    /// that contains both, a path must lead from one to the other; in each list around that one, a
    /// cycle or an earlier iteration of a sequential loop is enough.
    fn can_precede(&self, earlier: &StepId, later: &StepId) -> bool {
        let earlier = self.chain(earlier);
        self.chain(later).into_iter().any(|(index, to)| {
            let list = &self.all[index];
            let from = earlier.iter().find(|(other, _)| *other == index);
            from.is_some_and(|(_, from)| list.in_turn || list.after[*from][to])
        })
    }
}

fn successors_in_list(plan: &Plan, steps: &[Step]) -> Vec<Vec<(StepExit, Option<usize>)>> {
    let positions: BTreeMap<&StepId, usize> =
        steps.iter().enumerate().map(|(position, step)| (&step.id, position)).collect();
    let inside = |next: Option<StepId>| next.and_then(|next| positions.get(&next).copied());
    let of_step = |step: &Step| -> Vec<(StepExit, Option<usize>)> {
        edges(plan, step).into_iter().map(|edge| (edge.exit, inside(edge.next))).collect()
    };
    steps.iter().map(of_step).collect()
}

/// Which positions can be reached from `first`, given the successors of each position.
fn reached(
    first: &[(StepExit, Option<usize>)],
    all: &[Vec<(StepExit, Option<usize>)>],
) -> Vec<bool> {
    let mut reached = vec![false; all.len()];
    let mut open: Vec<usize> = first.iter().filter_map(|(_, next)| *next).collect();
    while let Some(position) = open.pop() {
        if !reached[position] {
            reached[position] = true;
            open.extend(all[position].iter().filter_map(|(_, next)| *next));
        }
    }
    reached
}

fn unreached(plan: &Plan, lists: &Lists<'_>) -> FlowMistakes {
    let mut found = Vec::new();
    for (index, list) in lists.all.iter().enumerate() {
        let start = match lists.at.get(&plan.start) {
            Some((0, position)) if index == 0 => *position,
            Some(_) | None => 0,
        };
        for (position, step) in list.steps.iter().enumerate() {
            if position != start && !list.after[start][position] {
                let mistake = Mistake::error(format!("step `{}` is never reached", step.id))
                    .hint("lead a `nextStepId` to it, or remove it");
                found.push((step_pointer(plan, &step.id), mistake));
            }
        }
    }
    found
}

/// References to steps that this one cannot see.
fn blind_references(plan: &Plan, lists: &Lists<'_>, step: &Step) -> FlowMistakes {
    let mut found = Vec::new();
    for read in reads(step) {
        let ReadTarget::Step(named) = read.what else { continue };
        let mistake = match plan.step(named).map(|named| &named.kind) {
            None => Mistake::error(format!("there is no step `{named}`"))
                .hint(meant_step(named.as_str(), plan.index.keys().map(StepId::as_str))),
            Some(StepKind::ToolCall(_)) if lists.can_precede(named, &step.id) => continue,
            Some(StepKind::ToolCall(_)) => {
                let hint = "a step sees what ran on its way, not its sibling branches";
                Mistake::error(format!("step `{named}` cannot have run before `{}`", step.id))
                    .hint(hint)
            }
            Some(other) => {
                let message = format!("step `{named}` leaves no history entry");
                Mistake::warning(format!("{message}: it is a {}", type_name(other)))
                    .hint("read its result from `$.context`")
            }
        };
        found.push((format!("{}{}", step_pointer(plan, &step.id), read.at), mistake));
    }
    found
}

/// The keys that a step has surely written once it is left with its result.
fn writes(step: &Step) -> Vec<&str> {
    match &step.kind {
        StepKind::ToolCall(call) => vec![call.save_as.as_str(), "lastToolExecution"],
        StepKind::Human { .. } => vec!["human_input", "inputs"],
        StepKind::Plan { save_as, .. } | StepKind::Agent { save_as, .. } => vec![save_as.as_str()],
        StepKind::Parallel { .. } | StepKind::Loop(_) => vec![step.id.as_str()],
        StepKind::Match { .. }
        | StepKind::Conditional { .. }
        | StepKind::Publish { .. }
        | StepKind::Final { .. } => Vec::new(),
    }
}

/// The keys that a loop sets before each turn of its body.
fn item_keys(looping: &Loop) -> [String; 2] {
    [looping.alias.to_string(), format!("{}_index", looping.alias)]
}

/// Reads in a concurrent loop's body that would see another iteration's writes or not, as luck has
/// it: of a key that the body writes, at a place where this iteration may not have written it yet.
fn races(plan: &Plan, lists: &Lists<'_>, step: &Step, looping: &Loop) -> FlowMistakes {
    let Some((list, position)) = lists.at.get(&step.id).copied() else { return Vec::new() };
    let mut traffic = Traffic::default();
    for body in &lists.all[list].inner[position] {
        traffic.gather(lists, *body);
    }
    let mut found = BTreeMap::new();
    let own = item_keys(looping);
    for key in traffic.contested(&own) {
        let mut turn = LoopTurn { lists, key, early: Vec::new() };
        for body in &lists.all[list].inner[position] {
            turn.list(*body);
        }
        for (reader, at, message) in turn.early {
            let hint = format!("set `concurrency: 1`, or write it earlier in loop `{}`", step.id);
            let pointer = format!("{}{at}", step_pointer(plan, reader));
            found.entry(pointer).or_insert_with(|| Mistake::error(message).hint(hint));
        }
    }
    found.into_iter().collect()
}

/// Which keys a loop's body reads and writes, at any depth.
#[derive(Default)]
struct Traffic {
    read: BTreeSet<String>,
    reads_all: bool,
    written: BTreeSet<String>,
}

impl Traffic {
    fn gather(&mut self, lists: &Lists<'_>, index: usize) {
        let list = &lists.all[index];
        for (step, inner) in list.steps.iter().zip(&list.inner) {
            self.written.extend(writes(step).into_iter().map(str::to_owned));
            if let StepKind::Loop(looping) = &step.kind {
                self.written.extend(item_keys(looping));
            }
            for read in reads(step) {
                match read.what {
                    ReadTarget::Key(key) => {
                        self.read.insert(key.to_owned());
                    }
                    ReadTarget::Context => self.reads_all = true,
                    ReadTarget::Step(_) => {}
                }
            }
            for body in inner {
                self.gather(lists, *body);
            }
        }
    }

    /// The keys that are both read and written, but for those that each turn begins with.
    fn contested<'t>(&'t self, own: &'t [String]) -> impl Iterator<Item = &'t str> {
        self.written
            .iter()
            .filter(move |key| self.reads_all || self.read.contains(*key))
            .filter(move |key| !own.contains(key))
            .map(String::as_str)
    }
}

/// One turn of a loop's body, followed for one key that is not yet written.
struct LoopTurn<'l, 'p> {
    lists: &'l Lists<'p>,
    key: &'l str,
    /// Steps that read it too early, with pointer and message.
    early: Vec<(&'p StepId, String, String)>,
}

impl<'p> LoopTurn<'_, 'p> {
    /// Follows a list; whether the key is surely written at its end.
    fn list(&mut self, index: usize) -> bool {
        let lists = self.lists;
        let list = &lists.all[index];
        let mut known: Vec<Option<bool>> = vec![None; list.steps.len()];
        let mut at_end = true;
        let mut open = vec![(0, false)];
        while let Some((position, written)) = open.pop() {
            // Written only if it is written on every path to this step.
            let written = written && known[position].unwrap_or(true);
            if known[position] == Some(written) {
                continue;
            }
            known[position] = Some(written);
            let after = written || self.step(&list.steps[position], &list.inner[position]);
            for (exit, next) in &list.successors[position] {
                let written = match exit {
                    StepExit::Completed => after,
                    StepExit::Refused => written,
                };
                match next {
                    Some(next) => open.push((*next, written)),
                    None => at_end = at_end && written,
                }
            }
        }
        at_end
    }

    /// A step that begins with the key unwritten; whether it surely writes it.
    fn step(&mut self, step: &'p Step, inner: &[usize]) -> bool {
        let key = self.key;
        for read in reads(step) {
            let message = match read.what {
                ReadTarget::Key(read) if read == key => {
                    format!("`$.context.{key}` is read while other iterations write it")
                }
                ReadTarget::Context => {
                    format!("the whole context is read while other iterations write `{key}`")
                }
                ReadTarget::Key(_) | ReadTarget::Step(_) => continue,
            };
            self.early.push((&step.id, read.at, message));
        }
        let mut written = writes(step).contains(&key);
        for body in inner {
            match &step.kind {
                // It may have no items, so what its body writes is not sure to be there.
                StepKind::Loop(looping) => {
                    if !item_keys(looping).iter().any(|own| own == key) {
                        self.list(*body);
                    }
                }
                _ => written |= self.list(*body),
            }
        }
        written
    }
}
