//! A project folder: `waypost.toml`, `principals.yaml`, `application.properties`, `.mcp.json`,
//! `plans/<domain>/<name>.{yaml,yml,json}`, `agents/<name>.{yaml,yml,json}`,
//! `pipelines/<name>.{yaml,yml,json}`, `entities/<Type>.{yaml,yml,json}` and
//! `policies/<name>.cedar`; `realms/<realm>/` has plans, agents, pipelines and types of one realm.
//! The demo is such a folder too, carried inside the binary.

mod single;
mod realms;
mod entities;
mod types;
mod demo;

use crate::config::Config;
use crate::entities::EntityFile;
use crate::event_sinks::{self, ResolvedSink};
use crate::models::{self, ModelEntry};
use crate::policies::{PolicyFiles, visible};
use crate::upstream_entries::{
    Ourselves, Upstreams, Variables, WrittenEntries, absolute, client_files,
};
use engine::{AgentFile, PipelineFile, PlanFile, ProjectFiles};
use kernel::definition::pipeline::Pipeline;
use kernel::definition::pipeline_reader;
use kernel::definition::plan::mistake::{CheckResult, Mistake};
use kernel::identity::principal::Principal;
use kernel::limits::Limits;
use kernel::values::ids::{PipelineName, PlanId, RealmId};
use llms::config::ModelConfig;
use realms::OwnFiles;
use single::{clients, policies, principals, properties};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tools::BuiltInSettings;

pub(crate) use demo::{ANALYST, ANALYST_RULES};
pub use demo::{
    DEMO_AGENTS, DEMO_ENTITIES, DEMO_PIPELINE_PLANS, DEMO_PIPELINES, DEMO_PLANS, DEMO_PROXY,
    DEMO_PROXY_SERVER, DEMO_RECORDS, DEMO_RULES, DEMO_SEEDS, DEMO_SETTINGS,
};
pub use entities::EntityFiles;
pub use realms::{REALMS_FOLDER, RealmFiles, unfit};
pub use single::{FilePrincipals, RightsFiles};
pub use types::ProjectTypes;

/// The settings' file in a project folder.
pub const CONFIG_FILE: &str = "waypost.toml";
/// The file in which clients, and we, find MCP servers. It is read, and never written.
pub const CLIENTS_FILE: &str = ".mcp.json";

/// The folder of types of records, in a project and in the folder of a realm.
pub const ENTITIES_FOLDER: &str = "entities";

/// What a project folder holds. Its plans, agents and pipelines are texts still: they are checked
/// together.
#[derive(Debug, Default)]
pub struct Project {
    /// The settings.
    pub config: Config,
    /// The plans, in the order of their paths.
    pub plans: Vec<PlanFile>,
    /// The agents, in the order of their paths.
    pub agents: Vec<AgentFile>,
    /// The pipelines, in the order of their paths, and then those that were named beside them.
    pub pipelines: Vec<PipelineFile>,
    /// The plans, agents and pipelines of single realms.
    pub of_realms: BTreeMap<RealmId, ProjectFiles>,
    /// The types of records, of all realms and of single ones.
    pub entities: EntityFiles,
    /// The principals of its file; none where there is no such file.
    pub principals: Option<Vec<Arc<Principal>>>,
    /// Its policies; none where it has no folder for them.
    pub policies: Option<PolicyFiles>,
    /// Texts that it has instead of files, by path: rules of models, and first records of types.
    pub texts: BTreeMap<String, String>,
    /// Its folder; empty for what is in none.
    pub folder: PathBuf,
    /// The servers that its `.mcp.json` lists.
    pub clients: client_files::ImportedServers,
    /// Whether it is the demo, which has its tools whatever the settings say.
    pub demo: bool,
}

/// Why a project folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// A file or folder cannot be read.
    #[error("cannot read `{}`: {why}; check its path and its rights", .path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        why: io::Error,
    },
    /// Something in it is wrong.
    #[error("{}", mistake_lines(.0))]
    Mistakes(Vec<Mistake>),
}

impl Project {
    /// The embedded demo.
    pub fn demo() -> Self {
        Self { demo: true, plans: embedded(&PLANS, DEMO_PLANS), ..Self::default() }
    }

    /// The same with these settings, with the agents and rules that belong to them, with the demo's
    /// pipelines and their plans, and with its records.
    pub fn demo_with(config: Config) -> Self {
        let text = |(file, text): &(&str, &str)| ((*file).to_owned(), (*text).to_owned());
        Self {
            config,
            plans: embedded(&PLANS, &[DEMO_PLANS, DEMO_PIPELINE_PLANS].concat()),
            agents: embedded(&AGENTS, DEMO_AGENTS),
            pipelines: embedded(&PIPELINES, DEMO_PIPELINES),
            entities: EntityFiles { all: demo_entities(), own: BTreeMap::new() },
            texts: DEMO_RULES.iter().chain(DEMO_SEEDS).map(text).collect(),
            ..Self::demo()
        }
    }

    /// The project in this folder, with these settings; without `plans` it has none.
    pub fn load(folder: &Path, mut config: Config) -> Result<Self, ProjectError> {
        properties(folder, &mut config)?;
        let policies = policies(folder)?;
        let (mut project, wrong) = Self::load_definitions(folder, config)?;
        if let Some(error) = wrong.into_values().next() {
            return Err(error);
        }
        project.entities = EntityFiles::load(folder, project.config.limits.plan_bytes_max)?;
        let (principals, warnings) = principals(folder, &project.config, policies.as_ref())?;
        project.config.warnings.extend(warnings);
        Ok(Self { principals, policies, clients: clients(folder)?, ..project })
    }

    /// The project as far as it can be read, and all that is wrong with its files.
    pub fn load_partly(folder: &Path, mut config: Config) -> (Self, Vec<Mistake>) {
        let loader = Loader::new(folder, config.limits.plan_bytes_max);
        let mut mistakes = Vec::new();
        let plans = or_mistakes(loader.load(&PLANS), &mut mistakes);
        let agents = or_mistakes(loader.load(&AGENTS), &mut mistakes);
        let pipelines = or_mistakes(loader.load(&PIPELINES), &mut mistakes);
        let of_realms = realms::load(folder, loader.bytes_max).and_then(OwnFiles::all);
        let of_realms = or_mistakes(of_realms, &mut mistakes);
        let entities = or_mistakes(EntityFiles::load(folder, loader.bytes_max), &mut mistakes);
        let policies = or_mistakes(policies(folder), &mut mistakes);
        or_mistakes(properties(folder, &mut config), &mut mistakes);
        let principals = principals(folder, &config, policies.as_ref());
        let (principals, warnings) = or_mistakes(principals, &mut mistakes);
        config.warnings.extend(warnings);
        let clients = or_mistakes(clients(folder), &mut mistakes);
        let folder = folder.to_owned();
        let read = Self { config, plans, agents, pipelines, policies, folder, ..Self::default() };
        (Self { of_realms, entities, principals, clients, ..read }, mistakes)
    }

    /// The project's plans, agents and pipelines alone, with these settings. Where the own files of
    /// a realm cannot be read, it has none here, and the error is beside the project.
    pub fn load_definitions(
        folder: &Path,
        config: Config,
    ) -> Result<(Self, BTreeMap<RealmId, ProjectError>), ProjectError> {
        if !folder.is_dir() {
            let why = io::Error::new(io::ErrorKind::NotFound, "there is no such folder");
            return Err(ProjectError::Unreadable { path: folder.to_owned(), why });
        }
        let loader = Loader::new(folder, config.limits.plan_bytes_max);
        let plans = loader.load(&PLANS)?;
        let agents = loader.load(&AGENTS)?;
        let pipelines = loader.load(&PIPELINES)?;
        let OwnFiles { read: of_realms, wrong } = realms::load(folder, loader.bytes_max)?;
        let folder = folder.to_owned();
        let read = Self { config, plans, agents, pipelines, of_realms, folder, ..Self::default() };
        Ok((read, wrong))
    }

    /// What is said of the built-in tools.
    pub fn built_in(&self) -> BuiltInSettings {
        let settings = &self.config.built_in;
        BuiltInSettings { demo: self.demo || settings.demo, ..settings.clone() }
    }

    /// Adds the pipeline of a file that may be anywhere, and gives the name of that file here. One
    /// that is there already is the same.
    pub fn add_pipeline(&mut self, path: &Path) -> Result<String, ProjectError> {
        let unreadable = |why| ProjectError::Unreadable { path: path.to_owned(), why };
        let real = path.canonicalize().map_err(unreadable)?;
        let is_real = |file: &PipelineFile| {
            self.folder.join(&file.file).canonicalize().is_ok_and(|known| known == real)
        };
        if let Some(known) = self.pipelines.iter().find(|file| is_real(file)) {
            return Ok(known.file.clone());
        }
        // Named as it was given, so that it can be found from where we are.
        let loader = Loader::new(Path::new(""), self.config.limits.plan_bytes_max);
        let pipeline = loader.read(&PIPELINES, path)?;
        let name = pipeline.file.clone();
        self.pipelines.push(pipeline);
        Ok(name)
    }

    /// The models that its settings, its pipelines and the environment name, with everything looked
    /// up.
    pub fn models(&self, variables: &Variables<'_>) -> Result<Vec<ModelConfig>, Vec<Mistake>> {
        self.configs(&self.config.models, &self.readable_pipelines(), variables)
    }

    /// Those of them that need no one outside: the rule-based ones.
    pub fn models_of_rules(&self) -> Result<Vec<ModelConfig>, Vec<Mistake>> {
        let is_rules = |entry: &&ModelEntry| entry.is_rules();
        let rules: Vec<ModelEntry> = self.config.models.iter().filter(is_rules).cloned().collect();
        let mut pipelines = self.readable_pipelines();
        pipelines.retain(|(_, pipeline)| models::is_alone(&pipeline.llm));
        self.configs(&rules, &pipelines, &|_| None)
    }

    fn configs(
        &self,
        entries: &[ModelEntry],
        pipelines: &[(String, Pipeline)],
        variables: &Variables<'_>,
    ) -> Result<Vec<ModelConfig>, Vec<Mistake>> {
        let around = models::ModelContext {
            folder: &self.folder,
            texts: &self.texts,
            variables,
            bytes_max: self.config.limits.plan_bytes_max,
        };
        let of_settings = models::configs(entries, &around);
        let of_pipelines = models::of_pipelines(pipelines, &around);
        match (of_settings, of_pipelines) {
            (Ok(mut configs), Ok(more)) => {
                configs.extend(more);
                Ok(configs)
            }
            (of_settings, of_pipelines) => {
                let mistakes = of_settings.err().into_iter().chain(of_pipelines.err());
                Err(mistakes.flatten().collect())
            }
        }
    }

    /// Its pipelines, each with its file. The catalog reports what cannot be read.
    pub fn readable_pipelines(&self) -> Vec<(String, Pipeline)> {
        readable(&self.pipelines, &self.config.limits)
    }

    /// Its types of records, for every realm, with warnings.
    pub fn types(&self) -> CheckResult<ProjectTypes> {
        ProjectTypes::read(&self.entities, &self.config.limits)
    }

    /// Its agents, plans and pipelines, for every realm.
    pub fn realm_files(&self) -> RealmFiles {
        let all = ProjectFiles {
            agents: self.agents.clone(),
            plans: self.plans.clone(),
            pipelines: self.pipelines.clone(),
            rules: self.config.rules.clone(),
            realm_rules: self.config.realm_rules.clone(),
            rule_places: self.config.rule_places.clone(),
        };
        RealmFiles { all, own: self.of_realms.clone() }
    }

    /// The sinks that its settings name, with everything looked up; their files are in this data
    /// folder unless they say otherwise.
    pub fn sinks(
        &self,
        data: &Path,
        variables: &Variables<'_>,
    ) -> Result<Vec<ResolvedSink>, Vec<Mistake>> {
        let data = absolute(data);
        let folder = absolute(&self.folder);
        let around = event_sinks::SinkContext { data: &data, folder: &folder, variables };
        event_sinks::sendings(&self.config.sinks, &around)
    }

    /// The upstreams that its settings, its `.mcp.json` and the environment name together.
    pub fn upstreams(&self, variables: &Variables<'_>) -> Result<Upstreams, Vec<Mistake>> {
        let written =
            WrittenEntries { ours: &self.config.upstreams, theirs: &self.clients.entries };
        Upstreams::combine(&self.folder, written, variables)
    }

    /// How its server is reached that listens there.
    pub fn ourselves(&self, address: SocketAddr) -> Ourselves {
        let has_folder = !self.folder.as_os_str().is_empty();
        let server = &self.config.server;
        Ourselves {
            address,
            port: server.port,
            hosts: server.names(),
            folder: has_folder.then(|| absolute(&self.folder)),
        }
    }
}

/// These pipelines as far as they can be read, each with its file.
pub fn readable(files: &[PipelineFile], limits: &Limits) -> Vec<(String, Pipeline)> {
    let read = |file: &PipelineFile| {
        let name = file.default_name.as_str();
        let read = pipeline_reader::read_text(&file.text, &file.file, name, limits);
        read.ok().map(|(pipeline, _)| (file.file.clone(), pipeline))
    };
    files.iter().filter_map(read).collect()
}

/// What was read; where it is wrong nothing, and its mistakes are kept.
fn or_mistakes<T: Default>(read: Result<T, ProjectError>, mistakes: &mut Vec<Mistake>) -> T {
    read.unwrap_or_else(|error| {
        mistakes.extend(match error {
            ProjectError::Mistakes(found) => found,
            ProjectError::Unreadable { .. } => vec![Mistake::error(error.to_string())],
        });
        T::default()
    })
}

/// One kind of definitions, all of them in one folder of a project.
struct Kind<T> {
    folder: &'static str,
    word: &'static str,
    /// Whether the folder has one more for each domain.
    by_domain: bool,
    /// What to do about one that is too large.
    too_large: &'static str,
    /// What the name of a file and its text are.
    made: fn(String, String) -> T,
}

const PLANS: Kind<PlanFile> = Kind {
    folder: "plans",
    word: "plan",
    by_domain: true,
    too_large: "split it into plans that call each other, or raise `plan_bytes_max`",
    made: |file, text| PlanFile { default_id: default_id(&file), file, text },
};

const AGENTS: Kind<AgentFile> = Kind {
    folder: "agents",
    word: "agent",
    by_domain: false,
    too_large: "say it in fewer words",
    made: |file, text| AgentFile { file, text },
};

const PIPELINES: Kind<PipelineFile> = Kind {
    folder: "pipelines",
    word: "pipeline",
    by_domain: false,
    too_large: "say it in fewer words",
    made: |file, text| PipelineFile { default_name: PipelineName::from(stem(&file)), file, text },
};

const ENTITIES: Kind<EntityFile> = Kind {
    folder: ENTITIES_FOLDER,
    word: "type",
    by_domain: false,
    too_large: "put fields that belong together into a type of their own",
    made: |file, text| EntityFile { name: stem(&file), file, text },
};

/// What the binary carries of a kind, by path.
fn embedded<T>(kind: &Kind<T>, files: &[(&str, &str)]) -> Vec<T> {
    files.iter().map(|(file, text)| (kind.made)((*file).to_owned(), (*text).to_owned())).collect()
}

/// The files of the demo's types.
pub(crate) fn demo_entities() -> Vec<EntityFile> {
    embedded(&ENTITIES, DEMO_ENTITIES)
}

/// Walks `plans/<domain>/`, `agents/`, `pipelines/` and `entities/`.
struct Loader<'a> {
    folder: &'a Path,
    /// Where in the project's folder these are.
    below: &'a Path,
    bytes_max: usize,
}

impl<'a> Loader<'a> {
    /// Of what is every realm's.
    fn new(folder: &'a Path, bytes_max: usize) -> Self {
        Self { folder, below: Path::new(""), bytes_max }
    }

    /// All of this kind; none where there is no folder for them.
    fn load<T>(&self, kind: &Kind<T>) -> Result<Vec<T>, ProjectError> {
        let root = self.folder.join(self.below).join(kind.folder);
        if !root.is_dir() {
            return Ok(Vec::new());
        }
        let mut folders = vec![root];
        if kind.by_domain {
            let (domains, files) =
                children(&folders[0])?.into_iter().partition(|path| path.is_dir());
            self.refuse_lost(kind, files, "move it to `plans/<domain>/`")?;
            folders = domains;
        }
        let hint = match kind.by_domain {
            true => "domains have no folders of their own; move it one up".to_owned(),
            false => format!("move it to `{}/`", kind.folder),
        };
        let mut files = Vec::new();
        for folder in &folders {
            for path in children(folder)? {
                if path.is_dir() {
                    self.refuse_lost(kind, children(&path)?, &hint)?;
                } else if is_plan(&path) {
                    files.push(self.read(kind, &path)?);
                }
            }
        }
        Ok(files)
    }

    /// A file where we do not look for one would be missed in silence.
    fn refuse_lost<T>(
        &self,
        kind: &Kind<T>,
        paths: Vec<PathBuf>,
        hint: &str,
    ) -> Result<(), ProjectError> {
        let Some(lost) = paths.iter().find(|path| is_plan(path)) else { return Ok(()) };
        let place =
            if kind.by_domain { "not in a domain's folder" } else { "in a folder of its own" };
        Err(mistake(self.name(lost), format!("the {} is {place}", kind.word), hint))
    }

    fn read<T>(&self, kind: &Kind<T>, path: &Path) -> Result<T, ProjectError> {
        let unreadable = |why| ProjectError::Unreadable { path: path.to_owned(), why };
        let file = self.name(path);
        let word = kind.word;
        let bytes = fs::metadata(path).map_err(unreadable)?.len();
        if bytes > self.bytes_max as u64 {
            let message = format!("the {word} has {bytes} bytes, more than {}", self.bytes_max);
            return Err(mistake(file, message, kind.too_large));
        }
        match fs::read_to_string(path) {
            Ok(text) => Ok((kind.made)(file, text)),
            Err(why) if why.kind() == io::ErrorKind::InvalidData => {
                let message = format!("the {word} is no text: it is not in UTF-8");
                Err(mistake(file, message, "save it in UTF-8, or move it elsewhere"))
            }
            Err(why) => Err(unreadable(why)),
        }
    }

    /// The path below the project folder, with forward slashes; as it is where there is no folder.
    fn name(&self, path: &Path) -> String {
        if self.folder.as_os_str().is_empty() {
            return path.display().to_string();
        }
        let below = path.strip_prefix(self.folder).unwrap_or(path);
        let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
        parts.join("/")
    }
}

/// What a folder holds, in order of name, hidden files left out.
fn children(folder: &Path) -> Result<Vec<PathBuf>, ProjectError> {
    let unreadable = |why| ProjectError::Unreadable { path: folder.to_owned(), why };
    visible(folder).map_err(unreadable)
}

/// Whether a file can hold a plan, by its name.
pub fn is_plan(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("yaml" | "yml" | "json"))
}

/// `<domain>/<stem without .plan>` of `plans/<domain>/<file>`, also in the folder of a realm.
fn default_id(file: &str) -> PlanId {
    let in_realms = file.strip_prefix(REALMS_FOLDER).and_then(|rest| rest.strip_prefix('/'));
    let own = in_realms.and_then(|rest| rest.split_once('/')).map_or(file, |(_, own)| own);
    let below = own.strip_prefix("plans/").unwrap_or(own);
    let stem = below.rsplit_once('.').map_or(below, |(stem, _)| stem);
    PlanId::from(stem.strip_suffix(".plan").unwrap_or(stem))
}

/// The name of a file without what says how it is written.
fn stem(file: &str) -> String {
    let stem = Path::new(file).file_stem();
    stem.map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

fn mistake(file: String, message: String, hint: &str) -> ProjectError {
    let mut mistake = Mistake::error(message).hint(hint);
    mistake.file = Some(file);
    ProjectError::Mistakes(vec![mistake])
}

/// Mistakes, one line each.
pub fn mistake_lines(mistakes: &[Mistake]) -> String {
    let lines: Vec<String> = mistakes.iter().map(Mistake::to_string).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests;
