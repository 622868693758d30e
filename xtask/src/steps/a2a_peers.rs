//! The step `a2a-peers`: the official SDKs of A2A for Python and JavaScript, and AgentVault's
//! packages (`vault_peers`), on both sides. Their clients talk to the test agent and check the
//! signatures of cards, and agents made with them are called through the built server. All scripts
//! are in `crates/testkit/a2a`; each prints one line per check. `waypost a2a check` holds the test
//! agent against the specification as well.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::child::{self, Server};
use crate::shell::{self, Failure};
use crate::steps::fixtures;
use crate::steps::interpreters;
use crate::steps::product;
use crate::steps::vault_peers::{ADMIN_KEY, Vault};

/// The environment of the Python SDK, and the folders of the scripts.
const PYTHON: &str = "a2a_python";
const NODE: &str = "a2a_node";
/// What agents say before their address.
const LISTENING: &str = "agent listening on ";
/// Their cards, one for each way to talk to them.
const CARDS: &[&str] = &["rpc", "rest", "old-rpc", "old-rest"];
/// The card of an agent that is reached over gRPC only: the one of the Python SDK.
const GRPC_CARD: &str = "grpc";
/// The agent of AgentVault's server SDK, and its card.
const VAULT: &str = "agentvault";
const VAULT_CARD: &str = "vault";
/// The card of this server has every kind of scheme. Nobody asks its issuer for anything, and none
/// answers there.
const GUARDED: &str = "[auth.issuers.corp]\nurl = \"http://127.0.0.1:9\"\n\
    audience = \"waypost\"\nrealms = [\"default\"]\n";
/// Scripts have a deadline of their own; this is for one that does not keep it.
const RUN_WAIT: Duration = Duration::from_secs(1_800);

/// What runs the scripts, with what they need installed.
struct Languages {
    python: PathBuf,
    node: interpreters::Node,
    scripts: PathBuf,
}

impl Languages {
    fn ready(root: &Path, target: &Path) -> Result<Self, Failure> {
        let scripts = interpreters::a2a_folder(root);
        let python = interpreters::python(&scripts, target, PYTHON)?;
        Ok(Self { python, node: interpreters::node(root, target)?, scripts })
    }

    /// The script of this name in each language.
    fn scripts(&self, name: &str) -> Result<[Script; 2], Failure> {
        let mut python = Command::new(&self.python);
        python.arg(self.scripts.join(PYTHON).join(name).with_extension("py"));
        let script = self.scripts.join(NODE).join(name).with_extension("mjs");
        let mut node = Command::new(&self.node.program);
        node.arg(interpreters::node_script(&self.node, &script, &format!("a2a_{name}"))?);
        Ok([
            Script { language: "python", command: python },
            Script { language: "node", command: node },
        ])
    }
}

/// A script, ready to be started.
struct Script {
    language: &'static str,
    command: Command,
}

/// An agent that runs.
struct Agent {
    language: &'static str,
    server: Server,
}

/// `cargo xtask a2a-peers`: builds what it needs, then does what the step does.
pub fn run_alone(root: &Path) -> Result<(), Failure> {
    let target = shell::target_folder(root)?;
    fixtures::build(root, &target)?;
    product::build(root)?;
    run(root, &target)
}

/// Lets all of them call, and be called.
pub fn run(root: &Path, target: &Path) -> Result<(), Failure> {
    let folder = target.join("a2a");
    child::create_folder(&folder)?;
    let languages = Languages::ready(root, target)?;
    let vault = Vault::ready(root, target)?;
    clients(&languages, &vault, target, &folder)?;
    ourselves(target, &folder)?;
    agents(&languages, &vault, target, &folder)
}

/// Clients of others talk to the test agent.
fn clients(
    languages: &Languages,
    vault: &Vault,
    target: &Path,
    folder: &Path,
) -> Result<(), Failure> {
    let peers = languages.scripts("peer")?;
    let server = fixtures::start_agent(target, "--a2a", &folder.join("agent.log"))?;
    let url = server.url.clone();
    let guarded = guarded(target, &folder.join("schemes"))?;
    let talked = peers.into_iter().try_for_each(|peer| {
        let Script { language, mut command } = peer;
        let name = format!("a client in {language}");
        let log = folder.join(format!("client-{language}.log"));
        passed(&name, command.args([&url, &guarded.url]), &log)
    });
    let talked = guarded.stop_after(talked).and_then(|()| vault.talk(target, folder, &url));
    server.stop_after(talked)
}

/// Starts the built server as one that takes every kind of credential.
fn guarded(target: &Path, folder: &Path) -> Result<Server, Failure> {
    let project = product::project(folder)?;
    child::write(&project.join("waypost.toml"), GUARDED)?;
    product::serve_guarded(target, folder, ADMIN_KEY)
}

/// The built program finds nothing wrong with the test agent, whatever it can do.
fn ourselves(target: &Path, folder: &Path) -> Result<(), Failure> {
    for kind in ["--a2a", "--bare"] {
        let word = kind.trim_start_matches('-');
        let log = folder.join(format!("checked-{word}.log"));
        let server = fixtures::start_agent(target, kind, &log)?;
        let mut command = product::program(target, folder);
        command.args(["a2a", "check", "--all", &server.url]);
        let log = folder.join(format!("check-{word}.log"));
        let name = format!("`waypost a2a check` of an agent with `{kind}`");
        let checked = child::run_within(&name, &mut command, &log, RUN_WAIT).and_then(|status| {
            if status.success() {
                return Ok(());
            }
            child::print_logs(&log);
            Err(Failure::new(format!("{name} ended with {status}; its findings are above")))
        });
        server.stop_after(checked)?;
        println!("   {name}: nothing is wrong");
    }
    Ok(())
}

/// Agents of others are called through the built server.
fn agents(
    languages: &Languages,
    vault: &Vault,
    target: &Path,
    folder: &Path,
) -> Result<(), Failure> {
    let mut agents = Vec::new();
    for Script { language, mut command } in languages.scripts("agent")? {
        // What a script prints must be in its log even when it is ended.
        command.env("PYTHONUNBUFFERED", "1");
        let log = folder.join(format!("agent-{language}.log"));
        let server = Server::start(&mut command, LISTENING, &log)?;
        agents.push(Agent { language, server });
    }
    let other = vault.agent(folder, LISTENING)?;
    let mut settings = entry(VAULT, &other.url, VAULT_CARD);
    let mut command = Command::new(&languages.python);
    for Agent { language, server } in &agents {
        for card in cards(language) {
            settings.push_str(&entry(&named(language, card), &server.url, card));
        }
    }
    let server = product::start(target, folder, &settings, "{}")?;
    command.arg(languages.scripts.join("check.py")).arg(&server.url);
    for Agent { language, .. } in &agents {
        command.args(cards(language).map(|card| named(language, card)));
    }
    command.arg(VAULT);
    let checked = passed("a caller of agents", &mut command, &folder.join("check.log"));
    // The agents go with their values: they have nothing to say at their end.
    server.stop_after(checked)
}

/// The cards of the agent in this language.
fn cards(language: &'static str) -> impl Iterator<Item = &'static str> {
    let grpc = (language == "python").then_some(GRPC_CARD);
    CARDS.iter().copied().chain(grpc)
}

/// What an agent with this card is called.
fn named(language: &str, card: &str) -> String {
    format!("{language}_{}", card.replace('-', "_"))
}

/// What `waypost.toml` says of an agent.
fn entry(name: &str, url: &str, card: &str) -> String {
    // gRPC has a port of its own, which is as private as all of this machine's.
    let more = if card == GRPC_CARD { "allow_private = true\n" } else { "" };
    format!("[a2a.agents.{name}]\ncard = \"{url}/cards/{card}.json\"\n{more}")
}

fn passed(name: &str, command: &mut Command, log: &Path) -> Result<(), Failure> {
    let passed = child::checks_within(name, command, log, RUN_WAIT)?;
    println!("   {name}: {passed} checks");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_has_an_entry_for_each_of_its_cards() {
        let name = named("node", "old-rest");
        let wanted = "[a2a.agents.node_old_rest]\n\
            card = \"http://127.0.0.1:8/cards/old-rest.json\"\n";
        assert_eq!(entry(&name, "http://127.0.0.1:8", "old-rest"), wanted);
        assert_eq!(cards("node").count() + 1, cards("python").count());
        assert!(entry("a", "http://127.0.0.1:8", GRPC_CARD).ends_with("allow_private = true\n"));
    }
}
