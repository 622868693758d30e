//! Checks a plan against its surroundings: tools and plans exist, schemas compile, arguments and
//! examples fit.

use super::mistake::{Mistake, meant};
use super::read::{Origin, quoted};
use super::source::{Node, child_pointer};
use super::{Example, Expr, ListPlace, Plan, Step, StepKind, Stub, Text, ToolCall};
use crate::definition::rule::{Rule, RuleAction};
use crate::expression::condition::{Condition, Operator, TOO_LARGE, TOO_LARGE_HINT};
use crate::expression::patterns::{Unusable, compile};
use crate::expression::pointer::Target;
use crate::tool::call::{Reach, ToolSpec};
use crate::tool::schema::{PARTS_AT_ONCE_MAX, STEPS_AT_ONCE_MAX, Schemas};
use crate::values::ids::{AgentName, PlanId, StepId, ToolName};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a plan can refer to when it is loaded.
pub struct PlanScope<'a> {
    pub tools: &'a dyn Fn(&ToolName) -> Option<Arc<ToolSpec>>,
    /// What the operator can set to have this tool, where the settings keep it out; nothing, where
    /// the caller must not learn that there is one.
    pub withheld: &'a dyn Fn(&ToolName) -> Option<&'static str>,
    /// Whether a tool of this name may come later, from another server.
    pub awaited: &'a dyn Fn(&ToolName) -> bool,
    pub plans: &'a dyn Fn(&PlanId) -> bool,
    pub agents: &'a dyn Fn(&AgentName) -> bool,
    /// All agents, for "did you mean".
    pub agent_names: &'a dyn Fn() -> Vec<AgentName>,
    /// All tools, for "did you mean".
    pub tool_names: &'a dyn Fn() -> Vec<ToolName>,
    /// What knows JSON Schema.
    pub schemas: &'a dyn Schemas,
}

/// What to look at where the rules for tools keep one out.
pub const KEPT_OUT: &str = "`[tools]` in waypost.toml keeps it out: see `allow` and `deny`";

/// The statuses that an example can expect.
pub const STATUSES: &[&str] = &["completed", "failed", "paused_on_error", "paused_on_human"];

/// How many unusable schemas are reported for one plan: to find them takes time, too.
const WRONG_SCHEMAS_MAX: usize = 32;

/// Mistakes of a plan about its surroundings. `node` is its source.
pub fn check_plan(
    plan: &Plan,
    node: &Node,
    origin: &Origin,
    around: &PlanScope<'_>,
) -> Vec<Mistake> {
    let mut checker =
        Checker { plan, node, origin, around, mistakes: Vec::new(), parts: 0, steps: 0 };
    let parameters = plan.parameters.as_ref();
    let parameters_compile = checker.schema("/parameters", parameters);
    checker.schema("/outputSchema", plan.output_schema.as_ref());
    checker.rules("", &plan.rules);
    for step in plan.index.keys().filter_map(|id| plan.step(id)) {
        checker.step(step);
    }
    checker.examples(parameters.filter(|_| parameters_compile));
    checker.mistakes
}

/// The JSON Pointer to a step in its plan's source.
pub fn step_pointer(plan: &Plan, id: &StepId) -> String {
    let Some(place) = plan.index.get(id) else { return String::new() };
    let position = place.position;
    match &place.list {
        ListPlace::Top => format!("/steps/{position}"),
        ListPlace::Branch(owner, branch) => {
            format!("{}/branches/{branch}/steps/{position}", step_pointer(plan, owner))
        }
        ListPlace::Body(owner) => format!("{}/loopPlan/{position}", step_pointer(plan, owner)),
    }
}

/// The step type by its name in a plan.
pub fn type_name(kind: &StepKind) -> &'static str {
    match kind {
        StepKind::ToolCall(_) => "tool_call",
        StepKind::Match { .. } => "match",
        StepKind::Conditional { .. } => "conditional_branch",
        StepKind::Parallel { .. } => "parallel_branch",
        StepKind::Loop(_) => "loop_over_items",
        StepKind::Human { .. } => "human_in_the_loop",
        StepKind::Plan { .. } => "plan",
        StepKind::Agent { .. } => "agent",
        StepKind::Publish { .. } => "publish_event",
        StepKind::Final { .. } => "final_response",
    }
}

/// What a step looks at when it begins.
pub(crate) struct StepRead<'p> {
    /// JSON Pointer from the step to the pointer or text that looks.
    pub(crate) at: String,
    pub(crate) what: ReadTarget<'p>,
}

/// What a reference reads, as far as it can be checked before a run.
pub(crate) enum ReadTarget<'p> {
    /// One key of the context.
    Key(&'p str),
    /// All of it.
    Context,
    /// The entries of a step.
    Step(&'p StepId),
}

/// All that a step itself looks at; the steps inside it look for themselves.
pub(crate) fn reads(step: &Step) -> Vec<StepRead<'_>> {
    let mut reads = Vec::new();
    match &step.kind {
        StepKind::ToolCall(call) => read_expr(&call.arguments, "/arguments", &mut reads),
        StepKind::Match { value, cases, .. } => {
            read_expr(value, "/value", &mut reads);
            for (index, case) in cases.iter().enumerate() {
                read_expr(&case.equals, &format!("/cases/{index}/equals"), &mut reads);
            }
        }
        StepKind::Conditional { condition, .. } => {
            read_expr(&condition.left, "/condition/left", &mut reads);
            if let Some(right) = &condition.right {
                read_expr(right, "/condition/right", &mut reads);
            }
        }
        StepKind::Loop(looping) => read_expr(&looping.collection, "/collectionPath", &mut reads),
        StepKind::Human { message, .. } | StepKind::Final { message } => {
            read_text(message, &mut reads);
        }
        StepKind::Plan { arguments, .. } => read_expr(arguments, "/arguments", &mut reads),
        StepKind::Agent { input, .. } => read_expr(input, "/input", &mut reads),
        StepKind::Publish { event, .. } => read_expr(event, "/event", &mut reads),
        StepKind::Parallel { .. } => {}
    }
    reads
}

fn read_text<'p>(message: &'p Text, reads: &mut Vec<StepRead<'p>>) {
    let template = match message {
        Text::Template(template) => template,
        Text::Expr(expr) => return read_expr(expr, "/message", reads),
    };
    let Some(needs) = template.needs() else { return };
    let keys = needs.context_keys.iter().map(|key| ReadTarget::Key(key));
    let whole = needs.whole_context.then_some(ReadTarget::Context);
    reads.extend(keys.chain(whole).map(|what| StepRead { at: "/message".to_owned(), what }));
}

fn read_expr<'p>(expr: &'p Expr, at: &str, reads: &mut Vec<StepRead<'p>>) {
    match expr {
        Expr::Literal(_) => {}
        Expr::Object(fields) => {
            for (name, field) in fields {
                read_expr(field, &child_pointer(at, name), reads);
            }
        }
        Expr::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                read_expr(item, &child_pointer(at, &index.to_string()), reads);
            }
        }
        Expr::Pointer(pointing) => {
            let what = match &pointing.pointer.target {
                Target::ContextKey(key) => ReadTarget::Key(key),
                Target::Context => ReadTarget::Context,
                Target::Step(step) | Target::History(Some(step)) => ReadTarget::Step(step),
                Target::Input | Target::Recent(_) | Target::History(None) => return,
            };
            reads.push(StepRead { at: at.to_owned(), what });
        }
    }
}

struct Checker<'c> {
    plan: &'c Plan,
    node: &'c Node,
    origin: &'c Origin,
    around: &'c PlanScope<'c>,
    mistakes: Vec<Mistake>,
    /// How many parts the plan's schemas have so far.
    parts: usize,
    /// How many steps the checks took so far.
    steps: u64,
}

impl Checker<'_> {
    /// The plans that rules name.
    fn rules(&mut self, pointer: &str, rules: &[Rule]) {
        for (index, rule) in rules.iter().enumerate() {
            let Some(plan) = rule.plan() else { continue };
            self.named_plan(&format!("{pointer}/on_error/{index}/plan"), plan);
        }
    }

    fn step(&mut self, step: &Step) {
        let pointer = step_pointer(self.plan, &step.id);
        self.rules(&pointer, &step.rules);
        match &step.kind {
            StepKind::ToolCall(call) => {
                self.drafts(&pointer, &call.tool, &step.rules);
                self.tool_call(&pointer, call);
            }
            StepKind::Conditional { condition, .. } => self.pattern(&pointer, condition),
            StepKind::Human { schema, .. } => {
                self.schema(&format!("{pointer}/expectedInputSchema"), schema.as_ref());
            }
            StepKind::Plan { plan, .. } => self.sub_plan(&pointer, plan),
            StepKind::Agent { agent, .. } => self.agent(&pointer, agent),
            StepKind::Match { .. }
            | StepKind::Parallel { .. }
            | StepKind::Loop(_)
            | StepKind::Publish { .. }
            | StepKind::Final { .. } => {}
        }
    }

    fn agent(&mut self, pointer: &str, agent: &AgentName) {
        if (self.around.agents)(agent) {
            return;
        }
        let names = (self.around.agent_names)();
        let hint = meant(agent.as_str(), names.iter().map(AgentName::as_str))
            .unwrap_or_else(|| "`waypost agent ls` lists the agents".to_owned());
        let mistake = Mistake::error(format!("there is no agent `{agent}`")).hint(hint);
        self.note(&format!("{pointer}/agent"), mistake);
    }

    /// `auto: reads` does nothing for a call that writes: no model decides its outcome.
    fn drafts(&mut self, pointer: &str, tool: &ToolName, rules: &[Rule]) {
        let is_auto =
            |rule: &Rule| matches!(&rule.act, RuleAction::Draft(draft) if draft.auto_reads);
        let Some(index) = rules.iter().position(is_auto) else { return };
        if (self.around.tools)(tool).is_none_or(|spec| spec.reach == Reach::Reads) {
            return;
        }
        let message = format!(
            "`auto: reads` has no effect here: `{tool}` can change something, so a person decides \
             about every correction that a model writes"
        );
        let mistake = Mistake::warning(message).hint("leave `auto` out, or correct it by a `plan`");
        self.note(&format!("{pointer}/on_error/{index}/draft/auto"), mistake);
    }

    fn tool_call(&mut self, pointer: &str, call: &ToolCall) {
        let Some(spec) = (self.around.tools)(&call.tool) else {
            let mistake = if (self.around.awaited)(&call.tool) {
                let message = format!("tool `{}` is not there yet", call.tool);
                Mistake::warning(message).hint("its server has not listed its tools; see `mcp ls`")
            } else {
                let hint = self.absent_tool(&call.tool);
                Mistake::error(format!("there is no tool `{}`", call.tool)).hint(hint)
            };
            self.note(&format!("{pointer}/toolId"), mistake);
            return;
        };
        let pointer = format!("{pointer}/arguments");
        let before = self.mistakes.len();
        self.argument_keys(&pointer, call, &spec);
        // The keys say it better; the schema says the rest, where all is known beforehand.
        if let Expr::Literal(value) = &call.arguments
            && self.mistakes.len() == before
        {
            self.fits(&pointer, &spec.input_schema, value);
        }
    }

    /// What to do about a tool that is not there.
    fn absent_tool(&self, tool: &ToolName) -> String {
        if let Some(hint) = (self.around.withheld)(tool) {
            return hint.to_owned();
        }
        let names = (self.around.tool_names)();
        meant(tool.as_str(), names.iter().map(ToolName::as_str))
            .unwrap_or_else(|| "`waypost tool ls` lists the tools".to_owned())
    }

    fn argument_keys(&mut self, pointer: &str, call: &ToolCall, spec: &ToolSpec) {
        let Some(given) = keys(&call.arguments) else { return };
        let schema = &spec.input_schema;
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !given.contains(name) {
                let message = format!("tool `{}` needs the argument `{name}`", call.tool);
                let hint = format!("`waypost tool show {}` shows its arguments", call.tool);
                self.note(pointer, Mistake::error(message).hint(hint));
            }
        }
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
            && schema.get("patternProperties").is_none();
        if !closed {
            return;
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let known: BTreeSet<&str> =
            properties.into_iter().flat_map(Map::keys).map(String::as_str).collect();
        for name in given.difference(&known) {
            let names: Vec<&str> = known.iter().copied().collect();
            let hint = meant(name, names.iter().copied())
                .unwrap_or_else(|| format!("its arguments are {}", quoted(&names)));
            let message = format!("tool `{}` takes no argument `{name}`", call.tool);
            let at = child_pointer(pointer, name);
            let mistake = Mistake::error(message).hint(hint).at(self.node.key_position(&at), at);
            self.mistakes.push(self.origin.filed(mistake));
        }
    }

    fn sub_plan(&mut self, pointer: &str, plan: &PlanId) {
        self.named_plan(&format!("{pointer}/planId"), plan);
    }

    fn named_plan(&mut self, pointer: &str, plan: &PlanId) {
        if *plan == self.plan.id || (self.around.plans)(plan) {
            return;
        }
        let mistake = Mistake::error(format!("there is no plan `{plan}`"))
            .hint("`waypost plan ls` lists the plans");
        self.note(pointer, mistake);
    }

    fn pattern(&mut self, pointer: &str, condition: &Condition<Expr>) {
        let (Operator::Matches, Some(Expr::Literal(right))) =
            (condition.operator, &condition.right)
        else {
            return;
        };
        let wrong = |why: &str| {
            Mistake::error(format!("`{right}` is not a regular expression: {why}"))
                .hint("`matches` takes the syntax of Rust's regex crate")
        };
        let mistake = match right.as_str().map(compile) {
            Some(Ok(_)) => return,
            Some(Err(Unusable::Wrong(why))) => wrong(&last_line(&why)),
            Some(Err(Unusable::TooLarge | Unusable::TooCostly(_))) => {
                Mistake::error(TOO_LARGE).hint(TOO_LARGE_HINT)
            }
            None => wrong("it is not a text"),
        };
        self.note(&format!("{pointer}/condition/right"), mistake);
    }

    fn examples(&mut self, parameters: Option<&Arc<Value>>) {
        let plan = self.plan;
        for (index, example) in plan.examples.iter().enumerate() {
            let pointer = format!("/examples/{index}");
            let status = example.expect.status.as_str();
            if !STATUSES.contains(&status) {
                let hint = meant(status, STATUSES.iter().copied())
                    .unwrap_or_else(|| format!("the statuses are {}", quoted(STATUSES)));
                let mistake = Mistake::error(format!("unknown status `{status}`")).hint(hint);
                self.note(&format!("{pointer}/expect/status"), mistake);
            }
            let given = if example.error.is_some() { "error" } else { "input" };
            if example.error.is_some() && !example.input.is_null() {
                let mistake = Mistake::error("an example has `input` or `error`, not both");
                self.note(&pointer, mistake.hint("`error` stands for the input of a correction"));
            }
            if let Some(schema) = parameters {
                self.fits(&format!("{pointer}/{given}"), schema, &example.begins_with());
            }
            self.stubs(&pointer, example);
        }
    }

    /// A call has one outcome.
    fn stubs(&mut self, pointer: &str, example: &Example) {
        for (tool, stubs) in &example.stubs {
            let is_both = |stub: &Stub| stub.result.is_some() && stub.fault.is_some();
            if stubs.iter().any(is_both) {
                let what = format!("a stub of `{tool}` has `result` and `fault`");
                let mistake = Mistake::error(what).hint("write two stubs: one for each call");
                self.note(&format!("{pointer}/stubs"), mistake);
            }
        }
    }

    /// Whether a schema compiles, or there is none.
    fn schema(&mut self, pointer: &str, schema: Option<&Arc<Value>>) -> bool {
        let Some(schema) = schema else { return true };
        if self.parts > PARTS_AT_ONCE_MAX {
            return false;
        }
        match self.around.schemas.compile(schema) {
            Ok(parts) => {
                self.parts = self.parts.saturating_add(parts);
                if self.parts > PARTS_AT_ONCE_MAX {
                    let message = format!(
                        "the schemas of this plan have more than {PARTS_AT_ONCE_MAX} parts together"
                    );
                    let mistake = Mistake::error(message).hint("divide the plan into several");
                    self.note(pointer, mistake);
                }
                true
            }
            Err(misfit) => {
                self.parts = self.parts.saturating_add(PARTS_AT_ONCE_MAX / WRONG_SCHEMAS_MAX);
                let message = format!("this is not a JSON Schema: {}", misfit.message);
                let hint = "schemas are JSON Schema 2020-12, or draft 7 where `$schema` says so";
                let mistake = Mistake::error(message).hint(hint);
                self.note(&format!("{pointer}{}", misfit.pointer), mistake);
                false
            }
        }
    }

    fn fits(&mut self, pointer: &str, schema: &Arc<Value>, value: &Value) {
        if self.steps > STEPS_AT_ONCE_MAX {
            return;
        }
        self.steps = self.steps.saturating_add(self.around.schemas.steps(schema, value));
        if self.steps > STEPS_AT_ONCE_MAX {
            let message = "the arguments and examples of this plan take too long to check";
            let mistake = Mistake::error(message).hint("divide the plan into several");
            self.note(pointer, mistake);
            return;
        }
        let Err(misfits) = self.around.schemas.check(schema, value) else { return };
        for misfit in misfits {
            let mistake =
                Mistake::error(format!("this does not fit its schema: {}", misfit.message))
                    .hint("change the value, or the schema that it must fit");
            self.note(&format!("{pointer}{}", misfit.pointer), mistake);
        }
    }

    fn note(&mut self, pointer: &str, mistake: Mistake) {
        self.mistakes.push(self.origin.place(self.node, pointer, mistake));
    }
}

/// The argument names that a plan spells out; none when a pointer yields them all.
fn keys(arguments: &Expr) -> Option<BTreeSet<&str>> {
    match arguments {
        Expr::Literal(value) => Some(value.as_object()?.keys().map(String::as_str).collect()),
        Expr::Object(fields) => Some(fields.iter().map(|(name, _)| name.as_str()).collect()),
        Expr::Pointer(_) | Expr::Array(_) => None,
    }
}

/// A regular expression's error draws a picture first and says what is wrong last.
fn last_line(text: &str) -> String {
    let line = text.lines().last().unwrap_or_default().trim();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}
