//! The server that the story kills: a process of its own, over a project that the story writes.

use crate::commands::demo::waiting::WaitDeadline;
use crate::environment::DATA_FOLDER;
use crate::exit::{Exit, Failure, Result};
use crate::remote::address::{self, AddressState};
use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What the server logs, for the case that it does not start.
const LOG: &str = "server.log";

/// Writes the project: the bank as an upstream, and a plan for each of its two ways to pay.
pub(super) fn write_project(folder: &Path, bank: SocketAddr) -> Result<()> {
    let settings = format!(
        "[providers.bank]\ntype = \"rest\"\ndocument = \"bank.yaml\"\n\
         base_url = \"http://{bank}\"\n# Its document says which requests may be sent again.\n\
         trusted = true\n"
    );
    let plans = folder.join("plans/invoices");
    let write = || -> io::Result<()> {
        fs::write(folder.join("waypost.toml"), settings)?;
        fs::write(folder.join("bank.yaml"), include_str!("bank.yaml"))?;
        fs::create_dir_all(&plans)?;
        fs::write(plans.join("pay.yaml"), include_str!("pay.yaml"))?;
        fs::write(plans.join("transfer.yaml"), include_str!("transfer.yaml"))
    };
    write().map_err(|error| failed("cannot write the demo's project", &error))
}

/// A server process. It ends when this is dropped: nothing of it is left.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
    pub(super) url: String,
}

impl ServerProcess {
    /// Starts one over this project, on a free port, and waits until it answers.
    pub(super) async fn start(project: &Path) -> Result<Self> {
        let mut server = Self { child: spawn(project)?, url: String::new() };
        let data = project.join(DATA_FOLDER);
        let waiting = WaitDeadline::begin("its server to start");
        loop {
            // What a killed server left leads nowhere; a failure to ask is one more reason to wait.
            if let Ok(AddressState::Running(url)) = address::find(&data).await {
                server.url = url;
                return Ok(server);
            }
            if let Ok(Some(status)) = server.child.try_wait() {
                let log = fs::read_to_string(project.join(LOG)).unwrap_or_default();
                let what = format!("the demo's server ended with {status}");
                return Err(Failure::new(Exit::Failed, "demo", what).lines(log.lines()));
            }
            waiting.next().await?;
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL: it cannot do anything about it, nor tell anyone.
    pub(super) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // Both fail only when the process is gone already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.end();
    }
}

fn spawn(project: &Path) -> Result<Child> {
    let spawn = || -> io::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["up", "--port", "0", "--log", "json"]).arg(project).current_dir(project);
        // Neither keys nor settings of this shell: they are not the demo's.
        command.env_clear().env("XDG_CONFIG_HOME", project);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(project.join(LOG))?);
        command.spawn()
    };
    spawn().map_err(|error| failed("cannot start the demo's server", &error))
}

fn failed(what: &str, error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, "demo", format!("{what}: {error}"))
}
