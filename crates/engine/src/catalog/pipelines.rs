//! The pipelines of a realm in the catalog. Each brings a plan and an agent that no list shows:
//! they are found by their names only, and runs pin them like any others.

use super::{Catalog, in_file, sound};
use kernel::definition::agent::Agent;
use kernel::definition::agent_reader::read_pinned;
use kernel::definition::pipeline::{HandlerKind, PIPELINES, Pipeline};
use kernel::definition::pipeline_reader::read_text;
use kernel::definition::plan::Plan;
use kernel::definition::plan::flow::read_generated;
use kernel::definition::plan::mistake::{Mistake, meant};
use kernel::definition::plan::source::Node;
use kernel::values::ids::{AgentName, PipelineName, PlanId, RealmId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pipeline's text and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineFile {
    /// The file, as a person would name it.
    pub file: String,
    pub text: String,
    /// The name of a pipeline that gives none.
    pub default_name: PipelineName,
}

/// A pipeline with what it comes down to.
struct CompiledPipeline {
    pipeline: Arc<Pipeline>,
    plan: Arc<Plan>,
    agent: Arc<Agent>,
}

/// The pipelines of one realm.
#[derive(Default)]
pub(super) struct Pipelines {
    laid: BTreeMap<PipelineName, CompiledPipeline>,
}

impl Pipelines {
    fn named(&self, name: &str) -> Option<&CompiledPipeline> {
        self.laid.get(name.strip_prefix(PIPELINES)?)
    }

    /// The plan with this id, if a pipeline comes down to it.
    pub(super) fn plan(&self, id: &PlanId) -> Option<Arc<Plan>> {
        self.named(id.as_str()).map(|laid| laid.plan.clone())
    }
}

impl Catalog {
    /// Whether a realm has a plan, an agent or a pipeline.
    pub(crate) fn has_definitions(&self, realm: &RealmId) -> bool {
        self.known(realm, |known| {
            let has_none = known.plans.is_empty() && known.agents.is_empty();
            !has_none || !known.pipelines.laid.is_empty()
        })
    }

    /// All pipelines of a realm, by name.
    pub(crate) fn pipelines(&self, realm: &RealmId) -> Vec<Arc<Pipeline>> {
        self.known(realm, |known| {
            known.pipelines.laid.values().map(|laid| laid.pipeline.clone()).collect()
        })
    }

    pub(crate) fn pipeline(&self, realm: &RealmId, name: &PipelineName) -> Option<Arc<Pipeline>> {
        self.known(realm, |known| Some(known.pipelines.laid.get(name)?.pipeline.clone()))
    }

    pub(crate) fn pipeline_at(&self, realm: &RealmId, route: &str) -> Option<Arc<Pipeline>> {
        self.known(realm, |known| {
            let mut laid = known.pipelines.laid.values();
            laid.find(|laid| laid.pipeline.route == route).map(|laid| laid.pipeline.clone())
        })
    }

    /// The agent of a pipeline: only a pipeline's own plan can name it.
    pub(super) fn pipeline_agent(&self, realm: &RealmId, name: &AgentName) -> Option<Arc<Agent>> {
        self.known(realm, |known| Some(known.pipelines.named(name.as_str())?.agent.clone()))
    }

    /// The files bring these pipelines now, and no others. All mistakes of all of them are
    /// reported, and nothing changes if one is wrong.
    pub(crate) fn set_pipelines(
        &self,
        realm: &RealmId,
        files: &[PipelineFile],
    ) -> Result<Vec<Mistake>, Vec<Mistake>> {
        let (pipelines, mistakes) =
            self.read_pipelines(realm, files, &|id| self.plan(realm, id).is_some());
        let mistakes = sound(mistakes)?;
        self.change(realm, |known| {
            known.pipelines = pipelines;
            known.changed();
        });
        Ok(mistakes)
    }

    /// Reads pipelines that came as files among these plans, without adding them, and says all that
    /// is wrong with them.
    pub(super) fn read_pipelines(
        &self,
        realm: &RealmId,
        files: &[PipelineFile],
        plans: &dyn Fn(&PlanId) -> bool,
    ) -> (Pipelines, Vec<Mistake>) {
        let mut mistakes = Vec::new();
        let mut read: Vec<(CompiledPipeline, &PipelineFile)> = Vec::new();
        for file in files {
            match self.read_pipeline(realm, file, plans) {
                Ok((laid, warnings)) => {
                    mistakes.extend(warnings);
                    mistakes
                        .extend(meets(&laid.pipeline, &read).map(|met| in_file(met, &file.file)));
                    read.push((laid, file));
                }
                Err(found) => mistakes.extend(found),
            }
        }
        let named =
            |(laid, _): (CompiledPipeline, &PipelineFile)| (laid.pipeline.name.clone(), laid);
        (Pipelines { laid: read.into_iter().map(named).collect() }, mistakes)
    }

    fn read_pipeline(
        &self,
        realm: &RealmId,
        file: &PipelineFile,
        plans: &dyn Fn(&PlanId) -> bool,
    ) -> Result<(CompiledPipeline, Vec<Mistake>), Vec<Mistake>> {
        let name = file.default_name.as_str();
        let (pipeline, mut mistakes) = read_text(&file.text, &file.file, name, &self.limits)?;
        let all_filed = |found: Vec<Mistake>| -> Vec<Mistake> {
            found.into_iter().map(|mistake| in_file(mistake, &file.file)).collect()
        };
        let plan = read_generated(&pipeline.plan_source, &self.limits).map_err(all_filed)?;
        let (agent, _) = read_pinned(&pipeline.agent_source).map_err(all_filed)?;
        mistakes.extend(self.surroundings(realm, &pipeline, file, plans));
        let mistakes = sound(mistakes)?;
        let plan = Arc::new(plan);
        let agent = Arc::new(agent);
        Ok((CompiledPipeline { pipeline: Arc::new(pipeline), plan, agent }, mistakes))
    }

    /// Mistakes of a pipeline about its surroundings: tools and plans that do not exist.
    fn surroundings(
        &self,
        realm: &RealmId,
        pipeline: &Pipeline,
        file: &PipelineFile,
        plans: &dyn Fn(&PlanId) -> bool,
    ) -> Vec<Mistake> {
        let mut found = Vec::new();
        for (index, tool) in pipeline.tools.iter().enumerate() {
            let mistake = self.missing_tool(realm, tool);
            found.extend(mistake.map(|mistake| (format!("/tools/{index}"), mistake)));
        }
        for (index, handler) in pipeline.handlers.iter().enumerate() {
            let HandlerKind::Plan(plan) = &handler.kind else { continue };
            if !plans(plan) {
                let mistake = Mistake::error(format!("there is no plan `{plan}`"))
                    .hint("`waypost plan ls` lists the plans");
                found.push((format!("/handlers/{index}"), mistake));
            }
        }
        if found.is_empty() {
            return Vec::new();
        }
        // Read once more, for the lines alone.
        let node = Node::parse(&file.text, &self.limits).ok();
        let place = |(pointer, mistake): (String, Mistake)| {
            let at = node.as_ref().map(|node| node.position(&pointer)).unwrap_or_default();
            in_file(mistake.at(at, pointer), &file.file)
        };
        found.into_iter().map(place).collect()
    }

    fn missing_tool(&self, realm: &RealmId, tool: &str) -> Option<Mistake> {
        if self.tool(realm, tool).is_some() {
            return None;
        }
        if self.awaits(realm, tool) {
            let mistake = Mistake::warning(format!("tool `{tool}` is not there yet"));
            return Some(mistake.hint("its server has not listed its tools; see `mcp ls`"));
        }
        let hint = match self.registry.kept_out(realm, tool) {
            Some(hint) => hint.to_owned(),
            None => {
                let specs = self.specs(realm);
                meant(tool, specs.iter().map(|spec| spec.name.as_str()))
                    .unwrap_or_else(|| "`waypost tool ls` lists the tools".to_owned())
            }
        };
        Some(Mistake::error(format!("there is no tool `{tool}`")).hint(hint))
    }
}

/// What a pipeline has in common with one before it and must not.
fn meets(pipeline: &Pipeline, before: &[(CompiledPipeline, &PipelineFile)]) -> Option<Mistake> {
    before.iter().find_map(|(other, file)| {
        let other = &other.pipeline;
        let file = &file.file;
        if other.name == pipeline.name {
            let message = format!("pipeline `{}` is already defined in {file}", pipeline.name);
            return Some(Mistake::error(message).hint("give one of them another `name`"));
        }
        if (&other.route, other.port) == (&pipeline.route, pipeline.port) {
            let message = format!("route `{}` is taken by {file}", pipeline.route);
            return Some(Mistake::error(message).hint("give one of them another `http.route`"));
        }
        None
    })
}
