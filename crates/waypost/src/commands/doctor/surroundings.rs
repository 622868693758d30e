//! What is around a server: its port, whether one answers, the clock, the certificates.

use super::finding::Finding;
use crate::client::{Client, DEFAULT_SERVER};
use crate::context::Context;
use crate::environment::Environment;
use crate::exit::Exit;
use engine::clock::SystemClock;
use kernel::contracts::Clock;
use kernel::ids::Millis;
use server::config::Config;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// 2024-01-01: an earlier clock was never set.
const CLOCK_MIN: Millis = Millis(1_704_067_200_000);

/// Whether a server answers, and what is to say of it.
pub(super) struct Served {
    /// Whether one of ours answers.
    pub(super) is_served: bool,
    /// How to ask it more.
    pub(super) client: Option<Client>,
    /// What is to say.
    pub(super) finding: Finding,
}

/// Asks the server that `--server` names, else the one that this project would be.
pub(super) async fn server(context: &Context, config: &Config) -> Served {
    let url = match context.server.as_str() {
        DEFAULT_SERVER => format!("http://{}", address(config)),
        named => named.to_owned(),
    };
    let answer = match Client::new(&url) {
        Ok(client) => client.ready().await.map(|()| client),
        Err(failure) => Err(failure),
    };
    match answer {
        Ok(client) => {
            let finding = Finding::ok("server", format!("{url} is ready"));
            Served { is_served: true, client: Some(client), finding }
        }
        Err(failure) if failure.exit == Exit::Unreachable => {
            let finding = Finding::ok("server", format!("none runs at {url}"));
            Served { is_served: false, client: None, finding }
        }
        Err(failure) => {
            // Another program on our port answers in its own words, without a code of ours.
            let is_served = failure.exit != Exit::Upstream && !failure.code.starts_with("http_");
            let finding = Finding::failed("server", &failure);
            Served { is_served, client: None, finding }
        }
    }
}

fn address(config: &Config) -> SocketAddr {
    SocketAddr::new(config.server.host, config.server.port)
}

/// Whether the port can be listened on.
pub(super) async fn port(config: &Config, is_served: bool) -> Finding {
    let address = address(config);
    if address.port() == 0 {
        return Finding::ok("port", "the system chooses one");
    }
    match TcpListener::bind(address).await {
        Ok(_) => Finding::ok("port", format!("{address} is free")),
        Err(_) if is_served => Finding::ok("port", format!("{address} is our server's")),
        Err(error) => {
            let what = format!("cannot listen on {address}: {error}");
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
    tools::http::install_tls();
    match reqwest::Client::builder().build() {
        Ok(_) => Finding::ok("tls", "certificates can be read"),
        Err(error) => {
            let what = format!("no certificates to trust, so no https: {error}");
            Finding::warn("tls", what, "install your system's `ca-certificates`")
        }
    }
}
