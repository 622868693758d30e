//! The step `peers`: clients that others wrote talk to our server with the fixtures, over HTTP and
//! over standard input and output. Each is a script in `crates/testkit/peers` around an official
//! SDK; it prints one line per check and ends with 1 when one fails.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::child;
use crate::shell::{self, Failure};
use crate::steps::fixtures;
use crate::steps::interpreters;

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
];

/// Scripts have a deadline of their own; this is for one that does not keep it.
const RUN_WAIT: Duration = Duration::from_secs(600);

/// `cargo xtask peers`: builds what it needs, then does what the step does.
pub fn run_alone(root: &Path) -> Result<(), Failure> {
    let target = shell::target_folder(root)?;
    fixtures::build(root, &target)?;
    run(root, &target)
}

/// Lets every peer talk to the built fixture server, both ways.
pub fn run(root: &Path, target: &Path) -> Result<(), Failure> {
    let folder = target.join("peers").join("logs");
    child::create_folder(&folder)?;
    let scripts: Vec<(&Peer, Vec<PathBuf>)> = PEERS
        .iter()
        .map(|peer| ready(peer, root, target).map(|words| (peer, words)))
        .collect::<Result<_, Failure>>()?;
    let server = fixtures::start(target, &folder.join("server.log"))?;
    let over_http = scripts.iter().try_for_each(|(peer, words)| {
        let mut command = command(words);
        talk(peer, "http", command.arg("--url").arg(&server.url), &folder)
    });
    server.stop_after(over_http)?;
    let program = fixtures::program(target);
    scripts.iter().try_for_each(|(peer, words)| {
        let mut command = command(words);
        talk(peer, "stdio", command.arg("--stdio").arg(&program).arg("--stdio"), &folder)
    })
}

/// The interpreter of a peer and its script, installed.
fn ready(peer: &Peer, root: &Path, target: &Path) -> Result<Vec<PathBuf>, Failure> {
    let folder = interpreters::peers_folder(root);
    let script = folder.join(peer.name).join(peer.script);
    match peer.language {
        Language::Python => Ok(vec![interpreters::python(&folder, target, peer.name)?, script]),
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

fn talk(peer: &Peer, way: &str, command: &mut Command, folder: &Path) -> Result<(), Failure> {
    let name = format!("{} over {way}", peer.name);
    let log = folder.join(format!("{}-{way}.log", peer.name));
    let passed = child::checks_within(&name, command, &log, RUN_WAIT)?;
    println!("   {name}: {passed} checks");
    Ok(())
}
