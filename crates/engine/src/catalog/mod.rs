//! What there is: tools from code, plans and agents from files and from the store. No stored tool
//! definitions, ever: a tool exists as code, plan, file or upstream. Whether a caller may see or
//! use it is the gate's.

use crate::catalog::registry::{Registry, bad_name};
use crate::catalog::roster::{Roster, starting};
use crate::refusal::{Refusal, RefusalCode, Result};
use kernel::contracts::policy::Resource;
use kernel::definition::agent::{Agent, TALKS};
use kernel::definition::pipeline::PIPELINES;
use kernel::definition::plan::check::PlanScope;
use kernel::definition::plan::flow::load_value;
use kernel::definition::plan::mistake::{Mistake, Position};
use kernel::definition::plan::read::Origin;
use kernel::definition::plan::{Closure, Plan, Step, StepKind};
use kernel::definition::rule::{Rule, Rules};
use kernel::limits::Limits;
use kernel::tool::call::{OutputKind, Reach, ToolSpec};
use kernel::tool::schema::Schemas;
use kernel::values::ids::{AgentName, PlanId, RealmId, ToolName};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::watch;

mod changes;
pub mod schema;
pub mod models;
pub mod registry;
pub(crate) mod plan_cache;
mod callable;
pub mod roster;
mod owners;
mod versions;
mod agents;
mod pipelines;
mod rules;
pub(crate) mod ranking;
mod files;
pub(crate) mod check;

pub use agents::AgentFile;
pub use callable::Callable;
pub use changes::ListChanges;
pub use files::{CheckedFiles, ProjectFiles};
pub use owners::UpstreamRealms;
pub use pipelines::PipelineFile;
use rules::rule_plans;
pub use rules::{RulePlace, RulePlaces};

/// How many plans one run pins.
const CLOSURE_PLANS_MAX: usize = 256;

/// A plan's text and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFile {
    /// The file, as a person would name it.
    pub file: String,
    pub text: String,
    /// The id of a plan that gives none.
    pub default_id: PlanId,
}

/// Whose plan is read: it finds the tools, plans and agents that they see.
#[derive(Clone, Copy)]
pub(crate) enum Author<'a> {
    /// The operator, who sees all, also what the rules keep out.
    Operator,
    /// A caller, who sees what this says.
    Caller(&'a dyn Fn(Resource<'_>) -> bool),
}

impl Author<'_> {
    fn sees(self, resource: Resource<'_>) -> bool {
        match self {
            Author::Operator => true,
            Author::Caller(sees) => sees(resource),
        }
    }
}

/// The plans and agents of a realm that a plan there may name.
struct Others<'a> {
    realm: &'a RealmId,
    plan: &'a dyn Fn(&PlanId) -> bool,
    agent: &'a dyn Fn(&AgentName) -> bool,
    agent_names: &'a dyn Fn() -> Vec<AgentName>,
}

/// Tools and plans.
pub(crate) struct Catalog {
    pub(crate) registry: Registry,
    schemas: Arc<dyn Schemas>,
    limits: Arc<Limits>,
    /// The realms that the servers behind this one are there for; none where they are for all.
    upstreams_of: Option<UpstreamRealms>,
    realms: RwLock<HashMap<RealmId, RealmPlans>>,
    /// Grows with every change in any realm: lists that were judged before it are not kept.
    version: AtomicU64,
    /// Held while a plan is stored and then added: the one that was stored last stays.
    pub(crate) storing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct RealmPlans {
    plans: BTreeMap<PlanId, Arc<Plan>>,
    /// Which of them a project's files brought. What is stored overrides a file.
    filed: BTreeSet<PlanId>,
    /// The files' plans that a stored one overrides.
    overridden: BTreeMap<PlanId, Arc<Plan>>,
    specs: BTreeMap<PlanId, Arc<ToolSpec>>,
    /// Closures by their main plan, made when first asked for.
    closures: HashMap<PlanId, Arc<Closure>>,
    /// The agents, each with the plan by which it is talked to: it is neither listed nor a tool.
    agents: Roster,
    /// The pipelines, each with its plan and its agent, which are as hidden.
    pipelines: pipelines::Pipelines,
    /// What is done about failed steps, beside what plans say.
    rules: Arc<Rules>,
    /// Grows with every change: a closure of what was there before it is not kept.
    changes: u64,
    /// Grows with every change of what is listed here, and wakes those who wait for one.
    listed: watch::Sender<u64>,
    /// The same for each list that clients read.
    lists: watch::Sender<ListChanges>,
}

impl RealmPlans {
    /// Something changed that closures are made of.
    fn changed(&mut self) {
        self.closures.clear();
        self.changes += 1;
    }
}

impl Catalog {
    pub(crate) fn new(
        registry: Registry,
        schemas: Arc<dyn Schemas>,
        limits: Arc<Limits>,
        upstreams_of: Option<UpstreamRealms>,
    ) -> Self {
        let realms = RwLock::default();
        let version = AtomicU64::new(1);
        let storing = tokio::sync::Mutex::default();
        Self { registry, schemas, limits, upstreams_of, realms, version, storing }
    }

    /// What this finds of a realm; nothing where the realm has nothing.
    fn known<T: Default>(&self, realm: &RealmId, find: impl FnOnce(&RealmPlans) -> T) -> T {
        let realms = self.realms.read().unwrap_or_else(PoisonError::into_inner);
        realms.get(realm).map(find).unwrap_or_default()
    }

    /// Changes what a realm has.
    fn change<T>(&self, realm: &RealmId, change: impl FnOnce(&mut RealmPlans) -> T) -> T {
        let mut realms = self.realms.write().unwrap_or_else(PoisonError::into_inner);
        change(realms.entry(realm.clone()).or_default())
    }

    /// Forgets all that a realm has. Who waits for a change there hears that none comes.
    pub(crate) fn forget(&self, realm: &RealmId) {
        self.realms.write().unwrap_or_else(PoisonError::into_inner).remove(realm);
        self.registry.forget_own(realm);
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// Grows with every change of a realm's plans, agents or pipelines, notified or not.
    pub(crate) fn changes(&self, realm: &RealmId) -> u64 {
        self.known(realm, |known| known.changes)
    }

    pub(crate) fn plan_specs(&self, realm: &RealmId) -> Vec<Arc<ToolSpec>> {
        self.known(realm, |known| known.specs.values().cloned().collect())
    }

    pub(crate) fn plan_spec(&self, realm: &RealmId, id: &str) -> Option<Arc<ToolSpec>> {
        self.known(realm, |known| known.specs.get(id).cloned())
    }

    /// Warnings of rules that fit no tool and no plan of any realm: there is one set of rules.
    pub(crate) fn idle_rules(&self) -> Vec<Mistake> {
        let realms = self.realms.read().unwrap_or_else(PoisonError::into_inner);
        let plans = realms.values().flat_map(|known| known.plans.keys());
        let ids: BTreeSet<&str> = plans.map(PlanId::as_str).collect();
        let comes = |name: &str| self.awaits_anywhere(name);
        self.registry.idle_rules(&ids.into_iter().collect::<Vec<_>>(), comes)
    }

    pub(crate) fn plans(&self, realm: &RealmId) -> Vec<Arc<Plan>> {
        self.known(realm, |known| known.plans.values().cloned().collect())
    }

    pub(crate) fn plan(&self, realm: &RealmId, id: &PlanId) -> Option<Arc<Plan>> {
        self.known(realm, |known| {
            let talk = || known.agents.plan(id);
            known.plans.get(id).cloned().or_else(talk).or_else(|| known.pipelines.plan(id))
        })
    }

    /// Reads a plan that came as JSON, without adding it. It may name those that are coming.
    pub(crate) fn read(
        &self,
        realm: &RealmId,
        source: &Value,
        pending: &[PlanId],
        author: Author<'_>,
    ) -> Result<(Plan, Vec<Mistake>), Vec<Mistake>> {
        let origin = Origin { file: None, default_id: Some(PlanId::from("inline/plan")) };
        self.around(realm, pending, author, |around| {
            load_value(source, &origin, &self.limits, around)
        })
    }

    /// Why a plan of a realm cannot be kept under this id, if so: a plan is a tool as well, and one
    /// name is one tool's.
    pub(crate) fn misnamed(
        &self,
        realm: &RealmId,
        id: &PlanId,
        author: Author<'_>,
    ) -> Option<Mistake> {
        let taken = || {
            let listed = self.tool(realm, id.as_str())?;
            author
                .sees(Resource::Tool(listed.tool.judged()))
                .then(|| "it is the name of a tool".to_owned())
        };
        let talks = || {
            let why = format!("what begins with `{TALKS}` is how agents are talked to");
            id.as_str().starts_with(TALKS).then_some(why)
        };
        let cases = || {
            let why = format!("what begins with `{PIPELINES}` takes the cases of pipelines");
            id.as_str().starts_with(PIPELINES).then_some(why)
        };
        let why = bad_name(id.as_str()).or_else(taken).or_else(talks).or_else(cases)?;
        let message = format!("a plan cannot have the id `{id}`: {why}");
        let mistake = Mistake::error(message).hint("give it another planId");
        Some(mistake.at(Position::default(), "/planId"))
    }

    pub(crate) fn insert(&self, realm: &RealmId, plans: impl Iterator<Item = Plan>) {
        self.change(realm, |known| {
            for plan in plans {
                let id = plan.id.clone();
                let before = known.plans.insert(id.clone(), Arc::new(plan));
                if let Some(filed) = before.filter(|_| known.filed.remove(&id)) {
                    known.overridden.insert(id, filed);
                }
            }
            known.changed();
            // A plan's reach is that of all it can reach, so a new plan may change the others' too.
            known.specs = self.as_tools(realm, &known.plans);
        });
        self.tell(realm, ListChanges::PLANS);
    }

    /// Plans of a realm as tools, those that the rules keep out left out.
    fn as_tools(
        &self,
        realm: &RealmId,
        plans: &BTreeMap<PlanId, Arc<Plan>>,
    ) -> BTreeMap<PlanId, Arc<ToolSpec>> {
        let allowed = plans.values().filter(|plan| self.registry.rules().allows(plan.id.as_str()));
        let as_tool = |plan: &Arc<Plan>| Arc::new(self.as_tool(realm, plans, plan));
        allowed.map(|plan| (plan.id.clone(), as_tool(plan))).collect()
    }

    /// A plan as a tool: what it takes, what it answers, and the farthest reach of its steps.
    fn as_tool(
        &self,
        realm: &RealmId,
        plans: &BTreeMap<PlanId, Arc<Plan>>,
        plan: &Plan,
    ) -> ToolSpec {
        let mut reach = Reach::Reads;
        let mut seen = BTreeSet::from([&plan.id]);
        let mut to_visit = vec![plan];
        while let Some(visited) = to_visit.pop() {
            let mut named: Vec<&PlanId> = rule_plans(visited).collect();
            for step in visited.index.keys().filter_map(|id| visited.step(id)) {
                match &step.kind {
                    StepKind::ToolCall(call) => {
                        let tool = self.tool(realm, call.tool.as_str());
                        let known = tool.map(|listed| listed.tool.spec().reach);
                        reach = reach.max(known.unwrap_or(Reach::Writes));
                    }
                    StepKind::Plan { plan, .. } => named.push(plan),
                    // What an agent will call no one knows beforehand, and an event goes out.
                    StepKind::Agent { .. } | StepKind::Publish { .. } => {
                        reach = reach.max(Reach::Writes);
                    }
                    _ => {}
                }
            }
            for plan in named {
                match plans.get_key_value(plan) {
                    Some((id, inner)) if seen.insert(id) => to_visit.push(inner),
                    Some(_) => {}
                    None => reach = reach.max(Reach::Writes),
                }
            }
        }
        let any = || Arc::new(json!({"type": "object"}));
        ToolSpec {
            name: ToolName::from(plan.id.as_str()),
            title: plan.id.to_string(),
            description: plan.description.clone(),
            input_schema: plan.parameters.clone().unwrap_or_else(any),
            output_schema: plan.output_schema.clone(),
            reach,
            idempotent: false,
            tags: vec!["plan".to_owned()],
            pace: plan.pace,
            yields: OutputKind::Value,
            unrecorded: false,
            listed: None,
        }
    }

    /// How far a plan reaches that is not in the catalog.
    pub(crate) fn reach_of(&self, realm: &RealmId, plan: &Plan) -> Reach {
        let known = self.known(realm, |known| Some(self.as_tool(realm, &known.plans, plan).reach));
        known.unwrap_or_else(|| self.as_tool(realm, &BTreeMap::new(), plan).reach)
    }

    fn around<T>(
        &self,
        realm: &RealmId,
        pending: &[PlanId],
        author: Author<'_>,
        work: impl FnOnce(&PlanScope<'_>) -> T,
    ) -> T {
        let sees_agent = |name: &AgentName| author.sees(Resource::Agent(name.as_str()));
        let has_plan = |id: &PlanId| self.plan(realm, id).is_some() && author.sees(starting(id).1);
        let others = Others {
            realm,
            plan: &|id| pending.contains(id) || has_plan(id),
            agent: &|name| self.agent(realm, name.as_str()).is_some() && sees_agent(name),
            agent_names: &|| {
                let names = self.agents(realm).into_iter().map(|known| known.agent.name.clone());
                names.filter(sees_agent).collect()
            },
        };
        self.among(&others, author, work)
    }

    /// The same among these plans and agents.
    fn among<T>(
        &self,
        others: &Others<'_>,
        author: Author<'_>,
        work: impl FnOnce(&PlanScope<'_>) -> T,
    ) -> T {
        let realm = others.realm;
        let tool = |name: &ToolName| {
            let listed = self.tool(realm, name.as_str())?;
            let is_seen = author.sees(Resource::Tool(listed.tool.judged()));
            is_seen.then(|| listed.tool.spec().clone())
        };
        let withheld = |name: &ToolName| match author {
            Author::Operator => self.registry.kept_out(realm, name.as_str()),
            Author::Caller(_) => self.registry.switch_of(name.as_str()),
        };
        let names = || {
            let all = self.specs(realm).into_iter();
            let seen = all.filter(|spec| author.sees(Resource::Tool(spec)));
            seen.map(|spec| spec.name.clone()).collect()
        };
        work(&PlanScope {
            tools: &tool,
            withheld: &withheld,
            awaited: &|name| self.awaits(realm, name.as_str()),
            plans: others.plan,
            agents: others.agent,
            agent_names: others.agent_names,
            tool_names: &names,
            schemas: self.schemas.as_ref(),
        })
    }

    pub(crate) fn closure(&self, realm: &RealmId, id: &PlanId) -> Result<Arc<Closure>> {
        let (kept, changes) =
            self.known(realm, |known| (known.closures.get(id).cloned(), Some(known.changes)));
        if let Some(closure) = kept {
            return Ok(closure);
        }
        let main = self.plan(realm, id).ok_or_else(|| no_plan(id))?;
        let closure = Arc::new(self.close_over(realm, main)?);
        let mut realms = self.realms.write().unwrap_or_else(PoisonError::into_inner);
        let known = realms.get_mut(realm).filter(|known| Some(known.changes) == changes);
        if let Some(known) = known {
            known.closures.insert(id.clone(), closure.clone());
        }
        Ok(closure)
    }

    /// The closure of a plan: all plans that it can reach, and the agents that these name.
    pub(crate) fn close_over(&self, realm: &RealmId, main: Arc<Plan>) -> Result<Closure> {
        let mut plans = BTreeMap::from([(main.id.clone(), main.clone())]);
        let mut agents = BTreeMap::new();
        let mut to_visit = vec![main.clone()];
        // One that is gone by now corrects nothing; the run can do without it.
        for id in self.rules(realm).project.iter().filter_map(Rule::plan) {
            if let Some(found) = self.plan(realm, id).filter(|_| !plans.contains_key(id)) {
                plans.insert(id.clone(), found.clone());
                to_visit.push(found);
            }
        }
        while let Some(plan) = to_visit.pop() {
            let mut named = PlanReferences::default();
            named.gather(&plan.steps);
            named.plans.extend(plan.rules.iter().filter_map(Rule::plan).cloned());
            for name in named.agents {
                let agent = self.agent_of(realm, &plan, &name)?;
                agents.insert(name, agent);
            }
            for id in named.plans {
                if plans.contains_key(&id) {
                    continue;
                }
                let found = self.plan(realm, &id).ok_or_else(|| {
                    let message = format!("plan `{}` names plan `{id}`, which is gone", plan.id);
                    Refusal::new(RefusalCode::PlanMissing, message)
                })?;
                if plans.len() >= CLOSURE_PLANS_MAX {
                    let message = format!("plan `{}` reaches too many plans", main.id);
                    return Err(Refusal::new(RefusalCode::ClosurePlansMax, message));
                }
                plans.insert(id, found.clone());
                to_visit.push(found);
            }
        }
        Ok(Closure::new(main, plans, agents))
    }

    fn agent_of(&self, realm: &RealmId, plan: &Plan, name: &AgentName) -> Result<Arc<Agent>> {
        let known = self.agent(realm, name.as_str()).map(|known| known.agent);
        known.or_else(|| self.pipeline_agent(realm, name)).ok_or_else(|| {
            let message = format!("plan `{}` names agent `{name}`, which is gone", plan.id);
            Refusal::new(RefusalCode::AgentMissing, message)
                .hint("`waypost agent ls` lists the agents")
        })
    }
}

/// The plans and agents that steps name, inner steps included.
#[derive(Default)]
struct PlanReferences {
    plans: Vec<PlanId>,
    agents: Vec<AgentName>,
}

impl PlanReferences {
    fn gather(&mut self, steps: &[Step]) {
        for step in steps {
            self.plans.extend(step.rules.iter().filter_map(Rule::plan).cloned());
            match &step.kind {
                StepKind::Plan { plan, .. } => self.plans.push(plan.clone()),
                StepKind::Agent { agent, .. } => self.agents.push(agent.clone()),
                _ => step.bodies().into_iter().for_each(|body| self.gather(body)),
            }
        }
    }
}

/// There is no such plan.
pub(crate) fn no_plan(id: &PlanId) -> Refusal {
    Refusal::not_found("plan", id).hint("`waypost plan ls` lists the plans")
}

/// Mistakes of a plan as a refusal that names each faulty value.
pub(crate) fn invalid_plan(mistakes: &[Mistake]) -> Refusal {
    Refusal::of_mistakes(RefusalCode::InvalidPlan, "plan", mistakes)
        .hint("`waypost plan validate` checks a file and shows lines")
}

/// These warnings, unless one of them is an error: then all of them.
fn sound(mistakes: Vec<Mistake>) -> Result<Vec<Mistake>, Vec<Mistake>> {
    if mistakes.iter().any(Mistake::is_error) { Err(mistakes) } else { Ok(mistakes) }
}

/// The same mistake in this file.
fn in_file(mut mistake: Mistake, file: &str) -> Mistake {
    mistake.file = Some(file.to_owned());
    mistake
}
