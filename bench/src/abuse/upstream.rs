//! An MCP server out of the hostile corpus, as a process that can go away and come back.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use testkit::upstream::{BANNER, Options, run};

use crate::Result;
use crate::child;

/// What is bad about it.
const FLAGS: [&str; 5] = ["--with-parent", "--bad", "hostile", "--bad", "storm"];

/// Such a process; it ends when this is dropped.
#[derive(Debug)]
pub struct Upstream {
    process: Child,
    port: u16,
}

impl Upstream {
    /// Starts it on this port; 0 takes any.
    pub fn start(port: u16) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(child::UPSTREAM).arg(port.to_string());
        let process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        // From here on an early return ends the process.
        let mut upstream = Self { process, port };
        let stdout = upstream.process.stdout.take().ok_or("it has no stdout")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let url = line.trim().strip_prefix(BANNER).ok_or("the upstream did not start")?;
        let port = url.trim_end_matches("/mcp").rsplit(':').next().unwrap_or_default();
        upstream.port = port.parse()?;
        Ok(upstream)
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        // Both fail only when the process is gone already, which is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The child's side: serves until the parent is gone.
pub fn serve(port: Option<String>) -> Result<()> {
    let mut words = vec!["--port".to_owned(), port.unwrap_or_else(|| "0".to_owned())];
    words.extend(FLAGS.map(str::to_owned));
    Options::read(words.into_iter()).and_then(run).map_err(Into::into)
}
