//! `waypost config`: shows each setting with its origin and the project's file, and checks whether
//! a server would start.

use crate::context::Context;
use crate::environment::locations::{project_folder, shown};
use crate::environment::{DATA_FOLDER, Environment, SECRET_KEY};
use crate::exit::{Exit, Failure, Result};
use crate::plans::{load_project, parts_of_command};
use crate::settings::{Setting, Settings, file_of};
use crate::terminal::output::counted;
use crate::terminal::table::table;
use clap::Subcommand;
use kernel::definition::plan::mistake::Mistake;
use policy::decide::Policies;
use serde_json::{Value, json};
use server::{ProjectReport, ToCheck, check_project, unfit_documents};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  waypost config show                      # every setting that holds here
  waypost config show --origin | grep -v ' default$'
  waypost --json config show shop
  waypost config check                     # all that `waypost up` would refuse here
  waypost config path";

/// What `waypost config` takes.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum ConfigCommand {
    /// Show every setting; of a secret only whether it is set
    Show {
        /// Say where each value comes from: a line of a file, a variable, a flag or a default
        #[arg(long)]
        origin: bool,
        /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
        dir: Option<PathBuf>,
    },
    /// Check all that `waypost up` reads before it serves, and report every mistake
    Check {
        /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
        dir: Option<PathBuf>,
    },
    /// Print where the project's waypost.toml is, or would be
    Path {
        /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
        dir: Option<PathBuf>,
    },
}

impl ConfigCommand {
    /// The project's folder.
    pub(crate) fn project(&self) -> PathBuf {
        match self {
            ConfigCommand::Show { dir, .. }
            | ConfigCommand::Check { dir }
            | ConfigCommand::Path { dir } => project_folder(dir.as_deref()),
        }
    }
}

/// Runs `waypost config`.
pub(crate) async fn run(command: &ConfigCommand, context: &Context) -> Result<Exit> {
    let folder = command.project();
    match command {
        ConfigCommand::Show { origin, .. } => show(context, &folder, *origin),
        ConfigCommand::Check { .. } => check(context, &folder).await,
        ConfigCommand::Path { .. } => path(context, &folder),
    }
}

fn show(context: &Context, folder: &Path, origin: bool) -> Result<Exit> {
    let loaded = Settings::load(Some(folder), &context.environment)?;
    // Where no server runs for this folder, clients go where its settings say.
    let server = match loaded.served_at() {
        Some(described) if !context.has_named_server() => described,
        _ => context.server.clone(),
    };
    let settings = loaded.all(&server, &context.environment);
    let path = file_of(folder)?;
    let document = json!({
        "path": shown(&path),
        "there": path.is_file(),
        "files": loaded.files(),
        "settings": settings.iter().map(as_json).collect::<Vec<Value>>(),
    });
    let columns = if origin { 3 } else { 2 };
    let row = |setting: &Setting| {
        let cells = [setting.key.clone(), setting.value.to_string(), setting.origin.to_string()];
        cells[..columns].to_vec()
    };
    let heads = &["setting", "value", "origin"][..columns];
    context.output.data(&document, &table(heads, settings.iter().map(row)))
}

fn as_json(setting: &Setting) -> Value {
    json!({
        "key": setting.key,
        "value": setting.value,
        "origin": setting.origin.to_string(),
    })
}

/// Checks settings, variables and files as a start would, without a start.
async fn check(context: &Context, folder: &Path) -> Result<Exit> {
    let settings = Settings::load(Some(folder), &context.environment)?;
    let data = folder.join(DATA_FOLDER);
    let environment = context.environment.with_data(&data);
    let setup = ToCheck {
        folder,
        data: &data,
        variables: &|name: &str| environment.any(name),
        secret_key: environment.text(SECRET_KEY),
    };
    let ProjectReport { mut mistakes, counts } = check_project(&setup, settings.config);
    mistakes.extend(unfit(folder, &environment).await);
    let (errors, warnings): (Vec<&Mistake>, Vec<&Mistake>) =
        mistakes.iter().partition(|mistake| mistake.is_error());
    if !errors.is_empty() {
        return Err(refused(&errors, data.is_dir()));
    }
    let mut found = json!({"ok": true, "warnings": warnings});
    for (word, count) in &counts {
        found[format!("{word}s")] = json!(count);
    }
    for warning in warnings {
        context.output.talk(&warning.to_string());
    }
    let told: Vec<String> = counts.iter().map(|(word, count)| counted(*count, word)).collect();
    context.output.data(&found, &format!("ok: {}", told.join(", ")))
}

/// The mistakes of policies that do not fit the tools of OpenAPI documents which are files. What
/// cannot be read is reported already.
async fn unfit(folder: &Path, environment: &Environment) -> Vec<Mistake> {
    let Ok(project) = load_project(folder, environment) else { return Vec::new() };
    let Some(Ok((policies, _))) =
        project.policies.as_ref().map(|files| Policies::read(files.texts()))
    else {
        return Vec::new();
    };
    let variables = |name: &str| environment.any(name);
    let configs = project.upstreams(&variables).and_then(|all| all.configs(&variables));
    let parts = parts_of_command(Arc::new(project.config.limits.clone()));
    unfit_documents(&policies, &configs.unwrap_or_default(), parts).await
}

fn refused(errors: &[&Mistake], has_data: bool) -> Failure {
    let what = match errors.len() {
        1 => "`waypost up` would refuse this project: there is 1 mistake".to_owned(),
        count => format!("`waypost up` would refuse this project: there are {count} mistakes"),
    };
    let failure = Failure::new(Exit::Usage, "invalid_project", what).lines(errors);
    match has_data {
        true => failure.hint(
            "only files are checked: an agent, a plan or a provider that is stored in the data \
             folder counts as missing",
        ),
        false => failure,
    }
}

fn path(context: &Context, folder: &Path) -> Result<Exit> {
    let file = file_of(folder)?;
    let path = std::path::absolute(&file).unwrap_or(file);
    let shown = path.display().to_string();
    let is_there = path.is_file();
    let document = json!({"path": shown, "there": is_there});
    context.output.data(&document, &shown)?;
    if !is_there {
        context.output.talk("there is no such file; the defaults hold");
    }
    Ok(Exit::Ok)
}
