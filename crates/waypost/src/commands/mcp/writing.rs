//! Tables that are added to a project's `waypost.toml`, at its end: what stands there stays as it
//! is, with its comments. What would not be read afterwards is not written.

use super::upstream::mistaken;
use crate::exit::Failure;
use crate::place::shown;
use crate::settings::file_of;
use kernel::plan::mistake::Mistake;
use server::config::Config;
use server::project::Project;
use server::upstreams::{Moved, Upstreams};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Adds these tables to the project's settings; where.
pub(super) fn append(folder: &Path, tables: &[Moved]) -> Result<String, Failure> {
    let path = file_of(folder)?;
    let file = shown(&path);
    let present = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::usage(format!("cannot read `{file}`: {error}"))),
    };
    let before = Config::parse(&file, &present).map_err(|found| unread(&file, &found))?;
    for table in tables {
        if let Some(known) = before.upstreams.iter().find(|entry| entry.name == table.name) {
            let what = format!("`{}` is in {} already", table.name, known.place);
            return Err(Failure::usage(what).hint("choose another name, or change it there"));
        }
    }
    let texts: Vec<&str> = tables.iter().map(|table| table.text.as_str()).collect();
    let added = format!("{}{}\n", gap(&present), texts.join("\n\n"));
    let after = Config::parse(&file, &format!("{present}{added}")).map_err(|found| {
        unread(&file, &found).hint(format!("write it by hand:\n{}", texts.join("\n\n")))
    })?;
    // A name that `.mcp.json` has already would keep the server from starting.
    let clients = Project::load(folder, Config::default())
        .map_err(|error| Failure::usage(error.to_string()))?
        .clients;
    Upstreams::combine(folder, (&after.upstreams, &clients.entries), &|_| None)
        .map_err(|found| mistaken(&found))?;
    let appended = OpenOptions::new()
        .append(true)
        .create(true)
        .open(&path)
        .and_then(|mut file| file.write_all(added.as_bytes()));
    appended.map_err(|error| Failure::usage(format!("cannot write `{file}`: {error}")))?;
    Ok(file)
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
    let lines = mistakes.iter().map(Mistake::to_string).collect();
    Failure::usage(format!("nothing was written: `{file}` would not be read")).lines(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn table(name: &str) -> Moved {
        Moved {
            name: name.to_owned(),
            text: format!("[mcp.servers.{name}]\ncommand = \"x\""),
            asked: Vec::new(),
            plain: Vec::new(),
        }
    }

    #[test]
    fn what_is_there_stays_as_it_is() {
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
    fn what_would_not_be_read_is_not_written() {
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
}
