//! What a project brings into the catalog, and how it gets there.

use super::error::{AssembleError, ProjectPart, stored, wrong};
use super::setup::Setup;
use crate::assemble::pipelines;
use edge::realms::files as beside;
use engine::{Engine, ProjectFiles};
use identity::Identity;
use kernel::contracts::Definitions;
use kernel::definition::agent::Agent;
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::realm::Realms;
use kernel::limits::Limits;
use kernel::values::ids::{AgentName, RealmId};
use project::agents;
use project::folder::{RealmFiles, readable};
use project::realm::default_realm;
use project::rules;
use std::sync::Arc;

/// What a project brings into the catalog.
pub(super) struct ProjectDefinitions {
    files: RealmFiles,
    /// Whether models of others are not opened: no one can say which there are.
    isolated: bool,
    /// The agent of requests that name none.
    default: Option<AgentName>,
}

impl ProjectDefinitions {
    pub(super) fn files(self) -> RealmFiles {
        self.files
    }
}

/// Takes out of the setup what goes into the catalog.
pub(super) fn take_definitions(mut setup: Setup) -> (ProjectDefinitions, Setup) {
    let project = &mut setup.project;
    let all = ProjectFiles {
        agents: std::mem::take(&mut project.agents),
        plans: std::mem::take(&mut project.plans),
        pipelines: std::mem::take(&mut project.pipelines),
        rules: project.config.rules.clone(),
        realm_rules: project.config.realm_rules.clone(),
        rule_places: project.config.rule_places.clone(),
    };
    let files = RealmFiles { all, own: std::mem::take(&mut project.of_realms) };
    let isolated = setup.isolated;
    let default = project.config.agents.default.clone();
    (ProjectDefinitions { files, isolated, default }, setup)
}

/// Fills the catalog from the project's files and from the store, for every realm that there is:
/// agents before the plans that name them, and both before the pipelines. Gives warnings.
pub(super) async fn load(
    engine: &Engine,
    definitions: &dyn Definitions,
    identity: &Identity,
    project: &ProjectDefinitions,
) -> Result<Vec<Mistake>, AssembleError> {
    let realm = default_realm();
    let limits = engine.limits();
    let files = project.files.of(&realm);
    let models = engine.catalog().model_names();
    let mut warnings = without_models(&project.files, &models, limits);
    let loading = RealmLoader { engine, definitions, files: &project.files, models: &models };
    warnings.extend(loading.agents(&realm, &files).await?);
    warnings.extend(agents::no_default(project.default.as_ref(), &loading.known(&realm)));
    let found = engine.catalog().load_plans(&realm, files.plans.clone());
    warnings.extend(found.map_err(wrong(ProjectPart::Plans))?);
    engine.catalog().load_stored_plans(&realm).await.map_err(stored)?;
    let ruled = engine.catalog().set_rules(&realm, &files);
    ruled.map_err(wrong(ProjectPart::Plans))?;
    let usable = (!project.isolated).then_some(models.as_slice());
    let mut misplaced = pipelines::misplaced(&readable(&files.pipelines, limits), usable);
    misplaced.extend(pipelines::misplaced_own(&project.files, usable, limits));
    match engine.catalog().set_pipelines(&realm, files.pipelines) {
        Ok(found) if misplaced.is_empty() => warnings.extend(found),
        Ok(_) => return Err(wrong(ProjectPart::Pipelines)(misplaced)),
        Err(found) => return Err(wrong(ProjectPart::Pipelines)([misplaced, found].concat())),
    }
    let realms = identity.directory().realms.clone();
    for realm in beside::names(&realms) {
        warnings.extend(loading.beside(realm).await?);
    }
    warnings.extend(project.files.strangers(&realms));
    loading.tell_kept(&realms).await?;
    warnings.extend(engine.catalog().idle_rules());
    Ok(warnings)
}

/// Warnings of agents and rules of files whose models are not there, those of single realms
/// included.
pub(super) fn without_models(
    files: &RealmFiles,
    models: &[String],
    limits: &Limits,
) -> Vec<Mistake> {
    let all = std::iter::once(&files.all).chain(files.own.values());
    let of = |files: &ProjectFiles| {
        let mut found = agents::without_models(&files.agents, models, limits);
        found.extend(rules::without_models(files, models, limits));
        found
    };
    all.flat_map(of).collect()
}

/// Brings realms what is theirs.
struct RealmLoader<'a> {
    engine: &'a Engine,
    definitions: &'a dyn Definitions,
    files: &'a RealmFiles,
    /// The names of the models that there are.
    models: &'a [String],
}

impl RealmLoader<'_> {
    fn known(&self, realm: &RealmId) -> Vec<Arc<Agent>> {
        let known = self.engine.catalog().all_agents(realm).into_iter();
        known.map(|known| known.agent).collect()
    }

    /// Loads a realm's agents, those of the files and those that are stored. Gives warnings.
    async fn agents(
        &self,
        realm: &RealmId,
        files: &ProjectFiles,
    ) -> Result<Vec<Mistake>, AssembleError> {
        let catalog = self.engine.catalog();
        let filed = files.agents.clone();
        let found = catalog.set_agents_from_files(realm, filed);
        let mut warnings = found.map_err(wrong(ProjectPart::Agents))?;
        let definitions = self.definitions.list(realm, agents::KIND).await;
        let definitions = definitions.map_err(|error| stored(error.into()))?;
        warnings.extend(agents::idle(&definitions, &self.known(realm), self.models));
        catalog.load_stored_agents(realm).await.map_err(stored)?;
        Ok(warnings)
    }

    /// Loads all of a realm beside the one that every server has. Gives warnings.
    async fn beside(&self, realm: &RealmId) -> Result<Vec<Mistake>, AssembleError> {
        let warnings = self.agents(realm, &self.files.of(realm)).await?;
        // What the files say is reported once, for the realm that every server has.
        let of_store = warnings.into_iter().filter(|warning| warning.file.is_none());
        let mut warnings: Vec<Mistake> =
            of_store.map(|warning| beside::said_of(realm, "in", warning)).collect();
        // Twice: what is stored may name what the files bring, and the other way round.
        beside::take(self.engine, realm, self.files);
        self.engine.catalog().load_stored_plans(realm).await.map_err(stored)?;
        let (left_out, mistakes) = beside::take(self.engine, realm, self.files);
        if !mistakes.is_empty() {
            return Err(wrong(ProjectPart::Realms)(mistakes));
        }
        warnings.extend(left_out);
        Ok(warnings)
    }

    /// Logs what is kept for realms that are not configured any more: it is theirs once they are
    /// again.
    async fn tell_kept(&self, realms: &Realms) -> Result<(), AssembleError> {
        let counts = self.definitions.counts().await.map_err(|error| stored(error.into()))?;
        for (realm, count) in counts.iter().filter(|(realm, _)| !realms.0.contains_key(realm)) {
            tracing::info!(
                %realm,
                definitions = count,
                "the realm is not configured: what is stored for it is kept and not loaded"
            );
        }
        Ok(())
    }
}
