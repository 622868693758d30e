//! `waypost mcp rm`: removes a server from the project's `waypost.toml`. The rest of the file is
//! kept, with its comments.

use crate::context::Context;
use crate::environment::locations::{project_folder, shown};
use crate::exit::{Exit, Failure, Result};
use crate::settings::{Settings, file_of};
use crate::terminal::input::file_or_empty;
use clap::Args;
use kernel::definition::plan::mistake::meant;
use project::atomic_file::{FileAccess, replace_file};
use project::config::Config;
use serde_json::json;
use std::io;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  waypost mcp rm github
  waypost mcp rm github --dry-run      # whether it could be taken out";

/// What `waypost mcp rm` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RmArgs {
    /// The upstream's name
    name: String,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
    #[arg(long, value_name = "DIR")]
    pub(super) dir: Option<PathBuf>,
}

/// Takes it out.
pub(super) fn run(args: &RmArgs, context: &Context) -> Result<Exit> {
    let folder = project_folder(args.dir.as_deref());
    let settings = Settings::load(Some(folder.as_path()), &context.environment)?;
    let path = file_of(&folder)?;
    let file = shown(&path);
    let name = &args.name;
    let present = file_or_empty(&path, &file)?;
    let place = place_of(&settings.config, name)?;
    let left = without(&present, name);
    let names = |config: &Config| -> Vec<String> {
        config.upstreams.iter().map(|entry| entry.name.clone()).collect()
    };
    let others: Vec<String> =
        names(&settings.config).into_iter().filter(|other| other != name).collect();
    let is_whole = settings.with_file(&file, &left).is_ok_and(|after| names(&after) == others);
    if !is_whole {
        let what = format!("`{name}` is not a table of its own in `{file}`; nothing was changed");
        return Err(Failure::usage(what).hint(format!("it is in {place}: remove it there")));
    }
    if !args.dry_run {
        replace(&path, &left)
            .map_err(|error| Failure::usage(format!("cannot write `{file}`: {error}")))?;
    }
    let document = json!({"name": name, "file": file, "dryRun": args.dry_run});
    let verb = if args.dry_run { "would remove" } else { "removed" };
    context.output.data(&document, &format!("{file}: {verb} `[mcp.servers.{name}]`"))?;
    context.output.talk("a server that runs lets go of it within a second");
    Ok(Exit::Ok)
}

/// Where this upstream is written.
fn place_of(config: &Config, name: &str) -> Result<String> {
    let known = || config.upstreams.iter();
    let found = known().find(|entry| entry.name == name);
    found.map(|entry| entry.place.to_string()).ok_or_else(|| {
        let what = format!("the settings have no upstream `{name}`");
        let hint = meant(name, known().map(|entry| entry.name.as_str()));
        let hint = hint.unwrap_or_else(|| "`waypost mcp ls` lists the upstreams".to_owned());
        Failure::new(Exit::Failed, "not_found", what).hint(hint)
    })
}

/// The text without the tables of this upstream. Comments before the table that follows stay.
fn without(text: &str, name: &str) -> String {
    let mut kept = String::new();
    let mut after = String::new();
    let mut is_inside = false;
    for line in text.split_inclusive('\n') {
        if let Some(path) = header(line) {
            is_inside = path.starts_with(&["mcp", "servers", name]);
        }
        let trimmed = line.trim();
        if !is_inside {
            kept.push_str(&std::mem::take(&mut after));
            kept.push_str(line);
        } else if trimmed.is_empty() || trimmed.starts_with('#') {
            after.push_str(line);
        } else {
            after.clear();
        }
    }
    // Comments at the end of the file may be about something else.
    if !after.trim().is_empty() {
        kept.push_str(&after);
    }
    kept
}

/// The names in the head of a table: `[mcp.servers.a.env]`.
fn header(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('[')?;
    let inner = inner.strip_prefix('[').unwrap_or(inner);
    let (path, _) = inner.split_once(']')?;
    Some(path.split('.').map(|part| part.trim().trim_matches(['"', '\''])).collect())
}

/// As a whole: half a file would keep the server from starting. Where it is a link, what it leads to
/// is replaced.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    replace_file(&path.canonicalize()?, text.as_bytes(), FileAccess::Unchanged)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# all of it\n[server]\nport = 1\n\n[mcp.servers.a]\ncommand = \"x\"\n\
        # inside\nargs = []\n\n[mcp.servers.a.env]\nA = \"b\"\n\n# about b\n[mcp.servers.\"b\"]\n\
        url = \"http://b\"\n";

    #[test]
    fn a_table_is_removed_with_its_subtables() {
        let expected = "# all of it\n[server]\nport = 1\n\n\n# about b\n[mcp.servers.\"b\"]\n\
            url = \"http://b\"\n";
        assert_eq!(without(TEXT, "a"), expected);
        assert!(!without(TEXT, "b").contains("http://b"));
        assert!(without(TEXT, "b").contains("[mcp.servers.a.env]\nA = \"b\"\n\n# about b\n"));
        assert_eq!(without(TEXT, "c"), TEXT);
    }
}
