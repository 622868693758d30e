//! AgentVault's packages in the step `a2a-peers`: its client and its command line talk to the test
//! agent, to a server that asks for credentials, and over HTTPS to one with the MCP tool proxy; its
//! server SDK makes one more agent.

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
const RUN_WAIT: Duration = Duration::from_secs(1_800);

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

/// What the tool servers behind the proxy say before their addresses.
const FILES_LISTENING: &str = "filesystem server listening on ";
const BARE_LISTENING: &str = "upstream listening on ";
/// How long a tool server may take to answer, in seconds: one of them answers later.
const CALL_TIMEOUT: &str = "5";
/// The project of the server over HTTPS: its certificate is for this machine, and its own issuer.
const SECURED: &[(&str, &str)] = &[
    ("cert.pem", include_str!("../../../crates/server/tests/it/tls/first.pem")),
    ("key.pem", include_str!("../../../crates/server/tests/it/tls/first.key.pem")),
    (
        "waypost.toml",
        "[server.tls]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n\n\
         [a2a]\npublic = [\"mcp.execute_tool\"]\nvault_id = \"tests/files\"\n\
         service_identifier = \"probe\"\n",
    ),
    (
        "policies/tools.cedar",
        "forbid (principal, action == Action::\"call\", resource == Tool::\"bare.forbidden\");\n",
    ),
];

/// A server over HTTPS, with the tool servers that it leads to.
struct Secured {
    server: Server,
    certificate: PathBuf,
    /// They go with their values: they have nothing to say at their end.
    _behind: [Server; 2],
}

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
    /// that asks for credentials, without TLS and with it.
    pub fn talk(&self, target: &Path, folder: &Path, agent: &str) -> Result<(), Failure> {
        let secured = self.secured(target, &folder.join("secured"))?;
        let server = guarded(target, &folder.join("guarded"))?;
        let mut command = self.script("peer.py");
        command.args([agent, server.url.as_str(), secured.server.url.as_str(), ADMIN_KEY]);
        command.env("SSL_CERT_FILE", &secured.certificate);
        let name = "AgentVault's client";
        let log = folder.join("client-agentvault.log");
        let talked = child::checks_within(name, &mut command, &log, RUN_WAIT);
        let talked = talked.map(|passed| println!("   {name}: {passed} checks"));
        secured.server.stop_after(server.stop_after(talked))
    }

    /// Starts the built server over HTTPS, before a real MCP server, the same as plain JSON-RPC,
    /// one that lists nothing, and one that is away.
    fn secured(&self, target: &Path, folder: &Path) -> Result<Secured, Failure> {
        let project = product::project(folder)?;
        child::create_folder(&project.join("policies"))?;
        for (name, text) in SECURED {
            child::write(&project.join(name), text)?;
        }
        let mut files = product::program(target, folder);
        files.args(["example", "filesystem-server", "--http", "127.0.0.1:0", "--data"]);
        files.arg(folder.join("files"));
        let files = Server::start(&mut files, FILES_LISTENING, &folder.join("files.log"))?;
        let mut bare = self.script("upstream.py");
        let bare = Server::start(&mut bare, BARE_LISTENING, &folder.join("bare.log"))?;
        let mcp = &files.url;
        let plain = files.url.trim_end_matches("/mcp");
        let map = format!(
            r#"{{"filesystem": "{mcp}", "plain": "{plain}", "bare": "{}",
            "away": "http://127.0.0.1:1"}}"#,
            bare.url
        );
        let variables = [("MCP_SERVER_MAP", map.as_str()), ("MCP_CALL_TIMEOUT", CALL_TIMEOUT)];
        let server = product::serve_guarded_with(target, folder, ADMIN_KEY, &variables)?;
        let certificate = project.join("cert.pem");
        Ok(Secured { server, certificate, _behind: [files, bare] })
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
