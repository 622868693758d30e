//! The step `peers`: clients that others wrote talk to our server with the fixtures, over HTTP,
//! over standard input and output, and through a server of ours that has it behind it and does not
//! trust it. Each is a script in `crates/testkit/peers` around an official SDK or FastMCP; it
//! prints one line per check and ends with 1 when one fails.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::child;
use crate::shell::{self, Failure};
use crate::steps::fixtures;
use crate::steps::interpreters;
use crate::steps::product;

/// A script and what runs it.
struct Peer {
    name: &'static str,
    script: &'static str,
    language: Language,
}

#[derive(Clone, Copy)]
enum Language {
    Python,
    Node,
}

/// All of them; the folder of each has its name.
const PEERS: &[Peer] = &[
    Peer { name: "python1", script: "peer.py", language: Language::Python },
    Peer { name: "python2", script: "peer.py", language: Language::Python },
    Peer { name: "ts_legacy", script: "peer.mjs", language: Language::Node },
    Peer { name: "ts_modern", script: "peer.mjs", language: Language::Node },
    Peer { name: "fastmcp", script: "peer.py", language: Language::Python },
];

/// What the fixture server has in any case.
const TOOL: &str = "test_simple_text";

/// Scripts have a deadline of their own; this is for one that does not keep it.
const RUN_WAIT: Duration = Duration::from_secs(1_800);

/// `cargo xtask peers`: builds what it needs, then does what the step does.
pub fn run_alone(root: &Path) -> Result<(), Failure> {
    let target = shell::target_folder(root)?;
    fixtures::build(root, &target)?;
    product::build(root)?;
    run(root, &target)
}

/// Lets every peer talk to the built fixture server, all ways.
pub fn run(root: &Path, target: &Path) -> Result<(), Failure> {
    let folder = target.join("peers").join("logs");
    child::create_folder(&folder)?;
    let peers: Vec<Ready> = PEERS
        .iter()
        .map(|peer| Ok(Ready { name: peer.name, words: ready(peer, root, target)? }))
        .collect::<Result<_, Failure>>()?;
    let server = fixtures::start(target, &folder.join("server.log"))?;
    let talked = over_http(&peers, "http", &server.url, &folder)
        .and_then(|()| through_gateway(&peers, &server.url, target, &folder));
    server.stop_after(talked)?;
    let program = fixtures::program(target);
    peers.iter().try_for_each(|peer| {
        let mut command = command(&peer.words);
        talk(
            peer.name,
            "stdio",
            command.arg("--stdio").arg(&program).args([fixtures::SERVER, "--stdio"]),
            &folder,
        )
    })
}

/// A peer that is installed.
struct Ready {
    name: &'static str,
    /// What starts it.
    words: Vec<PathBuf>,
}

/// Lets every peer talk to the server at this address.
fn over_http(peers: &[Ready], way: &str, url: &str, folder: &Path) -> Result<(), Failure> {
    peers.iter().try_for_each(|peer| {
        let mut command = command(&peer.words);
        talk(peer.name, way, command.arg("--url").arg(url), folder)
    })
}

/// The same with the built server before it, as an operator finds a server: every call is a run.
fn through_gateway(
    peers: &[Ready],
    fixture: &str,
    target: &Path,
    folder: &Path,
) -> Result<(), Failure> {
    let settings = format!("[mcp.servers.fixture]\nurl = \"{fixture}\"\nprefix = \"\"\n");
    let server = product::start(target, folder, &settings, "{}")?;
    let talked = product::wait_for_tool(&server.url, TOOL).and_then(|()| {
        let url = format!("{}/mcp", server.url);
        over_http(peers, "gateway", &url, folder)
    });
    server.stop_after(talked)
}

/// The interpreter of a peer and its script, installed.
fn ready(peer: &Peer, root: &Path, target: &Path) -> Result<Vec<PathBuf>, Failure> {
    let folder = interpreters::peers_folder(root);
    let script = folder.join(peer.name).join(peer.script);
    match peer.language {
        Language::Python => {
            // Where a server of the same framework is among the upstreams, the list is there.
            let own = folder.join(peer.name).join("requirements.txt").exists();
            let lists = if own { folder } else { interpreters::upstreams_folder(root) };
            Ok(vec![interpreters::python(&lists, target, peer.name)?, script])
        }
        Language::Node => {
            let node = interpreters::node(root, target)?;
            let copy = interpreters::node_script(&node, &script, peer.name)?;
            Ok(vec![node.program, copy])
        }
    }
}

fn command(words: &[PathBuf]) -> Command {
    let mut words = words.iter();
    let mut command = Command::new(words.next().map_or(Path::new(""), PathBuf::as_path));
    command.args(words);
    command
}

fn talk(peer: &str, way: &str, command: &mut Command, folder: &Path) -> Result<(), Failure> {
    let name = format!("{peer} over {way}");
    let log = folder.join(format!("{peer}-{way}.log"));
    let passed = child::checks_within(&name, command, &log, RUN_WAIT)?;
    println!("   {name}: {passed} checks");
    Ok(())
}
