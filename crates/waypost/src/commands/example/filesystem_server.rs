//! `waypost example filesystem-server`: the proxy example's own tool server over one folder, as MCP
//! in both eras and as plain JSON-RPC at `/rpc`. It keeps nothing but the files, and only this
//! machine reaches it.

use super::calendar_server::{address, unbound};
use crate::assembly::{NOWHERE, assemble_only, refused};
use crate::context::Context;
use crate::exit::{Exit, Failure, Result};
use crate::process::folder::TemporaryFolder;
use crate::process::signals::Signals;
use clap::Args;
use engine::system::clock::TokioSpawn;
use server::Extra;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpListener;

/// The folder, where the command line names none.
const DATA_DIR: &str = "MCP_DATA_DIR";

const EXAMPLES: &str = "\
Examples:
  waypost example filesystem-server --http 127.0.0.1:8001 --data files
  waypost example filesystem-server --stdio --data files --read-only";

/// What `waypost example filesystem-server` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FilesystemServerArgs {
    /// Speak over standard input and output, until the client closes them
    #[arg(long)]
    stdio: bool,
    /// Listen on this address of this machine; port 0 takes a free one
    #[arg(long, value_name = "ADDR", value_parser = address, conflicts_with = "stdio")]
    http: Option<SocketAddr>,
    /// The folder that is served [default: MCP_DATA_DIR]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Offer no tool that writes
    #[arg(long)]
    read_only: bool,
}

/// Serves until the client closes standard input, or until SIGTERM or SIGINT.
pub(super) async fn run(args: &FilesystemServerArgs, context: &Context) -> Result<Exit> {
    let mut stop = Signals::listen()?;
    let folder = args.folder(context)?;
    let listener = match (args.http, args.stdio) {
        (Some(address), _) => Some(TcpListener::bind(address).await.map_err(|why| unbound(&why))?),
        (None, true) => None,
        (None, false) => {
            return Err(Failure::usage("no client could reach this server")
                .hint("add `--stdio`, or `--http 127.0.0.1:8001`"));
        }
    };
    let address = listener.as_ref().map_or(Ok(NOWHERE), TcpListener::local_addr);
    let address = address.map_err(|error| unbound(&error))?;
    let spawn = Arc::new(TokioSpawn::new(tokio::runtime::Handle::current()));
    let tools = demo::files(&folder, args.read_only, spawn);
    let tools = tools.map_err(|error| unusable(&folder, &error))?;
    // No one reads its journal: the files are what counts.
    let own = TemporaryFolder::new()?;
    let extra = Extra { tools, ..Extra::default() };
    let assembled = tokio::select! {
        assembled = assemble_only(extra, own.path().join("data"), address) => assembled,
        () = stop.next() => return Ok(Exit::Ok),
    };
    let assembled = assembled.map_err(refused)?;
    match listener {
        Some(listener) => {
            context.output.text(&format!("filesystem server listening on http://{address}/mcp"))?;
            server::serve(assembled, listener, None, async move { stop.next().await }).await;
        }
        None => {
            let stopper = assembled.stopper();
            tokio::select! {
                () = server::serve_stdio(assembled, tokio::io::stdin(), tokio::io::stdout()) => {}
                () = stop.next() => stopper.stop().await,
            }
        }
    }
    Ok(Exit::Ok)
}

impl FilesystemServerArgs {
    fn folder(&self, context: &Context) -> Result<PathBuf> {
        let set = context.environment.any(DATA_DIR).filter(|folder| !folder.is_empty());
        let folder = self.data.clone().or_else(|| set.map(PathBuf::from));
        folder.ok_or_else(|| {
            Failure::usage("no folder is named")
                .hint(format!("add `--data DIR`, or set `{DATA_DIR}`"))
        })
    }
}

fn unusable(folder: &Path, error: &std::io::Error) -> Failure {
    let what = format!("the folder `{}` cannot be used: {error}", folder.display());
    Failure::new(Exit::Usage, "data_folder", what).hint("`--data DIR` names another folder")
}
