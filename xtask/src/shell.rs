//! Running other programs under a name, so that a failure says which one it was, and the few
//! facts every chore asks for: where the workspace is and where cargo puts what it builds.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why a chore stopped: one line for the person who started it.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// Takes the whole message: who failed, why, what to do.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Runs a program with our own input and output; any exit code but zero is a failure.
pub fn run(name: &str, command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(|error| not_started(name, &error))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("`{name}` ended with {status}; its output above says why")))
}

/// Becomes the program, so that signals to us reach it; returns only if it could not be started.
#[cfg(unix)]
pub fn become_program(name: &str, command: &mut Command) -> Result<(), Failure> {
    use std::os::unix::process::CommandExt;
    Err(not_started(name, &command.exec()))
}

/// Runs the program: other systems cannot become one.
#[cfg(not(unix))]
pub fn become_program(name: &str, command: &mut Command) -> Result<(), Failure> {
    run(name, command)
}

/// Makes the program lead a group of processes, to which belongs what it starts.
#[cfg(unix)]
pub fn own_group(command: &mut Command) -> &mut Command {
    use std::os::unix::process::CommandExt;
    command.process_group(0)
}

/// Leaves it as it is: other systems have no such groups.
#[cfg(not(unix))]
pub fn own_group(command: &mut Command) -> &mut Command {
    command
}

/// Ends a program that leads a group, and all that belongs to it.
pub fn end_group(leader: u32) {
    // The shell's own `kill`: the program of that name is not everywhere.
    let script = "kill -s KILL -- \"-$0\"";
    let mut kill = Command::new("sh");
    // It fails where nobody is left, and then there is nothing to do.
    let _ = output_of("kill", kill.args(["-c", script, &leader.to_string()]));
}

/// Waits until nobody else installs anything into the target folder, and keeps others from it as
/// long as the value lives: steps that run at the same time may need the same programs.
pub fn install_turn(target: &Path) -> Result<File, Failure> {
    let path = target.join("install.lock");
    let locked = File::create(&path).and_then(|file| file.lock().map(|()| file));
    locked.map_err(|error| {
        Failure::new(format!("cannot lock `{}`: {error}; check its rights", path.display()))
    })
}

/// Runs a program and returns what it printed; what it complained about joins the failure.
pub fn output_of(name: &str, command: &mut Command) -> Result<String, Failure> {
    let output = command.output().map_err(|error| not_started(name, &error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(Failure::new(format!("`{name}` ended with {}: {}", output.status, complaint.trim())))
}

/// The cargo that started us, or the one on the search path, working in the workspace. It is not
/// told which crate we are: `ring` is built again, with all that depends on it, whenever these
/// variables are others than at the build before, and who types `cargo build` has none of them.
pub fn cargo(root: &Path) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(root);
    for (name, _) in env::vars_os().filter(|(name, _)| is_about_us(name)) {
        command.env_remove(name);
    }
    command
}

/// Whether cargo sets this variable for the crate that it runs.
fn is_about_us(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

/// True when the search path holds a file of this name.
pub fn is_installed(program: &str) -> bool {
    env::var_os("PATH")
        .is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

/// The folder of the workspace, whatever folder the command was typed in.
pub fn workspace_root() -> PathBuf {
    // What cargo says now overrides what it said when we were compiled: the tree may have moved.
    let manifest_folder = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest_folder.parent().map_or_else(|| manifest_folder.clone(), Path::to_path_buf)
}

/// Where cargo puts what it builds. Cargo itself answers, so `CARGO_TARGET_DIR` is honoured.
pub fn target_folder(root: &Path) -> Result<PathBuf, Failure> {
    let metadata = output_of(
        "cargo metadata",
        cargo(root).args(["metadata", "--format-version", "1", "--no-deps"]),
    )?;
    let folder = text_in(&metadata, "target_directory").ok_or_else(|| {
        Failure::new("`cargo metadata` names no `target_directory`; run it by hand and look")
    })?;
    Ok(PathBuf::from(folder))
}

/// The first text of this name in JSON as cargo writes it, which is without spaces.
pub fn text_in(json: &str, name: &str) -> Option<String> {
    let (_, after) = json.split_once(&format!("\"{name}\":\""))?;
    let mut text = String::new();
    let mut characters = after.chars();
    loop {
        match characters.next()? {
            '"' => return Some(text),
            '\\' => text.push(characters.next()?),
            plain => text.push(plain),
        }
    }
}

fn not_started(name: &str, error: &std::io::Error) -> Failure {
    Failure::new(format!("could not start `{name}`: {error}; check that it is installed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_from_what_cargo_writes() {
        let metadata = r#"{"packages":[],"target_directory":"/home/a \"b\"/t","version":1}"#;
        let folder = |json: &str| text_in(json, "target_directory");
        assert_eq!(folder(metadata).as_deref(), Some("/home/a \"b\"/t"));
        assert_eq!(folder(r#"{"version":1}"#), None);
        assert_eq!(folder(r#"{"target_directory":null}"#), None);
        assert_eq!(folder(r#"{"target_directory":"/cut"#), None);
    }

    #[test]
    fn a_failing_program_is_named() {
        let outcome = run("the liar", &mut Command::new("false"));
        let message = outcome.err().map(|failure| failure.to_string()).unwrap_or_default();
        assert!(message.starts_with("`the liar` ended with exit status: 1"), "{message}");
    }

    #[test]
    fn cargo_is_not_told_which_crate_we_are() {
        for name in ["CARGO_PKG_NAME", "CARGO_PKG_VERSION_MAJOR", "CARGO_MANIFEST_DIR"] {
            assert!(is_about_us(OsStr::new(name)), "{name}");
        }
        for name in ["CARGO", "CARGO_HOME", "CARGO_INCREMENTAL", "CARGO_TARGET_DIR", "PATH"] {
            assert!(!is_about_us(OsStr::new(name)), "{name}");
        }
        // Cargo sets it for the program that runs this test.
        assert!(env::var_os("CARGO_MANIFEST_DIR").is_some());
        let command = cargo(Path::new("."));
        let removed = (OsStr::new("CARGO_MANIFEST_DIR"), None);
        assert!(command.get_envs().any(|variable| variable == removed), "{command:?}");
    }

    #[test]
    fn one_installs_at_a_time() -> Result<(), Failure> {
        let folder = env::temp_dir().join(format!("waypost-turn-{}", std::process::id()));
        assert!(std::fs::create_dir_all(&folder).is_ok());
        let turn = install_turn(&folder)?;
        let free = || {
            let file = File::open(folder.join("install.lock"));
            file.is_ok_and(|file| file.try_lock().is_ok())
        };
        assert!(!free());
        drop(turn);
        assert!(free());
        assert!(std::fs::remove_dir_all(&folder).is_ok());
        Ok(())
    }

    #[test]
    fn a_missing_program_is_named() {
        let outcome = output_of("nobody", &mut Command::new("no-such-program-anywhere"));
        let message = outcome.err().map(|failure| failure.to_string()).unwrap_or_default();
        assert!(message.starts_with("could not start `nobody`"), "{message}");
        assert!(!is_installed("no-such-program-anywhere"));
    }
}
