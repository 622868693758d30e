//! What a start would refuse, found without one: no data folder is taken, no port opened, no other
//! server reached, and nothing is written.

use super::backends::opened;
use super::error::AssembleError;
use crate::assemble::load::without_models;
use crate::assemble::pipelines::{misplaced, misplaced_own};
use crate::assemble::policies::{self, PolicyContext};
use crate::assemble::records::{TOOL_PREFIX, types_of};
use crate::secrets::secret::wrong_secret;
use a2a::{given_keys, wrong_card_keys};
use engine::{CheckContext, ProjectFiles, ToolSource, check_files};
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::realm::Realms;
use kernel::values::ids::RealmId;
use project::config::Config;
use project::folder::{Project, ProjectTypes, RealmFiles, readable};
use project::realm::default_realm;
use project::upstream_entries::{Upstreams, Variables};
use std::path::Path;
use std::sync::Arc;

/// A project that is to be checked.
pub struct ToCheck<'a> {
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
pub struct ProjectReport {
    /// The errors for which a start would be refused, and warnings.
    pub mistakes: Vec<Mistake>,
    /// How many plans, agents and so on the project has, each by the word for one of them.
    pub counts: Vec<(&'static str, usize)>,
}

impl ProjectReport {
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
pub fn check_project(setup: &ToCheck<'_>, config: Config) -> ProjectReport {
    let ToCheck { folder, data, variables, secret_key } = *setup;
    let (project, unread) = Project::load_partly(folder, config);
    // Names of what could not be read would be reported as missing.
    let is_whole = unread.is_empty();
    let mut checked = ProjectReport { mistakes: unread, counts: Vec::new() };
    let secret = wrong_secret(data, secret_key);
    checked.mistakes.extend(secret.map(|error| Mistake::error(error.to_string())));
    let card_keys = wrong_card_keys(data, &given_keys(&project));
    checked.mistakes.extend(card_keys.map(|error| Mistake::error(error.to_string())));
    let upstreams = checked.keep(project.upstreams(variables));
    if let Some(upstreams) = &upstreams {
        checked.keep(upstreams.configs(variables));
    }
    let warnings = project.config.warnings.iter().chain(&project.clients.warnings);
    checked.mistakes.extend(warnings.cloned());
    let types = checked.keep(types_of(&project));
    let types = types.map(|(types, warnings)| {
        checked.mistakes.extend(warnings);
        types
    });
    let fits = PolicyContext {
        built_in: project.built_in(),
        types: types.as_ref().map(ProjectTypes::known),
    };
    let policies = checked.keep(policies::read(project.policies.as_ref(), &fits));
    checked.mistakes.extend(policies.into_iter().flat_map(|(_, warnings)| warnings));
    let models = models(&project, variables, &mut checked);
    let sinks = checked.keep(project.sinks(data, variables));
    checked.counts = vec![
        ("plan", count(&project, |files| files.plans.len())),
        ("agent", count(&project, |files| files.agents.len())),
        ("pipeline", count(&project, |files| files.pipelines.len())),
        ("upstream", upstreams.as_ref().map_or(0, |upstreams| upstreams.entries().len())),
        ("model", models.as_ref().map_or(0, Vec::len)),
        ("type", types.as_ref().map_or(0, ProjectTypes::count)),
        ("sink", sinks.map_or(0, |sinks| sinks.len())),
    ];
    if is_whole {
        let has_types = types.is_none_or(|types| !types.is_empty());
        let around =
            Surroundings { upstreams: upstreams.as_ref(), models: models.as_deref(), has_types };
        files(project, around, &mut checked);
    }
    checked
}

/// The names of the models that can be used; nothing where one of them cannot.
fn models(
    project: &Project,
    variables: &Variables<'_>,
    checked: &mut ProjectReport,
) -> Option<Vec<String>> {
    let configs = checked.keep(project.models(variables))?;
    let names = configs.iter().map(|config| config.name.clone()).collect();
    checked.keep(opened(configs).map_err(AssembleError::into_mistakes))?;
    Some(names)
}

/// How many of something the project's files have, those of single realms included.
fn count(project: &Project, of: impl Fn(&ProjectFiles) -> usize) -> usize {
    let RealmFiles { all, own } = project.realm_files();
    of(&all) + own.values().map(of).sum::<usize>()
}

/// What plans and agents are checked beside; nothing of what is wrong.
struct Surroundings<'a> {
    upstreams: Option<&'a Upstreams>,
    models: Option<&'a [String]>,
    /// Whether there are types, or what is declared cannot be read.
    has_types: bool,
}

impl Surroundings<'_> {
    /// The tools that may be there in a realm beside those that are known.
    fn awaited(&self, realm: &RealmId) -> Vec<String> {
        // Where upstreams are wrong, any tool may be one of theirs.
        let all = || vec![String::new()];
        let mut names = self.upstreams.map_or_else(all, |upstreams| upstreams.prefixes_for(realm));
        // The tools on records are made over a store, which a check does not open.
        names.extend(self.has_types.then(|| TOOL_PREFIX.to_owned()));
        names
    }
}

/// Checks agents, plans and pipelines.
fn files(project: Project, beside: Surroundings<'_>, checked: &mut ProjectReport) {
    let models = beside.models;
    let files = project.realm_files();
    let built_in = project.built_in();
    let config = project.config;
    // Without models that can be used every agent and rule would seem to lack one.
    let idle = models.map(|models| without_models(&files, models, &config.limits));
    checked.mistakes.extend(idle.into_iter().flatten());
    let around = |realm: &RealmId| CheckContext {
        tools: vec![ToolSource::new("the built-in tools", tools::builtin(built_in.clone()))],
        rules: config.tools.clone(),
        switched_off: tools::switched_off(&built_in),
        awaited: beside.awaited(realm),
        limits: Arc::new(config.limits.clone()),
    };
    let usual = default_realm();
    let here = files.of(&usual);
    let found = checked.keep(check_files(&here, around(&usual)));
    checked.mistakes.extend(found.into_iter().flatten());
    checked.mistakes.extend(misplaced(&readable(&here.pipelines, &config.limits), models));
    checked.mistakes.extend(misplaced_own(&files, models, &config.limits));
    for realm in files.own.keys().filter(|realm| **realm != usual) {
        let found = check_files(&files.of(realm), around(realm));
        let is_own = |mistake: &Mistake| files.is_own(realm, mistake.file.as_deref());
        let found = found.unwrap_or_else(|wrong| wrong).into_iter().filter(is_own);
        checked.mistakes.extend(found);
    }
    let mut realms = Realms(config.realms);
    realms.0.entry(usual).or_default();
    checked.mistakes.extend(files.strangers(&realms));
}
