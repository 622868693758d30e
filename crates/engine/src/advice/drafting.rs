//! Plans that models write: read as any plan of their caller, with every call in them that could
//! change something approved first. What is wrong goes back to the model.

use crate::advice::asking::{ModelConversation, TurnsUsage};
use crate::refusal::Result;
use crate::shared::Shared;
use kernel::conversation::llm::{Stop, Turn, Usage};
use kernel::definition::plan::mistake::Mistake;
use kernel::definition::plan::{Plan, Step, StepKind};
use kernel::definition::rule::Rule;
use kernel::prompt::draft::{answered, correction, require_approvals, with_words};
use kernel::tool::call::{Caller, Reach, ToolSpec};
use kernel::values::ids::{PlanId, StepId};
use serde_json::Value;
use std::sync::Arc;

/// How large a correction may be: its journal holds it.
const CORRECTION_BYTES_MAX: usize = 64 * 1024;

/// What a model wrote.
#[derive(Debug)]
pub struct Draft {
    /// The plan as JSON; null where there was none in the last answer.
    pub source: Value,
    /// The plan, if it can be used.
    pub plan: Option<DraftedPlan>,
    pub mistakes: Vec<Mistake>,
    pub model: String,
    /// How many turns that took.
    pub turns: u32,
    pub usage: Usage,
    /// What they cost, as far as prices are known.
    pub cost_micros: Option<u64>,
}

/// A plan that was written and can be used.
#[derive(Debug)]
pub struct DraftedPlan {
    pub plan: Plan,
    /// How far it reaches.
    pub reach: Reach,
    /// The steps in it that may change something, and the rules that may.
    pub writes: Vec<DraftWrite>,
}

/// A step that may change something, by itself or by a plan that corrects it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftWrite {
    /// The step; the plan's first one for a rule of the whole plan.
    pub step: StepId,
    /// The tool, plan or agent that it calls; `publish_event` where it publishes an event.
    pub calls: String,
    /// How far that reaches.
    pub reach: Reach,
    /// Whether a person is asked first, each time: so it is in every plan that can be used.
    pub approve: bool,
}

/// A draft that is being written.
pub(crate) struct Drafting<'a> {
    pub(crate) asking: ModelConversation<'a>,
    pub(crate) caller: &'a Caller,
    /// The tools that the plan may call.
    pub(crate) tools: Vec<Arc<ToolSpec>>,
    pub(crate) purpose: Purpose,
}

/// What a plan is written for.
pub(crate) enum Purpose {
    /// A caller may store it: its id must be free.
    ToKeep,
    /// It corrects a failed step, under this id.
    ToCorrect(PlanId),
}

/// A plan as it was read, and its JSON.
struct ParsedPlan {
    source: Value,
    /// None where it cannot be used.
    plan: Option<DraftedPlan>,
    mistakes: Vec<Mistake>,
}

impl ParsedPlan {
    fn wrong(mistake: Mistake) -> Self {
        Self { source: Value::Null, plan: None, mistakes: vec![mistake] }
    }
}

impl Drafting<'_> {
    /// Has it written, and its mistakes corrected.
    pub(crate) async fn run(&mut self) -> Result<Draft> {
        let rounds_max = self.asking.shared.limits.draft_rounds_max;
        loop {
            let turn = self.asking.turn().await?;
            let ParsedPlan { source, plan, mistakes } = self.read(&turn);
            let TurnsUsage { turns, usage, cost_micros, .. } = self.asking.took;
            if plan.is_some() || turns > rounds_max {
                let model = self.asking.model.clone();
                // The model itself never reads its own words as a mistake: rules would act on them.
                let is_unread = source.is_null();
                let mistakes = if is_unread { with_words(mistakes, &turn.text) } else { mistakes };
                return Ok(Draft { source, plan, mistakes, model, turns, usage, cost_micros });
            }
            self.asking.object(&turn, correction(&mistakes));
        }
    }

    /// The plan in an answer, read as any plan of its caller.
    fn read(&self, turn: &Turn) -> ParsedPlan {
        if turn.stop == Stop::Length {
            let mistake = Mistake::error("the answer was cut off: it is longer than allowed");
            return ParsedPlan::wrong(mistake.hint("write a shorter plan with fewer steps"));
        }
        let Shared { limits, gate, .. } = &**self.asking.shared;
        let bytes_max = match self.purpose {
            Purpose::ToKeep => limits.plan_bytes_max,
            Purpose::ToCorrect(_) => limits.plan_bytes_max.min(CORRECTION_BYTES_MAX),
        };
        let mut source = match answered(&turn.text, bytes_max) {
            Ok(source) => source,
            Err(mistake) => return ParsedPlan::wrong(mistake),
        };
        // A tool that is not there makes no plan; the ones that are say themselves what they do.
        let writes = |name: &str| {
            let tool = self.tools.iter().find(|spec| spec.name.as_str() == name);
            tool.is_none_or(|spec| spec.reach > Reach::Reads)
        };
        require_approvals(&mut source, &writes);
        let read = match &self.purpose {
            Purpose::ToKeep => gate.read_plan_to_keep(self.caller, &source),
            Purpose::ToCorrect(id) => {
                source["planId"] = Value::from(id.as_str());
                gate.read_plan(self.caller, &source)
            }
        };
        match read {
            Err(mistakes) => ParsedPlan { source, plan: None, mistakes },
            Ok((plan, mut mistakes)) => {
                let drafted = self.judged(plan);
                let mut beyond = self.beyond(&drafted.plan);
                beyond.extend(unasked(&drafted.writes));
                let plan = beyond.is_empty().then_some(drafted);
                mistakes.extend(beyond);
                ParsedPlan { source, plan, mistakes }
            }
        }
    }

    /// The calls of tools that the plan was not to use, though its caller sees them; and what no
    /// correction can do.
    fn beyond(&self, plan: &Plan) -> Vec<Mistake> {
        let tool_of = |step: &Step| match &step.kind {
            StepKind::ToolCall(call) => Some((step.id.clone(), call.tool.clone())),
            _ => None,
        };
        let called = plan.index.keys().filter_map(|id| plan.step(id)).filter_map(tool_of);
        let foreign = called.filter(|(_, tool)| !self.tools.iter().any(|spec| spec.name == *tool));
        let of_tools = foreign.map(|(step, tool)| {
            let message = format!("step `{step}` calls `{tool}`, which is not to be used");
            Mistake::error(message).hint("use only tools of the list")
        });
        // A run pins what its plans name when it begins: what is written later can pin nothing.
        let pins =
            |step: &&Step| matches!(step.kind, StepKind::Plan { .. } | StepKind::Agent { .. });
        let corrects = matches!(self.purpose, Purpose::ToCorrect(_));
        let steps = plan.index.keys().filter_map(|id| plan.step(id)).filter(|_| corrects);
        let of_steps = steps.filter(pins).map(|step| {
            let message = format!("step `{}` runs a plan or an agent", step.id);
            Mistake::error(message).hint("call tools instead")
        });
        of_tools.chain(of_steps).collect()
    }

    /// How far a plan reaches, and where it may change something.
    fn judged(&self, plan: Plan) -> DraftedPlan {
        let realm = &self.caller.realm;
        let catalog = &self.asking.shared.catalog;
        let reach = catalog.reach_of(realm, &plan);
        let of_tool = |name: &str| {
            let listed = catalog.tool(realm, name);
            listed.map_or(Reach::Writes, |listed| listed.tool.spec().reach)
        };
        let of_plan =
            |id: &str| catalog.plan_spec(realm, id).map_or(Reach::Writes, |spec| spec.reach);
        let write = |step: &Step| {
            let (calls, reach, approve) = match &step.kind {
                StepKind::ToolCall(call) => {
                    (call.tool.to_string(), of_tool(call.tool.as_str()), call.approve)
                }
                StepKind::Plan { plan, .. } => (plan.to_string(), of_plan(plan.as_str()), false),
                StepKind::Agent { agent, .. } => (agent.to_string(), Reach::Writes, false),
                StepKind::Publish { .. } => ("publish_event".to_owned(), Reach::Writes, false),
                StepKind::Match { .. }
                | StepKind::Conditional { .. }
                | StepKind::Parallel { .. }
                | StepKind::Loop(_)
                | StepKind::Human { .. }
                | StepKind::Final { .. } => return None,
            };
            let write = DraftWrite { step: step.id.clone(), calls, reach, approve };
            (reach > Reach::Reads).then_some(write)
        };
        let correcting = |step: &StepId, rules: &[Rule]| -> Vec<DraftWrite> {
            let called = rules.iter().filter_map(Rule::plan).map(|plan| DraftWrite {
                step: step.clone(),
                calls: plan.to_string(),
                reach: of_plan(plan.as_str()),
                approve: false,
            });
            called.filter(|write| write.reach > Reach::Reads).collect()
        };
        let steps: Vec<&Step> = plan.index.keys().filter_map(|id| plan.step(id)).collect();
        let mut writes: Vec<DraftWrite> = steps.iter().copied().filter_map(write).collect();
        for step in steps {
            writes.extend(correcting(&step.id, &step.rules));
        }
        writes.extend(correcting(&plan.start, &plan.rules));
        DraftedPlan { plan, reach, writes }
    }
}

/// What would change something without asking a person first, because no such step can ask.
fn unasked(writes: &[DraftWrite]) -> impl Iterator<Item = Mistake> {
    writes.iter().filter(|write| !write.approve).map(|DraftWrite { step, calls, .. }| {
        let message = format!("step `{step}` has `{calls}` change something without asking first");
        Mistake::error(message).hint("call tools in `tool_call` steps: those ask a person")
    })
}
