//! `waypost config`: which settings hold, where each comes from, and where the project's file is.

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::output::Table;
use crate::place::{project_folder, shown};
use crate::settings::{Setting, Settings, file_of};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  waypost config show                      # every setting that holds here
  waypost config show --origin | grep -v ' default$'
  waypost --json config show shop
  waypost config path";

/// What `waypost config` takes.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Show every setting; of a secret only whether it is set
    Show {
        /// Say where each value comes from: a line of a file, a variable, a flag or a default
        #[arg(long)]
        origin: bool,
        /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
        dir: Option<PathBuf>,
    },
    /// Print where the project's waypost.toml is, or would be
    Path {
        /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
        dir: Option<PathBuf>,
    },
}

impl ConfigArgs {
    /// The project's folder.
    pub(crate) fn project(&self) -> PathBuf {
        match &self.command {
            ConfigCommand::Show { dir, .. } | ConfigCommand::Path { dir } => {
                project_folder(dir.as_deref())
            }
        }
    }
}

/// Runs `waypost config`.
pub(crate) fn run(args: &ConfigArgs, context: &Context) -> Result<Exit, Failure> {
    let folder = args.project();
    match &args.command {
        ConfigCommand::Show { origin, .. } => show(context, &folder, *origin),
        ConfigCommand::Path { .. } => path(context, &folder),
    }
}

fn show(context: &Context, folder: &Path, origin: bool) -> Result<Exit, Failure> {
    let loaded = Settings::load(Some(folder), &context.environment)?;
    let server = (context.server.as_str(), &context.server_origin);
    let settings = loaded.all(server, &context.environment);
    let output = context.output;
    if output.is_json() {
        let path = file_of(folder)?;
        output.document(&json!({
            "path": shown(&path),
            "there": path.is_file(),
            "files": loaded.files(),
            "settings": settings.iter().map(as_json).collect::<Vec<Value>>(),
        }))?;
        return Ok(Exit::Ok);
    }
    let heads: &[&str] =
        if origin { &["setting", "value", "origin"] } else { &["setting", "value"] };
    let mut table = Table::new(heads);
    for setting in settings {
        let mut row = vec![setting.key, setting.value.to_string()];
        if origin {
            row.push(setting.origin.to_string());
        }
        table.row(row);
    }
    output.text(&table.text())?;
    Ok(Exit::Ok)
}

fn as_json(setting: &Setting) -> Value {
    json!({
        "key": setting.key,
        "value": setting.value,
        "origin": setting.origin.to_string(),
    })
}

fn path(context: &Context, folder: &Path) -> Result<Exit, Failure> {
    let file = file_of(folder)?;
    let path = std::path::absolute(&file).unwrap_or(file);
    let (shown, is_there) = (path.display().to_string(), path.is_file());
    if context.output.is_json() {
        context.output.document(&json!({"path": shown, "there": is_there}))?;
        return Ok(Exit::Ok);
    }
    context.output.text(&shown)?;
    if !is_there {
        context.output.talk("there is no such file; the defaults hold");
    }
    Ok(Exit::Ok)
}
