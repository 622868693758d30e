//! AgentVault's packages in the step `a2a-peers`: its client and its command line talk to the test
//! agent and to a server that asks for credentials, and its server SDK makes one more agent.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::child::{self, Server};
use crate::shell::Failure;
use crate::steps::interpreters;
use crate::steps::product;

/// The environment, and the folder of the scripts.
const ENVIRONMENT: &str = "a2a_agentvault";
/// What administers the server; what it keeps safe is this test.
pub const ADMIN_KEY: &str = "an-admin-key-of-the-steps-of-a2a-alone";
/// The script has a deadline of its own; this is for one that does not keep it.
const RUN_WAIT: Duration = Duration::from_secs(600);

/// The server that asks for credentials: its clients keep them under this name.
const SETTINGS: &str = "[a2a]\nexpose = [\"desk::*\"]\npublic = [\"desk::greet\"]\n\
    vault_id = \"tests/desk\"\nservice_identifier = \"probe\"\n";
/// Its only skill.
const PLAN: &str = r#"planId: desk::greet
description: greets
parameters: {type: object}
startStepId: end
steps:
  - {id: end, type: final_response, message: Hello from the desk.}
"#;

/// Starts the built server on a project in this folder, with one skill; it asks for credentials.
pub fn guarded(target: &Path, folder: &Path) -> Result<Server, Failure> {
    let project = product::project(folder)?;
    child::create_folder(&project.join("plans").join("desk"))?;
    child::write(&project.join("plans").join("desk").join("greet.yaml"), PLAN)?;
    child::write(&project.join("waypost.toml"), SETTINGS)?;
    product::serve_guarded(target, folder, ADMIN_KEY)
}

/// The packages, installed.
pub struct Vault {
    python: PathBuf,
    /// Where the scripts are.
    scripts: PathBuf,
}

impl Vault {
    /// Installs what is not there yet.
    pub fn ready(root: &Path, target: &Path) -> Result<Self, Failure> {
        let folder = interpreters::a2a_folder(root);
        let python = interpreters::python(&folder, target, ENVIRONMENT)?;
        Ok(Self { python, scripts: folder.join(ENVIRONMENT) })
    }

    /// Lets the client and the command line talk to the test agent at this address, and to a server
    /// that asks for credentials.
    pub fn talk(&self, target: &Path, folder: &Path, agent: &str) -> Result<(), Failure> {
        let server = guarded(target, &folder.join("guarded"))?;
        let mut command = self.script("peer.py");
        command.args([agent, server.url.as_str(), ADMIN_KEY]);
        let (name, log) = ("AgentVault's client", folder.join("client-agentvault.log"));
        let talked = child::checks_within(name, &mut command, &log, RUN_WAIT);
        server.stop_after(talked.map(|passed| println!("   {name}: {passed} checks")))
    }

    /// Starts an agent made with the server SDK.
    pub fn agent(&self, folder: &Path, listening: &str) -> Result<Server, Failure> {
        let mut command = self.script("agent.py");
        // What a script prints must be in its log even when it is ended.
        command.env("PYTHONUNBUFFERED", "1");
        Server::start(&mut command, listening, &folder.join("agent-agentvault.log"))
    }

    fn script(&self, name: &str) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(self.scripts.join(name));
        command
    }
}
