//! What a project brings into the catalog, and how it gets there.

use super::error::{AssembleError, ProjectPart, stored, wrong};
use super::setup::Setup;
use crate::assemble::pipelines;
use engine::{AgentFile, Engine, PipelineFile, PlanFile};
use kernel::contracts::Definitions;
use kernel::definition::agent::Agent;
use kernel::definition::pipeline::Pipeline;
use kernel::definition::plan::mistake::Mistake;
use kernel::values::ids::AgentName;
use project::agents;
use project::realm::default_realm;
use std::sync::Arc;

/// What a project brings into the catalog.
pub(super) struct Brought {
    agents: Vec<AgentFile>,
    plans: Vec<PlanFile>,
    pipelines: Vec<PipelineFile>,
    /// The pipelines as far as they can be read, each with its file.
    readable: Vec<(String, Pipeline)>,
    /// Whether models of others are not opened: no one can say which there are.
    alone: bool,
    /// The agent of requests that name none.
    default: Option<AgentName>,
}

/// Takes out what goes into the catalog.
pub(super) fn brought(mut setup: Setup) -> (Brought, Setup) {
    let readable = setup.project.readable_pipelines();
    let project = &mut setup.project;
    let brought = Brought {
        agents: std::mem::take(&mut project.agents),
        plans: std::mem::take(&mut project.plans),
        pipelines: std::mem::take(&mut project.pipelines),
        readable,
        alone: setup.alone,
        default: project.config.agents.default.clone(),
    };
    (brought, setup)
}

/// Fills the catalog from the project's files and from the store, agents before the plans that name
/// them, and both before the pipelines. Gives warnings.
pub(super) async fn load(
    engine: &Engine,
    definitions: &dyn Definitions,
    brought: Brought,
) -> Result<Vec<Mistake>, AssembleError> {
    let realm = default_realm();
    let known = || -> Vec<Arc<Agent>> {
        engine.catalog().all_agents(&realm).into_iter().map(|known| known.agent).collect()
    };
    let models = engine.catalog().model_names();
    let mut warnings = agents::without_models(&brought.agents, &models, engine.limits());
    let found = engine.catalog().set_agents_from_files(&realm, brought.agents);
    warnings.extend(found.map_err(wrong(ProjectPart::Agents))?);
    let definitions = definitions.list(&realm, agents::KIND).await;
    let definitions = definitions.map_err(|error| stored(error.into()))?;
    warnings.extend(agents::idle(&definitions, &known(), &models));
    engine.catalog().load_stored_agents(&realm).await.map_err(stored)?;
    warnings.extend(agents::no_default(brought.default.as_ref(), &known()));
    let found = engine.catalog().load_plans(&realm, brought.plans);
    warnings.extend(found.map_err(wrong(ProjectPart::Plans))?);
    engine.catalog().load_stored_plans(&realm).await.map_err(stored)?;
    let models = (!brought.alone).then_some(models.as_slice());
    let misplaced = pipelines::misplaced(&brought.readable, models);
    match engine.catalog().set_pipelines(&realm, brought.pipelines) {
        Ok(found) if misplaced.is_empty() => warnings.extend(found),
        Ok(_) => return Err(wrong(ProjectPart::Pipelines)(misplaced)),
        Err(found) => return Err(wrong(ProjectPart::Pipelines)([misplaced, found].concat())),
    }
    warnings.extend(engine.catalog().idle_rules(&realm));
    Ok(warnings)
}
