//! What a start would refuse, found without one: no data folder is taken, no port opened, no other
//! server reached, and nothing is written.

use super::behind::opened;
use super::error::AssembleError;
use crate::assemble::{pipelines, policies};
use crate::secrets::secret::wrong_secret;
use engine::{Around, ProjectFiles, ToolSource, check_files};
use kernel::definition::plan::mistake::Mistake;
use project::agents;
use project::config::Config;
use project::folder::Project;
use project::upstream_entries::{Upstreams, Variables};
use std::path::Path;
use std::sync::Arc;

/// A project that is to be checked.
pub struct ToCheck<'a> {
    /// Its folder.
    pub folder: &'a Path,
    /// The folder that would hold its data.
    pub data: &'a Path,
    /// The variables that its settings may name.
    pub variables: &'a Variables<'a>,
    /// `WAYPOST_SECRET_KEY`.
    pub secret_key: Option<&'a str>,
}

/// What a check found.
#[derive(Debug, Default)]
pub struct Checked {
    /// The errors for which a start would be refused, and warnings.
    pub mistakes: Vec<Mistake>,
    /// How many plans, agents and so on the project has, each by the word for one of them.
    pub counts: Vec<(&'static str, usize)>,
}

impl Checked {
    /// What was read; where it is wrong, its mistakes are kept.
    fn keep<T>(&mut self, read: Result<T, Vec<Mistake>>) -> Option<T> {
        match read {
            Ok(read) => Some(read),
            Err(found) => {
                self.mistakes.extend(found);
                None
            }
        }
    }
}

/// All that a start with these settings would refuse. What a data folder stores is not known here.
pub fn check_project(setup: &ToCheck<'_>, config: Config) -> Checked {
    let ToCheck { folder, data, variables, secret_key } = *setup;
    let (project, unread) = Project::load_partly(folder, config);
    // Names of what could not be read would be reported as missing.
    let is_whole = unread.is_empty();
    let mut checked = Checked { mistakes: unread, counts: Vec::new() };
    let secret = wrong_secret(data, secret_key);
    checked.mistakes.extend(secret.map(|error| Mistake::error(error.to_string())));
    let upstreams = checked.keep(project.upstreams(variables));
    if let Some(upstreams) = &upstreams {
        checked.keep(upstreams.configs(variables));
    }
    let warnings = project.config.warnings.iter().chain(&project.clients.warnings);
    checked.mistakes.extend(warnings.cloned());
    let policies = checked.keep(policies::read(project.policies.as_ref()));
    checked.mistakes.extend(policies.into_iter().flat_map(|(_, warnings)| warnings));
    let models = models(&project, variables, &mut checked);
    let sinks = checked.keep(project.sinks(data, variables));
    checked.counts = vec![
        ("plan", project.plans.len()),
        ("agent", project.agents.len()),
        ("pipeline", project.pipelines.len()),
        ("upstream", upstreams.as_ref().map_or(0, |upstreams| upstreams.entries().len())),
        ("model", models.as_ref().map_or(0, Vec::len)),
        ("sink", sinks.map_or(0, |sinks| sinks.len())),
    ];
    if is_whole {
        files(project, upstreams.as_ref(), models.as_deref(), &mut checked);
    }
    checked
}

/// The names of the models that can be used; nothing where one of them cannot.
fn models(
    project: &Project,
    variables: &Variables<'_>,
    checked: &mut Checked,
) -> Option<Vec<String>> {
    let configs = checked.keep(project.models(variables))?;
    let names = configs.iter().map(|config| config.name.clone()).collect();
    checked.keep(opened(configs).map_err(AssembleError::into_mistakes))?;
    Some(names)
}

/// Checks agents, plans and pipelines.
fn files(
    project: Project,
    upstreams: Option<&Upstreams>,
    models: Option<&[String]>,
    checked: &mut Checked,
) {
    let (readable, built_in) = (project.readable_pipelines(), project.built_in());
    let Project { config, plans, agents, pipelines, .. } = project;
    // Without models that can be used every agent would seem to lack one.
    let idle = models.map(|models| agents::without_models(&agents, models, &config.limits));
    checked.mistakes.extend(idle.into_iter().flatten());
    let switched_off = tools::switched_off(&built_in);
    let around = Around {
        tools: vec![ToolSource::new("the built-in tools", tools::builtin(built_in))],
        rules: config.tools,
        switched_off,
        // Where upstreams are wrong, any tool may be one of theirs.
        awaited: upstreams.map_or_else(|| vec![String::new()], Upstreams::prefixes),
        limits: Arc::new(config.limits),
    };
    let files = ProjectFiles { agents, plans, pipelines, rules: config.rules };
    let found = checked.keep(check_files(&files, around));
    checked.mistakes.extend(found.into_iter().flatten());
    checked.mistakes.extend(pipelines::misplaced(&readable, models));
}
