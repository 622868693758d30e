//! The upstreams of a project: whom to ask for them, and what its files say where no one answers.

use crate::context::Context;
use crate::environment::Environment;
use crate::exit::{Exit, Failure, Result};
use crate::plans::load_project;
use crate::settings::Settings;
use kernel::definition::plan::mistake::Mistake;
use project::folder::Project;
use project::upstream_entries::Upstreams;

/// The project that the context names, and the upstreams that its files and variables name.
pub(super) fn of_project(context: &Context) -> Result<(Project, Upstreams)> {
    let environment = &context.environment;
    let project = match &context.project {
        Some(folder) => load_project(folder, environment)?,
        None => Project { config: Settings::load(None, environment)?.config, ..Project::default() },
    };
    let upstreams = project.upstreams(&lookup(environment)).map_err(|found| mistaken(&found))?;
    Ok((project, upstreams))
}

/// Looks variables up.
pub(in crate::commands) fn lookup(
    environment: &Environment,
) -> impl Fn(&str) -> Option<String> + '_ {
    move |name: &str| environment.any(name)
}

/// What is wrong with the upstreams.
pub(super) fn mistaken(mistakes: &[Mistake]) -> Failure {
    Failure::new(Exit::Usage, "invalid_upstreams", "there are mistakes in the upstreams")
        .lines(mistakes)
}

/// Whether no server runs, and no one named one: then the project's files are asked.
pub(super) fn is_nobody_there(context: &Context, failure: &Failure) -> bool {
    failure.exit == Exit::Unreachable && !context.has_named_server()
}
