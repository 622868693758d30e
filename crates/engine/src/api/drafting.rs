//! Plans that a model writes. Plans that do what is wanted already come first; else a model writes
//! one, it is read as any plan of its caller, and its mistakes go back. What comes of it is data:
//! nothing drafted is kept or run here, and every call in it that could change something asks a
//! person first.

use crate::api::finding::best_first;
use crate::handles::Catalog;
use crate::observe::counts::{add, count};
use crate::refusal::{Refusal, RefusalCode, Result};
use crate::shared::Shared;
use crate::system::zones::here;
use kernel::contracts::policy::Resource;
use kernel::conversation::llm::{
    LlmError, Message, Prompt, Stop, ToolChoice, Turn, Unheard, Usage,
};
use kernel::definition::plan::mistake::{Mistake, meant};
use kernel::definition::plan::{Plan, Step, StepKind};
use kernel::definition::rule::Rule;
use kernel::prompt::draft::{answered, correction, opening, require_approvals};
use kernel::tool::call::{Caller, Reach, ToolSpec};
use kernel::tool::rules::{BadPattern, Pattern};
use kernel::values::caller::Act;
use kernel::values::ids::StepId;
use serde_json::Value;
use std::sync::Arc;

/// The model that writes where none is named.
const DEFAULT_MODEL: &str = "default";
/// How long a goal may be: more is a plan already.
const GOAL_CHARS_MAX: usize = 4_000;
/// How many patterns may say which tools a plan uses.
const PATTERNS_MAX: usize = 100;
/// How many plans are named that do it already.
const EXISTING_MAX: usize = 5;
/// How much of an answer a model is shown again.
const SHOWN_CHARS_MAX: usize = 60_000;

/// What a plan is wanted for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftRequest {
    /// In words.
    pub goal: String,
    /// The model that writes it; the one called `default`, or the only one, if absent.
    pub model: Option<String>,
    /// Patterns of the tools that it may use; all that the caller sees if absent.
    pub tools: Option<Vec<String>>,
    /// Whether a plan is written even if there is one that fits.
    pub fresh: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Drafted {
    /// The plans that fit the goal already: none where one was written.
    pub existing: Vec<Arc<Plan>>,
    /// What the model wrote.
    pub draft: Option<Draft>,
}

/// What a model wrote.
#[derive(Debug)]
pub struct Draft {
    /// The plan as JSON; null where there was none in the last answer.
    pub source: Value,
    /// The plan, if it can be used.
    pub plan: Option<DraftedPlan>,
    /// What is wrong with it, or has no effect.
    pub mistakes: Vec<Mistake>,
    /// Who wrote it.
    pub model: String,
    /// How many turns that took.
    pub turns: u32,
    /// What they took.
    pub usage: Usage,
    /// What they cost, as far as prices are known.
    pub cost_micros: Option<u64>,
}

/// A plan that was written and can be used.
#[derive(Debug)]
pub struct DraftedPlan {
    /// It.
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
    /// Whether a person is asked first, each time.
    pub approve: bool,
}

impl Catalog<'_> {
    /// Plans that fit a goal already, or one that a model writes for it. Nothing is kept.
    pub async fn draft_plan(self, caller: &Caller, request: DraftRequest) -> Result<Drafted> {
        let gate = &self.shared.gate;
        gate.permit(caller, Act::Run, Resource::InlinePlan)?;
        let goal = goal(&request)?;
        let only = patterns(&request)?;
        if !request.fresh {
            let existing = self.fitting_plans(caller, goal, EXISTING_MAX);
            if !existing.is_empty() {
                return Ok(Drafted { existing, draft: None });
            }
        }
        let model = self.drafting_model(request.model.as_deref())?;
        let mut tools = gate.visible(caller);
        tools.retain(|spec| is_among(only.as_deref(), spec));
        let shown = best_first(&tools, goal, self.shared.limits.draft_tools_max);
        let messages = opening(goal, &shown);
        let shared = self.shared;
        let (usage, cost_micros) = (Usage::default(), None);
        let drafting = Drafting { shared, caller, model, tools, messages, usage, cost_micros };
        let draft = Some(drafting.run().await?);
        Ok(Drafted { existing: Vec::new(), draft })
    }

    /// The model that writes.
    fn drafting_model(self, wanted: Option<&str>) -> Result<String> {
        let models = self.shared.models();
        let names: Vec<&str> = models.names().collect();
        if let Some(name) = wanted.or(models.get(DEFAULT_MODEL).map(|_| DEFAULT_MODEL)) {
            if models.get(name).is_some() {
                return Ok(name.to_owned());
            }
            let refusal = Refusal::not_found("model", name);
            return Err(match meant(name, names) {
                Some(hint) => refusal.hint(hint),
                None => refusal,
            });
        }
        if let [only] = names.as_slice() {
            return Ok((*only).to_owned());
        }
        let (message, hint) = if names.is_empty() {
            ("there is no model that could write a plan", "add `[models.default]` to waypost.toml")
        } else {
            ("there are several models, and none is called `default`", "name one as `model`")
        };
        let names = names.into_iter().map(str::to_owned).collect();
        Err(Refusal::new(RefusalCode::ModelNeeded(names), message).hint(hint))
    }
}

fn goal(request: &DraftRequest) -> Result<&str> {
    let goal = request.goal.trim();
    let length = goal.chars().count();
    if (1..=GOAL_CHARS_MAX).contains(&length) {
        return Ok(goal);
    }
    let message = format!("a goal has 1 to {GOAL_CHARS_MAX} characters; this one has {length}");
    Err(Refusal::new(RefusalCode::BadDraft, message).hint("say in a sentence what the plan is for"))
}

/// What the tools of the plan must fit; all do where nothing is said.
fn patterns(request: &DraftRequest) -> Result<Option<Vec<Pattern>>> {
    let Some(texts) = &request.tools else { return Ok(None) };
    if texts.len() > PATTERNS_MAX {
        let message = format!("`tools` has {} patterns, more than {PATTERNS_MAX}", texts.len());
        return Err(Refusal::new(RefusalCode::BadDraft, message).hint("use `*`, such as `crm.*`"));
    }
    let bad = |why: BadPattern| {
        Refusal::new(RefusalCode::BadDraft, why.to_string()).hint("such as `crm.*` or `math::add`")
    };
    let patterns: Result<Vec<Pattern>> =
        texts.iter().map(|text| Pattern::new(text).map_err(bad)).collect();
    patterns.map(Some)
}

fn is_among(only: Option<&[Pattern]>, spec: &ToolSpec) -> bool {
    only.is_none_or(|only| only.iter().any(|pattern| pattern.fits(spec.name.as_str())))
}

/// A draft that is being written.
struct Drafting<'a> {
    shared: &'a Arc<Shared>,
    caller: &'a Caller,
    model: String,
    /// The tools that the plan may call.
    tools: Vec<Arc<ToolSpec>>,
    messages: Vec<Message>,
    usage: Usage,
    cost_micros: Option<u64>,
}

/// A plan as it was read, and its JSON.
struct Read {
    source: Value,
    /// None where it cannot be used.
    plan: Option<Plan>,
    mistakes: Vec<Mistake>,
}

impl Read {
    fn wrong(mistake: Mistake) -> Self {
        Self { source: Value::Null, plan: None, mistakes: vec![mistake] }
    }
}

impl Drafting<'_> {
    async fn run(mut self) -> Result<Draft> {
        let rounds_max = self.shared.limits.draft_rounds_max;
        let mut turns = 0;
        loop {
            let turn = self.ask().await?;
            turns += 1;
            let Read { source, plan, mistakes } = self.read(&turn);
            if plan.is_some() || turns > rounds_max {
                let plan = plan.map(|plan| self.judged(plan));
                let Self { model, usage, cost_micros, .. } = self;
                return Ok(Draft { source, plan, mistakes, model, turns, usage, cost_micros });
            }
            let text = match turn.text.trim() {
                "" => "(no answer)".to_owned(),
                text => text.chars().take(SHOWN_CHARS_MAX).collect(),
            };
            self.messages.push(Message::Assistant { text, calls: Vec::new(), native: None });
            self.messages.push(correction(&mistakes));
        }
    }

    /// One turn of the model.
    async fn ask(&mut self) -> Result<Turn> {
        let now = self.shared.clock.now();
        let (zone, _) = here(self.shared.zones.as_ref(), now, None);
        let prompt = Prompt {
            messages: self.messages.clone(),
            tools: Vec::new(),
            choice: ToolChoice::None,
            answer: None,
            now,
            zone,
            trace: None,
        };
        let counters = &self.shared.counters;
        count(&counters.turns_started);
        let asked = self.shared.one_turn(&self.model, &prompt, &Unheard).await;
        let turn = asked.result.map_err(|error| {
            count(&counters.turns_failed);
            model_failed(&self.model, &error)
        })?;
        count(&counters.turns_finished);
        add(&counters.tokens_read, turn.usage.input);
        add(&counters.tokens_written, turn.usage.output);
        add(&counters.cost_micros, asked.cost_micros.unwrap_or(0));
        self.usage.input += turn.usage.input;
        self.usage.cached += turn.usage.cached;
        self.usage.output += turn.usage.output;
        if let Some(cost) = asked.cost_micros {
            *self.cost_micros.get_or_insert(0) += cost;
        }
        if turn.stop == Stop::Refused {
            let message = format!("model `{}` refuses to write this plan", self.model);
            return Err(Refusal::new(RefusalCode::ModelFailed, message)
                .hint("say otherwise what the plan is for"));
        }
        Ok(turn)
    }

    /// The plan in an answer, read as any plan of its caller.
    fn read(&self, turn: &Turn) -> Read {
        if turn.stop == Stop::Length {
            let mistake = Mistake::error("the answer was cut off: it is longer than allowed");
            return Read::wrong(mistake.hint("write a shorter plan with fewer steps"));
        }
        let mut source = match answered(&turn.text, self.shared.limits.plan_bytes_max) {
            Ok(source) => source,
            Err(mistake) => return Read::wrong(mistake),
        };
        // A tool that is not there makes no plan; the ones that are say themselves what they do.
        let writes = |name: &str| {
            let tool = self.tools.iter().find(|spec| spec.name.as_str() == name);
            tool.is_none_or(|spec| spec.reach > Reach::Reads)
        };
        require_approvals(&mut source, &writes);
        match self.shared.gate.read_plan_to_keep(self.caller, &source) {
            Err(mistakes) => Read { source, plan: None, mistakes },
            Ok((plan, mut mistakes)) => {
                let beyond = self.beyond(&plan);
                let plan = beyond.is_empty().then_some(plan);
                mistakes.extend(beyond);
                Read { source, plan, mistakes }
            }
        }
    }

    /// The calls of tools that the plan was not to use, though its caller sees them.
    fn beyond(&self, plan: &Plan) -> Vec<Mistake> {
        let tool_of = |step: &Step| match &step.kind {
            StepKind::ToolCall(call) => Some((step.id.clone(), call.tool.clone())),
            _ => None,
        };
        let called = plan.index.keys().filter_map(|id| plan.step(id)).filter_map(tool_of);
        let foreign = called.filter(|(_, tool)| !self.tools.iter().any(|spec| spec.name == *tool));
        foreign
            .map(|(step, tool)| {
                let message = format!("step `{step}` calls `{tool}`, which is not to be used");
                Mistake::error(message).hint("use only tools of the list")
            })
            .collect()
    }

    /// How far a plan reaches, and where it may change something.
    fn judged(&self, plan: Plan) -> DraftedPlan {
        let realm = &self.caller.realm;
        let catalog = &self.shared.catalog;
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

fn model_failed(model: &str, error: &LlmError) -> Refusal {
    let message = format!("model `{model}` wrote no plan: {error}");
    let refusal = Refusal::new(RefusalCode::ModelFailed, message);
    Refusal { hint: error.hint.clone(), ..refusal }
}
