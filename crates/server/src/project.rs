//! A project folder: `waypost.toml`, `.mcp.json`, `plans/<domain>/<name>.{yaml,yml,json}` and
//! `agents/<name>.{yaml,yml,json}`. The demo is such a folder too, carried inside the binary.

use crate::config::Config;
use crate::models::{self, ModelEntry};
use crate::upstreams::{Upstreams, Variables, foreign};
use engine::{AgentFile, PlanFile};
use kernel::ids::PlanId;
use kernel::plan::mistake::Mistake;
use llms::config::ModelConfig;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The settings' file in a project folder.
pub const CONFIG_FILE: &str = "waypost.toml";
/// The file in which clients, and we, find MCP servers. It is read, and never written.
pub const CLIENTS_FILE: &str = ".mcp.json";
const PLANS_FOLDER: &str = "plans";
const AGENTS_FOLDER: &str = "agents";

/// The demo's plans, by their path in its project folder.
pub const DEMO_PLANS: &[(&str, &str)] = &[
    (
        "plans/interaction/greeting.plan.json",
        include_str!("../../../examples/plans/plans/interaction/greeting.plan.json"),
    ),
    (
        "plans/math/conditional_add.yaml",
        include_str!("../../../examples/plans/plans/math/conditional_add.yaml"),
    ),
    ("plans/math/fan_out.yaml", include_str!("../../../examples/plans/plans/math/fan_out.yaml")),
    (
        "plans/test/plan_that_fails.yaml",
        include_str!("../../../examples/plans/plans/test/plan_that_fails.yaml"),
    ),
];

/// The demo's settings: those of the calendar example.
pub const DEMO_SETTINGS: (&str, &str) =
    ("examples/calendar/waypost.toml", include_str!("../../../examples/calendar/waypost.toml"));

/// The demo's agents, by their path in its project folder.
pub const DEMO_AGENTS: &[(&str, &str)] =
    &[("agents/assistant.yaml", include_str!("../../../examples/calendar/agents/assistant.yaml"))];

/// The rules that the demo's model is made of, by their path in its project folder.
pub const DEMO_RULES: &[(&str, &str)] =
    &[("rules/calendar.yaml", include_str!("../../../examples/calendar/rules/calendar.yaml"))];

/// What a project folder holds. Its plans and agents are texts still: they are checked together.
#[derive(Debug, Default)]
pub struct Project {
    /// The settings.
    pub config: Config,
    /// The plans, in the order of their paths.
    pub plans: Vec<PlanFile>,
    /// The agents, in the order of their paths.
    pub agents: Vec<AgentFile>,
    /// Texts that it has instead of files, by path: rules of models.
    pub texts: BTreeMap<String, String>,
    /// Its folder; empty for what is in none.
    pub folder: PathBuf,
    /// The servers that its `.mcp.json` lists.
    pub clients: foreign::Found,
}

/// Why a project folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// A file or folder cannot be read.
    #[error("cannot read `{}`: {why}; check its path and its rights", .path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// Something in it is wrong.
    #[error("{}", told(.0))]
    Mistakes(Vec<Mistake>),
}

impl Project {
    /// The embedded demo.
    pub fn demo() -> Self {
        let plans = DEMO_PLANS.iter().map(|(file, text)| PlanFile {
            default_id: default_id(file),
            file: (*file).to_owned(),
            text: (*text).to_owned(),
        });
        Self { plans: plans.collect(), ..Self::default() }
    }

    /// The same with these settings, and with the agents and rules that belong to them.
    pub fn demo_with(config: Config) -> Self {
        let agent = |(file, text): &(&str, &str)| AgentFile {
            file: (*file).to_owned(),
            text: (*text).to_owned(),
        };
        let text = |(file, text): &(&str, &str)| ((*file).to_owned(), (*text).to_owned());
        Self {
            config,
            agents: DEMO_AGENTS.iter().map(agent).collect(),
            texts: DEMO_RULES.iter().map(text).collect(),
            ..Self::demo()
        }
    }

    /// The project in this folder, with these settings; without `plans` it has none.
    pub fn load(folder: &Path, config: Config) -> Result<Self, ProjectError> {
        if !folder.is_dir() {
            let why = io::Error::new(io::ErrorKind::NotFound, "there is no such folder");
            return Err(ProjectError::Unreadable { path: folder.to_owned(), why });
        }
        let loader = Loader { folder, bytes_max: config.limits.plan_bytes_max };
        let (plans, agents) = (loader.plans()?, loader.agents()?);
        let clients = clients(folder)?;
        let folder = folder.to_owned();
        Ok(Self { config, plans, agents, folder, clients, ..Self::default() })
    }

    /// The models that its settings and the environment name, with everything looked up.
    pub fn models(&self, variables: &Variables<'_>) -> Result<Vec<ModelConfig>, Vec<Mistake>> {
        let around = models::Around {
            folder: &self.folder,
            texts: &self.texts,
            variables,
            bytes_max: self.config.limits.plan_bytes_max,
        };
        models::configs(&self.config.models, &around)
    }

    /// Those of them that need nobody outside: the ones made of rules.
    pub fn models_of_rules(&self) -> Result<Vec<ModelConfig>, Vec<Mistake>> {
        let around = models::Around {
            folder: &self.folder,
            texts: &self.texts,
            variables: &|_| None,
            bytes_max: self.config.limits.plan_bytes_max,
        };
        let is_rules = |entry: &&ModelEntry| entry.is_rules();
        let rules: Vec<ModelEntry> = self.config.models.iter().filter(is_rules).cloned().collect();
        models::configs(&rules, &around)
    }

    /// The upstreams that its settings, its `.mcp.json` and the environment name together.
    pub fn upstreams(&self, variables: &Variables<'_>) -> Result<Upstreams, Vec<Mistake>> {
        let entries = (self.config.upstreams.as_slice(), self.clients.entries.as_slice());
        Upstreams::combine(&self.folder, entries, variables)
    }
}

/// What the folder's `.mcp.json` lists; nothing where there is none.
fn clients(folder: &Path) -> Result<foreign::Found, ProjectError> {
    let path = folder.join(CLIENTS_FILE);
    match fs::read_to_string(&path) {
        Ok(text) => foreign::read(CLIENTS_FILE, &text, None).map_err(ProjectError::Mistakes),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(foreign::Found::default()),
        Err(why) => Err(ProjectError::Unreadable { path, why }),
    }
}

/// Walks `plans/<domain>/` and `agents/`.
struct Loader<'a> {
    folder: &'a Path,
    bytes_max: usize,
}

impl Loader<'_> {
    fn plans(&self) -> Result<Vec<PlanFile>, ProjectError> {
        let root = self.folder.join(PLANS_FOLDER);
        if !root.is_dir() {
            return Ok(Vec::new());
        }
        let mut plans = Vec::new();
        for domain in children(&root)? {
            if !domain.is_dir() {
                self.refuse_plan(&domain, "move it to `plans/<domain>/`")?;
                continue;
            }
            for path in children(&domain)? {
                if path.is_dir() {
                    self.refuse_folder(&path)?;
                } else if is_plan(&path) {
                    plans.push(self.read(&path)?);
                }
            }
        }
        Ok(plans)
    }

    fn agents(&self) -> Result<Vec<AgentFile>, ProjectError> {
        let root = self.folder.join(AGENTS_FOLDER);
        if !root.is_dir() {
            return Ok(Vec::new());
        }
        let mut agents = Vec::new();
        for path in children(&root)? {
            if path.is_dir() {
                self.refuse_inner_agents(&path)?;
            } else if is_plan(&path) {
                let (file, text) = self.text(&path, "agent", "say it in fewer words")?;
                agents.push(AgentFile { file, text });
            }
        }
        Ok(agents)
    }

    fn read(&self, path: &Path) -> Result<PlanFile, ProjectError> {
        let hint = "split it into plans that call each other, or raise `plan_bytes_max`";
        let (file, text) = self.text(path, "plan", hint)?;
        Ok(PlanFile { default_id: default_id(&file), file, text })
    }

    /// The name of a file and its text; `what` it is, and what to do if it is too large.
    fn text(&self, path: &Path, what: &str, hint: &str) -> Result<(String, String), ProjectError> {
        let unreadable = |why| ProjectError::Unreadable { path: path.to_owned(), why };
        let file = self.name(path);
        let bytes = fs::metadata(path).map_err(unreadable)?.len();
        if bytes > self.bytes_max as u64 {
            let message = format!("the {what} has {bytes} bytes, more than {}", self.bytes_max);
            return Err(mistake(file, message, hint));
        }
        let text = fs::read_to_string(path).map_err(unreadable)?;
        Ok((file, text))
    }

    /// A plan where none is looked for would be missed in silence.
    fn refuse_plan(&self, path: &Path, hint: &str) -> Result<(), ProjectError> {
        if !is_plan(path) {
            return Ok(());
        }
        Err(mistake(self.name(path), "the plan is not in a domain's folder".to_owned(), hint))
    }

    fn refuse_folder(&self, folder: &Path) -> Result<(), ProjectError> {
        for path in children(folder)? {
            self.refuse_plan(&path, "domains have no folders of their own; move it one up")?;
        }
        Ok(())
    }

    /// So would an agent.
    fn refuse_inner_agents(&self, folder: &Path) -> Result<(), ProjectError> {
        let lost = children(folder)?.into_iter().find(|path| is_plan(path));
        let message = "the agent is in a folder of its own".to_owned();
        let refused = |path: PathBuf| mistake(self.name(&path), message, "move it to `agents/`");
        lost.map_or(Ok(()), |path| Err(refused(path)))
    }

    /// The path below the project folder, with forward slashes.
    fn name(&self, path: &Path) -> String {
        let below = path.strip_prefix(self.folder).unwrap_or(path);
        let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
        parts.join("/")
    }
}

/// What a folder holds, in order of name, hidden files left out.
fn children(folder: &Path) -> Result<Vec<PathBuf>, ProjectError> {
    let unreadable = |why| ProjectError::Unreadable { path: folder.to_owned(), why };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

fn is_plan(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("yaml" | "yml" | "json"))
}

/// `<domain>/<stem without .plan>` of `plans/<domain>/<file>`.
fn default_id(file: &str) -> PlanId {
    let below = file.strip_prefix("plans/").unwrap_or(file);
    let stem = below.rsplit_once('.').map_or(below, |(stem, _)| stem);
    PlanId::from(stem.strip_suffix(".plan").unwrap_or(stem))
}

fn mistake(file: String, message: String, hint: &str) -> ProjectError {
    let mut mistake = Mistake::error(message).hint(hint);
    mistake.file = Some(file);
    ProjectError::Mistakes(vec![mistake])
}

/// Mistakes, one line each.
pub(crate) fn told(mistakes: &[Mistake]) -> String {
    let lines: Vec<String> = mistakes.iter().map(Mistake::to_string).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tools::remote::UpstreamKind;

    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn load(folder: &Path) -> Result<Project, ProjectError> {
        Project::load(folder, Config::default())
    }

    #[test]
    fn plans_are_found_by_domain_and_named_after_their_file() {
        let folder = project(&[
            ("waypost.toml", ""),
            ("plans/b/two.plan.json", "{}"),
            ("plans/b/one.yaml", "a: 1"),
            ("plans/a/x.y.yml", "b: 2"),
            ("plans/a/.hidden.yaml", "no"),
            ("plans/a/README.md", "no"),
        ]);
        let project = load(folder.path()).unwrap();
        let found: Vec<(&str, &str)> = project
            .plans
            .iter()
            .map(|plan| (plan.file.as_str(), plan.default_id.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                ("plans/a/x.y.yml", "a/x.y"),
                ("plans/b/one.yaml", "b/one"),
                ("plans/b/two.plan.json", "b/two"),
            ]
        );
    }

    #[test]
    fn an_empty_folder_is_a_project_and_no_folder_is_none() {
        let folder = project(&[]);
        assert!(load(folder.path()).unwrap().plans.is_empty());
        let missing = load(&folder.path().join("nowhere")).unwrap_err();
        assert!(missing.to_string().contains("there is no such folder"), "{missing}");
    }

    #[test]
    fn a_plan_in_the_wrong_place_is_not_missed_in_silence() {
        for name in ["plans/lost.yaml", "plans/a/b/lost.json"] {
            let folder = project(&[(name, "x: 1")]);
            let error = load(folder.path()).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("hint: "), "{error}");
        }
    }

    #[test]
    fn the_settings_say_how_large_a_plan_may_be() {
        let folder = project(&[("plans/a/big.yaml", "a: 12")]);
        let config = Config::parse(CONFIG_FILE, "[limits]\nplan_bytes_max = 3\n").unwrap();
        let error = Project::load(folder.path(), config).unwrap_err().to_string();
        assert!(error.contains("plans/a/big.yaml") && error.contains("5 bytes"), "{error}");
    }

    #[test]
    fn agents_are_found_and_one_in_the_wrong_place_is_told() {
        let folder = project(&[
            ("agents/b.yaml", "refName: b"),
            ("agents/a.json", "{}"),
            ("agents/README.md", "no"),
            ("agents/notes/x.md", "no"),
        ]);
        let agents = load(folder.path()).unwrap().agents;
        let files: Vec<&str> = agents.iter().map(|agent| agent.file.as_str()).collect();
        assert_eq!(files, ["agents/a.json", "agents/b.yaml"]);
        let folder = project(&[("agents/team/a.yaml", "x")]);
        let error = load(folder.path()).unwrap_err().to_string();
        assert!(error.contains("agents/team/a.yaml") && error.contains("move it"), "{error}");
    }

    #[test]
    fn models_are_opened_with_what_the_folder_holds() {
        let folder = project(&[("rules/a.yaml", "version: 1")]);
        let config = Config::parse(CONFIG_FILE, "[models.a]\nrules = \"rules/a.yaml\"\n").unwrap();
        let project = Project::load(folder.path(), config).unwrap();
        let models = project.models(&|_| None).unwrap();
        assert_eq!(models.len(), 1);
        assert_eq!(models[0].origin, "waypost.toml:1");
    }

    #[test]
    fn servers_are_found_in_both_files() {
        let json = r#"{"mcpServers": {"git": {"command": "git-mcp"}}}"#;
        let folder = project(&[(".mcp.json", json)]);
        let config = Config::parse(CONFIG_FILE, "[mcp.servers.web]\nurl = \"http://a.example\"\n");
        let project = Project::load(folder.path(), config.unwrap()).unwrap();
        let upstreams = project.upstreams(&|_| None).unwrap();
        let names: Vec<&str> =
            upstreams.entries().iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["git", "web"]);
        let folder = self::project(&[(".mcp.json", "{\n")]);
        let error = load(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with(".mcp.json:"), "{error}");
    }

    #[test]
    fn the_settings_of_the_demo_start_our_own_program() {
        let (file, text) = DEMO_SETTINGS;
        let config = Config::parse(file, text).unwrap();
        let project = Project::demo_with(config);
        let variables = |name: &str| match name {
            "WAYPOST_BIN" => Some("/bin/waypost".to_owned()),
            "WAYPOST_DATA" => Some("/data".to_owned()),
            _ => None,
        };
        let configs = project.upstreams(&variables).unwrap().configs(&variables).unwrap();
        let [calendar] = configs.as_slice() else { panic!("{configs:?}") };
        assert_eq!((calendar.name.as_str(), calendar.prefix.as_str()), ("calendar", ""));
        assert!(calendar.trusted && calendar.journal);
        let UpstreamKind::Stdio { command, args, .. } = &calendar.kind else { panic!() };
        assert_eq!(command, "/bin/waypost");
        assert_eq!(args.join(" "), "example calendar-server --stdio --data /data/calendar");
    }

    #[test]
    fn the_demo_is_a_project_folder_too() {
        let folder = project(DEMO_PLANS);
        let loaded = load(folder.path()).unwrap().plans;
        let embedded = Project::demo().plans;
        let names = |plans: &[PlanFile]| -> Vec<(String, PlanId)> {
            plans.iter().map(|plan| (plan.file.clone(), plan.default_id.clone())).collect()
        };
        assert_eq!(names(&loaded), names(&embedded));
    }
}
