//! `waypost doctor` looks at all that a server needs here, and says what to do about what is
//! missing. It changes nothing: its one probe file is removed again. `waypost mcp doctor` is the part
//! of it about upstreams, and compares one of them with what clients see of it.

mod report;
mod disk;
mod surroundings;
mod access;
mod rights;
mod upstreams;
mod sinks;
mod sessions;
mod gateway;

use crate::context::Context;
use crate::environment::locations::{project_folder, shown};
use crate::environment::{DATA_FOLDER, Environment};
use crate::exit::{Exit, Result};
use crate::plans::{Selection, load_project};
use crate::remote::client::Request;
use crate::settings::{Settings, file_of};
use crate::terminal::output::counted;
use clap::Args;
use project::config::Config;
use project::folder::Project;
use report::{Finding, Level, Report};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use surroundings::ServerFinding;

const EXAMPLES: &str = "\
Examples:
  waypost doctor                           # this folder's project
  waypost doctor shop && waypost up shop
  waypost doctor --data /var/lib/waypost
  waypost --json doctor | jq '.checks[] | select(.level == \"fail\")'";

const UPSTREAMS_EXAMPLES: &str = "\
Examples:
  waypost mcp doctor github
  waypost mcp doctor github --call list_labels --call 'get_issue={\"number\": 7}'
  waypost --json mcp doctor github | jq '.checks[] | select(.same | not)'";

const PORT_HELP: &str =
    "The port to listen on [default: waypost.toml, else 8420] [env: WAYPOST_PORT]";

/// How many of a list are looked at: more than any project has.
const LOOKED_AT: usize = 200;

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

/// What `waypost mcp doctor` takes.
#[derive(Debug, Args)]
#[command(after_help = UPSTREAMS_EXAMPLES)]
pub(crate) struct UpstreamsArgs {
    /// The upstream's name [default: all are looked at, and none is compared]
    name: Option<String>,
    /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
    pub(crate) dir: Option<PathBuf>,
    /// Call this tool too, with these arguments; can be given several times
    #[arg(long, value_name = "TOOL[=JSON]", requires = "name")]
    call: Vec<String>,
}

impl DoctorArgs {
    /// The project's folder.
    pub(crate) fn project(&self) -> PathBuf {
        project_folder(self.dir.as_deref())
    }
}

/// What is looked at: a folder, and the server that runs for it.
struct Site<'a> {
    context: &'a Context,
    /// The variables, with the data folder that is looked at.
    environment: Environment,
    folder: PathBuf,
    data: PathBuf,
    /// Defaults, where the settings are wrong.
    config: Config,
    project: Result<Project>,
    server: ServerFinding,
}

impl<'a> Site<'a> {
    /// This folder, whose data is here or in its usual place, for a server on this port or on the
    /// one of its settings; and what is to say of the settings.
    async fn of(
        folder: PathBuf,
        data: Option<PathBuf>,
        port: Option<u16>,
        context: &'a Context,
    ) -> (Self, Finding) {
        let data = data.unwrap_or_else(|| folder.join(DATA_FOLDER));
        let environment = context.environment.with_data(&data);
        let (finding, mut config) = settings(&folder, &environment);
        config.server.port = port.unwrap_or(config.server.port);
        let project = load_project(&folder, &environment);
        let server = surroundings::server(context, &config, &data).await;
        (Self { context, environment, folder, data, config, project, server }, finding)
    }

    /// What the server that runs lists there. Nothing where none runs; who may not list it is told
    /// nothing of it.
    async fn listed<T: DeserializeOwned>(&self, path: &str) -> Vec<T> {
        let Some(client) = &self.server.client else { return Vec::new() };
        client.items(Request::to(&[path]), LOOKED_AT).await.unwrap_or_default()
    }
}

/// Looks at everything.
pub(crate) async fn run(args: DoctorArgs, context: &Context) -> Result<Exit> {
    let (site, settings) = Site::of(args.project(), args.data, args.port, context).await;
    let mut findings = vec![settings];
    // Wrong settings are reported once.
    if findings.iter().all(|finding| finding.level != Level::Fail) {
        findings.push(plans(&site));
        findings.extend(rights::policies(&site));
    }
    findings.extend(disk::check(&site.data, site.server.is_served));
    findings.push(surroundings::port(&site.config, &site.data).await);
    findings.push(site.server.finding.clone());
    findings.extend(access::check(&site).await);
    findings.extend(rights::reload(&site).await);
    findings.extend(upstreams::check(&site).await);
    findings.extend(sinks::check(&site).await);
    findings.extend(sessions::check(&site).await);
    findings.extend(surroundings::telemetry(&site.environment));
    findings.push(surroundings::clock());
    findings.push(surroundings::certificates());
    Report::of(findings).tell(context.output)
}

/// Looks at the upstreams alone; at one by each way to it, where it is named. Ends with 4 where
/// that one wants a login first.
pub(crate) async fn run_upstreams(args: &UpstreamsArgs, context: &Context) -> Result<Exit> {
    if let Some(name) = &args.name {
        let findings = gateway::check(name, &args.call, context).await?;
        return Report::of_upstream(name, findings).tell(context.output);
    }
    let folder = project_folder(args.dir.as_deref());
    let (site, _) = Site::of(folder, None, None, context).await;
    let findings = upstreams::check(&site).await;
    // No other check tells what is wrong with its files.
    site.project?;
    Report::of(findings).tell(context.output)
}

/// What is to say of the settings, and what they say; defaults where they are wrong.
fn settings(folder: &Path, environment: &Environment) -> (Finding, Config) {
    let settings = match Settings::load(Some(folder), environment) {
        Ok(settings) => settings,
        Err(failure) => return (Finding::failed("config", &failure), Config::default()),
    };
    let finding = match settings.config.warnings.len() {
        0 => Finding::ok("config", files_told(folder, &settings)),
        count => {
            let what = format!("settings that have no effect: {count}");
            Finding::warn("config", what, "`waypost config check` names them")
        }
    };
    (finding, settings.config)
}

fn files_told(folder: &Path, settings: &Settings) -> String {
    let files = settings.files();
    if !files.is_empty() {
        return format!("{}: nothing is wrong there", files.join(", "));
    }
    let file = file_of(folder).map(|path| shown(&path)).unwrap_or_default();
    format!("{file} is not there: defaults hold")
}

fn plans(site: &Site<'_>) -> Finding {
    let project = match &site.project {
        Ok(project) => project,
        Err(failure) => return Finding::failed("plans", failure),
    };
    if project.plans.is_empty() {
        return Finding::warn("plans", "there are none", "`waypost init` writes one");
    }
    let all = match Selection::read(std::slice::from_ref(&site.folder), &site.environment) {
        Ok(selection) => selection.check(),
        Err(failure) => return Finding::failed("plans", &failure),
    };
    let mistakes = all.iter().flat_map(|checked| &checked.mistakes);
    let hint = "`waypost plan validate` says where";
    Finding::counting("plans", &counted(all.len(), "plan"), mistakes, hint)
}
