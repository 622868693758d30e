//! A project folder: `waypost.toml`, `.mcp.json` and `plans/<domain>/<name>.{yaml,yml,json}`. The
//! demo is such a folder too, carried inside the binary.

use crate::config::Config;
use crate::upstreams::{Upstreams, Variables, foreign};
use engine::PlanFile;
use kernel::ids::PlanId;
use kernel::plan::mistake::Mistake;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The settings' file in a project folder.
pub const CONFIG_FILE: &str = "waypost.toml";
/// The file in which clients, and we, find MCP servers. It is read, and never written.
pub const CLIENTS_FILE: &str = ".mcp.json";
const PLANS_FOLDER: &str = "plans";

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

/// What a project folder holds. Its plans are texts still: the engine checks them together.
#[derive(Debug, Default)]
pub struct Project {
    /// The settings.
    pub config: Config,
    /// The plans, in the order of their paths.
    pub plans: Vec<PlanFile>,
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

    /// The project in this folder, with these settings; without `plans` it has none.
    pub fn load(folder: &Path, config: Config) -> Result<Self, ProjectError> {
        if !folder.is_dir() {
            let why = io::Error::new(io::ErrorKind::NotFound, "there is no such folder");
            return Err(ProjectError::Unreadable { path: folder.to_owned(), why });
        }
        let plans = Loader { folder, bytes_max: config.limits.plan_bytes_max }.plans()?;
        let clients = clients(folder)?;
        Ok(Self { config, plans, folder: folder.to_owned(), clients })
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

/// Walks `plans/<domain>/`.
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

    fn read(&self, path: &Path) -> Result<PlanFile, ProjectError> {
        let unreadable = |why| ProjectError::Unreadable { path: path.to_owned(), why };
        let file = self.name(path);
        let bytes = fs::metadata(path).map_err(unreadable)?.len();
        if bytes > self.bytes_max as u64 {
            let message = format!("the plan has {bytes} bytes, more than {}", self.bytes_max);
            let hint = "split it into plans that call each other, or raise `plan_bytes_max`";
            return Err(mistake(file, message, hint));
        }
        let text = fs::read_to_string(path).map_err(unreadable)?;
        Ok(PlanFile { default_id: default_id(&file), file, text })
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
