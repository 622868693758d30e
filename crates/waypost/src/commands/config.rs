//! `waypost config`: which settings hold, where each comes from, and where the file is.

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::output::Table;
use crate::plans::project_folder;
use crate::settings::{File, Setting};
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
        /// Say where each value comes from: a default, a line of waypost.toml, the environment
        /// or a flag
        #[arg(long)]
        origin: bool,
        /// The project: this folder, or the nearest one above it with a waypost.toml
        #[arg(default_value = ".")]
        dir: PathBuf,
    },
    /// Print where the project's waypost.toml is, or would be
    Path {
        /// The project: this folder, or the nearest one above it with a waypost.toml
        #[arg(default_value = ".")]
        dir: PathBuf,
    },
}

/// Runs `waypost config`.
pub(crate) fn run(args: &ConfigArgs, context: &Context) -> Result<Exit, Failure> {
    match &args.command {
        ConfigCommand::Show { origin, dir } => show(context, dir, *origin),
        ConfigCommand::Path { dir } => path(context, dir),
    }
}

fn show(context: &Context, dir: &Path, origin: bool) -> Result<Exit, Failure> {
    let file = File::read(&project_folder(dir))?;
    let settings = file.settings(&context.server);
    let output = context.output;
    if output.is_json() {
        let settings: Vec<Value> = settings.iter().map(as_json).collect();
        let path = file.path.display().to_string();
        output.document(&json!({"path": path, "there": file.is_there(), "settings": settings}))?;
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

fn path(context: &Context, dir: &Path) -> Result<Exit, Failure> {
    let file = File::read(&project_folder(dir))?;
    let path = std::path::absolute(&file.path).unwrap_or_else(|_| file.path.clone());
    let shown = path.display().to_string();
    if context.output.is_json() {
        context.output.document(&json!({"path": shown, "there": file.is_there()}))?;
        return Ok(Exit::Ok);
    }
    context.output.text(&shown)?;
    if !file.is_there() {
        context.output.talk("there is no such file; the defaults hold");
    }
    Ok(Exit::Ok)
}
