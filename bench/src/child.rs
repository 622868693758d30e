//! This binary started again in another mode, so that a load and what it loads are two processes,
//! as they are with the real server; and other programs that behave in the same way.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use crate::Result;

/// The mode that serves the bare axum handler.
pub const AXUM: &str = "baseline-axum";
/// The mode that serves the bare MCP handlers.
pub const MCP: &str = "baseline-mcp";
/// The mode that serves the bare handler of A2A.
pub const A2A: &str = "baseline-a2a";
/// The mode that finds records by hand.
pub const RECORDS: &str = "baseline-records";
/// The mode that proxies MCP requests and does nothing else.
pub const PROXY: &str = "baseline-proxy";
/// The mode that answers the requests of writing runs.
pub const RECEIVER: &str = "receiver";
/// The mode that serves the hostile corpus as an MCP server.
pub const UPSTREAM: &str = "hostile-upstream";
/// The mode that lists the key of an issuer of tokens.
pub const ISSUER: &str = "issuer";
/// The mode that takes spans and drops them.
pub const COLLECTOR: &str = "collector";

/// Such a process; it ends when this is dropped, or when the parent dies.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    address: SocketAddr,
}

impl Child {
    /// Starts this binary in `mode` and waits until it says where it listens.
    pub fn start(mode: &str) -> Result<Self> {
        Self::start_with(mode, &[])
    }

    /// The same with arguments.
    pub fn start_with(mode: &str, arguments: &[&OsStr]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        Self::start_program(mode, command.arg(mode).args(arguments))
    }

    /// Another program that names its address on stdout and ends with its stdin.
    pub fn start_program(name: &str, command: &mut Command) -> Result<Self> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        match announced(&mut process) {
            Ok(address) => Ok(Self { process, address }),
            Err(error) => {
                end(&mut process);
                Err(format!("`{name}` did not start: {error}").into())
            }
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// Called in the child: names its address on stdout, and ends the process when the parent's end of
/// stdin closes, so that no child is left behind by a killed parent.
pub fn announce(address: SocketAddr) -> Result<()> {
    writeln!(std::io::stdout(), "{address}")?;
    std::thread::spawn(end_with_parent);
    Ok(())
}

fn end_with_parent() {
    // An error says the same as the end of the input: no one is there any more.
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    std::process::exit(0);
}

fn announced(process: &mut std::process::Child) -> Result<SocketAddr> {
    let stdout = process.stdout.take().ok_or("it has no stdout")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    Ok(line.trim().parse()?)
}

fn end(process: &mut std::process::Child) {
    // Both fail only when the process is gone already, which is what is wanted.
    let _ = process.kill();
    let _ = process.wait();
}
