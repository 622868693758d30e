//! Polls a project's files while they are served, and has them read again when they changed and
//! are quiet: who may do what always, plans and the like where that is wanted. What is wrong is
//! logged with its place, and changes nothing.

mod snapshot;
mod file_group;

use crate::assemble::Assembled;
use crate::assemble::reload::{Outcome, OwnMistakes, ProjectSnapshot, Reload};
use crate::assemble::rights::{Rights, RightsRead, RightsReload};
use crate::assemble::types_reload::TypesReload;
use edge::counters::{FilesPart, Reloads};
use edge::gateway::{Gateway, Lookup, UpstreamChanges};
use file_group::{FileGroup, ReloadReason, listed};
use futures::future::{Either, select};
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::principal::PRINCIPALS_FILE;
use kernel::values::ids::Millis;
use project::config::Config;
use project::folder::{
    CLIENTS_FILE, CONFIG_FILE, ENTITIES_FOLDER, EntityFiles, Project, ProjectError, REALMS_FOLDER,
    RightsFiles,
};
use project::policies::POLICIES_FOLDER;
use project::realms::PROPERTIES_FILE;
use project::upstream_entries::Entry;
use snapshot::{FileSnapshot, gather, named};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use upstreams::UpstreamConfig;

/// How long to wait before the next poll.
const POLL_MS: u64 = 500;
/// How deep below the watched folders files are searched for.
const DEPTH_MAX: usize = 3;
/// The same below the folder of realms, each of which has such folders.
const REALMS_DEPTH_MAX: usize = DEPTH_MAX + 2;

/// Where a project's files are. Rules and pipelines that are elsewhere are known by their names.
const FOLDERS: [&str; 5] = ["plans", "agents", "pipelines", "rules", ENTITIES_FOLDER];
/// Settings. Of them only the servers behind this one are taken while it runs.
const SETTINGS: [&str; 3] = [CONFIG_FILE, CLIENTS_FILE, PROPERTIES_FILE];

/// A project that is to be watched.
pub struct Watch {
    source: Source,
    served: ProjectSnapshot,
    rights: Rights,
    entities: EntityFiles,
    /// The settings as they were read.
    settings: FileSnapshot,
    config: Option<ConfigAgain>,
    of: WatchScope,
}

/// What of a project is taken while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchScope {
    /// All that can be.
    Everything,
    /// Who may do what, and the servers that its settings name.
    RightsAndServers,
}

/// Reads all settings of a project once more; the error says what is wrong with them.
pub type ConfigReader = Box<dyn Fn() -> Result<Config, String> + Send>;

/// The settings, which can be read again.
struct ConfigAgain {
    reader: ConfigReader,
    /// What they said last.
    last: Config,
}

/// How a project is read again. Its settings hold until a restart, but for the servers behind it.
struct Source {
    folder: PathBuf,
    config: Config,
    /// Pipelines that the command line names.
    pipelines: Vec<PathBuf>,
    variables: Lookup,
}

/// A project that is watched, for as long as this lives.
pub struct WatchGuard {
    _ends: oneshot::Sender<()>,
}

impl Watch {
    /// For this project as it is about to be served, with the pipelines that the command line
    /// names; `variables` are those of its server.
    pub fn new(project: &Project, pipelines: Vec<PathBuf>, variables: Lookup) -> Self {
        // Its server reports what cannot be read now.
        let served = ProjectSnapshot::of(project, variables.as_ref()).unwrap_or_default();
        let rights = Rights::of(project);
        let folder = project.folder.clone();
        let config = project.config.clone();
        let paths = SETTINGS.iter().map(|file| folder.join(file)).collect();
        let settings = FileSnapshot::at(&paths, &FileSnapshot::default(), Millis::default());
        let source = Source { folder, config, pipelines, variables };
        let entities = project.entities.clone();
        let of = WatchScope::Everything;
        Self { source, served, rights, entities, settings, config: None, of }
    }

    /// The same, where also the settings are read again by this.
    #[must_use]
    pub fn with_settings(self, reader: ConfigReader) -> Self {
        // What is wrong with them now keeps the server from starting.
        let config = reader().ok().map(|last| ConfigAgain { reader, last });
        Self { config, ..self }
    }

    /// The same, where plans, agents, pipelines and rules stay as they are: only policies,
    /// principals and the servers that the settings name are taken.
    #[must_use]
    pub fn without_definitions(self) -> Self {
        Self { of: WatchScope::RightsAndServers, ..self }
    }

    /// Begins to poll. Files are read on a thread of their own: no request waits for a disk.
    pub fn begin(self, assembled: &Assembled) -> WatchGuard {
        let clock = assembled.engine.clock().clone();
        let keeper = &assembled.server.realms;
        let policies = assembled.server.policies.clone();
        let engine = assembled.engine.clone();
        let identity = keeper.identity.clone();
        // Without tools on records nobody could use a type.
        let has_tools = assembled.server.records.is_some();
        let records = assembled.records.clone().filter(|_| has_tools);
        let mut watcher = Watcher {
            source: self.source,
            reload: Reload::new(engine.clone(), keeper, self.served),
            rights_reload: RightsReload::new(engine, identity, policies, self.rights),
            last: FileSnapshot::default(),
            settings: self.settings,
            types_reload: TypesReload::new(records, self.entities),
            rights: FileGroup::default(),
            types: FileGroup::default(),
            types_are_due: None,
            files: FileGroup::default(),
            reloads: assembled.server.reloads.clone(),
            config: self.config,
            gateway: assembled.server.gateway.clone(),
            upstreams_are_due: false,
            of: self.of,
        };
        let (polls, mut due) = mpsc::channel::<Millis>(1);
        assembled.spawn.thread(
            "watch",
            Box::pin(async move {
                while let Some(now) = due.recv().await {
                    watcher.poll(now);
                    watcher.take_types().await;
                    watcher.take_upstreams().await;
                    watcher.rights_reload.record().await;
                }
            }),
        );
        let (ends, mut ended) = oneshot::channel::<()>();
        assembled.spawn.task(
            "watch",
            Box::pin(async move {
                loop {
                    let pause = clock.sleep_until(clock.now().plus_ms(POLL_MS));
                    if let Either::Right(_) = select(pause, &mut ended).await {
                        return;
                    }
                    if polls.send(clock.now()).await.is_err() {
                        return;
                    }
                }
            }),
        );
        WatchGuard { _ends: ends }
    }
}

impl Source {
    /// What the files say now of plans, agents and pipelines, and why the own files of realms
    /// cannot be read.
    fn read(&self) -> Result<(ProjectSnapshot, OwnMistakes), Vec<Mistake>> {
        let told = |error| mistakes_of(error, &self.folder);
        let config = self.config.clone();
        let read = Project::load_definitions(&self.folder, config).map_err(told)?;
        let (mut project, wrong) = read;
        for path in &self.pipelines {
            project.add_pipeline(path).map_err(told)?;
        }
        let parts = ProjectSnapshot::of(&project, self.variables.as_ref())?;
        Ok((parts, wrong.into_iter().map(|(realm, error)| (realm, told(error))).collect()))
    }

    /// The project with what the files say now of types, and nothing else.
    fn read_types(&self) -> Result<Project, Vec<Mistake>> {
        let bytes_max = self.config.limits.plan_bytes_max;
        let told = |error| mistakes_of(error, &self.folder);
        let entities = EntityFiles::load(&self.folder, bytes_max).map_err(told)?;
        let config = self.config.clone();
        let folder = self.folder.clone();
        Ok(Project { config, entities, folder, ..Project::default() })
    }

    /// What they say now of who may do what.
    fn read_rights(&self) -> RightsRead {
        let told = |error| mistakes_of(error, &self.folder);
        let RightsFiles { policies, principals } = RightsFiles::load(&self.folder, &self.config);
        RightsRead { policies: policies.map_err(told), principals: principals.map_err(told) }
    }
}

/// Polls the files and has what changed taken.
struct Watcher {
    source: Source,
    reload: Reload,
    rights_reload: RightsReload,
    types_reload: TypesReload,
    /// What the last poll saw.
    last: FileSnapshot,
    /// The settings as they were reported last.
    settings: FileSnapshot,
    /// Policies and principals.
    rights: FileGroup,
    /// Types of records, where they are taken.
    types: FileGroup,
    /// Why the files of types are to be read, if they are.
    types_are_due: Option<ReloadReason>,
    /// All other files, where they are taken.
    files: FileGroup,
    /// Who counts what became of them.
    reloads: Arc<Reloads>,
    config: Option<ConfigAgain>,
    gateway: Arc<Gateway>,
    /// Whether the settings name other servers since they were taken.
    upstreams_are_due: bool,
    of: WatchScope,
}

impl Watcher {
    fn poll(&mut self, now: Millis) {
        let snapshot = FileSnapshot::at(&self.watched(), &self.last, now);
        self.last = snapshot.clone();
        let folder = &self.source.folder;
        let (settings, others) = snapshot.split(|path| is_settings(path, folder));
        let (rights, others) = others.split(|path| is_rights(path, folder));
        let (types, files) = others.split(|path| is_type(path, folder));
        self.tell_settings(settings);
        if let Some(due) = self.rights.due(rights) {
            let outcome = self.rights_reload.take(self.source.read_rights());
            self.rights.tell(outcome, due, &self.reloads);
        }
        if self.of == WatchScope::Everything {
            self.types_are_due = self.types.due(types);
        }
        if self.of == WatchScope::Everything
            && let Some(due) = self.files.due(files)
        {
            let outcome = match self.source.read() {
                Ok((parts, unread)) => self.reload.take(parts, unread),
                Err(wrong) => {
                    Outcome { refused: vec![(FilesPart::Files, wrong)], ..Outcome::default() }
                }
            };
            self.files.tell(outcome, due, &self.reloads);
        }
    }

    /// Takes the types where their files changed, and counts which files are not served.
    async fn take_types(&mut self) {
        if let Some(due) = self.types_are_due.take() {
            let taken = match self.source.read_types() {
                Ok(project) => {
                    let realms = self.reload.realms();
                    self.types_reload.take(&project, &realms, &mut self.rights_reload).await
                }
                Err(wrong) => Err(wrong),
            };
            let mut outcome = Outcome::default();
            outcome.add(FilesPart::Types, taken);
            self.types.tell(outcome, due, &self.reloads);
        }
        let wrong = self.rights.wrong().chain(self.types.wrong()).chain(self.files.wrong());
        self.reloads.set_unserved(wrong.cloned().collect());
    }

    /// All files that are checked, those that are not there included.
    fn watched(&self) -> BTreeSet<PathBuf> {
        let folder = &self.source.folder;
        let mut paths = BTreeSet::new();
        paths.extend(SETTINGS.iter().map(|file| folder.join(file)));
        paths.insert(folder.join(PRINCIPALS_FILE));
        gather(&folder.join(POLICIES_FOLDER), DEPTH_MAX, &mut paths);
        if self.of == WatchScope::RightsAndServers {
            return paths;
        }
        for definitions in FOLDERS {
            gather(&folder.join(definitions), DEPTH_MAX, &mut paths);
        }
        gather(&folder.join(REALMS_FOLDER), REALMS_DEPTH_MAX, &mut paths);
        paths.extend(self.reload.taken().rules().iter().map(|file| folder.join(file)));
        paths.extend(self.source.pipelines.iter().cloned());
        paths
    }

    fn tell_settings(&mut self, now: FileSnapshot) {
        if self.settings.same(&now) {
            return;
        }
        for file in now.names_beside(&self.settings, &self.source.folder) {
            let is_taken = match file.as_str() {
                CLIENTS_FILE => true,
                CONFIG_FILE => self.read_config(),
                _ => false,
            };
            self.upstreams_are_due |= file == CLIENTS_FILE;
            if !is_taken {
                tracing::warn!("{file} changed: restart to take it");
            }
        }
        self.settings = now;
    }

    /// Reads the settings again for the servers that they name; whether nothing else in them
    /// changed.
    fn read_config(&mut self) -> bool {
        let Some(ConfigAgain { reader, last }) = &mut self.config else { return false };
        let config = match reader() {
            Ok(config) => config,
            Err(why) => {
                tracing::error!("{why}");
                return false;
            }
        };
        let upstreams = config.upstreams.clone();
        let before = std::mem::replace(last, config);
        self.upstreams_are_due |= before.upstreams != upstreams;
        let is_all = Config { upstreams: upstreams.clone(), ..before } == *last;
        self.source.config.upstreams = upstreams;
        is_all
    }

    /// Takes the servers that the settings name now, where these changed.
    async fn take_upstreams(&mut self) {
        if !std::mem::take(&mut self.upstreams_are_due) {
            return;
        }
        let (entries, configs) = match self.upstreams() {
            Ok(found) => found,
            Err(mistakes) => {
                for mistake in mistakes {
                    tracing::error!("{mistake}");
                }
                tracing::error!("the servers behind this one stay as they were");
                return;
            }
        };
        let gateway = self.gateway.clone();
        let taking = async move { gateway.take_configured(&entries, configs).await };
        // Nothing comes where the server is ending.
        let taken = self.gateway.to_the_end(taking).await.unwrap_or_default();
        let UpstreamChanges { changed, warnings } = taken;
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        if !changed.is_empty() {
            tracing::info!("reloaded: the servers behind this one: {}", listed(&changed));
        }
    }

    /// The servers that the settings and `.mcp.json` name, with what to connect to.
    fn upstreams(&self) -> Result<(Vec<Entry>, Vec<UpstreamConfig>), Vec<Mistake>> {
        let Source { folder, config, variables, .. } = &self.source;
        let (project, mistakes) = Project::load_partly(folder, config.clone());
        let is_of_clients = |mistake: &Mistake| mistake.file.as_deref() == Some(CLIENTS_FILE);
        let wrong: Vec<Mistake> = mistakes.into_iter().filter(is_of_clients).collect();
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let upstreams = project.upstreams(variables.as_ref())?;
        let configs = upstreams.configs(variables.as_ref())?;
        Ok((upstreams.entries().to_vec(), configs))
    }
}

/// Whether a file holds settings.
fn is_settings(path: &Path, folder: &Path) -> bool {
    SETTINGS.iter().any(|file| folder.join(file) == path)
}

/// Whether a file says who may do what.
fn is_rights(path: &Path, folder: &Path) -> bool {
    path == folder.join(PRINCIPALS_FILE) || path.starts_with(folder.join(POLICIES_FOLDER))
}

/// Whether a file declares a type, of all realms or of one.
fn is_type(path: &Path, folder: &Path) -> bool {
    let Ok(below) = path.strip_prefix(folder) else { return false };
    let mut names = below.iter().filter_map(|name| name.to_str());
    match names.next() {
        Some(ENTITIES_FOLDER) => true,
        Some(REALMS_FOLDER) => names.nth(1) == Some(ENTITIES_FOLDER),
        _ => false,
    }
}

/// What is wrong, with files as they are named in this folder.
fn mistakes_of(error: ProjectError, folder: &Path) -> Vec<Mistake> {
    match error {
        ProjectError::Mistakes(mistakes) => mistakes,
        ProjectError::Unreadable { path, why } => {
            let file = Some(named(&path, folder));
            let mistake = Mistake::error(format!("it cannot be read: {why}"));
            vec![Mistake { file, ..mistake.hint("check its path and its rights") }]
        }
    }
}

#[cfg(test)]
mod tests;
