//! `waypost docs-reference`: writes `docs/reference`. Hidden: it is for developers.

use crate::exit::{Exit, Failure};
use crate::reference::pages;
use crate::terminal::output::Output;
use clap::{Args, Command};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// What `waypost docs-reference` takes.
#[derive(Debug, Args)]
pub(crate) struct DocsReferenceArgs {
    /// The folder
    dir: PathBuf,
}

/// Writes every page; pages that are not ours are left alone.
pub(crate) fn run(
    args: &DocsReferenceArgs,
    command: Command,
    output: Output,
) -> Result<Exit, Failure> {
    fs::create_dir_all(&args.dir).map_err(|error| unwritable(&args.dir, &error))?;
    let mut written = Vec::new();
    for (name, text) in pages(command) {
        let path = args.dir.join(name);
        fs::write(&path, text).map_err(|error| unwritable(&path, &error))?;
        written.push(path.display().to_string());
    }
    if output.is_json() {
        output.document(&json!({"written": written}))?;
    } else {
        output.text(&written.join("\n"))?;
    }
    Ok(Exit::Ok)
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot write `{}`: {error}", path.display()))
        .hint("`waypost docs-reference docs/reference` from the repository's root")
}
