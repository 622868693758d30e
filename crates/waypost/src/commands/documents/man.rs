//! `waypost man`: writes a manual page for every command, from the text of `--help`.

use crate::exit::{Exit, Failure, Result};
use crate::terminal::output::Output;
use clap::{Args, Command};
use clap_mangen::Man;
use serde_json::json;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  waypost man | man -l -                               # reads the main page
  waypost man --dir ~/.local/share/man/man1            # writes all of them";

/// What `waypost man` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// Write the page of every command into this folder, instead of printing the main one
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Prints the main page, or writes all of them.
pub(crate) fn run(args: &ManArgs, mut command: Command, output: Output) -> Result<Exit> {
    // Gives every command its full name and the global options.
    command.build();
    let Some(dir) = &args.dir else {
        let page = page(&command).map_err(|error| unwritable(Path::new("-"), &error))?;
        return output.data(&json!({"page": page}), page.trim_end());
    };
    let mut written = Vec::new();
    fs::create_dir_all(dir).map_err(|error| unwritable(dir, &error))?;
    write(&command, dir, &mut written)?;
    output.data(&json!({"written": written}), &written.join("\n"))
}

/// Writes the pages of a command and of all below it.
fn write(command: &Command, dir: &Path, written: &mut Vec<String>) -> Result<()> {
    let path = dir.join(man(command).get_filename());
    page(command)
        .and_then(|page| fs::write(&path, page))
        .map_err(|error| unwritable(&path, &error))?;
    written.push(path.display().to_string());
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        write(inner, dir, written)?;
    }
    Ok(())
}

fn man(command: &Command) -> Man {
    // The examples get a section of their own.
    let command = command.clone().after_help(None::<&str>);
    Man::new(command).source(concat!("waypost ", env!("CARGO_PKG_VERSION")))
}

fn page(command: &Command) -> io::Result<String> {
    let mut page: Vec<u8> = Vec::new();
    man(command).render(&mut page)?;
    let mut page = String::from_utf8_lossy(&page).into_owned();
    if let Some(examples) = command.get_after_help() {
        page.push_str(&section(&examples.to_string()));
    }
    Ok(page)
}

/// The examples as a section.
fn section(examples: &str) -> String {
    let lines = examples.lines().skip(1).map(|line| line.trim_start());
    let lines: Vec<String> = lines.map(plain).collect();
    format!(".SH EXAMPLES\n.nf\n{}\n.fi\n", lines.join("\n"))
}

/// A line that roff prints as it is.
fn plain(line: &str) -> String {
    let escaped = line.replace('\\', "\\e").replace('-', "\\-");
    // A line that begins like this would be taken for a request.
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("cannot write `{}`: {error}", path.display()))
        .hint("name a folder that can be written")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_printed_as_they_are() {
        assert_eq!(
            section("Examples:\n  waypost up --demo\n  .x \\y"),
            ".SH EXAMPLES\n.nf\nwaypost up \\-\\-demo\n\\&.x \\ey\n.fi\n"
        );
    }
}
