//! The built server, started on a project that a step writes for it, with no one's settings but
//! those.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::child::{self, Server};
use crate::shell::{self, Failure};

/// What it says before its address.
pub const LISTENING: &str = "waypost listening on ";
/// Settings of the person who runs this must not change what is tested.
const VARIABLES: &[&str] = &[
    "ASSISTANT_MCP_URL", "WAYPOST_ADMIN_KEY", "WAYPOST_API_KEY", "WAYPOST_HOST", "WAYPOST_PORT",
    "WAYPOST_SECRET_KEY", "WAYPOST_SERVER",
];
const TOOL_WAIT: Duration = Duration::from_secs(300);
const TOOL_POLL: Duration = Duration::from_millis(200);

/// Builds it for a step that runs alone.
pub fn build(root: &Path) -> Result<(), Failure> {
    shell::run("cargo build", shell::cargo(root).args(["build", "--locked", "-p", "waypost"]))
}

/// `waypost up` of the built server on a free port; settings of its own would be in this folder.
pub fn command(target: &Path, folder: &Path) -> Command {
    command_of(target, folder, "up")
}

/// The same for another command that serves.
fn command_of(target: &Path, folder: &Path, verb: &str) -> Command {
    let mut command = program(target, folder);
    command.args([verb, "--port", "0"]);
    command
}

/// The built program; settings of its own would be in this folder.
pub fn program(target: &Path, folder: &Path) -> Command {
    let mut command = Command::new(target.join("debug").join("waypost"));
    for name in VARIABLES {
        command.env_remove(name);
    }
    command.env("XDG_CONFIG_HOME", folder.join("no-settings"));
    command
}

/// Starts it on a project of these settings and of these MCP servers, the text of a `.mcp.json`.
/// The folder is made again; its data goes with it.
pub fn start(
    target: &Path,
    folder: &Path,
    settings: &str,
    servers: &str,
) -> Result<Server, Failure> {
    let project = project(folder)?;
    child::write(&project.join("waypost.toml"), settings)?;
    child::write(&project.join(".mcp.json"), servers)?;
    serve(target, folder)
}

/// An empty folder for a project, made again.
pub fn project(folder: &Path) -> Result<PathBuf, Failure> {
    let project = folder.join("project");
    if project.exists() {
        fs::remove_dir_all(&project).map_err(|error| {
            Failure::new(format!("cannot remove `{}`: {error}; remove it", project.display()))
        })?;
    }
    child::create_folder(&project)?;
    Ok(project)
}

/// Starts it on the project that was written into this folder.
pub fn serve(target: &Path, folder: &Path) -> Result<Server, Failure> {
    started(command(target, folder), folder)
}

/// The same with `waypost serve`, which asks every caller for a credential; this key administers.
pub fn serve_guarded(target: &Path, folder: &Path, admin_key: &str) -> Result<Server, Failure> {
    serve_guarded_with(target, folder, admin_key, &[])
}

/// The same with these variables.
pub fn serve_guarded_with(
    target: &Path,
    folder: &Path,
    admin_key: &str,
    variables: &[(&str, &str)],
) -> Result<Server, Failure> {
    let mut command = command_of(target, folder, "serve");
    command.env("WAYPOST_ADMIN_KEY", admin_key).envs(variables.iter().copied());
    started(command, folder)
}

fn started(mut command: Command, folder: &Path) -> Result<Server, Failure> {
    command.arg("--ephemeral").arg(folder.join("project"));
    Server::start(&mut command, LISTENING, &folder.join("waypost.log"))
}

/// What is known of a tool there, as JSON.
pub fn tool(url: &str, tool: &str) -> Result<String, Failure> {
    let path = format!("{url}/api/v1/tools/{tool}");
    shell::output_of("curl", Command::new("curl").args(["--silent", "--fail", path.as_str()]))
}

/// Waits until a tool of an upstream is there: they are connected to in the background.
pub fn wait_for_tool(url: &str, tool: &str) -> Result<(), Failure> {
    let begun = Instant::now();
    let path = format!("{url}/api/v1/tools/{tool}");
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--fail", "--output", "/dev/null", path.as_str()]);
    loop {
        match shell::output_of("curl", &mut curl) {
            Ok(_) => return Ok(()),
            Err(failure) if begun.elapsed() >= TOOL_WAIT => {
                let seconds = TOOL_WAIT.as_secs();
                return Err(Failure::new(format!(
                    "no tool `{tool}` within {seconds} s: {failure}; look at the server's log"
                )));
            }
            Err(_) => thread::sleep(TOOL_POLL),
        }
    }
}
