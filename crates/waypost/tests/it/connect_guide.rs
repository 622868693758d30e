//! `docs/guides/connect-a-client.md` is a test: the server of its first block runs, every other
//! `sh` block is run in order, and what it prints is the block that follows it, ids and times
//! apart. A snippet is what `waypost mcp snippet` prints as data, letter by letter.

use crate::blocks::Block;
use crate::mask::Mask;
use crate::process::{Server, binary_folder, without_note, without_settings};
use std::process::Command;
use tempfile::TempDir;

const GUIDE: &str = include_str!("../../../../docs/guides/connect-a-client.md");
const WRITTEN_ADDRESS: &str = "127.0.0.1:8420";
/// The block that is another terminal.
const UP: &str = "waypost up --demo\n";
const SNIPPET: &str = "waypost mcp snippet ";
const CLIENTS: [&str; 5] = ["claude-code", "cursor", "vscode", "codex", "claude-desktop"];

#[test]
fn a_client_is_connected_as_the_guide_says() {
    let blocks = crate::blocks::read(GUIDE);
    let terminal = Terminal::open();
    let mut told = Mask::default();
    let mut expected = Mask::default();
    let mut ran = 0;
    for (place, input) in blocks.iter().enumerate().filter(|(_, block)| block.language == "sh") {
        let output = blocks.get(place + 1).filter(|next| next.language != "sh");
        let output = output.unwrap_or_else(|| panic!("line {}: no output below it", input.line));
        let said = terminal.run(input);
        assert_eq!(
            lines(&told.mask(&said)),
            lines(&expected.mask(&output.text)),
            "line {}: the commands above it now say\n{said}",
            output.line
        );
        ran += 1;
    }
    assert!(ran > 9, "the guide has only {ran} blocks");
}

#[test]
fn every_client_has_its_snippet() {
    let blocks = crate::blocks::read(GUIDE);
    for client in CLIENTS {
        let shown = format!("{SNIPPET}{client}");
        let is_shown = |block: &Block| block.text.split(['\n', ' ']).any(|word| word == client);
        assert!(blocks.iter().any(is_shown), "the guide never says `{shown}`");
    }
}

fn lines(text: &str) -> Vec<String> {
    text.trim_end().lines().map(|line| line.trim_end().to_owned()).collect()
}

/// A terminal beside a demo server; the variables that one block sets are there for the next.
struct Terminal {
    server: Server,
    folder: TempDir,
}

impl Terminal {
    fn open() -> Self {
        Self { server: Server::demo(), folder: tempfile::tempdir().unwrap() }
    }

    fn address(&self) -> &str {
        self.server.url.trim_start_matches("http://")
    }

    fn run(&self, block: &Block) -> String {
        if block.text == UP {
            let url = format!("http://{WRITTEN_ADDRESS}");
            return format!("waypost listening on {url}\nMCP clients connect to {url}/mcp\n");
        }
        let keep: String = crate::blocks::variables(&block.text)
            .iter()
            .map(|name| format!("printf '%s=%s\\n' {name} \"'${name}'\" >> variables\n"))
            .collect();
        // Only what a snippet prints as data goes into a file.
        let all = if block.text.starts_with(SNIPPET) { "" } else { "exec 2>&1\n" };
        let text = block.text.replace(WRITTEN_ADDRESS, self.address());
        let script = format!("{all}if [ -f variables ]; then . ./variables; fi\n{text}\n{keep}");
        let old = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        command.arg("-c").arg(&script).current_dir(self.folder.path());
        without_settings(&mut command, self.folder.path());
        command.env("PATH", format!("{}:{old}", binary_folder().display()));
        if !all.is_empty() {
            command.env("WAYPOST_SERVER", &self.server.url);
        }
        let ran = command.output().unwrap();
        assert!(ran.status.success(), "line {}: {}: {script}", block.line, ran.status);
        let said = without_note(&String::from_utf8_lossy(&ran.stdout));
        said.replace(self.address(), WRITTEN_ADDRESS)
    }
}
