//! `waypost mcp serve --stdio`: one client, over standard input and output. Where a server holds
//! the project already, or one is named, the messages go there: one data folder has one holder,
//! and all its clients see the same sessions and the same inbox.

use super::relay;
use crate::assembly::{Keys, NOWHERE, assemble, refused};
use crate::context::Context;
use crate::environment::locations::project_folder;
use crate::exit::{Exit, Failure, Result};
use crate::process::signals::Signals;
use crate::remote::address;
use crate::remote::client::Client;
use crate::served::{DataChoice, DataLocation, sources};
use clap::Args;
use server::{AssembleError, Assembled, Watch};
use std::io::IsTerminal;
use std::path::PathBuf;

/// What `waypost mcp serve` takes.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Speak over standard input and output; over HTTP `waypost up` does it
    #[arg(long)]
    stdio: bool,
    /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
    #[arg(conflicts_with = "demo")]
    dir: Option<PathBuf>,
    /// Where the data is kept [default: .waypost in the project]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Serve the embedded examples; nothing is kept unless --data is given
    #[arg(long)]
    demo: bool,
}

impl ServeArgs {
    /// The project's folder; the demo has none.
    pub(super) fn project(&self) -> Option<PathBuf> {
        (!self.demo).then(|| project_folder(self.dir.as_deref()))
    }
}

/// Told to a person who started this by hand.
const WAITING: &str = "waiting for MCP messages on standard input; clients start this themselves, \
                       see `waypost mcp snippet --help`";

/// Serves until the client closes standard input, or until SIGTERM or SIGINT.
pub(super) async fn run(args: &ServeArgs, context: &Context) -> Result<Exit> {
    if !args.stdio {
        return Err(Failure::usage(
            "`waypost mcp serve` speaks over standard input and output only",
        )
        .hint("write `waypost mcp serve --stdio`; over HTTP clients reach `waypost up`"));
    }
    if std::io::stdin().is_terminal() {
        context.output.talk(WAITING);
    }
    // Listened to from here on: a signal during the start must not leave a temporary folder behind.
    let mut stop = Signals::listen()?;
    if context.has_named_server() {
        return relayed(context.client_at(&context.server.url)?, stop).await;
    }
    let kept = args.data.as_deref().map_or(DataChoice::WithProject, DataChoice::In);
    let (project, data) = sources(context, kept)?;
    let keys = Keys::of(&context.environment);
    let variables = keys.variables(data.path());
    // The demo's files are in the binary.
    let watch = context.project.is_some().then(|| Watch::new(&project, Vec::new(), variables));
    let starting = assemble(project, data.path().to_path_buf(), NOWHERE, keys);
    let assembled = tokio::select! {
        assembled = starting => assembled,
        () = stop.next() => return Ok(Exit::Ok),
    };
    match assembled {
        Ok(assembled) => {
            address::forget(data.path());
            let _watching = watch.map(|watch| watch.without_definitions().begin(&assembled));
            served(assembled, stop).await;
            drop(data);
            Ok(Exit::Ok)
        }
        Err(error) => relayed(holder(error, &data, context)?, stop).await,
    }
}

async fn served(assembled: Assembled, mut stop: Signals) {
    for warning in &assembled.warnings {
        tracing::warn!("{warning}");
    }
    let stopper = assembled.stopper();
    tokio::select! {
        () = server::serve_stdio(assembled, tokio::io::stdin(), tokio::io::stdout()) => {}
        () = stop.next() => stopper.stop().await,
    }
}

async fn relayed(client: Client, mut stop: Signals) -> Result<Exit> {
    let stopped = async move { stop.next().await };
    relay::run(client, tokio::io::stdin(), tokio::io::stdout(), stopped).await;
    Ok(Exit::Ok)
}

/// A client of the server that holds the data folder; the failure as it is where that is not why,
/// or where the holder cannot be reached.
fn holder(error: AssembleError, data: &DataLocation, context: &Context) -> Result<Client> {
    let Some(pid) = error.holder().map(|holder| holder.pid) else { return Err(refused(error)) };
    match address::of_holder(data.path(), pid) {
        Some(url) => {
            tracing::info!(%url, "a server holds the data folder; messages go there");
            context.client_at(&url)
        }
        None => Err(refused(error).hint(
            "it serves no HTTP, so nothing can be passed on to it; `waypost up` serves any number \
             of clients from one folder: stop that process, start `waypost up`, and this again",
        )),
    }
}
