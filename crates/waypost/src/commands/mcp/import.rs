//! `waypost mcp import`: imports the servers of another client's settings. Its files are only read.

use super::settings_file::{add_all, tell_plain};
use crate::context::Context;
use crate::environment::locations::{project_folder, shown};
use crate::exit::{Exit, Failure, Result};
use crate::plans::load_project;
use crate::terminal::table::table;
use clap::Args;
use kernel::definition::plan::mistake::Mistake;
use project::config::Config;
use project::folder::{CONFIG_FILE, Project};
use project::upstream_entries::client_files::{self, ImportedServers};
use project::upstream_entries::{ConvertedEntry, Entry, converted};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  waypost mcp import claude                # what Claude Code and Claude Desktop know
  waypost mcp import cursor --write        # adds what Cursor knows to waypost.toml
  waypost mcp import vscode shop
  waypost mcp import ~/backup/mcp.json";

/// What `waypost mcp import` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ImportArgs {
    /// claude, cursor, vscode or codex, or a file of such a client
    #[arg(value_name = "CLIENT|FILE")]
    from: String,
    /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
    pub(super) dir: Option<PathBuf>,
    /// Add them to the project's waypost.toml
    #[arg(long)]
    write: bool,
}

/// What was found under one name.
struct Candidate {
    entry: Entry,
    /// As our settings would write it.
    table: Option<ConvertedEntry>,
    /// Why it is not taken, if so.
    left_out: Option<String>,
}

/// Finds them, tells of them, and writes them where that is wanted.
pub(super) fn run(args: &ImportArgs, context: &Context) -> Result<Exit> {
    let folder = project_folder(args.dir.as_deref());
    let project = load_project(&folder, &context.environment)?;
    let found = read_files(args, &folder)?;
    let candidates = candidates(found.entries, &project);
    let tables: Vec<ConvertedEntry> = candidates
        .iter()
        .filter(|candidate| candidate.left_out.is_none())
        .filter_map(|candidate| candidate.table.clone())
        .collect();
    let is_written = args.write && !tables.is_empty();
    let written = if is_written { Some(add_all(&tables, &folder, context)?) } else { None };
    let servers: Vec<Value> = candidates.iter().map(as_json).collect();
    let warnings: Vec<String> = found.warnings.iter().map(Mistake::to_string).collect();
    let report = json!({"servers": servers, "written": written, "warnings": warnings});
    context.output.data(&report, &listed(&candidates))?;
    for warning in &warnings {
        context.output.talk(warning);
    }
    tell_asked(context, &tables);
    match written {
        Some(file) => {
            tell_plain(context, &file, &tables);
            context.output.talk(&format!("{} added to {file}", tables.len()));
        }
        None if !tables.is_empty() => {
            context.output.talk("nothing was written; `--write` adds them to waypost.toml");
        }
        None => {}
    }
    Ok(Exit::Ok)
}

/// What the files hold that the command line names.
fn read_files(args: &ImportArgs, folder: &Path) -> Result<ImportedServers> {
    let home = std::env::home_dir().unwrap_or_default();
    let Some(files) = files_of(&args.from, folder, &home) else {
        return read(Path::new(&args.from), folder).and_then(|found| {
            let none = || Failure::usage(format!("there is no file `{}`", args.from));
            found.ok_or_else(|| none().hint("name a file, or claude, cursor, vscode or codex"))
        });
    };
    let mut all: Option<ImportedServers> = None;
    for file in &files {
        let Some(found) = read(file, folder)? else { continue };
        let all = all.get_or_insert_with(ImportedServers::default);
        // The first file is the nearest one.
        let is_new = |entry: &Entry| !all.entries.iter().any(|known| known.name == entry.name);
        let new: Vec<Entry> = found.entries.into_iter().filter(is_new).collect();
        all.entries.extend(new);
        all.warnings.extend(found.warnings);
    }
    all.ok_or_else(|| {
        Failure::usage(format!("no settings of {} are here", args.from))
            .lines(files.iter().map(|file| shown(file)))
            .hint("name the file: `waypost mcp import FILE`")
    })
}

/// Where a client keeps its settings, the nearest place first; none for what is no client.
fn files_of(client: &str, folder: &Path, home: &Path) -> Option<Vec<PathBuf>> {
    let applications = if cfg!(target_os = "macos") {
        home.join("Library/Application Support")
    } else if cfg!(windows) {
        home.join("AppData/Roaming")
    } else {
        home.join(".config")
    };
    Some(match client {
        // The project's own `.mcp.json` is read by the server anyway.
        "claude" => {
            vec![home.join(".claude.json"), applications.join("Claude/claude_desktop_config.json")]
        }
        "cursor" => vec![folder.join(".cursor/mcp.json"), home.join(".cursor/mcp.json")],
        "vscode" => {
            vec![folder.join(".vscode/mcp.json"), applications.join("Code/User/mcp.json")]
        }
        "codex" => vec![folder.join(".codex/config.toml"), home.join(".codex/config.toml")],
        _ => return None,
    })
}

/// What a file holds; none where there is no such file.
fn read(path: &Path, folder: &Path) -> Result<Option<ImportedServers>> {
    let file = shown(path);
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let failure = Failure::usage(format!("cannot read `{file}`: {error}"));
            let is_no_text = error.kind() == std::io::ErrorKind::InvalidData;
            return Err(if is_no_text { failure.hint("save it in UTF-8") } else { failure });
        }
    };
    let project = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    let project = project.to_string_lossy();
    client_files::read(&file, &text, Some(project.trim_end_matches("/.")))
        .map(Some)
        .map_err(|found| Failure::usage(format!("there are mistakes in `{file}`")).lines(found))
}

fn candidates(entries: Vec<Entry>, project: &Project) -> Vec<Candidate> {
    let settings = &project.config.server;
    let ourselves = project.ourselves(SocketAddr::new(settings.host, settings.port));
    let known = |name: &str| {
        let mut ours = project.config.upstreams.iter().chain(&project.clients.entries);
        ours.find(|entry| entry.name == name).map(|entry| entry.place.to_string())
    };
    let mut taken: BTreeMap<String, String> = BTreeMap::new();
    let candidate = |entry: Entry| {
        let table = converted(&entry);
        let name = table.as_ref().map_or(entry.name.as_str(), |table| table.name.as_str());
        let left_out = if ourselves.are_behind(&entry) {
            Some("it is this project's own server".to_owned())
        } else if let Some(place) = known(name).or_else(|| taken.get(name).cloned()) {
            Some(format!("`{name}` is in {place} already"))
        } else {
            table.as_ref().and_then(unusable)
        };
        if left_out.is_none() {
            taken.insert(name.to_owned(), entry.place.to_string());
        }
        Candidate { entry, table, left_out }
    };
    entries.into_iter().map(candidate).collect()
}

/// Why our settings could not have it.
fn unusable(table: &ConvertedEntry) -> Option<String> {
    if table.name.is_empty() {
        return Some("it has no name".to_owned());
    }
    let mistake = match Config::parse(CONFIG_FILE, &table.text) {
        Ok(config) => config.upstreams.iter().find_map(Entry::unusable),
        Err(found) => found.into_iter().next(),
    };
    mistake.map(|mistake| mistake.message)
}

fn listed(all: &[Candidate]) -> String {
    let row = |candidate: &Candidate| {
        let facts = candidate.entry.facts();
        let name = candidate.table.as_ref().map_or(facts.name, |table| table.name.clone());
        let why = candidate.left_out.clone().unwrap_or_default();
        vec![name, facts.kind, facts.target, facts.origin, why]
    };
    table(&["name", "kind", "target", "from", "left out"], all.iter().map(row))
}

fn as_json(candidate: &Candidate) -> Value {
    let facts = candidate.entry.facts();
    let variables = candidate.table.as_ref().map(|table| table.variables.as_slice());
    json!({
        "name": candidate.table.as_ref().map_or(facts.name.as_str(), |table| table.name.as_str()),
        "kind": facts.kind,
        "target": facts.target,
        "from": facts.origin,
        "headers": facts.headers,
        "env": facts.env,
        "asked": variables.unwrap_or_default(),
        "leftOut": candidate.left_out,
    })
}

/// Tells which variables stand now for what an editor would ask for.
fn tell_asked(context: &Context, tables: &[ConvertedEntry]) {
    let variables: Vec<String> = tables.iter().flat_map(|table| table.variables.clone()).collect();
    if !variables.is_empty() {
        let names = variables.join("`, `");
        context.output.talk(&format!(
            "the client asks for these; set them as variables, or in `.env`: `{names}`"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use project::folder::CLIENTS_FILE;

    #[test]
    fn every_client_has_its_files() {
        let folder = Path::new("shop");
        let home = Path::new("/home/ada");
        for client in ["claude", "cursor", "vscode", "codex"] {
            let files = files_of(client, folder, home).unwrap();
            assert_eq!(files.len(), 2, "{client}");
            assert!(files.iter().all(|file| file.file_name() != Some(CLIENTS_FILE.as_ref())));
        }
        assert_eq!(files_of("mcp.json", folder, home), None);
    }
}
