//! Starts the misbehaving MCP server as a process of a test.

use super::BANNER;
use crate::harness::{self, Process};
use std::path::Path;
use std::process::Command;

/// A running upstream over HTTP; it is killed when this is dropped.
#[derive(Debug)]
pub struct Upstream {
    process: Process,
}

impl Upstream {
    /// Starts it with these flags. What it says goes to a log in this folder.
    pub fn start(folder: &Path, flags: &[&str]) -> Self {
        let mut command = Command::new(harness::fixture());
        command.args(["upstream", "--with-parent"]).args(flags);
        let banner = format!("{BANNER}http://");
        let process = Process::start(command, &folder.join("upstream.log"), &banner)
            .unwrap_or_else(|failure| panic!("{failure}"));
        Self { process }
    }

    /// The URL of its endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.process.address())
    }

    /// Its port, so that another one can be started in its place.
    pub fn port(&self) -> u16 {
        self.process.address().port()
    }
}
