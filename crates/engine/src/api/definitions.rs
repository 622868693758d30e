//! The catalog as endpoints see it: plans, pipelines and models; agents are in `agents.rs`.

use crate::catalog::models::Models;
use crate::catalog::roster::starting;
use crate::catalog::{
    Author, CheckedFiles, ListChanges, PipelineFile, PlanFile, ProjectFiles, invalid_plan,
};
use crate::handles::Catalog;
use crate::refusal::{Refusal, RefusalCode, RefusalKind, Result};
use crate::request::RegisteredPlan;
use kernel::contracts::policy::Resource;
use kernel::contracts::{Definition, Precondition};
use kernel::definition::pipeline::Pipeline;
use kernel::definition::plan::Plan;
use kernel::definition::plan::mistake::Mistake;
use kernel::tool::call::{Caller, ToolSpec};
use kernel::values::caller::Act;
use kernel::values::ids::{PipelineName, PlanId, RealmId};
use serde_json::Value;
use std::sync::Arc;

impl Catalog<'_> {
    /// A number that grows whenever what can be called or prompted in a realm changes. What is not
    /// there for the realm does not count.
    pub fn version(self, realm: &RealmId) -> tokio::sync::watch::Receiver<u64> {
        self.shared.catalog.version(realm)
    }

    /// A number that grows with every change of a realm's plans, agents, pipelines or rules, listed
    /// or not.
    pub fn changes(self, realm: &RealmId) -> u64 {
        self.shared.catalog.changes(realm)
    }

    /// How often each of the lists changed that clients in a realm read.
    pub fn list_changes(self, realm: &RealmId) -> tokio::sync::watch::Receiver<ListChanges> {
        self.shared.catalog.list_changes(realm)
    }

    /// What is not in the catalog changed as well: prompts and resources of another server. Clients
    /// in the realms that it is there for are notified: in one alone, if that has it for itself.
    pub fn tell_lists(self, own: Option<&RealmId>, upstream: &str, changes: ListChanges) {
        self.shared.catalog.tell_lists(own, upstream, changes);
    }

    /// From now on a realm has this server behind this one for itself. The names of its tools begin
    /// so; without that it has none.
    pub fn own_upstream(self, realm: &RealmId, name: &str, beginning: Option<String>) {
        self.shared.catalog.own_upstream(realm, name, beginning);
    }

    /// From now on the realm does not have this server any more.
    pub fn disown_upstream(self, realm: &RealmId, name: &str) {
        self.shared.catalog.disown_upstream(realm, name);
    }

    /// Whether a realm has something of its own that runs: a plan, an agent or a pipeline.
    pub fn has_definitions(self, realm: &RealmId) -> bool {
        self.shared.catalog.has_definitions(realm)
    }

    /// The plans of the caller's realm.
    pub fn plans(self, caller: &Caller) -> Vec<Arc<Plan>> {
        self.shared.gate.readable_plans(caller)
    }

    pub fn plan(self, caller: &Caller, id: &PlanId) -> Option<Arc<Plan>> {
        let plan = self.shared.catalog.plan(&caller.realm, id)?;
        self.shared.gate.reads(caller, starting(id).1).then_some(plan)
    }

    /// Adds a project's plans: all of them or none. Gives warnings, or all mistakes.
    pub fn load_plans(
        self,
        realm: &RealmId,
        files: Vec<PlanFile>,
    ) -> Result<Vec<Mistake>, Vec<Mistake>> {
        self.shared.catalog.add_files(realm, &files)
    }

    /// Reads all agents, plans and pipelines of a project's files again, without changing anything:
    /// they are checked as if those that the files brought before were gone. Gives warnings beside
    /// them, or all mistakes.
    pub fn read_files(
        self,
        realm: &RealmId,
        files: &ProjectFiles,
    ) -> Result<(CheckedFiles, Vec<Mistake>), Vec<Mistake>> {
        self.shared.catalog.read_files(realm, files)
    }

    /// The same for a realm in which not all of the files need to fit: those that do not are left
    /// out, with whatever names them. Gives what is wrong with these beside the others.
    pub fn read_fitting_files(
        self,
        realm: &RealmId,
        files: &ProjectFiles,
    ) -> (CheckedFiles, Vec<Mistake>) {
        self.shared.catalog.read_fitting(realm, files)
    }

    /// A project's files bring these now, in place of what they brought before: all at once. Runs
    /// that began keep what they pin, and what is stored stays.
    pub fn set_files(self, realm: &RealmId, files: CheckedFiles) {
        self.shared.catalog.set_files(realm, files);
    }

    /// What is done about failed steps of runs that begin from now on, beside what their plans say;
    /// as these files have it; or what is wrong with their rules: they name plans that are not
    /// there.
    pub fn set_rules(self, realm: &RealmId, files: &ProjectFiles) -> Result<(), Vec<Mistake>> {
        self.shared.catalog.set_rules(realm, &files.listed_rules(realm))
    }

    /// Checks a plan without adding it. Gives warnings, or all mistakes.
    pub fn validate_plan(
        self,
        caller: &Caller,
        source: &Value,
    ) -> Result<Vec<Mistake>, Vec<Mistake>> {
        self.shared.gate.read_plan_to_keep(caller, source).map(|(_, warnings)| warnings)
    }

    /// Warnings of rules that fit no tool and no plan of any realm, once all plans are loaded.
    pub fn idle_rules(self) -> Vec<Mistake> {
        self.shared.catalog.idle_rules()
    }

    /// Stores a plan and adds it to the catalog, if `expected` is the newest version now (0: there
    /// is none) or nothing is expected.
    pub async fn register_plan(
        self,
        caller: &Caller,
        source: Value,
        expected: Option<u64>,
    ) -> Result<RegisteredPlan> {
        let realm = &caller.realm;
        let read = self.shared.gate.read_plan_to_keep(caller, &source);
        let (plan, _) = read.map_err(|found| invalid_plan(&found))?;
        // It may have the name of a tool that its author does not see, and others do.
        if let Some(mistake) = self.shared.catalog.misnamed(realm, &plan.id, Author::Operator) {
            return Err(invalid_plan(&[mistake]));
        }
        let judged = self.may_define(caller, PLAN, plan.id.as_str()).await?;
        let definition = Definition {
            kind: PLAN.to_owned(),
            name: plan.id.to_string(),
            version: 0,
            body: (*plan.source).clone(),
            updated_at: self.shared.clock.now(),
            by: caller.owner(),
        };
        let against = Precondition { version: expected, owner: judged };
        // The catalog has the plan that was stored last: one after the other.
        let _storing = self.shared.catalog.storing.lock().await;
        let version = self.store(caller, definition, against).await?.version;
        let id = plan.id.clone();
        self.shared.catalog.insert(realm, std::iter::once(plan));
        Ok(RegisteredPlan { id, version })
    }

    /// Removes a stored plan. A file's plan that it overrode is there again; one that is only in a
    /// file cannot be removed here.
    pub async fn remove_plan(self, caller: &Caller, id: &PlanId) -> Result<()> {
        let refused = |refusal: Refusal| {
            let is_denied = refusal.kind() == RefusalKind::Forbidden;
            match is_denied && !self.shared.gate.could_read(caller, starting(id).1) {
                true => no_plan(id),
                false => refusal,
            }
        };
        let judged = self.may_define(caller, PLAN, id.as_str()).await.map_err(refused)?;
        // The catalog is as the store is after the last change: one after the other.
        let _storing = self.shared.catalog.storing.lock().await;
        if self.discard(caller, PLAN, id.as_str(), judged).await.map_err(refused)? {
            self.shared.catalog.remove_stored_plan(&caller.realm, id);
            return Ok(());
        }
        // How agents are talked to, and what takes cases, is in no list and in no file.
        if !self.plans(caller).iter().any(|plan| plan.id == *id) {
            return Err(no_plan(id));
        }
        let message = format!("plan `{id}` is in a file of the project, and removed only there");
        Err(Refusal::new(RefusalCode::PlanInFile, message).hint(
            "remove the file in `plans/` and start the server again; `up --watch` does without",
        ))
    }

    /// The newest version of a stored plan; none for a plan of the project's files.
    pub async fn plan_version(self, caller: &Caller, id: &PlanId) -> Result<Option<u64>> {
        if !self.shared.gate.could_read(caller, starting(id).1) {
            return Ok(None);
        }
        let stored = self.shared.definitions.get(&caller.realm, PLAN, id.as_str()).await?;
        Ok(stored.map(|definition| definition.version))
    }

    /// Adds the realm's stored plans to the catalog. One that no longer fits is left out and
    /// logged: a tool may have gone since it was stored, and the others must still serve.
    pub async fn load_stored_plans(self, realm: &RealmId) -> Result<()> {
        let stored = self.shared.definitions.list(realm, PLAN).await?;
        let coming: Vec<PlanId> =
            stored.iter().map(|definition| PlanId::from(definition.name.as_str())).collect();
        for definition in stored {
            let catalog = &self.shared.catalog;
            let read = catalog.read(realm, &definition.body, &coming, Author::Operator);
            let read = read.and_then(|(plan, _)| {
                let misnamed = catalog.misnamed(realm, &plan.id, Author::Operator);
                misnamed.map_or(Ok(plan), |mistake| Err(vec![mistake]))
            });
            match read {
                Ok(plan) => catalog.insert(realm, std::iter::once(plan)),
                Err(found) => {
                    let refusal = invalid_plan(&found);
                    tracing::warn!(%realm, plan = definition.name, "{}", refusal.message);
                }
            }
        }
        Ok(())
    }

    /// A project's files bring these pipelines now, in place of those that they brought before: all
    /// of them or none. Gives warnings, or all mistakes. Load them after the plans that they name.
    pub fn set_pipelines(
        self,
        realm: &RealmId,
        files: Vec<PipelineFile>,
    ) -> Result<Vec<Mistake>, Vec<Mistake>> {
        self.shared.catalog.set_pipelines(realm, &files)
    }

    /// All pipelines of a realm, by name: for the server itself, which is nobody's caller.
    pub fn all_pipelines(self, realm: &RealmId) -> Vec<Arc<Pipeline>> {
        self.shared.catalog.pipelines(realm)
    }

    /// Whether cases of a realm come in at this path, for any caller.
    pub fn has_pipeline_at(self, realm: &RealmId, route: &str) -> bool {
        self.shared.catalog.pipeline_at(realm, route).is_some()
    }

    /// The pipelines of the caller's realm, by name.
    pub fn pipelines(self, caller: &Caller) -> Vec<Arc<Pipeline>> {
        self.shared.gate.readable_pipelines(caller)
    }

    /// All plans of a realm as tools, by id: for the server itself.
    pub fn all_plan_tools(self, realm: &RealmId) -> Vec<Arc<ToolSpec>> {
        self.shared.catalog.plan_specs(realm)
    }

    /// Whether this caller may start some run of the plan of this id, or is asked about it.
    pub fn starts(self, caller: &Caller, plan: &PlanId) -> bool {
        self.shared.gate.sees(caller, starting(plan).1)
    }

    pub fn pipeline(self, caller: &Caller, name: &PipelineName) -> Option<Arc<Pipeline>> {
        let found = self.shared.catalog.pipeline(&caller.realm, name);
        found.filter(|pipeline| self.shared.gate.reads(caller, pipeline_of(pipeline)))
    }

    /// The one whose cases come in at this path, for callers who may submit one there or read it.
    pub fn pipeline_at(self, caller: &Caller, route: &str) -> Option<Arc<Pipeline>> {
        let gate = &self.shared.gate;
        let found = self.shared.catalog.pipeline_at(&caller.realm, route);
        found.filter(|pipeline| {
            let resource = pipeline_of(pipeline);
            gate.permit(caller, Act::Submit, resource).is_ok() || gate.reads(caller, resource)
        })
    }

    /// The models that agents name from now on. Turns that are under way end with theirs.
    pub fn replace_models(self, models: Models) {
        self.shared.set_models(models);
    }

    /// The models that agents name now.
    pub fn models(self) -> Arc<Models> {
        self.shared.models()
    }

    /// The models that agents can name, by name.
    pub fn model_names(self) -> Vec<String> {
        self.shared.models().names().map(str::to_owned).collect()
    }
}

const PLAN: &str = "plan";

/// There is no such plan.
fn no_plan(id: &PlanId) -> Refusal {
    Refusal::not_found("plan", id).hint("`waypost plan ls` lists the plans")
}

fn pipeline_of(pipeline: &Pipeline) -> Resource<'_> {
    Resource::Pipeline(pipeline.name.as_str())
}
