//! The README is a test: its two commands are the ones that everyone uses, and every `curl` in it
//! gives the output that stands below it, ids, times and digests apart.

mod blocks;
mod mask;

use self::blocks::{Block, Script};
use self::mask::Mask;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use testkit::harness::{Server, wait_for};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const WRITTEN_ADDRESS: &str = "127.0.0.1:8420";
const CALENDAR_LIMIT: Duration = Duration::from_secs(120);
const FIRST_COMMANDS: [&str; 2] = ["cargo run -- up --demo", "cargo xtask test"];

#[test]
fn its_two_commands_are_the_ones_that_everyone_uses() {
    let readme = read("README.md");
    let blocks = blocks::read(&readme);
    let scripts = blocks.iter().filter(|block| block.language == "sh");
    let commands: Vec<String> = scripts.flat_map(blocks::commands).take(2).collect();
    assert_eq!(commands, FIRST_COMMANDS);
    let ci = read(".ci/run");
    let calls =
        ci.lines().any(|line| line.trim_start().trim_start_matches("exec ") == FIRST_COMMANDS[1]);
    assert!(calls, "`.ci/run` does not call `{}`:\n{ci}", FIRST_COMMANDS[1]);
}

#[test]
fn its_curls_give_the_output_below_them() {
    let _turn = crate::my_turn();
    let readme = read("README.md");
    let blocks = blocks::read(&readme);
    let scripts = blocks::scripts(&blocks);
    assert!(!scripts.is_empty(), "the README has no `curl`");
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::demo(folder.path());
    server.wait_until_ready();
    // The demo's calendar is a process of its own, and is there a moment later.
    let mut client = server.client();
    wait_for("the demo's calendar", CALENDAR_LIMIT, || {
        client.get("/api/v1/tools/create_event").ok().filter(|answer| answer.status == 200)
    });
    let shell =
        Shell { address: server.address().to_string(), variables: folder.path().join("variables") };
    let (mut told, mut expected) = (Mask::default(), Mask::default());
    for script in &scripts {
        let output = shell.run(script);
        let told = comparable(&told.mask(&output), script.output);
        let expected = comparable(&expected.mask(&script.output.text), script.output);
        let place = script.output.line;
        assert_eq!(told, expected, "README line {place}: the command above it now says\n{output}");
    }
    crate::tell(&format!("readme: {} scripts with curls ran", scripts.len()));
}

/// Runs scripts one after the other; variables that one sets are there for the next.
struct Shell {
    address: String,
    variables: PathBuf,
}

impl Shell {
    fn run(&self, script: &Script<'_>) -> String {
        let text = script.input.text.replace(WRITTEN_ADDRESS, &self.address);
        let keep = blocks::variables(&text);
        let keep: String = keep
            .iter()
            .map(|name| format!("printf '%s=%s\\n' {name} \"'${name}'\" >> \"$VARIABLES\"\n"))
            .collect();
        let whole =
            format!("set -eu\nif [ -f \"$VARIABLES\" ]; then . \"$VARIABLES\"; fi\n{text}\n{keep}");
        let ran =
            Command::new("sh").arg("-c").arg(&whole).env("VARIABLES", &self.variables).output();
        let ran = ran.unwrap_or_else(|error| panic!("no shell: {error}"));
        let place = script.input.line;
        let complaint = String::from_utf8_lossy(&ran.stderr);
        assert!(
            ran.status.success(),
            "README line {place}: {} from\n{text}\n{complaint}",
            ran.status
        );
        String::from_utf8_lossy(&ran.stdout).replace(&self.address, WRITTEN_ADDRESS)
    }
}

/// JSON is compared as a value, so the README may break its lines; text as it stands.
#[derive(Debug, PartialEq)]
enum Comparable {
    Json(Value),
    Text(Vec<String>),
}

fn comparable(text: &str, block: &Block) -> Comparable {
    if block.language == "json" {
        let place = block.line;
        let value = serde_json::from_str(text);
        return Comparable::Json(
            value.unwrap_or_else(|error| panic!("README line {place}: {error} in\n{text}")),
        );
    }
    let lines = text.trim_end().lines();
    Comparable::Text(lines.map(|line| line.trim_end().to_owned()).collect())
}

fn read(path: &str) -> String {
    let path = Path::new(ROOT).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("`{}`: {error}", path.display()))
}
