//! Appends tables to a project's `waypost.toml`. The present text and its comments are kept, and an
//! entry that could not be used is not written.

use crate::commands::upstream::{lookup, mistaken};
use crate::context::Context;
use crate::environment::locations::shown;
use crate::exit::{Exit, Failure, Result};
use crate::settings::{Settings, file_of};
use crate::terminal::input::file_or_empty;
use kernel::definition::plan::mistake::Mistake;
use project::config::Config;
use project::folder::Project;
use project::upstream_entries::{ConvertedEntry, Entry, Upstreams, Variables, WrittenEntries};
use serde_json::json;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::path::Path;

/// What the tables come to stand beside.
struct TableContext<'a> {
    /// The project's folder.
    folder: &'a Path,
    /// The settings of all files, as they are.
    settings: &'a Settings,
    variables: &'a Variables<'a>,
}

/// Adds a table to this list of the project's settings and says so, and when a server has it.
pub(in crate::commands) fn add(
    list: &str,
    table: ConvertedEntry,
    taken_up: &str,
    folder: &Path,
    context: &Context,
) -> Result<Exit> {
    let name = table.name.clone();
    let tables = [table];
    let file = add_all(&tables, folder, context)?;
    let output = context.output;
    let text = format!("{file}: added `[{list}.{name}]`");
    output.data(&json!({"name": name, "file": file}), &text)?;
    tell_plain(context, &file, &tables);
    output.talk(taken_up);
    output.talk(&format!("now try: {} mcp test {name}", context.program));
    Ok(Exit::Ok)
}

/// Adds these tables to the project's settings; where.
pub(super) fn add_all(
    tables: &[ConvertedEntry],
    folder: &Path,
    context: &Context,
) -> Result<String> {
    let settings = Settings::load(Some(folder), &context.environment)?;
    let variables = lookup(&context.environment);
    append(tables, &TableContext { folder, settings: &settings, variables: &variables })
}

/// Tells which values are written out, since they may be secrets.
pub(super) fn tell_plain(context: &Context, file: &str, tables: &[ConvertedEntry]) {
    let plain: Vec<String> = tables.iter().flat_map(|table| table.plain.clone()).collect();
    if !plain.is_empty() {
        let names = plain.join("`, `");
        context.output.talk(&format!(
            "{file} holds what `{names}` are set to; if that is secret, write `${{NAME}}` there \
             and put the value into `.env`"
        ));
    }
}

fn append(tables: &[ConvertedEntry], beside: &TableContext<'_>) -> Result<String> {
    let path = file_of(beside.folder)?;
    let file = shown(&path);
    let added = |present: &str| addition(&file, present, tables, beside);
    let present = file_or_empty(&path, &file)?;
    // Asked before the file is opened: what cannot be added makes none.
    added(&present)?;
    write(&path, &added)?;
    Ok(file)
}

/// Writes what is to be added to the end of what the file says now.
fn write(path: &Path, added: &dyn Fn(&str) -> Result<String>) -> Result<()> {
    let unwritable =
        |error: io::Error| Failure::usage(format!("cannot write `{}`: {error}", shown(path)));
    let opened = OpenOptions::new().read(true).append(true).create(true).open(path);
    let mut file = opened.map_err(unwritable)?;
    // Two who add at once take turns, and the second reads what the first wrote. Where the system
    // has no such locks there is nothing to wait for.
    let _ = file.lock();
    let mut present = String::new();
    file.read_to_string(&mut present).map_err(unwritable)?;
    let text = added(&present)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    written.map_err(|error| {
        // Half a table would keep the server from starting; why it was not written says more than
        // why it stays.
        let _ = file.set_len(u64::try_from(present.len()).unwrap_or(u64::MAX));
        unwritable(error)
    })
}

/// What is added to this text of the file, if all of it can be used then.
fn addition(
    file: &str,
    present: &str,
    tables: &[ConvertedEntry],
    beside: &TableContext<'_>,
) -> Result<String> {
    let of_all = |text: &str| beside.settings.with_file(file, text);
    let before = of_all(present).map_err(|found| unread(file, &found))?;
    for table in tables {
        if let Some(known) = before.upstreams.iter().find(|entry| entry.name == table.name) {
            let what = format!("`{}` is in {} already", table.name, known.place);
            return Err(Failure::usage(what).hint("choose another name, or change it there"));
        }
    }
    let texts: Vec<&str> = tables.iter().map(|table| table.text.as_str()).collect();
    let added = format!("{}{}\n", gap(present), texts.join("\n\n"));
    let after = of_all(&format!("{present}{added}")).map_err(|found| {
        let hint =
            "if `mcp`, `mcp.servers` or `a2a` is written in one line there, write it as a table";
        unread(file, &found).hint(hint)
    })?;
    let is_new = |entry: &&Entry| tables.iter().any(|table| table.name == entry.name);
    let new = after.upstreams.iter().filter(is_new);
    let unusable: Vec<Mistake> = new.filter_map(Entry::unusable).collect();
    if !unusable.is_empty() {
        return Err(mistaken(&unusable).hint("nothing was written"));
    }
    // A name that `.mcp.json` or the environment has already would keep the server from starting.
    let clients = Project::load(beside.folder, Config::default())
        .map_err(|error| Failure::usage(error.to_string()))?
        .clients;
    let written = WrittenEntries { ours: &after.upstreams, theirs: &clients.entries };
    Upstreams::combine(beside.folder, written, beside.variables)
        .map_err(|found| mistaken(&found).hint("nothing was written"))?;
    Ok(added)
}

/// What separates a table from what stands before it.
fn gap(present: &str) -> &'static str {
    if present.is_empty() || present.ends_with("\n\n") {
        ""
    } else if present.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    }
}

fn unread(file: &str, mistakes: &[Mistake]) -> Failure {
    Failure::usage(format!("nothing was written: `{file}` would not be read")).lines(mistakes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn table(name: &str) -> ConvertedEntry {
        ConvertedEntry {
            name: name.to_owned(),
            text: format!("[mcp.servers.{name}]\ncommand = \"x\""),
            variables: Vec::new(),
            plain: Vec::new(),
        }
    }

    fn append(folder: &Path, tables: &[ConvertedEntry]) -> Result<String> {
        let variables = |name: &str| (name == "ASSISTANT_MCP_URL").then(|| "http://a".to_owned());
        let settings = Settings::default();
        super::append(tables, &TableContext { folder, settings: &settings, variables: &variables })
    }

    #[test]
    fn existing_text_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("waypost.toml");
        append(folder.path(), &[table("a")]).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "[mcp.servers.a]\ncommand = \"x\"\n");
        let present = "# ours\n[server]   # why\nport = 1";
        fs::write(&file, present).unwrap();
        append(folder.path(), &[table("a"), table("b")]).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(
            text,
            format!(
                "{present}\n\n[mcp.servers.a]\ncommand = \"x\"\n\n\
                 [mcp.servers.b]\ncommand = \"x\"\n"
            )
        );
        let again = append(folder.path(), &[table("b")]).unwrap_err().to_string();
        assert!(again.contains("`b` is in") && again.contains("waypost.toml:8 already"), "{again}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text, "nothing was written");
    }

    #[test]
    fn entries_that_could_not_be_read_back_are_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("waypost.toml");
        for present in ["mcp = { lenient = true }\n", "[server\n"] {
            fs::write(&file, present).unwrap();
            append(folder.path(), &[table("a")]).unwrap_err();
            assert_eq!(fs::read_to_string(&file).unwrap(), present);
        }
        fs::write(&file, "").unwrap();
        let json = "{\"mcpServers\": {\"a\": {\"command\": \"y\"}}}";
        fs::write(folder.path().join(".mcp.json"), json).unwrap();
        let told = append(folder.path(), &[table("a")]).unwrap_err().to_string();
        assert!(told.contains("upstream `a` is in .mcp.json:1 already"), "{told}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "");
    }

    #[test]
    fn entries_that_could_not_be_used_are_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str, text: &str| ConvertedEntry {
            text: format!("[mcp.servers.{name}]\n{text}"),
            ..table(name)
        };
        for (moved, why) in [
            (of("a", "url = \"http://\""), "is not the address of a server"),
            (of("a", "url = \"http://b\"\nheaders = { \"A B\" = \"${X}\" }"), "the header `A B`"),
            (of("a", "url = \"http://b?k=${WAYPOST_ADMIN_KEY}\""), "a key of our own"),
            (of("assistant", "url = \"http://b\""), "is in environment ASSISTANT_MCP_URL already"),
        ] {
            let told = append(folder.path(), &[moved]).unwrap_err().to_string();
            assert!(told.contains(why) && told.contains("nothing was written"), "{told}");
        }
        assert!(!folder.path().join("waypost.toml").exists(), "no file is made");
        append(folder.path(), &[of("a", "url = \"${HUB}/mcp\"")]).unwrap();
    }

    #[test]
    fn concurrent_edits_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("waypost.toml");
        let added = |present: &str| {
            let text = if present.is_empty() { "" } else { "second\n" };
            Ok(format!("{text}after {} bytes\n", present.len()))
        };
        for _ in 0..2 {
            assert!(write(&file, &added).is_ok());
        }
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, "after 0 bytes\nsecond\nafter 14 bytes\n");
    }
}
