//! An MCP client of a test: starts a server over standard input and output, `waypost mcp serve
//! --stdio` by default, and speaks with it, line by line.

use crate::process::{Ended, command, terminate};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testkit::harness::wait_for;

const ANSWER_LIMIT: Duration = Duration::from_secs(120);
const END_LIMIT: Duration = Duration::from_secs(60);

/// The stateless version.
pub const MODERN: &str = "2026-07-28";

/// A client and the process that it started, which is killed when this is dropped.
pub struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    said: TempDir,
    requests: u64,
}

impl Peer {
    /// Starts `waypost mcp serve --stdio` with these arguments.
    pub fn start(folder: &Path, arguments: &[&str]) -> Self {
        Self::of(folder, &[&["mcp", "serve", "--stdio"][..], arguments].concat())
    }

    /// Starts `waypost` with these arguments.
    pub fn of(folder: &Path, arguments: &[&str]) -> Self {
        let said = tempfile::tempdir().unwrap();
        let mut command = command(folder, arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(File::create(said.path().join("stderr")).unwrap());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // Nobody listens once the test is over.
                let _ = sender.send(line);
            }
        });
        let input = child.stdin.take();
        Self { child, input, lines, said, requests: 0 }
    }

    pub fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").and_then(|()| input.flush()).unwrap();
    }

    /// The next message; every line must be one.
    #[track_caller]
    pub fn next(&self) -> Value {
        let line = self.lines.recv_timeout(ANSWER_LIMIT);
        let line = line.unwrap_or_else(|error| panic!("no message: {error}: {}", self.stderr()));
        let message: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    /// Sends a request and waits for its answer; what comes before it is left out.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.next();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// The same in the stateless version, by a client that can do this.
    #[track_caller]
    pub fn ask_stateless(&mut self, method: &str, params: &Value, can: &Value) -> Value {
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": can,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        });
        self.ask(method, &params)
    }

    /// The handshake of an older version.
    #[track_caller]
    pub fn greet(&mut self, version: &str) -> Value {
        let params = json!({"protocolVersion": version, "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        let answer = self.ask("initialize", &params);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer
    }

    /// Closes standard input and waits for the end.
    pub fn end(mut self) -> Ended {
        self.input = None;
        self.ended()
    }

    /// SIGTERM, while standard input stays open.
    pub fn terminate(mut self) -> Ended {
        terminate(self.child.id());
        self.ended()
    }

    /// Waits for an end that comes by itself.
    pub fn ended(&mut self) -> Ended {
        let begun = Instant::now();
        let status =
            wait_for("the end of `mcp serve`", END_LIMIT, || self.child.try_wait().unwrap());
        let rest: Vec<String> = self.lines.try_iter().collect();
        Ended {
            code: status.code(),
            stdout: rest.join("\n"),
            stderr: self.stderr(),
            took: begun.elapsed(),
        }
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.said.path().join("stderr")).unwrap_or_default()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Both fail only when the process is gone already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
