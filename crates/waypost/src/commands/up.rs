//! `waypost up`: serves a project, or the demo, until a signal stops it. `waypost serve` does the
//! same of a project, and asks every caller for a credential.

use crate::assembly::{Keys, assemble, refused};
use crate::context::Context;
use crate::environment::Environment;
use crate::environment::locations::project_folder;
use crate::exit::{Exit, Failure, Result};
use crate::process::descriptors;
use crate::process::logs::{HeldLogs, LogFormat};
use crate::process::notices;
use crate::process::signals::Signals;
use crate::remote::address;
use crate::remote::client::DEFAULT_SERVER;
use crate::served::{DataChoice, sources};
use crate::settings::Settings;
use crate::terminal::output::counted;
use crate::terminal::progress::Progress;
use clap::Args;
use engine::UnfinishedRuns;
use project::config::ServerConfig;
use project::folder::{Project, ProjectError};
use serde_json::json;
use server::{AssembleError, ConfigReader, OwnPort, PortError, Tls, TlsError, Watch};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::TcpListener;

const EXAMPLES: &str = "\
Examples:
  waypost up --demo                       # examples in a folder of their own, gone at the end
  waypost up                              # this folder's project; its data is in .waypost/
  waypost up --watch                      # take changes of its files without a restart
  waypost up shop --port 0 --log json     # another project, a free port, logs for programs
  waypost up --data /var/lib/waypost      # its data elsewhere
  waypost up --pipeline trades.yaml       # one more pipeline, wherever its file is";

const SERVE_EXAMPLES: &str = "\
Examples:
  waypost key add --name me --role admin    # the first key, before the server is started
  waypost serve                                # this folder's project, for who has a key
  WAYPOST_API_KEY=wp_.. waypost whoami         # in another terminal
  waypost serve --data /var/lib/waypost        # its data elsewhere

`waypost up` on a loopback address asks no one for a credential, unless `hosts`, `origins` or
`public_url` let others in. `waypost serve` asks everybody, whatever the settings say, and refuses
to start where there is no key and no WAYPOST_ADMIN_KEY.";

const PORT_HELP: &str = "\
The port to listen on; 0 takes a free one [default: waypost.toml, else 8420] [env: WAYPOST_PORT]";
const HOST_HELP: &str = "The address to listen on; others than loopback need keys and TLS \
                         [default: waypost.toml, else 127.0.0.1] [env: WAYPOST_HOST]";

/// What `waypost up` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    served: ServedArgs,
    /// Serve the embedded examples; ephemeral unless --data is given
    #[arg(long, conflicts_with_all = ["dir", "watch"])]
    demo: bool,
}

/// What `waypost serve` takes.
#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    served: ServedArgs,
}

/// What both take.
#[derive(Debug, Args)]
struct ServedArgs {
    /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
    dir: Option<PathBuf>,
    // Read with the other settings and not by clap, which does not know the project's `.env`.
    #[arg(long, help = PORT_HELP)]
    port: Option<u16>,
    #[arg(long, help = HOST_HELP)]
    host: Option<String>,
    /// Where the data is kept [default: .waypost in the project]
    #[arg(long, value_name = "DIR", conflicts_with = "ephemeral")]
    data: Option<PathBuf>,
    /// Keep the data in a private temporary folder, removed at the end
    #[arg(long)]
    ephemeral: bool,
    /// Begin with a new database if the data folder has lost its own
    #[arg(long)]
    new: bool,
    /// Accept that acknowledged writes were lost, and serve the rest
    #[arg(long, conflicts_with = "new")]
    after_loss: bool,
    /// One more pipeline, beside those in the project's pipelines/; may be given several times
    #[arg(long, value_name = "FILE")]
    pipeline: Vec<PathBuf>,
    /// Take changes of plans, agents, pipelines and rules as they come, and not only those of
    /// policies and principals; runs that began keep theirs
    #[arg(long)]
    watch: bool,
    /// How log lines on standard error look; LOG_LEVEL says how many there are
    #[arg(long, value_enum, default_value = "text")]
    log: LogFormat,
}

/// What is to be served, and to whom.
#[derive(Debug)]
pub(crate) struct ServeOptions {
    args: ServedArgs,
    demo: bool,
    /// Whether every caller needs a credential, whatever the settings say.
    never_local: bool,
}

impl From<UpArgs> for ServeOptions {
    fn from(UpArgs { served, demo }: UpArgs) -> Self {
        Self { args: served, demo, never_local: false }
    }
}

impl From<ServeArgs> for ServeOptions {
    fn from(ServeArgs { served }: ServeArgs) -> Self {
        Self { args: served, demo: false, never_local: true }
    }
}

impl ServeOptions {
    /// How log lines look.
    pub(crate) fn log(&self) -> LogFormat {
        self.args.log
    }

    /// The project's folder; the demo has none.
    pub(crate) fn project(&self) -> Option<PathBuf> {
        (!self.demo).then(|| project_folder(self.args.dir.as_deref()))
    }
}

impl ServedArgs {
    fn data_choice(&self) -> DataChoice<'_> {
        match &self.data {
            Some(data) => DataChoice::In(data),
            None if self.ephemeral => DataChoice::Nowhere,
            None => DataChoice::WithProject,
        }
    }
}

/// A stop may take this long, by the promise to end within 10 seconds of a signal.
const STOP_LIMIT: Duration = Duration::from_secs(9);

/// Printed once, for a user at a terminal.
const STARTING: &str = "still starting: it reads the data folder";

/// Serves until SIGTERM or SIGINT.
pub(crate) async fn run(
    ServeOptions { args, demo, never_local }: ServeOptions,
    context: &Context,
) -> Result<Exit> {
    let output = context.output;
    // With `--log json` every line on standard error is for programs.
    let held = if args.log == LogFormat::Text { HeldLogs::at_terminal() } else { None };
    // Listened to from here on: a signal during the start must not leave a temporary folder behind.
    let mut stop = Signals::listen()?;
    let stop_again = Signals::listen()?;
    let descriptors = descriptors::raise();
    let (mut project, data) = sources(context, args.data_choice())?;
    for file in &args.pipeline {
        project.add_pipeline(file).map_err(|error| unusable(&error))?;
    }
    let settings = project.config.server.clone();
    let notify = project.config.inbox.notify.clone();
    let tls = Tls::open(&project).await.map_err(|error| unencrypted(&error))?;
    let listener = bind(&args, &project, &context.environment, data.path()).await?;
    let address = listener.local_addr().map_err(|error| unbound(&error, None))?;
    let keys = Keys::of(&context.environment).renewing(args.new).never_local(never_local);
    let keys = keys.after_loss(args.after_loss);
    let variables = keys.variables(data.path());
    // The demo's files are in the binary.
    let watch = (!demo).then(|| {
        let watch = Watch::new(&project, args.pipeline.clone(), variables);
        let watch = watch.with_settings(settings_of(context));
        if args.watch { watch } else { watch.without_definitions() }
    });
    let starting = assemble(project, data.path().to_path_buf(), address, keys);
    let progress = match args.log {
        LogFormat::Text => Progress::on(output),
        LogFormat::Json => Progress::silent(),
    };
    let assembled = tokio::select! {
        assembled = progress.told_if_slow(STARTING, starting) => assembled,
        () = stop.next() => return Ok(Exit::Ok),
    };
    let mut assembled = match assembled {
        Ok(assembled) => assembled,
        Err(error) => {
            drop(held);
            return Err(unserved(error, listener, tls, stop).await);
        }
    };
    if let Some(limit) = descriptors {
        assembled.limit_descriptors(limit);
    }
    let ports = match assembled.open_ports(address).await {
        Ok(ports) => ports,
        Err(error) => {
            assembled.stopper().stop().await;
            return Err(unopened(&error));
        }
    };
    assembled.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    address::leave(data.path(), &settings.local_url(address), assembled.token());
    announce(context, &settings, address, data.path(), &ports);
    let begun = watch.map(|watch| watch.begin(&assembled));
    let _aside = (begun, notices::begin(&assembled.engine, notify));
    // With `--log json` every line on standard error is JSON.
    if args.log == LogFormat::Text {
        invite(&args, context, &settings, address, &ports);
        let program = context.program.as_str();
        let url = settings.local_url(address);
        let tries = demo.then(|| things_to_try(program, &url));
        let told = resumed(program, assembled.undone).into_iter().chain(tries);
        told.for_each(|told| output.talk(&told));
    }
    drop(held);
    let shutdown = async move {
        stop.next().await;
        tracing::info!("stopping");
    };
    tokio::select! {
        () = server::serve(assembled, listener, tls, shutdown) => tracing::info!("stopped"),
        () = overdue(stop_again) => {}
    }
    drop(data);
    Ok(Exit::Ok)
}

/// Why nothing is served. If the store went back, every request is refused for that reason until a
/// signal comes; all else ends the process at once.
async fn unserved(
    error: AssembleError,
    listener: TcpListener,
    tls: Option<Tls>,
    mut stop: Signals,
) -> Failure {
    if error.went_back() {
        tracing::error!("{error}");
        tracing::error!("nothing is served: every request is answered 503 `store_went_back`");
        server::refuse_all(listener, tls, async move { stop.next().await }).await;
    }
    refused(error)
}

/// Says where it listens.
fn announce(
    context: &Context,
    settings: &ServerConfig,
    address: SocketAddr,
    data: &Path,
    ports: &[OwnPort],
) {
    let output = context.output;
    // A user who closed standard output still wants the server.
    if output.text(&listening(settings.scheme(), address, output.is_json())).is_err() {
        tracing::warn!("no one reads standard output");
    }
    tracing::info!(%address, data = %data.display(), "serving");
    for OwnPort { pipeline, address, route } in ports {
        tracing::info!(%pipeline, %address, route, "a pipeline has a port of its own");
    }
}

/// Reads the settings of the project again.
fn settings_of(context: &Context) -> ConfigReader {
    let project = context.project.clone();
    let environment = context.environment.clone();
    Box::new(move || {
        let settings = Settings::load(project.as_deref(), &environment);
        settings.map(|settings| settings.config).map_err(|failure| failure.to_string())
    })
}

/// The one line on standard output: where it listens, which `--port 0` leaves open.
fn listening(scheme: &str, address: SocketAddr, is_json: bool) -> String {
    match is_json {
        true => json!({"listening": format!("{scheme}://{address}")}).to_string(),
        false => format!("waypost listening on {scheme}://{address}"),
    }
}

/// Tells a person how to reach the server.
fn invite(
    args: &ServedArgs,
    context: &Context,
    settings: &ServerConfig,
    address: SocketAddr,
    ports: &[OwnPort],
) {
    let output = context.output;
    let url = settings.local_url(address);
    // Commands look into the project's own data folder: at another server they change nothing.
    let is_found = matches!(args.data_choice(), DataChoice::WithProject);
    if context.project.is_some() && !is_found {
        output.talk(&format!("commands reach this server with `--server {url}`"));
    }
    output.talk(&format!("MCP clients connect to {url}/mcp"));
    for OwnPort { pipeline, address, route } in ports {
        let url = settings.local_url(*address);
        output.talk(&format!("pipeline {pipeline} takes cases at {url}{route}"));
    }
}

/// What the server before left undone, if anything.
fn resumed(program: &str, undone: UnfinishedRuns) -> Option<String> {
    let UnfinishedRuns { running, waiting, paused } = undone;
    let all = [
        (running, format!("{} resumed", counted(running, "run"))),
        (waiting, format!("{waiting} waiting for a person (`{program} inbox`)")),
        (paused, format!("{paused} paused (`{program} session ls --status paused`)")),
    ];
    let told = all.into_iter().filter(|(count, _)| *count > 0).map(|(_, told)| told);
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join(", "))
}

async fn bind(
    args: &ServedArgs,
    project: &Project,
    environment: &Environment,
    data: &Path,
) -> Result<TcpListener> {
    let configured = &project.config.server;
    let host = match args.host.as_deref() {
        Some(host) => host_address(host)?,
        None => configured.host,
    };
    let port = match args.port {
        Some(port) => port,
        None => port_of(configured, environment)?,
    };
    let address = SocketAddr::new(host, port);
    let error = match TcpListener::bind(address).await {
        Ok(listener) => return Ok(listener),
        Err(error) => error,
    };
    if error.kind() == ErrorKind::AddrInUse
        && let Some(holder) = address::holder_at(&configured.local_url(address), data).await
    {
        let what = format!("cannot listen on {address}: {holder} holds it");
        return Err(Failure::new(Exit::Usage, "port_taken", what)
            .hint("stop it, or let `waypost up --port 0` take a free port"));
    }
    Err(unbound(&error, Some(address)))
}

/// The port of the settings, or of the variable that they name.
fn port_of(configured: &ServerConfig, environment: &Environment) -> Result<u16> {
    let named = configured.port_from.as_deref();
    let set = named.and_then(|name| Some((name, environment.any(name)?)));
    match set.filter(|(_, text)| !text.trim().is_empty()) {
        None => Ok(configured.port),
        Some((name, text)) => text.trim().parse().map_err(|_| {
            Failure::usage(format!("`{name}` is no port: `port_from` in `[server]` names it"))
                .hint(format!("set `{name}` to a number of 0 to 65535, or remove it"))
        }),
    }
}

fn host_address(host: &str) -> Result<IpAddr> {
    let address = match host {
        "localhost" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        _ => host.trim_matches(['[', ']']).parse::<IpAddr>().ok(),
    };
    address.ok_or_else(|| {
        Failure::usage(format!("`--host {host}` is not an address"))
            .hint("write `--host 127.0.0.1`, `--host ::1`, or another address of this machine")
    })
}

/// Why the server cannot speak TLS.
fn unencrypted(error: &TlsError) -> Failure {
    Failure::new(Exit::Usage, "tls", error.to_string()).hint(error.hint())
}

fn unbound(error: &std::io::Error, address: Option<SocketAddr>) -> Failure {
    let place = address.map(|address| format!(" on {address}")).unwrap_or_default();
    match (error.kind(), address) {
        (ErrorKind::AddrInUse, Some(address)) => {
            let what = format!("port {} is taken by another program", address.port());
            Failure::new(Exit::Usage, "port_taken", format!("cannot listen{place}: {what}"))
                .hint("`waypost up --port 0` takes a free port")
        }
        _ => Failure::new(Exit::Usage, "listen", format!("cannot listen{place}: {error}")),
    }
}

/// Why a pipeline's file cannot be used.
fn unusable(error: &ProjectError) -> Failure {
    match error {
        ProjectError::Unreadable { path, why } => {
            let what = format!("cannot read the pipeline `{}`: {why}", path.display());
            Failure::usage(what).hint("check the path after `--pipeline`, and its rights")
        }
        ProjectError::Mistakes(mistakes) => {
            Failure::usage("the pipeline cannot be used").lines(mistakes)
        }
    }
}

/// Why a pipeline's port cannot be opened.
fn unopened(error: &PortError) -> Failure {
    if error.why.kind() != ErrorKind::AddrInUse {
        return Failure::new(Exit::Usage, "listen", error.to_string());
    }
    let pipeline = &error.pipeline;
    let address = error.address;
    let what = format!("port {} is taken by another program", address.port());
    let what = format!("pipeline `{pipeline}` cannot listen on {address}: {what}");
    Failure::new(Exit::Usage, "port_taken", what)
        .hint("choose another `http.port`, or leave it out: the server's port serves every route")
}

/// A request to the demo's agent over HTTP.
const REQUEST: &str = r#"{"thread_id": "t1", "user_request": "what is on my calendar?"}"#;
/// A case for the demo's pipeline.
const CASE: &str = r#"{"tradeId": "T-100", "reason": "Missing ISIN"}"#;

/// Commands for another terminal.
fn things_to_try(program: &str, url: &str) -> String {
    let server = if url == DEFAULT_SERVER { String::new() } else { format!(" --server {url}") };
    format!(
        "try this in another terminal:\n\
         \x20 {program}{server} chat       # for example: create a meeting tomorrow at 9am\n\
         \x20 curl -s {url}/run -d '{REQUEST}'\n\
         \x20 curl -s {url}/trade/failures -d '{CASE}'\n\
         \x20 curl -s {url}/api/v1/plans\n\
         \x20 {program}{server} plan run math::conditional_add a=2 b=3\n\
         \x20 {program}{server} plan run interaction::greeting    # asks for a name\n\
         \x20 {program}{server} inbox                             # answers what people are asked\n\
         \x20 {program}{server} mcp snippet claude-code       # or cursor, vscode, codex, ..."
    )
}

/// Done when a stop takes too long, or when someone who waits for it says so once more.
async fn overdue(mut signals: Signals) {
    signals.next().await;
    tokio::select! {
        () = tokio::time::sleep(STOP_LIMIT) => {
            tracing::warn!(limit_s = STOP_LIMIT.as_secs(), "stopping took too long; ending anyway");
        }
        () = signals.next() => tracing::warn!("told to stop again; ending at once"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_comes_from_the_variable_that_the_settings_name() {
        let configured = ServerConfig {
            port: 8059,
            port_from: Some("PORT".to_owned()),
            ..ServerConfig::default()
        };
        let port =
            |text: &str| port_of(&configured, &Environment::of_test(&[("PORT", text)], "")).ok();
        assert_eq!((port(" 9001 "), port(""), port("soon")), (Some(9001), Some(8059), None));
        let unset = ServerConfig { port_from: None, ..configured.clone() };
        let set = Environment::of_test(&[("PORT", "9001")], "");
        assert_eq!(port_of(&unset, &set).ok(), Some(8059));
    }

    #[test]
    fn the_listening_address_is_printed_for_people_and_programs() {
        let address = SocketAddr::from(([127, 0, 0, 1], 8420));
        let told = |scheme: &str, is_json: bool| listening(scheme, address, is_json);
        assert_eq!(told("http", false), "waypost listening on http://127.0.0.1:8420");
        assert_eq!(told("https", true), r#"{"listening":"https://127.0.0.1:8420"}"#);
    }

    #[test]
    fn resumed_and_waiting_runs_are_counted() {
        assert_eq!(resumed("waypost", UnfinishedRuns::default()), None);
        let told = resumed("waypost", UnfinishedRuns { running: 2, waiting: 1, paused: 0 });
        let expected = "2 runs resumed, 1 waiting for a person (`waypost inbox`)";
        assert_eq!(told.as_deref(), Some(expected));
    }

    #[test]
    fn a_host_is_an_address() {
        for host in ["127.0.0.1", "localhost", "::1", "[::1]", "0.0.0.0", "::", "192.168.1.1"] {
            assert!(host_address(host).is_ok(), "{host}");
        }
        for host in ["example.com", "127.0.0.1:80", "300.0.0.1", ""] {
            let failure = host_address(host).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage, "{host}");
            assert!(failure.hint.is_some(), "{host}");
        }
    }
}
