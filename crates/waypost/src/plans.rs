//! Finds and checks plan files as the server does, without a server.

use crate::environment::Environment;
use crate::environment::locations::project_folder;
use crate::exit::{Failure, Result};
use crate::settings::Settings;
use crate::terminal::input;
use engine::catalog::schema::JsonSchemas;
use engine::system::clock::{SystemClock, SystemEntropy, TokioSpawn};
use engine::{PlanFile, ProjectFiles, SwitchedOff};
use kernel::definition::agent_reader::read_text;
use kernel::definition::plan::Plan;
use kernel::definition::plan::check::{KEPT_OUT, PlanScope};
use kernel::definition::plan::flow::load_text;
use kernel::definition::plan::mistake::Mistake;
use kernel::definition::plan::read::Origin;
use kernel::definition::plan::source::Node;
use kernel::limits::Limits;
use kernel::tool::call::ToolSpec;
use kernel::values::ids::{AgentName, PlanId, RealmId, ToolName};
use kernel::values::names::may_come;
use project::folder::{CONFIG_FILE, EntityFiles, Project, ProjectError, REALMS_FOLDER};
use project::realm::default_realm;
use project::upstream_entries::{Entry, Upstreams};
use server::RECORD_TOOL_PREFIX;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use upstreams::{
    Document, HOPS_MAX, MemoryVault, Remote, RemoteParts, Upstream, UpstreamConfig, UpstreamKind,
};

/// A project and those of its plans that the command line names.
#[derive(Debug)]
pub(crate) struct Selection {
    /// The project: the plans that are not named are around the ones that are.
    pub(crate) project: Project,
    /// The files of the named plans.
    named: Vec<String>,
    known: KnownNames,
}

/// A plan file and what is wrong with it.
#[derive(Debug)]
pub(crate) struct CheckedPlan {
    /// The file, as mistakes name it.
    pub(crate) file: String,
    /// The plan, if it can be used.
    pub(crate) plan: Option<Plan>,
    /// Errors and warnings.
    pub(crate) mistakes: Vec<Mistake>,
}

/// The folder of the project that these plans are part of, as the command line names them: one
/// folder, or files and ids; nothing is the present project. None for files that are in no project.
pub(crate) fn folder_of(paths: &[PathBuf]) -> Option<PathBuf> {
    match paths {
        [] => Some(project_folder(None)),
        [dir] if dir.is_dir() => {
            Some(project_of_domain(dir).unwrap_or_else(|| project_folder(Some(dir.as_path()))))
        }
        files => files.iter().find_map(|path| project_around(path)).or_else(|| {
            let has_id = files.iter().any(|path| !path.exists());
            let here = project_folder(None);
            (has_id && here.join("plans").is_dir()).then_some(here)
        }),
    }
}

/// A project that can be used, or what is wrong with its settings and files.
pub(crate) fn load_project(folder: &Path, environment: &Environment) -> Result<Project> {
    let config = Settings::load(Some(folder), environment)?.config;
    Project::load(folder, config).map_err(|error| match error {
        ProjectError::Mistakes(mistakes) => {
            Failure::usage(format!("the project in `{}` has mistakes", folder.display()))
                .lines(mistakes)
        }
        ProjectError::Unreadable { .. } => Failure::usage(error.to_string())
            .hint("`waypost init DIR` writes a project that runs as it is"),
    })
}

impl Selection {
    /// What the command line names: a folder, or files and ids; nothing is the present folder.
    pub(crate) fn read(paths: &[PathBuf], environment: &Environment) -> Result<Self> {
        let folder = folder_of(paths);
        match (paths, folder) {
            ([], Some(folder)) => Self::folder(&folder, None, environment),
            ([dir], Some(folder)) if dir.is_dir() => {
                let domain = project_of_domain(dir).map(|_| dir.as_path());
                Self::folder(&folder, domain, environment)
            }
            (files, folder) => Self::files(files, folder.as_deref(), environment),
        }
    }

    /// The plans of a project, or of one domain's folder in it.
    fn folder(folder: &Path, domain: Option<&Path>, environment: &Environment) -> Result<Self> {
        let project = shown_from_here(load_project(folder, environment)?, folder);
        let is_named = |plan: &&PlanFile| {
            let parent = Path::new(&plan.file).parent();
            domain.is_none_or(|domain| parent.is_some_and(|parent| is_same(parent, domain)))
        };
        let named = all_plans(&project).filter(is_named).map(|plan| plan.file.clone());
        let named: Vec<String> = named.collect();
        if named.is_empty() {
            let plans = domain.map_or_else(|| folder.join("plans"), Path::to_path_buf);
            let what = format!("there are no plans in `{}`", plans.display());
            return Err(Failure::usage(what)
                .hint("a plan is a file `plans/<domain>/<name>.yaml`; `waypost init` writes one"));
        }
        Ok(Self::new(project, named, environment))
    }

    fn files(paths: &[PathBuf], folder: Option<&Path>, environment: &Environment) -> Result<Self> {
        let mut project = match folder {
            Some(folder) => shown_from_here(load_project(folder, environment)?, folder),
            None => {
                Project { config: Settings::load(None, environment)?.config, ..Project::default() }
            }
        };
        let mut named = Vec::new();
        for path in paths {
            if path.is_dir() {
                return Err(Failure::usage("give either one folder or files"));
            }
            let is_id = |plan: &PlanFile| {
                !path.exists() && path.to_str() == Some(id_of(plan, &project).as_str())
            };
            let known = all_plans(&project)
                .find(|&plan| is_same(Path::new(&plan.file), path) || is_id(plan));
            match known.map(|plan| plan.file.clone()) {
                Some(file) => named.push(file),
                None => {
                    let plan = read_plan(path)?;
                    named.push(plan.file.clone());
                    project.plans.push(plan);
                }
            }
        }
        Ok(Self::new(project, named, environment))
    }

    fn new(project: Project, named: Vec<String>, environment: &Environment) -> Self {
        let known = KnownNames::of(&project, environment);
        Self { project, named, known }
    }

    /// The same, with the tools of upstreams whose OpenAPI documents are files: a tool that such a
    /// document does not have is not there. No server is reached.
    pub(crate) async fn with_documents(mut self, environment: &Environment) -> Self {
        let configs = self.known.documents(environment);
        let limits = Arc::new(self.project.config.limits.clone());
        let remote = Remote::start(configs, parts_of_command(limits));
        for upstream in remote.upstreams() {
            // One whose document cannot be read may have any tool.
            if upstream.check().await.is_ok() {
                let rules = &self.project.config.tools;
                self.known.learn(upstream, |name| rules.allows(name));
            }
        }
        remote.stop().await;
        self
    }

    /// Checks the named plans, each among the files of its realm.
    pub(crate) fn check(&self) -> Vec<CheckedPlan> {
        let mut all = self.check_shared();
        all.extend(self.in_realms().iter().flat_map(Self::check_shared));
        all
    }

    /// The same for each realm that has files of its own: these, among all files of that realm.
    fn in_realms(&self) -> Vec<Self> {
        let files = self.project.realm_files();
        let in_realm = |(realm, own): (&RealmId, &ProjectFiles)| {
            let ProjectFiles { agents, plans, pipelines, .. } = files.of(realm);
            let config = self.project.config.clone();
            let project = Project { config, plans, agents, pipelines, ..Project::default() };
            let is_named = |plan: &&PlanFile| self.named.contains(&plan.file);
            let named = own.plans.iter().filter(is_named).map(|plan| plan.file.clone()).collect();
            let awaited = self.known.upstreams.as_ref();
            let awaited = awaited.map(|upstreams| upstreams.prefixes_for(realm));
            let plans = ids_of(&project);
            let awaited = awaited.unwrap_or_default();
            let known = KnownNames { plans, awaited, ..self.known.clone() };
            Self { project, named, known }
        };
        files.own.iter().map(in_realm).collect()
    }

    /// Checks those of the named plans that are every realm's.
    pub(crate) fn check_shared(&self) -> Vec<CheckedPlan> {
        let KnownNames { tools, plans: ids, .. } = &self.known;
        let agents = self.agents();
        let schemas = JsonSchemas::default();
        let around = PlanScope {
            tools: &|name: &ToolName| tools.get(name).cloned(),
            withheld: &|name: &ToolName| self.known.kept_out(name.as_str()),
            awaited: &|name: &ToolName| self.known.awaits(name.as_str()),
            plans: &|id: &PlanId| ids.contains(id),
            agents: &|name: &AgentName| agents.contains(name),
            agent_names: &|| agents.clone(),
            tool_names: &|| tools.keys().cloned().collect(),
            schemas: &schemas,
        };
        let mut all = Vec::new();
        for (index, (file, id)) in self.project.plans.iter().zip(ids).enumerate() {
            if !self.named.contains(&file.file) {
                continue;
            }
            let mut checked = self.check_one(file, &around);
            if let Some(first) = ids[..index].iter().position(|other| other == id) {
                checked.mistakes.push(duplicate_id(id, file, &self.project.plans[first]));
                checked.plan = None;
            }
            all.push(checked);
        }
        all
    }

    /// The agents of the project's files. What is wrong with one is reported where they are served,
    /// and keeps no plan from a check that does not name it.
    fn agents(&self) -> Vec<AgentName> {
        let limits = &self.project.config.limits;
        let read = self.project.agents.iter().map(|file| read_text(&file.text, &file.file, limits));
        read.filter_map(|read| read.ok().map(|(agent, _)| agent.name)).collect()
    }

    fn check_one(&self, plan: &PlanFile, around: &PlanScope<'_>) -> CheckedPlan {
        let origin =
            Origin { file: Some(plan.file.clone()), default_id: Some(plan.default_id.clone()) };
        let file = plan.file.clone();
        match load_text(&plan.text, &origin, &self.project.config.limits, around) {
            Ok((plan, mistakes)) => CheckedPlan { file, plan: Some(plan), mistakes },
            Err(mistakes) => CheckedPlan { file, plan: None, mistakes },
        }
    }
}

/// What the plans and pipelines of a project may name, as far as it is known without a server.
#[derive(Debug, Clone)]
pub(crate) struct KnownNames {
    tools: BTreeMap<ToolName, Arc<ToolSpec>>,
    /// What the rules keep out is not there, here as in the server.
    withheld: BTreeMap<ToolName, Arc<ToolSpec>>,
    /// Nor is what the settings leave out; with what to set for it.
    switched_off: SwitchedOff,
    /// How the tools of upstreams begin: which there are is known only to a server.
    awaited: Vec<String>,
    /// The upstreams, where nothing is wrong with them.
    upstreams: Option<Upstreams>,
    plans: Vec<PlanId>,
}

impl KnownNames {
    /// What there is in this project.
    pub(crate) fn of(project: &Project, environment: &Environment) -> Self {
        let rules = &project.config.tools;
        let settings = project.built_in();
        let switched_off = tools::switched_off(&settings);
        let builtin = tools::builtin(settings);
        let specs = builtin.iter().map(|tool| (tool.spec().name.clone(), tool.spec().clone()));
        let (tools, withheld) = specs.partition(|(name, _)| rules.allows(name.as_str()));
        // What is wrong with upstreams is reported where they are used, and keeps nothing from a
        // check.
        let upstreams = project.upstreams(&|name: &str| environment.any(name)).ok();
        let awaited = upstreams.as_ref().map(|known| known.prefixes_for(&default_realm()));
        let mut awaited = awaited.unwrap_or_default();
        if project.entities != EntityFiles::default() {
            // The tools on records are made over a store, which no check opens.
            awaited.push(RECORD_TOOL_PREFIX.to_owned());
        }
        Self { tools, withheld, switched_off, awaited, upstreams, plans: ids_of(project) }
    }

    /// The upstreams whose OpenAPI documents are files, without those whose settings are wrong.
    fn documents(&self, environment: &Environment) -> Vec<UpstreamConfig> {
        let Some(upstreams) = &self.upstreams else { return Vec::new() };
        let variables = |name: &str| environment.any(name);
        let config = |entry: &Entry| upstreams.config(&entry.name, &variables)?.ok();
        let is_local = |config: &UpstreamConfig| {
            matches!(&config.kind, UpstreamKind::Rest(rest)
                if matches!(rest.document, Document::File(_)))
        };
        let entries = upstreams.entries().iter().filter(|entry| !entry.is_disabled());
        entries.filter_map(config).filter(is_local).collect()
    }

    /// Takes in what an upstream has: it is not awaited any more.
    fn learn(&mut self, upstream: &Upstream, allows: impl Fn(&str) -> bool) {
        let prefix = &upstream.config().prefix;
        let Some(place) = self.awaited.iter().position(|awaited| awaited == prefix) else {
            return;
        };
        self.awaited.remove(place);
        for tool in upstream.tools() {
            let spec = tool.spec().clone();
            let known =
                if allows(spec.name.as_str()) { &mut self.tools } else { &mut self.withheld };
            known.insert(spec.name.clone(), spec);
        }
    }

    /// Whether there is such a tool, or may be once other servers are heard.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        self.tools.contains_key(name) || self.awaits(name)
    }

    /// What can be set to have a tool that the settings keep out.
    pub(crate) fn kept_out(&self, name: &str) -> Option<&'static str> {
        let by_rules = || self.withheld.contains_key(name).then_some(KEPT_OUT);
        self.switched_off.get(name).copied().or_else(by_rules)
    }

    fn awaits(&self, name: &str) -> bool {
        self.awaited.iter().any(|beginning| may_come(name, beginning))
    }

    /// Whether there is such a plan.
    pub(crate) fn has_plan(&self, id: &PlanId) -> bool {
        self.plans.contains(id)
    }

    /// The tools, for "did you mean".
    pub(crate) fn tools(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(ToolName::as_str)
    }

    /// The plans, for the same.
    pub(crate) fn plans(&self) -> impl Iterator<Item = &str> {
        self.plans.iter().map(PlanId::as_str)
    }
}

/// What upstreams are made of that live as long as a command: without logins, and without anyone
/// who watches over their processes.
pub(crate) fn parts_of_command(limits: Arc<Limits>) -> RemoteParts {
    RemoteParts {
        spawn: Arc::new(TokioSpawn::new(tokio::runtime::Handle::current())),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        limits,
        hops_max: HOPS_MAX,
        supervisor: None,
        vault: Arc::new(MemoryVault::new(Arc::new(SystemClock))),
        login: None,
        scope: upstreams::Scope::default(),
    }
}

/// The ids that a project's plans will have, as far as one can tell before they are checked.
fn ids_of(project: &Project) -> Vec<PlanId> {
    project.plans.iter().map(|plan| id_of(plan, project)).collect()
}

fn id_of(plan: &PlanFile, project: &Project) -> PlanId {
    let node = Node::parse(&plan.text, &project.config.limits).ok();
    let given = node.and_then(|node| node.get("planId")?.text().map(PlanId::from));
    given.unwrap_or_else(|| plan.default_id.clone())
}

/// The plans of a project, those of single realms included.
fn all_plans(project: &Project) -> impl Iterator<Item = &PlanFile> {
    project.plans.iter().chain(project.of_realms.values().flat_map(|own| &own.plans))
}

/// Names the plans' files as they can be opened from where we are.
fn shown_from_here(mut project: Project, folder: &Path) -> Project {
    let of_realms = project.of_realms.values_mut().flat_map(|own| &mut own.plans);
    for plan in project.plans.iter_mut().chain(of_realms) {
        let path = folder.join(&plan.file);
        let path = path.strip_prefix(".").unwrap_or(&path);
        plan.file = path.display().to_string();
    }
    project
}

/// The project that this folder is a domain of; none if the folder is a project itself.
fn project_of_domain(dir: &Path) -> Option<PathBuf> {
    let is_project = dir.join("plans").is_dir();
    if is_project { None } else { project_around(&dir.join("any.yaml")) }
}

/// The project that a plan file is part of.
fn project_around(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    let folder = absolute.parent()?.parent()?;
    let around = (folder.file_name()? == "plans").then(|| folder.parent())??;
    // What is a realm's alone is in the folder of a project, unless that is one itself.
    let realms =
        around.parent().filter(|realms| realms.file_name() == Some(OsStr::new(REALMS_FOLDER)));
    let outer = realms.and_then(Path::parent).filter(|_| !around.join(CONFIG_FILE).is_file());
    let project = outer.unwrap_or(around);
    // The shorter way to say it, if the file was given from inside the project's folder.
    let here = std::env::current_dir().ok();
    Some(if here.as_deref() == Some(project) { PathBuf::from(".") } else { project.to_path_buf() })
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

fn read_plan(path: &Path) -> Result<PlanFile> {
    let file = path.display().to_string();
    let text = input::file(path)?;
    let default_id = Origin::of_file(&file).default_id.unwrap_or_else(|| PlanId::from("plan"));
    Ok(PlanFile { file, text, default_id })
}

fn duplicate_id(id: &PlanId, file: &PlanFile, first: &PlanFile) -> Mistake {
    let mut mistake = Mistake::error(format!("plan id `{id}` is taken by {}", first.file))
        .hint("give one of them another planId");
    mistake.file = Some(file.file.clone());
    mistake
}
