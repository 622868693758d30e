//! Every command with its help.

use super::head;
use clap::Command;

const ABOUT: &str = "\
Every command, as its `--help` says it. Data goes to standard output, talk to standard error; with
`--json` data is one JSON document per line and a failure is one JSON line. The
[exit codes](exit-codes.md) are the same for all commands.";

/// The width for which help is written, whatever the terminal is.
const WIDTH: usize = 100;

/// The page.
pub(super) fn page(command: Command) -> String {
    let mut command = command.term_width(WIDTH);
    // Gives every command its full name and the global options.
    command.build();
    let mut page = head("Command line", ABOUT);
    section(&mut command, &mut page);
    page
}

/// A command, then all below it; hidden ones are for the house.
fn section(command: &mut Command, page: &mut String) {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let help = command.render_help().to_string();
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    page.push_str(&format!("\n## `{name}`\n\n```text\n{}\n```\n", lines.join("\n")));
    for inner in command.get_subcommands_mut() {
        if !inner.is_hide_set() {
            section(inner, page);
        }
    }
}
