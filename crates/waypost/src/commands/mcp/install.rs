//! `waypost mcp install`: adds this server to a client's settings. The change is shown before it is
//! written, and everything else in the file is kept.

use super::snippet::{ClientArgs, NAME, Program, snippet, way};
use crate::commands::word;
use crate::context::Context;
use crate::exit::{Exit, Failure, Result};
use crate::terminal::input::file_or_empty;
use crate::terminal::unified::{TitledText, unified};
use clap::Args;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  waypost mcp install claude-code
  waypost mcp install cursor --dry-run      # only shows the change
  waypost mcp install vscode --file shop/.vscode/mcp.json";

/// What `waypost mcp install` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    pub(super) client: ClientArgs,
    /// The client's file of settings, where it is not the usual one
    #[arg(long)]
    file: Option<PathBuf>,
    /// Show the change and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// Shows the change, then writes it.
pub(super) fn run(args: &InstallArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let program = args.client.client;
    let text = snippet(program, &way(&args.client, context)?);
    let path = match &args.file {
        Some(path) => path.clone(),
        None => program.path().ok_or_else(|| no_home(program))?,
    };
    let file = path.display().to_string();
    let old = file_or_empty(&path, &file)?;
    let new = with(program, &old, &text).map_err(|why| {
        Failure::usage(format!("`{file}` cannot be changed: {why}"))
            .hint(format!("`waypost mcp snippet {}` prints what it needs", word(&program)))
    })?;
    let difference =
        unified(TitledText { name: &file, text: &old }, TitledText { name: &file, text: &new });
    let written = difference.is_some() && !args.dry_run;
    let document = json!({
        "client": word(&program), "file": file, "diff": difference, "written": written,
    });
    let Some(difference) = difference else {
        return output.done(&document, &format!("`{file}` has it already"));
    };
    output.data(&document, &difference)?;
    if args.dry_run {
        output.talk("nothing was written");
        return Ok(Exit::Ok);
    }
    write(&path, &new)?;
    output.talk(&format!("written to {file}"));
    Ok(Exit::Ok)
}

/// The settings with this snippet in them.
fn with(program: Program, old: &str, snippet: &str) -> Result<String, String> {
    if program.format() == "toml" { with_toml(old, snippet) } else { with_json(old, snippet) }
}

fn with_json(old: &str, snippet: &str) -> Result<String, String> {
    let whole = if old.trim().is_empty() { "{}" } else { old };
    let whole: Value =
        serde_json::from_str(whole).map_err(|error| format!("it is not plain JSON: {error}"))?;
    let ours: Value = serde_json::from_str(snippet).map_err(|error| error.to_string())?;
    let (Value::Object(mut whole), Value::Object(ours)) = (whole, ours) else {
        return Err("it is not a JSON object".to_owned());
    };
    for (list, servers) in ours {
        let known = whole.entry(list.as_str()).or_insert_with(|| Value::Object(Map::new()));
        let (Value::Object(known), Value::Object(servers)) = (known, servers) else {
            return Err(format!("`{list}` in it is not an object"));
        };
        known.extend(servers);
    }
    // Cannot fail: the keys of a `Value` are texts.
    let text = serde_json::to_string_pretty(&Value::Object(whole)).unwrap_or_default();
    Ok(format!("{text}\n"))
}

fn with_toml(old: &str, snippet: &str) -> Result<String, String> {
    let read = |text: &str| toml::from_str::<Value>(text).map_err(|error| error.to_string());
    let known = read(old)?;
    let ours = read(snippet)?;
    let entry = |settings: &Value| settings["mcp_servers"][NAME].clone();
    if entry(&known) == entry(&ours) {
        return Ok(old.to_owned());
    }
    if !entry(&known).is_null() {
        return Err(format!("it has another `[mcp_servers.{NAME}]`"));
    }
    let gap = match old {
        "" => "",
        old if old.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    Ok(format!("{old}{gap}{snippet}\n"))
}

fn write(path: &Path, text: &str) -> Result<()> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::write(path, text))
        .map_err(|error| Failure::usage(format!("cannot write `{}`: {error}", path.display())))
}

fn no_home(program: Program) -> Failure {
    let what = format!("`{}` is in your home folder, which is not known", program.file());
    Failure::usage(what).hint("name the file with `--file`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_json_is_kept() {
        let old = r#"{"theme": "dark", "mcpServers": {"other": {"url": "http://o"}}}"#;
        let ours = r#"{"mcpServers": {"waypost": {"url": "http://w"}}}"#;
        let new = with_json(old, ours).unwrap();
        let expected = json!({"theme": "dark", "mcpServers":
            {"other": {"url": "http://o"}, "waypost": {"url": "http://w"}}});
        assert_eq!(serde_json::from_str::<Value>(&new).unwrap(), expected);
        assert_eq!(with_json(&new, ours).unwrap(), new, "a second time changes nothing");
        assert!(with_json("// a comment\n{}", ours).unwrap_err().contains("not plain JSON"));
        assert!(with_json(r#"{"mcpServers": []}"#, ours).is_err());
    }

    #[test]
    fn existing_toml_is_kept() {
        let ours = "[mcp_servers.waypost]\nurl = \"http://w\"";
        let new = with_toml("model = \"x\" # mine\n", ours).unwrap();
        let expected = "model = \"x\" # mine\n\n[mcp_servers.waypost]\nurl = \"http://w\"\n";
        assert_eq!(new, expected);
        assert_eq!(with_toml(&new, ours).unwrap(), new);
        let other = ours.replace("http://w", "http://v");
        assert!(with_toml(&new, &other).unwrap_err().contains("another"));
    }
}
