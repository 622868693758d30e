//! What is behind a server by its files and variables: upstreams, models, sinks, policies. No one
//! is talked to yet.

use super::error::{AssembleError, ProjectPart, wrong};
use super::policies::FilePolicies;
use super::setup::Setup;
use crate::assemble::sinks::ConfiguredSinks;
use engine::{Model, Models, Price};
use kernel::conversation::llm::Usage;
use llms::config::{ModelConfig, ModelKind};
use project::upstream_entries::{Ourselves, Upstreams};
use std::sync::Arc;
use upstreams::UpstreamConfig;

/// What is behind the server, by its files and variables.
pub(super) struct Backends {
    pub(super) upstreams: Upstreams,
    pub(super) configs: Vec<UpstreamConfig>,
    pub(super) models: Models,
    /// Where events go; none where no one outside is reached.
    pub(super) sinks: Option<ConfiguredSinks>,
    /// How this server itself is reached.
    pub(super) ourselves: Ourselves,
    /// Who may do what, where the project is a folder.
    pub(super) policies: Option<FilePolicies>,
}

/// The models and sinks of the project, and its upstreams, without those that lead back to this
/// server.
pub(super) fn behind(setup: &Setup) -> Result<Backends, AssembleError> {
    let variables = setup.variables.as_ref();
    let project = &setup.project;
    let mut upstreams = project.upstreams(variables).map_err(wrong(ProjectPart::Upstreams))?;
    let ourselves = project.ourselves(setup.address);
    let policies = FilePolicies::of(project).map_err(wrong(ProjectPart::Policies))?;
    if setup.isolated {
        let models = opened(project.models_of_rules().map_err(wrong(ProjectPart::Models))?)?;
        let configs = Vec::new();
        let sinks = None;
        return Ok(Backends { upstreams, configs, models, sinks, ourselves, policies });
    }
    let models = opened(project.models(variables).map_err(wrong(ProjectPart::Models))?)?;
    let configs = upstreams.configs(variables).map_err(wrong(ProjectPart::Upstreams))?;
    let (back, ahead): (Vec<UpstreamConfig>, Vec<UpstreamConfig>) =
        configs.into_iter().partition(|config| ourselves.are(config));
    let leads_back = |name: &str| back.iter().any(|config| config.name == name);
    for name in upstreams.leave_out(leads_back) {
        tracing::info!(upstream = name, "it is this server itself, and left out");
    }
    let sinks = project.sinks(&setup.data, variables).map_err(wrong(ProjectPart::Sinks))?;
    // Without a port we are on a pipe.
    let sinks = match setup.address.port() {
        0 => ConfiguredSinks::on_a_pipe(sinks),
        _ => ConfiguredSinks::all(sinks),
    };
    let configs = ahead;
    let sinks = Some(sinks);
    Ok(Backends { upstreams, configs, models, sinks, ourselves, policies })
}

/// The models that these configure; no one is talked to yet.
pub(crate) fn opened(configs: Vec<ModelConfig>) -> Result<Models, AssembleError> {
    let mut models = Models::default();
    let mut mistakes = Vec::new();
    for config in configs {
        match llms::open(&config) {
            Ok(llm) => {
                let price = llms::price::of(&config).map(|price| -> Price {
                    Arc::new(move |usage: &Usage| Some(llms::price::cost_micros(*usage, price)))
                });
                let (provider, provider_model) = provided(&config.kind);
                let timeout_ms = config.timeout_ms;
                let model = Model { llm, timeout_ms, price, provider, provider_model };
                models = models.with(config.name, model);
            }
            Err(found) => mistakes.extend(found),
        }
    }
    if mistakes.is_empty() { Ok(models) } else { Err(wrong(ProjectPart::Models)(mistakes)) }
}

/// Who provides a model, in the words of the GenAI conventions, and the name that it has there.
fn provided(kind: &ModelKind) -> (Option<Arc<str>>, Option<Arc<str>>) {
    let (provider, remote) = match kind {
        ModelKind::Rules { .. } => return (Some("waypost.rules".into()), None),
        ModelKind::OpenAi(remote) => ("openai", remote),
        ModelKind::Anthropic(remote) => ("anthropic", remote),
        ModelKind::Gemini(remote) => ("gcp.gemini", remote),
    };
    (Some(provider.into()), Some(remote.model.as_str().into()))
}
