//! The fixture server: our own server with everything that the official MCP conformance suite and
//! the peers of our tests call, or the test agent of A2A. On this machine only; its data goes with
//! it.
//!
//! `fixture-server [--port N] [--era legacy|modern] [--writes] [--with-parent]` serves HTTP until
//! SIGTERM or SIGINT, with the last one also until its standard input ends; with `--era` it refuses
//! all other versions, with `--writes` it says of no tool that it only reads. `fixture-server
//! --stdio` serves its standard input. With `--a2a` it is the test agent, with `--bare` as well one
//! that can do no more than every agent can.

use std::fmt::Display;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use testkit::mcp::{BANNER, Era, assemble, only, said_to_write};
use testkit::servers::test_agent::{self, Capabilities};
use tokio::io::{copy, sink, stdin, stdout};
use tokio::net::TcpListener;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fixture-server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let options = Options::read(std::env::args().skip(1))?;
    let folder = tempfile::tempdir().map_err(in_words)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(in_words)?;
    let data = folder.path().join("data");
    let served = runtime.block_on(async {
        match options.way {
            Way::Http { port } => serve(data, port, &options).await,
            Way::Stdio => serve_stdio(data).await,
        }
    });
    // A thread may still wait for standard input; no one waits for the thread.
    runtime.shutdown_background();
    served
}

struct Options {
    way: Way,
    era: Era,
    /// Whether no tool is said to only read.
    writes: bool,
    with_parent: bool,
    /// The test agent of A2A instead, and what it can do.
    agent: Option<Capabilities>,
}

enum Way {
    Http { port: u16 },
    Stdio,
}

impl Options {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let way = Way::Http { port: 0 };
        let (era, writes, with_parent) = (Era::Both, false, false);
        let mut options = Self { way, era, writes, with_parent, agent: None };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--port" => {
                    let port = words.next().and_then(|port| port.parse().ok());
                    let port = port.ok_or("`--port` needs a number up to 65535")?;
                    options.way = Way::Http { port };
                }
                "--stdio" => options.way = Way::Stdio,
                "--era" => {
                    let era = words.next().and_then(|era| Era::named(&era));
                    options.era = era.ok_or("`--era` needs `legacy`, `modern` or `both`")?;
                }
                "--writes" => options.writes = true,
                "--with-parent" => options.with_parent = true,
                "--a2a" => options.agent = options.agent.or(Some(Capabilities::All)),
                "--bare" => options.agent = Some(Capabilities::Bare),
                other => {
                    let known = "--port N, --stdio, --era legacy|modern, --writes, --with-parent, \
                                 --a2a, --bare";
                    return Err(format!("what is `{other}`? known: {known}"));
                }
            }
        }
        Ok(options)
    }
}

async fn serve(data: PathBuf, port: u16, options: &Options) -> Result<(), String> {
    // Heard from here on: a signal during the start must not leave the folder behind.
    let stop = stop(options.with_parent)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(in_words)?;
    let address = listener.local_addr().map_err(in_words)?;
    let (assembled, path) = match options.agent {
        Some(agent) => (test_agent::assemble(data, address, agent).await.map_err(in_words)?, ""),
        None => {
            let mut assembled = assemble(data, address).await.map_err(in_words)?;
            assembled.behind(|router| only(router, options.era));
            if options.writes {
                assembled.behind(said_to_write);
            }
            (assembled, "/mcp")
        }
    };
    writeln!(io::stdout(), "{BANNER}http://{address}{path}").map_err(in_words)?;
    server::serve(assembled, listener, None, stop).await;
    Ok(())
}

async fn serve_stdio(data: PathBuf) -> Result<(), String> {
    let stop = stop(false)?;
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let assembled = assemble(data, nowhere).await.map_err(in_words)?;
    tokio::select! {
        () = server::serve_stdio(assembled, stdin(), stdout()) => {}
        () = stop => {}
    }
    Ok(())
}

/// Done when the process has to end.
fn stop(with_parent: bool) -> Result<impl Future<Output = ()> + Send, String> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).map_err(in_words)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(in_words)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = parent_gone(), if with_parent => {}
        }
    })
}

async fn parent_gone() {
    // An error says the same as the end of the input: no one is there any more.
    let _ = copy(&mut stdin(), &mut sink()).await;
}

fn in_words(error: impl Display) -> String {
    error.to_string()
}
