//! Reads the steps of a plan, kind by kind, each with exactly its own keys.

use super::mistake::{CheckResult, Mistake, checked, meant, meant_step};
use super::read::{Origin, Reader, Spot, quoted};
use super::rules::ON_ERROR;
use super::source::Node;
use super::{
    Branch, Case, Expr, ListPlace, Loop, Plan, Step, StepKind, ToolCall, hash_of, index_steps,
    source_of,
};
use crate::limits::Limits;
use crate::tool::call::Pace;
use crate::values::ids::{AgentName, ContextKey, PlanId, StepId, ToolName};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const PLAN_KEYS: &[&str] = &[
    "planId", "description", "parameters", "outputSchema", "pace", "eventSource", "startStepId",
    "on_error", "onError", "steps", "examples", "$schema",
];

/// The key of a plan that reports what became of its calls, in plans that we make alone.
pub const REPORTS_CALLS: &str = "reportsCalls";

/// Every step type and its own keys; `id`, `type` and `description` come first in each.
const STEP_TYPES: &[(&str, &[&str])] = &[
    (
        "tool_call",
        &[
            "toolId", "arguments", "saveAs", "saveResultAs", "approve", "expiresIn", "on_error",
            "onError", "nextStepId", "onRejected",
        ],
    ),
    ("match", &["value", "cases", "default"]),
    ("conditional_branch", &["condition", "onTrue", "onFalse"]),
    ("parallel_branch", &["branches", "nextStepId"]),
    (
        "loop_over_items",
        &[
            "collectionPath", "itemAlias", "concurrency", "on_error", "onError", "loopPlan",
            "nextStepId",
        ],
    ),
    (
        "human_in_the_loop",
        &[
            "message", "expectedInputSchema", "expiresIn", "nextStepIdOnInput", "nextStepId",
            "onDeclined",
        ],
    ),
    ("plan", &["planId", "arguments", "saveAs", "nextStepId"]),
    ("agent", &["agent", "input", "saveAs", "expiresIn", "on_error", "onError", "nextStepId"]),
    ("publish_event", &["event", "nextStepId"]),
    ("final_response", &["message"]),
];

/// Reads a plan. All mistakes are reported, not only the first; with warnings alone it is still a
/// plan.
pub fn read_plan(node: &Node, origin: &Origin, limits: &Limits) -> CheckResult<Plan> {
    read_with(Reader::new(origin, limits), node)
}

/// Reads the plan of a run again, as it was pinned.
pub(super) fn read_pinned_plan(node: &Node, limits: &Limits) -> Result<Plan, Vec<Mistake>> {
    let origin = Origin::default();
    let reader = Reader { pinned: true, made: true, ..Reader::new(&origin, limits) };
    read_with(reader, node).map(|(plan, _)| plan)
}

/// Reads a plan that we made ourselves.
pub(super) fn read_generated_plan(node: &Node, limits: &Limits) -> Result<Plan, Vec<Mistake>> {
    let origin = Origin::default();
    let reader = Reader { made: true, ..Reader::new(&origin, limits) };
    read_with(reader, node).map(|(plan, _)| plan)
}

fn read_with(reader: Reader<'_>, node: &Node) -> CheckResult<Plan> {
    let mut steps = Steps { reader, seen: BTreeMap::new(), count: 0 };
    let plan = steps.plan(&Spot::root(node));
    checked(plan, steps.reader.mistakes)
}

/// Which rule a jump follows.
#[derive(Clone, Copy)]
enum Level {
    /// It must name a step of the plan's own list.
    Top,
    /// It counts only inside its list; the original needs a dummy value there.
    Inner,
}

/// The list that a step stands in.
struct Scope<'n> {
    level: Level,
    ids: BTreeSet<&'n str>,
}

impl<'n> Scope<'n> {
    fn of(list: &[Spot<'n>], level: Level) -> Self {
        let ids = list.iter().filter_map(|spot| spot.node.get("id")?.text()).collect();
        Self { level, ids }
    }
}

struct Steps<'a> {
    reader: Reader<'a>,
    /// Every step id so far and its line.
    seen: BTreeMap<String, u32>,
    count: usize,
}

impl Steps<'_> {
    fn plan(&mut self, spot: &Spot<'_>) -> Option<Plan> {
        let known = match self.reader.made {
            true => [PLAN_KEYS, &[REPORTS_CALLS]].concat(),
            false => PLAN_KEYS.to_vec(),
        };
        if !self.reader.object(spot, "a plan", &known) {
            return None;
        }
        let id = self.plan_id(spot);
        let description = self.description(spot).unwrap_or_default();
        let parameters = self.schema(spot, "parameters");
        let output_schema = self.schema(spot, "outputSchema");
        let pace = self.reader.one_of(spot, &["pace"], &Pace::NAMES);
        let event_source = spot.field("eventSource");
        let event_source = event_source.and_then(|field| self.reader.text(&field)).map(Arc::from);
        let rules = self.reader.on_error(spot);
        let reports_calls = self.reports_calls(spot);
        let list = self.reader.need(spot, "steps").and_then(|field| self.reader.filled(&field));
        let examples = self.examples(spot);
        let list = list?;
        let scope = Scope::of(&list, Level::Top);
        let start = match spot.field("startStepId") {
            Some(field) => self.target(&field, &scope),
            None => list[0].node.get("id").and_then(Node::text).map(StepId::from),
        };
        let steps = self.list(&list, &scope);
        self.check_count(spot);
        let id = id?;
        let mut index = BTreeMap::new();
        index_steps(&steps, &ListPlace::Top, &mut index);
        let source = source_of(spot.node, &id);
        let hash = hash_of(&source);
        Some(Plan {
            id,
            description,
            parameters,
            output_schema,
            pace: pace.unwrap_or_default(),
            event_source,
            start: start?,
            steps,
            rules,
            reports_calls,
            examples,
            source: Arc::new(source),
            hash,
            index,
        })
    }

    fn reports_calls(&mut self, spot: &Spot<'_>) -> bool {
        let field = spot.field(REPORTS_CALLS);
        field.and_then(|field| self.reader.flag(&field)).unwrap_or(false)
    }

    fn plan_id(&mut self, spot: &Spot<'_>) -> Option<PlanId> {
        if spot.field("planId").is_some() {
            return self.reader.maybe_name(spot, "planId").map(PlanId::from);
        }
        let id = self.reader.origin.default_id.clone();
        if id.is_none() {
            let mistake = Mistake::error("`planId` is missing");
            self.reader.note(spot, mistake.hint("only a plan file has a name without it"));
        }
        id
    }

    fn description(&mut self, spot: &Spot<'_>) -> Option<String> {
        let field = spot.field("description")?;
        self.reader.text(&field).map(str::to_owned)
    }

    fn schema(&mut self, spot: &Spot<'_>, key: &str) -> Option<Arc<Value>> {
        spot.field(key).and_then(|field| self.reader.schema(&field))
    }

    fn examples(&mut self, spot: &Spot<'_>) -> Vec<super::Example> {
        let list = spot.field("examples").and_then(|field| self.reader.list(&field));
        list.unwrap_or_default().iter().filter_map(|item| self.reader.example(item)).collect()
    }

    fn check_count(&mut self, spot: &Spot<'_>) {
        let most = self.reader.limits.plan_steps_max;
        if self.count <= most {
            return;
        }
        let message =
            format!("the plan has {} steps, more than `plan_steps_max` = {most}", self.count);
        let mistake = Mistake::error(message).hint("move some of them into a plan of their own");
        if let Some(field) = spot.value("steps") {
            self.reader.note(&field, mistake);
        }
    }

    fn list(&mut self, list: &[Spot<'_>], scope: &Scope<'_>) -> Vec<Step> {
        self.count += list.len();
        list.iter().filter_map(|spot| self.step(spot, scope)).collect()
    }

    /// The steps of a branch or a loop's body.
    fn inner(&mut self, spot: &Spot<'_>, key: &str) -> Option<Vec<Step>> {
        let field = self.reader.need(spot, key)?;
        let list = self.reader.filled(&field)?;
        Some(self.list(&list, &Scope::of(&list, Level::Inner)))
    }

    fn step(&mut self, spot: &Spot<'_>, scope: &Scope<'_>) -> Option<Step> {
        if !spot.is_map() {
            self.reader.wrong(spot, "a step");
            return None;
        }
        let id = self.step_id(spot);
        let kind = self.reader.need(spot, "type").and_then(|field| self.kind(spot, &field, scope));
        let description = self.description(spot);
        let rules = match &kind {
            Some(StepKind::ToolCall(_) | StepKind::Agent { .. }) => self.reader.on_error(spot),
            _ => Vec::new(),
        };
        Some(Step { id: id?, description, kind: kind?, rules })
    }

    fn step_id(&mut self, spot: &Spot<'_>) -> Option<StepId> {
        let field = self.reader.need(spot, "id")?;
        let id = self.reader.name(&field)?;
        if let Some(line) = self.seen.insert(id.to_owned(), field.node.line) {
            let mistake = Mistake::error(format!("two steps have the id `{id}`"));
            // A plan inside a request has no lines.
            let hint = match line {
                0 => "ids are unique in a plan, inner steps included".to_owned(),
                line => format!("the first one is in line {line}"),
            };
            self.reader.note(&field, mistake.hint(hint));
        }
        Some(StepId::from(id))
    }

    fn kind(&mut self, spot: &Spot<'_>, field: &Spot<'_>, scope: &Scope<'_>) -> Option<StepKind> {
        let name = self.reader.text(field)?;
        if let Some((_, own)) = STEP_TYPES.iter().find(|(known, _)| *known == name) {
            let mut keys = vec!["id", "type", "description"];
            keys.extend_from_slice(own);
            self.reader.object(spot, &format!("a {name} step"), &keys);
        }
        match name {
            "tool_call" => self.tool_call(spot, scope),
            "match" => self.matching(spot, scope),
            "conditional_branch" => self.conditional(spot, scope),
            "parallel_branch" => self.parallel(spot, scope),
            "loop_over_items" => self.looping(spot, scope),
            "human_in_the_loop" => self.human(spot, scope),
            "plan" => self.sub_plan(spot, scope),
            "final_response" => {
                let message = self.reader.need(spot, "message")?;
                Some(StepKind::Final { message: self.reader.message(&message)? })
            }
            "agent" => self.agent(spot, scope),
            "publish_event" => self.publish(spot, scope),
            other => {
                let names: Vec<&str> = STEP_TYPES.iter().map(|(known, _)| *known).collect();
                let near = meant(other, names.iter().copied()).map(|near| near + " ");
                let hint = format!("{}the types are {}", near.unwrap_or_default(), quoted(&names));
                let mistake = Mistake::error(format!("unknown step type `{other}`")).hint(hint);
                self.reader.note(field, mistake);
                None
            }
        }
    }

    fn tool_call(&mut self, spot: &Spot<'_>, scope: &Scope<'_>) -> Option<StepKind> {
        let tool = self.reader.need_name(spot, "toolId");
        let arguments = self.arguments(spot);
        let value = self.reader.maybe_name(spot, "saveAs");
        let result = self.reader.maybe_name(spot, "saveResultAs");
        if value.is_some()
            && let Some(field) = spot.field("saveResultAs")
        {
            let mistake = Mistake::error("a step has `saveAs` or `saveResultAs`, not both");
            let hint = "keep `saveResultAs`: the value is in the whole result";
            self.reader.note(&field, mistake.hint(hint));
        }
        let approve = spot.field("approve").and_then(|field| self.reader.flag(&field));
        let next = self.next(spot, "nextStepId", scope);
        let on_rejected = self.next_step(spot, "onRejected", scope);
        let expires_ms = self.reader.expires(spot);
        let tool = tool?;
        Some(StepKind::ToolCall(ToolCall {
            tool: ToolName::from(tool),
            arguments: arguments?,
            save_as: match result.or(value) {
                Some(key) => ContextKey::from(key),
                None => ContextKey::from(format!("{tool}_result")),
            },
            whole: result.is_some(),
            approve: approve.unwrap_or(false),
            next,
            on_rejected,
            expires_ms,
        }))
    }

    fn matching(&mut self, spot: &Spot<'_>, scope: &Scope<'_>) -> Option<StepKind> {
        let value = self.reader.need(spot, "value").and_then(|field| self.reader.expr(&field));
        let list = self.reader.need(spot, "cases").and_then(|field| self.reader.filled(&field));
        let default = self.next_step(spot, "default", scope);
        let cases = list?.iter().filter_map(|case| self.case(case, scope)).collect();
        Some(StepKind::Match { value: value?, cases, default })
    }

    fn case(&mut self, spot: &Spot<'_>, scope: &Scope<'_>) -> Option<Case> {
        if !self.reader.object(spot, "a case", &["equals", "nextStepId"]) {
            return None;
        }
        let equals = self.reader.need(spot, "equals").and_then(|field| self.reader.expr(&field));
        let target = self.reader.need(spot, "nextStepId");
        let next = target.and_then(|field| self.target(&field, scope));
        Some(Case { equals: equals?, next })
    }

    fn conditional(&mut self, spot: &Spot<'_>, scope: &Scope<'_>) -> Option<StepKind> {
        let field = self.reader.need(spot, "condition");
        let condition = field.and_then(|field| self.reader.condition(&field));
        if spot.field("onTrue").is_none() && spot.field("onFalse").is_none() {
            let mistake = Mistake::error("`onTrue` and `onFalse` are both missing");
            self.reader.note(spot, mistake.hint("a condition must lead somewhere"));
        }
        let on_true = self.next_step(spot, "onTrue", scope);
        let on_false = self.next_step(spot, "onFalse", scope);
        Some(StepKind::Conditional { condition: condition?, on_true, on_false })
    }

    fn parallel(&mut self, spot: &Spot<'_>, scope: &Scope<'_>) -> Option<StepKind> {
        let next = self.next(spot, "nextStepId", scope);
        let field = self.reader.need(spot, "branches")?;
        let list = self.reader.filled(&field)?;
        let most = self.reader.limits.branches_max;
        if list.len() > most {
            let message = format!("{} branches are more than {most}", list.len());
            let mistake = Mistake::error(message).hint("use a `loop_over_items` step");
            self.reader.note(&field, mistake);
        }
        let mut ids = BTreeSet::new();
        let mut branches = Vec::with_capacity(list.len());
        for (index, branch) in list.iter().enumerate() {
            let Some(branch_read) = self.branch(branch, index) else { continue };
            if !ids.insert(branch_read.id.clone()) {
                let message = format!("two branches have the id `{}`", branch_read.id);
                let mistake = Mistake::error(message);
                self.reader
                    .note(branch, mistake.hint("a branch without `id` is named by its index"));
            }
            branches.push(branch_read);
        }
        Some(StepKind::Parallel { branches, next })
    }

    fn branch(&mut self, spot: &Spot<'_>, index: usize) -> Option<Branch> {
        if !self.reader.object(spot, "a branch", &["id", "steps"]) {
            return None;
        }
        let id = self.reader.maybe_name(spot, "id").map(str::to_owned);
        let steps = self.inner(spot, "steps");
        Some(Branch { id: id.unwrap_or_else(|| index.to_string()), steps: steps? })
    }

    fn looping(&mut self, spot: &Spot<'_>, scope: &Scope<'_>) -> Option<StepKind> {
        let field = self.reader.need(spot, "collectionPath");
        let collection = field.and_then(|field| self.reader.collection(&field));
        let alias = self.reader.need_name(spot, "itemAlias");
        let concurrency = self.reader.concurrency(spot);
        let known = [("stop", false), ("collect", true)];
        let collect = self.reader.one_of(spot, &ON_ERROR, &known);
        let body = self.inner(spot, "loopPlan");
        let next = self.next(spot, "nextStepId", scope);
        Some(StepKind::Loop(Loop {
            collection: collection?,
            alias: ContextKey::from(alias?),
            concurrency: concurrency?,
            collect: collect.unwrap_or(false),
            body: body?,
            next,
        }))
    }

    fn human(&mut self, spot: &Spot<'_>, scope: &Scope<'_>) -> Option<StepKind> {
        let field = self.reader.need(spot, "message");
        let message = field.and_then(|field| self.reader.question(&field));
        let schema = self.schema(spot, "expectedInputSchema");
        let on_input = self.next(spot, "nextStepIdOnInput", scope);
        let next = self.next(spot, "nextStepId", scope);
        if on_input.is_some() && next.is_some() && on_input != next {
            let mistake =
                Mistake::error("`nextStepIdOnInput` and `nextStepId` say different things");
            self.reader.note(spot, mistake.hint("keep one of the two"));
        }
        let on_declined = self.next_step(spot, "onDeclined", scope);
        let expires_ms = self.reader.expires(spot);
        let next = on_input.or(next);
        Some(StepKind::Human { message: message?, schema, next, on_declined, expires_ms })
    }

    fn sub_plan(&mut self, spot: &Spot<'_>, scope: &Scope<'_>) -> Option<StepKind> {
        let plan = self.reader.need_name(spot, "planId");
        let arguments = self.arguments(spot);
        let save_as = self.reader.maybe_name(spot, "saveAs").map(ContextKey::from);
        let next = self.next(spot, "nextStepId", scope);
        let plan = plan?;
        Some(StepKind::Plan {
            plan: PlanId::from(plan),
            arguments: arguments?,
            save_as: save_as.unwrap_or_else(|| ContextKey::from(format!("{plan}_result"))),
            next,
        })
    }

    fn agent(&mut self, spot: &Spot<'_>, scope: &Scope<'_>) -> Option<StepKind> {
        let agent = self.reader.need_name(spot, "agent");
        let input = self.reader.need(spot, "input").and_then(|field| self.reader.expr(&field));
        let save_as = self.reader.maybe_name(spot, "saveAs").map(ContextKey::from);
        let next = self.next(spot, "nextStepId", scope);
        let expires_ms = self.reader.expires(spot);
        let agent = agent?;
        Some(StepKind::Agent {
            agent: AgentName::from(agent),
            input: input?,
            save_as: save_as.unwrap_or_else(|| ContextKey::from(format!("{agent}_result"))),
            next,
            expires_ms,
        })
    }

    fn publish(&mut self, spot: &Spot<'_>, scope: &Scope<'_>) -> Option<StepKind> {
        let event = self.reader.need(spot, "event").and_then(|field| self.reader.event(&field));
        let next = self.next(spot, "nextStepId", scope);
        Some(StepKind::Publish { event: event?, next })
    }

    fn arguments(&mut self, spot: &Spot<'_>) -> Option<Expr> {
        let Some(field) = spot.field("arguments") else {
            return Some(Expr::Literal(Arc::new(Value::Object(Map::new()))));
        };
        if !field.is_map() {
            self.reader.wrong(&field, "a map of arguments");
            return None;
        }
        self.reader.expr(&field)
    }

    /// The jump that a step's own key names.
    fn next(&mut self, spot: &Spot<'_>, key: &str, scope: &Scope<'_>) -> Option<StepId> {
        spot.field(key).and_then(|field| self.target(&field, scope))
    }

    /// The jump in `{nextStepId}`.
    fn next_step(&mut self, spot: &Spot<'_>, key: &str, scope: &Scope<'_>) -> Option<StepId> {
        let field = spot.field(key)?;
        if !self.reader.object(&field, &format!("`{key}`"), &["nextStepId"]) {
            return None;
        }
        let target = self.reader.need(&field, "nextStepId")?;
        self.target(&target, scope)
    }

    fn target(&mut self, spot: &Spot<'_>, scope: &Scope<'_>) -> Option<StepId> {
        let name = self.reader.text(spot)?;
        if scope.ids.contains(name) {
            return Some(StepId::from(name));
        }
        let mistake = match scope.level {
            Level::Top => Mistake::error(format!("there is no step `{name}` at the top level"))
                .hint(meant_step(name, scope.ids.iter().copied())),
            Level::Inner => Mistake::warning(format!(
                "`{name}` is not a step of this list; the jump is ignored"
            ))
            .hint("in branches and loops the steps follow each other; leave it out"),
        };
        self.reader.note(spot, mistake);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::schemas::PLAN;
    use crate::definition::schemas::described::{keys, schema, words};
    use crate::expression::condition::Operator;

    #[test]
    fn the_schema_of_plans_has_the_keys_that_are_read() {
        let plan = schema(PLAN);
        let read: BTreeSet<&str> = PLAN_KEYS.iter().copied().collect();
        assert_eq!(keys(&plan), read);
        let defs = plan["$defs"].as_object().unwrap();
        let kind = |def: &Value| def["properties"]["type"]["const"].as_str().map(str::to_owned);
        let steps = defs.values().filter_map(|def| Some((kind(def)?, keys(def))));
        let described: BTreeMap<String, BTreeSet<&str>> = steps.collect();
        let all = |own: &[&'static str]| -> BTreeSet<&'static str> {
            ["id", "type", "description"].into_iter().chain(own.iter().copied()).collect()
        };
        let read = STEP_TYPES.iter().map(|(name, own)| ((*name).to_owned(), all(own)));
        assert_eq!(described, read.collect::<BTreeMap<_, _>>());
        let offered = plan["$defs"]["step"]["oneOf"].as_array().unwrap();
        assert_eq!(offered.len(), STEP_TYPES.len());
        let operators: Vec<&str> = Operator::ALL.iter().map(|known| known.name()).collect();
        assert_eq!(words(&plan["$defs"]["condition"]["properties"]["operator"]), operators);
        assert_eq!(words(&plan["properties"]["pace"]), Pace::NAMES.map(|(name, _)| name));
    }
}
