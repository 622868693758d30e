//! `waypost doctor`: looks at all that a server needs here, and says what to do about what is
//! missing. It changes nothing: its one probe file is removed again.

mod finding;
mod disk;
mod surroundings;
mod access;
mod rights;
mod upstreams;
mod sinks;
mod sessions;

use crate::context::Context;
use crate::environment::Environment;
use crate::environment::place::{project_folder, shown};
use crate::exit::{Exit, Result};
use crate::plans::{Selection, load_project};
use crate::settings::{Settings, file_of};
use crate::terminal::output::counted;
use clap::Args;
use finding::{Finding, Level};
use kernel::definition::plan::mistake::Mistake;
use project::config::Config;
use serde_json::json;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  waypost doctor                           # this folder's project
  waypost doctor shop && waypost up shop
  waypost doctor --data /var/lib/waypost
  waypost --json doctor | jq '.checks[] | select(.level == \"fail\")'";

const PORT_HELP: &str =
    "The port to listen on [default: waypost.toml, else 8420] [env: WAYPOST_PORT]";

/// What `waypost doctor` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
    dir: Option<PathBuf>,
    /// Where the data is kept [default: .waypost in the project]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[arg(long, help = PORT_HELP)]
    port: Option<u16>,
}

impl DoctorArgs {
    /// The project's folder.
    pub(crate) fn project(&self) -> PathBuf {
        project_folder(self.dir.as_deref())
    }
}

/// Looks, tells, and fails when something does not work.
pub(crate) async fn run(args: DoctorArgs, context: &Context) -> Result<Exit> {
    let folder = args.project();
    let data = args.data.unwrap_or_else(|| folder.join(".waypost"));
    let (mut findings, mut config) = project(&folder, &context.environment);
    config.server.port = args.port.unwrap_or(config.server.port);
    let server = surroundings::server(context, &config, &data).await;
    findings.extend(disk::look(&data, server.is_served));
    findings.push(surroundings::port(&config, &data).await);
    findings.push(server.finding);
    if let Some(client) = &server.client {
        findings.extend(access::look(client, context).await);
        findings.extend(rights::reload(client, context).await);
    }
    findings.extend(upstreams::look(&folder, context, server.client.clone()).await);
    findings.extend(sinks::look(&folder, &data, context, server.client.as_ref()).await);
    if let Some(client) = &server.client {
        findings.extend(sessions::look(client).await);
    }
    findings.extend(surroundings::telemetry(&context.environment));
    findings.push(surroundings::clock());
    findings.push(surroundings::certificates());
    tell(context, &findings)
}

/// The settings, the plans and the policies; where the settings are wrong, the rest is checked
/// with defaults.
fn project(folder: &Path, environment: &Environment) -> (Vec<Finding>, Config) {
    let (config, finding) = match Settings::load(Some(folder), environment) {
        Ok(settings) => {
            let finding = match settings.config.warnings.len() {
                0 => Finding::ok("config", files_told(folder, &settings)),
                count => {
                    let what = format!("settings that have no effect: {count}");
                    Finding::warn("config", what, "`waypost config check` names them")
                }
            };
            (settings.config, finding)
        }
        Err(failure) => (Config::default(), Finding::failed("config", &failure)),
    };
    let mut findings = vec![finding];
    // Wrong settings are reported once.
    if findings.iter().all(|finding| finding.level != Level::Fail) {
        findings.push(plans(folder, environment));
        findings.extend(rights::policies(folder, &config));
    }
    (findings, config)
}

fn files_told(folder: &Path, settings: &Settings) -> String {
    let files = settings.files();
    if !files.is_empty() {
        return format!("{}: nothing is wrong there", files.join(", "));
    }
    let file = file_of(folder).map(|path| shown(&path)).unwrap_or_default();
    format!("{file} is not there: defaults hold")
}

fn plans(folder: &Path, environment: &Environment) -> Finding {
    let project = match load_project(folder, environment) {
        Ok(project) => project,
        Err(failure) => return Finding::failed("plans", &failure),
    };
    if project.plans.is_empty() {
        return Finding::warn("plans", "there are none", "`waypost init` writes one");
    }
    let all = match Selection::read(&[folder.to_path_buf()], environment) {
        Ok(selection) => selection.check(),
        Err(failure) => return Finding::failed("plans", &failure),
    };
    let mistakes: Vec<&Mistake> = all.iter().flat_map(|checked| &checked.mistakes).collect();
    let errors = mistakes.iter().filter(|mistake| mistake.is_error()).count();
    let plans = counted(all.len(), "plan");
    let wrong = counted(errors, "error");
    let what = format!("{plans}, {wrong}, {}", counted(mistakes.len() - errors, "warning"));
    let hint = "`waypost plan validate` says where";
    match (errors, mistakes.len()) {
        (0, 0) => Finding::ok("plans", what),
        (0, _) => Finding::warn("plans", what, hint),
        _ => Finding::fail("plans", what, hint),
    }
}

fn tell(context: &Context, findings: &[Finding]) -> Result<Exit> {
    let count = |level: Level| findings.iter().filter(|finding| finding.level == level).count();
    let fails = count(Level::Fail);
    let warnings = count(Level::Warn);
    let checks: Vec<_> = findings.iter().map(Finding::to_json).collect();
    let document = json!({"healthy": fails == 0, "checks": checks});
    let line = |finding: &Finding| context.output.judged(finding.tone(), &finding.to_string());
    context.output.either(&document, || findings.iter().try_for_each(line))?;
    let looked = findings.len();
    let checks = counted(looked, "check");
    let warnings = counted(warnings, "warning");
    context.output.talk(&format!("{checks}, {fails} failed, {warnings}"));
    Ok(if fails == 0 { Exit::Ok } else { Exit::Unwell })
}
