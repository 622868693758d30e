//! What a project's files bring. It can be replaced as a whole while the engine serves: agents, the
//! plans that name them and the pipelines that name those are read together, and come in at once or
//! not at all. Runs that began keep the plans and agents that they pin, and what is stored stays.

use super::pipelines::Pipelines;
use super::rules::{ListedRules, RulePlaces, lost_plans};
use super::{
    AgentFile, Author, Catalog, ListChanges, Others, PipelineFile, PlanFile, RealmPlans, in_file,
    sound,
};
use crate::catalog::roster::TalkPlan;
use kernel::definition::agent::TALKS;
use kernel::definition::plan::Plan;
use kernel::definition::plan::check::PlanScope;
use kernel::definition::plan::flow::load_text;
use kernel::definition::plan::mistake::Mistake;
use kernel::definition::plan::read::Origin;
use kernel::definition::plan::source::Node;
use kernel::definition::rule::Rules;
use kernel::limits::Limits;
use kernel::values::ids::{AgentName, PlanId, RealmId};
use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::Arc;

/// The texts of a project's agents, plans and pipelines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectFiles {
    pub agents: Vec<AgentFile>,
    /// The plans, which may name these agents and each other.
    pub plans: Vec<PlanFile>,
    /// The pipelines, which may name these plans.
    pub pipelines: Vec<PipelineFile>,
    /// What is done about failed steps, beside what the plans say.
    pub rules: Rules,
    /// The same in realms that have rules of their own instead.
    pub realm_rules: BTreeMap<RealmId, Rules>,
    /// Where all these rules stand.
    pub rule_places: RulePlaces,
}

impl ProjectFiles {
    /// What is done about failed steps of a realm's runs, beside what the plans say.
    pub fn rules_of(&self, realm: &RealmId) -> &Rules {
        self.realm_rules.get(realm).unwrap_or(&self.rules)
    }

    /// The same with where it stands.
    pub(crate) fn listed_rules<'a>(&'a self, realm: &'a RealmId) -> ListedRules<'a> {
        let RulePlaces { project, realms } = &self.rule_places;
        let own = self.realm_rules.contains_key(realm);
        let places = if own { realms.get(realm) } else { Some(project) };
        ListedRules {
            rules: self.rules_of(realm),
            places: places.map(Vec::as_slice).unwrap_or_default(),
            realm: own.then_some(realm),
        }
    }

    /// These files and those of one realm, which take the place of files here that define the same.
    #[must_use]
    pub fn with(&self, own: &Self) -> Self {
        let agent = |file: &AgentFile| {
            said(&file.text, &["refName", "ref_name"]).unwrap_or_else(|| file.file.clone())
        };
        let pipeline = |file: &PipelineFile| {
            said(&file.text, &["name"]).unwrap_or_else(|| file.default_name.to_string())
        };
        Self {
            agents: joined(&self.agents, &own.agents, agent),
            plans: joined(&self.plans, &own.plans, named_id),
            pipelines: joined(&self.pipelines, &own.pipelines, pipeline),
            // No file of one realm says what is done about failed steps.
            rules: self.rules.clone(),
            realm_rules: self.realm_rules.clone(),
            rule_places: self.rule_places.clone(),
        }
    }

    /// Whether one of them has this name.
    pub fn has(&self, file: &str) -> bool {
        self.agents.iter().any(|agent| agent.file == file)
            || self.plans.iter().any(|plan| plan.file == file)
            || self.pipelines.iter().any(|pipeline| pipeline.file == file)
    }

    /// Takes out the files that these mistakes are in; all files where none of them is in one.
    fn leave_out(&mut self, mistakes: &[Mistake]) {
        let is_wrong = |file: &str| mistakes.iter().any(|one| one.file.as_deref() == Some(file));
        let count = |files: &Self| files.agents.len() + files.plans.len() + files.pipelines.len();
        let before = count(self);
        self.agents.retain(|agent| !is_wrong(&agent.file));
        self.plans.retain(|plan| !is_wrong(&plan.file));
        self.pipelines.retain(|pipeline| !is_wrong(&pipeline.file));
        if count(self) == before {
            *self = Self::default();
        }
    }
}

/// What files bring that fit together: read, and not in the catalog yet.
pub struct CheckedFiles {
    agents: Vec<TalkPlan>,
    plans: BTreeMap<PlanId, Arc<Plan>>,
    pipelines: Pipelines,
    rules: Rules,
}

impl Catalog {
    /// Adds plans together: they may name each other. All mistakes of all of them are reported, and
    /// none is added if one is wrong.
    pub(crate) fn add_files(
        &self,
        realm: &RealmId,
        files: &[PlanFile],
    ) -> Result<Vec<Mistake>, Vec<Mistake>> {
        let ids: Vec<PlanId> = files.iter().map(named_id).collect();
        let (plans, mistakes) = self
            .around(realm, &ids, Author::Operator, |around| self.read_plans(realm, files, around));
        let mistakes = sound(mistakes)?;
        let ids: Vec<PlanId> = plans.iter().map(|plan| plan.id.clone()).collect();
        self.insert(realm, plans.into_iter());
        self.change(realm, |known| {
            known.overridden.retain(|id, _| !ids.contains(id));
            known.filed.extend(ids);
        });
        Ok(mistakes)
    }

    /// Reads plans that came as files, without adding them, and says all that is wrong with them.
    fn read_plans(
        &self,
        realm: &RealmId,
        files: &[PlanFile],
        around: &PlanScope<'_>,
    ) -> (Vec<Plan>, Vec<Mistake>) {
        let mut plans = Vec::new();
        let mut mistakes = Vec::new();
        for file in files {
            let origin =
                Origin { file: Some(file.file.clone()), default_id: Some(file.default_id.clone()) };
            match load_text(&file.text, &origin, &self.limits, around) {
                Ok((plan, warnings)) => {
                    mistakes.extend(warnings);
                    plans.push((file, plan));
                }
                Err(found) => mistakes.extend(found),
            }
        }
        mistakes.extend(twice(&plans));
        for (file, plan) in &plans {
            let misnamed = self.misnamed(realm, &plan.id, Author::Operator);
            mistakes.extend(misnamed.map(|mistake| in_file(mistake, &file.file)));
        }
        (plans.into_iter().map(|(_, plan)| plan).collect(), mistakes)
    }

    /// Reads a project's files as if those that are in the catalog were gone. Gives warnings beside
    /// them, or all mistakes of all of them.
    pub(crate) fn read_files(
        &self,
        realm: &RealmId,
        files: &ProjectFiles,
    ) -> Result<(CheckedFiles, Vec<Mistake>), Vec<Mistake>> {
        let (agents, mut mistakes) = self.read_agents(&files.agents);
        let names = self.agent_names(realm, &agents);
        let coming: Vec<PlanId> = files.plans.iter().map(named_id).collect();
        let others = Others {
            realm,
            plan: &|id| coming.contains(id) || self.stays(realm, id, &names),
            agent: &|name| names.contains(name),
            agent_names: &|| names.clone(),
        };
        let (plans, found) = self.among(&others, Author::Operator, |around| {
            self.read_plans(realm, &files.plans, around)
        });
        mistakes.extend(found);
        let (pipelines, found) = self.read_pipelines(realm, &files.pipelines, others.plan);
        mistakes.extend(found);
        mistakes.extend(lost_plans(&files.listed_rules(realm), others.plan));
        let mistakes = sound(mistakes)?;
        let plans = plans.into_iter().map(|plan| (plan.id.clone(), Arc::new(plan))).collect();
        let rules = files.rules_of(realm).clone();
        Ok((CheckedFiles { agents, plans, pipelines, rules }, mistakes))
    }

    /// The same as far as the files fit into a realm: one that does not, such as a plan with a tool
    /// that is not there for this realm, is left out, and so is what names it. Gives what is wrong
    /// with those.
    pub(crate) fn read_fitting(
        &self,
        realm: &RealmId,
        files: &ProjectFiles,
    ) -> (CheckedFiles, Vec<Mistake>) {
        let listed = files.listed_rules(realm);
        let mut files = files.clone();
        let mut left_out = Vec::new();
        // What is done about failed steps is the same, whatever files fit.
        let rules = listed.rules.clone();
        files.rules = Rules::default();
        files.realm_rules = BTreeMap::new();
        // It ends: each time there are fewer files, and without any nothing is wrong.
        loop {
            match self.read_files(realm, &files) {
                Ok((filed, _)) => {
                    // Those whose plans are not there correct nothing.
                    let names = self.agent_names(realm, &filed.agents);
                    left_out.extend(lost_plans(&listed, |id| {
                        filed.plans.contains_key(id) || self.stays(realm, id, &names)
                    }));
                    return (CheckedFiles { rules, ..filed }, left_out);
                }
                Err(found) => {
                    let wrong: Vec<Mistake> = found.into_iter().filter(Mistake::is_error).collect();
                    files.leave_out(&wrong);
                    left_out.extend(wrong);
                }
            }
        }
    }

    /// The files bring these now, in place of what they brought before: in one moment for everyone
    /// who looks.
    pub(crate) fn set_files(&self, realm: &RealmId, files: CheckedFiles) {
        let changed = self.change(realm, |known| {
            let has_other_agents = known.agents.set_filed(files.agents);
            let has_other_plans = known.set_filed(files.plans);
            known.pipelines = files.pipelines;
            known.rules = Arc::new(files.rules);
            known.changed();
            if has_other_plans {
                known.specs = self.as_tools(realm, &known.plans);
            }
            match (has_other_plans, has_other_agents) {
                (true, _) => Some(ListChanges::PLANS),
                (false, true) => Some(ListChanges::AGENTS),
                // No one is notified of a change of pipelines alone: no list shows what they come
                // down to.
                (false, false) => None,
            }
        });
        if let Some(changes) = changed {
            self.tell(realm, changes);
        }
    }

    /// The store has no plan of this id any more. The file's is there again, if it overrode one.
    pub(crate) fn remove_stored_plan(&self, realm: &RealmId, id: &PlanId) {
        self.change(realm, |known| {
            if known.filed.contains(id) {
                return;
            }
            known.plans.remove(id);
            if let Some(filed) = known.overridden.remove(id) {
                known.filed.insert(id.clone());
                known.plans.insert(id.clone(), filed);
            }
            known.changed();
            known.specs = self.as_tools(realm, &known.plans);
        });
        self.tell(realm, ListChanges::PLANS);
    }

    /// The agents that there are once the files bring these.
    fn agent_names(&self, realm: &RealmId, filed: &[TalkPlan]) -> Vec<AgentName> {
        let filed = filed.iter().map(|(agent, _)| agent.name.clone());
        filed.chain(self.known(realm, |known| known.agents.unfiled())).collect()
    }

    /// Whether there is such a plan whatever plans the files bring, with these agents.
    fn stays(&self, realm: &RealmId, id: &PlanId, agents: &[AgentName]) -> bool {
        if let Some(agent) = id.as_str().strip_prefix(TALKS) {
            return agents.iter().any(|name| name.as_str() == agent);
        }
        self.known(realm, |known| known.plans.contains_key(id) && !known.filed.contains(id))
    }
}

impl RealmPlans {
    /// The files bring these plans now, and no others. Says whether that is something else than
    /// before.
    fn set_filed(&mut self, plans: BTreeMap<PlanId, Arc<Plan>>) -> bool {
        let gone = mem::take(&mut self.filed);
        let before: BTreeMap<PlanId, Arc<Plan>> =
            gone.into_iter().filter_map(|id| self.plans.remove_entry(&id)).collect();
        let mut is_other = false;
        self.overridden.clear();
        for (id, plan) in plans {
            // What is left under this id is stored, and overrides a file.
            if self.plans.contains_key(&id) {
                self.overridden.insert(id, plan);
                continue;
            }
            // One that says the same stays the same: its watchers are not woken.
            let same = before.get(&id).filter(|known| known.source == plan.source);
            is_other |= same.is_none();
            let plan = same.cloned().unwrap_or(plan);
            self.filed.insert(id.clone());
            self.plans.insert(id, plan);
        }
        is_other || before.keys().any(|id| !self.filed.contains(id))
    }
}

/// All of the first that do not define what one of the others does, and the others.
fn joined<T: Clone, I: PartialEq>(all: &[T], own: &[T], id: impl Fn(&T) -> I) -> Vec<T> {
    let taken: Vec<I> = own.iter().map(&id).collect();
    let rest = all.iter().filter(|&file| !taken.contains(&id(file)));
    rest.chain(own).cloned().collect()
}

/// What a file says under the first of these names that it has, as far as one can tell before it is
/// checked.
fn said(text: &str, names: &[&str]) -> Option<String> {
    let value = Node::parse(text, &Limits::default()).ok()?.to_value();
    names.iter().find_map(|name| value[*name].as_str().map(str::to_owned))
}

/// The id that a file's plan will have, as far as one can tell before it is checked.
fn named_id(file: &PlanFile) -> PlanId {
    said(&file.text, &["planId"]).map_or_else(|| file.default_id.clone(), PlanId::from)
}

fn twice(plans: &[(&PlanFile, Plan)]) -> Vec<Mistake> {
    let mut seen: HashMap<&PlanId, &str> = HashMap::new();
    let mut mistakes = Vec::new();
    for (file, plan) in plans {
        if let Some(first) = seen.insert(&plan.id, &file.file) {
            let message = format!("plan id `{}` is taken by {first}", plan.id);
            let mistake = Mistake::error(message).hint("give one of them another planId");
            mistakes.push(in_file(mistake, &file.file));
        }
    }
    mistakes
}
