//! Every command with its help, as the binary prints it.

use super::head;
use crate::process::waypost;
use std::path::Path;

const ABOUT: &str = "\
Every command, as its `--help` says it. Data goes to standard output, talk to standard error; with
`--json` data is one JSON document per line and a failure is one JSON line. The
[exit codes](exit-codes.md) are the same for all commands.";

pub(super) fn page() -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut page = head("Command line", ABOUT);
    section(folder.path(), &mut Vec::new(), &mut page);
    page
}

/// A command, then all below it; hidden ones are for the house, and no help lists them.
fn section(folder: &Path, words: &mut Vec<String>, page: &mut String) {
    let mut arguments = vec!["help"];
    arguments.extend(words.iter().map(String::as_str));
    let help = waypost(folder, &arguments).code(0).stdout;
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    let name = format!("waypost {}", words.join(" "));
    let name = name.trim_end();
    page.push_str(&format!("\n## `{name}`\n\n```text\n{}\n```\n", lines.join("\n")));
    for inner in listed(&lines) {
        words.push(inner.to_owned());
        section(folder, words, page);
        words.pop();
    }
}

/// The headings under which commands are listed.
const HEADINGS: [&str; 6] = ["Commands:", "Start:", "Work:", "Build:", "Operate:", "Shell:"];

/// The commands that a help lists, without the lines that their sentences continue in.
fn listed<'h>(lines: &[&'h str]) -> Vec<&'h str> {
    let mut names = Vec::new();
    let mut is_listing = false;
    for line in lines {
        match line.strip_prefix("  ") {
            None => is_listing = HEADINGS.contains(line),
            Some(rest) if is_listing && !rest.starts_with(' ') => {
                names.extend(rest.split(' ').next());
            }
            Some(_) => {}
        }
    }
    names
}
