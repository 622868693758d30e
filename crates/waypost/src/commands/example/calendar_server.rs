//! `waypost example calendar-server`: the calendar example's own MCP server, in both eras, over
//! HTTP or over standard input and output. It has its tools and nothing else: no plans, no
//! sessions, and only this machine reaches it. It ends with the process that started it over a
//! pipe.

use super::pages;
use crate::assembly::{NOWHERE, assemble_only, refused};
use crate::context::Context;
use crate::exit::{Exit, Failure, Result};
use crate::process::signals::Signals;
use axum::Router;
use clap::Args;
use demo::{self, DemoParts, Login, Zone};
use engine::system::clock::{SystemClock, SystemEntropy, TokioSpawn};
use server::{Assembled, Extra};
use std::io::{self, IsTerminal};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};

const EXAMPLES: &str = "\
Examples:
  waypost example calendar-server --http 127.0.0.1:8000 --data calendars
  waypost example calendar-server --stdio --data calendars --zone Europe/Berlin
  waypost example calendar-server --http 127.0.0.1:8000 --data calendars --oauth";

/// What `waypost example calendar-server` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CalendarServerArgs {
    /// Speak over standard input and output, until the client closes them
    #[arg(long)]
    stdio: bool,
    /// Listen on this address of this machine; port 0 takes a free one
    #[arg(long, value_name = "ADDR", value_parser = address, conflicts_with = "stdio")]
    http: Option<SocketAddr>,
    /// Where the calendars are kept, as JSON files
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The time zone of the calendars [default: TZ, else that of this machine]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
    /// Want a login first, as a real provider does
    #[arg(long)]
    oauth: bool,
}

/// How the server is reached.
#[derive(Debug, Clone, Copy)]
enum Way {
    Stdio,
    Http(SocketAddr),
}

/// The folder of the server itself, beside that of the calendars.
const SERVER_FOLDER: &str = "server";
/// A process that ends may hold the folder a moment longer than its successor would like.
const HELD_WAIT: Duration = Duration::from_secs(3);
const HELD_LOOK: Duration = Duration::from_millis(50);

/// Serves until the client closes standard input, or until SIGTERM or SIGINT.
pub(super) async fn run(args: &CalendarServerArgs, context: &Context) -> Result<Exit> {
    let way = args.way()?;
    let mut stop = Signals::listen()?;
    let zone = args.zone()?;
    let login = args.login()?;
    let listener = listener(way, login.as_deref()).await?;
    let address = listener.as_ref().map_or(Ok(NOWHERE), TcpListener::local_addr);
    let address = address.map_err(|error| unbound(&error))?;
    if let Some(login) = &login {
        login.listens_at(address).map_err(|error| unusable(&args.data, &error))?;
    }
    let routes = login.clone().map(pages::routes).unwrap_or_default();
    let spawn = Arc::new(TokioSpawn::new(tokio::runtime::Handle::current()));
    let parts = DemoParts { zone, clock: Arc::new(SystemClock), spawn, login };
    let tools = demo::all(&args.data, parts).map_err(|error| unusable(&args.data, &error))?;
    let extra = || Extra { tools: tools.clone(), routes: routes.clone(), ..Extra::default() };
    let starting = assembled(extra, &args.data, address);
    let assembled = tokio::select! {
        assembled = starting => assembled?,
        () = stop.next() => return Ok(Exit::Ok),
    };
    match (way, listener) {
        (Way::Http(_), Some(listener)) => {
            let line = format!("calendar server listening on http://{address}/mcp");
            context.output.text(&line)?;
            server::serve(assembled, listener, None, async move { stop.next().await }).await;
        }
        (Way::Stdio, listener) => {
            if io::stdin().is_terminal() {
                context.output.talk("waiting for MCP messages on standard input");
            }
            over_stdio(assembled, listener, stop).await;
        }
        // An address is always bound.
        (Way::Http(_), None) => {}
    }
    Ok(Exit::Ok)
}

impl CalendarServerArgs {
    fn way(&self) -> Result<Way> {
        match (self.stdio, self.http) {
            (_, Some(address)) => Ok(Way::Http(address)),
            (true, None) => Ok(Way::Stdio),
            (false, None) => Err(Failure::usage("no client could reach this server")
                .hint("add `--stdio`, or `--http 127.0.0.1:8000`")),
        }
    }

    fn zone(&self) -> Result<Zone> {
        let Some(name) = &self.zone else { return Ok(Zone::of_this_machine()) };
        Zone::named(name).ok_or_else(|| {
            Failure::usage(format!("`{name}` is no time zone"))
                .hint("write it as `Europe/Berlin`, `America/New_York` or `UTC`")
        })
    }

    fn login(&self) -> Result<Option<Arc<Login>>> {
        if !self.oauth {
            return Ok(None);
        }
        let login = demo::login(&self.data, Arc::new(SystemEntropy));
        login.map(|login| Some(Arc::new(login))).map_err(|error| unusable(&self.data, &error))
    }
}

/// Where HTTP comes in: all of it, or only the pages of a login. Those are where they were before,
/// if that is free, so that a page that was shown before a restart is still there.
async fn listener(way: Way, login: Option<&Login>) -> Result<Option<TcpListener>> {
    let bound = match (way, login) {
        (Way::Http(address), _) => TcpListener::bind(address).await,
        (Way::Stdio, None) => return Ok(None),
        (Way::Stdio, Some(login)) => {
            match TcpListener::bind(login.address().unwrap_or(NOWHERE)).await {
                Ok(listener) => Ok(listener),
                Err(_) => TcpListener::bind(NOWHERE).await,
            }
        }
    };
    bound.map(Some).map_err(|error| unbound(&error))
}

/// The server, as soon as no other process holds its folder.
async fn assembled(
    extra: impl Fn() -> Extra,
    data: &Path,
    address: SocketAddr,
) -> Result<Assembled> {
    let deadline = Instant::now() + HELD_WAIT;
    loop {
        match assemble_only(extra(), data.join(SERVER_FOLDER), address).await {
            Err(error) if error.holder().is_some() && Instant::now() < deadline => {
                sleep(HELD_LOOK).await;
            }
            Ok(assembled) => return Ok(assembled),
            Err(error) => return Err(refused(error)),
        }
    }
}

async fn over_stdio(assembled: Assembled, listener: Option<TcpListener>, mut stop: Signals) {
    let stopper = assembled.stopper();
    let router = assembled.router();
    tokio::select! {
        () = server::serve_stdio(assembled, tokio::io::stdin(), tokio::io::stdout()) => {}
        () = stop.next() => stopper.stop().await,
        () = serve_pages(listener, router) => {}
    }
}

/// Serves the pages of a login, if there are some, for as long as anybody lets it.
async fn serve_pages(listener: Option<TcpListener>, router: Router) {
    if let Some(listener) = listener
        && let Err(error) = axum::serve(listener, router).await
    {
        tracing::warn!(%error, "the login's pages are gone");
    }
    std::future::pending::<()>().await;
}

/// Reads an address that only this machine reaches.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let named = text.strip_prefix("localhost:").and_then(|port| port.parse::<u16>().ok());
    let address = match named {
        Some(port) => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
        None => text.parse::<SocketAddr>().map_err(|_| "write it as 127.0.0.1:8000".to_owned())?,
    };
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err("other machines could reach it, and callers are not authenticated".to_owned()),
    }
}

pub(super) fn unbound(error: &io::Error) -> Failure {
    Failure::new(Exit::Usage, "listen", format!("cannot listen: {error}"))
        .hint("port 0 takes a free one")
}

fn unusable(data: &Path, error: &io::Error) -> Failure {
    let what = format!("the calendars in `{}` cannot be used: {error}", data.display());
    Failure::new(Exit::Usage, "data_folder", what).hint("`--data DIR` names another folder")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_served() {
        for text in ["127.0.0.1:8000", "localhost:0", "[::1]:8000"] {
            assert!(address(text).is_ok(), "{text}");
        }
        for text in ["0.0.0.0:8000", "8000", "example.com:80", "192.168.1.1:80", ""] {
            assert!(address(text).is_err(), "{text}");
        }
    }
}
