//! `docs/guides/first-plan.md` and `first-pipeline.md` are tests: every `sh` block is run in order,
//! in an empty folder, and gives the `text` block that follows it, ids and times apart. The block
//! that says `waypost up` is the second terminal: the server runs until the guide ends.

use crate::blocks::Block;
use crate::mask::Mask;
use crate::process::{Server, binary_folder, without_note, without_settings};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FIRST_PLAN: &str = include_str!("../../../../docs/guides/first-plan.md");
const FIRST_PIPELINE: &str = include_str!("../../../../docs/guides/first-pipeline.md");
const WRITTEN_ADDRESS: &str = "127.0.0.1:8420";
/// The blocks that are the second terminal.
const UP: &str = "waypost up\n";
const UP_WATCHING: &str = "waypost up --watch\n";

#[test]
fn the_first_plan_gives_the_output_of_the_guide() {
    let ran = comes_out(FIRST_PLAN);
    assert!(ran > 8, "the guide has only {ran} blocks");
}

#[test]
fn the_first_pipeline_gives_the_output_of_the_guide() {
    let ran = comes_out(FIRST_PIPELINE);
    assert!(ran > 6, "the guide has only {ran} blocks");
}

/// Runs a guide, and gives how many blocks it has.
fn comes_out(guide: &str) -> usize {
    let blocks = crate::blocks::read(guide);
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(folder.path());
    let mut told = Mask::default();
    let mut expected = Mask::default();
    let mut ran = 0;
    for (place, input) in blocks.iter().enumerate() {
        if input.language != "sh" {
            continue;
        }
        let output = blocks.get(place + 1).filter(|next| next.language == "text");
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
    assert!(terminal.server.is_some(), "the guide never says `waypost up`");
    ran
}

fn lines(text: &str) -> Vec<String> {
    text.trim_end().lines().map(|line| line.trim_end().to_owned()).collect()
}

/// A terminal: the folder and the variables that one block leaves are there for the next.
struct Terminal {
    state: tempfile::TempDir,
    folder: PathBuf,
    server: Option<Server>,
}

impl Terminal {
    fn open(folder: &Path) -> Self {
        let state = tempfile::tempdir().unwrap();
        Self { state, folder: folder.to_path_buf(), server: None }
    }

    fn run(&mut self, block: &Block) -> String {
        let server = match block.text.as_str() {
            UP => Some(Server::of_project(&self.folder)),
            UP_WATCHING => Some(Server::watched(&self.folder)),
            _ => None,
        };
        if server.is_some() {
            self.server = server;
            return format!("waypost listening on http://{WRITTEN_ADDRESS}\n");
        }
        let keep: String = crate::blocks::variables(&block.text)
            .iter()
            .map(|name| format!("printf '%s=%s\\n' {name} \"'${name}'\" >> \"$STATE/variables\"\n"))
            .collect();
        let script = format!(
            "exec 2>&1\nif [ -f \"$STATE/variables\" ]; then . \"$STATE/variables\"; fi\n{}\n\
             {keep}pwd > \"$STATE/folder\"\n",
            block.text
        );
        let said = self.shell(&script);
        let folder = fs::read_to_string(self.state.path().join("folder")).unwrap();
        self.folder = PathBuf::from(folder.trim_end());
        said
    }

    fn shell(&self, script: &str) -> String {
        let old = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{old}", binary_folder().display());
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).current_dir(&self.folder);
        without_settings(&mut command, self.state.path());
        command.env("PATH", path).env("STATE", self.state.path());
        if let Some(server) = &self.server {
            command.env("WAYPOST_SERVER", &server.url);
        }
        let ran = command.output().unwrap();
        assert!(ran.status.success(), "{}: {script}", ran.status);
        let said = without_note(&String::from_utf8_lossy(&ran.stdout));
        match &self.server {
            Some(server) => said.replace(server.url.trim_start_matches("http://"), WRITTEN_ADDRESS),
            None => said,
        }
    }
}
