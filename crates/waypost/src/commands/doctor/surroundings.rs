//! The environment of a server: its port and whether one answers there, the clock, the
//! certificates.

use super::report::Finding;
use crate::context::Context;
use crate::environment::Environment;
use crate::exit::{Exit, Failure, Result};
use crate::remote::address::{self, AddressState, RunningServer};
use crate::remote::client::{Client, UNTRUSTED};
use engine::system::clock::SystemClock;
use kernel::contracts::Clock;
use kernel::values::ids::Millis;
use project::config::Config;
use std::net::SocketAddr;
use std::path::Path;
use tokio::net::TcpListener;

/// 2024-01-01: an earlier clock was never set.
const CLOCK_MIN: Millis = Millis(1_704_067_200_000);

/// Whether a server answers, and what is to say of it.
pub(super) struct ServerFinding {
    /// Whether the server answers that this is about.
    pub(super) is_served: bool,
    /// How to ask it more.
    pub(super) client: Option<Client>,
    /// What is to say.
    pub(super) finding: Finding,
}

impl ServerFinding {
    /// No server of this folder, and this is to say.
    fn nobody(finding: Finding) -> Self {
        Self { is_served: false, client: None, finding }
    }
}

/// Asks the server that `--server` names, else the one that serves this folder, else the one that
/// listens where this folder's would.
pub(super) async fn server(context: &Context, config: &Config, data: &Path) -> ServerFinding {
    if context.has_named_server() {
        return looked_at(context, &context.server.url).await;
    }
    match address::find(data).await {
        Ok(AddressState::Running(url)) => looked_at(context, &url).await,
        Ok(AddressState::Stale(_) | AddressState::Nothing) => {
            expected(&config.server.local_url(place(config))).await
        }
        Err(failure) => {
            let finding = Finding::failed("server", &failure);
            ServerFinding { is_served: true, client: None, finding }
        }
    }
}

/// What there is to say of a server that was named or recognised.
async fn looked_at(context: &Context, url: &str) -> ServerFinding {
    match ready(context.client_at(url)).await {
        Ok(client) => {
            let finding = Finding::ok("server", format!("{url} is ready"));
            ServerFinding { is_served: true, client: Some(client), finding }
        }
        Err(failure) if is_nobody(&failure) => {
            ServerFinding::nobody(Finding::ok("server", format!("none runs at {url}")))
        }
        Err(failure) => {
            // Another program on our port answers in its own words, without a code of ours.
            let is_served = failure.exit != Exit::Upstream && !failure.code.starts_with("http_");
            let finding = Finding::failed("server", &failure);
            ServerFinding { is_served, client: None, finding }
        }
    }
}

/// Whether no one is there. A server whose certificate is not trusted is.
fn is_nobody(failure: &Failure) -> bool {
    failure.exit == Exit::Unreachable && failure.code != UNTRUSTED
}

/// What there is to say of the place where this folder's server would listen, and does not.
async fn expected(url: &str) -> ServerFinding {
    ServerFinding::nobody(match ready(Client::new(url)).await {
        Ok(_) => {
            Finding::ok("server", format!("none runs for this folder; another answers at {url}"))
        }
        Err(failure) if is_nobody(&failure) => Finding::ok("server", format!("none runs at {url}")),
        Err(failure) => Finding::failed("server", &failure),
    })
}

/// A client of a server, if that can take work.
async fn ready(client: Result<Client>) -> Result<Client> {
    let client = client?;
    client.ready().await?;
    Ok(client)
}

/// Where a server with these settings listens.
fn place(config: &Config) -> SocketAddr {
    SocketAddr::new(config.server.host, config.server.port)
}

/// Whether the port can be listened on, and who holds it where it cannot.
pub(super) async fn port(config: &Config, data: &Path) -> Finding {
    let place = place(config);
    if place.port() == 0 {
        return Finding::ok("port", "the system chooses one");
    }
    let Err(error) = TcpListener::bind(place).await else {
        return Finding::ok("port", format!("{place} is free"));
    };
    match address::ask(&config.server.local_url(place), data).await {
        Ok(RunningServer { is_ours: true, .. }) => {
            Finding::ok("port", format!("{place} is our server's"))
        }
        Ok(RunningServer { instance, .. }) => {
            let what = format!("{} holds {place}", address::another(&instance));
            let hint = "stop it, or let `waypost up --port 0` take a free port";
            Finding::fail("port", what, hint)
        }
        Err(_) => {
            let what = format!("cannot listen on {place}: {error}");
            Finding::fail("port", what, "`waypost up --port 0` takes a free port")
        }
    }
}

/// Whether spans are exported, and what in the variables for that has no effect.
pub(super) fn telemetry(environment: &Environment) -> Vec<Finding> {
    let config = telemetry::config::Config::read(&|name: &str| environment.any(name));
    let mut findings = vec![Finding::ok("traces", config.told())];
    let hint = "docs/guides/telemetry.md lists what is read";
    let warnings = config.warnings.iter();
    findings.extend(warnings.map(|warning| Finding::warn("traces", warning.as_str(), hint)));
    findings
}

/// Times in the journal, timers and expiry follow this machine's clock.
pub(super) fn clock() -> Finding {
    let now = SystemClock.now();
    let what = format!("it is {}", now.rfc3339());
    if now.0 < CLOCK_MIN.0 {
        return Finding::fail("clock", what, "set the clock: timers and expiry follow it");
    }
    Finding::ok("clock", what)
}

/// Whether `https` can be spoken: a client needs certificates to trust.
pub(super) fn certificates() -> Finding {
    match outbound::client::certificates() {
        Ok(()) => Finding::ok("tls", "certificates can be read"),
        Err(error) => {
            let what = format!("no certificates to trust, so no https: {error}");
            Finding::warn("tls", what, "install your system's `ca-certificates`")
        }
    }
}
