//! Looks at a project's files while they are served, and has them read again when they changed and
//! are quiet. A file is known by its name and its content; length and time only say when it has to
//! be read. What is wrong is logged with its place, and changes nothing.

use crate::assemble::Assembled;
use crate::assemble::reload::{Parts, Reload};
use crate::counted::Reloads;
use crate::gateway::{Gateway, Lookup, TakenUpstreams};
use futures::future::{Either, select};
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::principal::PRINCIPALS_FILE;
use kernel::values::ids::{ContentHash, Millis};
use project::config::Config;
use project::folder::{CLIENTS_FILE, CONFIG_FILE, Project, ProjectError, REALMS_FOLDER, is_plan};
use project::policies::{POLICIES_FOLDER, is_policy};
use project::realms::PROPERTIES_FILE;
use project::upstream_entries::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot};
use upstreams::UpstreamConfig;

/// How long to wait before the next look.
const LOOK_MS: u64 = 500;
/// A file that changed so lately may change again within the same tick of the system's clock, so
/// its time says nothing yet.
const FRESH_MS: i64 = 2_000;
/// How deep below the watched folders files are searched for.
const DEPTH_MAX: usize = 3;
/// The same below the folder of realms, each of which has such folders.
const REALMS_DEPTH_MAX: usize = DEPTH_MAX + 2;
/// What is wrong is checked again after so many looks: it may be mended where no one looks, such
/// as at another server whose tools are wanted.
const AGAIN_LOOKS: u32 = 8;
/// So many files are named in a log line.
const NAMES_MAX: usize = 8;

/// Where a project's files are. Rules and pipelines that are elsewhere are known by their names.
const FOLDERS: [&str; 5] = ["plans", "agents", "pipelines", "rules", POLICIES_FOLDER];
/// Settings. Of them only the servers behind this one are taken while it runs.
const SETTINGS: [&str; 3] = [CONFIG_FILE, CLIENTS_FILE, PROPERTIES_FILE];

/// A project that is to be watched.
pub struct Watch {
    source: Source,
    served: Parts,
    /// The settings as they were read.
    settings: Look,
    config: Option<ConfigAgain>,
    of: Watched,
}

/// What of a project is taken while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watched {
    /// All that can be.
    Everything,
    /// The servers that its settings name.
    Servers,
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
pub struct Watching {
    _ends: oneshot::Sender<()>,
}

impl Watch {
    /// For this project as it is about to be served, with the pipelines that the command line
    /// names; `variables` are those of its server.
    pub fn new(project: &Project, pipelines: Vec<PathBuf>, variables: Lookup) -> Self {
        // Its server reports what cannot be read now.
        let served = Parts::of(project, variables.as_ref()).unwrap_or_default();
        let (folder, config) = (project.folder.clone(), project.config.clone());
        let paths = SETTINGS.iter().map(|file| folder.join(file)).collect();
        let settings = Look::at(&paths, &Look::default(), Millis::default());
        let source = Source { folder, config, pipelines, variables };
        Self { source, served, settings, config: None, of: Watched::Everything }
    }

    /// The same, where also the settings are read again by this.
    #[must_use]
    pub fn with_settings(self, reader: ConfigReader) -> Self {
        // What is wrong with them now keeps the server from starting.
        let config = reader().ok().map(|last| ConfigAgain { reader, last });
        Self { config, ..self }
    }

    /// The same, where only the servers that the settings name are taken.
    #[must_use]
    pub fn only_servers(self) -> Self {
        Self { of: Watched::Servers, ..self }
    }

    /// Begins to look. Files are read on a thread of their own: no request waits for a disk.
    pub fn begin(self, assembled: &Assembled) -> Watching {
        let clock = assembled.engine.clock().clone();
        let (keeper, policies) = (&assembled.doors.realms, assembled.doors.policies.clone());
        let reload = Reload::new(assembled.engine.clone(), keeper, policies, self.served);
        let reloads = assembled.doors.reloads.clone();
        let mut watcher = Watcher {
            source: self.source,
            reload,
            last: Look::default(),
            tried: None,
            settings: self.settings,
            wrong: Vec::new(),
            looks: 0,
            reloads,
            config: self.config,
            gateway: assembled.doors.gateway.clone(),
            upstreams_are_due: false,
            of: self.of,
        };
        let (looks, mut due) = mpsc::channel::<Millis>(1);
        assembled.spawn.thread(
            "watch",
            Box::pin(async move {
                while let Some(now) = due.recv().await {
                    watcher.look(now);
                    watcher.take_upstreams().await;
                    watcher.reload.record().await;
                }
            }),
        );
        let (ends, mut ended) = oneshot::channel::<()>();
        assembled.spawn.task(
            "watch",
            Box::pin(async move {
                loop {
                    let pause = clock.sleep_until(clock.now().plus_ms(LOOK_MS));
                    if let Either::Right(_) = select(pause, &mut ended).await {
                        return;
                    }
                    if looks.send(clock.now()).await.is_err() {
                        return;
                    }
                }
            }),
        );
        Watching { _ends: ends }
    }
}

impl Source {
    /// What the files say now.
    fn read(&self) -> Result<Parts, Vec<Mistake>> {
        let told = |error| mistakes_of(error, &self.folder);
        let mut project = Project::load_files(&self.folder, self.config.clone()).map_err(told)?;
        for path in &self.pipelines {
            project.add_pipeline(path).map_err(told)?;
        }
        Parts::of(&project, self.variables.as_ref())
    }
}

/// Who looks.
struct Watcher {
    source: Source,
    reload: Reload,
    /// What the last look saw.
    last: Look,
    /// What was there when it was read last; nothing before the first time.
    tried: Option<Look>,
    /// The settings as they were reported last.
    settings: Look,
    /// What is wrong with what was read last, as it was reported.
    wrong: Vec<String>,
    /// Looks since then.
    looks: u32,
    /// Who counts that.
    reloads: Arc<Reloads>,
    config: Option<ConfigAgain>,
    gateway: Arc<Gateway>,
    /// Whether the settings name other servers since they were taken.
    upstreams_are_due: bool,
    of: Watched,
}

impl Watcher {
    fn look(&mut self, now: Millis) {
        let look = Look::at(&self.watched(), &self.last, now);
        let (settings, files) = look.clone().split(&self.source.folder);
        self.tell_settings(settings);
        let is_quiet = self.last.same(&look);
        self.last = look;
        if self.of == Watched::Servers {
            return;
        }
        self.looks += 1;
        let is_known = self.tried.as_ref().is_some_and(|tried| tried.same(&files));
        let is_due_again = !self.wrong.is_empty() && self.looks >= AGAIN_LOOKS;
        if is_quiet && (!is_known || is_due_again) {
            (self.tried, self.looks) = (Some(files), 0);
            self.read(is_known);
        }
    }

    /// All files that are checked, those that are not there included.
    fn watched(&self) -> BTreeSet<PathBuf> {
        let mut paths = BTreeSet::new();
        paths.extend(SETTINGS.iter().map(|file| self.source.folder.join(file)));
        if self.of == Watched::Servers {
            return paths;
        }
        for folder in FOLDERS {
            gather(&self.source.folder.join(folder), DEPTH_MAX, &mut paths);
        }
        gather(&self.source.folder.join(REALMS_FOLDER), REALMS_DEPTH_MAX, &mut paths);
        paths.insert(self.source.folder.join(PRINCIPALS_FILE));
        let rules = self.reload.taken().rules().iter();
        paths.extend(rules.map(|file| self.source.folder.join(file)));
        paths.extend(self.source.pipelines.iter().cloned());
        paths
    }

    fn tell_settings(&mut self, now: Look) {
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
        let TakenUpstreams { changed, warnings } = taken;
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

    /// Takes in what the files say; `is_again` where they were reported as wrong already.
    fn read(&mut self, is_again: bool) {
        let taken = match self.source.read() {
            Ok(parts) if parts == *self.reload.taken() => {
                if !self.wrong.is_empty() {
                    tracing::info!("mended: the files say again what is served");
                }
                self.wrong.clear();
                self.reloads.mended();
                return;
            }
            Ok(parts) => {
                let changed = parts.names_beside(self.reload.taken());
                self.reload.take(parts).map(|warnings| (changed, warnings))
            }
            Err(mistakes) => Err(mistakes),
        };
        match taken {
            Ok((changed, warnings)) => {
                self.wrong.clear();
                self.reloads.add(true);
                for warning in warnings {
                    tracing::warn!("{warning}");
                }
                tracing::info!("reloaded: {}", listed(&changed));
            }
            Err(mistakes) => self.tell_wrong(&mistakes, is_again),
        }
    }

    fn tell_wrong(&mut self, mistakes: &[Mistake], is_again: bool) {
        let errors = mistakes.iter().filter(|mistake| mistake.is_error());
        let wrong: Vec<String> = errors.map(Mistake::to_string).collect();
        if is_again && wrong == self.wrong {
            return;
        }
        for mistake in &wrong {
            tracing::error!("{mistake}");
        }
        tracing::error!("not reloaded: what was served before stays");
        self.reloads.add(false);
        self.wrong = wrong;
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

/// A file as it is named in this folder.
fn named(path: &Path, folder: &Path) -> String {
    let below = path.strip_prefix(folder).ok().filter(|below| !below.as_os_str().is_empty());
    below.unwrap_or(path).display().to_string()
}

/// The names of files for one line.
fn listed(names: &[String]) -> String {
    match names.len() {
        0 => "the project's files".to_owned(),
        count if count > NAMES_MAX => {
            format!("{} and {} more", names[..NAMES_MAX].join(", "), count - NAMES_MAX)
        }
        _ => names.join(", "),
    }
}

/// Adds the files below a folder that are read as plans, agents, pipelines, rules or policies, and
/// folders that cannot be looked into.
fn gather(folder: &Path, depth: usize, paths: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        paths.insert(folder.to_path_buf());
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        // Said with the entry; only what a link leads to has to be asked for.
        let is_folder = match entry.file_type() {
            Ok(kind) if !kind.is_symlink() => kind.is_dir(),
            Ok(_) | Err(_) => path.is_dir(),
        };
        if is_folder {
            if depth > 1 {
                gather(&path, depth - 1, paths);
            }
        } else if is_plan(&path) || is_policy(&path) {
            paths.insert(path);
        }
    }
}

/// A file as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    bytes: u64,
    modified: Option<SystemTime>,
    content: ContentHash,
}

/// Files as they were seen, by path; nothing for one that cannot be read, or that is not there.
#[derive(Debug, Clone, Default)]
struct Look(BTreeMap<PathBuf, Option<Seen>>);

impl Look {
    /// These files now. One that looks as it did before is not read again.
    fn at(paths: &BTreeSet<PathBuf>, before: &Look, now: Millis) -> Self {
        let seen = |path: &PathBuf| {
            let about = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
            let (bytes, modified) = (about.len(), about.modified().ok());
            let known = before.0.get(path).and_then(Option::as_ref).filter(|known| {
                (known.bytes, known.modified) == (bytes, modified) && !is_fresh(modified, now)
            });
            let content = match known {
                Some(known) => known.content.clone(),
                None => ContentHash::of(&fs::read(path).ok()?),
            };
            Some(Seen { bytes, modified, content })
        };
        Self(paths.iter().map(|path| (path.clone(), seen(path))).collect())
    }

    /// The settings, and all other files.
    fn split(self, folder: &Path) -> (Self, Self) {
        let is_settings = |path: &Path| SETTINGS.iter().any(|file| folder.join(file) == path);
        let (settings, files) = self.0.into_iter().partition(|(path, _)| is_settings(path));
        (Self(settings), Self(files))
    }

    /// Whether both have the same files with the same content.
    fn same(&self, other: &Look) -> bool {
        self.0.len() == other.0.len() && self.beside(other).next().is_none()
    }

    /// The names of the files that are not the same in both.
    fn names_beside(&self, other: &Look, folder: &Path) -> Vec<String> {
        let gone = other.0.keys().filter(|path| !self.0.contains_key(*path));
        let mut paths: Vec<&PathBuf> = self.beside(other).chain(gone).collect();
        paths.sort_unstable();
        paths.into_iter().map(|path| named(path, folder)).collect()
    }

    /// The files of this one that the other has not, or with another content.
    fn beside<'a>(&'a self, other: &'a Look) -> impl Iterator<Item = &'a PathBuf> {
        let content = |seen: &'a Option<Seen>| seen.as_ref().map(|seen| &seen.content);
        let differs = move |(path, seen): &(&'a PathBuf, &'a Option<Seen>)| {
            other.0.get(*path).is_none_or(|known| content(known) != content(seen))
        };
        self.0.iter().filter(differs).map(|(path, _)| path)
    }
}

/// Whether a file changed so lately that its time says nothing yet. A time that is still to come
/// was not made by this machine's clock, and is as good as an old one.
fn is_fresh(modified: Option<SystemTime>, now: Millis) -> bool {
    let since = modified.and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
    let Some(since) = since else { return true };
    let then = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    now.0.saturating_sub(then).saturating_abs() < FRESH_MS
}

#[cfg(test)]
mod tests;
