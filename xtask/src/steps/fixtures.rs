//! The programs that steps start (`crates/fixture`), above all the
//! fixture server: built, started for a step, or run in the foreground to try a client by hand.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::child::Server;
use crate::shell::{self, Failure};

/// All of them are one program.
pub const NAME: &str = "fixture";
/// The fixture server among them.
pub const SERVER: &str = "mcp-server";
const LISTENING: &str = "listening on ";

/// Builds it and says where it is.
pub fn build(root: &Path, target: &Path) -> Result<PathBuf, Failure> {
    shell::run("cargo build", shell::cargo(root).args(["build", "--locked", "-p", NAME]))?;
    Ok(program(target))
}

/// Where the built one is.
pub fn program(target: &Path) -> PathBuf {
    target.join("debug").join(NAME)
}

/// Starts the built one on a port of its own. Its data goes with it, and it goes with us.
pub fn start(target: &Path, log: &Path) -> Result<Server, Failure> {
    start_as(target, &["--era", "both"], log)
}

/// The same with these flags, such as `--era` for one that speaks the versions of one era only.
pub fn start_as(target: &Path, flags: &[&str], log: &Path) -> Result<Server, Failure> {
    let mut command = Command::new(program(target));
    command.args([SERVER, "--port", "0", "--with-parent"]).args(flags);
    Server::start(&mut command, LISTENING, log)
}

/// The same for the test agent of A2A, which is `--a2a` or `--bare`.
pub fn start_agent(target: &Path, kind: &str, log: &Path) -> Result<Server, Failure> {
    let mut command = Command::new(program(target));
    command.args([SERVER, "--port", "0", "--with-parent", kind]);
    Server::start(&mut command, LISTENING, log)
}

/// `cargo xtask a2a-fixture`: the same for the test agent of A2A.
pub fn agent_foreground(root: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let words: Vec<&str> = ["--a2a"].into_iter().chain(arguments.iter().copied()).collect();
    foreground(root, &words)
}

/// `cargo xtask fixture-server`: builds it and becomes it, so that signals reach it.
pub fn foreground(root: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let target = shell::target_folder(root)?;
    let mut command = Command::new(build(root, &target)?);
    shell::become_program(NAME, command.arg(SERVER).args(arguments))
}
