//! The upstreams of a project: from the running server, else from the project's files.

use crate::context::Context;
use crate::environment::Environment;
use crate::exit::{Exit, Failure, Result};
use crate::plans::load_project;
use crate::settings::Settings;
use kernel::definition::plan::mistake::{Mistake, meant};
use project::folder::Project;
use project::upstream_entries::{Entry, Upstreams};
use upstreams::UpstreamConfig;

/// How the fault is called of a server that does not know us: it wants a login that cannot be had
/// here, or does not take the one that the settings give.
pub(super) const UNAUTHORIZED: &str = "UpstreamUnauthorized";

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

/// The upstream of this name, ready to be connected to.
pub(super) fn named<'a>(
    name: &str,
    upstreams: &'a Upstreams,
    environment: &Environment,
) -> Result<(&'a Entry, UpstreamConfig)> {
    let known = upstreams.entries().iter().find(|entry| entry.name == name);
    let (Some(entry), Some(config)) = (known, upstreams.config(name, &lookup(environment))) else {
        return Err(unknown(name, upstreams.entries()));
    };
    Ok((entry, config.map_err(|mistake| mistaken(&[mistake]))?))
}

/// No upstream has this name.
pub(super) fn unknown(name: &str, entries: &[Entry]) -> Failure {
    let names = entries.iter().map(|entry| entry.name.as_str());
    let hint = meant(name, names).unwrap_or_else(|| "`waypost mcp ls` lists them".to_owned());
    Failure::usage(format!("there is no upstream `{name}`")).hint(hint)
}

/// Looks variables up.
pub(super) fn lookup(environment: &Environment) -> impl Fn(&str) -> Option<String> + '_ {
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
