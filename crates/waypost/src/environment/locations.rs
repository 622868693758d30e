//! Where the project folder is, and where the settings of the machine and of the user are.

use project::folder::CONFIG_FILE;
use std::path::{Path, PathBuf};

/// The project that a command works on: the folder that it names, else the present one or the
/// nearest above it with a `waypost.toml`.
pub(crate) fn project_folder(named: Option<&Path>) -> PathBuf {
    match named {
        Some(folder) => folder.to_path_buf(),
        None => nearest(Path::new("."), std::env::home_dir().as_deref()),
    }
}

/// A path as people are shown it.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(".").unwrap_or(path).display().to_string()
}

/// What makes a folder a project of its own, with or without settings.
const OWN_FOLDERS: [&str; 3] = ["plans", "agents", "pipelines"];

/// Whether this folder is a project, with settings or without.
pub(crate) fn is_project(folder: &Path) -> bool {
    let has_own = OWN_FOLDERS.iter().any(|own| folder.join(own).is_dir());
    has_own || folder.join(CONFIG_FILE).is_file()
}

/// The search ends at the home folder and at the root of a git repository.
fn nearest(here: &Path, home: Option<&Path>) -> PathBuf {
    if OWN_FOLDERS.iter().any(|folder| here.join(folder).is_dir()) {
        return here.to_path_buf();
    }
    let absolute = std::path::absolute(here).unwrap_or_else(|_| here.to_path_buf());
    for folder in absolute.ancestors() {
        if folder.join(CONFIG_FILE).is_file() {
            // Shown as it was given where that is the same folder.
            return if folder == absolute { here.to_path_buf() } else { folder.to_path_buf() };
        }
        if folder.join(".git").exists() || home == Some(folder) {
            break;
        }
    }
    here.to_path_buf()
}

/// The folders in which a machine keeps settings of all programs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Roots {
    /// For everyone on this machine.
    pub(crate) system: Option<PathBuf>,
    /// For this person.
    pub(crate) user: Option<PathBuf>,
}

impl Roots {
    /// Those of this machine and of who calls us.
    pub(crate) fn of_this_machine() -> Self {
        let system = cfg!(unix).then(|| PathBuf::from("/etc"));
        Self { system, user: base_folder("XDG_CONFIG_HOME", Path::new(".config")) }
    }

    /// Our files in them, the one that goes first at the end.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let roots = self.system.iter().chain(&self.user);
        roots.map(|root| root.join("waypost").join("config.toml")).collect()
    }
}

/// Our folder for what this person did before, such as what they typed.
pub(crate) fn state_folder() -> Option<PathBuf> {
    let folder = base_folder("XDG_STATE_HOME", &Path::new(".local").join("state"));
    folder.map(|folder| folder.join("waypost"))
}

/// The folder that this variable names, else the usual one below the home folder.
fn base_folder(variable: &str, usual: &Path) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    // A relative path is to be ignored, says the XDG base directory specification.
    let named = named.filter(|path| path.is_absolute());
    named.or_else(|| std::env::home_dir().map(|home| home.join(usual)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    #[test]
    fn the_nearest_settings_name_the_project() {
        let root = folder(&["waypost.toml", "a/waypost.toml", "a/b/c/x", "d/plans/x", "e/x"]);
        let root = root.path();
        assert_eq!(nearest(&root.join("a/b/c"), None), root.join("a"));
        assert_eq!(nearest(&root.join("a"), None), root.join("a"));
        assert_eq!(nearest(&root.join("e"), None), root);
        assert_eq!(nearest(&root.join("d"), None), root.join("d"), "it has plans of its own");
    }

    #[test]
    fn a_folder_with_agents_or_pipelines_is_a_project_too() {
        let root = folder(&["waypost.toml", "a/agents/x", "b/pipelines/x"]);
        for own in ["a", "b"] {
            let own = root.path().join(own);
            assert_eq!(nearest(&own, None), own);
        }
    }

    #[test]
    fn the_search_ends_at_a_repository_and_at_home() {
        let root = folder(&["waypost.toml", "repo/.git/x", "repo/a/x", "home/a/x"]);
        let root = root.path();
        assert_eq!(nearest(&root.join("repo/a"), None), root.join("repo/a"));
        let home = root.join("home");
        assert_eq!(nearest(&home.join("a"), Some(home.as_path())), home.join("a"));
        fs::write(home.join("waypost.toml"), "").unwrap();
        assert_eq!(
            nearest(&home.join("a"), Some(home.as_path())),
            home,
            "the last one that is looked at"
        );
    }

    #[test]
    fn a_named_folder_is_used_as_it_is() {
        let root = folder(&["waypost.toml", "a/x"]);
        let named = root.path().join("a");
        assert_eq!(project_folder(Some(named.as_path())), named);
        assert_eq!(shown(Path::new("./waypost.toml")), "waypost.toml");
    }
}
